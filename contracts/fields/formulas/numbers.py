"""Exact decimal numbers, as whole numbers of the smallest part: 0.1 + 0.2 is 0.3, here and in the browser, which reckons in
the same way (``pages/static/form/values/exact.js``).

Every number has at most ``PLACES`` digits before and behind the point. What has more behind it is rounded half up, away from
zero; what has more before it is no number any more (NoValue).
"""

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

PLACES = 20
ONE: int = 10**PLACES
_LIMIT: int = 10 ** (2 * PLACES)
_NUMBER = re.compile(r"([+-]?)(\d{1,20})(?:\.(\d{1,40}))?", re.ASCII)
_CONTEXT = Context(prec=100, rounding=ROUND_HALF_UP)
"""Digits: enough for any double and for what is rounded off it."""


class NoValue(ArithmeticError):
    """What is asked for cannot be computed: a division by zero, a number or a day or a text beyond what there may be."""


def of_value(value: int | float) -> int:
    """Return the number that a stored value is, as people read it: 0.1, not the double nearest to it. Raises NoValue."""
    exact = Decimal(str(value))
    if not exact.is_finite() or exact.adjusted() >= PLACES:
        raise NoValue
    return int(_CONTEXT.quantize(_CONTEXT.multiply(exact, Decimal(ONE)), Decimal(1)))


def of_text(text: str) -> int | None:
    """Return the number that ``text`` writes, with a point; None when it writes none."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    sign, whole, fraction = match[1], match[2], match[3] or ""
    digits = int(whole) * ONE + _divided_half_up(int(fraction or 0) * ONE, 10 ** len(fraction))
    return within(-digits if sign == "-" else digits)


def to_value(number: int) -> int | float:
    """Return the number as fields store it: a whole one, or the nearest double."""
    nearest = float(written(number))
    return number // ONE if number % ONE == 0 else int(nearest) if nearest.is_integer() else nearest


def written(number: int) -> str:
    """Write a number out: without exponent, separators and idle zeros."""
    whole, fraction = divmod(abs(number), ONE)
    digits = f"{fraction:0{PLACES}}".rstrip("0")
    return f"{'-' if number < 0 else ''}{whole}{f'.{digits}' if digits else ''}"


def within(number: int) -> int:
    """Return the number. Raises NoValue when it has too many digits."""
    if abs(number) >= _LIMIT:
        raise NoValue
    return number


def times(left: int, right: int) -> int:
    """Multiply."""
    return within(_divided_half_up(left * right, ONE))


def divided(left: int, right: int) -> int:
    """Divide. Raises NoValue for a division by zero."""
    if right == 0:
        raise NoValue
    return within(_divided_half_up(left * ONE, right))


def modulo(left: int, right: int) -> int:
    """Return what a division leaves; it has the sign of the divisor. Raises NoValue for a division by zero."""
    if right == 0:
        raise NoValue
    return left % right


def rounded(number: int, places: int) -> int:
    """Round half up, away from zero, to so many places behind the point; before it, when ``places`` is negative."""
    if places >= PLACES:
        return number
    step: int = 10 ** (PLACES - places)
    return within(_divided_half_up(number, step) * step)


def whole(number: int) -> int:
    """Return the whole part, as an ordinary int: -1 of -1.5."""
    return abs(number) // ONE * (-1 if number < 0 else 1)


def _divided_half_up(left: int, right: int) -> int:
    size = (2 * abs(left) + abs(right)) // (2 * abs(right))
    return -size if (left < 0) != (right < 0) else size


def is_number(value: Any) -> bool:
    """Return whether a stored value is a number; booleans are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)
