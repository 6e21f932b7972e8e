"""Choose the language that a reader gets, of those that there are messages in (RFC 4647, lookup)."""

from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

from babel import Locale, UnknownLocaleError
from babel.core import get_global

SOURCE = "en"
"""Every message is written in it first; what another language lacks is said in it."""

PSEUDO = "qps"
"""The language of nobody: English with every message between marks, so that a sentence that is in no file stands out."""

MESSAGES = Path(__file__).parent / "messages"

_LONGEST_TAG = 35
_MOST_WANTED = 20
_LENGTH_OF_SCRIPT = 4


@cache
def languages() -> tuple[str, ...]:
    """Return the languages that there are messages in, as BCP 47 tags: English, then the others."""
    tags = (folder.name for folder in MESSAGES.iterdir() if folder.is_dir())
    return tuple(sorted(tags, key=lambda tag: (tag != SOURCE, tag)))


def best_of(preferred_tags: Iterable[str | None]) -> str | None:
    """Return the language for the first of the ``preferred_tags`` tags that there is one for.

    A tag stands for its language in its usual script: ``pt-BR`` gets ``pt``, ``zh-TW`` gets ``zh-Hant``.
    """
    tags = [tag for tag in preferred_tags if tag][:_MOST_WANTED]
    return next((language for tag in tags if (language := _language_for(tag)) is not None), None)


def known_locale(tag: str) -> Locale | None:
    """Return CLDR's locale of that tag, or of the longest part of it that is one; None when CLDR knows none."""
    parts = tag.replace("_", "-").split("-") if len(tag) <= _LONGEST_TAG else []
    while parts:
        try:
            return Locale.parse("-".join(parts), sep="-")
        except (UnknownLocaleError, ValueError, TypeError):
            parts.pop()
    return None


def locale_for(language: str, preferred_tags: Iterable[str | None] = ()) -> Locale:
    """Return the locale in which dates and numbers stand among words of that language: its variety that is wanted."""
    for tag in preferred_tags:
        locale = known_locale(tag) if tag else None
        if locale is not None and _language_for(str(locale).replace("_", "-")) == language:
            return locale
    return Locale.parse("en_GB" if language in (SOURCE, PSEUDO) else language, sep="-" if "-" in language else "_")


@lru_cache(maxsize=1000)
def _language_for(tag: str) -> str | None:
    if tag.split("-")[0].lower() == PSEUDO:
        return PSEUDO
    locale = known_locale(tag)
    if locale is None:
        return None
    script = _written_script(tag) or locale.script or _usual_script(locale)
    for candidate in (f"{locale.language}-{script}", locale.language if script == _usual_script(locale) else ""):
        if candidate in languages():
            return candidate
    return None


def _written_script(tag: str) -> str | None:
    """Return the script that the tag itself names: Babel reads ``zh-Hant-CN`` as what most people in China read."""
    return next((part.title() for part in tag.split("-")[1:2] if len(part) == _LENGTH_OF_SCRIPT), None)


def _usual_script(locale: Locale) -> str | None:
    """Return the script in which most of its readers read the language. Where a territory has another, Babel's locale says so.

    The locale that CLDR takes for the likely one need not be known to Babel: of ``no`` it is ``no_Latn_NO``.
    """
    likely: str = get_global("likely_subtags").get(locale.language, "")
    return next((part for part in likely.split("_") if len(part) == _LENGTH_OF_SCRIPT), None)
