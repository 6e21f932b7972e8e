"""The grammar of field tags: what stands between ``{{`` and ``}}`` in a document, and the attributes of HTML field tags.

    {{Name;role=Buyer;type=signature;required=true}}

Segments are separated by ``;``; the first one without ``=`` is the field's name; an attribute's value is what follows its
first ``=``. What is not understood is said in a remark: an attribute or a value that is not understood is left out,
a type that is not understood makes the tag no tag.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from contracts.rpc.rendering import TagField
from contracts.types import Area, FieldType

LONGEST_NAME = 255
LONGEST_VALUE = 2_000
MOST_OPTIONS = 200

_TYPE_WORDS = {kind.value: kind for kind in FieldType} | {
    "datenow": FieldType.DATE,
    "email": FieldType.TEXT,
    "initial": FieldType.INITIALS,
    "multi-select": FieldType.MULTIPLE,
    "multiselect": FieldType.MULTIPLE,
}
_EMAIL_PATTERN = r"[^@\s]+@[^@\s]+\.[^@\s]+"
_FONTS = {
    "times": "Times",
    "times new roman": "Times",
    "times-roman": "Times",
    "helvetica": "Helvetica",
    "arial": "Helvetica",
    "courier": "Courier",
    "courier new": "Courier",
}
_COLOR = re.compile(r"#[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?")
_COLORS = {"black", "white", "blue", "red"}
_INVISIBLE = re.compile("[\u200b-\u200f\u061c\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufff9-\ufffb]")
"""Zero-width and direction controls: a name that looks like another or reads backwards (threats T47)."""


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
    ``height`` as given, in the tag's pixels; ``remarks`` tell what was left out."""

    tag: Tag
    option: str | None = None
    width: float | None = None
    height: float | None = None
    remarks: list[str] = field(default_factory=list)


class NotATag(ValueError):
    """The text between the braces makes no field; the message says why."""


def parse_tag(text: str) -> ParsedTag:
    """``text`` is what stands between the braces. Raises NotATag."""
    name, attributes, remarks = "", {}, []
    for position, segment in enumerate(text.split(";")):
        key, equals, value = segment.partition("=")
        if not segment.strip():
            continue
        if equals:
            attributes[key.strip().lower().replace("-", "_")] = value.strip()
        elif position == 0:
            name = segment
        else:
            remarks.append(f"“{clean(segment)}” is not an attribute (name=value)")
    if not clean(name) and not attributes:
        raise NotATag("it is empty")
    parsed = tag_from_attributes(attributes, name=name)
    parsed.remarks[:0] = remarks
    return parsed


def tag_from_attributes(attributes: Mapping[str, str], *, name: str) -> ParsedTag:
    """From attribute names in lower case with underscores. Raises NotATag when ``type`` names no type of field."""
    word = attributes.get("type", "text").strip().lower()
    if word not in _TYPE_WORDS:
        raise NotATag(f"the type “{clean(word)}” does not exist")
    parsed = ParsedTag(Tag(name=clean(attributes.get("name", name)), type=_TYPE_WORDS[word]))
    for key, value in attributes.items():
        if key in ("type", "name"):
            continue
        read = _ATTRIBUTES.get(key)
        try:
            if read is None:
                raise ValueError("is not known")
            read(parsed, value)
        except ValueError as reason:
            parsed.remarks.append(f"the attribute “{clean(key)}” {reason} and was left out")
    _finish(parsed, word)
    return parsed


