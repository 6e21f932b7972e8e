"""What IBM's network-config-analyzer says of NetworkPolicies: a judge that we did not write.

It wants other versions of packages than the rest, so that it lies in a folder of its own (``deploy/local.py``).
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import yaml

from tests.support.judges.operations.reach import OTHERS, Address, Attempt, Place, namespaces

FOLDER = Path(sys.prefix) / "network-policies"
_LINE = re.compile(r"^(\S+) => (\S+) : (.+)$", re.MULTILINE)
_CONNECTIONS = re.compile(r"\{protocols:([\w, ]+?)(?:,dst_ports:([\d,-]+))?\}")
ALL_PORTS = range(1, 65_536)
_Ways = list[tuple[str, range]]


class Analysis:
    """Which connections it says are possible."""

    def __init__(self, text: str) -> None:
        self._pods: dict[tuple[str, str], _Ways] = defaultdict(list)
        self._addresses: dict[str, list[tuple[Address, Address, _Ways]]] = defaultdict(list)
        for source, target, words in _LINE.findall(text):
            ways = _ways(words)
            if target.endswith("]"):
                self._pods[source, target].extend(ways)
            else:
                first, _, last = target.partition("-")
                self._addresses[source].append((ip_address(first), ip_address(last or first), ways))

    def says(self, attempt: Attempt) -> bool:
        """Whether it says that the attempt succeeds."""
        source, target = _name(attempt.place), _name(attempt.other)
        if attempt.place.namespace is None:  # it tells of ranges of addresses
            found = [ways for (source, one), ways in self._pods.items() if one == target and not source.endswith("]")]
        elif attempt.other.namespace is not None:
            found = [self._pods.get((source, target), [])]
        else:
            address = attempt.other.address
            found = [
                ways
                for first, last, ways in self._addresses[source]
                if first.version == address.version and int(first) <= int(address) <= int(last)
            ]
        return any(attempt.protocol == protocol and attempt.port in ports for ways in found for protocol, ports in ways)


def analysed(objects: list[dict[str, Any]]) -> Analysis:
    """Have it look at the manifests and whoever else is there. Raises CalledProcessError."""
    others = [
        {"apiVersion": "v1", "kind": "Namespace",
         "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}}
        for name in namespaces()
    ]  # fmt: skip
    others += [
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": one.name, "namespace": one.namespace, "labels": one.labels},
         "spec": {"containers": [{"name": "main", "image": "main"}]}}
        for one in OTHERS if one.namespace
    ]  # fmt: skip
    looked_at = [one for one in objects if one["kind"] in ("Deployment", "NetworkPolicy")]
    with tempfile.TemporaryDirectory(prefix="countersign-policies-") as folder:
        Path(folder, "all.yaml").write_text(yaml.safe_dump_all([*others, *looked_at]))
        command = [sys.executable, "-m", "nca", "--connectivity", folder, "--resource_list", folder, "--print_ipv6"]
        done = subprocess.run(
            [*command, "--output_format", "txt_no_fw_rules"],
            env={**os.environ, "PYTHONPATH": str(FOLDER)},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    done.check_returncode()
    return Analysis(done.stdout)


def _name(place: Place) -> str:
    return f"{place.namespace}/{place.name}[{'Deployment' if place.service else 'Pod'}]"


def _ways(words: str) -> _Ways:
    if words == "All connections":
        return [("TCP", ALL_PORTS), ("UDP", ALL_PORTS)]
    found: _Ways = []
    for protocols, ports in _CONNECTIONS.findall(words):
        for one in ports.split(",") if ports else ["1-65535"]:
            first, _, last = one.partition("-")
            found += [(protocol, range(int(first), int(last or first) + 1)) for protocol in protocols.split(", ")]
    assert found, words
    return found
