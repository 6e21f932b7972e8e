"""``python -m services.<name> serve | background | migrate | check | retry``, and several services in one process::

    python -m contracts.runtime.main background templates submissions

``serve`` answers calls and takes events (the gateway: HTTP), ``background`` relays events and does what is due, ``migrate``
brings the database and the queues to this version, ``check`` prints the settings and tries every dependency, ``retry`` has work
that was given up tried again (``retrying.py``). A service that must not start as things are says so in its ``starting.py``.

Nothing that imports more is imported here at the top: a worker makes the standard library cooperative first.
"""

import os
import resource
import signal
import sys

from contracts.runtime import garbage

MOST_DESCRIPTORS = 65_536
"""Enough for everybody. Where the system sets no limit at all, some programs that are started would close a billion."""

COMMANDS = ("serve", "background", "migrate", "check", "retry")


def run(*names: str, arguments: list[str] | None = None) -> None:
    """The main function of a service, or of several that share a process. Exits with a status."""
    chosen = sys.argv[1:] if arguments is None else arguments
    if chosen and chosen[0] == "retry" and len(names) == 1:
        sys.exit(_retry(names[0], chosen[1:]))
    if len(chosen) != 1 or chosen[0] not in COMMANDS[:-1]:
        print(f"usage: python -m services.{names[0]} {' | '.join(COMMANDS)}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    # As the first process of a container SIGTERM is not heard until it has a handler, and it may wait long for a schema.
    signal.signal(signal.SIGTERM, _end)
    _raise_descriptor_limit()
    garbage.seldom()
    # structlog draws with it, where it is there; no image has it, and it came with a tool of the tests.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    status = _command(chosen[0], names)
    # Not before: a worker makes the standard library cooperative first.
    from contracts.runtime.monitoring import tracing

    tracing.finish()
    sys.exit(status)


def _end(*_signal: object) -> None:
    """Nothing is under way yet. An exception would go up from wherever the main thread just is, and some of these places keep
    it: a weak reference's callback, an import that may fail. The process would go on, and nobody would ask it again."""
    os._exit(0)


def _raise_descriptor_limit() -> None:
    """As many open files as the system allows. The usual 1,024 are a convention for programs that use select(), which cannot
    count farther; none of ours does, and a connection is a descriptor."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < MOST_DESCRIPTORS:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, MOST_DESCRIPTORS), hard))


def _retry(name: str, arguments: list[str]) -> int:
    from contracts.runtime.operations.retrying import retry

    return retry(name, arguments)


def _command(command: str, names: tuple[str, ...]) -> int:
    from importlib.util import find_spec

    if command == "serve" and find_spec(f"services.{names[0]}.service") is not None:
        # Before anything else is imported. Settings with faults are reported from inside.
        from contracts.runtime.worker.patch import patch

        patch()
        from contracts.runtime.worker.serve import serve

        return serve(names)
    if command == "check":
        from contracts.runtime.operations.checking import check

        return check(names)
    from contracts.runtime import process

    return int(getattr(process, command)(names))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(f"usage: python -m contracts.runtime.main {' | '.join(COMMANDS[:-1])} SERVICE...", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    run(*sys.argv[2:], arguments=[sys.argv[1]])
