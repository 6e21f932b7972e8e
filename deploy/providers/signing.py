"""What a local CSC provider does, apart from HTTP: who may log in, permissions to sign, signatures.

It keeps to the rules that clients must reckon with: a permission is for certain hashes, once, and for a short time; a wrong PIN
is counted, and the third one locks the credential.
"""

import hashlib
import json
import os
import secrets
import threading
import time
from base64 import b32decode, b32encode, b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from deploy.providers.faults import Faults
from deploy.providers.pki import Authorities, Key
from deploy.providers.record import Record

SERVICE_SECONDS, PERMISSION_SECONDS, CODE_SECONDS = 3600, 300, 600
MULTISIGN = 20
_WRONG_PINS = 3

Deliver = Callable[[str, str], None]
"""Sends a text to a person: its subject and what it says."""


class Refused(Exception):
    """An answer that is none of success."""

    def __init__(self, status: int, error: str, description: str, **headers: str) -> None:
        super().__init__(description)
        self.status, self.error, self.description, self.headers = status, error, description, headers


@dataclass(frozen=True)
class CredentialKind:
    """``mode``: ``implicit``, ``explicit`` (with ``asks``: PIN, OTP, TOTP) or ``oauth2code``, where a person approves."""

    key: str
    mode: str = "implicit"
    asks: tuple[str, ...] = ()
    multisign: int = MULTISIGN


CREDENTIALS = {
    "seal": CredentialKind("rsa-3072"),
    "seal-ec": CredentialKind("p256"),
    "seal-ec384": CredentialKind("p384"),
    "seal-one": CredentialKind("p256", multisign=1),
    "pin": CredentialKind("p256", "explicit", ("PIN",)),
    "code": CredentialKind("p256", "explicit", ("OTP",)),
    "pin-code": CredentialKind("p256", "explicit", ("PIN", "OTP")),
    "totp": CredentialKind("p256", "explicit", ("PIN", "TOTP")),
    "person": CredentialKind("p256", "oauth2code"),
}
"""What one can sign with, and how its permission is had."""

_HASHES = {
    "2.16.840.1.101.3.4.2.1": hashes.SHA256(),
    "2.16.840.1.101.3.4.2.2": hashes.SHA384(),
    "2.16.840.1.101.3.4.2.3": hashes.SHA512(),
}
_RSA_KEY, _PSS, _EC_KEY = "1.2.840.113549.1.1.1", "1.2.840.113549.1.1.10", "1.2.840.10045.2.1"
_OF_HASH = {
    "1.2.840.113549.1.1.11": hashes.SHA256(),
    "1.2.840.113549.1.1.12": hashes.SHA384(),
    "1.2.840.113549.1.1.13": hashes.SHA512(),
    "1.2.840.10045.4.3.2": hashes.SHA256(),
    "1.2.840.10045.4.3.3": hashes.SHA384(),
    "1.2.840.10045.4.3.4": hashes.SHA512(),
}
RSA_ALGORITHMS = (_RSA_KEY, _PSS, *(identifier for identifier in _OF_HASH if identifier.startswith("1.2.840.113549")))
EC_ALGORITHMS = tuple(identifier for identifier in _OF_HASH if identifier.startswith("1.2.840.10045"))


@dataclass
class _Permission:
    """To sign ``remaining``, and ``further`` hashes that are named later (extendTransaction)."""

    credential: str
    remaining: list[bytes]
    further: int
    until: float
    used: bool = False


@dataclass
class Ticket:
    """A request for a person's approval; ``query`` as the client sent it."""

    query: dict[str, str]
    until: float
    credential: str | None = None
    digests: list[bytes] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)


@dataclass
class _Work:
    signatures: list[str]
    polls: int


