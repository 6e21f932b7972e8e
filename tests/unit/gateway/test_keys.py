"""Keys: unguessable, found by a hash, read again only with the secret that sealed them."""

import dataclasses

import pytest

from contracts.errors import ServiceError
from services.gateway.accounts.api_keys.keys import KeyRing, hash_password, id_of, is_key, new_api_key, no_key

RING = KeyRing("a secret of the tests")


def test_a_key_has_256_bits_and_is_never_the_same() -> None:
    made = {new_api_key() for _ in range(500)}
    assert len(made) == 500
    assert {len(key) for key in made} == {43}
    assert all(key.isascii() and key.isalnum() for key in made)


def test_a_sealed_key_is_read_again() -> None:
    key = new_api_key()
    assert RING.unseal(RING.seal(key)) == key
    assert RING.seal(key).hash == RING.hash(key)


def test_what_is_stored_does_not_hold_the_key_and_differs_each_time() -> None:
    key = new_api_key()
    first, second = RING.seal(key), RING.seal(key)
    assert first.sealed != second.sealed
    assert key.encode() not in first.sealed
    assert key not in first.hash


def test_another_secret_neither_finds_nor_reads() -> None:
    key, other = new_api_key(), KeyRing("another secret of the tests")
    assert other.hash(key) != RING.hash(key)
    with pytest.raises(ServiceError) as refused:
        other.unseal(RING.seal(key))
    assert refused.value.code == "unavailable"
    assert key not in refused.value.message


def test_a_sealed_key_does_not_open_in_another_row() -> None:
    moved = dataclasses.replace(RING.seal(new_api_key()), hash=RING.hash(new_api_key()))
    with pytest.raises(ServiceError):
        RING.unseal(moved)


def test_a_key_of_any_bytes_has_a_hash() -> None:
    assert len(RING.hash("\xff\u0153")) == 64


def test_passwords_are_argon2id_and_salted() -> None:
    first, second = hash_password("correct horse"), hash_password("correct horse")
    assert first.startswith("$argon2id$")
    assert first != second
    assert hash_password(None) != hash_password(None)


def test_the_id_of_a_key_is_the_beginning_of_its_hash() -> None:
    key_hash = RING.hash(new_api_key())
    assert (len(id_of(key_hash)), key_hash.startswith(id_of(key_hash))) == (16, True)


def test_what_stands_in_the_place_of_no_key_is_nobody_s_and_opens_for_no_version() -> None:
    """An older version unseals what is there when an admin asks for the key: it must refuse, not crash."""
    first, second = no_key(), no_key()
    assert first.hash != second.hash
    assert not is_key(first.hash)
    assert is_key(RING.hash(new_api_key()))
    with pytest.raises(ServiceError) as refused:
        RING.unseal(first)
    assert refused.value.code == "unavailable"
