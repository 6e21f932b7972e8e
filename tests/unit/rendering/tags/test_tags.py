"""Field tags: found in any font, turned into fields, and erased without a trace and without moving anything else."""

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.types import FieldType
from services.rendering.jobs.pdf.pdfium_text import open_document, open_page_text
from services.rendering.jobs.pdf.refused import Refused
from tests.support.files import pdf_files, pdf_fonts
from tests.support.rendering.tags import assert_only_tags_are_gone, codes, pdfium_text, take, words

FONTS = {
    "identity": pdf_fonts.composite,
    "embedded cmap": lambda pdf: pdf_fonts.composite(pdf, cmap=pdf_fonts.byte_cmap()),
    "type 3": pdf_fonts.type_3,
    "differences": pdf_fonts.shuffled_simple,
}


def field_of(text: str) -> Any:
    prepared = take(pdf_files.document(pdf_files.line(text)))
    assert len(prepared.fields) == 1, prepared.report
    return prepared.fields[0]


# Finding and erasing


@pytest.mark.parametrize("kind", FONTS)
def test_tags_are_found_and_erased_in_every_kind_of_font(kind: str, tmp_path: Path) -> None:
    pdf = pikepdf.new()
    font, encode = FONTS[kind](pdf)
    content = f"BT /F9 12 Tf 72 700 Td <{encode('Before {{Name;type=text;role=Buyer}} after').hex()}> Tj "
    pdf_files.add_page(pdf, f"{content} 0 -20 Td <{encode('Next').hex()}> Tj ET", fonts={"/F9": font})
    data = pdf_files.saved(pdf)
    removed = assert_only_tags_are_gone(data, {"{{Name;type=text;role=Buyer}}"}, tmp_path)
    assert [(field.name, field.role) for field in removed.fields] == [("Name", "Buyer")]
    assert set(codes(removed)) <= {"fonts_missing"}


def test_tags_are_erased_from_a_font_that_is_not_in_the_file() -> None:
    """A predefined CMap whose tables neither pikepdf nor poppler (without its language package) has."""
    pdf = pikepdf.new()
    font, encode = pdf_fonts.unembedded_chinese(pdf)
    text = encode("前 {{姓名;type=text}} 后 x").hex()
    pdf_files.add_page(pdf, f"BT /F9 12 Tf 72 700 Td <{text}> Tj ET", fonts={"/F9": font})
    removed = take(pdf_files.saved(pdf))
    assert codes(removed) == ["fonts_missing"]
    assert [field.name for field in removed.fields] == ["姓名"]
    assert pdfium_text(removed.file).split() == ["前", "后", "x"]


