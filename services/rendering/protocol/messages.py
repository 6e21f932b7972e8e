"""Everything that the service can ask of its children: each task as one typed value, with what goes in and what comes out.

``Renderer`` asks, ``tasks`` and ``office`` do it; both follow the types here. A message is JSON, with the ``File`` in it beside
(``frames``). Parent and child are of one version, because the one starts the other; a child may have been taken over by a file
that it read, so what it answers is validated. This module imports nothing that reads files: the service has it, too.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import Annotated, Any, Generic, TypeVar

from pydantic import PlainSerializer, PlainValidator, SerializationInfo, TypeAdapter, ValidationInfo

from contracts.detection import DetectedField
from contracts.fields.boxes import FieldBox
from contracts.rpc.rendering import (
    CheckValues,
    DrawnArea,
    DrawValues,
    FillRequest,
    PageFooter,
    SealRequest,
    TagField,
    Verification,
    VerifiedSignature,
)
from contracts.types import Area, FieldDefinition, FieldType, Notice, PageSize
from services.rendering.protocol.frames import Bytes
from services.rendering.rules.stamps import FileToStamp

M = TypeVar("M")
Q = TypeVar("Q")
R = TypeVar("R")
A = TypeVar("A")


def _beside(data: Bytes, info: SerializationInfo) -> int:
    """Put a file beside the message; its place stands for it."""
    parts: list[Bytes] = info.context  # type: ignore[assignment]
    parts.append(data)
    return len(parts) - 1


def _file_beside(place: object, info: ValidationInfo) -> bytes:
    """Take a file from beside the message. Raises ValueError when there is none at that place."""
    parts: Sequence[bytes] = info.context  # type: ignore[assignment]
    if type(place) is not int or not 0 <= place < len(parts):
        raise ValueError("no such part")
    return parts[place]


File = Annotated[bytes, PlainValidator(_file_beside), PlainSerializer(_beside, return_type=int)]
"""Bytes that travel beside the message, uncopied."""


@dataclass(frozen=True)
class Packed:
    """A message as it travels: its JSON, and the files beside it."""

    payload: bytes
    parts: Sequence[Bytes] = ()


@dataclass(frozen=True)
class Report:
    """What became of a job, for the pool: the message that goes with it is the answer when it was neither ``refused`` nor
    ``failed``. ``waited``: seconds until the rest of the request came; ``memory``: the child's peak in bytes; a ``spent`` child
    is to be replaced."""

    refused: str | None = None
    file: int | None = None
    field: str | None = None
    cause: str | None = None
    failed: str | None = None
    trace: str = ""
    exhausted: bool = False
    no_room: bool = False
    waited: float = 0.0
    memory: int = 0
    spent: bool = False


class Shape(Generic[M]):
    """One type of message: how it is packed and unpacked."""

    def __init__(self, type_: type[M]) -> None:
        self._type = type_

    @cached_property
    def _adapter(self) -> TypeAdapter[M]:
        return TypeAdapter(self._type)

    def pack(self, message: M) -> Packed:
        parts: list[Bytes] = []
        return Packed(self._adapter.dump_json(message, context=parts), parts)

    def unpack(self, packed: Packed) -> M:
        """Raises ValidationError, a ValueError, when it is no such message."""
        return self._adapter.validate_json(packed.payload, context=packed.parts)


class Task(Generic[Q, A]):
    """Something that a child does: a ``request`` goes in, an ``answer`` comes out."""

    def __init__(self, name: str, request: type[Q], answer: type[A]) -> None:
        self.name, self.request, self.answer = name, Shape(request), Shape(answer)

    def done_by(self, function: Callable[[Q], A]) -> "Work[Q, A]":
        """Decorate the function that does the task, which has the task's name."""
        return Work(self, function)


