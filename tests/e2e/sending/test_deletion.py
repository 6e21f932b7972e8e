"""A submission that is deleted for good: who is told, and the receipt that a stranger can check."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import requests

from contracts.evidence import canonical_json
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, send, sign
from tests.support.material.outcomes import completed, fetched
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until


def fetch(suite: RunningSuite, path: str, **params: Any) -> requests.Response:
    headers = {"X-Auth-Token": suite.api_key}
    return requests.get(f"{suite.base_url}/api{path}", params=params, headers=headers, timeout=120)


def test_what_is_deleted_is_told_and_has_a_receipt_that_openssl_checks(
    sqlite_suite: RunningSuite, tmp_path: Path
) -> None:
    suite = sqlite_suite
    me = suite.api("GET", "/user")
    with Receiver() as receiver:
        kinds = ["submission.completed", "submission.erased"]
        hook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": kinds}, status=201)
        parties = send(suite, suite.template(agreement_pdf())["id"])
        for party, values in zip(parties, (SELLER_VALUES, BUYER_VALUES), strict=True):
            sign(suite, party["slug"], values)
        number = parties[0]["submission_id"]
        completed(suite, number)
        wait_until(lambda: len(receiver.requests) == 1, what="the completion was delivered")
        sealed = [
            fetched(document["url"]) for document in suite.api("GET", f"/submissions/{number}/documents")["documents"]
        ]
        path = f"/submissions/{number}/erasure"
        suite.api("GET", path, status=404)
        suite.api("DELETE", f"/submissions/{number}?permanently=true")
        wait_until(lambda: len(receiver.requests) == 2, what="the deletion was delivered")
        told = json.loads(receiver.requests[1].body)
        suite.api("DELETE", f"/webhooks/{hook['id']}")
    assert told["event_type"] == "submission.erased"
    assert told["data"] == {
        "id": number,
        "erased": True,
        "erased_at": told["data"]["erased_at"],
        "reason": "request",
        "receipt_url": f"{suite.base_url}/api{path}/receipt",
    }
    feed = [
        event for event in suite.api("GET", "/events", params={"limit": 100, "kinds": "submission.erased"})["data"]
        if event["data"]["id"] == number
    ]  # fmt: skip
    assert [event["data"] for event in feed] == [told["data"]]

    def complete() -> dict[str, Any] | None:
        state: dict[str, Any] = suite.api("GET", path)
        return state if state["status"] == "complete" else None

    state: dict[str, Any] = wait_until(complete, what="the receipt is signed")
    assert state["pending"] == []
    receipt, signature = (fetch(suite, f"{path}/receipt", format=kind) for kind in ("json", "p7s"))
    assert [answer.headers["Content-Type"] for answer in (receipt, signature)] == [
        "application/json",
        "application/pkcs7-signature",
    ]
    assert receipt.content == canonical_json.encoded(state["receipt"])
    assert hashlib.sha256(receipt.content).hexdigest() == state["sha256"]
    assert b"@" not in receipt.content
    assert state["receipt"]["why"]["user"] == me["id"]
    gone = {document["sha256"] for document in state["receipt"]["documents"]}
    assert {hashlib.sha256(file).hexdigest() for file in sealed} < gone
    assert state["receipt"]["parts"]["notifications"]["deleted"]["mails"] > 0
    for name, content in (("x.json", receipt.content), ("x.p7s", signature.content)):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "root.crt").write_bytes(requests.get(f"{suite.base_url}/verify/root.crt", timeout=120).content)
    verify = "cms -verify -binary -inform DER -in x.p7s -content x.json -CAfile root.crt -purpose any -out out"
    checked = subprocess.run(["openssl", *verify.split()], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert fetch(suite, f"{path}/receipt", format="pdf").status_code == 422
    assert fetch(suite, f"/submissions/{2**40}/erasure/receipt").status_code == 404
