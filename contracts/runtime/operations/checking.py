"""``python -m services.<name> check``: try everything that a service depends on, and say in words what is wrong with it.

A service adds its own trials in ``services/<name>/checking.py``: ``trials(settings) -> list[Trial]``. Nothing stays behind, no
mail or message is sent, and no secret is printed. What hangs is given up after TIME_LIMIT.
"""

import contextlib
import importlib
import importlib.util
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pika
import sqlalchemy as sa
from pika.exceptions import AMQPError, ConnectionBlockedTimeout

from contracts.blobs import INCOMING
from contracts.errors import ServiceError
from contracts.runtime import migrations, process
from contracts.runtime.bus import broker, declare
from contracts.runtime.bus.topology import exclusive_queue_name, own_exchange
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe, tracing
from contracts.runtime.settings import ServiceSettings

TIME_LIMIT = 90.0
"""Seconds for one trial. RabbitMQ 4 takes 66 to say that the only node of a queue is down."""

CLOCKS_DIFFER, CLOCKS_FAULTY = 5.0, 60.0
"""Seconds between two clocks that are worth a word; and from which calls are dropped as too late (``worker.requests``)."""

OLDEST_POSTGRESQL = 13
OLDEST_RABBITMQ = (3, 10)
"""Quorum queues of earlier ones keep a message for ever whose time is over, and dead-letter it at most once."""

_BROKER_SECONDS = 10.0


class Fault(Exception):
    """Something is wrong; the message says what, in words for an operator."""


@dataclass(frozen=True)
class Trial:
    """``attempt`` raises what is wrong, and returns what was found, or an empty string. ``but ...`` is a warning.
    ``remedy`` is what to do about it, where the words of ``attempt`` do not say so themselves."""

    name: str
    attempt: Callable[[], str]
    remedy: str = ""


def check(names: Sequence[str]) -> int:
    """Print the effective settings and what came of each trial; 1 when something is wrong."""
    faults = 0
    for name in names:
        settings = process.settings_of(name)
        observe.setup(name, "CRITICAL")
        _say(f"{name}")
        for field, value in settings:
            _say(f"  {process.environment_name(type(settings), field)} = {observe.shown(value)}")
        for trial in trials(name, settings):
            good, line = outcome(trial)
            faults += not good
            _say(f"  {line}")
    return 1 if faults else 0


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def trials(name: str, settings: ServiceSettings) -> list[Trial]:
    """Everything that is tried for this service, in this order."""
    database = Database(settings.database_url, pool_size=1)
    common = [
        Trial("database", partial(_database, database), f"start it, or correct {name.upper()}_DATABASE_URL"),
        Trial("schema", partial(_schema, name, settings)),
        Trial("search index", partial(_search_index, name, settings)),
        Trial(
            "writing to the database",
            partial(_writing, name, database),
            "make room, or name a server that takes changes",
        ),
        Trial("start", partial(_start, name, settings, database)),
        Trial("broker", partial(_broker, name, settings.amqp_url), "start it, or correct AMQP_URL"),
        Trial("queues", partial(_queues, name, settings)),
        Trial("clock of the database", partial(_clock_of_database, database)),
        Trial("clock of the broker", partial(_clock_of_broker, name, settings.amqp_url)),
        Trial(
            "file store", partial(_file_store, settings.blob_url), "correct BLOB_URL, or make it writable for this user"
        ),
    ]
    if tracing.wanted():
        common.append(Trial("traces", _traces, "start the collector, or correct OTEL_EXPORTER_OTLP_ENDPOINT"))
    if importlib.util.find_spec(f"services.{name}.checking") is None:
        return common
    specific: list[Trial] = importlib.import_module(f"services.{name}.checking").trials(settings)
    return common + specific


def outcome(trial: Trial) -> tuple[bool, str]:
    """Return whether the trial succeeded, and its line for the operator."""
    good, words = attempted(trial)
    return good, f"{trial.name}: {words}"


