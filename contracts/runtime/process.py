"""The processes that are plain Python: ``background``, ``migrate``, and the gateway's ``serve``."""

import contextlib
import importlib
import importlib.util
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pydantic
import sqlalchemy as sa

from contracts.errors import CannotStart, ServiceError
from contracts.formats.model_faults import reason_of
from contracts.runtime import garbage, migrations, waiting
from contracts.runtime.bus import catching_up, declare, outbox, suspects
from contracts.runtime.bus.broker import Broker, user_of
from contracts.runtime.bus.client import shared_client
from contracts.runtime.bus.marks import subscriptions_of
from contracts.runtime.bus.publisher import Publisher
from contracts.runtime.bus.relay import Relay
from contracts.runtime.bus.topology import HINT_EXCHANGE, exclusive_queue_name
from contracts.runtime.clock import now, without_leaps
from contracts.runtime.data import scrubbing, search
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Every, Loop
from contracts.runtime.data.due_work.watch import Watch
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.data.tables import answers, heartbeats, inbox
from contracts.runtime.monitoring import build, liveness, observe
from contracts.runtime.restored import high_water
from contracts.runtime.settings import SecretFileFaults, ServiceSettings

log = observe.logger(__name__)

HEARTBEAT_EVERY = timedelta(seconds=5)
HEARTBEAT_MISSED_AFTER = timedelta(seconds=30)
BUILD_BEAT = "background of build "
"""Begins the name of the heartbeat that says which version and revision the background process is of. There is one for each
while another takes its place."""
ANSWERS_KEPT = timedelta(hours=48)
INBOX_KEPT = timedelta(days=90)

SWITCH_INTERVAL = 0.0005
"""Seconds for which a thread computes while others want to. A loop that is woken waits for those that are computing: with
Python's 5 ms, longer than its own work takes."""

ENDING_SECONDS = 12
"""The time that ending may take besides finishing what is under way: two connections to a broker that may be silent, 5 s
each."""


def settings_of(name: str) -> ServiceSettings:
    """The settings of ``services.<name>`` from the environment; ends the process with a plain list of what is wrong."""
    settings = settings_or_faults(name)
    if isinstance(settings, ServiceSettings):
        return settings
    print(f"{name}: the settings are not complete:", file=sys.stderr)  # noqa: T201
    for fault in settings:
        print(f"  {fault}", file=sys.stderr)  # noqa: T201
    sys.exit(2)


def settings_or_faults(name: str) -> ServiceSettings | list[str]:
    """The settings of ``services.<name>`` from the environment, or what is wrong with each: ``<VARIABLE>: <words>``."""
    cls: type[ServiceSettings] = importlib.import_module(f"services.{name}.settings").Settings
    try:
        return cls.from_environment()
    except SecretFileFaults as error:
        return error.faults
    except pydantic.ValidationError as error:
        problems = error.errors(include_input=False, include_url=False)
    names = [environment_name(cls, ".".join(str(part) for part in problem["loc"])) for problem in problems]
    return [f"{name}: {reason_of(problem)}" for name, problem in zip(names, problems, strict=True)]


def environment_name(cls: type[ServiceSettings], field: str) -> str:
    """Name the environment variable of a setting."""
    info = cls.model_fields.get(field)
    alias = info.validation_alias if info else None
    return str(alias or field).upper()


def check_schema(name: str, database_url: str) -> None:
    """Raises ServiceError when the schema is older than this code."""
    if (problem := migrations.pending(name, database_url)) is not None:
        raise ServiceError("unavailable", problem)


def check_start(name: str, settings: ServiceSettings, database: Database) -> None:
    """Check what the service itself requires (``services.<name>.starting.check``, if there is one). Raises CannotStart."""
    if importlib.util.find_spec(f"services.{name}.starting") is not None:
        importlib.import_module(f"services.{name}.starting").check(settings, database)


def must_start(name: str, settings: ServiceSettings, database: Database) -> None:
    """As ``check_start``, but ends the process with the plain reason."""
    try:
        check_start(name, settings, database)
    except CannotStart as reason:
        print(f"{name}: {reason}", file=sys.stderr)  # noqa: T201
        sys.exit(2)


