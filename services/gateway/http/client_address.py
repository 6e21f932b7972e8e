"""Tell the address that a request came from, which nobody can make up by sending a header."""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

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


def is_local(address: str | None) -> bool:
    """True for loopback and private addresses."""
    parsed = _parsed(address)
    return parsed is not None and parsed.is_private


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
    return any(address in network for network in trusted)
