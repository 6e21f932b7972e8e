"""The state of one HTTP request while it goes through the layers of the gateway."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from starlette.requests import Request

from contracts.errors import ServiceError
from contracts.types import Actor, Agent
from services.gateway.rights import CallersKey, Scope

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


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer whose ``pieces`` are sent as they come. ``close`` is called once, when it is over, however it ends."""

    media_type: str
    pieces: AsyncGenerator[bytes, None]
    headers: Mapping[str, str]
    close: Callable[[], None]


@dataclass(slots=True)
class Exchange:
    """Lives in the ASGI scope. Each layer fills in what it finds out: who asks, with what, and what the answer is.

    ``refused`` is what a dry run is refused for by now: the body is what is left without that. ``check_again`` looks the key up
    once more, and raises what the request would be refused with if it came now; ``checked_at`` is when that was done last, by
    ``time.monotonic``. ``expected_state`` is the digest of the record that the caller wants to change, if they said which one
    they have read (``contracts.rpc.unchanged``). ``limits`` are headers of a limit that the operation has (``rate_limits``).
    ``ignored`` are the keys of the body that the operation does not have (``ignored_keys``).

    What an agent does goes through the same layers (``services.gateway.agents``): ``agent`` is who it is, ``scopes`` are
    those of which its key needs one in place of what the document says, and ``handler``, where there is one, answers in
    place of the operation's own, once all is checked. ``page`` is the route of a page, by which requests for it are counted.
    """

    request_id: str
    operation: str = ""
    actor: Actor | None = None
    key: CallersKey | None = None
    check_again: Callable[[], Awaitable[None]] | None = None
    checked_at: float = 0.0
    arguments: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    answer: Any = None
    request: Request | None = None
    idempotency_key: str | None = None
    claim: Claim | None = None
    refused: ServiceError | None = None
    expected_state: str | None = None
    limits: dict[str, str] = field(default_factory=dict)
    agent: Agent | None = None
    scopes: frozenset[Scope] | None = None
    handler: Callable[..., Awaitable[Any]] | None = None
    ignored: list[str] = field(default_factory=list)
    page: str = ""

    @property
    def dry_run(self) -> bool:
        """Tell whether only what would be made is to be told."""
        return bool(self.arguments.get("dry_run"))

    def refuse(self, error: ServiceError) -> None:
        """Raise ``error``; in a dry run note it, if it is about what was sent, and go on: all that is wrong is told at once."""
        if not self.dry_run or error.code != "invalid":
            raise error
        before = self.refused
        self.refused = error if before is None else invalid_with(before, error.details)


def invalid_with(refused: ServiceError, details: Iterable[dict[str, Any]]) -> ServiceError:
    """Add further details to ``refused``, but for those of a place that it tells of itself, or of what is within one."""
    places_refused = {str(detail["field"]) for detail in refused.details if detail.get("field")}
    more = [
        detail for detail in details if detail.get("field") and not _is_within(str(detail["field"]), places_refused)
    ]
    return ServiceError(refused.code, refused.message, [*refused.details, *more])


def _is_within(field: str, places: set[str]) -> bool:
    """Tell whether a field is within one of the places, or one of them: ``submitters[0].fields[2].name`` is within
    ``submitters[0].fields``."""
    return any(field == place or field.startswith((f"{place}.", f"{place}[")) for place in places)


def exchange_of(scope: Any) -> Exchange:
    """The exchange of an ASGI scope."""
    exchange: Exchange = scope[KEY]
    return exchange
