"""The try-out overlay as kubectl renders it, and each of its pods as `podman kube play` takes it.

Operators change the overlay's settings with an overlay of their own; so does the runner (``render``). What a pod template says
is kept; what podman has no equivalent for is done here or by ``cluster``:

| Manifest | Here |
|---|---|
| Service | `hostAliases` with a fixed address for the broker and the database; ``cluster.Service`` for the gateway |
| Deployment, StatefulSet: replicas, rolling update | ``cluster.Cluster.scale`` and ``roll`` |
| start-up, liveness and readiness probes, preStop hook | ``cluster.Pod`` |
| init containers | a pod of their own, run to its end before the pod (podman would hold its locks meanwhile) |
| config maps and secrets as environment | values in `env` |
| volumes: claim, emptyDir, config map, projected | folders of the machine, with the owner and mode that `fsGroup` gives them |
| NetworkPolicy | not checked: the pods' network leads nowhere else |
| topology spread | dropped: there is one node |
| cpu requests and limits, `automountServiceAccountToken`, `seccompProfile: RuntimeDefault` | podman's defaults |
"""

import copy
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from deploy.services import SERVICES
from tests.deployed.images import ROOT
from tests.support.judges.operations.kubectl import OWN

OVERLAY = ROOT / "deploy/kubernetes/overlays/try-out"
DROPPED = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "ports")
"""Keys of a container that podman does not get: the runner does what they say."""


@dataclass(frozen=True)
class Workload:
    """One Deployment or StatefulSet: its name, such as ``gateway-serve``, and the pod template's ``spec``."""

    name: str
    spec: dict[str, Any]
    claims: tuple[str, ...]
    """Volume claims that each of its pods would get of its own."""

    @property
    def container(self) -> dict[str, Any]:
        (main,) = self.spec["containers"]
        return dict(main)

    @property
    def image(self) -> str:
        return str(self.container["image"])


class Manifests:
    """Workloads by name, and what their environment refers to."""

    def __init__(self, objects: list[dict[str, Any]], secrets: list[dict[str, Any]]) -> None:
        self.config_maps = {one["metadata"]["name"]: one["data"] for one in objects if one["kind"] == "ConfigMap"}
        self.secrets = {one["metadata"]["name"]: one["stringData"] for one in secrets}
        self.services = {one["metadata"]["name"]: one["spec"] for one in objects if one["kind"] == "Service"}
        self.workloads = {
            one["metadata"]["name"]: Workload(
                one["metadata"]["name"],
                one["spec"]["template"]["spec"],
                tuple(claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", [])),
            )
            for one in objects
            if one["kind"] in ("Deployment", "StatefulSet")
        }


def render(shared_user: bool = False, **settings: str) -> Manifests:
    """The overlay with ``settings`` in the services' config map, and fresh secrets. ``shared_user``: all services use one user of
    the broker, as an older version of them must."""
    with tempfile.TemporaryDirectory(prefix="countersign-overlay-") as folder:
        overlay = {
            "resources": [os.path.relpath(OVERLAY, Path(folder).resolve())],
            "configMapGenerator": [
                {"name": "countersign", "behavior": "merge", "literals": [f"{k}={v}" for k, v in settings.items()]}
            ],
        }
        (Path(folder) / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        done = subprocess.run([OWN, "kustomize", folder], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    made = subprocess.run(
        [sys.executable, ROOT / "deploy/make_secrets.py", "kubernetes"], capture_output=True, text=True, check=True
    )
    secrets = {one["metadata"]["name"]: one for one in json.loads(made.stdout)["items"]}
    if shared_user:
        url = secrets["countersign-rabbitmq"]["stringData"]["OPERATOR_AMQP_URL"]
        for service in SERVICES:
            secrets[f"countersign-{service}"]["stringData"]["AMQP_URL"] = url
    return Manifests([one for one in yaml.safe_load_all(done.stdout) if one], list(secrets.values()))


class PodFiles:
    """Writes pods for podman. ``aliases`` are addresses by Service name; ``folder`` holds volumes and files."""

    def __init__(self, manifests: Manifests, folder: Path, aliases: dict[str, str]) -> None:
        self._manifests = manifests
        self._folder = folder
        self._aliases = aliases

    def write(self, workload: Workload, name: str, image: str) -> tuple[Path | None, Path]:
        """The file of the pod that runs the init containers, if there are any, and that of the pod itself."""
        spec = copy.deepcopy(workload.spec)
        spec["hostAliases"] = [{"ip": ip, "hostnames": [host]} for host, ip in self._aliases.items()]
        spec["volumes"] = [
            {"name": volume["name"], "hostPath": {"path": str(path), "type": "Directory"}}
            for volume in [*spec.get("volumes", []), *({"name": claim, "own": True} for claim in workload.claims)]
            for path in [self._volume(volume, workload, name)]
        ]
        for container in spec["containers"] + spec.get("initContainers", []):
            container["image"] = image
            container["imagePullPolicy"] = "Never"
            container["env"] = self._environment(container)
            for key in (*DROPPED, "envFrom"):
                container.pop(key, None)
        spec.pop("topologySpreadConstraints", None)
        before = spec.pop("initContainers", None)
        main = self._save(name, {**spec, "restartPolicy": "Always"})
        if before is None:
            return None, main
        return self._save(f"{name}-init", {**spec, "containers": before, "restartPolicy": "Never"}), main

    def _save(self, name: str, spec: dict[str, Any]) -> Path:
        mounted = {mount["name"] for container in spec["containers"] for mount in container.get("volumeMounts", [])}
        spec["volumes"] = [volume for volume in spec["volumes"] if volume["name"] in mounted]
        file = self._folder / f"{name}.yaml"
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as out:
            yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}, out)
        return file

    def _environment(self, container: dict[str, Any]) -> list[dict[str, str]]:
        values: dict[str, str] = {}
        for source in container.get("envFrom", []):
            if "secretRef" in source:
                values |= self._manifests.secrets[source["secretRef"]["name"]]
            else:
                values |= self._manifests.config_maps[source["configMapRef"]["name"]]
        values |= {one["name"]: one["value"] for one in container.get("env", [])}
        return [{"name": name, "value": value} for name, value in values.items()]

    def _volume(self, volume: dict[str, Any], workload: Workload, pod: str) -> Path:
        """The folder that stands for a volume, with what the kubelet does for `fsGroup`: its group, writable, inherited."""
        if "persistentVolumeClaim" in volume:
            path: Path = self._folder / "claims" / volume["persistentVolumeClaim"]["claimName"]
        else:
            path = self._folder / "volumes" / pod / volume["name"]
        if not path.exists():
            path.mkdir(parents=True)
            os.chown(path, 0, workload.spec["securityContext"]["fsGroup"])
            path.chmod(0o2775)
            for file, text, mode in self._contents(volume):
                (path / file).write_text(text)
                os.chown(path / file, 0, workload.spec["securityContext"]["fsGroup"])
                (path / file).chmod(mode)
        return path

    def _contents(self, volume: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
        """Name, text and mode of each file that a config map, or a projection of config maps and secrets, puts into a volume."""
        if "configMap" in volume:
            source = volume["configMap"]
            for name, text in self._manifests.config_maps[source["name"]].items():
                yield name, text, source.get("defaultMode", 0o644)
        for source in volume.get("projected", {}).get("sources", ()):
            for kind, kept in (("configMap", self._manifests.config_maps), ("secret", self._manifests.secrets)):
                for item in source.get(kind, {}).get("items", ()):
                    yield item["path"], kept[source[kind]["name"]][item["key"]], 0o640
