"""The notifications service on real databases with a real mail server: each mail once, retried alone, told, forgotten."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.events import Admins, MailedFile
from contracts.rpc import notifications as rpc
from contracts.runtime import migrations
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data import tables
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Loop
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.operations import retrying
from services.notifications import background, commands, queries
from services.notifications.channels.folder import FolderChannel
from services.notifications.messages import composing
from services.notifications.messages.composing import Mail
from services.notifications.models import MailRow
from services.notifications.sending import mails as sending
from services.notifications.settings import Settings
from tests.contract.conftest import ON_BOTH, on
from tests.support.material import letters
from tests.support.material.letters import party
from tests.support.servers.mail_server import CLOSE, HANG, MailServer
from tests.support.services.loops import running as running_loops
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import LINK_SECRET
from tests.support.services.suite import wait_until

SENDER = "sign@acme.example"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    migrated("notifications", database_url)
    database = Database(database_url)
    yield database
    database.dispose()


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore.from_url(f"file://{tmp_path}/blobs")


@pytest.fixture
def server() -> Iterator[MailServer]:
    with MailServer() as running:
        yield running


def settings(tmp_path: Path, **more: Any) -> Settings:
    facts: dict[str, Any] = {
        "amqp_url": "amqp://unused",
        "blob_url": f"file://{tmp_path}/blobs",
        "base_url": "https://sign.example.com",
        "link_secret": LINK_SECRET,
        "database_url": "sqlite://",
        "var_dir": tmp_path,
        "mail_from": SENDER,
        "mail_retry_seconds": ",".join(["0.05"] * 40),
        "poll_seconds": 0.02,
    }
    return Settings(**(facts | more))


@contextmanager
def running(own: Settings, database: Database, blobs: BlobStore, processes: int = 1) -> Iterator[None]:
    """The loops of the background process, as often as there are processes."""
    loops: list[Loop] = [loop for _ in range(processes) for loop in background.loops(own, database, blobs)]
    with running_loops(*loops, poll=own.poll_seconds):
        yield


def accept(
    database: Database, mails: list[Mail], *, event_id: str | None = None, at: datetime | None = None, **more: Any
) -> None:
    facts: dict[str, Any] = {"sender": SENDER, "kept_in_folder": False, "submission_id": 31}
    database.write(commands.accept, "test", event_id or uuid7(), mails, at or now(), **(facts | more))


def invite(database: Database, *numbers: int, **more: Any) -> None:
    for number in numbers:
        due = letters.invitation(party(number), submitter_id=number, invitation_id=f"i-{number}")
        accept(database, composing.invitations(due), invitation_id=f"i-{number}", **more)


def rows(database: Database) -> list[MailRow]:
    return database.read(lambda session: list(session.scalars(sa.select(MailRow).order_by(MailRow.id))))


def states(database: Database) -> list[str]:
    return [row.state for row in rows(database)]


def told(database: Database) -> list[tuple[str, dict[str, Any]]]:
    with database.engine.connect() as connection:
        bodies = connection.execute(sa.select(tables.outbox.c.body).order_by("seq")).scalars()
        return [(body["type"], body["data"]) for body in map(json.loads, bodies)]


def all_of(database: Database, state: str) -> bool:
    return set(states(database)) == {state}


@ON_BOTH
def test_the_migration_makes_the_tables_of_the_models(database_url: str) -> None:
    migrations.upgrade("notifications", database_url)
    assert migrations.differences("notifications", database_url) == []
    migrations.downgrade("notifications", database_url)
    migrations.upgrade("notifications", database_url)


@ON_BOTH
def test_an_invitation_is_sent_and_told(
    database: Database, blobs: BlobStore, server: MailServer, tmp_path: Path
) -> None:
    before = now()
    with running(settings(tmp_path, smtp_url=server.url), database, blobs):
        invite(database, 1)
        wait_until(lambda: all_of(database, "done"))
    message = server.message("signer1@example.com")
    assert message["From"] == f"Acme Ltd <{SENDER}>"
    assert message["Subject"] == "Ana Ray asks you to sign “Lease 2026”"
    assert message["Reply-To"] == "ana@acme.example"
    assert "https://sign.example.com/s/slug1" in server.raw[0].decode()
    (row,) = rows(database)
    assert (row.answer, row.attempts) == ("250 OK queued as 1", 1)
    # It held a signing link: once sent it is nobody's business any more.
    assert (row.text, row.html, row.links) == ("", "", [])
    outcome = {"submission_id": 31, "submitter_id": 1, "kind": "invitation", "to": "signer1@example.com"}
    ((kind, data),) = told(database)
    at = datetime.fromisoformat(data.pop("sent_at"))
    assert (kind, data) == ("mail.sent", outcome | {"invitation_id": "i-1", "error": None})
    assert before - timedelta(seconds=1) < at <= now(), "when the server took it"


def test_a_fact_that_is_told_again_makes_no_second_mail(
    database: Database, blobs: BlobStore, server: MailServer, tmp_path: Path
) -> None:
    due = composing.invitations(letters.invitation(party(1)))
    for _ in range(3):
        accept(database, due, event_id="e-1")
    # Another event with the same invitation in it.
    accept(database, due, event_id="e-2")
    with running(settings(tmp_path, smtp_url=server.url), database, blobs, processes=2):
        wait_until(lambda: all_of(database, "done"))
        accept(database, due, event_id="e-1")
        accept(database, due, event_id="e-3")
    assert server.recipients() == ["signer1@example.com"]
    assert len(told(database)) == 1


@ON_BOTH
def test_one_bad_address_of_twenty_stops_nobody_else(
    database: Database, blobs: BlobStore, server: MailServer, tmp_path: Path
) -> None:
    server.rcpt = lambda address: f"550 5.1.1 <{address}> unknown" if address == "signer7@example.com" else None
    signers = [party(number) for number in range(1, 21)]
    due = letters.completion(*signers, notify_sender=False, **results(blobs))
    with running(settings(tmp_path, smtp_url=server.url), database, blobs, processes=2):
        accept(database, composing.completions(due, 10_000_000))
        wait_until(lambda: "due" not in states(database))
    assert sorted(server.recipients()) == sorted(f"signer{n}@example.com" for n in range(1, 21) if n != 7)
    outcomes = told(database)
    assert [kind for kind, _data in outcomes].count("mail.sent") == 19
    (failure,) = [data for kind, data in outcomes if kind == "mail.failed"]
    assert (failure["to"], failure["submitter_id"], failure["kind"]) == ("signer7@example.com", 7, "documents_copy")
    assert failure["error"] == "550 5.1.1 <(recipient)> unknown"
    (failed,) = [row for row in rows(database) if row.state == "parked"]
    assert (failed.attempts, failed.answer) == (1, "550 5.1.1 <(recipient)> unknown")


def test_a_server_that_is_down_delays_and_loses_nothing(
    database: Database, blobs: BlobStore, server: MailServer, tmp_path: Path
) -> None:
    server.stop()
    with running(settings(tmp_path, smtp_url=server.url), database, blobs):
        invite(database, *range(1, 6))
        wait_until(lambda: all(row.attempts >= 2 for row in rows(database)))
        assert all_of(database, "due")
        assert all("refused" in (row.last_error or "") for row in rows(database) if row.leased_until is None)
        server.start()
        wait_until(lambda: all_of(database, "done"))
    assert sorted(server.recipients()) == [f"signer{n}@example.com" for n in range(1, 6)]


@on("sqlite")
@pytest.mark.parametrize("stage", ["mail", "rcpt", "data"])
@pytest.mark.parametrize("trouble", ["450 4.2.0 try later", HANG, CLOSE])
def test_trouble_that_passes(
    database: Database, blobs: BlobStore, server: MailServer, tmp_path: Path, stage: str, trouble: str
) -> None:
    tries: list[str] = []

    def twice(_address: str) -> str | None:
        tries.append(stage)
        return trouble if len(tries) <= 2 else None

    setattr(server, stage, twice)
    with running(settings(tmp_path, smtp_url=server.url, smtp_timeout=3 if trouble == HANG else 60), database, blobs):
        invite(database, 1)
        wait_until(lambda: all_of(database, "done"))
    identifiers = {message["Message-ID"] for _address, message in server.received}
    # Cut off after the mail was handed over, the server has it more than once: it can tell by the Message-ID.
    assert len(server.received) == (3 if (stage, trouble) == ("data", CLOSE) else 1)
    assert len(identifiers) == 1
    assert [kind for kind, _data in told(database)] == ["mail.sent"]


def test_a_mail_that_never_gets_through_fails_in_the_end_and_is_told(
    database: Database, blobs: BlobStore, server: MailServer, tmp_path: Path
) -> None:
    server.rcpt = lambda _address: "451 4.3.0 not today"
    with running(settings(tmp_path, smtp_url=server.url, mail_retry_seconds="0.01,0.01"), database, blobs):
        invite(database, 1)
        wait_until(lambda: all_of(database, "parked"))
    (row,) = rows(database)
    assert (row.attempts, row.last_error) == (3, "451 4.3.0 not today")
    assert [(kind, data["error"], data["invitation_id"]) for kind, data in told(database)] == [
        ("mail.failed", "451 4.3.0 not today", "i-1")
    ]


@ON_BOTH
def test_what_failed_is_sent_once_an_operator_has_it_tried_again_and_what_was_erased_is_not(
    database: Database, blobs: BlobStore, server: MailServer, tmp_path: Path
) -> None:
    server.rcpt = lambda _address: "550 5.7.1 we do not know you"
    with running(settings(tmp_path, smtp_url=server.url), database, blobs):
        invite(database, 1, 2)
        wait_until(lambda: all_of(database, "parked"))
    erased = max(row.id for row in rows(database))

    def erase(session: Session) -> None:
        session.execute(sa.update(MailRow).where(MailRow.id == erased).values(erased_at=now(), to_address="", text=""))

    database.write(erase)
    server.rcpt = lambda _address: None
    assert retrying.made_due(database, MailRow, []) == 1
    with running(settings(tmp_path, smtp_url=server.url), database, blobs):
        wait_until(lambda: sorted(row.state for row in rows(database)) == ["done", "parked"])
    assert len(server.recipients()) == 1
    assert [kind for kind, _data in told(database)] == ["mail.failed", "mail.failed", "mail.sent"]


def stored(blobs: BlobStore, name: str, size: int = 1000) -> MailedFile:
    file = letters.file(name)
    content = name.encode() * (size // len(name))
    return file.model_copy(update={"file": blobs.put(content, "application/pdf", "submissions/31/")})


def results(blobs: BlobStore) -> dict[str, Any]:
    return {"documents": [stored(blobs, "Lease")], "audit_trail": stored(blobs, "Audit")}


def test_files_go_along(database: Database, blobs: BlobStore, server: MailServer, tmp_path: Path) -> None:
    due = letters.completion(party(1), notify_sender=False, **results(blobs))
    with running(settings(tmp_path, smtp_url=server.url), database, blobs):
        accept(database, composing.completions(due, 10_000_000))
        wait_until(lambda: all_of(database, "done"))
    files = {
        part.get_filename(): part.get_content() for part in server.message("signer1@example.com").iter_attachments()
    }
    assert files == {"Lease.pdf": b"Lease" * 200, "Audit.pdf": b"Audit" * 200}


@ON_BOTH
def test_a_server_that_takes_less_gets_links(database: Database, blobs: BlobStore, tmp_path: Path) -> None:
    due = letters.completion(party(1), documents=[stored(blobs, "Lease", 50_000)], audit_trail=stored(blobs, "Audit"))
    with (
        MailServer(data_size_limit=20_000) as server,
        running(settings(tmp_path, smtp_url=server.url), database, blobs),
    ):
        accept(database, composing.completions(due, 10_000_000))
        wait_until(lambda: all_of(database, "done"))
        for address in ("signer1@example.com", "ana@acme.example"):
            message = server.message(address)
            assert list(message.iter_attachments()) == []
            assert "https://sign.example.com/file/Lease" in message.get_body(("plain",)).get_content()  # type: ignore[union-attr]


@ON_BOTH
def test_without_a_mail_server_mails_are_files_and_can_be_read(
    database: Database, blobs: BlobStore, tmp_path: Path
) -> None:
    due = letters.completion(party(1), **results(blobs))
    with running(settings(tmp_path), database, blobs):
        accept(database, composing.completions(due, 10_000_000), kept_in_folder=True)
        invite(database, 1, 2, kept_in_folder=True)
        wait_until(lambda: all_of(database, "done"))
    files = sorted((tmp_path / "mail").iterdir())
    assert [file.name for file in files] == [f"{row.id:08d}.eml" for row in rows(database)]
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)
    assert "slug2" in files[-1].read_text()
    page = database.read(queries.mails, rpc.ListMails(limit=3))
    assert [mail.kind for mail in page.data] == ["documents_copy", "completed", "invitation"]
    assert (page.pagination.count, page.pagination.next) == (3, page.data[-1].id)
    assert page.data[0].state == "sent"
    assert page.data[0].sent_at is not None
    rest = database.read(queries.mails, rpc.ListMails(limit=3, after=page.pagination.next))
    assert [mail.to for mail in rest.data] == ["signer2@example.com"]
    assert rest.pagination.next == rest.data[-1].id
    before = database.read(queries.mails, rpc.ListMails(limit=2, before=rest.data[0].id))
    assert [mail.id for mail in before.data] == [mail.id for mail in page.data[1:]]
    assert before.pagination.next == page.data[-1].id
    assert database.read(queries.mails, rpc.ListMails(submission_id=32)).data == []
    shown = database.read(queries.mail, rpc.GetMail(id=page.data[0].id))
    assert [(one.filename, one.size) for one in shown.attachments] == [("Lease.pdf", 1000), ("Audit.pdf", 1000)]
    assert shown.links == ["https://sign.example.com/s/slug1"]
    assert "everybody has done their part" in shown.text
    assert "<p" in shown.html
    for number in (0, -1, 999, 2**63, 10**30):
        with pytest.raises(ServiceError) as caught:
            database.read(queries.mail, rpc.GetMail(id=number))
        assert caught.value.code == "not_found"


def test_a_folder_that_cannot_be_written_is_trouble_that_passes(
    database: Database, blobs: BlobStore, tmp_path: Path
) -> None:
    (tmp_path / "mail").write_text("in the way")
    with running(settings(tmp_path), database, blobs):
        invite(database, 1)
        wait_until(lambda: rows(database)[0].attempts >= 2)
        (tmp_path / "mail").unlink()
        wait_until(lambda: all_of(database, "done"))
    assert len(list((tmp_path / "mail").iterdir())) == 1


def test_an_invitation_may_be_sent_again_but_not_again_and_again(database: Database) -> None:
    at = now()

    def again(number: int, after: float = 0.0, address: str = "signer1@example.com") -> None:
        due = letters.invitation(party(1, address), invitation_id=f"again-{number}")
        moment = at + timedelta(seconds=after)
        accept(database, composing.invitations(due), at=moment, resend_after=timedelta(seconds=60))

    again(0)
    for number in range(1, 50):
        again(number, number / 100)
    assert len(rows(database)) == 2
    again(60, 30, "other@example.com")
    assert len(rows(database)) == 3
    again(61, 59)
    assert len(rows(database)) == 3
    again(62, 61)
    assert len(rows(database)) == 4


def test_parallel_events_about_one_submission_do_not_collide(database: Database) -> None:
    threads = [threading.Thread(target=invite, args=(database, number)) for number in range(1, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(row.to_address for row in rows(database)) == sorted(f"signer{n}@example.com" for n in range(1, 13))


def everything_in(database: Database) -> str:
    """Every value of every row of the service's own tables."""
    with database.engine.connect() as connection:
        return str([list(connection.execute(sa.text(f"SELECT * FROM {table}"))) for table in ("mails", "submissions")])


