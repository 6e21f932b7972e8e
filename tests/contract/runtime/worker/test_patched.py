"""What a worker relies on of eventlet's patching, function by function, on a pipe, a file and a socket: contracts/README.md lists them.

A green thread waits, and what it waits for is done by another one. If the function stopped the whole process, that one would never run:
the program would be ended by its alarm. Nothing is timed.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]

BEGIN = """
import signal
signal.alarm(600)
import _socket, posix
asked, told = posix.pipe()
look_up = _socket.getaddrinfo
def slow(*arguments):
    posix.read(asked, 1)  # not patched: it stops the real thread that it is in
    return look_up(*arguments)
_socket.getaddrinfo = slow

from contracts.runtime.worker.patch import patch
patch()
import fcntl, json, os, queue, select, socket, subprocess, sys, tempfile, threading, time
import eventlet
cases = {}

def case(function):
    cases[function.__name__] = function

def meanwhile(wait, end, *arguments):
    # What `wait` returns, which another green thread makes possible.
    waiting = eventlet.spawn(wait)
    eventlet.sleep(0)
    eventlet.spawn(end, *arguments)
    return waiting.wait()

def run_alone(work):
    # Whether no other green thread ran while it worked.
    others = []
    eventlet.spawn(others.append, "ran")
    work()
    return not others

def full_pipe():
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    posix.write(write, b"x" * 4096)
    return read, write
"""
CASES = """
@case
def time_sleep():
    order = []
    eventlet.spawn(order.append, "other")
    time.sleep(0.001)
    return order == ["other"]

@case
def socket_recv():
    ours, theirs = socket.socketpair()
    return meanwhile(lambda: ours.recv(10), theirs.send, b"word") == b"word"

@case
def socket_sendall():
    ours, theirs = socket.socketpair()
    size = 5_000_000
    def take():
        taken = 0
        while taken < size:
            taken += len(theirs.recv(100_000))
    return meanwhile(lambda: ours.sendall(b"x" * size), take) is None

@case
def socket_accept():
    server = socket.create_server(("127.0.0.1", 0))
    other = socket.socket()
    return meanwhile(server.accept, other.connect, server.getsockname()) is not None

@case
def socket_getaddrinfo():
    return bool(meanwhile(lambda: socket.getaddrinfo("127.0.0.1", 80), posix.write, told, b"!"))

@case
def select_select():
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    on_socket = meanwhile(lambda: select.select([ours], [], []), theirs.send, b"word")
    on_pipe = meanwhile(lambda: select.select([read], [], []), posix.write, write, b"word")
    return (on_socket[0], on_pipe[0]) == ([ours], [read])

@case
def select_poll():
    # pika would choose them, and stop the process.
    return not hasattr(select, "poll") and not hasattr(select, "epoll")

@case
def os_read():
    read, write = os.pipe()
    with tempfile.TemporaryFile() as file:
        file.write(b"written")
        file.seek(0)
        return meanwhile(lambda: os.read(read, 10), posix.write, write, b"word") == b"word" and run_alone(
            lambda: os.read(file.fileno(), 10)
        )

@case
def os_write():
    # At most what fits into an empty pipe (4,096): a longer write to one that blocks stops the process.
    read, write = full_pipe()
    with tempfile.TemporaryFile() as file:
        return meanwhile(lambda: os.write(write, b"y" * 4096), posix.read, read, 4096) == 4096 and run_alone(
            lambda: os.write(file.fileno(), b"y" * 4096)
        )

@case
def builtins_open():
    # It is not patched: whoever reads or writes a file that way keeps the others waiting for the disk, and for nothing else.
    with tempfile.NamedTemporaryFile() as file:
        def work():
            with open(file.name, "wb") as other:
                other.write(b"x" * 1_000_000)
            with open(file.name, "rb") as other:
                other.read()
        return run_alone(work)

@case
def posix_write():
    # It is not patched either, which the log relies on: no line ends in another green thread.
    read, write = os.pipe()
    return run_alone(lambda: posix.write(write, b"line"))

@case
def subprocess_wait():
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    return meanwhile(child.wait, child.stdin.close) == 0

@case
def threading_thread():
    # A green thread, which is why a library's own ones do no harm.
    real, seen = eventlet.patcher.original("_thread").get_ident, []
    thread = threading.Thread(target=lambda: seen.append(real()))
    thread.start()
    return meanwhile(thread.join, eventlet.sleep) is None and seen == [real()]

@case
def threading_thread_join():
    # For so long and no longer, as a library's shutdown does it.
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    given_up = [thread.join(0.001), thread.is_alive()]
    event.set()
    return given_up == [None, True] and (thread.join(600), thread.is_alive()) == (None, False)

@case
def threading_event():
    event = threading.Event()
    return meanwhile(event.wait, event.set)

@case
def threading_lock():
    from contracts.runtime.worker.lock import Lock
    lock = threading.Lock()
    lock.acquire()
    return isinstance(lock, Lock) and meanwhile(lock.acquire, lock.release)

@case
def threading_condition():
    condition, ready = threading.Condition(), []
    def wait():
        with condition:
            return condition.wait_for(lambda: ready)
    def end():
        with condition:
            ready.append(True)
            condition.notify_all()
    return bool(meanwhile(wait, end))

@case
def queue_queue():
    waiting = queue.Queue()
    return meanwhile(waiting.get, waiting.put, "word") == "word"

for name, function in cases.items():
    print(json.dumps([name, bool(function())]), flush=True)
"""


def told() -> dict[str, str]:
    """What contracts/README.md says of each function: name and where we rely on it."""
    text = (ROOT / "contracts" / "README.md").read_text()
    table = text[text.index("| Patched |") :].split("\n\n")[0]
    return dict(re.findall(r"^\| `([\w.]+)`[^|]* \| (.+) \|$", table, re.MULTILINE))


@pytest.fixture(scope="module")
def found() -> dict[str, bool]:
    program = [sys.executable, "-W", "ignore", "-c", BEGIN + CASES]
    ran = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    answers = dict(json.loads(line) for line in ran.stdout.splitlines())
    assert ran.returncode == 0, (answers, ran.stderr)
    return answers


@pytest.mark.parametrize("function", re.findall(r"@case\ndef (\w+)\(", CASES))
def test_it_is_as_we_rely_on(found: dict[str, bool], function: str) -> None:
    assert found[function] is True


def test_each_is_named() -> None:
    assert sorted(name.replace(".", "_").lower() for name in told()) == sorted(re.findall(r"@case\ndef (\w+)\(", CASES))
