"""What this service remembers of templates, for lists and access. News of a template may come late and in any order."""

from datetime import datetime

from sqlalchemy.orm import Session

from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.bus.outbox import first_time
from contracts.runtime.data.database import insert_into
from contracts.types import Tolerant
from services.submissions.models import TemplateRow


class TemplateNews(Tolerant):
    """What this service wants to know of ``template.updated``."""

    id: int
    name: str
    external_id: str | None = None
    folder_name: str
    shared_link: bool
    author_id: int
    test: bool = False
    created_at: datetime
    updated_at: datetime


def remember(session: Session, template: TemplateSnapshot) -> TemplateRow:
    """A submission is made from it; what ``template.updated`` said of later is not overwritten."""
    stored = session.get(TemplateRow, template.id)
    if stored is not None and stored.updated_at >= template.updated_at:
        return stored
    _keep(session, template)
    return session.get_one(TemplateRow, template.id, populate_existing=True)


def accept(session: Session, event_id: str, news: TemplateNews) -> None:
    """Submissions follow their template: its sharing, author, name and folder. What is older than what is known is ignored.
    What nothing is made from yet is remembered, too: the first submission may be under way, made of the template as it was. Not
    in test mode: news that comes after that was wiped would be left of it."""
    if not first_time(session, "accept_template", event_id):
        return
    if not news.test or session.get(TemplateRow, news.id) is not None:
        _keep(session, news)


def _keep(session: Session, template: TemplateSnapshot | TemplateNews) -> None:
    """Insert or update, unless what is there is newer."""
    values = {
        "id": template.id,
        "name": template.name,
        "external_id": template.external_id,
        "folder_name": template.folder_name,
        "shared": template.shared_link,
        "author_id": template.author_id,
        "test": template.test,
        "created_at": template.created_at,
        "updated_at": template.updated_at,
    }
    insert = insert_into(session, TemplateRow).values(values)
    newer = TemplateRow.updated_at <= insert.excluded.updated_at
    session.execute(insert.on_conflict_do_update(index_elements=["id"], set_=values, where=newer))
