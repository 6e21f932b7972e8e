"""HTML to PDF: pages of the right size, fields where their elements were laid out, nothing loaded from anywhere."""

import base64
import http.server
import io
import struct
import threading
import zlib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pikepdf
import pypdfium2 as pdfium
import pytest
from PIL import Image

from contracts.types import FieldType
from services.rendering.children.pool import ChildPool
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.html import convert
from services.rendering.jobs.html.assets import external_urls
from services.rendering.jobs.html.convert import html_to_pdf
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.previews.pages import draw_page
from services.rendering.jobs.text.fonts import OWN_FOLDER
from tests.support.rendering.intake import texts


def one_field(html: str) -> Any:
    data, [field], report = html_to_pdf(html)
    assert report == []
    return field, data


def picture(color: str = "red") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (8, 8), color).save(out, "PNG")
    return out.getvalue()


def has_color(data: bytes, page: int = 1) -> bool:
    low, high = Image.open(io.BytesIO(draw_page(data, page, 300))).convert("HSV").getchannel("S").getextrema()
    return low != high


# Pages


@pytest.mark.parametrize(
    ("size", "points"),
    [
        ("Letter", (612, 792)),
        ("legal", (612, 1008)),
        ("Tabloid", (792, 1224)),
        ("Ledger", (1224, 792)),
        ("A0", (2384, 3370)),
        ("A4", (595, 842)),
        ("A6", (298, 420)),
    ],
)
def test_sizes(size: str, points: tuple[int, ...]) -> None:
    data, _, _ = html_to_pdf("<p>x", size=size)
    with pdfium.PdfDocument(data) as document:
        assert tuple(round(length) for length in document.get_page_size(0)) == points


def test_an_unknown_size_is_refused() -> None:
    with pytest.raises(Refused, match="size must be one of Letter, Legal"):
        html_to_pdf("<p>x", size="B5")


def test_header_and_footer_are_on_every_page_and_count_them() -> None:
    numbers = 'Page <span class="pageNumber"></span> of <span class="totalPages"></span>'
    body = '<p>One</p><p style="break-before: page">Two</p>'
    data, _, _ = html_to_pdf(body, f"<style>b {{ color: red }}</style><b>{numbers}</b>", "<i>Foot</i>")
    assert [sorted(text.split()) for text in texts(data)] == [
        ["1", "2", "Foot", "One", "Page", "of"],
        ["2", "2", "Foot", "Page", "Two", "of"],
    ]
    assert has_color(data)


def test_header_and_footer_say_title_and_date_as_browsers_do() -> None:
    header = '<p class="title"></p>'
    footer = '<span class="date"></span> <span class=pageNumber></span>'
    data, _, _ = html_to_pdf("<title>My “own” \\title</title>x", header, footer, name="n", today=date(2026, 11, 2))
    assert sorted(texts(data)[0].split()) == sorted(["My", "“own”", "\\title", "x", "11/02/2026", "1"])
    data, _, _ = html_to_pdf("x <b class=date></b>", header, name='"; } * { display: none')
    assert texts(data)[0].split() == ["x", '";', "}", "*", "{", "display:", "none"]


def test_text_stays_clear_of_a_long_title() -> None:
    data, [field], _ = html_to_pdf(
        f"<title>{'long ' * 100}</title><text-field name=a></text-field>",
        "<div class=title style='font-size: 20px'></div>",
    )
    with pdfium.PdfDocument(data) as document:
        text = document[0].get_textpage()
        lowest = min(
            text.get_charbox(index)[1] for index in range(text.count_chars()) if text.get_text_range(index, 1).strip()
        )
    assert 792 - field.areas[0].y * 792 < lowest


def test_text_stays_clear_of_a_high_header() -> None:
    _, [field], _ = html_to_pdf("<text-field name=a></text-field>", '<div style="height: 200px">Header</div>')
    assert field.areas[0].y * 11 * 96 > 200


