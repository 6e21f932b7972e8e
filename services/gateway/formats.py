"""Texts with a form of their own: lists of e-mail addresses, points in time, time zones, locales, origins. Refused when wrong,
never 'corrected'."""

import re
from datetime import UTC, datetime
from functools import cache
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from babel import Locale, UnknownLocaleError

from contracts.formats.email_address import LONGEST, is_email
from contracts.languages.choosing import PSEUDO

_LONGEST_MOMENT = 50
_NAMED = re.compile(r"[^<>]*<([^<>]+)>")
_ZONE = re.compile(r"\s*(?:UTC|GMT|Z)$", re.IGNORECASE)
_LOCALE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}")
_NO_PLACES = frozenset(
    {"Factory", "localtime", "posixrules"}
)  # in the system's folder of zones, but unknown to browsers
_USUAL_PORTS = {("http", 80), ("https", 443)}
_LOST_PLUS = re.compile(r"(\d\d:\d\d(?::\d\d(?:\.\d+)?)?) (\d\d:?\d\d)$")


def is_email_list(text: str) -> bool:
    """Addresses separated by ``,`` or ``;``, each alone or as ``Name <address>``, on one line; blank is an empty list."""
    if len(text) > LONGEST or re.search(r"[\r\n\x00]", text):
        return False
    parts = [part.strip() for part in re.split("[,;]", text) if part.strip()]
    return all(is_email(match[1] if (match := _NAMED.fullmatch(part)) else part) for part in parts)


def parse_moment(text: str, time_zone: str = "UTC") -> datetime:
    """ISO 8601, also with a blank for the ``T`` or ``UTC`` at the end; without a zone it is in ``time_zone``. Raises
    ValueError.

    A ``+`` before the offset that became a blank, because somebody did not escape it in a URL, is put back. Of a time that
    clocks show twice the first is meant. What ``time_zone`` would move out of the calendar is UTC: 9999-12-31 stands for never.
    """
    if len(text) > _LONGEST_MOMENT:
        raise ValueError("too long")
    plain = _LOST_PLUS.sub(r"\1+\2", _ZONE.sub("+00:00", text.strip()))
    moment = datetime.fromisoformat(plain)
    if moment.tzinfo is None:
        try:
            return moment.replace(tzinfo=ZoneInfo(time_zone)).astimezone(UTC)
        except OverflowError:
            return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("out of range") from error


def is_moment(text: str) -> bool:
    """Does ``parse_moment`` take it?"""
    try:
        parse_moment(text)
    except ValueError:
        return False
    return True


def is_time_zone(text: str) -> bool:
    """A name of the IANA time zone database, such as ``Europe/Vienna``, as it is written there."""
    return text in _time_zones()


@cache
def _time_zones() -> frozenset[str]:
    return frozenset(available_timezones()) - _NO_PLACES


def is_locale(text: str) -> bool:
    """A language, with a script and a region where they matter, whose dates and numbers we can write: ``de-AT``."""
    try:
        parse_locale(text)
    except ValueError:
        return False
    return True


def parse_locale(text: str) -> str:
    """The locale as browsers write it: ``de-AT`` of ``de_at``. Raises ValueError when Unicode's CLDR does not know it."""
    if text == PSEUDO:
        return text
    if not _LOCALE.fullmatch(text):
        raise ValueError("not a locale")
    try:
        return str(Locale.parse(text.replace("-", "_"))).replace("_", "-")
    except UnknownLocaleError as error:
        raise ValueError("not a known locale") from error


def parse_origins(text: str) -> list[str]:
    """The origins in ``https://app.example.com http://localhost:3000``, each as browsers send it (RFC 6454, 6.2).

    Raises ValueError for anything that no browser would send, and that would never match: a path, a wildcard, capitals, the
    scheme's usual port.
    """
    origins = text.split()
    for origin in origins:
        parts = urlsplit(origin)
        whole = origin == f"{parts.scheme}://{parts.netloc}" and origin == origin.lower() and parts.hostname
        odd = {"*", "@", "%"} & set(origin) or not origin.isascii() or origin.endswith(":")
        if parts.scheme not in ("http", "https") or not whole or odd or (parts.scheme, parts.port) in _USUAL_PORTS:
            raise ValueError(f"{origin} must be an origin as browsers send it, such as https://app.example.com")
    return origins
