"""The visitor at the other end: the address and the browser that the audit trail names."""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from zoneinfo import available_timezones

import flask

USER_AGENT_LENGTH = 500
COOKIE = "code_"
"""Cookies of this name, with a method behind it, hold the proofs of one-time codes that were passed (see ``codes``)."""

MOST_PROOFS = 6
PROOF_LENGTH = 500
SHOWN_LENGTH = 100

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def networks(cidrs: str) -> list[Network]:
    """``10.0.0.0/8, 127.0.0.1``; ValueError for anything else, so that a service with a bad setting does not start."""
    return [ip_network(cidr.strip(), strict=False) for cidr in cidrs.split(",") if cidr.strip()]


def client_address(peer: str | None, forwarded_for: str, trusted: Sequence[Network]) -> str | None:
    """The address nearest to us that no trusted proxy has. A header from anybody else could say anything: it is ignored.

    ``forwarded_for`` is ``X-Forwarded-For``: each proxy appends the address that it was called from.
    """
    hops = [*reversed(forwarded_for.split(","))] if forwarded_for else []
    address = _parsed(peer)
    for hop in hops:
        if address is None or not _within(address, trusted):
            break
        before = _parsed(hop)
        if before is None:
            break
        address = before
    return str(address) if address else None


def visit(slug: str, trusted: Sequence[Network], time_zone: object = None, shown: object = None) -> dict[str, Any]:
    """The keys of ``contracts.rpc.submissions.visit.Visit`` for the request at hand."""
    request = flask.request
    passed = proofs()
    return {
        "slug": slug,
        **({"proofs": passed} if passed else {}),
        **({"shown": shown[:SHOWN_LENGTH]} if isinstance(shown, str) else {}),
        "ip": client_address(request.remote_addr, request.headers.get("X-Forwarded-For", ""), trusted),
        "user_agent": _printable(request.headers.get("User-Agent", ""))[:USER_AGENT_LENGTH] or None,
        "time_zone": known_time_zone(time_zone),
    }


def proofs() -> list[str]:
    """Return the browser's proofs of the one-time codes that it has passed; the service says if they are worth anything."""
    values = [value for name, value in flask.request.cookies.items() if name.startswith(COOKIE)]
    return [value for value in values if value.isascii() and len(value) <= PROOF_LENGTH][:MOST_PROOFS]


def known_time_zone(name: object) -> str | None:
    """An IANA name that this machine knows, or None: what a browser sends is printed on paper later."""
    return name if isinstance(name, str) and name in available_timezones() else None


def is_local(address: str | None) -> bool:
    """True for loopback and private addresses."""
    parsed = _parsed(address)
    return parsed is not None and (parsed.is_loopback or parsed.is_private)


def _parsed(text: str | None) -> Address | None:
    """Accepts ``[::1]:8080`` and ``10.0.0.1:8080`` too: some proxies add the port."""
    candidate = (text or "").strip()
    if candidate.startswith("["):
        candidate = candidate[1:].partition("]")[0]
    elif candidate.count(":") == 1:
        candidate = candidate.partition(":")[0]
    try:
        address = ip_address(candidate)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _within(address: Address, trusted: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in trusted)


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())
