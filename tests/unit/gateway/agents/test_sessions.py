"""Session ids of agents: who they are is in them, and nobody else can write it there."""

from collections.abc import Callable

import pytest

from contracts.rotation import Secret
from contracts.types import Agent
from services.gateway.agents.sessions import LASTS, LONGEST, Sessions, agent_of

OLD, NEW = "o" * 40, "n" * 40
AGENT = Agent(name="claude", version="1.0", key_id="24b01903a9d6759d")


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_session_says_whose_it_is_in_visible_ascii() -> None:
    session = Sessions(OLD).issue(AGENT)
    assert Sessions(OLD).agent(session, "24b01903a9d6759d") == AGENT
    assert all(0x21 <= ord(character) <= 0x7E for character in session)


def test_the_longest_one_fits() -> None:
    agent = agent_of({"name": "😀" * 500, "version": "é" * 500}, "24b01903a9d6759d")
    session = Sessions(OLD).issue(agent)
    assert len(session) <= LONGEST
    assert Sessions(OLD).agent(session, "24b01903a9d6759d") == agent


@pytest.mark.parametrize(
    "change",
    [
        lambda session: session[:-1],
        lambda session: "A" + session,
        lambda session: session.replace(".", ""),
        lambda session: Sessions(NEW).issue(AGENT),
        lambda session: Sessions(OLD).issue(AGENT.model_copy(update={"key_id": "0" * 16})),
        lambda session: session + "é",
        lambda session: "",
        lambda session: "." * 5,
        lambda session: session * 20,
    ],
)
def test_another_one_is_none(change: Callable[[str], str]) -> None:
    assert Sessions(OLD).agent(change(Sessions(OLD).issue(AGENT)), "24b01903a9d6759d") is None


def test_it_ends() -> None:
    clock = Clock()
    session = Sessions(OLD, clock).issue(AGENT)
    clock.now += LASTS - 1
    assert Sessions(OLD, clock).agent(session, "24b01903a9d6759d") == AGENT
    clock.now += 1
    assert Sessions(OLD, clock).agent(session, "24b01903a9d6759d") is None


def test_it_outlives_a_secret_that_is_replaced() -> None:
    session = Sessions(OLD).issue(AGENT)
    assert Sessions(Secret(NEW, previous=OLD)).agent(session, "24b01903a9d6759d") == AGENT
    assert Sessions(NEW).agent(session, "24b01903a9d6759d") is None


@pytest.mark.parametrize(
    ("said", "name", "version"),
    [
        ({"name": "claude-ai", "version": "0.1.0"}, "claude-ai", "0.1.0"),
        ({"name": " two\nlines\t", "version": "1\u202e2"}, "two lines", "1 2"),
        ({"name": "n" * 100, "version": "v" * 100}, "n" * 64, "v" * 32),
        ({"name": "", "version": None}, "unnamed", ""),
        ({"name": 7}, "unnamed", ""),
        (None, "unnamed", ""),
        ("claude", "unnamed", ""),
    ],
)
def test_what_an_agent_calls_itself_is_one_short_line(said: object, name: str, version: str) -> None:
    assert agent_of(said, "k") == Agent(name=name, version=version, key_id="k")
