"""DOCX to PDF with the real LibreOffice in a real child: what gets in, what cannot get out, what fields inherit."""

import io
import re
import socket
import struct
import subprocess
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import docx.opc.oxml as opc_oxml
import docx.oxml as docx_oxml
import pikepdf
import pypdfium2 as pdfium
import pytest
from docx import Document
from fontTools.ttLib import TTFont
from lxml import etree

from contracts.errors import ServiceError
from services.rendering.children.pool import ChildPool, JobFailed
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.docx.fonts import AS_WIDE
from services.rendering.jobs.docx.preparing import prepare_docx
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.text.fonts import OWN_FOLDER
from services.rendering.protocol.messages import CONVERT, OneFile, Prepared
from tests.support.files.docx_files import WORD, docx, paragraph, relationship, run, table, text_box, unzipped, zipped

OFFICE = Path("/usr/lib/libreoffice/program")


def office(folder: Path, environment: dict[str, str] | None = None, **more: Any) -> ChildPool:
    return ChildPool(
        size=1,
        warm=0,
        memory=1536 * 2**20,
        tasks="services.rendering.children.office",
        environment={"TMPDIR": str(folder), "OFFICE_DIR": str(OFFICE), **(environment or {})},
        **more,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("office")


@pytest.fixture(scope="module")
def renderer(folder: Path) -> Iterator[Renderer]:
    pools = ChildPool(size=1).start(), office(folder)
    yield Renderer(*pools, most_bytes=2**24, most_pages=100)
    for pool in pools:
        pool.close()


def made(renderer: Renderer, *body: str, variables: dict[str, Any] | None = None, **more: Any) -> Prepared:
    return renderer.prepare_docx(docx(*body, **more), "letter", variables, remove_tags=True)


def texts(data: bytes) -> list[str]:
    with pdfium.PdfDocument(data) as document:
        return [page.get_textpage().get_text_range().strip() for page in document]


def tag(text: str, look: str = "", **more: str) -> str:
    return paragraph(run(text, look), **more)


def font(name: str, half: int | None = None) -> str:
    return f'<w:rFonts w:ascii="{name}" w:hAnsi="{name}"/>' + (f'<w:sz w:val="{half}"/>' if half else "")


def test_pages_of_text_with_header_footer_footnote_table_and_box(renderer: Renderer) -> None:
    breaking = '<w:r><w:br w:type="page"/></w:r>'
    note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    prepared = made(
        renderer,
        paragraph("Dear [[name]]", note),
        table(["[[for:rows]][[row]]", "x[[end]]"]),
        paragraph(breaking, "Second", text_box(paragraph("boxed [[name]]"))),
        variables={"name": "Ana Ray", "rows": ["r1", "r2"]},
        header=paragraph("Head of [[name]]"),
        footer=paragraph("Foot"),
        footnotes={2: paragraph("Noted by [[name]]")},
    )
    first, second = texts(prepared.file)
    for words in ("Head of Ana Ray", "Dear Ana Ray", "r1", "r2", "Noted by Ana Ray", "Foot"):
        assert words in first
    for words in ("Head of Ana Ray", "Second", "boxed Ana Ray", "Foot"):
        assert words in second
    assert [(round(page.width), round(page.height)) for page in prepared.pages] == [(595, 842)] * 2
    assert sorted(prepared.variables) == ["name", "rows"]


def test_emoji_and_signs_are_drawn_whatever_fonts_are_installed(tmp_path: Path) -> None:
    """LibreOffice prefers a font of coloured pictures, where there is one, and draws nothing for it."""
    (shared := tmp_path / "data" / "fonts").mkdir(parents=True)
    (shared / "NotoColorEmoji.ttf").symlink_to(OWN_FOLDER / "NotoColorEmoji.ttf")
    (folder := tmp_path / "work").mkdir()
    installed = {"XDG_DATA_HOME": str(shared.parent), "FONT_DIRS": f"{shared}:/usr/share/fonts"}
    pools = ChildPool(size=1).start(), office(folder, environment=installed)
    try:
        prepared = made(Renderer(*pools, most_bytes=2**24, most_pages=10), paragraph(run("✔ 😀")))
    finally:
        for pool in pools:
            pool.close()
    with pikepdf.open(io.BytesIO(prepared.file)) as pdf:
        used = {str(font.BaseFont) for font in pdf.pages[0].Resources.Font.values()}
    assert used
    assert not [name for name in used if "Color" in name]


def test_fields_inherit_family_size_and_alignment_and_say_otherwise(renderer: Renderer) -> None:
    center, right = '<w:jc w:val="center"/>', '<w:jc w:val="right"/>'
    prepared = made(
        renderer,
        tag("{{A}}"),
        tag("{{B;type=date}}", font("Arial", 28), properties=center),
        tag("{{C;type=number}}", font("Courier New", 17), properties=right),
        tag("{{D;font=Courier;font_size=9;align=left}}", font("Arial", 40), properties=center),
        tag("{{E}}", properties='<w:pStyle w:val="Inner"/>'),
        tag("{{F}}", font("Calibri")),
        tag("{{G}}", properties='<w:pStyle w:val="Inner"/><w:jc w:val="both"/>'),
        paragraph(
            run("Sign: {", "<w:b/>"), run("{H;ty"), run("pe=sign", "<w:i/>"), run("ature;role=Buyer}"), run("} thanks")
        ),
    )
    found = {field.name: field.preferences for field in prepared.fields}
    assert found == {
        "A": {"font": "Times", "font_size": 12},
        "B": {"font": "Helvetica", "font_size": 14, "align": "center"},
        "C": {"font": "Courier", "font_size": 8.5, "align": "right"},
        "D": {"font": "Courier", "font_size": 9, "align": "left"},
        "E": {"font": "Times", "font_size": 12, "align": "center"},
        "F": {"font_size": 12},
        "G": {"font": "Times", "font_size": 12},
        "H": {"font": "Times", "font_size": 12},
    }
    signature = next(field for field in prepared.fields if field.name == "H")
    assert (signature.type, signature.role) == ("signature", "Buyer")
    assert texts(prepared.file) == ["Sign:  thanks"] or texts(prepared.file)[0].split() == ["Sign:", "thanks"]


def test_in_a_paragraph_from_right_to_left_left_is_where_lines_begin() -> None:
    body = tag("{{F}}", properties='<w:bidi/><w:jc w:val="left"/>')
    ready = prepare_docx(docx(body), None, name="x", most_bytes=2**24)
    assert [(one.text, one.align) for one in ready.tags] == [("F", "right")]


def test_tags_in_lines_from_right_to_left(renderer: Renderer) -> None:
    bidi = "<w:bidi/>"
    prepared = made(
        renderer,
        *[paragraph("A page with so much text that it is clear in which direction its lines run.")] * 5,
        tag("{{Full name;type=number}}", properties=bidi),
        tag("{{First field}} and {{Second field}}", properties=bidi),
        paragraph("{{Left;type=date}}"),
    )
    assert {(field.name, field.type, field.preferences.get("align")) for field in prepared.fields} == {
        ("Full name", "number", "right"), ("First field", "text", "right"), ("Second field", "text", "right"),
        ("Left", "date", None),
    }  # fmt: skip
    assert texts(prepared.file)[0].splitlines()[5:][0].strip() == "and"


@pytest.mark.parametrize(
    ("text", "fields", "properties"),
    [
        (
            "{{Подпись;type=signature;role=Покупатель}} {{Имя;role=Продавец}}",
            [("Подпись", "signature", "Покупатель"), ("Имя", "text", "Продавец")],
            "",
        ),
        ("Όνομα: {{Υπογραφή;type=date;role=Αγοραστής}} τέλος", [("Υπογραφή", "date", "Αγοραστής")], ""),
        (
            "שלום {{שם;type=date;role=קונה}} עולם, {{B;type=text}}",
            [("שם", "date", "קונה"), ("B", "text", None)],
            "<w:bidi/>",
        ),
        (
            "مرحبا {{الاسم;type=signature;role=المشتري}} بالعالم، {{ب;type=date}}",
            [("الاسم", "signature", "المشتري"), ("ب", "date", None)],
            "<w:bidi/>",
        ),
        ("Name {{שם פרטי;type=date;role=קונה}} here", [("שם פרטי", "date", "קונה")], ""),
    ],
)
@pytest.mark.parametrize("name", ["Cambria", "Arial"])
def test_tags_in_letters_that_the_font_does_not_have(
    renderer: Renderer, name: str, text: str, fields: list[tuple[str, str, str | None]], properties: str
) -> None:
    """LibreOffice draws them first, from another font; so does its own PDF, of which nobody knows what was typed."""
    data = docx(tag(text, font(name), properties=properties))
    assert renderer._office is not None
    pdf = renderer._office.run(CONVERT, OneFile(data)).data
    for prepared in (
        renderer.prepare_docx(data, "letter", None, remove_tags=True),
        renderer.prepare_pdf(pdf, "letter", remove_tags=True, flatten=False),
    ):
        assert [(field.name, str(field.type), field.role) for field in prepared.fields] == fields
        assert {notice.code for notice in prepared.report} <= {"fonts_substituted", "fonts_replaced"}
        assert not set("{};=") & set(texts(prepared.file)[0])


def test_the_same_tag_on_each_page_and_in_differently_set_paragraphs(renderer: Renderer) -> None:
    breaking = paragraph('<w:r><w:br w:type="page"/></w:r>')
    right = '<w:jc w:val="right"/>'
    prepared = made(
        renderer, paragraph("one"), breaking, paragraph("two"), header=tag("{{I;type=initials}}", properties=right)
    )
    (field,) = prepared.fields
    assert [area.page for area in field.areas] == [1, 2]
    assert field.preferences["align"] == "right"
    assert all(area.x > 0.5 for area in field.areas)


def test_values_make_no_fields_whatever_braces_they_have(renderer: Renderer) -> None:
    prepared = made(
        renderer,
        paragraph("{{Sign;type=signature}}"),
        paragraph("[[a]]"),
        paragraph("{[[b]]} and {{Open"),
        paragraph("[[c]]"),
        paragraph("[[d]] [[[[e]]]]"),
        variables={
            "a": "{{Sign;type=signature}} {{X;type=signature;role=Other}}",
            "b": "{Y}",
            "c": "x}} [[a]]",
            "d": "<p><b>{</b>{Z}<b>}</b></p>",
            "e": "a",
        },
    )
    assert [(field.name, len(field.areas)) for field in prepared.fields] == [("Sign", 1)]
    (text,) = texts(prepared.file)
    for words in ("{{Sign;type=signature}} {{X;type=signature;role=Other}}", "{{Y}}", "x}} [[a]]", "{{Z}}", "[[a]]"):
        assert words in text
    assert [notice.code for notice in prepared.report] == ["unclosed_tag"]


@pytest.mark.parametrize(
    "value", ["\u202e1,000", "<b>&#x202e;1,000</b>", "\u20671,000", "\u202b\u202e\u20661,000", "\u202dשלום"]
)
def test_a_value_turns_nothing_that_stands_behind_it(renderer: Renderer, value: str) -> None:
    body = paragraph("Pay [[amount]] by {{Date;type=date;role=Buyer}} at the latest")
    prepared = made(renderer, body, variables={"amount": value})
    assert [(field.name, field.role) for field in prepared.fields] == [("Date", "Buyer")]
    words = "שלום" if "ש" in value else "1,000"
    assert texts(prepared.file)[0].split() == ["Pay", words, "by", "at", "the", "latest"]


def test_tags_come_and_go_with_conditions_and_loops(renderer: Renderer) -> None:
    body = [
        paragraph("[[for:parties]]"),
        paragraph("{{Signature of [[party.name]];type=signature;role=[[party.role]]}}"),
        paragraph("[[end]]"),
        paragraph("[[if:witness]]{{Witness;type=signature;role=Witness}}[[end]]"),
    ]
    data = {"parties": [{"name": "Ana", "role": "Buyer"}, {"name": "Bo", "role": "Seller"}]}
    prepared = made(renderer, *body, variables=data)
    assert [(field.name, field.role) for field in prepared.fields] == [
        ("Signature of Ana", "Buyer"),
        ("Signature of Bo", "Seller"),
    ]


# --- what Word documents have besides text -----------------------------------------------------------------------------------


def control(content: str, properties: str = "") -> str:
    """A content control."""
    return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{content}</w:sdtContent></w:sdt>"


def test_content_controls_show_what_is_in_them(renderer: Renderer) -> None:
    """In a paragraph, around paragraphs, rows and cells; and what Word shows in those that are chosen from."""
    extension = 'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
    rows = table(["[[for:rows]][[row]]", "-[[end]]"]).replace("<w:tr>", "<w:sdt><w:sdtContent><w:tr>")
    cell = (
        table(["CELL", "beside"])
        .replace("<w:tc>", "<w:sdt><w:sdtContent><w:tc>", 1)
        .replace("</w:tc>", "</w:tc></w:sdtContent></w:sdt>", 1)
    )
    prepared = made(
        renderer,
        paragraph("Inline ", control(run("{{Na") + run("me;type=date}} [[x]]")), " on"),
        control(paragraph("{{Block;type=signature;role=Buyer}} of [[x]]") + paragraph("second")),
        rows.replace("</w:tr>", "</w:tr></w:sdtContent></w:sdt>"),
        cell.replace("CELL", "{{Cell;type=text}} in"),
        table(["alone", "right"]).replace(paragraph("alone"), control(paragraph("alone"))),
        paragraph("Box: ", control(run("☒"), f'<w14:checkbox {extension}><w14:checked w14:val="1"/></w14:checkbox>')),
        paragraph("List: ", control(run("Two"), '<w:dropDownList><w:listItem w:displayText="One" w:value="1"/></w:dropDownList>')),
        paragraph("Day: ", control(run("1 May"), '<w:date w:fullDate="2026-05-01T00:00:00Z"/>')),
        variables={"x": "X", "rows": ["r1", "r2"]},
    )  # fmt: skip
    text = " ".join(texts(prepared.file)[0].split())
    for words in (
        "Inline X on",
        "of X second",
        "r1 - r2 -",
        "in beside",
        "alone right",
        "Box: ☒",
        "List: Two",
        "Day: 1 May",
    ):
        assert words in text
    assert [(field.name, str(field.type), field.role) for field in prepared.fields] == [
        ("Name", "date", None),
        ("Block", "signature", "Buyer"),
        ("Cell", "text", None),
    ]


def test_a_text_box_that_is_there_twice_is_one(renderer: Renderer) -> None:
    """Word writes a box as a drawing, and for Word of old as VML."""
    inside = paragraph("{{In a box;type=date;role=Buyer}} of [[x]]")
    shape = "http://schemas.microsoft.com/office/word/2010/wordprocessingShape"
    drawing = "http://schemas.openxmlformats.org/drawingml/2006"
    box = (
        f'<w:r><mc:AlternateContent><mc:Choice Requires="wps" xmlns:wps="{shape}" xmlns:wp="{drawing}/wordprocessingDrawing" xmlns:a="{drawing}/main">'
        '<w:drawing><wp:anchor distT="0" distB="0" distL="0" distR="0" simplePos="0" relativeHeight="2" behindDoc="0" locked="0" layoutInCell="1" allowOverlap="1">'
        '<wp:simplePos x="0" y="0"/><wp:positionH relativeFrom="column"><wp:posOffset>1000000</wp:posOffset></wp:positionH>'
        '<wp:positionV relativeFrom="paragraph"><wp:posOffset>500000</wp:posOffset></wp:positionV><wp:extent cx="3000000" cy="900000"/>'
        '<wp:effectExtent l="0" t="0" r="0" b="0"/><wp:wrapNone/><wp:docPr id="1" name="Box"/><wp:cNvGraphicFramePr/><a:graphic>'
        f'<a:graphicData uri="{shape}"><wps:wsp><wps:cNvSpPr txBox="1"/><wps:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="3000000" cy="900000"/></a:xfrm>'
        f'<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></wps:spPr><wps:txbx><w:txbxContent>{inside}</w:txbxContent></wps:txbx><wps:bodyPr/></wps:wsp>'
        f"</a:graphicData></a:graphic></wp:anchor></w:drawing></mc:Choice><mc:Fallback>{text_box(inside)[5:-6]}</mc:Fallback></mc:AlternateContent></w:r>"
    )
    prepared = made(renderer, paragraph("Text ", box), variables={"x": "X"})
    assert " ".join(texts(prepared.file)[0].split()) == "Text of X"
    (field,) = prepared.fields
    assert (field.name, field.role, len(field.areas)) == ("In a box", "Buyer", 1)
    assert field.areas[0].x > 0.2


def test_east_asian_and_vertical_text(renderer: Renderer) -> None:
    """Across with full-width signs and ruby; a section from top to bottom; cells turned to both sides."""
    mincho = '<w:rFonts w:ascii="Noto Serif CJK JP" w:hAnsi="Noto Serif CJK JP" w:eastAsia="Noto Serif CJK JP"/><w:sz w:val="21"/>'
    ruby = (
        f"<w:r><w:ruby><w:rubyPr/><w:rt>{run('かん')}</w:rt><w:rubyBase>{run('漢', mincho)}</w:rubyBase></w:ruby></w:r>"
    )
    across = made(
        renderer,
        paragraph(run("甲方：{{签字;type=signature;role=甲方}}　乙方：{{姓名;role=乙方}}", mincho)),
        paragraph(ruby, run("字", mincho)),
    )
    assert [(field.name, field.role, field.preferences["font_size"]) for field in across.fields] == [
        ("签字", "甲方", 10.5),
        ("姓名", "乙方", 10.5),
    ]
    assert "甲方：" in texts(across.file)[0]
    assert {"かん", "漢", "字"} <= set(texts(across.file)[0].replace("かん", " かん ").replace("漢", " 漢 ").split())

    parts = unzipped(
        docx(
            paragraph(run("縦書きの契約書 {{署名;type=signature;role=買主}} 以上", mincho)),
            paragraph(run("氏名 {{氏名}}", mincho)),
        )
    )
    parts["word/document.xml"] = parts["word/document.xml"].replace(
        b"</w:sectPr>", b'<w:textDirection w:val="tbRl"/></w:sectPr>'
    )
    down = renderer.prepare_docx(zipped(parts), "letter", {}, remove_tags=True)
    (first, second) = (field.areas[0] for field in down.fields)
    assert [(field.name, field.role) for field in down.fields] == [("署名", "買主"), ("氏名", None)]
    assert second.x < first.x, "lines follow from right to left"
    assert all(area.h * 842 > 30 > 20 > area.w * 595 for area in (first, second)), "as long as the tags"
    assert "".join(texts(down.file)[0].split()) == "縦書きの契約書以上氏名"

    high = table(["UP", "DOWN"]).replace("<w:tr>", '<w:tr><w:trPr><w:trHeight w:val="6000"/></w:trPr>')
    for word, direction in (("UP", "btLr"), ("DOWN", "tbRl")):
        start, _, rest = high.partition(f'</w:tcPr><w:p><w:r><w:t xml:space="preserve">{word}')
        high = f'{start}<w:textDirection w:val="{direction}"/></w:tcPr><w:p><w:r><w:t xml:space="preserve">{{{{{word};type=date;role=B}}}}{rest}'
    turned = made(renderer, high)
    assert sorted((field.name, str(field.type), field.role) for field in turned.fields) == [
        ("DOWN", "date", "B"),
        ("UP", "date", "B"),
    ]
    assert texts(turned.file)[0] == ""
    assert all(area.h * 842 > 60 > 20 > area.w * 595 for field in turned.fields for area in field.areas)


@cache
def brought_along(name: str, *, kind: str = "font") -> bytes:
    """A document in a font of its own by this name, in which 1 looks like 9."""
    opened = TTFont("/usr/share/fonts/truetype/liberation/LiberationMono-Regular.ttf")
    for record in opened["name"].names:
        if record.nameID in (1, 4, 6, 16):
            record.string = name.replace(" ", "") if record.nameID == 6 else name
    for characters in opened["cmap"].tables:
        characters.cmap[ord("1")] = characters.cmap[ord("9")]
    output = io.BytesIO()
    opened.save(output)
    data, key = bytearray(output.getvalue()), uuid.UUID("1DB42AE0-4D42-4B9A-9E4C-0F2A3B4C5D6E")
    for place in range(32):  # ISO/IEC 29500-1, 17.8.1
        data[place] ^= key.bytes[15 - place % 16]
    office_names = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    fonts = (
        f'<w:fonts xmlns:w="{WORD}" xmlns:r="{office_names}"><w:font w:name="{name}">'
        f'<w:embedRegular r:id="f" w:fontKey="{{{str(key).upper()}}}"/></w:font></w:fonts>'
    )
    links = unzipped(docx(relationships=relationship(kind, "fonts/font1.odttf", id_="f")))[
        "word/_rels/document.xml.rels"
    ]
    parts = unzipped(
        docx(
            paragraph(run("Pay 1,000 {{Sign;type=date}}", font(name))),
            relationships=relationship("fontTable", "fontTable.xml"),
            parts={"word/fontTable.xml": fonts.encode(), "word/_rels/fontTable.xml.rels": links.replace(b"own1", b"none"), "word/fonts/font1.odttf": bytes(data)},
        )
    )  # fmt: skip
    odd = b'<Default Extension="odttf" ContentType="application/vnd.openxmlformats-officedocument.obfuscatedFont"/><Default '
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(b"<Default ", odd, 1)
    return zipped(parts)


def fonts_of(data: bytes) -> set[str]:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        return {str(one.BaseFont).partition("+")[2] for page in pdf.pages for one in page.resources.Font.values()}


def test_fonts_that_are_embedded_in_the_document_are_used(renderer: Renderer) -> None:
    prepared = renderer.prepare_docx(brought_along("Our Own"), "letter", {}, remove_tags=True)
    assert fonts_of(prepared.file) == {"OurOwn"}
    assert [field.name for field in prepared.fields] == ["Sign"]
    assert prepared.report == []


@pytest.mark.parametrize(
    ("name", "kind"), [("Arial", "font"), ("Times New Roman", "font"), ("Arial", "image"), ("../Arial", "font")]
)
def test_no_document_is_set_in_the_fonts_of_another(renderer: Renderer, name: str, kind: str) -> None:
    """LibreOffice keeps fonts until it ends: where it stays warm, the next document would be drawn with them."""
    plain = docx(*[paragraph(run("Pay 1,000", font(one))) for one in (name.strip("./"), name, "Liberation Serif")])
    before = renderer.prepare_docx(plain, "letter", {}, remove_tags=True)
    renderer.prepare_docx(brought_along(name, kind=kind), "letter", {}, remove_tags=True)
    after = renderer.prepare_docx(plain, "letter", {}, remove_tags=True)
    assert fonts_of(after.file) == fonts_of(before.file) <= {"LiberationSans", "LiberationSerif"}


def test_fonts_that_are_not_here_are_named_with_what_stands_for_them(renderer: Renderer) -> None:
    def told(*fonts: str, text: str = "words") -> list[tuple[str, str]]:
        look = '<w:rFonts w:ascii="{0}" w:hAnsi="{0}" w:eastAsia="{0}"/>'
        prepared = made(renderer, *[paragraph(run(text, look.format(name))) for name in fonts])
        return [(notice.code, notice.message.partition(": ")[2].partition(". ")[0]) for notice in prepared.report]

    assert told("Liberation Sans", "Noto Sans") == []
    assert told("Calibri", "Cambria", "Arial", "Times New Roman", "Courier New", "Arial Narrow") == [
        (
            "fonts_substituted",
            "Calibri in Carlito, Cambria in Caladea, Arial in Liberation Sans, Times New Roman in Liberation Serif, Courier New in Liberation Mono, Arial Narrow in Liberation Sans Narrow",
        )
    ]
    assert told("Garamond", "Arial") == [
        ("fonts_substituted", "Arial in Liberation Sans"),
        ("fonts_replaced", "Garamond"),
    ]
    assert told("SimSun", text="甲方") == [("fonts_replaced", "SimSun")]
    assert told("x" * 500)[0] == ("fonts_replaced", "x" * 60)


@pytest.mark.parametrize(
    ("name", "instead"), [(name, instead) for name, instead in AS_WIDE.items() if "Light" not in name]
)
def test_what_stands_for_a_font_of_word_is_as_wide(name: str, instead: str) -> None:
    """It is installed: fontconfig, which LibreOffice asks, knows it by the name that the report gives."""
    found = subprocess.run(["fc-match", "--format=%{family}", name], check=True, capture_output=True, text=True).stdout
    assert instead in found


def test_paragraphs_rows_and_cells_that_were_deleted_are_gone(renderer: Renderer) -> None:
    change = 'w:id="1" w:author="A" w:date="2026-01-01T00:00:00Z"'

    def mark(kind: str) -> str:
        return f"<w:rPr><w:{kind} {change}/></w:rPr>"

    gone = f"<w:del {change}><w:r><w:delText>gone</w:delText></w:r></w:del>"
    body = [
        paragraph("One ", properties=mark("del")),
        paragraph("and ", properties=mark("del")),
        paragraph("two."),
        paragraph(gone, properties=mark("del")),
        paragraph(f"<w:moveFrom {change}>{run('moved')}</w:moveFrom>", properties=mark("moveFrom")),
        paragraph("three", properties=mark("ins")),
        paragraph(gone, properties=mark("del")),
        table(["a", "b"], ["c", "d"]).replace("<w:tr>", f"<w:tr><w:trPr><w:del {change}/></w:trPr>", 1),
        table(["e", "f"]).replace("</w:tcPr>", f"<w:cellDel {change}/></w:tcPr>", 1),
        table(["whole", "table"]).replace("<w:tr>", f"<w:tr><w:trPr><w:del {change}/></w:trPr>"),
        paragraph("end", f"<w:moveTo {change}>{run(' moved')}</w:moveTo>", properties=mark("moveTo")),
    ]
    prepared = made(renderer, *body)
    opened = Document(io.BytesIO(prepare_docx(docx(*body), None, name="x", most_bytes=2**24).file))
    assert [one.text for one in opened.paragraphs] == ["One and two.", "three", "end moved"]
    assert " ".join(texts(prepared.file)[0].split()) == "One and two. three c d f end moved"
    assert [notice.code for notice in prepared.report] == ["revisions_accepted"]


# --- what does not get in, and what does not get out ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"%PDF-1.7", "not a DOCX"),
        (b"\xd0\xcf\x11\xe0" + bytes(600), "password-protected, or in the format of Word 97"),
        (b"PK\x03\x04" + bytes(100), "damaged"),
        (zipped({"a.txt": b"x"}), "not a DOCX"),
        (zipped({**unzipped(docx(paragraph("x"))), "../../etc/cron.d/x": b"x"}), "leads out"),
        (zipped({**unzipped(docx(paragraph("x"))), "WORD/document.xml": b"x"}), "same name"),
        (zipped({f"p/{number}": b"" for number in range(2_001)}), "more than 2,000 parts"),
        (zipped({**unzipped(docx(paragraph("x"))), "big": bytes(65 * 2**20)}), "64 MB when unpacked"),
        (docx("<w:p/>" * 800_001), "too much text"),
        (docx("<w:b>" * 300 + "</w:b>" * 300), "cannot be read"),
        (docx(main_type="application/vnd.ms-word.document.macroEnabled.main+xml"), "macros"),
        (docx(main_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"), "not a Word"),
        (
            docx(relationships=relationship("aFChunk", "chunk.rtf"), parts={"word/chunk.rtf": b"{\\rtf1}"}),
            "neither HTML nor text",
        ),
        (docx(relationships=relationship("subDocument", "file:///etc/passwd", external=True)), "master document"),
    ],
)
def test_what_is_no_word_document_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(Refused, match=words):
        prepare_docx(data, None, name="x", most_bytes=2**24)


@pytest.mark.parametrize(
    "attack",
    [
        '<!DOCTYPE w [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE w [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>',
        '<!DOCTYPE w SYSTEM "http://127.0.0.1/x.dtd">',
    ],
)
def test_entities_are_refused(attack: str) -> None:
    parts = unzipped(docx(paragraph("&x;")))
    head, _, rest = parts["word/document.xml"].partition(b"?>")
    parts["word/document.xml"] = head + b"?>" + attack.encode() + rest.replace(b"&amp;x;", b"")
    with pytest.raises(Refused, match=r"document type declaration|cannot be read"):
        prepare_docx(zipped(parts), None, name="x", most_bytes=2**24)


LAUGHS = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "declared",
    [
        '<!DOCTYPE x [<!ENTITY i SYSTEM "file:///etc/hostname">]>',
        f'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">{LAUGHS}]>',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1/x.dtd">',
        '<!DOCTYPE x [<!ENTITY % p SYSTEM "http://127.0.0.1/p.dtd">%p;<!ENTITY i "">]>',
    ],
)
@pytest.mark.parametrize(
    "name",
    ["[Content_Types].xml", "_rels/.rels", "word/_rels/document.xml.rels", "word/styles.xml", "word/footnotes.xml"],
)
def test_no_part_with_a_document_type_gets_to_python_docx(name: str, declared: str, encoding: str) -> None:
    parts = unzipped(docx(paragraph("x"), footnotes={2: paragraph("y")}))
    words = parts[name].decode().rpartition("?>")[2].replace("><", "> <", 1)
    inside = words.replace(">", ' x="&i;">', 1) if "aaaa" in declared else words.replace("> <", ">&i;<", 1)
    parts[name] = f'<?xml version="1.0" encoding="{encoding}"?>{declared}{inside}'.encode(encoding)
    with pytest.raises(Refused, match=r"document type declaration|cannot be read"):
        prepare_docx(zipped(parts), None, name="x", most_bytes=2**24)


