"""Who may reach whom where NetworkPolicies are enforced: whoever is there, what is tried, and what should come of it.

What the manifests say is read twice: by an analyser that we did not write (``policy_analyser``), and by the kernel, with real
connections between namespaces of the network (``tests/deployed/policed_network.py``).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from deploy.services import SERVICES
from tests.support.judges.operations.kubectl import of_kind

Address = IPv4Address | IPv6Address

PROCESSES = ("serve", "background")
HTTP, HEALTH, NAMES, DATABASE, FILES = 8000, 9000, 53, 5432, 443
BROKER = (5671, 5672)
WEB = (80, 443, 8080, 8443)
MAIL = (25, 465, 587)
OTHER = 22
"""A port that nobody has a reason to call."""
CALL_THE_WEB = set(SERVICES) - {"templates"}


@dataclass(frozen=True)
class Place:
    """Somebody with an address. Whoever is in no ``namespace`` is outside the cluster."""

    name: str
    address: Address
    namespace: str | None = None
    labels: dict[str, str] = field(default_factory=dict, hash=False, compare=False)

    @property
    def service(self) -> str | None:
        """The service of ours that it is a process of."""
        name = self.labels.get("app.kubernetes.io/name")
        return name if self.labels.get("app.kubernetes.io/part-of") == "countersign" else None


INGRESS = Place("ingress", ip_address("10.244.1.1"), "ingress-nginx", {"app.kubernetes.io/name": "ingress-nginx"})
PROMETHEUS = Place("prometheus", ip_address("10.244.1.2"), "monitoring", {"app": "prometheus"})
RESOLVER = Place("resolver", ip_address("10.244.1.3"), "kube-system", {"k8s-app": "kube-dns"})
DATA = Place("data", ip_address("10.244.1.4"), "data", {"app": "postgresql"})
"""Broker, database and files, in the cluster."""
STRANGER = Place("stranger", ip_address("10.244.1.5"), "elsewhere", {"app": "stranger"})
NEIGHBOUR = Place("neighbour", ip_address("10.244.1.6"), "countersign", {"app": "debugging"})
"""In our namespace, and none of ours."""

OFFICE = Place("office", ip_address("192.168.7.7"))
"""A private address outside the cluster, where a broker, a database, a mail server or an intranet may be."""
PUBLIC = Place("public", ip_address("203.0.113.7"))
PUBLIC_6 = Place("public6", ip_address("2001:db8::7"))
METADATA = Place("metadata", ip_address("169.254.169.254"))
METADATA_6 = Place("metadata6", ip_address("fd00:ec2::254"))
"""Where clouds tell a machine its credentials."""
METADATAS = {METADATA, METADATA_6}
OTHERS = (INGRESS, PROMETHEUS, RESOLVER, DATA, STRANGER, NEIGHBOUR, OFFICE, PUBLIC, PUBLIC_6, METADATA, METADATA_6)


@dataclass(frozen=True)
class Attempt:
    """A connection to be tried. ``place`` calls ``other`` at a port."""

    place: Place
    other: Place
    protocol: str
    port: int

    def __str__(self) -> str:
        return f"{self.place.name} to {self.other.name} {self.protocol} {self.port}"


def ours(objects: list[dict[str, Any]]) -> list[Place]:
    """A pod of each process of each service, with the labels that the manifests give it."""
    found = of_kind(objects, "Deployment")
    names = [f"{service}-{process}" for service in SERVICES for process in PROCESSES]
    return [
        Place(
            name, ip_address(f"10.244.0.{number}"), "countersign", found[name]["spec"]["template"]["metadata"]["labels"]
        )
        for number, name in enumerate(names, start=1)
    ]


def attempts(pods: list[Place]) -> Iterator[Attempt]:
    """Everybody calls every pod of ours, and every pod of ours calls everybody, at every port that means something."""
    everywhere = [(NAMES, "UDP")] + [(p, "TCP") for p in sorted({NAMES, *BROKER, DATABASE, *WEB, *MAIL, HEALTH, OTHER})]
    for pod in pods:
        for other in OTHERS:
            for port, protocol in everywhere:
                yield Attempt(pod, other, protocol, port)
        for caller in (*pods, *OTHERS):
            if caller != pod and caller.address.version == pod.address.version:
                for port in (HTTP, HEALTH, OTHER):
                    yield Attempt(caller, pod, "TCP", port)


def should_succeed(attempt: Attempt) -> bool:
    """What is wanted, whatever the manifests say."""
    if attempt.other.service:
        return _may_call_us(attempt)
    return _we_may_call(attempt)


def _may_call_us(attempt: Attempt) -> bool:
    gateway = attempt.other.name == "gateway-serve"
    return (attempt.place == INGRESS and gateway and attempt.port == HTTP) or (
        attempt.place == PROMETHEUS and attempt.port == HEALTH
    )


def _we_may_call(attempt: Attempt) -> bool:
    """Names are asked anywhere; broker, database and files are wherever the operator has them, but at no metadata address; the web
    is public, and not for templates; mail is for notifications alone."""
    service, other, port = attempt.place.service, attempt.other, attempt.port
    if port == NAMES:
        return True
    if other in METADATAS:
        return service == "notifications" and port in MAIL
    return (
        port in {*BROKER, DATABASE, FILES}
        or (port in WEB and service in CALL_THE_WEB and other in {PUBLIC, PUBLIC_6})
        or (port in MAIL and service == "notifications")
    )


@cache
def namespaces() -> tuple[str, ...]:
    """Every namespace that somebody is in."""
    return tuple(sorted({"countersign", *(one.namespace for one in OTHERS if one.namespace)}))
