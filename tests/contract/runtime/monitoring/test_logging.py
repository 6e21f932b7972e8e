"""Logging in real processes, whatever their stderr is: never an exception, never a wait, each line whole and in its place."""

import json
import os
import posix
import pty
import signal
import socket
import subprocess
import sys
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.runtime import unpatched
from contracts.runtime.monitoring.line_writer import LineWriter
from tests.support.noting import noting
from tests.support.services.suite import wait_until

ROOT = Path(__file__).resolve().parents[4]

WORKER = """
from contracts.runtime.worker.patch import patch; patch()
import eventlet
"""
BEGIN = """
import os, resource, sys, threading, time, warnings
from contracts.runtime.monitoring import observe
observe.setup_process("test")
log = observe.logger("test")
def say(word):
    with open("said", "a") as file:
        file.write(word + "\\n")
def wait_for(word):
    while not os.path.exists(word):
        time.sleep(0.01)
"""
MANY = 20_000


class Programs:
    """Starts programs in ``folder``, where they say words beside their log, and wait for words of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, program: str, stderr: Any) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=self.folder, stderr=stderr, stdout=subprocess.DEVNULL, env=environment
        )
        self.started.append(process)
        return process

    def said(self, word: str) -> bool:
        said = self.folder / "said"
        return said.exists() and word in said.read_text().split()

    def tell(self, word: str) -> None:
        (self.folder / word).touch()

    def end(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()
            if process.stderr:
                process.stderr.close()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    made = Programs(tmp_path)
    yield made
    made.end()


def strictly(line: bytes) -> dict[str, Any]:
    """One line as strict JSON: Python's reader alone would take NaN."""

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    found = json.loads(line, parse_constant=refuse)
    assert isinstance(found, dict)
    return found


def everything(descriptor: int) -> list[dict[str, Any]]:
    """Every line until nobody is left who writes; a terminal says that in its own way."""
    whole = b""
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:
            piece = b""
        if not piece:
            break
        whole += piece
    os.close(descriptor)
    return [strictly(line) for line in whole.splitlines()]


def ends(kind: str) -> tuple[int, int]:
    """A descriptor to read from, and the one that a program gets as its stderr."""
    if kind == "pipe":
        return os.pipe()
    if kind == "terminal":
        ours, theirs = pty.openpty()
        tty.setraw(theirs)
        return ours, theirs
    one, other = socket.socketpair()
    return one.detach(), other.detach()


def test_green_threads_that_log_at_once(programs: Programs) -> None:
    """eventlet's own ``os.write`` switches threads on a pipe, and raises when a second one writes meanwhile."""
    speaking = """
order = []
def speak(who):
    for number in range(50):
        order.append(who)
        log.info("line", who=who, number=number)
for thread in [eventlet.spawn(speak, who) for who in range(3)]:
    thread.wait()
log.info("switched", times=sum(a != b for a, b in zip(order, order[1:])))
"""
    ours, theirs = ends("pipe")
    process = programs.start(WORKER + BEGIN + speaking, theirs)
    os.close(theirs)
    *lines, last = everything(ours)
    assert process.wait() == 0
    assert [(line["who"], line["number"]) for line in lines] == [(who, n) for who in range(3) for n in range(50)]
    assert last["times"] == 2


