"""Texts that one service must not read and another must: sealed with AES-256-GCM under a key made of LINK_SECRET.

For credentials of an account that travel with an event: no copy of the bus, the outbox or the receiver's rows holds them.
"""

import base64
import os
from contextlib import suppress

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from contracts.rotation import each

_NONCE = 12


class NotOurs(Exception):
    """It was sealed under another secret or for another purpose, or is no sealed text at all."""


def seal(secret: str, purpose: str, text: str) -> str:
    """``text`` as URL-safe letters that only ``unseal`` with the same secret, or where it is accepted, and purpose reads."""
    nonce = os.urandom(_NONCE)
    return base64.urlsafe_b64encode(nonce + _key(secret).encrypt(nonce, text.encode(), purpose.encode())).decode()


def unseal(secret: str, purpose: str, sealed: str) -> str:
    """The text again. Raises NotOurs."""
    for accepted_secret in each(secret):
        with suppress(ValueError, InvalidTag):
            raw = base64.urlsafe_b64decode(sealed)
            return _key(accepted_secret).decrypt(raw[:_NONCE], raw[_NONCE:], purpose.encode()).decode()
    raise NotOurs("it cannot be opened with this LINK_SECRET")


def _key(secret: str) -> AESGCM:
    return AESGCM(
        HKDF(algorithm=SHA256(), length=32, salt=None, info=b"countersign sealed text").derive(secret.encode())
    )
