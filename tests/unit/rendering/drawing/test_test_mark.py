"""The mark of test mode: on every page, whatever its size and turn, read by poppler, and hiding no field."""

from pathlib import Path
from typing import Any

import pikepdf
import pytest

from contracts.fields.paper import document_id
from contracts.fields.paper import mark_of_test as mark_of
from contracts.languages.choosing import languages
from contracts.types import Account
from services.rendering.jobs.drawing.fill import fill_into
from services.rendering.jobs.pdf.geometry import visible_page
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

MARK = "TEST – no legal effect"
RED = (217, 23, 23)


def filled(pdf: pikepdf.Pdf, *items: Any, test: bool = True, **more: Any) -> bytes:
    sizes = [(page.width, page.height) for page in map(visible_page, pdf.pages)]
    document = stored(sizes)
    fill_into(pdf, document, request(*items, documents=[document], test=test, mark=MARK if test else "", **more), {})
    return saved(pdf)


def test_every_page_says_it_at_its_head_and_its_foot(tmp_path: Path) -> None:
    data = filled(blank_pdf(3), field_value("text", "Ana", area(0.1, 0.1, 0.3, 0.05, page=2)))
    pages = [page for page in poppler_text(data, tmp_path).split("\f") if page.strip()]
    assert [page.count(MARK) for page in pages] == [2, 2, 2]
    assert MARK not in poppler_text(filled(blank_pdf(), test=False), tmp_path)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_it_is_at_the_edges_that_the_reader_sees(rotation: int, tmp_path: Path) -> None:
    pdf = golden_fields.page(rotation, crop=True)
    data = filled(pdf)
    seen = picture_of(data).convert("RGB")
    reds = [(x, y) for x in range(seen.width) for y in range(seen.height) if _is_red(seen.getpixel((x, y)))]
    assert reds
    inner = min(seen.width, seen.height) // 20
    assert all(x <= inner or y <= inner or x >= seen.width - inner or y >= seen.height - inner for x, y in reds), (
        "what is on the page stays as it is"
    )
    for edge in ((1, seen.height // 2), (seen.width - 2, seen.height // 2)):
        assert _is_red(seen.getpixel(edge)), "there is a frame"


def _is_red(pixel: Any) -> bool:
    return bool(pixel[0] > 150 and pixel[1] < 110 and pixel[2] < 110)


@pytest.mark.parametrize("size", [(170, 300), (70, 100), (3000, 5000)])
def test_small_and_large_pages(size: tuple[float, float], tmp_path: Path) -> None:
    assert " ".join(poppler_text(filled(blank_pdf(size=size)), tmp_path).split()).count(MARK) == 2


def test_it_stands_beside_the_document_id(tmp_path: Path) -> None:
    data = filled(blank_pdf(), account=Account(with_signature_id=True))
    text = poppler_text(data, tmp_path)
    assert text.count(MARK) == 2
    assert document_id("k3VtR9mQzXw2Lp") in text
    corner = picture_of(data, scale=2).convert("RGB").crop((12, 2 * 792 - 26, 440, 2 * 792 - 6))
    places = [(x, y) for x in range(corner.width) for y in range(corner.height)]
    assert not any(_is_red(corner.getpixel(place)) for place in places), "neither lies over the other"


def test_a_value_at_the_very_edge_stays_in_front(tmp_path: Path) -> None:
    value = field_value("text", "Front", area(0.3, 0, 0.4, 0.02), preferences={"background": "#00ff00"})
    data = filled(blank_pdf(), value)
    assert "Front" in poppler_text(data, tmp_path)
    assert picture_of(data).convert("RGB").getpixel((400, 8)) == (0, 255, 0)
    assert MARK in poppler_text(data, tmp_path), "and the foot says it all the same"


def test_it_is_said_in_the_language_of_the_account() -> None:
    said = {mark_of(Account(locale=tag)) for tag in languages()}
    assert len(said) == len(languages()), "each has its own"
    assert mark_of(Account(locale="de-AT")) == "TEST – ohne Rechtswirkung"
