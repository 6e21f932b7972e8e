"""A network that enforces NetworkPolicies: a namespace of the kernel's network for each pod and whoever else is there, joined by a
bridge, and in each pod's the rules that its policies come to, as a cluster's network plugin sets them.

What is selected, whom a rule means and which ports is read as the API reference of Kubernetes (networking.k8s.io/v1) has it. Nothing in
it has a way out: its addresses are in these namespaces alone.
"""

import ctypes
import os
import socket
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from tests.support.judges.operations.reach import Address, Attempt, Place

Network = IPv4Network | IPv6Network
Opening = tuple[list[Network], str, str]
"""Which addresses, the protocol, and the ports as iptables writes them ("5671", "8000:8010")."""

SWITCH = "countersign-switch"
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_EVERYTHING: tuple[Network, ...] = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))


class Selection:
    """Whom the selectors of policies mean, among ``places``."""

    def __init__(self, places: Iterable[Place]) -> None:
        self._places = list(places)

    def openings(self, place: Place, policies: list[dict[str, Any]], direction: str) -> list[Opening] | None:
        """What the policies leave open for a pod; None where none of them closes anything."""
        selecting = [
            one["spec"]
            for one in policies
            if one["metadata"]["namespace"] == place.namespace and _selects(one["spec"]["podSelector"], place.labels)
        ]
        selecting = [spec for spec in selecting if direction in _types(spec)]
        if not selecting:
            return None
        whom = "from" if direction == "Ingress" else "to"
        return [
            (networks, port.get("protocol", "TCP"), f"{port['port']}:{port.get('endPort', port['port'])}")
            for spec in selecting
            for rule in spec.get(direction.lower()) or ()
            for networks in [self._networks(rule.get(whom), str(place.namespace))]
            for port in rule["ports"]
        ]

    def _networks(self, peers: list[dict[str, Any]] | None, namespace: str) -> list[Network]:
        if not peers:
            return list(_EVERYTHING)
        found: list[Network] = []
        for peer in peers:
            if "ipBlock" in peer:
                found += _without(ip_network(peer["ipBlock"]["cidr"]), peer["ipBlock"].get("except", ()))
            else:
                found += [ip_network(one.address) for one in self._places if _is_peer(one, peer, namespace)]
        return found


def _types(spec: dict[str, Any]) -> list[str]:
    return spec.get("policyTypes") or ["Ingress", *(["Egress"] if "egress" in spec else [])]


def _is_peer(place: Place, peer: dict[str, Any], namespace: str) -> bool:
    if place.namespace is None:
        return False
    if "namespaceSelector" not in peer:
        in_namespace = place.namespace == namespace
    else:
        in_namespace = _selects(peer["namespaceSelector"], {"kubernetes.io/metadata.name": place.namespace})
    return in_namespace and _selects(peer.get("podSelector", {}), place.labels)


def _selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        {
            "In": lambda one: labels.get(one["key"]) in one["values"],
            "NotIn": lambda one: labels.get(one["key"]) not in one["values"],
            "Exists": lambda one: one["key"] in labels,
            "DoesNotExist": lambda one: one["key"] not in labels,
        }[expression["operator"]](expression)
        for expression in selector.get("matchExpressions", ())
    )


def _without(network: Network, left_out: Iterable[str]) -> list[Network]:
    """The networks that are left of one."""
    rest: list[Any] = [network]
    for text in left_out:
        hole: Any = ip_network(text)
        rest = [
            part
            for one in rest
            for part in (one.address_exclude(hole) if hole.subnet_of(one) else [] if one.subnet_of(hole) else [one])
        ]
    return rest


