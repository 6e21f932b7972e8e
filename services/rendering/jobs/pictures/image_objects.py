"""Pictures inside a PDF: PNG and JPEG as image XObjects, each picture once per document however often it is drawn."""

import hashlib
import io
import zlib
from dataclasses import dataclass

import pikepdf
from pikepdf import Dictionary, Name, Stream
from PIL import Image, ImageChops

Color = tuple[float, float, float]

_FORMATS = ("PNG", "JPEG")
_RESOLUTION = 300
"""Dots per inch that paper needs; a photo of ten times that only makes the document heavy."""
_SMALL_ENOUGH = 1_000_000
_JPEG_QUALITY = 90
_OPAQUE = (255, 255)
_FAINT = 16
"""Of 255: what is less opaque is not seen."""


class NotAPicture(Exception):
    """The bytes are neither PNG nor JPEG, or broken."""


@dataclass(frozen=True)
class Picture:
    """``width`` and ``height`` in pixels; ``digest`` of what is in the file (``digest_of``)."""

    reference: pikepdf.Object
    width: int
    height: int
    digest: str


def digest_of(image: Stream) -> str:
    """SHA-256 of an image XObject's colours and of its transparency, as they are in the file."""
    digest = hashlib.sha256(image.read_raw_bytes())
    mask = image.get("/SMask", image.get("/Mask"))
    if isinstance(mask, Stream):
        digest.update(mask.read_raw_bytes())
    return digest.hexdigest()


class PictureEmbedder:
    """Puts pictures into one document. Without ``transparency`` each pixel is opaque, blended with white, or not there."""

    def __init__(self, pdf: pikepdf.Pdf, *, transparency: bool = True) -> None:
        self._pdf, self._transparency = pdf, transparency
        self._made: dict[tuple[bytes, Color | None, bool, int], Picture] = {}

    def place(
        self, data: bytes, *, points: tuple[float, float], color: Color | None = None, trim: bool = False
    ) -> Picture:
        """The picture for an area of ``points`` (width, height). ``color`` redraws its strokes in one colour; ``trim`` cuts
        empty margins off. Raises NotAPicture."""
        try:
            image = Image.open(io.BytesIO(data), formats=_FORMATS)
            shrink = _shrink_factor(image.size, points)
            key = (hashlib.sha256(data).digest(), color, trim, shrink)
            if key not in self._made:
                self._made[key] = self._make(image, data, color, trim, shrink)
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise NotAPicture(str(error)) from error
        return self._made[key]

    def _make(self, image: Image.Image, data: bytes, color: Color | None, trim: bool, shrink: int) -> Picture:
        if image.format == "JPEG" and color is None and shrink == 1 and image.mode in {"L", "RGB"}:
            return self._jpeg(data, image)
        image.load()
        pixels, alpha = _parts(image)
        if color is not None:
            # A signature on white paper has no alpha: its darkness takes that place.
            alpha = alpha or ImageChops.invert(pixels.convert("L"))
            pixels = Image.new("RGB", pixels.size, tuple(round(part * 255) for part in color))
        if trim and alpha is not None and (box := alpha.getbbox()):
            pixels, alpha = pixels.crop(box), alpha.crop(box)
        if shrink > 1:
            pixels = pixels.reduce(shrink)
            alpha = alpha.reduce(shrink) if alpha else None
        return self._raw(pixels, alpha)

    def _jpeg(self, data: bytes, image: Image.Image) -> Picture:
        stream = Stream(self._pdf, data)
        stream.Filter = Name.DCTDecode
        self._describe(stream, image.size, Name.DeviceGray if image.mode == "L" else Name.DeviceRGB)
        return Picture(stream, *image.size, digest_of(stream))

    def _raw(self, pixels: Image.Image, alpha: Image.Image | None) -> Picture:
        if alpha is None and pixels.width * pixels.height > _SMALL_ENOUGH:
            buffer = io.BytesIO()
            pixels.save(buffer, "JPEG", quality=_JPEG_QUALITY)
            return self._jpeg(buffer.getvalue(), pixels)
        if alpha is not None and not self._transparency:
            pixels = Image.composite(pixels, Image.new("RGB", pixels.size, "white"), alpha)
        elif alpha is not None:
            # What is not seen is made black: it compresses to nothing.
            pixels = Image.composite(
                pixels, Image.new("RGB", pixels.size), alpha.point(lambda value: 255 if value else 0)
            )
        gray = _as_gray(pixels)
        stream = self._compressed((gray or pixels).tobytes())
        self._describe(stream, pixels.size, Name.DeviceGray if gray else Name.DeviceRGB)
        if alpha is not None and self._transparency:
            mask = self._compressed(alpha.tobytes())
            self._describe(mask, alpha.size, Name.DeviceGray)
            stream.SMask = mask
        elif alpha is not None:
            stream.Mask = self._stencil(alpha)
        return Picture(stream, *pixels.size, digest_of(stream))

    def _stencil(self, alpha: Image.Image) -> Stream:
        """An explicit mask (ISO 32000-2, 8.9.6.3): ones are not painted."""
        unseen = alpha.point(lambda value: 255 if value < _FAINT else 0).convert("1", dither=Image.Dither.NONE)
        mask = self._compressed(unseen.tobytes())
        mask.stream_dict.update(
            Dictionary(
                Type=Name.XObject,
                Subtype=Name.Image,
                Width=alpha.width,
                Height=alpha.height,
                ImageMask=True,
                BitsPerComponent=1,
            )
        )
        return mask

    def _compressed(self, data: bytes) -> Stream:
        stream = Stream(self._pdf, zlib.compress(data))
        stream.Filter = Name.FlateDecode
        return stream

    def _describe(self, stream: Stream, size: tuple[int, int], colors: Name) -> None:
        stream.stream_dict.update(
            Dictionary(
                Type=Name.XObject,
                Subtype=Name.Image,
                Width=size[0],
                Height=size[1],
                ColorSpace=colors,
                BitsPerComponent=8,
            )
        )


def _parts(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Colours, and transparency when there is any."""
    if image.mode in {"RGBA", "LA", "PA"} or "transparency" in image.info:
        full = image.convert("RGBA")
        alpha = full.getchannel("A")
        return full.convert("RGB"), None if alpha.getextrema() == _OPAQUE else alpha
    if image.mode.startswith("I"):
        # 16 bits of grey; convert() would clip instead of scale.
        image = image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    return image.convert("RGB"), None


def _as_gray(pixels: Image.Image) -> Image.Image | None:
    red, green, blue = pixels.split()
    same = not ImageChops.difference(red, green).getbbox() and not ImageChops.difference(red, blue).getbbox()
    return red if same else None


def _shrink_factor(size: tuple[int, int], points: tuple[float, float]) -> int:
    """By how much the picture may be reduced: at least twice the resolution that is needed, and large."""
    if size[0] * size[1] <= _SMALL_ENOUGH:
        return 1
    needed = [max(side * _RESOLUTION / 72, 1) for side in points]
    return max(1, int(min(size[0] / needed[0], size[1] / needed[1])))
