"""Children that crash, hang, hoard or wear out: the caller hears of it, the next caller does not."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from contracts.errors import ServiceError
from services.rendering.children import confinement
from services.rendering.children import pool as rendering_pool
from services.rendering.children.pool import (
    FOLDERS,
    Busy,
    ChildPool,
    JobCrashed,
    JobFailed,
    JobNotPossible,
    JobRefused,
    JobTimedOut,
)
from services.rendering.children.renderer import for_caller
from services.rendering.children.turns import Turn, Turns
from tests.support.rendering.rendering_tasks import BEGIN, Free, run
from tests.support.services.circumstances.kernels import without_filters, without_landlock
from tests.support.services.suite import wait_until

TOP = Path(__file__).parents[3]
TASKS = "tests.support.rendering.rendering_tasks"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildPool]:
    """For all tests that leave its only child as it was, or have the pool replace it."""
    made = ChildPool(size=1, tasks=TASKS, environment={"TMPDIR": str(tmp_path_factory.mktemp("pool"))}).start()
    yield made
    made.close()


def pid(pool: ChildPool) -> int:
    return int(run(pool, "identity", {})[0]["pid"])


def test_values_and_bytes_go_there_and_back(pool: ChildPool) -> None:
    parts = [b"", os.urandom(3_000_000), b"\x00\xff"]
    assert run(pool, "echo", {"words": ["ä", None, 1.5]}, parts) == ({"words": ["ä", None, 1.5]}, parts)


def test_a_refusal_is_an_answer_and_the_child_lives(pool: ChildPool) -> None:
    before = pid(pool)
    with pytest.raises(JobRefused) as caught:
        run(pool, "refuse", {})
    assert caught.value.reason == "No, thank you"
    assert pid(pool) == before


def test_what_a_library_said_of_a_file_is_in_the_log_and_not_in_the_refusal(
    pool: ChildPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr(rendering_pool.log, "info", lambda event, **more: lines.append({"event": event, **more}))
    for task in ("refuse", "refuse_because"):
        with pytest.raises(JobRefused, match="No, thank you"):
            run(pool, task, {})
    assert lines == [
        {"event": "job.refused", "task": "refuse_because", "reason": "No, thank you", "cause": "KeyError: '/Size'"}
    ]


def test_an_error_says_what_and_where(pool: ChildPool) -> None:
    with pytest.raises(JobFailed) as caught:
        run(pool, "fail", {})
    assert caught.value.reason == "KeyError: '/Size'"
    assert "in fail" in caught.value.trace
    assert not isinstance(caught.value, JobRefused)


def test_endless_recursion_does_not_end_the_child(pool: ChildPool) -> None:
    before = pid(pool)
    with pytest.raises(JobFailed, match="RecursionError"):
        run(pool, "recurse", {})
    assert pid(pool) == before


def test_a_crash_is_reported_and_the_child_replaced(pool: ChildPool) -> None:
    before = pid(pool)
    with pytest.raises(JobCrashed):
        run(pool, "crash", {})
    assert pid(pool) != before


def test_a_full_disk_is_not_the_file_s_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where the job says so, nor where the child dies of it, nor where none can be started."""
    pool = ChildPool(size=1, warm=0, tasks=TASKS, environment={"TMPDIR": str(tmp_path)}).start()
    try:
        before = pid(pool)
        for task in ("find_no_room", "crash"):
            monkeypatch.setattr(rendering_pool, "_ROOM", 2**62)
            with pytest.raises(ServiceError) as refused, for_caller(task):
                run(pool, task, {})
            assert refused.value.status == 503
            monkeypatch.undo()
            assert (pid(pool) == before) is (task == "find_no_room")
        with pytest.raises(JobCrashed):
            run(pool, "crash", {})
        pool._environment["TMPDIR"] = str(tmp_path / "not there")
        with pytest.raises(JobNotPossible):
            run(pool, "identity", {})
        pool._environment["TMPDIR"] = str(tmp_path)
        assert pid(pool)
    finally:
        pool.close()


@pytest.mark.parametrize("task", ["spin", "sleep"])
def test_a_late_child_is_killed_and_replaced(pool: ChildPool, task: str) -> None:
    before = pid(pool)
    with pytest.raises(JobTimedOut):
        run(pool, task, {"seconds": 60}, seconds=0.3)
    assert pid(pool) != before
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


