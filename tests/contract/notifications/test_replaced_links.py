"""A signing link that was replaced: what waits with it is not sent, whatever comes first; what left is told. On real databases."""

from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from contracts.events import CodeDue, LinkReplaced, SmsDue
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done
from contracts.runtime.data.files.blobstore import BlobStore
from services.notifications import commands
from services.notifications.channels.folder import FolderChannel
from services.notifications.channels.outcome import NotSent
from services.notifications.messages import composing
from services.notifications.models import MailRow, PhoneMessageRow
from services.notifications.sending import mails as sending
from services.notifications.sending import phone_messages
from tests.contract.conftest import ON_BOTH
from tests.contract.notifications.test_database import (  # noqa: F401 - fixtures among them
    SENDER,
    accept,
    blobs,
    database,
    invite,
    rows,
    running,
    server,
    settings,
    states,
    told,
)
from tests.support.material import letters
from tests.support.material.letters import party
from tests.support.present import present
from tests.support.servers.mail_server import MailServer
from tests.support.services.secret_settings import LINK_SECRET
from tests.support.services.suite import wait_until

NEVER_SENT = "The signing link was replaced before it could be sent"


def replace(database: Database, number: int = 1, *, event_id: str | None = None, submission_id: int = 31) -> None:  # noqa: F811
    replaced = LinkReplaced(submission_id=submission_id, submitter_id=number, slug=f"slug{number}")
    database.write(commands.replace_link, event_id or uuid7(), replaced, now())


def code(**more: object) -> CodeDue:
    facts = {"code_id": "c-1", "seed": "s", "method": "email", "to": "signer1@example.com", "submission_id": 31}
    facts |= {
        "submission_name": "Lease 2026",
        "submitter_id": 1,
        "slug": "slug1",
        "account_name": "Acme",
        "minutes": 10,
    }
    return CodeDue(**{**facts, "expires_at": now() + timedelta(minutes=10), **more})


def test_what_waits_with_it_is_not_sent_and_told_as_failed(
    database: Database,  # noqa: F811
    blobs: BlobStore,  # noqa: F811
    server: MailServer,  # noqa: F811
    tmp_path: Path,
) -> None:
    invite(database, 1, 2)
    for _ in range(2):
        replace(database, event_id="told twice")
    with running(settings(tmp_path, smtp_url=server.url), database, blobs):
        wait_until(lambda: set(states(database)) == {"parked", "done"})
    assert [one for one in server.raw if b"slug1" in one] == []
    outcomes = {data["to"]: (kind, data["error"]) for kind, data in told(database)}
    assert outcomes == {
        "signer1@example.com": ("mail.failed", NEVER_SENT),
        "signer2@example.com": ("mail.sent", None),
    }
    mallory = rows(database)[0]
    assert (mallory.text, mallory.html) == ("", ""), "what was not sent is nobody's business"


def test_what_comes_late_with_it_is_dropped_and_the_new_link_is_sent(database: Database) -> None:  # noqa: F811
    replace(database)
    invite(database, 1)
    accept(database, composing.one_time_codes(code(), LINK_SECRET))
    assert rows(database) == []
    again = letters.invitation(party(1, "bob@example.com", slug="slug9"), submitter_id=1, invitation_id="i-9")
    accept(database, composing.invitations(again), invitation_id="i-9")
    accept(database, composing.one_time_codes(code(slug=None), LINK_SECRET))
    assert [row.to_address for row in rows(database)] == ["bob@example.com", "signer1@example.com"]


@ON_BOTH
def test_messages_to_phones_too(database: Database) -> None:  # noqa: F811
    due = SmsDue(invitation_id="i-1", context=letters.context(party(1)), submitter_id=1, phone="+14155550123")
    by_phone = code(method="phone", to="+14155550123", phone_otp_webhook="sealed")

    def tell(number: str) -> None:
        pause = timedelta(0)
        sms = due.model_copy(update={"invitation_id": f"i-{number}"})
        database.write(phone_messages.accept_invitation, f"sms {number}", sms, pause, now())
        other = by_phone.model_copy(update={"code_id": f"c-{number}"})
        database.write(phone_messages.accept_code, f"code {number}", other, now())

    tell("1")
    replace(database)
    tell("2")
    found = database.read(lambda session: list(session.scalars(sa.select(PhoneMessageRow))))
    assert len(found) == 2
    assert all(present(row.expires_at) <= now() for row in found)


def test_what_is_being_sent_just_now_is_told_as_sent_and_never_tried_again(
    database: Database,  # noqa: F811
    blobs: BlobStore,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attempt is under way when the news comes: once it leaves, once it fails."""
    invite(database, 1)
    invite(database, 2)
    tried: list[str] = []

    def send(self: FolderChannel, mail_id: int, recipient: str, message: bytes) -> str:
        tried.append(recipient)
        if recipient == "signer1@example.com":
            replace(database, 1)
            return "taken"
        replace(database, 2)
        raise NotSent("421 later")

    monkeypatch.setattr(FolderChannel, "send", send)
    with running(settings(tmp_path), database, blobs):
        wait_until(lambda: sorted(states(database)) == ["done", "parked"])
    assert sorted(tried) == ["signer1@example.com", "signer2@example.com"]
    outcomes = sorted((data["to"], kind, data["error"]) for kind, data in told(database))
    assert outcomes == [
        ("signer1@example.com", "mail.sent", None),
        ("signer2@example.com", "mail.failed", NEVER_SENT),
    ]


def test_an_operator_cannot_have_it_sent_again(database: Database, blobs: BlobStore) -> None:  # noqa: F811
    invite(database, 1)
    database.write(
        lambda session: session.execute(sa.update(MailRow).values(state="parked", last_error="550 no such user"))
    )
    replace(database)
    retried = database.read(
        lambda session: list(session.scalars(sa.select(MailRow.id).where(MailRow.may_be_retried())))
    )
    assert retried == []
    (row,) = rows(database)
    outcome = sending.Sending(FolderChannel(Path("unused")), blobs, SENDER).attempt(row)
    assert not isinstance(outcome, Done)


@ON_BOTH
def test_erasing_forgets_it(database: Database) -> None:  # noqa: F811
    invite(database, 1)
    replace(database)
    database.write(commands.erase, uuid7(), 31, now(), phone_messages.erase)
    replace(database, 2)
    kept = database.read(lambda session: session.execute(sa.text("SELECT count(*) FROM replaced_links")).scalar())
    assert kept == 0
