"""The holder of a lease: this process, named so that another one on the same machine can see that it is dead.

A lease normally has to run out before another process takes over. When the holder was killed on this very machine, and
that is certain, there is no need to wait.
"""

import os
import socket
from functools import cache
from pathlib import Path


@cache
def own_name() -> str:
    """``host/pid namespace/pid/start time``, such as ``web-1/pid:[4026531836]/4711/8812345``."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{_namespace()}/{pid}/{_start_time(pid)}"


def is_dead(name: str) -> bool:
    """True when the named process ran here and no longer does. False when it lives, or when nobody here can tell.

    What follows a ``#`` names a part of the process.
    """
    parts = name.partition("#")[0].rsplit("/", 3)
    if len(parts) != 4 or parts[:2] != [socket.gethostname(), _namespace()] or "" in parts:
        return False
    return parts[2].isdigit() and _start_time(int(parts[2])) != parts[3]


def _namespace() -> str:
    """Process ids mean something within one namespace only; containers may share a host name."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _start_time(pid: int) -> str:
    """Field 22 of proc(5)'s stat: a process id may be given again, but not with the same start time."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]
