"""API keys and passwords: made, hashed, sealed.

A key is found by its HMAC-SHA256, so that a copy of the database opens nothing, not even by guessing a weak key that an
operator chose. It can be read again (specification 5.2), therefore it is also kept encrypted with AES-256-GCM. Both subkeys
come from KEY_ENCRYPTION_SECRET by HKDF (RFC 5869). While that is replaced, what was made under the next or the previous one is
found and read as well, and what is of the previous one is taken over.
"""

import hashlib
import hmac
import secrets
import string
from contextlib import suppress
from dataclasses import dataclass

from argon2 import PasswordHasher
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from contracts.errors import ServiceError
from contracts.rotation import Secret, each

_ALPHABET = string.ascii_letters + string.digits
_KEY_LENGTH = 43  # 256 bits in base 62
_NONCE = 12
_ID_LENGTH = 16
_NONE = "none "
_passwords = PasswordHasher()
_of_nobody = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""For passwords that are 256 bits of chance: none of them is guessed, however quickly it is tried."""


@dataclass(frozen=True)
class SealedKey:
    """An API key as it is stored: ``hash`` finds its user, ``sealed`` can be read again with the secret."""

    hash: str
    sealed: bytes


class KeyRing:
    """Handles API keys under one KEY_ENCRYPTION_SECRET, and reads those of others that are accepted beside it."""

    def __init__(self, secret: str) -> None:
        self._all = [_Subkeys(accepted) for accepted in each(secret)]
        self._own = self._all[0]
        previous = secret.previous if isinstance(secret, Secret) else None
        self._previous = _Subkeys(previous) if previous is not None and previous != secret else None

    @property
    def takes_over(self) -> bool:
        """Is there a previous secret whose keys are to be taken over?"""
        return self._previous is not None

    def hash(self, api_key: str) -> str:
        """By which the user of the key is found: lower-case hex."""
        return self._own.hash(api_key)

    def hashes(self, api_key: str) -> list[str]:
        """All by which it may have to be looked for, ``hash`` first."""
        return [subkeys.hash(api_key) for subkeys in self._all]

    def seal(self, api_key: str) -> SealedKey:
        """To be stored. The encrypted key is bound to its hash: moved to another row, it does not open."""
        return self._own.seal(api_key)

    def unseal(self, key: SealedKey) -> str:
        """The key again. Raises ServiceError when it was sealed with no KEY_ENCRYPTION_SECRET that is accepted."""
        for subkeys in self._all:
            with suppress(InvalidTag):
                return subkeys.unseal(key)
        raise ServiceError(
            "unavailable", "The API key cannot be read: it was encrypted with another KEY_ENCRYPTION_SECRET."
        )

    def is_of_previous(self, api_key: str, key_hash: str) -> bool:
        """Was this hash of the key made under the previous secret?"""
        return self._previous is not None and hmac.compare_digest(self._previous.hash(api_key), key_hash)

    def taken_over(self, key: SealedKey) -> SealedKey | None:
        """Return the key as it is stored from now on; None where it is not of the previous secret."""
        with suppress(InvalidTag):
            return self.seal(self._previous.unseal(key)) if self._previous is not None else None
        return None

    def digest(self, data: bytes) -> str:
        """By which the same data is recognised without being kept or guessed: lower-case hex."""
        return self._own.digest(data)

    def digests(self, data: bytes) -> list[str]:
        """All by which it may have been kept, ``digest`` first."""
        return [subkeys.digest(data) for subkeys in self._all]

    def seal_answer(self, answer: bytes, request_id: str) -> bytes:
        """An answer that is kept for a while. It opens for its own request only."""
        return self._own.seal_answer(answer, request_id)

    def open_answer(self, sealed: bytes, request_id: str) -> bytes:
        """The answer again. Raises ServiceError when it was sealed under another secret or for another request."""
        for subkeys in self._all:
            with suppress(InvalidTag):
                return subkeys.open_answer(sealed, request_id)
        raise ServiceError(
            "unavailable", "The first answer cannot be read: it was encrypted with another KEY_ENCRYPTION_SECRET."
        )

    def answer_taken_over(self, sealed: bytes, request_id: str) -> bytes | None:
        """Return what ``seal_answer`` makes of the same from now on; None where it is not of the previous secret."""
        with suppress(InvalidTag):
            if self._previous is not None:
                return self.seal_answer(self._previous.open_answer(sealed, request_id), request_id)
        return None


class _Subkeys:
    """What is made of one secret. What does not open raises InvalidTag."""

    def __init__(self, secret: str) -> None:
        self._finding = _subkey(secret, b"countersign api key lookup")
        self._sealing = AESGCM(_subkey(secret, b"countersign api key sealing"))
        self._recognising = _subkey(secret, b"countersign repeated requests")
        self._answers = AESGCM(_subkey(secret, b"countersign answer sealing"))

    def hash(self, api_key: str) -> str:
        return hmac.new(self._finding, api_key.encode(errors="surrogateescape"), hashlib.sha256).hexdigest()

    def seal(self, api_key: str) -> SealedKey:
        key_hash, nonce = self.hash(api_key), secrets.token_bytes(_NONCE)
        return SealedKey(key_hash, nonce + self._sealing.encrypt(nonce, api_key.encode(), key_hash.encode()))

    def unseal(self, key: SealedKey) -> str:
        return self._sealing.decrypt(key.sealed[:_NONCE], key.sealed[_NONCE:], key.hash.encode()).decode()

    def digest(self, data: bytes) -> str:
        return hmac.new(self._recognising, data, hashlib.sha256).hexdigest()

    def seal_answer(self, answer: bytes, request_id: str) -> bytes:
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._answers.encrypt(nonce, answer, request_id.encode())

    def open_answer(self, sealed: bytes, request_id: str) -> bytes:
        return self._answers.decrypt(sealed[:_NONCE], sealed[_NONCE:], request_id.encode())


def id_of(key_hash: str) -> str:
    """Names a key where the key itself must not stand, as on audit trails: the beginning of what finds its user."""
    return key_hash[:_ID_LENGTH]


def no_key() -> SealedKey:
    """Return what is stored of a user who has no first key: no key has such a hash, and nobody else has this one."""
    return SealedKey(_NONE + secrets.token_hex(32), secrets.token_bytes(_NONCE + 16))


def is_key(key_hash: str) -> bool:
    """Tell a key's hash from that of ``no_key``."""
    return not key_hash.startswith(_NONE)


def new_api_key() -> str:
    """43 letters and digits, 256 bits of chance."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_KEY_LENGTH))


def hash_password(password: str | None) -> str:
    """Argon2id; takes tens of milliseconds. Without a password, that of one that nobody knows, at once."""
    return _passwords.hash(password) if password else _of_nobody.hash(secrets.token_urlsafe(32))


def _subkey(secret: str, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(secret.encode())
