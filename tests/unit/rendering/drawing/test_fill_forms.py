"""What a document brought with it when values go into it: its form, its annotations."""

import io
from typing import Any

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name
from PIL import ImageChops, ImageStat
from PIL.Image import Resampling

from services.rendering.jobs.drawing.fill import fill_into
from services.rendering.jobs.sealing.verifying.reading import is_found
from tests.support.rendering.drawing import (
    DOCUMENT,
    blank_pdf,
    field_value,
    picture_of,
    request,
    saved,
    stored,
    text_in,
)
from tests.support.rendering.filling import fill


def form_pdf(*fields: Dictionary, need_appearances: bool = False) -> pikepdf.Pdf:
    pdf = blank_pdf()
    widgets = []
    for field in fields:
        field.Type, field.Subtype = Name.Annot, Name.Widget
        field["/F"] = field.get("/F", 4)
        widgets.append(pdf.make_indirect(field))
    pdf.pages[0].obj.Annots = Array(widgets)
    pdf.Root.AcroForm = Dictionary(Fields=Array(widgets), DA=pikepdf.String("/Helv 0 Tf 0 g"))
    if need_appearances:
        pdf.Root.AcroForm.NeedAppearances = True
    return pdf


def text_widget(value: str, **more: Any) -> Dictionary:
    return Dictionary(
        FT=Name.Tx, T=pikepdf.String("t"), V=pikepdf.String(value), Rect=Array([100, 600, 300, 620]), **more
    )


WIDGET = (100.0, 600.0, 300.0, 620.0)


@pytest.mark.parametrize("value", ["Ana Kowalska", "Łódź Żółć", "שלום עולם", "王小明"])
def test_a_form_value_without_appearance_does_not_vanish(value: str) -> None:
    data, _ = fill(field_value("text", "x"), pdf=form_pdf(text_widget(value)))
    assert is_found(value, text_in(data, 1, WIDGET))
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert "/AcroForm" not in pdf.Root
        assert "/Annots" not in pdf.pages[0].obj


def test_an_outdated_appearance_is_drawn_anew() -> None:
    pdf = form_pdf(text_widget("new value"), need_appearances=True)
    old = pdf.make_stream(b"BT ET")
    old.stream_dict.update(Dictionary(Type=Name.XObject, Subtype=Name.Form, BBox=Array([0, 0, 200, 20])))
    pdf.pages[0].obj.Annots[0].AP = Dictionary(N=old)
    data, _ = fill(pdf=pdf)
    assert is_found("new value", text_in(data, 1, WIDGET))


def test_choices_passwords_and_multi_line_values() -> None:
    options = Array([Array([pikepdf.String("at"), pikepdf.String("Austria")])])
    combo = Dictionary(FT=Name.Ch, Ff=1 << 17, T=pikepdf.String("c"), V=pikepdf.String("at"), Opt=options)
    combo.Rect = Array([100, 500, 300, 520])
    password = text_widget("secret", Ff=1 << 13)
    lines = text_widget("one\nand two", Ff=1 << 12)
    lines.Rect = Array([100, 300, 300, 360])
    data, _ = fill(pdf=form_pdf(combo, password, lines))
    assert is_found("Austria", text_in(data, 1, (100, 500, 300, 520)))
    assert is_found("******", text_in(data, 1, WIDGET))
    assert is_found("one and two", text_in(data, 1, (100, 300, 300, 360)))


def test_a_ticked_box_without_appearance_stays_ticked() -> None:
    def box(value: Name, bottom: int) -> Dictionary:
        return Dictionary(
            FT=Name.Btn, T=pikepdf.String("b"), V=value, AS=value, Rect=Array([100, bottom, 120, bottom + 20])
        )

    data, _ = fill(pdf=form_pdf(box(Name.Yes, 600), box(Name.Off, 500)))
    assert is_found("✔", text_in(data, 1, (100, 600, 120, 620)))
    assert text_in(data, 1, (100, 500, 120, 520)) == ""


@pytest.mark.parametrize(("caption", "mark"), [("8", "✘"), ("l", "●"), ("n", "■"), ("u", "◆"), ("H", "★"), ("4", "✔")])
def test_a_ticked_box_shows_the_mark_that_its_caption_asks_for(caption: str, mark: str) -> None:
    widget = Dictionary(FT=Name.Btn, T=pikepdf.String("b"), V=Name.Yes, AS=Name.Yes, Rect=Array([100, 600, 120, 620]))
    widget.MK = Dictionary(CA=pikepdf.String(caption))
    data, _ = fill(pdf=form_pdf(widget))
    assert text_in(data, 1, (100, 600, 120, 620)).strip() == mark


