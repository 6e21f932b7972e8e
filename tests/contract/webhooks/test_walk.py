"""Two replicas of webhooks that are killed between any two statements, a bus that repeats and mixes, receivers that fail: every
event is told as it should be, once and in order, and what was tried is written down."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.events import SUBMISSION_ERASED, Erased
from contracts.rpc import webhooks as rpc
from contracts.rpc.events import SubjectEvents
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import FINISHED, DueWork, Outcome
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.data.together import Together
from services.webhooks import background, commands, domain, queries
from services.webhooks.deliver import LONGEST_RUN
from services.webhooks.models import Arrival, Attempt, Delivery, LoggedEvent, Webhook
from tests.support.material.webhooks import ADMIN, database, envelope, erasure, new_webhook, numbers, settings
from tests.support.servers.receiver import Received, Receiver, Reply
from tests.support.services.secret_settings import LINK_SECRET
from tests.support.services.suite import wait_until

__all__ = ["database"]

SUBJECTS, EVENTS, HANDLERS = 8, 6, 5
CHANCE = 0.003
"""Of being killed at a step."""
ERASED = "submission:3"
SEEDS = (1, 4)
KINDS = ["form.completed", SUBMISSION_ERASED.type]


class Killed(BaseException):
    """A process ends here, as ``kill -9`` ends it: nothing more is written."""


class Bus:
    """Keeps messages until they are acknowledged; gives them in any order, some of them twice."""

    def __init__(self, messages: Sequence[Envelope], seed: int) -> None:
        self._random = random.Random(seed)
        self._waiting = list(messages)
        self._under_way = 0
        self._lock = threading.Lock()

    def take(self) -> Envelope | None:
        with self._lock:
            if not self._waiting:
                return None
            self._under_way += 1
            # From among the first ones: what was stated much later is not often there before.
            return self._waiting.pop(self._random.randrange(min(len(self._waiting), 25)))

    def settle(self, message: Envelope, *, taken: bool) -> None:
        with self._lock:
            self._under_way -= 1
            if not taken or self._random.random() < 0.2:
                self._waiting.append(message)

    def is_empty(self) -> bool:
        with self._lock:
            return not self._waiting and not self._under_way


class Mortal(Database):
    """A database whose transactions may end before and after their commit, too."""

    def __init__(self, url: str, perhaps: Callable[..., None]) -> None:
        super().__init__(url)
        self._perhaps = perhaps
        sa.event.listen(self.engine, "before_cursor_execute", perhaps)

    def _write(self, use_case: Callable[..., Any], *more: Any) -> Any:
        def until_the_commit(session: Session, *args: Any, **kwargs: Any) -> Any:
            result = use_case(session, *args, **kwargs)
            session.flush()
            self._perhaps()
            return result

        written = super()._write(until_the_commit, *more)
        self._perhaps()
        return written


class Process:
    """A replica, with a database of its own: handlers of events, and the loop that delivers. When it has been killed, each of its
    threads ends at its next statement, and what it had sent meanwhile is noted nowhere."""

    def __init__(self, url: str, bus: Bus, blobs: BlobStore, chance: float, seed: int) -> None:
        self.killed = self.stopped = False
        self.sent: Counter[str] = Counter()
        self.errors: list[Exception] = []
        self._bus, self._random, self.chance = bus, random.Random(seed), chance
        self._database = Mortal(url, self._perhaps)
        self._event_log: Together[Envelope] = Together(self._log_events)
        loop = background.loops(
            settings(self._database, webhook_total_timeout=0.5, webhook_attempts_kept=1000), self._database, blobs
        )[0]
        assert isinstance(loop, DueWork)
        self._deliver, self._attempt_once = loop, loop._attempt
        loop._attempt = self._attempt
        self._threads = [
            threading.Thread(target=self._until_killed, args=(step,))
            for step in (*[self._handle] * HANDLERS, self._turn)
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self.stopped = True
        for thread in self._threads:
            thread.join()
        with suppress(Killed):
            self._deliver.finish()
        self._database.dispose()

    def _perhaps(self, *_: Any) -> None:
        self.killed = self.killed or self._random.random() < self.chance
        if self.killed:
            raise Killed

    def _until_killed(self, step: Callable[[], None]) -> None:
        with suppress(Killed):
            while not self.killed and not self.stopped:
                step()

    def _handle(self) -> None:
        message = self._bus.take()
        if message is None:
            time.sleep(0.01)
            return
        taken = False
        try:
            if message.type == SUBMISSION_ERASED.type:
                self._database.write(commands.erase, message, Erased.model_validate(message.data), now(), LINK_SECRET)
            else:
                self._event_log.write(message)
            taken = True
        except sa.exc.IntegrityError:
            """A webhook was deleted in between: the bus brings the message again."""
        except Exception as error:
            self.errors += [error] if getattr(error, "code", "") != "unavailable" else []
        finally:
            self._bus.settle(message, taken=taken)

    def _log_events(self, envelopes: Sequence[Envelope]) -> None:
        self._database.write(commands.record_events, envelopes, now(), LINK_SECRET)

    def _turn(self) -> None:
        """As the loop's own thread, which goes on after whatever a turn raises."""
        self._deliver._woken.clear()
        try:
            pause = self._deliver.turn()
        except (ServiceError, sa.exc.IntegrityError):
            pause = 0.05
        except Exception as error:
            self.errors.append(error)
            pause = 0.05
        self._deliver._woken.wait(min(pause, 0.05))

    def _attempt(self, row: Delivery) -> Outcome:
        if row.request is not None:
            self.sent[_of(row)] += 1
        outcome = self._attempt_once(row)
        self._perhaps()
        return outcome


