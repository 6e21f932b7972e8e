"""Backups of the six real schemas and their restore: whole or not at all, judged by programs that know nothing of us."""

import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
import sqlalchemy as sa

from contracts.blobs import INCOMING
from contracts.runtime.clock import now
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.data.tables import heartbeats, outbox
from contracts.runtime.restored import identities
from deploy import backup, manifest, restore
from deploy.manifest import Places, Unsuitable, connected
from deploy.services import ROOT, SERVICES
from tests.contract.conftest import ON_SQLITE
from tests.support.servers.object_store import BUCKET, ObjectStore
from tests.support.services.forking import completed
from tests.support.services.migrated import migrated
from tests.support.services.suite import wait_until


def environment(places: Places) -> dict[str, str]:
    urls = {f"{service.upper()}_DATABASE_URL": url for service, url in places.databases.items()}
    return {**os.environ, **urls, "BLOB_URL": places.blobs}


def note(places: Places, service: str, text: str) -> int:
    """A row in a table that every service has; the number that it got."""
    row = {"event_id": text, "source": service, "type": "x", "body": "{}", "created_at": now()}
    with connected(places.databases[service]) as connection, connection.begin():
        (number,) = connection.execute(outbox.insert().values(row)).inserted_primary_key or (0,)
        return int(number)


def notes(places: Places, service: str) -> list[str]:
    with connected(places.databases[service]) as connection:
        return list(connection.scalars(sa.select(outbox.c.event_id).order_by(outbox.c.seq)))


def files(places: Places) -> dict[str, bytes]:
    store = BlobStore.from_url(places.blobs)
    return {one.key: store.get(one.key) for one in store.everything() if not one.key.startswith("marks/")}


def test_what_was_there_comes_back_and_no_number_is_given_twice(places: Places, tmp_path: Path) -> None:
    store = BlobStore.from_url(places.blobs)
    kept = store.put(b"a document", "application/pdf", "submissions/")
    store.put(b"an upload", "application/pdf", INCOMING)
    last = {service: note(places, service, "before") for service in SERVICES}
    backup.backup(places, tmp_path / "backup")
    for service in SERVICES:
        last[service] = max(note(places, service, f"after {number}") for number in range(3))
    store.delete(kept.key)
    restore.restore(places, tmp_path / "backup", replace=True)
    assert files(places).items() >= {kept.key: b"a document"}.items()
    for service in SERVICES:
        assert notes(places, service) == ["before"]
        assert note(places, service, "new") > last[service]


def test_every_table_s_numbers_jump(places: Places, tmp_path: Path) -> None:
    made = backup.backup(places, tmp_path / "backup")
    restore.restore(places, tmp_path / "backup", replace=True)
    for service, url in places.databases.items():
        with connected(url) as connection:
            given = identities.highest_numbers(connection)
            declared = (
                sum(
                    "AUTOINCREMENT" in sql
                    for sql in connection.scalars(
                        sa.text("SELECT coalesce(sql, '') FROM sqlite_master WHERE type = 'table'")
                    )
                )
                if connection.dialect.name == "sqlite"
                else connection.scalar(sa.text("SELECT count(*) FROM pg_sequences WHERE schemaname = current_schema()"))
            )
        assert set(given) == set(made.databases[service].given)
        assert len(given) == declared > 0
        assert all(
            number >= made.databases[service].given[table] + identities.RESERVE for table, number in given.items()
        )


def test_others_judge_the_backup(places: Places, tmp_path: Path) -> None:
    BlobStore.from_url(places.blobs).put(b"a document", "application/pdf", "submissions/")
    note(places, "submissions", "before")
    folder = tmp_path / "backup"
    made = backup.backup(places, folder)
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {line.split("  ")[1] for line in (folder / "SHA256SUMS").read_text().splitlines()} == there - {"SHA256SUMS"}
    assert json.loads((folder / "manifest.json").read_text())["databases"].keys() == set(SERVICES)
    assert folder.stat().st_mode & 0o777 == 0o700
    for copy in made.databases.values():
        file = str(folder / copy.file)
        if copy.kind == "sqlite":
            asked = subprocess.run(
                ["sqlite3", file, "PRAGMA integrity_check"], capture_output=True, text=True, check=True
            )
            assert asked.stdout == "ok\n"
        else:
            listed = subprocess.run(["pg_restore", "--list", file], capture_output=True, text=True, check=True)
            assert " TABLE DATA public outbox " in listed.stdout
    # Looking at it has changed nothing.
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, check=True)


