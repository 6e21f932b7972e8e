"""DKIM signatures (RFC 6376, RFC 8463) on mails that go out, for who sends without a relay that signs.

dkimpy signs, which is maintained and packaged by Debian. Keys are PEM files, RSA or Ed25519; with one of each, receivers that
know Ed25519 may check that and all others RSA.
"""

import base64
import re
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from pathlib import Path

import dkim
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

SIGNED = (
    *("From", "To", "Subject", "Date", "Message-ID", "Reply-To", "In-Reply-To", "References", "Auto-Submitted"),
    *("MIME-Version", "Content-Type", "Content-Transfer-Encoding"),
)
"""Each once more than it is there, so that nobody can add another one behind the signature (RFC 6376, 5.4.2 and 8.15)."""

FEWEST_BITS = 1024
"""Of an RSA key (RFC 8301, 3.2)."""

_SELECTOR = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*", re.IGNORECASE)


class BadKey(Exception):
    """A key that cannot sign; the text says which, and why."""


@dataclass(frozen=True)
class DkimKey:
    """A key of a domain. ``record`` is what the DNS has to say of it, at ``<selector>._domainkey.<domain>``."""

    domain: str
    selector: str
    algorithm: str
    private: bytes
    record: str

    def signature(self, message: bytes) -> bytes:
        """The header that signs the message."""
        present = BytesHeaderParser().parsebytes(message)
        names = [name.encode() for name in SIGNED for _ in range(len(present.get_all(name, [])) + 1)]
        signer = dkim.DKIM(message)
        header: bytes = signer.sign(
            self.selector.encode(),
            self.domain.encode(),
            self.private,
            signature_algorithm=self.algorithm.encode(),
            canonicalize=(b"relaxed", b"relaxed"),
            include_headers=names,
        )
        return header


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


def _loaded(selector: str, path: Path, domain: str) -> DkimKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise BadKey(f"DKIM key {selector}: {path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadKey(f"DKIM key {selector}: {path} is no private key in PEM without a password") from None
    if isinstance(key, Ed25519PrivateKey):
        seed = key.private_bytes(
            serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption()
        )
        public = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        record = f"v=DKIM1; k=ed25519; p={base64.b64encode(public).decode()}"
        return DkimKey(domain, selector, "ed25519-sha256", base64.b64encode(seed), record)
    if not isinstance(key, RSAPrivateKey) or key.key_size < FEWEST_BITS:
        raise BadKey(f"DKIM key {selector}: {path} must be an RSA key of at least {FEWEST_BITS} bits, or Ed25519")
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    der = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    record = f"v=DKIM1; k=rsa; p={base64.b64encode(der).decode()}"
    return DkimKey(domain, selector, "rsa-sha256", private, record)
