"""Write dates, times and lists of names as the reader's language does (CLDR)."""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from babel import Locale
from babel.dates import format_date, format_time, get_datetime_format
from babel.lists import format_list

from contracts.languages.choosing import PSEUDO
from contracts.languages.saying import Language


def moment(when: datetime, locale: Locale, time_zone: str) -> str:
    """Write a date and time as people do, always with its zone."""
    local = when.astimezone(zone_of(time_zone))
    time = f"{format_time(local, 'short', locale=locale)} {local:%Z}"
    pattern = str(get_datetime_format("medium", locale=locale))
    return pattern.format(time, format_date(local, "long", locale=locale))


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone of that name, or UTC."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def listed(items: Sequence[str], language: Language) -> str:
    """Write ``Ann, Bob and Cy``."""
    return str(format_list(list(items), locale=language.locale)) if items else ""


def name_of(tag: str) -> str:
    """Name a language in itself: ``Deutsch``, ``繁體中文``."""
    if tag == PSEUDO:
        return "⟦qps⟧"
    locale = Locale.parse(tag, sep="-")
    name = str(locale.get_language_name(locale) or tag)
    if locale.script:
        name = _NAMES.get(tag) or f"{name} ({locale.get_script_name(locale)})"
    return name[0].upper() + name[1:]


_NAMES = {"zh-Hans": "简体中文", "zh-Hant": "繁體中文"}
