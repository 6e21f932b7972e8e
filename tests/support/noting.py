"""Functions that note how they are called."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def noting(notes: list[Any], function: Callable[..., T]) -> Callable[..., T]:
    """As ``function``; the arguments of each call, a tuple, are added to ``notes`` first."""

    def note_and_call(*arguments: Any, **named: Any) -> T:
        notes.append(arguments)
        return function(*arguments, **named)

    return note_and_call
