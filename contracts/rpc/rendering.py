"""Rendering: everything that is done to a PDF. Stateless towards its callers: files in, files out (specification 4.5)."""

from typing import Any, Literal

from pydantic import Field

from contracts.blobs import BlobRef
from contracts.detection import DetectedField
from contracts.evidence.manifest import Manifest
from contracts.evidence.statements import Parts, Statement
from contracts.fields.boxes import FieldBox
from contracts.providers import (
    CertsignOrder,
    ConfirmationView,
    DutystampOrder,
    LedgerEntry,
    StampOffer,
    StampPosition,
    StampTarget,
)
from contracts.rpc import Rpc
from contracts.stored_documents import StoredDocument
from contracts.types import (
    Account,
    ActsAs,
    Area,
    FieldContent,
    FieldDefinition,
    FieldType,
    Moment,
    Notice,
    Page,
    PageRequest,
    PageSize,
    Tolerant,
)


class TagField(FieldContent):
    """A field found in the document: a ``{{...}}`` text tag, an HTML field tag or an AcroForm field.

    Same meaning as FieldInput, but ``areas`` are already fractions of the visible page. ``role`` None: the first role.
    """

    role: str | None = None
    condition: str | None = None
    areas: list[Area] = Field(default_factory=list)


class DetectFields(Tolerant):
    """Look for the places of a PDF (of ``PreparedDocument.file``) that are there to be filled in. No field is proposed where an
    area is ``taken``. ``keep``: the answer is kept to be given again, as pictures of pages are."""

    file: BlobRef
    taken: list[Area] = Field(default_factory=list)
    keep: bool = False


class DetectedFields(Tolerant):
    """The proposals in the order of reading. ``report``: pages that were not looked at, and why."""

    fields: list[DetectedField]
    report: list[Notice] = Field(default_factory=list)


class PreparePdf(Tolerant):
    """``file`` is a PDF or a picture. ``remove_tags`` erases the tags' text; ``flatten`` turns form fields into plain page
    content."""

    name: str
    file: BlobRef
    remove_tags: bool = True
    flatten: bool = False


class PrepareHtml(Tolerant):
    name: str
    html: str
    html_header: str | None = None
    html_footer: str | None = None
    size: str = "Letter"


class PrepareDocx(Tolerant):
    """``variables`` fill the placeholders (``[[name]]``, conditions, loops): a missing one is refused by name. None leaves
    them as text, for a template that is filled later."""

    name: str
    file: BlobRef
    variables: dict[str, Any] | None = None
    remove_tags: bool = True


class PreparedDocument(Tolerant):
    """A document that is known to be sealable (it was filled, sealed and verified once as a trial).

    ``file`` is normalised: active content dropped, repaired, or untouched when ``signed`` (then only incremental
    updates are allowed). ``report`` says what was changed or skipped, and why. ``variables``: those that a DOCX asks for, as
    JSON Schema by name.
    """

    file: BlobRef
    original: BlobRef
    pages: list[PageSize]
    fields: list[TagField] = Field(default_factory=list)
    signed: bool = False
    report: list[Notice] = Field(default_factory=list)
    variables: dict[str, Any] = Field(default_factory=dict)


class PageFooter(Tolerant):
    """The line at the foot of a page that is ``width`` x ``height`` points, upright."""

    text: str
    width: float
    height: float


class DrawPage(Tolerant):
    """``page`` from 1; ``width`` of the picture in pixels; ``boxes`` are drawn over it, those of this page; ``footer`` is what
    the documents of a submission get there.
    ``format``: ``png``, or ``light``, which is PNG or WebP, whichever is smaller, and looks the same; a service of an older
    version gives PNG, so the answer's media type says what it is.
    Without ``keep`` nothing is kept to be given again, because somebody's values are on the page: the picture is among the
    incoming files then, and the caller removes it."""

    file: BlobRef
    page: int
    width: int = 1400
    boxes: list[FieldBox] = Field(default_factory=list)
    footer: PageFooter | None = None
    format: Literal["png", "light"] = "png"
    keep: bool = True


THUMBNAIL_WIDTH, THUMBNAIL_HEIGHT, THUMBNAIL_BYTES = 240, 400, 25_000


class DrawThumbnail(Tolerant):
    """A small picture of the first page of a PDF, for mails: a PNG of 240 x 400 pixels and 25,000 bytes at most, in few
    colours. What is longer is cut at the foot. Kept as pictures of pages are."""

    file: BlobRef


