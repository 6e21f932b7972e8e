"""Who gets which mail, and what our own texts say."""

import hashlib
import re
from datetime import UTC, datetime, timedelta
from email.header import decode_header, make_header
from email.parser import BytesParser
from email.policy import compat32, default
from email.utils import getaddresses
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lark import UnexpectedInput

from contracts.blobs import BlobRef
from contracts.events import (
    CodeDue,
    DeclineMail,
    HandedOver,
    ProviderProblem,
    ReminderDue,
    StampBalanceLow,
    WebhookDisabled,
)
from contracts.formats.one_time_code import code_of
from contracts.rpc.submissions.api import Message
from contracts.types import Account
from services.notifications import addresses, domain
from services.notifications.domain import Letter
from services.notifications.messages import composing
from services.notifications.sending.mime import Envelope, build
from tests.support.judges.mails.mailboxes import mailboxes
from tests.support.material.letters import (
    completion,
    context,
    decline,
    delegation,
    file,
    invitation,
    link,
    party,
    question,
    sent_back,
    thumbnail,
    wrong_recipient,
)


def to(letters: list[Letter]) -> list[tuple[str, str]]:
    return [(letter.to_address, letter.kind.value) for letter in letters]


def attached(letter: Letter) -> list[str]:
    return [one.name for one in letter.files]


ALL = ["Lease", "Audit Log - Lease"]


def test_an_invitation_goes_to_the_invited_party_alone() -> None:
    due = invitation(party(1), party(2, name="Ben"), submitter_id=2)
    assert to(domain.invitation(due)) == [("signer2@example.com", "invitation")]
    mail = composing.invitations(due)[0]
    assert mail.letter.to_name == "Ben"
    assert mail.sender_name == "Acme Ltd"
    for words in (mail.text, mail.html):
        assert "https://sign.example.com/s/slug2" in words
        assert "slug1" not in words
        assert "signer1@example.com" not in words
    assert mail.links == ["https://sign.example.com/s/slug2"]


def test_several_addresses_of_a_party_are_several_mails() -> None:
    due = invitation(party(1, "a@example.com, b@example.com; A@example.com"))
    assert [letter.to_address for letter in domain.invitation(due)] == ["a@example.com", "b@example.com"]
    assert len({letter.key for letter in domain.invitation(due)}) == 2


def test_a_party_without_an_address_gets_nothing() -> None:
    assert domain.invitation(invitation(party(1, email="").model_copy(update={"email": None}))) == []
    assert domain.invitation(invitation(party(1), submitter_id=9)) == []


def test_the_same_fact_has_the_same_key_and_another_one_another() -> None:
    first = domain.invitation(invitation(party(1)))[0].key
    assert domain.invitation(invitation(party(1, "SIGNER1@example.com")))[0].key == first
    assert domain.invitation(invitation(party(1), invitation_id="i-2"))[0].key != first
    assert domain.invitation(invitation(party(1, "other@example.com")))[0].key != first


@pytest.mark.parametrize(
    ("due", "of_context", "sender", "expected"),
    [
        ("boss@acme.example", "office@acme.example", "ana@acme.example", ["boss@acme.example"]),
        (None, "office@acme.example", "ana@acme.example", ["office@acme.example"]),
        (None, None, "ana@acme.example", ["ana@acme.example"]),
        (None, "no-reply@acme.example", "ana@acme.example", ["ana@acme.example"]),
        ("NoReply+7@acme.example", "do-not-reply@acme.example", None, []),
        ("a@x.example, b@x.example", None, None, ["a@x.example", "b@x.example"]),
        ("a@x.example\r\nBcc: evil@x.example", None, "ana@acme.example", ["ana@acme.example"]),
        (None, None, "signer1@example.com", []),
    ],
)
def test_who_gets_the_replies(due: str | None, of_context: str | None, sender: str | None, expected: list[str]) -> None:
    wanted = invitation(party(1), reply_to=due).model_copy(
        update={"context": context(party(1), reply_to=of_context, sender_email=sender)}
    )
    assert domain.invitation(wanted)[0].reply_to == expected


