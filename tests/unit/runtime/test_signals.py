"""SIGTERM at the worst moments: it must not be lost, and must not stop the thread that handles it."""

import signal
import subprocess
import sys
import threading
from datetime import timedelta

from contracts.runtime.data.due_work.background import Every

WHILE_WAITING = """
import os, signal, sys, threading, time
from contracts.runtime.process import _signals

for moment in range(1, 15):
    stop, calls = _signals(25), 0

    def count(frame, event, argument):
        global calls
        calls += event == "call"
        if calls == moment:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGTERM)

    def end():
        global calls
        calls = 100
        if not stop.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    # On its way into wait, the main thread makes a few calls at most. Where it made fewer, the signal comes while it waits.
    late = threading.Timer(0.2, end)
    late.start()
    sys.setprofile(count)
    stop.wait()
    sys.setprofile(None)
    late.cancel()
    assert stop.is_set()
print("told each time")
"""

IN_ANOTHER_THREAD = """
import os, signal, threading, time
from contracts.runtime.process import _signals

stop = _signals(25)
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # in this thread and those that it starts, not in the one above
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
stop.wait()
print("told")
"""

WHILE_STARTING = """
import signal, weakref
from contracts.runtime import main

class Something: pass

signal.signal(signal.SIGTERM, main._end)
kept = Something()
watching = weakref.ref(kept, lambda _: signal.raise_signal(signal.SIGTERM))
del kept
print("still there")
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired as stuck:
        raise AssertionError(f"it does not end: {stuck.stdout!r}") from None


def test_a_signal_on_the_way_into_waiting_is_heard() -> None:
    """With ``threading.Event``, whose lock the main thread holds for a moment, the handler waited for itself."""
    done = run(WHILE_WAITING)
    assert (done.returncode, done.stdout) == (0, "told each time\n"), done.stderr


def test_a_signal_that_the_system_gives_to_another_thread_is_heard() -> None:
    assert run(IN_ANOTHER_THREAD).stdout == "told\n"


def test_a_signal_while_the_process_starts_ends_it_wherever_it_is() -> None:
    """An exception in a weak reference's callback is printed and forgotten."""
    done = run(WHILE_STARTING)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


AT_THE_WORST = """
import signal, threading, time
from contracts.runtime import process

process.ENDING_SECONDS = 0
process._signals(1)
signal.raise_signal(signal.SIGTERM)
lock = threading.Lock()
lock.acquire()
lock.acquire()
"""


def test_whatever_goes_wrong_the_process_ends() -> None:
    assert run(AT_THE_WORST).returncode == -signal.SIGALRM


BEFORE_ALL_IS_STARTED = """
from contracts.runtime.worker.patch import patch

patch()
import signal

import eventlet

from contracts.runtime.worker.serve import _stop_on_signal


class Runner:
    started = False

    def stop(self):
        assert self.started
        print("stopped in good order")


runner = Runner()
stop = _stop_on_signal(runner, 5)
signal.raise_signal(signal.SIGTERM)
eventlet.sleep(0.1)
runner.started = True
stop.may_begin()
print(stop.wait())
"""


def test_a_worker_that_is_just_starting_is_stopped_once_it_has_started() -> None:
    done = run(BEFORE_ALL_IS_STARTED)
    assert (done.returncode, done.stdout) == (0, "stopped in good order\nTrue\n"), done.stderr


def test_a_loop_that_is_told_to_stop_as_it_begins_a_turn_does_not_wait_for_the_next_one() -> None:
    loop = Every("hourly", timedelta(hours=1), lambda: None)
    clear = loop._woken.clear

    def told_just_before() -> None:
        loop.stop()
        clear()

    loop._woken.clear = told_just_before  # type: ignore[method-assign]
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    thread.join(120)
    assert not thread.is_alive()
