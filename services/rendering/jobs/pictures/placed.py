"""Which pictures our drawing shows on a page of a finished file, and where: the proof that none was lost, exchanged or moved.

Our drawing is the last thing that a page's content draws. Of its pictures pdfium says where each ends up on the page, through
whatever turns and moves are between; the file's own objects say which bytes it is made of. Both are gone through in the order
in which they are drawn.
"""

import re
from collections.abc import Iterator

import pikepdf
import pypdfium2 as pdfium
import pypdfium2.raw as raw
from pikepdf import Stream

from services.rendering.jobs.pdf.geometry import Matrix, Rectangle
from services.rendering.jobs.pictures.image_objects import digest_of

_DRAWS = re.compile(rb"/(\S+) Do\b")
_DEEPEST = 6
_UNIT_SQUARE = Rectangle(0, 0, 1, 1)


def placed_pictures(page: pikepdf.Page, shown: pdfium.PdfPage) -> list[tuple[str, Rectangle]]:
    """(digest, place in default user space) of each picture in our drawing, in the order in which they are drawn; empty when
    the file and what pdfium sees of it do not agree. ``page`` and ``shown`` are the same page."""
    digests, places = list(_digests(page)), list(_places(shown))
    return list(zip(digests, places, strict=True)) if len(digests) == len(places) else []


def _digests(page: pikepdf.Page) -> Iterator[str]:
    contents = page.obj.get("/Contents")
    last = contents[-1] if isinstance(contents, pikepdf.Array) and len(contents) else contents
    if not isinstance(last, Stream):
        return
    names = _DRAWS.findall(last.read_bytes())
    form = _xobject_of_name(page.resources, names[-1]) if names else None
    if form is not None:
        yield from _in_form(form, 0)


def _in_form(form: Stream, depth: int) -> Iterator[str]:
    if form.get("/Subtype") == "/Image":
        yield digest_of(form)
        return
    if depth >= _DEEPEST:
        return
    for name in _DRAWS.findall(form.read_bytes()):
        inner = _xobject_of_name(form.get("/Resources"), name)
        if inner is not None:
            yield from _in_form(inner, depth + 1)


def _xobject_of_name(resources: object, name: bytes) -> Stream | None:
    objects = resources.get("/XObject") if isinstance(resources, pikepdf.Dictionary) else None
    entry = objects.get("/" + name.decode("ascii", "replace")) if isinstance(objects, pikepdf.Dictionary) else None
    return entry if isinstance(entry, Stream) else None


def _places(page: pdfium.PdfPage) -> Iterator[Rectangle]:
    forms = list(page.get_objects(filter=[raw.FPDF_PAGEOBJ_FORM], max_depth=1))
    if forms:
        yield from _places_in(page, forms[-1], _matrix(forms[-1]), 0)


def _places_in(page: pdfium.PdfPage, form: pdfium.PdfObject, matrix: Matrix, depth: int) -> Iterator[Rectangle]:
    if depth >= _DEEPEST:
        return
    for object_ in page.get_objects(max_depth=1, form=form):
        if object_.type == raw.FPDF_PAGEOBJ_IMAGE:
            yield matrix.after(_matrix(object_)).bounds(_UNIT_SQUARE)
        elif object_.type == raw.FPDF_PAGEOBJ_FORM:
            yield from _places_in(page, object_, matrix.after(_matrix(object_)), depth + 1)


def _matrix(object_: pdfium.PdfObject) -> Matrix:
    return Matrix(*object_.get_matrix().get())
