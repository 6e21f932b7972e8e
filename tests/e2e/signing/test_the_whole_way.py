"""From a PDF with tags to a sealed one: two signers in order, an audit trail, mails, webhooks, polling."""

import base64
import hashlib
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import requests
from standardwebhooks.webhooks import Webhook

from tests.e2e.conftest import ON_BOTH_DATABASES
from tests.support.files.altered_files import padded, without_signature
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, form, send, sign
from tests.support.material.outcomes import mail_text, mails_to
from tests.support.servers.receiver import Received, Receiver
from tests.support.services.suite import RunningSuite, wait_until


@pytest.fixture
def template(suite: RunningSuite) -> dict[str, Any]:
    made: dict[str, Any] = suite.copy_of_template(agreement_pdf(), name="Agreement")
    return made


def completed(suite: RunningSuite, submission_id: int) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        submission: dict[str, Any] = suite.api("GET", f"/submissions/{submission_id}")
        assert submission["sealing_status"] != "failed", submission["sealing_error"]
        return submission if submission["status"] == "completed" else None

    return wait_until(look, what=f"submission {submission_id} completed")


def fetch(folder: Path, link: dict[str, Any]) -> Path:
    answer = requests.get(link["url"], timeout=120)
    answer.raise_for_status()
    path = folder / f"{link['name']}.pdf"
    path.write_bytes(answer.content)
    return path


def text_of(path: Path) -> str:
    return subprocess.run(["pdftotext", "-layout", str(path), "-"], capture_output=True, text=True, check=True).stdout


