"""The functions and operators of formulas: what each takes and gives, and what it computes. docs/formulas.md is made of it.

Numbers are those of ``numbers``; where a number is wanted, none counts as 0, as in a spreadsheet. Texts that are not there are
empty. Days and what is ordered or chosen from are None when they are not there.
"""

import calendar
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Literal

from contracts.fields import paper
from contracts.fields.date_formats import TOKEN, is_date_format
from contracts.fields.formulas import numbers
from contracts.fields.formulas.numbers import NoValue
from contracts.fields.rules import LONGEST_TEXT, NUMBER_FORMATS, is_empty
from contracts.fields.values import BadValue
from contracts.types import Account

Kind = Literal["number", "text", "date", "boolean", "options", "file", "any"]
"""Of a part of a formula; ``any`` is that of ``empty``."""

Kinds = Sequence[Kind]
Judge = Callable[[Kinds], Kind]
"""Gives the kind of the result, by those of the arguments. Raises BadValue."""

_NAMES: Mapping[Kind, str] = {
    "number": "a number",
    "text": "a text",
    "date": "a date",
    "boolean": "yes or no",
    "options": "several options",
    "file": "a picture, a file or a proof",
    "any": "anything",
}
_LAST_DAY = date.max.toordinal()
_BLANKS = " \t\n\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_TRIMMED = re.compile(f"^[{_BLANKS}]+|[{_BLANKS}]+$")
_CLOCK = re.compile(r"MMM|[HhmsAaz]")


@dataclass(frozen=True)
class Function:
    """``takes`` and ``says`` are for readers; ``judge`` finds wrong arguments when a formula is written, ``compute`` takes what
    ``judge`` let pass. None: its arguments are computed only as far as they are needed (``evaluating``)."""

    takes: str
    says: str
    judge: Judge
    compute: Callable[[list[Any]], Any] | None = None


def fits(kind: Kind, needed: Kind) -> bool:
    """Return whether what is of ``kind`` may stand where ``needed`` is."""
    return kind in (needed, "any") or needed == "any"


def name_of(kind: Kind) -> str:
    """Return what a kind is called in a sentence."""
    return _NAMES[kind]


def same(kinds: Kinds) -> Kind:
    """Return the kind that all have. Raises BadValue when they differ."""
    different_kinds = list(dict.fromkeys(kind for kind in kinds if kind != "any"))
    if len(different_kinds) > 1:
        raise BadValue(f"has {name_of(different_kinds[1])} where {name_of(different_kinds[0])} is needed")
    return different_kinds[0] if different_kinds else "any"


def _takes(gives: Kind, *parameters: Kind) -> Judge:
    def judge(kinds: Kinds) -> Kind:
        _count(kinds, len(parameters), len(parameters))
        for kind, parameter in zip(kinds, parameters, strict=True):
            _need(kind, parameter)
        return gives

    return judge


def _several(gives: Kind | None, *allowed: Kind) -> Judge:
    """One or more of one of the kinds ``allowed``; ``gives`` None: of that kind."""

    def judge(kinds: Kinds) -> Kind:
        _count(kinds, 1, None)
        kind = same(kinds)
        if kind not in (*allowed, "any"):
            raise BadValue(f"has {name_of(kind)} where {name_of(allowed[0])} is needed")
        return gives or kind

    return judge


def _need(kind: Kind, needed: Kind) -> None:
    if not fits(kind, needed):
        raise BadValue(f"has {name_of(kind)} where {name_of(needed)} is needed")


def _count(kinds: Kinds, least: int, most: int | None) -> None:
    if len(kinds) < least or (most is not None and len(kinds) > most):
        right_count = str(least) if least == most else f"{least} or more" if most is None else f"{least} or {most}"
        raise BadValue(f"has {len(kinds)} arguments where there must be {right_count}")


def _judge_if(kinds: Kinds) -> Kind:
    _count(kinds, 3, 3)
    _need(kinds[0], "boolean")
    return _comparable(kinds[1:])


def _judge_equal(kinds: Kinds) -> Kind:
    _comparable(kinds)
    return "boolean"


def _comparable(kinds: Kinds) -> Kind:
    kind = same(kinds)
    if kind in ("options", "file"):
        raise BadValue(f"has {name_of(kind)} where there must be one value: use contains() or is_empty()")
    return kind


def _judge_order(kinds: Kinds) -> Kind:
    kind = same(kinds)
    if kind not in ("number", "date", "any"):
        raise BadValue(f"compares {name_of(kind)} by its size: only numbers and dates have one")
    return "boolean"


