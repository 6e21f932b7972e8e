"""The resources of the specification (section 2), as they are in the API, in events and between services.

What is here is public: the JSON of these models is what a REST client, a webhook receiver and a signer's browser see.
Readers ignore keys they do not know; a key is only ever added.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    field_serializer,
    field_validator,
    model_serializer,
)

from contracts.blobs import BlobRef


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds: ``2026-03-04T05:06:07.089Z``."""
    return (moment if moment.tzinfo is UTC else moment.astimezone(UTC)).isoformat(timespec="milliseconds")[:-6] + "Z"


def _as_text(moment: Any) -> Any:
    return iso(moment) if isinstance(moment, datetime) else moment  # what is stored may be odd


Moment = Annotated[datetime, PlainSerializer(_as_text, return_type=str, when_used="json")]


class Role(StrEnum):
    """Roles of users (specification 5)."""

    ADMIN = "admin"
    EDITOR = "editor"
    VIEWER = "viewer"


class FieldType(StrEnum):
    """Types of fields (specification 2.7), ``dutystamp`` from 4.7."""

    HEADING = "heading"
    TEXT = "text"
    SIGNATURE = "signature"
    INITIALS = "initials"
    DATE = "date"
    NUMBER = "number"
    IMAGE = "image"
    CHECKBOX = "checkbox"
    MULTIPLE = "multiple"
    FILE = "file"
    RADIO = "radio"
    SELECT = "select"
    CELLS = "cells"
    STAMP = "stamp"
    PAYMENT = "payment"
    PHONE = "phone"
    VERIFICATION = "verification"
    STRIKETHROUGH = "strikethrough"
    DUTYSTAMP = "dutystamp"


IMAGE_TYPES = frozenset({FieldType.SIGNATURE, FieldType.INITIALS, FieldType.IMAGE, FieldType.STAMP})
"""Their value is the uuid of an attachment that is drawn as a picture."""

STATIC_TYPES = frozenset(
    {FieldType.HEADING, FieldType.STRIKETHROUGH, FieldType.STAMP, FieldType.PAYMENT, FieldType.DUTYSTAMP}
)
"""There without the signer doing anything. A payment states an amount and where to pay it; it is not made here. Where a duty
stamp goes, nothing is drawn: its provider puts it there after everybody has signed."""


class SubmitterStatus(StrEnum):
    PENDING = "pending"
    COMPLETED = "completed"
    DECLINED = "declined"


class SubmissionStatus(StrEnum):
    PENDING = "pending"
    COMPLETED = "completed"
    DECLINED = "declined"
    EXPIRED = "expired"


class SealingStatus(StrEnum):
    SEALING = "sealing"
    SEALED = "sealed"
    FAILED = "failed"


class Order(StrEnum):
    PRESERVED = "preserved"
    RANDOM = "random"


class Tolerant(BaseModel):
    """Ignores keys it does not know."""

    model_config = ConfigDict(extra="ignore")


class Agent(Tolerant):
    """A program that acts for a user through ``/mcp``, as it has called itself: nobody vouches for that. ``key_id`` names the
    key that it came with."""

    name: str
    version: str = ""
    key_id: str | None = None


_TEST_ROLE, _FOLDERS_ROLE = "test:", "folders:"


