"""Whether two pictures of a page show the same: pixel by pixel, in numbers that can be compared with a tolerance."""

from dataclasses import dataclass
from typing import Any

from PIL import Image, ImageChops, ImageStat

Box = tuple[int, int, int, int]

UNLIKE = 60
"""Of 255. Two rasterisers or a browser that lays one picture over another differ by a few; a stroke that is there in one picture
and not in the other by more than a hundred."""

_PAPER = 24
"""Darker or more coloured than white by this: ink."""


@dataclass(frozen=True)
class Comparison:
    """``ink`` and ``unlike`` in pixels: how many are drawn on in either picture, and how many of those look different;
    ``largest`` is the largest difference of any channel."""

    ink: int
    unlike: int
    largest: int

    @property
    def share(self) -> float:
        """Of the ink that is not the same in both."""
        return self.unlike / max(self.ink, 1)


def compared(one: Image.Image, other: Image.Image, box: Box | None = None) -> Comparison:
    """Both pictures, or the part ``box`` (left, top, right, bottom) of them; ValueError when their sizes differ."""
    if one.size != other.size:
        raise ValueError(f"{one.size} is not {other.size}")
    first, second = (picture.convert("RGB").crop(box or (0, 0, *picture.size)) for picture in (one, other))
    difference = _strongest(ImageChops.difference(first, second))
    white = Image.new("RGB", first.size, "white")
    ink = _strongest(ImageChops.difference(ImageChops.darker(first, second), white))
    return Comparison(_count(ink, _PAPER), _count(difference, UNLIKE), brightest(difference))


def pixel(picture: Image.Image, place: tuple[int, int]) -> Any:
    """What is at ``place``: a number, or several, by the picture's mode."""
    return picture.getpixel(place)


def darkest(picture: Image.Image) -> int:
    """The darkest gray in a picture: black is 0."""
    grays: Any = picture.convert("L").getextrema()
    return int(grays[0])


def brightest(picture: Image.Image) -> int:
    """The largest value in a picture of one channel: white is 255."""
    grays: Any = picture.getextrema()
    return int(grays[1])


def _strongest(picture: Image.Image) -> Image.Image:
    """The largest of the three channels."""
    red, green, blue = picture.split()
    return ImageChops.lighter(ImageChops.lighter(red, green), blue)


def _count(picture: Image.Image, above: int) -> int:
    return int(ImageStat.Stat(picture.point(lambda value: 255 if value > above else 0)).sum[0]) // 255
