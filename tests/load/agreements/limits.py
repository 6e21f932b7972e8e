"""What is done one after the other however many replicas there are: the relay of a service, and webhooks' log of events.

    python -m tests.load.agreements.limits

A relay publishes the events of one service's database, one process at a time, or their order would be lost. Here it gets a full
outbox, and a private broker with one queue. The log of events has one order for everybody who reads it, so
each event is recorded in a transaction that has the log's head: here on several threads, about subjects that are all different.
Prints how many a second, and the processor time of each, on SQLite and PostgreSQL. Rates are those of the machine, and of nothing
else running on it; the processor time says how far they are to be trusted.
"""

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pika
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts import events
from contracts.runtime.bus import outbox, topology
from contracts.runtime.bus.publisher import Publisher
from contracts.runtime.bus.relay import Relay
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data import tables
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from deploy.rabbitmq import PrivateBroker
from services.webhooks import commands
from tests.support.material.webhooks import envelope, new_webhook
from tests.support.servers.postgres import PrivatePostgres
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import LINK_SECRET
from tests.support.services.suite import wait_until

TOLD, RECORDED = 3000, 600
THREADS = (1, 4)
_PASSWORD = "of a broker that is gone in a minute"
_DATA = {"text": "x" * 1500}


def take_events(broker: PrivateBroker) -> None:
    """Make a queue as services have them, in which the events end up."""
    with closing(pika.BlockingConnection(pika.URLParameters(broker.amqp_url))) as connection:
        channel = connection.channel()
        exchange = topology.event_exchange("submissions")
        channel.exchange_declare(exchange, "topic", durable=True)
        channel.queue_declare("load", durable=True, arguments={"x-queue-type": "quorum"})
        channel.queue_bind("load", exchange, "#")


def relayed(database: Database, broker: PrivateBroker) -> None:
    """How many events a second a relay publishes, and what each takes of the processor (ours, not the broker's)."""

    def fill(session: Session) -> None:
        data = events.PublicData(data={"id": 1, **_DATA}, author_id=1, template_id=1, shared=True)
        for number in range(TOLD):
            outbox.emit(session, events.FORM_COMPLETED, data, subject=f"submission:{number}", sequence=1)

    database.write(fill)
    publisher = Publisher(broker.amqp_url, name="load").start()
    try:
        wait_until(lambda: publisher.connected, what="the connection to the broker")
        relay = Relay("submissions", database, publisher)
        waiting = sa.select(sa.func.count()).select_from(tables.outbox)
        began, spent = time.monotonic(), time.process_time()
        while database.read(lambda session: session.scalar(waiting)):
            relay.turn()
        took, spent = time.monotonic() - began, time.process_time() - spent
    finally:
        publisher.close()
    print(f"  relay: {TOLD / took:.0f} events a second, {1e3 * spent / TOLD:.2f} ms of processor each", flush=True)


def recorded(database: Database, threads: int) -> None:
    """How many events a second are put into the log, with a delivery to one webhook each."""
    told = [envelope(1, subject=f"submission:{uuid7()}") for _ in range(RECORDED)]
    for number, one in enumerate(told):
        one.id = f"{uuid7()}"[:36]
        one.data["data"] = {"id": number, **_DATA}

    def record(part: int) -> None:
        for one in told[part::threads]:
            database.write(commands.record_event, one, now(), LINK_SECRET)

    began, spent = time.monotonic(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(record, range(threads)))
    took, spent = time.monotonic() - began, time.process_time() - spent
    print(
        f"  log of events, {threads} at once: {RECORDED / took:.0f} a second, {1e3 * spent / RECORDED:.2f} ms of processor each",
        flush=True,
    )


def main() -> None:
    observe.setup("load", "ERROR")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        cluster = PrivatePostgres(folder / "postgres", more="-c fsync=on")
        cluster.start()
        broker = PrivateBroker(folder / "rabbitmq", _PASSWORD)
        broker.start()
        try:
            take_events(broker)
            for kind in ("sqlite", "postgresql"):
                print(f"{kind}:")
                told, logged = (
                    f"sqlite:///{folder}/{part}.sqlite" if kind == "sqlite" else cluster.new_database()
                    for part in ("told", "logged")
                )
                migrated("submissions", told)
                relayed(Database(told), broker)
                migrated("webhooks", logged)
                database = Database(logged)
                new_webhook(database, events=["form.completed"])
                for threads in THREADS:
                    recorded(database, threads)
        finally:
            broker.stop()
            cluster.stop()


if __name__ == "__main__":
    main()
