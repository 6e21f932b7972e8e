"""Events leave through a table, effects are recorded with the event that caused them, answers with the request.

``emit`` writes the event in the transaction that makes it true; the relay (``relay.py``) publishes it later and keeps what it
told. A crash in between sends it twice, never zero times: a consumer calls ``first_time`` in the transaction of its effect.
"""

import json
from collections.abc import Callable, Collection
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa
from pydantic import BaseModel
from sqlalchemy.orm import Session

from contracts.envelope import Envelope
from contracts.events import Event
from contracts.rpc import Rpc
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import dialect_of, insert, insert_for, insert_into, leave_work, to_json
from contracts.runtime.data.tables import answers, event_stream, inbox, outbox, told
from contracts.runtime.monitoring import observe, tracing

R = TypeVar("R")

_NOT_WRITTEN = {"epoch"}
_NOT_TRACED = {"epoch", "traceparent"}
"""Keys of the envelope that are not in the row: the epoch is added when it is sent (``with_epoch``)."""

_DROPPED = "dropped"
"""Stands for the handler, in the inbox, of an event that an operator dropped."""


def emit(
    session: Session,
    event: Event,
    data: BaseModel,
    *,
    subject: str,
    sequence: int | None = None,
    keep: bool = True,
) -> str:
    """State a fact, in the caller's transaction; returns the event's id.

    ``subject`` is what it is about, such as ``submission:31``; ``sequence`` is its number among the subject's public events.
    ``keep`` False: nothing of it is kept once it is published, and who missed it cannot ask for it.
    """
    if not isinstance(data, event.model):
        raise TypeError(f"{event.type} carries {event.model.__name__}, not {type(data).__name__}")
    envelope = Envelope(
        id=uuid7(),
        type=event.type,
        source=event.source,
        subject=subject,
        sequence=sequence,
        occurred_at=now(),
        request_id=observe.request_id(),
        traceparent=tracing.traceparent(),
        data=data.model_dump(mode="json"),
    )
    row = {
        "event_id": envelope.id,
        "source": event.source,
        "type": event.type,
        "body": to_json(envelope.model_dump(mode="json", exclude=_NOT_WRITTEN if tracing.on() else _NOT_TRACED)),
        "created_at": envelope.occurred_at,
        "subject": subject,
        "sequence": sequence,
        "keep": keep,
    }
    insert(session, _EMIT, [row])
    leave_work(session, outbox.name)
    return envelope.id


def with_epoch(body: str, epoch: str | None) -> str:
    """The envelope as it is sent: ``body`` as ``emit`` wrote it, and the epoch that the database knew then."""
    return body if epoch is None else f'{{"epoch":"{epoch}",{body[1:]}'


def forget(session: Session, subject: str) -> None:
    """Erase what was told about ``subject``; what is still to be told is published, and then erased, too.

    The rows stay, without their bodies: those who walk through them find each where it was.
    """
    session.execute(told.update().where(told.c.subject == subject).values(body=""))
    session.execute(outbox.update().where(outbox.c.subject == subject).values(keep=False))


def trim_told(session: Session, before: datetime) -> int:
    """Remove up to 1,000 events that were told before that; returns how many. The last one stays: it says how far it went."""
    last = sa.select(sa.func.max(told.c.position)).scalar_subquery()
    old = sa.select(told.c.position).where(told.c.told_at < before, told.c.position < last).limit(1000)
    removed: int = session.execute(told.delete().where(told.c.position.in_(old))).rowcount  # type: ignore[attr-defined]
    if removed:
        session.execute(event_stream.update().where(event_stream.c.kept_since < before).values(kept_since=before))
    return removed


def first_time(session: Session, handler: str, event_id: str) -> bool:
    """True once per (handler, event): record it in the transaction of the effect, and do nothing when it is False.

    Two deliveries at once: the second waits for the first one's transaction and then gets False. What an operator dropped is
    never taken.
    """
    row = {"handler": handler, "event_id": event_id, "at": now()}
    return session.execute(_take(dialect_of(session)), row).first() is not None