class ReadText(Tolerant):
    """The text of pages, ``first`` (from 1) and some that follow it: as many as are read quickly. The answer is JSON in the
    file store, kept as pictures of pages are: ``language`` of the document or null, and ``pages``, each with

    - ``number``, and ``kind``: ``text``, ``picture`` (a scan: it has no text that is seen), ``blank``, or ``too_long``;
    - ``hidden``: how many characters are in the file that its picture does not show; ``recognised``: such text of a scan;
    - ``pictures``: how the sender describes those on the page;
    - ``blocks`` in the order of reading: ``kind`` (p, h1 to h6, li, th, td), ``group`` and ``row`` of lists and tables, and
      ``lines``: ``words``, each left, top, width, height in ten-thousandths of the visible page, and text; ``angle`` in
      degrees, clockwise; ``vertical``; ``wide`` with gaps as a row of a table has.

    There is no other text in it than what the picture of the page shows, but in ``recognised`` and ``pictures``. What is absent
    is 0, false or empty."""

    file: BlobRef
    first: int = 1


class PrepareImage(Tolerant):
    """A picture from outside: decoded in a child with limits, turned upright, re-encoded.

    ``type`` is the field's type; a signature or initials without a visible stroke is refused (``signature is empty``).
    """

    file: BlobRef
    type: FieldType


SIGNATURE_STYLES = 5
"""Handwritten styles that a typed signature can have."""


class DrawSignature(Tolerant):
    """A typed name as a picture in a handwritten ``style``, from 1: as DRAW_SIGNATURE_STYLES has shown them."""

    text: str
    style: int = Field(default=1, ge=1, le=SIGNATURE_STYLES)


class DrawSignatureStyles(Tolerant):
    """A typed name, to be shown in each style."""

    text: str


class SignatureStyles(Tolerant):
    """``pictures``: a PNG in base64 for each style, small, black on white, of the picture that DRAW_SIGNATURE makes."""

    pictures: list[str]


class CheckText(Tolerant):
    texts: list[str]


class UndrawableText(Tolerant):
    """For each text of the request the characters that no font can draw; all empty when everything can be drawn."""

    characters: list[str]


class FilledAttachment(Tolerant):
    """A file behind a value. Pictures are PNG or JPEG, checked and re-encoded when they came in. ``url`` is where its name on
    paper leads; empty: to the page of the submission."""

    uuid: str
    filename: str
    file: BlobRef
    created_at: Moment
    branding: bool = False
    url: str = ""


class FieldValue(Tolerant):
    """A field with what goes onto the page. ``value`` is typed as in peer facts 1.2 (attachment uuids for files and
    pictures); ``submitter_id`` says whose it is."""

    field: FieldDefinition
    value: Any = None
    submitter_id: int


class SignatureNote(Tolerant):
    """Printed beside a signature: see peer facts 4.2, 'signature with ID'."""

    field_uuid: str
    reason: str | None = None


class PartySummary(Tolerant):
    """A signer, as the audit trail shows them (peer facts 4.5). ``invited_at`` is when their turn came, ``sent_at`` when the
    mail server took their invitation: they may have opened the link before, from elsewhere."""

    id: int
    role: str
    name: str | None = None
    email: str | None = None
    phone: str | None = None
    status: str
    ip: str | None = None
    user_agent: str | None = None
    time_zone: str | None = None
    invited_at: Moment | None = None
    sent_at: Moment | None = None
    opened_at: Moment | None = None
    completed_at: Moment | None = None
    completed_by_api: str | None = None
    acts_as: str = ActsAs.SIGNER.value
    decline_reason: str | None = None
    consent: dict[str, Any] | None = None


class TrailEvent(Tolerant):
    """A line of the audit trail with its place in the hash chain."""

    submitter_id: int | None = None
    event_type: str
    occurred_at: Moment
    data: dict[str, Any] = Field(default_factory=dict)
    hash: str


class FillRequest(Tolerant):
    """Documents with values; what becomes of it (a draft or sealed files) is the caller's choice. ``mark`` stands at the head
    of every page, empty for none; documents are sealed with one in test mode only. ``test``: they are of test mode, every page
    says so (``contracts.fields.paper.mark_of_test``), and nothing is bought for them."""

    submission_id: int
    submission_slug: str
    name: str
    account: Account
    documents: list[StoredDocument]
    values: list[FieldValue]
    attachments: list[FilledAttachment] = Field(default_factory=list)
    parties: list[PartySummary] = Field(default_factory=list)
    notes: list[SignatureNote] = Field(default_factory=list)
    base_url: str = ""
    mark: str = ""
    test: bool = False


