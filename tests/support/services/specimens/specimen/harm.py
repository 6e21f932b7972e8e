"""Ways to break a process from the inside, for tests of who notices."""

import asyncio
import contextlib
import os
import threading
import time
from typing import Any

from contracts.runtime import unpatched
from contracts.runtime.bus import broker
from contracts.runtime.bus.broker import Broker
from contracts.runtime.data.due_work.background import Loop
from contracts.runtime.monitoring import liveness

if "ROUND_SECONDS" in os.environ:
    liveness.ROUND_SECONDS = float(os.environ["ROUND_SECONDS"])
    liveness.LOOK_SECONDS = broker.BEAT_SECONDS = 0.5
    broker.HEARTBEAT_SECONDS = 2
if "TURN_SECONDS" in os.environ:
    liveness.TURN_SECONDS = float(os.environ["TURN_SECONDS"])
    liveness.LOOK_SECONDS = 0.5


_runners: list[asyncio.Runner] = []


def _note_runners() -> None:
    """Nobody can be asked for the event loop of another thread. To look for it among all objects would disturb what that thread
    is making meanwhile."""
    run = asyncio.Runner.run

    def note_and_run(runner: asyncio.Runner, *arguments: Any, **more: Any) -> Any:
        _runners.append(runner)
        return run(runner, *arguments, **more)

    asyncio.Runner.run = note_and_run  # type: ignore[assignment]


_note_runners()


class BadLoop(Loop):
    """``stuck loop``: its turn never ends; ``end loop``: its thread does."""

    def __init__(self, way: str) -> None:
        super().__init__("stuck" if way == "stuck loop" else "ending")
        self.turn_seconds = 10.0

    def turn(self) -> float:
        if self.name == "ending":
            raise SystemExit
        unpatched.sleep(1000)
        return 0.0


def harm(way: str) -> None:
    """``end <name>`` ends the I/O thread of this connection, ``stop <name>`` has it wait for ever, ``deafen <name>`` ends its
    subscriptions, and ``stand still`` is an event loop that no longer goes round. ``lose one outcome`` and ``lose one
    answer`` are mistakes after the handler of the next event or call."""
    what, _, name = way.partition(" ")
    if way == "stand still":
        unpatched.sleep(1000)
    elif way == "stop event loop":
        _runners[0].get_loop().call_soon_threadsafe(time.sleep, 1000)
    elif way == "lose one outcome":
        from contracts.runtime.worker.subscription import Subscription

        _fail_once(Subscription, "_finish")
    elif way == "lose one answer":
        from contracts.runtime.worker import entrypoints

        _fail_once(entrypoints, "answer")
    elif way.endswith(" loop"):
        pass  # see BadLoop
    elif what == "end":
        _connection(name)._loop.call_later(0, _end)
    elif what == "stop":
        _connection(name)._loop.call_later(0, lambda: time.sleep(1000))
    elif what == "deafen":
        connection = _connection(name)
        connection._loop.call_later(0, lambda: _deafen(connection))


def harm_soon(way: str) -> None:
    """As ``harm``, in a process that answers no calls: as soon as there is what is to be broken."""

    def wait() -> None:
        while True:
            time.sleep(0.5)
            with contextlib.suppress(LookupError, ValueError):
                return harm(way)

    threading.Thread(target=wait, daemon=True).start()


def _connection(name: str) -> Broker:
    (thread,) = (one for one in threading.enumerate() if one.name == f"amqp-{name}")
    connection: Broker = thread._args[0].__self__  # type: ignore[attr-defined]
    return connection


def _fail_once(where: Any, name: str) -> None:
    function = getattr(where, name)

    def fail(*_: Any) -> None:
        setattr(where, name, function)
        raise TypeError("a mistake")

    setattr(where, name, fail)


def _end() -> None:
    raise SystemExit


def _deafen(connection: Any) -> None:
    for role in connection._roles:
        if role._channel is None:  # it hears already, but not yet everything has been subscribed to
            connection._loop.call_later(0.1, lambda: _deafen(connection))
            return
        for tag in list(role._channel.consumer_tags):
            role._channel.basic_cancel(tag)
