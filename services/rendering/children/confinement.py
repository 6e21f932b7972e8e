"""The kernel's walls around a process that runs somebody else's C and C++ on a stranger's file: every child.

The audit hook of ``child`` only sees what Python does. Here seccomp takes the system calls away that reach other machines,
programs or processes, and Landlock (from Linux 5.13 on) the files that the process has no business with. Both need no
privilege, hold for all threads that are started afterwards, and cannot be lifted. ``man 2 seccomp``, ``man 7 landlock``.
``lacking`` says which of them this machine does not have.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)

_READABLE = (
    "/usr",
    "/lib",
    "/lib64",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/libreoffice",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/var/cache/fontconfig",
    "/var/lib/libreoffice",
    "/var/spool/libreoffice",
    "/dev/urandom",
    "/proc/filesystems",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
)
_CODE = ("contracts", "services", "tests")
"""Not the folder that they are in, which may hold the keys of a local installation."""

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2

_DENIED_CALLS = {
    # Audit architecture, then the numbers of: socket connect bind listen accept accept4 execve execveat ptrace
    # process_vm_readv process_vm_writev io_uring_setup bpf mount umount2 pivot_root unshare setns keyctl add_key
    # request_key init_module finit_module perf_event_open userfaultfd kill tkill rt_sigqueueinfo pidfd_send_signal pidfd_open
    # pidfd_getfd setpriority kcmp, and what changes files that cannot be opened: truncate chmod fchmodat fchmodat2 chown lchown
    # fchownat; then those that are refused unless they are about this very process: tgkill rt_tgsigqueueinfo prlimit64; then
    # those that may not say who gets a descriptor's signals: fcntl ioctl
    "x86_64": (
        0xC000003E,
        (
            "41 42 49 50 43 288 59 322 101 310 311 425 321 165 166 155 272 308 250 248 249 175 313 298 323 62 200 129 424 434 "
            "438 141 312 76 90 268 452 92 94 260"
        ),
        "234 297 302",
        "72 16",
    ),
    "aarch64": (
        0xC00000B7,
        (
            "198 203 200 201 202 242 221 281 117 270 271 425 280 40 39 41 97 268 219 217 218 105 273 241 282 129 130 138 424 "
            "434 438 140 272 45 53 452 54"
        ),
        "131 240 261",
        "25 29",
    ),
}
_X32 = 0x40000000
"""Calls from here on are the same ones under other numbers."""

_INSTRUCTION = struct.Struct("=HBBI")
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1  # SECCOMP_RET_ERRNO with EPERM

_CALL, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
"""Places in struct seccomp_data; of the arguments the lower half, which is all of a process id or a command."""

_SIGNAL_OWNERS = (8, 15, 10, 0x8901, 0x8902)
"""Commands of fcntl and ioctl: F_SETOWN F_SETOWN_EX F_SETSIG FIOSETOWN SIOCSPGRP. With them the kernel sends any signal to any
process of the same user, when something can be read from a descriptor."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_FOR_VERSION = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1, 2, 4, 8, 1 << 14
_EVERYTHING = (1 << 13) - 1
"""All rights of the first version, which every later kernel knows; of later ones only ``_TRUNCATE``."""
_KNOWS_TRUNCATE = 3
_READ = _READ_FILE | _READ_DIR | _EXECUTE
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE


def lacking() -> list[str]:
    """Return which walls this machine does not have, in words for an operator. Empty when a child is held back wholly."""
    walls = []
    if _landlock_version() == 0:
        walls.append(
            "there is no Landlock (it needs Linux 5.13, its name in /sys/kernel/security/lsm, and a seccomp profile of the"
            " container that knows it): a child process may open every file that the service may"
        )
    if sys.platform != "linux" or platform.machine() not in _DENIED_CALLS:
        walls.append(
            f"the system calls of {sys.platform} on {platform.machine()} are not known: a child process may open sockets, start"
            " programs and send signals"
        )
    elif not _takes_filters():
        walls.append(
            "seccomp takes no filters (a kernel built without them, or qemu's emulation of another processor): a child process"
            " may open sockets, start programs and send signals"
        )
    return walls


