"""What PUT /templates/:id may say in ``preferences``: how a shared link is used (specification 2.8, peer facts 6.4)."""

from collections.abc import Mapping
from typing import Any

from contracts.types import LINK_FORM_FIELDS
from services.templates.problems import Problems

_FLAGS = ("shared_link_2fa", "require_email_2fa", "require_phone_2fa")
_FORM_FIELDS = "link_form_fields"


def merged(present: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """``present`` with what is given; None takes a preference away. Raises ServiceError naming what is wrong."""
    problems = Problems()
    changes: dict[str, Any] = {}
    for name in (*_FLAGS, _FORM_FIELDS):
        if name not in given:
            continue
        value = given[name]
        if value is not None and name in _FLAGS and not isinstance(value, bool):
            problems.add(f"preferences.{name}", "must be true or false")
        elif value is not None and name == _FORM_FIELDS and not _are_fields(value):
            problems.add(f"preferences.{name}", f"must be a list of {', '.join(LINK_FORM_FIELDS)}, each once")
        else:
            changes[name] = value
    problems.refuse()
    return {name: value for name, value in {**present, **changes}.items() if value is not None}


def _are_fields(value: Any) -> bool:
    return (
        isinstance(value, list)
        and 0 < len(value) == len({str(one) for one in value})
        and set(value) <= set(LINK_FORM_FIELDS)
    )
