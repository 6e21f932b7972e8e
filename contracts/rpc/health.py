"""Does the service answer on the bus, and is all well behind it? The gateway's ``/readyz`` asks every service."""

from pydantic import Field

from contracts.rpc import Rpc
from contracts.types import Tolerant


class Ping(Tolerant):
    pass


class Pong(Tolerant):
    """``ready`` when its database answers and its background process has been seen lately; ``problems`` says what not.
    ``notes``: what an operator should know of although it works."""

    ready: bool
    problems: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)


SERVICES = ("templates", "submissions", "rendering", "notifications", "webhooks")
PING = {service: Rpc(service, "ping", Ping, Pong, timeout=3) for service in SERVICES}
