"""One-time codes on their way: mails, and the account's phone OTP webhook, on real databases with real servers."""

import json
import quopri
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.events import PHONE_OTP_WEBHOOK, CodeDue
from contracts.evidence.sealed_text import seal
from contracts.formats.one_time_code import code_of
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from services.notifications import commands
from services.notifications.messages import composing
from services.notifications.models import PhoneMessageRow
from services.notifications.sending import phone_messages
from tests.contract.notifications.test_database import (  # noqa: F401 - fixtures among them
    accept,
    all_of,
    blobs,
    database,
    rows,
    running,
    server,
    settings,
    told,
)
from tests.support.servers.mail_server import MailServer
from tests.support.servers.receiver import Receiver
from tests.support.services.secret_settings import LINK_SECRET
from tests.support.services.suite import wait_until

SECRET, SEED = LINK_SECRET, "00ff" * 8


def due(seconds: float = 600, **more: object) -> CodeDue:
    facts = {
        "code_id": uuid7(),
        "seed": SEED,
        "method": "email",
        "to": "bo@example.com",
        "to_name": "Bo\r\nBcc: x@example.com",
        "submission_id": 31,
        "submission_name": "Lease <2026>",
        "submitter_id": 5,
        "account_name": "Acme Ltd",
        "minutes": 10,
        "expires_at": now() + timedelta(seconds=seconds),
    }
    return CodeDue(**(facts | more))


