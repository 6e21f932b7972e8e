"""Each mail is in its reader's language, and nothing of ours in it stands outside of the files of messages."""

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from contracts.events import HandedOver, ReminderDue
from contracts.languages.choosing import languages
from contracts.languages.saying import messages
from services.notifications.messages import composing
from services.notifications.messages.composing import Mail
from services.notifications.sending.phone_messages import invitation_text
from tests.support.judges.words.marks import unmarked
from tests.support.material.letters import (
    completion,
    decline,
    delegation,
    invitation,
    link,
    party,
    question,
    sent_back,
    thumbnail,
    wrong_recipient,
)
from tests.unit.notifications.test_letters import code_due

SOURCES = Path(composing.__file__).parents[1]


class _Text(HTMLParser):
    """The text of a page, without its head."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.language: dict[str, str | None] = {}
        self.tags: list[tuple[str, list[str]]] = []
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, [name for name, _ in attrs]))
        self._hidden = self._hidden or tag == "head"
        self.language = dict(attrs) if tag == "html" else self.language
        self.text += "" if tag in ("bdi", "strong", "a") else " "

    def handle_endtag(self, tag: str) -> None:
        self._hidden = self._hidden and tag != "head"

    def handle_data(self, data: str) -> None:
        self.text += "" if self._hidden else data


def page(mail: Mail) -> _Text:
    parser = _Text()
    parser.feed(mail.html)
    return parser


def every_mail(lang: str | None, locale: str, name: str = "Bo") -> dict[str, Mail]:
    """One of each kind: to a party called ``name`` that speaks ``lang``, to a sender whose account is in ``locale``."""
    bo = party(1, name=name).model_copy(update={"lang": lang, "receipt": "7K2M", "receipt_url": "https://x.example/r"})
    until = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)

    def spoken(due: Any) -> Any:
        due.context.account.locale = locale
        return due

    asked = spoken(invitation(bo, expire_at=until))
    reminder = ReminderDue(**{**dict(asked), "reminder_id": "r-1", "number": 1})
    filled = spoken(invitation(bo, needs_signature=False))
    again = ReminderDue(**{**dict(filled), "reminder_id": "r-1", "number": 1})
    done = spoken(completion(bo))
    handed_over = asked.model_copy(update={"handed_over": HandedOver(by="Bo Buyer", reason="Moved")})
    copy, to_sender = composing.completions(done, 10**9)[0], composing.completions(done, 10**9)[-1]
    return {
        "invitation": composing.invitations(asked)[0],
        "invitation with a picture": composing.invitations(asked.model_copy(update={"first_page": thumbnail()}))[0],
        "invitation to fill in": composing.invitations(filled)[0],
        "reminder": composing.reminders(reminder)[0],
        "reminder to fill in": composing.reminders(again)[0],
        "copy": copy,
        "linked copy": composing.completions(done, 0)[0],
        "code": composing.one_time_codes(code_due(lang=lang), "secret")[0],
        "completed": to_sender,
        "linked": composing.completions(done, 0)[-1],
        "declined": composing.declines(spoken(decline("Too dear")))[0],
        "declined without a reason": composing.declines(spoken(decline("")))[0],
        "handed over": composing.delegations("e-1", spoken(delegation("Moved")))[0],
        "invitation of another": composing.invitations(handed_over)[0],
        "later": composing.links("e-1", link().model_copy(update={"context": asked.context}))[0],
        "asked": composing.questions("e-1", spoken(question("Moved")))[0],
        "asked by somebody": composing.questions("e-1", spoken(question("Moved", known=False)))[0],
        "sent back": composing.returns("e-1", spoken(sent_back("Moved")))[0],
        "corrected": composing.invitations(asked.model_copy(update={"corrected": True}))[0],
        "wrong recipient": composing.wrong_recipients("e-1", spoken(wrong_recipient("Moved")))[0],
    }


def test_nothing_of_ours_is_outside_of_the_files() -> None:
    known = [
        "Lease 2026",
        "Lease",
        "Ana Ray",
        "Acme Ltd",
        "Acme",
        "Audit Log",
        ".pdf",
        "Bo Buyer",
        "Bo",
        "Too dear",
        "Moved",
        "7K2M",
    ]
    for kind, mail in every_mail("qps", "qps").items():
        links = re.findall(r"https?://\S+", mail.text)
        for where in (mail.subject, mail.text, page(mail).text):
            assert unmarked(where, [*links, *known, "signer1@example.com"]) == [], (kind, where)


def test_every_message_of_mails_is_said_somewhere() -> None:
    sources = "".join(path.read_text() for path in SOURCES.rglob("*") if path.suffix in (".html", ".txt", ".py"))
    keys = set(re.findall(r'"([a-z_]+(?:\.[a-z_]+)*)"', sources))
    built = {
        f"{kind}.{does}{end}"
        for kind in ("invitation", "reminder")
        for does in ("sign", "fill_in", "approve", "view")
        for end in ("", ".subject")
    }
    built |= {
        f"{does}{end}" for does in ("sign", "fill_in", "approve", "view") for end in (".address", ".alone", ".button")
    }
    built |= {f"{does}.next" for does in ("sign", "fill_in", "approve")}
    deeds = ("signed", "approved", "by_sender", "viewed")
    built |= {f"{when}.{deed}" for when in ("completed", "sent_copy") for deed in deeds} | {"completed.sent_to"}
    assert set(messages("en", "mail")) - keys - built == set()


def test_parties_read_their_language_and_senders_that_of_the_account() -> None:
    of_sender = (
        "completed",
        "linked",
        "declined",
        "declined without a reason",
        "wrong recipient",
        "handed over",
        "sent back",
        "asked",
        "asked by somebody",
    )
    for kind, mail in every_mail("qps", "en-GB").items():
        assert page(mail).language == {"lang": "en" if kind in of_sender else "qps", "dir": "ltr"}, kind
        assert ("⟦" in mail.subject) == (kind not in of_sender), kind
    for kind, mail in every_mail(None, "qps").items():
        assert ("⟦" in mail.subject) == (kind != "code"), kind


@pytest.mark.parametrize(("lang", "locale", "marked"), [("qps", "en", True), (None, "qps", True), ("en", "qps", False)])
def test_text_messages_are_in_the_readers_language(lang: str | None, locale: str, marked: bool) -> None:
    due = invitation(party(1).model_copy(update={"lang": lang}))
    due.context.account.locale = locale
    assert invitation_text(due, "Acme", "https://x.example/s/1").startswith("⟦") == marked  # type: ignore[arg-type]


@pytest.mark.parametrize("tag", languages())
def test_hostile_names_make_no_markup_in_any_language(tag: str) -> None:
    """The mails have the tags that they have for anybody, and say the name as it is."""
    hostile = '"><img src=https://evil.example/x onerror=alert(1)></p> {sender} {{7*7}}'
    harmless = every_mail(tag, tag)
    said = set()
    for kind, mail in every_mail(tag, tag, hostile).items():
        assert page(mail).tags == page(harmless[kind]).tags, kind
        said |= {kind} if hostile in " ".join(page(mail).text.split()) else set()
    assert {"invitation", "reminder", "completed"} <= said


def test_a_name_is_no_markup_in_a_sentence() -> None:
    due = invitation(party(1, name="<b>{sender}</b>"))
    html = composing.invitations(due)[0].html
    assert "<bdi>&lt;b&gt;{sender}&lt;/b&gt;</bdi>" in html
