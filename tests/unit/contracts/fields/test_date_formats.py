"""Formats of dates: what is one, and dates as people write them."""

from datetime import date
from typing import Any

import pytest

from contracts.fields.date_formats import has_time, is_date_format, parsed_date


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("DD/MM/YYYY", True),
        ("D. MMMM YYYY", True),
        ("[-] D", True),
        ("[Day] D", False),
        ("[only words]", False),
        ("HH:mm:ss z", True),
        ("YYYY" + "-" * 46, True),
        ("YYYY" + "-" * 47, False),
        ("DD of MM", False),
        ("DD/MM/2026", False),
        ("--", False),
        ("", False),
    ],
)
def test_what_is_a_format(text: str, is_one: bool) -> None:
    assert is_date_format(text) is is_one


@pytest.mark.parametrize(
    ("format_", "timed"),
    [
        *(("DD " + token, True) for token in ("HH", "H", "hh", "h", "mm", "m", "ss", "s", "A", "a", "z")),
        *((token, False) for token in ("YYYY", "YY", "MMMM", "MMM", "MM", "M", "DD", "D", "[at HH]", "", None, 5)),
    ],
)
def test_a_format_with_a_part_of_the_day_has_a_time(format_: Any, timed: bool) -> None:
    assert has_time(format_) is timed


@pytest.mark.parametrize(
    ("text", "format_", "day"),
    [
        ("04.03.2026", "DD.MM.YYYY", date(2026, 3, 4)),
        ("4.3.2026", "DD.MM.YYYY", date(2026, 3, 4)),
        (" 03/04/2026 ", None, date(2026, 3, 4)),
        ("03/04/2026", "", date(2026, 3, 4)),
        ("4 march 2026", "D MMM YYYY", date(2026, 3, 4)),
        ("Dec 31, 26", "MMMM D, YY", date(2026, 12, 31)),
        ("jan 1, 00", "MMM D, YY", date(2000, 1, 1)),
        ("31.12.99", "DD.MM.YY", date(2099, 12, 31)),
        ("0100-01-02", "YYYY-MM-DD", date(100, 1, 2)),
        ("(4/3/2026)", "(D/M/YYYY)", date(2026, 3, 4)),
        ("4/3/2026", "(D/M/YYYY)", None),
        ("11/2026", "MM/YYYY", date(2026, 11, 1)),
        ("Day 4 of 3, 2026", "[Day] D [of] M, YYYY", date(2026, 3, 4)),
        ("[Day] 4/3/2026", "[Day] D/M/YYYY", None),
        ("4/3/2026 at 10:30 PM", "D/M/YYYY [at] h:mm A", date(2026, 3, 4)),
        ("4/3/2026 10:30:05 PM", "D/M/YYYY h:mm:ss A", date(2026, 3, 4)),
        ("4/3/2026 again 7", "D/M/YYYY", None),
        ("2026 4/3/2026", "YYYY D/M/YYYY", None),
        ("4 Foo 2026", "D MMM YYYY", None),
        ("31/02/2026", "DD/MM/YYYY", None),
        ("4/13/2026", "D/M/YYYY", None),
        ("4/2026", "D/YYYY", None),
        ("4/3", "D/M", None),
        ("4/3/2026x", "D/M/YYYY", None),
        ("\u0664/3/2026", "D/M/YYYY", None),
    ],
)
def test_dates_as_people_write_them(text: str, format_: str | None, day: date | None) -> None:
    assert parsed_date(text, format_) == day
