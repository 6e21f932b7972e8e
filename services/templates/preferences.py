"""The preferences of a template (specification 2.8): what was given with its submissions."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.events import TEMPLATE_UPDATED, PreferencesGiven
from contracts.runtime.database import for_update
from contracts.runtime.outbox import first_time
from services.templates import store
from services.templates.access import may_change, visible_to
from services.templates.links import LinkMaker
from services.templates.models import TemplateRow


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
