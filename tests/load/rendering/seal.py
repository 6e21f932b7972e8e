"""Fill and seal beside pyHanko as its documentation does it and beside `@libpdf/core` of npm, on the same file with the same key,
interleaved.

    python -m tests.load.rendering.seal

Ours: values into the fields' areas, form flattened, place for the signature in the same save, CMS from the prepared template
with the key held open. pyHanko's: the form filled and flattened with pikepdf, saved, then `signers.sign_pdf` with a
`SimpleSigner` that was loaded once. libpdf's: fill, flatten and sign in a node that stays; its time has a file read and a pipe in
it. Prints medians and the medians of the per-round ratios. `in_process_completion` is the floor for the whole suite's figure.
"""

import hashlib
import io
import statistics
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pikepdf
import pypdfium2
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from pikepdf import Array, Dictionary, Name, String
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign import fields, signers
from pyhanko.sign.validation import validate_pdf_signature
from pyhanko_certvalidator import ValidationContext

from contracts.blobs import BlobRef
from contracts.rpc.rendering import FieldValue, FilledAttachment, PartySummary, SealRequest
from contracts.stored_documents import StoredDocument
from contracts.types import Account, Area, FieldDefinition, FieldType, PageSize
from services.rendering.children import tasks
from services.rendering.jobs.drawing import fill
from services.rendering.jobs.drawing.signature_image import draw_signature
from services.rendering.jobs.intake.preparing import prepare
from services.rendering.jobs.sealing import certificates, cms, reserving
from services.rendering.jobs.sealing.certificates import SealIdentity
from services.rendering.jobs.text.layout import FontEmbedder, Style, draw, layout
from services.rendering.protocol import messages
from services.rendering.protocol.messages import SignatureText
from tests.load.figures import interleaved
from tests.load.rendering.libpdf_process import LibPdf
from tests.load.targets import judged
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES
from tests.support.rendering.sealing import assert_sealed, trail

ROUNDS = 61
PYHANKO, LIBPDF, OURS = "pyHanko as documented", "@libpdf/core", "ours"
WIDTH, HEIGHT = 595, 842
_WORDS = "The parties agree that what is written here is what they mean, and nothing that is not written here. "

Q = TypeVar("Q")
A = TypeVar("A")


# --- fill and seal beside pyHanko -------------------------------------------------------------------------------------------


def form_pdf(pages: int) -> bytes:
    """Pages of text in an embedded font; 8 text fields and 2 check boxes on the first and again on the last page."""
    pdf = pikepdf.new()
    embedder = FontEmbedder(pdf)
    text = layout(_WORDS * 30, Style(size=9), 480)
    for _ in range(pages):
        page = pdf.add_blank_page(page_size=(WIDTH, HEIGHT))
        page.obj.Resources = Dictionary(Font=embedder.resources)
        page.obj.Contents = pdf.make_stream(draw(text, 57, 780 - text.height, embedder))
    embedder.finish()
    helvetica = pdf.make_indirect(Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica))
    widgets: list[Any] = []
    for page in (pdf.pages[0], pdf.pages[-1]):
        own = [_widget(pdf, page, number, len(widgets)) for number in range(10)]
        page.obj.Annots = Array(own)
        widgets += own
    pdf.Root.AcroForm = Dictionary(
        Fields=Array(widgets), DA=String("/Helv 10 Tf 0 g"), DR=Dictionary(Font=Dictionary(Helv=helvetica))
    )
    output = io.BytesIO()
    pdf.save(output)
    return output.getvalue()


