"""Field tags in the ways in which programs set text: columns, cells, hyphens, shadows, right to left, fonts that tell nothing."""

import io
import re
import textwrap
from pathlib import Path
from typing import Any

import pikepdf
import pypdfium2 as pdfium
import pytest
from pikepdf import Array, Dictionary, Name, String

from contracts.fields.formulas.grammar import LONGEST_FORMULA
from contracts.types import FieldType
from services.rendering.jobs.content.font_unicode import mend_fonts
from services.rendering.jobs.html.convert import html_to_pdf
from services.rendering.jobs.tags import removal
from tests.support.files import pdf_files, pdf_fonts
from tests.support.rendering.tags import assert_only_tags_are_gone, codes, pdfium_text, take, written_anywhere


def fields_of(data: bytes) -> list[tuple[str, str, str | None]]:
    return [(field.name, str(field.type), field.role) for field in take(data).fields]


# Over lines and columns


def rows(*columns: list[str], size: int = 10) -> str:
    """Lines of columns, drawn row by row, as many programs do."""
    content = ""
    for number in range(len(columns[0])):
        for x, column in zip((60, 240, 420), columns, strict=False):
            content += pdf_files.line(column[number], x=x, y=700 - 12 * number, size=size)
    return content


def test_tags_go_on_below_in_their_column_not_in_the_next_one(tmp_path: Path) -> None:
    content = rows(
        ["one {{First", "name;type=date;", "role=Buyer}} more"],
        ["two {{Second", "name;type=number;", "role=Seller}} more"],
        ["three is", "only", "text"],
    )
    gone = {"{{First", "name;type=date;", "role=Buyer}}", "{{Second", "name;type=number;", "role=Seller}}"}
    removed = assert_only_tags_are_gone(pdf_files.document(content), gone, tmp_path)
    assert fields_of(pdf_files.document(content)) == [
        ("First name", "date", "Buyer"),
        ("Second name", "number", "Seller"),
    ]
    assert removed.report == []


def test_text_of_the_next_column_never_gets_into_a_tag(tmp_path: Path) -> None:
    content = rows(["some text", "of a first", "column here"], ["and {{Second", "name;type=date}}", "more"])
    removed = assert_only_tags_are_gone(pdf_files.document(content), {"{{Second", "name;type=date}}"}, tmp_path)
    assert [(field.name, field.type) for field in removed.fields] == [("Second name", FieldType.DATE)]
    assert "of a first" in pdfium_text(removed.file)


def test_a_tag_goes_on_at_the_top_of_the_next_column() -> None:
    column = "".join(pdf_files.line(f"line {number}", x=60, y=700 - 12 * number, size=10) for number in range(50))
    content = column + pdf_files.line("x {{Long", x=60, y=100, size=10)
    content += pdf_files.line("name;type=date}} y", x=320, y=700, size=10)
    assert fields_of(pdf_files.document(content)) == [("Long name", "date", None)]


def test_cells_of_a_table_and_columns_of_a_page() -> None:
    cell = "<td style='width: 110px'>{{%s Name;type=signature;role=%s}}"
    html = f"<table><tr>{cell % ('Buyer', 'Buyer')}{cell % ('Seller', 'Seller')}</table>"
    words = "Some words {{Customer Name;type=signature;role=Buyer}} and {{Seller Name;type=date;role=Seller}} more. "
    html += f"<div style='column-count: 3'>{words * 4}</div>"
    data, _, _ = html_to_pdf(html)
    prepared = take(data)
    found = {(field.name, field.type, field.role, len(field.areas)) for field in prepared.fields}
    assert found == {
        ("Buyer Name", FieldType.SIGNATURE, "Buyer", 1),
        ("Seller Name", FieldType.SIGNATURE, "Seller", 1),
        ("Customer Name", FieldType.SIGNATURE, "Buyer", 4),
        ("Seller Name", FieldType.DATE, "Seller", 4),
    } or found == {
        ("Buyer Name", FieldType.SIGNATURE, "Buyer", 1),
        ("Seller Name", FieldType.SIGNATURE, "Seller", 5),
        ("Customer Name", FieldType.SIGNATURE, "Buyer", 4),
    }
    assert "{" not in pdfium_text(prepared.file)
    assert "tag_not_removed" not in codes(prepared)


