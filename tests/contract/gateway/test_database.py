"""The gateway's tables and what is done with them, on both databases."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.runtime import migrations
from contracts.runtime.data.database import Database
from contracts.runtime.data.tables import outbox
from contracts.types import Account, Actor, Role
from services.gateway.accounts import commands, queries
from services.gateway.accounts.api_keys.keys import KeyRing
from services.gateway.accounts.auth import Authenticator
from services.gateway.accounts.direct import DirectReads
from services.gateway.models import AccountRow
from tests.support.services.migrated import migrated

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
KEYS = KeyRing("a secret of the operator")


@pytest.fixture
def database(database_url: str) -> Database:
    migrated("gateway", database_url)
    return Database(database_url)


def add(database: Database, email: str, key: str, role: Role = Role.ADMIN) -> int:
    new = commands.NewUser(email=email, role=role)
    return int(database.write(commands.create_user, new, "hash", KEYS.seal(key), NOW)["id"])


def first_admin(database: Database, email: str, key: str) -> bool:
    return database.write(commands.ensure_first_admin, email, KEYS.seal(key), lambda: "hash", NOW)


def who(database: Database, key: str) -> Actor | None:
    known = database.read(queries.known_key, KEYS.hash(key))
    return known.actor if known else None


def test_the_migration_makes_what_the_models_say_and_can_be_taken_back(database_url: str) -> None:
    migrations.upgrade("gateway", database_url)
    assert migrations.differences("gateway", database_url) == []
    migrations.downgrade("gateway", database_url)
    migrations.upgrade("gateway", database_url)


def test_the_first_admin_is_made_once(database: Database) -> None:
    assert first_admin(database, "admin@example.com", "first")
    assert not first_admin(database, "Admin@Example.com", "first")
    actor = who(database, "first")
    assert actor is not None
    assert (actor.role, actor.email) == (Role.ADMIN, "admin@example.com")


def test_the_others_are_told_who_the_admins_are_when_that_changes(database: Database) -> None:
    def told() -> list[tuple[list[str], int]]:
        for _ in range(2):
            if database.read(queries.admins_untold):
                database.write(commands.tell_admins, NOW)
            database.write(commands.tell_admins, NOW)
        bodies = database.read(lambda s: s.scalars(sa.select(outbox.c.body).order_by(outbox.c.seq)).all())
        return [(data["emails"], data["revision"]) for data in (json.loads(body)["data"] for body in bodies)]

    first = add(database, "ada@example.com", "one")
    second = add(database, "grace@example.com", "two")
    add(database, "eve@example.com", "three", Role.EDITOR)
    by_clock = int((NOW - datetime(2026, 1, 1, tzinfo=UTC)).total_seconds())
    both = (["ada@example.com", "grace@example.com"], by_clock)
    assert told() == [both]
    database.write(commands.archive_user, first, second, NOW)
    assert told() == [both, (["grace@example.com"], by_clock + 1)]


def test_the_admins_are_told_again_and_after_a_restore_with_a_higher_revision(database: Database) -> None:
    def told() -> list[int]:
        bodies = database.read(lambda s: s.scalars(sa.select(outbox.c.body).order_by(outbox.c.seq)).all())
        return [json.loads(body)["data"]["revision"] for body in bodies]

    database.write(commands.tell_admins_again)
    assert told() == [], "before anybody was told there is nothing to repeat"
    add(database, "ada@example.com", "one")
    database.write(commands.tell_admins, NOW)
    database.write(commands.tell_admins_again)
    first = told()[0]
    assert told() == [first, first]
    add(database, "grace@example.com", "two")
    database.write(commands.tell_admins, NOW + timedelta(hours=1))
    assert told()[-1] >= first + 3600, "what was told in between, and lost with the database, is below that"


def test_many_starts_at_once_make_one_admin(database: Database) -> None:
    with ThreadPoolExecutor(6) as pool:
        changed = list(pool.map(lambda _: first_admin(database, "admin@example.com", "first"), range(6)))
    assert sorted(changed) == [False] * 5 + [True]
    assert len(database.read(queries.users)) == 1


def test_a_start_does_not_undo_what_was_done_since(database: Database) -> None:
    """A key that was rotated because somebody learned it must not come back with the next start."""
    first_admin(database, "admin@example.com", "first")
    user_id = database.read(queries.users)[0]["id"]
    database.write(commands.rotate_api_key, user_id, KEYS.seal("second"), NOW)
    assert not first_admin(database, "admin@example.com", "first")
    assert who(database, "first") is None
    assert who(database, "second") is not None


def test_a_new_key_in_the_environment_is_applied(database: Database) -> None:
    first_admin(database, "admin@example.com", "first")
    assert first_admin(database, "admin@example.com", "third")
    assert who(database, "first") is None
    assert who(database, "third") is not None


def test_the_first_admin_cannot_take_another_s_key(database: Database) -> None:
    add(database, "ana@example.com", "hers")
    with pytest.raises(ServiceError, match="another user"):
        first_admin(database, "admin@example.com", "hers")
    assert [user["email"] for user in database.read(queries.users)] == ["ana@example.com"]


def test_two_admins_cannot_archive_each_other_at_once(database: Database) -> None:
    pairs = [(add(database, f"{n}@example.com", f"key {n}"), n) for n in range(2)]
    (one, _), (two, _) = pairs

    def archive(pair: tuple[int, int]) -> str:
        try:
            database.write(commands.archive_user, *pair, NOW)
        except ServiceError as error:
            return error.message
        return "done"

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(archive, [(one, two), (two, one)]))
    assert sorted(outcomes) == ["The last admin cannot be removed.", "done"]
    assert database.read(queries.has_admin)


def test_ids_are_never_given_twice(database: Database) -> None:
    first = add(database, "ana@example.com", "hers")
    with pytest.raises(ServiceError):
        add(database, "ANA@example.com", "hers too")
    assert add(database, "bob@example.com", "his") > first


def test_account_settings_are_the_environment_s_with_what_was_changed(database: Database) -> None:
    defaults = Account(name="Acme", locale="de-DE")
    assert database.read(queries.account, defaults) == defaults

    def change(session: Session) -> None:
        session.get_one(AccountRow, 1).changes = {"name": "Acme Ltd", "esigning_preference": "multiple"}

    database.write(change)
    changed = database.read(queries.account, defaults)
    assert (changed.name, changed.locale, changed.esigning_preference) == ("Acme Ltd", "de-DE", "multiple")
    if database.sqlite:
        assert DirectReads(database).account(defaults) == changed


def test_the_short_way_sees_every_commit_and_cannot_write(database: Database) -> None:
    direct = DirectReads(database) if database.sqlite else None
    with ThreadPoolExecutor(1) as threads:
        authenticator = Authenticator(database, KEYS, threads, direct)
        user_id = add(database, "ana@example.com", "hers", Role.VIEWER)
        if direct is not None:
            assert direct.known_key(KEYS.hash("hers")) == database.read(queries.known_key, KEYS.hash("hers"))
            with pytest.raises(ServiceError, match="not available"):
                direct._row("DELETE FROM users", {})
            database.write(commands.rotate_api_key, user_id, KEYS.seal("fresh"), NOW)
            assert direct.known_key(KEYS.hash("hers")) is None
            assert direct.known_key(KEYS.hash("fresh")) is not None
            direct.close()
        assert authenticator.reads_files("fresh" if direct else "hers")
        assert not authenticator.reads_files("nobody's")
