"""What a service missed it finds out and fetches, whatever the reason: a lost message, a wiped broker, a restored database of
its own or of the owner of the events, an owner that was away. The broker itself is in tests/chaos/test_wiped_broker.py."""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.events import FORM_COMPLETED, FORM_VIEWED, SUBMISSION_ERASED, Erased, PublicData
from contracts.rpc import Rpc
from contracts.rpc import events as rpc
from contracts.runtime.bus import catching_up, outbox, told
from contracts.runtime.bus.catching_up import CatchingUp
from contracts.runtime.bus.publisher import CONFIRMED, UNROUTED, Message
from contracts.runtime.bus.topology import event_queue_name
from contracts.runtime.clock import now
from contracts.runtime.data import epoch, tables
from contracts.runtime.data.database import Database
from services.webhooks import commands
from services.webhooks.models import LoggedEvent
from tests.contract.conftest import ON_BOTH
from tests.support.material.telling import tell_everything
from tests.support.services.circumstances.wall_clock import WallClock
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import LINK_SECRET
from tests.support.services.suite import wait_until

SUBSCRIPTIONS = [FORM_VIEWED, FORM_COMPLETED]


class Owner:
    """The submissions service, as far as it tells events."""

    def __init__(self, url: str) -> None:
        migrated("submissions", url)
        self.database = Database(url)

        class Service:
            name = "submissions"
            context = SimpleNamespace(database=self.database)

        self.service = told.tells_events(Service)()

    def emit(self, number: int, subject: str = "submission:1") -> str:
        data = PublicData(data={"id": 1, "number": number})
        return self.database.write(
            lambda session: outbox.emit(session, FORM_COMPLETED, data, subject=subject, sequence=number)
        )

    def told(self, *numbers: int) -> list[str]:
        """State these and have them published; their ids."""
        made = [self.emit(number) for number in numbers]
        tell_everything(self.database)
        return made


class Consumer:
    """The webhooks service: its database, and its walk. ``deliver`` is what becomes of a message in its queue."""

    def __init__(self, url: str, owner: Owner) -> None:
        migrated("webhooks", url)
        self.url = url
        self.database = Database(url)
        self.owner = owner
        self.asked: list[str] = []
        self.away = False
        self.losses = 0
        self.deliver: Callable[[Message], str] = self.take

    def take(self, message: Message) -> str:
        assert (message.exchange, message.routing_key) == (
            "webhooks.queues",
            event_queue_name(FORM_COMPLETED, "webhooks"),
        )
        self.hear(Envelope.model_validate(json.loads(message.body)))
        return CONFIRMED

    def hear(self, envelope: Envelope) -> None:
        self.database.write(commands.record_event, envelope, now(), LINK_SECRET)

    def hear_of(self, *identifiers: str) -> None:
        """The broker delivers these."""
        for envelope in self.owner.service.events_by_id(rpc.FetchEvents(ids=list(identifiers))).events:
            self.hear(envelope)

    def call(self, call: Rpc[Any, Any], request: Any) -> Any:
        """The bus, to the owner."""
        self.asked.append(call.method)
        if self.away:
            raise ServiceError("unavailable", "The service submissions is not running.")
        return getattr(self.owner.service, call.method)(request)

    def publish(self, messages: Sequence[Message]) -> dict[str, str]:
        return {message.id: self.deliver(message) for message in messages}

    def walk(self, subscriptions: Any = SUBSCRIPTIONS) -> CatchingUp:
        """A new process's loop. Everything that was told has settled, and nothing waits before it is fetched."""
        return CatchingUp("webhooks", self.database, self, self, subscriptions, timedelta(0))  # type: ignore[arg-type]

    def logged(self) -> list[str]:
        ids = sa.select(LoggedEvent.event_id).order_by(LoggedEvent.position)
        return self.database.read(lambda session: list(session.scalars(ids)))

    def missing(self) -> list[str]:
        ids = sa.select(tables.missing_events.c.event_id)
        return self.database.read(lambda session: list(session.scalars(ids)))

    def cursor(self) -> Any:
        return self.database.read(lambda session: session.execute(sa.select(tables.event_cursors)).first())


@pytest.fixture
def owner(tmp_path: Path, database_url: str) -> Iterator[Owner]:
    """On a database of each kind."""
    made = Owner(database_url)
    yield made
    made.database.dispose()


