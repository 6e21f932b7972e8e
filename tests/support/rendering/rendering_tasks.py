"""Tasks for the children of the pool tests: one of each kind that goes wrong."""

import ctypes
import errno
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from contracts.rpc.rendering import Verification
from services.rendering.children.pool import ChildPool
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.protocol import frames, messages
from services.rendering.protocol.messages import File, Task, TaskInTwoParts, Work


@dataclass(frozen=True)
class Free:
    """Whatever a test sends and gets."""

    values: dict[str, Any] = field(default_factory=dict)
    files: Sequence[File] = ()


BEGIN = TaskInTwoParts("begin", Free, Free, Free)


def run(
    pool: ChildPool, name: str, values: dict[str, Any] | None = None, files: Sequence[bytes] = (), **more: Any
) -> tuple[dict[str, Any], list[bytes]]:
    """Have one of the tasks below done."""
    answer = pool.run(Task(name, Free, Free), Free(values or {}, files), **more)
    return answer.values, list(answer.files)


def free(function: Callable[[Free], Free]) -> Work[Free, Free]:
    return Task(function.__name__, Free, Free).done_by(function)


@free
def echo(request: Free) -> Free:
    return request


@free
def identity(request: Free) -> Free:
    return Free({"pid": os.getpid(), "environment": dict(os.environ)})


@free
def refuse_because(request: Free) -> Free:
    try:
        raise KeyError("/Size")
    except KeyError as error:
        raise Refused("No, thank you") from error


@free
def refuse(request: Free) -> Free:
    raise Refused("No, thank you")


@free
def refuse_oddly(request: Free) -> Free:
    raise Refused("The file says \ud83d")


@free
def report(request: Free) -> Free:
    """Say something else than what the child would say of the job."""
    frames.send(socket.socket(fileno=int(sys.argv[1])), request.values["report"].encode(), b"{}")
    time.sleep(300)
    return Free()


@free
def fail(request: Free) -> Free:
    raise KeyError("/Size")


@messages.VERIFY.done_by
def verify(request: messages.Verify) -> Verification:
    """Goes wrong in the way that the file names."""
    ways = {b"refuse": refuse, b"fail": fail, b"crash": crash, b"spin": spin, b"hoard": hoard, b"recurse": recurse}
    ways[request.data](Free({"size": 2**33}))
    raise AssertionError("each goes wrong")


@free
def find_no_room(request: Free) -> Free:
    raise OSError(errno.ENOSPC, "No space left on device")


@free
def crash(request: Free) -> Free:
    os._exit(3)


@free
def spin(request: Free) -> Free:
    while True:
        pass


@free
def sleep(request: Free) -> Free:
    time.sleep(request.values["seconds"])
    return Free({"pid": os.getpid()})


@free
def stay(request: Free) -> Free:
    """Leave a file in the folder, with the process's number in it, and come to no end."""
    (Path(os.environ["TMPDIR"]) / "writing").write_text(str(os.getpid()))
    (Path(os.environ["TMPDIR"]) / "writing").rename(Path(os.environ["TMPDIR"]) / "left")
    time.sleep(300)
    return Free()


@free
def hoard(request: Free) -> Free:
    return Free({"size": len(bytearray(request.values["size"]))})


@free
def recurse(request: Free) -> Free:
    return recurse(request)


@free
def connect(request: Free) -> Free:
    socket.create_connection(("127.0.0.1", request.values["port"]), timeout=2)
    return Free()


@free
def start_program(request: Free) -> Free:
    subprocess.run(["/bin/true"], check=True)
    return Free()


@BEGIN.begun_by
def begin(request: Free) -> Generator[None, Free, Free]:
    """In two parts: says that it has begun, by a file in its folder, then waits for the rest."""
    arguments = request.values
    if arguments.get("refused"):
        raise Refused("No, thank you")
    if arguments.get("crashes"):
        os._exit(3)
    begun = Path(os.environ["TMPDIR"], "begun")
    begun.touch()
    rest = yield
    begun.unlink()
    return Free({"first": arguments["first"], **rest.values}, [*request.files, *rest.files])


