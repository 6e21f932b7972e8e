"""Mails through a real SMTP server: who gets what, with which files, and in whose name."""

import io
from email.message import EmailMessage
from hashlib import sha256
from typing import Any

import pytest
import requests
from pyhanko.pdf_utils.reader import PdfFileReader

from tests.e2e.conftest import Equipped
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, sign
from tests.support.material.outcomes import completed, fetched, mail_text
from tests.support.servers.mail_server import MailServer
from tests.support.servers.providers.tsa import Authority
from tests.support.services.suite import RunningSuite, wait_until
from tests.support.services.tester import Tester

SELLER, BUYER, ADMIN = "seller@example.com", "buyer@example.com", "admin@example.com"


@pytest.fixture(scope="module")
def server(equipped: Equipped) -> MailServer:
    return equipped.mail


@pytest.fixture(scope="module")
def suite(equipped: Equipped) -> RunningSuite:
    return equipped.suite


@pytest.fixture(scope="module")
def template(suite: RunningSuite) -> dict[str, Any]:
    made: dict[str, Any] = suite.copy_of_template(agreement_pdf(), name="Lease, Zoë")
    return made


@pytest.fixture(autouse=True)
def empty(server: MailServer) -> None:
    server.received.clear()


def people(**of_seller: Any) -> list[dict[str, Any]]:
    seller = {"role": "Seller", "email": SELLER, "name": "Sam Seller", **of_seller}
    return [seller, {"role": "Buyer", "email": BUYER, "name": "Bo Buyer"}]


