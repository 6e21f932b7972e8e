"""Stamps from the order to the stamped file: the real adapter against an issuer that sells them, over HTTP, on both databases."""

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pikepdf
import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY
from sqlalchemy.orm import Session

from contracts.envelope import Envelope
from contracts.events import Erased
from contracts.providers import DutystampStatus
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import PageRequest
from deploy.providers.stamp_issuer import PASSWORD, StampIssuer
from services.rendering import commands
from services.rendering.models import DutyStamp, StampAccount, StampSerial, StatementsSince
from services.rendering.providers import breaker
from services.rendering.signatures.workshop import Workshop
from services.rendering.stamping import loops, orders, serials, stages, steps
from services.rendering.stamping.stages import Stage
from tests.support.rendering.providers.stamp_orders import HERE, Office, checked_here, issuer, settings, stamp_keys
from tests.support.rendering.seal_jobs import blobs, database, keys, told, workshop
from tests.support.services.loops import running
from tests.support.services.suite import wait_until

__all__ = ["blobs", "database", "issuer", "keys", "stamp_keys", "workshop"]


@pytest.fixture
def office(database: Database, blobs: BlobStore, tmp_path: Path, issuer: StampIssuer) -> Office:
    return Office(database, blobs, settings(tmp_path), content=issuer.settings())


def bought(issuer: StampIssuer) -> int:
    return len(issuer.books.sold)


def erase(database: Database, submission: int = 7) -> list[str]:
    envelope = Envelope(
        id=uuid7(),
        type="submission.erased",
        source="submissions",
        subject=f"submission:{submission}",
        occurred_at=now(),
        data={},
    )
    return database.write(commands.erase, envelope, Erased(submission_id=submission), now())


def agrees(office: Office, issuer: StampIssuer) -> None:
    """As many were bought as were placed, each on a file of its own, and the books are the provider's."""
    sold = issuer.books.sold.values()
    assert all(each.used for each in sold)
    assert len({each.source for each in sold}) == len(sold) == len(office.rows())
    assert office.serials() == {each.number: "used" for each in sold}
    assert sorted(row.serial or "" for row in office.rows()) == sorted(each.number for each in sold)


def test_each_file_gets_its_stamp_and_children_call_it_the_sealed_file_with_one_stamp_more(
    office: Office, issuer: StampIssuer, workshop: Workshop
) -> None:
    office.check = workshop.renderer.check_stamp
    office.restart()
    first, second, both = office.file(), office.file(), office.file()
    assert office.order(
        office.planned(first),
        office.planned(second, document=1),
        office.planned(both, target="combined", document=None),
    )
    assert office.state().status is DutystampStatus.PENDING
    office.run()
    agrees(office, issuer)
    state = office.state()
    assert state.status is DutystampStatus.STAMPED
    assert [(stamp.target, stamp.document_index, stamp.state) for stamp in state.stamps] == [
        ("documents", 0, "confirmed"),
        ("documents", 1, "confirmed"),
        ("combined", None, "confirmed"),
    ]
    stamp = state.stamps[0]
    assert (stamp.page, stamp.x, stamp.y, stamp.w, stamp.h, stamp.code_document) == (1, 400, 100, 72, 72, "4b")
    assert stamp.price is not None
    assert (stamp.price.amount, stamp.price.currency) == (10_000, "IDR")
    files = office.database.read(orders.stamped_files, 7)
    assert [(file.target, file.source.sha256) for file in files] == [
        ("documents", first.sha256),
        ("documents", second.sha256),
        ("combined", both.sha256),
    ]
    for file in files:
        assert file.stamped is not None
        assert office.blobs.get(file.stamped).startswith(office.blobs.get(file.source))
    assert office.told[-1][1]
    assert [settled for _, settled in office.told] == [False, False, True]
    assert [event["type"] for event in told(office.database)] == ["dutystamp.changed"] * 3


