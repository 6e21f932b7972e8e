"""Consent: asked on the page, refused without it, told in the trail, on paper and to receivers."""

import uuid
from typing import Any

import pytest

from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, filled, form, sign
from tests.support.material.outcomes import completed, events_of, fetched, pdf_text
from tests.support.services.suite import RunningSuite, wait_until

TERMS = "https://acme.example/terms?v=7"
OWN_TERMS = "https://seller.example/terms"


@pytest.fixture
def template(suite: RunningSuite) -> dict[str, Any]:
    made: dict[str, Any] = suite.copy_of_template(agreement_pdf(), name="Agreement")
    return made


def people(**of_seller: Any) -> list[dict[str, Any]]:
    return [
        {"role": "Seller", "email": "seller@example.com", **of_seller},
        {"role": "Buyer", "email": "buyer@example.com"},
    ]


def test_nobody_completes_without_the_consent_that_was_asked_for(suite: RunningSuite, template: dict[str, Any]) -> None:
    body = {
        "template_id": template["id"],
        "send_email": False,
        "consent_enabled": "true",
        "consent_document_text": "I agree to the Terms of Wörner & Søn",
        "consent_document_url": TERMS,
        "submitters": people(consent_document_text="I, the seller, agree", consent_document_url=OWN_TERMS),
    }
    seller, buyer = suite.api("POST", "/submissions", body)
    assert seller["preferences"]["consent_document_text"] == "I, the seller, agree"
    asked = form(suite, seller["slug"])["consent"]
    assert asked == {"text": "I, the seller, agree", "terms": {"url": OWN_TERMS, "host": "seller.example"}}
    path = f"/s/{seller['slug']}/complete"
    values = filled(suite, seller["slug"], SELLER_VALUES)
    for said in ({}, {"consent": False}, {"consent": "true"}, {"consent": None}, {"consent": 1}):
        command = {"values": values, "request_id": uuid.uuid4().hex, **said}
        refused = suite.page("POST", path, command, status=422)
        assert (refused["error"], refused["details"][0]["field"]) == ("Consent is required.", "consent")
    assert form(suite, seller["slug"])["state"] == "open"
    command = {"values": values, "request_id": uuid.uuid4().hex, "consent": True}
    once, twice = (suite.page("POST", path, command) for _ in range(2))
    assert once == twice
    assert once["state"] == "completed"
    given = suite.api("GET", f"/submitters/{seller['id']}")["consent"]
    assert (given["text"], given["url"]) == ("I, the seller, agree", OWN_TERMS)
    command = {"values": filled(suite, buyer["slug"], BUYER_VALUES), "request_id": uuid.uuid4().hex, "consent": True}
    suite.page("POST", f"/s/{buyer['slug']}/complete", command)

    submission = completed(suite, seller["submission_id"])
    lines = [each for each in submission["submission_events"] if each["event_type"] == "give_consent"]
    assert [(each["submitter_id"], each["data"]["text"], each["data"]["url"]) for each in lines] == [
        (seller["id"], "I, the seller, agree", OWN_TERMS),
        (buyer["id"], "I agree to the Terms of Wörner & Søn", TERMS),
    ]
    types = [each["event_type"] for each in submission["submission_events"] if each["submitter_id"] == seller["id"]]
    assert types.index("give_consent") == types.index("complete_form") - 1
    trail = " ".join(pdf_text(fetched(submission["audit_log_url"])).split())
    for printed in ("Consent given", "CONSENT TEXT", "I, the seller, agree", "Wörner & Søn", TERMS, OWN_TERMS):
        assert printed in trail, printed
    told = wait_until(lambda: events_of(suite, "form.completed", id=seller["id"]), what="form.completed")
    assert told[0]["consent"] == given


def test_one_is_exempt_another_asked_and_the_api_is_not(suite: RunningSuite, template: dict[str, Any]) -> None:
    wish = {"template_id": template["id"], "send_email": False, "order": "random"}
    seller, buyer = suite.api(
        "POST", "/submissions", {**wish, "consent_enabled": True, "submitters": people(consent_enabled=False)}
    )
    assert form(suite, seller["slug"])["consent"] is None
    assert form(suite, buyer["slug"])["consent"]["text"].startswith("I have read this document")
    sign(suite, seller["slug"], SELLER_VALUES)
    done = suite.api("PUT", f"/submitters/{buyer['id']}", {"completed": True})
    assert (done["status"], done["consent"]) == ("completed", None)
    seller, buyer = suite.api("POST", "/submissions", {**wish, "submitters": people(consent_enabled=True)})
    assert form(suite, seller["slug"])["consent"] is not None
    assert form(suite, buyer["slug"])["consent"] is None
    for wrong, field in (
        ({"consent_document_url": "javascript:alert(1)"}, "consent_document_url"),
        ({"consent_document_text": "x" * 1001}, "consent_document_text"),
        ({"consent_enabled": "perhaps"}, "consent_enabled"),
        ({"submitters": people(consent_enabled=True, consent_document_text="\ue000")}, None),
    ):
        refused = suite.api("POST", "/submissions", {**wish, "submitters": people(), **wrong}, status=422)
        assert refused["details"][0]["field"] == (field or "submitters[0].consent_document_text")
