"""The grammar of field tags: what stands between ``{{`` and ``}}`` in a document, and the attributes of HTML field tags.

    {{Name;role=Buyer;type=signature;required=true}}

Segments are separated by ``;``; the first one without ``=`` is the field's name; an attribute's value is what follows its
first ``=``. What is not understood is said in a remark: an attribute or a value that is not understood is left out,
a type that is not understood makes the tag no tag.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from contracts.fields.rules import CURRENCIES, WORDS
from contracts.rpc.rendering import TagField
from contracts.types import Area, FieldType
from services.rendering.jobs.tags import values
from services.rendering.jobs.tags.values import LONGEST_NAME, clean

_TYPE_WORDS = {kind.value: kind for kind in FieldType} | {
    "datenow": FieldType.DATE,
    "email": FieldType.TEXT,
    "initial": FieldType.INITIALS,
    "multi-select": FieldType.MULTIPLE,
    "multiselect": FieldType.MULTIPLE,
}
_NOT_OFFERED = {"kba": "the type “kba” is not known here: questions about a signer's past (KBA) are not offered"}
_EMAIL_PATTERN = r"[^@\s]+@[^@\s]+\.[^@\s]+"
GROUPS = (FieldType.RADIO, FieldType.MULTIPLE)
_PLACEHOLDER = re.compile(r"\s*\{{1,2}\s*(date|time|hour|minute|day|month|year|id|role|name|email|phone)\s*\}{1,2}\s*")
"""Defaults that are filled in when a signer comes; see ``services.templates.field_rules``."""


@dataclass(slots=True)
class Tag:
    """What a tag says of its field: ``TagField`` without areas, and without the cost of a model for each tag."""

    name: str
    type: FieldType
    role: str | None = None
    required: bool = True
    readonly: bool = False
    default_value: Any = None
    title: str | None = None
    description: str | None = None
    condition: str | None = None
    options: list[str] = field(default_factory=list)
    validation: dict[str, Any] = field(default_factory=dict)
    preferences: dict[str, Any] = field(default_factory=dict)

    def to_field(self, area: Area) -> TagField:
        return TagField(**asdict(self), areas=[area])


@dataclass
class ParsedTag:
    """``tag`` is the field, without areas; ``option`` names the option that this occurrence marks; ``width`` and
    ``height`` as given, in the tag's pixels; ``said`` are the attributes that were understood, as they are written;
    ``remarks`` tell what was left out."""

    tag: Tag
    option: str | None = None
    width: float | None = None
    height: float | None = None
    said: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


_BRACE = re.compile(r"[{}]")
LONGEST_ROLE = 60


class NotATag(ValueError):
    """The text between the braces makes no field; the message says why."""


def is_whole(text: str) -> bool:
    """Whether the braces in ``text``, which stands between ``{{`` and ``}}``, pair up. Where they do not, the tag's own end is
    missing (``{{Price;role=A} and interest ... }}``), and what follows is the document's text."""
    depth = 0
    for brace in _BRACE.finditer(text):
        depth += 1 if brace[0] == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def parse_tag(text: str) -> ParsedTag:
    """``text`` is what stands between the braces. Raises NotATag.

    A tag may go without a name when it begins with an attribute and says its type: ``{{type=checkbox}}``.
    """
    name, attributes, remarks = "", {}, []
    for position, segment in enumerate(values.letters(text).split(";")):
        key, equals, value = segment.partition("=")
        if not segment.strip():
            continue
        if equals:
            key = key.strip().lower().replace("-", "_")
            if key in attributes:
                remarks.append(f"the attribute “{clean(key)}” is given twice; the last one counts")
            attributes[key] = value.strip()
        elif position == 0:
            name = segment
        else:
            remarks.append(f"“{clean(segment)}” is not an attribute (name=value)")
    if not clean(attributes.get("name", name)):
        if not attributes:
            raise NotATag("it is empty")
        if "type" not in attributes or "=" not in text.partition(";")[0]:
            raise NotATag("it has no name")
    parsed = tag_from_attributes(attributes, name=name)
    parsed.remarks[:0] = remarks
    return parsed


def tag_from_attributes(attributes: Mapping[str, str], *, name: str, options: Sequence[str] = ()) -> ParsedTag:
    """From attribute names in lower case with underscores. ``options``: those that are not in an attribute, but elements
    of their own. Raises NotATag when ``type`` names no type of field."""
    word = attributes.get("type", "text").strip().lower()
    if word not in _TYPE_WORDS:
        raise NotATag(_NOT_OFFERED.get(word) or f"the type “{clean(word)}” does not exist")
    role = attributes.get("role", "").strip()
    if len(role) > LONGEST_ROLE or "\n" in role or _BRACE.search(role):
        raise NotATag(f"its role is more than a line of {LONGEST_ROLE} characters without braces")
    named = clean(attributes.get("name", name), LONGEST_NAME + 1)
    said = {"type": word} if "type" in attributes else {}
    parsed = ParsedTag(Tag(name=named[:LONGEST_NAME].rstrip(), type=_TYPE_WORDS[word]), said=said)
    if len(named) > LONGEST_NAME:
        parsed.remarks.append(f"the name is cut to {LONGEST_NAME} characters")
    for key, value in attributes.items():
        if key in ("type", "name"):
            continue
        read = _ATTRIBUTES.get(key)
        try:
            if read is None:
                raise ValueError("is not known")
            read(parsed, value)
            parsed.said[key] = value
        except ValueError as reason:
            parsed.remarks.append(f"the attribute “{clean(key)}” {reason} and was left out")
    if options and "options" not in attributes:
        try:
            parsed.tag.options = values.options(options)
        except ValueError as reason:
            parsed.remarks.append(f"the list of options {reason} and was left out")
    _finish(parsed, word)
    return parsed


