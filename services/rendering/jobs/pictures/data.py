"""The pixels of a picture as an image XObject: taken over as they are where a PDF can hold them, else encoded anew.

A picture of 40 million pixels is 160 MB when it is decoded, so there is never more than one copy besides the encoder's rows.
"""

import io
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name
from PIL import Image

from services.rendering.jobs.pictures.jpeg_data import bare_jpeg

_ORIENTATION = 0x0112
_QUALITY = 90
_LARGEST_PROFILE = 2 * 2**20
_LARGEST_PACKED = 8 * 2**20
"""Without loss a photo of 40 million pixels has 80 MB, which nobody can send or seal."""
_SPACES = {1: (Name.DeviceGray, b"GRAY"), 3: (Name.DeviceRGB, b"RGB "), 4: (Name.DeviceCMYK, b"CMYK")}
"""Device colour space and the ICC name of the same, by number of components."""
_KEPT = "taken over without being encoded anew"
_AS_JPEG = f"encoded anew as JPEG of quality {_QUALITY}"
_WITHOUT_LOSS = "encoded anew without loss"
_PNG_COLORS = {0: 1, 2: 3, 3: 1}
"""Components by colour type: grey, RGB, palette. The other types are transparent."""


@dataclass(frozen=True)
class Embedded:
    """``size`` in pixels as stored; ``orientation`` as Exif numbers it; ``way`` says what was done with the data."""

    stream: pikepdf.Stream
    size: tuple[int, int]
    orientation: int
    treatment: str

    @property
    def upright_size(self) -> tuple[int, int]:
        return (self.size[1], self.size[0]) if self.orientation >= 5 else self.size


def embed(pdf: pikepdf.Pdf, picture: Image.Image, data: bytes, kind: str) -> Embedded:
    """``picture`` is opened and not decoded yet, ``data`` is its file, ``kind`` as ``picture_kind`` says. Pillow's errors come
    through."""
    profile = picture.info.get("icc_profile")
    embedded = None
    if kind == "JPEG":
        embedded = _kept_jpeg(pdf, picture, data, profile)
    elif kind == "PNG":
        embedded = _kept_png(pdf, picture, data, profile)
    return embedded or _encoded(pdf, picture, profile, lossy=_is_lossy(picture, data, kind))


# --- taken over


