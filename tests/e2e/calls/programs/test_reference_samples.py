"""The samples of ``/reference``: their languages can read all of them, and run they do what they say."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import requests

from services.gateway.http.openapi import specification
from services.gateway.reference.calls import calls
from services.gateway.reference.samples import LANGUAGES
from tests.support.judges.interfaces.references import samples
from tests.support.material.agreement import agreement_pdf, send
from tests.support.material.outcomes import completed
from tests.support.services.suite import RunningSuite

_SHELL = 'for file; do bash -n "$file" || failed=1; done; exit ${failed:-0}'
_NODE = """const { readFileSync } = require("node:fs");
for (const file of process.argv.slice(1)) new (require("node:vm").SourceTextModule)(readFileSync(file, "utf8"), { identifier: file });"""
_PHP = """foreach (array_slice($argv, 1) as $file) token_get_all(file_get_contents($file), TOKEN_PARSE);"""
READERS = {
    "sh": ["bash", "-c", _SHELL, "bash"],
    "python": [sys.executable, "-m", "py_compile"],
    "js": ["node", "--experimental-vm-modules", "--eval", _NODE],
    "php": ["php", "-r", _PHP, "--"],
}
RUNNERS = {"sh": ["bash"], "python": [sys.executable], "js": ["node"], "php": ["php"]}
SUFFIXES = {language.fence: language.suffix for language in LANGUAGES}


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.fence)
def test_every_sample_can_be_read_by_its_language(language: Any, tmp_path: Path) -> None:
    document = specification.published()
    for call in calls(document):
        written = language.write(document, call, "https://sign.example.com/api")
        (tmp_path / f"{call.id}{language.suffix}").write_text(written)
    files = sorted(map(str, tmp_path.iterdir()))
    assert len(files) == len(list(specification.operations(document)))
    command = READERS[language.fence]
    done = subprocess.run([*command, *files], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    wrong = tmp_path / f"wrong{language.suffix}"
    wrong.write_text((tmp_path / f"submissions.create{language.suffix}").read_text() + "\n<?php ) (")
    assert subprocess.run([*command, str(wrong)], capture_output=True, timeout=240, check=False).returncode != 0


@pytest.fixture(scope="module")
def sealed(sqlite_suite: RunningSuite) -> int:
    """A submission that has evidence."""
    parties = send(sqlite_suite, sqlite_suite.copy_of_template(agreement_pdf())["id"], send_email=False)
    for party in parties:
        sqlite_suite.api("PUT", f"/submitters/{party['id']}", {"completed": True})
    return int(completed(sqlite_suite, parties[0]["submission_id"])["id"])


@pytest.mark.parametrize("fence", list(RUNNERS))
def test_a_sample_does_what_it_says(sqlite_suite: RunningSuite, fence: str, sealed: int, tmp_path: Path) -> None:
    suite = sqlite_suite

    def run(page: str, summary: str, **changed: tuple[str, str]) -> str:
        """What the sample prints that stands in the running suite's page; ``changed``: what readers put in their own of."""
        source = requests.get(f"{suite.base_url}/reference/{page}.md", timeout=120).text
        sample = samples(source, summary)[fence]
        for old, new in changed.values():
            assert old in sample
            sample = sample.replace(old, new)
        file = tmp_path / f"sample{SUFFIXES[fence]}"
        file.write_text(sample)
        environment = {**os.environ, "COUNTERSIGN_API_KEY": suite.api_key}
        done = subprocess.run(
            [*RUNNERS[fence], file.name],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert suite.api("GET", "/user")["email"] in run("users", "The user whose API key this is")
    example = specification.document()["paths"]["/templates/html"]["post"]["requestBody"]["content"][
        "application/json"
    ]["example"]

    def made_of_it() -> set[int]:
        named = {"q": example["name"], "limit": 100}
        found = suite.api("GET", "/templates", params=named)["data"]
        return {each["id"] for each in found if each["name"] == example["name"]}

    before = made_of_it()
    run("templates", "Make a template from HTML")
    (made,) = made_of_it() - before
    assert str(example["name"]) in run("templates", "A template", id=("/templates/7", f"/templates/{made}"))
    template = suite.copy_of_template(agreement_pdf(), name="Sold")["id"]
    (tmp_path / "rows.csv").write_text("Seller.email,Buyer.email\nana@example.com,bob@example.com\n")
    form = specification.document()["paths"]["/submissions/batch"]["post"]["requestBody"]["content"][
        "multipart/form-data"
    ]
    rate = form["example"]["settings"]["rate"]
    separator = " => " if fence == "php" else ": "
    quote = "'" if fence == "php" else '"'
    key = f"{quote}template_id{quote}{separator}"
    run("batches", "Create a submission for each row of a file", template=(f"{key}7", f"{key}{template}"))
    (batch,) = [
        each for each in suite.api("GET", "/batches", params={"limit": 100})["data"] if each["template_id"] == template
    ]
    assert batch["rate"] == rate
    run("submissions", evidence_summary(), id=("/submissions/7/", f"/submissions/{sealed}/"))
    with zipfile.ZipFile(tmp_path / "evidence.zip") as evidence:
        assert evidence.testzip() is None
        assert evidence.namelist()


def evidence_summary() -> str:
    return str(specification.document()["paths"]["/submissions/{id}/evidence"]["get"]["summary"])
