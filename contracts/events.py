"""Every event of the suite. An event states a fact, is written in the transaction that made it true, and is never lost.

Public events carry exactly the ``data`` that webhook receivers and pollers get (specification 6). They are numbered without
gaps per subject (``sequence``), so that receivers can be told in order whatever order the bus delivers in. Internal
events have ``sequence`` None and are seen by services only. ``submission.erased`` is both: what its receivers get is its
``public`` part.
"""

import builtins
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from contracts.blobs import BlobRef
from contracts.envelope import Envelope
from contracts.evidence.statements import Parts, SignedStatement, Statement
from contracts.providers import (
    CertsignChanged,
    CertsignRetried,
    ConfirmationChanged,
    ConfirmationLeft,
    ConfirmationRetried,
    DutystampChanged,
    DutystampRetried,
)
from contracts.rpc.rendering import ConfirmationOrder, SealRequest
from contracts.rpc.submissions.api import Message
from contracts.types import Account, Actor, DocumentLink, Moment, Notice, Tolerant


@dataclass(frozen=True)
class Event:
    """One kind of event: who emits it (``source``), what it carries. ``public`` ones reach webhook receivers."""

    source: str
    type: str
    model: builtins.type[BaseModel]
    public: bool = False

    def __post_init__(self) -> None:
        REGISTRY[self.type] = self


REGISTRY: dict[str, Event] = {}


def public_data(envelope: Envelope) -> "PublicData | None":
    """Read what the receivers of a public event are told; None for an erasure that an older version told to services only."""
    if envelope.type == SUBMISSION_ERASED.type:
        return Erased.model_validate(envelope.data).public
    return PublicData.model_validate(envelope.data)


class PublicData(Tolerant):
    """``data`` as the receiver gets it: a Submission, Submitter or Template (contracts.types) as JSON, plus
    what the polling endpoints' access rules ask: the template with its author and whether it is shared, and who created the
    submission. ``test``: it happened in test mode; whoever asks or listens in live mode is told nothing of it."""

    data: dict[str, Any]
    author_id: int | None = None
    template_id: int | None = None
    shared: bool = True
    created_by_id: int | None = None
    test: bool = False


FORM_VIEWED = Event("submissions", "form.viewed", PublicData, public=True)
FORM_STARTED = Event("submissions", "form.started", PublicData, public=True)
FORM_SIGNED = Event("submissions", "form.signed", PublicData, public=True)
FORM_COMPLETED = Event("submissions", "form.completed", PublicData, public=True)
FORM_DECLINED = Event("submissions", "form.declined", PublicData, public=True)
FORM_SENT = Event("submissions", "form.sent", PublicData, public=True)
SUBMISSION_CREATED = Event("submissions", "submission.created", PublicData, public=True)
SUBMISSION_COMPLETED = Event("submissions", "submission.completed", PublicData, public=True)
SUBMISSION_DECLINED = Event("submissions", "submission.declined", PublicData, public=True)
SUBMISSION_RETURNED = Event("submissions", "submission.returned", PublicData, public=True)
SUBMISSION_EXPIRED = Event("submissions", "submission.expired", PublicData, public=True)
SUBMISSION_ARCHIVED = Event("submissions", "submission.archived", PublicData, public=True)
SUBMISSION_STAMPED = Event("submissions", "submission.stamped", PublicData, public=True)
SUBMISSION_CERTSIGN_FAILED = Event("submissions", "submission.certsign_failed", PublicData, public=True)
TEMPLATE_CREATED = Event("templates", "template.created", PublicData, public=True)
TEMPLATE_UPDATED = Event("templates", "template.updated", PublicData, public=True)
TEMPLATE_ARCHIVED = Event("templates", "template.archived", PublicData, public=True)


class Recipient(Tolerant):
    """A party, as mails speak of them. ``values`` by field name, None where there is none yet, for the message variables.
    ``company_name`` and ``logo`` are what their own mails show, ``lang`` the language of those (None: the
    account's). ``receipt`` of their completion, with where it can be
    checked (``receipt_url``), in the mails after it. ``acts_as`` is what they are asked to do (None of an older version: to
    sign), ``opened`` that they have looked at it, ``completed_by_api`` that the sender has completed it for them."""

    submitter_id: int
    role: str
    name: str | None = None
    email: str | None = None
    link: str
    slug: str
    send_email: bool = True
    status: str = "pending"
    values: dict[str, Any] = Field(default_factory=dict)
    company_name: str = ""
    logo: BlobRef | None = None
    lang: str | None = None
    receipt: str | None = None
    receipt_url: str | None = None
    acts_as: str | None = None
    opened: bool = False
    completed_by_api: bool = False


