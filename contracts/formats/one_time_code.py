"""One-time codes: six digits that prove that somebody reads an address (decisions, 'One-time codes').

A code is never written down between the services. Whoever issues it makes a random seed; the code follows from the seed and
the suite's LINK_SECRET. Only the seed is in the event that has the code delivered, and only a digest is in the database: a
copy of either, or of the messages on the bus, is worth nothing without the secret.
"""

import hashlib
import hmac
import secrets

DIGITS = 6


def new_seed() -> str:
    """128 random bits."""
    return secrets.token_hex(16)


def code_of(secret: str, seed: str) -> str:
    """The six digits that ``seed`` stands for."""
    number = int.from_bytes(mac(secret, "one-time-code", seed)[:16])
    return f"{number % 10**DIGITS:0{DIGITS}}"


def mac(secret: str, purpose: str, *parts: str) -> bytes:
    """HMAC-SHA256 of the parts, told apart by their lengths; ``purpose`` keeps what is signed for one thing from another."""
    message = "".join(f"{len(part)}:{part}" for part in parts)
    return hmac.new(secret.encode(), f"{purpose}|{message}".encode(), hashlib.sha256).digest()
