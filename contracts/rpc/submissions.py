"""Submissions: one signing request each, its submitters, and the signing page's side of it (specification 4.3, 4.4)."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from contracts.blobs import BlobRef
from contracts.rpc import Rpc
from contracts.rpc.rendering import FillRequest
from contracts.rpc.templates import GetFieldBoxes, Intake
from contracts.types import (
    Account,
    Actor,
    Attachment,
    Condition,
    DocumentLink,
    DryRun,
    FieldBoxes,
    FieldDefinition,
    Moment,
    Order,
    Page,
    PageRequest,
    PageSize,
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


class NewSubmitter(Tolerant):
    """``submitters[]`` (specification 4.3.3). What is not there yet the gateway refuses before it gets here."""

    role: str | None = None
    uuid: str | None = None
    email: str | None = None
    name: str | None = None
    phone: str | None = None
    external_id: str | None = None
    values: dict[str, Any] = Field(default_factory=dict)
    variables: dict[str, Any] = Field(default_factory=dict)
    fields: list[FieldOverride] = Field(default_factory=list)
    readonly_fields: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)
    send_email: bool | None = None
    send_sms: bool | None = None
    completed_redirect_url: str | None = None
    order: int | None = None
    completed: bool = False
    go_to_last: bool | None = None
    reply_to: str | None = None
    message: Message | None = None
    roles: list[str] = Field(default_factory=list)
    invite_by: str | None = None
    consent_enabled: bool | None = None
    consent_document_url: str | None = None
    consent_document_text: str | None = None
    logo_url: str | None = None
    company_name: str | None = None
    stamp_url: str | None = None
    require_email_2fa: bool | None = None
    require_phone_2fa: bool | None = None


class NewSubmission(Tolerant):
    """What every way of making a submission has (specification 4.3.1). Errors name the field as ``submitters[0].email``.

    ``preferences`` are those of specification 2.8. ``request_id``: the same id returns the first answer.
    ``source`` is ``link`` for what a visitor of a shared link began; the actor is then its template's author.
    """

    request_id: str
    actor: Actor
    account: Account
    submitters: list[NewSubmitter]
    name: str | None = None
    order: Order | None = None
    send_email: bool = True
    send_sms: bool = False
    completed_redirect_url: str | None = None
    bcc_completed: str | None = None
    reply_to: str | None = None
    expire_at: datetime | None = None
    message: Message | None = None
    preferences: dict[str, Any] = Field(default_factory=dict)
    variables: dict[str, Any] = Field(default_factory=dict)
    consent_enabled: bool | None = None
    consent_document_url: str | None = None
    consent_document_text: str | None = None
    logo_url: str | None = None
    company_name: str | None = None
    stamp_url: str | None = None
    source: str = "api"


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
    """Only what is set changes; ``expire_at`` None clears it."""

    request_id: str
    actor: Actor
    id: int
    name: str | None = None
    expire_at: datetime | None = None
    archived: bool | None = None


class CreateSubmission(NewSubmission):
    """POST /submissions: from a template."""

    template_id: int


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


class GetDocuments(Tolerant):
    """Sealed documents of a completed submission, partially filled ones otherwise. ``merge``: one PDF of all."""

    actor: Actor
    id: int
    merge: bool = False


class RetrySeal(Tolerant):
    request_id: str
    actor: Actor
    id: int


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


class UpdateSubmitter(Tolerant):
    """PUT /submitters/:id (specification 4.4). Only what is set changes; ``values`` merge, ``metadata`` replaces.

    ``send_email`` True sends the invitation again, ``send_sms`` by SMS; ``completed`` True completes in the name of the API
    user. ``account`` says what can be sent at all (``*_available``); the submission keeps the settings it was made under.
    """

    request_id: str
    actor: Actor
    id: int
    name: str | None = None
    email: str | None = None
    phone: str | None = None
    external_id: str | None = None
    values: dict[str, Any] = Field(default_factory=dict)
    fields: list[FieldOverride] = Field(default_factory=list)
    readonly_fields: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] | None = None
    send_email: bool = False
    send_sms: bool = False
    reply_to: str | None = None
    completed: bool = False
    completed_redirect_url: str | None = None
    go_to_last: bool | None = None
    message: Message | None = None
    logo_url: str | None = None
    company_name: str | None = None
    stamp_url: str | None = None
    require_email_2fa: bool | None = None
    require_phone_2fa: bool | None = None
    account: Account | None = None


class Visit(Tolerant):
    """Who opens the signing page. The slug is the secret that lets him in; it is never logged whole.

    ``proofs`` are what this browser was given for the one-time codes that it has passed (``PassedCode``).
    """

    slug: str
    proofs: list[str] = Field(default_factory=list)
    ip: str | None = None
    user_agent: str | None = None
    time_zone: str | None = None


class OpenForm(Visit):
    """Only reads; a mail scanner's GET changes nothing. The page itself then reports the view (``view``)."""


