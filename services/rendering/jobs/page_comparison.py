"""Whether the pages that are going to be sealed look as the pages that were sent, whatever intake has done to the file.

A page is drawn twice, from the bytes that were sent and from those that would be sealed, unless all that it is drawn from is
byte for byte the same: small at first, and sharper where something differs there. Fields, tags that were taken out, and what
we have drawn ourselves in place of a reader are left out; of the latter something must be there where something was.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, cast

import pikepdf
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from contracts.types import Area, Notice
from services.rendering.jobs.geometry import Rectangle, rectangle_to_area, visible_page
from services.rendering.jobs.pdfium_text import open_document
from services.rendering.jobs.refused import Refused
from services.rendering.jobs.tags import FoundTag

_SMALL, _SHARP = 0.4, 1.6
"""Pixels per point."""
_MOST_SMALL, _MOST_SHARP = 400, 2_400
"""Pixels of the longer side."""
_SEEN_SMALL, _SEEN_SHARP = 20, 24
"""Of 255: what differs less is nothing, or the edge of a letter."""
_FEWEST = 6
"""Pixels of the sharp picture that differ; fewer are noise."""
_MOST_CHANGED = 0.05
"""Of a page, above which it is another page."""
_AROUND = 1.5
"""Points around a field or a tag that belong to it."""
_REFERENCE = re.compile(rb"(\d+) (\d+) R\b")

Box = tuple[int, int, int, int]
Objects = dict[tuple[int, int], tuple[bytes, list[tuple[int, int]]]]


@dataclass
class LeftOut:
    """``free``: where anything may differ; ``redrawn``: where we draw what readers draw each in their own way."""

    free: list[Area] = field(default_factory=list)
    redrawn: list[Area] = field(default_factory=list)


def drawn_from(pdf: pikepdf.Pdf) -> list[bytes]:
    """For each page a digest of all that it is drawn from, but for annotations: two that are the same look the same. Object
    numbers are in it: only the same open file can be compared with itself."""
    objects: Objects = {}
    for item in pdf.objects:
        if not isinstance(item, pikepdf.Object):
            continue  # a number or a truth value, which nobody changes where it is
        text, data = _written(item)
        references = [(int(number), int(generation)) for number, generation in _REFERENCE.findall(text)]
        objects[item.objgen] = blake2b(text + b"\0" + data, digest_size=16).digest(), references
    layers = _reached([pdf.Root.get("/OCProperties")], objects)
    found = []
    for page in pdf.pages:
        roots = [page.obj.get("/Contents"), page.resources, page.obj.get("/Group")]
        geometry = repr(visible_page(page)).encode()
        found.append(blake2b(geometry + layers + _reached(roots, objects), digest_size=16).digest())
    return found


def _written(item: pikepdf.Object) -> tuple[bytes, bytes]:
    if isinstance(item, pikepdf.Stream):
        return item.stream_dict.unparse(), item.read_raw_bytes()
    return item.unparse(resolved=True), b""


def _reached(roots: Iterable[Any], objects: Objects) -> bytes:
    """A digest of all objects that can be come to from ``roots``."""
    digest, seen, waiting = blake2b(digest_size=16), set(), []
    for root in roots:
        if not isinstance(root, pikepdf.Object):
            digest.update(b"none")
        elif root.is_indirect:
            waiting.append(root.objgen)
        else:
            text = root.unparse()
            digest.update(text)
            waiting += [(int(number), int(generation)) for number, generation in _REFERENCE.findall(text)]
    while waiting:
        at = waiting.pop()
        if at not in seen and at in objects:
            seen.add(at)
            one, references = objects[at]
            digest.update(one)
            waiting += references
    return digest.digest()


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
                changed = _changed(before[number - 1], after[number - 1], number, left_out)
            except pdfium.PdfiumError:
                continue  # a page that cannot be drawn has other troubles, which are told elsewhere
            if changed is None:
                continue
            place, share = changed
            if share > _MOST_CHANGED:
                raise Refused(
                    f"Page {number} of the PDF would not look as it was sent: {share:.0%} of it would differ."
                )
            left, top, right, bottom = (round(value) for value in place)
            message = (
                f"The page looks different from what was sent, in the area from {left} to {right} points from its left "
                f"edge and {top} to {bottom} points from its upper edge."
            )
            report.append(Notice(code="look_changed", message=message, document=document, page=number))
    return report


def _changed(
    before: pdfium.PdfPage, after: pdfium.PdfPage, number: int, left_out: LeftOut
) -> tuple[tuple[float, float, float, float], float] | None:
    """Where the pages differ (left, top, right, bottom in points from the upper left corner), and how much of the page."""
    free, redrawn = ([area for area in areas if area.page == number] for areas in (left_out.free, left_out.redrawn))
    size = before.get_width(), before.get_height()
    if (after.get_width(), after.get_height()) != size:
        return (0.0, 0.0, *size), 1.0

    def different(asked: float, most: int, seen: int, *, part: Box | None = None) -> tuple[Box | None, float, int]:
        """The box around what differs in pixels, pixels per point, and how many pixels."""
        scale = min(asked, most / max(size))
        one, other = _picture(before, scale), _picture(after, scale)
        found = Image.new("L", one.size)
        if part is None:
            found = _difference(one, other, seen)
        else:
            found.paste(_beyond_edges(one.crop(part), other.crop(part), seen), part[:2])
        _fill(found, redrawn, scale, 0)
        _fill(found, [area for area in redrawn if _is_lost(one, other, area, scale)], scale, 255)
        _fill(found, free, scale, 0)
        return found.getbbox(), scale, found.histogram()[255]

    box, small, _ = different(_SMALL, _MOST_SMALL, _SEEN_SMALL)
    if box is None:
        return None
    times = min(_SHARP, _MOST_SHARP / max(size)) / small
    left, top, right, bottom = box
    part = int(left * times) - 8, int(top * times) - 8, int(right * times) + 8, int(bottom * times) + 8
    box, sharp, count = different(_SHARP, _MOST_SHARP, _SEEN_SHARP, part=part)
    if box is None or count < _FEWEST:
        return None
    left, top, right, bottom = box
    return (left / sharp, top / sharp, right / sharp, bottom / sharp), count / (size[0] * size[1] * sharp * sharp)


def _picture(page: pdfium.PdfPage, scale: float) -> Image.Image:
    bitmap = page.render(scale=scale, fill_color=(255, 255, 255, 255), rev_byteorder=True)
    picture: Image.Image = bitmap.to_pil().convert("RGB")
    return picture


def _difference(one: Image.Image, other: Image.Image, seen: int) -> Image.Image:
    """White where they differ by more than ``seen``."""
    return _above(ImageChops.difference(one, other), seen)


def _beyond_edges(one: Image.Image, other: Image.Image, seen: int) -> Image.Image:
    """White where a pixel differs by more than ``seen`` from all of its neighbours in the other picture."""
    sides = [
        ImageChops.lighter(
            ImageChops.subtract(a, b.filter(ImageFilter.MaxFilter(3))),
            ImageChops.subtract(b.filter(ImageFilter.MinFilter(3)), a),
        )
        for a, b in ((one, other), (other, one))
    ]
    return _above(ImageChops.lighter(*sides), seen)


def _above(difference: Image.Image, seen: int) -> Image.Image:
    red, green, blue = difference.split()
    strongest = ImageChops.lighter(ImageChops.lighter(red, green), blue)
    return strongest.point([0] * seen + [255] * (256 - seen))


def _fill(picture: Image.Image, areas: Sequence[Area], scale: float, value: int) -> None:
    pen = ImageDraw.Draw(picture)
    for area in areas:
        pen.rectangle(_box(area, picture.size, scale), fill=value)


def _is_lost(one: Image.Image, other: Image.Image, area: Area, scale: float) -> bool:
    """Something is to be seen there in ``one``, and nothing in ``other``."""
    box = _box(area, one.size, scale)
    outer = (max(box[0], 0), max(box[1], 0), min(box[2] + 1, one.width), min(box[3] + 1, one.height))
    if outer[0] >= outer[2] or outer[1] >= outer[3]:
        return False
    return _contrast(one.crop(outer)) > 64 and _contrast(other.crop(outer)) <= 8


def _contrast(picture: Image.Image) -> int:
    low, high = cast("tuple[int, int]", picture.convert("L").getextrema())
    return high - low


def _box(area: Area, size: tuple[int, int], scale: float) -> tuple[int, int, int, int]:
    """In pixels, both ends included."""
    (width, height), around = size, _AROUND * scale + 1
    left, top = int(area.x * width - around), int(area.y * height - around)
    return (
        left,
        top,
        max(int((area.x + area.w) * width + around), left),
        max(int((area.y + area.h) * height + around), top),
    )


def tag_areas(tag: FoundTag) -> Iterator[Area]:
    """Where the text of a tag stands, or stood. How high its letters are is taken from how far they are apart, or from their
    boxes where they were not drawn in a row."""
    for box in tag.boxes if not tag.lines else ():
        more = 0.4 * min(box.width, box.height)
        around = Rectangle(box.left - more, box.bottom - more, box.right + more, box.top + more)
        yield rectangle_to_area(around, tag.visible, page=tag.page)
    for line in tag.lines:
        (x0, y0), (x1, y1) = line.first, line.last
        length = math.dist(line.first, line.last)
        em = min(max(2 * length / max(line.fewest, 1), 8.0), 200.0)
        along = ((x1 - x0) / length * em, (y1 - y0) / length * em) if length else (em, 0.0)
        corners = [
            (x + along[0] * ahead - along[1] * up, y + along[1] * ahead + along[0] * up)
            for x, y, ahead in ((x0, y0, -0.2), (x1, y1, 1.0))
            for up in (-0.4, 1.0)
        ]
        xs, ys = zip(*corners, strict=True)
        rectangle = tag.visible.from_default_space(Rectangle(min(xs), min(ys), max(xs), max(ys)))
        yield rectangle_to_area(rectangle, tag.visible, page=tag.page)