def test_the_code_is_mailed_once_and_then_forgotten(
    database: Database, blobs: BlobStore, server: MailServer, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    event = due()
    code = code_of(SECRET, SEED)
    with running(settings(tmp_path, smtp_url=server.url), database, blobs):
        for event_id in ("one", "one", "two"):  # told again, by the same event and by another
            accept(database, composing.one_time_codes(event, SECRET), event_id=event_id)
        wait_until(lambda: rows(database) and all_of(database, "done"))
    assert len(server.raw) == 1
    message = server.message("bo@example.com")
    assert message["Subject"] == "Your code for Acme Ltd"
    assert "Bcc" not in message
    body = server.raw[0].decode()
    assert body.count(code) == 2  # as text and as HTML
    assert b"Lease &lt;2026&gt;" in quopri.decodestring(server.raw[0])
    (row,) = rows(database)
    assert (row.text, row.html, row.submitter_id) == ("", "", 5)
    ((kind, outcome),) = told(database)
    assert (kind, outcome["kind"], outcome["submitter_id"]) == ("mail.sent", "one_time_code", 5)
    assert code not in str(outcome)


def test_a_code_that_has_expired_is_not_sent_any_more(
    database: Database, blobs: BlobStore, server: MailServer, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    accept(database, composing.one_time_codes(due(seconds=-1), SECRET))
    with running(settings(tmp_path, smtp_url=server.url), database, blobs):
        wait_until(lambda: all_of(database, "parked"))
    assert server.raw == []
    (row,) = rows(database)
    assert (row.text, row.last_error) == ("", "It could not be sent before it expired")
    ((kind, outcome),) = told(database)
    assert (kind, outcome["kind"]) == ("mail.failed", "one_time_code")


def webhook(url: str, token: str | None = "t0ken") -> str:
    return seal(SECRET, PHONE_OTP_WEBHOOK, json.dumps({"url": url, "bearer_token": token}))


def phone_due(url: str, seconds: float = 600, **more: Any) -> CodeDue:
    facts = {
        "method": "phone",
        "to": "+14155550123",
        "submitter_name": "Bo Buyer",
        "submitter_email": "bo@example.com",
        "template_name": "Lease",
        "phone_otp_webhook": webhook(url),
    }
    return due(seconds, **(facts | more))


def messages(database: Database) -> list[PhoneMessageRow]:  # noqa: F811
    return database.read(lambda session: list(session.scalars(sa.select(PhoneMessageRow).order_by(PhoneMessageRow.id))))


def finished(database: Database) -> bool:  # noqa: F811
    rows = messages(database)
    return bool(rows) and all(row.state != "due" for row in rows)


def phones(tmp_path: Path, **more: Any) -> Any:
    return settings(tmp_path, allowed_private_networks="127.0.0.0/8", sms_retry_seconds=",".join(["0.05"] * 10), **more)


def test_a_code_goes_to_the_phone_otp_webhook_once(database: Database, blobs: BlobStore, tmp_path: Path) -> None:  # noqa: F811
    with Receiver() as receiver, running(phones(tmp_path), database, blobs):
        event = phone_due(receiver.url)
        for event_id in ("one", "one", "two"):
            database.write(phone_messages.accept_code, event_id, event, now())
        wait_until(lambda: finished(database))
    (request,) = receiver.requests
    body = json.loads(request.body)
    timestamp = datetime.fromisoformat(body.pop("timestamp"))
    assert abs((timestamp - now()).total_seconds()) < 60
    assert body == {
        "event_type": "otp_verification",
        "phone_number": "+14155550123",
        "otp": code_of(SECRET, SEED),
        "submitter_id": 5,
        "submitter_email": "bo@example.com",
        "submitter_name": "Bo Buyer",
        "submission_id": 31,
        "template_name": "Lease",
    }
    assert request.headers["authorization"] == "Bearer t0ken"
    (row,) = messages(database)
    assert (row.state, row.text, row.facts, row.webhook, row.answer) == ("done", "", {}, None, "204")
    ((kind, outcome),) = told(database)
    assert (kind, outcome["kind"], outcome["to"]) == ("sms.sent", "one_time_code", "+14155550123")
    assert code_of(SECRET, SEED) not in str(outcome)


@pytest.mark.parametrize(
    ("url", "reply", "attempts", "said"),
    [
        (None, (500, {}, b"code +14155550123 refused"), 5, "answered 500 code (recipient) refused"),
        (None, (400, {}, b"no such tenant"), 1, "answered 400 no such tenant"),
        (None, (302, {"Location": "http://127.0.0.1/"}, b""), 1, "answered 302"),
        ("http://127.0.0.1:9/otp", None, 5, "cannot be reached"),
        ("http://10.1.2.3/otp", None, 1, "private or reserved address"),
    ],
)
def test_a_webhook_that_does_not_take_the_code_is_told_soon(
    database: Database,  # noqa: F811
    blobs: BlobStore,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str | None,
    reply: Any,
    attempts: int,
    said: str,
) -> None:
    monkeypatch.setattr(phone_messages, "CODE_PAUSE", timedelta(seconds=0.02))
    with Receiver(lambda _: reply) as receiver, running(phones(tmp_path), database, blobs):
        database.write(phone_messages.accept_code, "one", phone_due(url or receiver.url), now())
        wait_until(lambda: finished(database))
    (row,) = messages(database)
    assert (row.state, row.attempts, row.facts, row.webhook) == ("parked", attempts, {}, None)
    ((kind, outcome),) = told(database)
    assert kind == "sms.failed"
    assert said in outcome["error"]
    assert "14155550123" not in outcome["error"]


def test_what_was_sealed_elsewhere_or_has_expired_is_not_sent(
    database: Database, blobs: BlobStore, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    with Receiver() as receiver, running(phones(tmp_path), database, blobs):
        foreign = seal("another secret", PHONE_OTP_WEBHOOK, json.dumps({"url": receiver.url}))
        for number, event in enumerate(
            [
                phone_due(receiver.url, phone_otp_webhook=foreign),
                phone_due(receiver.url, phone_otp_webhook=None),
                phone_due(receiver.url, phone_otp_webhook=seal(SECRET, "another purpose", "{}")),
                phone_due(receiver.url, seconds=-1),
            ]
        ):
            database.write(phone_messages.accept_code, str(number), event, now())
        wait_until(lambda: finished(database))
    assert receiver.requests == []
    assert {row.state for row in messages(database)} == {"parked"}


def test_an_erased_submission_leaves_no_number(database: Database, tmp_path: Path) -> None:  # noqa: F811
    database.write(phone_messages.accept_code, "one", phone_due("http://127.0.0.1:9/"), now())
    database.write(commands.erase, "erased", 31, now(), phone_messages.erase)
    (row,) = messages(database)
    assert (row.to_phone, row.facts, row.webhook, row.state) == ("", {}, None, "parked")
    assert "14155550123" not in row.key
    database.write(phone_messages.accept_code, "two", phone_due("http://127.0.0.1:9/"), now())
    assert len(messages(database)) == 1