@pytest.mark.parametrize("parse", [docx_oxml.parse_xml, opc_oxml.parse_xml])
def test_the_parsers_of_python_docx_open_nothing_either(parse: Callable[[bytes], Any], tmp_path: Path) -> None:
    """They never see such a file (above); if they did, nothing would come of it."""
    secret = tmp_path / "secret"
    secret.write_text("the secret words")
    with _Listener() as listener:
        address = f"http://127.0.0.1:{listener.port}/x"
        for declared in (
            f'<!ENTITY i SYSTEM "{secret}">',
            f'<!ENTITY i SYSTEM "{address}">',
            f'<!ENTITY % p SYSTEM "{address}">%p;',
        ):
            try:
                root = parse(f"<!DOCTYPE x [{declared}]><x>&i;</x>".encode())
            except etree.XMLSyntaxError:
                continue
            assert "secret" not in "".join(str(text) for text in root.itertext() if isinstance(text, str))
        parse(f'<!DOCTYPE x SYSTEM "{address}"><x/>'.encode())
        assert not listener.asked
    for laughing in ("<x>&i;</x>", '<x y="&i;"/>'):
        grown = b""
        with suppress(etree.XMLSyntaxError):
            grown = etree.tostring(parse(f'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">{LAUGHS}]>{laughing}'.encode()))
        assert len(grown) < 10_000
    with pytest.raises(etree.XMLSyntaxError):
        parse(b"<x>" * 300 + b"</x>" * 300)


