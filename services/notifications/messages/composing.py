"""Compose mails, each in its reader's language. How a mail is laid out is a Jinja template in ``messages/``, what it says the
section ``mail`` of contracts.languages; a message that an API user wrote is not a template and never becomes one
(``variables``, ``markdown``)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from contracts.blobs import BlobRef
from contracts.events import (
    CodeDue,
    CompletionMails,
    DeclineMail,
    DelegatedMail,
    InvitationDue,
    LinkMail,
    MailContext,
    MailedFile,
    ProviderProblem,
    QuestionMail,
    Recipient,
    ReminderDue,
    ReturnedMail,
    SentCopyMails,
    StampBalanceLow,
    WebhookDisabled,
    WrongRecipientMail,
)
from contracts.formats.one_time_code import code_of
from contracts.languages.formatting import moment
from contracts.languages.saying import ISOLATES, Language, Section, language_for
from contracts.rpc.submissions.api import Message
from contracts.types import ActsAs
from services.notifications import addresses, domain
from services.notifications.addresses import one_line
from services.notifications.domain import Kind, Letter
from services.notifications.messages import markdown
from services.notifications.messages.variables import Variables

_TEXTS = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
    autoescape=select_autoescape(["html"]),
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)

LONGEST_BODY = 20_000
_ENGLISH = language_for("en")
_WITHOUT_ISOLATES = str.maketrans(dict.fromkeys(ISOLATES))


@dataclass(frozen=True)
class Mail:
    """A letter with its words. ``unattached``: the words for when the files could not go along after all. ``logo`` and
    ``first_page`` are shown in the HTML (``sending.inline_pictures``). After ``expires_at`` it is of no use to anybody."""

    letter: Letter
    sender_name: str
    subject: str
    text: str
    html: str
    links: list[str]
    files: Sequence[MailedFile] = ()
    unattached: dict[str, str] | None = None
    logo: BlobRef | None = None
    first_page: BlobRef | None = None
    expires_at: datetime | None = None


def invitations(due: InvitationDue) -> list[Mail]:
    """Write the invitations: our text, or the API user's message, with the link appended unless the message has it."""
    mails = []
    for letter in domain.invitation(due):
        facts = _facts_for_signer(due, letter) | {"by": "", "reason": [], "corrected": due.corrected}
        if due.handed_over is not None:
            facts |= {"by": one_line(due.handed_over.by, 100), "reason": _lines(due.handed_over.reason)}
        mail = replace(_mail(letter, facts), first_page=due.first_page)
        mails.append(_with_message(mail, due.message, due.context, facts))
    return mails


def reminders(due: ReminderDue) -> list[Mail]:
    """Our text, whatever the invitation said."""
    return [
        replace(_mail(letter, _facts_for_signer(due, letter)), first_page=due.first_page)
        for letter in domain.reminder(due)
    ]


def completions(due: CompletionMails, most_bytes: int) -> list[Mail]:
    """Files are attached when all that this recipient gets fits, else they are linked."""
    return [_completion(letter, due, most_bytes) for letter in domain.completion(due)]


def sent_copies(due: SentCopyMails, most_bytes: int) -> list[Mail]:
    """Tell who gets a copy of what was sent, to whom it went; with the documents as they are."""
    language = _language(due.context)
    return [
        _with_files(
            letter,
            _facts(due.context)
            | {
                "name": letter.to_name,
                "link": letter.link,
                "parties": _by_deed(due.context.parties, language, done=False),
                "expires": _expires(due.context, language),
            },
            most_bytes,
        )
        for letter in domain.sent_copy(due)
    ]


def declines(due: DeclineMail) -> list[Mail]:
    return [_refusal(letter, due) for letter in domain.declined(due)]


def wrong_recipients(event_id: str, due: WrongRecipientMail) -> list[Mail]:
    return [_refusal(letter, due) for letter in domain.wrong_recipient(event_id, due)]


def delegations(event_id: str, due: DelegatedMail) -> list[Mail]:
    """The sender reads who has handed what over to whom, and why."""
    language, after = _language(due.context), domain.find_party(due.context.parties, due.submitter_id)
    facts = _facts(due.context) | {
        "party": one_line(due.before_name, 100) or _role(after) or language.say("mail", "somebody"),
        "email": one_line(due.before_email),
        "other": _display_name(after, language),
        "other_email": one_line(after.email if after else None),
        "reason": _lines(due.reason),
    }
    return [
        _mail(letter, facts | {"name": letter.to_name, "link": letter.link}, due.context.account.name)
        for letter in domain.delegated(event_id, due)
    ]


def _role(party: Recipient | None) -> str:
    return one_line(party.role if party else "", 100)


def _lines(text: str) -> list[str]:
    """Return what somebody wrote, as the lines of a mail."""
    return [line for line in (one_line(line, 1000) for line in text.splitlines()[:50]) if line]


def returns(event_id: str, due: ReturnedMail) -> list[Mail]:
    return [_refusal(letter, due) for letter in domain.returned(event_id, due)]


