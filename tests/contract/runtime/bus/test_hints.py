"""Hints: a worker tells the background process which table to look at, not more often than that is of use."""

from collections import Counter
from collections.abc import Iterator, Set

import pytest

from contracts.runtime.bus import client
from contracts.runtime.bus.broker import Broker, user_of
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.process import _HintListener
from deploy.rabbitmq import PrivateBroker
from tests.support.services.suite import wait_until


@pytest.fixture
def heard(broker: PrivateBroker) -> Iterator[Counter[str]]:
    """How often it was heard of each table."""
    found: Counter[str] = Counter()

    def wake(tables: Set[str]) -> None:
        found.update(tables)

    listener = _HintListener(user_of(broker.amqp_url))
    listener.wakes = {"test": wake}
    hearing = Broker(broker.amqp_url, [listener], name="hints").start()
    wait_until(lambda: listener.connected, what="a listener")
    yield found
    hearing.close()


@pytest.fixture
def telling(broker: PrivateBroker) -> Iterator[RpcClient]:
    telling = RpcClient(broker.amqp_url)
    wait_until(lambda: telling.connected, what="a connection")
    yield telling
    telling.close()


def test_what_comes_soon_after_a_hint_is_told_by_the_next_one(
    telling: RpcClient, heard: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "HINTS_APART", 3600.0)
    for _ in range(20):
        telling.hint("test", ["one", "two"])
    telling.hint("test", ["last"])
    wait_until(lambda: heard["last"] == 1, what="the last hint")
    assert heard == {"one": 1, "two": 1, "last": 1}


def test_no_hint_is_the_last_before_what_was_hinted_at(telling: RpcClient, heard: Counter[str]) -> None:
    """Whatever was written since is told of, later than a hint of before."""
    for number in range(1, 6):
        before = heard["one"]
        telling.hint("test", ["one"])
        telling.hint("test", ["one"])
        wait_until(lambda before=before: heard["one"] > before, what=f"hint {number}")
        told = heard["one"]
        telling.hint("test", ["one"])
        wait_until(lambda told=told: heard["one"] > told, what=f"the hint after hint {number}")