def test_what_python_docx_gets_is_what_the_check_wrote() -> None:
    """A type that is stated wrongly, a comment in the middle of a word, parts that nothing leads to, addresses that are written
    in another way."""
    parts = unzipped(docx(paragraph("{{Na", "me;type=date}}"), header=paragraph("Head")))
    types = parts["[Content_Types].xml"].replace(b"header+xml", b"styles+xml").replace(b"styles.xml", b"Styles.xml")
    document = parts["word/document.xml"].replace(b"me;type", b"m<!-- x -->e;t<?x y?>ype")
    links = parts["word/_rels/document.xml.rels"].replace(b'"header.xml"', b'"./../WORD/he%61der.xml"')
    more = {"word/unused.xml": b"<broken", "word/document.xml": document, "word/_rels/document.xml.rels": links}
    ready = prepare_docx(zipped({**parts, "[Content_Types].xml": types, **more}), None, name="x", most_bytes=2**24)
    assert [one.text for one in ready.tags] == ["Name;type=date"]
    assert "word/unused.xml" not in unzipped(ready.file)
    opened = Document(io.BytesIO(ready.file))
    assert opened.sections[0].header.paragraphs[0].text == "Head"
    assert opened.paragraphs[0].text == "{{Name;type=date}}"
    assert opened.styles["Inner"].base_style.name == "Middle"


