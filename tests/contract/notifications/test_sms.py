"""Invitations by SMS: who gets one, through which provider, how often, and what is told; on real databases, over real HTTP."""

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import sqlalchemy as sa
from pydantic import ValidationError

from contracts.events import PhoneOutcome, SmsDue
from contracts.rpc import notifications as rpc
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import Account, Submission
from services.notifications import commands, queries
from services.notifications.models import PhoneMessageRow
from services.notifications.sending import phone_messages
from services.submissions.commands import followups
from tests.contract.notifications.test_database import (  # noqa: F401 - fixtures among them
    blobs,
    database,
    running,
    settings,
    told,
)
from tests.support.material import letters
from tests.support.material.submissions import (
    SITE,
    Desk,
    assert_chain_holds,
    assert_told_in_order,
    field,
    refusal,
    template,
    two_signers,
)
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import wait_until

READY = Account(sms_available=True)
NUMBER = "+14155550123"


def invited(desk: Desk, kind: str = "sms.due") -> list[int]:
    return [one["data"]["submitter_id"] for one in desk.events(kind)]


def made(desk: Desk, *submitters: dict[str, Any], **more: Any) -> Submission:
    return desk.create(two_signers(), *submitters, account=READY, **more)


def test_whose_turn_has_come_and_who_has_a_number_is_invited_by_sms(desk: Desk) -> None:
    submission = made(
        desk, {"phone": NUMBER}, {"phone": "+14155550124", "send_sms": False}, send_sms=True, order="random"
    )
    one, two = submission.submitters
    assert invited(desk) == [one.id]
    assert invited(desk, "invitation.due") == [one.id, two.id]
    due = desk.events("sms.due")[0]["data"]
    assert (due["phone"], due["needs_signature"]) == (NUMBER, False)
    assert [each.preferences["send_sms"] for each in submission.submitters] == [True, False]
    later = made(desk, {"email": None, "phone": NUMBER}, {"phone": "+14155550124", "send_sms": True}, send_sms=False)
    first, second = later.submitters
    assert invited(desk) == [one.id]
    desk.complete(first.slug)
    assert invited(desk) == [one.id, second.id]


@pytest.mark.parametrize(
    ("submitter", "more", "where", "message"),
    [
        ({"phone": NUMBER}, {"send_sms": True}, "send_sms", "SMS is not configured"),
        ({"phone": NUMBER, "send_sms": True}, {}, "submitters[0].send_sms", "SMS is not configured"),
        ({"send_sms": True}, {"account": READY}, "submitters[0].phone", "send_sms needs phone in `submitters[0]`."),
        ({}, {"account": READY, "send_sms": True}, "send_sms", "send_sms needs a submitter with a phone"),
    ],
)
def test_what_cannot_be_sent_is_refused_at_creation(
    desk: Desk, submitter: dict[str, Any], more: dict[str, Any], where: str, message: str
) -> None:
    error = refusal(lambda: desk.create(template(field()), submitter, **more))
    assert ([one["field"] for one in error.details], error.message) == ([where], message)
    assert desk.rows("SELECT * FROM submissions") == []


def test_an_sms_is_sent_again_without_the_mail(desk: Desk) -> None:
    submission = made(desk, {"phone": NUMBER}, {})
    one, two = submission.submitters
    cases: list[tuple[dict[str, Any], str]] = [
        ({"send_sms": True}, "send_sms"),
        ({"send_sms": True, "account": READY, "phone": None}, "phone"),
    ]
    for change, where in cases:
        error = refusal(lambda change=change: desk.update_submitter(one.id, **change))
        assert error.details[0]["field"] == where
    assert (invited(desk), invited(desk, "invitation.due")) == ([], [one.id])
    desk.update_submitter(one.id, send_sms=True, account=READY)
    assert (invited(desk), invited(desk, "invitation.due")) == ([one.id], [one.id])
    desk.update_submitter(one.id, send_email=True)
    assert (invited(desk), invited(desk, "invitation.due")) == ([one.id], [one.id, one.id])
    desk.update_submitter(one.id, send_sms=True, send_email=True, account=READY)
    assert (invited(desk), invited(desk, "invitation.due")) == ([one.id] * 2, [one.id] * 3)
    desk.update_submitter(two.id, send_sms=True, account=READY, phone="+14155550199")  # not their turn: when it comes
    assert invited(desk) == [one.id] * 2
    desk.complete(one.slug)
    assert invited(desk) == [one.id, one.id, two.id]