class MailContext(Tolerant):
    """The data that every mail about a submission needs; the message variables are filled from it (peer facts 6.6). ``test``:
    it was made in test mode, and the mail is kept for testers instead of being sent."""

    submission_id: int
    submission_name: str
    submission_link: str
    template_id: int | None = None
    template_name: str | None = None
    expire_at: Moment | None = None
    account: Account
    sender_id: int | None = None
    sender_name: str | None = None
    sender_first_name: str | None = None
    sender_email: str | None = None
    reply_to: str | None = None
    parties: list[Recipient]
    test: bool = False


class HandedOver(Tolerant):
    """A signer has handed their form over: ``by`` is who that was (the name, else the role), ``reason`` in their words."""

    by: str
    reason: str = ""


class InvitationDue(Tolerant):
    """Invite this submitter now. ``invitation_id`` differs for each invitation asked for: one mail per id. ``handed_over``:
    another person was asked before, and has named this one. ``corrected``: they had it before, and it was sent back and
    corrected since. ``first_page``: the small picture of the document that the mail shows (rpc.rendering.DRAW_THUMBNAIL), when
    whoever has the link sees the document at once. It may be gone by the time that the mail leaves."""

    invitation_id: str
    context: MailContext
    submitter_id: int
    reply_to: str | None = None
    message: Message | None = None
    needs_signature: bool = True
    handed_over: HandedOver | None = None
    corrected: bool = False
    first_page: BlobRef | None = None


class ReminderDue(Tolerant):
    """Remind this submitter of their invitation. One mail per ``reminder_id``; ``number`` 1, 2 or 3. ``first_page``: as in
    InvitationDue."""

    reminder_id: str
    number: int
    context: MailContext
    submitter_id: int
    reply_to: str | None = None
    needs_signature: bool = True
    first_page: BlobRef | None = None


PHONE_OTP_WEBHOOK = "phone_otp_webhook"


class SmsDue(Tolerant):
    """Invite this submitter by SMS now, at ``phone``. ``invitation_id`` differs for each invitation asked for."""

    invitation_id: str
    context: MailContext
    submitter_id: int
    phone: str
    needs_signature: bool = True


class CodeDue(Tolerant):
    """Tell somebody a one-time code. The code itself is not here: it follows from ``seed`` (contracts.formats.one_time_code).

    ``method`` is ``email``, or ``phone``: then it goes to the account's phone OTP webhook, as JSON in ``phone_otp_webhook``
    (``url``, ``bearer_token``), sealed by contracts.evidence.sealed_text for the purpose PHONE_OTP_WEBHOOK. After
    ``expires_at``, ``minutes`` from when it was asked for, it is worth nothing and is not delivered any more.
    ``submission_id`` is None before there is a submission (shared links). ``test`` as in MailContext. ``slug`` is that of the
    signing link that it lets in to. ``lang`` is the reader's language (BCP 47).
    """

    code_id: str
    seed: str
    method: str
    to: str
    to_name: str | None = None
    submission_id: int | None = None
    submission_name: str
    submitter_id: int | None = None
    submitter_name: str | None = None
    submitter_email: str | None = None
    slug: str | None = None
    template_name: str | None = None
    phone_otp_webhook: str | None = None
    account_name: str
    lang: str | None = None
    minutes: int
    expires_at: Moment
    test: bool = False


class MailedFile(Tolerant):
    """A result file: attached when everything fits into 10 MB, else linked by ``link``."""

    name: str
    file: BlobRef
    link: DocumentLink


class SentCopyMails(Tolerant):
    """The submission was sent: those who get a copy of that (``cc``) are told to whom, with the documents as they are."""

    context: MailContext
    documents: list[MailedFile]
    cc: list[str]


class CompletionMails(Tolerant):
    """The submission is completed: tell the sender and BCCs, send copies to the signers (specification 2.8) and to ``cc``."""

    context: MailContext
    completed_at: Moment
    documents: list[MailedFile]
    audit_trail: MailedFile
    notify_sender: bool
    bcc: list[str] = Field(default_factory=list)
    cc: list[str] = Field(default_factory=list)
    sender_attach_documents: bool = True
    sender_attach_audit: bool = True
    copy_signers: bool = True
    copy_attach_documents: bool = True
    copy_attach_audit: bool = True