class FormDocument(Tolerant):
    """``conditions``: it is shown only while these hold of what the signer fills in; others are decided already."""

    uuid: str
    name: str
    pages: list[PageSize]
    url: str | None = None
    conditions: list[Condition] = Field(default_factory=list)


class FormField(FieldDefinition):
    """A field on the signing page: ``value`` as stored, ``mine`` when this signer fills it (others are shown only).

    ``display`` is how a value reads on paper (formatted date, number), masked where it must be. ``reasons`` are those that
    the signer of this signature must choose from, ``reason`` the one that he has chosen.
    ``confirmed`` is the stored number of a phone field that asks for a one-time code, when the code was passed.
    Of a verification field ``verified_as`` is whom the identity provider named (empty when it gave no name, None without a
    proof), ``verification_problem`` why the last attempt came to nothing (``IdentityProblem``).
    """

    value: Any = None
    display: str | None = None
    mine: bool = True
    reasons: list[str] = Field(default_factory=list)
    reason: str | None = None
    confirmed: str | None = None
    verified_as: str | None = None
    verification_problem: str | None = None


class ConsentAsked(Tolerant):
    """What the signer has to agree to before he can complete; ``url`` is where it can be read."""

    text: str
    url: str | None = None


class PartyToInvite(Tolerant):
    """A role whose signer this signer names when he completes; with ``needs_phone`` he has to give a telephone number, too."""

    uuid: str
    role: str
    needs_phone: bool = False


class CodeAsked(Tolerant):
    """The one-time code that this browser must pass next. ``sent_to`` is the masked address, None when there is none on file.
    ``sent``: a code is on its way that can still be passed; ``failed``: the last one could not be delivered. ``retry_after``:
    seconds until another one may be asked for."""

    method: str
    sent_to: str | None = None
    sent: bool = False
    failed: bool = False
    retry_after: int = 0


class SigningForm(Tolerant):
    """What the signing page shows. ``account_name`` and ``logo_url`` are those that this signer is to see. ``state`` is
    ``open``, ``waiting``, ``completed``, ``declined``, ``expired``, ``archived`` or ``code``; everything but the names is empty
    unless ``open`` or ``completed``.

    Before the signer's one-time codes are passed, nothing of the submission is in it, not even its name: it is ``code``, with
    what is asked for, or the state in which no code is worth asking for.
    """

    state: str
    submission_name: str
    account_name: str
    submitter_id: int
    submitter_name: str | None = None
    submitter_email: str | None = None
    role: str
    sender_name: str | None = None
    locale: str = "en-US"
    time_zone: str = "UTC"
    expire_at: datetime | None = None
    sealing_status: str | None = None
    declined_by: str | None = None
    decline_reason: str | None = None
    completed_redirect_url: str | None = None
    go_to_last: bool = False
    documents: list[FormDocument] = Field(default_factory=list)
    fields: list[FormField] = Field(default_factory=list)
    attachments: list[Attachment] = Field(default_factory=list)
    results: list[DocumentLink] = Field(default_factory=list)
    audit_log_url: str | None = None
    consent: ConsentAsked | None = None
    invites: list[PartyToInvite] = Field(default_factory=list)
    logo_url: str | None = None
    code: CodeAsked | None = None


class SaveValues(Visit):
    """``values`` is keyed by field uuid, as are ``reasons``: the reason for signing that was chosen for a signature, None to
    take it back. Stored step by step; required is checked on completion only."""

    request_id: str
    values: dict[str, Any]
    reasons: dict[str, str | None] = Field(default_factory=dict)


class CompleteForm(SaveValues):
    """The last step: saves, checks everything, completes. ``consent``: he has ticked what he was asked to agree to."""

    consent: bool = False


