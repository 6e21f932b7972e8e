"""The RUNBOOK's chapter on the way from SQLite to PostgreSQL, walked as it stands there, in the middle of an agreement; and what
it says of replacing LINK_SECRET."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import requests

from deploy.services import ROOT, SERVICES
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, sign
from tests.support.servers.postgres import PrivatePostgres
from tests.support.services.forking import completed
from tests.support.services.suite import RunningSuite, start_suite, wait_until

pytestmark = pytest.mark.chaos

CHAPTER = (
    (ROOT / "deploy/RUNBOOK.md").read_text().partition("# From SQLite to PostgreSQL, and back")[2].partition("\n# ")[0]
)
(MOVE,) = re.findall(r"```sh\n *(.*?)\n *```", CHAPTER, re.DOTALL)


@pytest.fixture
def cluster(workspace: Path) -> PrivatePostgres:
    """A server with a role and a database for each service, as the deployments make them."""
    made = PrivatePostgres(workspace / "moved-suite")
    made.start()
    return made


def test_an_agreement_that_is_half_signed_goes_on_and_is_sealed(workspace: Path, cluster: PrivatePostgres) -> None:
    suite = start_suite(workspace / "moved", one_worker=True, SIGNING_KEY_TYPE="ec-p256")
    try:
        template = suite.template(agreement_pdf(), name="Agreement")
        submitters = [{"role": role, "email": f"{role.lower()}@example.com"} for role in ("Seller", "Buyer")]
        body = {"template_id": template["id"], "submitters": submitters, "order": "preserved"}
        seller, buyer = suite.api("POST", "/submissions", body)
        number = seller["submission_id"]
        sign(suite, seller["slug"], SELLER_VALUES)
        before = suite.api("GET", f"/submissions/{number}")["submission_events"]
        link = suite.api("GET", f"/submissions/{number}/documents")["documents"][0]["url"]
    finally:
        suite.stop()

    urls = cluster.service_databases()
    program, *arguments = shlex.split(MOVE.replace("HOST", f"127.0.0.1:{cluster.port}"))
    assert program == "countersign"  # installed or not
    environment = {**os.environ, "VAR_DIR": str(suite.var_dir), "PYTHONPATH": str(ROOT)}
    done = completed("deploy.command", *arguments, environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    said = dict(re.findall(r"^  (\w+_DATABASE_URL)=(.*)$", done.stdout, re.MULTILINE))
    assert {f"{service.upper()}_DATABASE_URL" for service in SERVICES} == said.keys()
    assert [url.replace("+psycopg", "") for url in urls.values()] == [
        said[f"{name.upper()}_DATABASE_URL"] for name in urls
    ]
    for path in (suite.var_dir / "databases").iterdir():
        path.unlink()

    # Another LINK_SECRET at the same time: what was given out with the last one is good as long as that is accepted.
    secrets = {
        "LINK_SECRET": "another secret of thirty-two characters and more",
        "LINK_SECRET_PREVIOUS": (suite.var_dir / "secrets" / "link-secret").read_text().strip(),
    }
    moved = RunningSuite(
        suite.var_dir, port=suite.port, environment={**suite.settings, **said, **secrets}, one_worker=True
    )
    try:
        moved.start()
        trail = moved.api("GET", f"/submissions/{number}")["submission_events"]
        assert trail[: len(before)] == before, "later lines may have come before the end, such as that of a mail"
        assert requests.get(link, timeout=60).status_code == 200
        sign(moved, buyer["slug"], BUYER_VALUES)
        shown = wait_until(
            lambda: (one := moved.api("GET", f"/submissions/{number}"))["sealing_status"] != "sealing" and one,
            what="the end of the sealing",
        )
        # It is sealed only if all that both have signed is as their statements say.
        assert (shown["status"], shown["sealing_error"]) == ("completed", None)
        path = suite.var_dir / "sealed.pdf"
        path.write_bytes(requests.get(shown["documents"][0]["url"], timeout=60).content)
        verdict = subprocess.run(["pdfsig", "-nocert", str(path)], capture_output=True, text=True, check=False).stdout
        assert "Signature is Valid" in verdict
        assert moved.api("POST", "/submissions", body)[0]["submission_id"] == number + 1
        logs = "".join(path.read_text(errors="replace") for path in (suite.var_dir / "log").glob("*.log"))
        assert "database.restored" not in logs, "no database has begun a new life"
    finally:
        moved.stop()
        cluster.stop()
