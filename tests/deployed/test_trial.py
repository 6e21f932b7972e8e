"""The image for trying, run as the README says: from nothing but it to a sealed agreement, mails included."""

import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.deployed import images
from tests.deployed.engine import EngineFailed, podman
from tests.support.rendering.sealing import pdfsig
from tests.support.services.suite import wait_until

NAME = "countersign-trial"
PAGE = "<p>The rent is due each month.</p><p>Signed: <text-field name='Full name' role='Tenant' style='width: 180px; height: 22px'></text-field></p>"


@dataclass(frozen=True)
class Trial:
    """A container of the image, and how long ago it was asked for."""

    address: str
    began: float = field(default_factory=time.monotonic)

    def say(self, what: str) -> None:
        """Tell whoever measures (docs/install.md has the figure): no test asks how long something takes."""
        images.say(f"{what} {time.monotonic() - self.began:.1f} s after `podman run`")


@pytest.fixture
def running(engine_lock: None) -> Iterator[Trial]:
    """A container of the image, published on this machine alone."""
    image = images.build_trial()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    podman("rm", "--force", "--ignore", NAME)
    trial = Trial(f"http://localhost:{port}")
    podman("run", "--detach", "--name", NAME, "--publish", f"127.0.0.1:{port}:8000",
           "--env", f"BASE_URL={trial.address}", image)  # fmt: skip
    yield trial
    podman("rm", "--force", "--volumes", NAME)


def said() -> str:
    """What the container has printed. Raises EngineFailed when it has ended."""
    state = podman("inspect", "--format", "{{.State.Status}}", NAME).strip()
    words = podman("logs", NAME)
    if state != "running":
        raise EngineFailed(f"the container is {state}: {words[-3000:]}")
    return words


def test_trial_goes_from_one_command_to_a_sealed_agreement(running: Trial, tmp_path: Path) -> None:
    key = wait_until(
        lambda: re.search(r"^API key of the first admin.*: (\S+)$", said(), re.MULTILINE), within=180, what="the key"
    )[1]
    running.say("ready")

    def api(method: str, path: str, body: Any = None) -> Any:
        answer = requests.request(
            method, f"{running.address}/api{path}", json=body, headers={"X-Auth-Token": key}, timeout=60
        )
        assert answer.ok, answer.text
        return answer.json()

    made = api("POST", "/submissions/html", {
        "name": "Lease",
        "documents": [{"name": "Lease", "html": PAGE}],
        "submitters": [{"role": "Tenant", "email": "tenant@example.com"}],
    })  # fmt: skip
    party = made[0] if isinstance(made, list) else made["submitters"][0]
    mails = wait_until(
        lambda: (
            (page := requests.get(f"{running.address}/dev/mail", timeout=60)).ok
            and "tenant@example.com" in page.text
            and page
        ),
        what="the mail on the page of mails",
    )
    assert "Lease" in mails.text
    page = f"{running.address}/s/{party['slug']}"
    form = requests.get(f"{page}/form", timeout=60).json()
    (field,) = form["fields"]
    body = {"values": {field["uuid"]: "Tina Tenant"}, "request_id": "trial", "shown": form.get("shown")}
    requests.post(f"{page}/complete", json=body, timeout=60).raise_for_status()
    submission = wait_until(
        lambda: (found := api("GET", f"/submissions/{party['submission_id']}"))["status"] == "completed" and found,
        within=120,
        what="the seal",
    )
    running.say("sealed")
    sealed = requests.get(submission["documents"][0]["url"], timeout=60).content
    assert "Signature is Valid" in pdfsig(sealed, tmp_path)
    assert podman("exec", NAME, "id", "-u").strip() == "10001"
