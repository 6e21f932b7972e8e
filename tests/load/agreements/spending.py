"""What a suite takes of the machine while it works: processor time by process, and what it says to disks, database and broker."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from deploy.rabbitmq import PrivateBroker

TICKS = os.sysconf("SC_CLK_TCK")
_RECEIVED = """lists:flatten(io_lib:format("~b", [lists:sum([maps:get(messages_received_total, Counters, 0)
    || {_, Counters} <- maps:to_list(rabbit_global_counters:overview())])])).
"""
"""All that publishers gave to the node since it started: events, calls, answers, hints."""

_SYNCS = re.compile(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", re.MULTILINE)


def processor_seconds(pid: int) -> float:
    """Processor time of a process and its children, ended ones included that were waited for. 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in _words(task / "children")]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS + sum(processor_seconds(child) for child in children)


def pids(pid: int) -> list[int]:
    """A process and all below it."""
    tasks = list(Path(f"/proc/{pid}/task").iterdir())
    children = [int(child) for task in tasks for child in _words(task / "children")]
    return [pid, *(each for child in children for each in pids(child))]


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def busy_seconds() -> float:
    """Processor time that the whole machine has spent since it started, whoever had it."""
    user, nice, system, _idle, _wait, irq, soft, *_ = map(
        int, Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    )
    return (user + nice + system + irq + soft) / TICKS


class Spending:
    """The processor time of each of ``roots`` from now on, of the machine, and of the time that passes."""

    def __init__(self, roots: Mapping[str, int]) -> None:
        self.roots = roots
        self._began = {name: processor_seconds(pid) for name, pid in roots.items()}
        self._busy = busy_seconds()
        self._at = time.monotonic()

    def so_far(self) -> dict[str, float]:
        """By process, in seconds."""
        return {name: processor_seconds(pid) - self._began[name] for name, pid in self.roots.items()}

    def free_cores(self) -> float:
        """So many processors nobody but ``roots`` has used, on the mean."""
        seconds = time.monotonic() - self._at
        others = busy_seconds() - self._busy - sum(self.so_far().values())
        return len(os.sched_getaffinity(0)) - max(0.0, others / seconds)


def messages_received(broker: PrivateBroker) -> int:
    """How many messages the broker was given since it started."""
    answer = broker.ctl("eval", _RECEIVED)
    return int(re.sub(r"\D", "", answer))


class Syncs:
    """Counts how often processes wait for the disk (fsync and its kin) and write, until ``counts``. None without strace."""

    CALLS = "fsync,fdatasync,sync_file_range,msync"

    def __init__(self, processes: list[int], folder: Path) -> None:
        self._output = folder / "strace.txt"
        self._strace: subprocess.Popen[bytes] | None = None
        if (program := shutil.which("strace")) is not None:
            ids = [word for pid in processes for word in ("-p", str(pid))]
            command = [
                program,
                "-f",
                "-c",
                "--seccomp-bpf",
                "-qq",
                "-e",
                f"trace={self.CALLS}",
                "-o",
                str(self._output),
                *ids,
            ]
            # It can have a filter for its own children only; it says so, and goes on without.
            self._strace = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            time.sleep(2)

    def counts(self) -> dict[str, int] | None:
        if self._strace is None:
            return None
        self._strace.terminate()
        self._strace.wait()
        return {name: int(calls) for calls, name in _SYNCS.findall(self._output.read_text()) if name != "total"}


class Flames:
    """A flame graph of each process by py-spy, where that is installed, into ``folder``."""

    def __init__(self, roots: Mapping[str, int], folder: Path, seconds: float) -> None:
        self._spies: list[subprocess.Popen[bytes]] = []
        program = shutil.which("py-spy")
        if program is None:
            print("  no flame graphs: py-spy is not installed")
            return
        folder.mkdir(parents=True, exist_ok=True)
        for name, pid in roots.items():
            options = ["--rate", "50", "--duration", str(int(seconds)), "--nonblocking", "--subprocesses"]
            path = folder / f"{name}.svg"
            command = [program, "record", *options, "--output", str(path), "--pid", str(pid)]
            self._spies.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def wait(self) -> None:
        for spy in self._spies:
            spy.wait()
