"""Deliveries: what a choice costs beside the backlog of a dead receiver, and how many a second one background process makes.

Planned rows are written straight into the tables, so that only the delivery path is measured. The receiver is a process of its
own on loopback. 25 agreements a second with two signers are 200 deliveries a second to a webhook that wants everything.
"""

import asyncio
import contextlib
import multiprocessing
import socket
import sys
import tempfile
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work import background
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from contracts.runtime.process import SWITCH_INTERVAL
from deploy.rabbitmq import free_port
from services.webhooks import background as webhooks
from services.webhooks.models import Delivery, LoggedEvent, Webhook
from services.webhooks.settings import Settings
from tests.load.figures import percentile
from tests.support.servers.postgres import PrivatePostgres
from tests.support.services.loops import running
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import LINK_SECRET
from tests.support.services.suite import wait_until

LIVE = 49
EVENTS_OF_AGREEMENT = 8
"""submission.created; for each of two signers form.viewed, form.started, form.completed; submission.completed."""

AGREEMENTS = 500
DEAD = 3
BODY = (
    '{"event_type":"form.completed","timestamp":"2026-03-04T05:06:07.000Z","data":{"id":1,"text":"' + "x" * 1500 + '"}}'
)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, arrived: Any) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0]))
            with arrived.get_lock():
                arrived.value += 1
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def receive(port: int, arrived: Any) -> None:
    async def serve() -> None:
        server = await asyncio.start_server(lambda r, w: _answer(r, w, arrived), "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(serve())


async def _never(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


def hang(port: int) -> None:
    async def serve() -> None:
        server = await asyncio.start_server(_never, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(serve())


def accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def settings(database: Database) -> Settings:
    return Settings(
        amqp_url="amqp://unused",
        blob_url="file:///nowhere",
        base_url="http://localhost",
        link_secret=LINK_SECRET,
        database_url=database.url.render_as_string(False),
        allowed_private_networks="127.0.0.0/8",
    )


def new_webhook(database: Database, url: str, *, failing: bool = False) -> int:
    values = {"url": url, "events": [], "secret": {}, "signing_secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
    times = {"created_at": now(), "updated_at": now(), "failing_since": now() - timedelta(hours=1) if failing else None}
    made = sa.insert(Webhook).values(**values, owner_email="a@example.com", **times).returning(Webhook.id)
    return database.write(lambda session: session.execute(made).scalar_one())


def plan(database: Database, webhook: int, subjects: int, events: int, *, tag: str) -> None:
    """``events`` deliveries about each of ``subjects``, in the order in which agreements that run side by side make them."""
    at = now()
    rows, logged = [], []
    with_events = database.read(lambda session: session.scalar(sa.select(sa.func.max(LoggedEvent.position)))) or 0
    for number in range(subjects * events):
        subject, sequence = number % subjects, number // subjects + 1
        position = with_events + number + 1
        event = {"position": position, "event_id": f"{tag}-{number}", "event_type": "form.completed"}
        logged.append(
            {
                **event,
                "subject": f"{tag}:{subject}",
                "sequence": sequence,
                "recorded_at": at,
                "body": BODY,
                "shared": True,
            }
        )
        rows.append(
            {
                **event,
                "webhook_id": webhook,
                "message_id": f"{tag}-{number}",
                "stream": f"{webhook}/{tag}:{subject}",
                "test": False,
                "state": "due" if sequence == 1 else "waiting",
                "next_attempt_at": at + timedelta(microseconds=number),
                "created_at": at,
            }
        )

    def write(session: Any) -> None:
        for start in range(0, len(rows), 5000):
            session.execute(sa.insert(LoggedEvent), logged[start : start + 5000])
            session.execute(sa.insert(Delivery), rows[start : start + 5000])

    database.write(write)
    with database.engine.execution_options(countersign_write=True).connect() as connection:
        connection.execute(sa.text("ANALYZE"))
        connection.commit()


def deliver(database: Database) -> background.DueWork:
    loop = webhooks.loops(settings(database), database, BlobStore.from_url("file:///tmp/nothing"))[0]
    assert isinstance(loop, background.DueWork)
    return loop


def claim_cost(database: Database, backlog: int) -> None:
    dead = new_webhook(database, "http://127.0.0.1:9/", failing=True)
    live = [new_webhook(database, "http://127.0.0.1:9/") for _ in range(LIVE)]
    plan(database, dead, backlog, 1, tag=f"dead{backlog}")
    for number, webhook in enumerate(live):
        plan(database, webhook, 3, 1, tag=f"live{backlog}-{number}")
    loop = deliver(database)
    looks, claims, surveys = [], [], []
    for _ in range(20):
        started = time.perf_counter()
        database.read(loop._seconds_until_due, 64, None)
        looks.append(time.perf_counter() - started)
        started = time.perf_counter()
        rows, _ = database.write_unsynced(loop._claim, 4)
        claims.append(time.perf_counter() - started)
        started = time.perf_counter()
        database.read(loop._survey)
        surveys.append(time.perf_counter() - started)
        assert rows
    told = [
        f"{name} p50 {percentile(times, 50) * 1000:.1f} ms, max {max(times) * 1000:.1f}"
        for name, times in (("look", looks), ("claim of 4", claims), ("survey", surveys))
    ]
    print(f"  {backlog:>7} due rows of a dead receiver beside {LIVE} live ones: {'; '.join(told)}", flush=True)


def explain(database: Database) -> None:
    loop = deliver(database)
    assert loop._lanes is not None
    chosen = {"heads": loop._lanes._heads, "first of a lane": loop._lanes._first, "under way": loop._lanes._under_way}
    for name, statement in chosen.items():
        print(f"  {name}:")
        for line in database.read(_plan_of, statement, {**loop._times(), "lane": 1, "most": 4, "slow_before": now()}):
            print(f"    {line}")


def _plan_of(session: Session, statement: Any, values: dict[str, Any]) -> list[str]:
    dialect = session.get_bind().dialect
    bound = statement.compile(dialect=dialect)
    how = "EXPLAIN (COSTS OFF)" if dialect.name == "postgresql" else "EXPLAIN QUERY PLAN"
    rows = session.connection().exec_driver_sql(f"{how} {bound}", _values(bound, values))
    return [row[-1] for row in rows]


def _values(bound: Any, values: dict[str, Any]) -> Any:
    found = {key: values.get(key, value) for key, value in bound.params.items()}
    found = {key: bound._bind_processors.get(key, lambda it: it)(value) for key, value in found.items()}
    return tuple(found[key] for key in bound.positiontup) if bound.positional else found


def _another(url: str, begin: Any, stop: Any) -> None:
    observe.setup("load", "ERROR")
    database = Database(url)
    loop = deliver(database)
    database.on_commit.append(lambda _tables: loop.wake())
    sys.setswitchinterval(SWITCH_INTERVAL)
    begin.wait()
    with running(loop, poll=1.0):
        stop.wait()


def throughput(database: Database, title: str, *, dead: int = 0, backlog: int = 0, replicas: int = 1) -> None:
    context = multiprocessing.get_context("spawn")
    port, arrived = free_port(), context.Value("i", 0)
    receivers = [context.Process(target=receive, args=(port, arrived), daemon=True)]
    database.write(lambda session: session.execute(sa.delete(Delivery)))
    silent = [free_port() for _ in range(dead)]
    for number, listening in enumerate(silent):
        receivers.append(context.Process(target=hang, args=(listening,), daemon=True))
        plan(database, new_webhook(database, f"http://127.0.0.1:{listening}/"), backlog, 1, tag=f"{title}-{number}")
    begin, stop = context.Event(), context.Event()
    url = database.url.render_as_string(False)
    others = [context.Process(target=_another, args=(url, begin, stop), daemon=True) for _ in range(replicas - 1)]
    for process in receivers + others:
        process.start()
    for listening in (port, *silent):
        wait_until(partial(accepts, listening), what="a receiver")
    wanted = AGREEMENTS * EVENTS_OF_AGREEMENT
    plan(
        database,
        new_webhook(database, f"http://127.0.0.1:{port}/"),
        AGREEMENTS,
        EVENTS_OF_AGREEMENT,
        tag=f"{title}-live",
    )
    loop = deliver(database)
    # As in the background process.
    database.on_commit.append(lambda _tables: loop.wake())
    sys.setswitchinterval(SWITCH_INTERVAL)
    begin.set()
    began, cpu = time.monotonic(), time.process_time()
    with running(loop, poll=1.0):
        while arrived.value < wanted and time.monotonic() - began < 300:
            time.sleep(0.05)
        took, cpu = time.monotonic() - began, time.process_time() - cpu
        for process in receivers:
            process.kill()
    stop.set()
    for process in others:
        process.join()
    rate = arrived.value / took
    each = f", {cpu / arrived.value * 1000:.1f} ms of processor each" if not others else ""
    print(f"  {title}: {arrived.value} deliveries in {took:.1f} s, {rate:.0f}/s{each}", flush=True)


def main() -> None:
    observe.setup("load", "ERROR")
    with tempfile.TemporaryDirectory(prefix="deliveries-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        cluster = PrivatePostgres(folder / "postgres")
        cluster.start()
        try:
            for kind in ("sqlite", "postgresql"):
                print(f"{kind}:")
                few, many, own = (
                    f"sqlite:///{folder}/{part}.sqlite" if kind == "sqlite" else cluster.new_database()
                    for part in ("few", "many", "own")
                )
                for url, backlog in ((few, 10), (many, 100_000)):
                    migrated("webhooks", url)
                    claim_cost(Database(url), backlog)
                explain(Database(many))
                migrated("webhooks", own)
                throughput(Database(own), "one receiver")
                throughput(Database(own), "one receiver, two processes", replicas=2)
                throughput(Database(own), f"beside {DEAD} that hang with 10,000 each", dead=DEAD, backlog=10_000)
        finally:
            cluster.stop()


if __name__ == "__main__":
    main()
