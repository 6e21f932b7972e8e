"""JSON in its one canonical form (RFC 8785), so that a digest of it can be computed by anybody, in any language."""

import hashlib
import json
import re
from decimal import Decimal
from typing import Any

_ODD_NUMBER = re.compile(r"[:,\[]-?[0-9]+(?:\.0(?![0-9])|(?:\.[0-9]+)?e[+-]?[0-9]|(?<=[0-9]{22}))")
_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")
"""Matches values that Python's writer and RFC 8785 may write differently: whole and very small or large numbers, minus zero,
order of keys beyond the Basic Multilingual Plane. They may also stand in a text, which then only takes longer; not in digests,
which are common. Each begins with characters that the engine can look for: a form has hundreds of fields, and a digest of
each."""

_LARGE = 10**21
"""From here on ECMAScript writes whole numbers with an exponent. PostgreSQL gives 1e22 back as a whole number."""


def encoded(value: Any) -> bytes:
    """Encode plain JSON values as RFC 8785 says: keys sorted by their UTF-16 units, numbers as ECMAScript writes them, no white
    space, UTF-8. Raises ValueError for what JSON has no form for (NaN, infinities)."""
    text = _dumps(value)
    needs_care = _ODD_NUMBER.search(f":{text}") or (not text.isascii() and _BEYOND_BMP.search(text))
    return (_carefully(value) if needs_care else text).encode()


def digest(value: Any) -> str:
    """Compute the SHA-256, in lower-case hex, of ``value`` in canonical JSON."""
    return hashlib.sha256(encoded(value)).hexdigest()


_dumps = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def _carefully(value: Any) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{_dumps(key)}:{_carefully(value[key])}" for key in keys) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_carefully, value)) + "]"
    if isinstance(value, int) and abs(value) >= _LARGE:
        value = float(value)
    return _number(value) if isinstance(value, float) else _dumps(value)


def _number(value: float) -> str:
    """ECMA-262, Number::toString: decimal notation from 1e-6 up to 1e21, Python's shortest digits in any case."""
    if value == 0:
        return "0"
    if 1e-6 <= abs(value) < 1e21:
        text = format(Decimal(repr(value)), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent):+d}"
