"""Warm child processes for work that is CPU-bound or touches files from outside.

Only the standard library is used to talk to them, so the same code is cooperative under eventlet and ordinary in threads.
A child that is late, dies or has grown is killed and replaced; the caller gets an exception, its neighbours notice
nothing. Children are separate interpreters started by ``subprocess``: no fork of a patched, threaded process.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from prometheus_client import Counter, Gauge, Histogram
from pydantic import TypeAdapter

from contracts.runtime.monitoring import observe, tracing
from services.rendering.children.turns import Turns
from services.rendering.protocol import frames
from services.rendering.protocol.messages import Packed, Report, Task, TaskInTwoParts

log = observe.logger(__name__)

JOB_SECONDS = Histogram("rendering_job_seconds", "Time a job took in a child that was at work", ["task", "outcome"])
QUEUE_SECONDS = Histogram("rendering_queue_seconds", "Time a job waited for a free child")
WAITING = Gauge("rendering_jobs_waiting", "Jobs that wait for a free child")
NOT_BEGUN = Counter(
    "rendering_jobs_not_begun_total",
    "Jobs that were given up before they began: all children were taken (busy), or all that the caller may have (share)",
    ["reason"],
)
KILLS = Counter("rendering_child_kills_total", "Children that did not survive their job", ["reason"])
CHILDREN = Gauge("rendering_children", "Children alive")

FOLDERS = "countersign-child."
_STARTING = 30
_STARVED = 0.25
"""Of the time that a job may take: whoever has had less of a processor than that when it is over was kept from working."""
_ROOM = 16 * 2**20

Q = TypeVar("Q")
R = TypeVar("R")
A = TypeVar("A")
_REPORT = TypeAdapter(Report)
_TOP = str(Path(__file__).resolve().parents[3])


class Busy(Exception):
    """No child became free in time; nothing was done. ``own``: it was the caller's own jobs that took all of their share."""

    def __init__(self, message: str, *, over_share: bool) -> None:
        super().__init__(message)
        self.over_share = over_share


class JobFailed(Exception):
    """The job did not come to an end; ``reason`` says why in words for an operator, ``trace`` where, when known."""

    def __init__(self, task: str, reason: str, trace: str = "") -> None:
        super().__init__(f"{task}: {reason}")
        self.task, self.reason, self.trace = task, reason, trace


class JobRefused(JobFailed):
    """The job found that the file or the request cannot be accepted; ``reason`` is a sentence for the API user, ``file`` (from
    1) the one at fault, where there are several; ``field`` what else in the request."""

    def __init__(self, task: str, reason: str, file: int | None = None, field: str | None = None) -> None:
        super().__init__(task, reason)
        self.file, self.field = file, field


class JobNotPossible(JobFailed):
    """Nothing is wrong with the job: no child could be started, or there is no room for its files. Later it may succeed."""


class JobCrashed(JobFailed):
    """The child died, or ran out of memory."""


class JobTimedOut(JobFailed):
    """The child was killed because it took too long; ``starved`` says that it hardly got a processor meanwhile, which is the
    machine's fault and not the job's."""

    def __init__(self, task: str, reason: str = "timeout", *, starved: bool = False) -> None:
        super().__init__(task, reason)
        self.starved = starved


