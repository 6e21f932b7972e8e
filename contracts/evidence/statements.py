"""A statement confirms one completion: its bytes, its receipt, where it is kept (docs/evidence.md gives the exact content).

Submissions states it in the transaction of the completion, rendering signs it with a key that submissions does not have and
keeps it. Whoever changes the database of submissions afterwards changes no statement.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, Field

from contracts.blobs import BlobRef
from contracts.evidence import canonical_json
from contracts.fields.rules import is_empty
from contracts.types import STATIC_TYPES, Moment, Tolerant

VERSION = 1
PREFIX = "statements/"
JSON, SIGNATURE = "application/json", "application/pkcs7-signature"
_FROZEN = ("uuid", "submitter_uuid", "type", "areas")
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_GROUPS, _GROUP = 5, 4
_ALIKE = str.maketrans("OIL", "011")
_RECEIPT = re.compile(f"[{_ALPHABET}]{{{_GROUPS * _GROUP}}}")


class LineReference(Tolerant):
    """A line of a submission's trail: its ``number`` from 1, its ``hash``."""

    number: int = Field(ge=1)
    hash: str


class Statement(Tolerant):
    """The facts of a completion that are confirmed.

    ``line`` is that of the completion, ``head`` the last one when the completion was committed. ``shown`` is the token of what
    was shown, None where the API completed in the signer's place. ``values`` is the digest in the line, ``documents`` has the
    SHA-256 of each document's PDF by uuid. ``paper`` is the digest of what is frozen of documents and fields (``paper_parts``).
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
    """The files of a statement and of its signature (detached CMS, DER). ``stamped``: it has an RFC 3161 time-stamp."""

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


def paper_parts(
    documents: Mapping[str, Mapping[str, Any]], fields: Iterable[Mapping[str, Any]], party_uuid: str
) -> dict[str, str]:
    """Compute the parts of ``paper``: what stays as it is once the party ``party_uuid`` has completed.

    Of a document ``{name, sha256, conditions}``, by its uuid. Of the party's own fields the whole definition, and so of what
    others cannot fill in on paper; of what they may still fill in whose it is, of what kind and where.
    """
    parts = {f"documents.{uuid}": canonical_json.digest(dict(document)) for uuid, document in documents.items()}
    for field in fields:
        fixed = field["submitter_uuid"] == party_uuid or (
            field["areas"] and (field["readonly"] or field["type"] in STATIC_TYPES)
        )
        frozen = (
            # A later version may know more keys: empty ones are left out.
            {key: value for key, value in field.items() if not (is_empty(value) or value == {})}
            if fixed
            else {key: field[key] for key in _FROZEN}
        )
        parts[f"fields.{field['uuid']}"] = canonical_json.digest(frozen)
    return parts


def paper_digest(parts: Mapping[str, str]) -> str:
    """Compute ``paper`` of its parts."""
    return canonical_json.digest(dict(parts))


def value_parts(values: Mapping[str, Any], reasons: Mapping[str, str]) -> dict[str, str]:
    """Compute a digest of each value with its reason for signing, by field uuid."""
    return {uuid: canonical_json.digest([values.get(uuid), reasons.get(uuid)]) for uuid in sorted({*values, *reasons})}


def given_digest(values: Mapping[str, Any], reasons: Mapping[str, str]) -> str:
    """Compute ``values``: what a party gave by field uuid, files by their SHA-256, and the reasons for signing."""
    return canonical_json.digest({"values": dict(values), "reasons": dict(reasons)})
