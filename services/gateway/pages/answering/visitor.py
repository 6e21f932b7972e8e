"""The visitor at the other end: the address and the browser that the audit trail names."""

from collections.abc import Sequence
from typing import Any

import flask

from services.gateway.formats import is_time_zone
from services.gateway.http.client_address import Network, client_address

USER_AGENT_LENGTH = 500
COOKIE = "code_"
"""Cookies of this name, with a method behind it, hold the proofs of one-time codes that were passed (see ``codes``), or of what
this device is that was handed to the party (see ``handing``)."""

MOST_PROOFS = 6
PROOF_LENGTH = 500
SHOWN_LENGTH = 100


def visit(slug: str, trusted: Sequence[Network], time_zone: object = None, shown: object = None) -> dict[str, Any]:
    """The keys of ``contracts.rpc.submissions.visit.Visit`` for the request at hand."""
    request = flask.request
    passed = proofs()
    return {
        "slug": slug,
        **({"proofs": passed} if passed else {}),
        **({"shown": shown[:SHOWN_LENGTH]} if isinstance(shown, str) else {}),
        "ip": address(trusted),
        "user_agent": _printable(request.headers.get("User-Agent", ""))[:USER_AGENT_LENGTH] or None,
        "time_zone": known_time_zone(time_zone),
    }


def address(trusted: Sequence[Network]) -> str | None:
    """Return the address that the request came from, which nobody can make up."""
    request = flask.request
    return client_address(request.remote_addr, request.headers.get("X-Forwarded-For", ""), trusted)


def proofs() -> list[str]:
    """Return the browser's proofs of the one-time codes that it has passed; the service says if they are worth anything."""
    values = [value for name, value in flask.request.cookies.items() if name.startswith(COOKIE)]
    return [value for value in values if value.isascii() and len(value) <= PROOF_LENGTH][:MOST_PROOFS]


def known_time_zone(name: object) -> str | None:
    """An IANA name that this machine knows, or None: what a browser sends is printed on paper later."""
    return name if isinstance(name, str) and is_time_zone(name) else None


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())
