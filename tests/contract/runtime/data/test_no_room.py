"""Disks that are full and databases that take nothing (threats: F7, F8): 503, nothing half written, and it goes on by itself."""

import asyncio
import resource
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from starlette.formparsers import MultiPartParser
from starlette.requests import Request

from contracts.errors import ServiceError
from contracts.runtime import process
from contracts.runtime.bus.outbox import emit
from contracts.runtime.clock import now
from contracts.runtime.data import tables
from contracts.runtime.data.database import BigId, Database, metadata
from services.gateway.api.forms import attachments
from tests.support.servers.postgres import PrivatePostgres
from tests.support.services.specimens import contract
from tests.support.services.suite import wait_until


class Base(DeclarativeBase):
    metadata = metadata()


class Thing(Base):
    __tablename__ = "things"
    __table_args__ = ({"sqlite_autoincrement": True},)
    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(sa.Text)


def made(url: str) -> Database:
    database = Database(url, pool_size=3)
    for known in (Base.metadata, tables.runtime_metadata):
        known.create_all(database.engine.execution_options(countersign_write=True))
    return database


def add(session: Session, name: str) -> None:
    session.add(Thing(name=name))
    session.flush()


def names(session: Session) -> list[str]:
    return list(session.scalars(sa.select(Thing.name).order_by(Thing.id)))


def test_a_server_that_became_a_standby_is_unavailable_until_there_is_a_first_one_again(workspace: Path) -> None:
    """As after a failover. Reads go on; who writes is told to come again, and succeeds once the server was promoted."""
    cluster = PrivatePostgres(workspace / "standby")
    cluster.start()
    try:
        database = made(cluster.new_database())
        database.write(process._beat, "specimen")
        cluster.stop()
        (cluster.folder / "data" / "standby.signal").touch()
        cluster.start()
        # By a connection that read before, and by new ones.
        for _ in range(3):
            wait_until(lambda: _answers(database), what="the standby to be read")
            with pytest.raises(ServiceError) as refused:
                database.write(process._beat, "specimen")
            assert (refused.value.status, "takes no changes" in refused.value.message) == (503, True)
        assert process.problems_of(database, "other") == [f"its database takes no changes ({refused.value.message})"]
        cluster.promote()
        database.write(process._beat, "specimen")
        with pytest.raises(sa.exc.InternalError):  # a mistake of ours is none of the server's
            database.read(process._beat, "specimen")
        database.dispose()
    finally:
        cluster.stop()


def _answers(database: Database) -> bool:
    try:
        database.ping()
    except ServiceError:
        return False
    return True


def test_no_connection_is_to_be_had(postgres: PrivatePostgres) -> None:
    """max_connections, or the limit of a role: who asks is told to come again, and no more than that."""
    database = Database(postgres.new_database())
    with sa.create_engine(database.url, isolation_level="AUTOCOMMIT").connect() as operator:
        operator.execute(sa.text("CREATE ROLE few LOGIN CONNECTION LIMIT 0"))
        few = Database(database.url.set(username="few").render_as_string(False))
        for call in (few.ping, lambda: few.write(process._beat, "specimen")):
            with pytest.raises(ServiceError) as refused:
                call()
            assert (refused.value.status, "few" in refused.value.message) == (503, False)
        operator.execute(sa.text("ALTER ROLE few CONNECTION LIMIT 1"))
        few.ping()
        few.dispose()
        operator.execute(sa.text("DROP ROLE few"))


def test_a_full_disk_is_said_and_survived(tmp_path: Path) -> None:
    """Whoever writes is told to come again, reads go on, nothing is half written, and with room all goes on by itself."""
    database = made(f"sqlite:///{tmp_path}/full.sqlite")
    database.write(add, "before")
    most = {"pages": 1}

    def limit(connection: Any) -> None:
        connection.connection.driver_connection.execute(f"PRAGMA max_page_count = {most['pages']}")

    def fill(session: Session) -> None:
        emit(session, contract.NOTED, contract.Noted(key="k"), subject="thing:1")
        for number in range(50):
            add(session, f"{number} {'x' * 4000}")

    sa.event.listen(database.engine, "begin", limit)
    for _ in range(2):
        with pytest.raises(ServiceError) as refused:
            database.write(fill)
        assert refused.value.status == 503
    assert database.read(names) == ["before"]
    assert database.read(lambda session: session.scalar(sa.select(sa.func.count()).select_from(tables.outbox))) == 0
    most["pages"] = 100_000
    database.write(fill)
    assert len(database.read(names)) == 51
    database.dispose()


def test_readiness_says_that_a_database_takes_no_changes(tmp_path: Path) -> None:
    """A heartbeat is missing, because nobody can write one: that is the reason, not the process that would."""
    database = made(f"sqlite:///{tmp_path}/full.sqlite")
    long_ago = tables.heartbeats.insert().values(name="specimen", at=now() - timedelta(minutes=2))
    database.write(lambda session: session.execute(long_ago))
    database.write(add, "x" * 1_000_000)
    (missing,) = process.problems_of(database, "specimen")
    assert "background" in missing
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, before[1]))  # the log is longer than that
    try:
        full = process.problems_of(database, "specimen")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert full == ["its database takes no changes (The database is not available. Try again later.)"]
    assert process.problems_of(database, "specimen") == [missing]
    database.write(process._beat, "specimen")
    assert process.problems_of(database, "specimen") == []
    database.dispose()


def test_a_file_that_cannot_be_put_aside_is_no_fault_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway's folder for temporary files is full."""
    monkeypatch.setattr(MultiPartParser, "spool_max_size", 1000)
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    part = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n' + b"x" * 5000 + b"\r\n--x--\r\n"
    )

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": part, "more_body": False}

    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"multipart/form-data; boundary=x")]}
    with pytest.raises(ServiceError) as refused:
        asyncio.run(attachments._form(Request(scope, receive)))
    assert refused.value.status == 503