class FillCopy(FillRequest):
    """One of the documents with its values, for somebody who waits for it: nothing of it is kept. ``document`` is its uuid."""

    document: str


class CheckValues(Tolerant):
    """Values before they are kept: can they be drawn, does each fit into its areas? No files are looked at, only the sizes of
    the documents' pages; pictures always fit. ``parties``: those that a stamp would be made for, as if they had completed."""

    account: Account
    documents: list[StoredDocument]
    values: list[FieldValue]
    parties: list[PartySummary] = Field(default_factory=list)


class CheckedValues(Tolerant):
    """``faults``: by field uuid why its value cannot be drawn, as a sentence goes on that begins with the field's name; empty
    when all of them can."""

    faults: dict[str, str] = Field(default_factory=dict)


class GivenByParty(Tolerant):
    """The answers of a completed party as the rows have them today: ``values`` by field uuid with files as their SHA-256, empty
    ones left out, and ``reasons`` for signing. ``statement`` and its ``parts`` as they were stated at the completion, None
    where an older version recorded it."""

    submitter_id: int
    party_uuid: str
    values: dict[str, Any] = Field(default_factory=dict)
    reasons: dict[str, str] = Field(default_factory=dict)
    statement: Statement | None = None
    parts: Parts | None = None


class ToCheck(Tolerant):
    """The rows that are compared with the statements before sealing, as they are today: all ``documents`` (``name``,
    ``sha256``, ``conditions``) by uuid and all definitions of ``fields``, also those that conditions keep off the paper."""

    documents: dict[str, dict[str, Any]] = Field(default_factory=dict)
    fields: list[dict[str, Any]] = Field(default_factory=list)
    parties: list[GivenByParty] = Field(default_factory=list)


class SealRequest(FillRequest):
    """Everything that sealing and the audit trail need. ``seal_id`` names this attempt: one job, one result. ``to_check`` is
    None in an order of an older version. ``certsign``: the seal is to be the provider's; ``dutystamp``: stamps
    follow it. ``confirmations``: those of the signers who have signed at a provider, in their order: the seal is put onto the
    files that the last of them has signed."""

    seal_id: str
    trail: list[TrailEvent]
    created_at: Moment
    completed_at: Moment
    to_check: ToCheck | None = None
    certsign: CertsignOrder | None = None
    dutystamp: DutystampOrder | None = None
    confirmations: list[str] = Field(default_factory=list)


class ConfirmationOrder(FillRequest):
    """Have the documents signed by a signer, with their own certificate at the provider: as they would be if the signer had
    completed. ``after``: the confirmations of those who have signed before, whose files are signed now. ``return_url`` is where
    the person comes back to from a page of the provider's. ``to_check`` says what their statement will confirm."""

    confirmation_id: str
    submitter_id: int
    certsign: CertsignOrder
    after: list[str] = Field(default_factory=list)
    return_url: str
    round: int = 1
    to_check: ToCheck


class FindConfirmation(Tolerant):
    """``round`` is the last one that was ordered: what is known of an earlier one is not shown any more."""

    confirmation_id: str
    round: int = 1


class AnswerConfirmation(Tolerant):
    """Answer a question of the provider's, by its ``ask``; or, with ``state``, bring back what the person came back with from
    its page. Answers to what is not asked any more change nothing."""

    request_id: str
    confirmation_id: str
    round: int = 1
    ask: int | None = None
    state: str | None = Field(None, repr=False)
    answers: dict[str, str] = Field(repr=False)


class AreaToDraw(Tolerant):
    """The field's ``areas[area]``, counted from 0."""

    field_uuid: str
    area: int = Field(ge=0)


class DrawValues(FillRequest):
    """Pictures of single values for a page that is ``width`` pixels wide, as sealing would draw them now. The files of the
    documents are not looked at, and nothing is stored."""

    areas: list[AreaToDraw]
    width: int = 1400


class DrawnArea(Tolerant):
    """``picture`` is a PNG (of photographs a JPEG or WebP, see ``media_type``) in base64, transparent but for the value; None
    when nothing is drawn there. It lies at ``x``, ``y``, ``w``, ``h``, fractions of the visible page: ink may reach a little
    out of the area. ``problem`` is why the value cannot be drawn, as a sentence goes on that begins with the field's name."""

    field_uuid: str
    area: int
    picture: str | None = None
    media_type: str = "image/png"
    x: float = 0.0
    y: float = 0.0
    w: float = 0.0
    h: float = 0.0
    problem: str | None = None


