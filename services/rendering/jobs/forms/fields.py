"""Fillable forms inside a PDF (AcroForm, ISO 32000-2, 12.7): which of their fields become fields of ours, and which do not."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import pikepdf

from contracts.fields.rules import LONGEST_NAME
from contracts.rpc.rendering import TagField
from contracts.types import Area, Notice
from services.rendering.jobs.forms.existing_signatures import ExistingSignatures
from services.rendering.jobs.forms.kinds import Widget, field_of, holds_value
from services.rendering.jobs.pdf.geometry import Rectangle, VisiblePage, clip, rectangle_to_area
from services.rendering.jobs.pdf.values import items_of, number_of, text_of, whole_of
from services.rendering.jobs.tags.values import clean

_HIDDEN = 1 << 1 | 1 << 5
"""Annotation flags Hidden and NoView."""
_DEEPEST_FIELD = 64
_MOST_NAMED = 20
_LONGEST_PATH = 100_000
_SMALLEST = 2.0
"""Points, in width and height. Forms keep data of their own in dots."""
_LOWEST_LINE = 8.0
"""Points that a text needs; some forms draw a frame around a widget that is lower."""
_SHOWN_TEXT = re.compile(rb"/Tx\s+BMC.*?\bEMC\b", re.DOTALL)
_NOWHERE = Area(x=0, y=0, w=0, h=0)
_OF_THE_FORM = ("/DA", "/Q")
_OF_A_FIELD = ("/FT", "/Ff", "/V", "/DA", "/Q", "/MaxLen", "/Opt", "/TU", "/AA")

_LEFT = {
    "form_field_kept": ("already holds a value; it stays as it is", "already hold values; they stay as they are"),
    "form_field_skipped": (
        "is a button, or a choice without usable options; it stays as it is",
        "are buttons, or choices without usable options; they stay as they are",
    ),
    "form_field_hidden": ("is hidden in the PDF; it became no field", "are hidden in the PDF; they became no fields"),
    "form_field_off_page": (
        "lies off its page or has no size; it became no field",
        "lie off their pages or have no size; they became no fields",
    ),
    "form_field_too_small": (
        "is too small for anything to be read in it; it became no field",
        "are too small for anything to be read in them; they became no fields",
    ),
    "form_field_closed": (
        "cannot be filled in without breaking the signatures of the PDF; it became no field",
        "cannot be filled in without breaking the signatures of the PDF; they became no fields",
    ),
    "form_field_turned": (
        "is turned on its page; what is filled in stands upright there",
        "are turned on their pages; what is filled in stands upright there",
    ),
}


def form_fields(
    pdf: pikepdf.Pdf,
    pages: Sequence[VisiblePage],
    *,
    document: str,
    report: list[Notice],
    signatures: ExistingSignatures | None = None,
) -> list[TagField]:
    """The empty fields of the form that are seen on a page, as fields of ours (peer facts 3.4). A field that holds a value
    stays what it is; buttons that only run scripts are left out, and so is what the file's ``signatures`` keep closed.
    ``report`` gets what became of all of them."""
    imported = _ImportReport(document)
    fields: list[TagField] = []
    for widgets in _by_field(_widgets(pdf, pages, imported)):
        if holds_value(widgets):
            imported.add("form_field_kept", widgets[0])
        elif signatures and _is_closed(widgets, signatures):
            imported.add("form_field_closed", widgets[0])
        elif (field := field_of(widgets)) is None:
            imported.add("form_field_skipped", widgets[0])
        else:
            fields.append(field)
            for widget in widgets:
                _clear(widget)
            if any(widget.turned for widget in widgets):
                imported.add("form_field_turned", widgets[0])
    report += imported.notices(fields)
    return fields


def fillable_widgets(
    pdf: pikepdf.Pdf, pages: Sequence[VisiblePage], signatures: ExistingSignatures
) -> dict[int, list[Widget]]:
    """The empty form fields of a signed file into which values can be written, by page (from 1). Their appearances are also
    their fields: who compares versions of a signed file does not follow those that have several. Adobe's software shows
    nothing of what is in the fields of a form that has an XFA part."""
    form = pdf.Root.get("/AcroForm")
    by_page: dict[int, list[Widget]] = {}
    if not isinstance(form, pikepdf.Dictionary) or "/XFA" in form:
        return by_page
    for widgets in _by_field(_widgets(pdf, pages, _ImportReport(""))):
        widget = widgets[0]
        if len(widgets) == 1 and _is_writable(widget, signatures) and not holds_value(widgets) and field_of(widgets):
            by_page.setdefault(widget.area.page, []).append(widget)
    return by_page


def _is_closed(widgets: Sequence[Widget], signatures: ExistingSignatures) -> bool:
    if signatures.form_only:
        return len(widgets) > 1 or not _is_writable(widgets[0], signatures)
    return any(signatures.locks(widget.path) for widget in widgets)


def _is_writable(widget: Widget, signatures: ExistingSignatures) -> bool:
    """A signature field with rules for its signature (12.7.5.5: a lock, seed values) is kept for somebody else's."""
    annotation = widget.annotation
    ruled = widget.kind == "/Sig" and ("/Lock" in annotation or "/SV" in annotation)
    return annotation.is_indirect and "/T" in annotation and not ruled and not signatures.locks(widget.path)


