"""What becomes of an event message when the broker or the database does not take it, and when it comes again."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.runtime.bus import topology
from contracts.runtime.bus.publisher import CONFIRMED, UNKNOWN, Message
from contracts.runtime.bus.suspects import Suspects
from contracts.runtime.data.database import Database
from contracts.runtime.data.tables import runtime_metadata
from contracts.runtime.worker.subscription import Subscription
from tests.support.services.specimens import contract
from tests.unit.runtime.worker import test_odd_headers
from tests.unit.runtime.worker.test_odd_headers import Slots

EVENT = contract.NOTED
QUEUE = topology.event_queue_name(EVENT, "specimen")
LADDER = (1.0, 5.0, 30.0, 120.0)
BODY = json.dumps(
    {
        "id": "1",
        "type": EVENT.type,
        "source": EVENT.source,
        "subject": "thing:1",
        "occurred_at": "2026-11-21T00:00:00.000Z",
        "data": {"key": "one"},
    }
).encode()


class Broker(test_odd_headers.Broker):
    """Confirms when ``takes`` says so."""

    def __init__(self) -> None:
        super().__init__()
        self.given_back: list[int] = []
        self.takes: Callable[[], bool] = lambda: True

    def basic_nack(self, tag: int, requeue: bool) -> None:
        assert requeue
        self.given_back.append(tag)

    def publish(self, messages: list[Message]) -> dict[str, str]:
        taken = self.takes()
        if taken:
            self.published += messages
        return {one.id: CONFIRMED if taken else UNKNOWN for one in messages}


class Site:
    """A subscription whose handler does what ``does`` says, and whose pauses take no time."""

    def __init__(self, database: Database) -> None:
        self.broker = Broker()
        self.stopping = False
        self.suspects = Suspects(lambda: database)
        self.handled = 0
        self.does: Callable[[], None] = lambda: None
        self._subscription = Subscription(
            EVENT,
            "specimen",
            LADDER,
            self.broker,  # type: ignore[arg-type]
            Slots(),
            self.suspects,
            lambda: self.stopping,
        )

    def take(self, *, redelivered: bool = False, **headers: Any) -> None:
        message = test_odd_headers.delivery(
            self.broker, BODY, {name.replace("_", "-"): headers[name] for name in headers}
        )
        message.redelivered = redelivered
        self._subscription.handle(self._handle, message)

    def _handle(self, _envelope: Any, _data: Any) -> None:
        self.handled += 1
        self.does()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    database = Database(f"sqlite:///{tmp_path}/test.sqlite")
    runtime_metadata.create_all(database.engine.execution_options(countersign_write=True))
    yield Site(database)
    database.dispose()


def waits(message: Message) -> float:
    """The seconds after which the message comes back to the queue that it was taken from."""
    assert message.exchange == "specimen.queues"
    (found,) = (step for step in LADDER if message.routing_key == topology.retry_key(step, QUEUE))
    return found


def failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_what_is_away_is_waited_for_without_an_end_and_counts_for_nothing(site: Site) -> None:
    site.does = failing(ServiceError("unavailable", "The database is not available"))
    site.take(countersign_failures=len(LADDER))
    (copy,) = site.broker.published
    assert waits(copy) == 30
    assert copy.headers[topology.FAILURES_HEADER] == len(LADDER)
    site.does = failing(RuntimeError("a mistake"))
    site.take(countersign_failures=len(LADDER))
    assert site.broker.published[1].routing_key.endswith(".parked")
    assert site.broker.acknowledged == [7, 7]


def test_a_message_is_held_until_the_broker_takes_it(site: Site) -> None:
    answers = iter([False] * 20 + [True])
    site.broker.takes = lambda: next(answers)
    site.does = failing(RuntimeError("a mistake"))
    site.take()
    assert (site.broker.acknowledged, site.broker.given_back, len(site.broker.published)) == ([7], [], 1)
    assert site.handled == 1


def test_a_message_that_is_held_is_given_back_when_the_process_stops_and_left_when_the_connection_is_lost(
    site: Site,
) -> None:
    site.broker.takes = lambda: False
    site.does = failing(RuntimeError("a mistake"))
    site.stopping = True
    site.take()
    assert (site.broker.acknowledged, site.broker.given_back) == ([], [7])
    site.stopping = False

    def lost() -> bool:
        site.broker.is_open = False
        return False

    site.broker.takes = lost
    site.take()
    assert (site.broker.acknowledged, site.broker.given_back) == ([], [7])


@pytest.mark.parametrize("deliveries", [1, topology.COPIED_AFTER - 1])
def test_a_message_that_comes_again_is_handled_however_often_it_was_delivered(site: Site, deliveries: int) -> None:
    site.take(redelivered=True, x_delivery_count=deliveries)
    assert (site.handled, site.broker.acknowledged, site.broker.published) == (1, [7], [])


def test_a_copy_takes_its_place_before_the_broker_would_park_it(site: Site) -> None:
    site.take(redelivered=True, x_delivery_count=topology.COPIED_AFTER)
    (copy,) = site.broker.published
    assert (site.handled, site.broker.acknowledged) == (0, [7])
    assert waits(copy) == 1
    assert copy.headers == {topology.SUSPECT_HEADER: True}
    site.take(**{topology.SUSPECT_HEADER.replace("-", "_"): True})
    assert site.handled == 1


def test_while_one_suspect_is_tried_another_waits_and_stays_a_suspect(site: Site) -> None:
    with site.suspects.alone:
        site.take(redelivered=True)
        assert site.handled == 0
        site.take()
    assert site.handled == 1
    assert [copy.headers for copy in site.broker.published] == [{topology.SUSPECT_HEADER: True}]


def test_what_cannot_be_recorded_is_not_begun(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a killer would end one process after the other while the database is away."""
    monkeypatch.setattr(site.suspects, "begin", lambda _key: failing(ServiceError("unavailable", "away"))())
    site.take(redelivered=True)
    assert (site.handled, len(site.broker.published)) == (0, 1)
    assert waits(site.broker.published[0]) == 30


def test_a_delivery_whose_end_cannot_be_recorded_is_held(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = iter([False, False, True])
    monkeypatch.setattr(site.suspects, "end", lambda _key: next(recorded))
    site.does = failing(RuntimeError("a mistake"))
    site.take(redelivered=True)
    assert next(recorded, None) is None
    assert (len(site.broker.published), site.broker.acknowledged) == (1, [7])