def assert_sealed(path: Path) -> None:
    """poppler, which knows nothing of us, calls every signature valid and the file wholly covered; qpdf finds no fault."""
    verdict = subprocess.run(["pdfsig", str(path)], capture_output=True, text=True, check=False).stdout
    assert "Signature is Valid" in verdict, verdict
    assert "Total document signed" in verdict, verdict
    assert "ETSI.CAdES.detached" in verdict, verdict
    checked = subprocess.run(["qpdf", "--check", str(path)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@ON_BOTH_DATABASES
def test_two_signers_in_order_get_a_sealed_agreement(
    suite: RunningSuite, template: dict[str, Any], tmp_path: Path
) -> None:
    assert template["roles"] == ["Seller", "Buyer"]
    with Receiver() as receiver:
        kinds = [
            "form.viewed",
            "form.started",
            "form.signed",
            "form.completed",
            "submission.created",
            "submission.completed",
        ]
        webhook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": kinds}, status=201)
        seller, buyer = send(suite, template["id"])
        submission_id = seller["submission_id"]

        assert form(suite, buyer["slug"])["state"] == "waiting"
        assert sign(suite, seller["slug"], SELLER_VALUES)["state"] == "completed"
        pending = suite.api("GET", f"/submissions/{submission_id}")
        assert pending["status"] == "pending"
        assert [each["status"] for each in pending["submitters"]] == ["completed", "pending"]
        assert form(suite, buyer["slug"])["state"] == "open"
        sign(suite, buyer["slug"], BUYER_VALUES)

        submission = completed(suite, submission_id)

        def told() -> list[Received]:
            """Of this submission: what another test did may be under way still."""
            data = ((each, json.loads(each.body)["data"]) for each in receiver.requests)
            return [each for each, of in data if of.get("submission_id", of["id"]) == submission_id]

        wait_until(lambda: any(b'"submission.completed"' in each.body for each in told()), what="the last delivery")
        suite.api("DELETE", f"/webhooks/{webhook['id']}")

    (agreement,) = [fetch(tmp_path, link) for link in submission["documents"]]
    trail = fetch(tmp_path, {"name": "audit", "url": submission["audit_log_url"]})
    for path in (agreement, trail):
        assert_sealed(path)
    text = text_of(agreement)
    for shown in ("Wörner & Søn", "03/04/2026", "Zoë Łukasz Ångström", "$1,234.50", "Green"):
        assert shown in text, text
    assert "{{" not in text
    trail_text = text_of(trail)
    uploaded = hashlib.sha256(agreement_pdf()).hexdigest()
    for shown in ("seller@example.com", "buyer@example.com", uploaded, submission["documents"][0]["sha256"]):
        assert shown in trail_text, trail_text

    assert submission["submitters"][1]["values"]["Price"] == 1234.5
    assert submission["pades_level"] == "B-B"
    assert [document["conformance"] for document in submission["documents"]] == [[]]
    bodies = [json.loads(each.body) for each in told()]
    assert [body["event_type"] for body in bodies] == [
        "submission.created",
        "form.viewed",
        "form.started",
        "form.signed",
        "form.completed",
        "form.viewed",
        "form.started",
        "form.signed",
        "form.completed",
        "submission.completed",
    ]
    assert len({each.message_id for each in told()}) == 10
    for each in told():
        Webhook(webhook["signing_secret"]).verify(each.body, each.headers)
    assert bodies[-1]["data"]["status"] == "completed"
    assert bodies[-1]["data"]["documents"][0]["sha256"] == submission["documents"][0]["sha256"]
    last = bodies[-2]["data"]
    assert last["documents"] == bodies[-1]["data"]["documents"]
    assert (last["submission"]["status"], last["audit_log_url"]) == ("completed", bodies[-1]["data"]["audit_log_url"])
    sealed = requests.get(last["documents"][0]["url"], headers={"X-Auth-Token": suite.api_key}, timeout=120).content
    assert sealed == agreement.read_bytes()
    assert [bodies[at]["data"]["documents"] for at in (3, 4, 7)] == [[], [], []]


def test_the_submission_s_page_says_how_far_it_is_and_names_nobody(
    suite: RunningSuite, template: dict[str, Any]
) -> None:
    seller, buyer = send(suite, template["id"], order="random")
    slug = suite.api("GET", f"/submissions/{seller['submission_id']}")["slug"]

    def page() -> str:
        answer = requests.get(f"{suite.base_url}/e/{slug}", timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.text

    assert "0 of 2" in page()
    assert "use the link in your e-mail" in page()
    sign(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    completed(suite, seller["submission_id"])
    assert "sealed" in page()
    assert "2 of 2" in page()
    assert "we send you a code" in page()
    for secret in ("seller@example.com", "Sam Seller", seller["slug"], "Wörner"):
        assert secret not in page()
    assert requests.get(f"{suite.base_url}/e/{slug}x", timeout=120).status_code == 404


def test_pollers_read_the_same_events(suite: RunningSuite, template: dict[str, Any]) -> None:
    begun = int(time.time()) - 1
    seller, buyer = send(suite, template["id"], order="random")
    sign(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    completed(suite, seller["submission_id"])

    def poll(path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        after: dict[str, Any] = {"after": begun}
        while True:
            page = suite.api("GET", path, params={"limit": 100, **after})
            found += page["data"]
            if page["pagination"]["next"] is None:
                return found
            after = {"after": page["pagination"]["next"]}

    def seen(path: str, key: str) -> int:
        return [event["data"].get(key) for event in poll(path)].count(seller["submission_id"])

    # A second is shown once it is over.
    wait_until(lambda: seen("/events/submission/submission.completed", "id") == 1, what="the polled completion")
    assert seen("/events/form/form.completed", "submission_id") == 2
    assert seen("/events/submission/submission.completed", "id") == 1


def test_mails_are_sent_in_turn(suite: RunningSuite, template: dict[str, Any]) -> None:
    of_seller, of_buyer = "turn-seller@example.com", "turn-buyer@example.com"
    people = [{"role": "Seller", "email": of_seller}, {"role": "Buyer", "email": of_buyer}]
    seller, buyer = suite.api("POST", "/submissions", {"template_id": template["id"], "submitters": people})
    (invitation,) = wait_until(lambda: mails_to(suite, of_seller), what="the seller's invitation")
    assert of_buyer not in str(invitation)
    assert mails_to(suite, of_buyer) == []
    sign(suite, seller["slug"], SELLER_VALUES)
    (invitation,) = wait_until(lambda: mails_to(suite, of_buyer), what="the buyer's invitation")
    assert buyer["slug"] in mail_text(invitation)
    sign(suite, buyer["slug"], BUYER_VALUES)
    completed(suite, seller["submission_id"])
    for address in (of_buyer, of_seller):
        wait_until(lambda to=address: len(mails_to(suite, to)) == 2, what=f"the copy for {address}")


@pytest.fixture(scope="module")
def sealed(sqlite_suite: RunningSuite, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    suite = sqlite_suite
    seller, buyer = send(suite, suite.copy_of_template(agreement_pdf())["id"], order="random")
    sign(suite, buyer["slug"], BUYER_VALUES)
    sign(suite, seller["slug"], SELLER_VALUES)
    submission = completed(suite, seller["submission_id"])
    return fetch(tmp_path_factory.mktemp("sealed"), submission["documents"][0]).read_bytes()


def test_verify_knows_our_seal_and_sees_a_changed_byte(suite: RunningSuite, sealed: bytes) -> None:
    def verify(data: bytes) -> dict[str, Any]:
        answer: dict[str, Any] = suite.api("POST", "/tools/verify", {"file": base64.b64encode(data).decode()})
        return answer

    verdict = verify(sealed)
    assert verdict["checksum_status"] == "valid"
    assert verdict["signatures"][0]["integrity"] == "valid"
    assert verdict["signatures"][0]["trust"] == "trusted"
    assert verdict["signatures"][0]["covers_whole_document"]
    changed = bytearray(sealed)
    changed[len(changed) // 3] ^= 1
    assert verify(bytes(changed))["checksum_status"] == "invalid"
    assert verify(sealed + b"\n1 0 obj\n<<>>\nendobj\n")["checksum_status"] == "invalid"
    assert verify(agreement_pdf())["checksum_status"] == "unsigned"


def test_verify_sees_what_is_done_behind_the_seal(suite: RunningSuite, sealed: bytes) -> None:
    """The seal holds in each of these files; what is in them is not what was sealed."""
    changed = {
        "holds more than the signature": padded(sealed, 0, b"4a"),
        "was removed from the document": without_signature(sealed, "value"),
    }
    for words, data in changed.items():
        verdict = suite.api("POST", "/tools/verify", {"file": base64.b64encode(data).decode()})
        (signature,) = verdict["signatures"]
        assert (verdict["checksum_status"], verdict["sealed_here"]) == ("invalid", False)
        assert (signature["changed_after_signing"], signature["covers_whole_document"]) == (True, False)
        assert words in " ".join(note["content"] for note in signature["verification_result"])
    old = sealed.replace(b"/ETSI.CAdES.detached", b"/adbe.x509.rsa_sha1\n")
    verdict = suite.api("POST", "/tools/verify", {"file": base64.b64encode(old).decode()})
    assert (verdict["checksum_status"], verdict["signatures"][0]["integrity"]) == ("unknown", "unknown")