def has_form(pdf: pikepdf.Pdf) -> bool:
    return any(True for page in pdf.pages for item in items_of(page.obj.get("/Annots")) if _is_widget(item))


def has_fields(pdf: pikepdf.Pdf) -> bool:
    """Return whether there is anything on the pages to fill in; signatures do not count."""
    widgets = (item for page in pdf.pages for item in items_of(page.obj.get("/Annots")) if _is_widget(item))
    return any(not _is_signature(widget) for widget in widgets)


class _ImportReport:
    """What the report says: one line for each thing that became of form fields, with their names."""

    def __init__(self, document: str) -> None:
        self._document = document
        self._names: dict[str, list[tuple[str, int]]] = {code: [] for code in _LEFT}

    def add(self, code: str, widget: Widget) -> None:
        self._names[code].append((widget.name, widget.area.page))

    def notices(self, fields: Sequence[TagField]) -> list[Notice]:
        notices = []
        if fields:
            kinds = Counter(field.type.value for field in fields)
            counted = ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common())
            became = (
                "form fields of the PDF became fields" if len(fields) > 1 else "form field of the PDF became a field"
            )
            message = f"{len(fields):,} {became}: {counted}."
            notices.append(Notice(code="form_fields_imported", message=message, document=self._document))
        for code, places in self._names.items():
            if places:
                notices.append(self._notice(code, list(dict.fromkeys(places))))
        return notices

    def _notice(self, code: str, places: list[tuple[str, int]]) -> Notice:
        of_one_field, of_several_fields = _LEFT[code]
        pages = {page for _, page in places}
        names = [f"“{clean(name, 60)}”" for name, _ in places[:_MOST_NAMED]]
        if len(places) > _MOST_NAMED:
            names.append(f"{len(places) - _MOST_NAMED:,} more")
        if len(names) == 1:
            message = f"The form field {names[0]} {of_one_field}."
        else:
            message = f"The form fields {', '.join(names[:-1])} and {names[-1]} {of_several_fields}."
        page = pages.pop() if len(pages) == 1 else None
        return Notice(code=code, message=message, document=self._document, page=page)


def _by_field(widgets: Iterator[Widget]) -> list[list[Widget]]:
    """Widgets of one field together. Two fields with the same full name are the same one (12.7.4.2), unless one of them is
    of another type."""
    groups: dict[Any, list[Widget]] = {}
    key_by_name: dict[tuple[str, str], Any] = {}
    for widget in widgets:
        key = key_by_name.setdefault((widget.name, widget.kind), widget.key) if widget.name else widget.key
        groups.setdefault(key, []).append(widget)
    return list(groups.values())


def _widgets(pdf: pikepdf.Pdf, pages: Sequence[VisiblePage], report: _ImportReport) -> Iterator[Widget]:
    """The widgets that are seen, page by page."""
    form = pdf.Root.get("/AcroForm")
    kids: dict[Any, dict[Any, int]] = {}
    for number, (page, visible) in enumerate(zip(pdf.pages, pages, strict=True), 1):
        seen: set[tuple[int, int]] = set()
        for index, annotation in enumerate(items_of(page.obj.get("/Annots"))):
            if not _is_widget(annotation) or annotation.objgen in seen:
                continue
            if annotation.objgen != (0, 0):
                seen.add(annotation.objgen)
            widget = _widget(annotation, (number, index), form, kids)
            box = _rectangle(annotation.get("/Rect"))
            shown = box and clip(visible.from_default_space(box), visible)
            widget.area.page = number
            if not shown or whole_of(annotation.get("/F")) & _HIDDEN:
                if widget.kind != "/Sig" or "/V" not in widget.inherited:  # Most signatures are not meant to be seen.
                    report.add("form_field_hidden" if shown else "form_field_off_page", widget)
            elif min(shown.width, shown.height) < _SMALLEST:
                report.add("form_field_too_small", widget)
            else:
                shown = _with_room(shown, visible) if widget.kind in ("/Tx", "/Ch") else shown
                widget.area, widget.width = rectangle_to_area(shown, visible, page=number), shown.width
                widget.turned = (_turn(annotation) - visible.rotation) % 360
                yield widget


