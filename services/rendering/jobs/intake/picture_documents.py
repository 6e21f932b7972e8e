"""Pictures that are sent as documents: a photo or a scan becomes a PDF, each picture a page (peer facts 4.1).

The page is as large as the picture when it is scaled to fit 595 x 842 points. What is not the picture stays behind: EXIF with
the place where it was taken, thumbnails, further frames. The orientation that a camera noted is obeyed by turning the
picture on its page, which costs nothing and leaves a JPEG as it is.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field

import pikepdf
from pikepdf import Array, Dictionary
from PIL import Image

from contracts.types import Notice
from services.rendering.jobs.intake.preparing import SMALLEST_PAGE
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pdf.saving import saved
from services.rendering.jobs.pictures.data import Embedded, embed
from services.rendering.jobs.pictures.preparing import MOST_PIXELS, learn, refusing

PAGE = (595.0, 842.0)
MOST_DATA = 256 * 2**20
"""Bytes that all pages of a TIFF together have when they are decoded; one picture is bounded by its pixels."""

_FORMATS = {"JPEG": ("JPEG", "MPO"), "HEIC": ("HEIF",), "WebP": ("WEBP",)}
"""As Pillow calls them. MPO: a JPEG with more pictures in it, as telephones make them."""
_MOVING = ("PNG", "GIF", "WebP", "AVIF")
_MOST_PIXELS_OF = {"WebP": 20_000_000, "AVIF": 20_000_000}
"""Their decoders keep three copies of them."""


@dataclass
class PictureDocument:
    file: bytes
    report: list[Notice] = field(default_factory=list)


def picture_document(data: bytes, kind: str, *, name: str, most_pages: int) -> PictureDocument:
    """A PDF of the picture; ``kind`` as ``picture_kind`` says. Raises Refused for one that is damaged or too large. Must run
    where memory and time are limited."""
    learn(kind)
    pdf = pikepdf.new()
    formats = _FORMATS.get(kind, (kind,))
    with refusing(kind), Image.open(io.BytesIO(data), formats=formats) as picture:
        most = _MOST_PIXELS_OF.get(kind, MOST_PIXELS)
        if picture.width * picture.height > most:
            raise Refused(f"The {kind} picture has more than {most // 1_000_000} million pixels.")
        frames = int(getattr(picture, "n_frames", 1))
        embedded = [
            _add_page(pdf, embed(pdf, frame, data, kind)) for frame in _frames(picture, frames, kind, most_pages)
        ]
    report = [_converted(kind, embedded, name)]
    if frames > 1 and kind in _MOVING:
        message = f"The {kind} picture moves; the page shows the first of its {frames:,} frames."
        report.append(Notice(code="picture_frames_dropped", message=message, document=name))
    return PictureDocument(saved(pdf), report)


def _frames(picture: Image.Image, count: int, kind: str, most_pages: int) -> Iterator[Image.Image]:
    """The picture set to each of its pages; what is no TIFF has one."""
    if kind != "TIFF":
        yield picture
        return
    if count > most_pages:
        raise Refused(f"The TIFF has {count:,} pages; at most {most_pages:,} are allowed.")
    total = 0
    for number in range(count):
        picture.seek(number)
        if picture.width * picture.height > MOST_PIXELS:  # Pillow looks at the first one only.
            raise Refused(f"A page of the TIFF has more than {MOST_PIXELS // 1_000_000} million pixels.")
        bits = 1 if picture.mode == "1" else 8 * len(picture.getbands())
        total += picture.width * picture.height * bits // 8
        if total > MOST_DATA:
            raise Refused(f"The pages of the TIFF expand to more than {MOST_DATA // 2**20} MB.")
        yield picture


def _add_page(pdf: pikepdf.Pdf, picture: Embedded) -> Embedded:
    across, down = picture.upright_size
    scale = min(PAGE[0] / across, PAGE[1] / down)
    width, height = round(across * scale, 3), round(down * scale, 3)
    if min(width, height) < SMALLEST_PAGE:
        raise Refused("The picture is too long and narrow to be a page.")
    page = pdf.add_blank_page(page_size=(width, height))
    page.obj.Resources = Dictionary(XObject=Dictionary(Picture=picture.stream))
    matrix = " ".join(f"{number:.3f}" for number in _placed(picture.orientation, width, height))
    page.obj.Contents = pdf.make_stream(f"q {matrix} cm /Picture Do Q".encode())
    page.obj.MediaBox = Array([0, 0, width, height])
    return picture


def _placed(orientation: int, width: float, height: float) -> tuple[float, float, float, float, float, float]:
    """Return where the unit square goes (operands of ``cm``) so that the picture stands upright. Exif 3.0, 4.6.5: 2 is
    mirrored, 3 upside down, 6 needs a quarter turn clockwise, 8 one counter-clockwise; 4, 5 and 7 are mirrored as well."""
    return {
        2: (-width, 0, 0, height, width, 0),
        3: (-width, 0, 0, -height, width, height),
        4: (width, 0, 0, -height, 0, height),
        5: (0, -height, -width, 0, width, height),
        6: (0, -height, width, 0, 0, height),
        7: (0, height, width, 0, 0, 0),
        8: (0, height, -width, 0, width, 0),
    }.get(orientation, (width, 0, 0, height, 0, 0))


def _converted(kind: str, pictures: list[Embedded], name: str) -> Notice:
    if len(pictures) == 1:
        width, height = pictures[0].upright_size
        message = f"The {kind} picture of {width:,} x {height:,} pixels became a page; it was {pictures[0].treatment}."
    else:
        ways = " or ".join(dict.fromkeys(picture.treatment for picture in pictures))
        message = f"The {len(pictures):,} pictures of the {kind} file became a page each; they were {ways}."
    message += " What the file says of camera, place and time is left out."
    return Notice(code="picture_converted", message=message, document=name)
