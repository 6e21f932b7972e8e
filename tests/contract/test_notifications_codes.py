"""Mails with one-time codes, on real databases with a real mail server."""

from datetime import timedelta
from pathlib import Path

from contracts.events import CodeDue
from contracts.one_time_code import code_of
from contracts.runtime.blobstore import BlobStore
from contracts.runtime.clock import now, uuid7
from contracts.runtime.database import Database
from services.notifications import composing
from tests.contract.test_notifications_database import (  # noqa: F401 - fixtures among them
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
from tests.support.mail_server import MailServer
from tests.support.suite import wait_until

SECRET, SEED = "for tests", "00ff" * 8


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
    assert "Lease &lt;2026&gt;" in body
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
