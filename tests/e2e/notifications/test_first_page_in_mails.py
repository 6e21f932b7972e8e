"""The first page in invitations and reminders, from the document to the bytes of the mail."""

import io
import uuid
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

from PIL import Image, ImageChops

from tests.e2e.notifications.test_reminders import make_due
from tests.support.material.agreement import SELLER_VALUES, agreement_pdf, sign
from tests.support.material.outcomes import mails_to
from tests.support.services.suite import RunningSuite, wait_until


def picture_of(mail: EmailMessage) -> bytes | None:
    """The first page that a mail shows; nothing in it is fetched from anywhere."""
    body = mail.get_body(("html",))
    assert body is not None
    html = body.get_content()
    parts = [part for part in mail.walk() if part["Content-ID"] == "<first_page>"]
    assert [part.get_content_type() for part in parts] == ["image/png"] * html.count('src="cid:first_page"')
    assert 'src="http' not in html
    return parts[0].get_content() if parts else None


def people() -> list[dict[str, Any]]:
    mark = uuid.uuid4().hex[:8]
    return [
        {"role": "Seller", "email": f"seller.{mark}@example.com", "name": "Sam Seller"},
        {"role": "Buyer", "email": f"buyer.{mark}@example.com", "name": "Bo Buyer"},
    ]


def mail_to(suite: RunningSuite, party: dict[str, Any], number: int = 1) -> EmailMessage:
    found = wait_until(lambda: mails_to(suite, party["email"])[number - 1 :], what=f"mail {number} to {party['email']}")
    return found[0]


def opened(picture: bytes | None) -> Image.Image:
    assert picture is not None
    assert len(picture) <= 25_000
    return Image.open(io.BytesIO(picture))


def drawn(suite: RunningSuite, make: Callable[[], dict[str, Any]]) -> bytes:
    """The picture in the mail to whom ``make`` sends the document: a busy machine may not have it in time at first, and then mails
    go without for a minute."""

    def shown() -> bytes | None:
        return picture_of(mail_to(suite, make()))

    return wait_until(shown, within=480, what="the first page is drawn")


def send(suite: RunningSuite, template: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    body = {"template_id": template["id"], "submitters": people(), **more}
    made: list[dict[str, Any]] = suite.api("POST", "/submissions", body)
    return made


def test_both_parties_and_a_reminder_show_the_page_as_it_was_sent(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Lease")
    drawn(suite, lambda: send(suite, template)[0])
    try:
        suite.api("PUT", "/account", {"reminders": {"first": "one_hour", "second": None, "third": None}})
        seller, buyer = send(suite, template)
    finally:
        suite.api("PUT", "/account", {"reminders": None})
    first = picture_of(mail_to(suite, seller))
    picture = opened(first)
    assert picture.width == 240
    assert len(picture.getcolors() or []) > 1, "there is something on it"
    sign(suite, seller["slug"], SELLER_VALUES)
    assert picture_of(mail_to(suite, buyer)) == first, "nothing of what the seller has filled in is on it"
    assert make_due(suite, buyer["id"]) == 1
    reminder = mail_to(suite, buyer, 2)
    assert "Reminder" in reminder["Subject"]
    assert picture_of(reminder) == first


def test_it_is_of_the_document_of_this_submission(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Lease")
    one_off = {
        "name": "Offer",
        "html": "<h1 style='font-size: 90pt'>OFFER</h1><p><text-field name='Name' role='Seller' "
        "style='width:120px;height:20px'></text-field></p>",
    }

    def alone() -> dict[str, Any]:
        made = suite.api("POST", "/submissions/html", {**one_off, "submitters": people()[:1]})
        return dict(made["submitters"][0])

    made = (alone, lambda: send(suite, template)[0])
    pictures = [opened(drawn(suite, make)).convert("RGB") for make in made]
    assert pictures[0].size != pictures[1].size or ImageChops.difference(*pictures).getbbox()


def test_who_is_asked_for_a_code_gets_no_picture_and_an_account_can_do_without(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Lease")
    drawn(suite, lambda: send(suite, template)[0])
    guarded = [{**one, "require_email_2fa": one["role"] == "Seller"} for one in people()]
    body = {"template_id": template["id"], "submitters": guarded, "order": "random"}
    seller, buyer = suite.api("POST", "/submissions", body)
    assert picture_of(mail_to(suite, seller)) is None
    assert picture_of(mail_to(suite, buyer)) is not None
    try:
        assert suite.api("PUT", "/account", {"first_page_in_mails": False})["first_page_in_mails"] is False
        without, _ = send(suite, template)
    finally:
        assert suite.api("PUT", "/account", {"first_page_in_mails": None})["first_page_in_mails"] is True
    assert picture_of(mail_to(suite, without)) is None
    own_words = send(suite, template, message={"body": "Please sign here: {{submitter.link}}"})[0]
    assert picture_of(mail_to(suite, own_words)) is not None
