"""Typed signatures as pictures."""

import io
import itertools

import pytest
from PIL import Image, ImageChops

from contracts.rpc.rendering import SIGNATURE_STYLES
from contracts.types import FieldType
from services.rendering.jobs.drawing.signature_image import draw_signature, draw_styles
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pictures.preparing import prepare_image


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


@pytest.mark.parametrize("name", ["Ana Kowalska", "Łukasz Żółć", "محمد بن لامع", "王小明", "I"])
@pytest.mark.parametrize("style", range(1, SIGNATURE_STYLES + 1))
def test_to_prepare_what_was_drawn_changes_nothing(name: str, style: int) -> None:
    """So nobody has to do it (``AttachFile.drawn``)."""
    drawn = draw_signature(name, style)
    assert prepare_image(drawn, FieldType.SIGNATURE) == drawn


NAMES = (
    "Jane van Doe",
    "Nguyễn Thị Phượng",
    "Юлія Коваль",
    "Αλέξης Παππάς",
    "محمد علي شريف",
    "שרה הלוי",
    "प्रिया शर्मा",
    "สมชาย ใจดี",
    "田中さくら",
    "王小明",
    "张伟",
    "김민준",
    "Björn 김",
)


@pytest.mark.parametrize("name", NAMES)
def test_no_two_of_the_five_styles_look_alike_and_what_is_shown_is_what_is_drawn(name: str) -> None:
    shown = [opened(data) for data in draw_styles(name)]
    assert len(shown) == SIGNATURE_STYLES
    small = [as_high(picture.convert("L")) for picture in shown]
    for one, other in itertools.combinations(small, 2):
        assert unlike(one, other) > 0.3
    for style, picture in enumerate(shown, start=1):
        assert (picture.width <= 720, picture.height <= 100) == (True, True)
        ink = opened(draw_signature(name, style))
        paper = Image.new("RGBA", ink.size, "white")
        paper.alpha_composite(ink)
        assert unlike(paper.convert("L").resize(picture.size, Image.Resampling.LANCZOS), picture.convert("L")) < 0.1


def as_high(picture: Image.Image) -> Image.Image:
    return picture.resize((round(picture.width * 60 / picture.height), 60), Image.Resampling.LANCZOS)


def unlike(one: Image.Image, other: Image.Image) -> float:
    """How much of the ink of both, laid over each other, is in one of them only."""
    size = (max(one.width, other.width), max(one.height, other.height))
    first, second = Image.new("L", size, 255), Image.new("L", size, 255)
    first.paste(one)
    second.paste(other)
    ink = ImageChops.invert(ImageChops.darker(first, second))
    return tones(ImageChops.difference(first, second)) / tones(ink)


def tones(picture: Image.Image) -> int:
    return sum(value * count for value, count in enumerate(picture.histogram()))


def test_the_first_style_is_that_of_whoever_chooses_none() -> None:
    assert draw_signature("Ana", 1) == draw_signature("Ana")


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
    with pytest.raises(Refused, match=reason):
        draw_styles(text)
