"""What a form field of a PDF (ISO 32000-2, 12.7.5) becomes: its type, options and preferences (peer facts 3.4)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pikepdf

from contracts.fields.rules import LARGEST_FONT, LONGEST_NAME, MOST_OPTIONS, SMALLEST_FONT
from contracts.rpc.rendering import TagField
from contracts.types import Area, FieldType
from services.rendering.jobs.pdf.values import items_of, name_of, number_of, text_of, whole_of
from services.rendering.jobs.tags.values import LONGEST_VALUE, clean

_READ_ONLY, _REQUIRED = 1 << 0, 1 << 1
_RADIO, _PUSH_BUTTON = 1 << 15, 1 << 16
_COMBO, _MULTI_SELECT, _COMB = 1 << 17, 1 << 21, 1 << 24

_DATE_SCRIPT = re.compile(r"AFDate_(?:Format|Keystroke)(?:Ex)?\(\s*(?:[\"']([^\"')]*)|(\d{1,2}))")
_DATE_FORMAT = re.compile(r"[dmyDMY./ ,-]{4,20}")
_NUMBERED_DATES = (
    *("m/d", "m/d/yy", "mm/dd/yy", "mm/yy", "d-mmm", "d-mmm-yy", "dd-mmm-yy"),
    *("yy-mm-dd", "mmm-yy", "mmmm-yy", "mmm d, yyyy", "mmmm d, yyyy"),
)
"""What the number in ``AFDate_Format(4)`` stands for, in the order of Acrobat's own list."""
_PLACEHOLDER = re.compile(r"\s*(?:[-–—_.…]*|(?:please\s+)?(?:select|choose)\b.*)\s*", re.IGNORECASE)
_SMALLEST_CELL = 3.0
"""Points; no letter would be read in less."""
_ESCAPED = re.compile(r"(?:#[89a-fA-F][0-9a-fA-F])+")
_FONT_SIZE = re.compile(r"([\d.]+)\s+Tf")


@dataclass
class Widget:
    """A place of a form field on a page: ``inherited`` has what the field and its ancestors say, ``width`` is in points,
    ``kid`` its place among the field's widgets, ``turned`` by how many degrees (counter-clockwise) it stands askew, ``path``
    the whole name as the file has it."""

    annotation: pikepdf.Dictionary
    key: Any
    name: str
    inherited: dict[str, Any]
    area: Area
    width: float = 0.0
    kid: int = 0
    turned: int = 0
    path: str = ""

    @property
    def kind(self) -> str:
        return name_of(self.inherited.get("/FT"))


def holds_value(widgets: Sequence[Widget]) -> bool:
    """Return whether somebody filled it in already. A choice that shows its first line ("Select one") is empty."""
    first = widgets[0]
    value = first.inherited.get("/V")
    match first.kind:
        case "/Btn":
            marks = [value, *(widget.annotation.get("/AS") for widget in widgets)]
            return any(isinstance(mark, pikepdf.Name) and mark not in ("/Off", "/") for mark in marks)
        case "/Ch":
            chosen = items_of(value) if isinstance(value, pikepdf.Array) else [value]
            return any(text_of(option).strip() and not is_placeholder(_label(first, option)) for option in chosen)
    return value is not None and bool(text_of(value).strip() if isinstance(value, pikepdf.String) else value)


def is_placeholder(label: str) -> bool:
    return _PLACEHOLDER.fullmatch(label) is not None


def field_of(widgets: Sequence[Widget]) -> TagField | None:
    """The field that an empty form field becomes; None for a button, or a choice with no options or more than 500."""
    first = widgets[0]
    read = {"/Tx": _text, "/Btn": _button, "/Ch": _choice, "/Sig": _signature}.get(first.kind)
    if read is None:
        return None
    flags = whole_of(first.inherited.get("/Ff"))
    field = TagField(
        name=first.name,
        readonly=bool(flags & _READ_ONLY),
        required=bool(flags & _REQUIRED) and not flags & _READ_ONLY,
        description=clean(text_of(first.inherited.get("/TU")), LONGEST_VALUE) or None,
        areas=[widget.area for widget in widgets],
    )
    return field if read(field, widgets, flags) else None


