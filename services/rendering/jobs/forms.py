"""Fillable forms inside a PDF (AcroForm, ISO 32000-2, 12.7): read as fields of ours, and freed of XFA."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pikepdf

from contracts.rpc.rendering import TagField
from contracts.types import Area, FieldType, Notice
from services.rendering.jobs.geometry import Rectangle, VisiblePage, clip, rectangle_to_area
from services.rendering.jobs.pdf_values import items_of, name_of, number_of, text_of, whole_of
from services.rendering.jobs.refused import Refused
from services.rendering.jobs.tag_values import LONGEST_VALUE, MOST_OPTIONS, clean

_READ_ONLY, _REQUIRED = 1 << 0, 1 << 1
_RADIO, _PUSH_BUTTON = 1 << 15, 1 << 16
_COMBO, _MULTI_SELECT, _COMB = 1 << 17, 1 << 21, 1 << 24
_HIDDEN = 1 << 1 | 1 << 5
"""Annotation flags Hidden and NoView."""

_DEEPEST_FIELD = 64
_LONGEST_REPORT = 200
_DATE_SCRIPT = re.compile(r"AFDate_(?:Format|Keystroke)(?:Ex)?\(\s*[\"']?([^\"')]*)")
_DATE_FORMAT = re.compile(r"[dmyDMY./ ,-]{4,20}")
_PLACEHOLDER = re.compile(r"\s*(?:[-–—_.…]*|(?:please\s+)?(?:select|choose)\b.*)\s*", re.IGNORECASE)
_FONT_SIZE = re.compile(r"([\d.]+)\s+Tf")


@dataclass
class _Widget:
    """A widget with its field: ``inherited`` has what the field's ancestors say."""

    annotation: pikepdf.Dictionary
    key: Any
    name: str
    inherited: dict[str, Any]
    area: Area


def form_fields(
    pdf: pikepdf.Pdf, pages: Sequence[VisiblePage], *, document: str, report: list[Notice]
) -> list[TagField]:
    """The empty fields of the form that are seen on a page, as fields of ours (peer facts 3.4). A field that holds a value
    stays what it is; buttons that only run scripts are left out. ``report`` gets a line for each that became none of ours."""
    by_field: dict[Any, list[_Widget]] = {}
    for widget in _widgets(pdf, pages):
        by_field.setdefault(widget.key, []).append(widget)
    fields: list[TagField] = []
    for widgets in by_field.values():
        if (field := _field(widgets)) is not None:
            fields.append(field)
        elif len(report) < _LONGEST_REPORT:
            report.append(_kept(widgets[0], document))
    return fields


def _kept(widget: _Widget, document: str) -> Notice:
    holds = _holds_value(widget.inherited.get("/FT"), widget.inherited.get("/V"))
    reason = "already holds a value" if holds else "is a button, or of a kind that nobody can fill in here"
    message = f"The form field “{widget.name}” {reason}; it stays as it is."
    return Notice(code="form_field_kept", message=message, document=document, page=widget.area.page)


def has_form(pdf: pikepdf.Pdf) -> bool:
    return any(True for page in pdf.pages for item in items_of(page.obj.get("/Annots")) if _is_widget(item))


def drop_xfa(pdf: pikepdf.Pdf, *, document: str) -> list[Notice]:
    """Removes the XFA description of a form; its ordinary fields stay. Raises Refused for a dynamic XFA form, whose pages
    only exist in Adobe's software."""
    form = pdf.Root.get("/AcroForm")
    if not isinstance(form, pikepdf.Dictionary) or "/XFA" not in form:
        return []
    if pdf.Root.get("/NeedsRendering") is True and not has_form(pdf):
        raise Refused(
            "The PDF is a dynamic XFA form: its pages are only made when Adobe's software opens it. Print it to a PDF first."
        )
    del form["/XFA"]
    if "/NeedsRendering" in pdf.Root:
        del pdf.Root["/NeedsRendering"]
    message = "The XFA part of the form was removed; its ordinary (AcroForm) fields were kept."
    return [Notice(code="xfa_removed", message=message, document=document)]


def _widgets(pdf: pikepdf.Pdf, pages: Sequence[VisiblePage]) -> Iterator[_Widget]:
    for number, (page, visible) in enumerate(zip(pdf.pages, pages, strict=True), 1):
        for index, annotation in enumerate(items_of(page.obj.get("/Annots"))):
            if not _is_widget(annotation) or whole_of(annotation.get("/F")) & _HIDDEN:
                continue
            box = _rectangle(annotation.get("/Rect"))
            seen = box and clip(visible.from_default_space(box), visible)
            if not seen:
                continue
            chain = list(_with_ancestors(annotation))
            inherited: dict[str, Any] = {}
            for node in chain:
                for entry in ("/FT", "/Ff", "/V", "/DA", "/Q", "/MaxLen", "/Opt", "/TU", "/AA"):
                    if entry not in inherited and entry in node:
                        inherited[entry] = node[entry]
            field = next((node for node in chain if "/T" in node), annotation)
            key = field.objgen if field.objgen != (0, 0) else (number, index)
            name = clean(
                ".".join(text_of(node["/T"]) for node in reversed(chain) if isinstance(node.get("/T"), pikepdf.String))
            )
            yield _Widget(annotation, key, name, inherited, rectangle_to_area(seen, visible, page=number))


