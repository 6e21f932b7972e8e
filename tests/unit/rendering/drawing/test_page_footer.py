"""The Document ID at the foot of every page: where it is, that it covers no value, and that pictures of pages show the same."""

import hashlib
import io
from pathlib import Path
from typing import Any

import pikepdf
import pypdfium2
import pytest
from PIL import Image, ImageChops

from contracts.fields.paper import document_id, page_footer
from contracts.rpc.rendering import PageFooter
from contracts.types import Account
from services.rendering.jobs.drawing.fill import fill_into
from services.rendering.jobs.pdf.geometry import Rectangle, visible_page
from services.rendering.jobs.previews.pages import draw_page
from services.rendering.jobs.sealing.verifying.reading import text_in
from tests.support.judges.documents.pixels import compared
from tests.support.rendering import golden_fields
from tests.support.rendering.drawing import (
    area,
    blank_pdf,
    field_value,
    picture_of,
    poppler_text,
    request,
    saved,
    stored,
)

WITH_IDS = Account(with_signature_id=True)
SLUG = "k3VtR9mQzXw2Lp"
LINE = "Document ID: " + hashlib.md5(SLUG.encode(), usedforsecurity=False).hexdigest().upper()
KINDS = [
    (rotation, crop, unit) for rotation in (0, 90, 180, 270) for crop, unit in ((False, 1.0), (True, 1.0), (True, 2.5))
]


def filled(pdf: pikepdf.Pdf, *items: Any, account: Account = WITH_IDS) -> bytes:
    sizes = [(page.width, page.height) for page in map(visible_page, pdf.pages)]
    document = stored(sizes)
    fill_into(pdf, document, request(*items, account=account, documents=[document]), {})
    return saved(pdf)


@pytest.mark.parametrize(("rotation", "crop", "unit"), KINDS)
def test_it_stands_in_the_corner_that_the_reader_sees(rotation: int, crop: Any, unit: Any) -> None:
    pdf = golden_fields.page(rotation, crop, unit)
    seen = visible_page(pdf.pages[0])
    data = filled(pdf)
    size = max(9 * min(seen.width, seen.height) // 595, 4)
    corner = seen.to_default_space(Rectangle(0, 0, 30 * size, 2.2 * size))
    with pypdfium2.PdfDocument(data) as document:
        words = text_in(document[0].get_textpage(), corner, 0.5)
    assert "".join(words.split()) == LINE.replace(" ", "")
    ink = ImageChops.invert(picture_of(data, scale=unit).convert("L")).point(lambda value: 255 * (value > 128))
    below = ink.crop((0, round(seen.height - 2 * size), ink.width, ink.height)).getbbox()
    assert below is not None
    assert below[0] == pytest.approx(size, abs=2), "as far from the edge as it is high"
    assert size < below[2] < 0.75 * seen.width
    footer = PageFooter(text=LINE, width=seen.width, height=seen.height)
    picture = Image.open(io.BytesIO(draw_page(saved(golden_fields.page(rotation, crop, unit)), 1, 1400, (), footer)))
    sealed = Image.open(io.BytesIO(draw_page(data, 1, 1400)))
    assert compared(picture, sealed).share < 0.001


def test_every_page_and_the_files_own_particulars_have_it(tmp_path: Path) -> None:
    pdf = blank_pdf(3)
    pdf.docinfo["/Title"] = "Lease"
    data = filled(pdf, field_value("text", "Ana", area(0.1, 0.1, 0.3, 0.05, page=2)))
    assert poppler_text(data, tmp_path).count(LINE) == 3
    with pikepdf.open(io.BytesIO(data)) as read:
        assert str(read.docinfo["/DocumentID"]) == document_id(SLUG) == LINE.split()[-1]
        assert str(read.docinfo["/Title"]) == "Lease"


def test_only_accounts_that_want_ids_get_them(tmp_path: Path) -> None:
    pdf = blank_pdf()
    data = filled(pdf, account=Account())
    assert "Document ID" not in poppler_text(data, tmp_path)
    assert "/DocumentID" not in pdf.docinfo
    assert (page_footer(Account(), SLUG), page_footer(WITH_IDS, SLUG)) == ("", LINE)


def test_what_the_document_has_there_does_not_shine_through_and_a_value_stays_in_front(tmp_path: Path) -> None:
    dark = b"0.2 g 0 0 612 30 re f"
    plain = picture_of(filled(blank_pdf(content=dark)), scale=2)
    words = plain.crop((18, 2 * (792 - 14), 400, 2 * (792 - 6))).convert("L")
    assert words.getextrema()[1] == 255
    value = field_value("text", "Front", area(0, 0.97, 0.5, 0.03), preferences={"background": "#ff0000"})
    data = filled(blank_pdf(), value)
    red = picture_of(data, scale=2).crop((0, 2 * 792 - 40, 600, 2 * 792 - 4)).convert("RGB")
    assert red.getpixel((2, 2)) == (255, 0, 0)
    assert "Front" in poppler_text(data, tmp_path)


@pytest.mark.parametrize(
    ("size", "there"), [((170, 300), True), ((60, 60), False), ((3, 3), False), ((3000, 5000), True)]
)
def test_small_and_large_pages(size: tuple[float, float], there: bool, tmp_path: Path) -> None:
    data = filled(blank_pdf(size=size))
    assert (LINE in " ".join(poppler_text(data, tmp_path).split())) is there
    footer = PageFooter(text=LINE, width=size[0], height=size[1])
    assert draw_page(saved(blank_pdf(size=size)), 1, 700, (), footer)
