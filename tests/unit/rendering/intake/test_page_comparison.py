"""Pages that would not look as they were sent are reported with the place, or refused."""

import io
from collections.abc import Callable
from typing import Any

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name

from contracts.types import Area
from services.rendering.jobs.drawing.flatten import flatten
from services.rendering.jobs.intake import preparing
from services.rendering.jobs.intake.page_comparison import LeftOut, compare_pages
from services.rendering.jobs.intake.page_sources import page_sources
from services.rendering.jobs.pdf.refused import Refused
from tests.support.files import pdf_files
from tests.support.rendering.intake import changed, codes, take

WORDS = "\n".join(
    f"BT /F1 11 Tf 72 {720 - 14 * line} Td (Clause {line}: what is said here counts.) Tj ET" for line in range(40)
)
PAGE = pdf_files.document(WORDS)


def with_content(more: str) -> bytes:
    return pdf_files.document(f"{WORDS}\n{more}")


def reported(before: bytes, after: bytes, left_out: LeftOut | None = None) -> list[str]:
    return [notice.message for notice in compare_pages(before, after, [1], left_out or LeftOut())]


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ("0.5 w 72 500 m 200 500 l S", (72, 200, 291, 293)),
        ("1 0.9 0.9 rg 300 300 40 12 re f", (300, 340, 480, 492)),
        ("BT /F1 8 Tf 500 60 Td (not) Tj ET", (500, 511, 726, 732)),
        ("0 0 0 rg 400 400 3 3 re f", (400, 403, 389, 392)),
    ],
)
def test_little_things_are_seen_with_their_place(more: str, place: tuple[int, ...]) -> None:
    for one, other in ((PAGE, with_content(more)), (with_content(more), PAGE)):
        [message] = reported(one, other)
        words = message.replace(",", " ").split()
        assert [int(word) for word in words if word.isdigit()] == pytest.approx(place, abs=2)


def test_the_same_page_and_the_edges_of_letters_are_no_difference() -> None:
    assert reported(PAGE, PAGE) == []
    assert reported(PAGE, PAGE.replace(b"72 720 Td", b"72.1 720 Td")) == []


def test_fields_are_left_out_and_what_is_drawn_anew_must_be_there() -> None:
    line = with_content("0.5 w 72 100 m 200 100 l S")
    here, elsewhere = (Area(x=0.1, y=y, w=0.4, h=0.04, page=1) for y in (0.86, 0.1))
    assert reported(line, PAGE, LeftOut(free=[here])) == []
    assert len(reported(line, PAGE, LeftOut(free=[elsewhere]))) == 1
    assert len(reported(line, PAGE, LeftOut(redrawn=[here]))) == 1
    assert reported(line, with_content("0.9 w 74 101 m 190 102 l S"), LeftOut(redrawn=[here])) == []


@pytest.mark.parametrize("content", [b"0 0 1 rg 0 0 200 30 re f", None], ids=["its own appearance", "a reader"])
def test_a_form_field_that_is_lost_is_seen(content: bytes | None) -> None:
    """Whatever shows it: its own appearance, or a reader that draws its value."""
    here = LeftOut(redrawn=[Area(x=0.1, y=0.17, w=0.5, h=0.08, page=1)])
    field = pdf_files.field("Tx", "name", V=pikepdf.String("Ana"), DA=pikepdf.String("/Helv 12 Tf 0 g"))
    sent = pdf_files.with_form(field, media=(0, 0, 612, 792))
    if content:
        sent = changed(sent, lambda pdf: pdf.Root.AcroForm.Fields[0].__setitem__("/AP", appearance(pdf, content)))
    assert len(reported(sent, pdf_files.document("", media=(0, 0, 612, 792)), here)) == 1
    assert reported(sent, changed(sent, flatten), here) == []


def appearance(pdf: pikepdf.Pdf, content: bytes) -> Dictionary:
    form = pdf.make_stream(content, Type=Name.XObject, Subtype=Name.Form, BBox=Array([0, 0, 200, 30]))
    return Dictionary(N=form)


