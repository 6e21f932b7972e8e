"""The details that a visitor of a shared link is asked for: the page asks, and the submissions service has the last word."""

from collections.abc import Mapping
from typing import Any

LINK_FORM_FIELDS = ("email", "name", "phone")
"""The details that a shared link may ask its visitor for, in the order in which it does."""


def required_contact(preferences: Mapping[str, Any]) -> list[str]:
    """Those of ``LINK_FORM_FIELDS`` that a template with these preferences asks for."""
    fields = set(preferences.get("link_form_fields") or ["email"])
    if preferences.get("shared_link_2fa") or preferences.get("require_email_2fa"):
        fields.add("email")
    if preferences.get("require_phone_2fa"):
        fields.add("phone")
    return [name for name in LINK_FORM_FIELDS if name in fields]
