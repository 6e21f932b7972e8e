"""DKIM signatures (RFC 6376, RFC 8463) on mails that go out, for who sends without a relay that signs.

Keys are PEM files, RSA or Ed25519; with one of each, receivers that know Ed25519 may check that and all others RSA. There is a
library for this, dkimpy; it is published as source alone, and the images are built of what comes built.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256

SIGNED = (
    *("From", "To", "Subject", "Date", "Message-ID", "Reply-To", "In-Reply-To", "References", "Auto-Submitted"),
    *("MIME-Version", "Content-Type", "Content-Transfer-Encoding"),
)
"""Each once more than it is there, so that nobody can add another one behind the signature (RFC 6376, 5.4.2 and 8.15)."""

FEWEST_BITS = 1024
"""Of an RSA key (RFC 8301, 3.2)."""

_FIELDS = re.compile(rb"\r\n(?![ \t])")
_BLANKS = re.compile(rb"[ \t]+")
_FOLD, _WIDTH = "\r\n ", 72
_SELECTOR = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*", re.IGNORECASE)


class BadKey(Exception):
    """A key that cannot sign; the text says which, and why."""


@dataclass(frozen=True)
class DkimKey:
    """A key of a domain. ``record`` is what the DNS has to say of it, at ``<selector>._domainkey.<domain>``."""

    domain: str
    selector: str
    algorithm: str
    private: RSAPrivateKey | Ed25519PrivateKey
    record: str

    def signature(self, message: bytes) -> bytes:
        """The header that signs the message, whose lines end in CRLF; header and body in the relaxed form (RFC 6376, 3.4)."""
        head, _, body = message.partition(b"\r\n\r\n")
        fields = [(name.lower(), value) for name, _, value in (each.partition(b":") for each in _FIELDS.split(head))]
        names = [name for name in SIGNED for _ in range(sum(name.lower().encode() == each for each, _ in fields) + 1)]
        digest = base64.b64encode(hashlib.sha256(_relaxed_body(body)).digest()).decode()
        tags = (
            *("v=1", f"a={self.algorithm}", "c=relaxed/relaxed", f"d={self.domain}", f"s={self.selector}"),
            *("h=" + ":\r\n ".join(names), f"bh={digest}", "b="),
        )
        unsigned = " " + f";{_FOLD}".join(tags)
        covered = [_relaxed(*each) for each in _from_below(fields, names)]
        signed_data = b"\r\n".join([*covered, _relaxed(b"dkim-signature", unsigned.encode())])
        signature = base64.b64encode(self._sign(signed_data)).decode()
        lines = [signature[at : at + _WIDTH] for at in range(0, len(signature), _WIDTH)]
        return f"DKIM-Signature:{unsigned}{_FOLD.join(lines)}\r\n".encode()

    def _sign(self, data: bytes) -> bytes:
        if isinstance(self.private, Ed25519PrivateKey):
            return self.private.sign(hashlib.sha256(data).digest())  # RFC 8463, 3
        return self.private.sign(data, PKCS1v15(), SHA256())


def parsed(keys: str) -> list[tuple[str, Path]]:
    """``selector:file`` of each key in the setting. ValueError says what is wrong with it."""
    found = []
    for entry in filter(None, (entry.strip() for entry in keys.split(","))):
        selector, colon, path = entry.partition(":")
        if not colon or not _SELECTOR.fullmatch(selector) or not path:
            raise ValueError("must be selector:file, several separated by commas")
        found.append((selector, Path(path)))
    return found


def load(keys: str, domain: str) -> list[DkimKey]:
    """The keys that the setting names, for this domain. Raises BadKey."""
    return [_loaded(selector, path, domain) for selector, path in parsed(keys)]


def signed(message: bytes, keys: list[DkimKey]) -> bytes:
    """The message with a signature of each key before it."""
    return b"".join(key.signature(message) for key in keys) + message


def _from_below(fields: Sequence[tuple[bytes, bytes]], names: Sequence[str]) -> Iterator[tuple[bytes, bytes]]:
    """The header fields that ``names`` name, of several with one name the last one first (RFC 6376, 5.4.2); a name of which
    nothing is left stands for a field that must not be there."""
    left = list(reversed(fields))
    for name in names:
        found = next((each for each in left if each[0] == name.lower().encode()), None)
        if found is not None:
            left.remove(found)
            yield found


def _relaxed(name: bytes, value: bytes) -> bytes:
    return name.strip() + b":" + _BLANKS.sub(b" ", value.replace(b"\r\n", b"")).strip()


def _relaxed_body(body: bytes) -> bytes:
    lines = [_BLANKS.sub(b" ", line).rstrip(b" ") for line in body.split(b"\r\n")]
    text = b"\r\n".join(lines).rstrip(b"\r\n")
    return text + b"\r\n" if text else b""


def _loaded(selector: str, path: Path, domain: str) -> DkimKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise BadKey(f"DKIM key {selector}: {path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadKey(f"DKIM key {selector}: {path} must be a private key in PEM without a password") from None
    if isinstance(key, Ed25519PrivateKey):
        public = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        record = f"v=DKIM1; k=ed25519; p={base64.b64encode(public).decode()}"
        return DkimKey(domain, selector, "ed25519-sha256", key, record)
    if not isinstance(key, RSAPrivateKey) or key.key_size < FEWEST_BITS:
        raise BadKey(f"DKIM key {selector}: {path} must be an RSA key of at least {FEWEST_BITS} bits, or Ed25519")
    der = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    record = f"v=DKIM1; k=rsa; p={base64.b64encode(der).decode()}"
    return DkimKey(domain, selector, "rsa-sha256", key, record)