class DeclineMail(Tolerant):
    context: MailContext
    submitter_id: int
    reason: str = ""


class WrongRecipientMail(Tolerant):
    """Somebody who got the signing link of this submitter says that they are not this person; the link is no longer valid."""

    context: MailContext
    submitter_id: int
    reason: str = ""


class LinkMail(Tolerant):
    """This submitter goes on later, and wants the link to their form by mail. Each event is a mail of its own."""

    context: MailContext
    submitter_id: int


class QuestionMail(Tolerant):
    """This submitter asks the sender what ``reason`` says. ``address_is_known``: their address is not only what they say it
    is, so that a reply goes there."""

    context: MailContext
    submitter_id: int
    reason: str
    address_is_known: bool = True


class ReturnedMail(Tolerant):
    """This submitter has sent the submission back to be corrected."""

    context: MailContext
    submitter_id: int
    reason: str = ""


class DelegatedMail(Tolerant):
    """A signer has handed their form over: ``submitter_id`` is who has it now, ``before_name`` and ``before_email`` say who had
    it."""

    context: MailContext
    submitter_id: int
    before_name: str | None = None
    before_email: str | None = None
    reason: str = ""


class LinkReplaced(Tolerant):
    """The signing link with this slug is no longer valid: what waits to be sent with it must not be."""

    submission_id: int
    submitter_id: int
    slug: str


class Erased(Tolerant):
    """Removed for good: whoever keeps anything of it forgets it. Its files are removed by the emitter itself.

    ``documents``: SHA-256 (lower-case hex) of the documents that went with it and that no other submission brought along, as
    they came and as they were prepared: what was made from them goes, too. Documents of templates are not among them. An older
    version names none. ``forget``: it was of test mode, which was wiped: nothing at all of it is to stay, and nobody is told.
    ``public``: what receivers of webhooks and readers of the feed are told, and who may hear it; an older
    version tells them nothing. It is numbered among the submission's public events, as the last of them. Who has forgotten it
    says so (ErasureConfirmed); who does not is asked once more (``erasure.asked``)."""

    submission_id: int
    documents: list[str] = Field(default_factory=list)
    forget: bool = False
    public: PublicData | None = None


class TestModeWiped(Tolerant):
    """All that was made in test mode before ``at`` is removed: whoever keeps anything of it that is about no submission forgets
    it. Submissions are removed one by one (Erased)."""

    __test__ = False

    at: Moment


class ErasureConfirmed(Tolerant):
    """A service has deleted what it had of a submission that was removed for good. ``deleted`` counts it, by what it was; of
    what a service had deleted before it was asked again, it may not know any more."""

    submission_id: int
    at: Moment
    deleted: dict[str, int] = Field(default_factory=dict)


class ErasureReceiptDue(Tolerant):
    """The receipt for an erasure is to be signed: ``text`` as it is (contracts.evidence.erasure), ``sha256`` of its bytes. It
    holds nobody's data. ``test``: it is one of test mode, no time-stamp is bought."""

    submission_id: int
    sha256: str
    text: str
    test: bool = False


class ErasureReceiptSigned(Tolerant):
    """The receipt with this digest is signed: ``signature`` is a detached CMS in DER, as base64; ``stamped``: with an RFC 3161
    time-stamp."""

    submission_id: int
    sha256: str
    signature: str
    stamped: bool


class PreferencesGiven(Tolerant):
    """``preferences`` (specification 2.8) were given with a submission: the template keeps them, if ``actor`` may change it."""

    template_id: int
    actor: Actor
    preferences: dict[str, Any]


class SealedDocument(Tolerant):
    """``original_sha256`` of what was uploaded; ``file`` is the sealed PDF; ``conformance``: what it claims to be and is,
    such as ``PDF/A-2b`` (None: not known, as others have signed what it claims, or an older version sealed it). ``stamped_at``:
    when its duty stamps were all on it, None without any."""

    uuid: str
    name: str
    file: BlobRef
    original_sha256: str
    conformance: list[str] | None = None
    stamped_at: Moment | None = None


