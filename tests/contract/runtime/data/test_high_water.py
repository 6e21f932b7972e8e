"""A database that was put back to an earlier moment is noticed by its mark in the file store, and gives out nothing twice."""

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from contracts.errors import ServiceError
from contracts.rpc import health
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.clock import now
from contracts.runtime.data import epoch
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.data.tables import outbox
from contracts.runtime.process import look_at_mark
from contracts.runtime.restored import high_water, identities
from contracts.runtime.restored.high_water import Keeper, Mark, keep
from deploy.rabbitmq import PrivateBroker
from tests.contract.conftest import ON_BOTH
from tests.support.services import processes
from tests.support.services.migrated import migrated
from tests.support.services.suite import wait_until

SERVICE = "submissions"


BUCKET = {
    "AWS_ACCESS_KEY_ID": "for-tests",
    "AWS_SECRET_ACCESS_KEY": "for-tests",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
STANDS_STILL = """
import sys, time
from contracts.runtime.restored import high_water
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.data.database import Database

def stand_still(_store, _mark):
    print("here", flush=True)
    time.sleep(600)

high_water._write = stand_still
high_water.keep("submissions", Database(sys.argv[1]), BlobStore.from_url(sys.argv[2]))
"""
"""A process that stands still between the new life and the mark that says so."""


class Killed(BaseException):
    """Nothing runs after it, as after kill -9."""


class Life:
    """A service's database with the file store beside it; ``restore`` puts back what ``save`` kept, as an operator would."""

    def __init__(self, database: Database, store: BlobStore) -> None:
        self.database, self.store = database, store
        self._saved: tuple[str, dict[str, int]] | None = None

    def give(self, numbers: int = 1) -> int:
        """Let the outbox give out so many numbers; the last one."""

        def insert(session: Any) -> int:
            last = 0
            for _ in range(numbers):
                row = {"event_id": "x", "source": SERVICE, "type": "x", "body": "{}", "created_at": now()}
                (last,) = session.execute(outbox.insert().values(row)).inserted_primary_key
            return last

        return self.database.write(insert)

    def set_given(self, number: int) -> None:
        def change(session: Any) -> None:
            if self.database.sqlite:
                session.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = 'outbox'"))
                values = {"number": number}
                session.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', :number)"), values)
            else:
                session.execute(sa.text("SELECT setval('outbox_seq_seq', :number)"), {"number": number})

        self.database.write(change)

    @property
    def given(self) -> int:
        return self.database.read(lambda session: identities.highest_numbers(session.connection()))["outbox"]

    @property
    def epoch(self) -> str:
        return self.database.read(epoch.epoch_of)

    @property
    def mark(self) -> Mark:
        found = high_water.read(self.store, SERVICE)
        assert found is not None
        return found

    def keep(self) -> Mark:
        return keep(SERVICE, self.database, self.store)


@pytest.fixture
def life(database_url: str, tmp_path: Path) -> Iterator[Life]:
    migrated(SERVICE, database_url)
    database = Database(database_url)
    yield Life(database, BlobStore.from_url(f"file://{tmp_path}/blobs"))
    database.dispose()


@ON_BOTH
def test_a_database_that_is_where_its_mark_says_is_left_alone(life: Life) -> None:
    """The first start finds no mark; later ones one that agrees, or that is a little older."""
    before = life.epoch
    life.keep()
    life.give(3)
    life.keep()
    life.give(3)
    life.keep()
    assert (life.epoch, life.given) == (before, 6)
    assert life.mark.given["outbox"] == 6


@ON_BOTH
def test_a_database_that_is_behind_its_mark_begins_a_new_life(life: Life) -> None:
    before = life.epoch
    life.give(10)
    ceiling = life.keep().ceilings["outbox"]
    life.set_given(4)
    with capture_logs() as lines:
        life.keep()
    assert [line["service"] for line in lines if line["event"] == "database.restored"] == [SERVICE]
    assert life.epoch > before
    assert life.give() > ceiling
    begun, given = life.epoch, life.given
    life.keep()
    assert (life.epoch, life.given) == (begun, given)


@ON_BOTH
def test_every_table_jumps_above_its_ceiling(life: Life) -> None:
    life.give(10)
    ceilings = life.keep().ceilings
    life.set_given(4)
    life.keep()
    given = life.database.read(lambda session: identities.highest_numbers(session.connection()))
    assert {"submissions", "submitters", "trail", "told", "outbox"} <= set(given)
    assert all(given[table] >= ceilings[table] for table in given)


def test_a_database_of_another_life_begins_a_new_one(life: Life) -> None:
    """A new installation with an old file store, or one that was restored from before an earlier restore."""
    life.give(10)
    mark = life.keep()
    life.store.replace(
        "marks/submissions.json", mark.model_copy(update={"epoch": "other"}).model_dump_json().encode(), "x"
    )
    life.keep()
    assert life.epoch != mark.epoch
    assert life.give() > mark.ceilings["outbox"]


@ON_BOTH
def test_numbers_never_go_back(life: Life) -> None:
    """Also where the database is far above what its mark knows."""
    life.keep()
    life.set_given(1_000_000)
    life.store.replace(
        "marks/submissions.json", life.mark.model_copy(update={"epoch": "other"}).model_dump_json().encode(), "x"
    )
    life.keep()
    assert life.give() > 1_000_000
    life.keep()
    assert life.give() > 1_000_000


def test_the_ceiling_is_always_ahead(life: Life) -> None:
    """Whatever is given out between two looks, the mark before had room for as much again."""
    life.keep()
    at = 0
    for burst in (1, 4_000, 4_900, 100, 40_000, 300_000, 10, 0):
        before = life.mark.ceilings["outbox"]
        at += burst
        life.set_given(at)
        after = life.keep().ceilings["outbox"]
        assert after >= at + identities.RESERVE // 2
        assert after >= before
        assert after >= at + burst or burst <= identities.RESERVE // 2


def test_a_faster_pace_gets_a_larger_reserve(life: Life) -> None:
    life.give()
    life.keep()
    life.set_given(100_000)
    assert life.keep().ceilings["outbox"] > 1_000_000


@ON_BOTH
@pytest.mark.parametrize("when", ["before", "after"])
def test_who_is_killed_meanwhile_does_it_again(life: Life, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """Nothing given out comes again, and in the end all agrees."""
    before = life.epoch
    life.give(10)
    ceiling = life.keep().ceilings["outbox"]
    life.set_given(4)
    write: Callable[[BlobStore, Mark], None] = high_water._write

    def dying(store: BlobStore, mark: Mark) -> None:
        if when == "after":
            write(store, mark)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(high_water, "_write", dying)
        with pytest.raises(Killed):
            life.keep()
    given = life.given
    life.keep()
    assert life.epoch > before
    assert life.given >= given
    assert life.give() > ceiling
    begun = life.epoch
    life.keep()
    assert life.epoch == begun


@ON_BOTH
def test_a_transaction_that_fails_changes_nothing(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither epoch nor numbers; on PostgreSQL sequences usually stand outside of transactions."""
    life.give(10)
    life.keep()
    life.set_given(4)
    before = life.epoch

    def fails(_session: Any) -> None:
        raise Killed

    monkeypatch.setattr("services.submissions.reconcile.restored", fails, raising=False)
    with pytest.raises(Killed):
        life.keep()
    assert (life.epoch, life.given) == (before, 4)
    monkeypatch.undo()
    life.keep()
    assert life.epoch > before


def test_of_several_that_start_at_once_one_does_it(life: Life) -> None:
    life.give(10)
    life.keep()
    life.set_given(4)
    at_once = threading.Barrier(4)

    def start() -> None:
        own = Database(life.database.url.render_as_string(hide_password=False))
        at_once.wait()
        keep(SERVICE, own, life.store)
        own.dispose()

    with capture_logs() as lines:
        threads = [threading.Thread(target=start) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [line["event"] for line in lines].count("database.restored") == 1
    assert life.mark.epoch == life.epoch


def test_an_epoch_that_begins_for_another_reason_jumps_too(life: Life) -> None:
    """A consumer may find out first, and say so in a call."""
    life.give(10)
    life.keep()
    life.database.write(epoch.begin_epoch)
    assert life.give() > 10 + identities.RESERVE


def test_a_mark_that_cannot_be_read_is_no_mark(life: Life) -> None:
    before = life.epoch
    life.give(10)
    life.store.replace("marks/submissions.json", b"{", "application/json")
    life.keep()
    assert life.epoch == before
    assert life.mark.given["outbox"] == 10


def test_a_running_service_writes_only_what_changed(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Mark] = []
    monkeypatch.setattr(high_water, "_write", lambda _store, mark: written.append(mark))
    keeper = Keeper(SERVICE, life.database, life.store)
    keeper()
    keeper()
    assert len(written) == 1
    life.give()
    keeper()
    keeper()
    assert [mark.given["outbox"] for mark in written] == [0, 1]


def test_a_running_service_notices_that_its_database_was_put_back(life: Life) -> None:
    keeper = Keeper(SERVICE, life.database, life.store)
    before = life.epoch
    life.give(10)
    keeper()
    life.set_given(4)
    keeper()
    assert life.epoch > before


def test_a_file_store_that_is_away_is_said(life: Life, tmp_path: Path) -> None:
    life.keep()
    shutil.rmtree(tmp_path / "blobs")
    (tmp_path / "blobs").write_text("no folder")
    with pytest.raises(ServiceError) as refused:
        life.keep()
    assert refused.value.code == "unavailable"
    assert os.fspath(tmp_path) not in refused.value.message


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def look_at_once(
    life: Life, blob_url: str, processes: int, *, patience: float = high_water.START_PATIENCE
) -> list[str]:
    """As many processes start; what they log of it."""
    at_once = threading.Barrier(processes)

    def start() -> None:
        own = Database(life.database.url.render_as_string(hide_password=False))
        at_once.wait()
        look_at_mark(SERVICE, own, blob_url, patience=patience)
        own.dispose()

    with capture_logs() as lines:
        threads = [threading.Thread(target=start, daemon=True) for _ in range(processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive(), "somebody waits on"
    return [line["event"] for line in lines]


@ON_BOTH
def test_who_stands_still_at_it_keeps_nobody_from_starting_and_killed_leaves_it_to_the_next(
    life: Life, tmp_path: Path
) -> None:
    """Several processes start after a restore, one of them first: stopped in the middle, and then killed."""
    before, blob_url = life.epoch, f"file://{tmp_path}/blobs"
    life.give(10)
    ceiling = life.keep().ceilings["outbox"]
    life.set_given(4)
    url = life.database.url.render_as_string(hide_password=False)
    first = subprocess.Popen(
        [sys.executable, "-c", STANDS_STILL, url, blob_url], stdout=subprocess.PIPE, cwd=processes.ROOT
    )
    try:
        assert first.stdout is not None
        assert b"here\n" in first.stdout, "it has come there"  # read until then
        assert look_at_once(life, blob_url, 3, patience=0.5) == ["mark.not_kept"] * 3
        assert life.mark.epoch == before
        assert life.give() > ceiling, "the first one has moved the numbers on before it stood still"
    finally:
        first.kill()
        first.wait()
    assert look_at_once(life, blob_url, 3).count("database.restored") == 1
    assert life.mark.epoch == life.epoch > before
    assert look_at_once(life, blob_url, 3) == []


def test_a_bucket_that_does_not_answer_keeps_nobody_from_starting(
    life: Life, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four at once wait for each other as well; a call of the store may otherwise take two minutes."""
    for name, value in {**BUCKET, "AWS_ENDPOINT_URL": silent}.items():
        monkeypatch.setenv(name, value)
    assert look_at_once(life, "s3://files", 4) == ["mark.not_kept"] * 4


def test_a_lock_that_cannot_be_had_keeps_nobody_from_starting(tmp_path: Path) -> None:
    """Such as in a folder where nothing can be written."""
    url = f"sqlite:///{tmp_path}/test.sqlite"
    migrated(SERVICE, url)
    lock = tmp_path / "test.sqlite.migrating"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    with capture_logs() as lines:
        look_at_mark(SERVICE, Database(url), f"file://{tmp_path}/blobs")
    assert [line["event"] for line in lines] == ["mark.not_kept"]


def test_a_service_answers_although_its_bucket_does_not(broker: PrivateBroker, silent: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/webhooks.sqlite"
    settings = processes.environment("webhooks", broker.amqp_url, url, tmp_path)
    processes.migrate("webhooks", settings)
    settings |= {**BUCKET, "AWS_ENDPOINT_URL": silent, "BLOB_URL": "s3://files"}
    client = RpcClient(broker.amqp_url, name="beside a silent bucket")

    def answers() -> bool:
        try:
            client.call(health.PING["webhooks"], health.Ping())
        except ServiceError:
            return False
        return True

    with processes.running("webhooks", "serve", settings, tmp_path / "serve.log"):
        wait_until(answers, what="webhooks answers")
    client.close()
    assert "mark.not_kept" in processes.log_of(tmp_path / "serve.log")
