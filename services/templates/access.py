"""Who may do what with a template (specification 5, decisions): every query and every command asks here.

Admins see and do everything. Editors see their own and the shared ones, and change their own. Viewers see the shared
ones. What may not be seen does not exist (404); what may be seen and not be changed is forbidden (403). A test key sees what
the user sees, and changes nothing but templates that were made in test mode; a live key does not see these. For a key that is
limited to folders nothing is there but what is in them, and nothing is put elsewhere with it.
"""

import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.formats.folders import is_within, normalised
from contracts.runtime.data.folders import within
from contracts.types import Actor, Role
from services.templates.models import Folder, TemplateRow


def visible_to(actor: Actor) -> sa.ColumnElement[bool]:
    """The condition that every query for templates carries."""
    columns = TemplateRow.__table__.c
    in_reach = sa.and_(of_mode(actor), _in_folders(actor))
    if actor.role == Role.ADMIN:
        return in_reach
    if actor.role == Role.EDITOR:
        return sa.and_(in_reach, sa.or_(columns.author_id == actor.user_id, columns.shared_link.is_(True)))
    return sa.and_(in_reach, columns.shared_link.is_(True))


def of_mode(actor: Actor) -> sa.ColumnElement[bool]:
    """The condition that a template is there for the mode, test or live, of the actor's key."""
    return sa.true() if actor.test else sa.not_(TemplateRow.__table__.c.test)


def require_writer(actor: Actor) -> None:
    """Raises ServiceError("forbidden") for a viewer."""
    if actor.role == Role.VIEWER:
        raise ServiceError("forbidden", "A viewer may not create or change templates.")


def require_owner(actor: Actor, template: TemplateRow) -> None:
    """Raises ServiceError("forbidden") unless the actor may change this template."""
    require_writer(actor)
    if not _reaches(actor, template.folder_name):
        raise ServiceError("forbidden", "This API key is limited to folders, and the template is in another one.")
    if actor.test and not template.test:
        raise ServiceError("forbidden", "A test key cannot change a live template: clone it, and change the clone.")
    if not may_change(actor, template):
        raise ServiceError("forbidden", "Only its author or an admin may change this template.")


def may_change(actor: Actor, template: TemplateRow) -> bool:
    if actor.test != template.test or not _reaches(actor, template.folder_name):
        return False
    return actor.role == Role.ADMIN or (actor.role == Role.EDITOR and template.author_id == actor.user_id)


def chosen_folder(actor: Actor, name: str | None) -> str:
    """Return the folder that something new, or moved, is put into: where none is named (None) the first of a key that is
    limited to folders, else the default one. Raises ServiceError("forbidden") for one that the key is not for."""
    chosen = normalised(name) if name is not None else next(iter(actor.folders or ()), normalised(None))
    if not _reaches(actor, chosen):
        reason = "is not one of the folders that this API key is limited to"
        raise ServiceError("forbidden", f"folder_name {reason}", [{"field": "folder_name", "reason": reason}])
    return chosen


def _reaches(actor: Actor, folder: str) -> bool:
    return actor.folders is None or is_within(folder, actor.folders)


def _in_folders(actor: Actor) -> sa.ColumnElement[bool]:
    if actor.folders is None:
        return sa.true()
    columns = Folder.__table__.c
    return TemplateRow.__table__.c.folder_id.in_(sa.select(columns.id).where(within(columns.name, actor.folders)))
