"""Placeholders in default values (peer facts 2.7): ``{{date}}``, ``{name}`` and so on, resolved when the party completes.

Only what the template or the API user wrote is ever resolved. What signers type stays as they typed it.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from contracts.fields.date_formats import has_time
from contracts.fields.rules import PLACEHOLDER
from contracts.fields.values import moment_text
from contracts.types import FieldDefinition, FieldType
from services.submissions.rules.values.formats import formatted_date


def has_placeholder(value: Any) -> bool:
    return isinstance(value, str) and PLACEHOLDER.search(value) is not None


def resolve(field: FieldDefinition, details: Mapping[str, Any], at: datetime, time_zone: str) -> Any:
    """The field's default value at the moment ``at``. ``details``: ``id`` of the submission, ``role``, ``name``, ``email``,
    ``phone`` of the party; what is missing is left out."""
    value = field.default_value
    if not has_placeholder(value):
        return value
    local = at.astimezone(zone(time_zone))
    if field.type is FieldType.DATE:
        if not re.search(r"date", value):
            return None
        return moment_text(at) if has_time(field.preferences.get("format")) else local.date().isoformat()
    words = {
        "date": formatted_date(local.date(), field.preferences.get("format")),
        "time": f"{local:%H:%M}",
        "hour": f"{local:%H}",
        "minute": f"{local:%M}",
        "day": f"{local:%d}",
        "month": f"{local:%m}",
        "year": f"{local:%Y}",
        **{key: str(word) for key, word in details.items() if word is not None},
    }
    return PLACEHOLDER.sub(lambda match: words.get(match[1], ""), value)


def with_person(text: str, details: Mapping[str, Any]) -> str:
    """``text`` with what ``details`` say of the party in place of its placeholders. Those of date and time stay: they are those
    of the moment of completing."""

    def word(match: re.Match[str]) -> str:
        return match[0] if match[1] not in details else "" if details[match[1]] is None else str(details[match[1]])

    return PLACEHOLDER.sub(word, text)


def zone(name: str) -> ZoneInfo:
    """The time zone, UTC when nobody knows that name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")
