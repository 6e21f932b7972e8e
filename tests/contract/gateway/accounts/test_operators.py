"""Operators' keys, sessions and acts on real databases."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from services.gateway.accounts import commands, operators
from services.gateway.accounts.api_keys import key_rows
from services.gateway.accounts.api_keys.keys import KeyRing, new_api_key
from services.gateway.accounts.operators import ACTS_KEPT, LONGEST, UNDER_WAY, Operators
from services.gateway.models import ApiKeyRow
from tests.contract.gateway.accounts.test_keys_database import RING, add
from tests.support.services.migrated import migrated


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    migrated("gateway", database_url)
    database = Database(database_url)
    yield database
    database.dispose()


def made(database: Database, email: str = "ana@example.com", ring: KeyRing = RING) -> str:
    key, moment = new_api_key(), now()
    database.write(operators.make_key, email, ring.hash(key), "Ana", moment + timedelta(days=1), moment)
    return key


def test_an_operator_s_life(database: Database) -> None:
    user_id, first = add(database, "ana@example.com")
    them = Operators(database, RING)
    assert not them.expected()
    key = made(database)
    assert them.expected()
    for other in (first, new_api_key(), ""):
        with pytest.raises(ServiceError) as refused:
            them.begin(other, None)
        assert refused.value.code == "unauthenticated"
    session = them.begin(key, "192.0.2.1")
    again = them.session(session.token)
    assert again is not None
    assert (again.operator, again.operator.key_name, again.operator.actor.user_id) == (session.operator, "Ana", user_id)
    assert again.is_of(session.form())
    assert not again.is_of(them.begin(key, None).form())
    act = them.doing(session, "192.0.2.1", "retry", "notifications: mails 12")
    assert next((one.action, one.outcome) for one in them.acts()) == ("retry", UNDER_WAY), "should the process die now"
    them.note_outcome(act, "1 due again")
    newest = them.acts()[0]
    assert (newest.outcome, newest.address, newest.key_name) == ("1 due again", "192.0.2.1", "Ana")
    them.end(session, None)
    assert them.session(session.token) is None


def test_only_an_admin_s_key_is_one_s_and_no_first_key_ever(database: Database) -> None:
    user_id, first = add(database, "ana@example.com")
    with pytest.raises(ServiceError, match=r"no admin has the address bob@example.com; there are: ana@example.com"):
        made(database, "bob@example.com")

    def mark(session: Session) -> None:
        """What no way leads to: the column is set of a first key."""
        key_rows.note_use(session, RING.hash(first), now(), now())
        session.query(ApiKeyRow).update({"operator": True})

    database.write(mark)
    with pytest.raises(ServiceError):
        Operators(database, RING).begin(first, None)
    assert user_id


def test_a_session_ends_and_the_key_goes_on_when_the_secret_is_replaced(database: Database) -> None:
    """The hash that the session knows the key by is another one then: whoever has the key signs in again."""
    add(database, "ana@example.com")
    key = made(database)
    session = Operators(database, RING).begin(key, None)
    new = KeyRing("another secret of the tests")
    assert database.write(key_rows.take_over, RING.hash(key), new.seal(key))
    them = Operators(database, new)
    assert them.session(session.token) is None
    assert them.begin(key, None).operator == session.operator


def test_a_key_that_was_limited_opens_nothing(database: Database) -> None:
    user_id, _ = add(database, "ana@example.com")
    key = made(database)
    (row,) = [one for one in database.read(lambda session: session.query(ApiKeyRow).all()) if one.operator]
    change = commands.KeyChange(None, lambda before: type(before)(frozenset(), before.expires_at))
    database.write(commands.update_key, user_id, row.id, change, now())
    with pytest.raises(ServiceError):
        Operators(database, RING).begin(key, None)


def test_what_is_over_is_forgotten(database: Database) -> None:
    add(database, "ana@example.com")
    them = Operators(database, RING)
    session = them.begin(made(database), None)
    database.write(operators.forget, now())
    assert them.session(session.token) is not None
    database.write(operators.forget, now() + LONGEST)
    assert (them.session(session.token), len(them.acts())) == (None, 1)
    database.write(operators.forget, now() + ACTS_KEPT + timedelta(seconds=1))
    assert them.acts() == []
