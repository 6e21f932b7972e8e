"""When sealing cannot be done: the reason is told, nothing is called completed, and a retry completes it. And with a
time-stamping authority what it is good for."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from tests.e2e.conftest import Equipped
from tests.e2e.evidence.test_evidence import CHECKER, evidence, verify
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, form, send, sign
from tests.support.material.outcomes import completed, events_of, fetched, pdf_signatures, pdf_text
from tests.support.rendering.seals import keys_in, public_half
from tests.support.servers.providers.tsa import Authority
from tests.support.services.suite import RunningSuite, wait_until


@pytest.fixture(scope="module")
def tsa(equipped: Equipped) -> Authority:
    return equipped.authority


@pytest.fixture(scope="module")
def suite(equipped: Equipped) -> RunningSuite:
    return equipped.suite


def signed_by_both(suite: RunningSuite) -> list[dict[str, Any]]:
    template = suite.copy_of_template(agreement_pdf(), name="Agreement")
    seller, buyer = send(suite, template["id"], order="random", send_email=False)
    sign(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    return [seller, buyer]


def read(suite: RunningSuite, party: dict[str, Any]) -> dict[str, Any]:
    submission: dict[str, Any] = suite.api("GET", f"/submissions/{party['submission_id']}")
    return submission


def test_a_failed_seal_is_told_and_retried(
    equipped: Equipped, suite: RunningSuite, tsa: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    equipped.mail.received.clear()
    # The authority's own certificate is revoked, until the story says otherwise: nothing may be sealed.
    monkeypatch.setattr(tsa, "proofs", "revoked")
    seller, buyer = signed_by_both(suite)
    wait_until(lambda: read(suite, seller)["sealing_status"] == "failed", what="sealing failed")
    submission = read(suite, seller)
    assert "revoked" in submission["sealing_error"]
    assert submission["status"] == "pending"
    assert (submission["documents"], submission["audit_log_url"]) == ([], None)
    listed = suite.api("GET", "/submissions", params={"status": "completed", "limit": 100})["data"]
    assert submission["id"] not in [each["id"] for each in listed]
    page = form(suite, buyer["slug"])
    assert (page["state"], page["sealing_status"], page["results"]) == ("completed", "failed", [])
    assert events_of(suite, "submission.completed", id=submission["id"]) == []
    assert equipped.mail.received == []
    # What is signed can neither be signed again nor expire nor be changed; drafts can still be had.
    assert suite.api("PUT", f"/submitters/{buyer['id']}", {"name": "Other"}, status=422)["code"] == "invalid"
    drafts = suite.api("GET", f"/submissions/{submission['id']}/documents")["documents"]
    assert "Wörner" in pdf_text(fetched(drafts[0]["url"]))

    monkeypatch.undo()
    again = suite.api("POST", f"/submissions/{submission['id']}/seal")
    assert (again["sealing_status"], again["sealing_error"]) == ("sealing", None)
    sealed = completed(suite, submission["id"])
    assert sealed["sealing_status"] == "sealed"
    assert sealed["pades_level"] == "B-LT"
    suite.api("POST", f"/submissions/{submission['id']}/seal", status=422)
    kinds = [each["event_type"] for each in sealed["submission_events"]]
    assert kinds.count("fail_sealing") == kinds.count("retry_sealing") == kinds.count("complete_submission") == 1
    wait_until(lambda: events_of(suite, "submission.completed", id=submission["id"]), what="submission.completed")
    assert len(events_of(suite, "submission.completed", id=submission["id"])) == 1
    check_time_stamped(suite, sealed)


def check_time_stamped(suite: RunningSuite, submission: dict[str, Any]) -> None:
    data = fetched(submission["documents"][0]["url"])
    assert "Signature is Valid" in pdf_signatures(data)
    verdict = suite.api("POST", "/tools/verify", {"file": base64.b64encode(data).decode()})
    (signature,) = verdict["signatures"]
    assert signature["level"] == submission["pades_level"]
    assert signature["timestamp"]
    assert (verdict["checksum_status"], signature["trust"]) == ("valid", "trusted")


def test_an_authority_that_fails_is_done_without_and_that_is_said(suite: RunningSuite, tsa: Authority) -> None:
    tsa.mode = "error"
    try:
        seller, _ = signed_by_both(suite)
        submission = completed(suite, seller["submission_id"])
    finally:
        tsa.mode = "good"
    assert submission["pades_level"] == "B-B"
    (told,) = [each for each in submission["submission_events"] if each["event_type"] == "complete_submission"]
    assert "No time-stamp" in told["data"]["report"][0]
    assert "B-B" in pdf_text(fetched(submission["audit_log_url"]))
    assert "Signature is Valid" in pdf_signatures(fetched(submission["documents"][0]["url"]))


def test_with_the_files_of_the_seal_nobody_makes_certificates(suite: RunningSuite) -> None:
    """The root, which readers trust, is there; its key is not."""
    folder = suite.var_dir / "secrets" / "certificates"
    root = x509.load_pem_x509_certificate((folder / "root.crt").read_bytes())
    keys = keys_in(folder)
    assert keys
    assert public_half(root.public_key()) not in keys


def test_the_evidence_holds_the_proofs_that_the_seal_carries(suite: RunningSuite, tmp_path: Path) -> None:
    seller, _ = signed_by_both(suite)
    assert completed(suite, seller["submission_id"])["pades_level"] == "B-LT"
    path, folder = tmp_path / "evidence.zip", tmp_path / "unpacked"
    path.write_bytes(evidence(suite, seller["submission_id"]))
    checked = verify(CHECKER, path, "--openssl", "--extract", folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    proofs = json.loads((folder / "manifest.json").read_text())["revocation"]
    assert proofs
    for one in proofs:
        command = ["openssl", "crl", "-inform", "DER", "-in", str(folder / one), "-noout", "-issuer"]
        assert "issuer" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
