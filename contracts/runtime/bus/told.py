"""Answers those who ask what this service has told: see ``contracts.rpc.events``. ``tells_events`` makes a service serve it."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row
from sqlalchemy.orm import Session

from contracts.envelope import Envelope
from contracts.rpc import events as rpc
from contracts.runtime.bus.marks import handles
from contracts.runtime.bus.outbox import with_epoch
from contracts.runtime.clock import now
from contracts.runtime.data.epoch import begin_epoch, epoch_of
from contracts.runtime.data.tables import event_stream, outbox, told


def tells_events(service: type) -> type:
    """Decorate a service class that has a ``context``: others can ask it what it has told."""
    name: str = getattr(service, "name")  # noqa: B009

    def events_told(self: Any, request: rpc.WalkEvents) -> rpc.ToldPage:
        database = self.context.database
        if database.read(contradicts, request):
            database.write(begin_epoch, instead_of=request.epoch)
        page: rpc.ToldPage = database.read(walk, request)
        return page

    def events_by_id(self: Any, request: rpc.FetchEvents) -> rpc.FetchedEvents:
        return self.context.database.read(by_id, request)  # type: ignore[no-any-return]

    def events_since(self: Any, request: rpc.SubjectSince) -> rpc.SubjectEvents:
        return self.context.database.read(since, request)  # type: ignore[no-any-return]

    for method, calls in (
        (events_told, rpc.EVENTS_TOLD),
        (events_by_id, rpc.EVENTS_BY_ID),
        (events_since, rpc.EVENTS_SINCE),
    ):
        setattr(service, method.__name__, handles(calls[name])(method))
    return service


def contradicts(session: Session, request: rpc.WalkEvents) -> bool:
    """Does the caller know of an event in the present epoch that this database has not told? Then it was restored.

    What is too old to be kept contradicts nothing.
    """
    if request.event_id is None or request.epoch != epoch_of(session):
        return False
    there = session.scalar(sa.select(told.c.event_id).where(told.c.position == request.position))
    if there is not None:
        return bool(there != request.event_id)
    oldest = session.scalar(sa.select(sa.func.min(told.c.position)))
    return oldest is None or oldest < request.position


def walk(session: Session, request: rpc.WalkEvents) -> rpc.ToldPage:
    """The next page of what was told."""
    epoch = epoch_of(session)
    after, at = (request.position, request.event_id) if request.epoch == epoch else (0, None)
    candidates = session.execute(_NEXT, {"after": after, "most": request.limit}).all()
    rows = _settled(candidates, timedelta(seconds=request.settled_seconds))
    kinds = set(request.kinds)
    return rpc.ToldPage(
        epoch=epoch,
        events=[rpc.ToldEvent(event_id=row.event_id, type=row.type) for row in rows if row.kept and row.type in kinds],
        position=rows[-1].position if rows else after,
        event_id=rows[-1].event_id if rows else at,
        more=len(rows) == request.limit,
    )


def by_id(session: Session, request: rpc.FetchEvents) -> rpc.FetchedEvents:
    """The events themselves."""
    rows = session.execute(_BODY.where(told.c.event_id.in_(request.ids), told.c.body != "")).all()
    return rpc.FetchedEvents(events=[_envelope(row) for row in rows])


def since(session: Session, request: rpc.SubjectSince) -> rpc.SubjectEvents:
    """The subject's events, from what was told and from what is still to be told."""
    of_subject = (told.c.subject == request.subject, told.c.sequence > request.sequence, told.c.body != "")
    waiting = (outbox.c.subject == request.subject, outbox.c.sequence > request.sequence)
    # In this order: the relay moves them from there to here.
    rows = [*session.execute(_UNTOLD.where(*waiting)).all(), *session.execute(_BODY.where(*of_subject)).all()]
    by_number = {row.sequence: _envelope(row) for row in rows}
    kept_since = session.scalars(sa.select(event_stream.c.kept_since)).one()
    events = [by_number[number] for number in sorted(by_number)]
    return rpc.SubjectEvents(epoch=epoch_of(session), kept_since=kept_since, events=events)


def _settled(rows: Sequence[Row[Any]], settled: timedelta) -> Sequence[Row[Any]]:
    """Those before the first that was told a moment ago. One of the future was told before the clock was put back."""
    moment = now()
    for place, row in enumerate(rows):
        if abs(moment - row.told_at) < settled:
            return rows[:place]
    return rows


def _envelope(row: Any) -> Envelope:
    return Envelope.model_validate(json.loads(with_epoch(row.body, row.epoch)))


_NEXT = (
    sa.select(told.c.position, told.c.event_id, told.c.type, told.c.told_at, (told.c.body != "").label("kept"))
    .where(told.c.position > sa.bindparam("after"))
    .order_by(told.c.position)
    .limit(sa.bindparam("most", type_=sa.Integer))
)
_BODY = sa.select(told.c.sequence, told.c.epoch, told.c.body)
_UNTOLD = sa.select(outbox.c.sequence, outbox.c.epoch, outbox.c.body)
