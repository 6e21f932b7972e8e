"""Several PDFs become one. Form fields, links and named destinations come along; signatures cannot."""

import io
from collections.abc import Iterator, Sequence
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name

from services.rendering.jobs import signature_fields
from services.rendering.jobs.refused import Refused

MOST_PAGES = 5_000
_SAVE: dict[str, Any] = {
    # Streams that are packed stay as they are; objects that came out of object streams go into new ones: forms with
    # many fields would otherwise become ten times as large.
    "compress_streams": True,
    "stream_decode_level": pikepdf.StreamDecodeLevel.none,
    "object_stream_mode": pikepdf.ObjectStreamMode.generate,
}
_READABLE = (pikepdf.PdfError, RuntimeError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


def merge(files: Sequence[bytes], title: str) -> tuple[pikepdf.Pdf, list[str]]:
    """All pages of ``files`` in order, and warnings about what could not be taken along.

    A signature covers the bytes of its own file: in another file it is not even wrong, so it is taken out, its looks stay,
    and a warning says so. Raises Refused naming the file (from 1) that cannot be read.
    """
    target = pikepdf.new()
    warnings: list[str] = []
    for number, data in enumerate(files, start=1):
        try:
            source = pikepdf.open(io.BytesIO(data))
            if removed := _drop_signatures(source):
                word = "signature" if removed == 1 else "signatures"
                warnings.append(f"File {number}: {removed} {word} removed; a signature is only valid in its own file")
            if len(target.pages) + len(source.pages) > MOST_PAGES:
                raise Refused(f"The merged document would have more than {MOST_PAGES} pages", file=number)
            target.add_pages_from(source)
        except pikepdf.PasswordError as error:
            raise Refused(f"File {number} is protected by a password", file=number) from error
        except _READABLE as error:
            raise Refused(f"File {number}: malformed PDF", file=number) from error
    if not len(target.pages):
        raise Refused("The files have no pages")
    target.docinfo["/Title"] = title
    return target, warnings


def save(pdf: pikepdf.Pdf) -> bytes:
    """The file."""
    output = io.BytesIO()
    pdf.save(output, **_SAVE)
    return output.getvalue()


def _drop_signatures(pdf: pikepdf.Pdf) -> int:
    """Take the signed fields out and leave what they show on the page; returns how many there were."""
    signed = len(list(signature_fields.fields_of(pdf)))
    if not signed:
        return 0
    for page in pdf.pages:
        for annotation in _items(page.obj.get("/Annots")):
            if isinstance(annotation, Dictionary) and _signed(annotation):
                _keep_looks(annotation)
    form = pdf.Root.AcroForm
    form.Fields = Array([item for item in _items(form.get("/Fields")) if not _was_signature(item)])
    for holder, key in ((form, "/SigFlags"), (pdf.Root, "/Perms"), (pdf.Root, "/DSS")):
        if key in holder:
            del holder[key]
    pdf.acroform.invalidate_cache()
    return signed


def _signed(annotation: pikepdf.Object) -> bool:
    return any(node.get("/FT") == Name.Sig for node in _lineage(annotation)) and any(
        "/V" in node for node in _lineage(annotation)
    )


def _lineage(node: pikepdf.Object) -> Iterator[pikepdf.Object]:
    """A widget and its fields; the length is bounded because a hostile file may make it a ring."""
    for _ in range(32):
        if not isinstance(node, Dictionary):
            return
        yield node
        node = node.get("/Parent")


def _keep_looks(annotation: pikepdf.Object) -> None:
    """From a field's widget to a stamp: the picture stays, the field is gone."""
    for key in ("/FT", "/V", "/T", "/Parent", "/Lock", "/SV", "/MK", "/Ff", "/DA"):
        if key in annotation:
            del annotation[key]
    annotation.Subtype = Name.Stamp


def _was_signature(item: pikepdf.Object) -> bool:
    """Of the document's top-level fields: those that were turned into stamps, or were signature fields without widget."""
    return isinstance(item, Dictionary) and (item.get("/Subtype") == Name.Stamp or item.get("/FT") == Name.Sig)


def _items(value: object) -> list[pikepdf.Object]:
    return list(value) if isinstance(value, Array) else []
