"""Typed signatures as pictures."""

import io

import pytest
from PIL import Image

from services.rendering.jobs.drawing.signature_image import draw_signature
from services.rendering.jobs.pdf.refused import Refused


def opened(data: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(data))
    assert picture.format == "PNG"
    return picture


@pytest.mark.parametrize(
    "name", ["Ana Kowalska", "Łukasz Żółć", "Иван Петров", "דוד כהן", "محمد بن لامع", "王小明", "สมชาย ใจดี"]
)
def test_a_name_becomes_ink_on_a_transparent_ground(name: str) -> None:
    picture = opened(draw_signature(name))
    assert picture.mode == "RGBA"
    alpha = picture.getchannel("A")
    assert alpha.getextrema() == (0, 255)
    assert alpha.getbbox() == (0, 0, *picture.size), "cut to the ink"
    assert picture.height > 50
    shares = alpha.histogram()
    assert 0.03 < sum(shares[128:]) / sum(shares) < 0.6


def test_different_names_look_different() -> None:
    assert draw_signature("Ana") != draw_signature("Eva")
    assert draw_signature("Ana") == draw_signature("  Ana ")


def test_a_long_name_stays_a_picture_of_bounded_width() -> None:
    assert opened(draw_signature("Maximiliane Freifrau von Mustermann-Beispiel zu Hohenstein " * 3)).width < 3000


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "empty"), (" \n ", "empty"), ("x" * 201, "200"), ("a\u0860", "U.0860"), ("a\x07", "U.0007")],
)
def test_what_cannot_be_drawn_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        draw_signature(text)