CONTENTS = {
    "several on a line": (
        "BT /F1 12 Tf 72 700 Td (A {{B;type=text}} C {{D;type=date}} E) Tj ET",
        {"{{B;type=text}}", "{{D;type=date}}"},
    ),
    "kerned": (
        "BT /F1 12 Tf 72 700 Td [(Before {) 30 ({Na) -40 (me;ty) 120 (pe=text) 10 (}) 5 (} after) 700 (more)] TJ ET",
        {"{{Name;type=text}}"},
    ),
    "several operators": (
        "BT /F1 12 Tf 72 700 Td (Before {) Tj ({Name;) Tj (type=text}) Tj (} after) Tj ET",
        {"{{Name;type=text}}"},
    ),
    "quote operators": (
        "BT /F1 12 Tf 14 TL 72 700 Td (First) ' (x {{A;type=text}} y) ' 3 1 (z {{B;type=text}} end) \" (w) ' ET",
        {"{{A;type=text}}", "{{B;type=text}}"},
    ),
    "spacing and scale": (
        "BT /F1 12 Tf 0.4 Tc 5 Tw 80 Tz 3 Ts 72 700 Td (x {{A;type=text}} y z) Tj 0 Ts (t) Tj ET",
        {"{{A;type=text}}"},
    ),
    "turned and mirrored spaces": (
        "q 0.5 0 0 -0.5 50 600 cm BT 0.866 0.5 -0.5 0.866 72 100 Tm /F1 24 Tf (u {{A;type=text}} v) Tj ET Q",
        {"{", "{A", ";ty", "pe", "=te", "x", "t}}"},  # which is how poppler cuts slanted text up
    ),
    "fonts that change inside": (
        "BT /F1 12 Tf 72 700 Td (x {{Na) Tj /F2 12 Tf (me;type=) Tj /F1 12 Tf (text}} y) Tj ET",
        {"{{Name;type=text}}"},
    ),
    "invisible text": ("BT 3 Tr /F1 12 Tf 72 700 Td (x {{A;type=text}} y) Tj ET", {"{{A;type=text}}"}),
    "bold by drawing twice": (
        "BT /F1 12 Tf 72 700 Td (x {{A;type=text}} y) Tj -0 0 Td ET BT /F1 12 Tf 72.3 700 Td (x {{A;type=text}} y) Tj ET",
        {"{{A;type=text}}"},
    ),
    "an inline picture between": (
        "BT /F1 12 Tf 72 700 Td (x {{A;type=text}} y) Tj ET 9 0 0 9 5 5 cm BI /W 2 /H 2 /BPC 8 /CS /G ID 0a9b EI",
        {"{{A;type=text}}"},
    ),
    "saved states": (
        "q BT /F1 12 Tf 2 Tc 72 700 Td (a {{A;type=text}} b) Tj ET Q BT /F2 9 Tf 72 650 Td (c {{B;type=text}} d) Tj ET",
        {"{{A;type=text}}", "{{B;type=text}}"},
    ),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_only_the_glyphs_of_tags_are_erased(name: str, tmp_path: Path) -> None:
    content, gone = CONTENTS[name]
    removed = assert_only_tags_are_gone(pdf_files.document(content), gone, tmp_path)
    assert len(removed.fields) == (2 if len(gone) == 2 else 1)


HOSTILE = {
    "wrong operands": "BT /F1 12 Tf (x) Td 72 700 Td /No gs (a) Tc (x {{A;type=text}} y) Tj 7 Tj [] TJ ET /Nothing Do",
    "more restored than saved": "q Q Q Q BT /F1 12 Tf 72 700 Td (x {{A;type=text}} y) Tj ET Q ET EMC",
    "no operators of its own": "BT /F1 12 Tf 72 700 Td (x {{A;type=text}} y) Tj foo bar 1 2 3 baz ET",
}


@pytest.mark.parametrize("rubbish", ["/Span <<", "(abc", ">> " * 60 + "0 0 9 9 re f", "] ) } " * 30])
def test_content_that_readers_could_read_differently_is_not_touched(rubbish: str) -> None:
    data = pdf_files.document(pdf_files.line("x {{A;type=text}} y") + rubbish)
    removed = take(data)
    assert codes(removed) == ["tag_not_removed"]
    assert removed.file == take(data, remove_tags=False).file


@pytest.mark.parametrize("name", HOSTILE)
def test_content_that_readers_forgive(name: str) -> None:
    removed = take(pdf_files.document(HOSTILE[name]))
    assert "".join(pdfium_text(removed.file).split()) == "xy"
    assert codes(removed) == []


@pytest.mark.parametrize(
    "page", [{"rotate": 90}, {"rotate": 180, "crop": (20, 400, 500, 780)}, {"user_unit": 2, "rotate": 270}]
)
def test_tags_on_turned_and_cropped_pages(page: dict[str, Any], tmp_path: Path) -> None:
    data = pdf_files.document("BT /F1 12 Tf 72 700 Td (x {{A;type=text}} y) Tj ET", **page)
    removed = take(data)
    area = removed.fields[0].areas[0]
    [tag] = [word for word in words(take(data, remove_tags=False).file, tmp_path) if "{{" in word.text]
    size = removed.pages[0]
    unit = page.get("user_unit", 1)  # Which pdftotext does not know.
    assert area.x * size.width == pytest.approx(tag.left * unit, abs=3 * unit)
    assert (area.x + area.w) * size.width == pytest.approx(tag.right * unit, abs=3 * unit)
    assert area.y * size.height == pytest.approx(tag.top * unit, abs=3 * unit)
    assert (area.y + area.h) * size.height == pytest.approx(tag.bottom * unit, abs=3 * unit)
    assert "{" not in pdfium_text(removed.file)


def test_a_form_drawn_twice_and_by_two_pages_is_copied_not_changed(tmp_path: Path) -> None:
    pdf = pikepdf.new()
    inner = pdf.make_stream(b"BT /F1 10 Tf 0 0 Td (in {{A;type=text}} out) Tj ET")
    fonts = pikepdf.Dictionary(F1=pdf_files.standard_font(pdf, "Helvetica"))
    for key, value in {"/Subtype": pikepdf.Name.Form, "/BBox": pikepdf.Array([0, -10, 400, 50])}.items():
        inner[key] = value
    inner.Resources = pikepdf.Dictionary(Font=fonts)
    outer = pdf.make_stream(b"q 1 0 0 1 10 0 cm /In Do Q")
    outer.Subtype, outer.BBox = pikepdf.Name.Form, pikepdf.Array([0, -10, 400, 50])
    outer.Matrix = pikepdf.Array([1, 0, 0, 1, 0, 5])
    outer.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(In=inner))
    twice = "q 1 0 0 1 72 700 cm /Out Do Q q 1 0 0 1 72 600 cm /Out Do Q"
    for _ in range(2):
        pdf_files.add_page(pdf, twice, forms={"/Out": outer})
    removed = assert_only_tags_are_gone(pdf_files.saved(pdf), {"{{A;type=text}}"}, tmp_path)
    [field] = removed.fields
    assert [area.page for area in field.areas] == [1, 1, 2, 2]