def test_several_stamps_of_a_file_follow_each_other(office: Office, issuer: StampIssuer) -> None:
    source = office.file()
    office.order(*(office.planned(source, number) for number in range(3)))
    assert [row.state for row in office.rows()] == ["due", "waiting", "waiting"]
    office.run()
    agrees(office, issuer)
    (file,) = office.database.read(orders.stamped_files, 7)
    assert file.stamped is not None
    assert file.serials == ("CS00001001", "CS00001002", "CS00001003")
    with pikepdf.open(io.BytesIO(office.blobs.get(file.stamped))) as pdf:
        assert len(pdf.Root.AcroForm.Fields) == 3


def test_what_waits_behind_a_stamp_that_was_given_up_goes_on_after_a_retry(office: Office, issuer: StampIssuer) -> None:
    issuer.books.quota = 0
    source = office.file()
    office.order(office.planned(source), office.planned(source, 1))
    office.run()
    state = office.state()
    assert state.status is DutystampStatus.FAILED
    assert [stamp.state for stamp in state.stamps] == ["failed", "failed"]
    assert "no stamps left" in (state.message or "")
    assert office.told[-1][1]
    assert bought(issuer) == 0
    issuer.books.quota = 5
    assert office.retry()
    assert office.state().status is DutystampStatus.PENDING
    office.run()
    assert office.state().status is DutystampStatus.STAMPED
    agrees(office, issuer)
    assert not office.retry()


def test_an_order_that_comes_twice_is_one(office: Office, issuer: StampIssuer) -> None:
    source = office.file()
    assert office.order(office.planned(source))
    assert office.order(office.planned(source))
    assert office.order(office.planned(source), seal_id="seal-2")
    office.run()
    assert office.order(office.planned(source), seal_id="seal-3")
    office.run()
    assert bought(issuer) == 1
    assert office.row.seal_id == "seal-3"


def test_a_stamp_goes_onto_a_later_file_until_it_is_sent(office: Office, issuer: StampIssuer) -> None:
    first, second, third = office.file(), office.file(), office.file()
    office.order(office.planned(first))
    assert office.order(office.planned(second), seal_id="seal-2")
    office.run()
    agrees(office, issuer)
    assert not office.order(office.planned(third), seal_id="seal-3")
    (file,) = office.database.read(orders.stamped_files, 7)
    assert file.source == second
    assert office.row.seal_id == "seal-2"


def test_a_stamp_is_not_sent_with_a_file_that_is_no_longer_the_one(office: Office) -> None:
    """An attempt that read its row before another seal job came with its own file."""
    office.order(office.planned(office.file()))
    known = office.buy_only()
    assert office.order(office.planned(office.file()), seal_id="seal-2")
    with pytest.raises(steps.Superseded):
        office.database.write(steps.send, known)
    office.run()
    assert office.state().status is DutystampStatus.STAMPED


def test_two_attempts_at_once_buy_once(office: Office, issuer: StampIssuer) -> None:
    """The lease of the first ran out while its process was stopped."""
    office.order(office.planned(office.file()))
    known = office.row
    office.database.write(steps.take, known.id, now(), from_pool=True)
    with pytest.raises(steps.Superseded):
        office.database.write(steps.take, known.id, now(), from_pool=True)
    office.run()
    assert (office.row.stage, bought(issuer)) == (Stage.UNKNOWN, 0)


def test_a_purchase_whose_answer_was_lost_is_looked_for(office: Office, issuer: StampIssuer) -> None:
    issuer.fail("lost_purchase", times=1)
    office.order(office.planned(office.file()))
    office.run()
    assert office.row.stage == Stage.UNKNOWN
    assert office.state().stamps[0].state == "unknown"
    assert office.serials() == {}
    office.run(rounds=2)
    assert office.row.stage == Stage.CONFIRMED
    assert bought(issuer) == 1
    agrees(office, issuer)


