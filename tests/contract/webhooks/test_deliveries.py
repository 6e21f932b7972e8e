"""The background process of webhooks and real receivers: side by side and in order, and what is our fault is not theirs."""

import contextlib
import resource
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http import outbound
from contracts.runtime.http.outbound import Outbound, OutboundFailed, OutboundNotCalled, OutboundRefused
from deploy.rabbitmq import PrivateBroker
from services.webhooks import background, commands, deliver
from services.webhooks.models import Attempt, Delivery, Webhook
from tests.contract.conftest import ON_BOTH
from tests.support.material.webhooks import (
    database,
    deliveries,
    envelope,
    erase,
    finish,
    new_webhook,
    record,
    row,
    settings,
)
from tests.support.servers.receiver import Received, Receiver
from tests.support.services import processes
from tests.support.services.loops import running
from tests.support.services.secret_settings import LINK_SECRET
from tests.support.services.suite import wait_until

__all__ = ["database"]


def test_subjects_are_delivered_side_by_side_and_each_in_order(database: Database, tmp_path: Path) -> None:
    lock = threading.Lock()
    under_way: list[str] = []
    overlaps: list[str] = []
    most = [0]

    def answer(received: Received) -> Any:
        subject = received.message_id.split("-")[1]
        with lock:
            if subject in under_way:
                overlaps.append(subject)
            under_way.append(subject)
            most[0] = max(most[0], len(under_way))
        time.sleep(0.05)
        with lock:
            under_way.remove(subject)
        return 204, {}, b""

    with Receiver(answer) as receiver:
        new_webhook(database, receiver.url)
        for sequence in range(1, 6):
            record(database, *(envelope(sequence, subject=f"submission:{number}") for number in range(12)), at=now())
        own = settings(database, webhook_concurrency_per_receiver=4)
        with running(background.loops(own, database, BlobStore.from_url(f"file://{tmp_path}/blobs"))[0]):
            wait_until(lambda: len(receiver.requests) == 60, what="all deliveries")
    told = [received.message_id for received in receiver.requests]
    for number in range(12):
        mine = [one for one in told if one.startswith(f"event-submission:{number}-")]
        assert mine == [f"event-submission:{number}-{sequence}" for sequence in range(1, 6)]
    assert overlaps == []
    assert most[0] == 4


def delivering(database: Database, tmp_path: Path) -> Any:
    return running(background.loops(settings(database), database, BlobStore.from_url(f"file://{tmp_path}/blobs"))[0])


def logged(database: Database, count: int) -> None:
    """Log so many events about one subject together."""
    database.write(commands.record_events, [envelope(number) for number in range(1, count + 1)], now(), LINK_SECRET)


