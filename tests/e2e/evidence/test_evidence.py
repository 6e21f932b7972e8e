"""The evidence ZIP, judged by programs that we did not write: unzip, openssl, poppler, and Python without our packages."""

import hashlib
import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from services.gateway.evidence import verify as checker
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, send, sign
from tests.support.services.suite import RunningSuite, wait_until

PYTHON = "/usr/bin/python3"
CHECKER = Path(checker.__file__)
FLIPS = 1_000


def completed(suite: RunningSuite, name: str = "Agreement") -> dict[str, Any]:
    template = suite.copy_of_template(agreement_pdf(), name=name)
    seller, buyer = send(suite, template["id"])
    sign(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    path = f"/submissions/{seller['submission_id']}"

    def sealed() -> dict[str, Any] | None:
        submission: dict[str, Any] = suite.api("GET", path)
        return submission if submission["status"] == "completed" else None

    return wait_until(sealed, what="the sealing")


def evidence(suite: RunningSuite, submission_id: int) -> bytes:
    answer = suite.call("GET", f"/submissions/{submission_id}/evidence")
    assert answer.status_code == 200, answer.text[:500]
    assert answer.headers["Content-Type"] == "application/zip"
    assert int(answer.headers["Content-Length"]) == len(answer.content)
    assert f"evidence-{submission_id}.zip" in answer.headers["Content-Disposition"]
    return answer.content


@pytest.fixture(scope="module")
def told(sqlite_suite: RunningSuite, tmp_path_factory: pytest.TempPathFactory) -> "Told":
    submission = completed(sqlite_suite)
    path = tmp_path_factory.mktemp("evidence") / "evidence.zip"
    path.write_bytes(evidence(sqlite_suite, submission["id"]))
    return Told(sqlite_suite, submission, path)


class Told:
    """A sealed submission and its evidence."""

    def __init__(self, suite: RunningSuite, submission: dict[str, Any], path: Path) -> None:
        self.suite, self.submission, self.path = suite, submission, path

    def unpacked(self, folder: Path) -> Path:
        subprocess.run(["unzip", "-q", str(self.path), "-d", str(folder)], check=True)
        return folder


def verify(program: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """As on a machine without our packages: isolated, no site-packages, nothing of our environment."""
    words = [PYTHON, "-I", "-S", str(program), *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False, env={"PATH": os.defpath}, cwd="/")


def test_a_stranger_checks_it_with_python_alone(told: Told, tmp_path: Path) -> None:
    tested = subprocess.run(["unzip", "-t", str(told.path)], capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout
    folder = told.unpacked(tmp_path / "unpacked")
    without = subprocess.run([PYTHON, "-I", "-S", "-c", "import pikepdf"], capture_output=True, check=False)
    assert without.returncode != 0
    for arguments in ([told.path], [folder], []):
        checked = verify(folder / "verify.py", *arguments)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert "WRONG" not in checked.stdout
        assert "Everything that was checked holds." in checked.stdout
        assert "sealed/audit-trail.pdf was made of the first" in checked.stdout


def test_its_signatures_hold_for_openssl_and_its_seals_for_poppler(told: Told, tmp_path: Path) -> None:
    checked = verify(CHECKER, told.path, "--openssl")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    manifest = json.loads((told.unpacked(tmp_path / "unpacked") / "manifest.json").read_text())
    assert len(statements(manifest)) == 2
    assert checked.stdout.count("openssl: the signature") == 1 + 1 + len(manifest["documents"]) + len(
        statements(manifest)
    )
    for sealed in ["sealed/audit-trail.pdf", *(one["sealed"] for one in manifest["documents"])]:
        verdict = subprocess.run(
            ["pdfsig", "-nocert", str(tmp_path / "unpacked" / sealed)], capture_output=True, text=True, check=False
        )
        assert "Signature is Valid" in verdict.stdout, verdict.stdout
        assert "Total document signed" in verdict.stdout


def statements(manifest: dict[str, Any]) -> list[dict[str, str]]:
    return [one for party in manifest["parties"] for one in party["statements"]]


def test_the_commands_that_it_prints_work(told: Told, tmp_path: Path) -> None:
    folder = tmp_path / "extracted"
    folder.mkdir()
    checked = verify(CHECKER, told.path, "--extract", folder)
    commands = [line.strip() for line in checked.stdout.splitlines() if line.strip().startswith("openssl cms")]
    assert len(commands) >= 3
    for command in commands:
        subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True)
    again = verify(folder / "verify.py")
    assert again.returncode == 0, again.stdout
    (folder / "sealed" / "audit-trail.pdf.signed").write_bytes(b"what a forger has a signature of")
    assert "audit-trail.pdf.signed is not in the manifest" in verify(folder / "verify.py").stdout


def test_another_root_is_refused(told: Told, tmp_path: Path) -> None:
    key, root = tmp_path / "key.pem", tmp_path / "root.pem"
    made = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {root} -subj /CN=Other -days 3650"
    subprocess.run(made.split(), check=True, capture_output=True)
    checked = verify(CHECKER, told.path, "--openssl", "--root", root)
    assert checked.returncode == 1
    assert "openssl refuses the signature manifest.json.p7s" in checked.stdout


def test_it_holds_the_files_of_the_submission(told: Told, tmp_path: Path) -> None:
    folder = told.unpacked(tmp_path / "unpacked")
    manifest = json.loads((folder / "manifest.json").read_text())
    (document,) = manifest["documents"]
    assert (folder / document["original"]).read_bytes() == agreement_pdf()
    sealed = hashlib.sha256((folder / document["sealed"]).read_bytes()).hexdigest()
    assert sealed == told.submission["documents"][0]["sha256"]
    assert manifest["submission"] == told.submission["id"]
    assert [party["submitter"] for party in manifest["parties"]] == [one["id"] for one in told.submission["submitters"]]
    texts = (folder / "events.jsonl").read_text().split("\n")[:-1]
    previous, hashes = "", []
    for text in texts:  # as docs/evidence.md says it
        previous = hashlib.sha256((previous + text).encode()).hexdigest()
        hashes.append(previous)
    events = told.suite.api("GET", f"/submissions/{told.submission['id']}/events?limit=100")["data"]
    assert hashes == [event["hash"] for event in events[: len(hashes)]]
    assert json.loads(texts[-1])["event_type"] == "complete_submission"


def test_who_asks_twice_gets_the_same_bytes(told: Told) -> None:
    first = told.path.read_bytes()
    assert evidence(told.suite, told.submission["id"]) == first
    told.suite.api("PUT", f"/submissions/{told.submission['id']}", {"name": "Renamed"})
    assert evidence(told.suite, told.submission["id"]) == first
    for path in ("evidence", "documents"):  # two of the calls of which each user has a few at once
        answer = told.suite.call("GET", f"/submissions/{told.submission['id']}/{path}")
        assert answer.headers["RateLimit-Policy"] == '"documents";q=3;qu="concurrent-requests"'
        assert answer.headers["RateLimit"] == '"documents";r=2'


def test_nothing_is_sealed_for_it(told: Told) -> None:
    before = told.suite.api("GET", f"/submissions/{told.submission['id']}")
    evidence(told.suite, told.submission["id"])
    after = told.suite.api("GET", f"/submissions/{told.submission['id']}")
    assert [one["sha256"] for one in after["documents"]] == [one["sha256"] for one in before["documents"]]

    def lines(submission: dict[str, Any]) -> list[str]:
        """Without those of mails, which are written once the mail server has taken them."""
        return [
            one["event_type"] for one in submission["submission_events"] if not one["event_type"].startswith("send_")
        ]

    assert lines(after) == lines(before)


def test_each_changed_byte_is_found(told: Told, tmp_path: Path) -> None:
    """Flips all over the ZIP: its heads, its directory, its end, each member."""
    data = told.path.read_bytes()
    chance = random.Random(12)
    places = {*range(120), *range(len(data) - 120, len(data))}
    at = data.find(b"PK\x03\x04")
    while at >= 0:  # each member's head, its first bytes, and the end of the one before
        places |= {at - 1, at + 5, at + 14, at + 20, at + 32, at + 60} & {*range(len(data))}
        at = data.find(b"PK\x03\x04", at + 1)
    places |= {chance.randrange(len(data)) for _ in range(FLIPS)}
    missed = []
    for place in sorted(places):
        changed = bytearray(data)
        changed[place] ^= 1 << chance.randrange(8)
        (tmp_path / "flipped.zip").write_bytes(changed)
        if holds(tmp_path / "flipped.zip"):
            missed.append(place)
    assert missed == []
    for other in (data[:-1], data + b"\0", data[: len(data) // 2], b"\0" + data, data + data):
        (tmp_path / "flipped.zip").write_bytes(other)
        assert verify(CHECKER, tmp_path / "flipped.zip").returncode == 2


def holds(path: Path) -> bool:
    """What verify.py says of a ZIP or a folder, asked in this process: a thousand times."""
    report = checker.Report()
    try:
        found = checker.check(checker.Folder(path) if path.is_dir() else checker.Zip(path), report)
    except checker.Unreadable:
        return False
    return found is not None and report.differs == 0


def test_each_changed_byte_of_an_unpacked_member_is_found(told: Told, tmp_path: Path) -> None:
    """There the ZIP's own checksums do not help: the manifest finds it, and the signature a change of the manifest."""
    folder, chance = told.unpacked(tmp_path / "unpacked"), random.Random(13)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        name = path.relative_to(folder).as_posix()
        for place in {0, len(data) - 1, *(chance.randrange(len(data)) for _ in range(4))}:
            changed = bytearray(data)
            changed[place] ^= 1 << chance.randrange(8)
            path.write_bytes(changed)
            if name == "manifest.json":
                # 1: something differs; 2: a key that it needs has another name, so it is no manifest at all.
                assert verify(CHECKER, folder, "--openssl").returncode in (1, 2), (name, place)
            elif name != "manifest.json.p7s":  # which holds certificates that it does not need
                assert not holds(folder), (name, place)
        path.write_bytes(data)
    (folder / "more.txt").write_text("more")
    assert "more.txt is not in the manifest" in verify(CHECKER, folder).stdout


def test_there_is_none_before_the_sealing(told: Told) -> None:
    template = told.suite.copy_of_template(agreement_pdf(), name="Unsigned")
    seller, _ = send(told.suite, template["id"])
    refused = told.suite.call("GET", f"/submissions/{seller['submission_id']}/evidence")
    assert refused.status_code == 422
    assert "before its documents are sealed" in refused.json()["error"]
    assert told.suite.call("GET", "/submissions/999999/evidence").status_code == 404