@ON_SQLITE
def test_the_manifest_names_secrets_and_holds_none(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINK_SECRET", "not-to-be-seen")
    made = backup.backup(places, tmp_path / "backup")
    assert {"LINK_SECRET", "KEY_ENCRYPTION_SECRET", "ADMIN_API_KEY", "CERTIFICATE_DIR", "SMTP_URL"} <= set(made.secrets)
    assert all(
        b"not-to-be-seen" not in path.read_bytes() for path in (tmp_path / "backup").rglob("*") if path.is_file()
    )


def test_all_databases_are_seen_at_one_moment(places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written while the first database is being written out is in none of them."""
    written = backup._describe

    def and_meanwhile(*arguments: Any) -> Any:
        for service in SERVICES:
            note(places, service, "meanwhile")
        return written(*arguments)

    monkeypatch.setattr(backup, "_describe", and_meanwhile)
    for service in SERVICES:
        note(places, service, "before")
    made = backup.backup(places, tmp_path / "backup")
    assert {copy.rows["outbox"] for copy in made.databases.values()} == {1}
    moments = [copy.taken_at for copy in made.databases.values()]
    assert moments == sorted(moments)
    assert made.files.taken_at > moments[-1]


@pytest.mark.parametrize(
    ("places", "order"),
    [
        pytest.param("sqlite", SERVICES, id="sqlite-onwards"),
        pytest.param("sqlite", SERVICES[::-1], id="sqlite-backwards"),
        pytest.param("postgresql", SERVICES[::-1], id="postgresql-backwards"),
    ],
    indirect=["places"],
)
def test_no_service_is_ahead_of_another(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Sequence[str]
) -> None:
    """What one told, and the next one took and told in its turn, and so on: however long the snapshots take. Which order is the
    harder one is up to the backup, not to the databases."""
    taken, over = backup._snapshot, threading.Event()

    def slowly(url: str) -> Any:
        time.sleep(0.1)
        return taken(url)

    def tell_on() -> None:
        for number in itertools.count():
            for service in order:
                note(places, service, f"{number}")
                if over.is_set():
                    return

    monkeypatch.setattr(backup, "_snapshot", slowly)
    with ThreadPoolExecutor(1) as pool:
        telling = pool.submit(tell_on)
        wait_until(lambda: notes(places, order[0]), what="the first one to be told")
        try:
            made = backup.backup(places, tmp_path / "backup")
        finally:
            over.set()
        telling.result()
    counts = [made.databases[service].rows["outbox"] for service in order]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] - counts[-1] <= 1
    assert len(notes(places, order[-1])) > counts[-1], "it went on meanwhile"


def test_a_transaction_that_does_not_end_is_told(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(backup, "LONGEST_WAIT", 1)
    for name, value in environment(places).items():
        monkeypatch.setenv(name, value)
    row = {"event_id": "1", "source": "webhooks", "type": "x", "body": "{}", "created_at": now()}
    with connected(places.databases["webhooks"]) as connection, connection.begin() as transaction:
        connection.execute(outbox.insert().values(row))
        assert backup.main([str(tmp_path / "backup")]) == 1
        transaction.rollback()
    assert "the database of webhooks did not stand still, try again" in capsys.readouterr().err
    assert not (tmp_path / "backup").exists()
    note(places, "submissions", "nothing is held any more")


def damage(folder: Path, what: str) -> None:
    if what == "another byte":
        path = next(folder.glob("databases/submissions.*"))
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    elif what == "a file is missing":
        next(folder.glob("files/submissions/*")).unlink()
    elif what == "a file too many":
        (folder / "files" / "more").write_bytes(b"")
    elif what == "no manifest":
        (folder / "manifest.json").unlink()
    else:
        folder.rename(folder.with_name("backup.partial"))
        folder.symlink_to("nowhere")


@ON_SQLITE
@pytest.mark.parametrize("what", ["another byte", "a file is missing", "a file too many", "no manifest", "cut off"])
def test_a_damaged_backup_is_not_restored(places: Places, tmp_path: Path, what: str) -> None:
    BlobStore.from_url(places.blobs).put(b"a document", "application/pdf", "submissions/")
    backup.backup(places, tmp_path / "backup")
    note(places, "submissions", "after")
    damage(tmp_path / "backup", what)
    name = "backup.partial" if what == "cut off" else "backup"
    with pytest.raises(Unsuitable):
        restore.restore(places, tmp_path / name, replace=True)
    assert notes(places, "submissions") == ["after"]


def test_what_is_there_is_not_written_over(places: Places, tmp_path: Path) -> None:
    BlobStore.from_url(places.blobs).put(b"a document", "application/pdf", "submissions/")
    backup.backup(places, tmp_path / "backup")
    note(places, "webhooks", "after")
    with pytest.raises(Unsuitable, match="not empty"):
        restore.restore(places, tmp_path / "backup")
    assert notes(places, "webhooks") == ["after"]
    with pytest.raises(Unsuitable, match="is there already"):
        backup.backup(places, tmp_path / "backup")


def test_into_empty_places(places: Places, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    kept = BlobStore.from_url(places.blobs).put(b"a document", "application/pdf", "submissions/")
    note(places, "submissions", "before")
    backup.backup(places, tmp_path / "backup")
    if places.databases["gateway"].startswith("sqlite"):
        databases = {service: f"sqlite:///{tmp_path}/elsewhere/{service}.sqlite" for service in SERVICES}
    else:
        cluster = request.getfixturevalue("postgres")
        databases = {service: cluster.new_database() for service in SERVICES}
    elsewhere = Places(databases, f"file://{tmp_path}/elsewhere/blobs")
    done = completed("deploy.restore", str(tmp_path / "backup"), environment=environment(elsewhere))
    assert done.returncode == 0, done.stderr
    assert "LINK_SECRET" in done.stdout
    assert notes(elsewhere, "submissions") == ["before"]
    assert files(elsewhere) == {kept.key: b"a document"}


@ON_SQLITE
def test_a_running_suite_is_left_alone(places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat that is fresh and is followed by another one; a fresh one alone may be of the backup."""
    monkeypatch.setattr(restore, "LISTEN_SECONDS", 0.1)

    def beat(moment: Any) -> None:
        with connected(places.databases["templates"]) as connection, connection.begin():
            connection.execute(heartbeats.delete())
            connection.execute(heartbeats.insert().values(name="templates", at=moment))

    backup.backup(places, tmp_path / "backup")
    note(places, "templates", "after")
    beat(now())
    monkeypatch.setattr(time, "sleep", lambda _: beat(now() + timedelta(seconds=5)))
    with pytest.raises(Unsuitable, match=r"still running, stop it first: templates$"):
        restore.restore(places, tmp_path / "backup", replace=True)
    assert notes(places, "templates") == ["after"]
    monkeypatch.setattr(time, "sleep", lambda _: None)
    restore.restore(places, tmp_path / "backup", replace=True)
    assert notes(places, "templates") == []


@ON_SQLITE
def test_of_a_killed_backup_nothing_but_its_partial_folder_is_left(places: Places, tmp_path: Path) -> None:
    store = BlobStore.from_url(places.blobs)
    for number in range(300):
        store.put(b"%d" % number, "text/plain", "submissions/")
    folder, partial = tmp_path / "backup", tmp_path / "backup.partial"
    program = subprocess.Popen([sys.executable, "-m", "deploy.backup", str(folder)], cwd=ROOT, env=environment(places))
    deadline = time.monotonic() + 60
    while not (partial / "files").exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    program.send_signal(signal.SIGKILL)
    program.wait()
    assert partial.exists()
    assert not folder.exists()
    backup.backup(places, folder)
    assert not partial.exists()
    assert len(list((folder / "files" / "submissions").iterdir())) == 300


def test_a_killed_restore_is_done_again(places: Places, tmp_path: Path) -> None:
    store = BlobStore.from_url(places.blobs)
    kept = [store.put(b"%d" % number, "text/plain", "submissions/") for number in range(20)]
    for service in SERVICES:
        note(places, service, "before")
    backup.backup(places, tmp_path / "backup")
    last = {service: note(places, service, "after") for service in SERVICES}
    for one in kept:
        store.delete(one.key)
    arguments = ["deploy.restore", "--replace", str(tmp_path / "backup")]
    command = [sys.executable, "-m", *arguments]
    program = subprocess.Popen(command, cwd=ROOT, env=environment(places), stdout=subprocess.PIPE)
    assert program.stdout is not None
    program.stdout.readline()  # the first database is back
    program.send_signal(signal.SIGKILL)
    program.wait()
    completed(*arguments, environment=environment(places)).check_returncode()
    for service in SERVICES:
        assert notes(places, service) == ["before"]
        assert note(places, service, "new") > last[service]
    assert set(files(places)) == {one.key for one in kept}


def on_sqlite(tmp_path: Path, blobs: str) -> Places:
    made = Places({service: f"sqlite:///{tmp_path}/{service}.sqlite" for service in SERVICES}, blobs)
    for service, url in made.databases.items():
        migrated(service, url)
    return made


def test_the_log_of_the_database_before_does_not_get_into_the_restored_one(tmp_path: Path) -> None:
    """On SQLite what was written last is in a file beside the database, and stays when somebody removes only that one."""
    places = on_sqlite(tmp_path, f"file://{tmp_path}/blobs")
    note(places, "submissions", "before")
    backup.backup(places, tmp_path / "backup")
    path = tmp_path / "submissions.sqlite"
    with sqlite3.connect(path) as left_open:
        left_open.execute("PRAGMA journal_mode = WAL")
        left_open.execute("SELECT count(*) FROM outbox").fetchone()  # who closes it last removes the log
        note(places, "submissions", "after")
        for log in ("-wal", "-shm"):  # as after kill -9
            shutil.copy(f"{path}{log}", f"{path}{log}.kept")
    left_open.close()
    for log in ("-wal", "-shm"):
        shutil.copy(f"{path}{log}.kept", f"{path}{log}")
    path.unlink()
    restore.restore(places, tmp_path / "backup", replace=True)
    assert notes(places, "submissions") == ["before"]
    asked = subprocess.run(["sqlite3", str(path), "PRAGMA integrity_check"], capture_output=True, text=True, check=True)
    assert asked.stdout == "ok\n"


@pytest.fixture
def two_databases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for service in SERVICES:
        monkeypatch.delenv(f"{service.upper()}_DATABASE_URL", raising=False)
    monkeypatch.delenv("BLOB_URL", raising=False)
    monkeypatch.setenv("VAR_DIR", str(tmp_path))


@pytest.mark.usefixtures("two_databases")
def test_without_settings_it_is_the_suite_of_make_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Places.from_environment().databases["webhooks"] == f"sqlite:///{tmp_path}/databases/webhooks.sqlite"
    assert Places.from_environment().blobs == f"file://{tmp_path}/blobs"
    monkeypatch.setenv("BLOB_URL", "s3://files/x")
    with pytest.raises(Unsuitable, match="not set: TEMPLATES_DATABASE_URL"):
        Places.from_environment()


@ON_SQLITE
def test_listed_files_stay_where_they_are(places: Places, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = BlobStore.from_url(places.blobs)
    kept, lost = (store.put(data, "text/plain", "submissions/") for data in (b"kept", b"lost"))
    made = backup.backup(places, tmp_path / "backup", copy_files=False)
    assert (made.files.kind, made.files.count, made.files.bytes) == ("listed", 2, 8)
    assert not (tmp_path / "backup" / "files").exists()
    store.delete(lost.key)
    restore.restore(places, tmp_path / "backup", replace=True)
    assert f"not in the file store as it was: {lost.key}" in capsys.readouterr().out
    assert set(files(places)) == {kept.key}


@ON_SQLITE
def test_manifests_of_another_format_are_refused(places: Places, tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    made = backup.backup(places, folder)
    (folder / "manifest.json").write_text(made.model_copy(update={"format": 2}).model_dump_json())
    (folder / "SHA256SUMS").unlink()
    manifest.write_sums(folder)
    with pytest.raises(Unsuitable, match="format 2"):
        restore.restore(places, folder, replace=True)


@pytest.fixture
def object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The blob store's URL in a server that speaks S3, and lists ten files at once."""
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")
    server = ObjectStore(tmp_path / "object-store.log")
    settings = server.settings(server.port)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    yield settings["BLOB_URL"]
    server.stop()


def test_files_in_an_object_store_come_back(object_store: str, tmp_path: Path) -> None:
    """More than S3 lists at once. What was only listed is told when it is gone."""
    places = on_sqlite(tmp_path, object_store)
    store = BlobStore.from_url(places.blobs)
    kept = {store.put(b"%d" % number, "text/plain", "submissions/").key: b"%d" % number for number in range(25)}
    assert boto3.client("s3").list_objects_v2(Bucket=BUCKET)["IsTruncated"]
    for name, copied in (("copied", True), ("listed", False)):
        made = backup.backup(places, tmp_path / name, copy_files=copied)
        assert (made.files.kind, made.files.count) == (name, len(kept))
    lost = next(iter(kept))
    store.delete(lost)
    for name, missing in (("listed", True), ("copied", False)):
        told = completed("deploy.restore", "--replace", str(tmp_path / name), environment=environment(places))
        told.check_returncode()
        assert (f"not in the file store as it was: {lost}" in told.stdout) is missing
    assert files(places) == kept