@pytest.mark.parametrize("kind", ["worker", "plain"])
@pytest.mark.parametrize("stderr", ["pipe", "socket", "terminal"])
def test_nobody_reads_for_a_while(programs: Programs, kind: str, stderr: str) -> None:
    """The work goes on; what was kept comes in order, what was dropped is counted, and told when it flows again."""
    working = f"""
for number in range({MANY}):
    log.info("line", number=number)
    if number % 1000 == 0:
        time.sleep(0)
say("done")
wait_for("reading")
observe._stderr.flush(60)
log.info("last", dropped=observe._stderr.dropped)
"""
    ours, theirs = ends(stderr)
    process = programs.start((WORKER if kind == "worker" else "") + BEGIN + working, theirs)
    os.close(theirs)
    wait_until(lambda: programs.said("done"), what="the work, while nobody reads")
    programs.tell("reading")
    lines = everything(ours)
    assert process.wait() == 0
    *kept, told, last = lines
    numbers = [line["number"] for line in kept]
    assert numbers == sorted(set(numbers))
    # Later ones find a place now and then, while the system takes some lines.
    assert numbers[:5000] == list(range(5000))
    assert (told["event"], told["lines"]) == ("log.dropped", MANY - len(kept))
    assert (last["event"], last["dropped"]) == ("last", MANY - len(kept))


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_reader_that_is_stopped_or_killed(programs: Programs, number: int) -> None:
    """The event loop goes round while it is stopped, and the process lives on without it."""
    working = """
def tick():
    while True:
        eventlet.sleep(0.01)
        os.utime("tick") if os.path.exists("tick") else open("tick", "w").close()
eventlet.spawn(tick)
def speak():
    while True:
        log.info("line", text="x" * 1000)
        eventlet.sleep(0.001)
eventlet.spawn(speak)
wait_for("end")
say("ended")
os._exit(0)
"""
    reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert reader.stdin is not None
    try:
        process = programs.start(WORKER + BEGIN + working, reader.stdin)
        reader.stdin.close()
        tick = programs.folder / "tick"
        wait_until(tick.exists, what="the event loop's first round")
        reader.send_signal(number)
        for _ in range(50):  # by then the pipe has been full for long
            last = tick.stat().st_mtime_ns
            wait_until(lambda last=last: tick.stat().st_mtime_ns > last, what="another round")
        programs.tell("end")
        wait_until(lambda: programs.said("ended"), what="the end")
        assert process.wait() == 0
    finally:
        reader.kill()
        reader.wait()


def test_without_a_stderr(programs: Programs) -> None:
    working = """
os.close(2)
for _ in range(100):
    log.info("line")
print("printed", file=sys.stderr)
say(str(observe._stderr.dropped))
"""
    assert programs.start(BEGIN + working, subprocess.DEVNULL).wait() == 0
    assert programs.said("101")


def test_processes_that_share_a_pipe(programs: Programs) -> None:
    """Their lines are never mixed: long ones are several lines, each written at once."""
    talking = """
who = str(os.getpid())
wait_for("talking")
for number in range(200):
    log.info("long", who=who, number=number, text=str(number % 10) * 10_000)
    log.info("short", who=who, number=number)
observe.flush(60)  # longer than at any end: whoever reads may be slow
"""
    ours, theirs = ends("pipe")
    started = [programs.start(BEGIN + talking, theirs) for _ in range(4)]
    os.close(theirs)
    programs.tell("talking")
    lines = everything(ours)
    assert [process.wait() for process in started] == [0] * 4
    short = [(line["who"], line["number"]) for line in lines if line["event"] == "short"]
    assert sorted(short) == sorted((str(process.pid), number) for process in started for number in range(200))
    assert sum(len(line["text"]) for line in lines if "text" in line) == 4 * 200 * 10_000
    assert {line["event"] for line in lines} == {"long", "short", "log.continued"}


@pytest.mark.parametrize("ending", ["pass", "raise RuntimeError('no more')", "sys.exit(3)"])
@pytest.mark.parametrize("kind", ["worker", "plain"])
def test_nothing_is_lost_at_the_end(programs: Programs, kind: str, ending: str) -> None:
    """What waits for a slow reader is written before the process ends, however it ends."""
    working = f"""
for number in range(3000):
    log.info("line", number=number)
say("said")
{ending}
"""
    ours, theirs = ends("pipe")
    process = programs.start((WORKER if kind == "worker" else "") + BEGIN + working, theirs)
    os.close(theirs)
    wait_until(lambda: programs.said("said"), what="the last line, while nobody reads")
    lines = everything(ours)
    failed = "raise" in ending
    assert process.wait() == (1 if failed else 3 if "exit" in ending else 0)
    assert [line["number"] for line in lines if line["event"] == "line"] == list(range(3000))
    assert [line["event"] for line in lines[3000:]] == (["process.failed"] if failed else [])
    assert "no more" in lines[-1]["exception"] if failed else True


def test_an_end_does_not_wait_for_ever(programs: Programs) -> None:
    ours, theirs = ends("pipe")
    process = programs.start(BEGIN + "for _ in range(3000): log.info('line')", theirs)
    os.close(theirs)
    assert process.wait(60) == 0
    os.close(ours)


