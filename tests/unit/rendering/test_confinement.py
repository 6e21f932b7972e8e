"""The filter of system calls for each machine that it is written for, also for those that these tests do not run on.

Judges that we did not write: libseccomp says which number a call has on which machine. What the filter answers an interpreter of
its few instructions says; that the kernel of this machine obeys it, ``test_pool``."""

import ctypes
import itertools
import os
import platform
import struct

import pytest

from services.rendering.children import confinement

ALLOW, REFUSE = 0x7FFF0000, 0x00050001  # the latter: EPERM
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64 of linux/audit.h."""
PROCESS = 4711

REFUSED = (
    "socket connect bind listen accept accept4 execve execveat ptrace process_vm_readv process_vm_writev io_uring_setup bpf "
    "mount umount2 pivot_root unshare setns keyctl add_key request_key init_module finit_module perf_event_open userfaultfd "
    "kill tkill rt_sigqueueinfo pidfd_send_signal pidfd_open pidfd_getfd setpriority kcmp truncate chmod fchmodat fchmodat2 "
    "chown lchown fchownat"
)
OF_ITSELF = ["tgkill", "rt_tgsigqueueinfo", "prlimit64"]
OF_OWNERS = ["fcntl", "ioctl"]
WORKS = (
    "read write openat close mmap munmap mprotect brk futex clone clone3 exit_group rt_sigaction rt_sigprocmask fstat lseek "
    "getrandom clock_gettime ftruncate fchmod unlinkat mkdirat getdents64 sched_yield madvise pread64 writev statx "
    "socketpair sendmsg recvmsg shutdown wait4 prctl"
)
"""What a child does all day; the descriptors over which it speaks to its parent, it was given."""
ONLY_ON = {"chmod": "x86_64", "chown": "x86_64", "lchown": "x86_64"}
YOUNGER = {"fchmodat2": 452}
"""Calls that Debian 12's libseccomp does not know. Since Linux 5.1 each new one has the same number on every machine."""


def number_of(call: str, machine: str) -> int | None:
    """The call's number on the machine, None where it has none."""
    library = ctypes.CDLL("libseccomp.so.2")
    number = library.seccomp_syscall_resolve_name_arch(ctypes.c_uint32(MACHINES[machine]), call.encode())
    return number if number >= 0 else YOUNGER.get(call)


def answer(code: bytes, call: int, machine: str, *arguments: int) -> int:
    """What the filter returns for a call, instruction by instruction, as seccomp(2) has it."""
    values = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("=IIQ6Q", call, MACHINES[machine], 0, *values)
    place = loaded = 0
    while True:
        operation, if_true, if_false, value = struct.unpack_from("=HBBI", code, 8 * place)
        place += 1
        if operation == 0x20:
            (loaded,) = struct.unpack_from("=I", data, value)
        elif operation == 0x06:
            return int(value)
        else:
            held = {0x15: loaded == value, 0x35: loaded >= value}[operation]
            place += if_true if held else if_false


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def code(machine: str) -> bytes:
    made = confinement.filter_of(machine, PROCESS)
    assert made is not None
    return made


@pytest.mark.parametrize("call", REFUSED.split())
def test_what_leads_out_is_refused(code: bytes, machine: str, call: str) -> None:
    number = number_of(call, machine)
    if number is None:
        assert ONLY_ON[call] != machine
    else:
        assert answer(code, number, machine) == REFUSE


def test_all_that_a_child_needs_is_allowed(code: bytes, machine: str) -> None:
    numbers = {call: number_of(call, machine) for call in WORKS.split()}
    assert None not in numbers.values(), numbers
    assert {call for call, number in numbers.items() if answer(code, number or 0, machine) != ALLOW} == set()


def test_no_other_number_is_refused(code: bytes, machine: str) -> None:
    """A wrong number would take away what nobody means to."""
    meant = {number_of(call, machine) for call in [*REFUSED.split(), *OF_ITSELF, *OF_OWNERS]}
    assert {number for number in range(1000) if answer(code, number, machine) == REFUSE} <= meant


@pytest.mark.parametrize("call", OF_ITSELF)
def test_what_is_about_the_process_itself_is_allowed_and_nothing_else(code: bytes, machine: str, call: str) -> None:
    number = number_of(call, machine)
    assert number is not None
    answers = {about: answer(code, number, machine, about) for about in (0, PROCESS, PROCESS + 1, 1, 2**32 - 1)}
    assert {about for about, said in answers.items() if said == ALLOW} == {0, PROCESS}


@pytest.mark.parametrize("call", OF_OWNERS)
def test_nobody_says_who_gets_a_descriptors_signals(code: bytes, machine: str, call: str) -> None:
    number = number_of(call, machine)
    assert number is not None
    commands = [8, 15, 10, 0x8901, 0x8902]  # F_SETOWN F_SETOWN_EX F_SETSIG FIOSETOWN SIOCSPGRP
    assert {answer(code, number, machine, 3, command) for command in commands} == {REFUSE}
    harmless = [0, 1, 2, 3, 4, 0x5401, 0x5413, 0x541B]
    assert {answer(code, number, machine, 3, command) for command in harmless} == {ALLOW}


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(MACHINES, 2)))
def test_calls_by_another_machines_numbers_are_refused(one: str, other: str) -> None:
    """A 64-bit kernel may run programs of other machines."""
    code = confinement.filter_of(one, PROCESS)
    assert code is not None
    assert {answer(code, number, other) for number in range(500)} == {REFUSE}


def test_calls_in_the_range_of_x32_are_refused(code: bytes, machine: str) -> None:
    assert answer(code, 0x40000000, machine) == REFUSE


def test_a_machine_whose_calls_are_not_known_has_no_filter_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert confinement.filter_of("riscv64", os.getpid()) is None
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert "the system calls of linux on riscv64 are not known" in "; ".join(confinement.lacking())