def test_metrics_of_the_usual_fonts() -> None:
    data, _, _ = html_to_pdf(
        '<p style="font-family: Arial">a<p style="font-family: Times New Roman">b<p><code>c</code>'
    )
    with pikepdf.open(io.BytesIO(data)) as pdf:
        fonts = {str(font.BaseFont) for font in pdf.pages[0].Resources.Font.values()}
    assert any("Liberation-Sans" in name for name in fonts)
    assert any("Liberation-Serif" in name for name in fonts)


# Fields


def test_a_field_is_where_its_element_was_laid_out() -> None:
    html = """<style>@page { margin: 0 } body { margin: 0 }</style>
        <div style="position: absolute; left: 102px; top: 264px">
        <text-field name="Full Name" role="Buyer" style="width: 204px; height: 52.8px; display: block"></text-field></div>"""
    field, _ = one_field(html)
    area = field.areas[0]
    assert (field.name, field.role, field.type, area.page) == ("Full Name", "Buyer", FieldType.TEXT, 1)
    assert (area.x, area.y, area.w, area.h) == pytest.approx((0.125, 0.25, 0.25, 0.05), abs=1e-4)


def test_a_field_is_drawn_where_its_area_says() -> None:
    """Its own background shows the place."""
    html = """<h1>Title</h1><p>Before <signature-field name=s style="background: red; width: 30mm; height: 9mm">
        </signature-field> after</p>"""
    field, data = one_field(html)
    drawn = Image.open(io.BytesIO(draw_page(data, 1, 1000)))
    bounds = drawn.getchannel("G").point(lambda value: 255 * (value < 20)).convert("1").getbbox()
    assert bounds is not None
    left, top, right, bottom = bounds
    red = drawn.crop((left, top, right, bottom))
    area = field.areas[0]
    box = (area.x * drawn.width, area.y * drawn.height)
    crop = drawn.crop(
        (round(box[0]) + 1, round(box[1]) + 1, round(box[0] + area.w * drawn.width) - 1, round(box[1]) + 8)
    )
    assert crop.getextrema() == ((255, 255), (0, 0), (0, 0))
    assert red.width > 0


def test_nothing_of_the_tag_is_left_in_the_file() -> None:
    field, data = one_field('<p>a <text-field name="Secret Name" title="Secret Title">Secret Text</text-field> b')
    assert field.title == "Secret Title"
    assert texts(data)[0].split() == ["a", "b"]
    with pikepdf.open(io.BytesIO(data)) as pdf:
        out = io.BytesIO()
        level = pikepdf.StreamDecodeLevel.generalized
        pdf.save(out, qdf=True, compress_streams=False, stream_decode_level=level)
    assert b"Secret" not in out.getvalue()
    assert b"field-" not in out.getvalue()


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<multi-select-field name=a options='x,y'></multi-select-field>", {"type": "multiple", "options": ["x", "y"]}),
        ("<select-field name=a><option>x</option><option value=1>y</option></select-field>", {"options": ["x", "y"]}),
        (
            "<select-field name=a><option>Doe, Jane</option><option>Roe</option></select-field>",
            {"options": ["Doe, Jane", "Roe"]},
        ),
        ("<radio-field name=a option='Doe, Jane'></radio-field>", {"options": ["Doe, Jane"], "type": "radio"}),
        ("<email-field name=a></email-field>", {"type": "text"}),
        ("<date-field name=a default='01/02/2026'></date-field>", {"default_value": "2026-01-02"}),
        (
            "<stamp-field name=a readonly=true position=background></stamp-field>",
            {"preferences": {"position": "background"}},
        ),
        (
            "<verification-field name=a method=qes></verification-field>",
            {"type": "verification", "preferences": {"method": "qes"}},
        ),
        (
            "<text-field name=a title=T description=D condition='B:x' pattern='[a-z]+' valign=top font-type=bold></text-field>",
            {
                "title": "T",
                "description": "D",
                "condition": "B:x",
                "validation": {"pattern": "[a-z]+"},
                "preferences": {"valign": "top", "font_type": "bold"},
            },
        ),
        ("<date-field name=a format=DD/MM/YYYY readonly></date-field>", {"type": "date", "readonly": True}),
        ("<datenow-field name=a></datenow-field>", {"type": "date", "default_value": "{{date}}"}),
        ("<checkbox-field name=a required=false></checkbox-field>", {"type": "checkbox", "required": False}),
        ("<number-field name=a min=1 max=5 font-size=9></number-field>", {"preferences": {"font_size": 9}}),
        ("<heading-field name=a>Big words</heading-field>", {"type": "heading", "default_value": "Big words"}),
        ("<cells-field name=a hidden=true></cells-field>", {"type": "cells", "preferences": {"hidden": True}}),
        ("<TEXT-FIELD NAME=a ROLE=b></TEXT-FIELD>", {"name": "a", "role": "b"}),
        (
            "<payment-field name=a price=10 currency=EUR></payment-field>",
            {"preferences": {"price": 10, "currency": "EUR"}},
        ),
    ],
)
def test_attributes(html: str, expected: dict[str, Any]) -> None:
    field, _ = one_field(html)
    for key, value in expected.items():
        assert getattr(field, key) == value
    assert field.areas[0].w > 0.01


