"""The request's JSON, read strictly.

The standard loader takes what other programs, databases and people refuse or misread: NaN and Infinity, two values under
one key, integers of a million digits, NUL, half a surrogate pair. Here each is a ServiceError that says what is wrong.
"""

import json
import math
import re
from typing import Any, NoReturn

from contracts.errors import ServiceError, invalid

DEEPEST = 64
MOST_VALUES = 2_000_000
"""An empty array takes 3 bytes of a body and 64 of memory: 100 MB of them would be 2 GB."""
_LONGEST_INTEGER = 20  # digits with the sign; what is longer does not fit 64 bits
_INTEGERS = range(-(2**63), 2**63)
_SUSPICIOUS = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


def loads(raw: bytes) -> Any:
    """The value of a JSON text in UTF-8 (RFC 8259); None for an empty one.

    Raises ServiceError: ``bad_request`` for what is not JSON or more than we follow (depth 64, 64-bit integers, finite
    numbers, no key twice), ``invalid`` naming the field for text with NUL or an unpaired surrogate.
    """
    if not raw.strip(b" \t\r\n"):
        return None
    refuse_too_many_values(raw)
    if raw.startswith(b"--") and b"form-data" in raw[:500]:
        raise _malformed(
            "the body is a form (multipart/form-data); send JSON, with a file in it as base64 or as its URL"
        )
    try:
        value = _DECODER.decode(raw.decode())
    except UnicodeDecodeError:
        raise _malformed("the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise _too_deep() from None
    if raw.count(b"[") + raw.count(b"{") > DEEPEST or _SUSPICIOUS.search(raw):
        _inspect(value)
    return value


def refuse_too_many_values(raw: bytes) -> None:
    """Raises ServiceError("too_large") for JSON, or lines of JSON, with more values than there is memory for."""
    if len(raw) > MOST_VALUES and sum(map(raw.count, (b",", b"[", b"{"))) > MOST_VALUES and _values(raw) > MOST_VALUES:
        raise ServiceError("too_large", f"The body must not hold more than {MOST_VALUES:,} values.")


def path(parts: tuple[str | int, ...] | list[str | int]) -> str:
    """``submitters[0].email`` of ``("submitters", 0, "email")``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".")


def _values(raw: bytes) -> int:
    """Count the values in the text, near enough: what is within strings does not count."""
    plain = _STRING.sub(b"", raw)
    return sum(map(plain.count, (b",", b"[", b"{")))


def _inspect(value: Any) -> None:
    """Depth, NUL and surrogates, without recursion: the value may be deeper than Python's stack likes."""
    waiting: list[tuple[Any, tuple[str | int, ...]]] = [(value, ())]
    while waiting:
        item, place = waiting.pop()
        if isinstance(item, str):
            _check_text(item, place)
        elif isinstance(item, dict | list):
            if len(place) >= DEEPEST:
                raise _too_deep()
            if isinstance(item, dict):
                for key in item:
                    _check_text(key, place)
                waiting.extend((child, (*place, key)) for key, child in item.items())
            else:
                waiting.extend((child, (*place, index)) for index, child in enumerate(item))


def _check_text(text: str, place: tuple[str | int, ...]) -> None:
    if "\x00" in text or (not text.isascii() and _SURROGATE.search(text)):
        name = _SURROGATE.sub("\ufffd", path(place)).replace("\x00", "\ufffd") or "body"
        raise invalid(f"{name} must not contain NUL characters or unpaired surrogates", name)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _malformed(f"an object has the key {json.dumps(twice[:100])} twice")
    return value


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER or (value := int(text)) not in _INTEGERS:
        raise _malformed("an integer has more than 64 bits")
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _malformed("a number is too large")
    return value


def _constant(name: str) -> NoReturn:
    raise _malformed(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_constant
)


def _malformed(reason: str) -> ServiceError:
    return ServiceError("bad_request", f"Malformed JSON: {reason}.")


def _too_deep() -> ServiceError:
    return ServiceError("bad_request", f"Malformed JSON: it is nested more than {DEEPEST} levels deep.")