def test_what_was_surely_not_bought_is_bought_after_a_quarter_of_an_hour(office: Office, issuer: StampIssuer) -> None:
    issuer.fail("no_purchase", times=1)
    office.order(office.planned(office.file()))
    office.run(rounds=4)
    assert office.row.stage == Stage.UNKNOWN
    assert bought(issuer) == 0
    first = office.row.key
    office.age(stages.SURELY_NOT - timedelta(minutes=1))
    office.run(rounds=2)
    assert office.row.stage == Stage.UNKNOWN
    office.age(timedelta(minutes=1))
    office.run(rounds=2)
    agrees(office, issuer)
    assert office.row.key != first
    assert orders.stem(office.row.key) == orders.stem(first)


def test_a_list_that_cannot_be_read_buys_nothing(office: Office, issuer: StampIssuer) -> None:
    issuer.fail("no_purchase", times=1)
    office.order(office.planned(office.file()))
    office.run()
    office.age()
    issuer.fail("error_500", rate=1)
    office.run(rounds=3)
    assert office.row.stage == Stage.UNKNOWN
    assert (office.row.state, office.row.problem) == ("due", "unavailable")
    issuer.fail("error_500")
    office.run(rounds=2)
    agrees(office, issuer)


@pytest.mark.parametrize("fault", ["lost_stamp", "code_97"])
def test_a_stamp_that_may_be_placed_is_placed_again_with_the_same_serial(
    office: Office, issuer: StampIssuer, fault: str
) -> None:
    issuer.fail(fault, times=2)
    office.order(office.planned(office.file()))
    office.run()
    assert office.row.stage == Stage.PLACING
    assert office.state().status is DutystampStatus.PENDING
    assert "CS00001001" in (office.row.last_error or "") or office.row.problem == "no_answer"
    office.run(rounds=3)
    agrees(office, issuer)
    assert bought(issuer) == 1
    assert issuer.books.sold["CS00001001"].placings == {"lost_stamp": 1, "code_97": 3}[fault]


def test_a_file_that_comes_after_the_answer_is_waited_for(office: Office, issuer: StampIssuer) -> None:
    issuer.fail("late_file", times=1, seconds=0.5)
    office.order(office.planned(office.file()))
    office.run()
    agrees(office, issuer)
    assert issuer.books.sold["CS00001001"].placings == 1


@pytest.mark.parametrize("times", [1, 3])
def test_a_token_that_is_over_is_renewed(office: Office, issuer: StampIssuer, times: int) -> None:
    office.order(office.planned(office.file()))
    issuer.fail("token_over", times=times)
    office.run(rounds=2)
    office.retry()
    office.run(rounds=2)
    agrees(office, issuer)


def test_nobody_is_told_a_secret(office: Office, issuer: StampIssuer) -> None:
    office.content["password"] = "a-wrong-secret"
    office.order(office.planned(office.file()))
    office.run()
    state = office.state()
    assert state.status is DutystampStatus.FAILED
    assert state.message == "The provider does not accept the login: user or password is wrong"
    everything = office.database.read(
        lambda session: [
            str(row)
            for table in (DutyStamp, StampAccount, StampSerial)
            for row in session.execute(sa.select(table.__table__)).all()
        ]
    )
    assert everything
    for text in (*everything, json.dumps(told(office.database))):
        assert "a-wrong-secret" not in text
        assert PASSWORD not in text


def test_an_account_names_no_folder_but_the_shared_one(office: Office, issuer: StampIssuer, tmp_path: Path) -> None:
    office.content["adapter_folder"] = str(tmp_path / ".." / "elsewhere")
    office.order(office.planned(office.file()))
    office.run()
    assert office.row.problem == "folder_refused"
    assert not (tmp_path.parent / "elsewhere").exists()
    office.content["adapter_folder"] = str(issuer.shared)
    assert office.retry()
    office.run()
    agrees(office, issuer)