@pytest.mark.parametrize(("task", "status"), [("spin", 422), ("sleep", 503)])
def test_who_hardly_got_a_processor_may_come_again(pool: ChildPool, task: str, status: int) -> None:
    """What used it up would use it up again. (On a busy machine, it is itself kept from it at times.)"""

    def answered() -> int:
        with pytest.raises(ServiceError) as refused, for_caller(task):
            run(pool, task, {"seconds": 60}, seconds=0.3)
        return refused.value.status

    wait_until(lambda: answered() == status, what="an answer")


def test_memory_is_limited_and_the_parent_keeps_its_own() -> None:
    pool = ChildPool(size=1, tasks=TASKS, memory=512 * 2**20).start()
    try:
        before = pid(pool)
        with pytest.raises(JobCrashed) as caught:
            run(pool, "hoard", {"size": 600 * 2**20})
        assert caught.value.reason == "memory"
        assert pid(pool) != before
        assert run(pool, "hoard", {"size": 10_000})[0] == {"size": 10_000}
    finally:
        pool.close()


def test_a_child_that_has_grown_is_replaced() -> None:
    pool = ChildPool(size=1, tasks=TASKS, memory=512 * 2**20).start()
    try:
        before = pid(pool)
        run(pool, "hoard", {"size": 300 * 2**20})
        assert pid(pool) != before
    finally:
        pool.close()


def test_a_child_is_replaced_after_its_jobs() -> None:
    pool = ChildPool(size=1, tasks=TASKS, jobs_per_child=3).start()
    try:
        pids = [pid(pool) for _ in range(7)]
        assert len(set(pids)) == 3
        assert pids[0] == pids[2] != pids[3] == pids[5] != pids[6]
    finally:
        pool.close()


def test_as_many_jobs_at_once_as_there_are_children() -> None:
    pool = ChildPool(size=3, tasks=TASKS).start()
    try:
        barrier = threading.Barrier(3, timeout=120)

        def job(_: int) -> Any:
            barrier.wait()
            return run(pool, "sleep", {"seconds": 0.5})[0]["pid"]

        with ThreadPoolExecutor(3) as threads:
            assert len(set(threads.map(job, range(3)))) == 3
    finally:
        pool.close()


def test_who_finds_no_free_child_is_told_so(pool: ChildPool) -> None:
    running = threading.Event()

    def occupy() -> None:
        running.set()
        run(pool, "sleep", {"seconds": 1.5})

    thread = threading.Thread(target=occupy)
    thread.start()
    running.wait()
    with pytest.raises(Busy):
        _ask_until_refused(pool)
    thread.join()
    assert run(pool, "echo", {"again": True})[0] == {"again": True}


def _ask_until_refused(pool: ChildPool) -> None:
    """Until the other thread has got the child."""
    while True:
        run(pool, "echo", {}, wait=0.05)


# --- whose turn it is


def begin(turns: Turns, caller: str | None, ago: float = 0.0) -> Turn:
    """A job that begins at once, and is taken to have begun some seconds ago."""
    turn = turns.take(caller, 20)
    assert turn is not None
    assert turn.begun is not None
    turn.begun -= ago
    return turn


def make(turns: Turns, caller: str, seconds: float) -> None:
    """A job that takes so long."""
    turns.give_back(begin(turns, caller, seconds))


def stand_in_line(turns: Turns, caller: str | None, begun: list[Turn]) -> threading.Thread:
    """Ask for a turn in a thread; returns when it waits."""

    def ask() -> None:
        if turn := turns.take(caller, 20):
            begun.append(turn)

    before = turns.waiting
    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: turns.waiting > before, what="one more in the line")
    return thread


def test_a_caller_has_a_share_of_the_children_and_others_do_not_stand_in_their_line() -> None:
    turns, begun = Turns(size=2, share=1), list[Turn]()
    first = begin(turns, "a", 20)
    lines = [stand_in_line(turns, "a", begun) for _ in range(5)]
    assert not turns.take("a", 0.01)
    assert not turns.has_share_left("a")
    second = begin(turns, "b")  # a second child is left to others
    assert not turns.take("c", 0.01), "now all are taken"
    assert turns.has_share_left("c")
    turns.give_back(second)
    turns.give_back(begin(turns, None))  # work without a caller has no share
    for number in range(5):
        turns.give_back(begun[-1] if begun else first)
        wait_until(lambda number=number: len(begun) == number + 1, what="the next of the line")
    for line in lines:
        line.join()
    assert turns.waiting == 0