def _box(number: int) -> tuple[float, float, float, float]:
    """Left, bottom, right, top of the ``number``-th field of a page."""
    left, bottom = 60 + 120 * (number % 4), 60 + 30 * (number // 4)
    width = 100 if number < 8 else 14
    return left, bottom, left + width, bottom + (18 if number < 8 else 14)


def _widget(pdf: pikepdf.Pdf, page: pikepdf.Page, number: int, before: int) -> pikepdf.Object:
    widget = Dictionary(
        Type=Name.Annot, Subtype=Name.Widget, P=page.obj, Rect=Array(_box(number)), T=String(f"f{before + number}"), F=4
    )
    if number < 8:
        widget.FT, widget.DA = Name.Tx, String("/Helv 10 Tf 0 g")
    else:
        on = pdf.make_stream(b"q 2 2 10 10 re f Q", Type=Name.XObject, Subtype=Name.Form, BBox=Array([0, 0, 14, 14]))
        off = pdf.make_stream(b"", Type=Name.XObject, Subtype=Name.Form, BBox=Array([0, 0, 14, 14]))
        widget.FT, widget.AS, widget.AP = Name.Btn, Name.Off, Dictionary(N=Dictionary(Yes=on, Off=off))
    return pdf.make_indirect(widget)


def as_documented(data: bytes, signer: signers.SimpleSigner) -> bytes:
    """pikepdf fills, flattens and saves; pyHanko signs."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        # Without it qpdf flattens the old, empty appearances and the values are lost.
        pdf.Root.AcroForm.NeedAppearances = True
        for item in pdf.Root.AcroForm.Fields:
            if Name.Tx == item.FT:
                item.V = String(f"Value {item.T}")
            else:
                item.V = item.AS = Name.Yes
        pdf.generate_appearance_streams()
        pdf.flatten_annotations("all")
        if "/AcroForm" in pdf.Root:
            pdf.Root.AcroForm.Fields = Array([])
        buffer = io.BytesIO()
        pdf.save(buffer)
    buffer.seek(0)
    metadata = signers.PdfSignatureMetadata(
        field_name="Seal", reason="x", md_algorithm="sha256", subfilter=fields.SigSeedSubFilter.PADES
    )
    return signers.sign_pdf(IncrementalPdfFileWriter(buffer), metadata, signer=signer).getvalue()  # type: ignore[no-any-return]


def ours(data: bytes, request: SealRequest, identity: SealIdentity) -> bytes:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        fill.fill_into(pdf, request.documents[0], request, {})
        text = SignatureText(identity.name, "x", datetime.now(UTC))
        reserved = reserving.reserve(pdf, text, identity.signer.size)
    envelope = identity.signer.envelope(identity.signer.sign(reserved.digest))
    return cms.insert(reserved.data, reserved.start, reserved.size, envelope)


def form_request(data: bytes, pages: int) -> SealRequest:
    values = []
    for page in (1, pages):
        for number in range(10):
            left, bottom, right, top = _box(number)
            area = Area(
                x=left / WIDTH, y=1 - top / HEIGHT, w=(right - left) / WIDTH, h=(top - bottom) / HEIGHT, page=page
            )
            kind = FieldType.TEXT if number < 8 else FieldType.CHECKBOX
            value = f"Value f{number}" if number < 8 else True
            values.append(_value(f"f{page}-{number}", kind, value, area))
    return _request(data, [PageSize(width=WIDTH, height=HEIGHT)] * pages, values, [])


def compare(pages: int, bits: int, rounds: int, targets: dict[str, str]) -> None:
    """``targets``: the name of the target of our time as a part of each other's."""
    data = form_pdf(pages)
    request = form_request(data, pages)
    identity = _identity(bits)
    packed = pkcs12.serialize_key_and_certificates(
        b"x",
        identity.key,
        identity.chain[0],
        identity.chain[1:],
        serialization.NoEncryption(),
    )
    signer = signers.SimpleSigner.load_pkcs12_data(packed, other_certs=[])
    values = {f"f{number}": f"Value f{number}" if number % 10 < 8 else True for number in range(20)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "form.pdf"
        file.write_bytes(data)
        libpdf = LibPdf(identity, folder)
        contenders: dict[str, Callable[[], Any]] = {
            PYHANKO: lambda: as_documented(data, signer),
            LIBPDF: lambda: libpdf.seal(file, values),
            OURS: lambda: ours(data, request, identity),
        }
        libpdf.seal(file, values, folder / "libpdf.pdf")
        made = {PYHANKO: as_documented(data, signer), LIBPDF: (folder / "libpdf.pdf").read_bytes()}
        for who, sealed in {**made, OURS: ours(data, request, identity)}.items():
            shown = text_of(sealed)
            assert all(f"Value f{number}" in shown for number in range(8)), f"{who} lost values"
        _must_be_clean(ours(data, request, identity), identity, folder)
        times = interleaved(contenders, rounds)
        libpdf.close()
    print(f"Fill and seal, {pages} pages, RSA-{bits}:")
    for who, taken in times.items():
        print(f"  {who:<22} {statistics.median(taken) * 1e3:8.1f} ms   best {min(taken) * 1e3:8.1f} ms")
    for who, target in targets.items():
        ratio = statistics.median(mine / other for mine, other in zip(times[OURS], times[who], strict=True))
        print(f"  ratio to {who} {ratio:.3f} ({judged(target, ratio)})")


def _must_be_clean(sealed: bytes, identity: SealIdentity, folder: Path) -> None:
    """For poppler, qpdf and pyHanko alike."""
    assert_sealed(sealed, folder)
    reader = PdfFileReader(io.BytesIO(sealed))
    roots = [asn1_x509.Certificate.load(identity.encoded[-1])]
    status = validate_pdf_signature(reader.embedded_signatures[0], ValidationContext(trust_roots=roots))
    assert status.bottom_line, status.pretty_print_details()


def text_of(data: bytes) -> str:
    with pypdfium2.PdfDocument(data) as document:
        return " ".join(page.get_textpage().get_text_range() for page in document)


def _identity(bits: int) -> SealIdentity:
    root_key, made = certificates.issue(certificates.Names(), "ec-p256", datetime.now(UTC))
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    leaf = made.chain[0]
    root = made.chain[-1]
    builder = x509.CertificateBuilder(
        leaf.issuer, leaf.subject, key.public_key(), 4711, leaf.not_valid_before_utc, leaf.not_valid_after_utc
    )
    for one in leaf.extensions:
        if not isinstance(one.value, x509.SubjectKeyIdentifier):
            builder = builder.add_extension(one.value, one.critical)
    certificate = builder.sign(root_key, hashes.SHA256())
    return SealIdentity(key, (certificate, root))


# --- the floor for the whole suite ------------------------------------------------------------------------------------------


def in_process_completion(data: bytes) -> Callable[[], None]:
    """What happens to an agreement (``tests.support.material.agreement``) after its last signature, without bus, database and file
    store: fill, seal, read back, audit trail, seal it, read it back. The same functions as the service's children run, with
    the kind of key that the service makes."""
    identity = certificates.parse(certificates.make(certificates.Names(), "rsa-3072", datetime.now(UTC)))
    prepared = prepare(data, name="Agreement")
    signature = draw_signature("Bo Buyer")
    given = {**SELLER_VALUES, **BUYER_VALUES}
    values, attachments = [], []
    for number, field in enumerate(prepared.fields):
        value = given.get(field.name)
        if field.type == FieldType.SIGNATURE:
            value = f"a{number}"
            attachments.append(_attachment(value, signature))
        definition = {**field.model_dump(), "uuid": f"f{number}", "submitter_uuid": "s", "conditions": []}
        values.append(FieldValue(field=FieldDefinition.model_validate(definition), value=value, submitter_id=1))
    request = _request(prepared.file, prepared.pages, values, attachments)
    files = [signature] * len(attachments)
    text = messages.SignatureText(identity.name, "x", datetime.now(UTC))
    place = messages.Place(text, identity.signer.size, messages.ValidationMaterial())
    fields = [value.field for value in values]
    pages = len(prepared.pages)

    def complete() -> None:
        filled = _asked(
            messages.FILL_AND_RESERVE,
            tasks.fill_and_reserve,
            messages.FillAndReserve(request, "d", prepared.file, files, place),
        )
        sealed = _signed(identity, filled.reserved)
        certificate = identity.encoded[0]
        check = messages.CheckSeal(sealed, certificate, pages, filled.drawn, fields)
        _asked(messages.CHECK_SEAL, tasks.check_seal, check)
        summary = messages.SealedSummary(
            name="Agreement",
            original_sha256=request.documents[0].original.sha256,
            sealed_sha256=hashlib.sha256(sealed).hexdigest(),
            pages=pages,
            size=len(sealed),
            level="B-B",
        )
        trail = _asked(
            messages.AUDIT_TRAIL,
            tasks.audit_trail,
            messages.DrawTrail(request, files, place, "Root"),
            messages.AUDIT_TRAIL.rest.pack([summary]),
        )
        check = messages.CheckSeal(_signed(identity, trail.reserved), certificate, trail.pages, [], [])
        _asked(messages.CHECK_SEAL, tasks.check_seal, check)

    return complete


def _asked(task: messages.Task[Q, A], work: Any, request: Q, rest: messages.Packed | None = None) -> A:
    """What the task answers, with the packing and unpacking that parent and child do."""
    return task.answer.unpack(work.answered(task.request.pack(request), lambda: rest))


def _signed(identity: SealIdentity, reserved: messages.Reserved) -> bytes:
    envelope = identity.signer.envelope(identity.signer.sign(reserved.digest))
    return cms.insert(reserved.data, reserved.start, reserved.size, envelope)


def _attachment(uuid: str, data: bytes) -> FilledAttachment:
    file = BlobRef(key="x", sha256=hashlib.sha256(data).hexdigest(), size=len(data), media_type="image/png")
    return FilledAttachment(uuid=uuid, filename="signature.png", file=file, created_at=datetime.now(UTC))


def _value(uuid: str, kind: FieldType, value: Any, area: Area) -> FieldValue:
    field = FieldDefinition(uuid=uuid, submitter_uuid="s", role="First", name=uuid, type=kind, areas=[area])
    return FieldValue(field=field, value=value, submitter_id=1)


def _request(
    data: bytes, pages: list[PageSize], values: list[FieldValue], attachments: list[FilledAttachment]
) -> SealRequest:
    now = datetime.now(UTC)
    file = BlobRef(key="x", sha256=hashlib.sha256(data).hexdigest(), size=len(data), media_type="application/pdf")
    parties = [
        PartySummary(
            id=number,
            role=role,
            name=f"{role} {number}",
            email=f"{role.lower()}@example.com",
            status="completed",
            ip="203.0.113.7",
            user_agent="Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0",
            time_zone="Europe/Copenhagen",
            sent_at=now,
            opened_at=now,
            completed_at=now,
        )
        for number, role in enumerate(("Seller", "Buyer"), start=1)
    ]
    return SealRequest(
        submission_id=1,
        submission_slug="k3VtR9mQzXw2Lp",
        seal_id="x",
        name="Agreement",
        account=Account(),
        documents=[StoredDocument(uuid="d", name="Agreement", file=file, original=file, pages=pages)],
        values=values,
        attachments=attachments,
        parties=parties,
        trail=trail(),
        created_at=now,
        completed_at=now,
    )


def main() -> None:
    from tests.support.material.agreement import agreement_pdf

    compare(10, 2048, ROUNDS, {PYHANKO: "pyhanko", LIBPDF: "seal"})
    compare(500, 2048, ROUNDS // 3, {LIBPDF: "seal 500"})
    complete = in_process_completion(agreement_pdf())
    taken = interleaved({"complete": complete}, 40)["complete"]
    print(f"Seal and audit trail of an agreement in one process: {statistics.median(taken) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