def test_streams_that_are_cut_inside_a_tag(tmp_path: Path) -> None:
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf)
    parts = (b"BT /F1 12 Tf 72 700 Td", b"(x {{A;type=", b"text}} y) Tj ET")
    whole = parts[1] + parts[2]
    page.obj.Contents = pikepdf.Array([pdf.make_stream(parts[0]), pdf.make_stream(whole)])
    # Fonts from the page tree.
    pdf.Root.Pages.Resources = page.obj.Resources
    del page.obj["/Resources"]
    assert_only_tags_are_gone(pdf_files.saved(pdf), {"{{A;type=text}}"}, tmp_path)


@st.composite
def kerned_lines(draw: Any) -> Any:
    """(content, words that stay, number of tags): words and tags in TJ operands that are cut anywhere."""
    letters = st.text("abcdefgXYZ.,", min_size=1, max_size=8)
    pieces = draw(st.lists(st.tuples(st.booleans(), letters), min_size=1, max_size=6))
    text = " ".join(f"{{{{{word};type=text}}}}" if is_tag else word for is_tag, word in pieces)
    cuts = sorted(draw(st.sets(st.integers(1, len(text)), max_size=8)) | {0, len(text)})
    parts = []
    for start, end in pairwise(cuts):
        parts.append(f"({text[start:end]})")
        parts.append(str(draw(st.integers(-90, 90))))
    spacing = f"{draw(st.sampled_from([0, 0.2, -0.1]))} Tc {draw(st.sampled_from([0, 1.5]))} Tw"
    content = f"BT /F2 11 Tf {spacing} {draw(st.sampled_from([80, 100, 120]))} Tz 30 700 Td [{' '.join(parts)}] TJ ET"
    return content, [word for is_tag, word in pieces if not is_tag], sum(is_tag for is_tag, _ in pieces)


@settings(max_examples=60, deadline=None)
@given(line=kerned_lines())
def test_whatever_the_kerning_only_tags_go_and_nothing_moves(line: Any) -> None:
    content, stay, tags = line
    data = pdf_files.document(content, media=(0, 0, 3000, 800))
    kept, removed = take(data, remove_tags=False), take(data)
    assert sum(len(field.areas) for field in removed.fields) == tags
    assert "tag_not_removed" not in codes(removed)
    assert "".join(pdfium_text(removed.file).split()) == "".join(stay)
    before = characters(kept.file)
    for character in characters(removed.file):
        assert any(character.text == one.text and abs(character.x - one.x) < 0.1 for one in before)