def test_a_file_that_is_not_the_sealed_one_does_not_count(office: Office, issuer: StampIssuer) -> None:
    """Nor is another stamp bought for it."""
    honest = StampIssuer._stamped

    def moved(self: StampIssuer, source: bytes, seen: bytes, page: int, box: Any, reason: str) -> bytes:
        return honest(self, source, seen, page, tuple(side + 10 for side in box), reason)

    issuer._stamped = moved.__get__(issuer)  # type: ignore[method-assign]
    office.order(office.planned(office.file()))
    office.run()
    assert office.row.problem == "stamp_rejected"
    assert office.row.stage == Stage.PLACING
    assert office.state().status is DutystampStatus.FAILED
    assert "CS00001001" in (office.state().message or "")
    issuer._stamped = honest.__get__(issuer)  # type: ignore[method-assign]
    assert office.retry()
    office.run()
    agrees(office, issuer)


# --- serials without a document


def test_a_serial_of_an_erased_submission_is_used_first(office: Office, issuer: StampIssuer) -> None:
    office.order(office.planned(office.file()))
    assert office.buy_only().stage == Stage.RESERVED
    erase(office.database)
    assert office.rows() == []
    assert office.serials() == {"CS00001001": "free"}
    ledger = office.database.read(serials.ledger, PageRequest())
    assert [(entry.serial, entry.state, entry.submission_id) for entry in ledger.data] == [("CS00001001", "free", None)]
    office.order(office.planned(office.file(), code="3"), submission=9)
    office.run()
    agrees(office, issuer)
    assert bought(issuer) == 1
    sold = issuer.books.sold["CS00001001"]
    assert (sold.category, sold.key) == ("3", office.row.key)
    (entry,) = office.database.read(serials.ledger, PageRequest()).data
    assert (entry.state, entry.submission_id, entry.code_document) == ("used", 9, "3")


def test_a_serial_that_may_be_on_an_erased_file_is_held_for_a_person(office: Office, issuer: StampIssuer) -> None:
    issuer.fail("code_97", times=1)
    office.order(office.planned(office.file()))
    office.run()
    assert office.row.stage == Stage.PLACING
    erase(office.database)
    assert office.serials() == {"CS00001001": "held"}
    office.order(office.planned(office.file()), submission=8)
    office.run()
    assert office.state(8).stamps[0].serial == "CS00001002"
    office.books.compare_all()
    assert office.serials() == {"CS00001001": "used", "CS00001002": "used"}


def test_a_purchase_of_an_erased_submission_is_looked_for_all_the_same(office: Office, issuer: StampIssuer) -> None:
    issuer.fail("lost_purchase", times=1)
    office.order(office.planned(office.file()))
    office.run()
    assert erase(office.database) == []
    assert office.database.read(orders.state_of, 7, now()) is None
    office.run(rounds=2)
    assert office.rows() == []
    assert office.serials() == {"CS00001001": "free"}


def test_a_serial_of_the_pool_that_somebody_used_is_held_and_another_one_bought(
    office: Office, issuer: StampIssuer
) -> None:
    office.order(office.planned(office.file()))
    office.buy_only()
    erase(office.database)
    issuer.books.sold["CS00001001"].used = True
    office.order(office.planned(office.file()), submission=8)
    office.run()
    assert office.serials() == {"CS00001001": "held", "CS00001002": "used"}
    assert office.state(8).status is DutystampStatus.STAMPED


def test_after_a_restore_a_stamp_is_looked_for_before_it_is_bought(office: Office, issuer: StampIssuer) -> None:
    """The life that was lost had bought it; of the other stamp it had not."""
    first, second = office.file(), office.file()
    office.order(office.planned(first))
    office.buy_only()
    assert bought(issuer) == 1

    def restore(session: Session) -> None:
        session.execute(sa.delete(DutyStamp))
        session.execute(sa.delete(StampSerial))
        session.execute(sa.update(StatementsSince).values(at=now() - timedelta(days=90)))

    office.database.write(restore)
    office.order(office.planned(first), office.planned(second, document=1))
    office.run()
    agrees(office, issuer)
    assert bought(issuer) == 2
    assert [row.asked_at is not None for row in office.rows()] == [True, True]


# --- the books and the provider's list


