"""Each way of making a submission takes all the options that the ways have in common, and does with them what they say."""

import base64
import uuid
from typing import Any

import pytest

from tests.support.files.docx_files import docx, paragraph
from tests.support.material.agreement import agreement_pdf, form
from tests.support.material.outcomes import completed, fetched, mail_text, mails_to, pdf_text
from tests.support.services.suite import RunningSuite, wait_until

FIELDS = {"one": [("A", "Seller"), ("B", "Buyer"), ("C", "Witness")], "two": [("D", "Seller"), ("E", "Buyer")]}
"""Names of fields and their roles, by the document that has them."""
PREFERENCES = {
    "completed_notification_email_enabled": False,
    "completed_notification_email_attach_audit": False,
    "completed_notification_email_attach_documents": False,
    "documents_copy_email_enabled": False,
    "documents_copy_email_attach_audit": False,
    "documents_copy_email_attach_documents": False,
    "submitters_order": "preserved",
    "bcc_completed": "archive@example.com",
    "shared_link_2fa": True,
    "allow_to_partial_download": False,
}
WAYS = [
    ("POST", "/submissions"),
    ("POST", "/submissions/pdf"),
    ("POST", "/submissions/docx"),
    ("POST", "/submissions/html"),
]


@pytest.fixture
def template(suite: RunningSuite) -> int:
    tags = [f"{{{{{name};role={role}}}}}" for name, role in [*FIELDS["one"], ("T", "Seller")]]
    return int(suite.template(agreement_pdf(tags), name="Frame")["id"])


def document(path: str, name: str, position: int) -> dict[str, Any]:
    """One of the documents, as this way takes it."""
    if path.endswith("html"):
        tag = "<text-field name='{}' role='{}' style='width:90px;height:20px'></text-field>"
        return {"name": name, "html": " ".join(tag.format(*each) for each in FIELDS[name]), "position": position}
    lines = [f"{{{{{field};type=text;role={role}}}}}" for field, role in FIELDS[name]]
    file = docx(*(paragraph(line) for line in lines)) if path.endswith("docx") else agreement_pdf(lines)
    return {"name": name, "file": base64.b64encode(file).decode(), "position": position}


def basis(path: str, template: int, *names: str) -> dict[str, Any]:
    """What it is made from: the template, or these documents, of which the last comes first."""
    if path == "/submissions":
        return {"template_id": template}
    return {"documents": [document(path, name, len(names) - number) for number, name in enumerate(names)]}