def test_more_than_their_share_is_for_callers_whose_jobs_are_quick() -> None:
    turns = Turns(size=2, share=1)
    make(turns, "a", 0.1)
    first, second = begin(turns, "a"), begin(turns, "a")
    assert not turns.take("b", 0.01)
    turns.give_back(first)
    second.begun = time.monotonic() - 2
    assert not turns.has_share_left("a"), "one that is under way has become slow"
    third = begin(turns, "b")
    turns.give_back(second)
    turns.give_back(third)
    make(turns, "a", 0.1)
    begin(turns, "a")
    assert not turns.has_share_left("a"), "a slow one was there a moment ago"


def test_a_caller_of_whom_nothing_is_known_has_their_share() -> None:
    turns = Turns(size=2, share=1)
    make(turns, "a", 0.1)
    begin(turns, "b")
    assert not turns.take("b", 0.01)


def test_a_quick_job_speaks_for_those_of_its_task_only() -> None:
    """Reading what a page wants to load takes milliseconds, laying it out may take for ever."""
    turns = Turns(size=2, share=1)
    for _ in range(3):
        reading = turns.take("a", 20, "read")
        assert reading is not None
        turns.give_back(reading)
    assert turns.take("a", 20, "lay out")
    assert not turns.take("a", 0.01, "lay out")
    assert turns.take("a", 0.01, "read")


def test_quick_jobs_in_between_do_not_free_slow_ones() -> None:
    """Two children for 20 s, at the price of one quick job, would else be had again and again."""
    turns = Turns(size=3, share=2)
    make(turns, "a", 0.1)
    heavy = [begin(turns, "a", 20) for _ in range(2)]
    for turn in heavy:
        turns.give_back(turn)
    for _ in range(5):
        make(turns, "a", 0.1)
    heavy = [begin(turns, "a") for _ in range(2)]
    assert not turns.take("a", 0.01)
    assert begin(turns, "b")


def test_callers_of_whom_nothing_counts_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(size=2, share=1)
    for number in range(50):
        make(turns, f"user/{number}", 0.1 if number % 2 else 20)
    ahead = time.monotonic() + 300
    monkeypatch.setattr(time, "monotonic", lambda: ahead)
    make(turns, "a", 0.1)
    assert list(turns._callers) == ["a"]


def test_the_next_child_is_for_whoever_has_fewest_jobs_then_for_who_came_first() -> None:
    turns, begun = Turns(size=3, share=3), list[Turn]()
    first = [begin(turns, caller) for caller in ("a", "a", "b")]
    lines = [stand_in_line(turns, caller, begun) for caller in ("a", "b", "c", None)]
    for number in range(1, 5):
        turns.give_back([*first, *begun][number - 1])
        wait_until(lambda number=number: len(begun) == number, what="the next of the line")
    for line in lines:
        line.join()
    assert [turn.caller for turn in begun] == ["c", "a", "b", None]


def test_a_child_is_left_to_other_callers() -> None:
    """With real children, which come to no end; whose jobs were not begun is told and counted."""
    pool = ChildPool(size=2, share=1, tasks=TASKS).start()
    try:
        with ThreadPoolExecutor(1) as threads:
            endless = threads.submit(run, pool, "sleep", {"seconds": 60}, seconds=5, caller="hostile")
            wait_until(lambda: not pool._turns.has_share_left("hostile"), what="the hostile job")
            before = counted_not_begun()
            with pytest.raises(Busy) as caught:
                run(pool, "echo", {}, wait=0.05, caller="hostile")
            assert caught.value.over_share
            assert run(pool, "echo", {"mine": 1}, caller="other")[0] == {"mine": 1}
            assert not endless.done()
            assert counted_not_begun() == {**before, "share": before["share"] + 1}
            with pytest.raises(JobTimedOut):
                endless.result()
        assert run(pool, "echo", {"again": 1}, caller="hostile")[0] == {"again": 1}
    finally:
        pool.close()


def counted_not_begun() -> dict[str, float]:
    name = "rendering_jobs_not_begun_total"
    return {reason: REGISTRY.get_sample_value(name, {"reason": reason}) or 0.0 for reason in ("busy", "share")}


# --- jobs that begin before everything for them is known


@pytest.fixture
def two(tmp_path: Path) -> Iterator[ChildPool]:
    made = ChildPool(size=2, warm=2, tasks=TASKS, environment={"TMPDIR": str(tmp_path)}).start()
    yield made
    made.close()


