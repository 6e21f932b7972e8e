"""Three people in one room, with one tablet: it goes from hand to hand, and the sealed trail says so."""

import uuid
from pathlib import Path
from typing import Any

import requests

from tests.e2e.evidence.test_evidence import CHECKER, evidence, verify
from tests.support.material.agreement import agreement_pdf, form, sign
from tests.support.material.outcomes import completed, fetched, mail_text, mails_to, pdf_text
from tests.support.services.suite import RunningSuite, wait_until


class Tablet:
    """A browser that keeps cookies, as the pages' scripts drive it."""

    def __init__(self, suite: RunningSuite) -> None:
        self._base, self._session = suite.base_url, requests.Session()
        self._session.headers["User-Agent"] = "A tablet"

    def get(self, path: str) -> requests.Response:
        return self._session.get(self._base + path, headers={"Accept": "text/html"}, timeout=60)

    def post(self, path: str, **said: Any) -> requests.Response:
        return self._session.post(self._base + path, json=said, timeout=60)

    def page(self, method: str, path: str, json: Any = None) -> Any:
        """As a suite's, with the cookies of this browser."""
        answer = self._session.request(method, self._base + path, json=json, timeout=60)
        assert answer.status_code == 200, f"{method} {path}: {answer.status_code} {answer.text[:2000]}"
        return answer.json()

    def hand(self, slug: str) -> str:
        """The path of the screen between."""
        answer = self.post(f"/s/{slug}/hand")
        assert answer.status_code == 200, answer.text
        return str(answer.json()["url"])

    def take(self, screen: str) -> str:
        """The slug that opens the next form on this device; asked for twice, as after a lost answer."""
        answers = [self.post(f"{screen}/take", request_id=f"take {screen}") for _ in range(2)]
        assert answers[0].json() == answers[1].json(), answers
        return str(answers[0].json()["url"]).removeprefix("/s/")


def test_a_device_goes_from_hand_to_hand_and_the_trail_says_so(suite: RunningSuite, tmp_path: Path) -> None:
    fields = [
        {
            "name": role,
            "type": "text",
            "role": role,
            "areas": [{"page": 1, "x": 0.3, "y": 0.2 + 0.1 * line, "w": 0.5, "h": 0.03}],
        }
        for line, role in enumerate(("Tenant", "Landlord", "Witness"))
    ]
    template = suite.template(agreement_pdf(), name="Lease in person", document={"fields": fields})
    allowed = suite.api("PUT", f"/templates/{template['id']}", {"preferences": {"in_person": True}})
    assert allowed["preferences"]["in_person"] is True
    mark = uuid.uuid4().hex[:8]
    people = [
        {"role": "Tenant", "name": "Ann Ray", "email": f"ann.{mark}@example.com"},
        {"role": "Landlord", "name": "Bo Lee", "email": f"bo.{mark}@example.com"},
        {"role": "Witness", "email": f"wim.{mark}@example.com"},
    ]
    sent = {"template_id": template["id"], "submitters": people, "order": "preserved"}
    forbidden = suite.api("POST", "/submissions", {**sent, "preferences": {"in_person": False}})
    sign(suite, forbidden[0]["slug"], {"Tenant": "Ann"})
    tablet = Tablet(suite)
    refused = tablet.post(f"/s/{forbidden[0]['slug']}/hand")
    assert (refused.status_code, refused.json()["error"]) == (403, "The sender does not allow that.")
    ann, bo, wim = suite.api("POST", "/submissions", {**sent, "preferences": {"in_person": True}})
    assert tablet.post(f"/s/{ann['slug']}/hand").status_code == 422, "not before it is completed"
    sign(suite, ann["slug"], {"Tenant": "Ann"})
    page = tablet.get(f"/s/{ann['slug']}")
    assert "Hand the device to Bo Lee" in page.text
    assert not [secret for secret in (bo["slug"], wim["slug"], bo["email"]) if secret in page.text]
    first = tablet.hand(ann["slug"])
    screen = tablet.get(first)
    assert (screen.status_code, screen.headers["Cache-Control"]) == (200, "no-store")
    assert "Please hand the device to Bo Lee" in screen.text
    assert Tablet(suite).get(first).status_code == 410
    assert Tablet(suite).post(f"{first}/take", request_id="stolen").status_code == 404
    of_bo = tablet.take(first)
    assert of_bo != bo["slug"]
    assert tablet.get(first).status_code == 410
    assert tablet.post(f"{first}/take", request_id="another").status_code == 409
    assert tablet.get(f"/s/{of_bo}").headers["Cache-Control"] == "no-store"
    for path in ("", "/form", "/news"):
        assert Tablet(suite).get(f"/s/{of_bo}{path}").status_code == 404, "its address is good on this device alone"
    assert Tablet(suite).post(f"/s/{of_bo}/decline", request_id="by a stranger").status_code == 404
    sign(tablet, of_bo, {"Landlord": "Bo"})
    second = tablet.hand(of_bo)
    assert "Please hand the device to Witness" in tablet.get(second).text
    assert form(tablet, of_bo)["state"] == "completed", "until the next one has the device"
    of_wim = tablet.take(second)
    closed = tablet.get(f"/s/{of_bo}")
    assert (closed.status_code, "This page was closed" in closed.text) == (404, True)
    assert form(suite, bo["slug"])["state"] == "completed", "their own link is theirs"
    sign(tablet, of_wim, {"Witness": "Wim"})
    submission = completed(suite, ann["submission_id"])
    trail = " ".join(pdf_text(fetched(submission["audit_log_url"])).split())
    assert "Device handed over, to sign in person" in trail
    for by in ("Ann Ray", "Bo Lee"):
        assert f"a device handed over in person by {by}" in trail
    lines = [one for one in submission["submission_events"] if one["event_type"] == "hand_device"]
    assert [(one["submitter_id"], one["data"]["named"]["role"], one["data"]["user_agent"]) for one in lines] == [
        (ann["id"], "Landlord", "A tablet"),
        (bo["id"], "Witness", "A tablet"),
    ]
    for person in (bo, wim):
        mails = wait_until(
            lambda email=person["email"], slug=person["slug"]: [
                one for one in mails_to(suite, email) if f"/s/{slug}" in mail_text(one)
            ],
            what="the invitation",
        )
        assert not [slug for slug in (of_bo, of_wim) for mail in mails if slug in mail_text(mail)]
    (tmp_path / "evidence.zip").write_bytes(evidence(suite, ann["submission_id"]))
    judged = verify(CHECKER, tmp_path / "evidence.zip")
    assert (judged.returncode, "WRONG" in judged.stdout) == (0, False), judged.stdout