@ON_BOTH
def test_an_erased_submission_leaves_no_address_and_no_text(
    database: Database, blobs: BlobStore, tmp_path: Path
) -> None:
    own = settings(tmp_path)
    due = letters.invitation(party(1, "canary@example.com", name="Canary Bird"), submission_name="Secret Canary")
    with running(own, database, blobs):
        accept(database, composing.invitations(due), kept_in_folder=True)
        wait_until(lambda: all_of(database, "done"))
    invite(database, 2, kept_in_folder=True)
    other = letters.invitation(party(3), submitter_id=3, invitation_id="i-other")
    accept(database, composing.invitations(other), submission_id=32)
    database.write(commands.erase, "erased-1", 31, now())
    sending.forget_files(database, FolderChannel(own.mail_folder))
    kept = everything_in(database)
    for trace in ("canary@example.com", "Canary", "slug1", "signer2@example.com", "slug2"):
        assert trace not in kept
    assert list((tmp_path / "mail").iterdir()) == []
    assert [one["deleted"] for one in confirmed(database)] == [{"mails": 2, "phone_messages": 0}]
    # The one that was waiting is not sent any more; another submission's is.
    assert states(database) == ["done", "parked", "due"]
    page = database.read(queries.mails, rpc.ListMails())
    assert [mail.submission_id for mail in page.data] == [32]
    with pytest.raises(ServiceError):
        database.read(queries.mail, rpc.GetMail(id=rows(database)[0].id))
    # Delivered late, or once more: nothing comes back.
    database.write(commands.erase, "erased-1", 31, now())
    accept(database, composing.invitations(due), event_id="late")
    invite(database, 4)
    assert len(rows(database)) == 3


