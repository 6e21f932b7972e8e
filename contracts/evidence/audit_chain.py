"""The hash chain of the audit trail.

Each line's hash covers the hash of the line before it, so that no line can be changed, removed or inserted without every
later hash changing. Submissions writes the chain, rendering checks and prints it, and anybody can recompute it from the
JSON of the API.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from contracts.types import iso

START = ""
"""The value that the first line is chained to."""


def next_hash(
    previous_hash: str, *, submitter_id: int | None, event_type: str, occurred_at: datetime, data: Mapping[str, Any]
) -> str:
    """SHA-256, lower-case hex, of ``previous_hash`` (``START`` for the first line) followed by the line in canonical JSON."""
    line = as_hashed(submitter_id=submitter_id, event_type=event_type, occurred_at=occurred_at, data=data)
    return hashlib.sha256((previous_hash + line).encode()).hexdigest()


def as_hashed(*, submitter_id: int | None, event_type: str, occurred_at: datetime, data: Mapping[str, Any]) -> str:
    """Write a line as canonical JSON, which is what is hashed, and what the evidence holds.

    It has the keys ``data``, ``event_timestamp``, ``event_type`` and ``submitter_id``, keys sorted at every
    level, no white space, UTF-8 unescaped. ``event_timestamp`` is ISO 8601 in UTC with milliseconds (``types.iso``), as
    the API shows it: what is finer than that is no part of the chain. ``data`` must be plain JSON values.
    """
    line = {
        "submitter_id": submitter_id,
        "event_type": event_type,
        "event_timestamp": iso(occurred_at),
        "data": dict(data),
    }
    return json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
