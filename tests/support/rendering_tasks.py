"""Tasks for the children of the pool tests: one of each kind that goes wrong."""

import ctypes
import errno
import os
import platform
import socket
import subprocess
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from services.rendering.jobs.pdf.refused import Refused

Answer = tuple[dict[str, Any], Sequence[bytes]]


def echo(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    return arguments, parts


def identity(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    return {"pid": os.getpid(), "environment": dict(os.environ)}, []


def refuse_because(arguments: dict[str, Any], parts: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    try:
        raise KeyError("/Size")
    except KeyError as error:
        raise Refused("No, thank you") from error


def refuse(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    raise Refused("No, thank you")


def fail(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    raise KeyError("/Size")


def verify(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    """Goes wrong in the way that the file names."""
    ways = {b"refuse": refuse, b"fail": fail, b"crash": crash, b"spin": spin, b"hoard": hoard, b"recurse": recurse}
    return ways[parts[0]]({"size": 2**33}, [])


def find_no_room(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    raise OSError(errno.ENOSPC, "No space left on device")


def crash(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    os._exit(3)


def spin(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    while True:
        pass


def sleep(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    time.sleep(arguments["seconds"])
    return {"pid": os.getpid()}, []


def stay(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    """Leave a file in the folder, with the process's number in it, and come to no end."""
    (Path(os.environ["TMPDIR"]) / "writing").write_text(str(os.getpid()))
    (Path(os.environ["TMPDIR"]) / "writing").rename(Path(os.environ["TMPDIR"]) / "left")
    time.sleep(300)
    return {}, []


def hoard(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    return {"size": len(bytearray(arguments["size"]))}, []


def recurse(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    return recurse(arguments, parts)


def connect(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    socket.create_connection(("127.0.0.1", arguments["port"]), timeout=2)
    return {}, []


def start_program(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    subprocess.run(["/bin/true"], check=True)
    return {}, []


def begin(arguments: dict[str, Any], parts: Sequence[bytes]) -> Generator[None, tuple[dict[str, Any], Any], Answer]:
    """In two parts: says that it has begun, by a file in its folder, then waits for the rest."""
    if arguments.get("refused"):
        raise Refused("No, thank you")
    if arguments.get("crashes"):
        os._exit(3)
    begun = Path(os.environ["TMPDIR"], "begun")
    begun.touch()
    rest, more = yield
    begun.unlink()
    return {"first": arguments["first"], **rest}, [*parts, *more]


def escape(arguments: dict[str, Any], parts: Sequence[bytes]) -> Answer:
    """What a decoder could do that somebody else's picture has taken over: Python does not see these calls."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent, process = os.getppid(), os.getpid()
    numbers = {"x86_64": (200, 234, 129, 424, 434, 302), "aarch64": (130, 131, 138, 424, 434, 261)}[platform.machine()]
    tkill, tgkill, queue, pidfd_signal, pidfd_open, prlimit = numbers
    limits = (ctypes.c_ulong * 2)()
    own = f"{os.environ['TMPDIR']}/own"
    fcntl, ioctl, truncate = {"x86_64": (72, 16, 76), "aarch64": (25, 29, 45)}[platform.machine()]
    connection = socket.socketpair()[0].detach()
    cache = f"{os.environ['XDG_CACHE_HOME']}/fontconfig"
    of_others = [arguments["path"], arguments["of_a_child"]]
    calls = {
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
            f"{name} read": lambda path=path: libc.open(bytes(path), os.O_RDONLY),
            f"{name} emptied": lambda path=path: libc.syscall(truncate, bytes(path), 0),
            f"{name} opened to all": lambda path=path: libc.chmod(bytes(path), 0o777),
            f"{name} given away": lambda path=path: libc.lchown(bytes(path), os.getuid(), os.getgid()),
            f"{name} removed": lambda path=path: libc.unlink(bytes(path)),
            f"{name}: its folder read": lambda path=path: libc.open(bytes(path.parent), os.O_RDONLY | os.O_DIRECTORY),
            f"{name}: beside it": lambda path=path: libc.open(
                bytes(path.with_name("x")), os.O_WRONLY | os.O_CREAT, 0o600
            ),
            f"{name}: above it": lambda path=path: libc.mkdir(bytes(path.parent.with_name("x")), 0o700),
        }
    return {name: call() >= 0 for name, call in calls.items()}, []
