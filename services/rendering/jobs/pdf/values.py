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


def rgb_of(value: Any) -> tuple[float, float, float] | None:
    """Of an array of 1, 3 or 4 components (gray, RGB, CMYK); None when it is none, or empty, which is transparent."""
    parts = [min(max(number_of(component), 0.0), 1.0) for component in items_of(value)]
    if len(parts) == 1:
        return parts[0], parts[0], parts[0]
    if len(parts) == 3:
        return parts[0], parts[1], parts[2]
    if len(parts) == 4:
        black = 1 - parts[3]
        return (1 - parts[0]) * black, (1 - parts[1]) * black, (1 - parts[2]) * black
    return None


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


def is_true(value: Any) -> bool:
    """Return whether an entry is the boolean true, and not merely something that is there."""
    return value is True


def copied(dictionary: Any) -> pikepdf.Dictionary:
    """A dictionary with the entries of another: a change to it is none to the other."""
    return pikepdf.Dictionary(dictionary)