class PolicedNetwork:
    """``places`` with everything that they listen at. ``attempt`` tries a connection, ``police`` sets the rules."""

    def __init__(self, places: list[Place]) -> None:
        self._places = places
        self._selection = Selection(places)
        self._listening: list[socket.socket] = []

    def __enter__(self) -> "PolicedNetwork":
        self.remove()
        _ip("netns", "add", SWITCH)
        _ip("-n", SWITCH, "link", "add", "switch", "type", "bridge")
        _ip("-n", SWITCH, "link", "set", "switch", "up")
        for number, place in enumerate(self._places):
            self._join(number, place)
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._listening:
            one.close()
        self.remove()

    def remove(self) -> None:
        """Take away its namespaces, and those that a run which was killed has left."""
        there = {line.split()[0] for line in _ip("netns", "list").splitlines() if line}
        for name in there & {SWITCH, *map(_namespace, self._places)}:
            _ip("netns", "delete", name)

    def listen(self, attempts: Iterable[Attempt]) -> None:
        """Have everybody listen who is called."""
        for place, protocol, port in sorted({(_namespace(a.other), a.protocol, a.port) for a in attempts}):
            with _inside(place):
                kind = socket.SOCK_STREAM if protocol == "TCP" else socket.SOCK_DGRAM
                listening = socket.socket(socket.AF_INET6, kind)
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                listening.bind(("::", port))
                self._listening.append(listening)
                if protocol == "TCP":
                    listening.listen(
                        1000
                    )  # that many callers may be answered by the kernel; nobody takes their connections
                else:
                    threading.Thread(target=_echo, args=(listening,), daemon=True).start()

    def police(self, policies: list[dict[str, Any]]) -> None:
        """Set the rules of every pod anew."""
        for place in self._places:
            chains = {
                chain: self._selection.openings(place, policies, direction) if place.namespace else None
                for chain, direction in (("INPUT", "Ingress"), ("OUTPUT", "Egress"))
            }
            for version, program in ((4, "iptables-restore"), (6, "ip6tables-restore")):
                rules = "\n".join(_table(chains, version))
                command = ["ip", "netns", "exec", _namespace(place), program]
                subprocess.run(command, input=f"{rules}\n", text=True, check=True, timeout=60)

    def succeeds(self, attempt: Attempt) -> bool:
        """Try it: connect, or send a word and get it back. Raises TimeoutError where nobody says anything."""
        address = str(attempt.other.address)
        family = socket.AF_INET if attempt.other.address.version == 4 else socket.AF_INET6
        kind = socket.SOCK_STREAM if attempt.protocol == "TCP" else socket.SOCK_DGRAM
        with _inside(_namespace(attempt.place)), socket.socket(family, kind) as calling:
            calling.settimeout(60)
            try:
                calling.connect((address, attempt.port))
                if attempt.protocol == "UDP":
                    calling.send(b"?")
                    calling.recv(1)
            except (ConnectionRefusedError, PermissionError):
                return False
            return True

    def _join(self, number: int, place: Place) -> None:
        name = _namespace(place)
        _ip("netns", "add", name)
        _ip("-n", SWITCH, "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("-n", SWITCH, "link", "set", f"port{number}", "master", "switch", "up")
        _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", name, "link", "set", "eth0", "up")
        for address in _addresses(number, place):
            # Everybody is on the same wire, whatever their address is.
            options = ["nodad"] if address.version == 6 else []
            _ip("-n", name, "address", "add", str(ip_network(address)), "dev", "eth0", *options)
            _ip("-n", name, f"-{address.version}", "route", "add", "default", "dev", "eth0", "src", str(address))


def _addresses(number: int, place: Place) -> list[Address]:
    """A pod has one of either kind, as who calls an address must."""
    own = [place.address]
    return own if place.namespace is None else [*own, ip_network("fd01::/64")[number + 1]]


def _table(chains: dict[str, list[Opening] | None], version: int) -> Iterator[str]:
    """A pod's rules, as iptables-restore reads them. Who may not is told so at once."""
    yield "*filter"
    for chain in chains:
        yield f":{chain} ACCEPT [0:0]"
    for chain, openings in chains.items():
        if openings is None:
            continue
        way, side = ("-i", "-s") if chain == "INPUT" else ("-o", "-d")
        yield f"-A {chain} {way} lo -j ACCEPT"
        yield f"-A {chain} -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT"
        if version == 6:  # else nobody finds a neighbour
            yield f"-A {chain} -p ipv6-icmp -j ACCEPT"
        for networks, protocol, ports in openings:
            for network in networks:
                if network.version == version:
                    yield f"-A {chain} {side} {network} -p {protocol.lower()} --dport {ports} -j ACCEPT"
        yield f"-A {chain} -p tcp -j REJECT --reject-with tcp-reset"
        yield f"-A {chain} -j REJECT"
    yield "COMMIT"


def _echo(listening: socket.socket) -> None:
    while listening.fileno() != -1:
        try:
            data, sender = listening.recvfrom(16)
            listening.sendto(data, sender)
        except OSError:
            return


def _namespace(place: Place) -> str:
    return f"countersign-{place.name}"


@contextmanager
def _inside(name: str) -> Iterator[None]:
    """Be in a namespace: sockets that are made there stay there. Only the calling thread is."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    other = os.open(Path("/run/netns", name), os.O_RDONLY)
    try:
        _enter(other)
        try:
            yield
        finally:
            _enter(own)
    finally:
        os.close(own)
        os.close(other)


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True, timeout=60).stdout
