"""What is known of a submission that was removed for good, until its receipt is signed; on SQLite and PostgreSQL."""

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.events import ErasureConfirmed, ErasureReceiptSigned
from contracts.evidence import canonical_json, erasure
from contracts.rpc.submissions.erasures import ErasureState, GetErasure
from contracts.runtime.clock import uuid7
from contracts.runtime.operations.checking import attempted as checked
from contracts.types import Actor, Role, iso
from services.submissions import background, checking, stuck
from services.submissions.commands import erasures
from services.submissions.reading import erasures as reading
from tests.support.material.submissions import ADMIN, SITE, Desk, field, refusal, template

CANARY = "canary4711"
SERVICES = ("notifications", "rendering", "webhooks")


@pytest.fixture(autouse=True)
def the_clock_of_the_desk(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "now", lambda: desk.now)


def gone(desk: Desk, actor: Actor = ADMIN, **found: Any) -> int:
    """A completed submission that was removed for good."""
    made = desk.create(
        template(field(name="Name"), **found),
        {"email": f"{CANARY}@example.com", "name": CANARY, "values": {"Name": CANARY}},
        name=CANARY,
    )
    desk.complete(made.submitters[0].slug)
    desk.seal(made.id)
    desk.now += timedelta(minutes=1)
    desk.remove(made.id, actor.model_copy(update={"key_id": "3fa1c0de9b7d4e21"}), permanently=True)
    return made.id


def state(desk: Desk, number: int, actor: Actor = ADMIN) -> ErasureState:
    return desk.database.read(reading.state, GetErasure(actor=actor, id=number), SITE, desk.now)


def confirm(desk: Desk, number: int, *services: str, event_id: str | None = None) -> None:
    for service in services:
        said = ErasureConfirmed(submission_id=number, at=desk.now, deleted={"things": 3})
        desk.database.write(erasures.confirm, event_id or uuid7(), service, said)


def remove_files(desk: Desk) -> None:
    done = sa.text("UPDATE blob_removals SET state = 'done', finished_at = created_at")
    desk.database.write(lambda session: session.execute(done).close())
    background.look_after_erasures(desk.database)


def sign(desk: Desk, number: int, signature: str = "c2lnbmVk", **more: Any) -> None:
    (*_, due) = desk.events("erasure_receipt.due")
    said = {"submission_id": number, "sha256": due["data"]["sha256"], "signature": signature, "stamped": False, **more}
    desk.database.write(erasures.accept_signature, uuid7(), ErasureReceiptSigned(**said))


def test_the_receipt_is_written_when_every_part_is_gone_and_says_nothing_of_the_people(desk: Desk) -> None:
    number = gone(desk)
    first = state(desk, number)
    assert (first.status, first.reason, first.receipt) == ("pending", "request", None)
    assert first.pending == ["files", *SERVICES]
    confirm(desk, number, "webhooks", "rendering", event_id="twice")
    confirm(desk, number, "webhooks", "rendering", event_id="twice")
    confirm(desk, number, "webhooks")
    background.look_after_erasures(desk.database)
    assert state(desk, number).pending == ["files", "notifications"], "files are left to be removed"
    remove_files(desk)
    assert desk.events("erasure_receipt.due") == []
    confirm(desk, number, "notifications")
    (due,) = desk.events("erasure_receipt.due")
    text = due["data"]["text"]
    assert due["data"]["sha256"] == erasure.digest(text)
    receipt = json.loads(text)
    assert text.encode() == canonical_json.encoded(receipt)
    assert CANARY not in text
    assert "@" not in text
    lines = desk.rows("SELECT hash FROM trail ORDER BY position")
    assert receipt["trail"] == {"number": len(lines), "hash": lines[-1].hash}
    assert receipt["why"] == {
        "reason": "request",
        "user": ADMIN.user_id,
        "key": "3fa1c0de9b7d4e21",
        "keep_days": None,
        "due_at": None,
    }
    assert receipt["erased_at"] == iso(desk.now)
    assert {one["kind"] for one in receipt["documents"]} <= {"sealed", "audit_trail"}, "the template keeps its own"
    assert receipt["documents"]
    own = receipt["parts"]["submissions"]
    assert own["deleted"] == {"submitters": 1, "values": 1, "attachments": 0, "events": len(lines), "statements": 1}
    assert own["storage"] in ("overwritten", "left_to_vacuum")
    assert receipt["parts"]["files"]["deleted"]["files"] >= 4
    assert receipt["parts"]["webhooks"]["deleted"] == {"things": 3}
    assert refusal(
        lambda: desk.database.read(reading.receipt, GetErasure(actor=ADMIN, id=number), SITE, desk.now)
    ).code == ("invalid")

    sign(desk, number, sha256="0" * 64)
    assert state(desk, number).status == "pending", "that is no signature of this receipt"
    sign(desk, number)
    sign(desk, number, signature="YW5vdGhlcg==")
    done = state(desk, number)
    assert (done.status, done.pending, done.time_stamped) == ("complete", [], False)
    assert done.sha256 == erasure.digest(text)
    signed = desk.database.read(reading.receipt, GetErasure(actor=ADMIN, id=number), SITE, desk.now)
    assert (signed.text, signed.signature) == (text, "c2lnbmVk")
    background.look_after_erasures(desk.database)
    assert background.ERASURES_OPEN._value.get() == 0


