"""Batches on SQLite and PostgreSQL: each row becomes one submission, whatever is killed, cancelled or away meanwhile."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.rpc import Rpc, templates
from contracts.rpc.submissions import batches as rpc
from contracts.rpc.submissions import people as people_rpc
from contracts.rpc.submissions.batches import BatchRowDraft, BatchSettings, BatchStatus, RowStatus
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work import holder
from contracts.runtime.data.due_work.background import Done, More, Retry
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import Account, Actor, Role
from services.submissions.batches import checking, commands, people, queries, running
from services.submissions.batches.running import Batches
from services.submissions.creating.single import Creator
from services.submissions.models import BatchLineRow, BatchRow
from services.submissions.planning.first_pages import FirstPages
from services.submissions.settings import Settings
from tests.contract.conftest import ON_BOTH
from tests.support.material.submissions import ADMIN, SITE, Desk, refusal, two_signers
from tests.support.present import present
from tests.support.services import loops
from tests.support.services.secret_settings import LINK_SECRET
from tests.support.services.suite import wait_until

ACCOUNT = Account(first_page_in_mails=False)
KEPT = timedelta(days=30)
ROLES = ("First Party", "Second Party")
EDITOR = Actor(user_id=2, role=Role.EDITOR, email="ed@example.com", name="Ed")
FAST = 6_000


class Templates:
    """What the templates service answers: the template, or what it refuses."""

    def __init__(self, found: TemplateSnapshot) -> None:
        self.found = found
        self.refusal: Exception | None = None
        self.asked = threading.Event()
        self.answers = threading.Event()
        self.answers.set()

    def call(self, call: Rpc[Any, Any], request: Any) -> Any:
        assert call is templates.SNAPSHOT
        self.asked.set()
        assert self.answers.wait(60)
        if self.refusal is not None:
            raise self.refusal
        return self.found


class BatchDesk:
    """The use cases of batches on a database, and what works through them."""

    def __init__(self, url: str, folder: Path) -> None:
        self.desk = Desk(url)
        self.database = self.desk.database
        self.folder = folder
        self.bus = Templates(two_signers())
        self.batches = self.working(self.database)

    def working(self, database: Database) -> Batches:
        settings = Settings(
            amqp_url="amqp://nowhere",
            blob_url=f"file://{self.folder}/blobs",
            base_url="http://localhost",
            link_secret=LINK_SECRET,
            database_url=str(database.url),
        )
        creator = Creator(self.bus, BlobStore.from_url(settings.blob_url), settings, FirstPages())
        return Batches(creator, database, SITE, KEPT)

    def send(self, *rows: dict[str, Any], rate: int = FAST, actor: Actor = ADMIN, **settings: Any) -> rpc.Batch:
        command = self.command(actor=actor, **settings)
        return self.database.write(commands.create, command, drafts(*rows), self.bus.found, rate, now())

    def command(self, actor: Actor = ADMIN, **settings: Any) -> rpc.CreateBatch:
        common = BatchSettings(template_id=self.bus.found.id, account=ACCOUNT, submission=settings)
        nowhere = {"key": "incoming/x", "sha256": "", "size": 0, "media_type": ""}
        return rpc.CreateBatch(request_id=uuid7(), actor=actor, settings=common, rows=nowhere)

    def get(self, batch_id: int, actor: Actor = ADMIN) -> rpc.Batch:
        return self.database.read(queries.batch, rpc.GetBatch(actor=actor, id=batch_id))

    def rows(self, batch_id: int, actor: Actor = ADMIN, **more: Any) -> list[rpc.BatchRow]:
        query = rpc.ListBatchRows(actor=actor, id=batch_id, limit=100, **more)
        return self.database.read(queries.rows, query, SITE).data

    def change(self, what: Callable[..., rpc.Batch], batch_id: int, *arguments: Any, actor: Actor = ADMIN) -> rpc.Batch:
        command = rpc.ChangeBatch(request_id=uuid7(), actor=actor, id=batch_id)
        return self.database.write(what, command, *arguments, now())

    def cancel(self, batch_id: int, actor: Actor = ADMIN) -> rpc.Batch:
        return self.change(commands.cancel, batch_id, KEPT, actor=actor)

    def retry(self, batch_id: int) -> rpc.Batch:
        return self.change(commands.retry, batch_id)

    def portion(self, batch_id: int) -> Any:
        return self.batches.portion(self.row(batch_id))

    def row(self, batch_id: int) -> BatchRow:
        return self.database.read(lambda session: session.get_one(BatchRow, batch_id))

    def run_until(self, batch_id: int, ended: Callable[[rpc.Batch], bool] | None = None) -> rpc.Batch:
        """Let the background work until the batch has ended, or what is asked for holds."""
        over = ended or (lambda batch: batch.status is BatchStatus.COMPLETED)
        with loops.running(*self.batches.loops()[:1]):
            wait_until(lambda: over(self.get(batch_id)), what="the batch")
        return self.get(batch_id)

    def inputs(self) -> int:
        """How many rows are kept as they were sent."""
        kept = sa.select(sa.func.count()).where(BatchLineRow.input.is_not(None))
        return self.database.read(lambda session: session.scalar(kept)) or 0

    def submissions(self) -> list[int]:
        return [row.id for row in self.desk.rows("SELECT id FROM submissions ORDER BY id")]

    def each_once(self, batch_id: int, rows: int) -> None:
        """Each row has a submission of its own, with its own signer, and there is no other."""
        pages = [self.rows(batch_id)]
        while pages[-1]:
            pages.append(self.rows(batch_id, after=pages[-1][-1].id))
        found = [row for page in pages for row in page]
        assert [row.row for row in found] == list(range(2, rows + 2))
        made = {row.row: row.submission_id for row in found}
        signers = {
            row.email: row.submission_id
            for row in self.desk.rows("SELECT email, submission_id FROM submitters WHERE position = 0")
        }
        assert signers == {f"row{number}@example.com": submission for number, submission in made.items()}
        assert sorted(map(present, made.values())) == self.submissions()


def row(number: int, **more: Any) -> dict[str, Any]:
    signers = [{"email": f"row{number}@example.com"}, {"email": "landlord@example.com"}]
    return {"submitters": signers, **more}


def drafts(*rows: dict[str, Any]) -> list[BatchRowDraft]:
    return [
        BatchRowDraft(row=number, external_id=f"key {number}", submission=one)
        for number, one in enumerate(rows, start=2)
    ]


def many(count: int) -> list[dict[str, Any]]:
    return [row(number) for number in range(2, count + 2)]


@pytest.fixture
def batch_desk(database_url: str, tmp_path: Path) -> Iterator[BatchDesk]:
    made = BatchDesk(database_url, tmp_path)
    yield made
    made.database.dispose()


def test_each_row_becomes_a_submission_and_what_it_said_is_dropped(batch_desk: BatchDesk) -> None:
    batch = batch_desk.send(*many(7), message={"subject": "All", "body": "of you"})
    assert (batch.status, batch.counts.pending, batch.ended_at) == (BatchStatus.RUNNING, 7, None)
    assert batch_desk.inputs() == 7
    done = batch_desk.run_until(batch.id)
    assert done.counts == rpc.BatchCounts(created=7)
    assert done.ended_at is not None
    assert done.expires_at == done.ended_at + KEPT
    batch_desk.each_once(batch.id, 7)
    assert batch_desk.inputs() == 0
    first = batch_desk.desk.get(batch_desk.submissions()[0])
    assert [signer.email for signer in first.submitters] == ["row2@example.com", "landlord@example.com"]
    invited = [one["data"] for one in batch_desk.desk.events("invitation.due")]
    assert len(invited) == 7
    assert {mail["message"]["subject"] for mail in invited} == {"All"}
    assert len(batch_desk.desk.events("submission.created")) == 7


def test_what_a_row_says_itself_counts(batch_desk: BatchDesk) -> None:
    batch = batch_desk.send(row(2), row(3, name="Its own", send_email=False), name="Of all")
    batch_desk.run_until(batch.id)
    names = [batch_desk.desk.get(number).name for number in batch_desk.submissions()]
    assert names == ["Of all", "Its own"]
    assert len(batch_desk.desk.events("invitation.due")) == 1


@ON_BOTH
def test_preferences_that_all_rows_have_are_kept_as_the_templates_once(batch_desk: BatchDesk) -> None:
    batch = batch_desk.send(*many(3), preferences={"keep_days": 7})
    batch_desk.run_until(batch.id)
    assert len(batch_desk.desk.events("preferences.given")) == 1
    kept = [row.preferences for row in batch_desk.desk.rows("SELECT preferences FROM submissions")]
    assert len(kept) == 3
    assert all("keep_days" in str(one) for one in kept)


def test_a_row_that_is_refused_keeps_the_others_from_nothing_and_is_tried_again(batch_desk: BatchDesk) -> None:
    late = (now() - timedelta(days=1)).isoformat()
    batch = batch_desk.send(row(2), row(3, expire_at=late), row(4))
    done = batch_desk.run_until(batch.id)
    assert done.counts == rpc.BatchCounts(created=2, failed=1)
    (failed,) = batch_desk.rows(batch.id, status=RowStatus.FAILED)
    assert failed.error is not None
    assert (failed.row, failed.external_id, failed.error.code) == (3, "key 3", "invalid")
    assert failed.error.details == [{"field": "expire_at", "reason": "must be in the future"}]
    assert batch_desk.inputs() == 1
    again = batch_desk.retry(batch.id)
    assert (again.status, again.counts.pending, again.ended_at) == (BatchStatus.RUNNING, 1, None)
    assert batch_desk.run_until(batch.id).counts == done.counts
    assert len(batch_desk.submissions()) == 2


def test_rows_that_failed_for_their_template_are_made_once_it_is_mended(batch_desk: BatchDesk) -> None:
    found = batch_desk.bus.found
    batch_desk.bus.found = found.model_copy(update={"archived": True})
    batch = batch_desk.send(*many(3))
    assert batch_desk.run_until(batch.id).counts.failed == 3
    batch_desk.bus.found = found
    batch_desk.retry(batch.id)
    assert batch_desk.run_until(batch.id).counts == rpc.BatchCounts(created=3)
    batch_desk.each_once(batch.id, 3)
    assert refusal(lambda: batch_desk.retry(batch.id)).code == "invalid"


@ON_BOTH
def test_a_service_that_is_away_fails_no_row(batch_desk: BatchDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SCHEDULE", [timedelta(milliseconds=20)] * 1_000)
    batch_desk.bus.refusal = ServiceError("unavailable", "The templates service does not answer")
    batch = batch_desk.send(*many(3))
    with loops.running(*batch_desk.batches.loops()[:1]):
        wait_until(lambda: sum(line.tries for line in lines(batch_desk)) >= 5, what="some tries")
        waiting = batch_desk.get(batch.id)
        assert (waiting.status, waiting.counts.pending) == (BatchStatus.RUNNING, 3)
        batch_desk.bus.refusal = None
        wait_until(lambda: batch_desk.get(batch.id).status is BatchStatus.COMPLETED, what="the batch")
    batch_desk.each_once(batch.id, 3)
    assert all(one.error is None for one in batch_desk.rows(batch.id))


def test_a_row_that_cannot_be_understood_fails_alone(batch_desk: BatchDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PAUSE", 0.0)
    made = running._Portion._make

    def stumbling(portion: Any, line: BatchLineRow) -> int:
        if line.number == 3:
            raise ZeroDivisionError("somebody's address")
        return made(portion, line)

    monkeypatch.setattr(running._Portion, "_make", stumbling)
    batch = batch_desk.send(*many(4))
    assert batch_desk.run_until(batch.id).counts == rpc.BatchCounts(created=3, failed=1)
    (failed,) = batch_desk.rows(batch.id, status=RowStatus.FAILED)
    assert failed.error == rpc.RowError(error="Internal error", code="internal")
    assert lines(batch_desk)[1].tries == running.MOST_TRIES


def lines(batch_desk: BatchDesk) -> list[BatchLineRow]:
    return batch_desk.database.read(
        lambda session: list(session.scalars(sa.select(BatchLineRow).order_by(BatchLineRow.id)))
    )


@ON_BOTH
def test_a_process_that_is_killed_makes_no_row_twice_and_loses_none(batch_desk: BatchDesk) -> None:
    batch = batch_desk.send(*many(40))
    for enough in (3, 11, 24):
        child = multiprocessing.get_context("fork").Process(target=work_on, args=(batch_desk,), daemon=True)
        child.start()
        assert child.pid is not None
        wait_until(lambda enough=enough: batch_desk.get(batch.id).counts.created >= enough, what="some rows")
        os.kill(child.pid, signal.SIGKILL)
        child.join()
    assert batch_desk.run_until(batch.id).counts == rpc.BatchCounts(created=40)
    batch_desk.each_once(batch.id, 40)
    assert len(batch_desk.desk.events("submission.created")) == 40
    assert len(batch_desk.desk.events("invitation.due")) == 40


def work_on(batch_desk: BatchDesk) -> None:
    """In a process of its own, until it is killed."""
    holder.own_name.cache_clear()
    database = Database(batch_desk.desk.url)
    with loops.running(*batch_desk.working(database).loops()[:1]):
        threading.Event().wait()


def test_two_that_are_at_the_same_rows_make_each_once(batch_desk: BatchDesk) -> None:
    batch = batch_desk.send(*many(12), rate=FAST)
    chosen = batch_desk.row(batch.id)
    with ThreadPoolExecutor(3) as threads:
        outcomes = list(threads.map(lambda _: batch_desk.batches.portion(chosen), range(3)))
    assert all(isinstance(outcome, Done | More) for outcome in outcomes)
    assert batch_desk.run_until(batch.id).counts == rpc.BatchCounts(created=12)
    batch_desk.each_once(batch.id, 12)


def test_rows_that_are_not_made_yet_are_cancelled_and_those_that_were_stay(batch_desk: BatchDesk) -> None:
    batch = batch_desk.send(*many(9), rate=180)
    assert isinstance(batch_desk.portion(batch.id), More)
    cancelled = batch_desk.cancel(batch.id)
    assert (cancelled.status, cancelled.counts) == (BatchStatus.CANCELLED, rpc.BatchCounts(created=3, cancelled=6))
    assert batch_desk.inputs() == 0
    assert batch_desk.row(batch.id).settings is None
    assert isinstance(batch_desk.portion(batch.id), Done)
    with loops.running(*batch_desk.batches.loops()[:1]):
        other = batch_desk.send(row(2))
        wait_until(lambda: batch_desk.get(other.id).status is BatchStatus.COMPLETED, what="the other batch")
    assert batch_desk.get(batch.id).counts == cancelled.counts
    assert len(batch_desk.submissions()) == 4
    assert refusal(lambda: batch_desk.retry(batch.id)).code == "conflict"
    assert batch_desk.cancel(batch.id).counts == cancelled.counts


def test_a_row_that_is_cancelled_while_it_is_made_is_not(batch_desk: BatchDesk) -> None:
    batch = batch_desk.send(*many(2))
    batch_desk.bus.answers.clear()
    with ThreadPoolExecutor(1) as threads:
        working = threads.submit(batch_desk.portion, batch.id)
        assert batch_desk.bus.asked.wait(60)
        batch_desk.cancel(batch.id)
        batch_desk.bus.answers.set()
        working.result(60)
    assert batch_desk.get(batch.id).counts == rpc.BatchCounts(cancelled=2)
    assert batch_desk.submissions() == []


def test_what_failed_is_dropped_when_the_batch_is_cancelled(batch_desk: BatchDesk) -> None:
    batch_desk.bus.refusal = ServiceError("not_found", "Template not found")
    batch = batch_desk.send(*many(2))
    batch_desk.run_until(batch.id)
    assert batch_desk.inputs() == 2
    assert batch_desk.cancel(batch.id).counts == rpc.BatchCounts(failed=2)
    assert batch_desk.inputs() == 0


@ON_BOTH
def test_what_rows_say_of_a_person_is_told_and_dropped(batch_desk: BatchDesk) -> None:
    """What is not made yet, and what has failed; what was made is a submission."""
    database = batch_desk.database
    person = "ANN.ray@example.com"

    def told(actor: Actor = ADMIN) -> list[people_rpc.UnsentRow]:
        return database.read(people.unsent, people_rpc.FindUnsent(actor=actor, email=person)).data

    def dropped(actor: Actor = ADMIN) -> people_rpc.RemovedUnsent:
        command = people_rpc.RemoveUnsent(request_id=uuid7(), actor=actor, email=person)
        return database.write(people.remove, command, now())

    def of(*emails: str) -> dict[str, Any]:
        return {"submitters": [{"role": role, "email": email} for role, email in zip(ROLES, emails, strict=True)]}

    made = batch_desk.send(of("ann.ray@example.com", "bo@example.com"))
    batch_desk.run_until(made.id)
    batch_desk.bus.refusal = ServiceError("not_found", "Template not found")
    failed = batch_desk.send(of("bo@example.com", "Ann.Ray@example.com"), of("bo@example.com", "joann.ray@example.com"))
    batch_desk.run_until(failed.id)
    waiting = batch_desk.send(
        of("ann.ray@example.com", "bo@example.com"), row(3), cc_completed="x@example.com, ann.ray@example.com"
    )
    assert [(one.batch_id, one.row, one.mentioned_in) for one in told()] == [
        (waiting.id, None, ["settings.cc_completed"]),
        (waiting.id, 2, ["submitters[0].email"]),
        (failed.id, 2, ["submitters[1].email"]),
    ]
    assert [party["role"] for one in told() for party in one.parties] == [ROLES[0], ROLES[1]]
    assert told(ADMIN.model_copy(update={"test": True})) == []
    assert refusal(lambda: told(EDITOR)).code == refusal(lambda: dropped(EDITOR)).code == "forbidden"
    assert dropped(ADMIN.model_copy(update={"test": True})).rows == 0

    assert dropped() == people_rpc.RemovedUnsent(rows=2, batches=[waiting.id])
    assert dropped() == people_rpc.RemovedUnsent(rows=0, batches=[waiting.id])
    assert [one.row for one in told()] == [None]
    batch_desk.bus.refusal = None
    batch_desk.retry(failed.id)
    for batch in (failed, waiting):
        batch_desk.run_until(batch.id)
        assert batch_desk.get(batch.id).counts == rpc.BatchCounts(created=1, cancelled=1)
    batch_desk.cancel(waiting.id)
    assert told() == []


@pytest.mark.parametrize(("rate", "rows"), [(6_000, 12), (600, 10), (180, 3), (61, 1), (1, 1)])
def test_a_portion_is_a_second_of_the_rate_and_a_row_at_least(batch_desk: BatchDesk, rate: int, rows: int) -> None:
    batch = batch_desk.send(*many(12), rate=rate)
    outcome = batch_desk.portion(batch.id)
    assert batch_desk.get(batch.id).counts.created == rows
    if rows == 12:
        assert isinstance(outcome, Done)
    else:
        assert isinstance(outcome, More)
        assert timedelta(0) <= outcome.after <= timedelta(seconds=rows * 60 / rate)
    if rate == 1:
        assert outcome.after > timedelta(seconds=1)


def test_each_row_has_a_transaction_of_its_own(batch_desk: BatchDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    write = Database.write

    def counting(database: Database, use_case: Any, *arguments: Any, **more: Any) -> Any:
        before = len(batch_desk.submissions())
        answer = write(database, use_case, *arguments, **more)
        written.append(len(batch_desk.submissions()) - before)
        return answer

    batch = batch_desk.send(*many(8))
    monkeypatch.setattr(Database, "write", counting)
    batch_desk.portion(batch.id)
    assert written == [1] * 8


def test_one_batch_does_not_wait_for_another(batch_desk: BatchDesk) -> None:
    slow = batch_desk.send(*many(5), rate=1)
    fast = batch_desk.send(*[row(number) for number in range(102, 110)])
    batch_desk.run_until(fast.id)
    assert batch_desk.get(slow.id).counts.created < 5


def test_a_request_that_comes_again_is_the_same_batch(batch_desk: BatchDesk) -> None:
    command = batch_desk.command()
    first, second = (
        batch_desk.database.write(commands.create, command, drafts(row(2)), batch_desk.bus.found, FAST, now())
        for _ in range(2)
    )
    assert first.id == second.id
    batch_desk.run_until(first.id)
    assert len(batch_desk.submissions()) == 1


@ON_BOTH
def test_who_may_see_a_batch(batch_desk: BatchDesk) -> None:
    batch_desk.bus.found = batch_desk.bus.found.model_copy(update={"author_id": 3})
    batch = batch_desk.send(row(2), actor=EDITOR)
    author, other = (EDITOR.model_copy(update={"user_id": number}) for number in (3, 4))
    for actor in (ADMIN, EDITOR, author):
        assert batch_desk.get(batch.id, actor).id == batch.id
        listed = batch_desk.database.read(queries.batches, rpc.ListBatches(actor=actor))
        assert [one.id for one in listed.data] == [batch.id]
    assert batch_desk.database.read(queries.batches, rpc.ListBatches(actor=other)).data == []
    for work in (
        lambda: batch_desk.get(batch.id, other),
        lambda: batch_desk.rows(batch.id, other),
        lambda: batch_desk.cancel(batch.id, other),
        lambda: batch_desk.get(batch.id + 1),
    ):
        assert (refusal(work).code, refusal(work).message) == ("not_found", "Batch not found")


def test_signing_links_are_for_who_may_act(batch_desk: BatchDesk) -> None:
    batch = batch_desk.send(row(2))
    batch_desk.run_until(batch.id)
    (shown,) = batch_desk.rows(batch.id, include="submitters")
    assert shown.submitters is not None
    assert shown.submitters[0].embed_src == f"https://sign.example.com/s/{shown.submitters[0].slug}"
    (read_only,) = batch_desk.rows(batch.id, ADMIN.model_copy(update={"may_act": False}), include="submitters")
    assert [(one.slug, one.embed_src) for one in read_only.submitters or ()] == [(None, None)] * 2
    (plain,) = batch_desk.rows(batch.id)
    assert plain.submitters is None


def test_of_an_erased_submission_a_batch_keeps_the_number(batch_desk: BatchDesk) -> None:
    batch = batch_desk.send(*many(2))
    batch_desk.run_until(batch.id)
    first, second = batch_desk.submissions()
    batch_desk.desk.now = now()
    batch_desk.desk.remove(first, permanently=True)
    erased, other = batch_desk.rows(batch.id, include="submitters")
    assert (erased.status, erased.submission_id, erased.external_id, erased.submitters) == ("created", first, None, [])
    assert (other.submission_id, other.external_id) == (second, "key 3")


@ON_BOTH
def test_a_batch_is_forgotten_when_its_time_is_over(batch_desk: BatchDesk) -> None:
    batch = batch_desk.send(*many(2))
    assert batch_desk.database.write(commands.forget, now() + 2 * KEPT) == 0, "rows are pending"
    ended = batch_desk.run_until(batch.id)
    assert ended.expires_at is not None
    assert batch_desk.database.write(commands.forget, ended.expires_at - timedelta(seconds=1)) == 0
    assert batch_desk.database.write(commands.forget, ended.expires_at) == 1
    assert refusal(lambda: batch_desk.get(batch.id)).code == "not_found"
    assert lines(batch_desk) == []
    assert len(batch_desk.submissions()) == 2


@ON_BOTH
def test_the_backlog_is_what_is_pending_and_since_when(batch_desk: BatchDesk) -> None:
    assert batch_desk.database.read(queries.backlog, now()) == (0, timedelta(0))
    batch = batch_desk.send(*many(5), rate=120)
    pending, oldest = batch_desk.database.read(queries.backlog, now() + timedelta(hours=1))
    assert (pending, oldest > timedelta(minutes=59)) == (5, True)
    batch_desk.portion(batch.id)
    assert batch_desk.database.read(queries.backlog, now())[0] == 3
    batch_desk.cancel(batch.id)
    assert batch_desk.database.read(queries.backlog, now() + timedelta(hours=1)) == (0, timedelta(0))


def test_rows_are_planned_before_they_become_a_batch(batch_desk: BatchDesk) -> None:
    command = batch_desk.command()
    rows = [
        row(2),
        row(3, submitters=[{"email": "x@example.com", "role": "Nobody"}]),
        row(4, submitters=[{"email": "x@example.com", "values": {"Town": "Lyon"}}]),
        row(5, name=["x"]),
    ]
    check = rpc.CheckRows(actor=ADMIN, settings=command.settings, rows=drafts(*rows))
    checked = checking.check(check, batch_desk.bus.found, batch_desk.desk.limits, now())
    assert [(one.row, one.field) for one in checked.problems] == [(3, "submitters[0].role"), (5, "name")]
    assert [(one.row, one.field, one.reason) for one in checked.warnings] == [
        (4, "submitters[0].values.Town", "is not a field of this role")
    ]
    archived = batch_desk.bus.found.model_copy(update={"archived": True})
    assert refusal(lambda: checking.check(check, archived, batch_desk.desk.limits, now())).message == (
        "Template has been archived"
    )
    assert batch_desk.submissions() == []


def test_an_outcome_says_what_is_in_the_way(batch_desk: BatchDesk) -> None:
    batch_desk.bus.refusal = ServiceError("unavailable", "The templates service does not answer")
    batch = batch_desk.send(*many(2))
    assert batch_desk.portion(batch.id) == Retry("The templates service does not answer")
    (tried, other) = batch_desk.rows(batch.id)
    assert (tried.status, tried.error and tried.error.code, other.error) == ("pending", "unavailable", None)
