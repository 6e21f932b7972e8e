"""Fields of HTML documents lie where their elements are drawn, on whichever page and in whichever layout they end up."""

import io

import pytest
from PIL import Image, ImageChops

from services.rendering.jobs.html.convert import html_to_pdf
from services.rendering.jobs.previews.pages import draw_page

WIDTH = 1000
COLORS = ["#ff0000", "#00c000", "#0000ff", "#c000c0", "#00b0b0", "#b0b000"]

_FILLER = "<p>" + "Words that fill the page, line by line, until it is full. " * 12 + "</p>"


def field(name: str, number: int, style: str = "", kind: str = "text") -> str:
    """A field element that is painted all over in a colour of its own."""
    return f'<{kind}-field name="{name}" style="background: {COLORS[number]}; {style}"></{kind}-field>'


LAYOUTS = {
    "inline": f"<p>Before {field('a', 0)} between {field('b', 1, 'width: 3em; height: 2em')} after</p>",
    "in a table": f"""<table border=1><tr><td>One<td>{field("a", 0)}</tr><tr><td rowspan=2>{field("b", 1)}<td>x</tr><tr><td>y</tr>
        </table>""",
    "floating": f"<p>{field('a', 0, 'float: right; width: 90px; height: 50px')} {_FILLER} {field('b', 1, 'float: left')} x</p>",
    "flexible": f"""<div style="display: flex; gap: 20px; justify-content: space-between">{field("a", 0)}<div style="flex: 1">
        {field("b", 1, "width: 100%")}</div>{field("c", 2, "height: 40px")}</div>""",
    "on a grid": f"""<div style="display: grid; grid-template-columns: 1fr 2fr; gap: 9px">{field("a", 0)}<i>x</i>
        {field("b", 1, "width: 60%")}{field("c", 2)}</div>""",
    "in columns": f"<div style='columns: 3'>{_FILLER}{field('a', 0)}{_FILLER * 2}{field('b', 1)}{_FILLER}{field('c', 2)}</div>",
    "placed": f"""<div style="position: relative; height: 300px">{field("a", 0, "position: absolute; right: 7px; bottom: 11px")}
        </div>{field("b", 1, "position: relative; left: 40px; top: 9px")}""",
    "as blocks": f"{field('a', 0, 'display: block; width: 50%; margin: 10px auto')}{field('b', 1, 'display: block', 'signature')}",
    "by class": f"<style>.wide {{ width: 77%; height: 3cm }} text-field {{ margin: 5px }}</style>"
    f"<text-field class=wide name=a style='background: {COLORS[0]}'></text-field>{field('b', 1)}",
    "in a list": f"<ol><li>{field('a', 0)}<li><ul><li>{field('b', 1)}</ul></ol>",
    "behind page breaks": f"{field('a', 0)}<p style='break-before: page'>{field('b', 1)}</p>"
    f"<table style='break-before: page'><tr><td>{field('c', 2)}</table>",
    "after pages of text": f"{_FILLER * 12}{field('a', 0)}{_FILLER * 12}<table><tr><td>{field('b', 1)}</table>",
    "in a table over pages": "<table>"
    + "".join(f"<tr><td>{_FILLER}<td>{field(name, number)}</tr>" for number, name in enumerate("abcdef"))
    + "</table>",
    "from right to left": f"<div dir=rtl><p>מילים {field('a', 0)} עוד</p></div>",
    "with all sides": f"{field('a', 0, 'padding: 9px; border: 4px solid ' + COLORS[0] + '; margin: 13px')}",
    "on a page of its own size": f"<style>@page {{ size: A5 landscape; margin: 3cm 1cm }}</style>{_FILLER * 4}{field('a', 0)}",
    "shifted": f"<div style='transform: translate(50px, 30px) scale(1.5); width: 300px; margin: 100px'>{field('a', 0)}</div>",
}


def painted(page: Image.Image, color: str) -> tuple[int, int, int, int] | None:
    """The box of the pixels of that colour."""
    difference = ImageChops.difference(page, Image.new("RGB", page.size, color)).convert("L")
    return difference.point(lambda value: 255 * (value < 8)).getbbox()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fields_lie_where_they_are_drawn(layout: str) -> None:
    data, fields, report = html_to_pdf(LAYOUTS[layout])
    assert report == []
    assert [field.name for field in fields] == sorted(set("abcdef") & {field.name for field in fields})
    assert len(fields) == LAYOUTS[layout].count('name="') + LAYOUTS[layout].count("name=a")
    for number, one in enumerate(fields):
        [area] = one.areas
        page = Image.open(io.BytesIO(draw_page(data, area.page, WIDTH))).convert("RGB")
        drawn = painted(page, COLORS[number])
        assert drawn is not None, f"{one.name} is not on page {area.page}"
        expected = (area.x, area.y, area.x + area.w, area.y + area.h)
        sides = (page.width, page.height, page.width, page.height)
        assert drawn == pytest.approx([part * side for part, side in zip(expected, sides, strict=True)], abs=2)


def test_a_field_in_a_repeated_head_is_on_each_page() -> None:
    rows = f"<tr><td>{_FILLER}</tr>" * 12
    data, [one], report = html_to_pdf(f"<table><thead><tr><td>{field('a', 0)}</thead>{rows}</table>")
    assert report == []
    assert len(one.areas) > 1
    for number, area in enumerate(one.areas, 1):
        page = Image.open(io.BytesIO(draw_page(data, number, WIDTH))).convert("RGB")
        drawn = painted(page, COLORS[0])
        assert area.page == number
        assert drawn is not None
        assert drawn[1] == pytest.approx(area.y * page.height, abs=2)


def test_fields_in_header_and_footer_lie_where_they_are_drawn() -> None:
    body = "<p>One</p><p style='break-before: page'>Two</p>"
    header, footer = f"<div style='text-align: right'>{field('a', 0)}</div>", f"Sign {field('b', 1, 'height: 30px')}"
    data, fields, report = html_to_pdf(body, header, footer)
    assert report == []
    for one in fields:
        assert [area.page for area in one.areas] == [1, 2]
        for area in one.areas:
            page = Image.open(io.BytesIO(draw_page(data, area.page, WIDTH))).convert("RGB")
            drawn = painted(page, COLORS["ab".index(one.name)])
            expected = (area.x * page.width, area.y * page.height)
            assert drawn is not None
            assert drawn[:2] == pytest.approx(expected, abs=2)