class TaskInTwoParts(Task[Q, A], Generic[Q, R, A]):
    """A task that begins before everything for it is known; ``rest`` is what is told later."""

    def __init__(self, name: str, request: type[Q], rest: type[R], answer: type[A]) -> None:
        super().__init__(name, request, answer)
        self.rest = Shape(rest)

    def begun_by(self, function: Callable[[Q], Generator[None, R, A]]) -> "WorkInTwoParts[Q, R, A]":
        """Decorate the generator that does the task: it yields once, and gets the rest there."""
        return WorkInTwoParts(self, function)


class Work(Generic[Q, A]):
    """A task together with the function that does it; called as the function is."""

    def __init__(self, task: Task[Q, A], function: Callable[[Q], A]) -> None:
        self._task, self._function, self.__doc__ = task, function, function.__doc__

    def __call__(self, request: Q) -> A:
        return self._function(request)

    def answered(self, request: Packed, _rest: Callable[[], Packed]) -> Packed:
        """Do the task; request and answer are packed."""
        return self._task.answer.pack(self._function(self._task.request.unpack(request)))


class WorkInTwoParts(Generic[Q, R, A]):
    """The same for a task in two parts."""

    def __init__(self, task: TaskInTwoParts[Q, R, A], function: Callable[[Q], Generator[None, R, A]]) -> None:
        self._task, self._function, self.__doc__ = task, function, function.__doc__

    def __call__(self, request: Q, rest: Callable[[], R]) -> A:
        """``rest`` waits for what was not known, and is called whatever became of the beginning."""
        return _continued(self._function(request), rest)

    def answered(self, request: Packed, rest: Callable[[], Packed]) -> Packed:
        """Do the task; request, rest and answer are packed."""

        def going() -> Generator[None, R, A]:
            return (yield from self._function(self._task.request.unpack(request)))

        return self._task.answer.pack(_continued(going(), lambda: self._task.rest.unpack(rest())))


def _continued(going: Generator[None, R, A], rest: Callable[[], R]) -> A:
    """Go on with the rest, which is taken whatever became of the beginning: it has been sent."""
    try:
        next(going)
    finally:
        more = rest()
    try:
        going.send(more)
    except StopIteration as end:
        answer: A = end.value
        return answer
    raise AssertionError("a task yields once")


@dataclass(frozen=True)
class OneFile:
    data: File


# --- documents that come in -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """How large a document may be: ``bytes``, and ``pages``."""

    bytes: int
    pages: int


@dataclass(frozen=True)
class DocxTag:
    """``text`` is what stands between the braces; ``align`` left, center or right; ``mirrored``: its paragraph is written from
    right to left."""

    text: str
    align: str
    mirrored: bool = False


@dataclass(frozen=True)
class PreparePdf:
    """``data`` is a PDF or a picture. ``docx_tags`` and ``docx_fonts``: it was a DOCX that has these."""

    data: File
    name: str
    limits: Limits
    remove_tags: bool
    flatten: bool
    docx_tags: list[DocxTag] | None = None
    docx_fonts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Prepared:
    """``converted``: the PDF that an HTML document became, before it was normalised. ``variables``: what a DOCX asks for."""

    file: File
    pages: list[PageSize]
    fields: list[TagField]
    signed: bool
    report: list[Notice]
    converted: File | None = None
    variables: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PrepareDocx:
    """``variables`` None leaves placeholders as text."""

    data: File
    name: str
    limits: Limits
    variables: dict[str, Any] | None


@dataclass(frozen=True)
class ReadyDocx:
    """``file`` is safe to convert. ``variables``: what the document asks for (JSON Schema by name); ``fonts``: names."""

    file: File
    variables: dict[str, Any]
    tags: list[DocxTag]
    fonts: list[str]
    report: list[Notice] = field(default_factory=list)


@dataclass(frozen=True)
class ExternalUrls:
    """``assets``: the files that were fetched already, by URL."""

    texts: Sequence[str]
    assets: dict[str, File]


@dataclass(frozen=True)
class PrepareHtml:
    """``today`` is what header and footer say where they ask for it; ``assets`` are the fetched files by URL."""

    html: str
    header: str | None
    footer: str | None
    size: str
    name: str
    limits: Limits
    assets: dict[str, File]
    today: date