Message = tuple[dict[str, Any], list[bytes]]


def ahead(
    pool: ChildPool,
    rest: Callable[[], Message],
    first: Free = Free({"first": 1}, [b"one"]),  # noqa: B008 - frozen
    *,
    seconds: float = 20,
) -> Any:
    answer = pool.run_ahead(BEGIN, first, lambda: Free(*rest()), seconds=seconds, wait=30)
    return answer.values, answer.files


def wait_for_the_beginning(folder: Path) -> None:
    wait_until(lambda: any(folder.glob(f"{FOLDERS}*/begun")), what="the job's beginning")


def test_a_job_begins_before_everything_for_it_is_known(two: ChildPool, tmp_path: Path) -> None:
    def rest() -> Message:
        wait_for_the_beginning(tmp_path)
        other = run(two, "echo", {"second": 2})[0]
        threading.Event().wait(5.2)  # more than the job's own time, which is not counted meanwhile
        return other, [b"two"]

    assert ahead(two, rest, seconds=5) == ({"first": 1, "second": 2}, [b"one", b"two"])
    assert run(two, "echo", {"again": True})[0] == {"again": True}


def test_what_a_job_waits_for_others_is_neither_its_time_nor_its_fault(two: ChildPool, tmp_path: Path) -> None:
    waits: list[float] = []

    def rest() -> Message:
        wait_for_the_beginning(tmp_path)
        asked = time.monotonic()
        threading.Event().wait(1)
        waits.append(time.monotonic() - asked)
        return {}, []

    def crashed() -> Message:
        raise JobCrashed("another", "crash")

    before, began = counted(), time.monotonic()
    ahead(two, rest)
    whole, worked = time.monotonic() - began, counted()["seconds"] - before["seconds"]
    assert 0 < worked < whole - waits[0] / 2
    with pytest.raises(JobCrashed):
        ahead(two, crashed)
    assert {**counted(), "seconds": 0} == {**before, "seconds": 0}
    with pytest.raises(JobCrashed):
        ahead(two, lambda: ({}, []), Free({"crashes": True}))
    assert (counted()["kills"], counted()["failures"]) == (before["kills"] + 1, before["failures"] + 1)


def counted() -> dict[str, float]:
    """What the metrics say of the jobs that begin before everything for them is known, and of children that crashed."""
    names = {
        "seconds": ("rendering_job_seconds_sum", {"task": "begin", "outcome": "done"}),
        "failures": ("rendering_job_seconds_count", {"task": "begin", "outcome": "failed"}),
        "kills": ("rendering_child_kills_total", {"reason": "crash"}),
    }
    return {key: REGISTRY.get_sample_value(name, labels) or 0.0 for key, (name, labels) in names.items()}


def test_the_only_child_is_not_held_for_what_needs_it_too(pool: ChildPool) -> None:
    answer, parts = ahead(pool, lambda: run(pool, "echo", {"second": 2}))
    assert (answer, parts) == ({"first": 1, "second": 2}, [b"one"])


def test_children_are_left_to_those_who_are_waited_for(two: ChildPool) -> None:
    """As many jobs as there are children, each waiting for another job: all come to an end."""
    together = threading.Barrier(2, timeout=120)

    def one(number: int) -> Any:
        def rest() -> Message:
            together.wait()
            return run(two, "echo", {"second": number})

        return ahead(two, rest)[0]["second"]

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(one, (1, 2))) == [1, 2]


def test_when_the_rest_cannot_be_had_the_child_is_replaced(two: ChildPool) -> None:
    def rest() -> Message:
        raise KeyError("not there")

    for _ in range(3):
        with pytest.raises(KeyError, match="not there"):
            ahead(two, rest)
    with ThreadPoolExecutor(2) as threads:
        assert len(set(threads.map(lambda _: run(two, "sleep", {"seconds": 0.3})[0]["pid"], range(2)))) == 2


def test_a_refusal_in_the_beginning_is_an_answer_to_the_whole(two: ChildPool) -> None:
    with pytest.raises(JobRefused, match="No, thank you"):
        ahead(two, lambda: ({}, [b"unused"]), Free({"refused": True}))
    assert run(two, "echo", {"again": True}) == ({"again": True}, [])