class DrawnValues(Tolerant):
    """In the order in which they were asked for. When the pictures become too many for one answer the last ones are left out,
    never the first."""

    areas: list[DrawnArea]


class DraftDocument(Tolerant):
    uuid: str
    name: str
    file: BlobRef


class Drafts(Tolerant):
    documents: list[DraftDocument]


class Combine(Tolerant):
    """``files`` in order; ``seal`` signs the result (used for the merged view of sealed documents). A refusal's details name
    the file at fault, such as ``files[1]``. ``test``: they are of test mode, no time-stamp is bought."""

    files: list[BlobRef]
    seal: bool = False
    name: str = "merged"
    test: bool = False


class Combined(Tolerant):
    file: BlobRef
    warnings: list[str] = Field(default_factory=list)


class SignEvidence(Tolerant):
    """Have the manifest of a submission's evidence completed and signed. ``manifest`` names the members that the caller has;
    its ``certificates``, ``root``, ``revocation`` and the statements of its parties are filled in. ``audit_trail`` is the
    sealed trail, whose certificates they are. ``documents`` are the sealed documents, in the manifest's order: some may have a
    provider's seal, whose certificates are filled in, too."""

    manifest: Manifest
    audit_trail: BlobRef
    documents: list[BlobRef] = Field(default_factory=list)


class SignedEvidence(Tolerant):
    """``manifest`` is the text of manifest.json, ``signature`` its detached CMS signature (DER in base64). ``made`` are the
    members that were filled in, in base64 by path; ``stored`` those that are in the file store."""

    manifest: str
    signature: str
    made: dict[str, str]
    stored: dict[str, BlobRef]


class Verify(Tolerant):
    """``trust_anchors``: PEM certificates that the account trusts for its providers, besides those that the installation
    trusts."""

    file: BlobRef
    trust_anchors: list[str] = Field(default_factory=list)


class VerifiedSignature(Tolerant):
    """One signature. ``indication`` and ``sub_indication`` are the words of EN 319 102-1; ``level`` is the PAdES level;
    ``trust`` is ``trusted`` when the chain ends in a root that this installation knows. ``certificate_sha256`` names the
    signer's certificate, None where none was found."""

    field: str
    signer_name: str | None = None
    issuer: str | None = None
    signing_reason: str | None = None
    signing_time: Moment | None = None
    timestamp: Moment | None = None
    signature_type: str | None = None
    digest: str | None = None
    level: str | None = None
    indication: str
    sub_indication: str | None = None
    integrity: str
    trust: str
    covers_whole_document: bool
    changed_after_signing: bool
    certificate_valid_from: Moment | None = None
    certificate_valid_to: Moment | None = None
    certificate_sha256: str | None = None
    verification_result: list[dict[str, str]] = Field(default_factory=list)


class Verification(Tolerant):
    """``checksum_status``: ``valid``, ``invalid``, ``unsigned``, or ``unknown`` when nothing is known to be wrong and something
    could not be checked; ``sealed_here`` when this very file is one of ours."""

    checksum_status: str
    sealed_here: bool = False
    signatures: list[VerifiedSignature] = Field(default_factory=list)


class Recognised(Tolerant):
    """The knowledge that this installation has of a file. ``own_seals`` are those fields of ``verification`` whose signature is
    made with the certificate of this installation's seal, whether it holds or not. Of a file that was sealed here,
    ``sealed_at`` says when, and ``submission_id`` of which submission it is, None for one that was made of several
    documents."""

    verification: Verification
    own_seals: list[str] = Field(default_factory=list)
    sealed_at: Moment | None = None
    submission_id: int | None = None


class GetRoot(Tolerant):
    pass


class Root(Tolerant):
    """The certificate (PEM) that the seal's chain ends in, its ``subject`` and the SHA-256 of its DER."""

    pem: str
    subject: str
    sha256: str


class CheckCertsign(Tolerant):
    """Find out what a provider of certificates is good for. ``settings`` is a CertsignSettings as JSON, sealed for the purpose
    CERTSIGN. ``sign``: have it authorise and sign a random hash as well, which it may charge for."""

    settings: str
    sign: bool = False


class CertsignCheck(Tolerant):
    """``provider`` as people call it (the host of its URL); ``subject`` and ``valid_to`` of its certificate, None where it
    could not be had. ``problem``: what is wrong, in words and without a secret; None when all that was asked for worked.
    ``last_signed_at``: when it last signed for this installation."""

    provider: str
    subject: str | None = None
    valid_to: Moment | None = None
    problem: str | None = None
    last_signed_at: Moment | None = None