@dataclass(frozen=True)
class DetectFields:
    """``data`` is a PDF that was prepared; no field is proposed where an area is ``taken``."""

    data: File
    taken: Sequence[Area] = ()


@dataclass(frozen=True)
class Detected:
    """``report``: pages that were not looked at, and why."""

    fields: list[DetectedField]
    report: list[Notice] = field(default_factory=list)


PREPARE_PDF = Task("prepare_pdf", PreparePdf, Prepared)
PREPARE_DOCX = Task("prepare_docx", PrepareDocx, ReadyDocx)
CONVERT = Task("convert", OneFile, OneFile)
EXTERNAL_URLS = Task("external_urls", ExternalUrls, list[str])
PREPARE_HTML = Task("prepare_html", PrepareHtml, Prepared)
DETECT_FIELDS = Task("detect_fields", DetectFields, Detected)


# --- sealing --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mechanism:
    """A way to sign: ``algorithm`` is ``rsa`` (PKCS #1 v1.5), ``rsa-pss`` or ``ecdsa``, ``hash`` is ``sha256``, ``sha384`` or
    ``sha512``."""

    algorithm: str
    hash: str = "sha256"


@dataclass(frozen=True)
class SignatureText:
    """What the signature dictionary says in words."""

    name: str
    reason: str
    signed_at: datetime
    application: str = "Countersign"


@dataclass(frozen=True)
class ValidationMaterial:
    """What PAdES B-LT puts into the file so that it can be checked when nobody can be asked any more: DER each."""

    certificates: Sequence[File] = ()
    ocsp_responses: Sequence[File] = ()
    revocation_lists: Sequence[File] = ()

    def __bool__(self) -> bool:
        return bool(self.ocsp_responses or self.revocation_lists)


@dataclass(frozen=True)
class Place:
    """How the signature is announced in the file and how much room it gets: ``size`` in octets."""

    text: SignatureText
    size: int
    material: ValidationMaterial


@dataclass(frozen=True)
class Reserved:
    """``data`` is the finished file but for ``size`` hexadecimal zeros at ``start``; ``digest`` is SHA-256 of the rest."""

    data: File
    start: int
    size: int
    digest: File


Corners = tuple[float, float, float, float]
"""Left, bottom, right and top, where nothing else is said in default user space."""


@dataclass(frozen=True)
class ValueDrawn:
    """What must be found again in the sealed file: see ``jobs.drawing.fill.Drawn``."""

    field_uuid: str
    page: int
    rectangle: Corners
    text: str | None
    picture: tuple[str, Corners] | None


@dataclass(frozen=True)
class FillDraft:
    """``attachments`` are in the order of those in ``request``; ``document`` is the uuid of the one whose file is ``data``."""

    request: FillRequest
    document: str
    data: File
    attachments: Sequence[File]


@dataclass(frozen=True)
class FillAndReserve(FillDraft):
    """``certify``: the seal says that nothing may be changed afterwards."""

    place: Place
    certify: bool = False


@dataclass(frozen=True)
class Filled:
    """``conformance``: what the file claims to be and is; None where others have signed what it claims."""

    reserved: Reserved
    drawn: list[ValueDrawn]
    conformance: list[str] | None


@dataclass(frozen=True)
class ProviderSignature:
    """A document was signed by ``provider`` with this ``certificate`` (DER), not with the installation's own."""

    provider: str
    certificate: File
    signed_at: datetime


@dataclass(frozen=True)
class DutyStamped:
    """Duty stamps with these ``serials`` were put onto a sealed file by ``provider``."""

    provider: str
    serials: list[str]
    stamped_at: datetime


@dataclass(frozen=True)
class Waiver:
    """The signature of ``provider`` was given up: ``by`` decided so."""

    provider: str
    by: str
    at: datetime