def test_every_tag_has_a_size_of_its_own() -> None:
    """Those of the peer facts and every type there is."""
    words = "text signature initials date number image phone stamp file checkbox radio select multi-select payment verification"
    kinds = {*words.split(), "cells", "datenow", "heading", *(str(kind) for kind in FieldType)}
    _, fields, report = html_to_pdf("".join(f"<p><{kind}-field name={kind}></{kind}-field>" for kind in sorted(kinds)))
    assert report == []
    assert [field.name for field in fields] == sorted(kinds)
    assert all(area.w > 0.01 and area.h > 0.01 for field in fields for area in field.areas)


def test_fields_inside_fields_are_fields() -> None:
    _, fields, _ = html_to_pdf("<text-field name=x><b><date-field name=y></date-field></b></text-field>")
    assert [field.name for field in fields] == ["x", "y"]


def test_options_and_repetitions_are_areas_of_one_field() -> None:
    _, fields, _ = html_to_pdf(
        "<radio-field name=r option=A></radio-field><radio-field name=r option=B></radio-field>"
        "<text-field name=t></text-field><div style='break-before: page'><text-field name=t></text-field></div>"
    )
    assert [(field.name, field.options, [(a.page, a.option) for a in field.areas]) for field in fields] == [
        ("r", ["A", "B"], [(1, "A"), (1, "B")]),
        ("t", [], [(1, None), (2, None)]),
    ]


def test_a_field_in_the_footer_is_on_every_page() -> None:
    body = '<p>One</p><p style="break-before: page">Two</p>'
    _, [field], _ = html_to_pdf(body, None, "<initials-field name=i></initials-field>")
    assert [area.page for area in field.areas] == [1, 2]


def test_tags_that_are_not_closed_swallow_nothing() -> None:
    data, fields, _ = html_to_pdf("<p>a <text-field name=x /> b <date-field name=y> c</p><p>d</p>")
    assert texts(data)[0].split() == ["a", "b", "c", "d"]
    assert [field.name for field in fields] == ["x", "y"]


def test_markup_inside_a_closed_tag_goes_with_it() -> None:
    data, _, _ = html_to_pdf("a <text-field name=x><b>Name</b> here</text-field> b <text-field name=y>c</text-field>")
    assert texts(data)[0].split() == ["a", "b"]


def test_turned_fields_have_their_box() -> None:
    _, [field], report = html_to_pdf(
        "<div style='margin: 200px; width: 100px; transform: rotate(90deg)'><date-field name=d></date-field></div>"
    )
    area = field.areas[0]
    assert area.h * 11 > area.w * 8.5
    assert report == []


