"""Databases of all services, from SQLite to PostgreSQL and back: what comes out is what went in, whatever is killed when."""

import importlib
import multiprocessing
import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import psycopg.errors
import pytest
import sqlalchemy as sa

from contracts.errors import CannotStart
from contracts.runtime import migrations
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database, make_engine, normalised
from contracts.runtime.data.tables import outbox, runtime_metadata
from contracts.runtime.restored import identities
from deploy.manifest import Unsuitable, connected, tables_of
from deploy.moving import databases, program
from deploy.moving import move as moving
from deploy.moving.databases import Target
from deploy.moving.move import examined, move
from deploy.services import SERVICES
from tests.support.material.awkward_rows import ROWS, fill
from tests.support.servers.postgres import PrivatePostgres
from tests.support.services.migrated import migrated

FORK = multiprocessing.get_context("fork")
KILLED = -signal.SIGKILL


def tables(service: str) -> list[sa.Table]:
    models = importlib.import_module(f"services.{service}.models")
    return [*runtime_metadata.sorted_tables, *models.Base.metadata.sorted_tables]


def moved(service: str, source: str, target: str) -> moving.Moved:
    with examined(service, source) as held, Target(target) as opened:
        return move(held, opened)


def as_models_read(service: str, url: str) -> dict[str, dict[tuple[Any, ...], tuple[Any, ...]]]:
    """What a service finds, by table and primary key: by SQLAlchemy's types, and none of what moves it."""
    engine = make_engine(normalised(url))
    try:
        with engine.connect() as connection:
            rows = {table: connection.execute(sa.select(table)).mappings().all() for table in tables(service)}
            return {
                table.name: {tuple(row[one] for one in table.primary_key): tuple(row.values()) for row in found}
                for table, found in rows.items()
            }
    finally:
        engine.dispose()


def as_stored(service: str, url: str, *, json: bool) -> dict[str, list[tuple[Any, ...]]]:
    """What is in an SQLite file, with the types of its values; ``json``: with the columns of JSON."""
    found = {}
    with sqlite3.connect(normalised(url).database or "") as connection:
        for table in tables(service):
            names = [f'"{column.name}"' for column in table.columns if json or not isinstance(column.type, sa.JSON)]
            columns = ", ".join([*names, *(f"typeof({name})" for name in names)])
            found[table.name] = sorted(connection.execute(f"SELECT {columns} FROM {table.name}"), key=repr)
    connection.close()
    return found


def numbers(url: str) -> dict[str, int]:
    with connected(url) as connection:
        return identities.highest_numbers(connection)


@pytest.fixture
def sorted_by_language(postgres: PrivatePostgres) -> str:
    """An empty database whose texts are in another order than their bytes."""
    name = normalised(postgres.new_database()).database
    where = f"postgresql://postgres@127.0.0.1:{postgres.port}"
    with psycopg.connect(f"{where}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name}")
        icu = "ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en' TEMPLATE template0"
        connection.execute(f"CREATE DATABASE {name} {icu if connection.info.server_version >= 150_000 else ''}")
    return f"{where}/{name}"


def filled(service: str, folder: Path, *, name: str = "source") -> str:
    """An SQLite database with a row of each kind in every table, where the last number that was given out is gone again."""
    url = f"sqlite:///{folder}/{name}.sqlite"
    migrated(service, url)
    fill(service, url, tables(service))
    with connected(url) as connection, connection.begin():
        row = {"event_id": "gone", "source": service, "type": "x", "body": "{}", "created_at": now()}
        (number,) = connection.execute(outbox.insert().values(row)).inserted_primary_key or (0,)
        connection.execute(outbox.delete().where(outbox.c.seq == number))
    return url


