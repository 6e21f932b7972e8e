"""What changes batches, in one transaction each. Rows are locked before their batch is."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.rpc.submissions import batches as rpc
from contracts.rpc.submissions.api import CreateSubmission
from contracts.rpc.submissions.batches import RowStatus
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.data import scrubbing
from contracts.runtime.data.database import for_update
from services.submissions.batches import queries
from services.submissions.commands import submissions
from services.submissions.models import BatchLineRow, BatchRow
from services.submissions.planning.plan import Plan
from services.submissions.planning.preparing import Prepared
from services.submissions.site import Site
from services.submissions.storage import known_templates
from services.submissions.storage.repeats import once

MOST_ROWS = 10_000
_AT_ONCE = 500
"""Rows in one statement."""


def create(
    session: Session,
    command: rpc.CreateBatch,
    drafts: Sequence[rpc.BatchRowDraft],
    template: TemplateSnapshot,
    rate: int,
    now: datetime,
) -> rpc.Batch:
    """A batch with all its rows, the first of which is due."""

    def decide() -> rpc.Batch:
        known_templates.remember(session, template)
        row = BatchRow(
            request_id=command.request_id,
            template_id=command.settings.template_id,
            created_by_id=command.actor.user_id or None,
            test=command.actor.test,
            actor=command.actor.model_dump(mode="json"),
            settings=command.settings.model_dump(mode="json"),
            rate=rate,
            warnings=[warning.model_dump() for warning in command.warnings],
            created_at=now,
            updated_at=now,
            progressed_at=now,
            next_attempt_at=now,
        )
        session.add(row)
        session.flush()
        for values in _portions(_lines(row.id, drafts, now)):
            session.execute(sa.insert(BatchLineRow), values)
        return queries.presented(session, [row])[0]

    return once(session, rpc.CREATE, command, decide)


def cancel(session: Session, command: rpc.ChangeBatch, keep_for: timedelta, now: datetime) -> rpc.Batch:
    """Make no more rows of it, nor try any again: what was to be made of them is dropped. Those that were made stay."""

    def decide() -> rpc.Batch:
        row = queries.visible_batch(session, command.actor, command.id)
        no_more = {"status": RowStatus.CANCELLED.value, "input": None, "error": None, "updated_at": now}
        _set_all(session, row.id, RowStatus.PENDING, no_more)
        _set_all(session, row.id, RowStatus.FAILED, {"input": None})
        session.refresh(row, with_for_update=True)
        row.cancelled_at = row.cancelled_at or now
        _end(session, row, keep_for, now)
        row.actor = row.settings = None
        return queries.presented(session, [row])[0]

    return once(session, rpc.CANCEL, command, decide)


def retry(session: Session, command: rpc.ChangeBatch, now: datetime) -> rpc.Batch:
    """Try the rows that failed once more; those that were made stay. Raises ServiceError when the batch was cancelled."""

    def decide() -> rpc.Batch:
        row = queries.visible_batch(session, command.actor, command.id)
        if row.cancelled_at is not None:
            raise ServiceError("conflict", "The batch was cancelled. Its rows cannot be tried again.")
        again = {"status": RowStatus.PENDING.value, "error": None, "tries": 0, "updated_at": now}
        if not _set_all(session, row.id, RowStatus.FAILED, again):
            raise invalid("No row of the batch has failed.", "status", "has no failed row")
        session.refresh(row, with_for_update=True)
        row.ended_at = row.expires_at = None
        row.updated_at = row.progressed_at = now
        row.make_due(now)
        return queries.presented(session, [row])[0]

    return once(session, rpc.RETRY, command, decide)


def make(
    session: Session,
    line_id: int,
    command: CreateSubmission,
    template: TemplateSnapshot,
    plan: Plan,
    prepared: Sequence[Prepared],
    site: Site,
    now: datetime,
) -> int:
    """Make the submission of a row and note it. Raises ServiceError("conflict") when the row is no longer to be made: somebody
    has cancelled it, or another process was faster."""
    line = _pending(session, line_id)
    if line is None:
        raise ServiceError("conflict", "The row is no longer pending.")
    if plan.given_preferences and _has_made(session, line.batch_id):  # the template has them by now
        plan = replace(plan, given_preferences={})
    submission = submissions.create(session, command, template, plan, prepared, site, now)
    line.status, line.submission_id, line.input, line.error = RowStatus.CREATED.value, submission.id, None, None
    _progress(session, line, now)
    return submission.id


def fail(session: Session, line_id: int, error: rpc.RowError, now: datetime) -> bool:
    """Note that a row cannot be made, and why. What it said is kept: it may be tried again. False when it is no longer to be
    made."""
    if (line := _pending(session, line_id)) is None:
        return False
    line.status, line.error = RowStatus.FAILED.value, error.model_dump()
    _progress(session, line, now)
    return True


def put_back(session: Session, line_id: int, error: rpc.RowError, most: int, now: datetime) -> None:
    """Have a row tried again later, after those that were tried less often; after ``most`` tries it has failed."""
    if (line := _pending(session, line_id)) is None:
        return
    line.tries, line.error, line.updated_at = line.tries + 1, error.model_dump(), now
    if line.tries >= most:
        line.status = RowStatus.FAILED.value
        _progress(session, line, now)


def finish(session: Session, row: BatchRow, keep_for: timedelta, now: datetime) -> None:
    """The loop has found no row that is pending; ``row`` is locked. If there is one by now, the batch is due again."""
    if session.scalar(queries.next_lines(row.id, 1)) is not None:
        row.make_due(now)
    else:
        _end(session, row, keep_for, now)


def forget(session: Session, now: datetime) -> int:
    """Remove a batch whose time is over, with what was kept of its rows. Returns how many there were, at most one: a batch has
    thousands of rows."""
    over = sa.select(BatchRow.id).where(BatchRow.expires_at <= now).order_by(BatchRow.expires_at).limit(1)
    if (batch_id := session.scalar(over)) is None:
        return 0
    session.execute(sa.delete(BatchLineRow).where(BatchLineRow.batch_id == batch_id))
    session.execute(sa.delete(BatchRow).where(BatchRow.id == batch_id))
    scrubbing.ask(session)
    return 1


def read(data: bytes) -> list[rpc.BatchRowDraft]:
    """The rows of the file that the gateway has made. Raises ServiceError when there are none, or too many."""
    drafts = [rpc.BatchRowDraft.model_validate_json(line) for line in data.splitlines() if line]
    if not 0 < len(drafts) <= MOST_ROWS:
        raise invalid(f"A batch must have from 1 to {MOST_ROWS:,} rows.", "rows")
    return drafts


def _set_all(session: Session, batch_id: int, status: RowStatus, values: dict[str, Any]) -> int:
    """Change the rows in this status; returns how many there were."""
    which = (BatchLineRow.batch_id == batch_id, BatchLineRow.status == status.value)
    changed = session.execute(sa.update(BatchLineRow).where(*which).values(**values))
    return int(changed.rowcount)  # type: ignore[attr-defined]


def _pending(session: Session, line_id: int) -> BatchLineRow | None:
    """The row, locked, if it is still to be made."""
    query = sa.select(BatchLineRow).where(BatchLineRow.id == line_id)
    line: BatchLineRow | None = session.scalar(for_update(query).execution_options(populate_existing=True))
    return line if line is not None and line.status == RowStatus.PENDING else None


def _has_made(session: Session, batch_id: int) -> bool:
    is_created = sa.exists().where(BatchLineRow.batch_id == batch_id, BatchLineRow.status == RowStatus.CREATED.value)
    return session.scalar(sa.select(is_created)) or False


def _progress(session: Session, line: BatchLineRow, now: datetime) -> None:
    line.updated_at = now
    session.flush()
    statement = sa.update(BatchRow).where(BatchRow.id == line.batch_id)
    session.execute(statement.values(updated_at=now, progressed_at=now))


def _end(session: Session, row: BatchRow, keep_for: timedelta, now: datetime) -> None:
    row.ended_at = row.ended_at or now
    row.expires_at = row.ended_at + keep_for
    row.updated_at = now
    row.state, row.finished_at = "done", now
    row.leased_until = row.leased_by = None
    scrubbing.ask(session)  # what the rows said is dropped


def _lines(batch_id: int, drafts: Iterable[rpc.BatchRowDraft], now: datetime) -> Iterator[dict[str, Any]]:
    for draft in drafts:
        yield {
            "batch_id": batch_id,
            "number": draft.row,
            "status": RowStatus.PENDING.value,
            "external_id": draft.external_id,
            "input": draft.submission,
            "updated_at": now,
        }


def _portions(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while portion := list(islice(rows, _AT_ONCE)):
        yield portion