def test_parts_that_refer_to_each_other_too_often_are_refused() -> None:
    links = "".join(relationship("image", "media/x.png", id_=f"i{number}") for number in range(5_001))
    with pytest.raises(Refused, match="5,000"):
        prepare_docx(docx(relationships=links, parts={"word/media/x.png": b"x"}), None, name="x", most_bytes=2**24)


def test_footnotes_and_endnotes_beside_each_other(renderer: Renderer) -> None:
    ends = f'<w:endnotes xmlns:w="{WORD}"><w:endnote w:id="3">{paragraph("End [[x]] {{City;role=Buyer}}")}</w:endnote></w:endnotes>'
    body = paragraph(
        "Text", *[f'<w:r><w:{kind}Reference w:id="{id_}"/></w:r>' for kind, id_ in (("footnote", 2), ("endnote", 3))]
    )
    prepared = made(
        renderer, body, variables={"x": "X"}, footnotes={2: paragraph("Foot [[x]] {{Sign;type=signature;role=Seller}}")},
        relationships=relationship("endnotes", "endnotes.xml"), parts={"word/endnotes.xml": ends.encode()},
    )  # fmt: skip
    text = " ".join(" ".join(texts(prepared.file)).split())
    assert ("Text" in text, "Foot X" in text, "End X" in text) == (True, True, True)
    assert sorted((field.name, str(field.type), field.role) for field in prepared.fields) == [
        ("City", "text", "Buyer"),
        ("Sign", "signature", "Seller"),
    ]