def test_a_signature_that_is_broken_over_lines_has_their_room() -> None:
    content = "60 640 200 70 re S BT /F1 12 Tf 14 TL 72 690 Td ({{Sign) Tj T* (here;type=signature;) Tj T* (role=Buyer}}) Tj ET"
    [field] = take(pdf_files.document(content)).fields
    area = field.areas[0]
    top, bottom = 792 * (1 - area.y), 792 * (1 - area.y - area.h)
    assert top - bottom > 30
    assert 640 <= bottom < top <= 710.01


def test_where_a_line_ends_there_was_a_blank_or_nothing() -> None:
    content = (
        "BT /F1 12 Tf 14 TL 72 700 Td (x {{Full) Tj T* (Name;type=sig) Tj T* (nature;role=The) Tj T* (Buyer}} y) Tj ET"
    )
    assert fields_of(pdf_files.document(content)) == [("Full Name", "signature", "The Buyer")]


def test_hyphens_at_the_end_of_a_line() -> None:
    content = "BT /F1 12 Tf 14 TL 72 700 Td (x {{Co-) Tj T* (signer;type=multi-) Tj T* (select;options=a,b}} y) Tj ET"
    assert fields_of(pdf_files.document(content)) == [("Co-signer", "multiple", None)]
    content = "BT /F1 12 Tf 14 TL 72 700 Td (x {{Name;type=signa-) Tj T* (ture}} y) Tj ET"
    assert fields_of(pdf_files.document(content)) == [("Name", "signature", None)]


# Braces


@pytest.mark.parametrize(
    ("text", "default", "left"),
    [
        ("x {{A;type=date;default={{date}}}} y", "{{date}}", "x y"),
        ("x {{A;type=date;default={date}}} y", "{date}", "x y"),
        ("x {{A;type=text;default={{ name }};title=T}} y", "{{ name }}", "x y"),
        ("x {{{A;type=date}}} y", None, "x { } y"),
    ],
)
def test_braces_inside_and_around(text: str, default: Any, left: str) -> None:
    prepared = take(pdf_files.document(pdf_files.line(text)))
    assert [(field.name, field.default_value) for field in prepared.fields] == [("A", default)]
    assert pdfium_text(prepared.file).split() == left.split()


@pytest.mark.parametrize(
    ("text", "code", "fields"),
    [
        ("{{Price;type=number;role=A} and interest of 5 percent applies. End}} of text.", "unclosed_tag", []),
        ("{{Price} and interest applies. End}} of {{B;type=date}} text.", "unclosed_tag", ["B"]),
        ("{{Price;title=A} and interest applies. End}} of text.", "unclosed_tag", []),
        ("{{Price;role=A} and {interest} applies. End}} of text.", "unclosed_tag", []),
        (f"{{{{Price;role={'A' * 61}}}}} of text.", "unknown_tag", []),
        ("{{Price;role={A}}} of text.", "unknown_tag", []),
        ("{{;type=number;role=A}} of text.", "unknown_tag", []),
        ("{{ ;role=A}} of text.", "unknown_tag", []),
        ("{{role=A}} of text.", "unknown_tag", []),
        ("{{name=;role=A}} of text.", "unknown_tag", []),
    ],
)
def test_what_is_no_tag_stays_in_the_text_and_is_reported(text: str, code: str, fields: Any) -> None:
    prepared = take(pdf_files.document(pdf_files.line("first"), pdf_files.line(text, x=20, size=7)))
    assert [field.name for field in prepared.fields] == fields
    assert [(notice.code, notice.page) for notice in prepared.report] == [(code, 2)]
    left = text.replace("{{B;type=date}}", "")
    assert pdfium_text(prepared.file).split() == ["first", *left.split()]


@pytest.mark.parametrize(
    ("lines", "role"),
    [
        (["{{Sign;type=signature;role=First", "Party}}"], "First Party"),
        (["{{Sign;type=signature;role=The other", "party to this}} more"], "The other party to this"),
        (["{{Sign;role=A", "and interest of 5 % applies. End}}"], None),
        (["{{Sign;type=text;role=A", "b. The rent is due. It may be", "rise once a year. B}}"], None),
        (["{{Price", "and interest of 5 % applies. End}}"], None),
    ],
)
def test_a_name_or_role_goes_on_in_the_next_line_where_its_next_word_had_no_room(lines: list[str], role: Any) -> None:
    content = "".join(pdf_files.line(text, y=700 - 14 * number) for number, text in enumerate(lines))
    prepared = take(pdf_files.document(content))
    assert [field.role for field in prepared.fields] == ([role] if role else [])
    assert codes(prepared) == ([] if role else ["unclosed_tag"])
    assert role or pdfium_text(prepared.file).split() == " ".join(lines).split()


