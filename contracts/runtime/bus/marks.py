"""Which method serves which call and takes which event. ``serve`` turns the marks into entrypoints."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from contracts.events import Event
from contracts.rpc import Rpc

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__countersign__"


@dataclass(frozen=True)
class Handles:
    """The marked method serves this call."""

    rpc: Rpc[Any, Any]


@dataclass(frozen=True)
class Subscribes:
    """The marked method takes this event. ``tries`` None: as the settings say."""

    event: Event


def handles(rpc: Rpc[Any, Any]) -> Callable[[F], F]:
    """The method gets the request model and returns what the response model takes. Its name is the call's."""

    def mark(method: F) -> F:
        if method.__name__ != rpc.method:
            raise TypeError(f"{method.__name__} must be named {rpc.method}, as the call is")
        setattr(method, _MARK, Handles(rpc))
        return method

    return mark


def subscribes(event: Event) -> Callable[[F], F]:
    """The method gets the envelope and the event's data. Delivered at least once and in any order.

    A raised exception means: try again later. After the last try the message is parked with the reason.
    """

    def mark(method: F) -> F:
        setattr(method, _MARK, Subscribes(event))
        return method

    return mark


def calls_of(service: type) -> dict[str, Rpc[Any, Any]]:
    """Method name to the call it serves."""
    return {name: mark.rpc for name, mark in _marks(service) if isinstance(mark, Handles)}


def subscriptions_of(service: type) -> dict[str, Event]:
    """Method name to the event it takes."""
    return {name: mark.event for name, mark in _marks(service) if isinstance(mark, Subscribes)}


def _marks(service: type) -> list[tuple[str, Any]]:
    return [(name, getattr(member, _MARK)) for name, member in inspect.getmembers(service) if hasattr(member, _MARK)]
