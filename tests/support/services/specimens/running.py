"""The specimen with its database, its processes, and what a test asks of them."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pika
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.data.database import Database
from deploy.rabbitmq import PrivateBroker
from tests.support.services.processes import log_of
from tests.support.services.specimens import contract, processes
from tests.support.services.suite import wait_until


class Specimen:
    """One database, any number of processes. ``EVENT_RETRY_SECONDS`` is 0.2, 0.4 unless told otherwise."""

    def __init__(self, amqp_url: str, database_url: str, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.amqp_url = amqp_url
        self.database = Database(database_url)
        self.settings = processes.environment(
            amqp_url, database_url, folder, **{"EVENT_RETRY_SECONDS": "0.2,0.4", "MAX_WORKERS": "4", **settings}
        )
        processes.migrated(self.settings)
        self._started: list[Any] = []
        self._logs: list[Any] = []

    def start(self, command: str, **settings: str) -> Any:
        """A ``serve`` or ``background`` process."""
        log = (self.folder / f"{command}.log").open("ab")
        process = processes.start(command, {**self.settings, **settings}, log)
        self._started.append(process)
        self._logs.append(log)
        return process

    def serve(self, client: RpcClient, **settings: str) -> Any:
        """A ``serve`` process that answers."""
        process = self.start("serve", **settings)
        wait_until(lambda: answers(client), what="the specimen answers")
        return process

    def stop(self) -> None:
        for process in self._started:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGCONT)
                process.kill()
            process.wait()
        for log in self._logs:
            log.close()
            print(log.name, Path(log.name).read_text(errors="replace")[-20_000:], sep="\n")  # shown when the test fails
        self.database.dispose()

    def rows(self, query: str, **values: Any) -> list[Any]:
        return self.database.read(lambda session: list(session.execute(sa.text(query), values).all()))

    def notes(self) -> list[str]:
        """Keys of the events that had their effect, in order."""
        return [row.key for row in self.rows("SELECT key FROM notes ORDER BY id")]

    def traces(self, key: str) -> list[str]:
        return [row.what for row in self.rows("SELECT what FROM traces WHERE key = :key ORDER BY id", key=key)]

    def log(self, command: str) -> str:
        return log_of(self.folder / f"{command}.log")


@contextmanager
def specimen(amqp_url: str, database_url: str, folder: Path, **settings: str) -> Iterator[Specimen]:
    made = Specimen(amqp_url, database_url, folder, **settings)
    try:
        yield made
    finally:
        made.stop()


def emptied(broker: PrivateBroker, *queues: str) -> bool:
    """Remove what is in these queues, and return whether nothing is left that would come to the next test: what a killed
    process had is put back only a moment later, and is no message to be removed until then."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    for queue in queues:
        connection.channel().queue_purge(queue)
    connection.close()
    left = broker.messages()
    return not any(left.get(queue) for queue in queues)


def answers(client: RpcClient) -> bool:
    try:
        client.call(contract.ECHO, contract.Echo(payload={}))
    except ServiceError:
        return False
    return True
