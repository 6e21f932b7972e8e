"""How values read."""

from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.fields.paper import babel_locale, display, page_footer, printed_time
from contracts.types import Account, FieldDefinition, FieldType

AMERICAN = Account(locale="en-US", time_zone="America/New_York")
POLISH = Account(locale="pl-PL", time_zone="Europe/Warsaw")


def field(type_: str, options: list[str] | None = None, **preferences: Any) -> FieldDefinition:
    return FieldDefinition(
        uuid="f", submitter_uuid="s", role="r", type=FieldType(type_), options=options or [], preferences=preferences
    )


@pytest.mark.parametrize(
    ("value", "format_", "account", "expected"),
    [
        ("2026-03-05", None, AMERICAN, "03/05/2026"),
        ("2026-03-05", None, POLISH, "03/05/2026"),
        ("2026-03-05", "DD/MM/YYYY", AMERICAN, "05/03/2026"),
        ("2026-03-05", "D.M.YY", AMERICAN, "5.3.26"),
        ("2026-03-05", "MMM D, YYYY", AMERICAN, "Mar 5, 2026"),
        ("2026-03-05", "D MMMM YYYY", POLISH, "5 marca 2026"),
        ("2026-03-05", "YYYY-MM-DD", AMERICAN, "2026-03-05"),
        ("2026-03-05", "[Day] D", AMERICAN, "Day 5"),
        ("2026-03", "MM/YYYY", AMERICAN, "03/2026"),
        ("2026-03-05T23:07:09.000Z", "DD/MM/YYYY HH:mm:ss z", POLISH, "06/03/2026 00:07:09 CET"),
        ("2026-07-05T23:07:09Z", "MM/DD/YYYY hh:mm A z", AMERICAN, "07/05/2026 07:07 PM EDT"),
        ("2026-07-05T16:00:00Z", "h:m a", AMERICAN, "12:0 pm"),
        ("2026-07-05T04:05:06Z", "YY/M/D H:m:s hh:mm:ss a", AMERICAN, "26/7/5 0:5:6 12:05:06 am"),
        ("2026-07-05T16:05:06Z", "H h A", AMERICAN, "12 12 PM"),
        ("2026-07-05T15:05:06Z", "H h A", AMERICAN, "11 11 AM"),
        ("2026-07-05T17:05:06Z", "H h A", AMERICAN, "13 1 PM"),
        ("0099-07-05", "YYYY YY", AMERICAN, "0099 99"),
        ("2026-07-05T10:00:00", "HH:mm z", AMERICAN, "10:00 EDT"),
        ("2026-07-05", "HH:mm z", AMERICAN, "00:00 EDT"),
        ("2026-07-05", "z", Account(time_zone="Asia/Kathmandu"), "UTC+5:45"),
        ("2026-07-05", "z", Account(time_zone="America/St_Johns"), "NDT"),
        ("2026-07-05", "z", Account(time_zone="Pacific/Marquesas"), "UTC-9:30"),
        ("2026-07-05", "z", Account(time_zone="No/Where"), "UTC"),
        ("2026-07-05", "z", Account(time_zone="Atlantic/Azores"), "UTC+0"),
        ("2026-03-05", "MMM D, YYYY", POLISH, "mar 5, 2026"),
        ("2026-03-05", "MMMM", Account(locale="xx-nonsense"), "March"),
        ("2026-02-30", None, AMERICAN, "2026-02-30"),
        ("next week", "DD/MM/YYYY", AMERICAN, "next week"),
    ],
)
def test_dates(value: str, format_: str | None, account: Account, expected: str) -> None:
    preferences: dict[str, Any] = {"format": format_} if format_ else {}
    assert display(field("date", **preferences), value, account) == expected


