"""``serve``: nameko containers for one or several services, until SIGTERM."""

import os
import signal
import sys
import time
import warnings
from functools import partial
from typing import Any

import eventlet
from eventlet import patcher, tpool
from eventlet.support.greenlets import getcurrent
from sqlalchemy.orm import configure_mappers

from contracts.runtime import garbage, process, waiting
from contracts.runtime.bus import broker, declare
from contracts.runtime.data import database
from contracts.runtime.monitoring import build, liveness, observe
from contracts.runtime.monitoring.lateness import Lateness, Rounds
from contracts.runtime.settings import ServiceSettings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from nameko.runners import ServiceRunner

    from contracts.runtime.bus.marks import subscriptions_of
    from contracts.runtime.worker.entrypoints import Bus, served

log = observe.logger(__name__)

SQLITE_THREADS = 4


def serve(names: tuple[str, ...]) -> int:
    """Serve until SIGTERM, then finish what is under way; 0 when that went well."""
    settings = [process.settings_of(name) for name in names]
    observe.setup_process(names[0] if len(names) == 1 else "worker", settings[0].log_level)
    build.tell(names)
    broker.call_soon = partial(eventlet.hubs.get_hub().schedule_call_global, 0)
    database.offload, database.thread_key = tpool.execute, patcher.original("_thread").get_ident
    tpool.set_num_threads(SQLITE_THREADS)
    liveness.green_thread = getcurrent
    lateness = Lateness()
    for name, service_settings in zip(names, settings, strict=True):
        waiting.wait_for(f"{name} schema", partial(process.check_schema, name, service_settings.database_url))
    runner = _runner(names, settings)
    configure_mappers()  # now, not in somebody's first call
    for name, service_settings in zip(names, settings, strict=True):
        _check_start(name, service_settings)
        _prepare(name)
    health = liveness.start(settings[0].health_host, settings[0].health_port, lambda: _problems(runner, names))
    stopped = _stop_on_signal(runner, settings[0].drain_seconds)
    garbage.keep_all()
    # The event loop shares the interpreter with the threads of the database (SQLite): with Python's 5 ms it waits so long.
    sys.setswitchinterval(0.0005)
    runner.start()
    stopped.may_begin()
    eventlet.spawn(_watch, lateness)
    log.info("worker.started", services=list(names))
    runner.wait()
    clean = bool(stopped.wait()) if stopped.begun else True
    if health is not None:
        health.close()
    log.info("worker.stopped", drained=clean)
    return 0


def _runner(names: tuple[str, ...], settings: list[ServiceSettings]) -> ServiceRunner:
    """nameko's runner with a container per service. Its pool is wide enough for every message that may be unacknowledged: else
    events that are held while the broker is in an alarm would keep calls from being taken."""
    widest = max(max(service.max_workers, service.events_at_once) for service in settings)
    most_subscriptions = max(
        len(subscriptions_of(cls)) for name in names if (cls := declare.service_class(name)) is not None
    )
    runner = ServiceRunner({"AMQP_URI": settings[0].amqp_url, "max_workers": widest * (2 + most_subscriptions)})
    for name, service_settings in zip(names, settings, strict=True):
        service = declare.service_class(name)
        if service is None:
            raise LookupError(f"services.{name} has no service.py")
        runner.add_service(served(service, service_settings))
    return runner


def _check_start(name: str, settings: ServiceSettings) -> None:
    own_database = database.Database(settings.database_url)
    process.must_start(name, settings, own_database)
    process.look_at_mark(name, own_database, settings.blob_url)
    own_database.dispose()


def _prepare(name: str) -> None:
    """Prepare in advance what would otherwise block the event loop in a service's first call: see ``Context.prepare``."""
    context = getattr(declare.service_class(name), "context", None)
    if context is not None:
        context.prepare()


def _problems(runner: ServiceRunner, names: tuple[str, ...]) -> list[str]:
    """List what keeps this process from being ready."""
    problems = []
    for name in names:
        buses = [shared for shared in runner.service_map[name].shared_extensions.values() if isinstance(shared, Bus)]
        problems += [f"{name}: {problem}" for bus in buses for problem in bus.echo.problems()]
    return problems


class _Stop:
    """A stop that was asked for by a signal: taking nothing new, finishing what is under way."""

    def __init__(self, runner: ServiceRunner, seconds: float) -> None:
        self._runner = runner
        self._seconds = seconds
        self._thread: Any = None
        self._signalled = self._started = False

    @property
    def begun(self) -> bool:
        return self._thread is not None

    def begin(self, *_: Any) -> None:
        """The signal handler; a second signal ends the process at once."""
        if self._signalled:
            os._exit(1)
        self._signalled = True
        process.must_end_within(self._seconds)
        if self._started:
            self._thread = eventlet.spawn(self._drain)

    def may_begin(self) -> None:
        """Everything has been started: what is half started cannot be stopped, and would then go on for ever."""
        self._started = True
        if self._signalled and not self.begun:
            self._thread = eventlet.spawn(self._drain)

    def wait(self) -> bool:
        """True when everything was finished in time."""
        return bool(self._thread.wait())

    def _drain(self) -> bool:
        try:
            with eventlet.Timeout(self._seconds, False):
                self._runner.stop()
                return True
        except Exception:
            log.exception("worker.stop_failed")
        self._runner.kill()
        return False


def _stop_on_signal(runner: ServiceRunner, seconds: float) -> _Stop:
    stop = _Stop(runner, seconds)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop.begin)
    return stop


def _watch(lateness: Lateness) -> None:
    watched = liveness.Watched("the event loop")
    hub = eventlet.hubs.get_hub()
    rounds = hub.do_poll = Rounds(lateness, hub.do_poll)
    while True:
        watched.beat()
        asked_at, pause = time.monotonic(), rounds.pause()
        eventlet.sleep(pause)
        lateness.slept(asked_at, pause)
