"""Values and our seal onto a document that others have signed already: one incremental update, not a byte of theirs changed.

Form fields of the file hold their values from now on; everything else that is drawn is the look of our own signature, which
other signatures allow to be added (ISO 32000-2, 12.8.2.2), while changed page content, and for strict readers any annotation
too, would make them call the earlier signatures broken. Nothing is flattened.

A signature field has one place on one page (12.7.5.5), so there is one for each page that shows something, and one for each
empty signature field of the file that is filled in: all of them have the same signature for their value.
"""

import io
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC
from typing import Any

from asn1crypto import crl, ocsp, x509
from pyhanko.pdf_utils import generic
from pyhanko.pdf_utils.generic import pdf_name
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.misc import PdfError
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.fields import SigFieldSpec, SigSeedSubFilter, append_signature_field, enumerate_sig_fields
from pyhanko.sign.signers.cms_embedder import PdfCMSEmbedder, SigIOSetup, SigObjSetup
from pyhanko.sign.signers.pdf_byterange import SignatureObject
from pyhanko.sign.validation.dss import DocumentSecurityStore

from services.rendering.jobs.drawing.fill import FormValue, Overlay
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.protocol.messages import Reserved, SignatureText, ValidationMaterial

_PRINT_AND_LOCKED = 4 + 128
ODD = (PdfError, ValueError, KeyError, TypeError, AttributeError, AssertionError, IndexError)
"""What pyHanko raises for files that are not as they should be."""


class Writer(IncrementalPdfFileWriter):  # type: ignore[misc]  # pyHanko has no types
    """Leaves the document's metadata as they are: its own would contradict those of a document that claims PDF/A-1."""

    def _update_meta(self) -> None:
        pass


def opened(data: bytes) -> Writer:
    """A writer of what is added to the file."""
    writer = Writer(io.BytesIO(data), strict=False)
    if writer.prev.encrypted:
        writer.encrypt("")  # as everything before: what is encrypted otherwise, readers cannot read
    return writer


def reserve(
    data: bytes,
    overlays: Sequence[Overlay],
    text: SignatureText,
    size: int,
    material: ValidationMaterial | None = None,
) -> Reserved:
    """The signed file ``data`` with ``overlays`` and a signature for ``size`` octets, which is invisible when nothing is drawn
    but values of form fields. Raises Refused when the file is damaged."""
    try:
        writer = opened(data)
        signed: list[Any] = []
        looks: list[tuple[int, Rectangle, Any]] = []
        for overlay in overlays:
            drawing = writer.import_page_as_xobject(PdfFileReader(io.BytesIO(overlay.sheet), strict=False), 0)
            for value in overlay.values:
                signed += _fill(writer, value, _look(writer, drawing, value.area))
            if not overlay.values:
                looks.append((overlay.page - 1, overlay.area, _look(writer, drawing, overlay.area)))
        if material:
            add_material(writer, material)
        return _reserve(writer, looks, signed, text, size)
    except Refused:
        raise
    except ODD as error:
        raise Refused("The PDF is signed and damaged: it cannot be added to.") from error


def _look(writer: IncrementalPdfFileWriter, drawing: Any, area: Rectangle) -> Any:
    """The part of a page's drawing that is in the area, as an appearance (12.5.5)."""
    entries = {
        pdf_name("/Type"): pdf_name("/XObject"),
        pdf_name("/Subtype"): pdf_name("/Form"),
        pdf_name("/BBox"): _box(area),
        pdf_name("/Resources"): generic.DictionaryObject(
            {pdf_name("/XObject"): generic.DictionaryObject({pdf_name("/Sheet"): drawing})}
        ),
    }
    return writer.add_object(generic.StreamObject(entries, stream_data=b"/Sheet Do"))


def _box(area: Rectangle) -> Any:
    return generic.ArrayObject(generic.FloatObject(round(value, 3)) for value in area)