@pytest.mark.parametrize(
    ("html", "code"),
    [
        ("<kba-field name=a>text</kba-field>", "unknown_tag"),
        ("<text-field name=a style='display: none'></text-field>", "tag_outside_page"),
        ("<text-field name=a style='width: 0'></text-field>", "tag_outside_page"),
        ("<text-field name=a colour=red></text-field>", "tag_attribute"),
        ("<img src='https://example.com/a.png'>", "resource_missing"),
    ],
)
def test_what_is_left_out_is_reported(html: str, code: str) -> None:
    data, _, report = html_to_pdf(html)
    assert [notice.code for notice in report] == [code]
    if code == "unknown_tag":
        assert texts(data)[0].split() == ["text"]


# What is loaded


class Listening(http.server.ThreadingHTTPServer):
    asked: list[str]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.asked = []


class Canary(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Listening)
        self.server.asked.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def canary() -> Iterator[Listening]:
    server = Listening(("127.0.0.1", 0), Canary)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_no_connection_and_no_file_is_opened(canary: Listening, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret words")
    base = f"http://127.0.0.1:{canary.server_address[1]}"
    html = f"""<link rel=stylesheet href="{base}/a.css"><link rel=attachment href="file://{secret}">
        <link rel=attachment href="data:text/plain,attached"><base href="{base}/">
        <style>@import "{base}/b.css"; @font-face {{ font-family: f; src: url({base}/f.ttf), url(file://{secret}) }}
        p {{ background: url({base}/c.png); font-family: f; content: url(file://{secret}) }}</style>
        <img src="{base}/d.png"><img src="file://{secret}"><img src="relative.png"><img srcset="{base}/e.png 2x">
        <object data="{base}/f.svg"></object><embed src="file://{secret}"><a rel=attachment href="file://{secret}">x</a>
        <svg xmlns="http://www.w3.org/2000/svg"><image href="{base}/g.png"/><use href="{base}/h.svg#a"/></svg><p>Text"""
    data, _, _ = html_to_pdf(html, f'<img src="{base}/i.png">', f'<img src="{base}/j.png">')
    assert canary.asked == []
    assert texts(data)[0].split() == ["x", "Text"]
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert list(pdf.attachments) == []
    assert b"EmbeddedFile" not in data


def test_assets_that_were_fetched_beforehand_are_used() -> None:
    html = '<link rel=stylesheet href="https://example.com/style.css"><img src="https://example.com/a.png"><p>x'
    style = b'@import "more.css"; p { color: blue }'
    assert external_urls(html) == ["https://example.com/style.css", "https://example.com/a.png"]
    assets = {"https://example.com/style.css": style, "https://example.com/a.png": picture()}
    assert external_urls(html, assets) == ["https://example.com/more.css"]
    assets["https://example.com/more.css"] = b"p { font-weight: bold }"
    assert external_urls(html, assets) == []
    data, _, report = html_to_pdf(html, assets=assets)
    assert report == []
    assert has_color(data)


def test_every_way_to_name_a_url_is_found() -> None:
    html = """<base href="https://e.com/dir/"><img src="1.png"><div style="background:url('//e.com/2.png')">
        <style>@import url(3.css); a { b: url( "4.png" ) }</style><object data=5.svg></object><input type=image src=6.png>
        <svg><image xlink:href="8.png"></svg><img src="data:image/png;base64,x"><img src="file:///9">
        <a href="10.html"><img src="http://[">"""
    assert external_urls(html) == [
        "https://e.com/dir/1.png", "https://e.com/2.png", "https://e.com/dir/3.css", "https://e.com/dir/4.png",
        "https://e.com/dir/5.svg", "https://e.com/dir/6.png", "https://e.com/dir/8.png",
    ]  # fmt: skip


def test_pictures_in_the_document_itself_are_drawn() -> None:
    html = f'<img width=100 height=100 src="data:image/png;base64,{base64.b64encode(picture()).decode()}">'
    data, _, report = html_to_pdf(html)
    assert report == []
    assert has_color(data)


@pytest.mark.parametrize("family", ["Liberation Sans", "Arial", "serif", "Brought Along"])
def test_no_document_is_set_in_the_fonts_of_another(family: str) -> None:
    """Both are laid out by the same process, as in a rendering child."""
    plain = f"<p style='font-family: {family}'>Pay 9,999 EUR</p>"
    font = base64.b64encode((OWN_FOLDER / "DancingScript-Regular.ttf").read_bytes()).decode()
    face = f"<style>@font-face {{ font-family: '{family}'; src: url(data:font/ttf;base64,{font}) }}</style>"
    before, _, _ = html_to_pdf(plain)
    other, _, report = html_to_pdf(face + plain)
    after, _, _ = html_to_pdf(plain)
    assert report == []
    assert draw_page(after, 1) == draw_page(before, 1)
    assert draw_page(other, 1) != draw_page(before, 1)


def test_emoji_are_in_colour() -> None:
    """By a rendering child, which may write into its own folder only."""
    pool = ChildPool(size=1).start()
    try:
        renderer = Renderer(pool, most_bytes=2**24, most_pages=10)
        made = renderer.prepare_html(
            "<p>A 😀 👍🏽 🇩🇪 ❤️ ✔ ☎", None, None, "letter", "Emoji", {}, today=date(2026, 11, 23)
        )
    finally:
        pool.close()
    assert made.report == []
    picture = Image.open(io.BytesIO(draw_page(made.file, 1))).convert("RGB")
    counted: Any = picture.getcolors(1 << 24)
    colors = [color for _, color in counted]
    for kind in ("yellow of a face", "skin", "red of a flag"):
        wanted = {"yellow of a face": (255, 200, 40), "skin": (190, 140, 100), "red of a flag": (220, 30, 40)}[kind]
        assert any(max(abs(a - b) for a, b in zip(color, wanted, strict=True)) < 40 for color in colors), kind
    assert texts(made.file)[0].split() == ["A", "✔", "☎"]


def test_tags_with_emoji_keep_them() -> None:
    """A coloured picture is no text."""
    pdf, _, _ = html_to_pdf("<p>😀 {{Name 😀;role=Buyer ❤️}}</p>")
    assert "{{Name 😀;role=Buyer ❤" in texts(pdf)[0]


def test_links_lead_to_the_web_only() -> None:
    html = '<a href="https://e.com/x">a</a> <a href="javascript:alert(1)">b</a> <a href="file:///c">c</a> <a href="#d">d</a>'
    data, _, _ = html_to_pdf(html)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        links = [str(annotation.A.URI) for annotation in pdf.pages[0].Annots if "/A" in annotation]
    assert links == ["https://e.com/x"]


# What is too much


def huge_picture() -> str:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 50_000, 50_000, 1, 0, 0, 0, 0))
    return base64.b64encode(data + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")).decode()


@pytest.mark.parametrize(
    ("html", "sentence"),
    [
        ("x" * (convert.MOST_BYTES + 1), "larger than 2 MB"),
        ("<div>" * 3000, "nested deeper than 200"),
        ("<b>" * 3000, "nested deeper than 200"),
        ("<table>" + "<tr>" + "<td>x" * 10_001, "more than 10,000 table cells"),
        ("<i></i>" * 30_001, "more than 30,000 elements"),
        ('<p style="font-size: 1e9px">x', "cannot be laid out"),
        ("<text-field name=a></text-field>" * 2_001, "more than 2,000 field tags"),
    ],
    ids=lambda value: value[:30],
)
def test_what_is_too_much_is_refused(html: str, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        html_to_pdf(html)


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 190 + "deep",
        "<table><tr><td colspan=99999999>x<tr><td rowspan=99999999>y</table>",
        f'<img src="data:image/png;base64,{huge_picture()}">x',
        "a\0b\ud800c",
        "",
        "<p style='width: 1e30px'>x",
        "<script>document.write('x')</script><p>y",
        "<style>{{{</style><style>@page { size: -1px }</style>x",
    ],
    ids=["deep", "spans", "picture", "characters", "empty", "wide", "script", "css"],
)
def test_what_is_odd_is_laid_out(html: str) -> None:
    data, _, _ = html_to_pdf(html)
    assert len(texts(data)) == 1
    assert "document" not in texts(data)[0]
