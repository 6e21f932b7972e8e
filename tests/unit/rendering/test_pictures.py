"""Pictures from outside: decoded within limits, turned upright, written anew; signatures have a stroke."""

import io
import struct
import zlib
from typing import Any

import pytest
from PIL import Image, ImageDraw

from contracts.types import FieldType
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pictures.preparing import LONGEST_SIDE, prepare_image
from tests.support.files import picture_files
from tests.support.judges.documents.pixels import pixel


def encoded(picture: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def decoded(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def scribble(mode: str = "RGB", paper: Any = "white", ink: Any = (10, 20, 120), size: Any = (400, 200)) -> Image.Image:
    picture = Image.new(mode, size, paper)
    ImageDraw.Draw(picture).line((50, 150, 200, 40, 300, 160), fill=ink, width=5)
    return picture


def claimed(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it is this large."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(9000))) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_formats(kind: str) -> None:
    result = decoded(prepare_image(encoded(scribble(), kind), FieldType.IMAGE))
    assert result.format == ("JPEG" if kind == "JPEG" else "PNG")
    assert result.size == (400, 200)
    assert pixel(result.convert("L"), (200, 41)) < 80


def test_photos_of_telephones_become_jpeg_and_stand_upright() -> None:
    for data in (picture_files.heic(), picture_files.picture("AVIF", 6)):
        result = decoded(prepare_image(data, FieldType.IMAGE))
        assert (result.format, result.size) == ("JPEG", picture_files.SIZE)
        red, green, _ = pixel(result, (2, 2))
        assert red > 180 > 80 > green
        assert not result.getexif()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (picture_files.heic()[:700], "damaged"),
        (picture_files.picture("AVIF")[:400], "damaged|not a PNG"),
        (b"", "not a PNG"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', "not a PNG"),
        (b"<html><img src=x onerror=alert(1)></html>", "not a PNG"),
        (b"%PDF-1.7", "not a PNG"),
        (encoded(scribble())[:300], "damaged"),
        (b"\x89PNG\r\n\x1a\n" + b"rubbish" * 20, "damaged|not a PNG"),
        (claimed(50_000, 50_000), "more than 40 million pixels"),
        (claimed(7_000, 7_000), "more than 40 million pixels"),
        (encoded(scribble(), "PPM"), "not a PNG"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_what_is_no_picture_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        prepare_image(data, FieldType.IMAGE)


def test_pictures_are_turned_upright() -> None:
    upright = Image.new("RGB", (40, 20), "white")
    upright.paste("red", (0, 0, 10, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # Turn by 90 degrees clockwise to see it.
    result = decoded(prepare_image(encoded(upright, "JPEG", exif=exif, quality=95), FieldType.IMAGE))
    assert result.size == (20, 40)
    red, green, _ = pixel(result, (10, 3))
    assert red > 200
    assert green < 60
    assert not result.getexif()


def test_large_pictures_are_made_smaller() -> None:
    result = decoded(prepare_image(encoded(Image.new("L", (6000, 3000), 128)), FieldType.IMAGE))
    assert result.size == (LONGEST_SIDE, LONGEST_SIDE // 2)


def test_metadata_and_what_hangs_on_behind_go() -> None:
    data = encoded(scribble(), "JPEG", comment=b"secret place") + b"<script>alert(1)</script>"
    result = prepare_image(data, FieldType.IMAGE)
    assert b"secret" not in result
    assert b"script" not in result


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I", "I;16"])
def test_modes(mode: str) -> None:
    source = scribble("RGB", ink="black").convert("L")
    if mode.startswith("I"):
        deep = Image.new(mode, source.size)
        deep.putdata([value * 257 for value in source.tobytes()])
        source = deep
    else:
        source = source.convert(mode)
    data = encoded(source, "TIFF" if mode in ("CMYK", "LA", "I", "I;16") else "PNG")
    result = decoded(prepare_image(data, FieldType.IMAGE)).convert("L")
    assert pixel(result, (10, 10)) > 240
    assert pixel(result, (125, 95)) < 20


def test_only_the_first_frame_of_an_animation_counts() -> None:
    frames = [scribble(), scribble(paper="black")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert decoded(prepare_image(data, FieldType.IMAGE)).convert("L").getpixel((0, 0)) == 255


# Signatures


@pytest.mark.parametrize("field_type", [FieldType.SIGNATURE, FieldType.INITIALS])
@pytest.mark.parametrize(
    "picture",
    [
        Image.new("RGB", (300, 100), "white"),
        Image.new("RGB", (300, 100), "black"),
        Image.new("RGB", (300, 100), (90, 120, 200)),
        Image.new("RGBA", (300, 100), (0, 0, 0, 0)),
        Image.new("RGBA", (300, 100), (255, 255, 255, 0)),
        scribble("RGBA", (0, 0, 0, 0), (255, 255, 255, 255)),
        scribble("RGB", "white", (250, 250, 250)),
        Image.new("RGB", (1, 1), "black"),
    ],
    ids=["white", "black", "blue", "clear", "clear white", "white ink", "too faint", "a dot"],
)
def test_a_signature_without_a_stroke_is_refused(picture: Any, field_type: Any) -> None:
    with pytest.raises(Refused, match="signature is empty"):
        prepare_image(encoded(picture), field_type)


def test_a_speck_is_no_signature() -> None:
    picture = Image.new("RGB", (300, 100), "white")
    picture.paste("black", (50, 50, 52, 52))
    with pytest.raises(Refused, match="signature is empty"):
        prepare_image(encoded(picture), FieldType.SIGNATURE)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("paper", ["white", (235, 230, 220)])
def test_paper_becomes_transparent_and_margins_go(kind: str, paper: Any) -> None:
    result = decoded(prepare_image(encoded(scribble(paper=paper), kind), FieldType.SIGNATURE))
    assert (result.format, result.mode) == ("PNG", "RGBA")
    assert 245 <= result.width <= 264
    assert 115 <= result.height <= 136
    alpha = result.getchannel("A")
    assert alpha.getpixel((result.width // 2, result.height - 3)) == 0
    colors: Any = result.get_flattened_data()
    drawn = [color for color in colors if color[3] > 200]
    assert len(drawn) > 1000
    assert sum(color[2] for color in drawn) / len(drawn) > sum(color[0] for color in drawn) / len(drawn) + 30


def test_a_signature_looks_the_same_on_paper() -> None:
    source = scribble()
    result = decoded(prepare_image(encoded(source), FieldType.SIGNATURE))
    paper = Image.new("RGBA", result.size, "white")
    paper.alpha_composite(result)
    original = source.crop((48, 38, 48 + result.width, 38 + result.height)).convert("L")
    dark = sum(1 for value in original.tobytes() if value < 128)
    again = sum(1 for value in paper.convert("L").tobytes() if value < 128)
    assert again == pytest.approx(dark, rel=0.03)


def test_a_drawn_signature_keeps_its_transparency() -> None:
    result = decoded(prepare_image(encoded(scribble("RGBA", (0, 0, 0, 0), (0, 0, 0, 255))), FieldType.INITIALS))
    assert result.getchannel("A").getextrema() == (0, 255)
    assert pixel(result, (1, 1))[3] == 0
