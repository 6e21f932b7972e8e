"""Pictures from outside: signatures, initials, uploaded images. What leaves here was decoded and written anew by us.

A picture is opened only as one of the formats below (an SVG or HTML file is none, whatever it is called), never above
40 million pixels, turned upright, and re-encoded without metadata (threats T20, T38).
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image, ImageChops, ImageFile, ImageOps, UnidentifiedImageError

from contracts.types import FieldType
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pictures.kind import picture_kind

MOST_BYTES = 25 * 1024 * 1024
MOST_PIXELS = 40_000_000
LONGEST_SIDE = 4_096
LONGEST_STAMP_SIDE = 1_000
"""Of stamps and logos: sharp on paper 3 inches wide, and small enough for a mail."""
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "HEIF")
_PHOTOS = ("JPEG", "MPO", "AVIF", "HEIF")  # MPO: a JPEG with more pictures in it, as telephones make them
_LARGE_PNG = 4 * 1024 * 1024
_STROKES = frozenset({FieldType.SIGNATURE, FieldType.INITIALS})

_OPAQUE = 250
_VISIBLE = 24
"""Ink and paper differ at least by this, of 255; less is noise of a scan or of JPEG."""
_SMALLEST_STROKE = 4
"""Pixels; a speck is no signature."""

Image.MAX_IMAGE_PIXELS = MOST_PIXELS


def prepare_image(data: bytes, type: FieldType) -> bytes:  # noqa: A002 - the contract's word
    """PNG, or JPEG for a photograph that is no stamp. Signatures and initials are PNG, trimmed, with transparent paper.

    Raises Refused for anything that is no picture, for one that is too large, and for a signature without a visible stroke.
    """
    picture, source = _decode(data)
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    if type in _STROKES:
        return _png(_strokes(picture))
    if type is FieldType.STAMP:
        picture.thumbnail((LONGEST_STAMP_SIDE, LONGEST_STAMP_SIDE), Image.Resampling.LANCZOS)
        return _png(picture)
    if source in _PHOTOS and picture.mode in ("RGB", "L"):
        return _jpeg(picture)
    encoded = _png(picture)
    if len(encoded) > _LARGE_PNG and picture.mode == "RGB":
        return _jpeg(picture)
    return encoded


def check_picture_size(data: bytes) -> None:
    """Raises Refused when decoding would give more than 40 million pixels; looks at the header only."""
    with refusing(), Image.open(io.BytesIO(data)) as picture:
        if picture.width * picture.height > MOST_PIXELS:
            raise Refused(f"A picture has more than {MOST_PIXELS // 1_000_000} million pixels.")


def _decode(data: bytes) -> tuple[Image.Image, str]:
    """First frame, upright, as L, RGB or RGBA; and the format it came in."""
    if len(data) > MOST_BYTES:
        raise Refused(f"The picture is larger than {MOST_BYTES // 1024 // 1024} MB.")
    kind = picture_kind(data)
    learn(kind)
    # Pillow raises KeyError for a format that it was not told of yet: see ``learn``.
    formats = _FORMATS if kind == "HEIC" else tuple(name for name in _FORMATS if name != "HEIF")
    with refusing(kind):
        with Image.open(io.BytesIO(data), formats=formats) as probe:
            probe.verify()
        with Image.open(io.BytesIO(data), formats=formats) as picture:
            source = picture.format or ""
            picture.load()
            upright = ImageOps.exif_transpose(picture)
            if min(upright.size) < 1:
                raise Refused("The picture is empty.")
            plain = _plain_mode(upright)
            plain.info.clear()  # Pillow would write comments and profiles out again.
            return plain, source


def learn(kind: str | None) -> None:
    """Pillow is told of a format when it is met for the first time. ``kind`` as ``picture_kind`` says."""
    if kind == "HEIC":
        import pi_heif

        pi_heif.register_heif_opener(thumbnails=False, decode_threads=1)
    elif kind == "AVIF":
        from PIL import AvifImagePlugin

        AvifImagePlugin.DEFAULT_MAX_THREADS = 1  # each one would have its own share of the memory


@contextmanager
def refusing(kind: str | None = None) -> Iterator[None]:
    """Turn into Refused what Pillow's decoders raise on hostile and damaged files. ``kind``: what the file is known to be."""
    lenient = ImageFile.LOAD_TRUNCATED_IMAGES
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            ImageFile.LOAD_TRUNCATED_IMAGES = False  # WeasyPrint wants half a picture rather than none.
            yield
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise Refused(f"The picture has more than {MOST_PIXELS // 1_000_000} million pixels.") from error
    except UnidentifiedImageError as error:
        unknown = "The file is not a PNG, JPEG, GIF, WebP, HEIC, AVIF, BMP or TIFF picture."
        raise Refused(_damaged(kind) if kind else unknown) from error
    except MemoryError as error:
        raise Refused("The picture is too large to be processed.") from error
    except (
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        OSError,
        SyntaxError,
        TypeError,
        ValueError,
    ) as error:
        raise Refused(_damaged(kind)) from error
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = lenient


