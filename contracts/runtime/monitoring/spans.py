"""What a span is to whoever makes one, and the one of work that belongs to no trace."""

from collections.abc import Mapping
from types import TracebackType
from typing import Protocol

HEADER = "traceparent"
LENGTH = 55
"""Characters of a ``traceparent`` of ours (W3C Trace Context, 3.2.2, version 00)."""

Attribute = str | bool | int | float
Attributes = Mapping[str, Attribute | None]


class Span(Protocol):
    """A piece of work while it is done: the body of a ``with``, which it is the present span of. An exception that leaves it
    is named by its kind, or by its code where it is a ServiceError, and by nothing of its text."""

    def __enter__(self) -> "Span": ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def rename(self, name: str) -> None:
        """Give it the name that was not known when it began."""

    def set(self, attributes: Attributes) -> None:
        """Note attributes; those that are None are left out."""

    def fail(self, reason: str) -> None:
        """Note that it did not succeed. ``reason`` is a word of few (``error.type``)."""

    def ids(self) -> dict[str, str]:
        """Return ``trace_id`` and ``span_id`` for a line of the log that is written when it is over; empty when traces are
        off."""


class _Nothing:
    """The span of work that belongs to no trace."""

    def __enter__(self) -> "_Nothing":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def rename(self, name: str) -> None:
        pass

    def set(self, attributes: Attributes) -> None:
        pass

    def fail(self, reason: str) -> None:
        pass

    def ids(self) -> dict[str, str]:
        return {}


NOTHING: Span = _Nothing()
