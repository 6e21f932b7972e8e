"""Who may do what with submissions (specification 5, decisions): every query and every command asks here.

An admin sees and changes everything. Submissions follow their template: an editor has those of his own and of shared
templates, a viewer sees those of shared ones and changes nothing. A one-off submission belongs to its creator. What may not
be seen does not exist (404); what may be seen and not be changed is forbidden (403).
"""

import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.types import Actor, Role
from services.submissions.models import SubmissionRow, TemplateRow


def visible_to(actor: Actor) -> sa.ColumnElement[bool]:
    """The condition that every query carries; it speaks of SubmissionRow outer-joined with TemplateRow."""
    template, submission = TemplateRow.__table__.c, SubmissionRow.__table__.c
    if actor.role is Role.ADMIN:
        return sa.true()
    if actor.role is Role.EDITOR:
        return sa.or_(
            template.shared,
            template.author_id == actor.user_id,
            sa.and_(submission.template_id.is_(None), submission.created_by_id == actor.user_id),
        )
    return sa.func.coalesce(template.shared, sa.false())


def templates_visible_to(actor: Actor) -> sa.ColumnElement[bool]:
    """The same of templates: all their submissions are visible. An editor sees one-off submissions of his own besides."""
    template = TemplateRow.__table__.c
    if actor.role is Role.ADMIN:
        return sa.true()
    if actor.role is Role.EDITOR:
        return sa.or_(template.shared, template.author_id == actor.user_id)
    return template.shared


def require_writer(actor: Actor) -> None:
    """Raises ServiceError("forbidden") for a viewer."""
    if actor.role is Role.VIEWER:
        raise ServiceError("forbidden", "Not authorized")


def may_see_masked(actor: Actor) -> bool:
    """Masked values are shown in full only to those who may change them."""
    return actor.role is not Role.VIEWER