def test_a_serial_that_nobody_knows_raises_an_alarm(office: Office, issuer: StampIssuer) -> None:
    office.order(office.planned(office.file()))
    office.run()
    provider = office.providers.of(office.row.settings)
    provider.reserve("by-hand.pdf", "4b")
    provider.reserve("cs-ffffff-7-000000000000-1.pdf", "4b")
    office.books.compare_all()
    (account,) = office.database.read(lambda session: list(session.scalars(sa.select(StampAccount))))
    assert account.strangers == ["CS00001002", "CS00001003"]
    assert value("dutystamp_strangers") == 2
    assert office.serials() == {"CS00001001": "used"}


def test_a_second_serial_of_one_stamp_is_free_for_the_next(office: Office, issuer: StampIssuer) -> None:
    """As when a process was stopped before its call, and went on after another one had bought."""
    office.order(office.planned(office.file()))
    office.run()
    office.providers.of(office.row.settings).reserve(office.row.key, "4b")
    office.books.compare_all()
    assert office.serials() == {"CS00001001": "used", "CS00001002": "free"}
    office.order(office.planned(office.file()), submission=8)
    office.run()
    agrees(office, issuer)
    assert bought(issuer) == 2


def test_a_purchase_that_ends_after_another_one_is_free_for_the_next(office: Office, issuer: StampIssuer) -> None:
    office.order(office.planned(office.file()))
    row = office.database.write(steps.take, office.row.id, now(), from_pool=True)
    provider = office.providers.of(row.settings)
    late = provider.reserve(row.key, row.code_document)
    office.age()
    issuer.books.sold["CS00001001"].key = "not-listed-yet"
    office.run(rounds=2)
    assert office.row.serial == "CS00001002"
    assert office.database.write(steps.bought, row, late, now()) is None
    assert office.serials() == {"CS00001002": "used", "CS00001001": "free"}


def test_an_attempt_that_was_stopped_before_its_call_does_not_undo_what_another_one_did(
    office: Office, issuer: StampIssuer
) -> None:
    """Its lease ran out, another one looked for a purchase, found none, bought, and is placing: then it went on with its call."""
    office.order(office.planned(office.file()))
    other = Office(office.database, office.blobs, office.own, content=office.content)
    honest = issuer.answer
    stopped: list[Any] = []

    def answer(method: str, url: str, *more: Any) -> Any:
        if url == "/chanel/stampv2" and not stopped:
            stopped.append(url)
            office.database.write(lambda session: session.execute(sa.update(DutyStamp).values(leased_until=now())))
            other.age()
            issuer.fail("code_97", times=1)
            other.run()
            assert other.row.stage == Stage.PLACING
        return honest(method, url, *more)

    issuer.answer = answer  # type: ignore[assignment]
    office.run()
    assert stopped
    assert (office.row.state, office.row.stage, office.row.serial) == ("due", Stage.PLACING, "CS00001001")
    office.run(rounds=2)
    assert (office.row.state, office.row.stage, office.row.serial) == ("done", Stage.CONFIRMED, "CS00001001")
    assert office.serials() == {"CS00001001": "used", "CS00001002": "free"}


def test_what_the_provider_does_not_count_as_used_is_confirmed_later(office: Office, issuer: StampIssuer) -> None:
    office.order(office.planned(office.file()))
    office.run()
    issuer.books.sold["CS00001001"].used = False
    office.database.write(lambda session: session.execute(sa.update(DutyStamp).values(stage=Stage.PLACED)))
    office.books.compare_all()
    assert office.row.stage == Stage.PLACED
    assert value("dutystamp_differing") == 1
    issuer.books.sold["CS00001001"].used = True
    office.books.compare_all()
    assert office.row.stage == Stage.CONFIRMED
    assert value("dutystamp_differing") == 0