def test_another_page_is_refused_by_its_number() -> None:
    with pytest.raises(Refused, match="Page 1 of the PDF would not look as it was sent"):
        compare_pages(PAGE, with_content("0 0 0 rg 0 0 612 400 re f"), [1], LeftOut())
    with pytest.raises(Refused, match="Page 1 "):
        compare_pages(PAGE, pdf_files.document(WORDS, media=(0, 0, 500, 700)), [1], LeftOut())
    with pytest.raises(Refused, match="Page 1 "):  # as it was, with more paper beside it
        compare_pages(PAGE, pdf_files.document(WORDS, media=(0, 0, 700, 792)), [1], LeftOut())


def test_a_page_that_intake_spoils_is_reported_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the mistake is: here each page loses what it draws with."""

    def spoiled(change: Callable[[pikepdf.Page], None]) -> Callable[..., Any]:
        def normalise(pdf: pikepdf.Pdf, *_: Any) -> None:
            for page in pdf.pages:
                change(page)

        return normalise

    with pikepdf.open(io.BytesIO(PAGE)) as pdf:
        form = pdf.make_stream(b"0.5 w 72 60 m 300 60 l S", Type=Name.XObject, Subtype=Name.Form)
        form.BBox = Array([0, 0, 612, 792])
        pdf.pages[0].obj.Resources.XObject.Rule = form
        pdf.pages[0].contents_add(b"/Rule Do")
        rule = pdf_files.saved(pdf)
    monkeypatch.setattr(preparing, "_normalise", spoiled(lambda page: page.obj.Resources.__delitem__("/XObject")))
    prepared = take(rule)
    assert [(notice.code, notice.page) for notice in prepared.report] == [("look_changed", 1)]
    black = "0 0 0 rg 0 0 612 200 re f"
    monkeypatch.setattr(preparing, "_normalise", spoiled(lambda page: page.contents_add(black.encode())))
    with pytest.raises(Refused, match="Page 1 of the PDF would not look"):
        take(PAGE)


def test_a_layer_that_is_hidden_stays_hidden() -> None:
    def add_layer(pdf: pikepdf.Pdf) -> None:
        layer = pdf.make_indirect(Dictionary(Type=Name.OCG, Name=pikepdf.String("Draft")))
        pdf.Root.OCProperties = Dictionary(OCGs=Array([layer]), D=Dictionary(OFF=Array([layer]), AS=Array([])))
        page = pdf.pages[0].obj
        page.Resources.Properties = Dictionary(Layer=layer)
        page.Contents = pdf.make_stream(b"/OC /Layer BDC 0 0 0 rg 72 72 300 300 re f EMC")

    assert codes(take(changed(PAGE, add_layer))) == []


def test_only_pages_that_may_have_changed_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def compare(_before: Any, _after: Any, pages: list[int], *_: Any, **__: Any) -> list[Any]:
        drawn.extend(pages)
        return []

    monkeypatch.setattr(preparing, "compare_pages", compare)
    several = pdf_files.document(WORDS, "BT /F1 12 Tf 72 700 Td ({{Name}}) Tj ET", WORDS)
    take(several)
    assert drawn == [2]
    drawn.clear()
    take(changed(several, lambda pdf: pdf.pages[2].obj.__setitem__("/Annots", Array([note(pdf)]))))
    assert drawn == [2, 3]


def note(pdf: pikepdf.Pdf) -> pikepdf.Object:
    return pdf.make_indirect(Dictionary(Type=Name.Annot, Subtype=Name.Popup, Rect=Array([10, 10, 20, 20])))


@pytest.mark.parametrize(
    "change",
    [
        lambda pdf: pdf.pages[0].Contents.write(b"q Q"),
        lambda pdf: pdf.pages[0].Resources.Font.F1.__setitem__("/BaseFont", Name.Courier),
        lambda pdf: pdf.pages[0].Resources.__setitem__("/ExtGState", Dictionary(A=Dictionary(BM=Name.Screen))),
        lambda pdf: pdf.pages[0].obj.__setitem__("/Rotate", 90),
        lambda pdf: pdf.Root.__setitem__("/OCProperties", Dictionary(OCGs=Array([]), D=Dictionary())),
    ],
)
def test_all_that_a_page_is_drawn_from_counts(change: Callable[[pikepdf.Pdf], None]) -> None:
    with pikepdf.open(io.BytesIO(PAGE)) as pdf:
        before = page_sources(pdf)
        assert page_sources(pdf) == before
        pdf.docinfo["/Title"] = "Another"
        assert page_sources(pdf) == before
        change(pdf)
        assert page_sources(pdf) != before