@free
def escape(request: Free) -> Free:
    """What a decoder could do that somebody else's picture has taken over: Python does not see these calls."""
    libc, arguments = ctypes.CDLL(None, use_errno=True), request.values
    parent, process = os.getppid(), os.getpid()
    numbers = {"x86_64": (200, 234, 129, 424, 434, 302), "aarch64": (130, 131, 138, 424, 434, 261)}[platform.machine()]
    tkill, tgkill, queue, pidfd_signal, pidfd_open, prlimit = numbers
    limits = (ctypes.c_ulong * 2)()
    own = f"{os.environ['TMPDIR']}/own"
    fcntl, ioctl, truncate = {"x86_64": (72, 16, 76), "aarch64": (25, 29, 45)}[platform.machine()]
    connection = socket.socketpair()[0].detach()
    cache = f"{os.environ['XDG_CACHE_HOME']}/fontconfig"
    of_others = [arguments["path"], arguments["of_a_child"]]
    calls: dict[str, Callable[[], int]] = {
        "socket": lambda: libc.socket(2, 1, 0),
        "exec": lambda: libc.execv(b"/bin/true", (ctypes.c_char_p * 2)(b"true", None)),
        "kill": lambda: libc.kill(os.getppid(), 0),
        "tkill": lambda: libc.syscall(tkill, parent, 0),
        "tgkill": lambda: libc.syscall(tgkill, parent, parent, 0),
        "tgkill itself": lambda: libc.syscall(tgkill, process, process, 0),
        "sigqueue": lambda: libc.syscall(queue, parent, 0, ctypes.create_string_buffer(128)),
        "pidfd_send_signal": lambda: libc.syscall(pidfd_signal, os.open("/proc/self", os.O_RDONLY), 0, None, 0),
        "pidfd_open": lambda: libc.syscall(pidfd_open, parent, 0),
        "setpriority": lambda: libc.setpriority(0, parent, 19),
        "prlimit": lambda: libc.syscall(prlimit, parent, 7, None, limits),
        "prlimit itself": lambda: libc.syscall(prlimit, 0, 7, None, limits),
        "fcntl F_SETOWN": lambda: libc.syscall(fcntl, connection, 8, parent),
        "fcntl F_SETSIG": lambda: libc.syscall(fcntl, connection, 10, 9),
        "fcntl F_SETOWN_EX": lambda: libc.syscall(fcntl, connection, 15, (ctypes.c_int * 2)(1, parent)),
        "fcntl F_GETFL": lambda: libc.syscall(fcntl, connection, 3, 0),
        "ioctl FIOSETOWN": lambda: libc.syscall(ioctl, connection, 0x8901, ctypes.byref(ctypes.c_int(parent))),
        "ioctl SIOCSPGRP": lambda: libc.syscall(ioctl, connection, 0x8902, ctypes.byref(ctypes.c_int(parent))),
        "folder": lambda: libc.open(own.encode(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        "the parent's secrets": lambda: libc.open(f"/proc/{parent}/environ".encode(), os.O_RDONLY),
        "another's programs": lambda: libc.open(b"/opt", os.O_RDONLY | os.O_DIRECTORY),
        "cache": lambda: libc.open(cache.encode(), os.O_RDONLY | os.O_DIRECTORY),
        "cache written": lambda: libc.open(f"{cache}/x".encode(), os.O_WRONLY | os.O_CREAT, 0o600),
        "font": lambda: libc.open(arguments["font"].encode(), os.O_RDONLY),
        "font emptied": lambda: libc.open(arguments["font"].encode(), os.O_RDONLY | os.O_TRUNC),
    }
    for path in map(Path, of_others):
        name = path.name
        calls |= {
            f"{name} read": partial(libc.open, bytes(path), os.O_RDONLY),
            f"{name} emptied": partial(libc.syscall, truncate, bytes(path), 0),
            f"{name} opened to all": partial(libc.chmod, bytes(path), 0o777),
            f"{name} given away": partial(libc.lchown, bytes(path), os.getuid(), os.getgid()),
            f"{name} removed": partial(libc.unlink, bytes(path)),
            f"{name}: its folder read": partial(libc.open, bytes(path.parent), os.O_RDONLY | os.O_DIRECTORY),
            f"{name}: beside it": partial(libc.open, bytes(path.with_name("x")), os.O_WRONLY | os.O_CREAT, 0o600),
            f"{name}: above it": partial(libc.mkdir, bytes(path.parent.with_name("x")), 0o700),
        }
    return Free({name: call() >= 0 for name, call in calls.items()})