class Account:
    """The one account of the provider, made at the first start: what a client logs in with, PIN and shared secret."""

    def __init__(self, folder: Path) -> None:
        path = folder / "account.json"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            new_account = {
                "client_id": "countersign",
                "client_secret": secrets.token_urlsafe(24),
                "user": "countersign",
                "password": secrets.token_urlsafe(24),
                "api_key": secrets.token_urlsafe(24),
                "pin": f"{secrets.randbelow(10**6):06d}",
                "totp": b32encode(secrets.token_bytes(20)).decode(),
            }
            temporary = path.with_name(f".account-{secrets.token_hex(4)}")
            with os.fdopen(os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
                json.dump(new_account, file)
            temporary.replace(path)
        account = json.loads(path.read_text())
        self.client_id, self.client_secret = account["client_id"], account["client_secret"]
        self.user, self.password, self.api_key = account["user"], account["password"], account["api_key"]
        self.pin, self.totp = account["pin"], account["totp"]


class Signing:
    """Thread-safe. ``dialect``: ``standard`` or ``d-trust``, which names and says some things in its own way."""

    def __init__(
        self, folder: Path, authorities: Authorities, faults: Faults, deliver: Deliver, dialect: str = "standard"
    ) -> None:
        self.account, self.record = Account(folder), Record(folder / "signatures.jsonl")
        self.authorities, self.faults, self.dialect = authorities, faults, dialect
        self._deliver = deliver
        self._lock = threading.RLock()
        self._tokens: dict[str, float] = {}
        self._permissions: dict[str, _Permission] = {}
        self._codes: dict[str, tuple[str, float]] = {}
        self._wrong: dict[str, int] = {}
        self._tickets: dict[str, Ticket] = {}
        self._approved: dict[str, tuple[Ticket, str]] = {}
        self._work: dict[str, _Work] = {}

    # --- who calls

    def new_service_token(self) -> dict[str, Any]:
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._tokens[token] = time.monotonic() + SERVICE_SECONDS
        return {"access_token": token, "token_type": "Bearer", "expires_in": SERVICE_SECONDS}

    def forget_tokens(self) -> None:
        """As if they had run out."""
        with self._lock:
            self._tokens.clear()

    def revoke(self, token: str) -> None:
        with self._lock:
            self._tokens.pop(token, None)
            self._permissions.pop(token, None)

    def check_login(self, authorization: str, api_key: str) -> str | None:
        """Raises Refused for one who may not call. Returns a credential's token, if that is what they came with."""
        kind, _, value = authorization.partition(" ")
        with self._lock:
            if kind == "Bearer" and value in self._permissions:
                return value
            if kind == "Bearer" and self._tokens.get(value, 0.0) > time.monotonic():
                return None
        if kind == "Basic" and self.is_user(value):
            return None
        if api_key and secrets.compare_digest(api_key, self.account.api_key):
            return None
        raise Refused(401, "invalid_token", "The access token is not valid")

    def is_user(self, encoded: str) -> bool:
        expected = b64encode(f"{self.account.user}:{self.account.password}".encode()).decode()
        return secrets.compare_digest(encoded, expected)

    # --- credentials

    def info(self, credential: str, version: str) -> dict[str, Any]:
        kind = _kind(credential)
        revoked, suspended = self.faults.holds("revoked"), self.faults.holds("suspended")
        key = self.authorities.signers[credential].key
        algorithms = list(RSA_ALGORITHMS if isinstance(key, rsa.RSAPrivateKey) else EC_ALGORITHMS)
        answer: dict[str, Any] = {
            "key": {
                "status": "disabled" if suspended else "enabled",
                "algo": [
                    _RSA_KEY if self.dialect == "d-trust" and _RSA_KEY in algorithms else algorithm
                    for algorithm in algorithms
                ],
                "len": key.key_size,
            },
            "cert": {
                "status": "revoked" if revoked else "valid",
                "certificates": [b64encode(certificate).decode() for certificate in self.authorities.chain(credential)],
            },
            "multisign": kind.multisign,
            "SCAL": "2",
        }
        if version == "v1":
            answer["authMode"] = kind.mode
            answer["PIN"] = {"presence": "true" if "PIN" in kind.asks else "false", "format": "N", "label": "Your PIN"}
            if codes_asked := [factor for factor in kind.asks if factor != "PIN"]:
                answer["OTP"] = {
                    "presence": "true",
                    "type": "online" if codes_asked[0] == "OTP" else "offline",
                    "format": "N",
                    "label": "Code",
                }
            return answer
        objects = [{"type": "Password", "id": "PIN", "format": "N", "label": "Your PIN"}] if "PIN" in kind.asks else []
        for asked_for in kind.asks:
            if asked_for != "PIN":
                generator = "totp" if asked_for == "TOTP" else "online"
                objects.append(
                    {"type": "ChallengeResponse", "id": "OTP", "format": "N", "generator": generator, "label": "Code"}
                )
        answer["auth"] = {"mode": kind.mode}
        if objects:
            answer["auth"] |= {"expression": " AND ".join(item["id"] for item in objects), "objects": objects}
        return answer

    def send_code(self, credential: str) -> None:
        """Send the person a one-time code, as one may have asked for."""
        _kind(credential)
        code = f"{secrets.randbelow(10**6):06d}"
        with self._lock:
            self._codes[credential] = (code, time.monotonic() + CODE_SECONDS)
        self._deliver("Your code to sign", f"{code} is your code to sign with the credential '{credential}'.")

    # --- permissions

    def authorize(
        self, credential: str, count: int, digests: Sequence[bytes], pin: str | None, code: str | None
    ) -> dict[str, Any]:
        """A permission by PIN and code."""
        kind = _kind(credential)
        if kind.mode == "oauth2code":
            raise Refused(400, "invalid_request", "This credential is authorized at the provider's page")
        self._check_state(credential)
        if not 0 < count <= kind.multisign:
            raise Refused(400, "invalid_request", "Numeric parameter numSignatures is out of bounds")
        if len(digests) > count:
            raise Refused(400, "invalid_request", "More hashes than numSignatures")
        if not digests:
            raise Refused(400, "invalid_request", "Missing parameter hash: the credential is of SCAL 2")
        self._check_answers(credential, kind, pin, code)
        return {"SAD": self._permit(credential, digests, count - len(digests)), "expiresIn": PERMISSION_SECONDS}

    def extend(self, sad: str, digests: Sequence[bytes]) -> dict[str, Any]:
        """A new permission in place of the old one, for further hashes of the same authorisation."""
        with self._lock:
            old = self._permission(sad)
            if len(digests) > old.further:
                raise Refused(400, "invalid_request", "More hashes than numSignatures")
            del self._permissions[sad]
            new = self._permit(old.credential, digests, old.further - len(digests))
        return {"SAD": new, "expiresIn": PERMISSION_SECONDS}

    def _permit(self, credential: str, digests: Sequence[bytes], further: int) -> str:
        token = secrets.token_urlsafe(32)
        with self._lock:
            until = time.monotonic() + PERMISSION_SECONDS
            self._permissions[token] = _Permission(credential, list(digests), further, until)
        return token

    def _permission(self, token: str) -> _Permission:
        found_permission = self._permissions.get(token)
        if found_permission is None:
            raise Refused(400, "invalid_request", "Invalid parameter SAD")
        if found_permission.until < time.monotonic() or self.faults.take("expired"):
            raise Refused(400, "invalid_request", "SAD expired")
        if found_permission.used and not found_permission.further:
            raise Refused(400, "invalid_request", "SAD already used")
        return found_permission

    def _check_state(self, credential: str) -> None:
        if self.faults.holds("suspended"):
            raise Refused(400, "invalid_request", "The credential is suspended")
        if self.faults.holds("revoked"):
            raise Refused(400, "invalid_request", "The certificate of the credential is revoked")
        if self.faults.take("quota"):
            raise Refused(400, "invalid_request", "Insufficient credits")
        if self._wrong.get(credential, 0) >= _WRONG_PINS:
            raise Refused(400, "invalid_request", "The credential is locked")

    def _check_answers(self, credential: str, kind: CredentialKind, pin: str | None, code: str | None) -> None:
        with self._lock:
            if "PIN" in kind.asks and not secrets.compare_digest(pin or "", self.account.pin):
                self._wrong[credential] = self._wrong.get(credential, 0) + 1
                raise Refused(400, "invalid_pin", "The PIN is invalid")
            if "TOTP" in kind.asks and code not in _totp_codes(self.account.totp):
                raise Refused(400, "invalid_otp", "The OTP is invalid")
            if "OTP" in kind.asks:
                sent, until = self._codes.get(credential, ("", 0.0))
                if not code or code != sent or until < time.monotonic():
                    raise Refused(400, "invalid_otp", "The OTP is invalid")
                del self._codes[credential]
            self._wrong.pop(credential, None)

    def wrong_pins(self, credential: str) -> int:
        """Return how often in a row the PIN was wrong."""
        return self._wrong.get(credential, 0)

    # --- a person's approval

    def open_ticket(self, query: dict[str, str], seconds: float = 90.0) -> str:
        """Keep a request for approval; raises Refused for one that nobody could approve."""
        if query.get("response_type") != "code" or query.get("client_id") != self.account.client_id:
            raise Refused(400, "invalid_request", "response_type must be code, and client_id one that is known")
        if not query.get("redirect_uri", "").startswith(("http://", "https://")):
            raise Refused(400, "invalid_request", "redirect_uri must be an http or https URL")
        if query.get("code_challenge_method") != "S256" or not query.get("code_challenge"):
            raise Refused(400, "invalid_request", "PKCE with S256 is required")
        ticket = Ticket(query, time.monotonic() + seconds)
        if query.get("scope") != "service":
            ticket.credential, ticket.digests, ticket.labels = _requested_hashes(query)
            if _kind(ticket.credential).mode != "oauth2code":
                raise Refused(400, "invalid_request", "This credential is not authorized at a page")
            if not 0 < len(ticket.digests) <= _kind(ticket.credential).multisign:
                raise Refused(400, "invalid_request", "Numeric parameter numSignatures is out of bounds")
        number = secrets.token_urlsafe(24)
        with self._lock:
            self._tickets[number] = ticket
        return number

    def ticket(self, number: str) -> Ticket:
        with self._lock:
            ticket = self._tickets.get(number)
            if ticket is None or ticket.until < time.monotonic():
                raise Refused(400, "invalid_request", "This request has expired. Go back and begin again.")
            return ticket

    def keep_open(self, number: str) -> None:
        """A person looks at it: they have the time to read."""
        self.ticket(number).until = time.monotonic() + CODE_SECONDS

    def decide(self, number: str, *, approve: bool) -> dict[str, str]:
        """Return what the person goes back with."""
        with self._lock:
            ticket = self.ticket(number)
            del self._tickets[number]
            state = {"state": ticket.query["state"]} if "state" in ticket.query else {}
            if not approve:
                return {"error": "access_denied", "error_description": "The person refused", **state}
            code = secrets.token_urlsafe(24)
            self._approved[code] = (ticket, ticket.query["redirect_uri"])
            return {"code": code, **state}

    def approve_by_certificate(self, query: dict[str, str]) -> dict[str, str]:
        """With nobody present: who shows the client's certificate is known (`d-trust`)."""
        credential, digests, labels = _requested_hashes(query)
        self._check_state(credential)
        code = secrets.token_urlsafe(24)
        with self._lock:
            ticket = Ticket(query, time.monotonic() + 90, credential, digests, labels)
            self._approved[code] = (ticket, query.get("redirect_uri", ""))
        return {"code": code}

    def exchange(self, form: dict[str, str]) -> dict[str, Any]:
        """A token for a code, once."""
        with self._lock:
            ticket, redirect = self._approved.pop(form.get("code", ""), (None, ""))
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = urlsafe_b64encode(verifier).decode().rstrip("=")
        if ticket is None or form.get("redirect_uri", "") != redirect or ticket.query["code_challenge"] != challenge:
            raise Refused(400, "invalid_grant", "The code is not valid")
        if ticket.credential is None:
            return self.new_service_token()
        token = self._permit(ticket.credential, ticket.digests, 0)
        return {"access_token": token, "token_type": "SAD", "expires_in": PERMISSION_SECONDS}

    # --- signatures

    def sign(
        self, permission: str, credential: str, digests: Sequence[bytes], hash_algorithm: str | None, algorithm: str,
        parameters: str | None, *, later: bool,
    ) -> dict[str, Any]:  # fmt: skip
        """Sign, and write down what was signed before anybody gets it."""
        with self._lock:
            granted = self._permission(permission)
            if granted.credential != credential:
                raise Refused(400, "invalid_request", "The SAD is of another credential")
            for digest in digests:
                if digest not in granted.remaining:
                    raise Refused(400, "invalid_request", "Hash is not authorized by the SAD")
            for digest in digests:
                granted.remaining.remove(digest)
            granted.used = not granted.remaining
        key = self.authorities.signers[credential].key
        if self.faults.take("other_key"):
            key = (
                ec.generate_private_key(ec.SECP256R1()) if isinstance(key, ec.EllipticCurvePrivateKey) else _other_rsa()
            )
        signatures = []
        for digest in digests:
            signature = _signed(key, digest, hash_algorithm, algorithm, parameters)
            self.record.add(credential, digest, algorithm=algorithm, signature=hashlib.sha256(signature).hexdigest())
            signatures.append(b64encode(signature).decode())
        if self.faults.take("order"):
            signatures.reverse()
        fault = self.faults.take("asynchronous")
        if not (later or fault):
            return {"signatures": signatures}
        response = secrets.token_urlsafe(16)
        with self._lock:
            self._work[response] = _Work(signatures, fault.polls if fault else 1)
        return {"responseID": response}

    def poll(self, response: str) -> dict[str, Any]:
        """The signatures, when it was asked often enough."""
        with self._lock:
            work = self._work.get(response)
            if work is None:
                raise Refused(400, "invalid_request", "Invalid parameter requestID")
            if work.polls > 0:
                work.polls -= 1
                if self.dialect == "d-trust":
                    raise Refused(400, "", "Signature is not ready")
                return {"responseID": response}
            return {"signatures": work.signatures}


def _kind(credential: str) -> CredentialKind:
    if credential not in CREDENTIALS:
        raise Refused(400, "invalid_request", "Invalid parameter credentialID")
    return CREDENTIALS[credential]


def _requested_hashes(query: dict[str, str]) -> tuple[str, list[bytes], list[str]]:
    """Credential, hashes and labels of a request for approval, in either version's words."""
    try:
        if "authorization_details" in query:
            (details,) = json.loads(query["authorization_details"])
            digests = details["documentDigests"]
            labels = [str(document.get("label", "")) for document in digests]
            return str(details["credentialID"]), [b64decode(document["hash"]) for document in digests], labels
        encoded = (query.get("hashes") or query.get("hash") or "").split(",")
        hashes_named = [urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in encoded if part]
        return query.get("credentialID", ""), hashes_named, [query.get("description", "")] * len(hashes_named)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(400, "invalid_request", "The request names no hashes") from error


def _signed(key: Key, digest: bytes, hash_algorithm: str | None, algorithm: str, parameters: str | None) -> bytes:
    hashed = _OF_HASH.get(algorithm) or _HASHES.get(hash_algorithm or "")
    if hashed is None or hashed.digest_size != len(digest):
        raise Refused(400, "invalid_request", "Invalid parameter hashAlgo")
    is_rsa = isinstance(key, rsa.RSAPrivateKey)
    if algorithm not in ((*RSA_ALGORITHMS,) if is_rsa else (*EC_ALGORITHMS, _EC_KEY)):
        raise Refused(400, "invalid_request", "Invalid parameter signAlgo")
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key.sign(digest, ec.ECDSA(Prehashed(hashed)))
    if algorithm == _PSS:
        if not parameters:
            raise Refused(400, "invalid_request", "Missing parameter signAlgoParams")
        return key.sign(digest, padding.PSS(padding.MGF1(hashed), padding.PSS.DIGEST_LENGTH), Prehashed(hashed))
    return key.sign(digest, padding.PKCS1v15(), Prehashed(hashed))


def _other_rsa() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def _totp_codes(secret: str) -> set[str]:
    """The codes of now and of the half minutes beside it."""
    totp = TOTP(b32decode(secret), 6, hashes.SHA1(), 30)  # noqa: S303
    return {totp.generate(int(time.time()) + shift).decode() for shift in (-30, 0, 30)}