class DocumentsSealed(Tolerant):
    """The job of ``seal_id`` is done: every value was read back, every signature verified. ``combined`` is one PDF of all
    documents, sealed and stamped, where a duty stamp was ordered for it. ``archive_until``: so long the first of the archive
    time-stamps lasts; None where there are none. ``archive_versions``: of each file that has one, or had one before it was
    stamped, its ``DocumentArchived.version``; what is told of that one or an earlier one is older news than this."""

    submission_id: int
    seal_id: str
    documents: list[SealedDocument]
    combined: BlobRef | None = None
    audit_trail: BlobRef
    pades_level: str
    report: list[Notice] = Field(default_factory=list)
    archive_until: Moment | None = None
    archive_versions: dict[str, int] = Field(default_factory=dict)


COMBINED_FILE = "combined"
"""Stands for the one PDF of all documents where others have the uuid of a document, and the audit trail has an empty text."""


class DocumentArchived(Tolerant):
    """A sealed file has a new archive time-stamp (PAdES B-LTA), at its end: ``file`` begins with what it was, byte for byte.
    ``document`` is its uuid, empty for the audit trail, COMBINED_FILE for the one PDF of all documents. Of two events about the
    same file that of the higher ``version`` holds. ``archive_until``: so long the authority's certificate lasts; the next
    time-stamp comes before."""

    submission_id: int
    seal_id: str
    document: str
    file: BlobRef
    version: int
    archive_until: Moment


class ArchivingDue(Tolerant):
    """Files that were sealed before there were archive time-stamps are to have one from now on: by their names in
    DocumentArchived."""

    submission_id: int
    seal_id: str
    files: dict[str, BlobRef]


class DocumentsStamped(DocumentsSealed):
    """Duty stamps came after the documents of ``seal_id`` were told as sealed: all documents again, in their later version,
    and the audit trail with what it says of the stamps. The earlier files are still what they were."""


class DocumentsFailed(Tolerant):
    """Sealing was given up; ``reason`` is for the operator and names the field where one is at fault. ``differences``: what is
    to be sealed is not what the parties signed; each is a sentence."""

    submission_id: int
    seal_id: str
    reason: str
    differences: list[str] = Field(default_factory=list)


class StatementDue(Tolerant):
    """A party has completed: its statement is to be signed and kept. Asked for again it says the same.

    ``sealing``: nobody is left to sign, the documents are being sealed now. Whoever waits for them does not wait for the
    signature of this statement as well: it is made once they are sealed, or a moment later. Only an older version says this;
    now the order to seal has that statement in it. ``test``: it is one of test mode, no time-stamp is bought.
    """

    statement: Statement
    parts: Parts = Field(default_factory=Parts)
    sealing: bool = False
    test: bool = False


class StatementSigned(Tolerant):
    """A statement, named by the SHA-256 of its bytes, is signed and kept."""

    submission_id: int
    submitter_id: int
    sha256: str
    signed: SignedStatement


class SendingOutcome(Tolerant):
    """The outcome of sending something to one recipient. ``sent_at`` is when the mail server or the provider took it."""

    submission_id: int
    submitter_id: int | None = None
    kind: str
    to: str
    invitation_id: str | None = None
    error: str | None = None
    sent_at: Moment | None = None


class MailOutcome(SendingOutcome):
    """A mail left, or never will. ``kind``: ``invitation``, ``reminder``, ``sent_copy``, ``completed``, ``documents_copy``,
    ``declined``, ``wrong_recipient``, ``delegated``, ``returned``, ``later``, ``question``, ``one_time_code``,
    ``provider_problem``. ``sent_at`` is when the mail server took it."""


class PhoneOutcome(SendingOutcome):
    """The outcome of a message to a phone: the provider took it, or never will. ``kind``: ``invitation`` or
    ``one_time_code``."""


class WebhookDisabled(Tolerant):
    """A webhook failed for five days or answered 410; the admins are told by mail."""

    webhook_id: int
    url: str
    reason: str
    admins: list[str]
    test: bool = False


class ProviderProblem(Tolerant):
    """A provider outside did not do what a submission needs, and only a person can help. ``feature`` is ``certsign`` or
    ``dutystamp``; ``message`` says in words what the provider said. Whoever is told once of the same trouble is not told again
    for each submission."""

    feature: str
    provider: str
    message: str
    submission_id: int
    submission_name: str
    submission_link: str


class StampBalanceLow(Tolerant):
    """``balance`` duty stamps can still be bought from ``provider``, fewer than ``alert_below``. Told when it falls below, and
    again only after it was above."""

    provider: str
    balance: int
    alert_below: int


class Admins(Tolerant):
    """The addresses of all active admins. ``revision`` grows with each change: what is older than what is known is ignored."""

    emails: list[str]
    revision: int


