"""Read an ID token and check that it may be believed (OpenID Connect Core 1.0, section 3.1.3.7). Pure.

The signature is always checked, with a key that the provider publishes and an algorithm of the list below: only asymmetric
ones, so that neither ``none`` passes nor a public key taken for a shared secret.
"""

import base64
import hmac
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, RSAKey
from joserfc.jws import JWSRegistry
from joserfc.jwt import JWTClaimsRegistry

LEEWAY = 60
"""Seconds that the provider's clock may be off."""

LONGEST_TOKEN = 64 * 1024
LONGEST_SUBJECT = 255
LONGEST_TEXT = 255
LONGEST_HEADER = 16 * 1024
SMALLEST_RSA = 2048

_FITTING: dict[str, str] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    "ES256": "EC P-256",
    "ES384": "EC P-384",
    "ES512": "EC P-521",
}
"""The algorithms that are accepted, each with the one kind of key that it may be used with."""

Key = RSAKey | ECKey
Claims = Mapping[str, Any]


class BadToken(Exception):
    """The token proves nothing. The message is for our log: it holds nothing of the token but names of claims."""


class UnknownKey(BadToken):
    """It is signed with a key that is not among those that are known: the provider may have a new one."""


class WeakIdentity(BadToken):
    """All is well, but the identity is not vouched for as it was asked for."""


@dataclass(frozen=True)
class Expected:
    """``nonce`` is that of the request; ``acr_values``, when there are any, those that were asked for; ``now`` Unix seconds."""

    issuer: str
    client_id: str
    nonce: str
    acr_values: Sequence[str]
    now: int


def keys_of(published: Any) -> list[Key]:
    """The keys of a JWK Set that can sign; those of kinds that we do not know, and secrets, are left out."""
    entries = published.get("keys") if isinstance(published, dict) else None
    keys: list[Key] = []
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig" or not _can_sign(entry):
            continue
        try:
            key = JWKRegistry.import_key(entry)
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        if isinstance(key, RSAKey | ECKey) and _kind(key) in _FITTING.values():
            keys.append(key)
    return keys


def checked(token: str, keys: Iterable[Key], expected: Expected) -> Claims:
    """The claims of the token, all of which hold. Raises BadToken; UnknownKey when another look at the keys may help."""
    if len(token) > LONGEST_TOKEN:
        raise BadToken("it is too long")
    claims = _signed(token, keys)
    _check_registered(claims, expected)
    _check_audience(claims, expected.client_id)
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode("utf-8", "replace"), expected.nonce.encode()):
        raise BadToken("nonce is not that of the request")
    if expected.acr_values and claims.get("acr") not in expected.acr_values:
        raise WeakIdentity("acr is not one of those that were requested")
    subject = claims["sub"]
    if not 0 < len(subject) <= LONGEST_SUBJECT or not subject.isascii() or not subject.isprintable():
        raise BadToken("sub is not a valid subject")
    return claims


def text(value: Any) -> str | None:
    """A claim that is a text, in one line, at most 255 characters, without what only confuses; None for anything else."""
    if not isinstance(value, str):
        return None
    printable = "".join(" " if unicodedata.category(c) == "Cc" else c for c in value if unicodedata.category(c) != "Cs")
    return " ".join(printable.split())[:LONGEST_TEXT].rstrip() or None


def _signed(token: str, keys: Iterable[Key]) -> Claims:
    """The claims, once one of the keys has shown that the provider signed them."""
    header = _header(token)
    algorithm, kid = header.get("alg"), header.get("kid")
    kind = _FITTING.get(algorithm) if isinstance(algorithm, str) else None
    if kind is None:
        raise BadToken("its algorithm is not accepted")
    fitting = [
        candidate for candidate in keys if _kind(candidate) == kind and candidate.get("alg") in (None, algorithm)
    ]
    if kid is not None:
        fitting = [candidate for candidate in fitting if candidate.get("kid") == kid]
    for key in fitting:
        try:
            registry = _Header(algorithms=[str(algorithm)], strict_check_header=False)
            return jwt.decode(token, key, algorithms=[str(algorithm)], registry=registry).claims
        except (JoseError, ValueError, TypeError, KeyError, RecursionError):
            continue
    raise UnknownKey("no key of the provider has signed it")


def _header(token: str) -> Mapping[str, Any]:
    """The header as it stands, not to be believed yet."""
    first = token.partition(".")[0]
    try:
        header = json.loads(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))
    except (ValueError, RecursionError):
        raise BadToken("it is not a token") from None
    if not isinstance(header, dict) or token.count(".") != 2:
        raise BadToken("it is not a signed token")
    return header


def _can_sign(published: Mapping[str, Any]) -> bool:
    """It is of a kind that we know, and long enough: base64 has six bits to a letter."""
    if published.get("kty") == "RSA":
        return len(str(published.get("n"))) * 6 >= SMALLEST_RSA
    return published.get("kty") == "EC"


def _kind(key: Key) -> str:
    """As in ``_FITTING``."""
    return f"EC {key.get('crv')}" if isinstance(key, ECKey) else "RSA"


class _Header(JWSRegistry):
    """Providers put certificates and names of their own into headers. What is marked critical must still be known."""

    max_header_length = LONGEST_HEADER


def _check_registered(claims: Claims, expected: Expected) -> None:
    """iss, sub, exp, iat and nbf, with their types."""
    registry = JWTClaimsRegistry(
        now=expected.now,
        leeway=LEEWAY,
        iss={"essential": True, "value": expected.issuer},
        sub={"essential": True},
        aud={"essential": True, "value": expected.client_id},
        exp={"essential": True},
        iat={"essential": True},
    )
    try:
        registry.validate(dict(claims))
    except JoseError as error:
        claim = getattr(error, "claim", "")
        raise BadToken(f"{claim} {error.error}: {error.description}".strip()[:200]) from None


def _check_audience(claims: Claims, client_id: str) -> None:
    """A token for several must say that it was issued to us."""
    audience, party = claims["aud"], claims.get("azp")
    if isinstance(audience, list) and len(audience) > 1 and party is None:
        raise BadToken("aud names others, and azp is missing")
    if party is not None and party != client_id:
        raise BadToken("azp is not this client")
