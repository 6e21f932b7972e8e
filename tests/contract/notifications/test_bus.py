"""The notifications service as it runs: events from a real broker, both processes, a real mail server, crashes in between."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pika
import pytest

from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.events import (
    COMPLETION_MAILS_DUE,
    DECLINE_MAIL_DUE,
    DELEGATED_MAIL_DUE,
    INVITATION_DUE,
    LINK_MAIL_DUE,
    QUESTION_MAIL_DUE,
    REMINDER_DUE,
    RETURNED_MAIL_DUE,
    SUBMISSION_ERASED,
    WRONG_RECIPIENT_MAIL_DUE,
    Erased,
    Event,
    ReminderDue,
)
from contracts.rpc import notifications as rpc
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.bus.marks import subscriptions_of
from contracts.runtime.bus.topology import event_exchange, event_queue_name
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.files.blobstore import BlobStore
from deploy.rabbitmq import PrivateBroker
from services.notifications.service import NotificationsService
from tests.contract.conftest import on
from tests.support.material import letters
from tests.support.material.letters import party
from tests.support.servers.mail_server import MailServer
from tests.support.services import processes
from tests.support.services.suite import wait_until


class Running:
    """``serve`` and ``background`` on their own broker objects; ``told`` collects what they say on the bus."""

    def __init__(self, stack: ExitStack, amqp_url: str, database_url: str, folder: Path, **more: str) -> None:
        self.folder = folder
        self.settings = processes.environment("notifications", amqp_url, database_url, folder, **more)
        processes.migrate("notifications", self.settings)
        self._stack = stack
        self._connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
        stack.callback(self._connection.close)
        self.channel: Any = self._connection.channel()
        self.channel.exchange_declare(event_exchange("notifications"), "topic", durable=True)
        self.told_queue = self.channel.queue_declare("", exclusive=True).method.queue
        self.channel.queue_bind(self.told_queue, event_exchange("notifications"), "mail.*")
        wait_until(self.emptied, what="empty queues")
        self.serve = self.start("serve")
        self.background = self.start("background")
        self.told: dict[str, Envelope] = {}

    def emptied(self) -> bool:
        """The queues are without what an earlier test left behind: it is all back once its consumers are gone."""
        queues = [event_queue_name(event, "notifications") for event in subscriptions_of(NotificationsService).values()]
        if any(self.channel.queue_declare(queue, passive=True).method.consumer_count for queue in queues):
            return False
        for queue in queues:
            self.channel.queue_purge(queue)
        return True

    def start(self, command: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self.folder / f"{command}.log").open("ab"))
        process = processes.start("notifications", command, self.settings, log)
        self._stack.callback(_end, process)
        return process

    def publish(self, event: Event, data: Any, *, times: int = 1) -> None:
        envelope = Envelope(
            id=uuid7(), type=event.type, source=event.source, subject="submission:31", occurred_at=now(), data={}
        )
        body = envelope.model_dump(mode="json") | {"data": data.model_dump(mode="json")}
        for _ in range(times):
            properties = pika.BasicProperties(
                delivery_mode=2, content_type="application/json", content_encoding="utf-8"
            )
            self.channel.basic_publish(event_exchange(event.source), event.type, json.dumps(body).encode(), properties)

    def invite(self, *numbers: int, times: int = 1) -> None:
        for number in numbers:
            due = letters.invitation(party(number), submitter_id=number, invitation_id=f"i-{number}")
            self.publish(INVITATION_DUE, due, times=times)

    def outcomes(self) -> list[tuple[str, str]]:
        """(kind of event, address) of everything told so far; what the relay published twice is one event."""
        while True:
            method, _properties, body = self.channel.basic_get(self.told_queue, auto_ack=True)
            if method is None:
                return [(one.type, one.data["to"]) for one in self.told.values()]
            envelope = Envelope.model_validate_json(body)
            self.told[envelope.id] = envelope

    def logs(self) -> str:
        return "".join(processes.log_of(path) for path in self.folder.glob("*.log"))


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()


@pytest.fixture
def server() -> Iterator[MailServer]:
    with MailServer() as running:
        yield running


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as entered:
        yield entered


@on("postgresql")
def test_events_become_mails_once_however_often_they_come(
    stack: ExitStack, broker: PrivateBroker, server: MailServer, database_url: str, tmp_path: Path
) -> None:
    service = Running(
        stack, broker.amqp_url, database_url, tmp_path, SMTP_URL=server.url, MAIL_FROM="sign@acme.example"
    )
    blobs = BlobStore.from_url(f"file://{tmp_path}/blobs")
    files = {
        name: letters.file(name).model_copy(
            update={"file": blobs.put(name.encode(), "application/pdf", "submissions/31/")}
        )
        for name in ("Lease", "Audit")
    }
    service.invite(1, 2, times=5)
    done = letters.completion(party(1), party(2), documents=[files["Lease"]], audit_trail=files["Audit"])
    service.publish(COMPLETION_MAILS_DUE, done, times=3)
    service.publish(DECLINE_MAIL_DUE, letters.decline("No."), times=2)
    service.publish(QUESTION_MAIL_DUE, letters.question("Why?"), times=2)
    service.publish(LINK_MAIL_DUE, letters.link(), times=2)
    service.publish(RETURNED_MAIL_DUE, letters.sent_back("The price."), times=2)
    service.publish(DELEGATED_MAIL_DUE, letters.delegation("She signs."), times=2)
    service.publish(WRONG_RECIPIENT_MAIL_DUE, letters.wrong_recipient("Not me."), times=2)
    expected = ["ana@acme.example"] * 6 + ["signer1@example.com"] * 3 + ["signer2@example.com"] * 2
    wait_until(lambda: sorted(server.recipients()) == expected, what="eleven mails")
    wait_until(lambda: len(service.outcomes()) == 11, what="eleven outcomes")
    assert sorted(service.outcomes()) == [("mail.sent", address) for address in expected]
    assert {one.source for one in service.told.values()} == {"notifications"}
    client = RpcClient(broker.amqp_url)
    stack.callback(client.close)
    page = client.call(rpc.LIST, rpc.ListMails(submission_id=31, limit=100))
    assert [mail.state for mail in page.data] == ["sent"] * 11
    # Mails that were sent hold signing links: nobody reads them here.
    with pytest.raises(ServiceError) as caught:
        client.call(rpc.GET, rpc.GetMail(id=page.data[0].id))
    assert caught.value.code == "not_found"
    service.publish(SUBMISSION_ERASED, Erased(submission_id=31))
    wait_until(lambda: client.call(rpc.LIST, rpc.ListMails()).data == [], what="the erasure")
    service.invite(1)
    service.publish(INVITATION_DUE, letters.invitation(party(9), submitter_id=9, invitation_id="i-9", submission_id=32))
    wait_until(lambda: "signer9@example.com" in server.recipients(), what="another submission's mail")
    assert len(server.received) == len(expected) + 1
    logs = service.logs()
    assert "due_work.attempted" in logs
    for secret in ("slug1", "signer1@example.com"):
        assert secret not in logs


@on("sqlite")
def test_the_first_page_comes_with_the_mail_and_keeps_none_when_it_is_gone(
    stack: ExitStack, broker: PrivateBroker, server: MailServer, database_url: str, tmp_path: Path
) -> None:
    service = Running(
        stack, broker.amqp_url, database_url, tmp_path, SMTP_URL=server.url, MAIL_FROM="sign@acme.example"
    )
    blobs = BlobStore.from_url(f"file://{tmp_path}/blobs")
    there, gone = (blobs.put(data, "image/png", "rendering/") for data in (b"\x89PNG there", b"\x89PNG gone"))
    blobs.delete(gone.key)
    for number, picture in ((1, there), (2, gone), (3, None)):
        due = letters.invitation(party(number), submitter_id=number, invitation_id=f"i-{number}", first_page=picture)
        service.publish(INVITATION_DUE, due)
    due = letters.invitation(party(4), submitter_id=4, first_page=there)
    reminded = ReminderDue(**{**dict(due), "reminder_id": "r-1", "number": 1})
    service.publish(REMINDER_DUE, reminded)
    wait_until(lambda: len(server.received) == 4, what="four mails")
    shown = {}
    for address, message in server.received:
        body = message.get_body(("html",))
        assert body is not None
        html = body.get_content()
        shown[address] = [part.get_content() for part in message.walk() if part["Content-ID"] == "<first_page>"]
        assert ('src="cid:first_page"' in html) == bool(shown[address])
        assert "<img" not in html or html.count("<img") == 1
    with_it = [b"\x89PNG there"]
    assert shown == {
        "signer1@example.com": with_it,
        "signer2@example.com": [],
        "signer3@example.com": [],
        "signer4@example.com": with_it,
    }


def test_killed_while_sending_every_mail_arrives_and_repeats_can_be_told(
    stack: ExitStack, broker: PrivateBroker, server: MailServer, tmp_path: Path
) -> None:
    database_url = f"sqlite:///{tmp_path}/notifications.sqlite"
    service = Running(
        stack, broker.amqp_url, database_url, tmp_path, SMTP_URL=server.url, MAIL_FROM="sign@acme.example"
    )
    service.invite(*range(1, 21))
    wait_until(lambda: len(server.received) >= 5, what="the first mails")
    service.background.kill()
    service.background.wait()
    service.serve.kill()
    service.serve.wait()
    service.invite(*range(21, 31))
    service.background = service.start("background")
    service.serve = service.start("serve")
    everybody = {f"signer{number}@example.com" for number in range(1, 31)}
    wait_until(lambda: set(server.recipients()) == everybody, what="thirty mails")
    wait_until(lambda: len({address for _kind, address in service.outcomes()}) == 30, what="thirty outcomes")
    # At most what was under way in each of the two connections came twice, and it says so itself.
    assert len(server.received) <= 32
    assert len({message["Message-ID"] for _address, message in server.received}) == 30
    assert len(service.outcomes()) == 30


def test_sigterm_finishes_and_leaves_nothing_leased(
    stack: ExitStack, broker: PrivateBroker, server: MailServer, tmp_path: Path
) -> None:
    database_url = f"sqlite:///{tmp_path}/notifications.sqlite"
    service = Running(
        stack, broker.amqp_url, database_url, tmp_path, SMTP_URL=server.url, MAIL_FROM="sign@acme.example"
    )
    service.invite(1)
    wait_until(lambda: len(server.received) == 1, what="the mail")
    for process in (service.serve, service.background):
        process.terminate()
        assert process.wait(120) == 0
    assert server.recipients() == ["signer1@example.com"]


def test_without_a_mail_server_the_mail_page_has_everything(
    stack: ExitStack, broker: PrivateBroker, tmp_path: Path
) -> None:
    database_url = f"sqlite:///{tmp_path}/notifications.sqlite"
    service = Running(stack, broker.amqp_url, database_url, tmp_path, SMTP_URL="")
    service.invite(1, 2)
    wait_until(lambda: len(list((tmp_path / "mail").glob("*.eml"))) == 2, what="two files")
    wait_until(lambda: len(service.outcomes()) == 2, what="two outcomes")
    client = RpcClient(broker.amqp_url)
    stack.callback(client.close)
    newest = client.call(rpc.LIST, rpc.ListMails()).data[-1]
    text = client.call(rpc.GET, rpc.GetMail(id=newest.id))
    assert text.links[0] in text.text
    service.publish(SUBMISSION_ERASED, Erased(submission_id=31))
    wait_until(lambda: list((tmp_path / "mail").iterdir()) == [], what="the files are gone")
