"""A child process: takes jobs from its socket, one after the other, and does them within limits.

It parses files that strangers made, so it holds nothing worth taking: no keys, no database, no secrets in its
environment, and the kernel lets it connect nowhere, start nothing and read nobody's files (``confinement``). Memory is
limited for the whole life of the process, processor time and wall-clock time for each job; past a limit the kernel ends it
and the parent starts another.

``python -m services.rendering.child FD MEMORY_BYTES``
"""

import errno
import importlib
import logging
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from contracts.runtime import garbage
from services.rendering import confinement, frames

Message = tuple[dict[str, Any], list[bytes]]
Answer = tuple[dict[str, Any], list[frames.Bytes]]
Task = Callable[[dict[str, Any], list[bytes]], Answer | Generator[None, Message, Answer]]
"""From arguments and parts to the answer. One that is a generator yields once, for what is not known when it begins, and gets
further arguments and parts there."""

TASKS = "services.rendering.tasks"
_OPEN_FILES = 128
_WALL_CLOCK_GRACE = 5
"""Seconds that a child outlives the parent's patience: it ends by itself only when nobody is left to end it."""

_FORBIDDEN = frozenset(
    {
        "socket.connect",
        "socket.bind",
        "socket.sendto",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.fork",
        "os.forkpty",
    }
)


def main() -> None:
    """Serve until the parent closes the socket."""
    garbage.seldom()
    connection = socket.socket(fileno=int(sys.argv[1]))
    # The other half may be a green socket, which makes the shared file description non-blocking.
    connection.setblocking(True)
    _limit_process(int(sys.argv[2]))
    tempfile.tempdir = os.environ["TMPDIR"]  # when there is no room, Python goes elsewhere without a word
    _keep_quiet()
    confinement.confine()
    tasks = importlib.import_module(sys.argv[3] if len(sys.argv) > 3 else TASKS)
    sys.addaudithook(_refuse_way_out)
    garbage.keep_all()
    try:
        frames.send(connection, {"ready": True})
        while True:
            header, parts = frames.receive(connection)
            _limit_job(header["seconds"])
            task: Task = getattr(tasks, header["task"])
            rest = _Rest(connection)
            answer, files = _do(task, header["arguments"], parts, rest)
            signal.setitimer(signal.ITIMER_REAL, 0)
            spent = hasattr(tasks, "is_spent") and tasks.is_spent()
            answer = {**answer, "waited": rest.waited, "memory": _peak_memory(), "spent": spent}
            frames.send(connection, answer, files)
            del parts, files, answer
    except frames.Closed:
        # The parent removes it, unless it died; what is left of it then, the next pool does.
        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
        os._exit(0)


def _do(task: Task, arguments: dict[str, Any], parts: list[bytes], rest: Callable[[], Message]) -> Answer:
    """``Refused`` is an answer; whatever else comes out of a library that met a hostile file is a failure of this job."""
    from services.rendering.jobs.pdf.refused import Refused

    try:
        answer = task(arguments, parts)
        result, files = _continued(answer, rest) if isinstance(answer, Generator) else answer
    except Refused as refused:
        cause = refused.__cause__
        said = None if cause is None else f"{type(cause).__name__}: {cause}"[:500]
        return {"refused": str(refused), "file": refused.file, "field": refused.field, "cause": said}, []
    except MemoryError:
        return {"failed": "out of memory", "trace": "", "exhausted": True}, []
    except Exception as error:  # libraries raise about anything on hostile input
        failed = {"failed": f"{type(error).__name__}: {error}"[:500], "trace": traceback.format_exc(limit=-6)}
        no_room = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        return {**failed, "no_room": no_room}, []
    return {"result": result}, files


def _continued(task: Generator[None, Message, Answer], rest: Callable[[], Message]) -> Answer:
    """The rest comes whatever became of the beginning."""
    try:
        next(task)
    finally:
        more = rest()
    try:
        task.send(more)
    except StopIteration as end:
        answer: Answer = end.value
        return answer
    raise AssertionError("a task yields once")


class _Rest:
    """What was not known when the job began. Waiting for it counts for nothing; ``waited`` says how many seconds that was."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self.waited = connection, 0.0

    def __call__(self) -> Message:
        signal.setitimer(signal.ITIMER_REAL, 0)
        asked = time.monotonic()
        header, parts = frames.receive(self._connection)
        self.waited = time.monotonic() - asked
        _limit_job(header["seconds"])
        return header["arguments"], parts


def _limit_process(memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_OPEN_FILES, hard), min(_OPEN_FILES, hard)))
    os.umask(0o077)


def _limit_job(seconds: float) -> None:
    """Processor time counts from the start of the process, so each job moves the limit on. SIGXCPU and SIGALRM keep their
    default action, which ends the process even while it is inside a C library."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    signal.setitimer(signal.ITIMER_REAL, seconds + _WALL_CLOCK_GRACE)


def _keep_quiet() -> None:
    """Libraries warn about every oddity of a foreign file; what matters is in the answer. Ctrl-C is for the parent."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _refuse_way_out(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _FORBIDDEN:
        raise PermissionError(f"{event} is not allowed in a rendering child")


def _peak_memory() -> int:
    """Bytes. Not ``ru_maxrss``: that begins with the parent's peak, and a large parent would make every child look worn."""
    with Path("/proc/self/status").open("rb") as status:
        for line in status:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
