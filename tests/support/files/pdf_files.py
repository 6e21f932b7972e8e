"""Small PDFs for tests: with text, turned, cropped, scaled, encrypted, signed, hostile. Made anew for each call."""

import datetime
import functools
import io
import zlib
from collections.abc import Sequence
from typing import Any

import pikepdf
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID
from pikepdf import Array, Dictionary, Name

A4 = (0, 0, 595, 842)
LETTER = (0, 0, 612, 792)


def saved(pdf: pikepdf.Pdf, **options: Any) -> bytes:
    out = io.BytesIO()
    pdf.save(out, **options)
    return out.getvalue()


def document(*contents: bytes | str, **page: Any) -> bytes:
    """A PDF with one page for each content stream; ``/F1`` is Helvetica, ``/F2`` Times. See ``add_page``."""
    pdf = pikepdf.new()
    for content in contents or (b"",):
        add_page(pdf, content, **page)
    return saved(pdf)


def add_page(
    pdf: pikepdf.Pdf,
    content: bytes | str = b"",
    *,
    media: Sequence[float] = LETTER,
    crop: Sequence[float] | None = None,
    rotate: Any = None,
    user_unit: float | None = None,
    fonts: dict[str, Any] | None = None,
    forms: dict[str, Any] | None = None,
) -> pikepdf.Page:
    page = pdf.add_blank_page(page_size=(612, 792))
    page.obj.MediaBox = Array(list(media))
    if crop is not None:
        page.obj.CropBox = Array(list(crop))
    if rotate is not None:
        page.obj.Rotate = rotate
    if user_unit is not None:
        page.obj.UserUnit = user_unit
    known = {"/F1": standard_font(pdf, "Helvetica"), "/F2": standard_font(pdf, "Times-Roman"), **(fonts or {})}
    page.obj.Resources = Dictionary(Font=Dictionary(known), XObject=Dictionary(forms or {}))
    page.obj.Contents = pdf.make_stream(content.encode("latin-1") if isinstance(content, str) else content)
    return page


def standard_font(pdf: pikepdf.Pdf, name: str) -> Any:
    font = Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name(f"/{name}"), Encoding=Name.WinAnsiEncoding)
    return pdf.make_indirect(font)


def line(text: str, x: float = 72, y: float = 700, size: float = 12, font: str = "F1") -> str:
    """A content stream that draws one line of text."""
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    return f"BT /{font} {size} Tf {x} {y} Td ({escaped}) Tj ET\n"


def filled_rectangle(left: float, bottom: float, width: float, height: float) -> str:
    return f"q 1 0 0 rg {left:.4f} {bottom:.4f} {width:.4f} {height:.4f} re f Q\n"


def encrypted(data: bytes, user: str = "", owner: str = "owner", revision: Any = 6) -> bytes:
    """``revision`` of the security handler: 6 is AES-256, 4 AES-128, 3 RC4."""
    aes = revision >= 4
    encryption = pikepdf.Encryption(user=user, owner=owner, R=revision, aes=aes, metadata=aes)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        return saved(pdf, encryption=encryption)


def broken_cross_references(data: bytes) -> bytes:
    """The file with its cross-reference table pointing nowhere."""
    start = data.rindex(b"startxref")
    return data[:start] + b"startxref\n7\n%%EOF\n"


def flate_bomb(size: int = 400 * 1024 * 1024, *, times: int = 1) -> bytes:
    """A page whose content expands to ``size`` bytes, compressed ``times`` times over."""
    data = _zeros_packed(size >> 20)
    for _ in range(times - 1):
        data = zlib.compress(data, 9)
    pdf = pikepdf.new()
    page = add_page(pdf)
    stream = pdf.make_stream(b"")
    stream.write(data, filter=Array([Name.FlateDecode] * times) if times > 1 else Name.FlateDecode)
    page.obj.Contents = stream
    return saved(pdf, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)


def _zeros_packed(megabytes: int) -> bytes:
    """Zeros in the format of zlib (RFC 1950): each megabyte is as the one before, so that only one is packed."""
    packer = zlib.compressobj(9)
    header = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    one = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = ((megabytes << 20) % 65521) << 16 | 1
    return header + one * megabytes + b"\x03\x00" + checksum.to_bytes(4, "big")


