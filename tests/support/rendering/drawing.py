"""Documents, fields and requests for tests of drawing, and what can be read back from a page."""

import ctypes
import io
import subprocess
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pikepdf
import pypdfium2
import pypdfium2.raw as raw
from PIL import Image, ImageDraw

from contracts.blobs import BlobRef
from contracts.rpc.rendering import FieldValue, FilledAttachment, FillRequest, PartySummary, SignatureNote
from contracts.stored_documents import StoredDocument
from contracts.types import Account, Area, FieldDefinition, FieldType, PageSize

DOCUMENT = "d0000000-0000-4000-8000-000000000001"
LETTER = (612.0, 792.0)
WHEN = datetime(2026, 11, 21, 13, 5, 7, tzinfo=UTC)


def blob(name: str = "file.pdf") -> BlobRef:
    return BlobRef(key=f"test/{name}", sha256="0" * 64, size=1, media_type="application/pdf")


def blank_pdf(pages: int = 1, size: tuple[float, float] = LETTER, content: bytes = b"") -> pikepdf.Pdf:
    pdf = pikepdf.new()
    for _ in range(pages):
        page = pdf.add_blank_page(page_size=size)
        if content:
            page.obj.Contents = pdf.make_stream(content)
    return pdf


def stored(pages: list[tuple[float, float]] | None = None, *, document: str = DOCUMENT) -> StoredDocument:
    sizes = [PageSize(width=width, height=height) for width, height in pages or [LETTER]]
    return StoredDocument(uuid=document, name="contract", file=blob(), original=blob(), pages=sizes)


def area(x: float, y: float, w: float, h: float, *, page: int = 1, **more: Any) -> Area:
    return Area(x=x, y=y, w=w, h=h, page=page, **{"attachment_uuid": DOCUMENT, **more})


def field_value(
    type_: str, value: Any, *areas: Area, submitter: int = 1, name: str = "", **definition: Any
) -> FieldValue:
    definition.setdefault("uuid", str(uuid.uuid4()))
    return FieldValue(
        field=FieldDefinition(
            submitter_uuid="s1",
            role="First Party",
            name=name or f"A {type_} field",
            type=FieldType(type_),
            areas=list(areas) or [area(0.1, 0.1, 0.4, 0.03)],
            **definition,
        ),
        value=value,
        submitter_id=submitter,
    )


def attachment(uuid_: str, filename: str = "signature.png") -> FilledAttachment:
    return FilledAttachment(uuid=uuid_, filename=filename, file=blob(filename), created_at=WHEN)


def request(*values: FieldValue, **more: Any) -> FillRequest:
    return FillRequest(
        **{
            "submission_id": 7,
            "submission_slug": "k3VtR9mQzXw2Lp",
            "name": "Contract",
            "account": Account(time_zone="Europe/Vienna"),
            "documents": [stored()],
            "values": list(values),
            "parties": [party()],
            "base_url": "https://sign.example.com",
            **more,
        }
    )


def party(id_: int = 1, **more: Any) -> PartySummary:
    return PartySummary(
        **{
            "id": id_,
            "role": "First Party",
            "name": "Ana Kowalska",
            "email": "ana@example.com",
            "status": "completed",
            "completed_at": WHEN,
            **more,
        }
    )


def note(item: FieldValue, reason: str) -> SignatureNote:
    return SignatureNote(field_uuid=item.field.uuid, reason=reason)


def signature_png(size: tuple[int, int] = (600, 200)) -> bytes:
    """Strokes on a transparent ground."""
    picture = Image.new("RGBA", size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(picture)
    width, height = size
    points = [(0.05, 0.7), (0.15, 0.2), (0.2, 0.8), (0.35, 0.3), (0.45, 0.75), (0.6, 0.35), (0.7, 0.7), (0.95, 0.4)]
    pen.line([(x * width, y * height) for x, y in points], fill=(10, 10, 40, 255), width=height // 16, joint="curve")
    return encoded(picture)


def encoded(picture: Image.Image, format_: str = "PNG") -> bytes:
    out = io.BytesIO()
    picture.save(out, format_)
    return out.getvalue()


def saved(pdf: pikepdf.Pdf) -> bytes:
    out = io.BytesIO()
    pdf.save(out)
    return out.getvalue()


def text_in(data: bytes, page: int, box: tuple[float, float, float, float]) -> str:
    """What pdfium reads within ``box`` (left, bottom, right, top in default user space); ``page`` from 1."""
    document = pypdfium2.PdfDocument(data)
    try:
        return str(document[page - 1].get_textpage().get_text_bounded(*box))
    finally:
        document.close()


def poppler_text(data: bytes, folder: Path, *options: str) -> str:
    file = folder / "read.pdf"
    file.write_bytes(data)
    command = ["pdftotext", "-enc", "UTF-8", *options, str(file), "-"]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode()


def picture_of(data: bytes, page: int = 1, scale: float = 1.0) -> Image.Image:
    """The page as pdfium shows it, with its form fields; with ``scale`` 1 a pixel is a point."""
    document = pypdfium2.PdfDocument(data)
    document.init_forms()
    if document.formenv:
        pypdfium2.raw.FPDF_SetFormFieldHighlightAlpha(document.formenv, 0)
    try:
        picture: Image.Image = document[page - 1].render(scale=scale).to_pil().convert("RGB")
        return picture
    finally:
        document.close()


@dataclass(frozen=True)
class Drawn:
    """A text on paper: font (without the prefix of a subset), size and colour of its first character, and its box in points."""

    text: str
    font: str
    size: float
    color: tuple[int, int, int]
    left: float
    right: float
    top: float


def drawn_in(data: bytes, area: dict[str, Any]) -> Drawn:
    """The text in an area of the API, of a page that is upright."""
    document = pypdfium2.PdfDocument(data)
    try:
        page = document[area["page"] - 1]
        width, height = page.get_size()
        left, top = area["x"] * width, height - area["y"] * height
        right, bottom = left + area["w"] * width, top - area["h"] * height
        text = page.get_textpage()
        boxes = {number: text.get_charbox(number) for number in range(text.count_chars())}
        inside = [
            number
            for number, (x, y, _, _) in boxes.items()
            if left <= x <= right and bottom <= y <= top and text.get_text_range(number, 1).strip()
        ]
        first = inside[0]
        red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
        raw.FPDFText_GetFillColor(text, first, red, green, blue, alpha)
        name = ctypes.create_string_buffer(200)
        raw.FPDFText_GetFontInfo(text, first, name, 200, ctypes.c_int())
        return Drawn(
            text=text.get_text_bounded(left, bottom, right, top).strip(),
            font=name.value.decode().partition("+")[2] or name.value.decode(),
            size=raw.FPDFText_GetFontSize(text, first),
            color=(red.value, green.value, blue.value),
            left=boxes[first][0],
            right=boxes[inside[-1]][2],
            top=max(boxes[number][3] for number in inside),
        )
    finally:
        document.close()
