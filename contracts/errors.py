"""The one error that crosses the bus, and what each code means to an HTTP client."""

import json
from typing import Any

STATUS = {
    "bad_request": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "changed_meanwhile": 409,
    "precondition_failed": 412,
    "too_large": 413,
    "unsupported_media_type": 415,
    "invalid": 422,
    "rate_limited": 429,
    "internal": 500,
    "unavailable": 503,
}


class ServiceError(Exception):
    """A refusal that the caller can understand and act on.

    ``code`` is a key of ``STATUS`` and machine-readable. ``message`` is one English sentence for the API
    user. ``details`` is a list of ``{"field": "submitters[0].email", "reason": "..."}``; ``field`` is the
    path in the request body as the API user wrote it.

    nameko turns every number inside an exception's arguments into a string when it serialises it, so the
    details travel as one JSON string.
    """

    def __init__(self, code: str, message: str, details: list[dict[str, Any]] | str | None = None) -> None:
        raw = details if isinstance(details, str) else json.dumps(details or [])
        super().__init__(code, message, raw)
        self.code = code
        self.message = message
        self.details: list[dict[str, Any]] = json.loads(raw)

    @property
    def status(self) -> int:
        """The HTTP status that the gateway answers with."""
        return STATUS.get(self.code, 500)


class CannotStart(Exception):
    """A process refuses to start; the message tells the operator what is wrong, which setting it is about, and the way out."""


def not_found(noun: str) -> ServiceError:
    """``noun`` is a noun of the specification, such as ``Template``."""
    return ServiceError("not_found", f"{noun} not found")


def invalid(message: str, field: str | None = None, reason: str | None = None) -> ServiceError:
    """A 422. With ``field`` the details name it; ``reason`` defaults to the message."""
    details = [{"field": field, "reason": reason or message}] if field else []
    return ServiceError("invalid", message, details)
