#!/usr/bin/env python3
"""Runs a command where containers can run although this is a chroot, or /sys has no control groups.

    python3 tests/deployed/own_root.py COMMAND ...

The command gets mounts of its own, which are gone when it and its children have ended. Elsewhere it just runs. What runs in a
container is entered through its mount namespace (``podman exec``), whose root must be the one that podman sees: a chroot is
left out of account there. So the root is changed by ``pivot_root``, as a container's is. See mount_namespaces(7), pivot_root(2).
"""

import ctypes
import os
import sys
import tempfile
from pathlib import Path

CLONE_NEWNS = 0x00020000
MNT_DETACH = 2
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(
    source: str | Path, target: str | Path, kind: str | None, flags: int = 0, options: str | None = None
) -> None:
    encoded = [None if one is None else os.fsencode(one) for one in (source, target, kind)]
    data = None if options is None else options.encode()
    _checked(_libc.mount(*encoded, ctypes.c_ulong(flags), data), f"mount {kind or source} on {target}")


def needed() -> bool:
    """Tell whether this is a chroot, or there are no control groups. Raises OSError where that cannot be found out."""
    groups = Path("/sys/fs/cgroup")
    has_groups = (groups / "memory").exists() or (groups / "cgroup.controllers").exists()
    return os.geteuid() == 0 and not (has_groups and not _is_chroot())


def _is_chroot() -> bool:
    here = Path.cwd()
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        _out_of_the_chroot()
        differs = not os.path.samestat(Path("/").stat(), os.fstat(root))
        os.fchdir(root)
        os.chroot(".")
    finally:
        os.close(root)
        os.chdir(here)
    return differs


def enter() -> None:
    """Make ``/`` a mount point and the root of a mount namespace of this process alone, with control groups."""
    folder = Path.cwd()
    _checked(_libc.unshare(CLONE_NEWNS), "unshare")
    _out_of_the_chroot()
    # Before anything else: what is mounted or unmounted from here on must not reach the namespace this one was copied from.
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    old = Path.cwd()
    root = Path(tempfile.mkdtemp(dir=old / "tmp"))
    _mount(old, root, None, MS_BIND | MS_REC)
    _mount("sysfs", root / "sys", "sysfs")
    _mount("tmpfs", root / "run", "tmpfs")
    _control_groups(root / "sys/fs/cgroup")
    os.chdir(root)
    _checked(_libc.syscall(SYS_PIVOT_ROOT[os.uname().machine], b".", b"."), "pivot_root")
    _checked(_libc.umount2(b".", MNT_DETACH), "umount")
    Path("/tmp", root.name).rmdir()
    os.chdir(folder)


def _out_of_the_chroot() -> None:
    """Make the namespace's root this process's; the working directory becomes what ``/`` was."""
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    try:
        _checked(_libc.setns(namespace, CLONE_NEWNS), "setns")
        os.fchdir(root)
    finally:
        os.close(namespace)
        os.close(root)


def _control_groups(folder: Path) -> None:
    """Version 1 where the kernel's controllers are in use as such, else version 2."""
    rows = [line.split() for line in Path("/proc/cgroups").read_text().splitlines() if not line.startswith("#")]
    controllers = [name for name, hierarchy, *_ in rows if hierarchy != "0"]
    if "memory" not in controllers:
        _mount("cgroup2", folder, "cgroup2")
        return
    _mount("cgroup", folder, "tmpfs")
    for controller in controllers:
        (folder / controller).mkdir()
        _mount(controller, folder / controller, "cgroup", options=controller)


if __name__ == "__main__":
    try:
        if needed():
            enter()
    except OSError as error:
        print(f"Containers cannot run here: root may not make mounts of its own ({error}).", file=sys.stderr)
        sys.exit(69)  # as tests/deployed/engine.py, which needs more than the standard library to be imported
    os.execvp(sys.argv[1], sys.argv[1:])