def test_nothing_is_fetched_and_no_file_is_read(renderer: Renderer, tmp_path: Path) -> None:
    """Every way that LibreOffice knows to load something, beside a listener that would notice."""
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret words")
    with _Listener() as listener:
        url = f"http://127.0.0.1:{listener.port}/x"
        fields = [
            f'INCLUDETEXT "{secret}"', f'INCLUDEPICTURE "{url}"', f'LINK Word.Document.8 "{secret}" ""',
            f'DDEAUTO "{secret}"', f'DATABASE \\d "{secret}"', "FILENAME \\p",
        ]  # fmt: skip
        complex_ = "".join(
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
            f"<w:r><w:instrText>{instruction[:4]}</w:instrText></w:r><w:r><w:instrText>{instruction[4:]}</w:instrText></w:r>"
            '<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>kept</w:t></w:r>'
            '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
            for instruction in fields
        )
        vml = f'<w:r><w:pict><v:shape id="s" style="width:9pt;height:9pt"><v:imagedata src="{url}" r:id="pic"/></v:shape></w:pict></w:r>'
        prepared = made(
            renderer,
            paragraph("begin", complex_, vml, f'<w:fldSimple w:instr=" INCLUDETEXT &quot;{secret}&quot; "><w:r><w:t>old</w:t></w:r></w:fldSimple>'),
            relationships=relationship("image", url, id_="pic", external=True)
            + relationship("attachedTemplate", url, id_="t", external=True)
            + relationship("oleObject", f"file://{secret}", id_="o", external=True)
            + relationship("image", f"../../../../..{secret}", id_="up"),
        )  # fmt: skip
        assert not listener.asked
    (text,) = texts(prepared.file)
    assert "secret" not in text
    assert text.count("kept") == len(fields)
    assert "old" in text
    assert {notice.code for notice in prepared.report} == {"external_image", "template_removed", "objects_removed"}