def test_a_tag_that_is_too_long_is_reported() -> None:
    lines = ["{{A;type=text;description=" + "x " * 100, *["y " * 100] * 45, "z}}"]
    content = "".join(pdf_files.line(text, x=20, y=700 - 8 * number, size=5) for number, text in enumerate(lines))
    prepared = take(pdf_files.document(content))
    assert prepared.fields == []
    assert [(notice.code, notice.page) for notice in prepared.report] == [("unclosed_tag", 1)]
    assert "is longer than 8,000 characters" in prepared.report[0].message


def test_a_tag_holds_the_longest_formula() -> None:
    """As JSON takes it (docs/formulas.md)."""
    formula = "[[Rent]]" + " + [[Rent]]" * ((LONGEST_FORMULA - 8) // 11)
    assert LONGEST_FORMULA - 11 < len(formula) <= LONGEST_FORMULA
    lines = ["{{Sum;type=number;formula=", *textwrap.wrap(formula, 150), "}}"]
    content = "".join(pdf_files.line(text, x=20, y=800 - 9 * number, size=5) for number, text in enumerate(lines))
    (field,) = take(pdf_files.document(content)).fields
    assert field.preferences["formula"].split() == formula.split()


# Copies


@pytest.mark.parametrize("offset", [0.3, 1, 2])
def test_shadows_go_with_their_tag(offset: float, tmp_path: Path) -> None:
    text = "x {{A;type=date}} y"
    content = f"0.7 g {pdf_files.line(text, x=72 + offset, y=700 - offset)} 0 g {pdf_files.line(text)}"
    removed = take(pdf_files.document(content))
    assert codes(removed) == []
    assert not written_anywhere(removed.file, b"type=")
    assert pdfium_text(removed.file).split() in (["x", "y"], ["x", "y", "x", "y"])
    assert [len(field.areas) for field in removed.fields] == [1]


def test_a_shadow_that_is_far_away_is_the_same_field_in_the_same_place() -> None:
    content = pdf_files.line("{{A;type=date}}", x=73, y=695) + pdf_files.line("{{A;type=date}}")
    removed = take(pdf_files.document(content))
    assert pdfium_text(removed.file).strip() == ""
    assert [len(field.areas) for field in removed.fields] == [1]


def test_the_form_that_a_tag_was_drawn_by_is_gone_too(tmp_path: Path) -> None:
    """It would keep the tag's text in the file."""
    pdf = pikepdf.new()
    form = pdf.make_stream(b"BT /F1 10 Tf 0 0 Td (in {{A;type=text}} out) Tj ET")
    form.Type, form.Subtype, form.BBox = Name.XObject, Name.Form, Array([0, -10, 400, 50])
    form.Resources = Dictionary(Font=Dictionary(F1=pdf_files.standard_font(pdf, "Helvetica")))
    pdf_files.add_page(pdf, "q 1 0 0 1 72 700 cm /In Do Q q 1 0 0 1 72 600 cm /In Do Q", forms={"/In": form})
    removed = assert_only_tags_are_gone(pdf_files.saved(pdf), {"{{A;type=text}}"}, tmp_path)
    assert not written_anywhere(removed.file, b"type=")


def test_nothing_says_the_tag_in_the_structure_tree() -> None:
    pdf = pikepdf.new()
    content = "/P <</MCID 0>> BDC BT /F1 12 Tf 72 700 Td (x {{A;type=date}} y) Tj ET EMC"
    page = pdf_files.add_page(pdf, content)
    spoken: dict[str, Any] = {"ActualText": String("x {{A;type=date}} y"), "Alt": String("Größe {{A;type=date}}")}
    element = pdf.make_indirect(Dictionary(Type=Name.StructElem, S=Name.P, K=0, Pg=page.obj, **spoken))
    pdf.Root.StructTreeRoot = pdf.make_indirect(Dictionary(Type=Name.StructTreeRoot, K=element))
    for options in ({}, {"object_stream_mode": pikepdf.ObjectStreamMode.generate}):
        removed = take(pdf_files.saved(pdf, **options))
        assert not written_anywhere(removed.file, b"type=")
        with pikepdf.open(io.BytesIO(removed.file)) as after:
            kept = after.Root.StructTreeRoot.K
            assert (str(kept.ActualText), str(kept.Alt)) == ("x y", "Größe")


# Directions of writing


@pytest.mark.parametrize(
    ("html", "fields", "left"),
    [
        ("שלום {{שם;type=date;role=קונה}} עולם", [("שם", "date", "קונה")], "שלום עולם"),
        ("שלום {{Name;type=date;role=Buyer}} עולם", [("Name", "date", "Buyer")], "שלום עולם"),
        (
            "שלום {{Name;type=text}} עולם {{B;type=date}} עוד",
            [("Name", "text", None), ("B", "date", None)],
            "שלום עולם עוד",
        ),
        ("مرحبا {{الاسم;type=signature}} بالعالم", [("الاسم", "signature", None)], "مرحبا بالعالم"),
    ],
)
def test_lines_from_right_to_left(html: str, fields: Any, left: str) -> None:
    data, _, _ = html_to_pdf(f"<p dir=rtl>{html}")
    prepared = take(data)
    assert [(field.name, str(field.type), field.role) for field in prepared.fields] == fields
    assert codes(prepared) == []
    assert sorted(pdfium_text(prepared.file).split()) == sorted(left.split())


def test_a_foreign_name_in_a_line_from_left_to_right() -> None:
    data, _, _ = html_to_pdf("<p>Name {{שם פרטי;type=date}} here")
    assert fields_of(data) == [("שם פרטי", "date", None)]


def in_pieces(text: str, later: str, transform: str = "1 0 0 1 72 700") -> bytes:
    """A line in Courier whose characters ``later`` are drawn after all others, as if they came from another font."""
    pdf = pikepdf.new()
    pieces = [(match.start(), match[0]) for match in re.finditer(f"[{later}]+|[^{later}]+", text)]
    pieces.sort(key=lambda piece: piece[1][0] in later)
    shown = "".join(f"1 0 0 1 {6 * start} 0 Tm ({piece}) Tj " for start, piece in pieces)
    content = f"q {transform} cm BT /F9 10 Tf {shown} ET Q"
    pdf_files.add_page(pdf, content, fonts={"/F9": pdf_files.standard_font(pdf, "Courier")})
    return pdf_files.saved(pdf)


@pytest.mark.parametrize(
    "transform", ["1 0 0 1 72 700", "0 1 -1 0 300 60", "0 -1 1 0 300 700", "0.966 0.259 -0.259 0.966 40 300"]
)
@pytest.mark.parametrize("later", ["A-Z", "{}", "a-z", "I", "=;"])
def test_tags_are_read_as_they_stand_whatever_was_drawn_first(transform: str, later: str) -> None:
    prepared = take(in_pieces("IN {{In First;type=date;role=The Buyer}} OR {{Ill;role=B}} END", later, transform))
    found = [(field.name, str(field.type), field.role) for field in prepared.fields]
    assert found == [("In First", "date", "The Buyer"), ("Ill", "text", "B")]
    assert codes(prepared) == []
    assert sorted("".join(pdfium_text(prepared.file).split())) == sorted("INOREND")


@pytest.mark.parametrize("transform", ["1 0 0 1 60 600", "0 1 -1 0 300 100"])
@pytest.mark.parametrize("spacing", [2.4, 4, 8])
def test_loosely_set_letters_are_words_where_the_gaps_are_wider(spacing: float, transform: str) -> None:
    """As browsers write ``letter-spacing``, a glyph at a time: pdfium makes a blank of each gap, those between words, too."""
    wide = {" ": 250, ";": 278, "=": 564, "B": 667, "O": 722, "T": 611, "{": 480, "}": 480} | dict(
        zip("acefhilortuwy", (444, 444, 444, 333, 500, 278, 278, 500, 333, 278, 500, 722, 500), strict=True)
    )
    shown = " ".join(
        f"({letter}) Tj {wide[letter] * 0.012 + spacing:.3f} 0 Td"
        for letter in "{{Office affiliate two;role=The Buyer}}"
    )
    content = f"BT /F2 12 Tf {transform} Tm {shown} ET"
    prepared = take(pdf_files.document(content))
    assert [(field.name, field.role) for field in prepared.fields] == [("Office affiliate two", "The Buyer")]
    assert not pdfium_text(prepared.file).strip()


def test_accents_stay_with_their_letters_and_the_braces_of_both_ends_go() -> None:
    data, _, _ = html_to_pdf("<p>Name {{לוֹם;type=date;role=קוֹנֶה}} here<p dir=rtl>{{B;type=text}}, {{ג;role=קונה}} אז")
    prepared = take(data)
    found = [(field.name, field.role) for field in prepared.fields]
    assert found == [("לוֹם", "קוֹנֶה"), ("B", None), ("ג", "קונה")]
    assert not set("{}") & set(pdfium_text(prepared.file))


# Fonts that do not tell what they draw


def shifted(font: Any, by: int) -> bytes:
    """Its /ToUnicode with every character moved."""
    source = font.ToUnicode.read_bytes().decode()
    return re.sub(r"<(\w{4})> <(\w{4})>", lambda m: f"<{m[1]}> <{int(m[2], 16) + by:04x}>", source).encode()


@pytest.mark.parametrize("wrong", ["missing", "private", "other letters"])
def test_fonts_without_a_true_map_of_characters(wrong: str, tmp_path: Path) -> None:
    pdf = pikepdf.new()
    font, encode = pdf_fonts.composite(pdf, to_unicode=wrong != "missing")
    if wrong != "missing":
        font.ToUnicode = pdf.make_stream(shifted(font, 0xE000 if wrong == "private" else 0x100))
    text = encode("x {{Name;type=date;role=Buyer}} y").hex()
    pdf_files.add_page(pdf, f"BT /F9 12 Tf 72 700 Td <{text}> Tj ET", fonts={"/F9": font})
    removed = assert_only_tags_are_gone(pdf_files.saved(pdf), {"{{Name;type=date;role=Buyer}}"}, tmp_path)
    assert [(field.name, field.role) for field in removed.fields] == [("Name", "Buyer")]
    assert codes(removed) == ["font_mended"]


def test_tags_of_signed_files_are_read_in_such_fonts_too() -> None:
    pdf = pikepdf.new()
    font, encode = pdf_fonts.composite(pdf, to_unicode=False)
    text = encode("{{Name;type=date}}").hex()
    pdf_files.add_page(pdf, f"BT /F9 12 Tf 72 700 Td <{text}> Tj ET", fonts={"/F9": font})
    data = pdf_files.signed(pdf_files.saved(pdf))
    prepared = take(data)
    assert prepared.file == data
    assert [field.name for field in prepared.fields] == ["Name"]
    assert codes(prepared) == ["signed", "tags_kept"]


def test_fonts_that_nobody_can_read_are_named() -> None:
    pdf = pikepdf.new()
    font, encode = pdf_fonts.composite(pdf, to_unicode=False)
    descriptor = font.DescendantFonts[0].FontDescriptor
    descriptor.FontFile2 = pdf.make_stream(b"no font program")
    font.BaseFont = Name("/ABCDEF+Secret")
    pdf_files.add_page(pdf, f"BT /F9 12 Tf 72 700 Td <{encode('{{A}}').hex()}> Tj ET", fonts={"/F9": font})
    [notice] = take(pdf_files.saved(pdf)).report
    assert notice.code == "unreadable_font"
    assert "“Secret”" in notice.message


@pytest.mark.parametrize("lies", ["shifted", "nothing"])
def test_simple_fonts_whose_map_of_characters_lies(lies: str) -> None:
    pdf = pikepdf.new()
    font, encode = pdf_fonts.shuffled_simple(pdf)
    known = [encode(character)[0] for character in pdf_fonts.CHARACTERS]
    rows = "\n".join(f"<{code:02x}> <{code + 0x100 if lies == 'shifted' else 0xFFFD:04x}>" for code in known)
    font.ToUnicode = pdf.make_stream(f"{len(known)} beginbfchar\n{rows}\nendbfchar".encode())
    text = encode("x {{Name;type=date;role=Buyer}} y").hex()
    pdf_files.add_page(pdf, f"BT /F9 12 Tf 72 700 Td <{text}> Tj ET", fonts={"/F9": font})
    prepared = take(pdf_files.saved(pdf))
    assert [(field.name, field.role) for field in prepared.fields] == [("Name", "Buyer")]
    assert set(codes(prepared)) == {"fonts_missing", "font_mended"}
    assert pdfium_text(prepared.file).split() == ["x", "y"]


@pytest.mark.parametrize("lies", [True, False])
def test_simple_fonts_whose_glyphs_have_no_names_are_named(lies: bool) -> None:
    pdf = pikepdf.new()
    font, encode = pdf_fonts.shuffled_simple(pdf)
    font.BaseFont = Name("/ABCDEF+Secret")
    font.Encoding.Differences = Array([33, *[Name(f"/g{number}") for number in range(len(pdf_fonts.CHARACTERS))]])
    if lies:
        rows = "\n".join(f"<{code:02x}> <e0{code:02x}>" for code in range(33, 127))
        font.ToUnicode = pdf.make_stream(f"94 beginbfchar\n{rows}\nendbfchar".encode())
    pdf_files.add_page(pdf, f"BT /F9 12 Tf 72 700 Td <{encode('{{A}}').hex()}> Tj ET", fonts={"/F9": font})
    report = take(pdf_files.saved(pdf)).report
    [notice] = [one for one in report if one.code == "unreadable_font"]
    assert "“Secret”" in notice.message


def test_ligatures_whose_bytes_were_swapped_and_radicals_are_the_letters_that_were_written() -> None:
    pdf = pikepdf.new()
    font, encode = pdf_fonts.composite(pdf)
    said = font.ToUnicode.read_bytes().replace(b"> <0023>", b"> <66006900>").replace(b"> <0025>", b"> <2f45>")
    font.ToUnicode = pdf.make_stream(said.replace(b"> <0026>", b"> <fb02>"))
    text = encode("x {{Of#ce;type=date;role=A%}} {{&at}} y").hex()
    pdf_files.add_page(pdf, f"BT /F9 12 Tf 72 700 Td <{text}> Tj ET", fonts={"/F9": font})
    prepared = take(pdf_files.saved(pdf))
    assert [(field.name, field.role) for field in prepared.fields] == [("Office", "A方"), ("flat", None)]
    assert codes(prepared) == ["font_mended"]


def test_maps_that_are_true_are_left_alone() -> None:
    pdf = pikepdf.new()
    font, encode = pdf_fonts.composite(pdf)
    pdf_files.add_page(pdf, f"BT /F9 12 Tf 72 700 Td <{encode('abc').hex()}> Tj ET", fonts={"/F9": font})
    before = font.ToUnicode.read_bytes()
    assert mend_fonts(pdf, document="x") == []
    assert font.ToUnicode.read_bytes() == before


def cid_font(pdf: pikepdf.Pdf, encoding: Any, ordering: Any) -> Any:
    descriptor = Dictionary(
        Type=Name.FontDescriptor, FontName=Name.Song, Flags=6, FontBBox=Array([0, -200, 1000, 900]), ItalicAngle=0, Ascent=880,
        Descent=-120, CapHeight=880, StemV=93,
    )  # fmt: skip
    descendant = Dictionary(
        Type=Name.Font, Subtype=Name.CIDFontType0, BaseFont=Name.Song, DW=1000, W=Array([1, 95, 500, 231, 325, 500, 814, 908, 500]),
        CIDSystemInfo=Dictionary(Registry=String("Adobe"), Ordering=String(ordering), Supplement=2),
        FontDescriptor=pdf.make_indirect(descriptor),
    )  # fmt: skip
    return pdf.make_indirect(
        Dictionary(
            Type=Name.Font, Subtype=Name.Type0, BaseFont=Name.Song, Encoding=Name(f"/{encoding}"),
            DescendantFonts=Array([pdf.make_indirect(descendant)]),
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("encoding", "ordering", "codec", "name"),
    [
        ("90ms-RKSJ-H", "Japan1", "cp932", "氏名"),
        ("UniJIS-UTF16-H", "Japan1", "utf-16-be", "氏名"),
        ("EUC-H", "Japan1", "euc-jp", "氏名"),
        ("GBK-EUC-H", "GB1", "gbk", "姓名"),
        ("ETen-B5-H", "CNS1", "big5", "姓名"),
        ("KSCms-UHC-H", "Korea1", "cp949", "이름"),
    ],
)
def test_the_predefined_encodings_of_east_asia(encoding: str, ordering: str, codec: str, name: str) -> None:
    pdf = pikepdf.new()
    text = f"x {{{{{name};type=date}}}} y".encode(codec).hex()
    pdf_files.add_page(pdf, f"BT /F9 12 Tf 72 700 Td <{text}> Tj ET", fonts={"/F9": cid_font(pdf, encoding, ordering)})
    removed = take(pdf_files.saved(pdf))
    assert [(field.name, str(field.type)) for field in removed.fields] == [(name, "date")]
    assert codes(removed) == ["fonts_missing"]
    assert pdfium_text(removed.file).split() == ["x", "y"]


def test_text_from_top_to_bottom_makes_fields_and_stays() -> None:
    pdf = pikepdf.new()
    text = "x {{氏名;type=date}} y".encode("utf-16-be").hex()
    pdf_files.add_page(
        pdf, f"BT /F9 12 Tf 300 700 Td <{text}> Tj ET", fonts={"/F9": cid_font(pdf, "UniJIS-UCS2-V", "Japan1")}
    )
    removed = take(pdf_files.saved(pdf))
    assert [field.name for field in removed.fields] == ["氏名"]
    assert codes(removed) == ["fonts_missing", "tag_not_removed"]


# The proof


def test_where_all_is_certain_no_page_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_second_look(*_: Any) -> bool:
        raise AssertionError("this page needs no second look")

    monkeypatch.setattr(removal, "_spoiled", lambda pages, result: pages and no_second_look())
    content = pdf_files.line("Name: {{A;type=text}} Date: {{B;type=date}} end") + pdf_files.line("{{C}}", y=600)
    data = pdf_files.document(content, "q 0.5 0 0 0.5 10 10 cm " + pdf_files.line("x {{D;type=text}} y") + " Q")
    removed = take(data)
    assert codes(removed) == []
    assert "{" not in pdfium_text(removed.file)


@pytest.mark.parametrize(
    "content",
    [
        pdf_files.line("x {{A;type=text}} y") + pdf_files.line("over", x=90),
        "/Span <</ActualText ({{A;type=text}})>> BDC " + pdf_files.line("{{A;type=text}}") + " EMC",
    ],
)
def test_in_doubt_the_page_is_read_again(content: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    look = removal._spoiled

    def look_and_note(pages: Any, result: Any) -> Any:
        looked.extend(pages)
        return look(pages, result)

    monkeypatch.setattr(removal, "_spoiled", look_and_note)
    take(pdf_files.document(content))
    assert len(looked) == 1


def test_glyphs_beside_and_behind_a_tag_stay_in_their_places_to_a_hundredth_of_a_point(tmp_path: Path) -> None:
    """With widths that are no round numbers, spacing, scaling and tags at either end."""
    parts = "BT /F2 11.3 Tf 0.37 Tc 1.7 Tw 93 Tz 61.3 655.7 Td [(Vor {{A;ty) 31 (pe=text}} mitte ) -17 (und {{B;type=date}} Ende.)] TJ ET"
    assert_only_tags_are_gone(pdf_files.document(parts), {"{{A;type=text}}", "{{B;type=date}}"}, tmp_path)


def test_a_hundred_tags_on_a_page(tmp_path: Path) -> None:
    content = "".join(
        pdf_files.line(
            f"Row {row}: {{{{R{row};type=text}}}} and {{{{D{row};type=date}}}} kept", y=750 - 14 * row, size=9
        )
        for row in range(50)
    )
    gone = {f"{{{{{kind}{row};type={word}}}}}" for row in range(50) for kind, word in (("R", "text"), ("D", "date"))}
    removed = assert_only_tags_are_gone(pdf_files.document(content), gone, tmp_path)
    assert len(removed.fields) == 100


def test_pages_as_pdfium_saves_them() -> None:
    """Every operator of its own, positions in Tm, as printing programs do."""
    source = pdf_files.document(pdf_files.line("Label {{A;type=text}} behind"))
    out = io.BytesIO()
    with pdfium.PdfDocument(source) as document:
        page = document[0]
        page.gen_content()
        document.save(out)
    assert fields_of(out.getvalue()) == [("A", "text", None)]