class Invited(Tolerant):
    """Who is to sign for a role that this signer invites; the role by ``uuid`` or by name."""

    uuid: str | None = None
    role: str | None = None
    email: str | None = None
    name: str | None = None
    phone: str | None = None


class InviteAndComplete(CompleteForm):
    """The last step of a signer who invites others: they are added, then it completes, in one transaction."""

    submitters: list[Invited] = Field(default_factory=list)


class DeclineForm(Visit):
    request_id: str
    reason: str = ""


class AttachFile(Visit):
    """``type`` is the field's type. Signatures and initials must be pictures with something on them."""

    request_id: str
    type: str
    filename: str
    file: BlobRef


class Done(Tolerant):
    """``state`` as in SigningForm, after the command."""

    state: str


class FormPage(Tolerant):
    """A page of a document of this signer's submission, ``page`` from 1."""

    slug: str
    document_uuid: str
    proofs: list[str] = Field(default_factory=list)


class FormFile(Tolerant):
    """``footer`` is the line that every page gets at its foot, empty for none."""

    file: BlobRef
    pages: list[PageSize]
    footer: str = ""


class DrawForm(Visit):
    """What the page shows right now, to be drawn: ``values`` and ``reasons`` as in SaveValues, of the signer's own fields and
    only those that are not saved yet; ``fields`` are the uuids of those that are wanted."""

    values: dict[str, Any] = Field(default_factory=dict)
    reasons: dict[str, str | None] = Field(default_factory=dict)
    fields: list[str]


class SendCode(Visit):
    """Send the one-time code that is asked for next: to the signer's address, or, when he has passed those, to the number
    ``phone`` that he wants to put into a field which asks for a code. ``phone_otp_webhook`` is the account's, sealed (see
    contracts.events.CodeDue); None when there is none."""

    request_id: str
    phone: str | None = None
    phone_otp_webhook: str | None = None


class CodeSent(Tolerant):
    """``sent_to`` is the masked address; another code may be asked for ``retry_after`` seconds later."""

    sent_to: str
    retry_after: int
    expires_at: Moment


class CheckCode(Visit):
    """What somebody typed. A wrong code is refused with ``tries_left`` in the details; every guess is counted. ``phone`` as in
    SendCode."""

    request_id: str
    code: str
    phone: str | None = None


class PassedCode(Tolerant):
    """``proof`` goes to the browser that typed the code, and comes back with each of its visits until ``expires_at``. None for
    the number in a field: that is kept with the submission."""

    method: str
    proof: str | None = None
    expires_at: Moment | None = None


class IdentityProblem(StrEnum):
    """Why an attempt to prove one's identity came to nothing.

    ``cancelled``: by the signer, at the provider. ``failed``: the provider said no, or what it said cannot be believed.
    ``unreachable``: it could not be asked. ``weak``: the identity is not vouched for as the field's ``method`` asks for.
    ``expired``: the signer came back too late. ``other_person``: another e-mail address than the signer's was proved.
    """

    CANCELLED = "cancelled"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    WEAK = "weak"
    EXPIRED = "expired"
    OTHER_PERSON = "other_person"


class StartIdentityCheck(Visit):
    """The signer goes to the identity provider ``issuer``, called ``provider``, for the verification field ``field`` (uuid).
    ``state_digest`` is the SHA-256, in hex, of the random ``state`` that comes back with him: what it is, and what follows
    from it (nonce, code verifier), stays between the gateway and his browser."""

    request_id: str
    field: str
    issuer: str
    provider: str
    state_digest: str


class IdentityCheckStarted(Tolerant):
    """``method`` is that of the field (``aes``, ``qes``). ``anew``: he came back as another person before, so the provider
    should have him sign in again instead of taking him for the one whom it knows."""

    method: str | None = None
    anew: bool = False
    expires_at: Moment


class ClaimIdentityCheck(Tolerant):
    """Somebody came back from the provider with a ``state``: whatever becomes of it, nobody can come back with it again."""

    request_id: str
    state_digest: str


class IdentityCheckClaimed(Tolerant):
    """Whose check it is: ``slug`` of the submitter, ``field`` its uuid. ``usable`` False: he came too late, or with a state
    that was used before; then there is nothing to ask the provider for."""

    slug: str
    field: str
    issuer: str
    method: str | None = None
    usable: bool


class ProvedIdentity(Tolerant):
    """What the provider vouches for. ``email`` only when the provider says that it has verified it."""

    issuer: str
    subject: str
    name: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    acr: str | None = None


