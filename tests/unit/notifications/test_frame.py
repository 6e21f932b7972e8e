"""The frame of mails: HTML that an HTML parser has nothing to say about, colours that can be read in the light and in the dark, one
button, what comes next, and the headers that keep the mails about a submission together."""

import re
from datetime import UTC, datetime
from email.parser import BytesParser
from email.policy import strict

import pytest
from tinyhtml5.parser import HTMLParser

from contracts.languages.saying import language_for
from contracts.types import ActsAs
from services.notifications import domain
from services.notifications.domain import Kind
from services.notifications.messages import composing
from services.notifications.sending.mime import Envelope, build
from tests.support.material.letters import decline, invitation, party
from tests.unit.notifications.test_languages import every_mail

PAIRS = {  # what stands on what
    "mail-text": "mail-sheet",
    "mail-soft": "mail-sheet",
    "mail-link": "mail-sheet",
    "mail-button": "mail-button",
}


def parse_errors(html: str) -> list[object]:
    parser = HTMLParser()
    parser.parse(html)
    return list(parser.errors)


@pytest.mark.parametrize("language", ["en", "de", "ar", "ja"])
def test_the_html_is_valid_and_says_what_comes_next_beside_one_button(language: str) -> None:
    assert parse_errors("<!doctype html><p><b></p>") != []  # the judge can fail
    for kind, mail in every_mail(language, language).items():
        assert parse_errors(mail.html) == [], kind
        assert mail.html.count('class="mail-button"') <= 1, kind
        assert mail.html.count('name="color-scheme" content="light dark"') == 1
    asked = every_mail(language, language)["invitation"]
    following = language_for(language).say("mail", "sign.next")
    assert following in asked.text
    assert following in asked.html


@pytest.mark.parametrize("dark", [False, True])
def test_every_colour_can_be_read_on_what_it_stands_on(dark: bool) -> None:
    html = "".join(mail.html for mail in every_mail("en", "en").values())
    for name, ground in PAIRS.items():
        ink, paper = _colour(html, name, "color", dark=dark), _colour(html, ground, "background", dark=dark)
        assert _contrast(ink, paper) >= 4.5, (name, ink, paper)
    named = set(re.findall(r'class="(mail-\w+)"', html))
    assert set(PAIRS) <= named
    for used in re.findall(r"<[^>]*style=\"[^\"]*(?<!-)color:[^\"]*\"[^>]*>", html):
        assert 'class="mail-' in used, used  # else it keeps its light colour in the dark


def _colour(html: str, name: str, what: str, *, dark: bool) -> str:
    if dark:
        rules = html[html.index("@media (prefers-color-scheme:dark)") : html.index("</style>")]
        found = re.search(rf"\.{name}\b[^{{}}]*\{{[^}}]*?(?<![-\w]){what}:(#[0-9a-f]{{6}})", rules)
    else:
        found = re.search(rf'class="{name}"[^>]*?(?<![-\w]){what}:(#[0-9a-f]{{6}})', html)
    assert found, (name, what)
    return found[1]


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_who_declines_to_approve_has_not_declined_to_sign() -> None:
    signer, approver = decline(), decline()
    approver.context.parties = [party(1, name="Bo Buyer", acts_as=ActsAs.APPROVER.value)]
    assert "declined to sign" in composing.declines(signer)[0].text
    for words in (composing.declines(approver)[0].text, composing.declines(approver)[0].html):
        assert "declined to approve" in words
        assert "declined to sign" not in words


def test_whoever_only_reads_is_not_told_to_fill_in_anything() -> None:
    (mail,) = composing.invitations(invitation(party(1, name="Bo", acts_as=ActsAs.VIEWER.value)))
    assert "comes next" not in mail.text


def test_mails_about_a_submission_are_one_conversation_and_codes_are_not() -> None:
    sender = "no-reply@acme.example"
    asked = domain.thread_id(Kind.INVITATION, 31, sender)
    assert asked == domain.thread_id(Kind.COMPLETED, 31, sender) != domain.thread_id(Kind.COMPLETED, 32, sender)
    for kind, number in ((Kind.ONE_TIME_CODE, 31), (Kind.PROVIDER_PROBLEM, 31), (Kind.INVITATION, None)):
        assert domain.thread_id(kind, number, sender) is None
    facts = {"sender": sender, "to_name": "", "to": "bo@example.com", "reply_to": [], "subject": "x"}
    at = datetime(2026, 3, 4, tzinfo=UTC)
    for thread in (asked, None):
        envelope = Envelope(**facts, sender_name="Acme", message_id="<1@acme.example>", date=at, thread=thread)  # type: ignore[arg-type]
        message = BytesParser(policy=strict).parsebytes(build(envelope, "Hello", "<p>Hello</p>"))
        assert (message["References"], message["In-Reply-To"]) == (thread, thread)
        assert message.defects == []
