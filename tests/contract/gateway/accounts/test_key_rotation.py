"""KEY_ENCRYPTION_SECRET is replaced: every key goes on, under its name, and nothing is left that only the old secret opens."""

import asyncio
import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.rotation import Secret
from contracts.runtime.data.database import Database
from contracts.types import Actor, Role
from services.gateway.accounts import commands, phone_otp, queries
from services.gateway.accounts.api_keys.keys import KeyRing, new_api_key
from services.gateway.accounts.auth import Authenticator
from services.gateway.accounts.direct import DirectReads
from services.gateway.accounts.phone_otp import PhoneOtpWebhook
from services.gateway.api.requests import repeats
from services.gateway.models import AccountRow
from services.gateway.rights import CallersKey, Rights, Scope
from tests.support.services.migrated import migrated

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
OLD, NEW = "the key encryption secret of until now", "the key encryption secret from now on"
BEFORE, FIRST, SECOND, AFTER = (
    KeyRing(OLD),
    KeyRing(Secret(OLD, following=NEW)),
    KeyRing(Secret(NEW, previous=OLD)),
    KeyRing(NEW),
)
"""The three steps, and what was before."""
WEBHOOK = PhoneOtpWebhook("https://otp.example.com/", "a token")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    migrated("gateway", database_url)
    database = Database(database_url)
    yield database
    database.dispose()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def user(database: Database, email: str) -> tuple[int, str]:
    """A user with their first key."""
    key = new_api_key()
    new = commands.NewUser(email, role=Role.ADMIN)
    made = database.write(commands.create_user, new, "hash", BEFORE.seal(key), NOW)
    return int(made["id"]), key


def further(database: Database, user_id: int) -> str:
    key = new_api_key()
    rights = Rights(frozenset({Scope.READ}))
    database.write(commands.create_key, user_id, BEFORE.hash(key), "Program", rights, NOW)
    return key


def called(database: Database, threads: ThreadPoolExecutor, ring: KeyRing, key: str) -> tuple[Actor, CallersKey]:
    direct = DirectReads(database) if database.sqlite else None
    try:
        return asyncio.run(Authenticator(database, ring, threads, direct).caller(key))
    finally:
        if direct is not None:
            direct.close()


def keys_of(database: Database, user_id: int) -> list[dict[str, object]]:
    shown = database.read(queries.user_keys, user_id)
    return [{name: value for name, value in key.items() if name not in ("last_used_at", "created_at")} for key in shown]


def test_keys_go_on_in_every_step_and_keep_their_names(database: Database, threads: ThreadPoolExecutor) -> None:
    user_id, first = user(database, "ana@example.com")
    program = further(database, user_id)
    named = {key: called(database, threads, BEFORE, key)[1].id for key in (first, program)}
    shown = keys_of(database, user_id)
    for ring in (FIRST, SECOND, FIRST, SECOND, AFTER):  # processes of two steps run side by side
        for key in (first, program):
            actor, used = called(database, threads, ring, key)
            assert (actor.user_id, used.id, used.first) == (user_id, named[key], key == first)
        assert keys_of(database, user_id) == shown
        assert ring.unseal(database.read(queries.sealed_key, user_id)[1]) == first
    with pytest.raises(ServiceError, match="Not authenticated"):
        called(database, threads, BEFORE, program)


def test_with_the_key_that_was_taken_over_keys_are_given(database: Database, threads: ThreadPoolExecutor) -> None:
    """Its rights are looked up once more in the transaction, by the hash that the call came with."""
    user_id, first = user(database, "ana@example.com")
    _, used = called(database, threads, SECOND, first)
    given = Rights(frozenset({Scope.READ}))
    database.write(commands.create_key, user_id, SECOND.hash(new_api_key()), "Fresh", given, NOW, used)
    assert [key["name"] for key in keys_of(database, user_id)] == ["First key", "Fresh"]


def test_first_keys_that_nobody_uses_and_settings_are_taken_over(
    database: Database, threads: ThreadPoolExecutor
) -> None:
    ana, first = user(database, "ana@example.com")
    program = further(database, ana)
    bob, hers = user(database, "bob@example.com")
    database.write(commands.archive_user, bob, ana, NOW)
    without, _ = user(database, "without@example.com")
    (only,) = keys_of(database, without)
    database.write(commands.remove_key, without, str(only["id"]), NOW)
    stored = {"name": "Acme", phone_otp.NAME: phone_otp.sealed_for_storage(WEBHOOK, BEFORE)}
    database.write(lambda session: session.execute(sa.update(AccountRow).values(changes=stored)) and None)

    assert database.write(commands.take_over, FIRST) == 0, "what comes next is not there yet"
    assert database.write(commands.take_over, SECOND) == 3
    assert database.write(commands.take_over, SECOND) == 0
    assert called(database, threads, AFTER, first)[0].user_id == ana
    assert AFTER.hash(hers) == database.read(
        lambda session: session.scalar(sa.text("SELECT api_key_hash FROM users WHERE email = 'bob@example.com'"))
    )
    changes = database.read(lambda session: session.scalar(sa.select(AccountRow.changes)))
    assert changes is not None
    assert changes["name"] == "Acme"
    assert AFTER.open_answer(base64.b64decode(changes[phone_otp.NAME]), phone_otp.NAME)
    assert keys_of(database, without) == []
    # Of another key only a digest is kept: it is taken over when it is used, with the user's first key or after it.
    assert called(database, threads, SECOND, program)[0].user_id == ana
    assert called(database, threads, AFTER, program)[0].user_id == ana


def test_a_request_that_is_repeated_afterwards_gets_its_first_answer(database: Database) -> None:
    def known_as(ring: KeyRing) -> list[repeats.RequestIdentity]:
        return repeats.identify(ring, repeats.of_user(1), "k", {"b": 1, "a": 2})

    claim, _ = database.write(repeats.claim_key, known_as(BEFORE)[0], NOW, repeats.oldest_kept())
    sealed = BEFORE.seal_answer(b'{"id": 1}', claim.request_id)
    database.write(repeats.remember_answer, claim, repeats.KeptAnswer(sealed, ignored=None))
    for ring in (FIRST, SECOND):
        identity = database.read(repeats.claimed_as, known_as(ring))
        again, kept = database.write(repeats.claim_key, identity, NOW, NOW.replace(year=2025))
        assert again.request_id == claim.request_id
        assert kept is not None
        assert ring.open_answer(kept.answer, claim.request_id) == b'{"id": 1}'
    fresh = repeats.identify(SECOND, repeats.of_user(1), "another", {})
    assert database.read(repeats.claimed_as, fresh) == fresh[0]


def test_the_first_admin_s_key_that_was_replaced_does_not_come_back(database: Database) -> None:
    def ensure(ring: KeyRing) -> bool:
        return database.write(
            commands.ensure_first_admin,
            "admin@example.com",
            ring.seal("the admin's key of the environment"),
            lambda: "hash",
            NOW,
            other_hashes=ring.hashes("the admin's key of the environment")[1:],
        )

    assert ensure(BEFORE)
    fresh = new_api_key()
    database.write(commands.rotate_api_key, 1, BEFORE.seal(fresh), NOW)
    assert not any(ensure(ring) for ring in (FIRST, SECOND, FIRST, SECOND, AFTER))
    assert SECOND.unseal(database.read(queries.sealed_key, 1)[1]) == fresh
