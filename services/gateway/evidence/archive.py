"""The ZIP of a submission's evidence: which files are in it, and its bytes, piece by piece.

Nothing in it is compressed, and it says nothing of the time at which it was asked for: whoever asks twice gets the same bytes.
The files come from the store a piece at a time, twice: first for their checksums, which stand before them in a ZIP.
"""

import base64
import hashlib
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from contracts.blobs import DOCX, BlobRef
from contracts.errors import ServiceError
from contracts.evidence.manifest import Document, Events, EvidenceParty, Manifest, Member
from contracts.rpc.rendering import SignedEvidence
from contracts.rpc.submissions.api import Evidence, EvidenceDocument
from contracts.runtime.data.files.blobstore import BlobDamaged, BlobStore
from services.gateway.evidence import verify

EVENTS = "events.jsonl"
TRAIL = "sealed/audit-trail.pdf"
LARGEST = 2**32 - 2**20
"""Bytes: where an ordinary ZIP ends, with room for its directory."""

_FOLDER = Path(__file__).parent
_OWN = {name: (_FOLDER / name).read_bytes() for name in ("README.txt", "verify.py")}
_LONGEST_NAME = 60


@dataclass(frozen=True)
class Entry:
    """A file of the ZIP: ``chunks`` gives its bytes from the start, each time."""

    path: str
    size: int
    sha256: str
    chunks: Callable[[], Iterable[bytes]]


def of_bytes(path: str, data: bytes) -> Entry:
    """An entry of what is in memory."""
    return Entry(path, len(data), hashlib.sha256(data).hexdigest(), lambda: [data])


def of_blob(path: str, blob: BlobRef, blobs: BlobStore) -> Entry:
    """An entry of what is in the store."""
    return Entry(path, blob.size, blob.sha256, lambda: blobs.stream(blob.key))


def members(evidence: Evidence, lines: Iterable[str], blobs: BlobStore) -> tuple[list[Entry], Manifest]:
    """The files that are there before the manifest is signed, and what it says of them. ``lines`` are all of the trail."""
    events = of_bytes(EVENTS, "".join(f"{line}\n" for line in lines).encode())
    entries = {entry.path: entry for entry in (events, *(of_bytes(name, data) for name, data in _OWN.items()))}
    documents = []
    for number, document in enumerate(evidence.documents, 1):
        places = _places(number, document)
        documents.append(Document(uuid=document.uuid, name=document.name, **places))
        for path, blob in zip(places.values(), (document.original, document.shown, document.sealed), strict=True):
            entries[path] = of_blob(path, blob, blobs)
    entries[TRAIL] = of_blob(TRAIL, evidence.audit_trail, blobs)
    manifest = Manifest(
        submission=evidence.id,
        sealed_at=evidence.sealed_at,
        events=Events(path=EVENTS, lines=evidence.line_count, head=evidence.head),
        audit_trail=TRAIL,
        documents=documents,
        parties=[EvidenceParty(submitter=submitter) for submitter in evidence.completed],
        members={path: Member(sha256=entry.sha256, size=entry.size) for path, entry in entries.items()},
    )
    return [*entries.values()], manifest


def signed_members(signed: SignedEvidence, blobs: BlobStore) -> list[Entry]:
    """The files that came with the signature, the manifest among them."""
    inline = [of_bytes(path, base64.b64decode(data)) for path, data in signed.made.items()]
    stored = [of_blob(path, blob, blobs) for path, blob in signed.stored.items()]
    manifest = of_bytes(verify.MANIFEST, signed.manifest.encode())
    return [*inline, *stored, manifest, of_bytes(verify.SIGNATURE, base64.b64decode(signed.signature))]


@dataclass(frozen=True)
class Archive:
    """A ZIP of ``entries``, each with its CRC-32; ``size`` in bytes."""

    entries: list[tuple[Entry, int]]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "Archive":
        """Read every file once. Raises BlobMissing, BlobDamaged, ServiceError("too_large")."""
        ordered = sorted(entries, key=lambda entry: entry.path)
        if sum(entry.size for entry in ordered) > LARGEST:
            raise ServiceError("too_large", "The evidence is larger than 4 GB.")
        return cls([(entry, _checksum(entry)) for entry in ordered])

    @property
    def size(self) -> int:
        files = sum(len(verify.local_header(entry.path, 0, 0)) + entry.size for entry, _ in self.entries)
        directory = sum(len(verify.central_header(entry.path, 0, 0, 0)) for entry, _ in self.entries)
        return files + directory + len(verify.end_of_directory(0, 0, 0))

    def chunks(self) -> Iterator[bytes]:
        """The bytes of the ZIP."""
        directory, offset = [], 0
        for entry, checksum in self.entries:
            head = verify.local_header(entry.path, checksum, entry.size)
            directory.append(verify.central_header(entry.path, checksum, entry.size, offset))
            yield head
            yield from entry.chunks()
            offset += len(head) + entry.size
        listing = b"".join(directory)
        yield listing + verify.end_of_directory(len(directory), len(listing), offset)


def _checksum(entry: Entry) -> int:
    """CRC-32 of a file whose SHA-256 is as it was when it was stored."""
    crc, digest = 0, hashlib.sha256()
    for chunk in entry.chunks():
        crc = zlib.crc32(chunk, crc)
        digest.update(chunk)
    if digest.hexdigest() != entry.sha256:
        raise BlobDamaged(f"{entry.path}: SHA-256 differs from the one it was stored with")
    return crc


def _places(number: int, document: EvidenceDocument) -> dict[str, str]:
    """Return the names of the three files of a document; two of them are often the same."""
    name = f"{number:02}-{_plain(document.name)}"
    kind = _EXTENSIONS.get(document.original.media_type, "")
    original = f"originals/{name}{kind}"
    same = document.original.sha256 == document.shown.sha256
    return {"original": original, "shown": original if same else f"shown/{name}.pdf", "sealed": f"sealed/{name}.pdf"}


def _plain(name: str) -> str:
    """A document's name as a file's name that every system takes."""
    letters = unicodedata.normalize("NFKD", name.removesuffix(".pdf")).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "-", letters)[:_LONGEST_NAME].strip("-") or "document"


_EXTENSIONS = {
    "application/pdf": ".pdf",
    DOCX: ".docx",
    "text/html": ".html",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/heic": ".heic",
    "image/avif": ".avif",
    "image/gif": ".gif",
    "image/bmp": ".bmp",
    "image/tiff": ".tif",
}
