"""The receipt for a submission that was removed for good: what was deleted, when and why, without anybody's data
(docs/retention.md has its keys).

Submissions writes it once every service has confirmed that its part is gone; rendering signs its bytes with the key of the
seals.
"""

import hashlib

from pydantic import Field

from contracts.evidence import canonical_json
from contracts.evidence.statements import LineReference
from contracts.types import Moment, Tolerant

VERSION = 1
REQUEST, RETENTION, TEST_MODE = "request", "retention", "test_mode"
"""Why: somebody asked for it, it had been kept for as long as it should be, or test mode was wiped, for which there is no
receipt."""

FILES = "files"
PARTS = ("submissions", FILES, "notifications", "rendering", "webhooks")
"""What has to be confirmed: that each service has deleted what it had, and that the files are gone from the store."""


class ErasureReason(Tolerant):
    """Why a submission was removed. ``user`` and ``key`` name who asked, by their id and the key's; ``keep_days`` and
    ``due_at`` are the rule by which it was due."""

    reason: str
    user: int | None = None
    key: str | None = None
    keep_days: int | None = None
    due_at: Moment | None = None


class ErasedDocument(Tolerant):
    """A document that was deleted. ``kind``: ``original`` as it came, ``prepared`` as it was shown, ``sealed``,
    ``audit_trail``, ``combined``."""

    kind: str
    sha256: str


class ErasedPart(Tolerant):
    """When a part was gone, and how much of what it was. ``storage`` as in contracts.types.Erasure."""

    at: Moment
    deleted: dict[str, int] = Field(default_factory=dict)
    storage: str | None = None


class ErasureReceipt(Tolerant):
    """``trail`` is the last line of the audit trail (its number and hash), which is kept without its data. ``completed_at`` is
    when the last part was gone."""

    version: int = VERSION
    type: str = "erasure"
    submission: int
    why: ErasureReason
    erased_at: Moment
    completed_at: Moment
    trail: LineReference
    documents: list[ErasedDocument]
    parts: dict[str, ErasedPart]


def encoded(receipt: ErasureReceipt) -> str:
    """Write a receipt as it is signed: canonical JSON (RFC 8785)."""
    return canonical_json.encoded(receipt.model_dump(mode="json")).decode()


def digest(text: str) -> str:
    """Compute the SHA-256, in lower-case hex, of a receipt as it is signed."""
    return hashlib.sha256(text.encode()).hexdigest()