@pytest.mark.parametrize(
    ("value", "format_", "expected"),
    [
        (1234.5, "usd", "$1,234.50"),
        (-1234567.891, "usd", "-$1,234,567.89"),
        (0.005, "usd", "$0.01"),
        (-0.001, "usd", "$0.00"),
        (1234.5, "gbp", "£1,234.50"),
        (1234.5, "eur", "1\u00a0234,50\u00a0€"),
        (1234.5, "cad", "CA$1,234.50"),
        (1234.5, "comma", "1,234.5"),
        (1234.5, "dot", "1.234,5"),
        (1234.5, "space", "1\u00a0234,5"),
        (5, "percent", "5%"),
        (5.5, "percent_space", "5,5\u00a0%"),
        (1234.5, None, "1234.5"),
        (7, None, "7"),
        (7.0, None, "7"),
        (100, None, "100"),
        (0, "usd", "$0.00"),
        (0, None, "0"),
        ("12.50", "usd", "$12.50"),
        ("about ten", "usd", "about ten"),
        ("1e999999", None, "1e999999"),
        (1234.5, "unknown", "1234.5"),
        (1234.5, "abc", "1234.5"),
        (1234.5, "EUR", "1\u00a0234,50\u00a0€"),
        (-1234.5, "eur", "-1\u00a0234,50\u00a0€"),
        (-0.5, "percent_space", "-0,5\u00a0%"),
        (-0.004, "gbp", "£0.00"),
        (-5, None, "-5"),
        (0.005, "gbp", "£0.01"),
        (1.005, "comma", "1.005"),
        (1000000, "space", "1\u00a0000\u00a0000"),
        (999, "comma", "999"),
        (" 7 ", None, "7"),
        ("0.50", None, "0.5"),
        ("5.00", "comma", "5"),
        ("0.000", None, "0"),
        ("1e24", None, "1" + "0" * 24),
        ("1e25", None, "1e25"),
        ("1e-24", None, "0." + "0" * 23 + "1"),
        ("1e-25", None, "1e-25"),
        ("NaN", "usd", "NaN"),
        ("Infinity", None, "Infinity"),
    ],
)
def test_numbers(value: Any, format_: str | None, expected: str) -> None:
    preferences: dict[str, Any] = {"format": format_} if format_ else {}
    assert display(field("number", **preferences), value, AMERICAN) == expected


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (True, "+XX XXX-XXX"),
        ("true", "+XX XXX-XXX"),
        (3, "+48 XXX-XXX"),
        ("3", "+48 XXX-XXX"),
        (-4, "+XX XXX-456"),
        (50, "+48 123-456"),
        (False, "+48 123-456"),
        (None, "+48 123-456"),
        (0, "+48 123-456"),
        ("false", "+48 123-456"),
        (" TRUE ", "+XX XXX-XXX"),
        (" -4 ", "+XX XXX-456"),
        ("+3", "+48 XXX-XXX"),
        ("0", "+48 123-456"),
        ("1234567", "+48 123-456"),
        (2.9, "+4X XXX-XXX"),
        (1, "+XX XXX-XXX"),
        (-1, "+XX XXX-XX6"),
        ([3], "+48 123-456"),
    ],
)
def test_masks(mask: Any, expected: str) -> None:
    assert display(field("phone", mask=mask), "+48 123-456", AMERICAN) == expected


def test_a_mask_hides_the_formatted_value() -> None:
    assert display(field("date", mask=True), "2026-03-05", AMERICAN) == "XXXXXXXXXX"
    masks = (1, -1, "true", True, 0.5, 2, -2)
    shown = [display(field("text", mask=mask), "AB", AMERICAN) for mask in masks]
    assert shown == ["AX", "XB", "XX", "XX", "AB", "AB", "AB"]
    assert display(field("text", mask=True), "Ana, (ok)? [x]_y.", AMERICAN) == "XXX, (XX)? [X]_X."