def test_a_low_balance_is_told_once(office: Office, issuer: StampIssuer) -> None:
    office.order(office.planned(office.file()))
    office.run()

    def warnings() -> list[int]:
        office.books.watch_balances()
        events = [event for event in told(office.database) if event["type"] == "stamp_balance.low"]
        return [event["data"]["balance"] for event in events]

    assert warnings() == []
    assert value("dutystamp_balance") == issuer.books.quota
    issuer.books.quota = 9
    assert warnings() == [9]
    assert value("dutystamp_balance_low") == 1
    issuer.books.quota = 8
    assert warnings() == [9]
    issuer.books.quota = 100
    assert warnings() == [9]
    assert value("dutystamp_balance_low") == 0
    issuer.books.quota = 3
    assert warnings() == [9, 3]


def test_files_of_interrupted_attempts_are_removed(office: Office, issuer: StampIssuer, tmp_path: Path) -> None:
    office.order(office.planned(office.file()))
    row = office.buy_only()
    office.database.write(steps.send, row)  # killed after it had stored a file
    office.blobs.put(b"left behind", "application/pdf", "submissions/7/", name=f"stamp-{row.id}-1")
    office.run()
    agrees(office, issuer)
    office.books.sweep()
    (file,) = office.database.read(orders.stamped_files, 7)
    assert file.stamped is not None
    names = [path.name for path in (tmp_path / "blobs" / "submissions" / "7").iterdir() if "stamp-" in path.name]
    assert [f"submissions/7/{name}" for name in names] == [file.stamped.key]
    assert sorted(erase(office.database)) == [f"submissions/7/stamp-{row.id}-{sent}" for sent in (1, 2)]


# --- whose turn it is


def test_a_provider_that_hangs_delays_no_other_one(
    database: Database, blobs: BlobStore, tmp_path: Path, stamp_keys: Path, issuer: StampIssuer
) -> None:
    """Its stamp is under way from before the other's order until after its end."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "certificates").symlink_to(stamp_keys)
    other = StampIssuer(tmp_path / "other", key_type="ec-p256").start()
    own = settings(tmp_path)
    slow = Office(database, blobs, own, content=issuer.settings())
    quick = Office(database, blobs, own, content=other.settings())
    let_go = threading.Event()
    honest = issuer.answer
    issuer.answer = lambda *arguments: (let_go.wait(60), honest(*arguments))[1]  # type: ignore[method-assign]
    every = loops.loops(own, database, blobs, HERE, checked_here, orders.tell, list)
    try:
        with running(*every[:1]), ending(let_go.set):
            slow.order(*(slow.planned(slow.file(), document=number) for number in range(3)))
            wait_until(
                lambda: slow.rows()[0].stage == Stage.BUYING or issuer.calls, what="the slow one to be under way"
            )
            quick.order(quick.planned(quick.file()), submission=8)
            wait_until(lambda: quick.state(8).status is DutystampStatus.STAMPED, what="the quick one to be placed")
            assert slow.state().status is DutystampStatus.PENDING
            own_rows = [row for row in slow.rows() if row.submission_id == 7]
            assert sum(row.leased_by is not None for row in own_rows) == 1
            let_go.set()
            wait_until(lambda: slow.state().status is DutystampStatus.STAMPED, what="the slow ones to be placed")
    finally:
        other.stop()


def test_a_provider_that_is_away_is_left_alone_and_everything_goes_on_when_it_is_back(
    office: Office, issuer: StampIssuer
) -> None:
    issuer.fail("error_500", rate=1)
    office.order(*(office.planned(office.file(), document=number) for number in range(8)))
    office.run()
    assert len(issuer.calls) == breaker.FAILURES
    assert {(row.state, row.stage, row.attempts) for row in office.rows()} == {("due", Stage.PLANNED, 0)}
    soon = now() + timedelta(minutes=1)
    assert all(row.next_attempt_at < soon for row in office.rows())
    issuer.fail("error_500")
    office.run(rounds=2)
    agrees(office, issuer)


@contextmanager
def ending(step: Callable[[], None]) -> Iterator[None]:
    try:
        yield
    finally:
        step()


def value(name: str) -> float | None:
    return REGISTRY.get_sample_value(name, {"provider": "127.0.0.1"})
