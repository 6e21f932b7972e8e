"""What each type of field is: one row per type. Whatever asks what a type takes, how it is judged or how it is drawn asks here.

A new type is a row here and in ``FieldType``; CONTRIBUTING lists what else it needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from contracts.types import FieldType

Value = Literal[
    "text", "line", "phone", "number", "date", "boolean", "option", "options", "picture", "files", "proof", "nothing"
]
Drawing = Literal["text", "amount", "mark", "picture", "file", "line", "nothing"]


class Field(Protocol):
    """What the rules read of a field: a definition, an override of one, or what a tag says."""

    @property
    def type(self) -> FieldType: ...
    @property
    def options(self) -> list[str]: ...
    @property
    def validation(self) -> dict[str, Any]: ...
    @property
    def preferences(self) -> dict[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A type of field.

    ``value`` names the reader of its values (``contracts.fields.values``); ``drawn`` is how a value looks on paper; ``rules``
    are the keys of ``validation`` by which values are judged; ``preferences`` those that only such fields have, beside the
    ``LOOKS`` of all; ``words`` name the type in tags, beside its own name; ``control`` is what the signing page asks with,
    empty where the signer is not asked.
    """

    value: Value
    drawn: Drawing
    rules: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    control: str = ""


LOOKS = ("font_size", "font_type", "font", "color", "background", "align", "valign", "hidden", "mask")
"""The preferences that every type has, and beside them:"""

DEPENDING = ("condition", "required_if")
"""Expressions (``contracts.fields.formulas``): when a field is there, when it must be filled in."""

_PATTERN = ("pattern",)
_SIGNED = ("format", "reasons", "with_signature_id")
_COMPUTED = ("formula",)

KINDS: Mapping[FieldType, Kind] = {
    FieldType.HEADING: Kind(value="nothing", drawn="text"),
    FieldType.TEXT: Kind(
        value="text", drawn="text", rules=_PATTERN, preferences=_COMPUTED, words=("email",), control="text"
    ),
    FieldType.SIGNATURE: Kind(value="picture", drawn="picture", preferences=_SIGNED, control="signature"),
    FieldType.INITIALS: Kind(
        value="picture", drawn="picture", preferences=_SIGNED, words=("initial",), control="signature"
    ),
    FieldType.DATE: Kind(
        value="date",
        drawn="text",
        rules=("min", "max"),
        preferences=("format", *_COMPUTED),
        words=("datenow",),
        control="date",
    ),
    FieldType.NUMBER: Kind(
        value="number",
        drawn="text",
        rules=("min", "max", "step"),
        preferences=("format", *_COMPUTED),
        control="number",
    ),
    FieldType.IMAGE: Kind(value="picture", drawn="picture", control="image"),
    FieldType.CHECKBOX: Kind(value="boolean", drawn="mark", preferences=_COMPUTED, control="checkbox"),
    FieldType.MULTIPLE: Kind(value="options", drawn="text", words=("multi-select", "multiselect"), control="multiple"),
    FieldType.FILE: Kind(value="files", drawn="file", control="file"),
    FieldType.RADIO: Kind(value="option", drawn="text", control="radio"),
    FieldType.SELECT: Kind(value="option", drawn="text", control="select"),
    FieldType.CELLS: Kind(value="line", drawn="text", rules=_PATTERN, preferences=_COMPUTED, control="cells"),
    FieldType.STAMP: Kind(value="picture", drawn="picture", preferences=("position",)),
    FieldType.PAYMENT: Kind(value="nothing", drawn="amount", preferences=("price", "currency", "payment_url")),
    FieldType.PHONE: Kind(value="phone", drawn="text", rules=_PATTERN, preferences=("one_time_code",), control="phone"),
    FieldType.VERIFICATION: Kind(value="proof", drawn="text", preferences=("method",), control="verification"),
    FieldType.STRIKETHROUGH: Kind(value="nothing", drawn="line"),
    FieldType.DUTYSTAMP: Kind(value="nothing", drawn="nothing"),
}

TAG_WORDS: Mapping[str, FieldType] = {word: kind for kind, row in KINDS.items() for word in (kind.value, *row.words)}
"""The type that each word of a tag's ``type`` means."""

CHOICES = frozenset(kind for kind, row in KINDS.items() if row.value in ("option", "options"))
"""Their value is of their options, so they must have some."""

ATTACHED = frozenset(kind for kind, row in KINDS.items() if row.value in ("picture", "files"))
"""Their value names attachments."""

UNTOUCHABLE = frozenset(kind for kind, row in KINDS.items() if row.value == "nothing")
"""Nobody gives them a value; a heading has a text of its own, a payment its price."""

WITHOUT_CONTENT = frozenset(kind for kind, row in KINDS.items() if row.drawn in ("line", "nothing"))
"""They have a place and nothing else: what is given as their value is left out."""

WITH_TEXT = frozenset(kind for kind, row in KINDS.items() if row.drawn == "text")
"""Their value is drawn as text, which can be masked."""
