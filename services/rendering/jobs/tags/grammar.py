"""The grammar of field tags: what stands between ``{{`` and ``}}`` in a document, and the attributes of HTML field tags.

    {{Name;role=Buyer;type=signature;required=true}}

Segments are separated by ``;``; the first one without ``=`` is the field's name; an attribute's value is what follows its
first ``=``. What is not understood is said in a remark: an attribute or a value that is not understood is left out,
a type that is not understood makes the tag no tag.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from contracts.fields import checker
from contracts.fields.formulas.grammar import LONGEST_FORMULA
from contracts.fields.formulas.references import CONDITION, EXPRESSIONS
from contracts.fields.kinds import TAG_WORDS
from contracts.fields.rules import LONGEST_NAME
from contracts.fields.values import BadValue
from contracts.rpc.rendering import TagField
from contracts.types import Area, FieldType
from services.rendering.jobs.tags import values
from services.rendering.jobs.tags.values import clean

_NOT_OFFERED = {"kba": "the type “kba” is not supported: questions about a signer's past (KBA) are not offered"}
EMAIL_PATTERN = r"[^@\s]+@[^@\s]+\.[^@\s]+"
GROUPS = (FieldType.RADIO, FieldType.MULTIPLE)


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
    ``height`` as given, in the tag's pixels; ``attributes`` are those that were understood, as they are written;
    ``remarks`` tell what was left out."""

    tag: Tag
    option: str | None = None
    width: float | None = None
    height: float | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


_BRACE = re.compile(r"[{}]")
_BRACKETS = "[["
LONGEST_ROLE = 60
LONGEST_TAG = LONGEST_FORMULA + 3_000
"""Characters between the braces: a formula, and what else there is to say of its field."""


class NotATag(ValueError):
    """The text between the braces makes no field; the message says why."""


def is_whole(text: str) -> bool:
    """Return whether the braces in ``text``, which stands between ``{{`` and ``}}``, pair up. Where they do not, the tag's own
    end is missing (``{{Price;role=A} and interest ... }}``), and what follows is the document's text."""
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
    if word not in TAG_WORDS:
        raise NotATag(_NOT_OFFERED.get(word) or f"the type “{clean(word)}” does not exist")
    role = attributes.get("role", "").strip()
    if len(role) > LONGEST_ROLE or "\n" in role or _BRACE.search(role):
        raise NotATag(f"its role is more than a line of {LONGEST_ROLE} characters without braces")
    cleaned_name = clean(attributes.get("name", name), None)
    stated = {"type": word} if "type" in attributes else {}
    parsed = ParsedTag(Tag(name=cleaned_name[:LONGEST_NAME].rstrip(), type=TAG_WORDS[word]), attributes=stated)
    if len(cleaned_name) > LONGEST_NAME:
        parsed.remarks.append(f"the name is cut to {LONGEST_NAME} characters")
    for key in sorted(attributes, key=lambda key: key in checker.RULES):  # bounds are read as the field's format says
        if key in ("type", "name"):
            continue
        value, read = attributes[key], ATTRIBUTES.get(key)
        try:
            if read is None:
                raise BadValue("is not known")
            read(parsed, value)
            parsed.attributes[key] = value
        except BadValue as reason:
            parsed.remarks.append(f"the attribute “{clean(key)}” {reason} and was left out")
    if "options" not in attributes:
        try:
            parsed.tag.options = values.options(options)
        except BadValue as reason:
            parsed.remarks.append(f"the list of options {reason} and was left out")
    _finish(parsed, word)
    return parsed


def as_type(parsed: ParsedTag, word: str) -> ParsedTag:
    """A tag that does not say its type, read as one of that type: another tag of the same field says it."""
    options = [option for option in parsed.tag.options if option != parsed.option]
    reread = tag_from_attributes({**parsed.attributes, "type": word}, name=parsed.tag.name, options=options)
    for key, value in parsed.tag.preferences.items():
        reread.tag.preferences.setdefault(key, value)
    return reread


def _finish(parsed: ParsedTag, word: str) -> None:
    """Read the attributes whose meaning depends on the type."""
    tag = parsed.tag
    if word == "datenow":
        tag.readonly = True
        tag.default_value = "{{date}}"
    if word == "email":
        tag.validation.setdefault("pattern", EMAIL_PATTERN)
    if parsed.option is not None and "type" in parsed.attributes and tag.type not in GROUPS:
        parsed.remarks.append("“option” only belongs to radio and multiple fields and was left out")
        parsed.option = None
    if parsed.option is not None and parsed.option not in tag.options:
        tag.options.append(parsed.option)
    if reason := leave_out_contradiction(tag.validation, tag.type):
        parsed.remarks.append(reason)
    if tag.default_value is not None:
        try:
            tag.default_value = _default(tag, str(tag.default_value))
        except BadValue as reason:
            parsed.remarks.append(f"the default “{clean(str(tag.default_value))}” {reason} and was left out")
            tag.default_value = None