@dataclass(frozen=True)
class DrawTrail:
    """``attachments`` are in the order of those in ``request``; ``issuer`` is who issued the certificate of the seal.
    ``waiver``: a provider was to sign the documents, and did not."""

    request: SealRequest
    attachments: Sequence[File]
    place: Place
    issuer: str
    waiver: Waiver | None = None


@dataclass(frozen=True)
class SealedSummary:
    """A document as it came and as it left; ``size`` in bytes. ``signature`` where a provider signed it; ``stamps`` that it got
    after it was sealed, when its SHA-256 was ``unstamped_sha256``. ``original_sha256`` is empty for what was not uploaded."""

    name: str
    original_sha256: str
    sealed_sha256: str
    pages: int
    size: int
    level: str
    signature: ProviderSignature | None = None
    stamps: DutyStamped | None = None
    unstamped_sha256: str = ""


@dataclass(frozen=True)
class ReservedPages:
    """A file of so many ``pages``; ``warnings`` say what could not be taken over into it."""

    reserved: Reserved
    pages: int
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CheckSeal:
    """``certificate`` is that of the seal (DER); ``fields`` are the definitions of what is ``drawn``."""

    data: File
    certificate: File
    pages: int
    drawn: Sequence[ValueDrawn]
    fields: Sequence[FieldDefinition]


FILL_AND_RESERVE = Task("fill_and_reserve", FillAndReserve, Filled)
AUDIT_TRAIL = TaskInTwoParts("audit_trail", DrawTrail, list[SealedSummary], ReservedPages)
CHECK_SEAL = Task("check_seal", CheckSeal, str)
FILL_DRAFT = Task("fill_draft", FillDraft, OneFile)


# --- duty stamps ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlaceStamps:
    """``data`` is the sealed file, ``size`` width and height of a stamp in points."""

    data: File
    file: FileToStamp
    size: tuple[float, float]


@dataclass(frozen=True)
class PlacedStamp:
    """A place that was worked out: ``visible`` in points of the visible page, upright, from its lower left corner, ``box`` in
    default user space, as a provider wants it."""

    page: int
    visible: Corners
    box: Corners


@dataclass(frozen=True)
class CheckStamp:
    """``sealed`` is the file that a provider got, ``stamped`` what it gave back; ``box`` on ``page`` is where the stamp of that
    ``serial`` number was wished. ``anchors`` are the certificates (DER) that its chain may end in."""

    sealed: File
    stamped: File
    serial: str
    page: int
    box: Corners
    anchors: Sequence[File]
    now: datetime


@dataclass(frozen=True)
class FillAndCombine:
    """``files`` and ``attachments`` are in the order of the documents and attachments in ``request``."""

    request: FillRequest
    files: Sequence[File]
    attachments: Sequence[File]
    place: Place


@dataclass(frozen=True)
class FilledCombined:
    """One file of so many ``pages``; those in ``drawn`` are its own. ``warnings`` say what could not be taken over into it."""

    reserved: Reserved
    pages: int
    drawn: list[ValueDrawn]
    warnings: list[str] = field(default_factory=list)


FILL_AND_COMBINE = Task("fill_and_combine", FillAndCombine, FilledCombined)
CHECK_STAMP = Task("check_stamp", CheckStamp, VerifiedSignature)
PLACE_STAMPS = Task("place_stamps", PlaceStamps, list[PlacedStamp])


# --- answers of authorities -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadTimeStamp:
    """``response`` is the authority's answer, ``digest`` the SHA-256 of what was to be stamped."""

    response: File
    digest: File
    nonce: int


@dataclass(frozen=True)
class Token:
    """A time-stamp that was checked: ``token`` and the ``certificates`` in it (DER), the authority's first."""

    token: File
    time: datetime
    certificates: Sequence[File]


@dataclass(frozen=True)
class RevocationQuestions:
    """``leaves`` are the certificates to ask about, ``known`` those that may be their issuers."""

    leaves: Sequence[File]
    known: Sequence[File]


