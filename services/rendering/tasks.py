"""What a child can be asked to do: plain values and bytes in, plain values and bytes out.

Each function takes ``(arguments, parts)`` and returns ``(result, parts)``; ``Renderer`` is its counterpart in the service.
Libraries are imported where they are needed: a child that never sees HTML does not carry WeasyPrint.
"""

import io
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any

import pikepdf

from contracts.blobs import BlobRef
from contracts.fields.boxes import FieldBox
from contracts.rpc.rendering import DrawValues, FieldValue, FillRequest, PageFooter, SealRequest, VerifiedSignature
from contracts.stored_documents import StoredDocument
from contracts.types import Account, Area, Box, FieldDefinition, FieldType, Notice, PageSize
from services.rendering import domain
from services.rendering.frames import Bytes
from services.rendering.jobs.archival import claim as archival_claim
from services.rendering.jobs.drawing import fill
from services.rendering.jobs.drawing.places import FieldRefused
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing import certificates, cms, read_back, reserving

Arguments = dict[str, Any]
Answer = tuple[dict[str, Any], Sequence[Bytes]]

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


def prepare_pdf(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """Normalise, find fields, and try whether it can be filled, sealed and read back. A picture becomes a PDF first.
    ``docx_tags`` and ``docx_fonts``: it was a DOCX."""
    from services.rendering.jobs.docx.formatting import DocxTag
    from services.rendering.jobs.docx.surroundings import DocxSurroundings
    from services.rendering.jobs.intake.preparing import Limits, prepare

    tags = arguments.get("docx_tags")
    data, converted, most_bytes = _as_pdf(arguments, parts[0])
    prepared = prepare(
        data,
        name=arguments["name"],
        remove_tags=arguments["remove_tags"],
        flatten=arguments["flatten"],
        limits=Limits(bytes=most_bytes, pages=arguments["most_pages"]),
        surroundings=None if tags is None else DocxSurroundings([DocxTag(**tag) for tag in tags]),
    )
    notices = dry_run(prepared.file, prepared.pages, signed=prepared.signed)
    if fonts := arguments.get("docx_fonts"):
        from services.rendering.jobs.docx.fonts import font_notices

        with pikepdf.open(io.BytesIO(prepared.file)) as pdf:
            notices += font_notices(pdf, fonts, document=arguments["name"])
    result = {
        "pages": [page.model_dump() for page in prepared.pages],
        "fields": [field.model_dump(mode="json") for field in prepared.fields],
        "signed": prepared.signed,
        "report": [notice.model_dump() for notice in [*converted, *prepared.report, *notices]],
    }
    return result, [prepared.file]


def _as_pdf(arguments: Arguments, data: bytes) -> tuple[bytes, list[Notice], int]:
    """The PDF, what was done to make it one, and how large it may be."""
    from services.rendering.jobs.pictures.kind import picture_kind

    most = arguments["most_bytes"]
    kind = picture_kind(data)
    if kind is None:
        return data, [], most
    if len(data) > most:
        raise Refused(f"The file is larger than {most // 2**20} MB.")
    from services.rendering.jobs.intake.picture_documents import picture_document

    made = picture_document(data, kind, name=arguments["name"], most_pages=arguments["most_pages"])
    if len(made.file) > most + _AROUND_A_PICTURE:
        raise Refused(f"As a PDF the {kind} file is larger than {most // 2**20} MB.")
    return made.file, made.report, len(made.file)


def prepare_docx(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """A DOCX as LibreOffice may have it; ``variables`` None leaves placeholders as text."""
    from services.rendering.jobs.docx.preparing import prepare_docx as prepare

    ready = prepare(parts[0], arguments["variables"], name=arguments["name"], most_bytes=arguments["most_bytes"])
    result = {
        "variables": ready.variables,
        "tags": [asdict(tag) for tag in ready.tags],
        "fonts": ready.fonts,
        "report": [notice.model_dump() for notice in ready.report],
    }
    return result, [ready.file]


def external_urls(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """Which files an HTML document would load; ``parts`` are those that were fetched already, of ``fetched`` URLs."""
    from services.rendering.jobs.html.assets import external_urls as find

    assets = dict(zip(arguments["fetched"], parts, strict=True))
    urls: dict[str, None] = {}
    for text in arguments["texts"]:
        urls |= dict.fromkeys(find(text, assets))
    return {"urls": list(urls)}, []


def prepare_html(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """Lay the HTML out as pages, then treat them as any PDF; ``parts`` are the files of ``fetched`` URLs."""
    from services.rendering.jobs.html.convert import html_to_pdf

    data, fields, report = html_to_pdf(
        arguments["html"],
        arguments["header"],
        arguments["footer"],
        arguments["size"],
        arguments["name"],
        assets=dict(zip(arguments["fetched"], parts, strict=True)),
        today=date.fromisoformat(arguments["today"]),
    )
    result, files = prepare_pdf({**arguments, "remove_tags": True, "flatten": False}, [data])
    result["fields"] = [field.model_dump(mode="json") for field in fields] + result["fields"]
    result["report"] = [notice.model_dump() for notice in report] + result["report"]
    return result, [*files, data]


def dry_run(data: bytes, pages: Sequence[PageSize], *, signed: bool) -> list[Notice]:
    """Fill, seal with a throw-away key, verify and read back, exactly as it will be done for real. Raises Refused with the
    reason: a file that cannot be sealed is refused now, not when everybody has signed. Notices are about signatures that
    the file came with and that do not hold."""
    from services.rendering.jobs.sealing import verify
    from services.rendering.jobs.sealing.trust import PASSED

    request, document = _trial(pages, signed=signed)
    identity = _throw_away_identity()
    with _trouble("The PDF cannot be sealed"):
        reserved, drawn, _ = _fill_and_reserve(
            data, document, request, {}, _signature_text(identity.name), identity.signer.size, None
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
            return [_doubt(one) for one in before if one.integrity != "valid" or one.changed_after_signing]
    return []


def _check_kept(before: Sequence[VerifiedSignature], after: Sequence[VerifiedSignature]) -> None:
    """What held before must hold afterwards."""
    holding = {signature.field for signature in after if signature.integrity == "valid"}
    for signature in before:
        if signature.integrity == "valid" and signature.field not in holding:
            raise Refused(f"The PDF is signed, and the signature {signature.field} would not survive sealing")


def _doubt(signature: VerifiedSignature) -> Notice:
    reason = signature.verification_result[0]["content"]
    if signature.integrity == "unknown":
        return Notice(code="signature_unchecked", message=f"The signature {signature.field} of the file: {reason}.")
    return Notice(
        code="signature_invalid", message=f"The signature {signature.field} of the file does not hold: {reason}."
    )


@contextmanager
def _trouble(prefix: str) -> Iterator[None]:
    """What goes wrong with a stranger's file on the way is the file's fault, and is said in one sentence. The file's sender
    knows nothing of the field that is tried."""
    try:
        yield
    except FieldRefused as error:
        raise Refused(f"{prefix}: what is filled in {error.reason}") from error
    except Refused:
        raise
    except read_back.ValueMissing as error:
        raise Refused(f"{prefix}: what is filled in on page {error.page} is not found in the sealed file") from error
    except read_back.SealBroken as error:
        raise Refused(f"{prefix}: {error}") from error
    except _LIBRARY_ERRORS as error:
        # What the library said is for the log (``job.refused``), not for whoever sent the file in.
        raise Refused(f"{prefix}: it is damaged, or uses something that cannot be processed.") from error


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
    return next((one for one in page.places if one.w * page.width >= wide and one.h * page.height >= high), None)


@cache
def _throw_away_identity() -> certificates.SealIdentity:
    names = certificates.Names("Dry run", "Dry run")
    return certificates.parse(certificates.make(names, "ec-p256", datetime.now(UTC) - timedelta(days=1)))


# --- sealing --------------------------------------------------------------------------------------------------------------


def fill_and_reserve(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """Draw a document's values and keep a place for the seal. ``parts``: the document, the attachments in the request's
    order, then the validation material."""
    request = FillRequest.model_validate(arguments["request"])
    document = next(one for one in request.documents if one.uuid == arguments["document"])
    data, attachments, rest = _with_attachments(request, parts)
    reserved, drawn, conformance = _fill_and_reserve(
        data, document, request, attachments, _text(arguments), arguments["size"], _material(arguments, rest)
    )
    answer = {**_reserved(reserved), "drawn": [_plain(one) for one in drawn], "conformance": conformance}
    return answer, [reserved.data]


def audit_trail(
    arguments: Arguments, parts: Sequence[bytes]
) -> Generator[None, tuple[Arguments, Sequence[bytes]], Answer]:
    """Draw the audit trail and keep a place for the seal; ``parts``: attachments, then the validation material. The sealed
    ``documents`` are told once everything else is laid out."""
    from services.rendering.jobs.trail.audit_trail import AuditTrail, Seal, SealedSummary

    request = SealRequest.model_validate(arguments["request"])
    count = len(request.attachments)
    attachments = _by_uuid(request, parts[:count])
    text = _text(arguments)
    trail = AuditTrail(request, attachments, Seal(text.name, arguments["issuer"], text.signed_at))
    rest, _ = yield
    with trail.finish([SealedSummary(**one) for one in rest["documents"]]) as pdf:
        pages = len(pdf.pages)
        material = _material(arguments, parts[count:])
        reserved = reserving.reserve(pdf, text, arguments["size"], material, certify=request.account.with_certification)
    return {**_reserved(reserved), "pages": pages}, [reserved.data]


def check_seal(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """Read a sealed file back; ``parts``: the file, the sealing certificate."""
    drawn = [_drawn(one) for one in arguments["drawn"]]
    fields = [FieldDefinition.model_validate(one) for one in arguments["fields"]]
    try:
        level = read_back.check(parts[0], drawn, fields, pages=arguments["pages"], certificate=parts[1])
    except read_back.SealBroken as error:
        raise Refused(f"Seal check failed: {error}") from error
    return {"level": level}, []


def fill_draft(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """A document with what has been filled in so far: not sealed, and its metadata say that it is a draft."""
    request = FillRequest.model_validate(arguments["request"])
    document = next(one for one in request.documents if one.uuid == arguments["document"])
    data, attachments, _ = _with_attachments(request, parts)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        fill.fill_into(pdf, document, request, attachments)
        archival_claim.withdraw(pdf)
        pdf.docinfo["/Title"] = f"{document.name} (draft)"
        pdf.docinfo["/Subject"] = "Draft: not completed, not sealed"
        pdf.docinfo["/Creator"] = "Countersign"
        output = io.BytesIO()
        pdf.save(output, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    return {}, [output.getvalue()]


def _fill_and_reserve(
    data: bytes,
    document: StoredDocument,
    request: FillRequest,
    attachments: Mapping[str, bytes],
    text: reserving.SignatureText,
    size: int,
    material: reserving.ValidationMaterial | None,
) -> tuple[reserving.Reserved, list[fill.Drawn], list[str] | None]:
    """``conformance`` comes last: what the file claims to be and is; None where others have signed what it claims."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        if not document.signed:
            drawn = fill.fill_into(pdf, document, request, attachments)
            if (claim := archival_claim.claim_of(pdf)) == archival_claim.NOTHING:
                pdf.docinfo["/Creator"] = "Countersign"  # the metadata of others say the same in two places
            certify = request.account.with_certification
            return reserving.reserve(pdf, text, size, material, certify=certify), drawn, claim.names
        from services.rendering.jobs.sealing import signed_files

        overlays, drawn = fill.additions(pdf, document, request, attachments)
    return signed_files.reserve(data, overlays, text, size, material), drawn, None


def _with_attachments(request: FillRequest, parts: Sequence[bytes]) -> tuple[bytes, dict[str, bytes], Sequence[bytes]]:
    count = len(request.attachments)
    return parts[0], _by_uuid(request, parts[1 : count + 1]), parts[count + 1 :]


def _by_uuid(request: FillRequest, parts: Sequence[bytes]) -> dict[str, bytes]:
    return {attachment.uuid: data for attachment, data in zip(request.attachments, parts, strict=True)}


def _text(arguments: Arguments) -> reserving.SignatureText:
    return reserving.SignatureText(
        arguments["name"], arguments["reason"], datetime.fromisoformat(arguments["signed_at"]).astimezone(UTC)
    )


def _signature_text(name: str) -> reserving.SignatureText:
    return reserving.SignatureText(name, "Dry run", datetime.now(UTC))


def _material(arguments: Arguments, parts: Sequence[bytes]) -> reserving.ValidationMaterial | None:
    """``material`` counts certificates, OCSP answers and revocation lists, which follow in that order."""
    certificates_, answers, lists = arguments["material"]
    if not parts:
        return None
    first = certificates_ + answers
    return reserving.ValidationMaterial(parts[:certificates_], parts[certificates_:first], parts[first : first + lists])


def _reserved(reserved: reserving.Reserved) -> dict[str, Any]:
    return {"start": reserved.start, "size": reserved.size, "digest": reserved.digest.hex()}


def _plain(drawn: fill.Drawn) -> dict[str, Any]:
    digest, place = drawn.picture or (None, ())
    return {
        "field": drawn.field_uuid,
        "page": drawn.page,
        "rectangle": list(drawn.rectangle),
        "text": drawn.text,
        "picture": digest and [digest, list(place)],
    }


def _drawn(plain: dict[str, Any]) -> fill.Drawn:
    picture = plain["picture"] and (plain["picture"][0], Rectangle(*plain["picture"][1]))
    return fill.Drawn(plain["field"], plain["page"], Rectangle(*plain["rectangle"]), plain["text"], picture)


# --- answers of authorities -----------------------------------------------------------------------------------------------


def read_time_stamp(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """``parts``: the authority's answer, the signature that was stamped. Gives the token, then its certificates."""
    from services.rendering.jobs.sealing.time_stamp import read_token

    token = read_token(parts[0], parts[1], arguments["nonce"])
    return {"time": token.time.isoformat()}, [token.token, *token.certificates]


def revocation_questions(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """``parts``: the ``leaves`` certificates to ask about, then those that may be their issuers."""
    from services.rendering.jobs.sealing.revocation import questions

    count = arguments["leaves"]
    return {"questions": [vars(one) for one in questions(parts[:count], parts)]}, []


def check_revocation(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """``parts``: an OCSP answer or a list, then the known certificates. ``until``: when it is out of date."""
    from services.rendering.jobs.sealing import revocation

    check: Callable[[bytes, int, Sequence[bytes], datetime], datetime] = (
        revocation.check_ocsp if arguments["kind"] == "ocsp" else revocation.check_list
    )
    now = datetime.fromisoformat(arguments["now"])
    try:
        until = check(parts[0], int(arguments["serial"], 16), parts[1:], now)
    except revocation.Revoked as error:
        return {"revoked": str(error)}, []
    return {"until": until.isoformat()}, []


# --- tools ----------------------------------------------------------------------------------------------------------------


def verify(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """``parts``: the file, then the trusted certificates."""
    from services.rendering.jobs.sealing.verify import verify as judge

    verdict = judge(parts[0], parts[1:], datetime.fromisoformat(arguments["now"]), sealed_here=arguments["sealed_here"])
    return verdict.model_dump(mode="json"), []


def seal_material(_arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """``parts``: a sealed file, then signatures whose roots are wanted too."""
    from services.rendering.jobs.sealing.material import material

    found = material(parts[0], parts[1:])
    return {"kinds": [kind for kind, _ in found]}, [data for _, data in found]


def combine(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """Merge the first ``files`` parts; with ``seal`` keep a place for one (validation material follows)."""
    from services.rendering.jobs.merging import merge

    count = arguments["files"]
    pdf, warnings = merge.merge(parts[:count], arguments["title"])
    with pdf:
        if not arguments["seal"]:
            return {"warnings": warnings}, [merge.save(pdf)]
        reserved = reserving.reserve(pdf, _text(arguments), arguments["size"], _material(arguments, parts[count:]))
        return {"warnings": warnings, "pages": len(pdf.pages), **_reserved(reserved)}, [reserved.data]


def draw_page(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    from services.rendering.jobs.previews.pages import draw_page as draw

    boxes = [FieldBox.model_validate(one) for one in arguments["boxes"]]
    footer = PageFooter.model_validate(arguments["footer"]) if arguments["footer"] else None
    return {}, [draw(parts[0], arguments["page"], arguments["width"], boxes, footer)]


def draw_values(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """Pictures of single values; ``parts``: the attachments in the request's order, empty where they are no pictures."""
    from services.rendering.jobs.previews.values import draw_values as draw

    request = DrawValues.model_validate(arguments["request"])
    return {"areas": [area.model_dump() for area in draw(request, _by_uuid(request, parts))]}, []


def prepare_image(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    from services.rendering.jobs.pictures.preparing import prepare_image as prepare

    return {}, [prepare(parts[0], FieldType(arguments["type"]))]


def draw_signature(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    from services.rendering.jobs.drawing.signature_image import draw_signature as draw

    return {}, [draw(arguments["text"])]


def check_text(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """For each text the characters that no font has."""
    from services.rendering.jobs.text.layout import undrawable

    return {"characters": ["".join(undrawable(text)) for text in arguments["texts"]]}, []


def check_values(arguments: Arguments, parts: Sequence[bytes]) -> Answer:
    """Which values cannot be drawn, and why."""
    request = FillRequest(**arguments, submission_id=0, submission_slug="", name="")
    return {"faults": fill.faults(request)}, []