def questions(event_id: str, due: QuestionMail) -> list[Mail]:
    return [_refusal(letter, due) for letter in domain.question(event_id, due)]


def links(event_id: str, due: LinkMail) -> list[Mail]:
    """The link to a form that its signer goes on with later."""
    return [
        _mail(letter, _facts_for_signer(InvitationDue(invitation_id=event_id, **dict(due)), letter))
        for letter in domain.later(event_id, due)
    ]


def _refusal(letter: Letter, due: DeclineMail | WrongRecipientMail | ReturnedMail | QuestionMail) -> Mail:
    """The sender reads who does not sign, or not yet, and why."""
    facts = {
        "name": letter.to_name,
        "link": letter.link,
        "party": _display_name(letter.party, _language(due.context)),
        "email": one_line(letter.party.email if letter.party else None),
        "approves": letter.party is not None and letter.party.acts_as == ActsAs.APPROVER,
        "reason": _lines(due.reason),
        "replies": bool(letter.reply_to),
    }
    return _mail(letter, _facts(due.context) | facts, due.context.account.name)


def one_time_codes(due: CodeDue, secret: str) -> list[Mail]:
    """The code is made here, of the event's seed (contracts.formats.one_time_code)."""
    account = one_line(due.account_name, 100) or "Countersign"
    facts = {
        "account": account,
        "logo": None,
        "language": language_for(due.lang),
        "code": code_of(secret, due.seed),
        "submission": one_line(due.submission_name, 150),
        "minutes": due.minutes,
    }
    mails = [_mail(letter, facts | {"name": letter.to_name}) for letter in domain.one_time_code(due)]
    return [replace(mail, expires_at=due.expires_at) for mail in mails]


def webhooks_disabled(event_id: str, disabled: WebhookDisabled, base_url: str) -> list[Mail]:
    facts = {
        "account": "Countersign",
        "logo": None,
        "language": _ENGLISH,
        "number": disabled.webhook_id,
        "url": one_line(disabled.url, 500),
        "host": one_line(urlsplit(disabled.url).hostname or disabled.url),
        "reason": one_line(disabled.reason, 500),
        "base_url": base_url,
    }
    return [_mail(letter, facts) for letter in domain.webhook_disabled(event_id, disabled)]


def provider_problems(problem: ProviderProblem, admins: Sequence[str], at: datetime, base_url: str) -> list[Mail]:
    facts = {
        "account": "Countersign",
        "logo": None,
        "language": _ENGLISH,
        "feature": problem.feature,
        "provider": one_line(problem.provider, 200),
        "message": one_line(problem.message, 1000),
        "submission": one_line(problem.submission_name, 150),
        "number": problem.submission_id,
        "link": problem.submission_link,
        "base_url": base_url,
    }
    return [_mail(letter, facts) for letter in domain.provider_problem(problem, admins, at)]


def stamp_balances_low(event_id: str, low: StampBalanceLow, admins: Sequence[str]) -> list[Mail]:
    facts = {
        "account": "Countersign",
        "logo": None,
        "language": _ENGLISH,
        "provider": one_line(low.provider, 200),
        "balance": low.balance,
        "alert_below": low.alert_below,
    }
    return [_mail(letter, facts) for letter in domain.stamp_balance_low(event_id, admins)]


def _facts_for_signer(due: InvitationDue | ReminderDue, letter: Letter) -> dict[str, Any]:
    return _facts(due.context, letter.party) | {
        "name": letter.to_name,
        "link": letter.link,
        "does": _deed(due, letter.party),
        "first_page": due.first_page,
        "expires": _expires(due.context, _language(due.context, letter.party)),
    }


def _deed(due: InvitationDue | ReminderDue, party: Recipient | None) -> str:
    """Return what the party is asked to do, as the keys of messages begin."""
    if party is not None and party.acts_as in (ActsAs.APPROVER, ActsAs.VIEWER):
        return "approve" if party.acts_as == ActsAs.APPROVER else "view"
    return "sign" if due.needs_signature else "fill_in"


def _completion(letter: Letter, due: CompletionMails, most_bytes: int) -> Mail:
    reader = letter.party if letter.kind is Kind.DOCUMENTS_COPY else None
    language = _language(due.context, reader)
    facts = _facts(due.context, reader) | {
        "name": letter.to_name,
        "link": letter.link,
        "parties": _by_deed(due.context.parties, language, done=True),
        "copies": [address for entry in due.cc for address in addresses.split(entry)],
        "receipt": reader.receipt if reader else None,
        "receipt_url": reader.receipt_url if reader else None,
        "completed": moment(due.completed_at, language.locale, due.context.account.time_zone),
    }
    return _with_files(letter, facts, most_bytes)