INVITATION_DUE = Event("submissions", "invitation.due", InvitationDue)
REMINDER_DUE = Event("submissions", "reminder.due", ReminderDue)
SENT_COPY_MAILS_DUE = Event("submissions", "sent_copy_mails.due", SentCopyMails)
COMPLETION_MAILS_DUE = Event("submissions", "completion_mails.due", CompletionMails)
DECLINE_MAIL_DUE = Event("submissions", "decline_mail.due", DeclineMail)
WRONG_RECIPIENT_MAIL_DUE = Event("submissions", "wrong_recipient_mail.due", WrongRecipientMail)
LINK_MAIL_DUE = Event("submissions", "link_mail.due", LinkMail)
QUESTION_MAIL_DUE = Event("submissions", "question_mail.due", QuestionMail)
RETURNED_MAIL_DUE = Event("submissions", "returned_mail.due", ReturnedMail)
DELEGATED_MAIL_DUE = Event("submissions", "delegated_mail.due", DelegatedMail)
LINK_REPLACED = Event("submissions", "link.replaced", LinkReplaced)
SMS_DUE = Event("submissions", "sms.due", SmsDue)
CODE_DUE = Event("submissions", "code.due", CodeDue)
SEALING_DUE = Event("submissions", "sealing.due", SealRequest)
STATEMENT_DUE = Event("submissions", "statement.due", StatementDue)
PREFERENCES_GIVEN = Event("submissions", "preferences.given", PreferencesGiven)
SUBMISSION_ERASED = Event("submissions", "submission.erased", Erased, public=True)
TEST_MODE_WIPED = Event("submissions", "test_mode.wiped", TestModeWiped)
ERASURE_ASKED = Event("submissions", "erasure.asked", Erased)
ERASURE_RECEIPT_DUE = Event("submissions", "erasure_receipt.due", ErasureReceiptDue)
ERASURE_RECEIPT_SIGNED = Event("rendering", "erasure_receipt.signed", ErasureReceiptSigned)
RENDERINGS_ERASED = Event("rendering", "renderings.erased", ErasureConfirmed)
MAILS_ERASED = Event("notifications", "mails.erased", ErasureConfirmed)
EVENT_LOG_ERASED = Event("webhooks", "event_log.erased", ErasureConfirmed)
CERTSIGN_RETRIED = Event("submissions", "certsign.retried", CertsignRetried)
CONFIRMATION_DUE = Event("submissions", "confirmation.due", ConfirmationOrder)
CONFIRMATION_RETRIED = Event("submissions", "confirmation.retried", ConfirmationRetried)
CONFIRMATION_LEFT = Event("submissions", "confirmation.left", ConfirmationLeft)
DUTYSTAMP_RETRIED = Event("submissions", "dutystamp.retried", DutystampRetried)
PROVIDER_PROBLEM_DUE = Event("submissions", "provider_problem.due", ProviderProblem)
CERTSIGN_CHANGED = Event("rendering", "certsign.changed", CertsignChanged)
CONFIRMATION_CHANGED = Event("rendering", "confirmation.changed", ConfirmationChanged)
DUTYSTAMP_CHANGED = Event("rendering", "dutystamp.changed", DutystampChanged)
DOCUMENTS_STAMPED = Event("rendering", "documents.stamped", DocumentsStamped)
STAMP_BALANCE_LOW = Event("rendering", "stamp_balance.low", StampBalanceLow)
DOCUMENTS_SEALED = Event("rendering", "documents.sealed", DocumentsSealed)
DOCUMENTS_FAILED = Event("rendering", "documents.failed", DocumentsFailed)
ARCHIVING_DUE = Event("submissions", "archiving.due", ArchivingDue)
DOCUMENT_ARCHIVED = Event("rendering", "document.archived", DocumentArchived)
STATEMENT_SIGNED = Event("rendering", "statement.signed", StatementSigned)
MAIL_SENT = Event("notifications", "mail.sent", MailOutcome)
MAIL_FAILED = Event("notifications", "mail.failed", MailOutcome)
SMS_SENT = Event("notifications", "sms.sent", PhoneOutcome)
SMS_FAILED = Event("notifications", "sms.failed", PhoneOutcome)
ADMINS_CHANGED = Event("gateway", "admins.changed", Admins)
WEBHOOK_DISABLED = Event("webhooks", "webhook.disabled", WebhookDisabled)
