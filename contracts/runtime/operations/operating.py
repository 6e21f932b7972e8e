"""Answers an operator who looks, and does what they ask for: see ``contracts.rpc.operating``. ``operated`` makes a service
serve it.

What ``countersign stuck``, ``retry`` and ``parked`` do to a database and a broker from outside, a service does here to its own.
"""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pika
import sqlalchemy as sa
from pika.exceptions import AMQPError, ChannelClosedByBroker
from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid, not_found
from contracts.rpc import health
from contracts.rpc import operating as rpc
from contracts.runtime import process
from contracts.runtime.bus import topology
from contracts.runtime.bus.broker import parameters, reason_of
from contracts.runtime.bus.marks import handles, subscriptions_of
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database, for_update
from contracts.runtime.data.files import stored_files
from contracts.runtime.data.tables import heartbeats, missing_events, outbox
from contracts.runtime.monitoring import build
from contracts.runtime.operations import parked, retrying, stuck

MOST_PARKED = 50
"""Events of one parking queue that are read."""

_SEEN = timedelta(seconds=30)
_REASON_LENGTH = 2000


def operated(service: type) -> type:
    """Decorate a service class that has a ``context`` and answers ``ping``: operators can ask it how it stands."""
    name: str = getattr(service, "name")  # noqa: B009
    # Asked of this class, not of that of ``self``: there the worker has entrypoints in the place of what is marked.
    ping: Callable[[Any, health.Ping], health.Pong] = getattr(service, "ping")  # noqa: B009

    def look_around(self: Any, _request: rpc.LookAround) -> rpc.Standing:
        seen = standing(name, self.context.database, ping(self, health.Ping()))
        try:
            with _connected(self.context.settings.amqp_url) as connection:
                counted = parked.counted(connection, _parking_queues(name, service))
            seen.parked = [rpc.ParkedQueue(queue=queue, count=count) for queue, count in counted.items()]
        except ServiceError as error:
            seen.unseen.append(f"parked events: {error.message}")
        return seen

    def act_on_work(self: Any, request: rpc.ActOnWork) -> rpc.Done:
        return act(name, self.context.database, request)

    def read_parked(self: Any, request: rpc.ReadParked) -> rpc.ParkedEvents:
        _check_queue(name, service, request.queue)
        with _connected(self.context.settings.amqp_url) as connection:
            return rpc.ParkedEvents(events=parked.read(connection, request.queue, MOST_PARKED))

    def act_on_parked(self: Any, request: rpc.ActOnParked) -> rpc.Done:
        _check_queue(name, service, request.queue)
        own_exchange = topology.own_exchange(name)
        again, event_id = request.action == "requeue", request.event_id
        with _connected(self.context.settings.amqp_url) as connection:
            count = parked.moved(connection, request.queue, again=again, event_id=event_id, exchange=own_exchange)
        if not count and event_id is not None:
            raise not_found(f"Parked event {event_id}")
        return rpc.Done(count=count)

    for method, calls in (
        (look_around, rpc.LOOK_AROUND),
        (act_on_work, rpc.ACT_ON_WORK),
        (read_parked, rpc.READ_PARKED),
        (act_on_parked, rpc.ACT_ON_PARKED),
    ):
        setattr(service, method.__name__, handles(calls[name])(method))
    return service


def standing(name: str, database: Database, pong: health.Pong) -> rpc.Standing:
    """Return how the service ``name`` stands by its database: all but what is parked at the broker. Raises ServiceError when
    the database does not answer."""
    moment = now()
    seen = rpc.Standing(problems=pong.problems, notes=pong.notes)
    seen.stuck = database.read(stuck.stuck, name, moment)
    seen.backlog = database.read(_backlog, name, moment)
    seen.storage = database.read(_storage, name)
    this_process = rpc.Process(kind="serve", version=build.version(), revision=build.revision(), seen_at=moment)
    seen.processes = [this_process, *database.read(_in_background, moment)]
    return seen


def act(name: str, database: Database, request: rpc.ActOnWork) -> rpc.Done:
    """Have work of the service ``name`` tried again, or no longer.

    Raises ServiceError: ``not_found`` when there is no such work or no such row, ``conflict`` with the reason when the row is
    not in the state for it.
    """
    row = {table.__tablename__: table for table in retrying.kinds(name)}.get(request.work)
    if row is None:
        raise not_found(f"Work {request.work}")
    if request.action == rpc.GIVE_UP:
        if request.key is None:
            raise invalid("key is required: one row is given up at a time", "key", "is required")
        database.write(_give_up, name, row, request.key, now())
        return rpc.Done(count=1)
    count = retrying.made_due(database, row, [] if request.key is None else [request.key])
    if not count and request.key is not None:
        database.read(_say_why_not, row, request.key)
    return rpc.Done(count=count)


