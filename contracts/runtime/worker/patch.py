"""Makes the standard library cooperative. Imports nothing of ours: whatever is imported before it keeps what it had."""

import os
import warnings


def patch() -> None:
    """The first thing that a worker process does."""
    # psycopg's C wait function would stop every green thread until the database answers; psycopg reads this when imported.
    os.environ["PSYCOPG_WAIT_FUNC"] = "wait_selector"
    # eventlet's own resolver knows less than the C library's; that one runs in a real thread instead, below.
    os.environ["EVENTLET_NO_GREENDNS"] = "yes"
    _keep_real_locks_in_sqlalchemy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import eventlet

        eventlet.monkey_patch()
    _keep_real_locks_in_logging()
    _keep_a_real_lock_in_babel()
    _resolve_in_a_thread()


def _keep_real_locks_in_sqlalchemy() -> None:
    """SQLAlchemy numbers its sessions and its loads under locks that its modules make when they are imported.

    On SQLite, database code runs in several real threads. When two of them want one green lock, the second is woken in the
    wrong thread, fails with "Cannot switch to a different thread", and the lock is never free again: the service hangs.
    Nothing waits while it holds these locks, so real ones never keep the event loop.
    """
    import sqlalchemy.orm  # noqa: F401


def _keep_real_locks_in_logging() -> None:
    """SQLAlchemy asks its loggers whether they want to know, which is decided under a lock: see above why a real one."""
    import logging

    from eventlet import patcher

    logging.threading = patcher.original("threading")  # type: ignore[attr-defined]
    logging._lock = logging.threading.RLock()  # type: ignore[attr-defined]
    for reference in logging._handlerList:  # type: ignore[attr-defined]
        if (handler := reference()) is not None:
            handler.createLock()


def _keep_a_real_lock_in_babel() -> None:
    """It loads the names of months under a lock, in whatever thread a date is put into words. Importing it before would not do:
    eventlet makes existing re-entrant locks green."""
    try:
        from babel import localedata
    except ImportError:  # a service that puts no dates into words is installed without
        return
    from eventlet import patcher

    localedata._cache_lock = patcher.original("threading").RLock()


def _resolve_in_a_thread() -> None:
    import socket

    from eventlet import patcher, tpool

    resolve = patcher.original("socket").getaddrinfo

    def getaddrinfo(*args: object, **kwargs: object) -> object:
        return tpool.execute(resolve, *args, **kwargs)

    socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]