def problems_of(database: Database, name: str, *, background: bool = True) -> list[str]:
    """List what keeps a service from working: its database takes no changes, or (``background``) its background process has not
    written its heartbeat for 30 s. Empty when all is well. Raises ServiceError when the database does not answer."""
    if _seen_lately(database, name):
        return []
    try:
        write_something(database, name)
    except ServiceError as error:
        return [f"its database takes no changes ({error.message})"]
    missing = f"its background process has not been seen for {HEARTBEAT_MISSED_AFTER.total_seconds():.0f} s"
    return [missing] if background else []


def write_something(database: Database, name: str) -> None:
    """Change a row that means nothing. Raises ServiceError when the database takes no changes."""
    database.write_unsynced(_beat, f"{name}, whether changes are taken")


@dataclass(frozen=True)
class _Look:
    """At a heartbeat: what it said, and the monotonic moments of the look and (estimated) of the heartbeat."""

    beat_at: datetime
    looked_at: float
    alive_at: float


_looks: dict[tuple[str, str], _Look] = {}


def _seen_lately(database: Database, name: str) -> bool:
    """A heartbeat that changed since the last look was written since then. Its own time says more only at the first look:
    it is by another clock, which may differ, or have been put forward or back meanwhile."""
    beat_at = database.read(lambda session: session.scalar(sa.select(heartbeats.c.at).where(heartbeats.c.name == name)))
    if beat_at is None:
        return False
    looked_at, last = time.monotonic(), _looks.get((str(database.url), name))
    alive_at = looked_at - max(0.0, (now() - beat_at).total_seconds())
    if last is not None:
        alive_at = last.alive_at if beat_at == last.beat_at else max(alive_at, last.looked_at)
    _looks[str(database.url), name] = _Look(beat_at, looked_at, alive_at)
    quiet: float = looked_at - alive_at
    return quiet < HEARTBEAT_MISSED_AFTER.total_seconds()


@dataclass
class _Part:
    """One service within the background process."""

    name: str
    settings: ServiceSettings
    database: Database
    loops: list[Loop]

    def wake(self, tables: Set[str]) -> None:
        for loop in self.loops:
            if loop.table in tables:
                loop.wake()


def background(names: Sequence[str]) -> int:
    """Run the loops of these services until SIGTERM; then finish what is under way, for ``drain_seconds`` at most."""
    first = settings_of(names[0])
    observe.setup_process(names[0] if len(names) == 1 else "background", first.log_level)
    build.tell(names)
    urls = {name: settings_of(name).amqp_url for name in names}
    buses = {url: _Bus(url, [name for name in names if urls[name] == url]) for url in urls.values()}
    parts = [_part(name, buses[urls[name]].publisher) for name in names]
    stop = _signals(first.drain_seconds)
    for bus in buses.values():
        bus.listen({part.name: part.wake for part in parts})
    threads = [threading.Thread(target=loop.run, name=loop.name, daemon=True) for part in parts for loop in part.loops]
    health = liveness.start(first.health_host, first.health_port, lambda: _problems(parts, buses.values()))
    garbage.keep_all()
    sys.setswitchinterval(SWITCH_INTERVAL)
    for thread in threads:
        thread.start()
    log.info("background.started", services=list(names), loops=len(threads))
    stop.wait()
    drained = _drain(parts, threads, first.drain_seconds)
    for part in parts:
        look_at_mark(part.name, part.database, part.settings.blob_url, patience=1.0)
    for bus in buses.values():
        bus.close()
    if health is not None:
        health.close()
    log.info("background.stopped", drained=drained)
    return 0