def _fill(writer: IncrementalPdfFileWriter, value: FormValue, look: Any) -> list[Any]:
    """Give a form field its value and look; the field itself when it is one for a signature, which gets its value later. Only
    the keys are changed that strict readers allow to be: not ``/I`` of a list, which counts for less than its value."""
    reference = generic.Reference(*value.field, pdf=writer)
    field = reference.get_object()
    shown: Any = look
    if value.kind == "/Btn":
        state = pdf_name(str(value.value))
        shown = writer.add_object(generic.DictionaryObject({**_looks_of(field), state: look}))
        field[pdf_name("/V")] = field[pdf_name("/AS")] = state
    elif value.kind != "/Sig" and value.value is not None:
        field[pdf_name("/V")] = _text(value.value)
    field[pdf_name("/AP")] = generic.DictionaryObject({pdf_name("/N"): shown})
    writer.mark_update(reference)
    return [field] if value.kind == "/Sig" else []


def _looks_of(button: Any) -> dict[Any, Any]:
    """Its looks by state; some have none, or one for all."""
    try:
        by_state = button["/AP"]["/N"]
    except KeyError:
        return {}
    if isinstance(by_state, generic.StreamObject):
        return {}
    return {state: by_state.raw_get(state) for state in by_state}


def _text(value: str | list[str]) -> Any:
    if isinstance(value, list):
        return generic.ArrayObject(generic.pdf_string(item) for item in value)
    return generic.pdf_string(value)


def add_material(writer: IncrementalPdfFileWriter, material: ValidationMaterial) -> None:
    """To what the file has of it. Left out where nobody can read that: the seal holds without, too."""
    with suppress(*ODD):
        DocumentSecurityStore.supply_dss_in_writer(
            writer,
            None,
            certs=[x509.Certificate.load(data) for data in material.certificates],
            ocsps=[ocsp.OCSPResponse.load(data) for data in material.ocsp_responses],
            crls=[crl.CertificateList.load(data) for data in material.revocation_lists],
        )


def _reserve(
    writer: IncrementalPdfFileWriter,
    looks: Sequence[tuple[int, Rectangle, Any]],
    signed: Sequence[Any],
    text: SignatureText,
    size: int,
) -> Reserved:
    """``signed``: fields of the file that show our signature, too."""
    name = _free_name(writer)
    steps = PdfCMSEmbedder(_field(name, *looks[0][:2]) if looks else SigFieldSpec(name)).write_cms(name, writer)
    own_field = next(steps).get_object()
    further_fields = list(signed)
    if looks:
        show(own_field, looks[0][2])
    for page, area, look in looks[1:]:
        field = _own_field(writer, page, area)
        show(field, look)
        further_fields.append(field)
    placeholder = SignatureObject(
        timestamp=text.signed_at.astimezone(UTC),
        subfilter=SigSeedSubFilter.PADES,
        name=text.name,
        reason=text.reason,
        bytes_reserved=2 * size,
    )
    signature = steps.send(SigObjSetup(sig_placeholder=placeholder))
    for field in further_fields:
        field[pdf_name("/V")] = signature
    prepared, output = steps.send(SigIOSetup(md_algorithm="sha256"))
    return Reserved(
        data=output.getvalue(),
        start=prepared.reserved_region_start + 1,
        size=2 * size,
        digest=prepared.document_digest,
    )


def _own_field(writer: IncrementalPdfFileWriter, page: int, area: Rectangle) -> Any:
    name = _free_name(writer)
    append_signature_field(writer, _field(name, page, area))
    return next(field.get_object() for field_name, _value, field in enumerate_sig_fields(writer) if field_name == name)


def _field(name: str, page: int, area: Rectangle) -> SigFieldSpec:
    box = tuple(round(value, 3) for value in area)
    return SigFieldSpec(name, on_page=page, box=box)


def show(field: Any, look: Any) -> None:
    field[pdf_name("/AP")] = generic.DictionaryObject({pdf_name("/N"): look})
    field[pdf_name("/F")] = generic.NumberObject(_PRINT_AND_LOCKED)


def _free_name(writer: IncrementalPdfFileWriter) -> str:
    names_taken = {name for name, _value, _field in enumerate_sig_fields(writer)}
    return next(name for number in range(1, len(names_taken) + 2) if (name := f"Seal {number}") not in names_taken)