def test_the_kernel_keeps_libreoffice_from_the_rest(folder: Path, tmp_path: Path) -> None:
    """The same with the cleaning left out: the walls hold on their own."""
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret words")
    pool = office(folder)
    try:
        with _Listener() as listener:
            picture = relationship("image", f"http://127.0.0.1:{listener.port}/x.png", id_="pic", external=True)
            text = (
                '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
                f'<w:r><w:instrText> INCLUDETEXT "file://{secret}" </w:instrText></w:r>'
                '<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>old</w:t></w:r>'
                '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
            )
            vml = '<w:r><w:pict><v:shape id="s" style="width:9pt;height:9pt"><v:imagedata r:id="pic"/></v:shape></w:pict></w:r>'
            data = docx(paragraph("begin", text, vml), relationships=picture)
            pdf = pool.run(CONVERT, OneFile(data)).data
            assert not listener.asked
        assert "secret" not in texts(pdf)[0]
    finally:
        pool.close()


@cache
def damaged() -> dict[str, bytes]:
    """A document as it should be, and as files are that went through many hands."""
    whole = docx(paragraph("Place {{City;type=text;role=Buyer}}"), table(["a", "b"], ["c", "d"]))
    parts = unzipped(whole)
    files = {
        "whole": whole,
        "nothing": b"",
        "no zip": b"Dear Sir",
        "half": whole[: len(whole) // 2],
        "no end": whole[:-30],
    }
    files |= {f"without {name}": zipped({key: parts[key] for key in parts if key != name}) for name in parts}
    files |= {f"half of {name}": zipped({**parts, name: parts[name][: len(parts[name]) // 2]}) for name in parts}
    return files


@pytest.mark.parametrize("name", damaged())
def test_damaged_files_become_pages_or_a_clear_refusal(renderer: Renderer, name: str) -> None:
    try:
        prepared = renderer.prepare_docx(damaged()[name], "wild", None, remove_tags=True)
    except ServiceError as error:
        verdict = (error.status, error.message.startswith("The "))
    else:
        verdict = (422, len(prepared.pages) > 0)
    assert verdict == (422, True)


def test_tracked_changes_are_accepted_and_told(renderer: Renderer) -> None:
    change = 'w:id="1" w:author="A" w:date="2026-01-01T00:00:00Z"'
    prepared = made(
        renderer,
        paragraph("Pay ", f"<w:del {change}><w:r><w:delText>100</w:delText></w:r></w:del>", f"<w:ins {change}>{run('200')}</w:ins>"),
        paragraph(f"<w:ins {change}>{run('{{Na')}</w:ins>", "me;type=text}}"),
    )  # fmt: skip
    assert texts(prepared.file)[0].startswith("Pay 200")
    assert [field.name for field in prepared.fields] == ["Name"]
    assert [notice.code for notice in prepared.report] == ["revisions_accepted"]


def test_a_document_with_comments_is_shown_without_them(renderer: Renderer) -> None:
    body = paragraph(
        '<w:commentRangeStart w:id="0"/>', "{{Price;type=", '<w:commentRangeEnd w:id="0"/>',
        '<w:r><w:rPr><w:b/></w:rPr><w:commentReference w:id="0"/></w:r>', "number}} in [[currency]]",
    )  # fmt: skip
    comments = f'<w:comments xmlns:w="{WORD}"><w:comment w:id="0" w:author="A"><w:p><w:r><w:annotationRef/></w:r>{run("Too much {{Secret}} [[secret]]")}</w:p></w:comment></w:comments>'
    prepared = made(
        renderer, body, variables={"currency": "euros"}, parts={"word/comments.xml": comments.encode()},
        relationships=relationship("comments", "comments.xml"),
    )  # fmt: skip
    assert texts(prepared.file) == ["in euros"]
    assert [(field.name, field.type) for field in prepared.fields] == [("Price", "number")]
    assert [notice.code for notice in prepared.report] == ["comments_removed"]


@pytest.mark.parametrize(
    "reference",
    [
        '<w:r><w:commentReference w:id="7"/></w:r>',
        '<w:r><w:footnoteReference w:id="7"/></w:r>',
        '<w:r><w:endnoteReference w:id="7"/></w:r>',
        '</w:p><w:p><w:pPr><w:sectPr><w:headerReference w:type="default" r:id="gone"/></w:sectPr></w:pPr></w:p><w:p>',
        '</w:p><w:p><w:pPr><w:sectPr><w:footerReference w:type="default" r:id="gone"/></w:sectPr></w:pPr></w:p><w:p>',
    ],
)
def test_a_reference_to_what_is_not_there_does_no_harm(renderer: Renderer, reference: str) -> None:
    prepared = made(renderer, paragraph("Before ", reference, "after"), footer=paragraph("Foot"))
    assert " ".join(" ".join(texts(prepared.file)).split()).replace("Foot ", "") == "Before after Foot"


def test_a_document_that_includes_another_shows_its_text(renderer: Renderer) -> None:
    html = "<html><head><title>No</title><meta charset=utf-8></head><body><p>Grüße an [[name]]</p><table><tr><td>{{Sign;type=signature</td></tr></table><ul><li>one {{Place;type=text}}</ul><script>bad()</script><img src='http://127.0.0.1/x'></body></html>"
    types = docx(
        paragraph("Before"), '<w:altChunk r:id="first"/>', paragraph("Between"), '<w:altChunk r:id="second"/>', paragraph("After"),
        relationships=relationship("aFChunk", "first.htm", id_="first") + relationship("aFChunk", "second.txt", id_="second"),
        parts={"word/first.htm": html.encode(), "word/second.txt": "Zwei {{Date;type=date}}\r\nZeilen für [[name]]".encode()},
    )  # fmt: skip
    parts = unzipped(types)
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(
        b"<Override",
        b'<Default Extension="htm" ContentType="text/html"/><Default Extension="txt" ContentType="text/plain"/><Override',
        1,
    )
    prepared = renderer.prepare_docx(zipped(parts), "letter", {"name": "Ana {{X}}"}, remove_tags=True)
    words = "Before Grüße an Ana {{X}} {{Sign;type=signature • one Between Zwei Zeilen für Ana {{X}} After"
    assert " ".join(texts(prepared.file)[0].split()) == words
    assert [(field.name, field.type) for field in prepared.fields] == [("Place", "text"), ("Date", "date")]
    assert [notice.code for notice in prepared.report] == ["included_document", "unclosed_tag"]


def test_what_is_included_counts_as_text_of_the_document() -> None:
    names = [f"chunk{number}.txt" for number in range(2)]
    parts = unzipped(
        docx(
            relationships="".join(relationship("aFChunk", name, id_=name) for name in names),
            parts={f"word/{name}": b"x" * 13 * 2**20 for name in names},
        )
    )
    stated = b'<Default Extension="txt" ContentType="text/plain"/><Override'
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(b"<Override", stated, 1)
    with pytest.raises(Refused, match="too much text"):
        prepare_docx(zipped(parts), None, name="x", most_bytes=2**24)


def strict(data: bytes) -> bytes:
    """The same document as Word saves it as Strict Open XML: other names of everything (ISO/IEC 29500-1, annex A)."""
    parts = unzipped(data)
    for name, content in parts.items():
        if name.endswith((".xml", ".rels")) and name != "[Content_Types].xml":
            parts[name] = re.sub(
                rb"http://schemas.openxmlformats.org/(wordprocessingml|officeDocument|drawingml)/2006/",
                rb"http://purl.oclc.org/ooxml/\1/",
                content,
            )
    return zipped(parts)


def test_strict_open_xml_is_read_as_any_other(renderer: Renderer) -> None:
    address = "http://purl.oclc.org/ooxml/wordprocessingml/main"
    data = docx(
        paragraph("Dear [[name]]", '<w:r><w:footnoteReference w:id="2"/></w:r>', properties='<w:jc w:val="end"/>'),
        paragraph("{{Sign;type=signature;role=Buyer}}", properties='<w:ind w:start="72pt"/>'),
        paragraph(f"See {address}/"),
        header=paragraph("Head"), footnotes={2: paragraph("Note")},
    )  # fmt: skip
    prepared = renderer.prepare_docx(strict(data), "letter", {"name": "Ana"}, remove_tags=True)
    ordinary = renderer.prepare_docx(data, "letter", {"name": "Ana"}, remove_tags=True)
    assert texts(prepared.file) == texts(ordinary.file)
    assert f"See {address}/" in texts(prepared.file)[0]
    assert prepared.fields == ordinary.fields
    assert prepared.fields[0].areas[0].x > 0.2
    assert prepared.report == ordinary.report


def test_a_picture_bomb_is_refused() -> None:
    header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    data = zlib.compress(bytes(1_000))
    pixels = struct.pack(">I", len(data)) + b"IDAT" + data + struct.pack(">I", zlib.crc32(b"IDAT" + data))
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk)) + pixels
    data = docx(relationships=relationship("image", "media/x.png"), parts={"word/media/x.png": bomb})
    with pytest.raises(Refused, match="pixels"):
        prepare_docx(data, None, name="x", most_bytes=2**24)


# --- the child --------------------------------------------------------------------------------------------------------------


def test_libreoffice_stays_warm_and_starts_anew_after_so_many_or_when_it_died(tmp_path: Path) -> None:
    pool = office(tmp_path, jobs_per_child=2)
    data = docx(paragraph("x"))
    try:
        pool.run(CONVERT, OneFile(data))
        (child,) = pool._idle
        pool.run(CONVERT, OneFile(data))
        assert not pool._idle, "two jobs and it goes"
        pool.run(CONVERT, OneFile(data))
        (other,) = pool._idle
        assert other.process.pid != child.process.pid
        with pytest.raises(JobFailed):
            pool.run(CONVERT, OneFile(data), seconds=0.001)
        assert texts(pool.run(CONVERT, OneFile(data)).data) == ["x"]
    finally:
        pool.close()
    assert not list(tmp_path.iterdir()), "each child's folder goes with it"


def test_the_folder_goes_when_the_parent_died(tmp_path: Path) -> None:
    pool = office(tmp_path)
    pool.run(CONVERT, OneFile(docx(paragraph("x"))))
    (child,) = pool._idle
    child._connection.close()
    child.process.wait(timeout=120)
    assert [list(left.iterdir()) for left in tmp_path.iterdir()] == [[]], "it may not reach above its folder"
    pool.close()
    assert not list(tmp_path.iterdir())


def test_where_libreoffice_is_missing_the_refusal_says_so() -> None:
    pool = ChildPool(size=1, warm=0)
    with pytest.raises(ServiceError, match="LibreOffice is not installed") as caught:
        Renderer(pool, most_bytes=1, most_pages=1).prepare_docx(b"", "x", None, remove_tags=True)
    assert caught.value.status == 422


class _Listener:
    """A port that somebody might call."""

    def __enter__(self) -> "_Listener":
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.asked: list[Any] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def _accept(self) -> None:
        while True:
            try:
                self.asked.append(self._socket.accept())
            except OSError:
                return

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for connection, _ in self.asked:
            connection.close()
