"""Pictures of pages in few bytes: for telephones on a slow network.

What is drawn in few tones, as nearly all text is, keeps sixteen of each colour: no pixel differs from the drawn one by more
than 8 of 255, which no eye sees at the edge of a letter. Where more than edges would change (grey or coloured areas, gradients,
photographs) the picture is exact. It is written as PNG with a palette and as lossless WebP, and the smaller one is taken. Lossy
WebP is for pages that are a photograph, or a scan in tones, already.
"""

import io

from PIL import Image, ImageChops

_STEP = 17
"""From one tone to the next: 0, 17, ... 255."""

_AREA = 5
_EDGE = 40
"""Pixels, and tones. A square of that size that would change everywhere is an area, unless an edge with that contrast goes
through it."""

_WHITE = 255
_MOST_SQUARES = 10_000
"""More than a page of text has by far, and quick to look at."""

_FEW = 16
"""Colours. With more, PNG has never been the smaller one."""

_QUALITY = 90
_WORTH = 0.7
"""Lossy is taken when it has no more than this share of the exact picture's bytes."""


def smallest(picture: Image.Image, *, is_photograph: bool) -> bytes:
    """The picture (RGB) as PNG or WebP, whichever is smaller. ``is_photograph``: it consists mostly of pictures in tones."""
    tones = picture if is_photograph else in_few_tones(picture)
    exact = _webp(tones)
    colors = tones.getcolors(_FEW)
    if colors is not None:
        exact = min(exact, _png(tones, len(colors)), key=len)
    if not is_photograph:
        return exact
    lossy = _saved(picture, "WEBP", quality=_QUALITY, method=4, use_sharp_yuv=True)
    return lossy if len(lossy) <= _WORTH * len(exact) else exact


def in_few_tones(picture: Image.Image) -> Image.Image:
    """The picture with sixteen tones of each colour, or as it is where more than edges would change."""
    rounded = picture.point([round(value / _STEP) * _STEP for value in range(256)] * 3)
    changed = _strongest(ImageChops.difference(picture, rounded)).point(lambda value: 255 if value else 0)
    return picture if _has_areas(picture, changed) else rounded


def _has_areas(picture: Image.Image, changed: Image.Image) -> bool:
    """Return whether squares that are even in ``picture`` are white in ``changed``."""
    blocks = changed.reduce(_AREA)
    whole = [index for index, value in enumerate(blocks.tobytes()) if value == _WHITE]
    if len(whole) > _MOST_SQUARES:
        return True
    for index in whole:
        top, left = (number * _AREA for number in divmod(index, blocks.width))
        square = picture.crop((left, top, min(left + _AREA, picture.width), min(top + _AREA, picture.height)))
        if all(high - low < _EDGE for low, high in square.getextrema()):  # type: ignore[misc]
            return True
    return False


def _strongest(picture: Image.Image) -> Image.Image:
    red, green, blue = picture.split()
    return ImageChops.lighter(ImageChops.lighter(red, green), blue)


def _png(picture: Image.Image, colors: int) -> bytes:
    """With 1, 2 or 4 bits a pixel, exactly."""
    indexed = picture.quantize(colors, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    if ImageChops.difference(indexed.convert("RGB"), picture).getbbox():
        return _saved(picture, "PNG", compress_level=9)
    bits = next(bits for bits in (1, 2, 4) if colors <= 1 << bits)
    return _saved(indexed, "PNG", compress_level=9, bits=bits)


def _webp(picture: Image.Image) -> bytes:
    return _saved(picture, "WEBP", lossless=True, quality=50, method=4)


def _saved(picture: Image.Image, kind: str, **options: int) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()