def test_a_disk_that_is_full_in_the_middle_of_a_line(programs: Programs) -> None:
    """The line that was cut off stays alone: what follows begins a new one, and says how many were lost."""
    writing = """
log.info("first", text="a" * 1000)
log.info("second", text="b" * 1000)
log.info("third", text="c" * 1000)
observe.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
log.info("fourth")
log.info("fifth")
"""
    log = programs.folder / "log"
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 10_000))\n"
    with log.open("ab") as file:
        assert programs.start(limited + BEGIN + writing, file).wait() == 0
    first, cut_off, *rest = log.read_bytes().splitlines()
    assert strictly(first)["event"] == "first"
    assert cut_off.startswith(b'{"text": "bbb')
    assert sorted(strictly(line)["event"] for line in rest) == ["fifth", "fourth", "log.dropped"]
    assert sum(strictly(line).get("lines", 0) for line in rest) == 2


def test_whatever_is_logged_is_strict_json(programs: Programs) -> None:
    odd = """
class Unshowable(Exception):
    def __str__(self):
        raise ValueError("no words")
class Thing:
    def __repr__(self):
        raise ValueError("no words")
circle = []
circle.append(circle)
log.info("nan", number=float("nan"))
log.info("keys", table={(1, 2): 3})
log.info("bytes", data=b"\\xff", text="\\ud800 \\n")
log.info("circle", circle=circle)
log.info("thing", thing=Thing())
try:
    raise Unshowable
except Unshowable:
    log.exception("unshowable")
import logging
logging.getLogger("odd").warning("%d", "no number")
warnings.warn("a warning")
print("{\\"event\\": \\"printed\\"}", file=sys.stderr)
thread = threading.Thread(target=lambda: 1 / 0, name="divider")
thread.start()
thread.join()
class Bad:
    def __del__(self):
        raise ValueError("in vain")
Bad()
log.info("last", **{f"key{number}": "x" * 100 for number in range(100)})
log.info("after")
"""
    ours, theirs = ends("pipe")
    process = programs.start(BEGIN + odd, theirs)
    os.close(theirs)
    lines = everything(ours)
    assert process.wait() == 0
    events = [line["event"] for line in lines]
    assert events[:4] == ["nan", "keys", "bytes", "log.failed"]
    assert [line["of"] for line in lines if line["event"] == "log.failed"][:2] == ["circle", "thing"]
    assert events[-1] == "after"
    assert any("a warning" in event for event in events)
    assert {"printed", "thread.failed", "exception.ignored"} <= set(events)


def test_logging_from_real_threads_and_green_ones(programs: Programs) -> None:
    """Those of the database (SQLite) log beside the event loop's, while nobody reads."""
    working = """
from eventlet import tpool
def speak(who):
    for number in range(500):
        log.info("line", who=who, number=number)
green = [eventlet.spawn(tpool.execute, speak, f"real {n}") for n in range(4)]
green += [eventlet.spawn(speak, f"green {n}") for n in range(4)]
for thread in green:
    thread.wait()
say("done")
"""
    ours, theirs = ends("pipe")
    process = programs.start(WORKER + BEGIN + working, theirs)
    os.close(theirs)
    wait_until(lambda: programs.said("done"), what="the work, while nobody reads")
    lines = everything(ours)
    assert process.wait() == 0
    for who in [f"{kind} {n}" for kind in ("real", "green") for n in range(4)]:
        assert [line["number"] for line in lines if line.get("who") == who] == list(range(500))


def test_a_pipe_of_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container: it cannot be opened anew. Lines go at once while there is room, and wait for nobody when there is none."""

    def refused(*_arguments: Any) -> int:
        raise PermissionError

    threads: list[Any] = []
    begin = unpatched.start_new_thread
    monkeypatch.setattr(posix, "open", refused)
    monkeypatch.setattr(unpatched, "start_new_thread", noting(threads, begin))
    ours, theirs = os.pipe()
    writer = LineWriter(theirs, lambda dropped: b"dropped")
    for number in range(10):
        writer.write(b"%d" % number)
    assert threads == []
    for _ in range(100):
        writer.write(b"x" * 4000)  # more than a pipe holds
    assert len(threads) == 1
    read = b""
    while read.count(b"\n") < 110:
        read += os.read(ours, 65536)
    assert read == b"".join(b"%d\n" % number for number in range(10)) + (b"x" * 4000 + b"\n") * 100
    assert writer.flush(10)
    os.close(ours)
    os.close(theirs)