def first_times(session: Session, handler: str, event_ids: Collection[str]) -> Collection[str]:
    """Return those of the events that ``first_time`` would be true of, and record them, in two statements.

    They are recorded in one order everywhere, so that no two transactions wait for each other.
    """
    if len(event_ids) == 1:
        return [event_id for event_id in event_ids if first_time(session, handler, event_id)]
    at = now()
    dropped = set(session.scalars(_DROPPED_ONES, {"ids": list(event_ids)}))
    rows = [{"handler": handler, "event_id": event_id, "at": at} for event_id in sorted(set(event_ids) - dropped)]
    return set(session.scalars(_take_all(dialect_of(session)), rows)) if rows else []


def drop(session: Session, event_id: str) -> None:
    """An operator has decided that this event is not to be handled here: from now on it counts as taken."""
    row = {"handler": _DROPPED, "event_id": event_id, "at": now()}
    session.execute(insert_into(session, inbox).values(row).on_conflict_do_nothing())


def once(session: Session, rpc: Rpc[Any, R], request_id: str, decide: Callable[[], R]) -> R:
    """The answer to this request: the stored one, or ``decide()``, stored with its effects in the caller's transaction.

    Two calls at once: the second waits for the first one's transaction and gets its answer. A refusal (an exception of
    ``decide``) rolls back and is not stored: the same request may succeed later.
    """
    method = f"{rpc.service}.{rpc.method}"
    request = {"of": method, "id": request_id}
    claim = {"method": method, "request_id": request_id, "at": now()}
    if session.execute(_claim(dialect_of(session)), claim).first() is None:
        return rpc.decode(json.loads(session.execute(_ANSWER, request).scalar_one()))
    answer = decide()
    session.execute(_KEEP, {**request, "given": rpc.encode(answer).decode()})
    return answer


def answered(session: Session, rpc: Rpc[Any, R], request_id: str) -> R | None:
    """The stored answer to this request, or None: for what is slow, or would be refused now that it has been done."""
    method = f"{rpc.service}.{rpc.method}"
    stored = session.scalar(_ANSWER, {"of": method, "id": request_id})
    return None if stored is None else rpc.decode(json.loads(stored))


# The statements are compiled once: building one costs more than running it.

_EPOCH = sa.select(event_stream.c.epoch).where(event_stream.c.id == 1).scalar_subquery()
_EMITTED = ("event_id", "source", "type", "body", "created_at", "subject", "sequence", "keep")
_EMIT = outbox.insert().values(epoch=_EPOCH, **{name: sa.bindparam(name) for name in _EMITTED})
_THE_REQUEST = sa.and_(answers.c.method == sa.bindparam("of"), answers.c.request_id == sa.bindparam("id"))
_ANSWER = sa.select(answers.c.answer).where(_THE_REQUEST)
_DROPPED_ONES = sa.select(inbox.c.event_id).where(
    inbox.c.event_id.in_(sa.bindparam("ids", expanding=True)), inbox.c.handler == _DROPPED
)
_KEEP = answers.update().where(_THE_REQUEST).values(answer=sa.bindparam("given"))


@cache
def _take(dialect: str) -> Any:
    columns = {column.name: sa.bindparam(column.name, type_=column.type) for column in inbox.c}
    dropped = sa.exists().where(inbox.c.event_id == columns["event_id"], inbox.c.handler == _DROPPED)
    statement = insert_for(dialect, inbox).from_select(list(columns), sa.select(*columns.values()).where(~dropped))
    return statement.on_conflict_do_nothing().returning(inbox.c.event_id)


@cache
def _take_all(dialect: str) -> Any:
    return insert_for(dialect, inbox).on_conflict_do_nothing().returning(inbox.c.event_id)


@cache
def _claim(dialect: str) -> Any:
    return insert_for(dialect, answers).on_conflict_do_nothing().returning(answers.c.request_id)
