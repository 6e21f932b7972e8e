"""What callers are told of limits: ``RateLimit`` and ``RateLimit-Policy``.

As draft-ietf-httpapi-ratelimit-headers-10 has them: lists of structured fields (RFC 9651), an item for each policy.
"""

from collections.abc import Iterable
from typing import Any

STREAMS, DOCUMENTS, REQUESTS = "event-streams", "documents", "requests"
"""The policies' names: streams of events, calls that work on documents, and what is counted by the service that does it."""


def concurrent(name: str, most: int, free: int) -> dict[str, str]:
    """The headers of a limit of how much of one user may be under way at once: ``most``, of which so many are ``free``."""
    return {"RateLimit-Policy": f'"{name}";q={most};qu="concurrent-requests"', "RateLimit": f'"{name}";r={free}'}


def exhausted(details: Iterable[dict[str, Any]], seconds: int) -> dict[str, str]:
    """The headers of an answer with 429 to what may be asked for again in so many seconds. Its ``details`` say what is allowed,
    if whoever refused has said so: ``quota`` in ``window`` seconds, without these at once."""
    quota_detail = next((detail for detail in details if "quota" in detail), None)
    if quota_detail is not None and "window" not in quota_detail:
        return concurrent(quota_detail.get("policy", REQUESTS), quota_detail["quota"], 0)
    headers = {"RateLimit": f'"{REQUESTS}";r=0;t={seconds}'}
    if quota_detail is not None:
        headers["RateLimit-Policy"] = f'"{REQUESTS}";q={quota_detail["quota"]};w={quota_detail["window"]}'
    return headers
