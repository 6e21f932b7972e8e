"""What a value reads like on paper, for the signing page and the API."""

from datetime import date
from typing import Any

from contracts.fields import paper
from contracts.fields.kinds import WITH_TEXT
from contracts.types import Account, FieldDefinition, FieldType


def display(field: FieldDefinition, value: Any, locale: str = "en-US", time_zone: str = "UTC") -> str | None:
    """The text that is drawn for ``value``, as ``contracts.fields.paper`` says; None for what is no text. The zone is for
    moments."""
    if field.type is FieldType.PAYMENT:
        return paper.payment_text(field, None, Account(locale=locale)) or None
    if value is None or isinstance(value, bool) or field.type not in WITH_TEXT:
        return None
    return paper.display(field, value, Account(locale=locale, time_zone=time_zone))


def is_masked(field: FieldDefinition) -> bool:
    """The value is a text that is shown in part or not at all, to everybody but the API users who may change it."""
    return bool(field.preferences.get("mask")) and field.type in WITH_TEXT


def formatted_date(day: date, pattern: str | None, locale: str = "en-US") -> str:
    """``pattern`` as in ``DD/MM/YYYY``; the default is MM/DD/YYYY (specification 2.7). ``[...]`` is taken literally."""
    return paper.date_text(day.isoformat(), pattern, Account(locale=locale))