def _backlog(session: Session, name: str, moment: datetime) -> list[rpc.Backlog]:
    backlogs = [_backlog_of(session, row, moment) for row in retrying.kinds(name)]
    for work, table, since in (
        (stuck.TOLD, outbox, outbox.c.created_at),
        (stuck.TAKEN, missing_events, missing_events.c.noticed_at),
    ):
        count, oldest = session.execute(sa.select(sa.func.count(), sa.func.min(since)).select_from(table)).one()
        backlogs.append(rpc.Backlog(work=work, due=count, oldest=oldest))
    further_backlogs = stuck.of_service(name, "backlog")
    return [*backlogs, *(further_backlogs(session, moment) if further_backlogs is not None else ())]


def _backlog_of(session: Session, row: Any, moment: datetime) -> rpc.Backlog:
    time_has_come = row.next_attempt_at <= moment
    counted = sa.select(row.state, time_has_come, sa.func.count(), sa.func.min(row.next_attempt_at))
    counted = counted.where(row.state.in_(("due", "waiting", "parked"))).group_by(row.state, time_has_come)
    backlog = rpc.Backlog(work=row.__tablename__)
    for state, has_come, count, oldest in session.execute(counted):
        if state == "waiting":
            backlog.waiting += count
        elif state == "parked":
            backlog.parked += count
        elif has_come:
            backlog.due, backlog.oldest = count, oldest
        else:
            backlog.later = count
    return backlog


def _storage(session: Session, name: str) -> rpc.Storage | None:
    """The files of a service that counts them."""
    models = importlib.import_module(f"services.{name}.models")
    row = getattr(models, "StorageReportRow", None)
    return None if row is None else stored_files.report(session, row)


def _in_background(session: Session, moment: datetime) -> list[rpc.Process]:
    seen = sa.select(heartbeats.c.name, heartbeats.c.at).where(
        heartbeats.c.name.startswith(process.BUILD_BEAT, autoescape=True), heartbeats.c.at >= moment - _SEEN
    )
    processes = []
    for name, at in session.execute(seen.order_by(heartbeats.c.name)):
        version, _, revision = name.removeprefix(process.BUILD_BEAT).partition(" ")
        processes.append(rpc.Process(kind="background", version=version, revision=revision, seen_at=at))
    return processes


def _give_up(session: Session, name: str, row: Any, key: int, moment: datetime) -> None:
    gives_up = (stuck.of_service(name, "GIVES_UP") or {}).get(row)
    if gives_up is None:
        raise ServiceError("conflict", f"{row.__tablename__} of {name} are not given up by hand")
    record = _found(session, row, key)
    if record.state != "due":
        raise ServiceError("conflict", f"{row.__tablename__} {key} is {_words(record)}, there is nothing to give up")
    if record.leased_until is not None and record.leased_until > moment:
        raise ServiceError("conflict", f"An attempt at {row.__tablename__} {key} is under way. Try again in a moment.")
    last = f"; the last reason was: {record.last_error}" if record.last_error else ""
    record.state, record.finished_at = "parked", moment
    record.leased_until = record.leased_by = None
    record.last_error = f"given up by an operator{last}"[:_REASON_LENGTH]
    gives_up(session, record, moment)


def _say_why_not(session: Session, row: Any, key: int) -> None:
    record = _found(session, row, key, lock=False)
    raise ServiceError("conflict", f"{row.__tablename__} {key} is {_words(record)}, there is nothing to try again")


def _found(session: Session, row: Any, key: int, *, lock: bool = True) -> Any:
    (column,) = sa.inspect(row).primary_key
    query = sa.select(row).where(column == key)
    record = session.scalar(for_update(query) if lock else query)
    if record is None:
        raise not_found(f"Row {key} of {row.__tablename__}")
    return record


def _words(record: Any) -> str:
    words = {"due": "still being tried", "waiting": "waiting for something else", "done": "done"}
    return words.get(record.state, "given up for good" if record.state == "parked" else record.state)


def _parking_queues(name: str, service: type) -> list[str]:
    events = subscriptions_of(service).values()
    return [topology.parked_queue_name(topology.event_queue_name(event, name)) for event in events]


def _check_queue(name: str, service: type, queue: str) -> None:
    if queue not in _parking_queues(name, service):
        raise not_found(f"Parking queue {queue}")


@contextmanager
def _connected(amqp_url: str) -> Iterator[Any]:
    """A connection of its own, for a moment: what is got of a queue would else be held until the channel ends."""
    try:
        connection = pika.BlockingConnection(parameters(amqp_url, "operating"))
        try:
            yield connection
        finally:
            if connection.is_open:
                connection.close()
    except ChannelClosedByBroker as error:
        raise ServiceError("unavailable", f"the broker refuses it: {error.reply_text}") from error
    except (AMQPError, OSError) as error:
        raise ServiceError("unavailable", f"the broker cannot be asked: {reason_of(error)}") from error
