"""How much processor time the tests of each file take, with all processes that they start: ``--spending`` prints it.

Each worker of a run puts itself into a control group (cgroup, of either version) of its own, into which whatever it starts is born:
services, brokers, databases, browsers. It needs the right to make one, as root has it. What is started with a file's first test and
shared with others counts for the file that asked first.
"""

import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

_SHOWN = 40
_MOUNTED = Path("/sys/fs/cgroup")
GROUP = "SPENDING_GROUP"
"""The variable that names the group's list of processes: those born elsewhere are entered by whoever had them made."""


class Group:
    """A control group, which this process has entered."""

    def __init__(self) -> None:
        ours = dict(line.rstrip("\n").split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
        old = next((name for name in ours if "cpuacct" in name.split(",")), None)
        above = _MOUNTED / (old or "") / ours[old or ""].lstrip("/")
        folder = above / f"countersign-{os.getpid()}"
        folder.mkdir()
        (folder / "cgroup.procs").write_text(str(os.getpid()))
        os.environ[GROUP] = str(folder / "cgroup.procs")
        self._statistics = folder / ("cpu.stat" if old is None else "cpuacct.usage")

    def seconds(self) -> float:
        """Seconds of a processor that all its processes have taken, those that ended too."""
        words = self._statistics.read_text().split()
        return int(words[0]) / 1e9 if len(words) == 1 else int(words[1]) / 1e6


def entered(pid: int) -> None:
    """Count a process of ours that another one has made."""
    if GROUP in os.environ:
        Path(os.environ[GROUP]).write_text(str(pid))


class Worker:
    """Notes what the tests of this process take, by file."""

    def __init__(self) -> None:
        self._group = Group()
        self.seconds: dict[str, float] = defaultdict(float)
        self._counted = 0.0

    def _count(self, what: str) -> None:
        now = self._group.seconds()
        self.seconds[what] += now - self._counted
        self._counted = now

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        self._count("collecting the tests")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        done = yield
        self._count(item.nodeid.partition("::")[0])
        return done

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._count("the end")
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["spending"] = dict(self.seconds)


class Report:
    """Adds up what the workers noted, and shows the files that took most."""

    def __init__(self, worker: Worker | None) -> None:
        self._worker = worker
        self._seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._add(getattr(node, "workeroutput", {}).get("spending", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._worker is not None:
            self._add(self._worker.seconds)
        terminalreporter.section(f"{sum(self._seconds.values()):.0f} s of a processor were spent")
        for what, seconds in sorted(self._seconds.items(), key=lambda spent: -spent[1])[:_SHOWN]:
            terminalreporter.write_line(f"{seconds:8.1f}  {what}")

    def _add(self, seconds: dict[str, float]) -> None:
        for what, spent in seconds.items():
            self._seconds[what] += spent


def register(config: pytest.Config) -> None:
    """Count in whoever runs tests; show it where the run was begun."""
    begun_here = not hasattr(config, "workerinput")
    runs_tests = not begun_here or not config.getoption("numprocesses", None)
    worker = Worker() if runs_tests else None
    if worker is not None:
        config.pluginmanager.register(worker)
    if begun_here:
        config.pluginmanager.register(Report(worker))
