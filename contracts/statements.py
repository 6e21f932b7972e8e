"""A statement confirms one completion: its bytes, its receipt, where it is kept (docs/evidence.md gives the exact content).

Submissions states it in the transaction of the completion, rendering signs it with a key that submissions does not have and
keeps it. Whoever changes the database of submissions afterwards changes no statement.
"""

import hashlib
import re
from typing import Any

from pydantic import BaseModel, Field

from contracts import canonical_json
from contracts.blobs import BlobRef
from contracts.types import Moment, Tolerant

VERSION = 1
PREFIX = "statements/"
JSON, SIGNATURE = "application/json", "application/pkcs7-signature"
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_GROUPS, _GROUP = 5, 4
_ALIKE = str.maketrans("OIL", "011")
_RECEIPT = re.compile(f"[{_ALPHABET}]{{{_GROUPS * _GROUP}}}")


class LineReference(Tolerant):
    """A line of a submission's trail: its ``number`` from 1, its ``hash``."""

    number: int = Field(ge=1)
    hash: str


class Statement(Tolerant):
    """What is confirmed of a completion.

    ``line`` is that of the completion, ``head`` the last one when the completion was committed. ``shown`` is the token of what
    was shown, None where the API completed in the signer's place. ``values`` is the digest in the line, ``documents`` the SHA-256
    of each document's PDF by uuid. ``paper`` is the digest of what is frozen of documents and fields (``paper_digest``).
    """

    version: int = VERSION
    submission: int
    submitter: int
    completed_at: Moment
    line: LineReference
    head: LineReference
    shown: str | None = None
    values: str
    documents: dict[str, str]
    paper: str


class Parts(Tolerant):
    """Digests of the parts of a statement, so that what differs can be named: ``paper`` by ``documents.<uuid>`` and
    ``fields.<uuid>``, ``values`` by field uuid. They are no part of the statement: rendering keeps them until the sealing."""

    paper: dict[str, str] = Field(default_factory=dict)
    values: dict[str, str] = Field(default_factory=dict)


class SignedStatement(BaseModel):
    """Where a statement and its signature (detached CMS, DER) are kept. ``stamped``: it has an RFC 3161 time-stamp."""

    statement: BlobRef
    signature: BlobRef
    stamped: bool = False


def encoded(statement: Statement) -> bytes:
    """Encode a statement as it is signed: canonical JSON (RFC 8785)."""
    return canonical_json.encoded(statement.model_dump(mode="json"))


def digest(statement: Statement) -> str:
    """Compute the SHA-256, in lower-case hex, of a statement's bytes."""
    return hashlib.sha256(encoded(statement)).hexdigest()


def receipt(sha256: str) -> str:
    """Write the first 100 bits of a statement's SHA-256 (hex) as five groups of four in Crockford's base 32."""
    number = int(sha256[:25], 16)
    text = "".join(_ALPHABET[number >> shift & 31] for shift in range(95, -1, -5))
    return "-".join(text[start : start + _GROUP] for start in range(0, len(text), _GROUP))


def read_receipt(text: str) -> str | None:
    """Read a receipt as somebody types it: any case, with or without hyphens, O for 0, I and L for 1. None when it is none."""
    bare = re.sub(r"[\s\u2010-\u2015-]+", "", text[:100]).upper().translate(_ALIKE)
    if _RECEIPT.fullmatch(bare) is None:
        return None
    return "-".join(bare[start : start + _GROUP] for start in range(0, len(bare), _GROUP))


def key(submission: int, submitter: int, sha256: str, extension: str) -> str:
    """Name the place of a statement (``json``) or its signature (``p7s``) in the blob store: who is killed finds it again."""
    return f"{PREFIX}{submission}/{submitter}-{sha256}.{extension}"


def keys(submission: int, submitter: int, sha256: str) -> list[str]:
    """Both places."""
    return [key(submission, submitter, sha256, extension) for extension in ("json", "p7s")]


def folder(submission: int) -> str:
    """The prefix of every statement of a submission."""
    return f"{PREFIX}{submission}/"


def paper_digest(parts: dict[str, str]) -> str:
    """Compute ``paper`` of the parts' digests, by ``documents.<uuid>`` and ``fields.<uuid>``."""
    return canonical_json.digest(parts)


def document_part(document: dict[str, Any]) -> str:
    """Compute the part of a document: ``name``, ``sha256`` of its PDF, ``conditions``."""
    return canonical_json.digest(document)


def given_digest(values: dict[str, Any], reasons: dict[str, str]) -> str:
    """Compute ``values``: what a party gave by field uuid, files by their SHA-256, and the reasons for signing."""
    return canonical_json.digest({"values": values, "reasons": reasons})