def attempted(trial: Trial) -> tuple[bool, str]:
    """Return whether the trial succeeded, and what came of it: the fault, ``ok``, or ``ok, but ...``, which is a warning."""
    done: list[tuple[bool, str]] = []

    def run() -> None:
        try:
            detail = trial.attempt()
            done.append((True, f"ok, {detail}" if detail.startswith("but ") else f"ok ({detail})" if detail else "ok"))
        except Exception as error:  # whatever it is, the operator is to read it
            done.append((False, reason_of(error)))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(TIME_LIMIT)
    good, words = done[0] if done else (False, f"no answer within {TIME_LIMIT:.0f} s")
    return good, observe.shown(words)


def reason_of(error: BaseException) -> str:
    """Describe what went wrong, in one line, with the cause where the error was put into general words."""
    if isinstance(error, AMQPError | OSError) and not isinstance(error, FileNotFoundError | PermissionError):
        return broker.reason_of(error)
    if isinstance(error, sa.exc.DBAPIError):
        return _line(error.orig)
    if isinstance(error, ServiceError):
        cause = reason_of(error.__cause__) if error.__cause__ is not None else ""
        return f"{error.message} ({cause})" if cause else error.message
    return _line(error)


def _traces() -> str:
    from contracts.runtime.monitoring import recording

    try:
        recording.try_out()
    except recording.CannotRecord as reason:
        raise Fault(str(reason)) from reason
    return ""


def _line(error: object) -> str:
    return " ".join(str(error).split())[:500] or type(error).__name__


# --- database


def _database(database: Database) -> str:
    if database.sqlite:
        release = database.read(lambda session: session.scalar(sa.text("SELECT sqlite_version()")))
        return f"SQLite {release}"

    def look(session: Any) -> Any:
        columns = "current_setting('server_version_num')::int, current_setting('server_version'), pg_is_in_recovery()"
        return session.execute(sa.text(f"SELECT {columns}, current_setting('default_transaction_isolation')")).one()

    number, version, standby, isolation = database.read(look)
    if number < OLDEST_POSTGRESQL * 10_000:
        raise Fault(f"PostgreSQL {version} is too old: it must be {OLDEST_POSTGRESQL} or later")
    if standby:
        raise Fault("it is a standby, which takes no changes")
    return f"PostgreSQL {version.split()[0]}, UTF8, {isolation}"


def _schema(name: str, settings: ServiceSettings) -> str:
    process.check_schema(name, settings.database_url)
    return ""


def _search_index(name: str, settings: ServiceSettings) -> str:
    migrations.check_trigrams(name, settings.database_url)
    return ""


def _writing(name: str, database: Database) -> str:
    process.write_something(database, name)
    return ""


def _start(name: str, settings: ServiceSettings, database: Database) -> str:
    process.check_start(name, settings, database)
    return ""


def _clock_of_database(database: Database) -> str:
    if database.sqlite:
        return "the same machine"
    before = time.time()
    theirs: datetime = database.read(lambda session: session.scalar(sa.text("SELECT clock_timestamp()")))
    return _compared((before + time.time()) / 2, theirs.timestamp(), 0.0)


def _compared(ours: float, theirs: float, unsure: float) -> str:
    """``unsure``: seconds by which the other clock may have been read wrongly."""
    ahead = theirs - ours
    apart = max(0.0, abs(ahead) - unsure)
    words = f"it is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} ours"
    if apart > CLOCKS_FAULTY:
        raise Fault(f"{words}: the clocks of these machines must be kept right (NTP)")
    return f"but {words}" if apart > CLOCKS_DIFFER else "" if unsure else words


# --- broker


@contextlib.contextmanager
def _channel(amqp_url: str) -> Iterator[Any]:
    with _connection(amqp_url) as connection:
        yield connection.channel()


@contextlib.contextmanager
def _connection(amqp_url: str) -> Iterator[pika.BlockingConnection]:
    parameters = broker.parameters(amqp_url, "check")
    parameters.blocked_connection_timeout = _BROKER_SECONDS
    connection = pika.BlockingConnection(parameters)
    try:
        yield connection
    except ConnectionBlockedTimeout:
        raise Fault("it is in an alarm (memory or disk) and takes no messages: rabbitmq-diagnostics alarms") from None
    finally:
        with contextlib.suppress(AMQPError):
            connection.close()


