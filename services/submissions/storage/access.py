"""Who may do what with submissions (specification 5, decisions): every query and every command asks here.

An admin sees and changes everything. An editor sees and handles the submissions of their own templates, and those that they
created. A viewer reads those of shared templates, and gets nothing that lets them act: no slug, no signing link; nor does
anybody whose key cannot send. A one-off submission belongs to its creator. What may not be seen does not exist (404); what may
be seen and not be changed is forbidden (403). With a test key there is what was made in test mode and nothing else, with a live
one everything but that. A key that is limited to folders reaches what was made from a template that is in one of them now.
"""

from typing import Any

import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.runtime.data.folders import within
from contracts.types import Actor, Role
from services.submissions.models import BatchRow, ErasureRow, SubmissionRow, SubmitterRow, TemplateRow


def visible_to(actor: Actor, rows: type[SubmissionRow | ErasureRow] = SubmissionRow) -> sa.ColumnElement[bool]:
    """The condition that every query carries; it speaks of SubmissionRow (or what is left of it: ``rows``) outer-joined with
    TemplateRow."""
    template, submission = TemplateRow.__table__.c, rows.__table__.c
    mine = sa.and_(of_mode(actor, rows), _in_folders(actor))
    if actor.role is Role.ADMIN:
        return mine
    if actor.role is Role.EDITOR:
        return sa.and_(mine, sa.or_(template.author_id == actor.user_id, submission.created_by_id == actor.user_id))
    return sa.and_(mine, sa.func.coalesce(template.shared, sa.false()))


def of_mode(actor: Actor, rows: type[SubmissionRow | ErasureRow | BatchRow] = SubmissionRow) -> sa.ColumnElement[bool]:
    """The condition that a record is of the mode, test or live, of the actor's key."""
    test: sa.ColumnElement[bool] = rows.__table__.c.test
    return test if actor.test else sa.not_(test)


def listed_of_mode(actor: Actor, rows: type[SubmissionRow | SubmitterRow | BatchRow]) -> dict[str, Any]:
    """The same as a Listing takes it: what is of test mode is rare, and looked up."""
    test: sa.ColumnElement[bool] = rows.__table__.c.test
    return {"exact": [test]} if actor.test else {"common": [sa.not_(test)]}


def templates_visible_to(actor: Actor) -> sa.ColumnElement[bool]:
    """The same of templates: all their submissions are visible. An editor sees those that they created besides."""
    template, mine = TemplateRow.__table__.c, _in_folders(actor)
    if actor.role is Role.ADMIN:
        return mine
    if actor.role is Role.EDITOR:
        return sa.and_(mine, template.author_id == actor.user_id)
    return sa.and_(mine, template.shared)


def batches_visible_to(actor: Actor) -> sa.ColumnElement[bool]:
    """The same of batches, which are of those who can send; it speaks of BatchRow outer-joined with TemplateRow."""
    template, batch = TemplateRow.__table__.c, BatchRow.__table__.c
    mine = sa.and_(of_mode(actor, BatchRow), _in_folders(actor))
    if actor.role is Role.ADMIN:
        return mine
    if actor.role is Role.EDITOR:
        return sa.and_(mine, sa.or_(template.author_id == actor.user_id, batch.created_by_id == actor.user_id))
    return sa.false()


def _in_folders(actor: Actor) -> sa.ColumnElement[bool]:
    """The condition that a template is in reach of the actor's key. One-off submissions have none, and are in no folder."""
    return within(TemplateRow.__table__.c.folder_name, actor.folders)


def require_writer(actor: Actor) -> None:
    """Raises ServiceError("forbidden") for a viewer."""
    if actor.role is Role.VIEWER:
        raise ServiceError("forbidden", "Not authorized")


def require_admin(actor: Actor) -> None:
    """Raises ServiceError("forbidden") for whoever is no admin, or has a key that is limited to folders."""
    if not actor.sees_all:
        raise ServiceError("forbidden", "Not authorized")


def may_act(actor: Actor) -> bool:
    """Tell whether the actor handles what they see, and with this key: others get no slug and no signing link, and masked
    values crossed out."""
    return actor.role is not Role.VIEWER and actor.may_act
