"""The images are small, and what `make_images` says of them is so. Built twice without what was built before, they are the same."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.release import make_images
from deploy.services import SERVICES
from tests.deployed import images
from tests.deployed.cluster import Cluster
from tests.deployed.engine import environment, podman
from tests.support.judges.operations.bills import faults, packages

MOST = {"gateway": 250, "notifications": 210, "rendering": 870, "submissions": 205, "templates": 190, "webhooks": 190}
"""MB (10^6 bytes) with all that they stand on. Measured on 2026-11-29: docs/install.md. What makes one grow is left out, or its reason
is in the commit that raises this; none may have more than issue 19 promises, 900 for rendering and 250 for the others."""

COMPILED = """
import collections, json, pathlib, sysconfig
places = ("/app", "/venv", sysconfig.get_path("stdlib"))
files = [path for place in places for path in pathlib.Path(place).rglob("__pycache__/*.pyc")]
print(json.dumps(collections.Counter(path.read_bytes()[4] for path in files)))
"""
"""Prints how many compiled files there are of each kind (PEP 552)."""
UNCHECKED = "1"
"""The kind that is good whatever its source is."""


def size(image: str) -> int:
    return int(podman("image", "inspect", "--format", "{{.Size}}", image))


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_has_not_grown(cluster: Cluster, service: str) -> None:
    megabytes = size(images.image_of(service)) / 1e6
    images.say(f"{service}: {megabytes:.0f} MB")
    assert megabytes <= MOST[service]


def test_what_is_found_in_lists_is_not_looked_for_again(cluster: Cluster) -> None:
    """Layers change times. The list of fonts still holds, or each child would read all fonts; and so do compiled files."""
    image = images.image_of("rendering")
    said = podman("run", "--rm", "--network", "none", "--entrypoint", "fc-cache", image, "--verbose", within=300)
    assert "/usr/share/fonts/opentype/noto: skipping, existing cache is valid" in said
    assert ": caching," not in said
    for service in ("rendering", "webhooks"):
        image = images.image_of(service)
        said = podman("run", "--rm", "--network", "none", "--entrypoint", "python", image, "-c", COMPILED, within=300)
        assert set(json.loads(said)) == {UNCHECKED}


def made(folder: Path, tag: str, *names: str) -> Path:
    """Have `make_images` build images of the commit, as an operator would; the folder with what it wrote."""
    key = folder / "key.pem"
    subprocess.run(
        ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key],
        check=True, capture_output=True,
    )  # fmt: skip
    options = [f"--build-option={option}" for option in images.build_options(images.machine_mounts())]
    done = subprocess.run(
        [sys.executable, "-m", "deploy.release.make_images", "--engine", "podman", "--tag", tag, "--base", images.PYTHON,
         "--no-pull", "--prefix", "docker.io/countersign", "--output", folder, "--sign", key, *options, *names],
        cwd=images.ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=3000,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    images.say(done.stdout)
    return folder


@contextmanager
def mounted(image: str) -> Iterator[Path]:
    """The files of an image."""
    try:
        yield Path(podman("image", "mount", image).strip())
    finally:
        podman("image", "unmount", image)


def check_the_same(folder: Path, *names: str) -> None:
    """Build twice, from nothing, and compare: the images, layer by layer, and the bills of materials."""
    for time in ("once", "twice"):
        (folder / time).mkdir()
        made(folder / time, time, *names)
    for name in names:
        found = [json.loads(podman("image", "inspect", images.image_of(name, time)))[0] for time in ("once", "twice")]
        layers = [one["RootFS"]["Layers"] for one in found]
        assert layers[0] == layers[1], f"layers of {name}"
        assert (found[0]["Id"], found[0]["Digest"]) == (found[1]["Id"], found[1]["Digest"])
        bills = [(folder / time / f"{name}.cdx.json").read_bytes() for time in ("once", "twice")]
        assert bills[0] == bills[1]


def check_described(folder: Path, name: str, tag: str) -> None:
    """What was written beside an image is what dpkg, pip, podman and openssl say of it."""
    image = images.image_of(name, tag)
    text = (folder / f"{name}.cdx.json").read_text()
    bill = json.loads(text)
    assert faults(text) == [None]
    with mounted(image) as root:
        shown = ["--showformat", "${db:Status-Status} ${Package} ${Version}\n"]
        said = output("dpkg-query", f"--admindir={root}/var/lib/dpkg", "--show", *shown)
        assert {(one["name"], one["version"]) for one in packages(bill, "deb")} == {
            tuple(line.split()[1:]) for line in said.splitlines() if line.startswith("installed ")
        }
        (path,) = root.glob("venv/lib/python3*/site-packages")
        listed = json.loads(output(sys.executable, "-m", "pip", "list", "--path", str(path), "--format", "json"))
        assert {(one["name"], one["version"]) for one in packages(bill, "pypi")} == {
            (one["name"].lower().replace("_", "-").replace(".", "-"), one["version"]) for one in listed
        }
    statement = json.loads((folder / f"{name}.provenance.json").read_text())
    (found,) = json.loads(podman("image", "inspect", image))
    assert [one["digest"]["sha256"] for one in statement["subject"]] == [
        found["Digest"].removeprefix("sha256:"),
        found["Id"],
    ]
    check_labels(found, statement)


def check_labels(found: dict[str, Any], statement: dict[str, Any]) -> None:
    parameters = statement["predicate"]["buildDefinition"]["externalParameters"]
    labels = found["Config"]["Labels"]
    assert labels["org.opencontainers.image.revision"] == parameters["commit"] == make_images.git("rev-parse", "HEAD")
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert labels["org.opencontainers.image.title"].startswith("Countersign")


def output(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_a_service_is_built_the_same_twice_and_described(cluster: Cluster, tmp_path: Path) -> None:
    check_the_same(tmp_path, "webhooks")
    check_described(tmp_path / "twice", "webhooks", "twice")
    podman("rmi", images.image_of("webhooks", "once"), images.image_of("webhooks", "twice"))


def test_every_other_image_is_built_the_same_twice_and_so_is_that_for_trial(cluster: Cluster, tmp_path: Path) -> None:
    names = [name for name in make_images.IMAGES if name != "webhooks"]
    check_the_same(tmp_path, *names)
    for name in names:
        check_described(tmp_path / "twice", name, "twice")
        podman("rmi", images.image_of(name, "once"), images.image_of(name, "twice"))