def leave_out_contradiction(validation: dict[str, Any], kind: FieldType) -> str | None:
    """Takes out the rule that contradicts another, which would make a field that nobody can fill in, and says so."""
    conflict = checker.contradiction(validation, kind)
    if conflict is None:
        return None
    del validation[conflict[1]]
    return f"the attribute “{conflict[1]}” {checker.CONFLICTS[conflict[1]]} and was left out"


def _default(tag: Tag, value: str) -> Any:
    """Options may be named by other tags of the field, and patterns are for RE2: whoever makes the template judges these."""
    rules = {key: rule for key, rule in tag.validation.items() if key in ("min", "max", "step")}
    raw = values.text_list(value) if tag.type is FieldType.MULTIPLE else value
    return checker.default(raw, replace(tag, validation=rules, options=[]))


def _set(key: str, read: Callable[[str], Any]) -> Callable[[ParsedTag, str], None]:
    def apply(parsed: ParsedTag, value: str) -> None:
        setattr(parsed.tag, key, read(value))

    return apply


def _preference(key: str, read: Callable[[str], Any] = str) -> Callable[[ParsedTag, str], None]:
    def apply(parsed: ParsedTag, value: str) -> None:
        kind = parsed.tag.type
        if "type" not in parsed.attributes and key in checker.PROOFS:
            kind = checker.PROOFS[key]  # another tag of the field may say its type; if none does, templates refuse it
        checked = checker.preference(kind, key, read(value))
        if checker.holds(kind, key):
            parsed.tag.preferences[key] = checked

    return apply


def _validation(key: str, read: Callable[[str], Any] = str) -> Callable[[ParsedTag, str], None]:
    def apply(parsed: ParsedTag, value: str) -> None:
        parsed.tag.validation[key] = checker.rule(parsed.tag, key, read(value))

    return apply


def _pattern(parsed: ParsedTag, value: str) -> None:
    parsed.tag.validation["pattern"] = checker.pattern_text(value)


def _expression(key: str) -> Callable[[ParsedTag, str], None]:
    """As it is written: whether it is a formula, and of what, whoever makes the template judges, who knows all fields."""

    def apply(parsed: ParsedTag, value: str) -> None:
        if text := values.formula(value):
            parsed.tag.preferences[key] = text

    return apply


def _condition(parsed: ParsedTag, value: str) -> None:
    """An expression names fields in brackets (``[[Rent]] > 500``), what is none does not (``Pets:true``)."""
    if _BRACKETS in value:
        _expression(CONDITION)(parsed, value)
    else:
        parsed.tag.condition = values.text(value)


def _mark(key: str, read: Callable[[str], Any]) -> Callable[[ParsedTag, str], None]:
    def apply(parsed: ParsedTag, value: str) -> None:
        setattr(parsed, key, read(value))

    return apply


ATTRIBUTES: dict[str, Callable[[ParsedTag, str], None]] = {
    "role": _set("role", values.role),
    "required": _set("required", values.boolean),
    "readonly": _set("readonly", values.boolean),
    "default": _set("default_value", values.text),
    "default_value": _set("default_value", values.text),
    "title": _set("title", values.text),
    "description": _set("description", values.text),
    "options": _set("options", lambda value: values.options(value.split(","))),
    "option": _mark("option", values.option),
    "width": _mark("width", values.length),
    "height": _mark("height", values.length),
    "min": _validation("min"),
    "max": _validation("max"),
    "step": _validation("step"),
    "pattern": _pattern,
    "message": _validation("message", values.text),
    **{key: _preference(key) for key in checker.PREFERENCES},
    **{key: _expression(key) for key in EXPRESSIONS},
    "condition": _condition,
    "font": _preference("font", values.font),
    "font_size": _preference("font_size", values.font_size),
    "hidden": _preference("hidden", values.flag),
    "mask": _preference("mask", values.flag),
    "one_time_code": _preference("one_time_code", values.flag),
    "with_signature_id": _preference("with_signature_id", values.flag),
    "reasons": _preference("reasons", values.reasons),
}