class ChildPool:
    """At most ``size`` children; ``warm`` of them are kept when there is nothing to do, others end after ``idle`` seconds.

    ``memory`` bounds a child's address space in bytes. A child is replaced after ``jobs_per_child`` jobs, when it has
    ever held more than half of ``memory``, or when it says that it is spent. ``share`` is how many children may be at work
    for one caller whose jobs are not known to be quick (all of them, when it is not given). ``environment`` is added to the
    little that a child gets of ours. Each child has a folder of its own below ``TMPDIR`` (there, or Python's), which goes with
    the child. Thread-safe; under eventlet call ``start`` after the patching.
    """

    def __init__(
        self,
        *,
        size: int,
        share: int | None = None,
        warm: int = 1,
        memory: int = 1024 * 2**20,
        jobs_per_child: int = 200,
        idle: float = 120,
        tasks: str = "services.rendering.children.tasks",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.size = size
        self._turns = Turns(size, share or size)
        self._begun = threading.Semaphore(1 if size > 1 else 0)
        self._warm, self._memory, self._jobs_per_child, self._idle_seconds = warm, memory, jobs_per_child, idle
        self._tasks, self._environment = tasks, {"TMPDIR": tempfile.gettempdir(), **(environment or {})}
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._closed = threading.Event()

    def start(self) -> "ChildPool":
        """Start the warm children and wait until they are ready; returns the pool."""
        _remove_folders_of_the_dead(self._environment["TMPDIR"])
        children = [self._new() for _ in range(self._warm)]
        try:
            for child in children:
                child.wait_until_ready()
        except JobFailed:
            for child in children:
                child.end()
            raise
        self._idle.extend(children)
        threading.Thread(target=self._end_idle_children, name="idle children", daemon=True).start()
        return self

    def run(
        self,
        task: Task[Q, A],
        request: Q,
        *,
        seconds: float = 20,
        wait: float = 30,
        caller: str | None = None,
    ) -> A:
        """Do ``task`` in a child and return its answer.

        ``seconds`` limits the job, by the clock and in processor time; ``wait`` is how long to wait for a free child.
        ``caller`` is for whom it is done: each has only their share of the children.
        Raises Busy, JobNotPossible, JobRefused, JobCrashed, JobTimedOut or JobFailed.
        """
        return self._run(task, task.request.pack(request), None, seconds, wait, caller)

    def run_ahead(
        self,
        task: TaskInTwoParts[Q, R, A],
        request: Q,
        rest: Callable[[], R],
        *,
        seconds: float,
        wait: float,
    ) -> A:
        """As ``run``, for a task that begins before everything for it is known: ``rest`` returns what was missing, once it is
        there; ``seconds`` count for each of the two parts. What ``rest`` raises is raised, and the child ended: that is no
        failure of its own, and counts as none.

        Meanwhile it holds a child that others could need to come to an end, ``rest`` among them. So there is one such job at
        a time, and none where there is but one child: any other begins when ``rest`` has returned.
        """
        first = task.request.pack(request)
        if not self._begun.acquire(blocking=False):
            whole = task.rest.pack(rest())
            return self._run(task, first, lambda: whole, seconds, wait)
        try:
            return self._run(task, first, lambda: task.rest.pack(rest()), seconds, wait)
        finally:
            self._begun.release()

    def _run(
        self,
        task: Task[Q, A],
        first: Packed,
        rest: Callable[[], Packed] | None,
        seconds: float,
        wait: float,
        caller: str | None = None,
    ) -> A:
        name, began = task.name, time.monotonic()
        with WAITING.track_inprogress():
            turn = self._turns.take(caller, wait, name)
        if turn is None:
            over_share = not self._turns.has_share_left(caller, name)
            NOT_BEGUN.labels("share" if over_share else "busy").inc()
            raise Busy(f"no free child for {name} within {wait:g} s", over_share=over_share)
        try:
            QUEUE_SECONDS.observe(time.monotonic() - began)
            child = self._take()
            started, waited, outcome, healthy = time.monotonic(), 0.0, "failed", False
            turn.begun = started  # what it takes to start a child is not the job's
            with _span(name, child) as span:
                try:
                    child.begin(name, first, seconds)
                    if rest is not None:
                        began, outcome = time.monotonic(), ""  # what `rest` raises is another job's
                        more = rest()
                        waited, outcome = time.monotonic() - began, "failed"
                        child.begin(name, more, seconds)
                    report, packed = child.answer(name, seconds)
                    outcome, waited = _outcome(report), report.waited
                    span.set({"countersign.outcome": outcome, "countersign.child.waited_seconds": waited})
                    healthy = not (report.exhausted or report.spent)
                    _raise_unless_done(name, report)
                    try:
                        return task.answer.unpack(packed)
                    except ValueError as error:
                        outcome, healthy = "failed", False
                        raise JobCrashed(name, "crash", "it answered what is no answer") from error
                except (JobCrashed, JobTimedOut) as error:
                    if outcome:
                        KILLS.labels(error.reason).inc()
                    raise
                finally:
                    if outcome:
                        JOB_SECONDS.labels(name, outcome).observe(time.monotonic() - started - waited)
                    self._give_back(child, healthy)
        finally:
            self._turns.give_back(turn)

    def close(self) -> None:
        """End the idle children; busy ones end with their parent."""
        self._closed.set()
        with self._lock:
            children, self._idle = self._idle, []
        for child in children:
            child.end()

    def _take(self) -> "_Child":
        """The child used last, because it is the warmest; others can then grow idle and end."""
        while True:
            with self._lock:
                child = self._idle.pop() if self._idle else None
            if child is None:
                child = self._new()
            try:
                child.wait_until_ready()
            except JobFailed:
                child.end()
                raise
            if child.alive():
                return child
            child.end()

    def _give_back(self, child: "_Child", healthy: bool) -> None:
        worn = child.jobs >= self._jobs_per_child or child.peak_memory > self._memory / 2
        if healthy and not worn and not self._closed.is_set():
            child.idle_since = time.monotonic()
            with self._lock:
                self._idle.append(child)
            return
        child.end()
        with self._lock:
            short = len(self._idle) < self._warm and not self._closed.is_set()
            if short:  # started now, so that the next job finds it ready
                with contextlib.suppress(JobNotPossible):
                    self._idle.insert(0, self._new())

    def _end_idle_children(self) -> None:
        while not self._closed.wait(min(self._idle_seconds, 30)):
            before = time.monotonic() - self._idle_seconds
            with self._lock:
                spare = max(0, len(self._idle) - self._warm)
                ending = [child for child in self._idle[:spare] if child.idle_since < before]
                self._idle = [child for child in self._idle if child not in ending]
            for child in ending:
                child.end()
            # Those of a parent that was killed were perhaps at work when this pool was started.
            _remove_folders_of_the_dead(self._environment["TMPDIR"])

    def _new(self) -> "_Child":
        try:
            return _Child(self._memory, self._tasks, self._environment)
        except OSError as error:
            raise JobNotPossible("start", f"no child could be started: {error}") from error


def _span(task: str, child: "_Child") -> tracing.Span:
    """Return the span of a job. It is ours, not the child's, which reaches no collector."""
    if not tracing.on():
        return tracing.NOTHING
    attributes: tracing.Attributes = {"countersign.task": task, "countersign.child.pid": child.process.pid}
    return tracing.span(f"child {task}", attributes=attributes)


class _Child:
    """One process and our end of its socket."""

    def __init__(self, memory: int, tasks: str, environment: Mapping[str, str]) -> None:
        self._folder = _Folder(environment["TMPDIR"])
        try:
            self._connection, theirs = socket.socketpair()
            with theirs:
                self.process = self._started(theirs.fileno(), memory, tasks, environment)
        except OSError:
            self._folder.remove()
            raise
        self._ready, self._spent = False, 0.0
        self.jobs, self.peak_memory, self.idle_since = 0, 0, time.monotonic()
        CHILDREN.inc()

    def _started(
        self, connection: int, memory: int, tasks: str, environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes]":
        folder = {"TMPDIR": self._folder.path, "HOME": self._folder.path}
        return subprocess.Popen(
            [sys.executable, "-m", "services.rendering.children.child", str(connection), str(memory), tasks],
            pass_fds=[connection, self._folder.handle],
            env={**_clean_environment(), **environment, **folder},
            stdin=subprocess.DEVNULL,
            cwd="/",
        )

    def wait_until_ready(self) -> None:
        """Imports are done; raises JobNotPossible when the child does not come up."""
        if self._ready:
            return
        try:
            frames.receive(self._connection, until=time.monotonic() + _STARTING)
        except (frames.Closed, frames.Late) as error:
            raise JobNotPossible("start", "child did not start") from error
        self._ready = True

    def begin(self, task: str, message: Packed, seconds: float) -> None:
        """Hand a job over, or what was missing for it; raises JobCrashed or JobTimedOut."""
        header = json.dumps({"task": task, "seconds": seconds}).encode()
        self._spent = self._processor_seconds()
        with self._translated(task, seconds):
            frames.send(self._connection, header, message.payload, message.parts, until=time.monotonic() + seconds)

    def answer(self, task: str, seconds: float) -> tuple[Report, Packed]:
        """Return what became of the job; raises JobCrashed or JobTimedOut."""
        with self._translated(task, seconds):
            frame = frames.receive(self._connection, until=time.monotonic() + seconds)
        try:
            report = _REPORT.validate_json(frame.header)
        except ValueError as error:
            raise JobCrashed(task, "crash", "it reported what is no report") from error
        self.jobs += 1
        self.peak_memory = report.memory
        return report, Packed(frame.payload, frame.parts)

    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """Kill and reap; safe to call on a dead child."""
        self._connection.close()
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        self._folder.remove()
        CHILDREN.dec()

    def _processor_seconds(self) -> float:
        """Return what the process has had of the processors so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @contextlib.contextmanager
    def _translated(self, task: str, seconds: float) -> Iterator[None]:
        try:
            yield
        except frames.Late as error:
            spent = self._processor_seconds() - self._spent
            raise JobTimedOut(task, starved=spent < seconds * _STARVED) from error
        except frames.Closed as error:
            raise self._death(task) from error

    def _death(self, task: str) -> JobFailed:
        status = self.process.wait()
        if -status in (signal.SIGXCPU, signal.SIGALRM):
            return JobTimedOut(task)
        if is_full(self._folder.path):
            return JobNotPossible(task, "there is no room for files")
        return JobCrashed(task, "crash", f"exit status {status}")


def is_full(folder: str | Path) -> bool:
    """Is there so little room that what failed there may have failed for that?"""
    return shutil.disk_usage(folder).free < _ROOM


class _Folder:
    """A child's own. Parent and child hold a lock on it, which the kernel takes back when both have ended: their numbers say
    nothing, because in a container that starts again they are the same."""

    def __init__(self, parent: str) -> None:
        while True:
            self.path = tempfile.mkdtemp(dir=parent, prefix=FOLDERS)
            try:
                self.handle = _lock(self.path)
            except (FileNotFoundError, BlockingIOError):
                continue  # It was taken for one of the dead before it had its lock.
            if Path(self.path).exists():
                return
            os.close(self.handle)

    def remove(self) -> None:
        """Once, when the child has ended."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.handle)


def _lock(folder: str | Path) -> int:
    """A descriptor that holds the folder's lock. Raises BlockingIOError when somebody else does, and OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _remove_folders_of_the_dead(parent: str) -> None:
    """Remove what the children of a process that was killed have left behind."""
    for left in Path(parent).glob(f"{FOLDERS}*"):
        with contextlib.suppress(OSError):  # in use, or another user's
            handle = _lock(left)
            shutil.rmtree(left, ignore_errors=True)
            os.close(handle)


def _outcome(report: Report) -> str:
    if report.refused is not None:
        return "refused"
    return "done" if report.failed is None else "failed"


def _raise_unless_done(task: str, report: Report) -> None:
    if report.refused is not None:
        if report.cause:
            log.info("job.refused", task=task, reason=report.refused, cause=report.cause)
        raise JobRefused(task, report.refused, report.file, report.field)
    if report.failed is None:
        return
    if report.exhausted:
        raise JobCrashed(task, "memory", report.trace)
    if report.no_room:
        raise JobNotPossible(task, report.failed, report.trace)
    raise JobFailed(task, report.failed, report.trace)


def _clean_environment() -> dict[str, str]:
    """Nothing of ours: the database's address, the link secret and passwords are in the environment of the service."""
    environment = {
        key: os.environ[key]
        for key in ("PATH", "LANG", "LC_ALL", "TZ", "HOME", "XDG_CACHE_HOME", "FONT_DIRS")
        if key in os.environ
    }
    if "HOME" in environment:  # a child may have a home of its own, but what fonts there are it need not find out anew
        environment.setdefault("XDG_CACHE_HOME", f"{environment['HOME']}/.cache")
    return {**environment, "PYTHONPATH": _TOP, "MALLOC_ARENA_MAX": "1", "PYTHONWARNINGS": "ignore"}
