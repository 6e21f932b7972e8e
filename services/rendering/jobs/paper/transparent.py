"""Drawings on transparent paper: canvases as the pages of a PDF, and those as pictures that are laid over others."""

import io
from typing import NamedTuple

import pikepdf
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw
from pikepdf import Array, Dictionary, Name
from PIL import Image

from services.rendering.jobs.paper.canvas import Canvas


class Window(NamedTuple):
    """A part of a picture of ``width`` x ``height`` pixels of the whole page."""

    left: int
    top: int
    right: int
    bottom: int
    width: int
    height: int


def append_sheet(pdf: pikepdf.Pdf, canvas: Canvas) -> None:
    """One more page that shows the canvas, whose default user space is upright points."""
    page = Dictionary(
        Type=Name.Page,
        MediaBox=Array([0, 0, round(canvas.page.width, 3), round(canvas.page.height, 3)]),
        Resources=Dictionary(XObject=Dictionary(Values=canvas.form(pdf))),
        Contents=pdf.make_stream(b"/Values Do"),
    )
    pdf.pages.append(pikepdf.Page(pdf.make_indirect(page)))


def saved(pdf: pikepdf.Pdf) -> bytes:
    """With at least one page, so that pdfium reads it."""
    if not pdf.pages:
        pdf.add_blank_page()
    buffer = io.BytesIO()
    pdf.save(buffer, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    return buffer.getvalue()


def rendered(page: pdfium.PdfPage, window: Window) -> Image.Image:
    """RGBA. As pdfium draws the whole page, but for what is outside the window."""
    across, down = max(window.right - window.left, 1), max(window.bottom - window.top, 1)
    bitmap = pdfium.PdfBitmap.new_native(across, down, pdfium_raw.FPDFBitmap_BGRA, rev_byteorder=True)
    place = (-window.left, -window.top, window.width, window.height, 0)
    pdfium_raw.FPDF_RenderPageBitmap(bitmap, page, *place, pdfium_raw.FPDF_REVERSE_BYTE_ORDER)
    picture: Image.Image = bitmap.to_pil()
    return picture