def characters(data: bytes) -> Any:
    with open_document(data) as document, open_page_text(document, 0) as text:
        return [c for c in text.characters(0, len(text) - 1) if not c.generated and not c.text.isspace()]


def test_text_for_screen_readers_goes_too() -> None:
    content = (
        "/Span <</ActualText ({{A;type=text}}) /MCID 0>> BDC BT /F1 12 Tf 72 700 Td ({{A;type=text}}) Tj ET EMC "
        "BT /F1 12 Tf 300 700 Td (stays) Tj ET"
    )
    removed = take(pdf_files.document(content))
    assert codes(removed) == []
    assert "type" not in pdfium_text(removed.file)
    with pikepdf.open(io.BytesIO(removed.file)) as pdf:
        stream = pdf.pages[0].Contents.read_bytes()
    assert b"ActualText" not in stream
    assert b"/MCID 0" in stream


def test_text_that_means_more_than_the_tag_is_not_taken_apart() -> None:
    """pdfium only knows the replacement text as a whole: the tag stays, visibly, and that is said."""
    content = (
        "BT /F1 12 Tf 72 700 Td /Span <</ActualText (x {{A;type=text}} y)>> BDC (x {{A;type=text}} y) Tj EMC ET "
        "BT /F1 12 Tf 72 600 Td ({{B;type=text}}) Tj ET"
    )
    removed = take(pdf_files.document(content))
    assert "tag_not_removed" in codes(removed)
    assert "{{A;type=text}}" in pdfium_text(removed.file)
    assert [field.name for field in removed.fields] == ["A", "B"]


def test_only_tags_go_and_never_the_same_words_elsewhere(tmp_path: Path) -> None:
    """The peer erases ordinary text that equals a field's name (users' pain 16)."""
    content = pdf_files.line("Full Name: {{Full Name;type=text}} Full Name") + pdf_files.line("type=text }} {", y=600)
    data = pdf_files.document(content)
    removed = take(data)
    assert pdfium_text(removed.file).split() == ["Full", "Name:", "Full", "Name", "type=text", "}}", "{"]


# What makes which field


def test_one_field_with_an_area_for_each_occurrence() -> None:
    content = pdf_files.line("{{Sign;type=signature;role=Buyer}}") + pdf_files.line(
        "{{Sign;type=signature;role=Seller}}", y=500
    )
    prepared = take(pdf_files.document(content, pdf_files.line("{{Sign;type=signature;role=Buyer}}")))
    found = [(field.role, [area.page for area in field.areas]) for field in prepared.fields]
    assert found == [("Buyer", [1, 2]), ("Seller", [1])]


def test_options_of_a_group_have_their_own_areas() -> None:
    text = "{{Pay;type=radio;option=Card}} {{Pay;type=radio;option=Cash}}"
    field = field_of(text)
    assert field.options == ["Card", "Cash"]
    assert [area.option for area in field.areas] == ["Card", "Cash"]


def test_tags_without_a_name_are_fields_of_their_own() -> None:
    prepared = take(pdf_files.document(pdf_files.line("{{type=checkbox}} {{type=checkbox}}")))
    assert [field.name for field in prepared.fields] == ["", ""]


