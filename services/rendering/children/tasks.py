"""What a child does: a function per task of ``protocol.messages``, which says what goes in and what comes out.

Libraries are imported where they are needed: a child that never sees HTML does not carry WeasyPrint.
"""

import io
from base64 import b64encode
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache

import pikepdf

from contracts.blobs import BlobRef
from contracts.rpc.rendering import CheckValues, DrawnArea, FieldValue, FillRequest, Verification, VerifiedSignature
from contracts.stored_documents import StoredDocument
from contracts.types import Account, Area, Box, FieldDefinition, FieldType, Notice, PageSize
from services.rendering.jobs.archival import claim as archival_claim
from services.rendering.jobs.drawing import fill
from services.rendering.jobs.drawing.places import FieldRefused
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing import certificates, cms, reserving
from services.rendering.jobs.sealing.verifying import read_back
from services.rendering.protocol import messages
from services.rendering.protocol.messages import (
    OneFile,
    Place,
    Prepared,
    ReservedPages,
    SignatureText,
    ValidationMaterial,
)
from services.rendering.rules import domain

# Limits change how strictly qpdf reads: from the first job on, not from the first upload on (intake adds its own).
pikepdf.settings.set_qpdf_limits(doc_max_warnings=2_000)

_TRIAL_TEXT = "Ag 0"
_NO_FILE = BlobRef(key="trial", sha256="", size=0, media_type="application/pdf")
_LIBRARY_ERRORS = (
    pikepdf.DependencyError,
    pikepdf.PdfError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
_SMALLEST_TRIAL_PAGE = 36.0
_TRIAL_ROOM = (40.0, 9.0)
"""Points that the text takes at most, when it is small."""
_AROUND_A_PICTURE = 2**20
"""What a PDF may have besides the data of a picture that are taken over."""


# --- documents that come in -----------------------------------------------------------------------------------------------


@messages.PREPARE_PDF.done_by
def prepare_pdf(request: messages.PreparePdf) -> Prepared:
    """Normalise, find fields, and try whether it can be filled, sealed and read back. A picture becomes a PDF first."""
    from services.rendering.jobs.docx.surroundings import DocxSurroundings
    from services.rendering.jobs.intake.preparing import Limits, prepare

    data, converted, most_bytes = _as_pdf(request)
    prepared = prepare(
        data,
        name=request.name,
        remove_tags=request.remove_tags,
        flatten=request.flatten,
        limits=Limits(bytes=most_bytes, pages=request.limits.pages),
        surroundings=None if request.docx_tags is None else DocxSurroundings(request.docx_tags),
    )
    notices = dry_run(prepared.file, prepared.pages, signed=prepared.signed)
    if request.docx_fonts:
        from services.rendering.jobs.docx.fonts import font_notices

        with pikepdf.open(io.BytesIO(prepared.file)) as pdf:
            notices += font_notices(pdf, request.docx_fonts, document=request.name)
    report = [*converted, *prepared.report, *notices]
    return Prepared(prepared.file, prepared.pages, prepared.fields, prepared.signed, report)


def _as_pdf(request: messages.PreparePdf) -> tuple[bytes, list[Notice], int]:
    """The PDF, what was done to make it one, and how large it may be."""
    from services.rendering.jobs.pictures.kind import picture_kind

    data, most = request.data, request.limits.bytes
    kind = picture_kind(data)
    if kind is None:
        return data, [], most
    if len(data) > most:
        raise Refused(f"The file is larger than {most // 2**20} MB.")
    from services.rendering.jobs.intake.picture_documents import picture_document

    document = picture_document(data, kind, name=request.name, most_pages=request.limits.pages)
    if len(document.file) > most + _AROUND_A_PICTURE:
        raise Refused(f"As a PDF the {kind} file is larger than {most // 2**20} MB.")
    return document.file, document.report, len(document.file)


@messages.PREPARE_DOCX.done_by
def prepare_docx(request: messages.PrepareDocx) -> messages.ReadyDocx:
    """Make a DOCX one that LibreOffice may have."""
    from services.rendering.jobs.docx.preparing import prepare_docx as prepare

    return prepare(request.data, request.variables, name=request.name, most_bytes=request.limits.bytes)


@messages.EXTERNAL_URLS.done_by
def external_urls(request: messages.ExternalUrls) -> list[str]:
    """Find the files that an HTML document would load, besides those that were fetched already."""
    from services.rendering.jobs.html.assets import external_urls as find

    urls: dict[str, None] = {}
    for text in request.texts:
        urls |= dict.fromkeys(find(text, request.assets))
    return list(urls)


@messages.PREPARE_HTML.done_by
def prepare_html(request: messages.PrepareHtml) -> Prepared:
    """Lay the HTML out as pages, then treat them as any PDF."""
    from services.rendering.jobs.html.convert import html_to_pdf

    data, fields, report = html_to_pdf(
        request.html,
        request.header,
        request.footer,
        request.size,
        request.name,
        assets=request.assets,
        today=request.today,
    )
    prepared = prepare_pdf(messages.PreparePdf(data, request.name, request.limits, remove_tags=True, flatten=False))
    return replace(prepared, fields=[*fields, *prepared.fields], report=[*report, *prepared.report], converted=data)


@messages.DETECT_FIELDS.done_by
def detect_fields(request: messages.DetectFields) -> messages.Detected:
    """Propose fields for the lines and boxes of a PDF."""
    from services.rendering.jobs.detection.detecting import detect

    fields, report = detect(request.data, request.taken)
    return messages.Detected(fields, report)


def dry_run(data: bytes, pages: Sequence[PageSize], *, signed: bool) -> list[Notice]:
    """Fill, seal with a throw-away key, verify and read back, exactly as it will be done for real. Raises Refused with the
    reason: a file that cannot be sealed is refused now, not when everybody has signed. Notices are about signatures that
    the file came with and that do not hold."""
    from services.rendering.jobs.sealing.verifying import verify
    from services.rendering.jobs.sealing.verifying.trust import PASSED

    request, document = _trial(pages, signed=signed)
    identity = _throw_away_identity()
    with _trouble("The PDF cannot be sealed"):
        reserved, drawn, _ = _fill_and_reserve(
            data,
            document,
            request,
            {},
            SignatureText(identity.name, "Dry run", datetime.now(UTC)),
            identity.signer.size,
            None,
        )
        envelope = identity.signer.envelope(identity.signer.sign(reserved.digest))
        sealed = cms.insert(reserved.data, reserved.start, reserved.size, envelope)
        fields = [value.field for value in request.values]
        read_back.check(sealed, drawn, fields, pages=len(pages), certificate=identity.encoded[0])
        verdict = verify.verify(sealed, [identity.encoded[-1]], datetime.now(UTC), sealed_here=True)
        ours = verdict.signatures[-1]
        if ours.indication != PASSED or not ours.covers_whole_document:
            raise Refused(f"The PDF cannot be sealed: {ours.verification_result[0]['content']}")
        if signed:
            before = verify.verify(data, [], datetime.now(UTC)).signatures
            _check_kept(before, verdict.signatures)
            return [
                _doubt(verdict) for verdict in before if verdict.integrity != "valid" or verdict.changed_after_signing
            ]
    return []


def _check_kept(before: Sequence[VerifiedSignature], after: Sequence[VerifiedSignature]) -> None:
    """Check that what held before holds afterwards."""
    holding = {signature.field for signature in after if signature.integrity == "valid"}
    for signature in before:
        if signature.integrity == "valid" and signature.field not in holding:
            raise Refused(f"The PDF is signed, and the signature {signature.field} would not survive sealing.")


def _doubt(signature: VerifiedSignature) -> Notice:
    reason = signature.verification_result[0]["content"]
    if signature.integrity == "unknown":
        return Notice(code="signature_unchecked", message=f"The signature {signature.field} of the file: {reason}.")
    return Notice(
        code="signature_invalid", message=f"The signature {signature.field} of the file does not hold: {reason}."
    )


@contextmanager
def _trouble(prefix: str) -> Iterator[None]:
    """Turn what goes wrong with a stranger's file on the way, which is the file's fault, into one sentence. The file's
    sender knows nothing of the field that is tried."""
    try:
        yield
    except FieldRefused as error:
        raise Refused(f"{prefix}: what is filled in {error.reason}") from error
    except Refused:
        raise
    except read_back.ValueMissing as error:
        raise Refused(f"{prefix}: what is filled in on page {error.page} is missing in the sealed file") from error
    except read_back.SealBroken as error:
        raise Refused(f"{prefix}: {error}") from error
    except _LIBRARY_ERRORS as error:
        # What the library said is for the log (``job.refused``), not for whoever sent the file in.
        raise Refused(f"{prefix}: it is damaged, or uses something that cannot be processed") from error


def _trial(pages: Sequence[PageSize], *, signed: bool) -> tuple[FillRequest, StoredDocument]:
    """A request that writes a word into the middle of pages spread over the document, or into the first place with room for
    it where a page has only some."""
    document = StoredDocument(
        uuid="trial", name="trial", file=_NO_FILE, original=_NO_FILE, pages=list(pages), signed=signed
    )
    numbers = [
        number
        for number in domain.trial_pages(len(pages))
        if min(pages[number - 1].width, pages[number - 1].height) >= _SMALLEST_TRIAL_PAGE
    ]
    areas = [
        Area(x=box.x, y=box.y, w=box.w, h=box.h, page=number, attachment_uuid="trial")
        for number in numbers
        if (box := _trial_box(pages[number - 1])) is not None
    ]
    field = FieldDefinition(
        uuid="trial", submitter_uuid="trial", role="trial", name="trial", type=FieldType.TEXT, areas=areas
    )
    request = FillRequest(
        submission_id=0,
        submission_slug="",
        name="trial",
        account=Account(),
        documents=[document],
        values=[FieldValue(field=field, value=_TRIAL_TEXT, submitter_id=0)],
    )
    return request, document


def _trial_box(page: PageSize) -> Box | None:
    if page.places is None:
        return Box(x=0.2, y=0.4, w=0.6, h=0.2)
    wide, high = _TRIAL_ROOM
    return next(
        (place for place in page.places if place.w * page.width >= wide and place.h * page.height >= high), None
    )


@cache
def _throw_away_identity() -> certificates.SealIdentity:
    names = certificates.Names("Dry run", "Dry run")
    return certificates.parse(certificates.make(names, "ec-p256", datetime.now(UTC) - timedelta(days=1)))


# --- sealing --------------------------------------------------------------------------------------------------------------


@messages.FILL_AND_RESERVE.done_by
def fill_and_reserve(request: messages.FillAndReserve) -> messages.Filled:
    """Draw a document's values and keep a place for the seal."""
    place = request.place
    reserved, drawn, conformance = _fill_and_reserve(
        request.data,
        _document(request),
        request.request,
        _by_uuid(request.request, request.attachments),
        place.text,
        place.size,
        _material(place),
        certify=request.certify,
    )
    return messages.Filled(reserved, [_value_drawn(entry) for entry in drawn], conformance)


@messages.AUDIT_TRAIL.begun_by
def audit_trail(
    request: messages.DrawTrail,
) -> Generator[None, list[messages.SealedSummary], ReservedPages]:
    """Draw the audit trail and keep a place for the seal. The sealed documents are told once everything else is laid out."""
    from services.rendering.jobs.trail.audit_trail import AuditTrail, Seal

    order, place = request.request, request.place
    seal = Seal(place.text.name, request.issuer, place.text.signed_at, request.waiver)
    trail = AuditTrail(order, _by_uuid(order, request.attachments), seal)
    sealed = yield
    with trail.finish(sealed) as pdf:
        pages = len(pdf.pages)
        certify = order.account.with_certification
        reserved = reserving.reserve(pdf, place.text, place.size, _material(place), certify=certify)
    return ReservedPages(reserved, pages)


@messages.CHECK_SEAL.done_by
def check_seal(request: messages.CheckSeal) -> str:
    """Read a sealed file back; its PAdES level."""
    drawn = [_drawn(entry) for entry in request.drawn]
    try:
        return read_back.check(
            request.data, drawn, request.fields, pages=request.pages, certificate=request.certificate
        )
    except read_back.SealBroken as error:
        raise Refused(f"Seal check failed: {error}") from error


@messages.FILL_DRAFT.done_by
def fill_draft(request: messages.FillDraft) -> OneFile:
    """A document with what has been filled in so far: not sealed, and its metadata say that it is a draft."""
    document = _document(request)
    with pikepdf.open(io.BytesIO(request.data)) as pdf:
        fill.fill_into(pdf, document, request.request, _by_uuid(request.request, request.attachments))
        archival_claim.withdraw(pdf)
        pdf.docinfo["/Title"] = f"{document.name} (draft)"
        pdf.docinfo["/Subject"] = "Draft: not completed, not sealed"
        pdf.docinfo["/Creator"] = "Countersign"
        output = io.BytesIO()
        pdf.save(output, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    return OneFile(output.getvalue())


def _fill_and_reserve(
    data: bytes,
    document: StoredDocument,
    request: FillRequest,
    attachments: Mapping[str, bytes],
    text: SignatureText,
    size: int,
    material: ValidationMaterial | None,
    *,
    certify: bool = False,
) -> tuple[messages.Reserved, list[fill.Drawn], list[str] | None]:
    """``conformance`` comes last: what the file claims to be and is; None where others have signed what it claims."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        if not document.signed:
            drawn = fill.fill_into(pdf, document, request, attachments)
            if (claim := archival_claim.claim_of(pdf)) == archival_claim.NOTHING:
                pdf.docinfo["/Creator"] = "Countersign"  # the metadata of others say the same in two places
            return reserving.reserve(pdf, text, size, material, certify=certify), drawn, claim.names
        from services.rendering.jobs.sealing import signed_files

        overlays, drawn = fill.additions(pdf, document, request, attachments)
    return signed_files.reserve(data, overlays, text, size, material), drawn, None


def _document(request: messages.FillDraft) -> StoredDocument:
    return next(document for document in request.request.documents if document.uuid == request.document)


def _by_uuid(request: FillRequest, files: Sequence[bytes]) -> dict[str, bytes]:
    return {attachment.uuid: data for attachment, data in zip(request.attachments, files, strict=True)}


def _material(place: Place) -> ValidationMaterial | None:
    return place.material if place.material.certificates or place.material else None


def _value_drawn(drawn: fill.Drawn) -> messages.ValueDrawn:
    return messages.ValueDrawn(drawn.field_uuid, drawn.page, drawn.rectangle, drawn.text, drawn.picture)


def _drawn(drawn_value: messages.ValueDrawn) -> fill.Drawn:
    picture = drawn_value.picture and (drawn_value.picture[0], Rectangle(*drawn_value.picture[1]))
    return fill.Drawn(
        drawn_value.field_uuid, drawn_value.page, Rectangle(*drawn_value.rectangle), drawn_value.text, picture
    )


# --- duty stamps ----------------------------------------------------------------------------------------------------------


@messages.FILL_AND_COMBINE.done_by
def fill_and_combine(request: messages.FillAndCombine) -> messages.FilledCombined:
    """Draw the values of all documents, merge them into one file and keep a place for a seal. It is made of what was filled
    in, not of what was sealed: a signature does not survive a merge."""
    from services.rendering.jobs.forms import signature_fields
    from services.rendering.jobs.merging import merge

    order, place = request.request, request.place
    attachments = _by_uuid(order, request.attachments)
    files, drawn, warnings, before = [], [], [], 0
    for number, (document, data) in enumerate(zip(order.documents, request.files, strict=True), start=1):
        with pikepdf.open(io.BytesIO(data)) as pdf:
            if signatures := signature_fields.count(pdf):
                warnings.append(f"File {number}: {merge.signatures_lost(signatures)}")
            values = fill.fill_into(pdf, document, order, attachments)
            drawn += [replace(_value_drawn(entry), page=before + entry.page) for entry in values]
            before += len(pdf.pages)
            files.append(merge.save(pdf))
    combined, lost = merge.merge(files, order.name)
    with combined:
        reserved = reserving.reserve(combined, place.text, place.size, _material(place))
    return messages.FilledCombined(reserved, before, drawn, [*warnings, *lost])


@messages.CHECK_STAMP.done_by
def check_stamp(request: messages.CheckStamp) -> VerifiedSignature:
    """Read a stamped file back; the signature of the stamp. Raises Refused when it is not what was ordered."""
    from services.rendering.jobs.stamping.checking import StampBroken, check_stamped

    box = Rectangle(*request.box)
    try:
        return check_stamped(
            request.sealed, request.stamped, request.serial, request.page, box, request.anchors, request.now
        )
    except StampBroken as error:
        raise Refused(f"Stamp check failed: {error}") from error


@messages.PLACE_STAMPS.done_by
def place_stamps(request: messages.PlaceStamps) -> list[messages.PlacedStamp]:
    """Work out where stamps go on a file."""
    from services.rendering.jobs.stamping.placement import place_stamps as place

    return place(request.data, request.file, request.size)


# --- answers of authorities -----------------------------------------------------------------------------------------------


@messages.READ_TIME_STAMP.done_by
def read_time_stamp(request: messages.ReadTimeStamp) -> messages.Token:
    """Take the token out of an authority's answer. Raises Refused when it is none for the digest."""
    from services.rendering.jobs.sealing.time_stamp import read_token

    return read_token(request.response, request.digest, request.nonce)


@messages.REVOCATION_QUESTIONS.done_by
def revocation_questions(request: messages.RevocationQuestions) -> list[messages.Question]:
    """Find out whom to ask whether certificates were revoked."""
    from services.rendering.jobs.sealing.revocation import questions

    return questions(request.leaves, [*request.leaves, *request.known])


@messages.CHECK_REVOCATION.done_by
def check_revocation(request: messages.CheckRevocation) -> messages.RevocationVerdict:
    """Read an OCSP answer or a list. Raises Refused when it proves nothing."""
    from services.rendering.jobs.sealing import revocation

    check: Callable[[bytes, int, Sequence[bytes], datetime], datetime] = (
        revocation.check_ocsp if request.kind == "ocsp" else revocation.check_list
    )
    try:
        until = check(request.answer, int(request.serial, 16), request.known, request.now)
    except revocation.Revoked as error:
        return messages.RevocationVerdict(revoked=str(error))
    return messages.RevocationVerdict(until=until)


# --- what providers of remote certificates hand out -----------------------------------------------------------------------


@messages.CHECK_CHAIN.done_by
def check_chain(request: messages.CheckChain) -> messages.Signatory:
    """Check a provider's certificates. Raises Refused when nothing may be signed with them."""
    from services.rendering.jobs.sealing import returned

    return returned.check_chain(request.certificates, request.mechanisms, request.anchors, request.now)


@messages.CHECK_SIGNATURES.done_by
def check_signatures(request: messages.CheckSignatures) -> messages.CheckedSignatures:
    """Check a provider's signatures. Raises Refused when one is not what was asked for."""
    from services.rendering.jobs.sealing import returned

    return messages.CheckedSignatures(
        returned.check_signatures(request.certificate, request.mechanism, request.digests, request.signatures)
    )


# --- archive time-stamps --------------------------------------------------------------------------------------------------


@messages.SURVEY_ARCHIVE.done_by
def survey_archive(request: messages.SurveyArchive) -> messages.ArchiveSurvey:
    """Find out which proofs a sealed file lacks."""
    from services.rendering.jobs.sealing import archiving

    return archiving.survey(request.data, request.authority)


@messages.RESERVE_ARCHIVE.done_by
def reserve_archive(request: messages.ReserveArchive) -> messages.Reserved:
    """Add proofs and a place for an archive time-stamp."""
    from services.rendering.jobs.sealing import archiving

    return archiving.reserve(request.data, request.material, request.size)


@messages.CHECK_ARCHIVE.done_by
def check_archive(request: OneFile) -> messages.ArchiveFound:
    """Read the archive time-stamp back. Raises Refused."""
    from services.rendering.jobs.sealing import archiving

    return archiving.check(request.data)


# --- tools ----------------------------------------------------------------------------------------------------------------


@messages.VERIFY.done_by
def verify(request: messages.Verify) -> Verification:
    """Judge every signature of a file."""
    from services.rendering.jobs.sealing.verifying.verify import verify as judge

    return judge(request.data, request.anchors, request.now, sealed_here=request.sealed_here)


@messages.SEAL_MATERIAL.done_by
def seal_material(request: messages.FindSealMaterial) -> messages.SealMaterial:
    """Collect what the seal of a file carries."""
    from services.rendering.jobs.sealing.material import material

    return material(request.data, request.signatures)


@messages.COMBINE.done_by
def combine(request: messages.Combine) -> messages.Combined:
    """Merge files into one."""
    from services.rendering.jobs.merging import merge

    pdf, warnings = merge.merge(request.files, request.title)
    with pdf:
        return messages.Combined(merge.save(pdf), warnings)


@messages.COMBINE_AND_RESERVE.done_by
def combine_and_reserve(request: messages.CombineAndReserve) -> ReservedPages:
    """Merge files into one and keep a place for a seal."""
    from services.rendering.jobs.merging import merge

    place = request.place
    pdf, warnings = merge.merge(request.files, request.title)
    with pdf:
        reserved = reserving.reserve(pdf, place.text, place.size, _material(place))
        return ReservedPages(reserved, len(pdf.pages), warnings)


@messages.DRAW_PAGE.done_by
def draw_page(request: messages.DrawPage) -> OneFile:
    """Draw a picture of a page."""
    from services.rendering.jobs.previews.pages import draw_page as draw

    return OneFile(draw(request.data, request.page, request.width, request.boxes, request.footer, light=request.light))


@messages.DRAW_THUMBNAIL.done_by
def draw_thumbnail(request: OneFile) -> OneFile:
    """Draw a small picture of the first page."""
    from services.rendering.jobs.previews.thumbnails import draw_thumbnail as draw

    return OneFile(draw(request.data))


@messages.READ_TEXT.done_by
def read_text(request: messages.ReadText) -> messages.TextRead:
    """Read what pages show as text."""
    from services.rendering.jobs.reading.page_text import read_pages

    language, pages = read_pages(request.data, request.first)
    return messages.TextRead(language, pages)


@messages.DRAW_VALUES.done_by
def draw_values(request: messages.DrawAreas) -> list[DrawnArea]:
    """Draw pictures of single values."""
    from services.rendering.jobs.previews.values import draw_values as draw

    return draw(request.request, _by_uuid(request.request, request.attachments))


@messages.PREPARE_IMAGE.done_by
def prepare_image(request: messages.PrepareImage) -> OneFile:
    """Re-encode a picture from outside."""
    from services.rendering.jobs.pictures.preparing import prepare_image as prepare

    return OneFile(prepare(request.data, request.type))


@messages.DRAW_SIGNATURE.done_by
def draw_signature(request: messages.TypedSignature) -> OneFile:
    """Draw a typed name."""
    from services.rendering.jobs.drawing.signature_image import draw_signature as draw

    return OneFile(draw(request.text, request.style))


@messages.DRAW_SIGNATURE_STYLES.done_by
def draw_signature_styles(text: str) -> list[str]:
    """Draw a typed name in each style."""
    from services.rendering.jobs.drawing.signature_image import draw_styles as draw

    return [b64encode(picture).decode() for picture in draw(text)]


@messages.CHECK_TEXT.done_by
def check_text(texts: list[str]) -> list[str]:
    """Find for each text the characters that no font has."""
    from services.rendering.jobs.text.layout import undrawable

    return ["".join(undrawable(text)) for text in texts]


@messages.CHECK_VALUES.done_by
def check_values(request: CheckValues) -> dict[str, str]:
    """Say which values cannot be drawn, and why."""
    return fill.faults(
        FillRequest(
            submission_id=0,
            submission_slug="",
            name="",
            account=request.account,
            documents=request.documents,
            values=request.values,
            parties=request.parties,
        )
    )