def confirmed(database: Database) -> list[dict[str, Any]]:
    """What submissions is told of erasures."""
    told = sa.select(tables.outbox.c.body).where(tables.outbox.c.type == "mails.erased")
    return [json.loads(body)["data"] for body in database.read(lambda session: list(session.scalars(told)))]


@ON_BOTH
def test_a_mail_that_is_being_sent_while_it_is_erased_leaves_nothing_either(
    database: Database, blobs: BlobStore, tmp_path: Path
) -> None:
    own = settings(tmp_path)
    folder = FolderChannel(own.mail_folder)
    invite(database, 1, kept_in_folder=True)
    (work,) = [loop for loop in background.loops(own, database, blobs) if loop.name == "mails"]
    held, go_on = threading.Event(), threading.Event()
    send = FolderChannel.send

    def slowly(channel: FolderChannel, mail_id: int, recipient: str, message: bytes) -> str:
        held.set()
        assert go_on.wait(120)
        return send(channel, mail_id, recipient, message)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FolderChannel, "send", slowly)
        work.turn()
        assert held.wait(120)
        database.write(commands.erase, "erased-1", 31, now())
        sending.forget_files(database, folder)
        assert confirmed(database) == [], "its file is being written"
        go_on.set()
        work.finish()
    assert len(list((tmp_path / "mail").iterdir())) == 1
    sending.forget_files(database, folder)
    assert list((tmp_path / "mail").iterdir()) == []
    (row,) = rows(database)
    assert (row.state, row.to_address, row.answer) == ("parked", "", None)
    assert (confirmed(database), told(database)) == ([], []), "nobody knows that it is not being written any more"
    over = sa.update(MailRow).values(leased_until=now() - timedelta(hours=1))
    database.write(lambda session: session.execute(over).close())
    sending.forget_files(database, folder)
    sending.forget_files(database, folder)
    assert [one["deleted"] for one in confirmed(database)] == [{"mails": 1, "phone_messages": 0}]