def image_bomb(width: int = 50_000, height: int = 50_000) -> bytes:
    pdf = pikepdf.new()
    image = pdf.make_stream(b"")
    image.write(zlib.compress(bytes(100)), filter=Name.FlateDecode)
    for key, value in {
        "/Type": Name.XObject,
        "/Subtype": Name.Image,
        "/Width": width,
        "/Height": height,
        "/ColorSpace": Name.DeviceRGB,
        "/BitsPerComponent": 8,
    }.items():
        image[key] = value
    add_page(pdf, b"q 100 0 0 100 0 0 cm /Im0 Do Q", forms={"/Im0": image})
    return saved(pdf, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)


def circular_page_tree() -> bytes:
    pdf = pikepdf.new()
    add_page(pdf)
    tree = pdf.Root.Pages
    inner = pdf.make_indirect(Dictionary(Type=Name.Pages, Count=1, Parent=tree))
    inner.Kids = Array([tree])
    tree.Kids = Array([inner])
    return saved(pdf)


def with_form(*fields: Dictionary, **page: Any) -> bytes:
    """A page with these fields, which are widgets at the same time."""
    pdf = pikepdf.new()
    added = add_page(pdf, **page)
    widgets = []
    for field in fields:
        field.Type, field.Subtype, field.P = Name.Annot, Name.Widget, added.obj
        widgets.append(pdf.make_indirect(field))
    added.obj.Annots = Array(widgets)
    pdf.Root.AcroForm = Dictionary(Fields=Array(widgets), DA=pikepdf.String("/Helv 12 Tf 0 g"))
    return saved(pdf)


def field(kind: str, name: str, rectangle: Sequence[float] = (100, 600, 300, 630), **entries: Any) -> Dictionary:
    return Dictionary(FT=Name(f"/{kind}"), T=pikepdf.String(name), Rect=Array(list(rectangle)), **entries)


def signed(
    data: bytes, *, certified: int | None = None, locks: str | None = None, locked: Sequence[str] = ("Other",)
) -> bytes:
    """With a signature by somebody else; ``certified`` is the DocMDP level, ``locks`` a FieldMDP action (All, Include, Exclude)
    on the fields ``locked``."""
    from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
    from pyhanko.sign.fields import FieldMDPAction, FieldMDPSpec, MDPPerm, SigFieldSpec
    from pyhanko.sign.signers import PdfSignatureMetadata, PdfSigner

    writer, out = IncrementalPdfFileWriter(io.BytesIO(data)), io.BytesIO()
    if writer.prev.encrypted:
        writer.encrypt("")
    lock = FieldMDPSpec(FieldMDPAction(f"/{locks}"), list(locked) if locks != "All" else None) if locks else None
    PdfSigner(
        PdfSignatureMetadata(
            field_name="Theirs",
            certify=certified is not None,
            docmdp_permissions=MDPPerm(certified or 2),
            md_algorithm="sha256",
        ),
        signer=stranger(),
        new_field_spec=SigFieldSpec("Theirs", field_mdp_spec=lock),
    ).sign_pdf(writer, output=out)
    return out.getvalue()


@functools.cache
def stranger() -> Any:
    """pyHanko's signer of ``signed``: somebody of whom this installation knows nothing."""
    from pyhanko.sign.signers import SimpleSigner

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Somebody Else")])
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=3650))
        .sign(key, hashes.SHA256())
    )
    packed = pkcs12.serialize_key_and_certificates(b"somebody", key, certificate, None, serialization.NoEncryption())
    return SimpleSigner.load_pkcs12_data(packed, other_certs=[])


def unlisted_cross_references(content: str) -> bytes:
    """One page, and a cross-reference stream that has no entry for itself, as some producers write it."""
    stream = f"<< /Length {len(content)} >> stream\n{content}\nendstream"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        stream,
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    data, entries = b"%PDF-1.5\n", [b"\x00" + bytes(2) + b"\xff"]
    for number, item in enumerate(objects, 1):
        entries.append(b"\x01" + len(data).to_bytes(2, "big") + b"\x00")
        data += f"{number} 0 obj\n{item}\nendobj\n".encode("ascii")
    table = b"".join(entries)
    start, count = len(data), len(entries)
    head = f"/Type /XRef /W [1 2 1] /Index [0 {count}] /Size {count + 1} /Root 1 0 R /Length {len(table)}"
    data += f"{count} 0 obj\n<< {head} >> stream\n".encode("ascii") + table
    return data + f"\nendstream\nendobj\nstartxref\n{start}\n%%EOF\n".encode("ascii")