def test_a_list_shows_its_options_and_marks_what_is_chosen() -> None:
    widget = Dictionary(FT=Name.Ch, T=pikepdf.String("c"), Rect=Array([100, 540, 300, 620]), V=pikepdf.String("b"))
    widget.Opt = Array(
        [pikepdf.String("One"), Array([pikepdf.String("b"), pikepdf.String("Two")]), pikepdf.String("Three")]
    )
    widget.DA = pikepdf.String("/Helv 12 Tf 0 g")
    data, _ = fill(pdf=form_pdf(widget))
    assert text_in(data, 1, (100, 540, 300, 620)).split() == ["One", "Two", "Three"]
    picture = picture_of(data)
    lines = [picture.getpixel((290, 792 - bottom)) for bottom in (613, 599, 584)]
    assert [color == (255, 255, 255) for color in lines] == [True, False, True]


def test_the_choice_of_a_list_too_long_for_its_box_is_seen() -> None:
    widget = Dictionary(FT=Name.Ch, T=pikepdf.String("c"), Rect=Array([100, 590, 300, 620]), V=pikepdf.String("40"))
    widget.Opt, widget.DA = Array([pikepdf.String(str(one)) for one in range(50)]), pikepdf.String("/Helv 12 Tf 0 g")
    data, _ = fill(pdf=form_pdf(widget))
    assert text_in(data, 1, (100, 590, 300, 620)).split() == ["40"]


def test_the_value_of_a_field_that_no_form_knows_stays() -> None:
    pdf = form_pdf(text_widget("Bergen"))
    del pdf.Root["/AcroForm"]
    data, _ = fill(pdf=pdf)
    assert is_found("Bergen", text_in(data, 1, WIDGET))


def test_a_comb_shows_each_character_in_its_cell() -> None:
    comb = text_widget("1234", Ff=1 << 24, MaxLen=10, DA=pikepdf.String("/Helv 10 Tf 0 g"))
    data, _ = fill(pdf=form_pdf(comb))
    assert [text_in(data, 1, (100 + 20 * cell, 600, 120 + 20 * cell, 620)).strip() for cell in range(5)] == [
        *"1234",
        "",
    ]
    right = text_widget("12", Ff=1 << 24, MaxLen=10, Q=2)
    data, _ = fill(pdf=form_pdf(right))
    assert [text_in(data, 1, (260 + 20 * cell, 600, 280 + 20 * cell, 620)).strip() for cell in range(2)] == ["1", "2"]


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_turned_value_stays_turned(turn: int) -> None:
    """Where it begins: at the bottom, at the right, at the top."""
    widget = text_widget("Turned value", MK=Dictionary(R=turn), DA=pikepdf.String("/Helv 12 Tf 0 g"))
    widget.Rect = Array([100, 400, 120, 600] if turn != 180 else [100, 400, 300, 420])
    data, _ = fill(pdf=form_pdf(widget))
    begins = {90: (95, 395, 125, 430), 180: (270, 395, 305, 425), 270: (95, 570, 125, 605)}[turn]
    behind = {90: (95, 450, 125, 605), 180: (95, 395, 250, 425), 270: (95, 395, 125, 550)}[turn]
    assert "T" in text_in(data, 1, begins)
    assert "T" not in text_in(data, 1, behind)
    assert text_in(data, 1, behind).strip()


def test_a_value_with_the_flag_for_unknown_annotations_is_seen() -> None:
    data, _ = fill(pdf=form_pdf(text_widget("seen", F=1)))
    assert is_found("seen", text_in(data, 1, WIDGET))


def test_links_stay_hidden_annotations_stay_hidden_and_others_become_content() -> None:
    pdf = blank_pdf()

    def annotation(subtype: Name, flags: int, bottom: int) -> pikepdf.Object:
        look = pdf.make_stream(b"1 0 0 rg 0 0 50 20 re f")
        look.stream_dict.update(Dictionary(Type=Name.XObject, Subtype=Name.Form, BBox=Array([0, 0, 50, 20])))
        made = Dictionary(Type=Name.Annot, Subtype=subtype, F=flags, Rect=Array([100, bottom, 150, bottom + 20]))
        made.AP = Dictionary(N=look)
        return pdf.make_indirect(made)

    link = Dictionary(Type=Name.Annot, Subtype=Name.Link, Rect=Array([100, 300, 150, 320]), Border=Array([0, 0, 0]))
    link.A = Dictionary(S=Name.URI, URI=pikepdf.String("https://example.com"))
    pdf.pages[0].obj.Annots = Array(
        [annotation(Name.Stamp, 4, 600), annotation(Name.Stamp, 2, 500), pdf.make_indirect(link)]
    )
    data, _ = fill(pdf=pdf)
    with pikepdf.open(io.BytesIO(data)) as filled:
        assert [str(one.A.URI) for one in filled.pages[0].obj.Annots] == ["https://example.com"]
    picture = picture_of(data)
    assert picture.getpixel((125, 792 - 610)) == (255, 0, 0)
    assert picture.getpixel((125, 792 - 510)) == (255, 255, 255)


