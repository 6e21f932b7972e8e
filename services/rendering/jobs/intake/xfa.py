"""XFA: the other description of a form, in XML, that only Adobe's software knows. It is dropped; the ordinary form stays.

A dynamic XFA form has no pages but one that asks to wait or to get another reader: signing that would be signing nothing.
"""

import re
from typing import Any

import pikepdf

from contracts.types import Notice
from services.rendering.jobs.forms.fields import has_fields
from services.rendering.jobs.pdf.pdfium_text import open_document, open_page_text
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pdf.values import is_true, items_of

DYNAMIC_XFA = (
    "The PDF is a dynamic XFA form: its pages are only made when Adobe's software opens it. Print it to a PDF first."
)
_DYNAMIC = re.compile(rb"<dynamicRender\b[^>]*>\s*required\b")
_PLEASE_WAIT = re.compile(r"please\s+wait", re.IGNORECASE)


def drop_xfa(pdf: pikepdf.Pdf, data: bytes, *, document: str) -> list[Notice]:
    """Removes the XFA description of a form from ``pdf``, which is the file ``data``. Raises Refused for a dynamic form."""
    form = pdf.Root.get("/AcroForm")
    if not isinstance(form, pikepdf.Dictionary) or "/XFA" not in form:
        return []
    if is_dynamic(pdf, data):
        raise Refused(DYNAMIC_XFA)
    del form["/XFA"]
    if "/NeedsRendering" in pdf.Root:
        del pdf.Root["/NeedsRendering"]
    message = "The XFA part of the form was removed; its ordinary (AcroForm) fields were kept."
    return [Notice(code="xfa_removed", message=message, document=document)]


def is_dynamic(pdf: pikepdf.Pdf, data: bytes) -> bool:
    """Return whether the pages of an XFA form are still to be made. One whose fields are on its pages is not, whatever it
    says."""
    if has_fields(pdf):
        return False
    if is_true(pdf.Root.get("/NeedsRendering")):
        return True
    return any(_DYNAMIC.search(packet) for packet in _packets(pdf.Root.AcroForm.XFA)) or _asks_to_wait(data)


def _packets(xfa: Any) -> list[bytes]:
    """One stream, or pairs of a name and a stream (ISO 32000-1, 12.7.8)."""
    streams = [xfa, *items_of(xfa)]
    return [stream.read_bytes() for stream in streams if isinstance(stream, pikepdf.Stream)]


def _asks_to_wait(data: bytes) -> bool:
    with open_document(data) as opened:
        if len(opened) != 1:
            return False
        with open_page_text(opened, 0) as text:
            return _PLEASE_WAIT.search(text.text) is not None
