"""Whoever got a link by mistake sees and signs nothing once the address is corrected; the sealed trail names them."""

import re
import uuid
from typing import Any

import pytest
import requests

from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, filled, form, send, sign
from tests.support.material.outcomes import completed, fetched, mail_text, mails_to, pdf_text
from tests.support.services.suite import RunningSuite, wait_until

GONE = {
    "error": "This link is no longer valid.",
    "code": "not_found",
    "details": [{"field": "state", "reason": "replaced"}],
}


@pytest.fixture
def parties(suite: RunningSuite) -> tuple[str, str, list[dict[str, Any]]]:
    """The addresses of Mallory, written to by mistake, and of Bob, who was meant; the submitters."""
    template = suite.copy_of_template(agreement_pdf(), name="Confidential Agreement")
    mark = uuid.uuid4().hex[:8]
    mallory, bob = f"mallory.{mark}@example.com", f"bob.{mark}@example.com"
    people = [
        {"role": "Seller", "name": "Mallory Typo", "email": mallory},
        {"role": "Buyer", "name": "Bo Buyer", "email": "buyer@example.com"},
    ]
    made = suite.api("POST", "/submissions", {"template_id": template["id"], "submitters": people})
    wait_until(lambda: mails_to(suite, mallory), what="Mallory's invitation")
    return mallory, bob, made


def test_whoever_was_written_to_by_mistake_neither_sees_nor_signs(
    suite: RunningSuite, parties: tuple[str, str, list[dict[str, Any]]]
) -> None:
    mallory, bob, (seller, buyer) = parties
    link = f"/s/{seller['slug']}"
    opened = form(suite, seller["slug"])
    suite.page("POST", f"{link}/view", {"time_zone": "Europe/Copenhagen"})
    values = filled(suite, seller["slug"], SELLER_VALUES)
    suite.page("POST", f"{link}/values", {"values": values, "request_id": uuid.uuid4().hex})
    shown = form(suite, seller["slug"])
    files = [urlpath(one["url"]) for one in (*shown["documents"], *shown["attachments"]) if one["url"]]
    assert len(files) >= 2
    for path in files:
        assert requests.get(suite.base_url + path, timeout=120).status_code == 200, path
    change = {"email": bob, "name": "Bob Right"}
    key = {"Idempotency-Key": uuid.uuid4().hex}
    changed = suite.api("PUT", f"/submitters/{seller['id']}", change, headers=key)
    assert suite.api("PUT", f"/submitters/{seller['id']}", change, headers=key)["slug"] == changed["slug"]
    assert changed["slug"] != seller["slug"]
    assert changed["embed_src"].endswith(f"/s/{changed['slug']}")
    assert (changed["values"], changed["opened_at"]) == ({}, None)

    # The page that Mallory has open, and the link in her mail.
    body = {"values": values, "shown": opened["shown"], "request_id": uuid.uuid4().hex}
    for what, sent in (
        ("values", body),
        ("complete", body),
        ("view", {}),
        ("decline", {"request_id": "d", "reason": "no"}),
        ("wrong_recipient", {"request_id": "w"}),
        ("code/send", {"request_id": "c"}),
        ("code", {"request_id": "c", "code": "123456"}),
        ("typed_signature", {"request_id": "t", "type": "signature", "text": "Bob Right"}),
        ("drawing", {"areas": [["any", 0]], "width": 600, "values": {}}),
    ):
        assert suite.page("POST", f"{link}/{what}", sent, status=404) == GONE, what
    pages = [urlpath(page["url"]) for document in opened["documents"] for page in document["pages"]]
    for path in (f"{link}/form", f"{link}/results.json", *pages, *files):
        assert suite.page("GET", path, status=404) == GONE, path
    for path in files:
        for other in (path.removeprefix(link), path.replace(seller["slug"], changed["slug"])):
            assert requests.get(suite.base_url + other, timeout=120).status_code == 404, (
                "a file without the page's link"
            )
    upload = {"submitter_slug": seller["slug"], "type": "signature"}
    answer = requests.post(
        f"{suite.base_url}/api/attachments", data=upload, files={"file": ("a.png", b"x", "image/png")}, timeout=120
    )
    assert (answer.status_code, answer.json()["error"]) == (404, GONE["error"])
    read = requests.get(f"{suite.base_url}{link}", headers={"Accept": "text/html"}, timeout=120)
    assert read.status_code == 404
    assert "This link is no longer valid" in read.text
    for secret in ("Confidential Agreement", "Bob Right", bob, "Mallory", changed["slug"], "Ada"):
        assert secret not in read.text, secret

    mail = wait_until(lambda: mails_to(suite, bob), what="Bob's invitation")[0]
    assert f"/s/{changed['slug']}" in mail_text(mail)
    assert all(field["value"] in (None, False) for field in form(suite, changed["slug"])["fields"] if field["mine"])
    sign(suite, changed["slug"], {**SELLER_VALUES, "Company": "Bob & Sons"})
    sign(suite, buyer["slug"], BUYER_VALUES)
    submission = completed(suite, seller["submission_id"])
    assert "Bob & Sons" in pdf_text(fetched(submission["documents"][0]["url"]))
    events = {one["event_type"]: one["data"] for one in submission["submission_events"]}
    assert (events["replace_link"]["party"]["email"], events["replace_link"]["named"]["email"]) == (mallory, bob)
    assert events["drop_answers"]["fields"] == ["Company", "Start", "Seller signature"]
    trail = " ".join(pdf_text(fetched(submission["audit_log_url"])).split())
    assert "Address changed by the sender, the link replaced" in trail
    assert "What was filled in and not signed removed" in trail
    refused = suite.api("PUT", f"/submitters/{seller['id']}", {"email": mallory}, status=422)
    assert "already completed" in refused["error"]