def test_a_plain_document_is_not_flattened_needlessly() -> None:
    pdf = blank_pdf(content=b"0 0 10 10 re f")
    before = pdf.pages[0].obj.Contents.objgen
    fill_into(pdf, stored(), request(), {})
    assert pdf.pages[0].obj.Contents.objgen == before


def test_the_document_has_the_uuid_that_areas_name() -> None:
    assert stored().uuid == DOCUMENT


@pytest.mark.parametrize("value", ["Bergen", ""])
@pytest.mark.parametrize("kind", ["Tx", "Ch", "Btn"])
def test_a_field_without_appearance_keeps_its_border_and_background(kind: str, value: str) -> None:
    widget = Dictionary(FT=Name(f"/{kind}"), T=pikepdf.String("t"), Rect=Array([100, 600, 300, 620]))
    widget.MK, widget.BS = Dictionary(BC=Array([1, 0, 0]), BG=Array([0.8, 0.8, 1])), Dictionary(W=2)
    if kind == "Btn":  # what LaTeX writes: the names of its states only
        widget.AP, widget.AS = Dictionary(N=Dictionary(Yes=Dictionary())), Name.Yes if value else Name.Off
    elif value:
        widget.V = pikepdf.String(value)
    data, _ = fill(field_value("text", "x"), pdf=form_pdf(widget))
    picture = picture_of(data, scale=4)
    left, top, height = 100 * 4, picture.height - 620 * 4, 20 * 4
    assert picture.getpixel((left + 4, top + height // 2)) == pytest.approx((255, 0, 0), abs=3)
    assert picture.getpixel((left + 190 * 4, top + height - 20)) == pytest.approx((204, 204, 255), abs=3)


_SOLID, _DASHED, _BEVELED, _INSET, _UNDERLINE = Name.S, Name.D, Name.B, Name.I, Name.U
_RED_AND_BLUE: dict[str, Any] = {"BC": Array([1, 0, 0]), "BG": Array([0.8, 0.8, 1])}
_TEXT, _ROUND = Dictionary(FT=Name.Tx), Dictionary(FT=Name.Btn, Ff=1 << 15, V=Name.Other, AS=Name.Off)
_COMB = Dictionary(FT=Name.Tx, Ff=1 << 24, MaxLen=8)
_TURNED, _PUSH = Dictionary(FT=Name.Tx, R=90), Dictionary(FT=Name.Btn, Ff=1 << 16, R=90)


@pytest.mark.parametrize(
    ("field", "border"),
    [
        *((field, Dictionary(BS=Dictionary(W=3, S=_SOLID))) for field in (_TEXT, _ROUND, _COMB, _TURNED, _PUSH)),
        *((_TEXT, Dictionary(BS=Dictionary(W=3, S=style))) for style in (_DASHED, _BEVELED, _INSET, _UNDERLINE)),
        *((_TURNED, Dictionary(BS=Dictionary(W=3, S=style))) for style in (_BEVELED, _INSET, _UNDERLINE)),
        (_COMB, Dictionary(BS=Dictionary(W=2, S=_DASHED))),
        (_TEXT, Dictionary(Border=Array([0, 0, 4]))),
        (_TEXT, Dictionary(Border=Array([0, 0, 4, Array([3, 3])]))),
        (_TEXT, Dictionary(Border=Array([0, 0, 0]))),
        (_TEXT, Dictionary()),
    ],
)
def test_a_border_is_drawn_as_pdfium_draws_it(field: Dictionary, border: Dictionary) -> None:
    """Each quarter of it has the same colour in its mean: where its dashes and lines begin is left to each reader."""
    box = (100, 600, 200, 640)
    widget = Dictionary(T=pikepdf.String("t"), Rect=Array(box), MK=Dictionary(**_RED_AND_BLUE))
    for key, value in [*field.items(), *border.items()]:
        (widget.MK if key == "/R" else widget)[key] = value
    pdf = form_pdf(widget)
    shown = picture_of(saved(pdf), scale=4)
    data, _ = fill(pdf=pdf)
    around = (4 * (box[0] - 2), 4 * (792 - box[3] - 2), 4 * (box[2] + 2), 4 * (792 - box[1] + 2))
    pictures = [picture.crop(around).resize((2, 2), Resampling.BOX) for picture in (shown, picture_of(data, scale=4))]
    assert max(ImageStat.Stat(ImageChops.difference(*pictures)).mean) < 6
