"""The place for the seal's signature: a signature dictionary, written in the same save as everything else.

ISO 32000-2, 12.8 and EN 319 142-1 (PAdES baseline): ``/SubFilter /ETSI.CAdES.detached``, the time in ``/M`` and not in the
CMS, ``/ByteRange`` over the whole file but ``/Contents``. The signature itself is made elsewhere: this runs in a child,
which has no key. It returns the file with a hole, where the hole is, and the digest of everything around it.
"""

import hashlib
import io
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name, Stream, String

from services.rendering.jobs.archival.tagging import Tagging, is_tagged
from services.rendering.protocol.messages import Reserved, SignatureText, ValidationMaterial

_SAVE: dict[str, Any] = {
    # Streams are written as they came: decoding and packing them again is most of the time that a save takes.
    "compress_streams": False,
    "stream_decode_level": pikepdf.StreamDecodeLevel.none,
    "object_stream_mode": pikepdf.ObjectStreamMode.disable,
    "min_version": "1.7",
}
_TOKEN_BYTES = 24
_INVISIBLE = Array([0, 0, 0, 0])
_PRINT_AND_LOCKED = 4 + 128
_SPOKEN_NAME = "Electronic seal"
_CERTIFICATION = Dictionary(
    Type=Name.SigRef,
    TransformMethod=Name.DocMDP,
    TransformParams=Dictionary(Type=Name.TransformParams, V=Name("/1.2"), P=2),
)
"""ISO 32000-2, 12.8.2.2, level 2: what is allowed later is signing and filling in, of which there is nothing left."""
_SIGNATURES_EXIST_APPEND_ONLY = 3


def reserve(
    pdf: pikepdf.Pdf,
    text: SignatureText,
    size: int,
    material: ValidationMaterial | None = None,
    *,
    certify: bool = False,
) -> Reserved:
    """Add an invisible signature field for a signature of at most ``size`` octets, and save. ``certify``: readers are to call
    the signature broken when anything is changed afterwards but that others sign, or fill in a form.

    ``pdf`` must not carry signatures of others: they would not survive this (see ``seal_signed``).
    """
    token = secrets.token_bytes(_TOKEN_BYTES)
    gap = [secrets.randbelow(9 * 10**9) + 10**9 for _ in range(3)]
    signature = _signature(pdf, text, gap, token + bytes(size - _TOKEN_BYTES))
    _add_signature_field(pdf, signature)
    if certify:
        signature.Reference = Array([_CERTIFICATION])
        pdf.Root.Perms = Dictionary(DocMDP=signature)
    _declare_extension(pdf)
    if material:
        pdf.Root.DSS = pdf.make_indirect(_security_store(pdf, material))
    output = io.BytesIO()
    pdf.save(output, **_SAVE)
    return _measure(output.getbuffer(), token, gap, size)


def pdf_date(moment: datetime) -> str:
    """ISO 32000-2, 7.9.4, in UTC."""
    return moment.astimezone(UTC).strftime("D:%Y%m%d%H%M%S+00'00'")


def _signature(pdf: pikepdf.Pdf, text: SignatureText, gap: list[int], contents: bytes) -> pikepdf.Object:
    return pdf.make_indirect(
        Dictionary(
            Type=Name.Sig,
            Filter=Name("/Adobe.PPKLite"),
            SubFilter=Name("/ETSI.CAdES.detached"),
            ByteRange=Array([0, *gap]),
            Contents=String(contents),
            M=String(pdf_date(text.signed_at)),
            Name=String(text.name),
            Reason=String(text.reason),
            Prop_Build=Dictionary(App=Dictionary(Name=Name("/" + text.application))),
        )
    )