def test_types_that_differ_are_reported() -> None:
    prepared = take(pdf_files.document(pdf_files.line("{{A;type=date}} {{A;type=text}}")))
    assert [field.type for field in prepared.fields] == [FieldType.DATE]
    assert codes(prepared) == ["tag_type_differs"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{Full Name}}", {"name": "Full Name", "type": FieldType.TEXT, "required": True, "role": None}),
        ("{{A;type=initials;required=false;}}", {"type": FieldType.INITIALS, "required": False}),
        ("{{A;type=datenow}}", {"type": FieldType.DATE, "readonly": True, "default_value": "{{date}}"}),
        ("{{A;type=email}}", {"type": FieldType.TEXT}),
        ("{{A;type=select;options=One, Two,One}}", {"options": ["One", "Two"]}),
        ("{{A;type=checkbox;default=true}}", {"default_value": True}),
        ("{{A;type=number;default=4.50;min=1;max=9}}", {"default_value": 4.5, "validation": {"min": 1, "max": 9}}),
        ("{{A;type=multiple;default=x,y}}", {"default_value": ["x", "y"]}),
        ("{{A;type=date;min=2026-01-02;format=DD/MM/YYYY}}", {"validation": {"min": "2026-01-02"}}),
        ("{{A;font=Times New Roman;font_size=9;align=right}}",
         {"preferences": {"font": "Times", "font_size": 9, "align": "right"}}),
        ("{{A;color=#ff0000;mask=-4;hidden=true}}", {"preferences": {"color": "#ff0000", "mask": -4, "hidden": True}}),
        ("{{A;title=T;description=D;condition=B:true}}", {"title": "T", "description": "D", "condition": "B:true"}),
        ("{{ A ; Type = Signature ; ROLE = The Buyer }}", {"name": "A", "type": FieldType.SIGNATURE, "role": "The Buyer"}),
        ("{{A;type=payment;price=10.50;currency=eur}}", {"preferences": {"price": 10.5, "currency": "EUR"}}),
        (
            "{{A;type=payment;price=5;payment_url=https://pay.example.com/a?b=c}}",
            {"preferences": {"price": 5, "payment_url": "https://pay.example.com/a?b=c"}},
        ),
    ],
)  # fmt: skip
def test_attributes(text: str, expected: dict[str, Any]) -> None:
    field = field_of(text)
    for key, value in expected.items():
        assert getattr(field, key) == value


@pytest.mark.parametrize(
    ("text", "code", "words_of_message"),
    [
        ("{{A;type=kba}}", "unknown_tag", "the type “kba” is not supported"),
        ("{{}}", "unknown_tag", "it is empty"),
        ("{{ ; }}", "unknown_tag", "it is empty"),
        ("{{A;type=text and so on", "unclosed_tag", "{{A;type=text"),
        ("{{A;type=text", "unclosed_tag", "is not closed"),
        ("{{A;colour=red}}", "tag_attribute", "“colour” is not known"),
        ("{{A;required=perhaps}}", "tag_attribute", "must be true or false"),
        ("{{A;type=number;default=x}}", "tag_attribute", "the default “x” must be a number"),
        ("{{A;type=payment;price=-1}}", "tag_attribute", "must not be below 0"),
        ("{{A;type=payment;payment_url=javascript:alert(1)}}", "tag_attribute", "is not a valid http or https URL"),
        ("{{A;font_size=1000000}}", "tag_attribute", "between 4 and 144"),
        ("{{A;whatever}}", "tag_attribute", "“whatever” is not an attribute"),
        ("{{A;type=text;option=x}}", "tag_attribute", "only belongs to radio"),
        ("{{A;min=soon}}", "tag_attribute", "must be a number or a date"),
    ],
)
def test_what_is_not_understood_is_reported(text: str, code: str, words_of_message: str) -> None:
    prepared = take(pdf_files.document(pdf_files.line(f"x {text} y")))
    notice = next(notice for notice in prepared.report if notice.code == code)
    assert words_of_message in notice.message
    assert (notice.page, notice.document) == (1, "contract")
    if code != "tag_attribute":
        assert prepared.fields == []
        assert text.split("}")[0] in pdfium_text(prepared.file)


def test_the_report_stays_readable() -> None:
    rows = "".join(pdf_files.line("{{a;type=none}} " * 50, y=10 + row * 2, size=1) for row in range(20))
    report = take(pdf_files.document(rows)).report
    assert len(report) == 201
    assert report[-1].code == "too_many_faults"