def _damaged(kind: str | None) -> str:
    return f"The {kind} picture is damaged." if kind else "The picture is damaged."


def _plain_mode(picture: Image.Image) -> Image.Image:
    if picture.mode in ("L", "RGB", "RGBA"):
        return picture.convert(picture.mode)
    if picture.mode in ("I;16", "I;16B", "I;16L", "I;16N", "I"):
        # Pillow cuts 16 bits off at 255 instead of scaling them.
        return picture.convert("I").point(lambda value: value * (1 / 257)).convert("L")
    if picture.mode == "1":
        return picture.convert("L")
    has_alpha = picture.mode in ("LA", "La", "PA", "RGBa") or "transparency" in picture.info
    return picture.convert("RGBA" if has_alpha else "RGB")


def _strokes(picture: Image.Image) -> Image.Image:
    """The ink alone: paper becomes transparent, empty margins go."""
    picture = picture.convert("RGBA")
    alpha = picture.getchannel("A")
    on_paper = Image.new("RGBA", picture.size, "white")
    on_paper.alpha_composite(picture)
    light = on_paper.convert("L")
    darkest, paper = light.getextrema()
    assert isinstance(darkest, int) and isinstance(paper, int)  # noqa: PT018 - L has one band
    if paper - darkest < _VISIBLE:
        raise Refused("The signature is empty.")
    if alpha.getextrema()[0] >= _OPAQUE:
        alpha = _ink(light)
        picture.putalpha(alpha)
    seen = ImageChops.darker(alpha, light.point(lambda value: 255 if paper - value >= _VISIBLE else 0))
    box = seen.point(lambda value: 255 if value >= _VISIBLE else 0).getbbox()
    if box is None or max(box[2] - box[0], box[3] - box[1]) < _SMALLEST_STROKE:
        raise Refused("The signature is empty.")
    left, top, right, bottom = box
    return picture.crop(
        (max(left - 1, 0), max(top - 1, 0), min(right + 1, picture.width), min(bottom + 1, picture.height))
    )


def _ink(light: Image.Image) -> Image.Image:
    """Opaque where the picture is darker than its paper. The paper is the lightness that most pixels have; a picture with
    dark paper (light ink would not be seen on a page) keeps it."""
    counts = light.histogram()
    paper = max(range(256), key=lambda value: sum(counts[max(value - 4, 0) : value + 5]))
    if paper < 128:
        return Image.new("L", light.size, 255)
    return light.point(lambda value: max(0, min(255, (paper - _VISIBLE // 2 - value) * 8)))


def _png(picture: Image.Image) -> bytes:
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def _jpeg(picture: Image.Image) -> bytes:
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=90, exif=b"")
    return out.getvalue()