def test_completion_tells_signers_sender_and_bccs_each_on_their_own() -> None:
    due = completion(party(1), party(2), bcc=["law@x.example", "tax@x.example, law@x.example"])
    letters = domain.completion(due)
    assert to(letters) == [
        ("signer1@example.com", "documents_copy"),
        ("signer2@example.com", "documents_copy"),
        ("ana@acme.example", "completed"),
        ("law@x.example", "completed"),
        ("tax@x.example", "completed"),
    ]
    assert all(attached(letter) == ALL for letter in letters)
    assert [letter.link for letter in letters] == [
        "https://sign.example.com/s/slug1",
        "https://sign.example.com/s/slug2",
        "https://sign.example.com/e/sub",
        "",
        "",
    ]
    assert letters[0].reply_to == ["ana@acme.example"]
    assert letters[2].reply_to == []


def test_whoever_is_several_of_these_gets_one_mail_with_all_that_he_may_have() -> None:
    due = completion(
        party(1, "Ana@acme.example"),
        party(2, "ana@ACME.example"),
        bcc=["ana@acme.example"],
        copy_attach_documents=False,
    )
    letters = domain.completion(due)
    assert to(letters) == [("Ana@acme.example", "documents_copy")]
    assert sorted(attached(letters[0])) == sorted(ALL)
    due = completion(party(1, "ana@acme.example"), sender_attach_documents=False, sender_attach_audit=False)
    assert [attached(letter) for letter in domain.completion(due)] == [ALL]


@pytest.mark.parametrize(
    ("switches", "signer", "sender"),
    [
        ({}, ALL, ALL),
        ({"copy_attach_documents": False}, ALL[1:], ALL),
        ({"copy_attach_audit": False}, ALL[:1], ALL),
        ({"sender_attach_documents": False, "sender_attach_audit": False}, ALL, []),
        ({"copy_signers": False}, None, ALL),
        ({"notify_sender": False}, ALL, None),
        ({"account": {"documents_copy_email_enabled": False}}, None, ALL),
        ({"account": {"completed_notification_email_enabled": False}}, ALL, None),
        ({"account": {"documents_copy_email_attach_audit": False}}, ALL[:1], ALL),
        ({"account": {"completed_notification_email_attach_documents": False}}, ALL, ALL[1:]),
        ({"account": {"documents_copy_email_attach_documents": False}}, ALL[1:], ALL),
        ({"account": {"completed_notification_email_attach_audit": False}}, ALL, ALL[:1]),
        ({"sender_attach_documents": False}, ALL, ALL[1:]),
        ({"sender_attach_audit": False}, ALL, ALL[:1]),
    ],
)
def test_toggles(switches: dict[str, Any], signer: list[str] | None, sender: list[str] | None) -> None:
    account = Account(name="Acme", **switches.pop("account", {}))
    found = {
        one.to_address: attached(one) for one in domain.completion(completion(sender={"account": account}, **switches))
    }
    assert found.get("signer1@example.com") == signer
    assert found.get("ana@acme.example") == sender


def test_a_party_that_wants_no_mail_gets_none() -> None:
    letters = domain.completion(completion(party(1, send_email=False), party(2)))
    assert [letter.to_address for letter in letters] == ["signer2@example.com", "ana@acme.example"]


def test_files_are_attached_up_to_ten_megabytes_in_all_and_linked_beyond() -> None:
    small = composing.completions(
        completion(documents=[file("Lease", 5_000_000)], audit_trail=file("Audit", 5_000_000)), 10_000_000
    )
    assert [[one.name for one in mail.files] for mail in small] == [["Lease", "Audit"]] * 2
    assert all("/file/" not in mail.html + mail.text for mail in small)
    assert "- Lease.pdf" in small[0].text
    assert small[0].unattached is not None
    assert "https://sign.example.com/file/Lease" in small[0].unattached["text"]
    large = composing.completions(
        completion(documents=[file("Lease", 5_000_001)], audit_trail=file("Audit", 5_000_000)), 10_000_000
    )
    for mail in large:
        assert list(mail.files) == []
        for words in (mail.text, mail.html):
            assert "https://sign.example.com/file/Lease" in words
            assert "too large for a mail" in words


def test_a_copy_has_the_receipt_of_whoever_gets_it() -> None:
    """And of nobody else: neither the other signer's nor, for the sender, any."""
    url = "https://sign.example.com/verify?receipt="
    parties = [party(n, receipt=f"AAAA-{n}", receipt_url=f"{url}AAAA-{n}") for n in (1, 2)]
    first, second, sender = composing.completions(completion(*parties), 0)
    for mail, own, other in ((first, "AAAA-1", "AAAA-2"), (second, "AAAA-2", "AAAA-1")):
        for text in (mail.text, mail.html):
            assert f"{url}{own}" in text
            assert other not in text
        assert f"{url}{own}" in mail.links
    assert "AAAA" not in sender.text + sender.html
    (older, *_) = composing.completions(completion(party(1)), 0)
    assert "receipt" not in older.text