def as_type(parsed: ParsedTag, word: str) -> ParsedTag:
    """A tag that does not say its type, read as one of that type: another tag of the same field says it."""
    options = [option for option in parsed.tag.options if option != parsed.option]
    known = tag_from_attributes({**parsed.said, "type": word}, name=parsed.tag.name, options=options)
    for key, value in parsed.tag.preferences.items():
        known.tag.preferences.setdefault(key, value)
    return known


def _finish(parsed: ParsedTag, word: str) -> None:
    """What one attribute means depends on the type."""
    tag = parsed.tag
    if word == "datenow":
        tag.readonly = True
        tag.default_value = "{{date}}"
    if word == "email":
        tag.validation.setdefault("pattern", _EMAIL_PATTERN)
    if parsed.option is not None and "type" in parsed.said and tag.type not in GROUPS:
        parsed.remarks.append("“option” only belongs to radio and multiple fields and was left out")
        parsed.option = None
    if parsed.option is not None and parsed.option not in tag.options:
        tag.options.append(parsed.option)
    _check_bounds(parsed)
    if tag.default_value is not None and word != "datenow":
        try:
            tag.default_value = _typed_default(tag, str(tag.default_value))
        except ValueError:
            parsed.remarks.append(
                f"the default “{clean(str(tag.default_value))}” does not fit the type and was left out"
            )
            tag.default_value = None


def _check_bounds(parsed: ParsedTag) -> None:
    """Bounds that do not fit the type, or that nothing can lie between, would make a field that nobody can fill in."""
    tag = parsed.tag
    wanted: dict[FieldType, Any] = {FieldType.DATE: str, FieldType.NUMBER: int | float}
    for key in ("min", "max"):
        if key in tag.validation and not isinstance(tag.validation[key], wanted.get(tag.type, object)):
            what = "no date as YYYY-MM-DD" if tag.type == FieldType.DATE else "no number"
            parsed.remarks.append(f"the attribute “{key}” is {what} and was left out")
            del tag.validation[key]
    low, high = tag.validation.get("min"), tag.validation.get("max")
    if low is not None and high is not None and (isinstance(low, str) != isinstance(high, str) or low > high):
        parsed.remarks.append("the attribute “max” is below “min” and was left out")
        del tag.validation["max"]


def _typed_default(tag: Tag, value: str) -> Any:
    """Values are typed as everywhere (brief, 'Shared meaning')."""
    if _PLACEHOLDER.fullmatch(value):
        return value
    match tag.type:
        case FieldType.CHECKBOX:
            return values.boolean(value)
        case FieldType.NUMBER:
            return values.number(value)
        case FieldType.MULTIPLE:
            return values.text_list(value)
        case FieldType.DATE:
            return values.iso_date(value, str(tag.preferences.get("format") or "MM/DD/YYYY"))
    return value


def _set(key: str, read: Callable[[str], Any]) -> Callable[[ParsedTag, str], None]:
    def apply(parsed: ParsedTag, value: str) -> None:
        setattr(parsed.tag, key, read(value))

    return apply


def _preference(key: str, read: Callable[[str], Any]) -> Callable[[ParsedTag, str], None]:
    def apply(parsed: ParsedTag, value: str) -> None:
        parsed.tag.preferences[key] = read(value)

    return apply


def _validation(key: str, read: Callable[[str], Any]) -> Callable[[ParsedTag, str], None]:
    def apply(parsed: ParsedTag, value: str) -> None:
        parsed.tag.validation[key] = read(value)

    return apply


def _mark(key: str, read: Callable[[str], Any]) -> Callable[[ParsedTag, str], None]:
    def apply(parsed: ParsedTag, value: str) -> None:
        setattr(parsed, key, read(value))

    return apply


_ATTRIBUTES: dict[str, Callable[[ParsedTag, str], None]] = {
    "role": _set("role", values.role),
    "required": _set("required", values.boolean),
    "readonly": _set("readonly", values.boolean),
    "default": _set("default_value", values.text),
    "default_value": _set("default_value", values.text),
    "title": _set("title", values.text),
    "description": _set("description", values.text),
    "options": _set("options", values.text_list),
    "condition": _set("condition", values.text),
    "option": _mark("option", values.option),
    "width": _mark("width", values.length),
    "height": _mark("height", values.length),
    "min": _validation("min", values.number_or_date),
    "max": _validation("max", values.number_or_date),
    "step": _validation("step", values.positive),
    "pattern": _validation("pattern", values.pattern),
    "message": _validation("message", values.text),
    "format": _preference("format", values.text),
    "font": _preference("font", values.font),
    "font_size": _preference("font_size", values.font_size),
    "font_type": _preference("font_type", values.one_of(*WORDS["font_type"])),
    "color": _preference("color", values.color),
    "background": _preference("background", values.color),
    "align": _preference("align", values.one_of(*WORDS["align"])),
    "valign": _preference("valign", values.one_of(*WORDS["valign"])),
    "hidden": _preference("hidden", values.boolean),
    "mask": _preference("mask", values.mask),
    "one_time_code": _preference("one_time_code", values.boolean),
    "method": _preference("method", values.one_of(*WORDS["method"])),
    "position": _preference("position", values.one_of(*WORDS["position"])),
    "reasons": _preference("reasons", values.reasons),
    "price": _preference("price", values.price),
    "payment_url": _preference("payment_url", values.url),
    "currency": _preference(
        "currency", lambda value: values.one_of(*(one.lower() for one in CURRENCIES))(value).upper()
    ),
}