@pytest.mark.parametrize("service", SERVICES)
def test_everything_comes_out_as_it_went_in(service: str, tmp_path: Path, sorted_by_language: str) -> None:
    source, target = filled(service, tmp_path), sorted_by_language
    before, given = as_stored(service, source, json=True), numbers(source)
    found = moved(service, source, target)
    assert found.kinds == ("SQLite", "PostgreSQL")
    assert {name: one.rows for name, one in found.counted.items()} == {table.name: ROWS for table in tables(service)}
    assert as_models_read(service, target) == as_models_read(service, source)
    assert {name: number for name, number in numbers(target).items() if name in given} == given
    assert given["outbox"] == 2**40
    assert migrations.pending(service, target) is None
    assert migrations.differences(service, target) == []
    assert as_stored(service, source, json=True) == before, "the source is not changed"

    back = f"sqlite:///{tmp_path}/back/{service}.sqlite"
    moved(service, target, back)
    assert as_models_read(service, back) == as_models_read(service, source)
    assert as_stored(service, back, json=False) == as_stored(service, source, json=False)
    assert numbers(back) == given
    assert migrations.differences(service, back) == []
    path = Path(normalised(back).database or "")
    assert path.stat().st_mode & 0o777 == 0o600
    said = subprocess.run(
        ["sqlite3", str(path), "PRAGMA integrity_check; PRAGMA foreign_key_check"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "ok\n"


def test_a_second_way_there_and_back_changes_not_a_byte(tmp_path: Path, postgres: PrivatePostgres) -> None:
    """Not of JSON either, once PostgreSQL has put it into its order."""
    source, urls = filled("notifications", tmp_path), [postgres.new_database(), f"sqlite:///{tmp_path}/back.sqlite"]
    urls += [postgres.new_database(), f"sqlite:///{tmp_path}/again.sqlite"]
    for one, next_one in pairwise([source, *urls]):
        moved("notifications", one, next_one)
    assert as_stored("notifications", urls[3], json=True) == as_stored("notifications", urls[1], json=True)


def test_what_is_searched_for_is_found_in_the_new_file(tmp_path: Path, postgres: PrivatePostgres) -> None:
    source, target = filled("templates", tmp_path), postgres.new_database()
    moved("templates", source, target)
    back = f"sqlite:///{tmp_path}/back.sqlite"
    moved("templates", target, back)
    with connected(back) as connection:
        found = "SELECT count(*) FROM templates_name_lower_trigrams WHERE templates_name_lower_trigrams MATCH '\"both ends\"'"
        assert connection.scalar(sa.text(found)) == 1


# --- killed


def killed_at(service: str, source: str, target: str, patch: Callable[[], None]) -> int:
    """How a process ends that moves after ``patch``."""

    def run() -> None:
        moving.PORTION_ROWS = 2
        patch()
        moved(service, source, target)

    process = FORK.Process(target=run)
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def dying(owner: Any, name: str, *, calls: int = 1, after: bool = False) -> Callable[[], None]:
    """Has the process killed at a call of this function, or after it."""

    def patch() -> None:
        real, left = getattr(owner, name), [calls]

        def instead(*arguments: Any, **more: Any) -> Any:
            left[0] -= 1
            if not left[0] and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*arguments, **more)
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(owner, name, instead)

    return patch


@pytest.mark.parametrize("kind", ["to postgresql", "to sqlite"])
def test_killed_at_any_step_and_run_again_it_comes_to_the_same(
    kind: str, tmp_path: Path, postgres: PrivatePostgres
) -> None:
    service = "gateway"
    source = filled(service, tmp_path)
    target = postgres.new_database()
    writes: type[databases.OnPostgresql | databases.OnSqlite] = databases.OnPostgresql
    if kind == "to sqlite":
        moved(service, source, target)
        source, target, writes = target, f"sqlite:///{tmp_path}/target.sqlite", databases.OnSqlite
    steps = [
        dying(Target, "begin", after=True),  # nothing but the mark is there
        dying(migrations, "upgrade", after=True),  # the schema, with the rows that migrations make
        dying(Target, "add", calls=2, after=True),
        dying(writes, "insert", calls=3, after=True),  # within the transaction of a portion
        dying(Target, "add", calls=12),
        dying(Target, "go_on_above"),
        dying(Target, "end"),
    ]
    for step in steps:
        assert killed_at(service, source, target, step) == KILLED
        assert "is not whole" in (migrations.pending(service, target) or ""), "no service starts on it"
        with pytest.raises(CannotStart, match="run countersign move again"):
            migrations.upgrade(service, target)
    assert killed_at(service, source, target, lambda: None) == 0
    assert as_models_read(service, target) == as_models_read(service, source)
    assert numbers(target)["outbox"] == 2**40
    assert migrations.pending(service, target) is None
    assert moved(service, source, target).again


def test_a_source_that_was_used_meanwhile_is_moved_anew(tmp_path: Path, postgres: PrivatePostgres) -> None:
    source, target = filled("gateway", tmp_path), postgres.new_database()
    assert killed_at("gateway", source, target, dying(Target, "add", calls=9)) == KILLED
    with connected(source) as connection, connection.begin():
        connection.execute(outbox.delete().where(outbox.c.seq == 1))
    assert not moved("gateway", source, target).again
    assert as_models_read("gateway", target) == as_models_read("gateway", source)


# --- refused, and nothing is changed


def is_empty(url: str) -> bool:
    if url.startswith("sqlite"):
        return not Path(normalised(url).database or "").exists()
    with connected(url) as connection:
        return tables_of(connection) == []


@pytest.fixture
def small(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/small.sqlite"
    migrated("templates", url)
    return url


def changed(url: str, *statements: str) -> None:
    with sqlite3.connect(normalised(url).database or "") as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_what_postgresql_would_refuse_is_named_before_anything_is_changed(
    tmp_path: Path, postgres: PrivatePostgres
) -> None:
    source, target = filled("templates", tmp_path), postgres.new_database()
    spoilt = {
        "1, name": ("'a' || char(0) || 'b'", "it is a text with a NUL character, which PostgreSQL refuses"),
        "2, name": ("CAST(x'ff' AS TEXT)", "it is a text that is not in UTF-8"),
        "5, author": ("'{'", "it is not JSON"),
        "7, fields": ("'[\"\\u0000\"]'", "it is JSON of which PostgreSQL keeps no part"),
        "30, sequence": ("2147483648", "it is beyond 2147483647"),
        "4096, shared_link": ("2", "it is neither true nor false"),
    }
    for place, (value, _) in spoilt.items():
        key, column = place.split(", ")
        changed(source, f"UPDATE templates SET {column} = {value} WHERE id = {key}")
    changed(source, "PRAGMA foreign_keys = OFF", "DELETE FROM folders WHERE id = 2")
    with pytest.raises(Unsuitable) as refused:
        moved("templates", source, target)
    said = str(refused.value).splitlines()
    assert said[0] == "it holds what cannot be moved:"
    for place, (_, words) in spoilt.items():
        assert [line for line in said if line.startswith(f"  templates with id {place}: {words}")], said
    assert [
        line for line in said if line.startswith("  templates, row 2: it names one of folders that is not there")
    ], said
    assert is_empty(target)


def test_what_only_postgresql_knows_to_refuse_is_named_and_can_be_mended(
    tmp_path: Path, postgres: PrivatePostgres
) -> None:
    """How long a text in an index may be depends on how well it can be compressed."""
    source, target = filled("templates", tmp_path), postgres.new_database()
    changed(source, "UPDATE templates SET external_id = hex(randomblob(4000)) WHERE id = 30")
    with pytest.raises(Unsuitable, match="templates with id 30 is refused by PostgreSQL: index row size"):
        moved("templates", source, target)
    assert migrations.pending("templates", target) is not None
    changed(source, "UPDATE templates SET external_id = 'short' WHERE id = 30")
    moved("templates", source, target)
    assert as_models_read("templates", target) == as_models_read("templates", source)


def test_a_source_in_use_is_left_alone(small: str, postgres: PrivatePostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "PATIENCE", 0.2)
    target = postgres.new_database()
    service = Database(small)
    service.read(lambda session: session.scalar(sa.select(sa.func.count()).select_from(outbox)))
    with pytest.raises(Unsuitable, match="a process has it open"):
        moved("templates", small, target)
    service.dispose()
    assert is_empty(target)
    moved("templates", small, target)
    back = small.replace("small", "back")
    told = r"others are connected to it, stop them first: postgres at 127\.0\.0\.1"
    address = normalised(target).set(drivername="postgresql").render_as_string()
    with psycopg.connect(address), pytest.raises(Unsuitable, match=told):
        moved("templates", target, back)
    assert is_empty(back)


def test_nobody_writes_to_a_source_that_is_held(small: str, postgres: PrivatePostgres) -> None:
    target = postgres.new_database()
    row = {"event_id": "1", "source": "x", "type": "x", "body": "{}", "created_at": now()}
    with examined("templates", small) as held:
        with connected(f"{small}?timeout=0") as connection, pytest.raises(sa.exc.OperationalError, match="is locked"):
            connection.execute(outbox.insert().values(row))
        with Target(target) as opened:
            move(held, opened)
    with examined("templates", target), connected(target) as connection:
        connection.execute(sa.text("SET lock_timeout = 200"))
        with pytest.raises(sa.exc.OperationalError, match="lock timeout"):
            connection.execute(outbox.insert().values(row))


def test_a_source_of_another_version_is_refused(small: str, postgres: PrivatePostgres) -> None:
    target = postgres.new_database()
    latest = migrations.revisions("templates")
    migrations.downgrade("templates", small, latest[-2])
    with pytest.raises(
        Unsuitable, match=rf"at {latest[-2]}, this version's at {latest[-1]}: .* countersign migrate templates"
    ):
        moved("templates", small, target)
    migrations.upgrade("templates", small)
    changed(small, "CREATE TABLE mine (id INTEGER PRIMARY KEY)")
    with pytest.raises(Unsuitable, match=r"does not know, and would stay behind: mine$"):
        moved("templates", small, target)
    changed(small, "DROP TABLE mine", "ALTER TABLE folders ADD COLUMN mine TEXT")
    with pytest.raises(Unsuitable, match=r"its table folders is not as this version has it: mine$"):
        moved("templates", small, target)
    assert is_empty(target)


def test_nothing_is_written_over(tmp_path: Path, small: str, postgres: PrivatePostgres) -> None:
    target = postgres.new_database()
    with connected(target) as connection, connection.begin():
        connection.execute(sa.text("CREATE TABLE somebodys (id int)"))
    with pytest.raises(Unsuitable, match="the target is not empty"):
        moved("templates", small, target)
    migrated("templates", other := postgres.new_database())  # another installation's
    with pytest.raises(Unsuitable, match="the target is not empty"):
        moved("templates", small, other)
    half = postgres.new_database()
    killed_at("gateway", filled("gateway", tmp_path), half, dying(Target, "add", calls=2))
    with pytest.raises(Unsuitable, match="a part of another database"):
        moved("templates", small, half)
    moved("templates", small, done := postgres.new_database())
    with connected(done) as connection, connection.begin():
        connection.execute(sa.text("UPDATE event_stream SET begun_at = now()"))
    with pytest.raises(Unsuitable, match="was moved there before, and one of both has changed since"):
        moved("templates", small, done)


def test_what_came_out_otherwise_is_told(
    small: str, postgres: PrivatePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the target's disk, or a trigger of somebody's, had changed what was written."""
    target, insert = postgres.new_database(), databases.OnPostgresql.insert

    def and_spoil(opened: databases.Opened, table: databases.Table, rows: Any) -> None:
        insert(opened, table, rows)  # type: ignore[arg-type]
        if table.name == "event_stream":
            opened.driver.execute("UPDATE event_stream SET kept_since = kept_since + interval '1 microsecond'")

    monkeypatch.setattr(databases.OnPostgresql, "insert", and_spoil)
    with pytest.raises(moving.Different, match=r"not what was moved: event_stream \(1 rows, 1 there\)"):
        moved("templates", small, target)
    assert migrations.pending("templates", target) is not None


# --- the command


@pytest.fixture
def suite_on_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The databases of all services, as the environment names them."""
    folder = tmp_path / "databases"
    for service in SERVICES:
        url = f"sqlite:///{folder}/{service}.sqlite"
        migrated(service, url)
        monkeypatch.setenv(f"{service.upper()}_DATABASE_URL", url)
    return folder


def test_all_services_of_a_suite_are_moved_by_their_own_roles(
    suite_on_sqlite: Path,
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = PrivatePostgres(workspace / "moved-by-roles")
    cluster.start()
    try:
        urls = cluster.service_databases()
        monkeypatch.setenv("PGPASSWORD", "c4n4ry")
        to = f"postgresql://{{service}}@127.0.0.1:{cluster.port}/{{service}}"
        assert program.main(["--all", "--to", to]) == 0, capsys.readouterr().err
        said = capsys.readouterr().out
        for service in SERVICES:
            own = f"postgresql://{service}@127.0.0.1:{cluster.port}/{service}"
            assert f"{service}: SQLite -> PostgreSQL" in said
            assert f"\n  {service.upper()}_DATABASE_URL={own}\n" in said
            assert migrations.pending(service, urls[service]) is None
            monkeypatch.setenv(f"{service.upper()}_DATABASE_URL", own.replace("@", ":c4n4ry@"))
        back = tmp_path / "back"
        back.mkdir()
        assert program.main(["--all", "--to", f"sqlite:///{back}"]) == 0, capsys.readouterr().err
        assert "c4n4ry" not in capsys.readouterr().out
        assert {path.name for path in back.glob("*.sqlite")} == {f"{service}.sqlite" for service in SERVICES}
    finally:
        cluster.stop()


def test_when_one_of_all_is_refused_none_is_moved(
    suite_on_sqlite: Path, postgres: PrivatePostgres, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(f"sqlite:///{suite_on_sqlite}/webhooks.sqlite", "UPDATE log_head SET last_recorded_at = 'never'")
    for service in SERVICES:
        postgres.new_database(f"none_{service}")
    to = f"postgresql://postgres@127.0.0.1:{postgres.port}/none_{{service}}"
    assert program.main(["--all", "--to", to]) == 1
    said = capsys.readouterr().err
    assert (
        "Not moved: webhooks: it holds what cannot be moved:\n  log_head with id 1, last_recorded_at: it is not a moment"
        in said
    )
    assert all(is_empty(to.format(service=service)) for service in SERVICES)


@pytest.mark.usefixtures("suite_on_sqlite")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--all", "--to", "postgresql://127.0.0.1:1/one"], "each database needs a place of its own"),
        (["gateway", "--to", "mysql://127.0.0.1/x"], "--to is no URL of a database"),
        (["gateway", "--to", "here"], "--to is no URL of a database"),
        (["gateway", "--to", "postgresql://127.0.0.1:1/x"], "Cut off, do it again: "),
    ],
)
def test_a_mistake_in_the_target_is_a_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(arguments) == 1
    assert said in capsys.readouterr().err


def test_a_database_is_not_moved_onto_itself(suite_on_sqlite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["gateway", "--to", f"sqlite:///{suite_on_sqlite}/../databases/gateway.sqlite"]) == 1
    assert "a place of its own" in capsys.readouterr().err


def test_without_its_setting_there_is_no_source(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GATEWAY_DATABASE_URL", raising=False)
    assert program.main(["gateway", "--to", "postgresql://127.0.0.1:1/x"]) == 1
    assert "Not moved: not set: GATEWAY_DATABASE_URL" in capsys.readouterr().err