def test_the_completion_mails_say_who_signed_without_telling_addresses() -> None:
    signer, sender = composing.completions(completion(party(1, name="Bo"), party(2)), 0)[::2]
    assert sender.subject == "“Lease 2026” has been completed"
    for words in (sender.text, sender.html):
        assert "4 March 2026, 18:05 CET" in words
        assert "Role 2" in words
        assert "signer2@example.com" not in words
    assert signer.subject == "Your copy of “Lease 2026”"
    assert signer.letter.to_name == "Bo"


def test_a_decline_tells_the_sender_and_the_reply_goes_to_who_declined() -> None:
    (mail,) = composing.declines(decline("Wrong address.\n<script>alert(1)</script>\x00\r\nThanks"))
    assert (mail.letter.to_address, mail.letter.reply_to) == ("ana@acme.example", ["signer1@example.com"])
    assert mail.subject == "“Lease 2026” was declined by Bo Buyer"
    assert "> Wrong address.\n> <script>alert(1)</script>\n> Thanks\n" in mail.text
    assert "<script>" not in mail.html
    (silent,) = composing.declines(decline())
    assert "No reason was given" in silent.text
    assert composing.declines(decline(sender_email=None)) == []


def test_a_wrong_recipient_tells_the_sender_whose_address_it_was_and_nobody_answers_them() -> None:
    (mail,) = composing.wrong_recipients("e-1", wrong_recipient("I am his neighbour.\n<b>"))
    assert (mail.letter.to_address, mail.letter.reply_to) == ("ana@acme.example", [])
    assert mail.subject == "“Lease 2026” has reached somebody else, not Bo Buyer"
    assert "It was meant for Bo Buyer (signer1@example.com)." in mail.text
    assert "> I am his neighbour.\n> <b>\n" in mail.text
    assert "<b>" not in mail.html
    assert "/s/slug1" not in mail.text + mail.html, "nobody signs from this mail"
    (silent,) = composing.wrong_recipients("e-2", wrong_recipient())
    assert "They wrote" not in silent.text
    assert silent.letter.key != mail.letter.key, "it may happen again"
    assert composing.wrong_recipients("e-1", wrong_recipient(sender_email=None)) == []


def test_who_hands_over_is_told_to_the_sender_and_to_the_new_person() -> None:
    (mail,) = composing.delegations("e-1", delegation("She signs.\n<b>"))
    assert (mail.letter.to_address, mail.letter.reply_to) == ("ana@acme.example", ["signer1@example.com"])
    assert mail.subject == "“Lease 2026” was handed over by Bo Buyer"
    assert "Bo Buyer (signer1@example.com) has handed “Lease 2026” over to Dee Puty (deputy@example.com)." in mail.text
    assert "> She signs.\n> <b>\n" in mail.text
    assert "<b>" not in mail.html
    assert "/s/slug1" not in mail.text + mail.html, "nobody signs from this mail"
    (again,) = composing.delegations("e-2", delegation())
    assert "They wrote" not in again.text
    assert again.letter.key != mail.letter.key, "it may happen again"
    assert composing.delegations("e-1", delegation(sender_email=None)) == []
    named = invitation().model_copy(update={"handed_over": HandedOver(by="Bo\r\nBuyer", reason="Sorry\n<i>")})
    (asked,) = composing.invitations(named)
    assert "Bo Buyer was asked before you, and has named you in their place." in asked.text
    assert "> Sorry\n> <i>\n" in asked.text
    assert "<i>" not in asked.html
    assert "asked before you" not in composing.invitations(invitation())[0].text


