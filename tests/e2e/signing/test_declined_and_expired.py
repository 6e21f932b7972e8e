"""Ends without a seal: a signer declines, time runs out, the sender archives."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from tests.e2e.conftest import ON_BOTH_DATABASES, ON_POSTGRESQL
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, filled, form, send, sign
from tests.support.material.outcomes import completed, events_of, mail_text, mails_to, pdf_text
from tests.support.services.suite import RunningSuite, wait_until


@pytest.fixture
def template(suite: RunningSuite) -> dict[str, Any]:
    made: dict[str, Any] = suite.copy_of_template(agreement_pdf(), name="Agreement")
    return made


def page_text(suite: RunningSuite, slug: str) -> str:
    """What a person sees who opens the link."""
    answer = requests.get(f"{suite.base_url}/s/{slug}", headers={"Accept": "text/html"}, timeout=120)
    assert answer.status_code == 200
    return answer.text


def try_everything(suite: RunningSuite, slug: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Save, complete, decline: all must be refused. The answers."""
    calls: dict[str, dict[str, Any]] = {
        "values": {"values": values},
        "complete": {"values": values},
        "decline": {"reason": "No"},
    }
    return [
        suite.page("POST", f"/s/{slug}/{call}", {"request_id": uuid.uuid4().hex, **body}, status=422)
        for call, body in calls.items()
    ]


def test_a_signer_declines(suite: RunningSuite, template: dict[str, Any]) -> None:
    user = suite.api("GET", "/user")
    seller, buyer = send(suite, template["id"], order="random")
    values = filled(suite, buyer["slug"], BUYER_VALUES)
    mark = uuid.uuid4().hex
    reason = f"{mark} The price is wrong <b>& too high</b> — žádné"
    command = {"reason": reason, "request_id": "one-decline"}
    suite.page("POST", f"/s/{seller['slug']}/view", {})
    assert suite.page("POST", f"/s/{seller['slug']}/decline", command)["state"] == "declined"
    assert suite.page("POST", f"/s/{seller['slug']}/decline", command)["state"] == "declined"

    # A repetition is harmless; the same id from another form is another command.
    other = send(suite, template["id"], order="random")[0]
    suite.page("POST", f"/s/{other['slug']}/decline", command)
    assert form(suite, other["slug"])["state"] == "declined"

    submission = suite.api("GET", f"/submissions/{seller['submission_id']}")
    assert submission["status"] == "declined"
    assert submission["sealing_status"] is None
    assert [each["status"] for each in submission["submitters"]] == ["declined", "pending"]
    assert submission["submitters"][0]["decline_reason"] == reason
    assert submission["submitters"][0]["declined_at"]
    for refused in try_everything(suite, buyer["slug"], values):
        assert refused["error"] == "Form has been declined."
    for slug in (seller["slug"], buyer["slug"]):
        assert form(suite, slug)["state"] == "declined"
        assert f"{mark} The price is wrong &lt;b&gt;&amp; too high&lt;/b&gt; — žádné" in page_text(suite, slug)

    def declines() -> list[dict[str, Any]]:
        return events_of(suite, "form.declined", submission_id=seller["submission_id"])

    (told,) = wait_until(declines, what="form.declined")
    assert told["decline_reason"] == reason
    assert told["id"] == seller["id"]

    def mails() -> list[Any]:
        return [each for each in mails_to(suite, user["email"]) if mark in mail_text(each)]

    wait_until(lambda: len(mails()) == 2, what="a mail for each of the two")
    listed = suite.api("GET", "/submissions", params={"status": "declined", "template_id": template["id"]})
    assert [each["id"] for each in listed["data"]] == [seller["submission_id"], other["submission_id"]]
    assert suite.api("GET", f"/templates/{template['id']}/submissions", params={"status": "pending"})["data"] == []
    refused = suite.api("PUT", f"/submitters/{buyer['id']}", {"completed": True}, status=422)
    assert "declined" in refused["error"]


