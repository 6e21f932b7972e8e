"""Threads for parts of one piece of work."""

import contextvars
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

R = TypeVar("R")


class Threads(ThreadPoolExecutor):
    """A pool whose work is of the request, and of the trace, of whoever hands it over. Python begins a thread with neither."""

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        """Have ``fn`` called in one of the threads."""
        return super().submit(contextvars.copy_context().run, fn, *args, **kwargs)