class Actor(Tolerant):
    """The user who asks: the owner of the API key. Services decide by role and id what the actor may see.

    ``ip`` is the address that the call came from and ``key_id`` names the key, which cannot be had from it: audit trails state
    both. None where an older gateway sends none. Without ``may_act`` the key cannot send, whatever the role: whoever asks with
    it gets nothing that lets them act for a signer. ``agent``: the program that acts in the user's name, where it is one; audit
    trails name it. ``test``: the key is one of test mode (docs/testing.md). ``folders``: it reaches nothing but templates in
    these folders and what is made from them (docs/keys.md); None: it is not limited. A service that knows of neither would take
    it for a live key without limits: the role is written so that such a service refuses it.
    """

    user_id: int
    role: Role
    email: str
    name: str = ""
    first_name: str | None = None
    last_name: str | None = None
    ip: str | None = None
    key_id: str | None = None
    may_act: bool = True
    agent: Agent | None = None
    test: bool = False
    folders: list[str] | None = None

    @property
    def sees_all(self) -> bool:
        """Tell whether they see every record of their mode: an admin with a key that is not limited to folders."""
        return self.role is Role.ADMIN and self.folders is None

    @field_validator("role", mode="before")
    @classmethod
    def _known_role(cls, role: Any) -> Any:
        return role.removeprefix(_FOLDERS_ROLE).removeprefix(_TEST_ROLE) if isinstance(role, str) else role

    @field_serializer("role")
    def _told_role(self, role: Role) -> str:
        limited = _FOLDERS_ROLE if self.folders is not None else ""
        return f"{limited}{_TEST_ROLE if self.test else ''}{role.value}"


class Reminders(Tolerant):
    """The delays from a party's turn to its reminders, such as ``two_days``; None for not at all."""

    first: str | None = None
    second: str | None = None
    third: str | None = None


class Account(Tolerant):
    """The account settings that a submission is made under; it keeps this copy (one account per installation).

    The ``*_enabled`` and ``*_attach_*`` toggles are the ceiling over template preferences (specification 2.8). ``company_name``
    and the pictures are what recipients see who have none of their own (4.9); ``logo`` and ``stamp`` are what was fetched.
    ``*_available`` are no settings: they say what can be sent at all, an SMS, a one-time code to a phone; and whether there is
    an identity provider, and one that vouches for identities as a qualified electronic signature needs them (``qes``).
    ``frame_ancestors`` are the sites that may show signing pages in a frame, ``accent_color`` is that of buttons and links;
    only the gateway reads them. ``allow_to_delegate``: signers may hand their form over to somebody else, where a submission's
    preferences do not say otherwise; ``allow_to_return``: they may send it back for correction. ``first_page_in_mails``:
    invitations and reminders show a small picture of the first page. ``keep_days``: submissions are erased so many days after
    they have ended, where no preferences say otherwise; None or 0: never.
    """

    name: str = "Countersign"
    time_zone: str = "UTC"
    locale: str = "en-US"
    completed_notification_email_enabled: bool = True
    completed_notification_email_attach_audit: bool = True
    completed_notification_email_attach_documents: bool = True
    documents_copy_email_enabled: bool = True
    documents_copy_email_attach_audit: bool = True
    documents_copy_email_attach_documents: bool = True
    with_signature_id: bool = False
    with_file_links: bool = False
    with_certification: bool = False
    sms_available: bool = False
    phone_codes_available: bool = False
    identity_checks_available: bool = False
    identity_checks_qes_available: bool = False
    esigning_preference: Literal["single", "multiple"] = "single"
    bcc_emails: str = ""
    company_name: str = ""
    logo_url: str = ""
    stamp_url: str = ""
    logo: BlobRef | None = None
    stamp: BlobRef | None = None
    reminders: Reminders = Field(default_factory=Reminders)
    frame_ancestors: list[str] = Field(default_factory=list)
    accent_color: str = ""
    allow_to_delegate: bool = False
    allow_to_return: bool = False
    keep_days: int | None = None
    first_page_in_mails: bool = True


class Area(Tolerant):
    """The place of a field: fractions of the visible page (the crop box, upright), origin top left; ``page`` from 1.

    ``attachment_uuid`` names the document (the peer's key for it). ``option`` binds the area to one option of a radio or
    multiple field. ``cell_w`` is the width of one cell as a fraction of the page's width.
    """

    x: float
    y: float
    w: float
    h: float
    page: int = 1
    attachment_uuid: str = ""
    option: str | None = None
    cell_w: float | None = None


