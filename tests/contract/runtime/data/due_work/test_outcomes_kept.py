"""What was done outside is written once the database takes it, and is not done again: databases that are locked, killed or full
right after the attempt, processes that are killed before they could write."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.runtime.clock import now
from contracts.runtime.data import database as runtime_database
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, DueWork, Retry
from contracts.runtime.data.files.blobstore import BlobStore
from deploy.rabbitmq import PrivateBroker
from services.notifications.models import MailRow, PhoneMessageRow
from services.notifications.sending import phone_messages
from services.notifications.sending.journal import Journal, Sent
from services.rendering import commands as rendering
from services.rendering.models import SealJob
from services.rendering.rules import domain
from services.rendering.sealing.seal_jobs import SealWork
from services.rendering.signatures.workshop import Workshop
from tests.contract.conftest import on
from tests.contract.notifications.test_database import invite
from tests.contract.notifications.test_sms import due as sms_due
from tests.contract.runtime.data.due_work import test_background as jobs
from tests.contract.runtime.data.due_work.test_background import job, say, work
from tests.support.material.jobs import Base, Job, add
from tests.support.rendering import seal_jobs, sealing
from tests.support.rendering.seal_jobs import keys, workshop
from tests.support.servers.mail_server import MailServer
from tests.support.servers.outages import Outage, killable, outage
from tests.support.servers.receiver import Receiver
from tests.support.services import processes
from tests.support.services.loops import running
from tests.support.services.migrated import migrated
from tests.support.services.suite import wait_until

__all__ = ["keys", "killable", "outage", "workshop"]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits ten seconds for SQLite's lock here; processes of their own do."""
    monkeypatch.setattr(runtime_database, "SQLITE_BUSY_SECONDS", 0.5)


@pytest.fixture
def open_database(outage: Outage) -> Iterator[Database]:
    made = Database(outage.url)
    yield made
    made.dispose()


def unwritten(name: str) -> float | None:
    return REGISTRY.get_sample_value("countersign_due_work_unwritten", {"work": name})


def test_several_outcomes_wait_for_the_database_and_nothing_is_done_twice(
    outage: Outage, open_database: Database
) -> None:
    Base.metadata.create_all(open_database.engine.execution_options(countersign_write=True))
    attempts: list[int] = []
    together = threading.Barrier(3, action=outage.begin)

    def attempt(row: Job) -> Any:
        attempts.append(row.id)
        if row.attempts == 1:
            together.wait(120)
        return (
            Retry("no", after=timedelta(0), record=say("retry"))
            if attempts.count(row.id) == 1 and row.lane
            else Done(say("done"))
        )

    plain = [open_database.write(add) for _ in range(2)]
    tried_again = open_database.write(add, "lane")
    with running(work(open_database, attempt, concurrency=3)):
        wait_until(lambda: unwritten("jobs") == 3, what="three outcomes that cannot be written")
        outage.end()
        wait_until(
            lambda: all(job(open_database, i).state == "done" for i in (*plain, tried_again)), what="the outcomes"
        )
    assert sorted(attempts) == sorted([*plain, tried_again, tried_again])
    assert sorted(jobs.said(open_database)) == ["done done 1"] * 2 + ["done done 2", "retry due 1"]
    assert unwritten("jobs") == 0