def outcomes_written(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of outcomes in each transaction, from now on."""
    sizes: list[int] = []
    write = database.write

    def counting(use_case: Any, *args: Any, **more: Any) -> Any:
        if getattr(use_case, "__name__", "") == "_write_outcomes":
            sizes.append(len(args[0]))
        return write(use_case, *args, **more)

    monkeypatch.setattr(database, "write", counting)
    return sizes


def test_what_waits_in_a_stream_is_sent_by_one_attempt(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, so many at most, and each has its attempt recorded."""
    monkeypatch.setattr(deliver, "LONGEST_RUN_SECONDS", 600.0)
    sizes = outcomes_written(database, monkeypatch)
    with Receiver() as receiver:
        made = new_webhook(database, receiver.url)
        logged(database, 2 * deliver.LONGEST_RUN + 3)
        with delivering(database, tmp_path):
            wait_until(lambda: {each.state for each in deliveries(database, made.id)} == {"delivered"}, what="all")
    wanted = [envelope(number).id for number in range(1, 2 * deliver.LONGEST_RUN + 4)]
    assert [each.message_id for each in receiver.requests] == wanted
    told = deliveries(database, made.id)
    assert [[attempt.status for attempt in each.attempts] for each in told] == [[204]] * len(wanted)
    assert {row(database, each.id).attempts for each in told} == {1}
    assert sizes == [1, 1, 1]


def test_a_run_does_not_pass_over_what_is_being_tried(database: Database) -> None:
    """The first one is sent again while the third is being tried: the fourth comes after the third."""
    made = new_webhook(database)
    logged(database, 4)
    third = deliveries(database, made.id)[2].id
    database.write(
        lambda session: session.execute(sa.update(Delivery).where(Delivery.id == third).values(state="due")) and None
    )

    def followers(session: Session) -> list[str]:
        first = session.get_one(Delivery, deliveries(database, made.id)[0].id)
        deliver.prepare(session, [first])
        return [each.message_id for each in first.followers]

    assert database.write(followers) == [envelope(2).id]


def test_a_receiver_that_takes_its_time_gets_one_after_the_other(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "LONGEST_RUN_SECONDS", 0.0)
    sizes = outcomes_written(database, monkeypatch)
    with Receiver() as receiver:
        made = new_webhook(database, receiver.url)
        logged(database, 4)
        with delivering(database, tmp_path):
            wait_until(lambda: {each.state for each in deliveries(database, made.id)} == {"delivered"}, what="all")
    assert sizes == [1] * 4
    assert [each.message_id for each in receiver.requests] == [envelope(n).id for n in range(1, 5)]


def test_a_run_ends_with_what_is_not_taken(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That one counts as tried, and holds back what follows it, as if it had been sent alone."""
    monkeypatch.setattr(deliver, "LONGEST_RUN_SECONDS", 600.0)
    with Receiver(lambda each: (500 if each.message_id.endswith("-3") else 204, {}, b"sorry")) as receiver:
        made = new_webhook(database, receiver.url)
        logged(database, 5)
        with delivering(database, tmp_path):
            wait_until(lambda: row(database, deliveries(database, made.id)[2].id).attempts == 1, what="the third")
    rows = [row(database, each.id) for each in deliveries(database, made.id)]
    assert [each.outcome for each in rows] == ["delivered", "delivered", None, None, None]
    assert [each.state for each in rows] == ["done", "done", "due", "waiting", "waiting"]
    assert rows[2].last_error == "status 500"
    assert rows[2].next_attempt_at > now(), "it has the first pause of the schedule before it"
    assert [attempt.status for attempt in deliveries(database, made.id)[2].attempts] == [500]
    assert len(receiver.requests) == 3
    assert database.read(lambda session: session.get_one(Webhook, made.id).failing_since) is not None


def test_a_receiver_that_is_gone_in_the_middle_of_a_run_is_disabled(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "LONGEST_RUN_SECONDS", 600.0)
    with Receiver(lambda each: (410 if each.message_id.endswith("-2") else 204, {}, b"")) as receiver:
        made = new_webhook(database, receiver.url)
        logged(database, 4)
        with delivering(database, tmp_path):
            wait_until(lambda: row(database, deliveries(database, made.id)[3].id).outcome, what="its end")
    rows = [row(database, each.id) for each in deliveries(database, made.id)]
    assert [each.outcome for each in rows] == ["delivered", "exhausted", "cancelled", "cancelled"]
    assert [each.state for each in rows] == ["done", "parked", "parked", "parked"]
    assert database.read(lambda session: session.get_one(Webhook, made.id).disabled_at) is not None


def test_what_was_erased_while_it_was_sent_in_a_run_stays_erased(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "LONGEST_RUN_SECONDS", 600.0)
    sizes = outcomes_written(database, monkeypatch)

    def answer(received: Received) -> Any:
        if received.message_id.endswith("-2"):
            erase(database)
        return 204, {}, b""

    with Receiver(answer) as receiver:
        made = new_webhook(database, receiver.url)
        logged(database, 4)
        with delivering(database, tmp_path):
            wait_until(lambda: sizes, what="the outcome")
    rows = [row(database, each.id) for each in deliveries(database, made.id)]
    assert [(each.outcome, each.state, each.body) for each in rows] == [("cancelled", "parked", None)] * 4


def test_the_next_about_a_subject_keeps_its_turn(database: Database) -> None:
    """Its predecessor took its time, and others were planned meanwhile: it does not go behind them."""
    made = new_webhook(database)
    planned = now()
    record(database, envelope(1), envelope(2), at=planned)
    first, second = deliveries(database, made.id)
    attempt = Attempt(delivery_id=first.id, attempted_at=now(), status=204, duration_ms=1)
    finish(database, first.id, Done(lambda session, it: commands.record_success(session, it, attempt)))
    assert (row(database, second.id).state, row(database, second.id).next_attempt_at) == ("due", planned)


def test_those_that_are_sent_again_are_sent_in_order(database: Database) -> None:
    made = new_webhook(database)
    record(database, envelope(1), envelope(2))
    ids = [each.id for each in deliveries(database, made.id)]

    def end(session: Any) -> None:
        for number in ids:
            found = session.get_one(Delivery, number)
            found.outcome, found.state = "exhausted", "parked"

    database.write(end)

    def retry(session: Session, number: int) -> None:
        session.get_one(Delivery, number).retry(now())

    for number in ids:
        database.write(retry, number)
    assert [row(database, number).state for number in ids] == ["due", "waiting"]


def test_who_has_no_descriptor_left_has_called_nobody() -> None:
    """Told apart from a receiver that cannot be reached."""
    with Receiver() as receiver:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        counted = outbound.NOT_CALLED._value.get()
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
        try:
            for url in (receiver.url, receiver.url.replace("127.0.0.1", "localhost")):
                with pytest.raises(OutboundNotCalled):
                    Outbound("127.0.0.0/8").post(url, b"", {})
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert receiver.requests == []
    assert outbound.NOT_CALLED._value.get() == counted + 2


@ON_BOTH
def test_running_out_of_descriptors_is_no_fault_of_the_receiver(
    broker: PrivateBroker, tmp_path: Path, database_url: str
) -> None:
    """A real process gets a low limit while it runs, and its limit back."""
    own = processes.environment("webhooks", broker.amqp_url, database_url, tmp_path, POLL_SECONDS="0.2")
    processes.migrate("webhooks", own)
    database = Database(database_url)
    log = tmp_path / "background.log"
    with Receiver() as receiver, processes.running("webhooks", "background", own, log) as process:
        made = new_webhook(database, receiver.url)
        record(database, envelope(1, subject="submission:1"), at=now())
        wait_until(lambda: len(receiver.requests) == 1, what="a first delivery")
        wait_until(lambda: deliveries(database, made.id)[0].state == "delivered", what="its row")
        before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        record(database, envelope(1, subject="submission:2"), at=now())
        wait_until(lambda: row(database, made_second(database)).last_error, what="an attempt that was none")
        open_one = row(database, made_second(database))
        assert (open_one.state, open_one.attempts, open_one.outcome) == ("due", 0, None)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, before)
        wait_until(lambda: len(receiver.requests) == 2, what="the delivery after all")
        wait_until(lambda: deliveries(database, made.id)[1].state == "delivered", what="its row")
    assert [attempt.status for attempt in deliveries(database, made.id)[1].attempts] == [204]
    assert database.read(lambda session: session.get_one(Webhook, made.id).failing_since) is None
    database.dispose()


def made_second(database: Database) -> int:
    return (
        database.read(lambda session: session.scalars(sa.select(Delivery.id).order_by(Delivery.id.desc())).first()) or 0
    )


class Counting(Receiver):
    """Keeps its connections open (HTTP/1.1), counts them, and closes them when it is told to."""

    def __init__(self, answer: Any = None) -> None:
        self.connections: list[Any] = []
        super().__init__(answer)

    def _handler(self) -> Any:
        receiver = self

        class Handler(super()._handler()):  # type: ignore[misc]
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                receiver.connections.append(self.request)
                super().setup()

        return Handler

    def hang_up(self) -> None:
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def test_a_connection_is_kept_and_made_anew_when_it_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Outbound("127.0.0.0/8")

    def post(**more: Any) -> int:
        return out.post(receiver.url, b"{}", {"webhook-id": "1"}, **{"keep_alive": True, **more}).status

    long = [b"taken"]
    with Counting(lambda _: (200, {"Set-Cookie": "a=b"}, long[-1])) as receiver:
        assert [post() for _ in range(3)] == [200] * 3
        assert len(receiver.connections) == 1
        assert not any("cookie" in received.headers for received in receiver.requests)
        receiver.hang_up()
        assert post() == 200
        assert len(receiver.connections) == 2
        assert len(receiver.requests) == 4
        # What is longer than anybody reads ends its connection, and so does whoever does not ask for its being kept.
        long.append(b"x" * 3_000_000)
        post()
        long.pop()
        post()
        assert len(receiver.connections) == 3
        post(keep_alive=False)
        assert len(receiver.connections) == 4
        monkeypatch.setattr(outbound, "KEPT_SECONDS", 0.0)
        post()
        assert len(receiver.connections) == 5
        assert out._idle == []


def test_a_kept_connection_leads_to_an_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one is checked anew, whatever was allowed before."""
    out = Outbound("127.0.0.0/8")
    with Counting() as receiver:
        out.post(receiver.url, b"{}", {}, keep_alive=True)
        monkeypatch.setattr(out, "_allowed", ())
        receiver.hang_up()
        with pytest.raises(OutboundRefused):
            out.post(receiver.url, b"{}", {}, keep_alive=True)
    assert len(receiver.requests) == 1


def test_a_body_does_not_wait_until_its_head_is_acknowledged() -> None:
    out = Outbound("127.0.0.0/8")
    with Counting() as receiver:
        out.post(receiver.url, b"{}", {}, keep_alive=True)
        ((connection,),) = [line.adapter._opened for line in out._idle]
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_kept_connection_that_hangs_is_given_up_in_time_and_not_tried_again() -> None:
    out = Outbound("127.0.0.0/8")
    release = threading.Event()

    def answer(_received: Received) -> Any:
        if len(receiver.requests) > 1:
            release.wait(120)
        return 200, {}, b""

    with Counting(answer) as receiver:
        out.post(receiver.url, b"{}", {}, keep_alive=True)
        with pytest.raises(OutboundFailed, match="took too long"):
            out.post(receiver.url, b"{}", {}, keep_alive=True, total_timeout=0.5)
        release.set()
        assert len(receiver.requests) == 2
