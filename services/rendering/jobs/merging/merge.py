"""Several PDFs become one. Form fields, links, bookmarks, page labels, layers and the structure tree come along; signatures
and attached files cannot."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name

from services.rendering.jobs.forms import signature_fields
from services.rendering.jobs.merging.layers import Layers
from services.rendering.jobs.merging.outlines import Bookmark, Label, bookmarks, labels, write_bookmarks, write_labels
from services.rendering.jobs.merging.structure import Structure
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pdf.values import name_of

MOST_PAGES = 5_000
_MOST_NAMED = 5
_VERSION = re.compile(r"[12]\.\d")
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
    merging = _Merging()
    for number, data in enumerate(files, start=1):
        try:
            merging.add(number, data)
        except pikepdf.PasswordError as error:
            raise Refused(f"File {number} is protected by a password.", file=number) from error
        except _READABLE as error:
            raise Refused(f"File {number}: malformed PDF.", file=number) from error
    if not len(merging.target.pages):
        raise Refused("The files have no pages.")
    merging.finish(title)
    return merging.target, merging.warnings


class _Merging:
    """The merged file in the making."""

    def __init__(self) -> None:
        self.target = pikepdf.new()
        self.warnings: list[str] = []
        self._layers = Layers(self.target)
        self._structure = Structure(self.target)
        self._bookmarks: list[Bookmark] = []
        self._labels: list[tuple[int, list[Label]]] = []
        self._version = "1.5"

    def add(self, number: int, data: bytes) -> None:
        """The file is called ``number`` in warnings."""
        source = pikepdf.open(io.BytesIO(data))
        removed = _drop_signatures(source)
        first_page = len(self.target.pages)
        if first_page + len(source.pages) > MOST_PAGES:
            raise Refused(f"The merged document would have more than {MOST_PAGES} pages.", file=number)
        bookmarks_, labels_ = bookmarks(source, first_page), labels(source, first_page)
        self._structure.make_room(source)
        copied = self.target.add_pages_from(source)
        self._structure.add(source)
        self._layers.add(source)
        self._bookmarks += bookmarks_
        self._labels.append((first_page, labels_))
        # A version in the catalogue is newer than the one in the first line (ISO 32000-2, 7.7.2).
        stated = name_of(source.Root.get("/Version")).lstrip("/")
        self._version = max(self._version, source.pdf_version, stated if _VERSION.fullmatch(stated) else "")
        self.warnings += [f"File {number}: {lost}" for lost in _losses(source, removed, copied.renamed_fields)]

    def finish(self, title: str) -> None:
        self._structure.write()
        self._layers.write()
        write_bookmarks(self.target, self._bookmarks)
        write_labels(self.target, self._labels)
        if self._version > "1.5":
            self.target.Root.Version = Name(f"/{self._version}")
        self.target.docinfo["/Title"] = title


def _losses(source: pikepdf.Pdf, signatures: int, renamed: Mapping[str, str]) -> Iterator[str]:
    """Yield what is not in the merged file as it was in its own."""
    if signatures:
        yield signatures_lost(signatures)
    if source.is_encrypted:
        yield "it was encrypted without a password to open it; the merged file is not encrypted"
    if len(source.attachments):
        yield f"attached files were left out: {len(source.attachments)}"
    changed = [f"{old} is {new} now" for old, new in renamed.items() if old != new]
    if changed:
        more = ", ..." if len(changed) > _MOST_NAMED else ""
        yield f"form fields have the names of others and were renamed: {', '.join(changed[:_MOST_NAMED])}{more}"


def signatures_lost(count: int) -> str:
    """Return what is said of signatures that do not come along."""
    word = "signature" if count == 1 else "signatures"
    return f"{count} {word} removed; a signature is only valid in its own file"


def save(pdf: pikepdf.Pdf) -> bytes:
    """The file."""
    output = io.BytesIO()
    pdf.save(output, **_SAVE)
    return output.getvalue()


def _drop_signatures(pdf: pikepdf.Pdf) -> int:
    """Take the signed fields out and leave what they show on the page; returns how many there were."""
    signed = signature_fields.count(pdf)
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
    above: pikepdf.Object | None = node
    for _ in range(32):
        if not isinstance(above, Dictionary):
            return
        yield above
        above = above.get("/Parent")


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