class Refusing(Database):
    """Takes everything but outcomes, until it is told otherwise."""

    refuses = True

    def write(self, use_case: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.refuses and getattr(use_case, "__name__", "") == "_write_outcomes":
            raise ServiceError("unavailable", "The database is busy. Try again.")
        return super().write(use_case, *args, **kwargs)


def test_the_lease_is_prolonged_until_the_outcome_is_written(database_url: str) -> None:
    database = Refusing(database_url)
    Base.metadata.create_all(database.engine.execution_options(countersign_write=True))
    attempts: list[int] = []
    lease = timedelta(seconds=2)

    def attempt(row: Job) -> Done:
        attempts.append(row.id)
        return Done(say("done"))

    identifier = database.write(add)
    began = now()
    with running(work(database, attempt, lease=lease, concurrency=2)):
        # Some leases later it is still ours.
        wait_until(lambda: (job(database, identifier).leased_until or began) > began + 5 * lease, what="a longer lease")
        database.refuses = False
        wait_until(lambda: job(database, identifier).state == "done", what="the outcome")
    assert attempts == [identifier]
    assert jobs.said(database) == ["done done 1"]
    database.dispose()


def test_a_disk_that_was_full_takes_the_outcome_afterwards(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/full.sqlite")
    Base.metadata.create_all(database.engine.execution_options(countersign_write=True))
    most = {"pages": 100_000}
    attempts: list[int] = []

    def limit(connection: Any) -> None:
        connection.connection.driver_connection.execute(f"PRAGMA max_page_count = {most['pages']}")

    def attempt(row: Job) -> Done:
        most["pages"] = 1
        attempts.append(row.id)
        return Done(lambda session, _: session.add(jobs.Said(what="x" * 100_000)))

    sa.event.listen(database.engine, "begin", limit)
    identifier = database.write(add)
    with running(work(database, attempt)):
        wait_until(lambda: unwritten("jobs") == 1, what="an outcome for which there is no room")
        most["pages"] = 100_000
        wait_until(lambda: job(database, identifier).state == "done", what="the outcome")
    assert attempts == [identifier]
    database.dispose()


def test_a_seal_is_told_as_soon_as_the_database_is_back(
    outage: Outage, open_database: Database, tmp_path: Path, keys: Path, workshop: Workshop
) -> None:
    """Not when its lease is over: somebody waits for it."""
    migrated("rendering", outage.url)
    blobs = BlobStore.from_url(f"file://{tmp_path}/blobs")
    seal_jobs.order(open_database, sealing.seal_request(blobs, sealing.contract_pdf()))
    work = SealWork(seal_jobs.settings(keys), blobs, workshop.renderer, workshop.sealer, open_database)
    attempts: list[int] = []

    def attempt(row: SealJob) -> Any:
        attempts.append(row.id)
        outcome = work.attempt(row)
        outage.begin()
        return outcome

    loop = DueWork(
        "kept seal",
        open_database,
        SealJob,
        attempt,
        schedule=domain.SCHEDULE,
        lease=timedelta(minutes=15),
        on_park=rendering.fail_job,
    )
    with running(loop):
        wait_until(lambda: unwritten("kept seal") == 1, what="the seal's outcome")
        outage.end()
        wait_until(lambda: seal_jobs.told(open_database), what="the sealed documents to be told")
    assert len(attempts) == 1
    assert seal_jobs.sealed_event(open_database).submission_id


# Messages that were sent, and processes that die before they could write it.


class Sending:
    """The notifications' background process on a database that goes away."""

    def __init__(self, broker: PrivateBroker, outage: Outage, folder: Path, **more: str) -> None:
        self.folder = folder
        self.settings = processes.environment("notifications", broker.amqp_url, outage.url, folder, **more)
        processes.migrate("notifications", self.settings)
        self.database = Database(outage.url)

    def running(self) -> Any:
        return processes.running("notifications", "background", self.settings, self.folder / "background.log")

    def notes(self) -> list[Path]:
        folder = self.folder / "sent"
        # One that is empty is still being written: a process that is killed now has not noted what the server said.
        return [note for note in folder.iterdir() if note.stat().st_size] if folder.exists() else []

    def state(self, row: type[MailRow | PhoneMessageRow]) -> tuple[str, str | None]:
        def read(session: Session) -> tuple[str, str | None]:
            found = session.execute(sa.select(row.state, row.answer)).one()
            return found.state, found.answer

        return self.database.read(read)


@pytest.mark.parametrize(
    ("outage", "kill"),
    [("sqlite", "SIGKILL"), ("postgresql", "SIGKILL"), ("sqlite", "SIGTERM")],
    indirect=["outage"],
)
def test_a_mail_that_was_sent_is_not_sent_again_by_the_next_process(
    broker: PrivateBroker, outage: Outage, tmp_path: Path, kill: str
) -> None:
    with MailServer() as server:
        sending = Sending(broker, outage, tmp_path, SMTP_URL=server.url, MAIL_FROM="me@acme.example", DRAIN_SECONDS="1")

        def take(_address: str) -> None:
            if not server.received:
                outage.begin()

        server.data = take
        with sending.running() as process:
            invite(sending.database, 1)
            wait_until(sending.notes, what="the note of a mail that was sent")
            process.kill() if kill == "SIGKILL" else process.terminate()
            process.wait(120)
        assert len(sending.notes()) == 1
        outage.end()
        with sending.running():
            wait_until(lambda: sending.state(MailRow)[0] == "done", what="the mail's row")
            wait_until(lambda: not sending.notes(), what="the note to be removed")
        assert sending.state(MailRow)[1] == "250 OK queued as 1"
        assert server.recipients() == ["signer1@example.com"]
        sending.database.dispose()


@on("postgresql", "outage")
def test_an_sms_that_was_sent_is_not_sent_again_by_the_next_process(
    broker: PrivateBroker, outage: Outage, tmp_path: Path
) -> None:
    taken: list[str] = []

    def take(request: Any) -> Any:
        taken.append(request.headers["idempotency-key"])
        outage.begin()
        return 200, {}, b"queued"

    with Receiver(take) as provider:
        sending = Sending(broker, outage, tmp_path, SMTP_URL="smtp://127.0.0.1:9", SMS_URL=provider.url)
        with sending.running() as process:
            sending.database.write(phone_messages.accept_invitation, "e", sms_due(), timedelta(0), now())
            wait_until(sending.notes, what="the note of an SMS that was sent")
            process.kill()
            process.wait()
        outage.end()
        with sending.running():
            wait_until(lambda: sending.state(PhoneMessageRow)[0] == "done", what="the row")
        assert sending.state(PhoneMessageRow)[1] == "200 queued"
        assert len(taken) == 1
        sending.database.dispose()


def test_a_journal_knows_what_was_noted_whatever_became_of_the_disk(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "sent")
    assert journal.find("one") is None
    sent = Sent("250 OK", now().replace(microsecond=0))
    note = journal.note("one", sent)
    note.sync()
    assert (tmp_path / "sent").stat().st_mode & 0o077 == note.path.stat().st_mode & 0o077 == 0
    assert Journal(tmp_path / "sent").find("one") == sent
    assert journal.find("another") is None
    note.path.write_text("{")  # the power went in the middle of it
    found = journal.find("one")
    assert found is not None
    assert found.answer == "taken"
    note.remove()
    note.remove()
    assert journal.find("one") is None
    (tmp_path / "sent").rename(tmp_path / "away")
    journal.note("one", sent).sync()  # says so in the log, and the mail is sent all the same
    assert journal.find("one") is None
