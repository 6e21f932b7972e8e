"""A sender changes what a signer has before their eyes, or what somebody has signed already: neither ends under a seal unseen."""

import uuid
from typing import Any

import pytest
import requests

from tests.support.material.agreement import agreement_pdf, form, send, sign
from tests.support.material.outcomes import completed, fetched, pdf_text
from tests.support.services.suite import RunningSuite


@pytest.fixture
def parties(suite: RunningSuite) -> list[dict[str, Any]]:
    """A seller who is asked for a code, and a buyer, each with a read-only amount on the page that both see."""
    place = {"x": 0.1, "w": 0.4, "h": 0.03, "page": 1}
    fields: list[dict[str, Any]] = [
        {"name": "Amount", "role": "Seller", "type": "number", "readonly": True, "default_value": 100},
        {"name": "Company", "role": "Seller"},
        {"name": "Interest", "role": "Buyer", "readonly": True, "default_value": "4 percent"},
        {"name": "Full name", "role": "Buyer"},
    ]
    laid = [{"type": "text", **one, "areas": [{**place, "y": 0.2 + 0.1 * n}]} for n, one in enumerate(fields)]
    template = suite.template(agreement_pdf(["Agreement"]), document={"fields": laid})
    return send(suite, template["id"], order="random", send_email=False)


def pressed(suite: RunningSuite, slug: str, shown: dict[str, Any], values: dict[str, Any]) -> requests.Response:
    """The Complete button of a page that was opened before."""
    body = {"values": values, "shown": shown["shown"], "request_id": uuid.uuid4().hex}
    return requests.post(f"{suite.base_url}/s/{slug}/complete", json=body, timeout=60)


def test_what_is_changed_under_the_signer_is_not_signed_until_they_have_seen_it(
    suite: RunningSuite, parties: list[dict[str, Any]]
) -> None:
    seller, buyer = parties
    shown = form(suite, seller["slug"])
    suite.page("POST", f"/s/{seller['slug']}/view", {"time_zone": "Europe/Copenhagen", "shown": shown["shown"]})
    amount, company = (next(one for one in shown["fields"] if one["name"] == name) for name in ("Amount", "Company"))
    assert amount["display"] == "100"
    changed = {"fields": [{"name": "Amount", "readonly": True, "default_value": "1000000"}]}
    suite.api("PUT", f"/submitters/{seller['id']}", changed)

    refused = pressed(suite, seller["slug"], shown, {company["uuid"]: "Acme"})
    assert refused.status_code == 409, refused.text
    assert refused.json()["code"] == "changed_meanwhile"
    assert {"field": amount["uuid"], "reason": "has changed"} in refused.json()["details"]
    read = suite.api("GET", f"/submissions/{seller['submission_id']}")
    assert [one["status"] for one in read["submitters"]] == ["pending", "pending"]
    assert not [one for one in read["submission_events"] if one["event_type"] == "complete_form"]
    (line,) = [one for one in read["submission_events"] if one["event_type"] == "update_submitter"]
    assert line["data"]["by"] == suite.api("GET", "/user")["email"]
    changes = {one["what"]: (one["before"], one["after"]) for one in line["data"]["changes"]}
    assert changes["fields.Amount"] == ({"default_value": 100}, {"default_value": 1000000})

    again = form(suite, seller["slug"])
    assert next(one["display"] for one in again["fields"] if one["name"] == "Amount") == "1000000"
    assert pressed(suite, seller["slug"], again, {company["uuid"]: "Acme"}).status_code == 200
    sign(suite, buyer["slug"], {"Full name": "Bo Buyer"})
    done = completed(suite, seller["submission_id"])
    assert "1000000" in pdf_text(fetched(done["documents"][0]["url"]))
    (signed,) = [
        one["data"]
        for one in done["submission_events"]
        if (one["event_type"], one["submitter_id"]) == ("complete_form", seller["id"])
    ]
    assert signed["shown"] == again["shown"] != shown["shown"]


def test_what_the_first_has_signed_is_not_changed_for_the_second(
    suite: RunningSuite, parties: list[dict[str, Any]]
) -> None:
    seller, buyer = parties
    sign(suite, seller["slug"], {"Company": "Acme"})
    before = suite.api("GET", f"/submissions/{seller['submission_id']}", params={"include": "fields"})
    interest: list[dict[str, Any]] = [
        {"fields": [{"name": "Interest", "default_value": "40 percent"}]},
        {"fields": [{"name": "Interest", "readonly": False}]},
        {"values": {"Interest": "40 percent"}},
    ]
    for change in interest:
        refused = suite.api("PUT", f"/submitters/{buyer['id']}", change, status=422)
        assert "Sam Seller has signed the document with it" in refused["error"]
    after = suite.api("GET", f"/submissions/{seller['submission_id']}", params={"include": "fields"})
    assert (after["fields"], after["submission_events"]) == (before["fields"], before["submission_events"])


def test_codes_that_are_switched_off_are_a_line(suite: RunningSuite, parties: list[dict[str, Any]]) -> None:
    seller, _ = parties
    for wanted in (True, False):
        suite.api("PUT", f"/submitters/{seller['id']}", {"require_email_2fa": wanted})
    lines = suite.api("GET", f"/submissions/{seller['submission_id']}")["submission_events"]
    changes = [one["data"]["changes"] for one in lines if one["event_type"] == "update_submitter"]
    what = "preferences.require_email_2fa"
    assert changes[1] == [{"what": what, "before": True, "after": None}]
    assert changes[0][0]["after"] is True