def test_what_is_sent_back_is_told_to_the_sender_and_what_was_corrected_to_who_had_it() -> None:
    (mail,) = composing.returns("e-1", sent_back("The price.\n<b>"))
    assert (mail.letter.to_address, mail.letter.reply_to) == ("ana@acme.example", ["signer1@example.com"])
    assert mail.subject == "“Lease 2026” was sent back by Bo Buyer for correction"
    assert "> The price.\n> <b>\n" in mail.text
    assert "<b>" not in mail.html
    assert "/s/slug1" not in mail.text + mail.html, "nobody signs from this mail"
    assert composing.returns("e-1", sent_back(sender_email=None)) == []
    (first,) = composing.invitations(invitation())
    (again,) = composing.invitations(invitation(invitation_id="i-2").model_copy(update={"corrected": True}))
    assert ("has been corrected since" in first.text, "has been corrected since" in again.text) == (False, True)
    assert (first.letter.is_other, again.letter.is_other) == (False, True), "sent although one went there a moment ago"


def test_a_question_is_answered_to_who_asks_where_their_address_is_theirs() -> None:
    (mail,) = composing.questions("e-1", question("Why?\r\nBcc: x@example.com\n<b>"))
    assert (mail.letter.to_address, mail.letter.reply_to) == ("ana@acme.example", ["signer1@example.com"])
    assert mail.subject == "A question about “Lease 2026” from Bo Buyer"
    assert "> Why?\n> Bcc: x@example.com\n> <b>\n" in mail.text
    assert "A reply to this mail goes to signer1@example.com." in mail.text
    assert "<b>" not in mail.html
    assert "/s/slug1" not in mail.text + mail.html, "nobody signs from this mail"
    (unknown,) = composing.questions("e-2", question(known=False))
    assert (unknown.letter.reply_to, "nobody has checked it" in unknown.text) == ([], True)
    (hostile,) = composing.questions("e-3", question(submission_name="Lease\r\nBcc: y@example.com"))
    assert "\n" not in hostile.subject


def test_the_link_goes_to_who_goes_on_later_and_not_once_it_is_replaced() -> None:
    (mail,) = composing.links("e-1", link())
    assert (mail.letter.to_address, mail.letter.slug) == ("signer1@example.com", "slug1")
    assert "What you have filled in is saved." in mail.text
    assert "https://sign.example.com/s/slug1" in mail.text
    (again,) = composing.links("e-2", link())
    assert again.letter.key != mail.letter.key


def test_a_reminder_goes_where_the_invitation_went() -> None:
    due = ReminderDue(**{**dict(invitation(party(1))), "reminder_id": "r-1", "number": 1})
    (letter,), (invited,) = domain.reminder(due), domain.invitation(invitation(party(1)))
    assert to([letter]) == [("signer1@example.com", "reminder")]
    assert (letter.link, letter.party, letter.slug) == (invited.link, invited.party, invited.slug)
    assert letter.key != invited.key


def test_nobody_answers_themselves() -> None:
    mails = composing.declines(decline(sender_email="Signer1@example.com"))
    assert [(mail.letter.to_address, mail.letter.reply_to) for mail in mails] == [("Signer1@example.com", [])]


def code_due(**more: Any) -> CodeDue:
    facts = {
        "code_id": "c-1",
        "seed": "s",
        "method": "email",
        "to": "Bo@x.example",
        "to_name": "Bo\nBuyer",
        "submission_name": "Lease",
        "submitter_id": 3,
        "slug": "slug1",
        "expires_at": datetime(2026, 3, 4, tzinfo=UTC),
        "minutes": 10,
        "account_name": "Acme",
    }
    return CodeDue(**(facts | more))


def test_a_code_goes_to_the_address_that_asked_for_it() -> None:
    due = code_due()
    (letter,) = domain.one_time_code(due)
    assert (letter.to_address, letter.to_name, letter.reply_to) == ("Bo@x.example", "Bo Buyer", [])
    assert (letter.submitter_id, letter.slug) == (3, "slug1")
    assert domain.one_time_code(due.model_copy(update={"to": "bo@x.example"}))[0].key == letter.key
    assert domain.one_time_code(due.model_copy(update={"code_id": "c-2"}))[0].key != letter.key


def test_a_mail_that_comes_twice_is_seen_to_be_one() -> None:
    made = domain.message_id("completion 7 ann@x.example", "sign@münchen.example")
    assert made == f"<{hashlib.sha256(b'completion 7 ann@x.example').hexdigest()[:40]}@xn--mnchen-3ya.example>"
    assert domain.message_id("completion 8 ann@x.example", "sign@münchen.example") != made