def confine() -> None:
    """From now on this process reads programs, fonts and its own code, writes into its own folder (``TMPDIR``), and reaches
    nobody; as far as the machine can see to it."""
    if sys.platform != "linux":
        return
    top = Path(__file__).resolve().parents[3]
    code = [Path(sys.prefix), Path(sys.base_prefix), *(top / name for name in _CODE)]
    fonts = [Path(path) for path in os.environ.get("FONT_DIRS", "").split(":") if path]
    # Its libraries are beside its programs. What others of this user have cached is read; what one child wrote there, the next
    # would believe.
    office = [Path(path).parent for path in [os.environ.get("OFFICE_DIR")] if path]
    cache = [Path(path, "fontconfig") for path in [os.environ.get("XDG_CACHE_HOME")] if path]
    # Not what Python would choose: when there is no room in TMPDIR that is another folder, which is everybody's.
    writable = [Path(os.environ["TMPDIR"]), Path(os.devnull)]
    allow_files(read=[*map(Path, _READABLE), *code, *fonts, *office, *cache], write=writable)
    deny_way_out()


def deny_way_out() -> bool:
    """From now on no socket is opened, no program started, and no other process sent a signal. False where the machine's calls
    are not known, or seccomp takes no filters."""
    code = filter_of(platform.machine(), os.getpid())
    if code is None or not _takes_filters():
        return False
    filter_ = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // _INSTRUCTION.size, ctypes.addressof(filter_))
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(program), 0, 0))
    return True


def _takes_filters() -> bool:
    """Tell whether seccomp takes filters at all. It looks at one only where it does, and says of none that it is at no address
    (EFAULT); elsewhere it refuses before."""
    refused = _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, None, 0, 0) < 0
    return bool(refused) and ctypes.get_errno() == errno.EFAULT


def filter_of(machine: str, process: int) -> bytes | None:
    """Return the filter for a process on a machine, as seccomp takes it; None where the machine's calls are not known."""
    calls = _DENIED_CALLS.get(machine)
    if calls is None:
        return None
    architecture, denied, of_itself, of_owners = calls[0], calls[1].split(), calls[2].split(), calls[3].split()
    allowed = 4 + len(denied) + len(of_itself) + len(of_owners)  # the places of what follows the comparisons
    owner = allowed + 1
    look = owner + 1 + len(_SIGNAL_OWNERS) + 1
    allowed_to_itself, refused = look + 3, look + 4

    def if_equal(place: int, value: int, then: int) -> tuple[int, int, int, int]:
        return _JUMP_IF_EQUAL, then - place - 1, 0, value

    code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_IF_EQUAL, 0, refused - 2, architecture),
        (_LOAD, 0, 0, _CALL),
        (_JUMP_IF_AT_LEAST, refused - 4, 0, _X32),
        *(if_equal(place, int(number), refused) for place, number in enumerate(denied, 4)),
        *(if_equal(place, int(number), look) for place, number in enumerate(of_itself, 4 + len(denied))),
        *(if_equal(place, int(number), owner) for place, number in enumerate(of_owners, allowed - len(of_owners))),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _SECOND_ARGUMENT),
        *(if_equal(place, command, refused) for place, command in enumerate(_SIGNAL_OWNERS, owner + 1)),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        if_equal(look + 1, process, allowed_to_itself),
        (_JUMP_IF_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in code)


def allow_files(*, read: Iterable[Path], write: Iterable[Path]) -> bool:
    """From now on only what is at or below these paths can be opened. False where the kernel has no Landlock."""
    version = _landlock_version()
    if version == 0:
        return False
    everything = _EVERYTHING | (_TRUNCATE if version >= _KNOWS_TRUNCATE else 0)
    ruleset = struct.pack("=Q", everything)
    handle = _libc.syscall(_CREATE_RULESET, ctypes.c_char_p(ruleset), ctypes.c_size_t(len(ruleset)), 0)
    _checked(handle)
    try:
        for path in read:
            _allow(handle, path, _READ)
        for path in write:
            _allow(handle, path, everything & ~_EXECUTE)
        _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(_libc.syscall(_RESTRICT_SELF, handle, 0))
    finally:
        os.close(handle)
    return True


def _landlock_version() -> int:
    """0 where there is none: the kernel does not know it or does not have it switched on, or a container's seccomp profile
    refuses the call."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_FOR_VERSION)))


def _allow(handle: int, path: Path, rights: int) -> None:
    """A path that is not there is left out."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rule = struct.pack("=Qi", rights if path.is_dir() else rights & _ON_FILES, place)
        _checked(_libc.syscall(_ADD_RULE, handle, 1, ctypes.c_char_p(rule), 0))
    finally:
        # A rule is about an inode. The kernel forgets those of /proc when memory is short, and makes others, which no rule is
        # about; it does not forget what is open. The descriptor opens nothing that the rules do not allow.
        if not path.is_relative_to("/proc"):
            os.close(place)


def _checked(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
