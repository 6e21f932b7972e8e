"""First pages in small: few bytes and colours, whatever is on them."""

import io
import random

import pytest
from PIL import Image

from contracts.rpc.rendering import THUMBNAIL_BYTES
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.previews.thumbnails import draw_thumbnail
from tests.support.judges.documents.pixels import pixel
from tests.support.rendering.sealing import contract_pdf


def picture_pdf(picture: Image.Image, resolution: float = 72.0) -> bytes:
    out = io.BytesIO()
    picture.save(out, "PDF", resolution=resolution)
    return out.getvalue()


def opened(data: bytes) -> Image.Image:
    assert len(data) <= THUMBNAIL_BYTES
    picture = Image.open(io.BytesIO(data))
    assert (picture.format, picture.mode) == ("PNG", "P")
    return picture


def noise(width: int, height: int) -> Image.Image:
    return Image.frombytes("RGB", (width, height), random.Random(7).randbytes(width * height * 3))


def test_it_shows_the_first_page_in_few_colours() -> None:
    red_first = Image.new("RGB", (300, 400), "red")
    out = io.BytesIO()
    red_first.save(out, "PDF", save_all=True, append_images=[Image.new("RGB", (300, 400), "blue")])
    picture = opened(draw_thumbnail(out.getvalue()))
    assert (picture.width, picture.height) == (240, 320)
    red, green, blue = pixel(picture.convert("RGB"), (120, 160))
    assert (red > 240, green < 15, blue < 15) == (True, True, True)
    text = opened(draw_thumbnail(contract_pdf(1)))
    assert 1 < len(text.getcolors() or []) <= 16


@pytest.mark.parametrize("size", [(300, 400), (300, 4000), (4000, 300), (240, 400)])
def test_a_picture_that_does_not_compress_is_small_enough(size: tuple[int, int]) -> None:
    picture = opened(draw_thumbnail(picture_pdf(noise(*size))))
    assert picture.width <= 240
    assert picture.height <= 400


def test_what_is_longer_is_cut_at_the_foot() -> None:
    long = Image.new("RGB", (300, 6000), "white")
    long.paste("green", (0, 0, 300, 250))
    picture = opened(draw_thumbnail(picture_pdf(long))).convert("RGB")
    assert (picture.width, picture.height) == (240, 400)
    assert picture.getpixel((120, 390)) == (255, 255, 255)
    red, green, blue = pixel(picture, (120, 100))
    assert (red < 10, green > 100, blue < 10) == (True, True, True)


@pytest.mark.parametrize("data", [b"", b"no PDF", b"%PDF-1.7\n%%EOF"])
def test_what_cannot_be_drawn_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        draw_thumbnail(data)