def _judge_is_empty(kinds: Kinds) -> Kind:
    _count(kinds, 1, 1)
    return "boolean"


def _judge_contains(kinds: Kinds) -> Kind:
    _count(kinds, 2, 2)
    if kinds[0] != "options":
        _need(kinds[0], "text")
    _need(kinds[1], "text")
    return "boolean"


def _judge_concat(kinds: Kinds) -> Kind:
    _count(kinds, 1, None)
    for kind in kinds:
        if kind in ("boolean", "file"):
            raise BadValue(f"has {name_of(kind)} where a text is needed")
    return "text"


def _judge_round(kinds: Kinds) -> Kind:
    _count(kinds, 1, 2)
    for kind in kinds:
        _need(kind, "number")
    return "number"


def _judge_format(kinds: Kinds) -> Kind:
    _count(kinds, 2, 2)
    if kinds[0] not in ("number", "date"):
        raise BadValue(f"has {name_of(kinds[0])} where a number or a date is needed")
    return "text"


def wrong_pattern(kind: Kind, pattern: str) -> str | None:
    """Return why ``format()`` cannot write what is of this kind so, or None: what depends on a language it does not write."""
    if kind == "number":
        return None if pattern in NUMBER_FORMATS else f"must format numbers as one of {', '.join(NUMBER_FORMATS)}"
    if is_date_format(pattern) and not any(_CLOCK.match(token[0]) for token in TOKEN.finditer(pattern)):
        return None
    return "must format dates by YYYY, YY, MM, M, DD and D, such as DD/MM/YYYY"


def text_of(value: Any) -> str:
    """Write a number, a day, a text or options as ``concat()`` does."""
    if value is None:
        return ""
    if isinstance(value, int):
        return numbers.written(value)
    return ", ".join(value) if isinstance(value, list) else value.isoformat() if isinstance(value, date) else str(value)


def _text(value: str) -> str:
    if len(value) > LONGEST_TEXT:
        raise NoValue
    return value


def _ordered(holds: Callable[[Any, Any], bool]) -> Callable[[list[Any]], bool]:
    return lambda arguments: None not in arguments and holds(*arguments)


def equal(arguments: list[Any]) -> bool:
    """Return whether both are the same, or both are empty."""
    left, right = arguments
    return is_empty(left) and is_empty(right) if is_empty(left) or is_empty(right) else bool(left == right)


def _reckon(compute: Callable[..., int]) -> Callable[[list[Any]], int]:
    return lambda arguments: compute(*(value or 0 for value in arguments))


