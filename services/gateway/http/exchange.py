"""The state of one HTTP request while it goes through the layers of the gateway."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from starlette.requests import Request

from contracts.types import Actor

KEY = "countersign.exchange"


@dataclass(frozen=True, slots=True)
class Claim:
    """An Idempotency-Key as it is claimed (see ``repeats``). ``fresh``: by this very request."""

    caller: str
    key_hash: str
    fingerprint: str
    request_id: str
    claimed_at: datetime
    fresh: bool


@dataclass(frozen=True, slots=True)
class Download:
    """An answer that is a file: ``size`` in bytes, ``chunks`` of it, which are read in threads."""

    media_type: str
    filename: str
    size: int
    chunks: Iterator[bytes]


@dataclass(slots=True)
class Exchange:
    """Lives in the ASGI scope. Each layer fills in what it finds out: who asks, with what, and what the answer is."""

    request_id: str
    operation: str = ""
    actor: Actor | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    answer: Any = None
    request: Request | None = None
    idempotency_key: str | None = None
    claim: Claim | None = None


def exchange_of(scope: Any) -> Exchange:
    """The exchange of an ASGI scope."""
    exchange: Exchange = scope[KEY]
    return exchange
