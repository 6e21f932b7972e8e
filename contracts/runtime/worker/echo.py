"""A message of the process to itself, again and again: both directions of the bus, on the very connections that it works with.

It leaves by the connection of the replies, and by the one that moves event messages, and comes back by the one that requests
and events come by, through a queue of this process alone: the answer of another replica proves nothing.
"""

import time
import uuid
from typing import Any

import eventlet

from contracts.runtime.bus.publisher import Message, Publisher
from contracts.runtime.bus.topology import own_exchange
from contracts.runtime.monitoring import liveness
from contracts.runtime.worker.consuming import Consumption
from contracts.runtime.worker.replies import Replies

PAUSE_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 0.5
"""As long as not everything has come back, which is when somebody waits for the process to be ready."""

FRESH_SECONDS = 20.0
"""The time for which what came back counts: a pause, the publisher's wait for a confirm, and some."""

REPLIES, MOVES = b"replies", b"moves"


class Echo:
    """``problems()`` is what does not come back. It takes no time: the asking goes on by itself."""

    def __init__(self, name: str, consumption: Consumption, replies: Replies, moves: Publisher) -> None:
        self._exchange = own_exchange(name)
        self._consumption = consumption
        self._replies = replies
        self._moves = moves
        self._heard: dict[bytes, float] = {}
        self._watched = liveness.Watched(f"the bus of {name}")
        self._stopped = False
        consumption.listen(self._hear)

    def start(self) -> None:
        eventlet.spawn_n(self._ask_replies)
        eventlet.spawn_n(self._ask_moves)

    def stop(self) -> None:
        """The process ends: nothing has to come back any more."""
        self._stopped = True
        self._watched.finish()

    def problems(self) -> list[str]:
        if not self._consumption.consuming:
            return ["not connected to the message broker"]
        silent = [connection.decode() for connection in (REPLIES, MOVES) if not self._fresh(connection)]
        return [f"what it sends by the connection of its {connection} does not come back" for connection in silent]

    def _fresh(self, connection: bytes) -> bool:
        heard_at = self._heard.get(connection)
        return heard_at is not None and time.monotonic() - heard_at < FRESH_SECONDS

    def _hear(self, _channel: Any, _method: Any, _properties: Any, body: bytes) -> None:
        self._heard[body] = time.monotonic()
        if body == REPLIES:
            self._watched.beat()

    def _ask_replies(self) -> None:
        while not self._stopped:
            queue = self._consumption.own_queue
            if queue is None or not self._replies.connected:
                self._watched.beat()  # without a broker, or while it takes nothing, nothing can come back
            else:
                self._replies.send_to(self._exchange, queue, REPLIES)
            self._pause(REPLIES)

    def _ask_moves(self) -> None:
        while not self._stopped:
            queue = self._consumption.own_queue
            if queue is not None and self._moves.connected:
                self._moves.publish([Message(str(uuid.uuid4()), self._exchange, queue, MOVES)])
            self._pause(MOVES)

    def _pause(self, connection: bytes) -> None:
        eventlet.sleep(PAUSE_SECONDS if self._fresh(connection) else FIRST_PAUSE_SECONDS)