def test_children_that_are_not_needed_end_but_one() -> None:
    pool = ChildPool(size=3, tasks=TASKS, idle=0.2).start()
    try:
        with ThreadPoolExecutor(3) as threads:
            pids = set(threads.map(lambda _: run(pool, "sleep", {"seconds": 0.4})[0]["pid"], range(3)))
        assert len(pids) == 3
        wait_until(lambda: len(_alive(pids)) == 1)
        alive = _alive(pids)
        assert pid(pool) in alive
    finally:
        pool.close()


def _alive(pids: set[int]) -> list[int]:
    return [one for one in pids if Path(f"/proc/{one}").exists()]


def test_a_child_sees_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINK_SECRET", "canary")
    monkeypatch.setenv("RENDERING_DATABASE_URL", "postgresql://user:canary@host/db")
    fresh = ChildPool(size=1, tasks=TASKS).start()
    try:
        assert "canary" not in str(run(fresh, "identity")[0]["environment"])
    finally:
        fresh.close()


def test_a_child_connects_nowhere_and_starts_nothing(pool: ChildPool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as canary:
        canary.settimeout(0.2)
        with pytest.raises(JobFailed, match="PermissionError"):
            run(pool, "connect", {"port": canary.getsockname()[1]})
        with pytest.raises(TimeoutError):
            canary.accept()
    with pytest.raises(JobFailed, match="PermissionError"):
        run(pool, "start_program", {})


def test_the_kernel_holds_back_what_python_does_not_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder in C that a hostile picture has taken over reads no keys and reaches nobody, not even in the folder for temporary
    files; that is where everything is here: what the service keeps (VAR_DIR), and the folders of other children."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    secret, font = tmp_path / "var" / "certificates.pem", tmp_path / "fonts" / "font.ttf"
    for one in (secret, font):
        one.parent.mkdir()
        one.write_text("ours")
    mode, cache = secret.stat().st_mode, tmp_path / "cache" / "fontconfig"
    cache.mkdir(parents=True)
    environment = {"FONT_DIRS": str(font.parent), "XDG_CACHE_HOME": str(cache.parent)}
    pool, neighbour = (ChildPool(size=1, tasks=TASKS, environment=environment).start() for _ in range(2))

    def stay() -> None:
        with pytest.raises(JobFailed):
            run(neighbour, "stay", {})

    stays = threading.Thread(target=stay)
    stays.start()
    try:
        (theirs,) = wait_until(lambda: list(tmp_path.glob(f"{FOLDERS}*/left")), what="the neighbour's file")
        arguments = {"path": str(secret), "of_a_child": str(theirs), "font": str(font)}
        done = run(pool, "escape", arguments)[0]
        assert theirs.read_text().isdigit()
        assert not theirs.with_name("x").exists()
        os.kill(int(theirs.read_text()), signal.SIGKILL)
        stays.join()
    finally:
        pool.close()
        neighbour.close()
    worked = {name for name, has_worked in done.items() if has_worked}
    assert worked == {"tgkill itself", "prlimit itself", "fcntl F_GETFL", "folder", "font", "cache"}
    assert len(done) == 41
    assert secret.read_text() == font.read_text() == "ours"
    assert secret.stat().st_mode == mode
    assert [one.name for one in secret.parent.iterdir()] == ["certificates.pem"]
    assert {one.name for one in tmp_path.iterdir()} == {"var", "fonts", "cache"}


def test_where_the_own_folder_cannot_be_used_no_other_is(tmp_path: Path) -> None:
    """Python would take /tmp then, which is everybody's; nothing can be written into this one, as into one on a full disk."""
    script = "from services.rendering.children import confinement; confinement.confine(); open(__import__('sys').argv[1], 'w')"
    environment = {**os.environ, "TMPDIR": "/proc/sys/kernel"}
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "written"], env=environment, capture_output=True, text=True, cwd=TOP
    )
    assert "PermissionError" in done.stderr
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize(
    ("kernel", "words"),
    [(without_landlock, "there is no Landlock"), (without_filters, "seccomp takes no filters")],
)
def test_a_kernel_that_lacks_a_wall_is_told_and_children_work_all_the_same(
    kernel: Callable[[Callable[[], Any]], Any], words: str
) -> None:
    def work() -> tuple[list[str], Any]:
        pool = ChildPool(size=1, tasks=TASKS).start()
        try:
            return confinement.lacking(), run(pool, "echo", {"works": True})[0]
        finally:
            pool.close()

    told, answer = kernel(work)
    assert len(told) == 1
    assert told[0].startswith(words)
    assert answer == {"works": True}
    assert confinement.lacking() == []