def _part(name: str, publisher: Publisher) -> _Part:
    settings = settings_of(name)
    waiting.wait_for(f"{name} schema", lambda: check_schema(name, settings.database_url))
    database = Database(settings.database_url, pool_size=settings.database_pool_size)
    must_start(name, settings, database)
    store = BlobStore.from_url(settings.blob_url)
    look_at_mark(name, database, settings.blob_url)
    module = importlib.import_module(f"services.{name}.background")
    loops: list[Loop] = [
        # The first to be woken: somebody else waits for what it publishes.
        Relay(name, database, publisher, apart=getattr(module, "TOLD_APART", 0.0)),
        *module.loops(settings, database, store),
        Every(
            f"{name} mark",
            high_water.LOOK_EVERY,
            high_water.Keeper(name, database, high_water.store_at(settings.blob_url)),
        ),
        Every(f"{name} heartbeat", HEARTBEAT_EVERY, lambda: database.write_unnoticed(_beat_of, name)),
        Every(f"{name} scrub", scrubbing.EVERY, lambda: scrubbing.scrub(database)),
        Every(f"{name} clean-up", timedelta(hours=1), lambda: _clean_up_all(database, settings)),
    ]
    if (service := declare.service_class(name)) is not None and (subscriptions := subscriptions_of(service)):
        check = timedelta(seconds=settings.events_check_seconds)
        bus = shared_client(settings.amqp_url)
        loops.append(catching_up.CatchingUp(name, database, bus, publisher, subscriptions.values(), check))
    loops.append(Watch(name, database, loops))
    part = _Part(name, settings, database, loops)
    for loop in loops:
        loop.poll_seconds = settings.poll_seconds
    database.on_commit.append(part.wake)
    return part


def look_at_mark(name: str, database: Database, blob_url: str, *, patience: float = high_water.START_PATIENCE) -> None:
    """Deal with a database that was restored, before anything is written there: ``serve``, too, may be the first to give out
    ids. A file store that does not answer, or another process that is at it for ``patience`` seconds, keeps nobody from
    starting: the background process goes on looking."""
    try:
        high_water.keep(name, database, high_water.store_at(blob_url), patience=patience)
    except (ServiceError, sa.exc.SQLAlchemyError, OSError) as error:
        log.warning("mark.not_kept", service=name, reason=str(error).partition("\n")[0])


def _drain(parts: list[_Part], threads: list[threading.Thread], seconds: float) -> bool:
    for part in parts:
        for loop in part.loops:
            loop.stop()
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


def _problems(parts: list[_Part], buses: Collection["_Bus"]) -> list[str]:
    messages = []
    if not all(bus.publisher.connected for bus in buses):
        messages.append("events are not relayed: not connected to the message broker")
    if not all(bus.hints.connected for bus in buses):
        messages.append("hints are not heard: not connected to the message broker")
    for part in parts:
        try:
            module = importlib.import_module(f"services.{part.name}.background")
            looks: list[Callable[[Database], list[str]]] = [
                getattr(module, "problems", lambda _: []),
                catching_up.problems,
            ]
            problems = problems_of(part.database, part.name)
            problems += [problem for look in looks for problem in look(part.database)]
            messages += [f"{part.name}: {problem}" for problem in problems]
        except ServiceError as error:
            messages.append(f"{part.name}: {error.message}")
    return messages


def _beat(session: Any, name: str) -> None:
    if session.execute(heartbeats.update().where(heartbeats.c.name == name).values(at=now())).rowcount == 0:
        session.execute(heartbeats.insert().values(name=name, at=now()))


def _beat_of(session: Any, name: str) -> None:
    _beat(session, name)
    _beat(session, f"{BUILD_BEAT}{build.version()} {build.revision()}")


def _clean_up_all(database: Database, settings: ServiceSettings) -> None:
    database.write(_clean_up)
    retention = timedelta(hours=settings.events_kept_hours)
    while database.write(outbox.trim_told, without_leaps(retention) - retention):
        pass


def _clean_up(session: Any) -> None:
    session.execute(answers.delete().where(answers.c.at < without_leaps(ANSWERS_KEPT) - ANSWERS_KEPT))
    session.execute(inbox.delete().where(inbox.c.at < without_leaps(INBOX_KEPT) - INBOX_KEPT))
    suspects.remove_old(session)
    old_build = heartbeats.c.name.startswith(BUILD_BEAT, autoescape=True)
    session.execute(heartbeats.delete().where(old_build, heartbeats.c.at < now() - timedelta(days=1)))


class _Bus:
    """The connections that services with the same user of the broker share: one for what they publish, one for hints."""

    def __init__(self, amqp_url: str, names: Sequence[str]) -> None:
        self._names = names
        self.publisher = Publisher(amqp_url, name=f"relay-{'-'.join(names)}").start()
        self.hints = _HintListener(user_of(amqp_url))
        self._broker = Broker(amqp_url, [self.hints], name="hints")

    def listen(self, wakes: dict[str, Callable[[Set[str]], None]]) -> None:
        """Wake these services by their hints from now on."""
        self.hints.wakes = {name: wakes[name] for name in self._names}
        self._broker.start()

    def close(self) -> None:
        self._broker.close()
        self.publisher.close()


