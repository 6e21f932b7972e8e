"""SIGTERM at any moment ends a process, soon: a background process with more to deliver than it can, a worker under calls.

``python -m tests.contract.runtime.worker.test_stops 300`` tries it for so many seconds and prints how long the stops took.
"""

import collections
import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from contracts.errors import ServiceError
from contracts.rpc import health
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from deploy.rabbitmq import PrivateBroker
from tests.support.material.webhooks import envelope, new_webhook, record
from tests.support.servers.receiver import Received, Receiver
from tests.support.services import processes

DRAIN = 3.0
SLACK = 100.0
"""Seconds that ending may take besides, on a machine that has much else to do."""
SIDE_BY_SIDE = 3


@dataclass
class Stops:
    """What came of them: how long each took, by what was ended, after which delay, with which status."""

    took: list[tuple[float, str, float, int]] = field(default_factory=list)

    def bad(self) -> list[tuple[float, str, float, int]]:
        return [stop for stop in self.took if stop[0] > DRAIN + SLACK or stop[3] not in (0, -signal.SIGTERM)]


class Place:
    """The webhooks service with hundreds of due deliveries, to receivers that answer late or never."""

    def __init__(self, broker: PrivateBroker, folder: Path, receiver: Receiver) -> None:
        url = f"sqlite:///{folder}/webhooks.sqlite"
        self._numbers = itertools.count(1)
        self.folder = folder
        self.settings = processes.environment(
            "webhooks",
            broker.amqp_url,
            url,
            folder,
            DRAIN_SECONDS=str(DRAIN),
            WEBHOOK_TOTAL_TIMEOUT="2",
            MAX_WORKERS="4",
        )
        processes.migrate("webhooks", self.settings)
        database = Database(url)
        for _ in range(20):
            new_webhook(database, receiver.url)
        self.database = database

    def stop_once(self, command: str, delay: float) -> tuple[float, str, float, int]:
        subjects = [f"submission:{next(self._numbers)}" for _ in range(4)]
        with contextlib.suppress(ServiceError):  # others may be writing for long
            record(self.database, *(envelope(1, subject=subject) for subject in subjects), at=now())
        with (self.folder / f"{command}.log").open("ab") as log:
            process = processes.start("webhooks", command, self.settings, log)
            with contextlib.suppress(PermissionError):
                os.setpriority(os.PRIO_PROCESS, process.pid, 10)
            time.sleep(delay)
            began = time.monotonic()
            process.terminate()
            try:
                status = process.wait(DRAIN + SLACK)
            except subprocess.TimeoutExpired:
                status = 1
                process.kill()
                process.wait()
        return time.monotonic() - began, command, delay, status


def late_answers(stopping: threading.Event) -> Receiver:
    chance = random.Random(1)

    def answer(_: Received) -> tuple[int, dict[str, str], bytes]:
        stopping.wait(chance.choice([0, 0.5, 5]))
        return (chance.choice([204, 500]), {}, b"")

    return Receiver(answer)


@contextlib.contextmanager
def calls(amqp_url: str) -> Iterator[None]:
    """Calls to whoever is there."""
    client, stopping = RpcClient(amqp_url, name="stops"), threading.Event()

    def call() -> None:
        while not stopping.wait(0.02):
            with contextlib.suppress(ServiceError):
                client.call(health.PING["webhooks"], health.Ping())

    threads = [threading.Thread(target=call, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
        client.close()


def stress(broker: PrivateBroker, folder: Path, seconds: float) -> Stops:
    """Start and stop for that long, at moments from the beginning to seconds later."""
    found, chance, end = Stops(), random.Random(), time.monotonic() + seconds
    stopping = threading.Event()

    def keep_on(number: int) -> None:
        while time.monotonic() < end:
            command = chance.choice(["background", "background", "serve"])
            found.took.append(place.stop_once(command, chance.uniform(0, 6)))

    with late_answers(stopping) as receiver, calls(broker.amqp_url), ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        place = Place(broker, folder, receiver)
        list(pool.map(keep_on, range(SIDE_BY_SIDE)))
        place.database.dispose()
        stopping.set()
    return found


def test_a_process_ends_when_it_is_told(broker: PrivateBroker, tmp_path: Path) -> None:
    found = stress(broker, tmp_path, 10)
    assert len(found.took) >= SIDE_BY_SIDE
    logs = [file.read_text()[-3000:] for file in tmp_path.glob("*.log")]
    assert found.bad() == [], logs


def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker = PrivateBroker(folder / "broker", "for tests")
        broker.start()
        try:
            found = stress(broker, folder, seconds)
        finally:
            broker.stop()
        spread = collections.Counter(int(stop[0]) for stop in found.took)
        print(f"{len(found.took)} stops; seconds: {dict(sorted(spread.items()))}; bad: {found.bad()}")
        for stop in sorted(found.took)[-8:]:
            print("%.1f s %s after %.2f s: %d" % stop)  # noqa: UP031


if __name__ == "__main__":
    main(float(sys.argv[1]))
