"""Who works on the same rows of PostgreSQL at the same time: nobody waits for somebody who waits for them. (On SQLite one writes
at a time.)"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.envelope import Envelope
from contracts.rpc import webhooks as rpc
from contracts.rpc.events import SubjectEvents
from contracts.runtime.data.database import Database
from services.webhooks import commands, queries
from services.webhooks.models import Arrival, Attempt, Delivery
from tests.contract.conftest import on
from tests.support.material.webhooks import ADMIN, NOW, database, deliveries, envelope, new_webhook, record
from tests.support.services.suite import wait_until

__all__ = ["database"]

pytestmark = on("postgresql")

SOMEBODY_WAITS = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")


@contextmanager
def transaction(database: Database) -> Iterator[Session]:
    """It lasts as long as the block, and is undone then."""
    with Session(database.engine) as session:
        yield session
        session.rollback()


def test_events_are_logged_while_a_failure_of_their_receiver_is_being_written(database: Database) -> None:
    made = new_webhook(database)
    record(database, envelope(1))
    (first,) = deliveries(database, made.id)
    with transaction(database) as session:
        delivery = session.get_one(Delivery, first.id)
        attempt = Attempt(delivery_id=first.id, attempted_at=NOW, status=500, duration_ms=1)
        lasting = timedelta(hours=120)
        commands.record_failure(session, delivery, attempt, NOW, gone=False, give_up_after=lasting, attempts_kept=3)
        session.flush()
        record(database, envelope(2))
    assert len(deliveries(database, made.id)) == 2


def test_events_are_logged_while_their_receiver_is_being_changed(database: Database) -> None:
    made = new_webhook(database)
    with transaction(database) as session:
        update = rpc.UpdateWebhook(request_id="u", actor=ADMIN, id=made.id, url="http://127.0.0.1:9/moved")
        commands.update(session, update, NOW)
        session.flush()
        record(database, envelope(1))
    assert len(deliveries(database, made.id)) == 1


def test_who_closes_a_gap_and_who_logs_what_was_missing_take_turns(database: Database) -> None:
    made = new_webhook(database)
    missing = [envelope(2), envelope(3)]
    record(database, envelope(1), envelope(4))
    (gap,) = database.read(queries.gaps, NOW)
    tries: list[Sequence[Envelope]] = []

    def log_them(session: Session) -> None:
        tries.append(missing)
        commands.record_events(session, missing, NOW)

    logging = threading.Thread(target=database.write, args=(log_them,))

    def close(session: Session) -> None:
        commands._lock_log(session)
        if not logging.ident:
            logging.start()
        wait_until(lambda: database.read(lambda other: other.scalar(SOMEBODY_WAITS)), what="the other one to wait")
        history = SubjectEvents(epoch="", kept_since=NOW, events=[*missing, envelope(4)])
        tries.append(history.events)
        commands.catch_up(session, gap, history, NOW)

    database.write(close)
    logging.join()
    assert len(tries) == 2, "nobody had to begin anew"
    assert [each.event_id for each in deliveries(database, made.id)] == [envelope(number).id for number in (1, 2, 3, 4)]


def test_what_is_logged_while_gaps_are_looked_for_is_none(database: Database) -> None:
    record(database, envelope(1), envelope(3))

    def arrive(_connection: sa.Connection, _cursor: object, statement: str, *_: object) -> None:
        if "GROUP BY arrivals.subject" in statement:
            record(database, envelope(2))

    sa.event.listen(database.engine, "after_cursor_execute", arrive)
    assert database.read(queries.gaps, NOW) == []
    assert database.read(lambda session: session.scalars(sa.select(Arrival.sequence)).all()) == []