def begun(suite: RunningSuite, template: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    body = {"template_id": template["id"], "submitters": people(), "order": "random", **more}
    made: list[dict[str, Any]] = suite.api("POST", "/submissions", body)
    return made


def copy_of(suite: RunningSuite, template: dict[str, Any]) -> dict[str, Any]:
    """For a submission with preferences: its template keeps them."""
    made: dict[str, Any] = suite.api("POST", f"/templates/{template['id']}/clone", {})
    return made


def finished(suite: RunningSuite, parties: list[dict[str, Any]]) -> dict[str, Any]:
    sign(suite, parties[0]["slug"], SELLER_VALUES)
    sign(suite, parties[1]["slug"], BUYER_VALUES)
    return completed(suite, parties[0]["submission_id"])


def time_stamps(authority: Authority, submission: dict[str, Any]) -> list[bool]:
    """For each signature in the documents whether a time-stamp was asked for: requests hold the hash of its value (RFC 5816)."""
    signatures = [
        signature.signer_info["signature"].native
        for document in submission["documents"]
        for signature in PdfFileReader(io.BytesIO(fetched(document["url"]))).embedded_signatures
    ]
    assert signatures
    return [any(sha256(value).digest() in request for request in authority.requests) for value in signatures]


def all_of(server: MailServer, *addresses: str) -> list[EmailMessage]:
    """The mails once exactly these recipients have one each."""

    def sent() -> bool:
        assert len(server.received) <= len(addresses), server.recipients()
        return sorted(server.recipients()) == sorted(addresses)

    wait_until(sent, what=f"mails to {addresses}")
    return [message for _, message in server.received]


def attached(message: EmailMessage) -> list[str]:
    return sorted(str(part.get_filename()) for part in message.iter_attachments())


def test_two_signers_and_their_sender(server: MailServer, suite: RunningSuite, template: dict[str, Any]) -> None:
    parties = begun(suite, template, reply_to="desk@office.example", bcc_completed="archive@office.example")
    for message in all_of(server, SELLER, BUYER):
        assert "sign@office.example" in message["From"]
        assert "Office & Söhne" in message["From"]
        assert "desk@office.example" in message["Reply-To"]
        assert "Lease, Zoë" in message["Subject"]
        slug = next(each["slug"] for each in parties if each["email"] in message["To"])
        assert f"{suite.base_url}/s/{slug}" in mail_text(message)
        assert "Bcc" not in message
    server.received.clear()
    finished(suite, parties)
    all_of(server, SELLER, BUYER, ADMIN, "archive@office.example")
    for address in (SELLER, BUYER, ADMIN, "archive@office.example"):
        message = server.message(address)
        trail, document = attached(message)
        assert trail.startswith("Audit trail")
        assert document == "agreement.pdf"
        for part in message.iter_attachments():
            assert part.get_content_type() == "application/pdf"
            assert part.get_content().startswith(b"%PDF-")
            assert b"/ByteRange" in part.get_content()
    assert BUYER not in str(server.message(SELLER)["To"])


def test_a_mail_names_the_request_that_it_comes_of(
    server: MailServer, suite: RunningSuite, template: dict[str, Any]
) -> None:
    body = {"template_id": template["id"], "submitters": people(), "order": "random"}
    answer = suite.call("POST", "/submissions", body, headers={"X-Request-Id": "from-our-crm:4711"})
    assert (answer.status_code, answer.headers["X-Request-Id"]) == (200, "from-our-crm:4711")
    assert [message["X-Request-Id"] for message in all_of(server, SELLER, BUYER)] == ["from-our-crm:4711"] * 2


def test_a_message_with_variables(server: MailServer, suite: RunningSuite, template: dict[str, Any]) -> None:
    general = {
        "subject": "{{template.name}} for {{submitter.name}}",
        "body": "Dear {{submitter.name}},\n\n**{{account.name}}** asks: {{submitter.link}}\n\n{{7*7}} <script>x</script>",
    }
    own = {"subject": "Only for you", "body": "No link in here, {{submitter.first_name}}."}
    body = {"template_id": template["id"], "submitters": people(message=own), "order": "random", "message": general}
    parties = suite.api("POST", "/submissions", body)
    all_of(server, SELLER, BUYER)
    seller, buyer = server.message(SELLER), server.message(BUYER)
    assert buyer["Subject"] == "Lease, Zoë for Bo Buyer"
    text = mail_text(buyer)
    assert "Dear Bo Buyer" in text
    assert "Office & Söhne" in text
    assert f"/s/{parties[1]['slug']}" in text
    assert "{{7*7}}" in text
    html = buyer.get_body(("html",))
    assert html is not None
    assert "<script" not in html.get_content()
    assert seller["Subject"] == "Only for you"
    assert "No link in here, Sam." in mail_text(seller)
    assert f"/s/{parties[0]['slug']}" in mail_text(seller)
    refused = {**general, "subject": "Two\r\nBcc: everybody@example.com"}
    suite.api("POST", "/submissions", {**body, "message": refused}, status=422)


def test_toggles(server: MailServer, suite: RunningSuite, template: dict[str, Any]) -> None:
    silent = {"documents_copy_email_enabled": False, "completed_notification_email_attach_documents": False}
    parties = begun(suite, copy_of(suite, template), preferences=silent)
    all_of(server, SELLER, BUYER)
    server.received.clear()
    finished(suite, parties)
    (mail,) = all_of(server, ADMIN)
    assert len(attached(mail)) == 1
    assert "agreement" not in attached(mail)[0].lower()
    server.received.clear()

    bare = {
        "completed_notification_email_enabled": False,
        "documents_copy_email_attach_documents": False,
        "documents_copy_email_attach_audit": False,
        "bcc_completed": "one@example.com, two@example.com",
    }
    parties = begun(suite, copy_of(suite, template), preferences=bare)
    all_of(server, SELLER, BUYER)
    server.received.clear()
    finished(suite, parties)
    all_of(server, SELLER, BUYER, "one@example.com", "two@example.com")
    assert attached(server.message(SELLER)) == []
    server.received.clear()

    plain = {"documents_copy_email_enabled": False, "completed_notification_email_attach_audit": False}
    parties = begun(suite, copy_of(suite, template), preferences=plain)
    all_of(server, SELLER, BUYER)
    server.received.clear()
    finished(suite, parties)
    (mail,) = all_of(server, ADMIN)
    assert attached(mail) == ["agreement.pdf"]
    server.received.clear()

    # Without mails as a whole nobody is told of anything.
    finished(suite, begun(suite, template, send_email=False, bcc_completed="one@example.com"))
    parties = begun(suite, template)
    all_of(server, SELLER, BUYER)


def test_nobody_is_mailed_who_should_not_be(server: MailServer, suite: RunningSuite, template: dict[str, Any]) -> None:
    body = {"template_id": template["id"], "submitters": people(send_email=False), "order": "random"}
    seller, buyer = suite.api("POST", "/submissions", body)
    all_of(server, BUYER)
    assert suite.api("GET", f"/submitters/{seller['id']}")["sent_at"] is None
    wait_until(lambda: suite.api("GET", f"/submitters/{buyer['id']}")["sent_at"], what="sent_at")


def test_a_server_that_says_no(server: MailServer, suite: RunningSuite, template: dict[str, Any]) -> None:
    """One bad address does not keep the other from its mail; the refusal stands in the submission's history."""
    server.rcpt = lambda address: "550 no such user" if address == BUYER else None
    try:
        _, buyer = begun(suite, template)
        all_of(server, SELLER)

        def history() -> list[str]:
            submission = suite.api("GET", f"/submissions/{buyer['submission_id']}")
            return [
                each["event_type"] for each in submission["submission_events"] if each["submitter_id"] == buyer["id"]
            ]

        wait_until(lambda: "bounce_email" in history(), what="the bounce in the history")
    finally:
        server.rcpt = lambda _address: None


def test_nothing_of_test_mode_leaves_and_no_time_stamp_is_bought(
    equipped: Equipped, suite: RunningSuite, server: MailServer, template: dict[str, Any]
) -> None:
    tester = Tester(suite)
    parties = begun(tester, template)  # type: ignore[arg-type]
    done = finished(tester, parties)  # type: ignore[arg-type]
    assert done["pades_level"] == "B-B"
    about = {"submission_id": done["id"], "limit": 100}

    def kept() -> set[str]:
        found = tester.api("GET", "/test_mails", params=about)["data"]
        return {mail["kind"] for mail in found if mail["state"] == "sent"}

    wait_until(lambda: {"invitation", "completed", "documents_copy"} <= kept(), what="the mails of the test")
    live = begun(suite, template)
    slugs = {party["slug"] for party in live}
    for message in all_of(server, SELLER, BUYER):
        assert any(slug in mail_text(message) for slug in slugs), "no mail of the test is among them"
    assert not any(time_stamps(equipped.authority, done))
    assert all(time_stamps(equipped.authority, finished(suite, live))), "they are asked for of live ones"
    page = requests.get(f"{suite.base_url}/dev/mail", timeout=60).text
    assert SELLER in page, "there it is, beside a mail server"
