"""Users and their keys: the rules, on real databases."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.runtime.data.database import Database
from contracts.types import Role
from services.gateway.accounts import commands, queries
from services.gateway.accounts.api_keys.keys import KeyRing, new_api_key
from tests.support.services.migrated import migrated

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
RING = KeyRing("a secret of the tests")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    migrated("gateway", database_url)
    database = Database(database_url)
    yield database
    database.dispose()


def add(database: Database, email: str, role: Role = Role.ADMIN, **more: Any) -> tuple[dict[str, Any], str]:
    key = new_api_key()
    user = database.write(
        commands.create_user, commands.NewUser(email, role=role, **more), "hash", RING.seal(key), more.get("now", NOW)
    )
    return user, key


def whose(database: Database, key: str) -> str | None:
    known = database.read(queries.known_key, RING.hash(key))
    return known.actor.email if known else None


def test_a_user_is_found_by_the_key(database: Database) -> None:
    user, key = add(database, "ana@example.com", Role.EDITOR, first_name="Ana", last_name="Ray")
    known = database.read(queries.known_key, RING.hash(key))
    assert known is not None
    actor = known.actor
    assert (actor.user_id, actor.role, actor.email, actor.name) == (
        user["id"],
        Role.EDITOR,
        "ana@example.com",
        "Ana Ray",
    )
    assert (actor.first_name, actor.last_name) == ("Ana", "Ray")
    assert whose(database, new_api_key()) is None
    shown, sealed = database.read(queries.sealed_key, user["id"])
    assert shown == user
    assert RING.unseal(sealed) == key


def test_the_database_holds_no_key(database: Database) -> None:
    _, key = add(database, "ana@example.com")
    with database.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM users").fetchall()
    assert key not in str(
        [tuple(bytes(cell) if isinstance(cell, memoryview) else cell for cell in row) for row in rows]
    )


def test_an_address_is_there_once_however_it_is_written(database: Database) -> None:
    add(database, "Ana@Example.com")
    with pytest.raises(ServiceError) as refused:
        add(database, "ana@example.COM")
    assert refused.value.code == "invalid"
    assert refused.value.details[0]["field"] == "email"
    bob, _ = add(database, "bob@example.com")
    with pytest.raises(ServiceError, match="already been taken"):
        database.write(commands.update_user, bob["id"], {"email": "ANA@example.com"}, LATER)
    assert [user["email"] for user in database.read(queries.users)] == ["Ana@Example.com", "bob@example.com"]
    assert (
        database.write(commands.update_user, bob["id"], {"email": "BOB@example.com"}, LATER)["email"]
        == "BOB@example.com"
    )


def test_of_two_who_add_one_address_at_once_one_is_refused(database: Database) -> None:
    outcomes: list[str] = []
    together = threading.Barrier(2)

    def try_it() -> None:
        together.wait()
        try:
            add(database, "same@example.com")
            outcomes.append("added")
        except ServiceError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=try_it) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["added", "invalid"]
    assert len(database.read(queries.users)) == 1


def test_a_new_key_ends_the_old_one(database: Database) -> None:
    user, old = add(database, "ana@example.com")
    fresh = new_api_key()
    changed = database.write(commands.rotate_api_key, user["id"], RING.seal(fresh), LATER)
    assert whose(database, old) is None
    assert whose(database, fresh) == "ana@example.com"
    assert changed["updated_at"] > user["updated_at"]


def test_an_archived_user_is_gone_with_the_key(database: Database) -> None:
    add(database, "admin@example.com")
    user, key = add(database, "bob@example.com", Role.VIEWER)
    database.write(commands.archive_user, user["id"], 0, LATER)
    assert whose(database, key) is None
    assert [each["email"] for each in database.read(queries.users)] == ["admin@example.com"]
    for use_case in (
        lambda: database.read(queries.user, user["id"]),
        lambda: database.read(queries.sealed_key, user["id"]),
        lambda: database.write(commands.update_user, user["id"], {"first_name": "B"}, LATER),
        lambda: database.write(commands.rotate_api_key, user["id"], RING.seal(new_api_key()), LATER),
        lambda: database.write(commands.archive_user, user["id"], 0, LATER),
    ):
        with pytest.raises(ServiceError) as refused:
            use_case()
        assert refused.value.code == "not_found"


def test_adding_an_archived_address_restores_the_user_with_new_values_and_a_new_key(database: Database) -> None:
    add(database, "admin@example.com")
    before, old = add(database, "bob@example.com", Role.EDITOR, first_name="Bob")
    database.write(commands.archive_user, before["id"], 0, NOW)
    after, key = add(database, "BOB@example.com", Role.VIEWER, first_name="Robert")
    assert after["id"] == before["id"]
    assert (after["role"], after["first_name"], after["created_at"]) == ("viewer", "Robert", before["created_at"])
    assert whose(database, old) is None
    assert whose(database, key) == "BOB@example.com"


def test_the_last_admin_stays(database: Database) -> None:
    admin, _ = add(database, "admin@example.com")
    add(database, "editor@example.com", Role.EDITOR)
    use_cases: tuple[Callable[[], object], ...] = (
        lambda: database.write(commands.archive_user, admin["id"], 0, LATER),
        lambda: database.write(commands.update_user, admin["id"], {"role": "viewer", "first_name": "X"}, LATER),
    )
    for use_case in use_cases:
        with pytest.raises(ServiceError) as refused:
            use_case()
        assert refused.value.code == "invalid"
    assert database.read(queries.user, admin["id"]) == admin
    second, _ = add(database, "second@example.com")
    assert database.write(commands.update_user, admin["id"], {"role": "viewer"}, LATER)["role"] == "viewer"
    with pytest.raises(ServiceError, match="last admin"):
        database.write(commands.archive_user, second["id"], admin["id"], LATER)


def test_two_admins_cannot_demote_each_other_at_once(database: Database) -> None:
    admins = [add(database, f"admin{number}@example.com")[0]["id"] for number in range(2)]
    together = threading.Barrier(2)
    told: list[str] = []

    def demote(user_id: int) -> None:
        together.wait()
        try:
            database.write(commands.update_user, user_id, {"role": "editor"}, LATER)
        except ServiceError as error:
            told.append(error.message)

    threads = [threading.Thread(target=demote, args=[user_id]) for user_id in admins]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == ["The role of the last admin cannot be changed."]
    assert [user["role"] for user in database.read(queries.users)].count("admin") == 1


def test_nobody_archives_himself(database: Database) -> None:
    admin, _ = add(database, "admin@example.com")
    add(database, "second@example.com")
    with pytest.raises(ServiceError, match="your own account"):
        database.write(commands.archive_user, admin["id"], admin["id"], LATER)


def test_the_first_admin_is_made_once_and_a_rotated_key_does_not_come_back(database: Database) -> None:
    def start(email: str, key: str) -> bool:
        return database.write(commands.ensure_first_admin, email, RING.seal(key), lambda: "hash", NOW)

    assert start("admin@example.com", "first-key-of-the-operator")
    assert not start("admin@example.com", "first-key-of-the-operator")
    (admin,) = database.read(queries.users)
    fresh = new_api_key()
    database.write(commands.rotate_api_key, admin["id"], RING.seal(fresh), LATER)
    assert not start("ADMIN@example.com", "first-key-of-the-operator")
    assert whose(database, "first-key-of-the-operator") is None
    assert whose(database, fresh) == "admin@example.com"
    assert start("admin@example.com", "second-key-of-the-operator")
    assert whose(database, fresh) is None
    assert whose(database, "second-key-of-the-operator") == "admin@example.com"
    add(database, "other@example.com")