class DescribeDutystamp(Tolerant):
    """``settings`` is a DutystampSettings as JSON, sealed for the purpose DUTYSTAMP. ``fresh``: ask the provider now, even
    if it was asked a short while ago."""

    settings: str
    fresh: bool = False


class DutystampDescription(Tolerant):
    """``offer`` is None where the provider does not answer; ``problem`` then says why, in words and without a secret.
    ``balance``: how many stamps can still be bought, None where nobody says."""

    provider: str
    offer: StampOffer | None = None
    balance: int | None = None
    problem: str | None = None


class CheckStampPositions(Tolerant):
    """Find out if duty stamps of ``width`` x ``height`` points have room in these documents, before a submission is made of
    them. Only the sizes of the pages are looked at and the places of the fields, no files."""

    documents: list[StoredDocument]
    fields: list[FieldDefinition] = Field(default_factory=list)
    targets: list[StampTarget]
    positions: list[StampPosition] = Field(default_factory=list)
    width: float
    height: float


class CheckedStampPositions(Tolerant):
    """``problems``: by the parameter's name (``positions[0].x``, ``targets``) why no stamp can be put there, as a sentence goes
    on that begins with that name; empty when all of them can."""

    problems: dict[str, str] = Field(default_factory=dict)


class ListStamps(PageRequest):
    """The ledger of all duty stamps that were bought; cursors are the entries' ids."""


PREPARE_PDF = Rpc("rendering", "prepare_pdf", PreparePdf, PreparedDocument, timeout=40)
PREPARE_DOCX = Rpc("rendering", "prepare_docx", PrepareDocx, PreparedDocument, timeout=75)
DETECT_FIELDS = Rpc("rendering", "detect_fields", DetectFields, DetectedFields, timeout=60)
PREPARE_HTML = Rpc("rendering", "prepare_html", PrepareHtml, PreparedDocument, timeout=40)
READ_TEXT = Rpc("rendering", "read_text", ReadText, BlobRef, timeout=25)
DRAW_PAGE = Rpc("rendering", "draw_page", DrawPage, BlobRef, timeout=25)
DRAW_THUMBNAIL = Rpc("rendering", "draw_thumbnail", DrawThumbnail, BlobRef, timeout=2)
PREPARE_IMAGE = Rpc("rendering", "prepare_image", PrepareImage, BlobRef, timeout=25)
DRAW_SIGNATURE = Rpc("rendering", "draw_signature", DrawSignature, BlobRef, timeout=15)
DRAW_SIGNATURE_STYLES = Rpc("rendering", "draw_signature_styles", DrawSignatureStyles, SignatureStyles, timeout=15)
CHECK_TEXT = Rpc("rendering", "check_text", CheckText, UndrawableText, timeout=10)
DRAW_VALUES = Rpc("rendering", "draw_values", DrawValues, DrawnValues, timeout=10)
CHECK_VALUES = Rpc("rendering", "check_values", CheckValues, CheckedValues, timeout=25)
FILL_DRAFTS = Rpc("rendering", "fill_drafts", FillRequest, Drafts, timeout=40)
FILL_COPY = Rpc("rendering", "fill_copy", FillCopy, BlobRef, timeout=40)
COMBINE = Rpc("rendering", "combine", Combine, Combined, timeout=40)
SIGN_EVIDENCE = Rpc("rendering", "sign_evidence", SignEvidence, SignedEvidence, timeout=40)
RECOGNISE = Rpc("rendering", "recognise", Verify, Recognised, timeout=40)
ROOT = Rpc("rendering", "root", GetRoot, Root)
VERIFY = Rpc("rendering", "verify", Verify, Verification, timeout=40)
CHECK_CERTSIGN = Rpc("rendering", "check_certsign", CheckCertsign, CertsignCheck, timeout=40)
DESCRIBE_DUTYSTAMP = Rpc("rendering", "describe_dutystamp", DescribeDutystamp, DutystampDescription, timeout=15)
CHECK_STAMP_POSITIONS = Rpc(
    "rendering", "check_stamp_positions", CheckStampPositions, CheckedStampPositions, timeout=25
)
STAMP_LEDGER = Rpc("rendering", "stamp_ledger", ListStamps, Page[LedgerEntry])
CONFIRMATION = Rpc("rendering", "confirmation", FindConfirmation, ConfirmationView)
ANSWER_CONFIRMATION = Rpc("rendering", "answer_confirmation", AnswerConfirmation, ConfirmationView)