def _broker(name: str, amqp_url: str) -> str:
    """A message there and back."""
    with _channel(amqp_url) as channel:
        exchange, queue = own_exchange(name), _own_queue(name, amqp_url, channel)
        channel.confirm_delivery()
        channel.basic_publish(exchange, queue, b"check", mandatory=True)
        _received(channel, queue)
        properties = channel.connection._impl.server_properties
    version = properties.get("version", b"")
    return _product(properties.get("product", "broker"), version.decode() if isinstance(version, bytes) else version)


def _product(product: str, version: str) -> str:
    """Return what the broker calls itself. Raises Fault for a RabbitMQ that is too old."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if product == "RabbitMQ" and numbers < OLDEST_RABBITMQ:
        oldest = ".".join(map(str, OLDEST_RABBITMQ))
        raise Fault(
            f"the broker is a RabbitMQ {version}, which never gives back what is to be tried again: take {oldest} or later"
        )
    return f"{product} {version}"


def _own_queue(name: str, amqp_url: str, channel: Any, arguments: dict[str, Any] | None = None) -> str:
    """A queue that is gone with the connection, bound by its name to the service's own exchange."""
    user = broker.user_of(amqp_url)
    if declare.may_declare(user):
        declare.declare_exchange(channel, own_exchange(name))
    queue = exclusive_queue_name("check", user)
    channel.queue_declare(queue, exclusive=True, arguments=arguments)
    channel.queue_bind(queue, own_exchange(name), queue)
    return queue


def _received(channel: Any, queue: str) -> Any:
    """The properties of the message in the queue."""
    for method, properties, _body in channel.consume(queue, auto_ack=True, inactivity_timeout=_BROKER_SECONDS):
        if method is None:
            break
        return properties
    raise Fault(f"a message that was published did not come back within {_BROKER_SECONDS:.0f} s")


def _queues(name: str, settings: ServiceSettings) -> str:
    service = declare.service_class(name)
    if service is None:
        return "none of its own"
    plans = declare.plans(service, name, settings.retry_ladder)
    with _connection(settings.amqp_url) as connection:
        try:
            for queue, messages in declare.messages_by_queue(connection, [plan.name for plan in plans]):
                if messages is None:
                    imported = not declare.may_declare(broker.user_of(settings.amqp_url))
                    raise Fault(f"{queue} is missing: {declare.IMPORT if imported else 'run migrate'}")
        except declare.NodeDown as down:
            raise Fault(str(down)) from None
    return str(len(plans))


def _clock_of_broker(name: str, amqp_url: str) -> str:
    """RabbitMQ tells nobody the time, but writes it (in whole seconds) onto what it moves from a queue to another."""
    with _channel(amqp_url) as channel:
        arrived = _own_queue(name, amqp_url, channel)
        dead_letters = {"x-dead-letter-exchange": own_exchange(name), "x-dead-letter-routing-key": arrived}
        source = _own_queue(name, amqp_url, channel, {"x-message-ttl": 0, **dead_letters})
        before = time.time()
        channel.confirm_delivery()
        channel.basic_publish(own_exchange(name), source, b"check")
        moved: datetime = _received(channel, arrived).headers["x-death"][0]["time"]
        ours = (before + time.time()) / 2
    theirs = (moved if moved.tzinfo else moved.replace(tzinfo=UTC)).timestamp()
    return _compared(ours, theirs, 1.0) or "less than 5 s apart"


# --- files


def _file_store(url: str) -> str:
    """A small file there and back; what a killed check leaves there is swept as any other incoming file."""
    store = BlobStore.from_url(url)
    ref = store.put(b"written by check", "text/plain", INCOMING)
    try:
        store.get(ref)
    finally:
        store.delete(ref.key)
    return ""
