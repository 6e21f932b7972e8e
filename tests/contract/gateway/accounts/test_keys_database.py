"""Several keys of a user, on real databases: who has them, what they survive, and what an older version does beside this one."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.runtime import migrations
from contracts.runtime.data.database import Database
from contracts.types import Role
from services.gateway.accounts import commands, queries
from services.gateway.accounts.api_keys import key_rows
from services.gateway.accounts.api_keys.keys import KeyRing, id_of, new_api_key
from services.gateway.accounts.direct import DirectReads
from services.gateway.accounts.queries import KnownKey
from services.gateway.models import ApiKeyRow
from services.gateway.rights import EVERY_SCOPE, WHOLE, CallersKey, Rights, Scope, in_words
from tests.support.services.migrated import migrated

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
RING = KeyRing("a secret of the tests")
READ = Rights(frozenset({Scope.READ}))
ADMIN = Rights(frozenset({Scope.ADMIN}))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    migrated("gateway", database_url)
    database = Database(database_url)
    yield database
    database.dispose()


def add(database: Database, email: str, role: Role = Role.ADMIN, by: CallersKey | None = None) -> tuple[int, str]:
    """A user and their first key."""
    key = new_api_key()
    user = database.write(commands.create_user, commands.NewUser(email, role=role), "hash", RING.seal(key), NOW, by)
    return int(user["id"]), key


def give(
    database: Database, user_id: int, given: Rights = READ, by: CallersKey | None = None, at: datetime = NOW
) -> str:
    """A key beside the first one."""
    key = new_api_key()
    database.write(commands.create_key, user_id, RING.hash(key), "further", given, at, by)
    return key


def known(database: Database, key: str) -> KnownKey | None:
    """As each way of looking it up finds it."""
    found = database.read(queries.known_key, RING.hash(key))
    if database.sqlite:
        direct = DirectReads(database)
        assert direct.known_key(RING.hash(key)) == found
        direct.close()
    return found


def is_good(database: Database, *keys: str) -> list[bool]:
    return [known(database, key) is not None for key in keys]


def caller(database: Database, key: str) -> CallersKey:
    found = known(database, key)
    assert found is not None
    return CallersKey(id_of(RING.hash(key)), RING.hash(key), found.rights, found.first)


def names(database: Database, user_id: int) -> list[str]:
    return [key["name"] for key in database.read(queries.user_keys, user_id)]


def refusal(use_case: Callable[..., Any]) -> ServiceError:
    with pytest.raises(ServiceError) as refused:
        use_case()
    return refused.value


def remove(database: Database, user_id: int, key: str) -> dict[str, Any]:
    removed: dict[str, Any] = database.write(commands.remove_key, user_id, id_of(RING.hash(key)), NOW)
    return removed


def as_an_older_version(database: Database, statement: str, **values: Any) -> None:
    """What a version that knows users alone writes."""
    database.write(lambda session: session.execute(sa.text(statement), values) and None)


def rotated_by_an_older_version(database: Database, user_id: int) -> str:
    key = new_api_key()
    sealed = RING.seal(key)
    as_an_older_version(
        database,
        "UPDATE users SET api_key_hash = :hash, api_key_sealed = :sealed WHERE id = :id",
        hash=sealed.hash,
        sealed=sealed.sealed,
        id=user_id,
    )
    return key


def test_a_key_is_found_with_its_rights(database: Database) -> None:
    user_id, first = add(database, "ana@example.com", Role.EDITOR)
    limited = Rights(frozenset({Scope.READ, Scope.SEND}), LATER)
    further = give(database, user_id, limited)
    of_first, of_further = known(database, first), known(database, further)
    assert of_first is not None
    assert of_further is not None
    assert (of_first.rights, of_first.first, of_first.last_used_at) == (WHOLE, True, None)
    assert (of_further.rights, of_further.first) == (limited, False)
    assert of_first.actor == of_further.actor
    assert (of_first.actor.user_id, of_first.actor.role) == (user_id, Role.EDITOR)
    assert known(database, new_api_key()) is None
    assert [
        (key["id"], key["name"], key["scopes"], key["expires_at"], key["created_at"], key["first"])
        for key in database.read(queries.user_keys, user_id)
    ] == [
        (id_of(RING.hash(first)), "First key", in_words(EVERY_SCOPE), None, "2026-03-04T05:06:07.000Z", True),
        (
            id_of(RING.hash(further)),
            "further",
            ["read", "send"],
            "2026-03-04T06:06:07.000Z",
            "2026-03-04T05:06:07.000Z",
            False,
        ),
    ]


def test_the_database_holds_no_key(database: Database) -> None:
    user_id, _ = add(database, "ana@example.com")
    key = give(database, user_id)
    with database.engine.connect() as connection:
        assert key not in str(connection.exec_driver_sql("SELECT * FROM api_keys").fetchall())


def test_users_of_the_version_before_have_a_first_key_and_back_again(database_url: str) -> None:
    migrations.upgrade("gateway", database_url)
    database = Database(database_url)
    ana, key = add(database, "ana@example.com")
    gone, _ = add(database, "gone@example.com")
    database.write(commands.archive_user, gone, ana, NOW)
    further = give(database, ana)
    database.dispose()
    migrations.downgrade("gateway", database_url, "0005")
    with database.engine.connect() as connection:
        assert not sa.inspect(connection).has_table("api_keys")
        hashes = connection.exec_driver_sql("SELECT api_key_hash FROM users WHERE archived_at IS NULL").scalars().all()
    assert hashes == [RING.hash(key)], "what the version before looks for"
    database.dispose()
    migrations.upgrade("gateway", database_url)
    assert is_good(database, key, further) == [True, False]
    (first,) = database.read(queries.user_keys, ana)
    assert (first["name"], first["scopes"], first["first"]) == ("First key", in_words(EVERY_SCOPE), True)
    assert (first["created_at"], first["last_used_at"]) == (None, None)
    with database.engine.connect() as connection:
        rows = connection.execute(sa.select(ApiKeyRow.user_id, ApiKeyRow.name, ApiKeyRow.scopes)).all()
    assert [tuple(row) for row in rows] == [(ana, key_rows.FIRST, "read send templates webhooks admin")]
    database.dispose()


def test_another_first_key_leaves_the_others(database: Database) -> None:
    user_id, first = add(database, "ana@example.com")
    further = give(database, user_id)
    database.write(commands.update_key, user_id, id_of(RING.hash(first)), commands.KeyChange("Office"), NOW)
    fresh = new_api_key()
    database.write(commands.rotate_api_key, user_id, RING.seal(fresh), LATER)
    assert is_good(database, first, further, fresh) == [False, True, True]
    assert names(database, user_id) == ["First key", "further"]
    assert database.read(queries.user_keys, user_id)[0]["created_at"] == "2026-03-04T06:06:07.000Z"


def test_keys_end_with_their_user_and_do_not_come_back(database: Database) -> None:
    add(database, "admin@example.com")
    user_id, first = add(database, "bob@example.com", Role.EDITOR)
    further = give(database, user_id)
    database.write(commands.archive_user, user_id, 0, NOW)
    assert is_good(database, first, further) == [False, False]
    assert refusal(lambda: database.read(queries.user_keys, user_id)).code == "not_found"
    for use_case in (
        lambda: give(database, user_id),
        lambda: remove(database, user_id, further),
        lambda: database.write(commands.update_key, user_id, id_of(RING.hash(further)), commands.KeyChange("x"), NOW),
    ):
        assert refusal(use_case).code == "not_found"
    again, fresh = add(database, "BOB@example.com", Role.VIEWER)
    assert again == user_id
    assert is_good(database, first, further, fresh) == [False, False, True]
    assert names(database, user_id) == ["First key"]


def test_a_role_is_that_of_the_user_at_each_moment(database: Database) -> None:
    add(database, "admin@example.com")
    user_id, _ = add(database, "bob@example.com")
    further = give(database, user_id, ADMIN)
    database.write(commands.update_user, user_id, {"role": "viewer"}, LATER)
    found = known(database, further)
    assert found is not None
    assert found.actor.role is Role.VIEWER


def test_a_key_of_somebody_else_is_not_there(database: Database) -> None:
    ana, of_ana = add(database, "ana@example.com")
    bob, of_bob = add(database, "bob@example.com")
    further = give(database, bob)
    for key in (of_bob, further, "nobody's", ""):
        change = commands.KeyChange("mine")
        key_id = id_of(RING.hash(key)) if key else ""
        for use_case in (
            lambda key_id=key_id, change=change: database.write(commands.update_key, ana, key_id, change, NOW),
            lambda key_id=key_id: database.write(commands.remove_key, ana, key_id, NOW),
        ):
            assert (refusal(use_case).code, refusal(use_case).message) == ("not_found", "Key not found")
    assert is_good(database, of_ana, of_bob, further) == [True, True, True]
    assert names(database, bob) == ["First key", "further"]


def test_a_key_is_renamed_and_limited(database: Database) -> None:
    user_id, first = add(database, "ana@example.com")
    key = give(database, user_id, Rights(frozenset({Scope.READ, Scope.SEND})))

    def change(key: str, name: str | None = None, after: Rights | None = None) -> dict[str, Any]:
        what = commands.KeyChange(name) if after is None else commands.KeyChange(name, lambda _: after)
        changed: dict[str, Any] = database.write(commands.update_key, user_id, id_of(RING.hash(key)), what, NOW)
        return changed

    assert change(key, "CRM")["scopes"] == ["read", "send"]
    limited = change(key, after=Rights(frozenset({Scope.READ}), LATER))
    assert (limited["name"], limited["scopes"], limited["expires_at"]) == ("CRM", ["read"], "2026-03-04T06:06:07.000Z")
    assert database.read(queries.user_keys, user_id)[1] == limited
    found = known(database, key)
    assert found is not None
    assert found.rights == Rights(frozenset({Scope.READ}), LATER)
    for more in (Rights(frozenset({Scope.READ, Scope.SEND}), LATER), READ, Rights(READ.scopes, LATER + timedelta(1))):
        assert refusal(lambda more=more: change(key, "Mine", more)).code == "invalid"
    assert refusal(lambda: change(key, after=Rights(READ.scopes, NOW))).details[0]["field"] == "expires_at"
    assert change(first, "Office")["name"] == "Office"
    assert refusal(lambda: change(first, "Less", READ)).details[0]["field"] == "scopes"
    assert names(database, user_id) == ["Office", "CRM"]


def test_what_is_given_is_what_the_asking_key_has_at_that_moment(database: Database) -> None:
    """While the body of its request was still coming, it may have been limited, deleted, or its user archived."""
    add(database, "admin@example.com")
    user_id, first = add(database, "ana@example.com")
    asking = give(database, user_id, Rights(frozenset({Scope.ADMIN, Scope.READ})))
    by = caller(database, asking)
    assert is_good(database, give(database, user_id, READ, by)) == [True]
    assert refusal(lambda: give(database, user_id, Rights(frozenset({Scope.SEND})), by)).code == "forbidden"

    only_admin = commands.KeyChange(rights=lambda _: ADMIN)
    database.write(commands.update_key, user_id, id_of(RING.hash(asking)), only_admin, NOW)
    assert refusal(lambda: give(database, user_id, READ, by)).code == "forbidden"
    remove(database, user_id, asking)
    fresh = RING.seal(new_api_key())
    for use_case in (
        lambda: give(database, user_id, ADMIN, by),
        lambda: add(database, "new@example.com", by=by),
        lambda: database.write(commands.rotate_api_key, user_id, fresh, NOW, by),
    ):
        assert refusal(use_case).code == "unauthenticated"
    by = caller(database, first)
    ends = give(database, user_id, Rights(EVERY_SCOPE, LATER))
    assert refusal(lambda: give(database, user_id, READ, caller(database, ends), at=LATER)).code == "unauthenticated"
    database.write(commands.archive_user, user_id, 0, NOW)
    assert refusal(lambda: give(database, user_id, READ, by)).code == "unauthenticated"
    assert "new@example.com" not in {user["email"] for user in database.read(queries.users)}


def test_a_user_who_is_added_with_less_than_all_gets_as_little(database: Database) -> None:
    user_id, _ = add(database, "admin@example.com")
    by = caller(database, give(database, user_id, Rights(frozenset({Scope.ADMIN, Scope.READ}), LATER)))
    new_id, key = add(database, "new@example.com", by=by)
    found = known(database, key)
    assert found is not None
    assert (found.rights, found.first, found.actor.user_id) == (by.rights, False, new_id)
    assert refusal(lambda: database.read(queries.sealed_key, new_id)).code == "not_found"
    assert [key["first"] for key in database.read(queries.user_keys, new_id)] == [False]
    assert refusal(lambda: database.write(commands.rotate_api_key, new_id, RING.seal("x" * 30), NOW, by)).code == (
        "forbidden"
    )
    database.write(commands.archive_user, new_id, 0, NOW)
    again, fresh = add(database, "new@example.com", by=by)
    assert again == new_id
    assert is_good(database, key, fresh) == [False, True]


def test_a_first_key_is_deleted_and_given_anew(database: Database) -> None:
    user_id, first = add(database, "ana@example.com")
    further = give(database, user_id, Rights(frozenset({Scope.ADMIN, Scope.SEND})))
    removed = remove(database, user_id, first)
    assert (removed["name"], removed["first"]) == ("First key", True)
    assert is_good(database, first, further) == [False, True]
    assert refusal(lambda: database.read(queries.sealed_key, user_id)).message == "API key not found"
    assert names(database, user_id) == ["further"]
    assert refusal(lambda: remove(database, user_id, first)).code == "not_found"
    fresh = new_api_key()
    database.write(commands.rotate_api_key, user_id, RING.seal(fresh), LATER)
    assert is_good(database, first, further, fresh) == [False, True, True]
    assert names(database, user_id) == ["First key", "further"]
    remove(database, user_id, further)
    assert is_good(database, further, fresh) == [False, True]


def test_two_users_without_a_first_key(database: Database) -> None:
    users = [add(database, f"{number}@example.com") for number in range(3)]
    for user_id, first in users[:2]:
        remove(database, user_id, first)
    assert is_good(database, *(first for _, first in users)) == [False, False, True]


def test_nobody_locks_the_last_admin_out(database: Database) -> None:
    ana, of_ana = add(database, "ana@example.com")
    editor, of_editor = add(database, "ed@example.com", Role.EDITOR)
    give(database, ana, Rights(EVERY_SCOPE, NOW + timedelta(days=1000)))
    give(database, ana)
    give(database, editor, ADMIN)
    said = refusal(lambda: remove(database, ana, of_ana))
    assert said.code == "invalid"
    assert "the last key with the scope admin" in said.message
    remove(database, editor, of_editor)  # an admin gives another

    lasting = give(database, ana, ADMIN)
    remove(database, ana, of_ana)
    limited = commands.KeyChange(rights=lambda before: Rights(before.scopes, LATER))
    for use_case in (
        lambda: remove(database, ana, lasting),
        lambda: database.write(commands.update_key, ana, id_of(RING.hash(lasting)), limited, NOW),
    ):
        assert "the last key with the scope admin" in refusal(use_case).message

    bob, of_bob = add(database, "bob@example.com")
    remove(database, ana, lasting)
    assert "last admin" in refusal(lambda: database.write(commands.archive_user, bob, ana, NOW)).message
    demoted = refusal(lambda: database.write(commands.update_user, bob, {"role": "editor"}, NOW))
    assert "last admin" in demoted.message, "Ana has no key to manage anything with"
    assert refusal(lambda: remove(database, bob, of_bob)).code == "invalid"
    give(database, ana, ADMIN)
    database.write(commands.archive_user, bob, ana, NOW)


def test_two_keys_cannot_be_deleted_by_each_other_at_once(database: Database) -> None:
    """They would have left none to manage keys with."""
    keys = [add(database, f"admin{number}@example.com") for number in range(2)]
    together = threading.Barrier(2)
    told: list[str] = []

    def try_it(user_id: int, key: str) -> None:
        together.wait()
        try:
            remove(database, user_id, key)
        except ServiceError as error:
            told.append(error.code)

    threads = [threading.Thread(target=try_it, args=pair) for pair in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == ["invalid"]
    assert sorted(is_good(database, *(key for _, key in keys))) == [False, True]


def test_a_user_has_so_many_keys(database: Database) -> None:
    user_id, _ = add(database, "ana@example.com")
    last = [give(database, user_id, at=NOW + timedelta(seconds=number)) for number in range(commands.MOST_KEYS)][-1]
    assert refusal(lambda: give(database, user_id)).code == "invalid"
    remove(database, user_id, last)
    give(database, user_id)
    assert len(names(database, user_id)) == commands.MOST_KEYS + 1


def test_the_use_of_a_key_is_noted_once_in_a_while(database: Database) -> None:
    user_id, first = add(database, "ana@example.com")
    further = give(database, user_id)
    pause = timedelta(hours=1)
    for key in (first, further):

        def note(at: datetime, key: str = key) -> datetime | None:
            database.write_unsynced(key_rows.note_use, RING.hash(key), at, at - pause)
            found = known(database, key)
            assert found is not None
            return found.last_used_at

        assert note(NOW) == NOW
        assert note(NOW + pause / 2) == NOW, "another process has noted it meanwhile"
        assert note(NOW + pause) == NOW + pause
    database.write_unsynced(key_rows.note_use, RING.hash("nobody's"), NOW, NOW - pause)
    assert [key["last_used_at"] for key in database.read(queries.user_keys, user_id)] == [
        "2026-03-04T06:06:07.000Z"
    ] * 2


def test_a_user_of_an_older_version_has_a_first_key_without_a_row(database: Database) -> None:
    sealed = RING.seal(key := new_api_key())
    as_an_older_version(
        database,
        "INSERT INTO users (email, email_key, first_name, role, password_hash, api_key_hash, api_key_sealed, created_at, "
        "updated_at) VALUES ('old@example.com', 'old@example.com', '', 'admin', 'x', :hash, :sealed, :now, :now)",
        hash=sealed.hash,
        sealed=sealed.sealed,
        now=NOW.replace(tzinfo=None) if database.sqlite else NOW,
    )
    found = known(database, key)
    assert found is not None
    assert (found.rights, found.first) == (WHOLE, True)
    user_id = found.actor.user_id
    (first,) = database.read(queries.user_keys, user_id)
    assert (first["name"], first["first"], first["id"]) == ("First key", True, id_of(sealed.hash))
    further = give(database, user_id, ADMIN)
    assert is_good(database, key, further) == [True, True]
    changed = database.write(commands.update_key, user_id, first["id"], commands.KeyChange("Office"), NOW)
    assert changed == {**first, "name": "Office"}
    database.write_unsynced(key_rows.note_use, sealed.hash, NOW, NOW)
    assert names(database, user_id) == ["Office", "further"]
    remove(database, user_id, key)
    assert is_good(database, key, further) == [False, True]


def test_the_use_of_a_first_key_without_a_row_is_noted(database: Database) -> None:
    user_id, _ = add(database, "ana@example.com")
    key = rotated_by_an_older_version(database, user_id)
    database.write_unsynced(key_rows.note_use, RING.hash(key), NOW, NOW)
    found = known(database, key)
    assert found is not None
    assert found.last_used_at == NOW


def test_another_first_key_of_an_older_version_ends_all_others(database: Database) -> None:
    """It knows of one key, which the user is to have instead of what they had: none that it cannot see outlives that."""
    user_id, first = add(database, "ana@example.com")
    further = give(database, user_id, ADMIN)
    key = rotated_by_an_older_version(database, user_id)
    assert is_good(database, first, further, key) == [False, False, True]
    assert names(database, user_id) == ["First key"]
    assert refusal(lambda: remove(database, user_id, further)).code == "not_found"
    assert refusal(lambda: remove(database, user_id, key)).code == "invalid", "the others count no more"
    fresh = new_api_key()
    database.write(commands.rotate_api_key, user_id, RING.seal(fresh), NOW)
    assert is_good(database, first, further, key, fresh) == [False, False, False, True]
    database.write(commands.rotate_api_key, user_id, RING.seal(first), NOW)
    assert is_good(database, first, further) == [True, False], "an old first key brings none of its time back"


def test_a_user_whom_an_older_version_archives_and_restores_has_no_key_of_before(database: Database) -> None:
    add(database, "admin@example.com")
    user_id, first = add(database, "bob@example.com")
    further = give(database, user_id)
    as_an_older_version(database, "UPDATE users SET archived_at = updated_at WHERE id = :id", id=user_id)
    assert is_good(database, first, further) == [False, False]
    key = rotated_by_an_older_version(database, user_id)
    as_an_older_version(database, "UPDATE users SET archived_at = NULL WHERE id = :id", id=user_id)
    assert is_good(database, first, further, key) == [False, False, True]


def test_a_user_whom_an_older_version_archives_is_restored_without_a_key_of_before(database: Database) -> None:
    add(database, "admin@example.com")
    user_id, first = add(database, "bob@example.com")
    further = give(database, user_id)
    as_an_older_version(database, "UPDATE users SET archived_at = updated_at WHERE id = :id", id=user_id)
    again, fresh = add(database, "bob@example.com")
    assert again == user_id
    assert is_good(database, first, further, fresh) == [False, False, True]


def test_the_operator_s_key_replaces_the_first_one_and_opens_what_is_locked(database: Database) -> None:
    def start(key: str) -> bool:
        return database.write(commands.ensure_first_admin, "admin@example.com", RING.seal(key), lambda: "hash", NOW)

    assert start("first-key-of-the-operator")
    (admin,) = database.read(queries.users)
    further = give(database, admin["id"], ADMIN)
    remove(database, admin["id"], "first-key-of-the-operator")
    assert not start("first-key-of-the-operator"), "what was deleted does not come back with the next start"
    assert is_good(database, "first-key-of-the-operator") == [False]
    assert start("second-key-of-the-operator")
    assert is_good(database, further, "second-key-of-the-operator") == [True, True]
    assert start(further), "it becomes the first one"
    found = known(database, further)
    assert found is not None
    assert (found.rights, found.first) == (WHOLE, True)
    assert names(database, admin["id"]) == ["First key"]
    bob, _ = add(database, "bob@example.com")
    with pytest.raises(ServiceError, match="already the key of another user"):
        start(give(database, bob))
    as_an_older_version(database, "UPDATE users SET archived_at = updated_at WHERE id = :id", id=admin["id"])
    assert start("third-key-of-the-operator")
    assert is_good(database, "second-key-of-the-operator", "third-key-of-the-operator") == [False, True]