class _HintListener:
    """Hears 'look at this table of yours now' from ``serve``. Every background process hears every hint."""

    def __init__(self, user: str) -> None:
        self.wakes: dict[str, Callable[[Set[str]], None]] = {}
        self.connected = False
        self._user = user

    def opened(self, channel: Any) -> None:
        def ready(_frame: Any) -> None:
            self.connected = True

        queue = exclusive_queue_name("hints", self._user)
        if declare.may_declare(self._user):
            declare.declare_exchange(channel, HINT_EXCHANGE)
        channel.queue_declare(queue, exclusive=True, auto_delete=True, arguments={"x-max-length": 10})
        for name in self.wakes:
            channel.queue_bind(queue, HINT_EXCHANGE, name)
        channel.basic_consume(queue, self._on_hint, auto_ack=True, callback=ready)

    def lost(self, _reason: str) -> None:
        """Then polling has to do."""
        self.connected = False

    def _on_hint(self, _channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        if (wake := self.wakes.get(method.routing_key)) is not None:
            wake({body.decode(errors="replace")})


def migrate(names: Sequence[str]) -> int:
    """Bring the databases to this version, and declare the queues, so that no event is lost before the first ``serve``."""
    for name in names:
        settings = settings_of(name)
        observe.setup(name, settings.log_level)
        try:
            waiting.wait_for("database", partial(migrations.upgrade, name, settings.database_url), patience=60)
        except search.NoTrigrams as error:
            print(f"{name}: {error.message}", file=sys.stderr)  # noqa: T201
            return 1
        database = Database(settings.database_url)
        look_at_mark(name, database, settings.blob_url)
        database.dispose()
        declare.declare(name, settings)
        if orphans := declare.orphans(name, settings):
            log.warning("migrate.queues_nobody_reads", queues=orphans)
        log.info("migrate.done")
    return 0


def serve(names: Sequence[str]) -> int:
    """For a service without ``service.py``, which is the gateway: ``services.<name>.app:serve(settings)``."""
    settings = settings_of(names[0])
    observe.setup_process(names[0], settings.log_level)
    build.tell(names[:1])
    waiting.wait_for("schema", lambda: check_schema(names[0], settings.database_url))
    database = Database(settings.database_url)
    look_at_mark(names[0], database, settings.blob_url)
    database.dispose()
    return importlib.import_module(f"services.{names[0]}.app").serve(settings) or 0


class Stop:
    """Has the process been told to end? As ``threading.Event``, which a signal handler must not set: it runs in the main thread
    wherever that is, and when that is on its way into ``wait`` it holds the event's lock, so that both wait for ever."""

    def __init__(self) -> None:
        self._signals: queue.SimpleQueue[None] = queue.SimpleQueue()  # whose put may come in the middle of its get

    def set(self) -> None:
        """May be called by a signal handler, and from any thread."""
        self._signals.put(None)

    def is_set(self) -> bool:
        return not self._signals.empty()

    def wait(self) -> None:
        """Until it is set.

        It looks up once a second. Python calls a signal's handler in the main thread only, between two of its steps: a signal
        that comes just before this thread falls asleep, or that the system gives to another thread, does not wake it.
        """
        while not self.is_set():
            with contextlib.suppress(queue.Empty):
                self._signals.put(self._signals.get(timeout=1.0))


def must_end_within(drain_seconds: float) -> None:
    """However the end goes, the system ends this process (SIGALRM) a little after it should have ended."""
    signal.alarm(int(drain_seconds + ENDING_SECONDS))


def _signals(drain_seconds: float) -> Stop:
    """Return a Stop that SIGTERM or SIGINT sets; a second signal ends the process at once."""
    stop = Stop()

    def on_signal(_number: int, _frame: Any) -> None:
        if stop.is_set():
            os._exit(1)
        stop.set()
        must_end_within(drain_seconds)

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop
