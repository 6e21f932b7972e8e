"""What is done to a suite: each fault has a beginning, some seconds, and an end after which everything is up again."""

import contextlib
import random
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.harness.load import Hooks
from tests.chaos.harness.messages import Messages
from tests.chaos.harness.world import OwnWorld, chosen

WORKERS = ("templates", "submissions", "rendering", "notifications", "webhooks")


@dataclass
class Scene:
    """What a fault may touch."""

    world: OwnWorld
    hooks: Hooks
    messages: Messages
    random: random.Random
    latest_step: int
    """Of a process, from its start, at which it is killed."""
    steps: list[tuple[str, str]] = field(default_factory=list)
    """Who is still to be killed at which step."""


Happening = Callable[[Scene], AbstractContextManager[str]]


@dataclass(frozen=True)
class Fault:
    """``lasts`` is between how many seconds it goes on; ``weight`` how often it is drawn. ``touches``: what was away for its
    time, of ``broker``, ``database``, ``files``, ``mail``, ``receiver``, ``gateway``."""

    name: str
    happening: Happening
    lasts: tuple[float, float]
    weight: float = 1.0
    touches: frozenset[str] = frozenset()
    possible: Callable[[OwnWorld], bool] = lambda _: True


FAULTS: dict[str, Fault] = {}


def fault(
    name: str, lasts: tuple[float, float], *touches: str, **more: Any
) -> Callable[[Callable[[Scene], Iterator[str]]], Happening]:
    def register(function: Callable[[Scene], Iterator[str]]) -> Happening:
        happening = contextlib.contextmanager(function)
        FAULTS[name] = Fault(name, happening, lasts, touches=frozenset(touches), **more)
        return happening

    return register


@fault("kill", (0.2, 3), weight=6)
def kill(scene: Scene) -> Iterator[str]:
    """kill -9 of one process."""
    name = chosen(scene.world, scene.random)
    scene.world.suite.kill_program(name)
    yield name
    scene.world.suite.start_program(name)


STEPS = ("before-commit", "commit", "before-publish", "publish", "before-ack", "ack")
LATEST_STEP = 8


ENDS_WITHIN = 120.0
"""Seconds. It takes 25 at most on a machine of its own."""
LOST_WITHIN = 20.0
"""Seconds; a service that has no message by then may get none while it is down."""
DOUBLED_WITHIN = 240.0
"""Seconds; by then something has been published, as everything is up."""
STEP_WITHIN = 25.0
"""Seconds; a process that has not come to its step by then has nothing to do."""


@fault("step", (0, 0), weight=3)
def step(scene: Scene) -> Iterator[str]:
    """kill -9 of one process just before or after a commit, a message sent, a message acknowledged. ``--faults step`` goes
    through all of them, each process at each of its first steps."""
    suite = scene.world.suite
    if not scene.steps:
        numbers = range(1, scene.latest_step + 1)
        scene.steps += [(name, f"{kind}:{at}") for name in suite.programs for kind in STEPS for at in numbers]
        scene.random.shuffle(scene.steps)
    name, kill_at = scene.steps.pop()
    suite.kill_program(name)
    suite.next_start[name] = {"CHAOS_KILL_AT": kill_at}
    suite.start_program(name)
    armed = suite.programs[name].process
    yield f"{name} {kill_at}"
    assert armed is not None
    try:
        armed.wait(STEP_WITHIN)
        scene.world.steps.append(f"{name} {kill_at}")
    except subprocess.TimeoutExpired:
        suite.kill_program(name)
        suite.start_program(name)


@fault("kill-all", (0.2, 2), "gateway")
def kill_all(scene: Scene) -> Iterator[str]:
    """kill -9 of everything that is ours, and a cold start in some order."""
    names = list(scene.world.suite.programs)
    for name in names:
        scene.world.suite.kill_program(name)
    scene.random.shuffle(names)
    yield " ".join(names)
    for name in names:
        scene.world.suite.start_program(name)


@fault("stop", (10, 40), "gateway", weight=2)
def stop(scene: Scene) -> Iterator[str]:
    """SIGSTOP: the process is there and does nothing."""
    name = chosen(scene.world, scene.random)
    scene.world.suite.signal_all_of(name, signal.SIGSTOP)
    yield name
    scene.world.suite.signal_all_of(name, signal.SIGCONT)


@fault("restart", (0.1, 1), weight=1)
def restart(scene: Scene) -> Iterator[str]:
    """SIGTERM, as a deployment does it; whatever does not end is a violation."""
    name = chosen(scene.world, scene.random)
    _end(scene.world, name)
    yield name
    scene.world.suite.start_program(name)


