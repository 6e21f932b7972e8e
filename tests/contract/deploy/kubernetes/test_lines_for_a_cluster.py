"""The lines that the README of the manifests has for who tries them are about what there is: images, folders, secrets and a Service."""

import re
import shlex
import subprocess
import sys

import yaml

from deploy.release import make_images
from deploy.services import ROOT, SERVICES
from tests.support.judges.operations.kubectl import KUBERNETES, objects_of, of_kind

(_LINES,) = re.findall(r"^```sh\n(.*?)^```$", (KUBERNETES / "README.md").read_text(), re.MULTILINE | re.DOTALL)
COMMANDS = [shlex.split(line, comments=True) for line in _LINES.splitlines()]


def line_with(*words: str) -> list[str]:
    """The one line that has these words."""
    (found,) = [command for command in COMMANDS if {*words} <= {*command}]
    return found


def test_the_images_are_those_that_the_manifests_name() -> None:
    command = line_with("deploy.release.make_images")
    prefix = command[command.index("--prefix") + 1]
    named = command[command.index("--prefix") + 2 :]
    assert {*named} == {*SERVICES}
    built = {f"{prefix}/{name}:{make_images.version(ROOT)}" for name in named}
    pods = [one["spec"]["template"]["spec"] for one in of_kind(objects_of("try-out"), "Deployment").values()]
    images = {container["image"] for pod in pods for container in [*pod["containers"], *pod["initContainers"]]}
    assert {f"docker.io/{image}" for image in images} == built


def test_what_is_applied_and_asked_for_is_there() -> None:
    applied = line_with("apply")
    assert (ROOT / applied[-1]).samefile(KUBERNETES / "overlays/try-out")
    assert {command[2] for command in COMMANDS if command[:2] == ["kubectl", "-n"]} == {line_with("namespace")[-1]}

    maker = line_with("deploy/make_secrets.py")
    made = subprocess.run(
        [sys.executable, *maker[1 : maker.index("|")]], cwd=ROOT, capture_output=True, text=True, check=True
    )
    secrets = {one["metadata"]["name"]: one for one in yaml.safe_load(made.stdout)["items"]}
    asked = line_with("secret")
    (key,) = re.findall(r"\.data\.(\w+)", asked[-1])
    secret = secrets[asked[asked.index("secret") + 1]]
    assert key in {**secret.get("stringData", {}), **secret.get("data", {})}

    *_, service, ports = line_with("port-forward")
    kind, name = service.split("/")
    ports_there = of_kind(objects_of("try-out"), kind.capitalize())[name]["spec"]["ports"]
    assert int(ports.partition(":")[2]) in {one["port"] for one in ports_there}
