"""Values onto pages: every field value of a document is drawn into its area, in one Form XObject per page.

``fill_into`` changes a document that nobody has signed yet; its form fields and annotations become page content first. Where
the account wants it, every page says to which submission it belongs; the pages of what came signed are left as they are.
``additions`` makes the same drawing as transparent pages of their own, for the form fields of a signed document and for the
look of our seal on it. ``Drawn`` says what must be found again where, in the finished file.
"""

import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pikepdf
from pikepdf import Array, Dictionary, Name

from contracts.fields import paper
from contracts.fields.paper import document_id, page_footer
from contracts.rpc.rendering import FieldValue, FillRequest
from contracts.stored_documents import StoredDocument
from contracts.types import IMAGE_TYPES, Area, Box
from services.rendering.jobs.archival.claim import claim_of, rules_for, tell_the_truth, withdraw
from services.rendering.jobs.archival.tagging import Mark, Tagging, is_tagged
from services.rendering.jobs.drawing.fields import draw_field
from services.rendering.jobs.drawing.flatten import flatten
from services.rendering.jobs.drawing.footer import draw_footer, draw_mark, draw_test_mark
from services.rendering.jobs.drawing.isolation import isolate
from services.rendering.jobs.drawing.places import FieldRefused, Filling, Shown, name_of
from services.rendering.jobs.forms.existing_signatures import existing_signatures
from services.rendering.jobs.forms.fields import fillable_widgets
from services.rendering.jobs.forms.kinds import Widget, export_value, on_state
from services.rendering.jobs.paper.canvas import Canvas
from services.rendering.jobs.pdf.geometry import Rectangle, area_to_rectangle, upright_page, visible_page
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pdf.values import copied
from services.rendering.jobs.pictures.image_objects import PictureEmbedder
from services.rendering.jobs.text.embedding import FontEmbedder

_FORM_NAME = "/CountersignFill"
_OVERHANG = 3.0
"""Points that ink may reach out of its area."""


@dataclass(frozen=True)
class Drawn:
    """A value on paper: ``page`` from 1, ``rectangle`` of its area in default user space (what pdfium's text boxes use);
    ``text`` as it must be read there, ``picture`` (its digest, and where it is in default user space) as it must be seen there;
    neither for lines."""

    field_uuid: str
    page: int
    rectangle: Rectangle
    text: str | None
    picture: tuple[str, Rectangle] | None = None


def fill_into(
    pdf: pikepdf.Pdf, document: StoredDocument, request: FillRequest, attachments: Mapping[str, bytes]
) -> list[Drawn]:
    """Flatten ``pdf`` and draw the document's values onto its pages. ``attachments``: the bytes of the request's
    attachments by uuid. Raises Refused naming the field; nothing of ``pdf`` is to be used then."""
    claim = tell_the_truth(pdf)
    flatten(pdf)
    rules = rules_for(pdf, claim)
    tagging = Tagging(pdf) if is_tagged(pdf) else None
    fonts = FontEmbedder(pdf, rules)
    pictures = PictureEmbedder(pdf, transparency=rules.transparency)
    filling = filling_of(request, attachments)
    drawn: list[Drawn] = []
    by_page = _by_page(document, request)
    footer = page_footer(request.account, request.submission_slug)
    if footer and claim.part != 4:  # which has no document information
        pdf.docinfo["/DocumentID"] = document_id(request.submission_slug)
    test_mark = paper.mark_of_test(request.account) if request.test else ""
    mark = request.mark if request.mark != test_mark else ""
    if footer or mark or test_mark:
        by_page.update({number: [] for number in range(1, len(pdf.pages) + 1) if number not in by_page})
    for number, items in sorted(by_page.items()):
        page = _page(pdf, number, items)
        canvas = Canvas(visible_page(page), fonts, pictures, rules, tagged=tagging is not None)
        ends = 0.0
        if footer:
            with canvas.marked():
                ends = draw_footer(canvas, footer)
        if test_mark:
            with canvas.marked():
                draw_test_mark(canvas, test_mark, ends)
        drawn += _draw_all(canvas, number, items, filling)
        if mark:  # over the values: no value may hide what the file is
            with canvas.marked():
                draw_mark(canvas, mark)
        if not canvas.is_empty:
            _lay_over(pdf, page, canvas, tagging)
        if canvas.links:
            _annotate(pdf, page, canvas, tagging)
        if not canvas.keeps_rules:
            withdraw(pdf)
    fonts.finish()
    if tagging:
        tagging.finish()
    return drawn


@dataclass(frozen=True)
class FormValue:
    """A value for a form field of a signed file: the field's object, the ``area`` it is drawn in, and what the field holds
    from now on: a text, the name of a state (of a button), or texts (of a list); None where there is only a picture."""

    field: tuple[int, int]
    kind: str
    area: Rectangle
    value: str | list[str] | None


