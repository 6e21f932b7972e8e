"""Decide who gets which mail: recipients, told apart by address; toggles; replies; what is attached and what is linked.

Pure: an event in, plans of letters out. What they say is ``composing``'s.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from contracts.events import (
    CodeDue,
    CompletionMails,
    DeclineMail,
    DelegatedMail,
    InvitationDue,
    LinkMail,
    MailedFile,
    ProviderProblem,
    QuestionMail,
    Recipient,
    ReminderDue,
    ReturnedMail,
    SentCopyMails,
    WebhookDisabled,
    WrongRecipientMail,
)
from contracts.types import Account
from services.notifications import addresses


class Kind(StrEnum):
    """The kinds of mail; each has its texts in ``messages/<kind>/``."""

    INVITATION = "invitation"
    REMINDER = "reminder"
    COMPLETED = "completed"
    DOCUMENTS_COPY = "documents_copy"
    SENT_COPY = "sent_copy"
    DECLINED = "declined"
    WRONG_RECIPIENT = "wrong_recipient"
    DELEGATED = "delegated"
    RETURNED = "returned"
    LATER = "later"
    QUESTION = "question"
    ONE_TIME_CODE = "one_time_code"
    WEBHOOK_DISABLED = "webhook_disabled"
    PROVIDER_PROBLEM = "provider_problem"
    STAMP_BALANCE_LOW = "stamp_balance_low"


@dataclass(frozen=True)
class Letter:
    """One mail to one address. ``key`` is the same whenever the same fact is told again.

    ``party`` is the recipient, when they are a party (``submitter_id`` where no more of them is known); ``link`` where the mail
    leads. ``files`` are what they are to get. ``slug`` is that of the signing link which lets its reader in: once that link is
    replaced, the letter is not sent. ``is_other``: it says something else than one that went there a moment ago.
    """

    kind: Kind
    key: str
    to_address: str
    to_name: str = ""
    reply_to: list[str] = field(default_factory=list)
    link: str = ""
    party: Recipient | None = None
    submitter_id: int | None = None
    files: Sequence[MailedFile] = ()
    slug: str | None = None
    is_other: bool = False


def invitation(due: InvitationDue) -> list[Letter]:
    """Address a letter to each address of the invited party; none when they have no address."""
    letters = _to_party(Kind.INVITATION, due.invitation_id, due)
    return [replace(letter, is_other=due.corrected) for letter in letters]


def reminder(due: ReminderDue) -> list[Letter]:
    """The same to one who was invited and has not signed."""
    return _to_party(Kind.REMINDER, due.reminder_id, due)


def later(event_id: str, due: LinkMail) -> list[Letter]:
    """The link, to one who goes on later."""
    return _to_party(Kind.LATER, event_id, due)


def _to_party(kind: Kind, number: str, due: InvitationDue | ReminderDue | LinkMail) -> list[Letter]:
    party = find_party(due.context.parties, due.submitter_id)
    if party is None:
        return []
    context = due.context
    own_reply = None if isinstance(due, LinkMail) else due.reply_to
    return [
        Letter(
            kind=kind,
            key=_key(kind, number, address),
            to_address=address,
            to_name=addresses.one_line(party.name),
            reply_to=addresses.replies_to([own_reply, context.reply_to, context.sender_email], but=address),
            link=party.link,
            party=party,
            slug=party.slug,
        )
        for address in _distinct(addresses.split(party.email))
    ]


def sent_copy(due: SentCopyMails) -> list[Letter]:
    """Address a letter to each of those who get a copy of what was sent."""
    context = due.context
    return [
        Letter(
            kind=Kind.SENT_COPY,
            key=_key(Kind.SENT_COPY, str(context.submission_id), address),
            to_address=address,
            reply_to=addresses.replies_to([context.reply_to, context.sender_email], but=address),
            link=context.submission_link,
            files=due.documents,
        )
        for address in _distinct(address for entry in due.cc for address in addresses.split(entry))
    ]


def completion(due: CompletionMails) -> list[Letter]:
    """Address copies to the signers, the sender's and the BCCs' mails. Whoever is several of these gets one mail, with
    everything that they are entitled to attached."""
    context, account = due.context, due.context.account
    number = f"{context.submission_id} {due.completed_at.isoformat()}"

    def letter(kind: Kind, address: str, files: Sequence[MailedFile]) -> Letter:
        replies = addresses.replies_to([context.reply_to, context.sender_email], but=address)
        return Letter(kind, _key("completion", number, address), address, reply_to=replies, files=files)

    letters: list[Letter] = []
    if due.copy_signers and account.documents_copy_email_enabled:
        copied = _copied_files(due, account)
        for party in context.parties:
            for address in addresses.split(party.email) if party.send_email else ():
                copy = letter(Kind.DOCUMENTS_COPY, address, copied)
                letters.append(replace(copy, to_name=addresses.one_line(party.name), link=party.link, party=party))
    files = _sender_files(due, account)
    if due.notify_sender and account.completed_notification_email_enabled:
        name = addresses.one_line(context.sender_name)
        letters += [
            replace(letter(Kind.COMPLETED, address, files), to_name=name, link=context.submission_link)
            for address in addresses.split(context.sender_email)
        ]
    copied = _copied_files(due, account)
    letters += [letter(Kind.COMPLETED, address, copied) for entry in due.cc for address in addresses.split(entry)]
    letters += [letter(Kind.COMPLETED, address, files) for entry in due.bcc for address in addresses.split(entry)]
    return _one_per_address(letters)


def declined(due: DeclineMail) -> list[Letter]:
    """Tell the sender, whose reply goes to whoever declined."""
    party = find_party(due.context.parties, due.submitter_id)
    readers = addresses.split(party.email) if party else []
    return [
        Letter(
            kind=Kind.DECLINED,
            key=_key(Kind.DECLINED, f"{due.context.submission_id} {due.submitter_id}", address),
            to_address=address,
            to_name=addresses.one_line(due.context.sender_name),
            reply_to=[reader for reader in readers if addresses.same(reader) != addresses.same(address)],
            link=due.context.submission_link,
            party=party,
        )
        for address in _distinct(addresses.split(due.context.sender_email))
    ]


def wrong_recipient(event_id: str, due: WrongRecipientMail) -> list[Letter]:
    """Tell the sender. A reply would go to somebody whom it does not concern: there is none."""
    return _to_sender(Kind.WRONG_RECIPIENT, event_id, due, [])


def delegated(event_id: str, due: DelegatedMail) -> list[Letter]:
    """Tell the sender, whose reply goes to whoever has handed it over."""
    return _to_sender(Kind.DELEGATED, event_id, due, addresses.split(due.before_email))


def returned(event_id: str, due: ReturnedMail) -> list[Letter]:
    """Tell the sender, whose reply goes to whoever has sent it back."""
    party = find_party(due.context.parties, due.submitter_id)
    return _to_sender(Kind.RETURNED, event_id, due, addresses.split(party.email) if party else [])


def question(event_id: str, due: QuestionMail) -> list[Letter]:
    """Ask the sender; a reply goes to whoever asks, where their address is known to be theirs."""
    party = find_party(due.context.parties, due.submitter_id)
    readers = addresses.split(party.email) if party and due.address_is_known else []
    return _to_sender(Kind.QUESTION, event_id, due, readers)


def _to_sender(
    kind: Kind,
    event_id: str,
    due: WrongRecipientMail | DelegatedMail | ReturnedMail | QuestionMail,
    readers: Sequence[str],
) -> list[Letter]:
    """Tell the sender of one party; a reply goes to the ``readers``. It may happen to one party more than once, so each fact is
    a mail of its own."""
    return [
        Letter(
            kind=kind,
            key=_key(kind, event_id, address),
            to_address=address,
            to_name=addresses.one_line(due.context.sender_name),
            reply_to=[reader for reader in readers if addresses.same(reader) != addresses.same(address)],
            link=due.context.submission_link,
            party=find_party(due.context.parties, due.submitter_id),
        )
        for address in _distinct(addresses.split(due.context.sender_email))
    ]


def one_time_code(due: CodeDue) -> list[Letter]:
    """A letter to the address that asked for the code. Nobody reads a reply to it."""
    return [
        Letter(
            kind=Kind.ONE_TIME_CODE,
            key=_key(Kind.ONE_TIME_CODE, due.code_id, address),
            to_address=address,
            to_name=addresses.one_line(due.to_name),
            submitter_id=due.submitter_id,
            slug=due.slug,
        )
        for address in addresses.split(due.to)
    ]


def webhook_disabled(event_id: str, disabled: WebhookDisabled) -> list[Letter]:
    """Tell the admins."""
    return [
        Letter(Kind.WEBHOOK_DISABLED, _key(Kind.WEBHOOK_DISABLED, event_id, email), email)
        for email in _addresses(disabled.admins)
    ]


def provider_problem(problem: ProviderProblem, admins: Sequence[str], at: datetime) -> list[Letter]:
    """Tell the admins, once an hour of the same trouble: it may be that of many submissions."""
    trouble = f"{problem.feature} {problem.provider} {problem.message}"
    subject = f"{hashlib.sha256(trouble.encode()).hexdigest()[:32]} {at:%Y-%m-%dT%H}"
    return [
        Letter(
            kind=Kind.PROVIDER_PROBLEM,
            key=_key(Kind.PROVIDER_PROBLEM, subject, email),
            to_address=email,
            link=problem.submission_link,
        )
        for email in _addresses(admins)
    ]


def stamp_balance_low(event_id: str, admins: Sequence[str]) -> list[Letter]:
    """Tell the admins."""
    return [
        Letter(Kind.STAMP_BALANCE_LOW, _key(Kind.STAMP_BALANCE_LOW, event_id, email), email)
        for email in _addresses(admins)
    ]


def _addresses(admins: Sequence[str]) -> list[str]:
    return _distinct(address for admin in admins for address in addresses.split(admin))


def fits(files: Iterable[MailedFile], most_bytes: int) -> bool:
    """Are the files small enough to be attached, all of them together?"""
    return sum(file.file.size for file in files) <= most_bytes


def message_id(key: str, sender: str) -> str:
    """RFC 5322 Message-ID: the same for every attempt, so that a mail that came twice is seen to be one."""
    return f"<{hashlib.sha256(key.encode()).hexdigest()[:40]}@{addresses.for_wire(sender).rpartition('@')[2]}>"


def thread_id(kind: str, submission_id: int | None, sender: str) -> str | None:
    """The Message-ID that the mails about a submission refer to (RFC 5322, 3.6.4). No mail has it: whichever comes first, the
    others are shown with it. A code is to be seen at once, and what admins are told is a matter of its own."""
    if submission_id is None or kind in _ALONE:
        return None
    return message_id(f"submission {submission_id}", sender)


_ALONE = frozenset({Kind.ONE_TIME_CODE, Kind.WEBHOOK_DISABLED, Kind.PROVIDER_PROBLEM, Kind.STAMP_BALANCE_LOW})


def find_party(parties: Iterable[Recipient], submitter_id: int) -> Recipient | None:
    return next((party for party in parties if party.submitter_id == submitter_id), None)


def _key(kind: str, subject: str, address: str) -> str:
    return f"{kind} {subject} {addresses.same(address)}"


def _distinct(emails: Iterable[str]) -> list[str]:
    distinct: dict[str, str] = {}
    for email in emails:
        distinct.setdefault(addresses.same(email), email)
    return list(distinct.values())


def _copied_files(due: CompletionMails, account: Account) -> list[MailedFile]:
    documents = due.copy_attach_documents and account.documents_copy_email_attach_documents
    audit = due.copy_attach_audit and account.documents_copy_email_attach_audit
    return _files(due, documents, audit)


def _sender_files(due: CompletionMails, account: Account) -> list[MailedFile]:
    documents = due.sender_attach_documents and account.completed_notification_email_attach_documents
    audit = due.sender_attach_audit and account.completed_notification_email_attach_audit
    return _files(due, documents, audit)


def _files(due: CompletionMails, documents: bool, audit: bool) -> list[MailedFile]:
    return [*(due.documents if documents else ()), *([due.audit_trail] if audit else ())]


def _one_per_address(letters: Iterable[Letter]) -> list[Letter]:
    """One letter to each address: the first one, with the files of all of them."""
    by_address: dict[str, Letter] = {}
    for letter in letters:
        first = by_address.setdefault(addresses.same(letter.to_address), letter)
        files = {file.file.key: file for file in (*first.files, *letter.files)}
        by_address[addresses.same(letter.to_address)] = replace(first, files=list(files.values()))
    return list(by_address.values())