def parties(answer: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer if isinstance(answer, list) else answer["submitters"]
    return found


@pytest.mark.parametrize("way", WAYS, ids=[path for _, path in WAYS])
def test_what_is_asked_for_is_done(suite: RunningSuite, template: int, way: tuple[str, str]) -> None:
    mark, (method, path) = uuid.uuid4().hex[:8], way
    seller: dict[str, Any] = {
        "role": "Seller",
        "email": f"seller.{mark}@example.com",
        "phone": f"+1415{uuid.uuid4().int % 10**7:07}",
        "send_email": True,
        "reply_to": "own@example.com",
        "message": {"subject": "Only for the seller", "body": "Own: {{submitter.link}}"},
    }
    buyer: dict[str, Any] = {
        "role": "Buyer",
        "email": f"buyer.{mark}@example.com",
        "phone": "+14155550123",
        "send_sms": False,
        "completed_redirect_url": "https://own.example/",
    }
    body = {
        "name": f"Lease {mark}",
        "submitters": [seller, buyer, {"role": "Witness", "invite_by": "Seller"}],
        "order": "random",
        "send_email": False,
        "send_sms": True,
        "completed_redirect_url": "https://all.example/",
        "expire_at": "2999-01-02T03:04:05Z",
        "consent_enabled": True,
        "consent_document_text": "I agree to the terms",
        "consent_document_url": "https://acme.example/terms",
        "preferences": PREFERENCES,
        **basis(path, template, "one", "two"),
    }
    if path != "/submissions":
        body |= {"template_ids": [template], "merge_documents": True}
    made = parties(suite.api(method, path, body))
    submission = suite.api("GET", f"/submissions/{made[0]['submission_id']}", params={"include": "fields"})
    assert (submission["name"], submission["order"]) == (f"Lease {mark}", "random")
    assert submission["expire_at"] == "2999-01-02T03:04:05.000Z"
    assert submission["preferences"] == PREFERENCES
    shown, other = (form(suite, each["slug"]) for each in made)
    assert (shown["state"], other["state"]) == ("open", "open")
    assert [each["role"] for each in shown["invites"]] == ["Witness"]
    terms = {"url": "https://acme.example/terms", "host": "acme.example"}
    assert shown["consent"] == {"text": "I agree to the terms", "terms": terms}
    assert shown["completed_redirect_url"] == "https://all.example/"
    assert other["completed_redirect_url"] == "https://own.example/"
    mail = wait_until(lambda: mails_to(suite, seller["email"]), what="the invitation")[0]
    assert (mail["Subject"], str(mail["Reply-To"])) == ("Only for the seller", "own@example.com")
    assert f"Own: {made[0]['embed_src']}" in mail_text(mail)

    def lines(kind: str) -> list[int]:
        history = suite.api("GET", f"/submissions/{submission['id']}")["submission_events"]
        return [each["submitter_id"] for each in history if each["event_type"] == kind]

    wait_until(lambda: lines("send_sms") and lines("send_email"), what="both invitations")
    assert lines("send_sms") == lines("send_email") == [made[0]["id"]]
    assert mails_to(suite, buyer["email"]) == []
    if path != "/submissions":
        drafts = suite.api("GET", f"/submissions/{submission['id']}/documents")["documents"]
        assert [each["name"] for each in drafts] == [f"Lease {mark}"]
        assert "{{" not in pdf_text(fetched(drafts[0]["url"]))
        assert {each["name"] for each in submission["fields"]} == {"A", "B", "C", "D", "E", "T"}


@pytest.mark.parametrize("way", WAYS, ids=[path for _, path in WAYS])
def test_preferences_protect_every_form_and_what_cannot_be_is_refused(
    suite: RunningSuite, template: int, way: tuple[str, str]
) -> None:
    method, path = way
    person = {"role": "Seller", "email": "guarded@example.com", "phone": "+14155550123"}
    body = {"submitters": [person], "send_email": False, **basis(path, template, "one")}
    (guarded,) = parties(suite.api(method, path, {**body, "preferences": {"require_email_2fa": True}}))
    assert (guarded["preferences"]["require_email_2fa"], form(suite, guarded["slug"])["state"]) == (True, "code")
    for more, where in (
        ({"preferences": {"require_phone_2fa": True}}, "preferences.require_phone_2fa"),
        ({"preferences": {"certsign_sign_enabled": True}}, "preferences.certsign_sign_enabled"),
        ({"certsign": {"enabled": True}}, "certsign.enabled"),
        ({"dutystamp": {"enabled": True}}, "dutystamp.enabled"),
    ):
        refused = suite.api(method, path, {**body, **more}, status=422)
        assert refused["details"][0]["field"] == where
        never = where == "dutystamp.enabled" and path.endswith("html")
        assert ("are for PDF and DOCX" if never else "not configured") in refused["error"]


@pytest.mark.parametrize("way", WAYS, ids=[path for _, path in WAYS])
def test_what_nothing_is_said_of_is_as_documented(suite: RunningSuite, template: int, way: tuple[str, str]) -> None:
    """In order, mailed and not by SMS; and after completion, those are told that are to be told."""
    mark, (method, path) = uuid.uuid4().hex[:8], way
    people = [{"role": role, "email": f"{role.lower()}.{mark}@example.com"} for role in ("Seller", "Buyer", "Witness")]
    archive = f"archive.{mark}@example.com"
    body = {
        "submitters": [{**each, "phone": "+14155550123"} for each in people],
        "bcc_completed": archive,
        "reply_to": "desk@example.com",
        "message": {"subject": f"For all {mark}", "body": "All: {{submitter.link}}"},
        "preferences": {"documents_copy_email_enabled": False},
        **basis(path, template, "one", "two"),
    }
    if path.endswith(("pdf", "docx")):
        body |= {"remove_tags": False}
    seller, buyer, witness = parties(suite.api(method, path, body))
    submission = suite.api("GET", f"/submissions/{seller['submission_id']}")
    assert (submission["order"], submission["expire_at"]) == ("preserved", None)
    shown = [form(suite, each["slug"]) for each in (seller, buyer, witness)]
    assert [each["state"] for each in shown] == ["open", "waiting", "waiting"]
    assert (shown[0]["consent"], shown[0]["completed_redirect_url"]) == (None, None)
    mail = wait_until(lambda: mails_to(suite, seller["email"]), what="the invitation")[0]
    assert (mail["Subject"], str(mail["Reply-To"])) == (f"For all {mark}", "desk@example.com")
    assert f"All: {seller['embed_src']}" in mail_text(mail)
    assert mails_to(suite, buyer["email"]) == []
    if path != "/submissions":
        drafts = suite.api("GET", f"/submissions/{submission['id']}/documents")["documents"]
        assert [each["name"] for each in drafts] == ["two", "one"]
        assert ("{{" in pdf_text(fetched(drafts[0]["url"]))) == path.endswith(("pdf", "docx"))
        assert submission["name"] == "one"
    for each in (seller, buyer, witness):
        suite.api("PUT", f"/submitters/{each['id']}", {"completed": True})
    done = completed(suite, submission["id"])
    assert "send_sms" not in {each["event_type"] for each in done["submission_events"]}
    wait_until(lambda: mails_to(suite, archive), what="the mail to the archive")
    invitations = [len(mails_to(suite, each["email"])) for each in people]
    assert invitations[0] == 1, "what a completion mails is planned at once: a copy for the seller would be there"