class Condition(Tolerant):
    """Shown only when the other field has that value (peer facts 4.3)."""

    field_uuid: str
    action: str
    value: Any = None
    operation: Literal["and", "or"] | None = None


class FieldContent(Tolerant):
    """A field (specification 2.7), apart from whose it is and where."""

    name: str = ""
    type: FieldType = FieldType.TEXT
    required: bool = True
    readonly: bool = False
    default_value: Any = None
    title: str | None = None
    description: str | None = None
    options: list[str] = Field(default_factory=list)
    validation: dict[str, Any] = Field(default_factory=dict)
    preferences: dict[str, Any] = Field(default_factory=dict)


class FieldDefinition(FieldContent):
    """A fillable field, the full definition with what the service adds: uuid and role."""

    uuid: str
    submitter_uuid: str
    role: str
    conditions: list[Condition] = Field(default_factory=list)
    areas: list[Area] = Field(default_factory=list)


class Party(Tolerant):
    """A role of a template, in order: the peer calls it a template's submitter."""

    uuid: str
    name: str


class ValueChange(Tolerant):
    """What a change of a template did to the values that programs send for it (``GET /templates/:id/schema``).

    ``field`` is absent when it is about the role as a whole. ``breaking``: values that were taken are taken no more.
    ``reason`` continues the sentence that role and field begin.
    """

    role: str
    field: str | None = None
    change: Literal["added", "changed", "removed"]
    breaking: bool
    reason: str


class Notice(Tolerant):
    """A line of a preflight report: what was found, what was done about it, where. ``page`` from 1."""

    code: str
    message: str
    document: str | None = None
    page: int | None = None


class Pagination(Tolerant):
    """``count`` rows on this page, ``prev`` the first id, ``next`` the last id: both None on an empty page only, so that a
    reader may go on until a page is empty or until ``next`` is None, and keep ``next`` for what comes later."""

    count: int
    next: int | None = None
    prev: int | None = None

    @classmethod
    def of(cls, ids: Sequence[int]) -> "Pagination":
        """Return the pagination of a page with these ids, ascending."""
        return cls(count=len(ids), prev=ids[0], next=ids[-1]) if ids else cls(count=0)


T = TypeVar("T")


class Page(Tolerant, Generic[T]):
    data: list[T]
    pagination: Pagination


class PageRequest(Tolerant):
    """Keyset paging: ids ascending; ``after`` greater than, ``before`` the page nearest below."""

    limit: int = 10
    after: int | None = None
    before: int | None = None


_SAME_PLACE = 0.001
"""Of a page's side: places are stored rounded."""


class Box(Tolerant):
    """Fractions of the visible page, origin top left."""

    x: float
    y: float
    w: float
    h: float

    def is_at(self, area: "Area | Box") -> bool:
        """The area is this place, but for rounding."""
        mine, other = (self.x, self.y, self.w, self.h), (area.x, area.y, area.w, area.h)
        return all(abs(a - b) <= _SAME_PLACE for a, b in zip(mine, other, strict=True))