class Story:
    """Of what receivers were sent: what was accepted, and what came before its time."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.bodies: dict[str, set[bytes]] = {}
        self.requests: Counter[str] = Counter()
        self.accepted: dict[str, set[str]] = {"steady": set(), "flaky": set(), "gone": set(), "other": set()}
        self.begun: list[tuple[str, str, frozenset[str]]] = []
        self.is_gone = True
        self.hooks: dict[str, int] = {}

    def answer(self, received: Received) -> Reply:
        name = received.path.rpartition("/")[2]
        message_id = f"{received.message_id}.{self.hooks[name]}"
        with self._lock:
            self.bodies.setdefault(message_id, set()).add(received.body)
            self.requests[message_id] += 1
            self.begun.append((name, message_id, frozenset(self.accepted[name])))
            luck = self._random.random()
        if name == "gone" and self.is_gone and luck < 0.2:
            return 410, {}, b""
        if name == "flaky" and luck < 0.03:
            time.sleep(0.6)
            return 500, {}, b"too late"
        if name == "flaky" and luck < 0.3:
            return 500, {}, b"no"
        with self._lock:
            self.accepted[name].add(message_id)
        return 204, {}, b""


def _of(row: Any) -> str:
    """The event and the webhook of a delivery: what is said of it is found by these."""
    return f"{row.message_id}.{row.webhook_id}"


def facts(message_id: str) -> tuple[str, int]:
    """Its subject and its number: see ``envelope``."""
    told = message_id.rpartition(".")[0]
    if told == "gone":
        return ERASED, EVENTS + 1
    _, subject, number = told.split("-")
    return subject, int(number)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # attempts of who was killed
def test_whatever_is_killed_each_event_is_told_once_and_in_order(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Against what was stated, and what the receivers saw. Meanwhile somebody replays, resends, closes gaps, deletes a webhook and
    enables the one that answers 410, and a submission is erased."""
    monkeypatch.setattr(domain, "SCHEDULE", (timedelta(seconds=0.05),) * 1000)
    luck = random.Random(seed)
    stated = [
        envelope(number, subject=f"submission:{subject}")
        for number in range(1, EVENTS + 1)
        for subject in range(1, SUBJECTS + 1)
    ]
    gone, _ = erasure(EVENTS + 1, submission=3)
    stated.insert(len(stated) * 2 // 3, gone)
    bus, story, blobs = Bus(stated, seed), Story(seed), BlobStore.from_url(f"file://{tmp_path}/blobs")
    superseded = FINISHED.labels("deliver", "superseded")
    superseded_before = superseded._value.get()
    url = database.url.render_as_string(hide_password=False)
    dead: list[Process] = []

    def request_id() -> str:
        return f"r{next(numbers)}"

    with Receiver(story.answer) as receiver:
        address = receiver.url.removesuffix("/hook")
        steady, flaky, unsteady = (
            new_webhook(database, f"{address}/{name}", events=KINDS).id for name in ("steady", "flaky", "gone")
        )
        removed = new_webhook(database, f"{address}/other").id
        story.hooks = {"steady": steady, "flaky": flaky, "gone": unsteady, "other": removed}
        processes = [Process(url, bus, blobs, CHANCE, 10 * seed + number) for number in range(2)]

        def meddle() -> None:
            """One of what people and the other loops do meanwhile."""
            what = luck.randrange(6)
            hook = luck.choice([steady, flaky, unsteady])
            if what == 0:
                since = now() - timedelta(hours=1)
                database.write(
                    commands.replay,
                    rpc.ReplayEvents(request_id=request_id(), actor=ADMIN, id=hook, since=since),
                    now(),
                    LINK_SECRET,
                )
            elif what in (1, 2):
                told = database.read(
                    lambda session: session.scalars(sa.select(Delivery.id).where(Delivery.webhook_id == hook)).all()
                )
                if told:
                    again = rpc.ResendDelivery(
                        request_id=request_id(), actor=ADMIN, webhook_id=hook, id=luck.choice(told)
                    )
                    database.write(commands.resend, again, now())
            elif what == 3:
                enable = rpc.UpdateWebhook(request_id=request_id(), actor=ADMIN, id=unsteady, url=f"{address}/gone")
                database.write(commands.update, enable, now())
            elif what == 4:
                database.write(commands.release_forgotten, now())
            else:
                for gap in database.read(queries.gaps, now())[:1]:
                    there = [
                        each for each in stated if each.subject == gap.subject and (each.sequence or 0) > gap.after
                    ]
                    there.sort(key=lambda each: each.sequence or 0)
                    database.write(
                        commands.catch_up,
                        gap,
                        SubjectEvents(epoch="", kept_since=now(), events=there),
                        now(),
                        LINK_SECRET,
                    )

        def errors() -> list[Exception]:
            return [error for process in (*dead, *processes) for error in process.errors]

        def go_on() -> None:
            for number, process in enumerate(processes):
                if process.killed:
                    process.end()
                    dead.append(process)
                    processes[number] = Process(url, bus, blobs, CHANCE if meddling else 0, luck.randrange(10**6))
            if meddling and luck.random() < 0.3:
                with suppress(ServiceError):
                    meddle()

        def all_told() -> bool:
            go_on()
            assert errors() == []
            open_ones = sa.select(sa.func.count()).where(Delivery.outcome.is_(None))
            return bus.is_empty() and database.read(lambda session: session.scalar(open_ones)) == 0

        try:
            meddling = True
            for step in range(45):
                go_on()
                if step == 15:
                    database.write(
                        commands.remove, rpc.RemoveWebhook(request_id=request_id(), actor=ADMIN, id=removed), now()
                    )
                time.sleep(0.03)
            meddling = story.is_gone = False
            for process in processes:
                process.chance = 0
            wait_until(all_told, what="everything to be told")
        finally:
            for process in processes:
                process.end()

    assert errors() == []

    def read(statement: Any) -> Any:
        return database.read(lambda session: session.execute(statement).all())

    # The log: each event once, in the order of its subject's numbers.
    log = read(sa.select(LoggedEvent.subject, LoggedEvent.sequence).order_by(LoggedEvent.position))
    for number in range(1, SUBJECTS + 1):
        subject = f"submission:{number}"
        logged = [row.sequence for row in log if row.subject == subject]
        assert logged == list(range(1, EVENTS + 1 + (subject == ERASED)))
    assert read(sa.select(Arrival.event_id)) == []
    # A delivery of each for each webhook that wants it, and an end of each.
    rows = read(sa.select(Delivery.id, Delivery.webhook_id, Delivery.message_id, Delivery.outcome, Delivery.state))
    outcomes = {_of(row): row.outcome for row in rows}
    assert {row.webhook_id for row in rows} <= {steady, flaky, unsteady}
    for hook in (steady, flaky):
        told = {_of(row) for row in rows if row.webhook_id == hook}
        assert told <= {f"{each.id}.{hook}" for each in stated}
        assert told >= {f"{each.id}.{hook}" for each in stated if each.subject != ERASED or each is gone}
        for row in rows:
            if row.webhook_id == hook and facts(_of(row))[0] != ERASED:
                assert row.outcome == "delivered"
                assert _of(row) in story.accepted["steady" if hook == steady else "flaky"]
        assert outcomes[f"gone.{hook}"] == "delivered"
        assert database.read(lambda session, hook=hook: session.get_one(Webhook, hook).failing_since) is None  # type: ignore[misc]
    # What was sent: the same bytes each time, and nothing before its predecessors were taken, or had ended.
    changed = {message_id for message_id, bodies in story.bodies.items() if len(bodies) > 1}
    assert {facts(message_id)[0] for message_id in changed} <= {ERASED}, changed  # sent again, it says nothing any more
    assert not any(message_id.startswith("gone") for message_id in changed)
    for name, message_id, accepted in story.begun:
        subject, number = facts(message_id)
        hook = message_id.rpartition(".")[2]
        if name in ("steady", "flaky"):
            before = {f"event-{subject}-{earlier}.{hook}" for earlier in range(1, number)}
            assert all(outcomes.get(each) in (None, "cancelled") for each in before - accepted), (
                message_id,
                before - accepted,
            )
    # What was tried: each time is written down, but for those whose process was killed.
    tried = sa.select(Delivery.message_id, Delivery.webhook_id, Attempt.status)
    written = read(tried.join(Attempt, Attempt.delivery_id == Delivery.id))
    answered = Counter(_of(row) for row in written if row.status is not None)
    sent = Counter({each: count for each, count in story.requests.items() if each in outcomes})
    runs = sum(process.sent.total() for process in dead) + superseded._value.get() - superseded_before
    assert not answered - sent
    assert (sent - Counter(map(_of, written))).total() <= runs * LONGEST_RUN