@pytest.fixture
def consumer(tmp_path: Path, owner: Owner) -> Iterator[Consumer]:
    made = Consumer(f"sqlite:///{tmp_path / 'consumer.sqlite'}", owner)
    yield made
    made.database.dispose()


@ON_BOTH
def test_a_lost_message_is_fetched_and_handled_once(owner: Owner, consumer: Consumer) -> None:
    ids = owner.told(1, 2, 3)
    consumer.hear_of(ids[0], ids[2])
    loop = consumer.walk()
    loop.turn()
    loop.turn()
    assert consumer.logged() == ids
    assert consumer.missing() == []
    asked = len(consumer.asked)
    loop.turn()
    assert consumer.asked[asked:] == ["events_told"], "nothing is fetched again"
    assert consumer.logged() == ids


def test_what_is_on_its_way_is_left_alone(owner: Owner, consumer: Consumer) -> None:
    ids = owner.told(1)
    loop = CatchingUp("webhooks", consumer.database, consumer, consumer, SUBSCRIPTIONS, timedelta(hours=1))  # type: ignore[arg-type]
    loop.turn()
    assert consumer.asked == ["events_told"]
    assert (consumer.missing(), consumer.logged()) == ([], [])
    consumer.hear_of(*ids)
    consumer.walk().turn()
    assert "events_by_id" not in consumer.asked


def test_an_event_that_is_late_is_taken_off_the_list(owner: Owner, consumer: Consumer) -> None:
    ids = owner.told(1)
    consumer.deliver = lambda _message: CONFIRMED  # lost again
    loop = consumer.walk()
    loop.turn()
    assert consumer.missing() == ids
    consumer.hear_of(*ids)
    loop.turn()
    assert consumer.missing() == []
    assert consumer.asked.count("events_by_id") == 1, "a minute passes before it is fetched again"


