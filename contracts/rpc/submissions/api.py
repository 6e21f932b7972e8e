"""The calls of the public API: submissions and their submitters, made, read, changed, removed (specification 4.3, 4.4)."""

from datetime import datetime
from typing import Any

from pydantic import Field

from contracts.blobs import BlobRef
from contracts.dry_run import DryRun
from contracts.fields.boxes import FieldBoxes
from contracts.providers import CertsignOrder, DutystampOrder
from contracts.rpc import Rpc
from contracts.rpc.rendering import FillRequest
from contracts.rpc.templates import GetFieldBoxes, Intake
from contracts.types import (
    Account,
    Actor,
    Moment,
    Order,
    Page,
    PageRequest,
    Removed,
    Submission,
    SubmissionDocuments,
    SubmissionEvent,
    SubmissionStatus,
    Submitter,
    Tolerant,
)


class Message(Tolerant):
    subject: str | None = None
    body: str | None = None


class FieldOverride(Tolerant):
    """Override definition (specification 2.7), by ``name``. Only what is set is changed (``model_fields_set``)."""

    name: str | None = None
    uuid: str | None = None
    default_value: Any = None
    value: Any = None
    readonly: bool | None = None
    required: bool | None = None
    title: str | None = None
    description: str | None = None
    validation: dict[str, Any] | None = None
    preferences: dict[str, Any] | None = None


class PartyOptions(Tolerant):
    """The options of a submission with all its submitters, or of one of them. ``lang`` is the language (BCP 47) that they are
    spoken to in, on pages and in mails."""

    lang: str | None = None
    completed_redirect_url: str | None = None
    reply_to: str | None = None
    message: Message | None = None
    logo_url: str | None = None
    company_name: str | None = None
    stamp_url: str | None = None


class ConsentOptions(Tolerant):
    """The terms that a signer is to agree to before they sign."""

    consent_enabled: bool | None = None
    consent_document_url: str | None = None
    consent_document_text: str | None = None


class SubmitterOptions(PartyOptions):
    """The options of a submitter on creation and later."""

    name: str | None = None
    email: str | None = None
    phone: str | None = None
    external_id: str | None = None
    values: dict[str, Any] = Field(default_factory=dict)
    fields: list[FieldOverride] = Field(default_factory=list)
    readonly_fields: list[str] = Field(default_factory=list)
    completed: bool = False
    go_to_last: bool | None = None
    require_email_2fa: bool | None = None
    require_phone_2fa: bool | None = None


class NewSubmitter(SubmitterOptions, ConsentOptions):
    """``submitters[]`` (specification 4.3.3), and nothing that a caller may not say: the gateway hands on what is here. What is
    not there yet the gateway refuses before it gets here."""

    role: str | None = None
    uuid: str | None = None
    variables: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    send_email: bool | None = None
    send_sms: bool | None = None
    order: int | None = None
    roles: list[str] = Field(default_factory=list)
    invite_by: str | None = None
    acts_as: str | None = None


class SubmissionOptions(PartyOptions, ConsentOptions):
    """The keys of a new submission that the gateway hands on as a caller wrote them (specification 4.3.1), and nothing that a
    caller may not say. ``preferences`` are those of specification 2.8."""

    name: str | None = None
    send_email: bool = True
    send_sms: bool = False
    bcc_completed: str | None = None
    cc_sent: str | None = None
    cc_completed: str | None = None
    preferences: dict[str, Any] = Field(default_factory=dict)
    variables: dict[str, Any] = Field(default_factory=dict)


class CertsignWish(Tolerant):
    """What decides if a submission is signed with the provider's certificate (specification 4.8): ``enabled`` is what the
    caller says of this submission, ``by_default`` what the account says of all of them. ``order`` is what it will be; None: no
    provider is configured."""

    enabled: bool | None = None
    by_default: bool = False
    order: CertsignOrder | None = None


class NewSubmission(SubmissionOptions):
    """The parameters that every way of creating a submission has (specification 4.3.1). Errors name the field as
    ``submitters[0].email``.

    ``request_id``: the same id returns the first answer.
    ``source`` is ``link`` for what a visitor of a shared link began; the actor is then its template's author.
    ``dutystamp`` None: no duty stamps. Errors name what is in it as ``dutystamp.positions[0].x``.
    """

    request_id: str
    actor: Actor
    account: Account
    submitters: list[NewSubmitter]
    order: Order | None = None
    expire_at: datetime | None = None
    source: str = "api"
    certsign: CertsignWish = Field(default_factory=CertsignWish)
    dutystamp: DutystampOrder | None = None