def _extreme(choose: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def compute(arguments: list[Any]) -> Any:
        present = [value for value in arguments if value is not None]
        return choose(present) if present else None

    return compute


def _sum(arguments: list[Any]) -> int:
    total = 0
    for value in arguments:
        total = numbers.within(total + (value or 0))
    return total


def _round(arguments: list[Any]) -> int:
    places = numbers.whole(arguments[1] or 0) if len(arguments) > 1 else 0
    return numbers.rounded(arguments[0] or 0, max(-numbers.PLACES, places))


def _contains(arguments: list[Any]) -> bool:
    searched, sought = arguments[0], arguments[1] or ""
    return (
        sought in searched
        if isinstance(searched, list)
        else bool(sought) and sought.lower() in (searched or "").lower()
    )


def _days_between(arguments: list[Any]) -> int | None:
    first, last = arguments
    return None if first is None or last is None else (last - first).days * numbers.ONE


def _add_days(arguments: list[Any]) -> date | None:
    day, days = arguments[0], numbers.whole(arguments[1] or 0)
    if day is None:
        return None
    if not 1 <= day.toordinal() + days <= _LAST_DAY:
        raise NoValue
    moved: date = day + timedelta(days=days)
    return moved


def _add_months(arguments: list[Any]) -> date | None:
    day, months = arguments[0], numbers.whole(arguments[1] or 0)
    if day is None:
        return None
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not date.min.year <= year <= date.max.year:
        raise NoValue
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _number(arguments: list[Any]) -> int | None:
    return numbers.of_text(_trim(arguments))


def _trim(arguments: list[Any]) -> str:
    return _TRIMMED.sub("", arguments[0] or "")


def _format(arguments: list[Any]) -> str:
    value, pattern = arguments
    if value is None:
        return ""
    if isinstance(value, date):
        return paper.date_text(value.isoformat(), pattern, Account())
    return paper.number_text(Decimal(numbers.written(value)), pattern, Account())


FUNCTIONS: Mapping[str, Function] = {
    "if": Function("condition, value, otherwise", "The value when the condition holds, else the other.", _judge_if),
    "round": Function(
        "number, places", "Rounded half up, away from zero, to so many places (0 when not given).", _judge_round, _round
    ),
    "abs": Function("number", "Without its sign.", _takes("number", "number"), _reckon(abs)),
    "sum": Function("numbers", "All of them added; empty ones count as 0.", _several("number", "number"), _sum),
    "min": Function(
        "numbers or dates", "The least; empty ones are left out.", _several(None, "number", "date"), _extreme(min)
    ),
    "max": Function(
        "numbers or dates", "The greatest; empty ones are left out.", _several(None, "number", "date"), _extreme(max)
    ),
    "number": Function(
        "text", "The number that a text writes, with a point; else empty.", _takes("number", "text"), _number
    ),
    "date": Function('"YYYY-MM-DD"', "A day, written out.", _takes("date", "date")),
    "days_between": Function(
        "first, last",
        "The days from one date to the other, negative when the other is earlier; empty without both.",
        _takes("number", "date", "date"),
        _days_between,
    ),
    "add_days": Function(
        "date, days", "The date so many whole days later.", _takes("date", "date", "number"), _add_days
    ),
    "add_months": Function(
        "date, months",
        "The same day so many months later, or the last one of that month.",
        _takes("date", "date", "number"),
        _add_months,
    ),
    "concat": Function(
        "texts, numbers, dates, options",
        "One after the other: numbers with a point, dates as YYYY-MM-DD, options with commas.",
        _judge_concat,
        lambda arguments: _text("".join(map(text_of, arguments))),
    ),
    "format": Function(
        "number or date, pattern",
        "As fields are formatted: numbers by `usd`, `eur` and the like, dates by `DD/MM/YYYY` and the like, without names.",
        _judge_format,
        _format,
    ),
    "upper": Function(
        "text", "In capital letters.", _takes("text", "text"), lambda arguments: _text((arguments[0] or "").upper())
    ),
    "lower": Function(
        "text", "In small letters.", _takes("text", "text"), lambda arguments: _text((arguments[0] or "").lower())
    ),
    "trim": Function("text", "Without blanks around it.", _takes("text", "text"), _trim),
    "contains": Function(
        "text or options, text",
        "Whether the text is in the other, whatever its case, or one of the options that were chosen.",
        _judge_contains,
        _contains,
    ),
    "is_empty": Function(
        "anything",
        "Whether there is no value; also of a signature, a picture or a file, and of a box that is not ticked.",
        _judge_is_empty,
        lambda arguments: is_empty(arguments[0]),
    ),
    "options": Function(
        "texts", "Several options, as a field with several has them.", _several("options", "text"), list
    ),
}
"""By name, in the order of docs/formulas.md."""

_NUMBERS = _takes("number", "number", "number")
OPERATORS: Mapping[str, Function] = {
    "negative": Function(
        "-", "The same with the other sign.", _takes("number", "number"), _reckon(lambda value: -value)
    ),
    "+": Function("+", "", _NUMBERS, _reckon(lambda left, right: numbers.within(left + right))),
    "-": Function("-", "", _NUMBERS, _reckon(lambda left, right: numbers.within(left - right))),
    "*": Function("*", "", _NUMBERS, _reckon(numbers.times)),
    "/": Function("/", "", _NUMBERS, _reckon(numbers.divided)),
    "%": Function("%", "", _NUMBERS, _reckon(numbers.modulo)),
    "=": Function("=", "", _judge_equal, equal),
    "!=": Function("!=", "", _judge_equal, lambda arguments: not equal(arguments)),
    "<": Function("<", "", _judge_order, _ordered(lambda left, right: left < right)),
    "<=": Function("<=", "", _judge_order, _ordered(lambda left, right: left <= right)),
    ">": Function(">", "", _judge_order, _ordered(lambda left, right: left > right)),
    ">=": Function(">=", "", _judge_order, _ordered(lambda left, right: left >= right)),
    "and": Function("and", "", _takes("boolean", "boolean", "boolean")),
    "or": Function("or", "", _takes("boolean", "boolean", "boolean")),
    "not": Function("not", "", _takes("boolean", "boolean"), lambda arguments: not arguments[0]),
}

CALLS: Mapping[str, Function] = {**FUNCTIONS, **OPERATORS}