@dataclass(frozen=True)
class Question:
    """Whom to ask about a certificate: ``ocsp`` are URLs for GET with the request in them (RFC 6960, appendix A), ``crl``
    those of lists; http and https only. ``serial`` is hexadecimal."""

    subject: str
    serial: str
    ocsp: list[str] = field(default_factory=list)
    crl: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CheckRevocation:
    """``answer`` is an OCSP response or, for any other ``kind`` than ``ocsp``, a revocation list."""

    kind: str
    answer: File
    serial: str
    known: Sequence[File]
    now: datetime


@dataclass(frozen=True)
class RevocationVerdict:
    """Until when the answer holds, or why the certificate is ``revoked``."""

    until: datetime | None = None
    revoked: str | None = None


@dataclass(frozen=True)
class SurveyArchive:
    """``authority`` are the certificates of who will give the archive time-stamp of ``data``, its own first."""

    data: File
    authority: Sequence[File]


@dataclass(frozen=True)
class ArchiveSurvey:
    """Of which certificates a file lacks proofs: the ``required`` ones belong to our seal and to the time-stamps that keep it,
    ``others`` to signatures of others. ``certificates`` are all that are known (DER)."""

    required: list[Question]
    others: list[Question]
    certificates: Sequence[File]


@dataclass(frozen=True)
class ReserveArchive:
    """``size``: octets of the archive time-stamp at most."""

    data: File
    material: ValidationMaterial
    size: int


@dataclass(frozen=True)
class ArchiveFound:
    """What an archived file is: its PAdES ``level``, when it was stamped, and until when the authority's certificates last."""

    level: str
    stamped_at: datetime
    until: datetime


SURVEY_ARCHIVE = Task("survey_archive", SurveyArchive, ArchiveSurvey)
RESERVE_ARCHIVE = Task("reserve_archive", ReserveArchive, Reserved)
CHECK_ARCHIVE = Task("check_archive", OneFile, ArchiveFound)
READ_TIME_STAMP = Task("read_time_stamp", ReadTimeStamp, Token)
REVOCATION_QUESTIONS = Task("revocation_questions", RevocationQuestions, list[Question])
CHECK_REVOCATION = Task("check_revocation", CheckRevocation, RevocationVerdict)


# --- what providers of remote certificates hand out -----------------------------------------------------------------------


@dataclass(frozen=True)
class CheckChain:
    """``certificates`` of a provider (DER), the signer's first; ``mechanisms`` that it offers; ``anchors`` are the trusted
    certificates (DER)."""

    certificates: Sequence[File]
    mechanisms: Sequence[Mechanism]
    anchors: Sequence[File]
    now: datetime


@dataclass(frozen=True)
class Signatory:
    """Who signs, of a chain that was checked: ``chain`` in DER from the signer's certificate to the root, ``name`` its common
    name, ``issuer`` a Name in DER (``issuer_name`` in words), ``serial`` hexadecimal. ``mechanism`` is what to sign with; a
    signature has at most ``signature_size`` octets."""

    chain: Sequence[File]
    name: str
    subject: str
    issuer: File
    serial: str
    mechanism: Mechanism
    signature_size: int
    valid_from: datetime
    valid_to: datetime
    issuer_name: str = ""


@dataclass(frozen=True)
class CheckSignatures:
    """Raw ``signatures`` that a provider gave of ``digests``, in their order; ``certificate`` is the signer's (DER)."""

    certificate: File
    mechanism: Mechanism
    digests: Sequence[File]
    signatures: Sequence[File]


@dataclass(frozen=True)
class CheckedSignatures:
    """The same signatures, as they go into a file."""

    signatures: Sequence[File]


CHECK_CHAIN = Task("check_chain", CheckChain, Signatory)
CHECK_SIGNATURES = Task("check_signatures", CheckSignatures, CheckedSignatures)


# --- tools ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verify:
    """``anchors`` are the trusted certificates (DER)."""

    data: File
    anchors: Sequence[File]
    now: datetime
    sealed_here: bool