def test_a_disabled_webhook_is_told_to_each_admin_once() -> None:
    disabled = WebhookDisabled(
        webhook_id=4,
        url="https://hooks.example.com/in?x=<b>",
        reason="410 Gone",
        admins=["a@x.example", "b@x.example", "A@x.example"],
    )
    mails = composing.webhooks_disabled("e-1", disabled, "https://sign.example.com")
    assert [mail.letter.to_address for mail in mails] == ["a@x.example", "b@x.example"]
    assert mails[0].subject == "Webhook 4 to hooks.example.com was switched off"
    assert "410 Gone" in mails[0].text
    assert "<b>" not in mails[0].html
    assert mails[0].letter.key == domain.webhook_disabled("e-1", disabled)[0].key
    assert mails[0].letter.key != domain.webhook_disabled("e-2", disabled)[0].key


AT = datetime(2026, 7, 1, 12, 34, tzinfo=UTC)


def provider_problem(**more: Any) -> ProviderProblem:
    facts: dict[str, Any] = {
        "feature": "certsign",
        "provider": "signing.example",
        "message": "The credential <acme> is suspended",
        "submission_id": 31,
        "submission_name": "Lease 2026",
        "submission_link": "https://sign.example.com/e/slug",
    }
    return ProviderProblem(**facts | more)


def test_each_admin_reads_what_the_provider_said_and_what_to_do() -> None:
    admins = ["a@x.example", "b@x.example", "A@x.example"]
    mails = composing.provider_problems(provider_problem(), admins, AT, "https://sign.example.com")
    assert [mail.letter.to_address for mail in mails] == ["a@x.example", "b@x.example"]
    mail = mails[0]
    assert mail.subject == "The provider of certificates does not sign: Lease 2026"
    assert "What it said: The credential <acme> is suspended" in mail.text
    assert "<acme>" not in mail.html
    for text in (mail.text, mail.html):
        for way in ("submissions/31/certsign", "submissions/31/seal", "https://sign.example.com/e/slug"):
            assert way in text
        assert "dutystamp" not in text
    stamp = composing.provider_problems(provider_problem(feature="dutystamp"), admins, AT, "https://sign.example.com")[
        0
    ]
    assert stamp.subject == "A duty stamp could not be had: Lease 2026"
    for text in (stamp.text, stamp.html):
        assert "submissions/31/dutystamp" in text
        assert "certsign" not in text


def test_the_same_trouble_is_told_once_an_hour_however_many_submissions_it_is_that_of() -> None:
    def key(at: datetime = AT, **more: Any) -> str:
        return domain.provider_problem(provider_problem(**more), ["a@x.example"], at)[0].key

    assert key(submission_id=32, submission_name="Another") == key()
    assert key(at=AT + timedelta(minutes=20)) == key()
    others = [key(at=AT + timedelta(hours=1)), key(message="Another"), key(provider="other"), key(feature="dutystamp")]
    assert len({key(), *others}) == 5


def test_admins_hear_when_stamps_run_out() -> None:
    low = StampBalanceLow(provider="stamps.example", balance=1, alert_below=10)
    (mail,) = composing.stamp_balances_low("e-1", low, ["a@x.example"])
    assert mail.subject == "Only 1 duty stamp left at stamps.example"
    for text in (mail.text, mail.html):
        assert "fewer than 10" in text


def test_an_invitation_says_until_when_with_the_zone() -> None:
    until = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
    due = invitation(party(1), expire_at=until)
    assert "It is open until 1 July 2026, 14:00 CEST." in composing.invitations(due)[0].text
    due.context.account = Account(name="Acme", time_zone="Nowhere/At all", locale="sv-SE")  # which we do not speak
    assert "1 July 2026, 12:00 UTC" in composing.invitations(due)[0].html


def test_a_form_without_a_signature_is_filled_in() -> None:
    mail = composing.invitations(invitation(party(1), needs_signature=False))[0]
    assert mail.subject == "Ana Ray asks you to fill in “Lease 2026”"
    assert "sign it" not in mail.text


def test_a_reminder_says_what_waits_for_whom() -> None:
    due = ReminderDue(**{**dict(invitation(party(1, name="Bo"))), "reminder_id": "r-1", "number": 1})
    (mail,) = composing.reminders(due)
    assert mail.subject == "Reminder: “Lease 2026” waits for your signature"
    assert mail.sender_name == "Acme Ltd"
    assert mail.links == ["https://sign.example.com/s/slug1"]
    assert mail.text.startswith("Hello Bo,\n\nAna Ray has asked you to sign “Lease 2026”. It still waits for you.\n")


