"""Makes the standard library cooperative. Imports nothing else of ours: what is imported before keeps what it had."""

import os
import warnings
from typing import Any

from contracts.runtime import unpatched  # noqa: F401 - keeps what it has


def patch() -> None:
    """The first thing that a worker process does."""
    # psycopg's C wait function would stop every green thread until the database answers; psycopg reads this when imported.
    os.environ["PSYCOPG_WAIT_FUNC"] = "wait_selector"
    # eventlet's own resolver knows less than the C library's; that one runs in a real thread instead, below.
    os.environ["EVENTLET_NO_GREENDNS"] = "yes"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import eventlet

        _lock_real_threads_too()
        _join_in_time()
        eventlet.monkey_patch()
    _resolve_in_a_thread()


def _lock_real_threads_too() -> None:
    """Every lock made from now on is one that real threads may share with green ones: see ``lock``."""
    from eventlet.green import thread

    from contracts.runtime.worker.lock import Lock

    thread.Lock = thread.LockType = Lock


def _join_in_time() -> None:
    """Joining a thread for so long returns when the time is over. From Python 3.13 on a thread is joined by its handle, and
    that of eventlet raises its Timeout then, which is no Exception and ends the process."""
    import eventlet
    from eventlet.green import thread

    def join(handle: Any, timeout: float | None = None) -> None:
        if hasattr(handle._greenthread, "wait"):  # it was started
            with eventlet.Timeout(timeout, False):
                handle._greenthread.wait()

    thread._ThreadHandle.join = join


def _resolve_in_a_thread() -> None:
    import socket

    from eventlet import patcher, tpool

    resolve = patcher.original("socket").getaddrinfo

    def getaddrinfo(*args: object, **kwargs: object) -> object:
        return tpool.execute(resolve, *args, **kwargs)

    socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]