class PageSize(Tolerant):
    """Width and height of the visible page, upright, in points. ``places`` are the only ones where something may be filled
    in, the form fields of a file whose signatures allow nothing else; None: everywhere."""

    width: float
    height: float
    places: list[Box] | None = None

    @model_serializer(mode="wrap")
    def _without_none(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        plain: dict[str, Any] = handler(self)
        if isinstance(plain, dict) and plain.get("places") is None:  # what is stored may be odd
            plain.pop("places", None)
        return plain

    def takes(self, area: Area) -> bool:
        """A field may be put there."""
        return self.places is None or any(place.is_at(area) for place in self.places)


class TemplateDocument(Tolerant):
    """``url`` and ``preview_image_url`` expire; each read gives fresh ones. Sizes are points (1/72 inch), upright.

    ``sha256`` is of what ``url`` gives, ``original_sha256`` of what was sent in: the audit trail states that one.
    """

    id: int
    uuid: str
    name: str
    filename: str
    url: str
    preview_image_url: str | None = None
    sha256: str
    original_sha256: str | None = None
    pages: list[PageSize] = Field(default_factory=list)


class Person(Tolerant):
    id: int
    email: str
    first_name: str | None = None
    last_name: str | None = None


class SchemaItem(Tolerant):
    """A document of a template, in order. It is shown and sealed only when its ``conditions`` hold, as a field is."""

    attachment_uuid: str
    name: str
    conditions: list[Condition] = Field(default_factory=list)


class Template(Tolerant):
    """Specification 2.2 with the keys that the peer's clients read. ``test``: it was made in test mode."""

    id: int
    slug: str
    name: str
    external_id: str | None = None
    application_key: str | None = None
    folder_id: int
    folder_name: str
    roles: list[str]
    submitters: list[Party]
    fields: list[FieldDefinition]
    documents: list[TemplateDocument]
    # `schema` would hide BaseModel's own attribute.
    document_schema: list[SchemaItem] = Field(default_factory=list, alias="schema")
    variables_schema: dict[str, Any] = Field(default_factory=dict)
    preferences: dict[str, Any] = Field(default_factory=dict)
    shared_link: bool
    source: str = "api"
    archived: bool
    archived_at: Moment | None = None
    author_id: int
    author: Person | None = None
    report: list[Notice] = Field(default_factory=list)
    test: bool = False
    created_at: Moment
    updated_at: Moment

    model_config = ConfigDict(extra="ignore", serialize_by_alias=True, populate_by_name=True)


class TemplateReference(Tolerant):
    id: int
    name: str
    external_id: str | None = None
    folder_name: str
    created_at: Moment
    updated_at: Moment


class DocumentLink(Tolerant):
    """A file that can be fetched; ``sha256`` is lower-case hex of what the URL gives."""

    name: str
    url: str
    sha256: str | None = None


class SealedDocumentLink(DocumentLink):
    """``conformance``: what the file claims to be and is, ``PDF/A-1a`` to ``PDF/A-4`` or ``PDF/UA-1``; None when not known.
    ``stamped_at``: when its duty stamps were on it, None without any."""

    conformance: list[str] | None = None
    stamped_at: Moment | None = None


class SubmissionEvent(Tolerant):
    """One line of the audit trail (peer facts 1.2): ``send_email``, ``view_form``, ``complete_form``, ...

    ``hash`` is SHA-256 over the previous line's hash and this line (canonical JSON): the trail is a chain.
    """

    id: int
    submitter_id: int | None = None
    event_type: str
    event_timestamp: Moment
    data: dict[str, Any] = Field(default_factory=dict)
    hash: str = ""


class Consent(Tolerant):
    """The words that a submitter agreed to before completing, and when."""

    agreed_at: Moment
    text: str
    url: str | None = None


class IdentityStatus(StrEnum):
    """How far a signer is who confirms their identity at a provider and signs there with a certificate of their own."""

    PENDING = "pending"
    VERIFIED = "verified"
    FAILED = "failed"


class SignerCertificate(Tolerant):
    """The certificate that a signer has signed with at ``provider``: ``serial`` and ``sha256`` (of its DER) in lower-case
    hex."""

    provider: str
    subject: str
    issuer: str
    serial: str
    sha256: str
    valid_to: Moment | None = None
    signed_at: Moment


class ActsAs(StrEnum):
    """What a party is asked to do: to sign, to approve what it sees without a signature, or just to read."""

    SIGNER = "signer"
    APPROVER = "approver"
    VIEWER = "viewer"


class Submitter(Tolerant):
    """Specification 2.4. ``values`` is keyed by field name; ``uuid`` is the uuid of the role.

    ``slug`` and ``embed_src`` are None for a caller who only reads. ``documents`` is empty until this submitter has completed.
    ``template`` and ``submission_events`` come with the submitter reads only. ``identity_status`` is None unless they sign at a
    provider with a certificate of their own, which is ``identity`` once they have. ``warnings`` (each ``field`` and ``reason``)
    come with the answer to a request that gives values: what of them was ignored.
    """

    id: int
    submission_id: int
    uuid: str
    role: str
    email: str | None = None
    name: str | None = None
    phone: str | None = None
    external_id: str | None = None
    application_key: str | None = None
    slug: str | None = None
    status: SubmitterStatus
    order: int | None = None
    embed_src: str | None = None
    values: dict[str, Any] = Field(default_factory=dict)
    documents: list[SealedDocumentLink] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)
    preferences: dict[str, Any] = Field(default_factory=dict)
    decline_reason: str | None = None
    sent_at: Moment | None = None
    opened_at: Moment | None = None
    completed_at: Moment | None = None
    declined_at: Moment | None = None
    created_at: Moment
    updated_at: Moment
    template: TemplateReference | None = None
    submission_events: list[SubmissionEvent] | None = None
    fields: list[FieldDefinition] | None = None
    consent: Consent | None = None
    identity_status: IdentityStatus | None = None
    identity: SignerCertificate | None = None
    acts_as: str = ActsAs.SIGNER.value
    test: bool = False
    warnings: list[dict[str, str]] | None = None