def test_a_code_is_told_with_how_long_it_is_good_and_in_whose_name() -> None:
    due = code_due()
    (mail,) = composing.one_time_codes(due, "secret")
    assert (mail.subject, mail.sender_name, mail.expires_at) == ("Your code for Acme", "Acme", due.expires_at)
    assert mail.text.startswith("Hello Bo Buyer,\n\nyour code to open “Lease” is:\n\n" + code_of("secret", "s") + "\n")
    assert "within 10 minutes" in mail.text
    (unnamed,) = composing.one_time_codes(due.model_copy(update={"account_name": " "}), "secret")
    assert (unnamed.subject, unnamed.sender_name) == ("Your code for Countersign", "Countersign")


def test_a_party_s_mails_show_the_company_that_asks_them() -> None:
    logo = BlobRef(key="submissions/31/logo", sha256="0" * 64, size=10, media_type="image/png")
    own, other = party(1, company_name="Bank of Acme", logo=logo), party(2)
    mail, copied, others = (
        composing.invitations(invitation(own))[0],
        *composing.completions(completion(own, other), 0)[:2],
    )
    assert [(one.sender_name, one.logo) for one in (mail, copied)] == [("Bank of Acme", logo)] * 2
    assert (others.sender_name, others.logo) == ("Acme Ltd", None)


def test_invitations_and_reminders_show_the_first_page() -> None:
    due = invitation(party(1), first_page=thumbnail(), submission_name='Lease "2026" <b>')
    reminder = ReminderDue(**{**dict(due), "reminder_id": "r-1", "number": 1})
    for mail in (
        *composing.invitations(due),
        *composing.reminders(reminder),
        *composing.invitations(due.model_copy(update={"message": Message(body="Sign here: {{submitter.link}}")})),
    ):
        assert mail.first_page == thumbnail()
        shown = re.findall(r"<!--first_page-->(.*?)<!--/first_page-->", mail.html, re.DOTALL)
        (attributes,) = re.findall(r"<img ([^>]*)>", shown[0])
        assert 'src="cid:first_page"' in attributes
        assert 'alt="First page of “Lease &#34;2026&#34; &lt;b&gt;”"' in attributes
        assert re.findall(r'href="([^"]*)"', shown[0]) == ["https://sign.example.com/s/slug1"]
        assert "First page" not in mail.text
    (plain,) = composing.invitations(invitation(party(1)))
    assert (plain.first_page, "first_page" in plain.html) == (None, False)
    (later,) = composing.links("e-1", link())
    assert (later.first_page, "first_page" in later.html) == (None, False)


def test_whoever_has_no_name_is_called_something() -> None:
    due = invitation(party(1), sender_name="", account=Account(name=""))
    (mail,) = composing.invitations(due)
    assert (mail.subject, mail.sender_name) == ("Countersign asks you to sign “Lease 2026”", "Countersign")
    (mail,) = composing.invitations(invitation(party(1), sender_name=""))
    assert mail.subject == "Acme Ltd asks you to sign “Lease 2026”"
    nobody = party(1, name="", role="").model_copy(update={"email": None})
    due_decline = DeclineMail(context=context(nobody, account=Account(name="")), submitter_id=1, reason="")
    (mail,) = composing.declines(due_decline)
    assert (mail.subject, mail.sender_name) == ("“Lease 2026” was declined by A signer", "Countersign")
    url = WebhookDisabled(webhook_id=4, url="hooks", reason="x", admins=["a@x.example"])
    assert "to hooks was" in composing.webhooks_disabled("e-1", url, "https://sign.example.com")[0].subject


def cut(longest: int) -> list[tuple[str, str]]:
    """A text that is as long as it may be, and one that is longer; with what is shown of each."""
    return [("x" * longest, "x" * longest), ("x" * (longest + 1), "x" * (longest - 1) + "…")]