@dataclass(frozen=True)
class Overlay:
    """A drawing for a page of a signed file (from 1): ``sheet`` is a PDF of one page, transparent but for the values, in that
    page's default user space (its MediaBox is the same, ``/Rotate`` and ``/UserUnit`` are dealt with). ``values`` are those of
    form fields; without any the drawing is the look of the seal, which fills ``area``."""

    page: int
    sheet: bytes
    area: Rectangle
    values: tuple[FormValue, ...] = ()


def additions(
    pdf: pikepdf.Pdf, document: StoredDocument, request: FillRequest, attachments: Mapping[str, bytes]
) -> tuple[list[Overlay], list[Drawn]]:
    """Return what is added to the signed ``pdf``: values whose area is an empty form field of the file go into that field,
    others become the look of our seal. Links are left out, as annotations of their own would be a change that readers call
    broken."""
    filling = filling_of(request, attachments)
    visible = [visible_page(page) for page in pdf.pages]
    fillable = fillable_widgets(pdf, visible, existing_signatures(pdf))
    rules = rules_for(pdf, claim_of(pdf))
    overlays: list[Overlay] = []
    drawn: list[Drawn] = []
    for number, items in sorted(_by_page(document, request).items()):
        _page(pdf, number, items)
        widgets = [(item, area, _widget_at(fillable.get(number, ()), area)) for item, area in items]
        for of_form in (True, False):
            sheet = pikepdf.new()
            pictures = PictureEmbedder(sheet, transparency=rules.transparency)
            canvas = Canvas(visible[number - 1], FontEmbedder(sheet, rules), pictures, rules)
            shown: list[Drawn] = []
            values: list[FormValue] = []
            for item, area, widget in widgets:
                if (widget is not None) is not of_form:
                    continue
                for drawing_ in _draw_all(canvas, number, [(item, area)], filling):
                    shown.append(drawing_)
                    values += [_form_value(widget, drawing_, item)] if widget else []
            drawn += shown
            if not canvas.is_empty:
                box = _around([drawn.rectangle for drawn in shown], canvas.page.box)
                overlays.append(Overlay(number, _sheet(sheet, canvas), box, tuple(values)))
    return overlays, drawn


def _widget_at(widgets: Sequence[Widget], area: Area) -> Widget | None:
    boxes = ((widget, Box(x=widget.area.x, y=widget.area.y, w=widget.area.w, h=widget.area.h)) for widget in widgets)
    return next((widget_ for widget_, box in boxes if box.is_at(area)), None)


def _form_value(widget: Widget, drawn: Drawn, item: FieldValue) -> FormValue:
    value: str | list[str] | None = drawn.text
    if widget.kind == "/Btn":
        value = on_state(widget.annotation) or "/Yes"
    elif widget.kind == "/Ch" and isinstance(item.value, list):
        value = [export_value(widget, str(choice)) for choice in item.value]
    elif widget.kind == "/Ch":
        value = export_value(widget, str(item.value))
    return FormValue(widget.annotation.objgen, widget.kind, drawn.rectangle, value)


def _around(boxes: Sequence[Rectangle], page: Rectangle) -> Rectangle:
    """The part of the page that the boxes take, with room for accents and descenders."""
    return Rectangle(
        max(min(box.left for box in boxes) - _OVERHANG, page.left),
        max(min(box.bottom for box in boxes) - _OVERHANG, page.bottom),
        min(max(box.right for box in boxes) + _OVERHANG, page.right),
        min(max(box.top for box in boxes) + _OVERHANG, page.top),
    )


def faults(request: FillRequest) -> dict[str, str]:
    """Return why which value cannot be drawn or does not fit, by the uuid of its field; the reason continues a sentence that
    begins with the field's name. Needs neither PDF nor files, only the sizes of the pages, so a value can be refused while
    whoever gave it is still there. Pictures always fit; they are not looked at."""
    filling = filling_of(request, {})
    scratch = pikepdf.new()
    fonts, pictures = FontEmbedder(scratch), PictureEmbedder(scratch)
    faults: dict[str, str] = {}
    for document in request.documents:
        for number, items in sorted(_by_page(document, request).items()):
            size = document.pages[number - 1] if 1 <= number <= len(document.pages) else None
            for item, area in items:
                if item.field.uuid in faults or (item.field.type in IMAGE_TYPES and item.value):
                    continue
                if size is None:
                    faults[item.field.uuid] = f"has an area on page {number}, which the document does not have"
                    continue
                try:
                    draw_field(Canvas(upright_page(size.width, size.height), fonts, pictures), item, area, filling)
                except FieldRefused as refused:
                    faults[item.field.uuid] = refused.reason
    return faults


