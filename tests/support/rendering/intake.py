"""Material for the tests of intake: what was prepared, opened and read; actions that a file may hold."""

import io
from collections.abc import Callable
from typing import Any

import pikepdf
import pypdfium2 as pdfium
from pikepdf import Dictionary, Name, String

from services.rendering.jobs.intake.preparing import Prepared, prepare
from tests.support.files import pdf_files

RAW: dict[str, Any] = {"compress_streams": False, "stream_decode_level": pikepdf.StreamDecodeLevel.none}


def take(data: bytes, **options: Any) -> Prepared:
    return prepare(data, name="contract", **options)


def codes(prepared: Prepared) -> list[str]:
    return [notice.code for notice in prepared.report]


def opened(prepared: Prepared) -> pikepdf.Pdf:
    return pikepdf.open(io.BytesIO(prepared.file))


def texts(data: bytes) -> list[str]:
    found = []
    with pdfium.PdfDocument(data) as document:
        for page in document:
            text = page.get_textpage()
            found.append(text.get_text_range())
            text.close()
            page.close()
    return found


def unpacked(data: bytes) -> bytes:
    """All objects as text."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        level = pikepdf.StreamDecodeLevel.generalized
        return pdf_files.saved(pdf, qdf=True, compress_streams=False, stream_decode_level=level)


def changed(data: bytes, change: Callable[[pikepdf.Pdf], object]) -> bytes:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        change(pdf)
        return pdf_files.saved(pdf, **RAW)


def action(kind: str, **entries: Any) -> Dictionary:
    return Dictionary(S=Name(f"/{kind}"), **entries)


def script() -> Dictionary:
    return action("JavaScript", JS=String("app.alert(1)"))