def clean(text: str, longest: int = LONGEST_NAME) -> str:
    """Text from a document, fit to be shown: NFC, blanks joined, without control, direction and zero-width characters."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())[:longest].rstrip()
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    text = "".join(" " if character.isspace() else character for character in text)
    text = "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cs", "Co") and c not in "\ufffe\uffff")
    return " ".join(text.split())[:longest].rstrip()


def _finish(parsed: ParsedTag, word: str) -> None:
    """What one attribute means depends on the type."""
    tag = parsed.tag
    if word == "datenow":
        tag.readonly = True
        tag.default_value = "{{date}}"
    if word == "email":
        tag.validation.setdefault("pattern", _EMAIL_PATTERN)
    if parsed.option is not None and tag.type not in (FieldType.RADIO, FieldType.MULTIPLE):
        parsed.remarks.append("“option” only belongs to radio and multiple fields and was left out")
        parsed.option = None
    if parsed.option is not None and parsed.option not in tag.options:
        tag.options.append(parsed.option)
    if tag.default_value is not None and word != "datenow":
        try:
            tag.default_value = _typed_default(tag, str(tag.default_value))
        except ValueError:
            parsed.remarks.append(
                f"the default “{clean(str(tag.default_value))}” does not fit the type and was left out"
            )
            tag.default_value = None


def _typed_default(tag: Tag, value: str) -> Any:
    """Values are typed as everywhere (brief, 'Shared meaning')."""
    match tag.type:
        case FieldType.CHECKBOX:
            return _boolean(value)
        case FieldType.NUMBER:
            return _number(value)
        case FieldType.MULTIPLE:
            return _list(value)
    return value


def _text(value: str) -> str:
    return clean(value, LONGEST_VALUE)


def _boolean(value: str) -> bool:
    match value.strip().lower():
        case "true" | "yes" | "1" | "":
            return True
        case "false" | "no" | "0":
            return False
    raise ValueError(f"is neither true nor false (“{clean(value)}”)")


def _number(value: str) -> float | int:
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"is not a number (“{clean(value)}”)") from None
    if not -1e12 < number < 1e12:
        raise ValueError("is not a sensible number")
    return int(number) if number.is_integer() else number


def _length(value: str) -> float:
    number = float(_number(value.strip().lower().removesuffix("px")))
    if not 0 < number <= 10_000:
        raise ValueError("is not a sensible length")
    return number


def _number_or_date(value: str) -> float | int | str:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", value.strip()):
        return value.strip()
    return _number(value)


def _list(value: str) -> list[str]:
    options = [option for option in map(_text, value.split(",")) if option]
    if len(options) > MOST_OPTIONS:
        raise ValueError(f"has more than {MOST_OPTIONS} options")
    return list(dict.fromkeys(options))


def _one_of(*words: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        word = value.strip().lower()
        if word not in words:
            raise ValueError(f"is none of {', '.join(words)}")
        return word

    return read


def _font(value: str) -> str:
    if value.strip().lower() not in _FONTS:
        raise ValueError("is none of Times, Helvetica, Courier")
    return _FONTS[value.strip().lower()]


def _color(value: str) -> str:
    word = value.strip().lower()
    if word in _COLORS or _COLOR.fullmatch(word):
        return word
    raise ValueError("is no color")


def _mask(value: str) -> bool | int:
    number = value.strip()
    return int(number) if re.fullmatch(r"-?[1-9]\d?", number) else _boolean(number)


def _font_size(value: str) -> float | int:
    size = _number(value.strip().lower().removesuffix("px").removesuffix("pt"))
    if not 1 <= size <= 500:
        raise ValueError("is not between 1 and 500")
    return size


def _price(value: str) -> float | int:
    price = _number(value)
    if price < 0:
        raise ValueError("is below 0")
    return price


def _url(value: str) -> str:
    url = value.strip()
    if not re.fullmatch(r"https?://[^\s/<>\"\\][^\s<>\"\\]*", url):
        raise ValueError("is no http or https URL")
    return url


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


def _role(value: str) -> str | None:
    return clean(value) or None


def _pattern(value: str) -> str:
    if len(value) > 256:
        raise ValueError("is longer than 256 characters")
    return value


def _option(value: str) -> str:
    option = _text(value)
    if not option:
        raise ValueError("is empty")
    return option


_ATTRIBUTES: dict[str, Callable[[ParsedTag, str], None]] = {
    "role": _set("role", _role),
    "required": _set("required", _boolean),
    "readonly": _set("readonly", _boolean),
    "default": _set("default_value", _text),
    "default_value": _set("default_value", _text),
    "title": _set("title", _text),
    "description": _set("description", _text),
    "options": _set("options", _list),
    "condition": _set("condition", _text),
    "option": _mark("option", _option),
    "width": _mark("width", _length),
    "height": _mark("height", _length),
    "min": _validation("min", _number_or_date),
    "max": _validation("max", _number_or_date),
    "step": _validation("step", _number),
    "pattern": _validation("pattern", _pattern),
    "format": _preference("format", _text),
    "font": _preference("font", _font),
    "font_size": _preference("font_size", _font_size),
    "font_type": _preference("font_type", _one_of("bold", "italic", "bold_italic")),
    "color": _preference("color", _color),
    "background": _preference("background", _color),
    "align": _preference("align", _one_of("left", "center", "right")),
    "valign": _preference("valign", _one_of("top", "center", "bottom")),
    "hidden": _preference("hidden", _boolean),
    "mask": _preference("mask", _mask),
    "one_time_code": _preference("one_time_code", _boolean),
    "method": _preference("method", _one_of("aes", "qes")),
    "position": _preference("position", _one_of("background", "foreground")),
    "price": _preference("price", _price),
    "payment_url": _preference("payment_url", _url),
    "currency": _preference("currency", lambda value: _one_of("usd", "eur", "gbp", "cad", "aud")(value).upper()),
}