def test_who_could_see_the_submission_sees_what_became_of_it(desk: Desk) -> None:
    author, stranger, viewer = (
        Actor(user_id=number, role=role, email="a@example.com")
        for number, role in ((2, Role.EDITOR), (3, Role.EDITOR), (4, Role.VIEWER))
    )
    private, shared = gone(desk, author_id=2, shared_link=False), gone(desk, author_id=2)
    assert state(desk, private, author).submission_id == private
    assert state(desk, shared, viewer).submission_id == shared
    for number, actor in ((private, stranger), (shared, stranger), (private, viewer), (10**9, ADMIN)):
        assert refusal(lambda number=number, actor=actor: state(desk, number, actor)).code == "not_found"
    there = desk.create()
    assert refusal(lambda: state(desk, there.id)).code == "not_found"


def test_who_does_not_confirm_is_asked_again_and_so_is_who_does_not_sign(desk: Desk) -> None:
    number = gone(desk)
    remove_files(desk)
    confirm(desk, number, "webhooks")
    assert desk.events("erasure.asked") == []
    assert background.ERASURES_OPEN._value.get() == 1
    desk.now += erasures.ASKED_AGAIN
    background.look_after_erasures(desk.database)
    background.look_after_erasures(desk.database)
    (asked,) = desk.events("erasure.asked")
    assert (asked["subject"], asked["data"]["submission_id"]) == (f"erasure:{number}", number)
    assert (asked["data"]["public"], asked["sequence"]) == (None, None), "nobody outside hears of it twice"
    confirm(desk, number, "rendering", "notifications")
    desk.now += erasures.ASKED_AGAIN
    background.look_after_erasures(desk.database)
    assert len(desk.events("erasure.asked")) == 1
    first, second = desk.events("erasure_receipt.due")
    assert first["data"] == second["data"]
    sign(desk, number)
    desk.now += erasures.ASKED_AGAIN
    background.look_after_erasures(desk.database)
    assert desk.count("erasure_receipt.due") == 2


def test_check_says_what_is_waited_for_too_long(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    (trial,) = checking.trials(SimpleNamespace(database_url=desk.url))  # type: ignore[arg-type]
    assert checked(trial) == (True, "ok")
    gone(desk)
    monkeypatch.setattr(checking, "now", lambda: desk.now)
    assert checked(trial) == (True, "ok (1 are waited for)")
    assert desk.database.read(stuck.stuck, desk.now) == []
    desk.now += erasures.TOO_LONG
    (found,) = desk.database.read(stuck.stuck, desk.now)
    assert (found.work, found.count) == ("receipts of deletions", 1)
    assert found.rows[0].reason == "waits for files, notifications, rendering, webhooks"
    assert checked(trial)[1].startswith("ok, but 1 are waited for, the oldest since 2026-03-04 ")


def test_what_an_older_version_has_removed_has_no_receipt(desk: Desk) -> None:
    number = desk.create().id
    confirm(desk, number, *SERVICES)
    sign_of_nothing = ErasureReceiptSigned(submission_id=number, sha256="0" * 64, signature="c2ln", stamped=False)
    desk.database.write(erasures.accept_signature, uuid7(), sign_of_nothing)
    assert refusal(lambda: state(desk, number)).code == "not_found"
