"""Addresses, URLs and points in time: taken or refused, never corrected."""

from datetime import UTC, datetime

import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import given
from hypothesis import strategies as st

from contracts.formats.email_address import is_email
from contracts.formats.web_url import is_web_url
from services.gateway import formats


@pytest.mark.parametrize(
    "address",
    [
        "ana@example.com",
        " ana@example.com ",
        "a+b.c-d@sub.example.co",
        "zoë@exämple.de",
        "x@a.test",
        "o'neil@example.com",
    ],
)
def test_addresses(address: str) -> None:
    assert is_email(address)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ana",
        "ana@",
        "@example.com",
        "ana@example",
        "ana@localhost",
        "ana@-example.com",
        "ana@example-.com",
        "ana@exa_mple.com",
        "a..b@example.com",
        ".a@example.com",
        "a.@example.com",
        "a b@example.com",
        "a@b@example.com",
        "ana@example.com, bob@example.com",
        "Ana <ana@example.com>",
        "ana@example.com\r\nBcc: x@example.com",
        "ana@127.0.0.1",
        "a@" + "b" * 64 + ".com",
        "a@" + ".".join(["b" * 60] * 5) + ".com",
        "ana@example.invalid",
        "ana@example.123",
    ],
)
def test_what_is_no_address(text: str) -> None:
    assert not is_email(text)


@given(st.from_regex(r"[A-Za-z0-9_+.-]{1,66}@[A-Za-z0-9_.-]{1,66}\.[A-Za-z0-9]{1,9}", fullmatch=True))
def test_the_short_cut_takes_nothing_that_the_validator_refuses(text: str) -> None:
    if is_email(text):
        try:
            validate_email(text, check_deliverability=False, globally_deliverable=False)
        except EmailNotValidError as error:
            raise AssertionError(text) from error


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("a@example.com", True),
        ("a@example.com, b@example.com;c@example.com", True),
        ("Ana <a@example.com>", True),
        ("Ana", False),
        ("Ana <a>", False),
        ("a@example.com\nb@example.com", False),
        ("a@example.com,\r\nb@example.com", False),
        ("a@example.com\x00", False),
    ],
)
def test_lists_of_addresses(text: str, holds: bool) -> None:
    assert formats.is_email_list(text) is holds


def test_lists_of_addresses_and_moments_end_somewhere() -> None:
    for longest, check, text in (
        (5_000, formats.is_email_list, "a@example.com,"),
        (50, formats.is_moment, "2026-03-04"),
    ):
        assert check(text.ljust(longest))
        assert not check(text.ljust(longest + 1))


@pytest.mark.parametrize(
    ("text", "locale"),
    [("de", "de"), ("de-AT", "de-AT"), ("de_at", "de-AT"), ("EN-us", "en-US"), ("zh-Hant-TW", "zh-Hant-TW")],
)
def test_locales_are_written_as_browsers_write_them(text: str, locale: str) -> None:
    assert formats.is_locale(text)
    assert formats.parse_locale(text) == locale


@pytest.mark.parametrize("text", ["", "german", "xx", "de-XX1", "de_DE.UTF-8", "de@euro", "de-AT\n", "-"])
def test_what_no_browser_calls_a_locale(text: str) -> None:
    assert not formats.is_locale(text)


@pytest.mark.parametrize(
    ("url", "holds"),
    [
        ("https://example.com", True),
        ("HTTP://Example.com:8080/a?b#c", True),
        ("http://[::1]/", True),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("//example.com", False),
        ("https:///path", False),
        ("https://example.com:port/", False),
        ("https://example.com/\r\nX: y", False),
        ("https://example.com/<b>", False),
        ("https://[", False),
        ("", False),
    ],
)
def test_web_addresses(url: str, holds: bool) -> None:
    assert is_web_url(url) is holds


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-04T05:06:07Z", datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)),
        ("2026-03-04T05:06:07.089+02:00", datetime(2026, 3, 4, 3, 6, 7, 89000, tzinfo=UTC)),
        ("2026-03-04T05:06:07 02:00", datetime(2026, 3, 4, 3, 6, 7, tzinfo=UTC)),
        ("2026-03-04 05:06:07 UTC", datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)),
        ("2026-03-04", datetime(2026, 3, 4, tzinfo=UTC)),
        ("2026-03-04T05:06", datetime(2026, 3, 4, 5, 6, tzinfo=UTC)),
    ],
)
def test_points_in_time(text: str, moment: datetime) -> None:
    assert formats.is_moment(text)
    assert formats.parse_moment(text) == moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2027-07-01 10:00", datetime(2027, 7, 1, 14, tzinfo=UTC)),
        ("2027-01-01", datetime(2027, 1, 1, 5, tzinfo=UTC)),
        ("2027-07-01T10:00:00Z", datetime(2027, 7, 1, 10, tzinfo=UTC)),
        ("2027-07-01 10:00:00 UTC", datetime(2027, 7, 1, 10, tzinfo=UTC)),
        ("2027-07-01T10:00:00+02:00", datetime(2027, 7, 1, 8, tzinfo=UTC)),
        ("2027-11-07 01:30", datetime(2027, 11, 7, 5, 30, tzinfo=UTC)),  # twice: the first of them
        ("2027-03-14 02:30", datetime(2027, 3, 14, 7, 30, tzinfo=UTC)),  # never: the clocks are put forward
        ("9999-12-31T23:00", datetime(9999, 12, 31, 23, tzinfo=UTC)),
    ],
)
def test_points_in_time_of_a_zone(text: str, moment: datetime) -> None:
    assert formats.is_moment(text)
    assert formats.parse_moment(text, "America/New_York") == moment


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "1772600767", "2026-13-01", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00+12:00"]
)
def test_no_points_in_time(text: str) -> None:
    assert not formats.is_moment(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026" + " " * 200_000 + "x",
        "2" * 200_000,
        "a" * 2_000_000,
        "a.b@" * 200_000,
        "<" * 200_000,
        "http://" + "a" * 2_000_000,
    ],
)
def test_a_long_text_is_refused_at_once(text: str) -> None:
    """Blanks in the middle of a date took minutes, in which the gateway answered nobody."""
    for check in (formats.is_moment, is_email, formats.is_email_list, is_web_url):
        assert not check(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://app.example.com",
        " https://app.example.com\thttp://localhost:3000\nhttps://xn--bcher-kva.example:8443 ",
        "http://[::1]:8080 http://127.0.0.1:5173 http://a.example:443 https://a.example:80",
    ],
)
def test_origins_as_browsers_send_them(text: str) -> None:
    assert formats.parse_origins(text) == text.split()


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "https://*.example.com",
        "null",
        "app.example.com",
        "//app.example.com",
        "https://app.example.com/",
        "https://app.example.com/path",
        "https://app.example.com?x",
        "https://App.example.com",
        "HTTPS://app.example.com",
        "https://user@app.example.com",
        "https://app.example.com:443",
        "http://app.example.com:80",
        "https://app.example.com:",
        "https://app.example.com:99999",
        "https://bücher.example",
        "https://a%2eb.example",
        "https://",
        "ftp://app.example.com",
        "https://[::1",
    ],
)
def test_what_no_browser_sends_is_no_origin(origin: str) -> None:
    with pytest.raises(ValueError, match=r"origin|Invalid|Port"):
        formats.parse_origins(f"https://good.example {origin}")
