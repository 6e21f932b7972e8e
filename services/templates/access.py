"""Who may do what with a template (specification 5, decisions): every query and every command asks here.

Admins see and do everything. Editors see their own and the shared ones, and change their own. Viewers see the shared
ones. What may not be seen does not exist (404); what may be seen and not be changed is forbidden (403). A test key sees what
the user sees, and changes nothing but templates that were made in test mode; a live key does not see these.
"""

import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.types import Actor, Role
from services.templates.models import TemplateRow


def visible_to(actor: Actor) -> sa.ColumnElement[bool]:
    """The condition that every query for templates carries."""
    columns = TemplateRow.__table__.c
    in_mode = of_mode(actor)
    if actor.role == Role.ADMIN:
        return in_mode
    if actor.role == Role.EDITOR:
        return sa.and_(in_mode, sa.or_(columns.author_id == actor.user_id, columns.shared_link.is_(True)))
    return sa.and_(in_mode, columns.shared_link.is_(True))


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
    if actor.test and not template.test:
        raise ServiceError("forbidden", "A test key cannot change a live template: clone it, and change the clone.")
    if not may_change(actor, template):
        raise ServiceError("forbidden", "Only its author or an admin may change this template.")


def may_change(actor: Actor, template: TemplateRow) -> bool:
    if actor.test != template.test:
        return False
    return actor.role == Role.ADMIN or (actor.role == Role.EDITOR and template.author_id == actor.user_id)