def test_this_is_not_me(suite: RunningSuite, parties: tuple[str, str, list[dict[str, Any]]]) -> None:
    mallory, bob, (seller, _buyer) = parties
    said = {"request_id": uuid.uuid4().hex, "reason": "I have never heard of this firm"}
    for _ in range(2):
        answer = suite.page("POST", f"/s/{seller['slug']}/wrong_recipient", said)
        assert answer == {"state": "wrong_recipient"}
    refused = suite.page("GET", f"/s/{seller['slug']}/form", status=404)
    assert refused["details"] == [{"field": "state", "reason": "wrong_recipient"}]

    def told() -> list[str]:
        return [text for one in mails_to(suite, "admin@example.com") if mallory in (text := mail_text(one))]

    (mail,) = wait_until(told, what="the sender's mail")
    assert "I have never heard of this firm" in mail
    assert "/s/" not in mail, "nobody signs from this mail"
    submission = suite.api("GET", f"/submissions/{seller['submission_id']}")
    (line,) = [one for one in submission["submission_events"] if one["event_type"] == "wrong_recipient"]
    assert (line["data"]["party"]["email"], line["data"]["reason"]) == (mallory, said["reason"])
    assert submission["status"] == "pending"
    changed = suite.api("PUT", f"/submitters/{seller['id']}", {"email": bob})
    assert re.search(
        rf"/s/{changed['slug']}\b", mail_text(wait_until(lambda: mails_to(suite, bob), what="the mail")[0])
    )
    sign(suite, changed["slug"], SELLER_VALUES)


def test_an_address_that_is_only_written_otherwise_keeps_its_link(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf())
    seller, _ = send(suite, template["id"], send_email=False)
    suite.api("PUT", f"/submitters/{seller['id']}", {"phone": "+44 20 7946 0958"})
    same = {"email": "SELLER@example.com", "phone": "+442079460958", "name": "Sam S."}
    assert suite.api("PUT", f"/submitters/{seller['id']}", same)["slug"] == seller["slug"]
    assert form(suite, seller["slug"])["state"] == "open"


def urlpath(url: str) -> str:
    return "/" + url.split("/", 3)[3] if "://" in url else url