def test_a_queue_that_is_behind_is_not_filled_with_everything_twice(
    owner: Owner, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as what is late comes by itself; what does not come after a while is fetched all the same."""
    ids = owner.told(1, 2, 3)
    every = timedelta(seconds=0.2)
    loop = CatchingUp("webhooks", consumer.database, consumer, consumer, SUBSCRIPTIONS, every)  # type: ignore[arg-type]

    def turned(until: Callable[[], bool]) -> bool:
        loop.turn()
        time.sleep(every.total_seconds() / 4)
        return until()

    moment = now()
    monkeypatch.setattr(catching_up, "now", lambda: moment)
    wait_until(lambda: turned(lambda: len(consumer.missing()) == 3), what="three that are late")
    moment += 2 * every
    consumer.hear_of(ids[0])
    loop.turn()
    assert (consumer.missing(), "events_by_id" in consumer.asked) == (ids[1:], False)
    consumer.hear_of(ids[1])
    moment += catching_up.LONGEST_LATE
    loop.turn()
    assert consumer.logged() == ids, "it was missing for long: the second came by itself, the third was fetched"
    assert consumer.asked.count("events_by_id") == 1


def test_a_queue_that_goes_on_no_more_is_filled(owner: Owner, consumer: Consumer) -> None:
    """One came late, and then none: the others are lost."""
    ids = owner.told(1, 2)
    every = timedelta(seconds=0.2)
    loop = CatchingUp("webhooks", consumer.database, consumer, consumer, SUBSCRIPTIONS, every)  # type: ignore[arg-type]

    def turned(until: Callable[[], bool]) -> bool:
        loop.turn()
        time.sleep(every.total_seconds() / 4)
        return until()

    wait_until(lambda: turned(lambda: len(consumer.missing()) == 2), what="two that are late")
    consumer.hear_of(ids[0])
    wait_until(lambda: turned(lambda: consumer.logged() == ids), what="the other one")


def test_a_clock_that_was_put_back_cuts_no_pause_short(
    owner: Owner, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All times of an event were over within a second; a broker that was wiped then had lost every copy, and the next one was due
    in an hour."""
    wall = WallClock(monkeypatch, stopped=True)
    (lost,) = owner.told(1)
    loop = consumer.walk()
    wall.leap(-600)
    copies: list[str] = []

    def lose(message: Message) -> str:
        copies.append(message.id)
        return CONFIRMED

    consumer.deliver = lose
    for _ in range(3):
        wall.pass_by(1)
        loop.turn()
    assert copies == [lost]
    consumer.deliver = consumer.take
    wall.pass_by(catching_up.PAUSES[0].total_seconds())
    loop.turn()
    assert consumer.logged() == [lost]


@pytest.mark.parametrize("outcome", [CONFIRMED, UNROUTED], ids=["tried", "never tried"])
def test_nobody_waits_for_a_clock_that_was_put_back(
    owner: Owner, consumer: Consumer, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    """Nor in a process that was started after that, and cannot know of it."""
    wall = WallClock(monkeypatch, stopped=True)
    ids = owner.told(1)
    consumer.deliver = lambda _message: outcome
    consumer.walk().turn()
    assert consumer.missing() == ids
    wall.leap(-1800)
    wall = WallClock(monkeypatch, stopped_at=(wall.time_ns(), wall.monotonic_ns()))
    consumer.deliver = consumer.take
    consumer.walk().turn()
    assert consumer.logged() == ids


def test_a_queue_that_is_not_there_yet_loses_nothing(owner: Owner, consumer: Consumer) -> None:
    """The broker was wiped, and the worker has not declared its queues again."""
    ids = owner.told(1, 2)
    consumer.deliver = lambda _message: UNROUTED
    loop = consumer.walk()
    loop.turn()
    assert consumer.missing() == ids
    consumer.deliver = consumer.take
    loop.turn()
    assert consumer.logged() == ids


@ON_BOTH
def test_a_long_walk_in_pages(owner: Owner, consumer: Consumer, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a page, and more than are sought at once."""
    monkeypatch.setattr(catching_up, "MOST_SOUGHT", 60)
    ids = owner.told(*range(1, 201))
    page = rpc.WalkEvents.model_fields["limit"].default
    monkeypatch.setattr(told, "_NEXT", told._NEXT.limit(50))
    monkeypatch.setattr(rpc.WalkEvents.model_fields["limit"], "default", 50)
    rpc.WalkEvents.model_rebuild(force=True)
    try:
        loop = consumer.walk()
        loop.turn()
        assert len(consumer.logged()) <= 110
        for _ in range(6):
            loop.turn()
    finally:
        monkeypatch.undo()
        assert rpc.WalkEvents.model_fields["limit"].default == page
        rpc.WalkEvents.model_rebuild(force=True)
    assert consumer.logged() == ids
    assert consumer.missing() == []


def test_an_owner_that_is_away_is_asked_later_and_later(owner: Owner, consumer: Consumer) -> None:
    ids = owner.told(1)
    consumer.away = True
    loop = consumer.walk()
    for _ in range(5):
        loop.turn()
    assert consumer.asked == ["events_told"]
    consumer.away = False
    loop._next.clear()
    loop.turn()
    assert consumer.logged() == ids


def test_an_owner_that_tells_nothing_is_asked_less_often(
    owner: Owner, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of sixty looks, every fifth second, while nothing is told; and what ends that."""
    moment = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: moment)
    loop = CatchingUp("webhooks", consumer.database, consumer, consumer, SUBSCRIPTIONS, timedelta(seconds=5))  # type: ignore[arg-type]

    def asked_in(looks: int) -> int:
        nonlocal moment
        before = len(consumer.asked)
        for _ in range(looks):
            loop.turn()
            moment += 5
        return len(consumer.asked) - before

    assert 8 <= asked_in(60) <= 18
    consumer.losses += 1
    assert asked_in(2) == 2
    asked_in(20)
    owner.told(1)
    owner.database.write(
        lambda session: session.execute(sa.update(tables.told).values(told_at=now() - timedelta(hours=1)))
    )
    asked_in(8)
    assert len(consumer.missing()) == 1
    assert asked_in(3) >= 3


def test_a_restored_consumer_gets_what_it_had(owner: Owner, consumer: Consumer, tmp_path: Path) -> None:
    first = owner.told(1, 2)
    consumer.walk().turn()
    consumer.database.dispose()
    shutil.copy(tmp_path / "consumer.sqlite", tmp_path / "copy.sqlite")
    later = owner.told(3, 4)
    consumer.walk().turn()
    assert consumer.logged() == first + later
    restored = Consumer(f"sqlite:///{tmp_path / 'copy.sqlite'}", owner)
    assert restored.logged() == first
    restored.walk().turn()
    assert restored.logged() == first + later
    restored.database.dispose()


@ON_BOTH
def test_a_restored_owner_begins_another_epoch_once(owner: Owner, consumer: Consumer) -> None:
    """Its database is what it was before the last events, and it states others under their numbers."""
    kept = owner.told(1, 2)
    before = owner.database.read(epoch.epoch_of)
    lost = owner.told(3)
    consumer.walk().turn()
    assert consumer.logged() == kept + lost

    def restore(session: Any) -> None:
        session.execute(sa.delete(tables.told).where(tables.told.c.event_id == lost[0]))

    owner.database.write(restore)
    reactions: list[str] = []
    epoch.on_new_epoch.append(lambda _session: reactions.append("told"))
    try:
        consumer.walk().turn()
        consumer.walk().turn()
    finally:
        epoch.on_new_epoch.pop()
    after = owner.database.read(epoch.epoch_of)
    assert (after > before, reactions) == (True, ["told"])
    assert consumer.cursor().epoch == after
    assert consumer.logged() == kept + lost, "nothing is told twice"


def test_another_event_in_its_place_begins_another_epoch(owner: Owner, consumer: Consumer) -> None:
    owner.told(1, 2)
    before = owner.database.read(epoch.epoch_of)
    consumer.walk().turn()
    change = tables.told.update().where(tables.told.c.position == consumer.cursor().position).values(event_id="another")
    owner.database.write(lambda session: session.execute(change))
    consumer.walk().turn()
    assert owner.database.read(epoch.epoch_of) > before


@ON_BOTH
def test_what_was_trimmed_or_erased_contradicts_nobody(owner: Owner, consumer: Consumer) -> None:
    before = owner.database.read(epoch.epoch_of)
    owner.told(1, 2)
    consumer.walk().turn()

    def erase(session: Any) -> None:
        outbox.forget(session, "submission:1")
        outbox.emit(session, SUBMISSION_ERASED, Erased(submission_id=1), subject="submission:1")

    owner.database.write(erase)
    consumer.walk().turn()
    tell_everything(owner.database)
    owner.database.write(outbox.trim_told, now() + timedelta(hours=1))
    consumer.walk().turn()
    assert owner.database.read(epoch.epoch_of) == before


def test_what_is_gone_is_not_sought_for_ever(owner: Owner, consumer: Consumer) -> None:
    (identifier,) = owner.told(1)
    consumer.deliver = lambda _message: UNROUTED
    loop = consumer.walk()
    loop.turn()
    assert consumer.missing() == [identifier]
    owner.database.write(outbox.forget, "submission:1")
    loop.turn()
    assert consumer.missing() == []


def test_a_new_kind_is_looked_for_from_the_beginning(owner: Owner, consumer: Consumer) -> None:
    """A version of the service that takes a kind which it did not take before."""
    ids = owner.told(1, 2)
    consumer.walk([FORM_VIEWED]).turn()
    assert (consumer.cursor().position > 0, consumer.missing(), consumer.logged()) == (True, [], [])
    consumer.walk().turn()
    assert consumer.logged() == ids


def test_what_is_missing_for_minutes_is_a_problem(owner: Owner, consumer: Consumer) -> None:
    owner.told(1)
    consumer.deliver = lambda _message: CONFIRMED
    consumer.walk().turn()
    assert catching_up.problems(consumer.database) == []
    old = tables.missing_events.update().values(noticed_at=now() - timedelta(minutes=6))
    consumer.database.write(lambda session: session.execute(old))
    (problem,) = catching_up.problems(consumer.database)
    assert "1 events are missing" in problem


@ON_BOTH
def test_what_the_owner_says_about_a_subject(owner: Owner) -> None:
    """What was told and what still waits in the outbox, in order; nothing of what was erased."""
    ids = owner.told(1, 2)
    ids.append(owner.emit(3))
    owner.emit(1, "submission:2")
    answer = owner.service.events_since(rpc.SubjectSince(subject="submission:1", sequence=1))
    assert [event.id for event in answer.events] == ids[1:]
    assert {event.epoch for event in answer.events} == {answer.epoch} == {owner.database.read(epoch.epoch_of)}
    owner.database.write(outbox.forget, "submission:1")
    answer = owner.service.events_since(rpc.SubjectSince(subject="submission:1"))
    assert [event.id for event in answer.events] == ids[2:], "what was not published yet is, and then erased"