def test_a_child_is_let_to_proc_when_the_kernel_has_forgotten_the_inodes_there(pool: ChildPool) -> None:
    """As it does when memory is short: what it makes anew no rule is about. After a job the child reads its own peak."""
    child = pid(pool)
    held = {str(descriptor.readlink()) for descriptor in Path(f"/proc/{child}/fd").iterdir()}
    assert {f"/proc/{child}", "/proc/meminfo", "/proc/cpuinfo", "/proc/filesystems"} <= held
    with contextlib.suppress(OSError):  # the administrator of the machine alone may have it forget at once
        Path("/proc/sys/vm/drop_caches").write_text("2")
    assert pid(pool) == child
    assert pool._idle[0].peak_memory > 0


def test_a_child_ends_with_its_parent() -> None:
    pool = ChildPool(size=1, tasks=TASKS).start()
    try:
        child = pid(pool)
        pool._idle[0]._connection.close()
        wait_until(lambda: _has_ended(child))
    finally:
        pool.close()


def _has_ended(child: int) -> bool:
    """Gone, or a zombie that waits for its parent to ask."""
    stat = Path(f"/proc/{child}/stat")
    return not stat.exists() or stat.read_text().split()[2] == "Z"


IN_A_WORKER = """
from contracts.runtime.worker.patch import patch
patch()
import sys, time
import eventlet
from services.rendering.children.pool import ChildPool, JobTimedOut
from tests.support.rendering.rendering_tasks import run

pool = ChildPool(size=2, tasks="tests.support.rendering.rendering_tasks").start()
for _ in eventlet.GreenPool(2).imap(lambda _: run(pool, "echo", {}), range(2)):
    pass
beats = [0]

def beat():
    while True:
        beats[0] += 1
        eventlet.sleep(0.005)

beating = eventlet.spawn(beat)
pids = {answer[0]["pid"] for answer in eventlet.GreenPool(4).imap(lambda _: run(pool, "sleep", {"seconds": 0.5}), range(4))}
while_sleeping = beats[0]
try:
    run(pool, "spin", {}, seconds=0.5)
    late = False
except JobTimedOut:
    late = True
while_late = beats[0] - while_sleeping
big = run(pool, "echo", {}, [bytes(20_000_000)])[1]
beating.kill()
pool.close()
print(len(pids), late, len(big[0]), while_sleeping > 10, while_late > 10)
"""


PARENT = """
import sys, threading
from services.rendering.children.pool import ChildPool
from tests.support.rendering.rendering_tasks import run

pool = ChildPool(size=2, warm=2, tasks="tests.support.rendering.rendering_tasks", environment={"TMPDIR": sys.argv[1]}).start()
for _ in range(2):
    threading.Thread(target=run, args=(pool, "stay"), kwargs={"seconds": 300}).start()
"""


def test_folders_of_children_that_nobody_ended_are_removed_once_they_are_dead(tmp_path: Path) -> None:
    """By the next pool: at its start, or later where a child was at work then. A folder in use is nobody else's business."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, tmp_path], cwd=TOP)
    wait_until(lambda: len(list(tmp_path.glob(f"{FOLDERS}*/left"))) == 2, what="two children at work")
    first, second = tmp_path.glob(f"{FOLDERS}*/left")
    numbers = {one: int(one.read_text()) for one in (first, second)}
    parent.kill()
    parent.wait()
    try:
        _kill(numbers[first])
        made = ChildPool(size=1, tasks=TASKS, idle=0.2, environment={"TMPDIR": str(tmp_path)}).start()
        assert not first.parent.exists()
        assert second.exists()
        assert len(list(tmp_path.iterdir())) == 2
    finally:
        _kill(numbers[second])
    wait_until(lambda: not second.parent.exists(), what="the clean-up")
    assert run(made, "echo", {"works": True})[0] == {"works": True}
    made.close()
    assert list(tmp_path.iterdir()) == []


def _kill(number: int) -> None:
    os.kill(number, signal.SIGKILL)
    wait_until(lambda: _has_ended(number), what="the end of a child")


def test_green_threads_go_on_while_children_work() -> None:
    """The same code under eventlet: two jobs at once, a late one killed, and another green thread goes on meanwhile."""
    done = subprocess.run([sys.executable, "-c", IN_A_WORKER], capture_output=True, text=True, timeout=60, cwd=TOP)
    assert done.stdout.split() == ["2", "True", "20000000", "True", "True"], done.stderr