def test_what_would_fill_the_mail_is_cut() -> None:
    for name, shown in cut(150):
        assert f"“{shown}”" in composing.invitations(invitation(party(1), submission_name=name))[0].text
        assert composing.file_name(file(name)) == f"{shown}.pdf"
        (mail,) = composing.one_time_codes(code_due(submission_name=name), "secret")
        assert f"“{shown}”" in mail.text
    for name, shown in cut(100):
        (mail,) = composing.invitations(invitation(party(1), sender_name=name, account=Account(name=name)))
        assert (mail.subject, mail.sender_name) == (f"{shown} asks you to sign “Lease 2026”", shown)
        assert mail.text.endswith(f"-- \n{shown}\n")
        (mail,) = composing.one_time_codes(code_due(account_name=name), "secret")
        assert mail.sender_name == shown
        assert mail.text.endswith(f"-- \n{shown}\n")
        due = DeclineMail(context=context(party(1, name=name), account=Account(name=name)), submitter_id=1, reason="")
        (mail,) = composing.declines(due)
        assert (mail.subject, mail.sender_name) == (f"“Lease 2026” was declined by {shown}", shown)
    for reason, shown in cut(500):
        disabled = WebhookDisabled(webhook_id=4, url=reason, reason=reason, admins=["a@x.example"])
        (mail,) = composing.webhooks_disabled("e-1", disabled, "https://sign.example.com")
        assert f"delivered to:\n{shown}\n" in mail.text
        assert f"The reason: {shown}\n" in mail.text
    for reason, shown in cut(1000):
        assert f"\n> {shown}\n" in composing.declines(decline(reason))[0].text
    lines = [f"line {number}." for number in range(51)]
    text = composing.declines(decline("\n\n".join(lines[:25]) + "\n\n" + lines[25]))[0].text
    assert "> line 0.\n> line 1.\n" in text, "blank lines are left out"
    (mail,) = composing.declines(decline("\n".join(lines)))
    assert "> line 49." in mail.text
    assert "> line 50." not in mail.text


def test_a_mail_without_files_has_none_to_be_left_out() -> None:
    (copied, *_) = composing.completions(completion(copy_attach_documents=False, copy_attach_audit=False), 10_000_000)
    assert (list(copied.files), copied.unattached) == ([], None)


HOSTILE = '"><script>alert(1)</script>\r\nBcc: evil@example.com\u202e{{7*7}}{% raw %}'


def test_hostile_names_are_only_names() -> None:
    parties = [party(1, name=HOSTILE, role=HOSTILE)]
    more: dict[str, Any] = {
        "submission_name": HOSTILE,
        "sender_name": HOSTILE,
        "account": Account(name=HOSTILE),
        "template_name": HOSTILE,
    }
    mails = [
        *composing.invitations(invitation(*parties, **more)),
        *composing.completions(completion(*parties, sender=more, documents=[file(HOSTILE)]), 10_000_000),
        *composing.completions(completion(*parties, sender=more, documents=[file(HOSTILE)]), 0),
        *composing.declines(decline(HOSTILE, **more)),
        *composing.wrong_recipients("e-1", wrong_recipient(HOSTILE, **more)),
    ]
    assert len(mails) == 7
    for mail in mails:
        for line in (mail.subject, mail.sender_name, mail.letter.to_name):
            assert line == addresses.one_line(line)
        assert "<script>" not in mail.html
        assert "\u202e" not in mail.text + mail.html
        assert "{{7*7}}" in mail.subject
        assert "\nBcc:" not in mail.text


LONG = "Security Department of the Big Bank of Wherever International Holdings"


@pytest.mark.parametrize(
    "name",
    [
        "Ann Ray",
        "Acme, Inc.",
        'Ann "the boss" Ray (buyer)',
        "ceo@bank.example",
        f"ceo@bank.example, {LONG} Ltd ,x",
        f"{LONG} <ceo@bank.example>, x",
        f'"{LONG}" <ceo@bank.example>; group: a@b.example;',
        "=?utf-8?q?ceo?=",
        "=?utf-8?q?ceo=40bank=2Eexample=2C?= <ceo@bank.example>, x",
        "株式会社, ceo@bank.example " * 4,
        "a" * 100,
        "\\" * 60 + '",<ceo@bank.example>',
    ],
)
@pytest.mark.parametrize("address", ["ann@example.com", "änn@example.com", f"{'a' * 60}@{'b' * 60}.example.com"])
def test_a_name_is_never_read_as_an_address(name: str, address: str) -> None:
    """The judges are the standard library's two parsers, of which neither wrote the header."""
    envelope = Envelope(name, "no-reply@localhost", name, address, [address], "Hello", "<1@x>", datetime.now(UTC))
    raw = build(envelope, "text", "<p>html</p>").replace("ä".encode(), b"ae")
    older, newer = (BytesParser(policy=policy).parsebytes(raw) for policy in (compat32, default))
    for header, expected in (("From", "no-reply@localhost"), ("To", address), ("Reply-To", address)):
        headers: Any = older.get_all(header)
        (written,) = headers
        ((shown, found),) = getaddresses([written])
        assert found == expected.replace("ä", "ae")
        assert [f"{one.username}@{one.domain}" for one in newer[header].addresses] == [found]
        if header != "Reply-To":
            assert str(make_header(decode_header(shown))) == addresses.one_line(name, 100)
    assert max(map(len, raw.partition(b"\r\n\r\n")[0].split(b"\r\n"))) <= 160


