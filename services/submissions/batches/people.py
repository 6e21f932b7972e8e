"""What rows of batches say about one person before a submission of them does (docs/privacy.md): shown, and dropped."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.formats.mentions import LIKE_ESCAPE, like_pattern, mailbox, places
from contracts.rpc.submissions import people as rpc
from contracts.rpc.submissions.batches import RowStatus
from contracts.runtime.data import scrubbing
from contracts.runtime.data.database import for_update
from contracts.types import Actor
from services.submissions.models import BatchLineRow, BatchRow
from services.submissions.storage.access import of_mode, require_admin
from services.submissions.storage.repeats import once

MOST_SHOWN = 1_000
_COLUMNS = ("external_id", "input", "error")
"""The columns of a row in which an address may stand. The keys of ``input`` are shown without its name."""


def unsent(session: Session, query: rpc.FindUnsent) -> rpc.UnsentRows:
    """List what names the person: what all rows of a batch have in common, then single rows, each the newest first."""
    require_admin(query.actor)
    common = [
        rpc.UnsentRow(batch_id=batch.id, mentioned_in=mentioned, updated_at=batch.updated_at)
        for batch, mentioned in _batches(session, query.actor, query.email)
    ]
    rows = [
        rpc.UnsentRow(
            batch_id=line.batch_id,
            row=line.number,
            status=RowStatus(line.status),
            external_id=line.external_id,
            mentioned_in=mentioned,
            parties=_parties(line, query.email),
            updated_at=line.updated_at,
        )
        for line, mentioned in islice(_lines(session, query.actor, query.email), MOST_SHOWN)
    ]
    return rpc.UnsentRows(data=[*common, *rows][:MOST_SHOWN])


def remove(session: Session, command: rpc.RemoveUnsent, now: datetime) -> rpc.RemovedUnsent:
    """Drop what the rows say, and never make them: those that are pending, have failed or were cancelled. Of a row that is
    being made now it is one or the other; then it is a submission, and deleted as one."""
    require_admin(command.actor)

    def decide() -> rpc.RemovedUnsent:
        count = 0
        for line, _ in list(_lines(session, command.actor, command.email, lock=True)):
            if line.status in (RowStatus.PENDING, RowStatus.FAILED):
                line.status = RowStatus.CANCELLED.value
            line.external_id = line.input = line.error = None
            line.updated_at = now
            count += 1
        if count:
            scrubbing.ask(session)
        left = [batch.id for batch, _ in _batches(session, command.actor, command.email)]
        return rpc.RemovedUnsent(rows=count, batches=left)

    return once(session, rpc.REMOVE_UNSENT, command, decide)


def _lines(
    session: Session, actor: Actor, email: str, *, lock: bool = False
) -> Iterator[tuple[BatchLineRow, list[str]]]:
    """The rows that name the address, with the places."""
    pattern = like_pattern(email)
    texts = [sa.cast(getattr(BatchLineRow, column), sa.Text) for column in _COLUMNS]
    may_name = sa.or_(*(text.ilike(pattern, escape=LIKE_ESCAPE) for text in texts))
    of_actor = BatchLineRow.batch_id.in_(sa.select(BatchRow.id).where(of_mode(actor, BatchRow)))
    candidates = sa.select(BatchLineRow).where(may_name, of_actor)
    # Rows are locked in the order in which others lock them, and shown with the newest first.
    ordered = candidates.order_by(BatchLineRow.id) if lock else candidates.order_by(BatchLineRow.id.desc())
    for line in session.scalars(for_update(ordered) if lock else ordered):
        if mentioned := list(_mentioned(line, email)):
            yield line, mentioned


def _mentioned(line: BatchLineRow, email: str) -> Iterator[str]:
    for column in _COLUMNS:
        yield from places(getattr(line, column), email, "" if column == "input" else column)


def _batches(session: Session, actor: Actor, email: str) -> Iterator[tuple[BatchRow, list[str]]]:
    """The batches whose rows have something in common that names the address, with the places; the newest first."""
    may_name = sa.cast(BatchRow.settings, sa.Text).ilike(like_pattern(email), escape=LIKE_ESCAPE)
    candidates = sa.select(BatchRow).where(may_name, of_mode(actor, BatchRow)).order_by(BatchRow.id.desc())
    for batch in session.scalars(candidates):
        common_content = (batch.settings or {}).get("submission")
        if mentioned := list(places(common_content, email, "settings")):
            yield batch, mentioned


def _parties(line: BatchLineRow, email: str) -> list[dict[str, Any]]:
    searched_mailbox = mailbox(email)
    submitters = (line.input or {}).get("submitters") or []
    return [submitter for submitter in submitters if mailbox(str(submitter.get("email") or "")) == searched_mailbox]
