"""The preferences of a template (specification 2.8): what was given with its submissions, and what PUT /templates/:id says
(how a shared link is used, peer facts 6.4)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.events import TEMPLATE_UPDATED, PreferencesGiven
from contracts.problems import Problems
from contracts.runtime.database import for_update
from contracts.runtime.outbox import first_time
from contracts.shared_link import LINK_FORM_FIELDS
from services.templates import store
from services.templates.access import may_change, visible_to
from services.templates.links import LinkMaker
from services.templates.models import TemplateRow

_FLAGS = ("shared_link_2fa", "require_email_2fa", "require_phone_2fa")
_FORM_FIELDS = "link_form_fields"


def keep(session: Session, event_id: str, given: PreferencesGiven, links: LinkMaker, now: datetime) -> None:
    """What was given with a submission becomes the template's, if whoever gave it may change that."""
    if not first_time(session, "preferences_given", event_id):
        return
    wanted = sa.select(TemplateRow).where(TemplateRow.id == given.template_id, visible_to(given.actor))
    row = session.scalar(for_update(wanted))
    if row is None or not may_change(given.actor, row):
        return
    merged = {**row.preferences, **given.preferences}
    if merged != row.preferences:
        row.preferences, row.updated_at = merged, now
        session.flush()
        store.announced(session, TEMPLATE_UPDATED, row, links, now)


def merged(present: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What PUT /templates/:id makes of them: ``present`` with what is given; None takes a preference away. Raises ServiceError
    naming what is wrong."""
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
