"""Values and our seal onto a document that others have signed already: one incremental update, not a byte of theirs changed.

The values are stamp annotations with the drawing as their appearance: a signature without restrictions allows annotations
to be added (ISO 32000-2, 12.8.2.2), while changed page content would make readers call it broken. Nothing is flattened.
"""

import io
from collections.abc import Iterator, Mapping
from datetime import UTC

from asn1crypto import crl, ocsp, x509
from pyhanko.pdf_utils import generic
from pyhanko.pdf_utils.generic import pdf_name
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.misc import PdfError
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.fields import MDPPerm, SigFieldSpec, SigSeedSubFilter, enumerate_sig_fields
from pyhanko.sign.signers.cms_embedder import PdfCMSEmbedder, SigIOSetup, SigObjSetup
from pyhanko.sign.signers.pdf_byterange import SignatureObject
from pyhanko.sign.validation.dss import DocumentSecurityStore

from services.rendering.jobs.refused import Refused
from services.rendering.jobs.seal import Reserved, SignatureText, ValidationMaterial

_PRINT_LOCKED_READ_ONLY = 4 + 64 + 128 + 512


def reserve(
    data: bytes,
    overlays: Mapping[int, bytes],
    text: SignatureText,
    size: int,
    material: ValidationMaterial | None = None,
) -> Reserved:
    """The signed file ``data`` with ``overlays`` (page from 1 to a PDF of one page in that page's coordinates) and an
    invisible signature field for ``size`` octets. Raises Refused when its signatures do not allow it."""
    try:
        writer = IncrementalPdfFileWriter(io.BytesIO(data), strict=False)
        _check_permissions(writer.prev, annotate=bool(overlays))
        for page, overlay in sorted(overlays.items()):
            _stamp(writer, page - 1, overlay)
        if material:
            _add_material(writer, material)
        return _reserve(writer, text, size)
    except Refused:
        raise
    except (PdfError, ValueError, KeyError, TypeError, AttributeError, AssertionError, IndexError) as error:
        raise Refused("The PDF is signed and damaged: it cannot be added to.") from error


def _check_permissions(reader: PdfFileReader, *, annotate: bool) -> None:
    """The strictest of its signatures decides (ISO 32000-2, 12.8.2.2: 1 nothing, 2 forms and signatures, 3 annotations)."""
    allowed = min(_permissions(reader), default=MDPPerm.ANNOTATE.value)
    if allowed == MDPPerm.NO_CHANGES.value:
        raise Refused("The PDF is signed and its author forbids all changes")
    if annotate and allowed < MDPPerm.ANNOTATE.value:
        raise Refused("The PDF is signed and its author allows nothing but its own form to be filled in")


def _permissions(reader: PdfFileReader) -> Iterator[int]:
    """Read from the dictionaries, not from the signatures: one of a kind that is not known any more forbids as well."""
    for _name, _value, field in enumerate_sig_fields(reader, filled_status=True):
        lock = field.get_object().get("/Lock", {})
        if "/P" in lock:
            yield int(lock["/P"])
        for reference in field.get_object()["/V"].get("/Reference", ()):
            if reference.get_object().get("/TransformMethod") == "/DocMDP":
                yield int(reference.get_object().get("/TransformParams", {}).get("/P", MDPPerm.FILL_FORMS.value))


def _stamp(writer: IncrementalPdfFileWriter, index: int, overlay: bytes) -> None:
    """Lay the overlay over the page as an annotation: printed, locked, not to be edited; its links stay links."""
    source = PdfFileReader(io.BytesIO(overlay), strict=False)
    appearance = writer.import_page_as_xobject(source, 0)
    annotation = generic.DictionaryObject(
        {
            pdf_name("/Type"): pdf_name("/Annot"),
            pdf_name("/Subtype"): pdf_name("/Stamp"),
            pdf_name("/Rect"): generic.ArrayObject(appearance.get_object()["/BBox"]),
            pdf_name("/F"): generic.NumberObject(_PRINT_LOCKED_READ_ONLY),
            pdf_name("/AP"): generic.DictionaryObject({pdf_name("/N"): appearance}),
        }
    )
    page_reference, _ = writer.find_page_for_modification(index)
    writer.register_annotation(page_reference, writer.add_object(annotation))
    for link in source.root["/Pages"]["/Kids"][0].get("/Annots", ()):
        writer.register_annotation(page_reference, writer.add_object(writer.import_object(link)))


def _add_material(writer: IncrementalPdfFileWriter, material: ValidationMaterial) -> None:
    DocumentSecurityStore.supply_dss_in_writer(
        writer,
        None,
        certs=[x509.Certificate.load(data) for data in material.certificates],
        ocsps=[ocsp.OCSPResponse.load(data) for data in material.ocsp_responses],
        crls=[crl.CertificateList.load(data) for data in material.revocation_lists],
    )


def _reserve(writer: IncrementalPdfFileWriter, text: SignatureText, size: int) -> Reserved:
    name = _free_name(writer)
    steps = PdfCMSEmbedder(SigFieldSpec(name)).write_cms(name, writer)
    next(steps)
    placeholder = SignatureObject(
        timestamp=text.signed_at.astimezone(UTC),
        subfilter=SigSeedSubFilter.PADES,
        name=text.name,
        reason=text.reason,
        bytes_reserved=2 * size,
    )
    steps.send(SigObjSetup(sig_placeholder=placeholder))
    prepared, output = steps.send(SigIOSetup(md_algorithm="sha256"))
    return Reserved(
        data=output.getvalue(),
        start=prepared.reserved_region_start + 1,
        size=2 * size,
        digest=prepared.document_digest,
    )


def _free_name(writer: IncrementalPdfFileWriter) -> str:
    taken = {name for name, _value, _field in enumerate_sig_fields(writer)}
    return next(name for number in range(1, len(taken) + 2) if (name := f"Seal {number}") not in taken)