class GetSubmission(Tolerant):
    actor: Actor
    id: int
    include: str = ""


class ListSubmissions(PageRequest):
    """``archived``: True only archived, False only active, None both."""

    actor: Actor
    q: str | None = None
    template_id: int | None = None
    template_folder: str | None = None
    archived: bool | None = None
    status: SubmissionStatus | None = None
    slug: str | None = None
    include: str = ""


class ListEvents(PageRequest):
    """The lines of the audit trail of submission ``id``; cursors are the lines' ids."""

    actor: Actor
    id: int


class UpdateSubmission(Tolerant):
    """Only what is set changes; ``expire_at`` None clears it. An admin alone takes a ``legal_hold`` away."""

    request_id: str
    actor: Actor
    id: int
    name: str | None = None
    expire_at: datetime | None = None
    archived: bool | None = None
    legal_hold: bool | None = None
    expected_state: str | None = None


class CreateSubmission(NewSubmission):
    """POST /submissions: from a template. ``prepared_digest``: what PREPARE said of the very same request; refused as
    ``conflict`` where it would not say so any more."""

    template_id: int
    prepared_digest: str | None = None


class PlannedInvitation(Tolerant):
    """Whom a submission would be sent to: ``by_email`` and ``by_sms`` say whether they are written to at all. ``message``: the
    sender's words in place of the usual ones."""

    role: str
    name: str | None = None
    email: str | None = None
    phone: str | None = None
    by_email: bool = False
    by_sms: bool = False
    message: Message | None = None


class PreparedSubmission(Tolerant):
    """What a submission would be, to be looked at before it is made: nothing is stored.

    ``digest`` names the request together with the template as it is now, in lower-case hex. ``filled`` is what its documents
    would be drawn from; None where it would be refused. ``copies``: further addresses that would be written to, and when.
    """

    tried: DryRun
    digest: str
    invitations: list[PlannedInvitation] = Field(default_factory=list)
    copies: dict[str, str] = Field(default_factory=dict)
    filled: FillRequest | None = None


class CreateSubmissions(Tolerant):
    """Several at once, all or none. The ``request_id`` and ``actor`` of each are those of the whole.

    ``own``: where they were written as ``submissions[]``, which keys each of them was given itself and not by the whole;
    refusals then name those as ``submissions[0].<key>``.
    """

    request_id: str
    actor: Actor
    submissions: list[CreateSubmission]
    own: list[list[str]] = Field(default_factory=list)


class Submissions(Tolerant):
    data: list[Submission]


class CreateOneOff(NewSubmission, Intake):
    """POST /submissions/pdf, /html, /docx: from documents sent along, which the templates service prepares, and those of
    ``template_ids``. Belongs to its creator; no template knows of it."""

    template_ids: list[int] = Field(default_factory=list)
    merge_documents: bool = False


class RemoveSubmission(Tolerant):
    request_id: str
    actor: Actor
    id: int
    permanently: bool = False
    expected_state: str | None = None


class GetDocuments(Tolerant):
    """Sealed documents of a completed submission, partially filled ones otherwise. ``merge``: one PDF of all."""

    actor: Actor
    id: int
    merge: bool = False


class GetEvidence(Tolerant):
    """For the evidence of a sealed submission: ``after`` is how many of its lines are known already."""

    actor: Actor
    id: int
    after: int = Field(default=0, ge=0)


class EvidenceDocument(Tolerant):
    """A document as it was sent in, as the PDF that the signers saw, and sealed."""

    uuid: str
    name: str
    original: BlobRef
    shown: BlobRef
    sealed: BlobRef


class Evidence(Tolerant):
    """The evidence of a sealed submission. ``lines`` are those of the trail that follow ``after``, as many as fit into an
    answer and each as it is hashed (``audit_chain.as_hashed``), of ``line_count`` up to the one that says that the documents
    were sealed, whose hash is ``head``. ``completed`` are the submitters that have completed."""

    id: int
    sealed_at: Moment
    documents: list[EvidenceDocument]
    audit_trail: BlobRef
    completed: list[int]
    line_count: int
    head: str
    lines: list[str]


class RetrySeal(Tolerant):
    """``accept_differences``: an admin takes upon themselves what differs from the statements; the trail names them.
    ``waive_certsign``: a provider that does not sign is waited for no longer, the local certificate is taken."""

    request_id: str
    actor: Actor
    id: int
    accept_differences: bool = False
    waive_certsign: bool = False


