"""Reads of batches, straight to contract models."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import not_found
from contracts.rpc.submissions import batches as rpc
from contracts.rpc.submissions.batches import BatchStatus, RowStatus
from contracts.runtime.data.lists.listing import Listing
from contracts.runtime.data.lists.page import page
from contracts.runtime.data.stored import as_stored, readable
from contracts.types import Actor, Page, Pagination, SubmitterStatus
from services.submissions.models import BatchLineRow, BatchRow, SubmitterRow, TemplateRow
from services.submissions.reading import queries
from services.submissions.site import Site
from services.submissions.storage.access import batches_visible_to, listed_of_mode, may_act

_BATCHES, _LINES, _TEMPLATES = (cast("sa.Table", model.__table__) for model in (BatchRow, BatchLineRow, TemplateRow))
_WITH_TEMPLATES = _BATCHES.outerjoin(_TEMPLATES, _TEMPLATES.c.id == _BATCHES.c.template_id)


def batch(session: Session, query: rpc.GetBatch) -> rpc.Batch:
    return presented(session, [visible_batch(session, query.actor, query.id)])[0]


def batches(session: Session, query: rpc.ListBatches) -> Page[rpc.Batch]:
    filters = [] if query.actor.sees_all else [batches_visible_to(query.actor)]
    listing = Listing(_BATCHES, source=_WITH_TEMPLATES, filters=filters, **listed_of_mode(query.actor, BatchRow))
    ids = page(session, query, [listing])
    rows = list(session.scalars(sa.select(BatchRow).where(BatchRow.id.in_(ids)).order_by(BatchRow.id))) if ids else []
    return Page(data=presented(session, rows), pagination=Pagination.of(ids))


def rows(session: Session, query: rpc.ListBatchRows, site: Site) -> Page[rpc.BatchRow]:
    """A page of the rows of a batch; with ``include=submitters`` each has those of its submission."""
    visible_batch(session, query.actor, query.id)
    exact = [_LINES.c.batch_id == query.id]
    if query.status is not None:
        exact.append(_LINES.c.status == query.status.value)
    lines = [line for (line,) in page(session, query, [Listing(_LINES, exact=exact)], sa.select(BatchLineRow))]
    submitters = _submitters(session, lines, query.actor, site) if "submitters" in query.include else None

    def shown(line: BatchLineRow) -> rpc.BatchRow:
        return as_stored(
            rpc.BatchRow,
            id=line.id,
            row=line.number,
            status=RowStatus(line.status),
            external_id=line.external_id,
            submission_id=line.submission_id,
            error=as_stored(rpc.RowError, **line.error) if line.error else None,
            updated_at=line.updated_at,
            submitters=None if submitters is None else submitters.get(line.submission_id or 0, []),
        )

    return Page(data=readable(rpc.BatchRow, lines, shown), pagination=Pagination.of([line.id for line in lines]))


def visible_batch(session: Session, actor: Actor, batch_id: int) -> BatchRow:
    """The batch that the actor may see. Raises ServiceError("not_found")."""
    which = sa.select(BatchRow).select_from(BatchRow).outerjoin(TemplateRow, TemplateRow.id == BatchRow.template_id)
    row: BatchRow | None = session.scalar(which.where(BatchRow.id == batch_id, batches_visible_to(actor)))
    if row is None:
        raise not_found("Batch")
    return row


def presented(session: Session, rows: Sequence[BatchRow]) -> list[rpc.Batch]:
    """One more query for all of them."""
    counted: dict[int, dict[str, int]] = {batch_row.id: {} for batch_row in rows}
    counting = sa.select(BatchLineRow.batch_id, BatchLineRow.status, sa.func.count()).group_by(
        BatchLineRow.batch_id, BatchLineRow.status
    )
    for batch_id, status, count in session.execute(counting.where(BatchLineRow.batch_id.in_(counted))) if rows else ():
        counted[batch_id][status] = count
    return [
        as_stored(
            rpc.Batch,
            id=batch_row.id,
            status=_status(batch_row),
            template_id=batch_row.template_id,
            rate=batch_row.rate,
            counts=as_stored(rpc.BatchCounts, **counted[batch_row.id]),
            warnings=[as_stored(rpc.RowProblem, **warning) for warning in batch_row.warnings],
            created_at=batch_row.created_at,
            updated_at=batch_row.updated_at,
            ended_at=batch_row.ended_at,
            expires_at=batch_row.expires_at,
        )
        for batch_row in rows
    ]


def next_lines(batch_id: int, limit: int) -> sa.Select[Any]:
    """The rows that are to be made next, in the order of the file; those that were tried in vain come after the others."""
    pending = (BatchLineRow.batch_id == batch_id, BatchLineRow.status == RowStatus.PENDING.value)
    return sa.select(BatchLineRow).where(*pending).order_by(BatchLineRow.tries, BatchLineRow.id).limit(limit)


def due_lines(session: Session, batch_id: int, limit: int) -> list[BatchLineRow]:
    return list(session.scalars(next_lines(batch_id, limit)))


def backlog(session: Session, now: datetime) -> tuple[int, timedelta]:
    """Count the rows that are pending, and say for how long nothing has become of that batch of theirs which has waited
    longest."""
    pending = sa.select(sa.func.count()).where(
        BatchLineRow.status == RowStatus.PENDING.value,
        BatchLineRow.batch_id.in_(sa.select(BatchRow.id).where(_IS_RUNNING)),
    )
    oldest = session.scalar(sa.select(sa.func.min(BatchRow.progressed_at)).where(_IS_RUNNING))
    return session.scalar(pending) or 0, max(timedelta(0), now - oldest) if oldest else timedelta(0)


_IS_RUNNING = BatchRow.state != "done"


def _status(row: BatchRow) -> BatchStatus:
    if row.cancelled_at is not None:
        return BatchStatus.CANCELLED
    return BatchStatus.RUNNING if row.ended_at is None else BatchStatus.COMPLETED


def _submitters(
    session: Session, lines: Sequence[BatchLineRow], actor: Actor, site: Site
) -> dict[int, list[rpc.RowSubmitter]]:
    """By submission. Signing links are for who may act."""
    numbers = [line.submission_id for line in lines if line.submission_id is not None]
    acts = may_act(actor)
    submitters_by_submission: dict[int, list[rpc.RowSubmitter]] = {}
    for row in queries.submitters_of(session, numbers) if numbers else ():
        submitters_by_submission.setdefault(row.submission_id, []).append(_submitter(row, site, acts=acts))
    return submitters_by_submission


def _submitter(row: SubmitterRow, site: Site, *, acts: bool) -> rpc.RowSubmitter:
    return as_stored(
        rpc.RowSubmitter,
        id=row.id,
        role=row.role,
        email=row.email,
        status=SubmitterStatus(row.status),
        slug=row.slug if acts else None,
        embed_src=site.signing_page(row.slug) if acts else None,
    )