def _add_signature_field(pdf: pikepdf.Pdf, signature: pikepdf.Object) -> None:
    """It is as PDF/A wants it, with an appearance in which nothing is to be seen, and as PDF/UA does: named and tagged."""
    page = pdf.pages[0].obj
    nothing = Stream(pdf, b"", Type=Name.XObject, Subtype=Name.Form, BBox=_INVISIBLE, Resources=Dictionary())
    form = pdf.Root.get("/AcroForm")
    if not isinstance(form, Dictionary):
        form = pdf.Root.AcroForm = pdf.make_indirect(Dictionary())
    widget = pdf.make_indirect(
        Dictionary(
            Type=Name.Annot,
            Subtype=Name.Widget,
            FT=Name.Sig,
            T=String(_free_name(form)),
            TU=String(_SPOKEN_NAME),
            AP=Dictionary(N=pdf.make_indirect(nothing)),
            Rect=_INVISIBLE,
            F=_PRINT_AND_LOCKED,
            P=page,
            V=signature,
        )
    )
    # New arrays, because the old ones may be shared between pages, or be no arrays at all.
    form.Fields = Array([*_items(form.get("/Fields")), widget])
    page.Annots = Array([*_items(page.get("/Annots")), widget])
    if is_tagged(pdf):
        tagging = Tagging(pdf)
        tagging.annotation(pdf.pages[0], widget, "Form")
        tagging.finish()
    form.SigFlags = _SIGNATURES_EXIST_APPEND_ONLY
    # Viewers would draw fields anew, which changes what was signed.
    for key in ("/NeedAppearances", "/XFA"):
        if key in form:
            del form[key]


def _free_name(form: pikepdf.Object) -> str:
    names_taken = {str(item.get("/T", "")) for item in _items(form.get("/Fields")) if isinstance(item, Dictionary)}
    return next(name for number in range(1, len(names_taken) + 2) if (name := f"Seal {number}") not in names_taken)


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Array) else []


def _declare_extension(pdf: pikepdf.Pdf) -> None:
    """EN 319 142-1, 5.1: the signature format of ETSI is an extension of PDF 1.7."""
    extensions = pdf.Root.get("/Extensions")
    if not isinstance(extensions, Dictionary):
        extensions = pdf.Root.Extensions = Dictionary()
    extensions["/ESIC"] = Dictionary(BaseVersion=Name("/1.7"), ExtensionLevel=2)


def _security_store(pdf: pikepdf.Pdf, material: ValidationMaterial) -> Dictionary:
    """EN 319 142-1, 5.4.2. In the revision of the signature itself, so that the signature covers the whole file."""

    def streams(contents: Sequence[bytes]) -> Array:
        return Array([pdf.make_indirect(pdf.make_stream(content)) for content in contents])

    store = Dictionary(Type=Name.DSS, Certs=streams(material.certificates))
    if material.ocsp_responses:
        store.OCSPs = streams(material.ocsp_responses)
    if material.revocation_lists:
        store.CRLs = streams(material.revocation_lists)
    return store


def _measure(buffer: memoryview, token: bytes, gap: list[int], size: int) -> Reserved:
    """Find the hole by its random content, write the real ``/ByteRange``, and digest what it covers."""
    data = bytearray(buffer)
    # `<` belongs to the gap; what is digested ends before it and goes on after `>` (ISO 32000-2, 12.8.1).
    opening = _only(data, b"<" + token.hex().encode())
    start, end = opening + 1, opening + 1 + 2 * size
    assert data[end : end + 1] == b">"
    data[start:end] = b"0" * (2 * size)
    placeholder = b"[ 0 %d %d %d ]" % tuple(gap)
    at = _only(data, placeholder)
    ranges = b"[0 %d %d %d]" % (opening, end + 1, len(data) - end - 1)
    data[at : at + len(placeholder)] = ranges.ljust(len(placeholder))
    digest = hashlib.sha256()
    with memoryview(data) as view:
        digest.update(view[:opening])
        digest.update(view[end + 1 :])
    return Reserved(bytes(data), start, 2 * size, digest.digest())


def _only(data: bytearray, needle: bytes) -> int:
    position = data.find(needle)
    assert position >= 0
    assert data.find(needle, position + 1) < 0
    return position
