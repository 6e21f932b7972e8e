"""Values as pictures for the signing page: each area as it will be in the sealed file, on transparent paper.

They are drawn by ``draw_field``, as sealing does, and made into pictures by pdfium on the grid of the whole page. So a picture
lies on that of the page (``pages.draw_page`` at the same width) as the sealed file will show it. It takes the sizes of the
pages, not the document, so a value of a large document costs no more than one of a small document.
"""

import base64
import io
import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import pikepdf
import pypdfium2 as pdfium
from PIL import Image, ImageChops

from contracts.rpc.rendering import AreaToDraw, DrawnArea, DrawValues
from contracts.types import Area, FieldType, PageSize
from services.rendering.jobs.drawing.fields import draw_field
from services.rendering.jobs.drawing.fill import filling_of
from services.rendering.jobs.drawing.places import FieldRefused, Filling
from services.rendering.jobs.paper.canvas import Canvas
from services.rendering.jobs.paper.transparent import Window, append_sheet, rendered, saved
from services.rendering.jobs.pdf.geometry import area_to_rectangle, upright_page
from services.rendering.jobs.pdf.pdfium_text import open_document
from services.rendering.jobs.pictures.image_objects import PictureEmbedder
from services.rendering.jobs.previews.pages import MOST_WIDTH, scale_of
from services.rendering.jobs.text.embedding import FontEmbedder

_MARGIN = 8.0
"""Points around an area that are looked at: letters reach out of their boxes, and so does the line of a strike."""

_MOST_PIXELS = 2_000_000
"""Of one picture: a larger one is drawn at a lower resolution."""

_MOST_BYTES = 3_000_000
"""Of the pictures of one answer."""

_SECONDS = 2.0
"""That the pictures of one answer may take, half of them for laying out. Photographs of a telephone take a fifth each."""

_SMALL_ENOUGH = 40_000
_OPAQUE, _QUALITY = 255, 90


class _Sheet(NamedTuple):
    """A page of the PDF that holds all values, with the one area that it shows."""

    number: int
    area: Area
    is_photograph: bool


def draw_values(
    request: DrawValues, attachments: Mapping[str, bytes], clock: Callable[[], float] = time.monotonic
) -> list[DrawnArea]:
    """The areas in the order in which they were asked for; the last ones are missing when the answer would become too large or
    would take too long, never the first. ``attachments``: the bytes of the request's pictures by uuid. An area that is none,
    or of a field without value, is blank."""
    until = clock() + _SECONDS
    paper = _Paper(request, attachments)
    answers: list[tuple[DrawnArea, _Sheet | None]] = []
    for requested in request.areas:
        if answers and clock() > until - _SECONDS / 2:
            break
        answers.append(paper.add(requested))
    drawn: list[DrawnArea] = []
    size = 0
    with open_document(paper.saved()) as document:
        for answer, sheet in answers:
            if drawn and clock() > until:
                break
            if sheet is not None:
                answer = _with_picture(answer, document[sheet.number], sheet, min(request.width, MOST_WIDTH))
            size += len(answer.picture or "")
            if size > _MOST_BYTES and drawn:
                break
            drawn.append(answer)
    return drawn


class _Paper:
    """A PDF that gets one page for each area with something on it; fonts and pictures are shared."""

    def __init__(self, request: DrawValues, attachments: Mapping[str, bytes]) -> None:
        self._pdf = pikepdf.new()
        self._fonts, self._pictures = FontEmbedder(self._pdf), PictureEmbedder(self._pdf)
        self._filling: Filling = filling_of(request, attachments)
        self._items = {item.field.uuid: item for item in request.values}
        self._pages: dict[str, list[PageSize]] = {document.uuid: document.pages for document in request.documents}
        self._first = request.documents[0].uuid if request.documents else ""

    def add(self, requested: AreaToDraw) -> tuple[DrawnArea, _Sheet | None]:
        answer = DrawnArea(field_uuid=requested.field_uuid, area=requested.area)
        item = self._items.get(requested.field_uuid)
        if item is None or requested.area >= len(item.field.areas):
            return answer, None
        area = item.field.areas[requested.area]
        pages = self._pages.get(area.attachment_uuid or self._first, [])
        if not 1 <= area.page <= len(pages):
            return answer, None
        size = pages[area.page - 1]
        canvas = Canvas(upright_page(size.width, size.height), self._fonts, self._pictures)
        try:
            draw_field(canvas, item, area, self._filling)
        except FieldRefused as refused:
            return answer.model_copy(update={"problem": refused.reason}), None
        if canvas.is_empty:
            return answer, None
        append_sheet(self._pdf, canvas)
        return answer, _Sheet(len(self._pdf.pages) - 1, area, item.field.type is FieldType.IMAGE)

    def saved(self) -> bytes:
        self._fonts.finish()
        return saved(self._pdf)


def _with_picture(answer: DrawnArea, page: pdfium.PdfPage, sheet: _Sheet, width: int) -> DrawnArea:
    window = _window(page, sheet.area, scale_of(page, width))
    pixels = (window.right - window.left) * (window.bottom - window.top)
    if pixels > _MOST_PIXELS:
        window = _window(page, sheet.area, scale_of(page, int(width * math.sqrt(_MOST_PIXELS / pixels))))
    picture = rendered(page, window)
    ink = picture.getchannel("A").getbbox()
    if ink is None:
        return answer
    data, media_type = _encoded(picture.crop(ink), is_photograph=sheet.is_photograph)
    return answer.model_copy(
        update={
            "picture": base64.b64encode(data).decode(),
            "media_type": media_type,
            "x": (window.left + ink[0]) / window.width,
            "y": (window.top + ink[1]) / window.height,
            "w": (ink[2] - ink[0]) / window.width,
            "h": (ink[3] - ink[1]) / window.height,
        }
    )


def _window(page: pdfium.PdfPage, area: Area, scale: float) -> Window:
    """The area with a margin, in whole pixels of the page's picture."""
    across, down = float(page.get_width()), float(page.get_height())
    width, height = math.ceil(across * scale), math.ceil(down * scale)
    box = area_to_rectangle(area, upright_page(across, down))
    return Window(
        left=min(max(math.floor((box.left - _MARGIN) * scale), 0), width - 1),
        top=min(max(math.floor((down - box.top - _MARGIN) * scale), 0), height - 1),
        right=max(min(math.ceil((box.right + _MARGIN) * scale), width), 1),
        bottom=max(min(math.ceil((down - box.bottom + _MARGIN) * scale), height), 1),
        width=width,
        height=height,
    )


def _encoded(picture: Image.Image, *, is_photograph: bool) -> tuple[bytes, str]:
    """PNG, grey where it is. Photographs are a tenth as large, and made ten times as fast, as JPEG."""
    red, green, blue, alpha = picture.split()
    if is_photograph and picture.width * picture.height > _SMALL_ENOUGH:
        if alpha.getextrema()[0] == _OPAQUE:
            return _saved(picture.convert("RGB"), "JPEG", quality=_QUALITY, subsampling=0), "image/jpeg"
        return _saved(picture, "WEBP", quality=_QUALITY, method=0), "image/webp"
    is_grey = not ImageChops.difference(red, green).getbbox() and not ImageChops.difference(red, blue).getbbox()
    return _saved(Image.merge("LA", (red, alpha)) if is_grey else picture, "PNG", compress_level=6), "image/png"


def _saved(picture: Image.Image, kind: str, **more: int) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **more)
    return out.getvalue()
