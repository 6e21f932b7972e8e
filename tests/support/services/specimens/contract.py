"""The specimen's calls and its event. They are no part of the suite's contracts: the registries forget them."""

from typing import Any

from contracts import events, rpc
from contracts.types import Tolerant


class Echo(Tolerant):
    payload: dict[str, Any]


class Wait(Tolerant):
    """Answer after so many seconds."""

    seconds: float


class Meet(Tolerant):
    """Answer once so many calls of this kind are under way in one process."""

    number: int


class Count(Tolerant):
    """Add one to the counter ``key``, once per ``request_id``."""

    request_id: str
    key: str


class Counted(Tolerant):
    total: int


class Relayed(Tolerant):
    """Call ``wait`` of the same service over the bus, and answer what came of it."""

    seconds: float


class Task(Tolerant):
    """A row of due work: ``todo`` is what its attempt does (see ``background``)."""

    key: str
    todo: str = "succeed"
    lane: str | None = None


class Harm(Tolerant):
    """Break the process in one way (see ``harm``)."""

    way: str


class Noted(Tolerant):
    """``todo``: ``keep`` it, ``fail`` each time, ``die`` with the process, ``die once``, ``linger`` until the file "go on" is in VAR_DIR."""

    key: str
    todo: str = "keep"


ECHO = rpc.Rpc("specimen", "echo", Echo, Echo)
WAIT = rpc.Rpc("specimen", "wait", Wait, Echo, timeout=20)
MEET = rpc.Rpc("specimen", "meet", Meet, Echo, timeout=60)
BREAK = rpc.Rpc("specimen", "break_down", Echo, Echo)
COUNT = rpc.Rpc("specimen", "count", Count, Counted)
RELAY = rpc.Rpc("specimen", "relay", Relayed, Echo)
ADD_TASK = rpc.Rpc("specimen", "add_task", Task, Echo)
BURST = 30
BURST_OF_LINES = rpc.Rpc("specimen", "log_much", Echo, Echo)
HARM = rpc.Rpc("specimen", "do_harm", Harm, Echo)
NOTED = events.Event("specimen", "thing.noted", Noted)

for call in (ECHO, WAIT, MEET, BREAK, COUNT, RELAY, ADD_TASK, HARM, BURST_OF_LINES):
    del rpc.REGISTRY[f"{call.service}.{call.method}"]
del events.REGISTRY[NOTED.type]