NASTY = st.sampled_from(
    [
        *(
            ",",
            ";",
            ":",
            '"',
            "\\",
            "(",
            ")",
            "<",
            ">",
            "@",
            ".",
            "..",
            " ",
            "\t",
            "\r\n",
            "é",
            "株",
            "\u202e",
            "\x00",
            "\x7f",
        ),
        *("ceo@bank.example", "<ceo@bank.example>", "group: a@b.example;", "=?utf-8?q?a=2C?=", "Bcc: x@y.example"),
        *(LONG, "x" * 80),
    ]
)


@given(st.lists(NASTY | st.text(max_size=12), max_size=14).map("".join))
@example(f"ceo@bank.example, {LONG} Ltd ,x")
@example(f'"{LONG}" <ceo@bank.example>, x')
def test_each_header_has_one_address_by_the_grammar_of_the_standard(name: str) -> None:
    """The judge is RFC 5322's grammar (``mailboxes``), no library for e-mail."""
    sender, address = "no-reply@localhost", "ann@example.com"
    raw = build(
        Envelope(name, sender, name, address, [address], "Hello", "<1@x>", datetime.now(UTC)), "text", "<p>x</p>"
    )
    head = raw.partition(b"\r\n\r\n")[0].decode()
    fields = [one.partition(": ") for one in re.split(r"\r\n(?![ \t])", head)]
    assert len({field.lower() for field, _, _ in fields}) == len(fields)
    assert "bcc" not in {field.lower() for field, _, _ in fields}
    values = {field: value for field, _, value in fields}
    assert {field: mailboxes(values[field]) for field in ("From", "To", "Reply-To")} == {
        "From": [sender],
        "To": [address],
        "Reply-To": [address],
    }


def test_the_judge_of_headers_sees_what_it_must_see() -> None:
    assert mailboxes("Ann <a@x.example>, b@y.example") == ["a@x.example", "b@y.example"]
    assert mailboxes('"Acme, Inc. <b@y.example>" <a@x.example>') == ["a@x.example"]
    for wrong in ("Acme, Inc. <a@x.example>", "ceo@bank.example <a@x.example>", "a@x.example\r\nBcc: b@y.example", ""):
        with pytest.raises(UnexpectedInput):
            mailboxes(wrong)


@pytest.mark.parametrize(
    ("address", "good"),
    [
        ("a@example.com", True),
        ("first.last+tag@sub.example.co", True),
        ("müller@exämple.de", True),
        ("a@localhost", True),
        ("a@b@c", False),
        ("a b@example.com", False),
        ("a@example.com\r\nRCPT TO:<evil@example.com>", False),
        ("<a@example.com>", False),
        ("a@example..com", False),
        ("a\x00@example.com", False),
        ("@example.com", False),
        ("a@", False),
        ("", False),
        ("x" * 65 + "@example.com", False),
    ],
)
def test_addresses(address: str, good: bool) -> None:
    assert addresses.valid(address) is good
    assert addresses.split(address) == ([address] if good else [])


def test_addresses_on_the_wire_are_ascii_where_they_can_be() -> None:
    assert addresses.for_wire("a@exämple.de") == "a@xn--exmple-cua.de"
    assert addresses.for_wire("a@Straße.de") == "a@xn--strae-oqa.de", "strasse.de is somebody else's"
    assert addresses.for_wire("a@☃.net") == "a@xn--n3h.net"
    assert addresses.for_wire(f"a@{'ä' * 70}.de") == f"a@{'ä' * 70}.de", "no domain: the server says so"
    assert addresses.for_wire("a@example.de") == "a@example.de"