@pytest.mark.parametrize(
    ("definition", "value", "expected"),
    [
        (field("text"), "Ana", "Ana"),
        (field("text"), None, ""),
        (field("text"), "", ""),
        (field("select", ["A", "B"]), "B", "B"),
        (field("radio", ["A", "B"]), "A", "A"),
        (field("radio", ["A", "", "C"]), "C", "C"),
        (field("multiple", ["A", "B", "C"]), ["A", "C"], "A, C"),
        (field("multiple", ["A", ""]), ["A", ""], "A, Option 2"),
        (field("multiple", ["A"]), [], ""),
        (field("checkbox"), True, "✔"),
        (field("checkbox"), False, ""),
        (field("checkbox"), None, ""),
        (field("cells"), "PL123", "PL123"),
        (field("verification"), "anything", "Verified"),
        (field("payment", currency="GBP"), 25, "£25.00"),
        (field("payment"), "Paid", "Paid"),
        (field("payment"), 25, "$25.00"),
        (field("payment", price=9.5, currency="EUR"), None, "9,50\u00a0€"),
        (field("payment", price=9.5), "", "$9.50"),
        (field("payment", price=9.5), 0, "$0.00"),
        (field("payment"), None, ""),
        (field("payment"), True, "True"),
        (field("payment"), "", ""),
        (field("checkbox"), "true", "✔"),
        (field("checkbox"), "1", "✔"),
        (field("checkbox"), "no", ""),
        (field("checkbox"), 1, "✔"),
        (field("checkbox"), 2, ""),
        (field("number"), [], ""),
        (field("text"), ["A", 1], "A, 1"),
        (field("text"), 0, "0"),
        (field("select", ["A", ""]), "", ""),
        (field("select", ["A", ""]), ["", "A"], "Option 2, A"),
        (field("radio", ["A"]), [""], ""),
        (field("number", mask=2), 1234, "12XX"),
        (field("stamp"), "an-uuid", ""),
        (field("image"), "an-uuid", ""),
        (field("signature"), "an-uuid", ""),
        (field("file"), ["an-uuid"], ""),
        (field("strikethrough"), None, ""),
        (field("dutystamp"), None, ""),
    ],
)
def test_other_types(definition: FieldDefinition, value: Any, expected: str) -> None:
    assert display(definition, value, AMERICAN) == expected


def test_a_locale_that_nobody_knows_is_english() -> None:
    assert [str(babel_locale(name)) for name in ("xx-nonsense", "", "de_AT", "pl-PL")] == [
        "en_US",
        "en_US",
        "de_AT",
        "pl_PL",
    ]


def test_a_heading_shows_its_default_value() -> None:
    heading = field("heading")
    heading.default_value = "Section 1"
    assert display(heading, None, AMERICAN) == "Section 1"
    assert display(heading, "", AMERICAN) == "Section 1"
    assert display(heading, "Other", AMERICAN) == "Other"
    assert display(field("heading"), None, AMERICAN) == ""


def test_the_line_at_the_foot_of_each_page() -> None:
    """The MD5 of RFC 1321's own example."""
    wanted = Account(with_signature_id=True)
    assert page_footer(wanted, "abc") == "Document ID: 900150983CD24FB0D6963F7D28E17F72"
    assert page_footer(wanted, "") == page_footer(Account(), "abc") == ""


@pytest.mark.parametrize(
    ("zone", "locale", "expected"),
    [
        ("Europe/Vienna", "en-US", "Nov 21, 2026, 2:05:07\u00a0PM CET"),
        ("America/Sao_Paulo", "en-US", "Nov 21, 2026, 10:05:07\u00a0AM UTC-3"),
        ("Asia/Kathmandu", "en-US", "Nov 21, 2026, 6:50:07\u00a0PM UTC+5:45"),
        ("Mars/Olympus", "xx-nonsense", "Nov 21, 2026, 1:05:07\u00a0PM UTC"),
        ("Europe/Warsaw", "pl-PL", "21 lis 2026, 14:05:07 CET"),
    ],
)
def test_printed_times_have_their_zone(zone: str, locale: str, expected: str) -> None:
    assert printed_time(datetime(2026, 11, 21, 13, 5, 7, tzinfo=UTC), zone, locale) == expected