StampTarget = Literal["documents", "combined"]


class CertsignStatus(StrEnum):
    """Specification 2.3, ``certsign_sign_status``."""

    PENDING = "pending"
    SIGNED = "signed"
    FAILED = "failed"


class DutystampStatus(StrEnum):
    """How far the duty stamps of a submission are, all of them together."""

    PENDING = "pending"
    STAMPED = "stamped"
    FAILED = "failed"


class ReturnedState(Tolerant):
    """Who has sent a submission back for correction, when, and why."""

    submitter_id: int
    at: Moment
    reason: str | None = None


class CertsignState(Tolerant):
    """How far a provider's signature is. ``message`` says in words what happened last, ``next_attempt_at`` when it is tried
    again by itself (None: not by itself). ``subject`` and ``valid_to`` are the certificate's. ``waived_by``: the local
    certificate was taken instead, because a person decided so."""

    status: CertsignStatus
    provider: str
    message: str | None = None
    at: Moment
    next_attempt_at: Moment | None = None
    subject: str | None = None
    valid_to: Moment | None = None
    waived_by: str | None = None


class Price(Tolerant):
    """``amount`` in whole units of ``currency`` (ISO 4217), as the provider counts."""

    amount: int
    currency: str


class StampState(Tolerant):
    """One stamp. ``state``: ``planned``, ``buying``, ``reserved``, ``placing``, ``placed``, ``confirmed``, ``unknown`` or
    ``failed``. ``x``, ``y``, ``w``, ``h`` are points of the visible page, from its lower left corner."""

    target: StampTarget
    document_index: int | None = None
    page: int | None = None
    x: float | None = None
    y: float | None = None
    w: float | None = None
    h: float | None = None
    code_document: str | None = None
    serial: str | None = None
    state: str
    price: Price | None = None
    stamped_at: Moment | None = None
    error: str | None = None


class DutystampState(Tolerant):
    """How far a submission's stamps are, in the order in which they were planned."""

    status: DutystampStatus
    provider: str
    stamps: list[StampState] = Field(default_factory=list)
    message: str | None = None
    at: Moment
    next_attempt_at: Moment | None = None