def _field(widgets: list[_Widget]) -> TagField | None:
    first = widgets[0]
    get = first.inherited.get
    flags = whole_of(get("/Ff"))
    read = {"/Tx": _text, "/Btn": _button, "/Ch": _choice, "/Sig": _signature}.get(name_of(get("/FT")))
    if read is None or _holds_value(get("/FT"), get("/V")):
        return None
    field = TagField(
        name=first.name,
        readonly=bool(flags & _READ_ONLY),
        required=bool(flags & _REQUIRED) and not flags & _READ_ONLY,
        description=clean(text_of(get("/TU")), LONGEST_VALUE) or None,
        areas=[widget.area for widget in widgets],
    )
    return field if read(field, widgets, flags) else None


def _text(field: TagField, widgets: list[_Widget], flags: int) -> bool:
    get = widgets[0].inherited.get
    field.type = FieldType.TEXT
    alignment = {1: "center", 2: "right"}.get(whole_of(get("/Q")))
    if alignment:
        field.preferences["align"] = alignment
    size = _FONT_SIZE.search(text_of(get("/DA")))
    if size and 1 <= float(number_of(size[1])) <= 500:
        field.preferences["font_size"] = round(number_of(size[1]))
    length = whole_of(get("/MaxLen"))
    if flags & _COMB and 0 < length <= 500:
        field.type = FieldType.CELLS
        for area in field.areas:
            area.cell_w = area.w / length
    date = _DATE_SCRIPT.search(_scripts(get("/AA")))
    if date:
        field.type = FieldType.DATE
        if _DATE_FORMAT.fullmatch(date[1]):
            field.preferences["format"] = date[1].upper()
    return True


def _button(field: TagField, widgets: list[_Widget], flags: int) -> bool:
    if flags & _PUSH_BUTTON:
        return False
    labels = items_of(widgets[0].inherited.get("/Opt"))
    states = [_on_state(widget.annotation) for widget in widgets]
    if not flags & _RADIO and len(set(states)) == 1:
        field.type = FieldType.CHECKBOX
        return True
    field.type = FieldType.RADIO
    for index, (area, state) in enumerate(zip(field.areas, states, strict=True)):
        label = text_of(labels[index]) if index < len(labels) else ""
        area.option = clean(label or state, LONGEST_VALUE) or f"Option {index + 1}"
        if area.option not in field.options:
            field.options.append(area.option)
    return len(field.options) <= MOST_OPTIONS


def _choice(field: TagField, widgets: list[_Widget], flags: int) -> bool:
    for item in items_of(widgets[0].inherited.get("/Opt"))[: 2 * MOST_OPTIONS]:
        pair = items_of(item)
        label = clean(text_of(pair[-1] if pair else item), LONGEST_VALUE)
        if label and label not in field.options and not _PLACEHOLDER.fullmatch(label):
            field.options.append(label)
    multiple = flags & _MULTI_SELECT and not flags & _COMBO
    field.type = FieldType.MULTIPLE if multiple else FieldType.SELECT
    return 0 < len(field.options) <= MOST_OPTIONS


def _signature(field: TagField, _widgets: list[_Widget], _flags: int) -> bool:
    field.type = FieldType.INITIALS if "initials" in field.name.lower() else FieldType.SIGNATURE
    field.required = True
    return True


def _holds_value(kind: Any, value: Any) -> bool:
    if kind == "/Btn":
        return isinstance(value, pikepdf.Name) and value not in ("/Off", "/")
    if isinstance(value, pikepdf.Array):
        return len(value) > 0
    return value is not None and bool(text_of(value).strip() if isinstance(value, pikepdf.String) else value)


def _on_state(widget: pikepdf.Dictionary) -> str:
    """The name of the appearance that shows the button on; ``Off`` is the other one (12.7.5.2.3)."""
    appearances = widget.get("/AP")
    normal = appearances.get("/N") if isinstance(appearances, pikepdf.Dictionary) else None
    names = [name for name in normal if name != "/Off"] if isinstance(normal, pikepdf.Dictionary) else []
    return names[0][1:] if names else ""


def _scripts(actions: Any) -> str:
    """Format and keystroke scripts of a field: read for what they say, never run."""
    texts = []
    for trigger in ("/F", "/K"):
        action = actions.get(trigger) if isinstance(actions, pikepdf.Dictionary) else None
        script = action.get("/JS") if isinstance(action, pikepdf.Dictionary) else None
        if isinstance(script, pikepdf.String):
            texts.append(text_of(script)[:2_000])
        elif isinstance(script, pikepdf.Stream):
            texts.append(script.read_bytes()[:2_000].decode("latin-1"))
    return "\n".join(texts)


def _with_ancestors(node: Any) -> Iterator[pikepdf.Dictionary]:
    for _ in range(_DEEPEST_FIELD):
        if not isinstance(node, pikepdf.Dictionary):
            return
        yield node
        node = node.get("/Parent")


def _is_widget(item: Any) -> bool:
    return isinstance(item, pikepdf.Dictionary) and item.get("/Subtype") == "/Widget"


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
