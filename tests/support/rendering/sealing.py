"""Whole seal requests with their files in a store, and what other people's tools say about the result."""

import io
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pikepdf

from contracts.blobs import BlobRef
from contracts.evidence.audit_chain import START, next_hash
from contracts.rpc.rendering import FieldValue, FilledAttachment, PartySummary, SealRequest, TrailEvent
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.stored_documents import StoredDocument
from contracts.types import Account, PageSize
from tests.support.files.pdf_files import A4, document, line
from tests.support.rendering.drawing import area, field_value, signature_png

BEGAN = datetime(2026, 11, 20, 9, 14, 3, tzinfo=UTC)
EVENTS: tuple[tuple[int | None, str, dict[str, Any]], ...] = (
    (None, "create_submission", {"by": "paula@example.com"}),
    (1, "send_email", {"email": "ana@example.com"}),
    (1, "view_form", {"ip": "203.0.113.7"}),
    (1, "complete_form", {"ip": "203.0.113.7"}),
    (2, "api_complete_form", {"by": "paula@example.com"}),
)


def trail(events: Sequence[tuple[int | None, str, dict[str, Any]]] = EVENTS) -> list[TrailEvent]:
    lines, head = [], START
    for number, (submitter, kind, data) in enumerate(events):
        at = BEGAN + timedelta(minutes=7 * number)
        head = next_hash(head, submitter_id=submitter, event_type=kind, occurred_at=at, data=data)
        lines.append(TrailEvent(submitter_id=submitter, event_type=kind, occurred_at=at, data=data, hash=head))
    return lines


def contract_pdf(pages: int = 2) -> bytes:
    return document(*(line(f"Agreement, page {number}") for number in range(1, pages + 1)), media=A4)


def stored(blobs: BlobStore, data: bytes, name: str, uuid: str, *, signed: bool = False) -> StoredDocument:
    """A document whose normalised file is what was uploaded."""
    file = blobs.put(data, "application/pdf", "templates/")
    with pikepdf.open(io.BytesIO(data)) as pdf:
        sizes = [PageSize(width=float(page.mediabox[2]), height=float(page.mediabox[3])) for page in pdf.pages]
    return StoredDocument(uuid=uuid, name=name, file=file, original=file, pages=sizes, signed=signed)


def attachment(
    blobs: BlobStore, data: bytes, uuid: str, filename: str, media_type: str = "image/png"
) -> FilledAttachment:
    file: BlobRef = blobs.put(data, media_type, "submissions/7/")
    return FilledAttachment(uuid=uuid, filename=filename, file=file, created_at=BEGAN)


def seal_request(blobs: BlobStore, *files: bytes, **more: Any) -> SealRequest:
    """Two parties, a text, a date, a check box and a signature on the first document's pages."""
    names = ("Consulting agreement", "Annex A")
    documents = [
        stored(blobs, data, names[number % 2], f"d{number}") for number, data in enumerate(files or [contract_pdf()])
    ]
    first: dict[str, Any] = {"attachment_uuid": documents[0].uuid}
    last = len(documents[0].pages)
    values: list[FieldValue] = [
        field_value("text", "Ana Kowalska", area(0.1, 0.2, 0.4, 0.03, **first), name="Full name"),
        field_value("text", "Łódź 漢字 שלום", area(0.1, 0.3, 0.4, 0.03, **first), name="City"),
        field_value("date", "2026-12-01", area(0.1, 0.4, 0.2, 0.03, **first), name="Start"),
        field_value("checkbox", True, area(0.1, 0.5, 0.03, 0.02, **first), name="Terms"),
        field_value("signature", "a1", area(0.1, 0.6, 0.3, 0.06, page=last, **first), name="Signature"),
    ]
    fields: dict[str, Any] = {
        "submission_id": 7,
        "submission_slug": "k3VtR9mQzXw2Lp",
        "seal_id": "seal-1",
        "name": "Consulting agreement 2026",
        "account": Account(name="Meier & Partner", time_zone="Europe/Berlin", locale="en-GB"),
        "documents": documents,
        "values": values,
        "attachments": [attachment(blobs, signature_png(), "a1", "signature.png")],
        "parties": [
            PartySummary(
                id=1,
                role="Client",
                name="Ana Kowalska",
                email="ana@example.com",
                status="completed",
                ip="203.0.113.7",
                user_agent="Mozilla/5.0 (X11; Linux x86_64)",
                time_zone="Europe/Warsaw",
                completed_at=BEGAN + timedelta(minutes=21),
            ),
            PartySummary(
                id=2,
                role="Witness",
                email="witness@example.com",
                status="completed",
                completed_by_api="paula@example.com",
                completed_at=BEGAN + timedelta(minutes=28),
            ),
        ],
        "trail": trail(),
        "created_at": BEGAN,
        "completed_at": BEGAN + timedelta(minutes=28),
        "base_url": "https://sign.example.com",
    }
    return SealRequest(**{**fields, **more})


def pdfsig(data: bytes, folder: Path) -> str:
    """What poppler says about the signatures."""
    path = folder / "looked-at.pdf"
    path.write_bytes(data)
    return subprocess.run(["pdfsig", path], capture_output=True, text=True, check=False).stdout


def pdf_text(data: bytes, folder: Path) -> str:
    """What poppler reads on the pages."""
    path = folder / "read.pdf"
    path.write_bytes(data)
    return subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, text=True, check=True).stdout


def assert_clean(data: bytes, folder: Path) -> None:
    """qpdf finds nothing to complain about."""
    path = folder / "checked.pdf"
    path.write_bytes(data)
    done = subprocess.run(["qpdf", "--check", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr


def assert_sealed(data: bytes, folder: Path, *, others: int = 0, shown: int = 1) -> None:
    """poppler calls every signature valid, ours covers the whole file, and qpdf finds nothing wrong. Beside ours there are those
    of ``others``; pdfsig tells ours as often as it is ``shown``."""
    said = pdfsig(data, folder)
    assert said.count("Signature Validation: Signature is Valid.") == others + shown, said
    assert said.count("- Total document signed") == shown, said
    assert "ETSI.CAdES.detached" in said
    assert_clean(data, folder)
