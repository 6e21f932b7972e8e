"""The preferences of a template (specification 2.8): what was given with its submissions, and what PUT /templates/:id says
(the same, and how a shared link is used, peer facts 6.4)."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.events import TEMPLATE_UPDATED, PreferencesGiven
from contracts.fields.preferences import KEEP_DAYS, MAIL_TOGGLES, MOST_ADDRESSES, wrong_keep_days
from contracts.problems import Problems
from contracts.runtime.bus.outbox import first_time
from contracts.shared_link import LINK_FORM_FIELDS
from contracts.types import Order
from services.templates import queries, store
from services.templates.access import may_change
from services.templates.links import LinkMaker

_FLAGS = (
    *MAIL_TOGGLES,
    "shared_link_2fa",
    "require_email_2fa",
    "require_phone_2fa",
    "certsign_sign_enabled",
    "allow_to_partial_download",
    "allow_to_delegate",
    "allow_to_return",
    "in_person",
)
_FORM_FIELDS, _ORDER, _BCC = "link_form_fields", "submitters_order", "bcc_completed"
_LONGEST_LIST = 2_000


def keep(session: Session, event_id: str, event: PreferencesGiven, links: LinkMaker, now: datetime) -> None:
    """Make the template's what was given with a submission, if whoever gave it may change that."""
    if not first_time(session, "preferences_given", event_id):
        return
    try:
        row = queries.visible_template(session, event.actor, event.template_id, lock=True)
    except ServiceError:
        return
    if not may_change(event.actor, row):
        return
    merged = {**row.preferences, **event.preferences}
    if merged != row.preferences:
        row.preferences = merged
        store.touch(row, now)
        session.flush()
        store.announced(session, TEMPLATE_UPDATED, row, links, now, changes=[])


def merged(present: Mapping[str, Any], changes_given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what PUT /templates/:id makes of them: ``present`` with what is given; None takes a preference away. Raises
    ServiceError naming what is wrong."""
    problems = Problems()
    changes: dict[str, Any] = {}
    for name in (*_FLAGS, _FORM_FIELDS, _ORDER, _BCC, KEEP_DAYS):
        if name not in changes_given:
            continue
        if changes_given[name] is not None and (reason := _wrong(name, changes_given[name])):
            problems.add(f"preferences.{name}", reason)
        changes[name] = changes_given[name]
    problems.refuse()
    return {name: value for name, value in {**present, **changes}.items() if value is not None}


def _wrong(name: str, value: Any) -> str | None:
    """Return why a preference cannot be that, or None. That addresses are addresses the gateway has seen."""
    if name in _FLAGS:
        return None if isinstance(value, bool) else "must be true or false"
    if name == KEEP_DAYS:
        return wrong_keep_days(value)
    if name == _FORM_FIELDS:
        return None if _are_fields(value) else f"must be a list of {', '.join(LINK_FORM_FIELDS)}, each once"
    if name == _ORDER:
        return None if value in tuple(Order) else f"must be one of {', '.join(Order)}"
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_LIST:
        return "must be a list of e-mail addresses"
    return (
        None
        if len(re.split("[,;]", value)) <= MOST_ADDRESSES
        else f"must not have more than {MOST_ADDRESSES} addresses"
    )


def _are_fields(value: Any) -> bool:
    return (
        isinstance(value, list)
        and 0 < len(value) == len({str(name) for name in value})
        and set(value) <= set(LINK_FORM_FIELDS)
    )