def _widget(
    annotation: pikepdf.Dictionary, place: tuple[int, int], form: Any, kids: dict[Any, dict[Any, int]]
) -> Widget:
    """Still without its area. ``place`` names a widget that has no object of its own; ``kids`` are the places of widgets in
    the lists of their fields, as far as they are known already."""
    chain = list(_with_ancestors(annotation))
    inherited: dict[str, Any] = {}
    for node in chain:
        for entry in _OF_A_FIELD:
            if entry not in inherited and entry in node:
                inherited[entry] = node[entry]
    if isinstance(form, pikepdf.Dictionary):
        inherited |= {entry: form[entry] for entry in _OF_THE_FORM if entry not in inherited and entry in form}
    field = next((node for node in chain if "/T" in node), annotation)
    key = field.objgen if field.objgen != (0, 0) else place
    names = [text_of(node["/T"]) for node in reversed(chain) if isinstance(node.get("/T"), pikepdf.String)]
    if key not in kids:
        own_kids = [kid.objgen for kid in items_of(field.get("/Kids")) if isinstance(kid, pikepdf.Dictionary)]
        kids[key] = {kid: index for index, kid in enumerate(own_kids)}
    kid = kids[key].get(annotation.objgen, len(kids[key]))
    path = ".".join(names)
    return Widget(annotation, key, _name(path), inherited, _NOWHERE.model_copy(), kid=kid, path=path)


def _name(path: str) -> str:
    """Forms made from XFA have paths for names; two that begin with the same 255 characters stay two."""
    whole = clean(path, _LONGEST_PATH)
    return whole if len(whole) <= LONGEST_NAME else f"{whole[: LONGEST_NAME - 9].rstrip()}~{crc32(whole.encode()):08x}"


def _clear(widget: Widget) -> None:
    """Takes a placeholder ("Select one") off the paper, on which the signer's choice will stand; its frame stays."""
    if widget.kind != "/Ch" or "/V" not in widget.inherited:
        return
    for node in _with_ancestors(widget.annotation):
        if "/V" in node:
            del node["/V"]
    appearances = widget.annotation.get("/AP")
    shown = appearances.get("/N") if isinstance(appearances, pikepdf.Dictionary) else None
    if isinstance(shown, pikepdf.Stream):
        shown.write(_SHOWN_TEXT.sub(b"", shown.read_bytes()))


def _with_room(box: Rectangle, visible: VisiblePage) -> Rectangle:
    """As high as a line of text at least, where the page allows it."""
    more = max(_LOWEST_LINE - box.height, 0) / 2
    return clip(Rectangle(box.left, box.bottom - more, box.right, box.top + more), visible) or box


def _turn(annotation: pikepdf.Dictionary) -> int:
    characteristics = annotation.get("/MK")
    return whole_of(characteristics.get("/R")) if isinstance(characteristics, pikepdf.Dictionary) else 0


def _with_ancestors(node: Any) -> Iterator[pikepdf.Dictionary]:
    for _ in range(_DEEPEST_FIELD):
        if not isinstance(node, pikepdf.Dictionary):
            return
        yield node
        node = node.get("/Parent")


def _is_widget(item: Any) -> bool:
    return isinstance(item, pikepdf.Dictionary) and item.get("/Subtype") == "/Widget"


def _is_signature(widget: pikepdf.Dictionary) -> bool:
    kinds = (node["/FT"] for node in _with_ancestors(widget) if "/FT" in node)
    return bool(next(kinds, None) == "/Sig")


def _rectangle(value: Any) -> Rectangle | None:
    numbers = [number_of(item) for item in items_of(value)[:4]]
    if len(numbers) < 4:
        return None
    return Rectangle(
        min(numbers[0], numbers[2]),
        min(numbers[1], numbers[3]),
        max(numbers[0], numbers[2]),
        max(numbers[1], numbers[3]),
    )