def filling_of(request: FillRequest, attachments: Mapping[str, bytes]) -> Filling:
    """Return what drawing the request's fields may need. ``attachments``: the bytes by uuid."""
    return Filling(
        account=request.account,
        files=dict(attachments),
        attachments={attachment.uuid: attachment for attachment in request.attachments},
        parties={party.id: party for party in request.parties},
        reasons={note.field_uuid: note.reason for note in request.notes if note.reason},
        link=f"{request.base_url}/e/{request.submission_slug}" if request.base_url else "",
    )


def _by_page(document: StoredDocument, request: FillRequest) -> dict[int, list[tuple[FieldValue, Area]]]:
    """The document's areas with their values, by page from 1. An area that names no document is on the first one."""
    first = request.documents[0].uuid if request.documents else document.uuid
    result: dict[int, list[tuple[FieldValue, Area]]] = defaultdict(list)
    for item in request.values:
        for area in item.field.areas:
            if (area.attachment_uuid or first) == document.uuid:
                result[area.page].append((item, area))
    return result


def _page(pdf: pikepdf.Pdf, number: int, items: list[tuple[FieldValue, Area]]) -> pikepdf.Page:
    if not 1 <= number <= len(pdf.pages):
        raise _no_such_page(number, items)
    return pdf.pages[number - 1]


def _no_such_page(number: int, items: list[tuple[FieldValue, Area]]) -> Refused:
    return Refused(f"Field '{name_of(items[0][0].field)}': the document has no page {number}.")


def _draw_all(canvas: Canvas, number: int, items: list[tuple[FieldValue, Area]], filling: Filling) -> Iterator[Drawn]:
    for item, area in items:
        box = canvas.page.to_default_space(area_to_rectangle(area, canvas.page))
        with canvas.marked() as marks:
            shown: Shown | None = draw_field(canvas, item, area, filling)
            if shown is not None:
                marks.append(_mark(name_of(item.field), shown, box))
        if shown is not None:
            picture = shown.picture and (shown.picture[0], canvas.page.to_default_space(shown.picture[1]))
            yield Drawn(item.field.uuid, number, box, shown.text, picture)


def _mark(name: str, shown: Shown, box: Rectangle) -> Mark:
    """Return how the value is tagged: pictures and lines are figures, which say what they are instead of what is in them."""
    if shown.text and not shown.picture:
        return Mark(name, "", box)
    return Mark(name, f"{name}: {shown.text}" if shown.text else name, box)


def _lay_over(pdf: pikepdf.Pdf, page: pikepdf.Page, canvas: Canvas, tagging: Tagging | None) -> None:
    """Put the drawing on top of the page's content."""
    isolate(pdf, page)
    resources = _own_resources(page)
    name = next(
        name for count in range(len(resources.XObject) + 1) if (name := f"{_FORM_NAME}{count}") not in resources.XObject
    )
    form = pdf.make_indirect(canvas.form(pdf))
    resources.XObject[name] = form
    if tagging:
        tagging.content(page, form, canvas.marks)
    page.obj.Contents.append(pdf.make_stream(f"q {name} Do Q".encode()))


def _own_resources(page: pikepdf.Page) -> pikepdf.Dictionary:
    """The page's resources as a dictionary that no other page shares, with a place for XObjects."""
    resources = copied(page.resources)
    objects = resources.get("/XObject")
    resources.XObject = copied(objects) if isinstance(objects, pikepdf.Dictionary) else Dictionary()
    page.obj.Resources = resources
    dictionary: Dictionary = page.obj.Resources
    return dictionary


def _annotate(pdf: pikepdf.Pdf, page: pikepdf.Page, canvas: Canvas, tagging: Tagging | None) -> None:
    present = page.obj.get("/Annots")
    annotations = list(present) if isinstance(present, pikepdf.Array) else []
    links = canvas.annotations(pdf)
    page.obj.Annots = Array([*annotations, *links])
    if tagging:
        for link in links:
            tagging.annotation(page, link, "Link")


def _sheet(sheet: pikepdf.Pdf, canvas: Canvas) -> bytes:
    """A PDF of one page that shows the canvas, in the default user space of the page it was made for."""
    box = canvas.page.box
    page = Dictionary(
        Type=Name.Page,
        MediaBox=Array([round(value, 6) for value in box]),
        Resources=Dictionary(XObject=Dictionary({f"{_FORM_NAME}0": canvas.form(sheet)})),
        Contents=sheet.make_stream(f"q {_FORM_NAME}0 Do Q".encode()),
    )
    sheet.pages.append(pikepdf.Page(sheet.make_indirect(page)))
    canvas.finish_fonts()
    buffer = io.BytesIO()
    sheet.save(buffer, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    return buffer.getvalue()
