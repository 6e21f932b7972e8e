"""Whatever a page's content leaves open is closed behind it; content that is read without a parser is read as a parser would."""

import pikepdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.rendering.jobs.drawing import isolation

OPERATORS = ["q", "Q", "BT", "ET", "EMC", "/P BMC", "/Span <</MCID 0>> BDC", "/OC /q BDC", "1 0 0 1 5 5 cm", "f", "S*"]
OPERANDS = [
    "(q Q)",
    "(\\) q (\\()",
    "(a (q) b)",
    "(\\\\)",
    "<71 51>",
    "<</A <71> /Q (Q)>>",
    "[(Q) -20 (q)]TJ",
    "/q",
    "/Q#20q",
    "% q\n",
    "0q",
    "q1",
    "\xa0q",
    "q\x0bQ",
    "q\x00Q",
    "q\xa0",
    "BI /W 1 /H 1 /BPC 8 /CS /G ID q EI",
    "}",
    "[",
    "]",
    "[ 1 -2.5",
    "<",
    "(",
    ")",
    ">>",
]
JOINTS = [" ", "\n", "\r\n", "\t", "\f", ""]


@given(st.lists(st.tuples(st.sampled_from(OPERATORS + OPERANDS), st.sampled_from(JOINTS)), max_size=25))
@settings(max_examples=400, deadline=None)
def test_reading_without_a_parser_finds_what_a_parser_finds(pieces: list[tuple[str, str]]) -> None:
    pdf, page = a_page("".join(f"{piece}{joint}" for piece, joint in pieces))
    plain = isolation._plain_operators([_stream(page)])
    page.obj.Contents = pikepdf.Array([page.Contents, pdf.make_stream(f"\n{isolation._END}\n".encode())])
    if plain is not None:
        parsed = isolation._operators(page)
        assert parsed[-1] == isolation._END
        assert [one for one in parsed if one in isolation._COUNTED.values()] == plain


@pytest.mark.parametrize(
    "content",
    ["q 1 0 0 1 5 5 cm BT (a) Tj ET Q", "/Span <</MCID 0>> BDC q BT ET Q EMC", "[(a\\)) -20 (b)]TJ <41> Tj /q gs"],
)
def test_usual_content_needs_no_parser(content: str) -> None:
    _, page = a_page(content)
    assert isolation._plain_operators([_stream(page)]) is not None


@pytest.mark.parametrize(
    ("content", "before", "after"),
    [
        ("q Q", "q ", "\nQ"),
        ("Q Q f", "q q q ", "\nQ"),
        ("q BT /P BMC", "q ", "\nEMC\nET\nQ\nQ"),
        ("BI /W 1 /H 1 /BPC 8 /CS /G ID q EI Q", "q q ", "\nQ"),
        ("(Q) Tj q % Q", "q ", "\nQ\nQ"),
    ],
)
def test_what_is_open_is_closed(content: str, before: str, after: str) -> None:
    pdf, page = a_page(content)
    isolation.isolate(pdf, page)
    parts = [part.read_bytes().decode() for part in page.obj.Contents]
    assert parts == [before, content, after]


@pytest.mark.parametrize("content", ["q (never closed", "BT [ /never closed", "[(a) [-20 (b)] TJ"])
def test_content_without_an_end_is_drawn_on_its_own(content: str) -> None:
    pdf, page = a_page(content)
    isolation.isolate(pdf, page)
    assert [part.read_bytes() for part in page.obj.Contents] == [b"q /CountersignPage0 Do Q"]
    assert page.resources.XObject.CountersignPage0.read_bytes() == content.encode()


def _stream(page: pikepdf.Page) -> pikepdf.Stream:
    content = page.Contents
    assert isinstance(content, pikepdf.Stream)
    return content


def a_page(content: str) -> tuple[pikepdf.Pdf, pikepdf.Page]:
    pdf = pikepdf.new()
    pdf.add_blank_page(page_size=(200, 200))
    page = pdf.pages[0]
    page.obj.Contents = pdf.make_stream(content.encode("latin-1"))
    return pdf, page
