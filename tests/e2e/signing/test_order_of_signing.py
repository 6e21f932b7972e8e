"""Whose turn it is: preserved, random, groups, parties completed in advance, and twenty clicks on Complete at once."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests.e2e.conftest import ON_BOTH_DATABASES, ON_POSTGRESQL
from tests.support.material.agreement import agreement_pdf, filled, form, send, sign
from tests.support.material.outcomes import completed, events_of, fetched, mails_to, pdf_text
from tests.support.services.suite import RunningSuite, wait_until

ROLES = ["First", "Second", "Third", "Fourth"]


@pytest.fixture
def template(suite: RunningSuite) -> dict[str, Any]:
    tags = [f"{{{{{role} name;role={role}}}}}" for role in ROLES]
    made: dict[str, Any] = suite.copy_of_template(agreement_pdf(tags), name="Four")
    return made


def four(suite: RunningSuite, template: dict[str, Any], *each: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    mark = uuid.uuid4().hex[:8]
    people = [
        {"role": role, "email": f"{role.lower()}-{mark}@example.com", **own}
        for role, own in zip(ROLES, each or ({},) * 4, strict=True)
    ]
    body = {"template_id": template["id"], "submitters": people, **more}
    made: list[dict[str, Any]] = suite.api("POST", "/submissions", body)
    return made


def states(suite: RunningSuite, submitters: list[dict[str, Any]]) -> list[str]:
    return [form(suite, each["slug"])["state"] for each in submitters]


@ON_BOTH_DATABASES
def test_preserved_is_one_after_the_other(suite: RunningSuite, template: dict[str, Any]) -> None:
    parties = four(suite, template)
    assert suite.api("GET", f"/submissions/{parties[0]['submission_id']}")["order"] == "preserved"
    for turn, party in enumerate(parties):
        assert states(suite, parties) == ["completed"] * turn + ["open"] + ["waiting"] * (3 - turn)
        for early in parties[turn + 1 :]:
            for call in ("values", "complete", "decline", "view"):
                body = {"request_id": uuid.uuid4().hex, "values": {}}
                answer = requests.post(f"{suite.base_url}/s/{early['slug']}/{call}", json=body, timeout=120)
                assert (answer.status_code, call) in ((403, call), (200, "view"))
        early_values = suite.api("GET", f"/submitters/{parties[-1]['id']}")
        assert (early_values["values"], early_values["opened_at"]) == ({}, None)
        wait_until(lambda email=party["email"]: mails_to(suite, email), what="the invitation")
        for later in parties[turn + 1 :]:
            assert mails_to(suite, later["email"]) == []
        sign(suite, party["slug"], {f"{party['role']} name": f"Name {turn}"})
    submission = completed(suite, parties[0]["submission_id"])
    text = pdf_text(fetched(submission["documents"][0]["url"]))
    assert all(f"Name {turn}" in text for turn in range(4))


def test_random_is_all_at_once(suite: RunningSuite, template: dict[str, Any]) -> None:
    parties = four(suite, template, order="random")
    assert states(suite, parties) == ["open"] * 4
    for party in reversed(parties):
        sign(suite, party["slug"], {f"{party['role']} name": "N"})
    completed(suite, parties[0]["submission_id"])


def test_equal_numbers_sign_together(suite: RunningSuite, template: dict[str, Any]) -> None:
    parties = four(suite, template, {"order": 1}, {"order": 0}, {"order": 1}, {"order": 5})
    assert states(suite, parties) == ["waiting", "open", "waiting", "waiting"]
    sign(suite, parties[1]["slug"], {"Second name": "N"})
    assert states(suite, parties) == ["open", "completed", "open", "waiting"]
    sign(suite, parties[2]["slug"], {"Third name": "N"})
    assert states(suite, parties) == ["open", "completed", "completed", "waiting"]
    sign(suite, parties[0]["slug"], {"First name": "N"})
    assert states(suite, parties) == ["completed", "completed", "completed", "open"]


def test_completed_in_advance(suite: RunningSuite, template: dict[str, Any]) -> None:
    first = {"completed": True, "values": {"First name": "Signed by the office"}}
    parties = four(suite, template, first, {"completed": True}, {}, {})
    assert [each["status"] for each in parties] == ["completed", "completed", "pending", "pending"]
    assert states(suite, parties) == ["completed", "completed", "open", "waiting"]
    for party in parties[2:]:
        sign(suite, party["slug"], {f"{party['role']} name": "N"})
    submission = completed(suite, parties[0]["submission_id"])
    assert "Signed by the office" in pdf_text(fetched(submission["documents"][0]["url"]))
    trail = " ".join(pdf_text(fetched(submission["audit_log_url"])).split())
    assert "Completed via API by admin@example.com" in trail, trail
    wait_until(lambda: events_of(suite, "submission.completed", id=submission["id"]), what="submission.completed")
    told = [each["id"] for each in events_of(suite, "form.completed", submission_id=submission["id"])]
    assert sorted(told) == sorted(each["id"] for each in parties)
    for party in parties[:2]:
        assert mails_to(suite, party["email"])[1:] == []
        assert suite.api("GET", f"/submitters/{party['id']}")["sent_at"] is None


def test_everybody_completed_in_advance(suite: RunningSuite, template: dict[str, Any]) -> None:
    parties = four(suite, template, *[{"completed": True, "values": {f"{role} name": "N"}} for role in ROLES])
    assert completed(suite, parties[0]["submission_id"])["documents"]


@ON_BOTH_DATABASES
def test_twenty_clicks_complete_once(suite: RunningSuite, template: dict[str, Any]) -> None:
    """Ten with one request id, ten with their own: one completion, one next invitation, one sealing."""
    party, *others = four(suite, template, {}, {"completed": True}, {"completed": True}, {"completed": True})
    values = filled(suite, party["slug"], {"First name": "N"})
    ids = [uuid.uuid4().hex] * 10 + [uuid.uuid4().hex for _ in range(10)]

    def click(request_id: str) -> requests.Response:
        body = {"values": values, "request_id": request_id}
        return requests.post(f"{suite.base_url}/s/{party['slug']}/complete", json=body, timeout=60)

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(click, ids))
    assert {answer.status_code for answer in answers} <= {200, 422}
    assert any(answer.status_code == 200 for answer in answers)
    for answer in answers:
        if answer.status_code == 422:
            assert answer.json()["error"] == "Form has been completed already."
    submission = completed(suite, party["submission_id"])
    wait_until(lambda: events_of(suite, "submission.completed", id=submission["id"]), what="submission.completed")
    assert len(events_of(suite, "form.completed", id=party["id"])) == 1
    assert len(events_of(suite, "form.started", id=party["id"])) == 1
    assert len(events_of(suite, "submission.completed", id=submission["id"])) == 1
    kinds = [each["event_type"] for each in submission["submission_events"]]
    assert kinds.count("complete_form") == 1
    assert len(others) == 3


@ON_POSTGRESQL
def test_who_signs_is_matched_to_roles(suite: RunningSuite, template: dict[str, Any]) -> None:
    def refusal(*people: dict[str, Any]) -> dict[str, Any]:
        body = {"template_id": template["id"], "submitters": list(people), "send_email": False}
        refused: dict[str, Any] = suite.api("POST", "/submissions", body, status=422)
        return refused

    unknown = refusal({"role": "Fifth", "email": "a@example.com"})
    assert all(role in unknown["error"] for role in ROLES)
    assert refusal(*[{"email": f"{number}@example.com"} for number in range(5)])["code"] == "invalid"
    assert refusal({"role": "First"})["details"][0]["field"] == "submitters[0].email"
    assert refusal({"role": "First", "email": "not an address"})["details"][0]["field"] == "submitters[0].email"
    twice = [{"role": "First", "email": "a@example.com"}, {"role": "First", "email": "b@example.com"}]
    assert refusal(*twice)["code"] == "invalid"
    asked = {"role": "First", "email": "a@example.com", "phone": "+14155550123", "require_phone_2fa": True}
    refused = refusal(asked)
    assert refused["error"] == "Phone verification not configured"
    assert refused["details"][0]["field"] == "submitters[0].require_phone_2fa"
    by_place = four(suite, template, {"role": None}, {"role": None}, {"role": None}, {"role": None}, send_email=False)
    assert [each["role"] for each in by_place] == ROLES
    phone_only = {"template_id": template["id"], "submitters": [{"phone": "+14155550123"}]}
    assert suite.api("POST", "/submissions", phone_only)[0]["email"] is None
    archived = suite.copy_of_template(agreement_pdf())
    suite.api("DELETE", f"/templates/{archived['id']}")
    body = {"template_id": archived["id"], "submitters": [{"email": "a@example.com"}]}
    assert suite.api("POST", "/submissions", body, status=422)["details"][0]["field"] == "template_id"
    suite.api("POST", "/submissions", {**body, "template_id": 2**60}, status=404)


def test_a_template_that_changes_or_goes_leaves_signing_alone(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Before")
    seller, buyer = send(suite, template["id"], order="random", send_email=False)
    suite.api("PUT", f"/templates/{template['id']}", {"name": "After", "fields": [], "roles": ["Nobody"]})
    suite.api("DELETE", f"/templates/{template['id']}", params={"permanently": "true"})
    suite.api("GET", f"/templates/{template['id']}", status=404)
    sign(suite, seller["slug"], {"Company": "Kept", "Start": "2026-01-02"})
    sign(suite, buyer["slug"], {"Full name": "Kept too", "Price": 5, "Terms": True})
    submission = completed(suite, seller["submission_id"])
    text = pdf_text(fetched(submission["documents"][0]["url"]))
    assert "Kept too" in text
    assert len(submission["submitters"]) == 2
