"""The commands of docs/certsign.md and docs/dutystamp.md are run as they stand there; only addresses and ids are those of this
suite."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from deploy.providers.csc import Provider
from deploy.providers.stamp_issuer import StampIssuer
from tests.e2e.calls.programs.test_readme import like
from tests.support.material.agreement import sign
from tests.support.servers.providers.csc_provider import running
from tests.support.services.suite import RunningSuite, wait_until

DOCS = Path(__file__).resolve().parents[4] / "docs"
BLOCK = re.compile(r"```(?:sh)?\n((?:(?!```).)*?\bcurl (?:(?!```).)*?)```", re.DOTALL)


def commands(page: str) -> list[str]:
    """Those of a page that call something."""
    return BLOCK.findall((DOCS / page).read_text())


def run(command: str, suite: RunningSuite, folder: Path, port: int) -> Any:
    """What is answered, in a folder with a ``var`` as `make up` leaves it."""
    here = command.replace("localhost:8000", f"localhost:{suite.port}").replace("127.0.0.1:PORT", f"127.0.0.1:{port}")
    here = here.replace("curl ", "curl -sS --fail-with-body ")
    ended = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", here], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, (here, ended.stdout, ended.stderr)
    return json.loads(ended.stdout)


def test_the_commands_about_certificates_do_what_is_written_beside_them(
    sqlite_suite: RunningSuite, tmp_path: Path
) -> None:
    suite, var = sqlite_suite, tmp_path / "var"
    seal, fault, signer = commands("certsign.md")
    with running(var / "provider") as provider:
        (var / "admin-api-key").write_text(suite.api_key)
        port = _port(provider)
        try:
            known = run(seal, suite, tmp_path, port)["certsign"]
            assert (known["mode"], known["problem"]) == ("seal", None)
            assert known["subject"]
            assert suite.api("POST", "/account/certsign/test")["ok"]
            run(fault, suite, tmp_path, port)
            assert [one["kind"] for one in provider.faults.shown()] == ["lost"]
            provider.faults.set([])
            known = run(signer, suite, tmp_path, port)["certsign"]
            assert (known["mode"], known["credential_id"], known["problem"]) == ("signer", "person", None)
            assert known["authorization"]["type"] == "authorization_code"
        finally:
            suite.api("PUT", "/account", {"certsign": None})


def test_the_commands_about_stamps_do_what_is_written_beside_them(sqlite_suite: RunningSuite, tmp_path: Path) -> None:
    suite, folder = sqlite_suite, tmp_path / "var" / "stamp-issuer"
    folder.mkdir(parents=True)
    settings, submission, control = commands("dutystamp.md")
    shared = Path(suite.settings["RENDERING_STAMP_FOLDER"]) / "documented"
    issuer = StampIssuer(folder, shared=shared, key_type="ec-p256").start()
    (tmp_path / "var" / "admin-api-key").write_text(suite.api_key)
    (folder / "dutystamp.json").write_text(json.dumps(issuer.settings()))
    port = int(issuer.url.rpartition(":")[2])
    try:
        shown = re.search(r"```json\n(\{\"dutystamp\".*?)```", (DOCS / "dutystamp.md").read_text(), re.DOTALL)
        assert shown
        like(json.loads(shown[1]), run(settings, suite, tmp_path, port))
        html = '<p><text-field name="Name" role="Signer"></text-field></p>'
        template = suite.api("POST", "/templates/html", {"name": "Stamped", "html": html})["id"]
        made = run(submission.replace('"template_id": 1', f'"template_id": {template}'), suite, tmp_path, port)
        sign(suite, made[0]["slug"], {"Name": "Ann Ray"})
        path = f"/submissions/{made[0]['submission_id']}"
        wait_until(lambda: suite.api("GET", path)["dutystamp_status"] == "stamped", what="the stamp")
        (stamp,) = suite.api("GET", path)["dutystamp"]["stamps"]
        assert stamp["serial"]
        run(control, suite, tmp_path, port)
        assert issuer.books.quota == 3
    finally:
        suite.api("PUT", "/account", {"dutystamp": None})
        issuer.stop()


def _port(provider: Provider) -> int:
    return int(provider.url.rpartition(":")[2])
