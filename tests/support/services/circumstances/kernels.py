"""Another kernel, by the means of this one: a seccomp filter answers as a kernel does that does not know a call."""

import ctypes
import errno
import platform
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_LANDLOCK_CREATE_RULESET = 444  # the same on every machine
_PRCTL = {"x86_64": 157, "aarch64": 167}
_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ANSWER = 0x7FFF0000, 0x00050000


def without_landlock(call: Callable[[], T]) -> T:
    """What ``call`` returns in a thread of its own, for which, and for whose threads and processes, there is no Landlock."""
    return _under(_LANDLOCK_CREATE_RULESET, None, errno.ENOSYS, call)


def without_filters(call: Callable[[], T]) -> T:
    """The same where seccomp takes no filters from then on, as under qemu-user."""
    return _under(_PRCTL[platform.machine()], _SECCOMP, errno.EINVAL, call)


def _under(number: int, argument: int | None, answer: int, call: Callable[[], T]) -> T:
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_answer_to, number, argument, answer).result()
        return thread.submit(call).result()


def _answer_to(number: int, argument: int | None, answer: int) -> None:
    """Have the call fail, with this first argument or, where it is None, with any."""
    libc = ctypes.CDLL(None, use_errno=True)
    first = [] if argument is None else [(_LOAD, 0, 0, 16), (_JUMP_IF_EQUAL, 0, 1, argument)]
    code = b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in (
            (_LOAD, 0, 0, 0),
            (_JUMP_IF_EQUAL, 0, len(first) + 1, number),
            *first,
            (_RETURN, 0, 0, _ANSWER | answer),
            (_RETURN, 0, 0, _ALLOW),
        )
    )
    filter_ = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(filter_))
    assert libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(_SECCOMP, _FILTER, ctypes.c_char_p(program), 0, 0) == 0
