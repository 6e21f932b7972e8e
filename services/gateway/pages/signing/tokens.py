"""Tokens of pages that a form goes on with on another device, or in another person's hands.

A token is made here and stands in an address; a browser may be known by another one, in a cookie. Services get digests alone.
"""

import hashlib
import re
import secrets

from contracts.errors import not_found

TOKEN_BYTES = 18
_TOKEN = re.compile(r"[A-Za-z0-9_-]{24}", re.ASCII)


def new_token() -> str:
    """Make one that nobody guesses: 144 bits, as 24 characters that an address may have."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def digest(token: str) -> str:
    """Compute the SHA-256, in hex, by which services know a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def checked_token(token: str) -> str:
    """Return what may be a token. Raises ServiceError("not_found") for all else: not worth a question to a service."""
    if not _TOKEN.fullmatch(token):
        raise not_found("Link")
    return token
