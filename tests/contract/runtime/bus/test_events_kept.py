"""What was told is kept for those who missed it, for a while and in order; the epoch says which life of a database it is of."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from contracts.envelope import Envelope
from contracts.runtime.bus import outbox
from contracts.runtime.clock import now
from contracts.runtime.data import epoch, tables
from contracts.runtime.data.database import Database
from tests.support.material.telling import tell_everything
from tests.support.services.migrated import migrated
from tests.support.services.specimens import contract


def a_database(database_url: str) -> Database:
    migrated("webhooks", database_url)
    return Database(database_url)


def emit(database: Database, key: str, subject: str = "thing:1", **more: Any) -> str:
    return database.write(
        lambda session: outbox.emit(session, contract.NOTED, contract.Noted(key=key), subject=subject, **more)
    )


def told(database: Database) -> list[Any]:
    return database.read(lambda session: list(session.execute(sa.select(tables.told).order_by(tables.told.c.position))))


def test_what_was_told_is_kept_in_order_with_its_epoch(database_url: str) -> None:
    database = a_database(database_url)
    present = database.read(epoch.epoch_of)
    ids = [emit(database, str(number), f"thing:{number}", sequence=number) for number in range(1, 450)]
    assert tell_everything(database) == 449
    rows = told(database)
    assert [row.event_id for row in rows] == ids
    assert [row.sequence for row in rows] == list(range(1, 450))
    assert {row.epoch for row in rows} == {present}
    first = rows[0]
    envelope = Envelope.model_validate(json.loads(outbox.with_epoch(first.body, first.epoch)))
    assert (envelope.id, envelope.epoch, envelope.subject, envelope.data["key"]) == (ids[0], present, "thing:1", "1")
    assert database.read(lambda session: session.scalar(sa.select(sa.func.count()).select_from(tables.outbox))) == 0
    database.dispose()


def test_what_an_older_version_wrote_is_kept_as_well(database_url: str) -> None:
    """It does not name its subject in the row, and no epoch."""
    database = a_database(database_url)
    body = json.dumps({"id": "e-1", "subject": "thing:7", "sequence": 3, "type": "thing.noted"})
    row = {"event_id": "e-1", "source": "specimen", "type": "thing.noted", "body": body, "created_at": now()}
    statement = tables.outbox.insert().values(row)
    database.write(lambda session: session.execute(statement))
    tell_everything(database)
    (kept,) = told(database)
    assert (kept.subject, kept.sequence, kept.epoch, kept.body) == ("thing:7", 3, None, body)
    database.dispose()


def test_what_is_not_to_be_kept_goes(database_url: str) -> None:
    database = a_database(database_url)
    emit(database, "told before")
    tell_everything(database)
    emit(database, "waits")
    emit(database, "another's", "thing:2")
    database.write(outbox.forget, "thing:1")
    emit(database, "said afterwards")
    emit(database, "of the moment", "thing:3", keep=False)
    assert tell_everything(database) == 4
    kept = [json.loads(row.body)["data"]["key"] for row in told(database) if row.body]
    assert kept == ["another's", "said afterwards"]
    database.dispose()


def test_what_is_old_is_trimmed_but_for_the_last(database_url: str) -> None:
    database = a_database(database_url)
    for number in range(5):
        emit(database, str(number))
    tell_everything(database)
    assert database.write(outbox.trim_told, now() - timedelta(hours=1)) == 0
    cut = now() + timedelta(seconds=1)
    assert database.write(outbox.trim_told, cut) == 4
    assert database.write(outbox.trim_told, cut) == 0
    assert [json.loads(row.body)["data"]["key"] for row in told(database)] == ["4"]
    assert database.read(lambda session: session.scalar(sa.select(tables.event_stream.c.kept_since))) == cut
    database.dispose()


def test_an_epoch_begins_once_and_sorts_after_the_one_before(database_url: str) -> None:
    database = a_database(database_url)
    reactions: list[str] = []
    first = database.read(epoch.epoch_of)
    epoch.on_new_epoch.append(lambda session: reactions.append(epoch.epoch_of(session)))
    try:
        second = database.write(lambda session: epoch.begin_epoch(session, instead_of=first))
        again = database.write(lambda session: epoch.begin_epoch(session, instead_of=first))
    finally:
        epoch.on_new_epoch.pop()
    assert first < second == again
    assert reactions == [second]
    assert database.read(epoch.epoch_of) == second
    emit(database, "in the new life")
    tell_everything(database)
    assert told(database)[-1].epoch == second
    database.dispose()


def test_an_epoch_of_a_clock_that_was_put_back() -> None:
    ahead = "ffffffff-0000-7abc-8def-0123456789ab"
    after = epoch.later_than(ahead)
    assert after > ahead
    assert len(after) == len(ahead)
    assert after.startswith("ffffffff-0001-7")


def test_the_migration_can_be_taken_back(tmp_path: Path) -> None:
    from contracts.runtime import migrations

    url = f"sqlite:///{tmp_path / 'webhooks.sqlite'}"
    migrations.upgrade("webhooks", url)
    migrations.downgrade("webhooks", url, "0002")
    migrations.upgrade("webhooks", url)
    assert migrations.differences("webhooks", url) == []