def test_nobody_is_told_of_a_mail_that_is_about_no_submission(
    database: Database, blobs: BlobStore, server: MailServer, tmp_path: Path
) -> None:
    from contracts.events import WebhookDisabled

    disabled = WebhookDisabled(webhook_id=4, url="https://x.example", reason="410", admins=["admin@example.com"])
    mails = composing.webhooks_disabled("e-1", disabled, "https://sign.example.com")
    with running(settings(tmp_path, smtp_url=server.url), database, blobs):
        accept(database, mails, submission_id=None)
        wait_until(lambda: all_of(database, "done"))
    assert server.recipients() == ["admin@example.com"]
    assert told(database) == []


@ON_BOTH
def test_the_admins_are_known_as_the_gateway_said_last(database: Database) -> None:
    def tell(event_id: str, revision: int, *emails: str) -> None:
        database.write(commands.keep_admins, event_id, Admins(emails=list(emails), revision=revision))

    assert database.read(queries.admins) is None
    tell("a-2", 2, "b@x.example")
    tell("a-1", 1, "a@x.example")
    assert database.read(queries.admins) == ["b@x.example"]
    tell("a-3", 3)
    assert database.read(queries.admins) == []
    tell("a-3", 4, "c@x.example")
    assert database.read(queries.admins) == [], "the same event once more"


@pytest.mark.parametrize(
    ("more", "sender"),
    [
        ({"mail_from": "post@acme.example"}, "post@acme.example"),
        ({"mail_from": None, "smtp_url": "smtp://me%40acme.example:x@host"}, "me@acme.example"),
        ({"mail_from": "", "smtp_url": "smtp://me:x@host"}, "no-reply@sign.example.com"),
        ({"mail_from": None, "smtp_url": ""}, "no-reply@sign.example.com"),
    ],
)
def test_who_mails_come_from(tmp_path: Path, more: dict[str, Any], sender: str) -> None:
    assert settings(tmp_path, **more).sender == sender


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    for more in (
        {"smtp_url": "http://x"},
        {"mail_from": "nobody"},
        {"mail_retry_seconds": "1,0"},
        {"smtp_url": None, "var_dir": None},
    ):
        with pytest.raises(ValueError):
            settings(tmp_path, **more)
    assert "hunter2" not in repr(settings(tmp_path, smtp_url="smtp://u:hunter2@host"))