class Submission(Tolerant):
    """Specification 2.3. ``completed`` only once the final documents and the audit trail exist (decisions).

    ``slug`` is None for a caller who only reads. ``erase_at``: when it is erased, because it will have been kept for as long as
    it should be; None for never, or while it has not ended. ``legal_hold``: it is not erased, by whomever, until that is taken
    away. ``test``: it was made in test mode, as were its submitters (docs/testing.md).

    ``schema`` (the documents) and ``report`` (what was changed or skipped in them) come with the answer that creates a one-off
    submission only, as do ``fields`` there.
    """

    id: int
    slug: str | None = None
    name: str | None = None
    status: SubmissionStatus
    sealing_status: SealingStatus | None = None
    sealing_error: str | None = None
    pades_level: str | None = None
    archive_until: Moment | None = None
    returned: ReturnedState | None = None
    certsign_sign_status: CertsignStatus | None = None
    certsign: CertsignState | None = None
    dutystamp_status: DutystampStatus | None = None
    dutystamp: DutystampState | None = None
    source: str = "api"
    order: Order
    submitters_order: Order
    expire_at: Moment | None = None
    archived: bool
    archived_at: Moment | None = None
    erase_at: Moment | None = None
    legal_hold: bool = False
    test: bool = False
    created_at: Moment
    updated_at: Moment
    completed_at: Moment | None = None
    variables: dict[str, Any] = Field(default_factory=dict)
    preferences: dict[str, Any] = Field(default_factory=dict)
    template: TemplateReference | None = None
    created_by_user: Person | None = None
    submitters: list[Submitter]
    documents: list[SealedDocumentLink] = Field(default_factory=list)
    audit_log_url: str | None = None
    combined_document_url: str | None = None
    submission_events: list[SubmissionEvent] | None = None
    fields: list[FieldDefinition] | None = None
    # `schema` would hide BaseModel's own attribute.
    document_schema: list[SchemaItem] | None = Field(default=None, alias="schema")
    report: list[Notice] | None = None

    model_config = ConfigDict(extra="ignore", serialize_by_alias=True, populate_by_name=True)


class SubmissionDocument(DocumentLink):
    """``preview_image_url`` gives pictures of the pages."""

    preview_image_url: str | None = None


class SubmissionDocuments(Tolerant):
    id: int
    documents: list[SubmissionDocument]


class Erasure(Tolerant):
    """The receipt for a record that was removed for good. ``storage`` says what becomes of the room that its values took in the
    files of the database: ``overwritten`` within a minute, or ``left_to_vacuum``: the database reuses it in its own time."""

    at: Moment
    storage: str


class Removed(Tolerant):
    """Answer to a DELETE: ``archived_at`` is null when the record was removed for good; ``erasure`` is the receipt for that, of
    a submission."""

    id: int
    archived_at: Moment | None = None
    erasure: Erasure | None = None


class Attachment(Tolerant):
    """A file that a signer put into a field; ``uuid`` is then the field's value."""

    uuid: str
    created_at: Moment
    url: str
    filename: str
    content_type: str


class FormerSecret(Tolerant):
    """A signing secret that was replaced, with which deliveries are signed as well until then."""

    secret: str
    valid_until: Moment


WebhookPayload = Literal["full", "thin"]


class Webhook(Tolerant):
    """Specification 2.5; ``signing_secret`` (``whsec_...``) verifies the Standard Webhooks headers, as do
    ``former_signing_secrets`` for a time. ``payload``: whether it is told the whole record (``full``) or only which one
    it is (``thin``). ``file_link_minutes``: for so long links to files in what it is told are good without a key; None: never.
    ``test``: it is told what happens in test mode, and nothing else."""

    id: int
    url: str
    events: list[str]
    secret: dict[str, str] = Field(default_factory=dict)
    signing_secret: str
    former_signing_secrets: list[FormerSecret] = Field(default_factory=list)
    payload: WebhookPayload = "full"
    file_link_minutes: int | None = None
    disabled_at: Moment | None = None
    test: bool = False
    created_at: Moment
    updated_at: Moment


class EventRecord(Tolerant):
    """Specification 2.6: exactly the webhook body, with the id that is its ``webhook-id`` header."""

    id: str
    event_type: str
    timestamp: Moment
    data: dict[str, Any]