@dataclass(frozen=True)
class FindSealMaterial:
    """``signatures`` (CMS) are those whose roots are wanted besides what the seal of ``data`` carries."""

    data: File
    signatures: Sequence[File]


@dataclass(frozen=True)
class SealMaterial:
    """In DER: the ``chain`` of a seal, signer first, ``roots``, revocation ``lists`` and OCSP ``answers``."""

    chain: list[File] = field(default_factory=list)
    roots: list[File] = field(default_factory=list)
    lists: list[File] = field(default_factory=list)
    answers: list[File] = field(default_factory=list)


@dataclass(frozen=True)
class Combine:
    files: Sequence[File]
    title: str


@dataclass(frozen=True)
class Combined:
    data: File
    warnings: list[str]


@dataclass(frozen=True)
class CombineAndReserve(Combine):
    place: Place


@dataclass(frozen=True)
class DrawPage:
    """``page`` from 1; ``width`` in pixels."""

    data: File
    page: int
    width: int
    boxes: Sequence[FieldBox]
    footer: PageFooter | None
    light: bool = False


@dataclass(frozen=True)
class ReadText:
    """``first``: the page, from 1, with which the answer begins."""

    data: File
    first: int


ReadWord = tuple[int, int, int, int, str]
"""Left, top, width and height in ten-thousandths of the visible page, and what is written there."""


@dataclass(frozen=True)
class ReadLine:
    """``angle`` in degrees, clockwise; ``vertical``: written from top to bottom; ``wide``: with gaps, as a row of a table."""

    words: Sequence[ReadWord]
    angle: int = 0
    vertical: bool = False
    wide: bool = False


@dataclass(frozen=True)
class ReadBlock:
    """``kind``: p, h1 to h6, li, th or td; ``group``: the number of its list or table on the page, 0 for none; ``row``
    in it."""

    kind: str
    lines: Sequence[ReadLine]
    group: int = 0
    row: int = 0


@dataclass(frozen=True)
class ReadPage:
    """What a page shows as text. ``kind``: text, picture, blank or too_long. ``hidden`` characters are in the file and are not
    seen; ``recognised`` is such text of a scan, by a program or by the sender. ``pictures``: the sender's descriptions."""

    number: int
    kind: str
    words: int = 0
    hidden: int = 0
    recognised: str = ""
    pictures: Sequence[str] = ()
    blocks: Sequence[ReadBlock] = ()


@dataclass(frozen=True)
class TextRead:
    """``language``: what the document says of itself, a language tag."""

    language: str | None
    pages: Sequence[ReadPage]


@dataclass(frozen=True)
class DrawAreas:
    """``attachments`` are in the order of those in ``request``, empty where they are no pictures."""

    request: DrawValues
    attachments: Sequence[File]


@dataclass(frozen=True)
class PrepareImage:
    data: File
    type: FieldType


@dataclass(frozen=True)
class TypedSignature:
    text: str
    style: int


VERIFY = Task("verify", Verify, Verification)
SEAL_MATERIAL = Task("seal_material", FindSealMaterial, SealMaterial)
COMBINE = Task("combine", Combine, Combined)
COMBINE_AND_RESERVE = Task("combine_and_reserve", CombineAndReserve, ReservedPages)
DRAW_PAGE = Task("draw_page", DrawPage, OneFile)
DRAW_THUMBNAIL = Task("draw_thumbnail", OneFile, OneFile)
READ_TEXT = Task("read_text", ReadText, TextRead)
DRAW_VALUES = Task("draw_values", DrawAreas, list[DrawnArea])
PREPARE_IMAGE = Task("prepare_image", PrepareImage, OneFile)
DRAW_SIGNATURE = Task("draw_signature", TypedSignature, OneFile)
DRAW_SIGNATURE_STYLES = Task("draw_signature_styles", str, list[str])
CHECK_TEXT = Task("check_text", list[str], list[str])
CHECK_VALUES = Task("check_values", CheckValues, dict[str, str])
