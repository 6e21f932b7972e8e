"""Values of a PDF that anybody may have made, read without surprises: wrong types and impossible bytes give the default."""

from typing import Any

import pikepdf

_NO_NUMBER = (TypeError, ValueError, OverflowError, NotImplementedError)


def items_of(array: Any) -> list[Any]:
    """The items of an array; nothing of anything else."""
    return list(array) if isinstance(array, pikepdf.Array) else []


def number_of(value: Any, default: float = 0.0) -> float:
    try:
        return float(value)
    except _NO_NUMBER:
        return default


def whole_of(value: Any, default: int = 0) -> int:
    try:
        return int(value)
    except _NO_NUMBER:
        return default


def name_of(value: Any) -> str:
    """With its slash; the bytes of a name need not be UTF-8 (ISO 32000-2, 7.3.5). Empty when it is no name."""
    return bytes(value).decode("utf-8", "surrogateescape") if isinstance(value, pikepdf.Name) else ""


def text_of(value: Any) -> str:
    """A text string (7.9.2.2); empty when it is none."""
    if not isinstance(value, pikepdf.String):
        return ""
    try:
        return str(value)
    except UnicodeError:
        return bytes(value).decode("latin-1")
