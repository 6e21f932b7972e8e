"""Did the provider do what was ordered, and nothing else? What it gave back is read as a stranger's file.

A stamp is one more signature, appended to the sealed file: everything that was there before is there still, byte by byte, and
the signatures of it hold as they did.
"""

import io
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pikepdf

from contracts.rpc.rendering import VerifiedSignature
from services.rendering.jobs.forms import signature_fields
from services.rendering.jobs.forms.signature_fields import SignatureField
from services.rendering.jobs.pdf.geometry import Rectangle, as_rectangle
from services.rendering.jobs.pdf.pdfium_text import open_document, open_page_text
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing.verifying.verify import verify

_MOVED = 0.5
"""Points that a stamp may be off its place."""
_ODD = (pikepdf.PdfError, Refused, RuntimeError, ValueError, TypeError, KeyError, AttributeError, IndexError)
"""What is raised for files that are not as they should be."""


class StampBroken(Exception):
    """The stamped file is not what it must be; the message says why."""


def check_stamped(
    sealed: bytes, stamped: bytes, serial: str, page: int, box: Rectangle, anchors: Sequence[bytes], now: datetime
) -> VerifiedSignature:
    """The stamp's signature. ``sealed`` is the file that the provider got, ``page`` (from 1) and ``box`` (default user space)
    where the stamp was wished, ``anchors`` the certificates (DER) that its chain may end in. Raises StampBroken unless
    ``stamped`` is ``sealed`` with that one stamp and nothing else."""
    if len(stamped) <= len(sealed) or not stamped.startswith(sealed):
        raise StampBroken("the stamped file does not begin with the sealed one")
    try:
        before, _ = signature_fields.read(sealed)
        after, problem = signature_fields.read(stamped)
    except Refused as error:
        raise StampBroken(f"the stamped file cannot be read: {error}") from error
    if problem is not None:
        raise StampBroken(f"the stamped file is damaged: {problem}")
    stamp = _added(before, after)
    verdict = verify(stamped, anchors, now, sealed_here=True).signatures
    earlier = verify(sealed, anchors, now, sealed_here=True).signatures
    _check_kept(earlier, [signature for signature in verdict if signature.field != stamp.field])
    signature = next((candidate for candidate in verdict if candidate.field == stamp.field), None)
    if signature is None:
        raise StampBroken("readers disagree whether the stamp is there")
    _check_signature(signature, stamp, serial)
    try:
        _check_looks(sealed, stamped, stamp, page, box)
    except _ODD as error:
        raise StampBroken("the page of the stamp cannot be read") from error
    return signature


def _added(before: Sequence[SignatureField], after: Sequence[SignatureField]) -> SignatureField:
    """The one signature that was added."""
    if lost := [entry for entry in before if entry not in after]:
        raise StampBroken(f"the signature {lost[0].field} is no longer there")
    added = [entry for entry in after if entry not in before]
    if len(added) != 1:
        raise StampBroken(f"{len(added)} signatures were added instead of one")
    return added[0]


def _check_kept(earlier: Sequence[VerifiedSignature], now: Sequence[VerifiedSignature]) -> None:
    """The earlier signatures hold as they did."""
    by_field = {signature.field: signature for signature in now}
    for signature in earlier:
        later = by_field.get(signature.field)
        if later is None:
            raise StampBroken(f"the signature {signature.field} is no longer there")
        worse = later.integrity != signature.integrity or (
            later.changed_after_signing and not signature.changed_after_signing
        )
        if worse or (later.indication, later.sub_indication) != (signature.indication, signature.sub_indication):
            raise StampBroken(f"the signature {signature.field} does not hold any more: {_reasons(later)}")


def _check_signature(signature: VerifiedSignature, stamp: SignatureField, serial: str) -> None:
    if signature.integrity != "valid" or signature.changed_after_signing:
        raise StampBroken(f"the signature of the stamp does not hold: {_reasons(signature)}")
    if signature.trust != "trusted":
        raise StampBroken(f"the certificate of the stamp cannot be relied on: {_reasons(signature)}")
    if serial not in (stamp.reason or ""):
        raise StampBroken(f"the stamp does not name its serial number {serial}")


def _reasons(signature: VerifiedSignature) -> str:
    contents = [note["content"] for note in signature.verification_result if note["type"] != "info"]
    return "; ".join(contents) or signature.sub_indication or signature.indication


# --- what is seen ---------------------------------------------------------------------------------------------------------


def _check_looks(sealed: bytes, stamped: bytes, stamp: SignatureField, page: int, box: Rectangle) -> None:
    with pikepdf.open(io.BytesIO(sealed)) as old, pikepdf.open(io.BytesIO(stamped)) as new:
        if len(old.pages) != len(new.pages):
            raise StampBroken("the stamped file has other pages than the sealed one")
        added = [
            (number, annotation)
            for number, (was, now) in enumerate(zip(old.pages, new.pages, strict=True), start=1)
            for annotation in _annotations(now)[len(_annotations(was)) :]
        ]
        if len(added) != 1:
            raise StampBroken(f"{len(added)} annotations were added instead of the stamp alone")
        number, annotation = added[0]
        if number != page or not _shows(annotation, stamp):
            raise StampBroken(f"the stamp is not on page {page}")
        place = as_rectangle(annotation.get("/Rect"))
        if place is None or any(abs(a - b) > _MOVED for a, b in zip(place, box, strict=True)):
            raise StampBroken(f"the stamp is not in its place: {_corners(place)} instead of {_corners(box)}")
        if not _has_look(annotation):
            raise StampBroken("nothing of the stamp is to be seen")
    if _text(sealed, page) != _text(stamped, page):
        raise StampBroken(f"the text of page {page} has changed")


def _annotations(page: pikepdf.Page) -> list[Any]:
    annotations = page.obj.get("/Annots")
    return list(annotations) if isinstance(annotations, pikepdf.Array) else []


def _shows(annotation: Any, stamp: SignatureField) -> bool:
    """Return whether it is the widget of the stamp's field, which may be the field itself or its only kid."""
    if not isinstance(annotation, pikepdf.Dictionary) or annotation.get("/Subtype") != "/Widget":
        return False
    parent = annotation.get("/Parent")
    holders = [annotation, parent] if isinstance(parent, pikepdf.Dictionary) else [annotation]
    values = [value for holder in holders if isinstance(value := holder.get("/V"), pikepdf.Dictionary)]
    return any(tuple(value.get("/ByteRange", ())) == stamp.byte_range for value in values)


def _has_look(annotation: pikepdf.Dictionary) -> bool:
    """Return whether it has an appearance that readers draw (ISO 32000-2, 12.5.3 and 12.5.5)."""
    flags = annotation.get("/F", 0)
    hidden = not isinstance(flags, int) or bool(flags & (2 | 32))
    looks = annotation.get("/AP")
    normal = looks.get("/N") if isinstance(looks, pikepdf.Dictionary) else None
    return not hidden and isinstance(normal, pikepdf.Stream) and as_rectangle(normal.get("/BBox")) is not None


def _text(data: bytes, page: int) -> str:
    with open_document(data) as document, open_page_text(document, page - 1) as text:
        return text.text


def _corners(place: Sequence[float] | None) -> str:
    return "none" if place is None else " ".join(f"{edge:.1f}" for edge in place)