def _end(world: OwnWorld, name: str) -> None:
    program = world.suite.programs[name]
    program.wanted = False
    assert program.process is not None
    program.process.terminate()
    try:
        program.process.wait(ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        world.deaf.append(f"{name} did not end within {ENDS_WITHIN:.0f} s of SIGTERM")
        program.process.kill()
        program.process.wait()


@fault("broker-kill", (1, 10), "broker", weight=2)
def broker_kill(scene: Scene) -> Iterator[str]:
    scene.world.broker.kill()
    yield "the broker"
    scene.world.broker.start()


@fault("broker-stop", (5, 30), "broker")
def broker_stop(scene: Scene) -> Iterator[str]:
    node = scene.world.broker.pid
    _signal(node, signal.SIGSTOP)
    yield "the broker"
    _signal(node, signal.SIGCONT)


@fault("broker-wipe", (1, 4), "broker", weight=2)
def broker_wipe(scene: Scene) -> Iterator[str]:
    """The broker comes back without anything it knew."""
    scene.world.broker.kill()
    shutil.rmtree(scene.world.broker.folder / "mnesia")
    yield "the broker's data"
    scene.world.broker.start()


@fault("broker-alarm", (5, 25), "broker")
def broker_alarm(scene: Scene) -> Iterator[str]:
    """As if its disk were full: publishers wait without an answer."""
    scene.world.broker.evaluate('rabbit_disk_monitor:set_disk_free_limit("500GB").')
    yield "the broker"
    scene.world.broker.evaluate('rabbit_disk_monitor:set_disk_free_limit("50MB").')


def _on_postgresql(world: OwnWorld) -> bool:
    return world.postgres is not None


@fault("database-kill", (0.5, 5), "database", weight=2, possible=_on_postgresql)
def database_kill(scene: Scene) -> Iterator[str]:
    scene.world.kill_postgres()
    yield "PostgreSQL"
    scene.world.revive_postgres()


@fault("database-cut", (1, 15), "database", weight=2, possible=_on_postgresql)
def database_cut(scene: Scene) -> Iterator[str]:
    """All connections are reset, and new ones refused."""
    proxy = scene.world.proxies["database"]
    proxy.mode = "refuse"
    proxy.cut()
    yield "the way to PostgreSQL"
    proxy.mode = "pass"


@fault("database-silent", (5, 25), "database", possible=_on_postgresql)
def database_silent(scene: Scene) -> Iterator[str]:
    """Connections stay open, and no answer comes."""
    proxy = scene.world.proxies["database"]
    proxy.mode = "blackhole"
    yield "the way to PostgreSQL"
    proxy.cut()
    proxy.mode = "pass"


@fault("database-read-only", (3, 15), "database", possible=_on_postgresql)
def database_read_only(scene: Scene) -> Iterator[str]:
    """As on a standby before it is promoted."""
    _configure(scene.world, "SET default_transaction_read_only = on")
    yield "PostgreSQL"
    _configure(scene.world, "RESET default_transaction_read_only")


def _configure(world: OwnWorld, change: str) -> None:
    import psycopg

    assert world.postgres is not None
    where = f"postgresql://postgres@127.0.0.1:{world.postgres.port}/postgres"
    options = "-c default_transaction_read_only=off"
    with psycopg.connect(where, autocommit=True, options=options) as connection:
        connection.execute("ALTER SYSTEM " + change)
        connection.execute("SELECT pg_reload_conf()")


@fault("database-locked", (5, 25), "database", weight=2, possible=lambda world: world.kind == "sqlite")
def database_locked(scene: Scene) -> Iterator[str]:
    """Somebody holds SQLite's write lock: a backup by hand, a forgotten shell."""
    service = scene.random.choice([*WORKERS, "gateway"])
    path = scene.world.suite.var_dir / "databases" / f"{service}.sqlite"
    connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield service
    finally:
        connection.close()


@fault("files-away", (3, 20), "files", possible=lambda world: world.store is not None)
def files_away(scene: Scene) -> Iterator[str]:
    """The object store: refused, or silent."""
    proxy = scene.world.proxies["files"]
    proxy.mode = scene.random.choice(["refuse", "blackhole"])
    proxy.cut()
    yield f"the object store ({proxy.mode})"
    proxy.mode = "pass"
    proxy.cut()


@fault("mail-away", (3, 20), "mail")
def mail_away(scene: Scene) -> Iterator[str]:
    proxy = scene.world.proxies["mail"]
    proxy.mode = scene.random.choice(["refuse", "blackhole"])
    proxy.cut()
    yield f"the mail server ({proxy.mode})"
    proxy.mode = "pass"
    proxy.cut()


@fault("receiver-away", (1, 4), "receiver")
def receiver_away(scene: Scene) -> Iterator[str]:
    """Both receivers answer 503."""
    scene.hooks.away = True
    yield "the receivers"
    scene.hooks.away = False


@fault("disk-full", (3, 15), "database", "files", weight=2, possible=lambda world: bool(world.mounted))
def disk_full(scene: Scene) -> Iterator[str]:
    """No room: databases, files and temporary files at once, or one of them."""
    world = scene.world
    folders = world.mounted if scene.random.random() < 0.3 else [scene.random.choice(world.mounted)]
    with contextlib.ExitStack() as stack:
        for folder in folders:
            stack.enter_context(world.full_disk(folder))
        yield " ".join(folder.name for folder in folders)
    if world.postgres is not None:
        # Without room for its journal PostgreSQL ends itself, and stays down.
        with contextlib.suppress(RuntimeError):
            world.postgres.stop()
        world.revive_postgres()


@fault("clock", (5, 20))
def clock(scene: Scene) -> Iterator[str]:
    """All clocks leap together, or one differs from the others by half a minute."""
    names = list(scene.world.suite.programs)
    seconds = scene.random.choice([3600, -600, 30, -30])
    if abs(seconds) == 30:
        names = [scene.random.choice(names)]
    for name in names:
        scene.world.suite.leap(name, seconds)
    yield f"{seconds:+d} s for {' '.join(names) if len(names) == 1 else 'all'}"
    for name in names:
        scene.world.suite.leap(name, 0)


@fault("lose", (1, 4), weight=2)
def lose(scene: Scene) -> Iterator[str]:
    """Messages vanish from a queue while nobody takes them."""
    service = scene.random.choice(["webhooks", "notifications", "rendering", "submissions"])
    replicas = [name for name in scene.world.suite.programs if name == service or name.startswith(f"{service}-")]
    for name in replicas:
        scene.world.suite.kill_program(name)
    lost: list[str] = []
    thread = threading.Thread(
        target=lambda: lost.extend(scene.messages.lose(service, scene.random, 3, within=LOST_WITHIN))
    )
    thread.start()
    yield service
    thread.join()
    for name in replicas:
        scene.world.suite.start_program(name)
    scene.messages.lost += lost


@fault("double", (0, 1), weight=2)
def double(scene: Scene) -> Iterator[str]:
    """What was published lately is published again, in another order; some of it many times."""
    yield f"{scene.messages.double(scene.random, within=DOUBLED_WITHIN)} messages"


@fault("older", (10, 25), possible=lambda world: world.previous is not None)
def older(scene: Scene) -> Iterator[str]:
    """A process of the commit before beside the others."""
    suite = scene.world.suite
    name = chosen(scene.world, scene.random)
    assert scene.world.previous is not None
    _end(scene.world, name)
    suite.code[name] = scene.world.previous
    suite.start_program(name)
    yield name
    del suite.code[name]
    _end(scene.world, name)
    suite.start_program(name)


def _signal(pid: int, number: int) -> None:
    import os

    os.kill(pid, number)


def named(names: list[str] | None) -> None:
    """ValueError for a name that there is not."""
    if unknown := sorted(set(names or ()) - FAULTS.keys()):
        raise ValueError(f"no fault is called {', '.join(unknown)}; there are {', '.join(FAULTS)}")


def once_each(world: OwnWorld, names: list[str] | None, random: random.Random) -> list[Fault]:
    """Each of those that are possible, in some order."""
    known = [each for each in FAULTS.values() if each.possible(world) and (names is None or each.name in names)]
    random.shuffle(known)
    return known


def drawn(world: OwnWorld, names: list[str] | None, random: random.Random) -> Callable[[], Fault]:
    """Draws one fault after the other."""
    known = once_each(world, names, random)
    waiting = list(known)

    def draw() -> Fault:
        # Each kind once, then by their weights, without any going missing for long.
        if not waiting:
            waiting.extend(each for each in known for _ in range(round(each.weight)))
            random.shuffle(waiting)
        return waiting.pop()

    return draw


def pause(seconds: float, until: float) -> None:
    """Sleep, but not beyond the moment ``until`` (monotonic)."""
    time.sleep(max(0.0, min(seconds, until - time.monotonic())))
