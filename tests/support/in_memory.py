"""A folder in memory for the files of a run of tests: a third of the time of those with databases went into a disk whose
contents nobody needs tomorrow."""

import fcntl
import os
import re
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_PREFIX = "cs-tests-"
_OURS = re.compile(rf"{_PREFIX}\w{{8}}")
_BYTES = 3_000_000_000
"""Three times what a whole run has there at its height, with four workers."""


def open_folder() -> Path | None:
    """From now on, temporary files of this process and of those that it starts are in memory, until ``close_folder``. Returns
    the folder; None, and nothing changes, where TMPDIR says another place, or where there is no room, or no program may run."""
    _remove_those_of_dead_runs()
    if "TMPDIR" in os.environ or not _has_room():
        return None
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_MEMORY))
    _lock(folder)
    folder.chmod(0o755)  # the database's user goes through it
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
    return folder


def close_folder(folder: Path | None) -> None:
    """Remove the folder with all that is in it."""
    if folder is not None:
        del os.environ["TMPDIR"]
        tempfile.tempdir = None
        shutil.rmtree(folder, ignore_errors=True)


def _has_room() -> bool:
    if not os.access(_MEMORY, os.W_OK):
        return False
    there = os.statvfs(_MEMORY)
    return (
        not there.f_flag & os.ST_NOEXEC
        and there.f_bavail * there.f_frsize >= _BYTES
        and _bytes_available() >= 2 * _BYTES
    )


def _bytes_available() -> int:
    """What programs may still use of the machine's memory."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)


def _lock(folder: Path) -> bool:
    """Hold the folder's lock until this process ends, however it does; returns False where another run holds it. Process ids
    would say nothing of a run in another container."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return False
    return True


def _remove_those_of_dead_runs() -> None:
    for left in _MEMORY.glob(f"{_PREFIX}*"):
        if _OURS.fullmatch(left.name) and left.lstat().st_uid == os.geteuid() and _lock(left):
            shutil.rmtree(left, ignore_errors=True)
