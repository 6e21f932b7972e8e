"""Whether the pages that are going to be sealed look as the pages that were sent, whatever intake has done to the file.

A page is drawn twice, from the bytes that were sent and from those that would be sealed: small at first, and sharper where
something differs. Pages that are drawn from the same objects are not compared at all (``page_sources``).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import cast

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw
from PIL import Image, ImageChops, ImageFilter

from contracts.types import Area, Notice
from services.rendering.jobs.pdf.pdfium_text import open_document
from services.rendering.jobs.pdf.refused import Refused

_AROUND = 1.5
"""Points around a field or a tag that belong to it."""
_FEWEST = 6
"""Pixels of the sharp picture that differ; fewer are noise."""
_MOST_CHANGED = 0.05
"""Of a page, above which it is another page."""
_LIGHTEST, _DARKEST = ImageFilter.MaxFilter(3), ImageFilter.MinFilter(3)
_NEAR, _NEAREST = ImageFilter.MaxFilter(9), Image.Resampling.NEAREST

Box = tuple[int, int, int, int]


@dataclass
class LeftOut:
    """``free``: fields and tags, where anything may differ; ``redrawn``: where we draw in place of a reader, each of which has
    its own way: something must be seen where something was."""

    free: list[Area] = field(default_factory=list)
    redrawn: list[Area] = field(default_factory=list)

    def on(self, page: int) -> "LeftOut":
        return LeftOut(*([area for area in areas if area.page == page] for areas in (self.free, self.redrawn)))


def compare_pages(
    sent: bytes, sealed: bytes, pages: Sequence[int], left_out: LeftOut, *, document: str | None = None
) -> list[Notice]:
    """Compare the ``pages`` (from 1); a notice for each that looks different. Raises Refused naming the page when it would be
    another page."""
    report: list[Notice] = []
    if not pages:
        return report
    with ExitStack() as stack:
        try:
            before = stack.enter_context(open_document(sent))
        except Refused:
            return report  # qpdf repairs more than pdfium does: there is nothing to compare with
        after = stack.enter_context(open_document(sealed))
        before.init_forms()  # the other has no form any more
        if before.formenv:
            pdfium_raw.FPDF_SetFormFieldHighlightAlpha(before.formenv, 0)
        for number in pages:
            try:
                place, share = _difference(before[number - 1], after[number - 1], left_out.on(number))
            except pdfium.PdfiumError:
                continue  # a page that cannot be drawn has other troubles, which are told elsewhere
            if share > _MOST_CHANGED:
                raise Refused(
                    f"Page {number} of the PDF would not look as it was sent: {share:.0%} of it would differ."
                )
            if share:
                left, top, right, bottom = (round(value) for value in place)
                message = (
                    f"The page looks different from what was sent, in the area from {left} to {right} points from its "
                    f"left edge and {top} to {bottom} points from its upper edge."
                )
                report.append(Notice(code="look_changed", message=message, document=document, page=number))
    return report


def _difference(before: pdfium.PdfPage, after: pdfium.PdfPage, left_out: LeftOut) -> tuple[tuple[float, ...], float]:
    """Return where the pages differ (left, top, right, bottom in points from the upper left corner), and how much of the
    page."""
    width, height = before.get_width(), before.get_height()
    if (after.get_width(), after.get_height()) != (width, height):
        return (0.0, 0.0, width, height), 1.0
    suspected: Image.Image | None = None
    for scale, most, compare in (_SMALL, _SHARP):
        scale = min(scale, most / max(width, height))
        before_picture, after_picture = (_picture(page, scale) for page in (before, after))
        part: Box | None = (0, 0, *before_picture.size)
        if suspected is not None:
            part = suspected.filter(_NEAR).resize(before_picture.size, _NEAREST).getbbox()
        differing = Image.new("L", before_picture.size)
        differing.paste(compare(before_picture.crop(part), after_picture.crop(part)), part)
        before_gray, after_gray = before_picture.convert("L"), after_picture.convert("L")
        for lost, box in sorted(
            (_is_lost(before_gray, after_gray, box), box)
            for box in _boxes(left_out.redrawn, before_picture.size, scale)
        ):
            differing.paste(255 if lost else 0, box)
        for box in _boxes(left_out.free, before_picture.size, scale):
            differing.paste(0, box)
        suspected, place = differing, differing.getbbox()
        if place is None:
            return (), 0.0
    count = differing.histogram()[255]
    share = count / (width * height * scale * scale) if count >= _FEWEST else 0.0
    return tuple(edge / scale for edge in place or ()), share


def _picture(page: pdfium.PdfPage, scale: float) -> Image.Image:
    bitmap = page.render(scale=scale, fill_color=(255, 255, 255, 255), rev_byteorder=True)
    picture: Image.Image = bitmap.to_pil().convert("RGB")
    return picture


def _differing(picture: Image.Image, other: Image.Image) -> Image.Image:
    """White where they differ."""
    return _white(ImageChops.difference(picture, other), 20)


def _differing_beyond_edges(picture: Image.Image, other: Image.Image) -> Image.Image:
    """White where a pixel differs from all of its neighbours in the other picture."""
    differences = [
        ImageChops.lighter(ImageChops.subtract(a, b.filter(_LIGHTEST)), ImageChops.subtract(b.filter(_DARKEST), a))
        for a, b in ((picture, other), (other, picture))
    ]
    return _white(ImageChops.lighter(*differences), 24)


def _white(difference: Image.Image, seen: int) -> Image.Image:
    red, green, blue = difference.split()
    strongest = ImageChops.lighter(ImageChops.lighter(red, green), blue)
    return strongest.point([0] * seen + [255] * (256 - seen))


def _is_lost(picture: Image.Image, other: Image.Image, box: Box) -> bool:
    """Something is to be seen there in ``picture``, and nothing in ``other``; both are gray."""
    return _contrast(picture.crop(box)) > 64 and _contrast(other.crop(box)) <= 8


def _contrast(picture: Image.Image) -> int:
    darkest, lightest = cast("tuple[int, int]", picture.getextrema())
    return lightest - darkest


def _boxes(areas: Iterable[Area], size: tuple[int, int], scale: float) -> Iterator[Box]:
    """The areas in pixels, with a little around them, as far as they are on the page."""
    (width, height), around = size, _AROUND * scale + 1
    for area in areas:
        left, top = max(int(area.x * width - around), 0), max(int(area.y * height - around), 0)
        right = min(int((area.x + area.w) * width + around) + 1, width)
        bottom = min(int((area.y + area.h) * height + around) + 1, height)
        if left < right and top < bottom:
            yield left, top, right, bottom


_SMALL, _SHARP = (0.4, 400, _differing), (1.6, 2_400, _differing_beyond_edges)
"""Pixels per point, the most pixels of the longer side, and how pictures are compared."""