def test_what_became_of_it_is_in_the_trail_and_told(desk: Desk) -> None:
    submission = made(desk, {"phone": NUMBER}, {}, send_sms=True, send_email=False)
    one = submission.submitters[0]
    outcome = PhoneOutcome(
        submission_id=submission.id, submitter_id=one.id, kind="invitation", to=NUMBER, sent_at=desk.now
    )
    for _ in range(2):
        desk.database.write(followups.accept_sms_sent, "event", outcome, SITE, desk.now)
    failed = outcome.model_copy(update={"error": "answered 400 no such number"})
    for _ in range(2):
        desk.database.write(followups.accept_sms_failed, "another", failed, desk.now)
    for unknown in ({"submission_id": 10**6}, {"submitter_id": 10**6}):
        strange = outcome.model_copy(update=unknown)
        desk.database.write(followups.accept_sms_sent, str(unknown), strange, SITE, desk.now)
    shown = desk.get(submission.id)
    assert shown.submitters[0].sent_at == desk.now
    lines = [(line.event_type, line.data) for line in shown.submission_events or []][-2:]
    assert lines[0][0] == "send_sms"
    assert lines[0][1]["phone"] == NUMBER
    kind, said = lines[1]
    assert (kind, said["kind"], said["reason"]) == ("bounce_sms", "invitation", "answered 400 no such number")
    assert said["phone"] == NUMBER
    assert assert_told_in_order(desk, submission.id).count("form.sent") == 1
    assert_chain_holds(desk, submission.id)


# --- notifications


def due(number: int = 1, **more: Any) -> SmsDue:
    context = letters.context(letters.party(number, name="Bo Buyer"), submission_name="Lease\r\n2026 " + "x" * 200)
    facts = {"invitation_id": f"i-{number}", "context": context, "submitter_id": number, "phone": NUMBER}
    return SmsDue(**(facts | more))


def invite(database: Database, event: SmsDue, event_id: str, pause: float = 60) -> None:  # noqa: F811
    database.write(phone_messages.accept_invitation, event_id, event, timedelta(seconds=pause), now())


def messages(database: Database) -> list[PhoneMessageRow]:  # noqa: F811
    return database.read(lambda session: list(session.scalars(sa.select(PhoneMessageRow).order_by(PhoneMessageRow.id))))


def finished(database: Database) -> bool:  # noqa: F811
    return bool(messages(database)) and all(row.state != "due" for row in messages(database))


def provider(tmp_path: Path, url: str, **more: Any) -> Any:
    facts = {"allowed_private_networks": "127.0.0.0/8", "sms_url": url, "sms_retry_seconds": ",".join(["0.05"] * 5)}
    return settings(tmp_path, **(facts | more))


def test_the_plain_form_of_a_provider(database: Database, blobs: BlobStore, tmp_path: Path) -> None:  # noqa: F811
    with (
        Receiver(lambda _: (202, {}, f'{{"to": "{NUMBER}"}}'.encode())) as receiver,
        running(provider(tmp_path, receiver.url, sms_token="t0ken", sms_from="Acme"), database, blobs),
    ):
        for event_id in ("one", "one", "two"):
            invite(database, due(), event_id)
        wait_until(lambda: finished(database))
    (request,) = receiver.requests
    body = json.loads(request.body)
    assert (body["to"], body["from"]) == (NUMBER, "Acme")
    assert body["text"].startswith("Acme Ltd asks you to sign “Lease 2026 xxx")
    assert body["text"].endswith("…”: https://sign.example.com/s/slug1")
    assert "\n" not in body["text"]
    assert len(body["text"]) < 160
    assert request.headers["authorization"] == "Bearer t0ken"
    assert request.headers["idempotency-key"] == body["id"]
    (row,) = messages(database)
    assert (row.state, row.text) == ("done", "")
    assert row.answer is not None
    assert NUMBER not in row.answer
    assert NUMBER[1:] not in row.answer
    ((kind, outcome),) = told(database)
    assert (kind, outcome["kind"], outcome["invitation_id"]) == ("sms.sent", "invitation", "i-1")
    assert "slug1" not in str(outcome)


@pytest.mark.parametrize(("sender", "key"), [("+15005550006", "From"), ("MG0123456789", "MessagingServiceSid")])
def test_twilio_s_form(database: Database, blobs: BlobStore, tmp_path: Path, sender: str, key: str) -> None:  # noqa: F811
    more = {"sms_format": "twilio", "sms_user": "AC123", "sms_token": "secret", "sms_from": sender}
    with (
        Receiver(lambda _: (201, {}, b'{"sid": "SM1", "status": "queued"}')) as receiver,
        running(provider(tmp_path, receiver.url, **more), database, blobs),
    ):
        invite(database, due(needs_signature=False), "one")
        wait_until(lambda: finished(database))
    (request,) = receiver.requests
    form = parse_qs(request.body.decode())
    assert form["To"] == [NUMBER]
    assert form[key] == [sender]
    assert "asks you to fill in" in form["Body"][0]
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert base64.b64decode(request.headers["authorization"].removeprefix("Basic ")) == b"AC123:secret"
    assert [row.answer for row in messages(database)] == ['201 {"sid": "SM1", "status": "queued"}']


