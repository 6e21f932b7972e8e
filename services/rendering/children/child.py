"""A child process: takes jobs from its socket, one after the other, and does them within limits.

It parses files that strangers made, so it holds nothing worth taking: no keys, no database, no secrets in its
environment, and the kernel lets it connect nowhere, start nothing and read nobody's files (``confinement``). Memory is
limited for the whole life of the process, processor time and wall-clock time for each job; past a limit the kernel ends it
and the parent starts another.

``python -m services.rendering.children.child FD MEMORY_BYTES``
"""

import errno
import importlib
import json
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
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from contracts.runtime import garbage
from services.rendering.children import confinement
from services.rendering.protocol import frames
from services.rendering.protocol.messages import Packed, Report, Work, WorkInTwoParts

TASKS = "services.rendering.children.tasks"
_NOTHING = Packed(b"")
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
        frames.send(connection, b"")
        while True:
            frame = frames.receive(connection)
            job = json.loads(frame.header)
            _limit_job(job["seconds"])
            rest = _Rest(connection)
            report, answer = _do(getattr(tasks, job["task"]), Packed(frame.payload, frame.parts), rest)
            signal.setitimer(signal.ITIMER_REAL, 0)
            spent = hasattr(tasks, "is_spent") and tasks.is_spent()
            report = replace(report, waited=rest.waited, memory=_peak_memory(), spent=spent)
            frames.send(connection, json.dumps(asdict(report)).encode(), answer.payload, answer.parts)
            del frame, answer
    except frames.Closed:
        # The parent removes it, unless it died; what is left of it then, the next pool does.
        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
        os._exit(0)


def _do(
    work: Work[Any, Any] | WorkInTwoParts[Any, Any, Any], request: Packed, rest: Callable[[], Packed]
) -> tuple[Report, Packed]:
    """``Refused`` is an answer; whatever else comes out of a library that met a hostile file is a failure of this job."""
    from services.rendering.jobs.pdf.refused import Refused

    try:
        return Report(), work.answered(request, rest)
    except Refused as refused:
        cause = refused.__cause__
        reason = None if cause is None else _words(f"{type(cause).__name__}: {cause}")[:500]
        return Report(refused=_words(str(refused)), file=refused.file, field=refused.field, cause=reason), _NOTHING
    except MemoryError:
        return Report(failed="out of memory", exhausted=True), _NOTHING
    except Exception as error:  # libraries raise about anything on hostile input
        failed, trace = _words(f"{type(error).__name__}: {error}")[:500], _words(traceback.format_exc(limit=-6))
        no_room = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        return Report(failed=failed, trace=trace, no_room=no_room), _NOTHING


def _words(text: str) -> str:
    """Text that can be sent: half of a surrogate pair, which a file's strings may hold, is written as Python would."""
    return text.encode(errors="backslashreplace").decode()


class _Rest:
    """What was not known when the job began. Waiting for it counts for nothing; ``waited`` says how many seconds that was."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self.waited = connection, 0.0

    def __call__(self) -> Packed:
        signal.setitimer(signal.ITIMER_REAL, 0)
        began = time.monotonic()
        frame = frames.receive(self._connection)
        self.waited = time.monotonic() - began
        _limit_job(json.loads(frame.header)["seconds"])
        return Packed(frame.payload, frame.parts)


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