def test_names_are_harmless() -> None:
    pdf = pikepdf.new()
    font, encode = pdf_fonts.unembedded_chinese(pdf)
    name = "a\u202eb\u0007c" + "d" * 300
    text = encode(f"{{{{{name};type=text}}}}").hex()
    pdf_files.add_page(pdf, f"BT /F9 1 Tf 72 700 Td <{text}> Tj ET", fonts={"/F9": font})
    [field] = take(pdf_files.saved(pdf)).fields
    assert len(field.name) <= 255
    assert field.name.startswith("abcd") or field.name.startswith("ab cd")


def test_a_tag_that_is_broken_over_lines(tmp_path: Path) -> None:
    content = (
        "BT /F1 12 Tf 72 700 Td (text {{Full) Tj 0 -14 Td (Name;type=sig) Tj 0 -14 Td (nature;role=Buyer}} more) Tj ET"
    )
    removed = assert_only_tags_are_gone(
        pdf_files.document(content), {"{{Full", "Name;type=sig", "nature;role=Buyer}}"}, tmp_path
    )
    [field] = removed.fields
    assert (field.type, field.role) == (FieldType.SIGNATURE, "Buyer")
    assert field.name.replace(" ", "") == "FullName"


def test_letters_that_are_set_apart() -> None:
    content = "BT /F1 12 Tf 4 Tc 72 700 Td (x {{Name;type=date}} y) Tj ET"
    removed = take(pdf_files.document(content))
    assert [(field.name, field.type) for field in removed.fields] == [("Name", FieldType.DATE)]
    assert "type" not in pdfium_text(removed.file).replace(" ", "")


def test_tags_outside_the_visible_page_make_no_field() -> None:
    prepared = take(pdf_files.document(pdf_files.line("{{A;type=text}}", y=900)))
    assert prepared.fields == []
    assert codes(prepared) == ["tag_outside_page"]


def test_more_fields_than_anyone_signs_are_refused() -> None:
    rows = "".join(pdf_files.line("{{a}}" * 60, y=10 + row * 2, size=1) for row in range(35))
    with pytest.raises(Refused, match="more than 2,000 field tags"):
        take(pdf_files.document(rows))


# Sizes


def test_a_text_field_is_as_wide_as_its_tag() -> None:
    area = field_of("{{Name;type=text}}").areas[0]
    assert area.x == pytest.approx(72 / 612, abs=0.002)
    assert area.w == pytest.approx(99.4 / 612, abs=0.004)
    assert 12 / 792 < area.h < 18 / 792


def test_width_and_height_count_pixels_of_a_page_1400_pixels_wide() -> None:
    area = field_of("{{Sign;type=signature;width=350;height=140}}").areas[0]
    assert area.w == pytest.approx(0.25)
    assert area.h * 792 == pytest.approx(140 / 1400 * 612)


def test_a_check_mark_is_square() -> None:
    area = field_of("{{Agreed;type=checkbox}}").areas[0]
    assert area.w * 612 == pytest.approx(area.h * 792)
    assert area.x * 612 == pytest.approx(72, abs=1)


def test_a_signature_grows_into_free_space_only() -> None:
    alone = field_of("{{Sign;type=signature}}").areas[0]
    assert alone.h == pytest.approx(0.06)
    content = (
        pdf_files.line("Text above", y=725) + pdf_files.line("{{Sign;type=signature}}") + pdf_files.line("below", y=680)
    )
    between = take(pdf_files.document(content)).fields[0].areas[0]
    top, bottom = 792 * (1 - between.y), 792 * (1 - between.y - between.h)
    assert 15 < between.h * 792 < 36
    assert top < 725
    assert bottom > 688


def test_a_signature_stays_inside_its_frame() -> None:
    content = "60 690 200 26 re S " + pdf_files.line("{{Sign;type=signature}}")
    area = take(pdf_files.document(content)).fields[0].areas[0]
    assert 792 * (1 - area.y) < 716.5
    assert 792 * (1 - area.y - area.h) > 689.5


def test_two_signatures_above_each_other_do_not_touch() -> None:
    content = pdf_files.line("{{A;type=signature}}") + pdf_files.line("{{B;type=signature}}", y=660)
    one, other = (field.areas[0] for field in take(pdf_files.document(content)).fields)
    assert one.y + one.h <= other.y
