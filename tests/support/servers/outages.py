"""A database that takes nothing for a while: SQLite's write lock is held by somebody else, PostgreSQL is killed."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from contracts.runtime.data.database import normalised
from tests.support.servers.postgres import PrivatePostgres


class Outage(Protocol):
    """``url`` is the database's; ``begin`` and ``end`` may be called from any thread."""

    url: str

    def begin(self) -> None: ...

    def end(self) -> None: ...


class Locked:
    def __init__(self, url: str) -> None:
        self.url = url
        self._holder = sqlite3.connect(
            str(normalised(url).database), isolation_level=None, check_same_thread=False, timeout=10
        )

    def begin(self) -> None:
        self._holder.execute("BEGIN IMMEDIATE")

    def end(self) -> None:
        if self._holder.in_transaction:
            self._holder.execute("ROLLBACK")


class Killed:
    def __init__(self, cluster: PrivatePostgres) -> None:
        self._cluster = cluster
        self._up = True
        self.url = cluster.new_database()

    def begin(self) -> None:
        self._cluster.stop()
        self._up = False

    def end(self) -> None:
        if not self._up:
            self._cluster.start()
            self._up = True


@pytest.fixture(scope="module")
def killable(workspace: Path) -> Iterator[PrivatePostgres]:
    """A cluster for the tests of one file, as making it takes longer than they do; ``outage`` has each find it running."""
    with PrivatePostgres(workspace / "outages") as cluster:
        yield cluster


@pytest.fixture(params=["sqlite", "postgresql"])
def outage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Outage]:
    """An empty database, and power over it. Who has it from here in a module has ``killable`` there, too."""
    if request.param == "sqlite":
        locked = Locked(f"sqlite:///{tmp_path}/test.sqlite")
        yield locked
        locked.end()
        return
    killed = Killed(request.getfixturevalue("killable"))
    yield killed
    killed.end()