class FinishIdentityCheck(Visit):
    """What became of the check that was claimed: an ``identity``, or a ``problem``. ``any_email``: the operator lets a signer
    prove another e-mail address than the one that he was invited at."""

    request_id: str
    state_digest: str
    identity: ProvedIdentity | None = None
    problem: IdentityProblem | None = None
    any_email: bool = False


class IdentityCheckFinished(Tolerant):
    """``problem`` None: the field is verified."""

    problem: IdentityProblem | None = None


class LinkVisit(Visit):
    """Somebody at a shared link: ``slug`` is the template's. ``email``, ``name`` and ``phone`` as far as he was asked for."""

    account: Account
    email: str | None = None
    name: str | None = None
    phone: str | None = None


class StartFromLink(LinkVisit):
    """A submission for this visitor. ``sender`` is the template's author, while he is a user. ``resume`` is what this browser
    was given when it started one before: the same visitor goes on with that."""

    request_id: str
    sender: Actor | None = None
    resume: str | None = None


class LinkStarted(Tolerant):
    """``submitter_slug`` opens the form. ``resume`` goes to the browser; ``passed``, too, when a code had to be passed: the
    form does not ask for another."""

    submitter_slug: str
    resume: str = ""
    passed: PassedCode | None = None


class SendLinkCode(LinkVisit):
    """Send a one-time code to ``email``."""

    request_id: str


class CheckLinkCode(LinkVisit):
    """As CheckCode; the proof is for this link and this address."""

    request_id: str
    code: str


class AccountPictures(Tolerant):
    """Keys of files that were once fetched for the account (its logo, its stamp)."""

    keys: list[str]


CREATE = Rpc("submissions", "create", CreateSubmission, Submission, timeout=30)
CREATE_ONE_OFF = Rpc("submissions", "create_one_off", CreateOneOff, Submission, timeout=120)
TRY_CREATE = Rpc("submissions", "try_create", CreateSubmission, DryRun, timeout=30)
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
RETRY_SEAL = Rpc("submissions", "retry_seal", RetrySeal, Submission)
GET_SUBMITTER = Rpc("submissions", "get_submitter", GetSubmitter, Submitter)
LIST_SUBMITTERS = Rpc("submissions", "list_submitters", ListSubmitters, Page[Submitter])
UPDATE_SUBMITTER = Rpc("submissions", "update_submitter", UpdateSubmitter, Submitter, timeout=30)
PICTURES_IN_USE = Rpc("submissions", "pictures_in_use", AccountPictures, AccountPictures)
OPEN_FORM = Rpc("submissions", "open_form", OpenForm, SigningForm)
VIEW_FORM = Rpc("submissions", "view_form", Visit, Done)
SAVE_VALUES = Rpc("submissions", "save_values", SaveValues, Done)
COMPLETE_FORM = Rpc("submissions", "complete_form", CompleteForm, Done, timeout=30)
INVITE_AND_COMPLETE = Rpc("submissions", "invite_and_complete", InviteAndComplete, Done, timeout=30)
DECLINE_FORM = Rpc("submissions", "decline_form", DeclineForm, Done)
ATTACH_FILE = Rpc("submissions", "attach_file", AttachFile, Attachment, timeout=30)
FORM_FILE = Rpc("submissions", "form_file", FormPage, FormFile)
FORM_DRAWING = Rpc("submissions", "form_drawing", DrawForm, FillRequest)
START_FROM_LINK = Rpc("submissions", "start_from_link", StartFromLink, LinkStarted, timeout=30)
SEND_LINK_CODE = Rpc("submissions", "send_link_code", SendLinkCode, CodeSent)
CHECK_LINK_CODE = Rpc("submissions", "check_link_code", CheckLinkCode, PassedCode)
SEND_CODE = Rpc("submissions", "send_code", SendCode, CodeSent)
CHECK_CODE = Rpc("submissions", "check_code", CheckCode, PassedCode)
START_IDENTITY_CHECK = Rpc("submissions", "start_identity_check", StartIdentityCheck, IdentityCheckStarted)
CLAIM_IDENTITY_CHECK = Rpc("submissions", "claim_identity_check", ClaimIdentityCheck, IdentityCheckClaimed)
FINISH_IDENTITY_CHECK = Rpc("submissions", "finish_identity_check", FinishIdentityCheck, IdentityCheckFinished)
