"""What the lists of submissions and submitters hold: their filters, as ``contracts.runtime.data.lists`` takes them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.rpc.submissions import api as rpc
from contracts.runtime.data.folders import within
from contracts.runtime.data.lists.listing import Conditions, Listing, Span
from contracts.runtime.data.lists.page import stored_id
from contracts.types import Actor, Role, SubmissionStatus
from services.submissions.models import COMPLETION_GROUP, SubmissionRow, SubmitterRow, TemplateRow
from services.submissions.rules.parties.addresses import searchable
from services.submissions.storage import store
from services.submissions.storage.access import listed_of_mode, templates_visible_to, visible_to

_SUBMISSIONS, _SUBMITTERS, _TEMPLATES = (
    cast("sa.Table", model.__table__) for model in (SubmissionRow, SubmitterRow, TemplateRow)
)
_SUBMISSION, _SUBMITTER, _TEMPLATE = (model.__mapper__.columns for model in (SubmissionRow, SubmitterRow, TemplateRow))


def of_submissions(query: rpc.ListSubmissions, now: datetime) -> list[Listing]:
    """Expired ones are two lists: those whose time is over, and those that the sweep has marked so since."""
    exact: list[sa.ColumnElement[bool]] = []
    if query.template_id is not None:
        exact.append(_SUBMISSION.template_id == stored_id(query.template_id))
    if query.archived is not None:
        exact.append(_SUBMISSION.archived_at.is_not(None) if query.archived else _SUBMISSION.archived_at.is_(None))
    if query.slug is not None:
        exact.append(_SUBMISSION.slug == query.slug)
    over = sa.and_(
        _SUBMISSION.status == SubmissionStatus.PENDING.value,
        _SUBMISSION.unfinished,
        _SUBMISSION.expire_at.is_not(None),
        _SUBMISSION.expire_at <= now,
    )
    if query.status is SubmissionStatus.PENDING:
        exact.append(_SUBMISSION.status == query.status.value)
        exact.append(
            sa.or_(_SUBMISSION.expire_at.is_(None), _SUBMISSION.expire_at > now, sa.not_(_SUBMISSION.unfinished))
        )
    elif query.status is not None:
        exact.append(_SUBMISSION.status == query.status.value)
    listed = _of_submissions(query, exact)
    if query.status is SubmissionStatus.EXPIRED:
        return [_of_submissions(query, [*exact[:-1], over], small=True), listed]
    return [listed]


def of_submitters(query: rpc.ListSubmitters) -> Listing:
    mode = listed_of_mode(query.actor, SubmitterRow)
    exact: list[sa.ColumnElement[bool]] = mode.get("exact", [])
    filters: list[sa.ColumnElement[bool]] = []
    for column, value, conditions in (
        (_SUBMITTER.submission_id, query.submission_id, exact),
        (_SUBMISSION.template_id, query.template_id, filters),
    ):
        if value is not None:
            conditions.append(column == stored_id(value))
    if query.external_id is not None:
        exact.append(_SUBMITTER.external_id == query.external_id)
    if query.slug is not None:
        exact.append(_SUBMITTER.slug == query.slug)
    completed: list[sa.ColumnElement[bool]] = []
    if query.completed_after is not None:
        completed.append(_SUBMITTER.completed_at >= store.aware(query.completed_after))
    if query.completed_before is not None:
        completed.append(_SUBMITTER.completed_at <= store.aware(query.completed_before))
    if not query.actor.sees_all:
        filters.append(visible_to(query.actor))
    source = _SUBMITTERS.join(_SUBMISSIONS, _SUBMISSION.id == _SUBMITTER.submission_id).outerjoin(
        _TEMPLATES, _TEMPLATE.id == _SUBMISSION.template_id
    )
    return Listing(
        table=_SUBMITTERS,
        source=source,
        exact=exact,
        common=mode.get("common", []),
        filters=[*filters, *completed],
        text=_SUBMITTER.search,
        term=searchable(query.q.strip()) if query.q else "",
        rare=_by_completion(source, completed, filters) if completed else None,
    )


def _of_submissions(query: rpc.ListSubmissions, exact: Conditions, *, small: bool = False) -> Listing:
    filters: list[sa.ColumnElement[bool]] = []
    if query.template_folder is not None:
        filters.append(_TEMPLATE.folder_name == query.template_folder)
    if not query.actor.sees_all:
        filters.append(visible_to(query.actor))
    mode = listed_of_mode(query.actor, SubmissionRow)
    return Listing(
        table=_SUBMISSIONS,
        source=_SUBMISSIONS.outerjoin(_TEMPLATES, _TEMPLATE.id == _SUBMISSION.template_id),
        exact=[*mode.get("exact", []), *exact],
        common=mode.get("common", []),
        filters=filters,
        text=_SUBMISSION.search,
        term=searchable(query.q.strip()) if query.q else "",
        rare=_by_template(query.actor, query.template_folder),
        small=small,
    )


def _by_template(actor: Actor, folder: str | None) -> Callable[[Session, Conditions, Span], list[int]]:
    """PostgreSQL: the first submissions of each template in question, of which the page is then made."""

    def first_ids(session: Session, conditions: Conditions, span: Span) -> list[int]:
        def first(*more: sa.ColumnElement[bool]) -> sa.Select[Any]:
            query = sa.select(_SUBMISSION.id.label("id")).where(*more, *conditions)
            return query.order_by(span.order(_SUBMISSION.id)).limit(span.limit)

        of_one = first(_SUBMISSION.template_id == _TEMPLATE.id).correlate(_TEMPLATES).lateral()
        in_folder = [] if folder is None else [_TEMPLATE.folder_name == folder]
        if actor.folders is not None:
            in_folder.append(within(_TEMPLATE.folder_name, actor.folders))
        templates = [templates_visible_to(actor), *in_folder]
        all_found = sa.select(of_one.c.id).select_from(_TEMPLATES.join(of_one, sa.true())).where(*templates)
        if actor.role is Role.EDITOR:
            of_folder = [_SUBMISSION.template_id.in_(sa.select(_TEMPLATE.id).where(*in_folder))] if in_folder else []
            created = first(_SUBMISSION.created_by_id == actor.user_id, *of_folder).subquery()
            all_found = sa.select(sa.union(all_found, sa.select(created.c.id)).subquery().c.id)
        ids = all_found.subquery()
        return list(session.scalars(sa.select(ids.c.id).order_by(span.order(ids.c.id)).limit(span.limit)))

    return first_ids


def _by_completion(
    source: sa.FromClause, range_: Conditions, further_conditions: Conditions
) -> Callable[..., list[int]]:
    """PostgreSQL: ids and times of completion follow each other only by and large, so an index on one does not give the order
    of the other. An index on groups of ids with the time says which groups hold any of the range; those are looked at."""
    group: sa.ColumnElement[int] = sa.literal_column(f"submitters.id / {COMPLETION_GROUP}")
    groups = 2

    def first_ids(session: Session, conditions: Conditions, span: Span) -> list[int]:
        highest = session.scalar(sa.select(sa.func.max(_SUBMITTER.id))) or 0
        low = max(0, -1 if span.after is None else span.after) // COMPLETION_GROUP
        high = (highest if span.before is None else min(highest, span.before)) // COMPLETION_GROUP
        ids: list[int] = []
        while low <= high and len(ids) < span.limit:
            bounds = (sa.literal(low, sa.BigInteger), sa.literal(high, sa.BigInteger))
            series = sa.func.generate_series(*bounds).table_valued("number").render_derived(name="groups")
            number = series.c.number
            any_of = sa.select(1).select_from(_SUBMITTERS).where(group == number, *range_).correlate(series)
            groups_of_matches = sa.select(number).where(any_of.exists()).order_by(span.order(number)).limit(groups)
            numbers = list(session.scalars(groups_of_matches))
            for group_number in numbers:
                within = (
                    _SUBMITTER.id >= group_number * COMPLETION_GROUP,
                    _SUBMITTER.id < (group_number + 1) * COMPLETION_GROUP,
                )
                query = (
                    sa.select(_SUBMITTER.id)
                    .select_from(source)
                    .where(*within, *range_, *further_conditions, *conditions)
                )
                ids += session.scalars(query.order_by(span.order(_SUBMITTER.id)).limit(span.limit - len(ids)))
                if len(ids) >= span.limit:
                    break
            if len(numbers) < groups:
                break
            low, high = (low, numbers[-1] - 1) if span.backward else (numbers[-1] + 1, high)
        return ids

    return first_ids