class SendCorrected(Tolerant):
    """Send again what a party has sent back for correction. ``sign_again``: ids of submitters that have completed and are to do
    so once more, besides those of whom something was changed."""

    request_id: str
    actor: Actor
    id: int
    sign_again: list[int] = Field(default_factory=list)


class RetryCertsign(Tolerant):
    """Have a provider's signature that failed asked for again now; ``order`` has the account's settings of today."""

    request_id: str
    actor: Actor
    id: int
    order: CertsignOrder


class RetryDutystamp(Tolerant):
    """Have duty stamps that failed asked for again now; ``settings`` (sealed) and ``provider`` are the account's of today, the
    rest is as the submission ordered it."""

    request_id: str
    actor: Actor
    id: int
    settings: str
    provider: str


class GetSubmitter(Tolerant):
    actor: Actor
    id: int
    include: str = ""


class ListSubmitters(PageRequest):
    actor: Actor
    q: str | None = None
    submission_id: int | None = None
    template_id: int | None = None
    external_id: str | None = None
    slug: str | None = None
    completed_after: datetime | None = None
    completed_before: datetime | None = None
    include: str = ""


class SubmitterChange(SubmitterOptions):
    """The body of PUT /submitters/:id (specification 4.4), and nothing that a caller may not say. Only what is set changes;
    ``values`` merge, ``metadata`` replaces.

    None or an empty text clears ``name``, ``email``, ``phone``, ``external_id``, ``reply_to``, ``completed_redirect_url``,
    ``logo_url``, ``company_name`` and ``stamp_url``; None clears ``message``.
    ``send_email`` True sends the invitation again, ``send_sms`` by SMS; ``completed`` True completes in the name of the API
    user.
    """

    metadata: dict[str, Any] | None = None
    send_email: bool = False
    send_sms: bool = False


class UpdateSubmitter(SubmitterChange):
    """``account`` says what can be sent at all (``*_available``); the submission keeps the settings it was made under."""

    request_id: str
    actor: Actor
    id: int
    account: Account | None = None
    expected_state: str | None = None


class AccountPictures(Tolerant):
    """Keys of files that were once fetched for the account (its logo, its stamp)."""

    keys: list[str]


CREATE = Rpc("submissions", "create", CreateSubmission, Submission, timeout=30)
CREATE_ONE_OFF = Rpc("submissions", "create_one_off", CreateOneOff, Submission, timeout=120)
TRY_CREATE = Rpc("submissions", "try_create", CreateSubmission, DryRun, timeout=30)
PREPARE = Rpc("submissions", "prepare", CreateSubmission, PreparedSubmission, timeout=30)
TRY_ONE_OFF = Rpc("submissions", "try_one_off", CreateOneOff, DryRun, timeout=120)
CREATE_MANY = Rpc("submissions", "create_many", CreateSubmissions, Submissions, timeout=120)
TRY_MANY = Rpc("submissions", "try_many", CreateSubmissions, DryRun, timeout=120)
GET = Rpc("submissions", "get", GetSubmission, Submission)
LIST = Rpc("submissions", "list", ListSubmissions, Page[Submission])
FIELD_BOXES = Rpc("submissions", "field_boxes", GetFieldBoxes, FieldBoxes)
LIST_EVENTS = Rpc("submissions", "list_events", ListEvents, Page[SubmissionEvent])
UPDATE = Rpc("submissions", "update", UpdateSubmission, Submission)
REMOVE = Rpc("submissions", "remove", RemoveSubmission, Removed)
DOCUMENTS = Rpc("submissions", "documents", GetDocuments, SubmissionDocuments, timeout=60)
EVIDENCE = Rpc("submissions", "evidence", GetEvidence, Evidence, timeout=30)
RETRY_SEAL = Rpc("submissions", "retry_seal", RetrySeal, Submission)
SEND_CORRECTED = Rpc("submissions", "send_corrected", SendCorrected, Submission)
RETRY_CERTSIGN = Rpc("submissions", "retry_certsign", RetryCertsign, Submission)
RETRY_DUTYSTAMP = Rpc("submissions", "retry_dutystamp", RetryDutystamp, Submission)
GET_SUBMITTER = Rpc("submissions", "get_submitter", GetSubmitter, Submitter)
LIST_SUBMITTERS = Rpc("submissions", "list_submitters", ListSubmitters, Page[Submitter])
UPDATE_SUBMITTER = Rpc("submissions", "update_submitter", UpdateSubmitter, Submitter, timeout=30)
PICTURES_IN_USE = Rpc("submissions", "pictures_in_use", AccountPictures, AccountPictures)