def _text(field: TagField, widgets: Sequence[Widget], flags: int) -> bool:
    get = widgets[0].inherited.get
    field.type = FieldType.TEXT
    alignment = {1: "center", 2: "right"}.get(whole_of(get("/Q")))
    if alignment:
        field.preferences["align"] = alignment
    size = _FONT_SIZE.search(text_of(get("/DA")))
    if size and (points := round(number_of(size[1]), 2)) > 0:  # 0 is automatic
        field.preferences["font_size"] = min(max(points, SMALLEST_FONT), LARGEST_FONT)
    length = whole_of(get("/MaxLen"))
    narrowest = min(widget.width for widget in widgets)
    if flags & _COMB and 0 < length <= 500 and narrowest / length >= _SMALLEST_CELL:
        field.type = FieldType.CELLS
        for area in field.areas:
            area.cell_w = area.w / length
    date = _DATE_SCRIPT.search(_scripts(get("/AA")))
    if date:
        field.type = FieldType.DATE
        format_ = date[1] if date[1] is not None else _numbered_date(int(date[2]))
        if _DATE_FORMAT.fullmatch(format_):
            field.preferences["format"] = format_.upper()
    return True


def _numbered_date(number: int) -> str:
    return _NUMBERED_DATES[number] if number < len(_NUMBERED_DATES) else ""


def _button(field: TagField, widgets: Sequence[Widget], flags: int) -> bool:
    if flags & _PUSH_BUTTON:
        return False
    labels = items_of(widgets[0].inherited.get("/Opt"))
    states = [_ESCAPED.sub(_unescaped, on_state(widget.annotation)[1:]) for widget in widgets]
    if not flags & _RADIO and len(set(states)) == 1:
        field.type = FieldType.CHECKBOX
        return True
    field.type = FieldType.RADIO
    for number, (widget, state) in enumerate(zip(widgets, states, strict=True), 1):
        # One label for each widget in the order of the field's own list, which is not that of the page.
        label = text_of(labels[widget.kid]) if widget.kid < len(labels) else ""
        widget.area.option = clean(label or state, LONGEST_NAME) or f"Option {number}"
        if widget.area.option not in field.options:
            field.options.append(widget.area.option)
    return len(field.options) <= MOST_OPTIONS


def _choice(field: TagField, widgets: Sequence[Widget], flags: int) -> bool:
    for item in items_of(widgets[0].inherited.get("/Opt"))[: 2 * MOST_OPTIONS]:
        pair = items_of(item)
        label = clean(text_of(pair[-1] if pair else item), LONGEST_NAME)
        if label and label not in field.options and not is_placeholder(label):
            field.options.append(label)
    multiple = flags & _MULTI_SELECT and not flags & _COMBO
    field.type = FieldType.MULTIPLE if multiple else FieldType.SELECT
    return 0 < len(field.options) <= MOST_OPTIONS


def _signature(field: TagField, _widgets: Sequence[Widget], _flags: int) -> bool:
    field.type = FieldType.INITIALS if "initials" in field.name.lower() else FieldType.SIGNATURE
    field.required = True
    return True


def export_value(widget: Widget, label: str) -> str:
    """Return what the file calls a choice that is shown as ``label`` (12.7.5.4)."""
    for item in items_of(widget.inherited.get("/Opt")):
        pair = items_of(item)
        if len(pair) == 2 and clean(text_of(pair[1]), LONGEST_NAME) == label:
            return text_of(pair[0])
    return label


def _label(widget: Widget, value: Any) -> str:
    """Return what a choice is called; it may stand for something else."""
    for item in items_of(widget.inherited.get("/Opt")):
        pair = items_of(item)
        if len(pair) == 2 and text_of(pair[0]) == text_of(value):
            return text_of(pair[1])
    return text_of(value)


def on_state(widget: pikepdf.Dictionary) -> str:
    """The name of the appearance that shows the button on, as the file has it; ``Off`` is the other one (12.7.5.2.3). Empty
    when there is none."""
    appearances = widget.get("/AP")
    for key in ("/N", "/D"):
        shown = appearances.get(key) if isinstance(appearances, pikepdf.Dictionary) else None
        if isinstance(shown, pikepdf.Dictionary) and not isinstance(shown, pikepdf.Stream):
            names = [name for name in shown if name != "/Off"]
            if names:
                return str(names[0])
    return ""


def _unescaped(match: re.Match[str]) -> str:
    """Letters beyond ASCII in a name (7.3.5), which some producers escape twice; as it is when they are none."""
    try:
        return bytes.fromhex(match[0].replace("#", "")).decode()
    except UnicodeDecodeError:
        return match[0]


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
