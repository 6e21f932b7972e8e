"""Duty stamps as a provider's adapter appends them: a signature that is seen, in append mode, made by pyHanko."""

import functools
import io
from typing import Any

from asn1crypto import keys, x509
from cryptography.hazmat.primitives import serialization
from PIL import Image
from pyhanko.pdf_utils.generic import NumberObject
from pyhanko.pdf_utils.images import PdfImage
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.layout import AxisAlignment, InnerScaling, Margins, SimpleBoxLayoutRule
from pyhanko.sign.fields import SigFieldSpec, append_signature_field, enumerate_sig_fields
from pyhanko.sign.signers import PdfSignatureMetadata, PdfSigner, SimpleSigner
from pyhanko.stamp import StaticStampStyle
from pyhanko_certvalidator.registry import SimpleCertificateStore

from services.rendering.jobs.sealing import certificates
from services.rendering.protocol.messages import Corners
from tests.support.rendering.seals import NOW

SERIAL = "2WF3Z0NFQM0XA1"
COLOR = (120, 0, 160)
_WHOLE = SimpleBoxLayoutRule(AxisAlignment.ALIGN_MID, AxisAlignment.ALIGN_MID, Margins(), InnerScaling.STRETCH_FILL)


@functools.cache
def provider(name: str = "e-Meterai") -> certificates.SealIdentity:
    """The key and the chain of whoever sells stamps; its root is the last of the chain."""
    return certificates.parse(certificates.make(certificates.Names(name, name), "rsa-3072", NOW))


def stamped(
    data: bytes,
    box: Corners,
    page: int = 1,
    *,
    serial: str = SERIAL,
    name: str = "Stamp 1",
    who: certificates.SealIdentity | None = None,
    reason: str | None = None,
    flags: int | None = None,
) -> bytes:
    """``data`` with a stamp in ``box`` (default user space) of ``page`` (from 1): a square of one colour. ``flags`` of its
    annotation are 4 (printed) and 128 (locked) if nothing else is given."""
    writer = IncrementalPdfFileWriter(io.BytesIO(data), strict=False)
    if writer.prev.encrypted:
        writer.encrypt("")
    meta = PdfSignatureMetadata(
        field_name=name,
        reason=f"[{serial}] Contract" if reason is None else reason,
        location="JAKARTA",
        md_algorithm="sha256",
    )
    left, bottom, right, top = box
    picture = PdfImage(Image.new("RGB", (round(right - left), round(top - bottom)), COLOR))
    place = SigFieldSpec(name, on_page=page - 1, box=box)
    append_signature_field(writer, place)
    if flags is not None:
        field = next(field.get_object() for taken, _value, field in enumerate_sig_fields(writer) if taken == name)
        field["/F"] = NumberObject(flags)
    style = StaticStampStyle(background=picture, border_width=0, background_opacity=1, background_layout=_WHOLE)
    signer = PdfSigner(meta, _signer(who or provider()), stamp_style=style)
    signed: Any = signer.sign_pdf(writer)
    return bytes(signed.getvalue())


def _signer(who: certificates.SealIdentity) -> SimpleSigner:
    key = who.key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain = [x509.Certificate.load(encoded) for encoded in who.encoded]
    others = SimpleCertificateStore()
    others.register_multiple(chain[1:])
    return SimpleSigner(signing_cert=chain[0], signing_key=keys.PrivateKeyInfo.load(key), cert_registry=others)
