"""Pictures for tests, each with a colour in three of its corners: whoever turns or mirrors one is found out."""

import base64
import io
from typing import Any

from PIL import Image, ImageDraw

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
SIZE = (64, 48)
GPS, MAKER = 0x8825, 0x010F
_ORIENTATION = 0x0112
_STORED_AS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def marked(size: tuple[int, int] = SIZE) -> Image.Image:
    """Red at the top left, green at the top right, blue at the bottom left, white elsewhere."""
    picture = Image.new("RGB", size, WHITE)
    draw = ImageDraw.Draw(picture)
    width, height = size[0] // 4, size[1] // 4
    draw.rectangle((0, 0, width, height), fill=RED)
    draw.rectangle((size[0] - width, 0, size[0], height), fill=GREEN)
    draw.rectangle((0, size[1] - height, width, size[1]), fill=BLUE)
    return picture


def picture(form: str, orientation: int = 1, image: Image.Image | None = None, **options: Any) -> bytes:
    """A file that shows ``marked`` upright when its Exif orientation is obeyed, with camera and place in its metadata."""
    image = image or marked()
    if orientation in _STORED_AS:
        image = image.transpose(_STORED_AS[orientation])
    out = io.BytesIO()
    if form in ("JPEG", "PNG", "WEBP", "TIFF", "AVIF"):
        exif = Image.Exif()
        exif[_ORIENTATION], exif[MAKER] = orientation, "Secret Camera"
        exif.get_ifd(GPS)[1] = "N"
        options = {"exif": exif, **options}
    image.save(out, form, **options)
    return out.getvalue()


def heic() -> bytes:
    """``marked``, stored on its side, as a telephone does: libheif turns it. Made once with pillow-heif, which can encode."""
    return base64.b64decode(_HEIC)


_HEIC = (
    "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAchtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAA"
    "ADRpbG9jAAAAAERAAAIAAQAAAAAB7AABAAAAAAAAAPYAAgAAAAAC4gABAAAAAAAAAHoAAAA4aWluZgAAAAAAAgAAABVpbmZlAgAA"
    "AAABAABodmMxAAAAABVpbmZlAgAAAQACAABFeGlmAAAAAA5waXRtAAAAAAABAAABB2lwcnAAAADmaXBjbwAAAHZodmNDAQNwAAAA"
    "kAAAAAAAHvAA/P34+AAADwNgAAEAGEABDAH//wNwAAADAJAAAAMAAAMAHroCQGEAAQAqQgEBA3AAAAMAkAAAAwAAAwAeoCCBBZbq"
    "5Ka5uAhoMCAAAAMDIAAAAwAhYgABAAZEAcFzwIkAAAATY29scm5jbHgAAQANAAaAAAAAFGlzcGUAAAAAAAAAQAAAAEAAAAAoY2xh"
    "cAAAADAAAAABAAAAQAAAAAH////wAAAAAgAAAAAAAAACAAAAEHBpeGkAAAAAAwgICAAAAAlpcm90AwAAABlpcG1hAAAAAAAAAAEA"
    "AQaBAgMFhIYAAAAaaXJlZgAAAAAAAAAOY2RzYwACAAEAAQAAAXhtZGF0AAAA8igBrwngITkaawh3W2qanthkvzF715xQg/mX4G9m"
    "gW/9/K38759ls87wLTCmelOKZONxodebbC5jfpBe4bL+D/S/EBmtdl/as+I451P6v2b+Pwf8+vzEmb+lD8BuzdzRHvd/7//zkav7"
    "G2X6LR4Oawi+fEHMhO4ixtzj7613Xn6armqM5ajiFXzeL+mBWWKdG3xFhK8aAkuJFuNvth5kGBFj1toZqC0FVfTCwwmAGpbmDPj/"
    "nrHYfBjGGbb39qpIcirPhMtln0vju2/S//Xh/f9/5OQw15ce+xOVNaf1A3Vot7z5O+Is91kjxJulTgSekl2AAAAABkV4aWYAAE1N"
    "ACoAAAAIAAMBDwACAAAACAAAADIBEgADAAAAAQAGAACIJQAEAAAAAQAAADoAAAAATm93aGVyZQAAAgABAAIAAAACTgAAAAACAAUA"
    "AAADAAAAWAAAAAAAAAA0AAAAAQAAAB8AAAABAAAADAAAAAE="
)