def _with_files(letter: Letter, facts: dict[str, Any], most_bytes: int) -> Mail:
    """Attach the letter's files where they fit, else link to them."""
    files = list(letter.files)
    linked = _mail(letter, facts | {"attached": [], "linked": _linked(files)})
    if not files or not domain.fits(files, most_bytes):
        return linked
    attached = _mail(letter, facts | {"attached": [file_name(file) for file in files], "linked": []})
    return replace(attached, files=files, unattached={"text": linked.text, "html": linked.html})


def _with_message(mail: Mail, message: Message | None, context: MailContext, facts: dict[str, Any]) -> Mail:
    variables = Variables(context, mail.letter.party)
    subject = variables.in_line(((message.subject if message else None) or "").strip()) or mail.subject
    body = ((message.body if message else None) or "").strip()[:LONGEST_BODY]
    if not body:
        return replace(mail, subject=subject)
    content = markdown.render_body(body, variables)
    form = mail.letter.link
    facts = facts | {"form": form, "link": "" if variables.names_link(body) else form, "subject": subject}
    return replace(
        mail,
        subject=subject,
        text=_render("message/body.txt", facts | {"body": content.text}),
        html=_render("message/body.html", facts | {"body": Markup(content.html)}),  # noqa: S704 - cleaned by nh3
        links=list(dict.fromkeys([*content.links, mail.letter.link])),
    )


def _mail(letter: Letter, facts: dict[str, Any], sender_name: str = "") -> Mail:
    subject = one_line(_render(f"{letter.kind}/subject.txt", facts).translate(_WITHOUT_ISOLATES))
    facts = facts | {"subject": subject}
    return Mail(
        letter=letter,
        sender_name=one_line(sender_name or facts["account"], 100) or "Countersign",
        subject=subject,
        text=_render(f"{letter.kind}/body.txt", facts),
        html=_render(f"{letter.kind}/body.html", facts),
        links=[
            *([letter.link] if letter.link else []),
            *(file["url"] for file in facts.get("linked", ())),
            *([facts["receipt_url"]] if facts.get("receipt_url") else []),
        ],
        logo=facts.get("logo"),
    )


def _render(template: str, facts: dict[str, Any]) -> str:
    language: Language = facts["language"]
    messages = language.section("mail")
    start = "right" if language.direction == "rtl" else "left"
    say = _in_html(messages) if template.endswith(".html") else messages
    return _TEXTS.get_template(template).render(facts | {"say": say, "start": start})


def _in_html(messages: Section) -> Callable[..., Markup]:
    """Say messages among HTML: they and what is filled in are text, but for what is markup already."""

    def say(key: str, **values: object) -> Markup:
        pieces = messages.pieces(key, **values)
        return Markup("").join(escape(text if name is None else value) for text, name, value in pieces)

    return say


def _facts(context: MailContext, reader: Recipient | None = None) -> dict[str, Any]:
    """``reader`` is the party that reads the mail: it sees its own branding."""
    name = (reader.company_name if reader else "") or context.account.name
    account = one_line(name, 100) or "Countersign"
    return {
        "account": account,
        "logo": reader.logo if reader else None,
        "language": _language(context, reader),
        "submission": one_line(context.submission_name, 150),
        "sender": one_line(context.sender_name, 100) or account,
    }


def _language(context: MailContext, reader: Recipient | None = None) -> Language:
    """Return the reader's language: a party's own, else the account's."""
    return language_for(reader.lang if reader else None, context.account.locale)


def _display_name(party: Recipient | None, language: Language) -> str:
    """Return a signer's name, else their role: addresses are nobody else's business."""
    return one_line((party.name or party.role) if party else "", 100) or language.say("mail", "somebody")


def _by_deed(parties: Sequence[Recipient], language: Language, *, done: bool) -> list[tuple[str, list[str]]]:
    """Say who signs, approves and reads, or, when all is ``done``, who has: each deed's key with the names. Whoever read
    nothing is not said to have."""
    deeds: dict[str, list[str]] = {"signed": [], "approved": [], "by_sender": [], "viewed": [], "sent_to": []}
    for party in parties:
        if party.acts_as == ActsAs.VIEWER:
            deed = "viewed" if party.opened or not done else "sent_to"
        elif party.completed_by_api:
            deed = "by_sender"
        else:
            deed = "approved" if party.acts_as == ActsAs.APPROVER else "signed"
        deeds[deed].append(_display_name(party, language))
    prefix = "completed" if done else "sent_copy"
    return [(f"{prefix}.{deed}", names) for deed, names in deeds.items() if names]


def _linked(files: Sequence[MailedFile]) -> list[dict[str, str]]:
    return [{"name": file_name(file), "url": file.link.url} for file in files]


def file_name(file: MailedFile) -> str:
    """Return the file's name as an attachment: a name, never a path."""
    name = one_line(file.name.replace("/", "_").replace("\\", "_"), 150)
    return name if name.lower().endswith(".pdf") else f"{name}.pdf"


def _expires(context: MailContext, language: Language) -> str:
    if context.expire_at is None:
        return ""
    return moment(context.expire_at, language.locale, context.account.time_zone)
