"""The broker that ``countersign up`` and the tests start: one node, alone."""

import subprocess

import pytest

from deploy.rabbitmq import BrokerFailed, PrivateBroker


def test_it_starts_no_erlang_for_nodes_that_are_not_there(broker: PrivateBroker) -> None:
    children = broker.evaluate("supervisor:which_children(rabbit_sup).")
    monitor = children[children.index("rabbit_epmd_monitor_sup") :]
    assert monitor.removeprefix("rabbit_epmd_monitor_sup").lstrip(" ,").startswith("undefined"), monitor[:80]


def test_it_starts_also_where_it_will_not_be_spared(broker: PrivateBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def refuse(expression: str) -> str:
        asked.append(expression)
        raise BrokerFailed(expression)

    monkeypatch.setattr(broker, "evaluate", refuse)
    broker.wait_until_ready()
    monkeypatch.setattr(broker, "evaluate", lambda _: (_ for _ in ()).throw(subprocess.TimeoutExpired("erl_call", 60)))
    broker.wait_until_ready()
    assert len(asked) == 1
