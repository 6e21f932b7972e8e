"""API keys and passwords: made, hashed, sealed.

A key is found by its HMAC-SHA256, so that a copy of the database opens nothing, not even by guessing a weak key that an
operator chose. It can be read again (specification 5.2), therefore it is also kept encrypted with AES-256-GCM. Both subkeys
come from KEY_ENCRYPTION_SECRET by HKDF (RFC 5869).
"""

import hashlib
import hmac
import secrets
import string
from dataclasses import dataclass

from argon2 import PasswordHasher
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from contracts.errors import ServiceError

_ALPHABET = string.ascii_letters + string.digits
_KEY_LENGTH = 43  # 256 bits in base 62
_NONCE = 12
_ID_LENGTH = 16
_NONE = "none "
_passwords = PasswordHasher()


@dataclass(frozen=True)
class SealedKey:
    """An API key as it is stored: ``hash`` finds its user, ``sealed`` can be read again with the secret."""

    hash: str
    sealed: bytes


class KeyRing:
    """Handles API keys under one KEY_ENCRYPTION_SECRET."""

    def __init__(self, secret: str) -> None:
        self._finding = _subkey(secret, b"countersign api key lookup")
        self._sealing = AESGCM(_subkey(secret, b"countersign api key sealing"))
        self._recognising = _subkey(secret, b"countersign repeated requests")
        self._answers = AESGCM(_subkey(secret, b"countersign answer sealing"))

    def hash(self, api_key: str) -> str:
        """By which the user of the key is found: lower-case hex."""
        return hmac.new(self._finding, api_key.encode(errors="surrogateescape"), hashlib.sha256).hexdigest()

    def seal(self, api_key: str) -> SealedKey:
        """To be stored. The encrypted key is bound to its hash: moved to another row, it does not open."""
        key_hash, nonce = self.hash(api_key), secrets.token_bytes(_NONCE)
        return SealedKey(key_hash, nonce + self._sealing.encrypt(nonce, api_key.encode(), key_hash.encode()))

    def unseal(self, key: SealedKey) -> str:
        """The key again. Raises ServiceError when KEY_ENCRYPTION_SECRET is not the one it was sealed with."""
        try:
            return self._sealing.decrypt(key.sealed[:_NONCE], key.sealed[_NONCE:], key.hash.encode()).decode()
        except InvalidTag:
            raise ServiceError(
                "unavailable", "The API key cannot be read: it was made under another KEY_ENCRYPTION_SECRET"
            ) from None

    def digest(self, data: bytes) -> str:
        """By which the same data is recognised without being kept or guessed: lower-case hex."""
        return hmac.new(self._recognising, data, hashlib.sha256).hexdigest()

    def seal_answer(self, answer: bytes, request_id: str) -> bytes:
        """An answer that is kept for a while. It opens for its own request only."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._answers.encrypt(nonce, answer, request_id.encode())

    def open_answer(self, sealed: bytes, request_id: str) -> bytes:
        """The answer again. Raises ServiceError when it was sealed under another secret or for another request."""
        try:
            return self._answers.decrypt(sealed[:_NONCE], sealed[_NONCE:], request_id.encode())
        except InvalidTag:
            raise ServiceError(
                "unavailable", "The first answer cannot be read: it was made under another KEY_ENCRYPTION_SECRET"
            ) from None


def id_of(key_hash: str) -> str:
    """Names a key where the key itself must not stand, as on audit trails: the beginning of what finds its user."""
    return key_hash[:_ID_LENGTH]


def no_key() -> SealedKey:
    """What is stored of a user who has no first key: no key has such a hash, and nobody else has this one."""
    return SealedKey(_NONE + secrets.token_hex(32), secrets.token_bytes(_NONCE + 16))


def is_key(key_hash: str) -> bool:
    """Tell a key's hash from that of ``no_key``."""
    return not key_hash.startswith(_NONE)


def new_api_key() -> str:
    """43 letters and digits, 256 bits of chance."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_KEY_LENGTH))


def hash_password(password: str | None) -> str:
    """Argon2id; takes tens of milliseconds. Without a password, that of one that nobody knows."""
    return _passwords.hash(password or secrets.token_urlsafe(32))


def _subkey(secret: str, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(secret.encode())
