"""An agreement with somebody who approves, somebody who reads, and copies: what pages, mails, events and the paper say of them."""

import uuid
from typing import Any

import requests

from tests.support.material.agreement import SELLER_VALUES, agreement_pdf, form, sign
from tests.support.material.outcomes import completed, events_of, fetched, mail_text, mails_to, pdf_text
from tests.support.services.suite import RunningSuite, wait_until

APPROVAL = "By pressing Approve you approve this document as you see it. You do not sign it."


def last_mail(suite: RunningSuite, address: str, subject: str) -> str:
    """The text of the mail to ``address`` with these words in its subject."""

    def look() -> str | None:
        return next((mail_text(one) for one in mails_to(suite, address) if subject in str(one["Subject"])), None)

    return str(wait_until(look, what=f"the mail to {address}")).replace("\r\n", "\n")


def test_everybody_is_said_to_have_done_what_they_did(suite: RunningSuite) -> None:
    made = suite.copy_of_template(agreement_pdf(), name="Lease")
    mark = uuid.uuid4().hex[:8]
    people: list[dict[str, Any]] = [
        {"acts_as": "approver", "name": "Bea Boss", "email": f"boss-{mark}@example.com"},
        {"name": "Sam Seller", "email": f"seller-{mark}@example.com"},
        {"name": "Bo Buyer", "email": f"buyer-{mark}@example.com", "completed": True},
        {"acts_as": "viewer", "role": "Auditor", "name": "Au Ditor", "email": f"auditor-{mark}@example.com"},
        {"acts_as": "viewer", "name": "Una Interested", "email": f"una-{mark}@example.com"},
    ]
    copies = {"cc_sent": f"legal-{mark}@example.com", "cc_completed": f"archive-{mark}@example.com"}
    sent = suite.api("POST", "/submissions", {"template_id": made["id"], "submitters": people, **copies})
    assert [one["acts_as"] for one in sent] == ["approver", "signer", "signer", "viewer", "viewer"]
    boss, seller, _, auditor, _ = sent

    told = last_mail(suite, f"legal-{mark}@example.com", "For your information")
    assert "Asked to sign:\n- Sam Seller\n\n" in told
    assert "in the place of:\n- Bo Buyer\n" in told
    assert "Asked to approve:\n- Bea Boss" in told
    assert "Asked to read:\n- Au Ditor\n- Una Interested" in told
    assert "/s/" not in told, "a copy lets nobody in"
    asked = last_mail(suite, f"boss-{mark}@example.com", "asks you to approve")
    assert "You do not sign it." in asked
    assert f"/s/{boss['slug']}" in asked

    page = form(suite, boss["slug"])
    assert (page["acts_as"], page["statement"], page["fields"]) == ("approver", APPROVAL, [])
    body = {"request_id": mark, "values": {}, "statement": APPROVAL, "shown": page["shown"]}
    assert suite.page("POST", f"/s/{boss['slug']}/complete", body)["state"] == "completed"
    assert "you have approved" in requests.get(f"{suite.base_url}/s/{boss['slug']}", timeout=120).text
    read = last_mail(suite, f"auditor-{mark}@example.com", "has sent you")
    assert "You do not need to do anything else." in read
    suite.page("POST", f"/s/{auditor['slug']}/view", {})
    sign(suite, seller["slug"], SELLER_VALUES)

    done = completed(suite, boss["submission_id"])
    assert [one["acts_as"] for one in done["submitters"]] == ["approver", "signer", "signer", "viewer", "viewer"]
    (event,) = wait_until(lambda: events_of(suite, "form.completed", id=boss["id"]), what="form.completed")
    assert event["acts_as"] == "approver"
    archive = last_mail(suite, f"archive-{mark}@example.com", "has been completed")
    assert "Signed by:\n- Sam Seller\n" in archive
    assert "Approved by:\n- Bea Boss\n" in archive
    assert "Completed by the sender in the place of:\n- Bo Buyer\n" in archive
    assert "Read by:\n- Au Ditor\n" in archive
    assert "Sent to be read, and not opened:\n- Una Interested\n" in archive
    assert f"Copies go to:\n- archive-{mark}@example.com" in archive
    paper = " ".join(pdf_text(fetched(done["audit_log_url"])).split())
    assert "Approved, without a signature" in paper
    assert APPROVAL in paper
    assert "Sent to be read" in paper
    lines = [one for one in done["submission_events"] if one["event_type"] == "send_cc_email"]
    assert [one["data"]["email"] for one in lines] == [f"legal-{mark}@example.com"]


def test_what_does_not_fit_is_refused_with_the_place(suite: RunningSuite) -> None:
    made = suite.copy_of_template(agreement_pdf(), name="Lease")
    people = [{"role": "Seller", "acts_as": "viewer", "email": "a@example.com"}, {"email": "b@example.com"}]
    refused = suite.api("POST", "/submissions", {"template_id": made["id"], "submitters": people}, status=422)
    assert refused["details"][0]["field"] == "submitters[0].acts_as"
    people[0]["acts_as"] = "witness"
    refused = suite.api("POST", "/submissions", {"template_id": made["id"], "submitters": people}, status=422)
    assert refused["details"][0]["field"] == "submitters[0].acts_as"
    body = {"template_id": made["id"], "submitters": [{"email": "b@example.com"}], "cc_sent": "nobody"}
    assert suite.api("POST", "/submissions", body, status=422)["details"][0]["field"] == "cc_sent"
