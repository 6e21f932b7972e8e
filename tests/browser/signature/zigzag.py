"""A zigzag with peaks, as a hand draws it, and a judge of pictures that says which of its peaks are there."""

import io
import subprocess
from pathlib import Path

from PIL import Image

PEAKS = tuple((0.1 + 0.1 * number, 0.25 if number % 2 else 0.8) for number in range(9))
"""Fractions of the pad. With one event at each of them, as a hand that is quick leaves them."""

_DARK = 128
_NEAR = 0.05
"""Of the drawing's width and height. A smoothed peak is lower by a quarter and more."""


def missing(picture: Image.Image) -> list[tuple[float, float]]:
    """The peaks that the drawing in this picture, dark on white and cut to its ink, does not have."""
    left, top = (min(values) for values in zip(*PEAKS, strict=True))
    right, bottom = (max(values) for values in zip(*PEAKS, strict=True))
    width, height = picture.size
    near_x, near_y = round(width * _NEAR), round(height * _NEAR)
    absent = []
    for x, y in PEAKS:
        at_x, at_y = round((x - left) / (right - left) * width), round((y - top) / (bottom - top) * height)
        around = (max(0, at_x - near_x), max(0, at_y - near_y), min(width, at_x + near_x), min(height, at_y + near_y))
        if picture.crop(around).getextrema()[0] >= _DARK:  # type: ignore[operator]
            absent.append((x, y))
    return absent


def inked(picture: Image.Image) -> Image.Image:
    """The picture in tones of grey, cut to what is dark in it."""
    grey = picture.convert("L")
    box = grey.point(lambda value: 255 if value < _DARK else 0).getbbox()
    assert box is not None, "nothing is drawn"
    return grey.crop(box)


def on_white(png: bytes) -> Image.Image:
    """A transparent picture on paper."""
    ink = Image.open(io.BytesIO(png)).convert("RGBA")
    paper = Image.new("RGBA", ink.size, "white")
    paper.alpha_composite(ink)
    return paper


def as_poppler_draws(pdf: bytes, folder: Path, area: tuple[float, float, float, float]) -> Image.Image:
    """This area of the first page, in fractions of it: left, top, width, height."""
    (folder / "sealed.pdf").write_bytes(pdf)
    command = ["pdftoppm", "-f", "1", "-l", "1", "-r", "200", "-png", "-singlefile", "sealed.pdf", "page"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    page = Image.open(folder / "page.png")
    x, y, w, h = area
    across, along = page.size
    return page.crop((round(x * across), round(y * along), round((x + w) * across), round((y + h) * along)))