def test_who_waits_is_not_invited_after_a_decline(suite: RunningSuite, template: dict[str, Any]) -> None:
    marked = {"role": "Buyer", "email": f"never-{uuid.uuid4().hex}@example.com"}
    people = [{"role": "Seller", "email": "seller@example.com"}, marked]
    seller, buyer = suite.api("POST", "/submissions", {"template_id": template["id"], "submitters": people})
    suite.page("POST", f"/s/{buyer['slug']}/decline", {"reason": "", "request_id": "early"}, status=403)
    suite.page("POST", f"/s/{seller['slug']}/decline", {"reason": "", "request_id": "no"})
    wait_until(lambda: events_of(suite, "form.declined", id=seller["id"]), what="form.declined")
    assert form(suite, buyer["slug"])["state"] == "declined"
    assert suite.api("GET", f"/submitters/{buyer['id']}")["sent_at"] is None
    assert mails_to(suite, marked["email"]) == []


@ON_BOTH_DATABASES
def test_time_runs_out(suite: RunningSuite, template: dict[str, Any]) -> None:
    in_an_hour = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    seller, buyer = send(suite, template["id"], order="random", expire_at=in_an_hour)
    submission_id = seller["submission_id"]
    values = filled(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    # Only now, as what comes before may take longer on a busy machine.
    soon = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    suite.api("PUT", f"/submissions/{submission_id}", {"expire_at": soon})
    wait_until(lambda: form(suite, seller["slug"])["state"] == "expired", what="the form expired")

    for refused in try_everything(suite, seller["slug"], values):
        assert refused["error"] == "Form has been expired."
    assert "expired" in page_text(suite, seller["slug"]).lower()
    submission = suite.api("GET", f"/submissions/{submission_id}")
    assert submission["status"] == "expired"
    assert submission["submitters"][0]["values"] == {}
    assert submission["submitters"][1]["status"] == "completed"
    listed = suite.api("GET", "/submissions", params={"status": "expired", "template_id": template["id"]})
    assert [each["id"] for each in listed["data"]] == [submission_id]
    assert suite.api("PUT", f"/submitters/{seller['id']}", {"completed": True}, status=422)["code"] == "invalid"

    def told() -> list[dict[str, Any]]:
        return events_of(suite, "submission.expired", id=submission_id)

    wait_until(told, what="submission.expired")
    assert suite.api("GET", f"/submissions/{submission_id}")["status"] == "expired"
    # Given more time, it lives again, and may expire a second time only after that.
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert suite.api("PUT", f"/submissions/{submission_id}", {"expire_at": later})["status"] == "pending"
    assert sign(suite, seller["slug"], SELLER_VALUES)["state"] == "completed"
    sealed = completed(suite, submission_id)
    assert len(told()) == 1
    trail = pdf_text(requests.get(sealed["audit_log_url"], timeout=120).content)
    assert "xpired" in trail


@ON_POSTGRESQL
def test_expiry_must_lie_ahead(suite: RunningSuite, template: dict[str, Any]) -> None:
    past = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    people = [{"role": "Seller", "email": "a@example.com"}]
    body = {"template_id": template["id"], "submitters": people, "expire_at": past}
    assert suite.api("POST", "/submissions", body, status=422)["details"][0]["field"] == "expire_at"
    wrong: Any
    for wrong in ("tomorrow", "2026-13-01T00:00:00Z", 5, []):
        refused = suite.api("POST", "/submissions", {**body, "expire_at": wrong}, status=422)
        assert refused["details"][0]["field"] == "expire_at"


def test_archived_and_back(suite: RunningSuite, template: dict[str, Any]) -> None:
    seller, buyer = send(suite, template["id"], order="random")
    submission_id = seller["submission_id"]
    values = filled(suite, seller["slug"], SELLER_VALUES)
    removed = suite.api("DELETE", f"/submissions/{submission_id}")
    assert removed["archived_at"]
    assert suite.api("DELETE", f"/submissions/{submission_id}")["archived_at"] == removed["archived_at"]
    assert suite.api("GET", f"/submissions/{submission_id}")["archived"] is True
    for refused in try_everything(suite, seller["slug"], values):
        assert refused["error"] == "Form has been archived."
    assert "archived" in page_text(suite, seller["slug"]).lower()
    wait_until(lambda: events_of(suite, "submission.archived", id=submission_id), what="submission.archived")

    def listed(**query: str) -> list[int]:
        page = suite.api("GET", f"/templates/{template['id']}/submissions", params=query)
        of_all = suite.api("GET", "/submissions", params={"template_id": template["id"], **query})
        assert [each["id"] for each in of_all["data"]] == [each["id"] for each in page["data"]]
        return [each["id"] for each in page["data"]]

    assert listed(archived="true") == listed() == [submission_id]
    assert listed(archived="false") == []
    assert suite.api("PUT", f"/submissions/{submission_id}", {"archived": False})["archived"] is False
    assert listed(archived="false") == [submission_id]
    sign(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    completed(suite, submission_id)
    assert len(events_of(suite, "submission.archived", id=submission_id)) == 1


def test_removed_for_good(suite: RunningSuite, template: dict[str, Any]) -> None:
    """Files, values and people are gone; what was told before the end keeps nothing personal."""
    secret = uuid.uuid4().hex
    people = [
        {"role": "Seller", "email": f"{secret}@example.com", "name": f"Sam {secret}", "metadata": {"note": secret}},
        {"role": "Buyer", "email": "buyer@example.com"},
    ]
    body = {"template_id": template["id"], "submitters": people, "name": f"For {secret}"}
    seller, buyer = suite.api("POST", "/submissions", body)
    submission_id = seller["submission_id"]
    sign(suite, seller["slug"], {**SELLER_VALUES, "Company": f"Company {secret}"})
    drafts = suite.api("GET", f"/submissions/{submission_id}/documents")["documents"]
    attachment = form(suite, seller["slug"])
    sign(suite, buyer["slug"], BUYER_VALUES)
    submission = completed(suite, submission_id)
    wait_until(lambda: events_of(suite, "submission.completed", id=submission_id), what="submission.completed")
    links = [each["url"] for each in (*drafts, *submission["documents"])] + [submission["audit_log_url"]]
    links += [submission["submitters"][0]["values"]["Seller signature"]]
    for link in links[1:]:
        assert requests.get(link, timeout=120).status_code == 200
    assert attachment["state"] == "completed"

    suite.api("DELETE", f"/submissions/{submission_id}", params={"permanently": "true"})
    for path in ("submissions", "submitters"):
        record = submission_id if path == "submissions" else seller["id"]
        suite.api("GET", f"/{path}/{record}", status=404)
    suite.api("GET", f"/submissions/{submission_id}/documents", status=404)
    suite.api("DELETE", f"/submissions/{submission_id}", status=404)
    suite.page("GET", f"/s/{seller['slug']}/form", status=404)
    assert suite.api("GET", "/submissions", params={"q": secret})["data"] == []
    assert suite.api("GET", "/submitters", params={"q": secret})["data"] == []
    for link in links:
        wait_until(lambda link=link: requests.get(link, timeout=120).status_code in (404, 410), what="a file gone")

    def personal() -> bool:
        kinds = ("form.viewed", "form.started", "form.completed", "submission.created", "submission.completed")
        return any(secret in str(events_of(suite, kind)) for kind in kinds)

    wait_until(lambda: not personal(), what="events without personal data")
    wait_until(lambda: not any(secret in str(mail) for mail in mails_to(suite, secret)), what="mails gone")
    # The template was only read.
    assert suite.api("GET", f"/templates/{template['id']}")["documents"][0]["url"]
