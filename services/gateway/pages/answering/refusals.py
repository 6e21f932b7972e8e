"""Say to a signer, in their language, why something was refused.

Services refuse in English, which is what programs read and what older versions say. Here, where a person reads it, the
sentence is recognised by the English messages of the section ``refusal``. What is none of them, such as the words that a
sender wrote for a field, stays as it is.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from contracts.languages.choosing import SOURCE
from contracts.languages.saying import Section, messages

SECTION = "refusal"
_LONGEST = 2_000


def in_language(text: str, section: Section) -> str | None:
    """Return the refusal in the section's language; None when it is not one of ours."""
    for key, pattern in _patterns():
        if len(text) <= _LONGEST and (match := pattern.fullmatch(text)):
            return section(key, **_with_kind_named(match.groupdict(), section))
    return None


def _with_kind_named(values: dict[str, str], section: Section) -> dict[str, str]:
    """Return what is filled in, with the kind of a field as people call it."""
    if "kind" not in values:
        return values
    return {**values, "kind": section.spoken.section("page").of_kind(values["kind"], 1)}


def translated(message: str, details: Sequence[dict[str, Any]], section: Section) -> tuple[str, list[dict[str, Any]]]:
    """Return the message and the reasons of its details for a reader. Reasons of one word are for the page's script."""
    if section.language == SOURCE:
        return message, list(details)
    translated_details = [{**detail, **_reason(detail.get("reason"), section)} for detail in details]
    whole = in_language(message, section)
    before = str(details[0].get("reason") or "") if details else ""
    plain = message if message.endswith(before) else message.removesuffix(".")
    if whole is None and before and plain.endswith(f" {before}"):
        field = plain.removesuffix(f" {before}")
        whole = section("field.with", field=field, reason=translated_details[0]["reason"])
    return whole or message, translated_details


def _reason(reason: object, section: Section) -> dict[str, str]:
    translation = in_language(reason, section) if isinstance(reason, str) and " " in reason else None
    return {"reason": translation} if translation else {}


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """The English sentences as patterns; the longest first, so that the one that says most is found."""
    sentences = {key: text for key, text in messages(SOURCE, SECTION).items() if isinstance(text, str)}
    longest_first = sorted(sentences.items(), key=lambda key_and_text: -len(key_and_text[1]))
    return [(key, _pattern(text)) for key, text in longest_first if key != "field.with"]


def _pattern(text: str) -> re.Pattern[str]:
    pieces = re.split(r"\{(\w+)\}", text)
    return re.compile("".join(f"(?P<{piece}>.+?)" if at % 2 else re.escape(piece) for at, piece in enumerate(pieces)))