def _kept_jpeg(pdf: pikepdf.Pdf, picture: Image.Image, data: bytes, profile: Any) -> Embedded | None:
    jpeg = bare_jpeg(data)
    if jpeg is None or (jpeg.width, jpeg.height) != picture.size:
        return None
    orientation = _orientation(picture)
    if jpeg.components != 4:
        # An eighth of the size still reads all of the data, and raises when they are damaged.
        picture.draft(None, (max(picture.width // 8, 1), max(picture.height // 8, 1)))
    picture.load()
    stream = pdf.make_stream(b"")
    stream.write(jpeg.data, filter=Name.DCTDecode)
    size = (jpeg.width, jpeg.height)
    _describe(stream, size, _color_space(pdf, jpeg.components, profile))
    if jpeg.components == 4 and jpeg.adobe:
        stream.Decode = Array([1, 0] * 4)  # Adobe stores inks inverted, and readers of PDF do not know.
    return Embedded(stream, size, orientation, _KEPT)


def _kept_png(pdf: pikepdf.Pdf, picture: Image.Image, data: bytes, profile: Any) -> Embedded | None:
    """PNG and PDF share the compression with its predictors (ISO 32000-2, 7.4.4.4), but not interlacing and transparency."""
    header = struct.unpack_from(">IIBBBBB", data, 16)
    width, height, bits, color, interlaced = *header[:4], header[6]
    if color not in _PNG_COLORS or bits > 8 or interlaced or "transparency" in picture.info:
        return None
    orientation = _orientation(picture)
    picture.load()
    space = _color_space(pdf, _PNG_COLORS[color], profile) if color != 3 else _palette(picture, bits)
    if space is None:
        return None
    packed = b"".join(content for name, content in _png_chunks(data) if name == b"IDAT")
    return Embedded(
        _flate_stream(pdf, packed, (width, height), space, _PNG_COLORS[color], bits),
        (width, height),
        orientation,
        _KEPT,
    )


def _png_chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    chunks, position = [], 8
    while position + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, position)
        chunks.append((name, data[position + 8 : position + 8 + length]))
        position += length + 12
    return chunks


def _palette(picture: Image.Image, bits: int) -> pikepdf.Array | None:
    """Missing entries are black; an index beyond them would be an error in a PDF."""
    if picture.palette is None or picture.palette.mode != "RGB":
        return None
    highest = (1 << bits) - 1
    colors = bytes(picture.palette.palette)[: 3 * (highest + 1)].ljust(3 * (highest + 1), b"\0")
    return Array([Name.Indexed, Name.DeviceRGB, highest, pikepdf.String(colors)])


# --- encoded anew


def _encoded(pdf: pikepdf.Pdf, picture: Image.Image, profile: Any, *, lossy: bool) -> Embedded:
    picture.load()
    orientation = _orientation(picture)
    if picture.mode in ("CMYK", "LAB", "YCbCr", "HSV"):
        profile = None  # It is about other colours than those it is converted to.
    plain = _on_paper(picture)
    components = 1 if plain.mode in ("1", "L") else 3
    space = _color_space(pdf, components, profile)
    packed = b"" if lossy and plain.mode != "1" else _packed(plain)
    if packed and (plain.mode == "1" or len(packed) <= _LARGEST_PACKED):
        bits = 1 if plain.mode == "1" else 8
        stream = _flate_stream(pdf, packed, plain.size, space, components, bits)
        return Embedded(stream, plain.size, orientation, _WITHOUT_LOSS)
    return Embedded(_jpeg_stream(pdf, plain, space), plain.size, orientation, _AS_JPEG)


def _on_paper(picture: Image.Image) -> Image.Image:
    """As 1, L or RGB: what is transparent shows white paper."""
    if picture.mode in ("1", "L", "RGB") and "transparency" not in picture.info:
        return picture
    if picture.mode.startswith("I"):
        # 16 bits of grey; Pillow would cut them off at 255 instead of scaling them.
        return picture.convert("I").point(lambda value: value * (1 / 257)).convert("L")
    if picture.mode not in ("LA", "La", "PA", "RGBA", "RGBa") and "transparency" not in picture.info:
        return picture.convert("RGB")
    full = picture if picture.mode == "RGBA" else picture.convert("RGBA")
    paper = Image.new("RGB", full.size, "white")
    paper.paste(full, mask=full)
    return paper


def _packed(picture: Image.Image) -> bytes:
    """Pillow writes PNG row by row; its data are what Flate with predictors wants."""
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=3, icc_profile=None)
    return b"".join(content for name, content in _png_chunks(out.getvalue()) if name == b"IDAT")


def _is_lossy(picture: Image.Image, data: bytes, kind: str) -> bool:
    """Return whether it lost something already: encoding such a picture without loss makes it many times as large."""
    if kind == "WebP":
        return b"VP8L" not in data[:64]
    return kind in ("JPEG", "HEIC", "AVIF") or str(picture.info.get("compression", "")).endswith("jpeg")


def _jpeg_stream(pdf: pikepdf.Pdf, picture: Image.Image, space: Any) -> pikepdf.Stream:
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=_QUALITY, exif=b"", icc_profile=None, comment=b"")
    stream = pdf.make_stream(b"")
    stream.write(out.getvalue(), filter=Name.DCTDecode)
    _describe(stream, picture.size, space)
    return stream


# --- both


def _orientation(picture: Image.Image) -> int:
    value = picture.getexif().get(_ORIENTATION, 1)
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _color_space(pdf: pikepdf.Pdf, components: int, profile: Any) -> Any:
    """By the picture's own profile when it fits: telephones make photos in wider colours than sRGB."""
    device, name = _SPACES[components]
    if not isinstance(profile, bytes) or not 128 < len(profile) <= _LARGEST_PROFILE:
        return device
    if profile[16:20] != name or profile[36:40] != b"acsp" or int.from_bytes(profile[:4], "big") != len(profile):
        return device
    stream = pdf.make_stream(b"")
    stream.write(zlib.compress(profile), filter=Name.FlateDecode)
    stream.N, stream.Alternate = components, device
    return Array([Name.ICCBased, stream])


def _flate_stream(
    pdf: pikepdf.Pdf, packed: bytes, size: tuple[int, int], space: Any, components: int, bits: int
) -> pikepdf.Stream:
    stream = pdf.make_stream(b"")
    parameters = Dictionary(Predictor=15, Colors=components, BitsPerComponent=bits, Columns=size[0])
    stream.write(packed, filter=Name.FlateDecode, decode_parms=parameters)
    _describe(stream, size, space, bits)
    return stream


def _describe(stream: pikepdf.Stream, size: tuple[int, int], space: Any, bits: int = 8) -> None:
    stream.Type, stream.Subtype = Name.XObject, Name.Image
    stream.Width, stream.Height = size
    stream.ColorSpace, stream.BitsPerComponent = space, bits