@pytest.mark.parametrize(
    ("reply", "attempts", "said"),
    [
        ((400, {}, b'{"code": 21211, "message": "invalid number +14155550123"}'), 1, "invalid number (recipient)"),
        ((503, {}, b"later"), 6, "answered 503 later"),
        ((429, {}, b"slow down"), 6, "answered 429 slow down"),
        ((401, {}, b"who are you"), 6, "answered 401 who are you"),
    ],
)
def test_a_provider_s_refusal_is_kept_and_told(
    database: Database, blobs: BlobStore, tmp_path: Path, reply: Any, attempts: int, said: str  # noqa: F811
) -> None:  # fmt: skip
    with Receiver(lambda _: reply) as receiver, running(provider(tmp_path, receiver.url), database, blobs):
        invite(database, due(), "one")
        wait_until(lambda: finished(database))
    (row,) = messages(database)
    assert (row.state, row.attempts, len(receiver.requests)) == ("parked", attempts, attempts)
    assert row.last_error is not None
    assert said in row.last_error
    assert NUMBER not in row.last_error
    ((kind, outcome),) = told(database)
    assert (kind, said in outcome["error"]) == ("sms.failed", True)


def test_trouble_that_passes_and_one_bad_number_stops_nobody_else(
    database: Database, blobs: BlobStore, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    troubles: Iterator[Any] = iter([(500, {}, b""), (503, {}, b"")])

    def answer(request: Any) -> Any:
        if json.loads(request.body)["to"] == "+14155550666":
            return (400, {}, b"no such number")
        return next(troubles, (200, {}, b""))

    with Receiver(answer) as receiver, running(provider(tmp_path, receiver.url), database, blobs):
        for number in range(1, 8):
            phone = "+14155550666" if number == 4 else f"+1415555000{number}"
            invite(database, due(number, phone=phone), str(number))
        wait_until(lambda: finished(database) and len(messages(database)) == 7)
    assert [row.state for row in messages(database)] == ["done"] * 3 + ["parked"] + ["done"] * 3


def test_only_addresses_that_may_be_called_are(database: Database, blobs: BlobStore, tmp_path: Path) -> None:  # noqa: F811
    with (
        Receiver() as receiver,
        running(provider(tmp_path, receiver.url, allowed_private_networks=""), database, blobs),
    ):
        invite(database, due(), "one")
        wait_until(lambda: finished(database))
    assert receiver.requests == []
    assert "private or reserved address" in str(messages(database)[0].last_error)


def test_without_a_provider_and_a_mail_server_it_is_kept_to_be_read(
    database: Database, blobs: BlobStore, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    with running(settings(tmp_path), database, blobs):
        invite(database, due(), "one")
        wait_until(lambda: finished(database))
    (shown,) = database.read(queries.phone_messages, rpc.ListMails()).data
    assert (shown.to, shown.state, shown.kind) == (NUMBER, "sent", "invitation")
    assert shown.text.endswith("https://sign.example.com/s/slug1")
    assert [kind for kind, _ in told(database)] == ["sms.sent"]


def test_the_same_number_is_not_written_to_again_and_again(database: Database) -> None:  # noqa: F811
    for number in range(3):
        invite(database, due(invitation_id=f"i-{number}"), str(number))
    assert len(messages(database)) == 1
    invite(database, due(invitation_id="later"), "later", pause=0)
    invite(database, due(invitation_id="other number", phone="+14155550999"), "other")
    assert len(messages(database)) == 3


def test_an_erased_submission_sends_nothing_any_more(database: Database) -> None:  # noqa: F811
    invite(database, due(), "one")
    database.write(commands.erase, "erased", 31, now(), phone_messages.erase)
    invite(database, due(invitation_id="late"), "late")
    (row,) = messages(database)
    assert (row.to_phone, row.text, row.state) == ("", "", "parked")
    assert database.read(queries.phone_messages, rpc.ListMails()).data == []


@pytest.mark.parametrize(
    "more",
    [
        {"sms_url": "ftp://sms.example.com"},
        {"sms_url": "https://user:password@sms.example.com"},
        {"sms_url": "https://sms.example.com", "sms_format": "smpp"},
        {"sms_url": "https://sms.example.com", "sms_format": "twilio"},
        {"sms_retry_seconds": "5,-1"},
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(tmp_path, **more)
