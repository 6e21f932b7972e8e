"""The first page of a PDF in small, for mails: few bytes, and the few colours by which one recognises it."""

import io

from PIL import Image

from contracts.rpc.rendering import THUMBNAIL_BYTES, THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH
from services.rendering.jobs.previews.pages import draw_page

_COLORS = (16, 8, 4)
"""The most that are tried in turn. With 4, which are 2 bits a pixel, every picture of this size is small enough."""


def draw_thumbnail(data: bytes) -> bytes:
    """PNG of the first page, upright, of THUMBNAIL_WIDTH x THUMBNAIL_HEIGHT pixels and THUMBNAIL_BYTES at most; what is
    longer is cut at the foot. Raises Refused when the page cannot be drawn."""
    with Image.open(io.BytesIO(draw_page(data, 1, THUMBNAIL_WIDTH))) as page:
        picture = page.crop((0, 0, min(page.width, THUMBNAIL_WIDTH), min(page.height, THUMBNAIL_HEIGHT)))
    encoded = b""
    for colors in _COLORS:
        encoded = _png(picture, colors)
        if len(encoded) <= THUMBNAIL_BYTES:
            break
    return encoded


def _png(picture: Image.Image, colors: int) -> bytes:
    out = io.BytesIO()
    picture.quantize(colors, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
        out, "PNG", compress_level=9, bits=4 if colors > 4 else 2
    )
    return out.getvalue()
