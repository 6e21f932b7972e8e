"""Placeholders in a DOCX: what is put where, what is left out, what is refused by name; values stay data."""

import io
from typing import Any

import pytest
from lxml import etree

from services.rendering.jobs.docx.preparing import prepare_docx
from services.rendering.jobs.pdf.refused import Refused
from tests.support.files.docx_files import docx, paragraph, run, table, text_box, unzipped

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
BREAK, TAB = f"{W}br", f"{W}tab"


def lines(data: bytes, part: str = "word/document.xml") -> list[str]:
    """The text of the paragraphs, in order; a row's cells are joined by ``|``."""
    return [line for line in _lines(etree.fromstring(unzipped(data)[part])) if line is not None]


def _lines(element: Any) -> list[str]:
    found: list[str] = []
    for child in element:
        if child.tag == f"{W}p":
            found.append(_text(child))
            found += [line for box in child.iter(f"{W}txbxContent") for line in _lines(box)]
        elif child.tag == f"{W}tr":
            found.append("|".join("/".join(_lines(cell)) for cell in child.iter(f"{W}tc")))
        else:
            found += _lines(child)
    return found


def _text(paragraph_: Any) -> str:
    words = ""
    for element in paragraph_.iter(f"{W}t", BREAK, TAB):
        if any(one.tag == f"{W}txbxContent" and paragraph_ in one.iterancestors() for one in element.iterancestors()):
            continue
        if element.getparent().tag == f"{W}r":
            words += {BREAK: "\n", TAB: "\t"}.get(element.tag, element.text or "")
    return words


def filled(variables: dict[str, Any] | None, *body: str, **more: Any) -> list[str]:
    return lines(prepare(variables, *body, **more).file)


def prepare(variables: dict[str, Any] | None, *body: str, **more: Any) -> Any:
    return prepare_docx(docx(*body, **more), variables, name="letter", most_bytes=2**24)


def refusal(variables: dict[str, Any], *body: str) -> str:
    with pytest.raises(Refused) as caught:
        prepare(variables, *body)
    return str(caught.value)


def p(text: str) -> str:
    return paragraph(run(text))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Ana Ray", "Ana Ray"),
        (12, "12"),
        (12.0, "12"),
        (12.5, "12.5"),
        (True, "true"),
        (None, ""),
        ("", ""),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("a < b && c > d", "a < b && c > d"),
        ("&amp; stays", "&amp; stays"),
        ("nul\x00 and \ud800 go", "nul and  go"),
        ("[[other]] {{X;type=signature}} </w:t>", "[[other]] {{X;type=signature}} </w:t>"),
    ],
)
def test_a_value_is_put_in_as_it_is(value: Any, text: str) -> None:
    assert filled({"v": value, "other": "no"}, p("<[[v]]>")) == [f"<{text}>"]


def test_names_have_blanks_dots_and_capitals_and_keys_with_dots_are_found_too() -> None:
    data = {"Agreement Date": "1 May", "customer": {"name": "Ana", "address": {"city": "Rom"}}, "x.y": 1, "Ünï": 2}
    body = p("[[Agreement  Date]], [[ customer.name ]], [[customer.address.city]], [[x.y]], [[Ünï]]")
    assert filled(data, body) == ["1 May, Ana, Rom, 1, 2"]


def test_a_placeholder_split_over_runs_has_the_formatting_of_its_first_character() -> None:
    body = paragraph(run("Dear ["), run("[cus", "<w:b/>"), run("tomer.na"), run("me"), run("]", "<w:i/>"), run("]!"))
    made = prepare({"customer": {"name": "Ana"}}, body).file
    assert lines(made) == ["Dear Ana!"]
    body = paragraph(run("A ", "<w:i/>"), run("[[x", "<w:b/>"), run("]] B", "<w:i/>"))
    root = etree.fromstring(unzipped(prepare({"x": "val"}, body).file)["word/document.xml"])
    looks = {
        "".join(text.text for text in one.iter(f"{W}t")): [
            child.tag.rpartition("}")[2] for child in one.find(f"{W}rPr")
        ]
        for one in root.iter(f"{W}r")
    }
    assert looks == {"A ": ["i"], "val": ["b"], " B": ["i"]}


def test_conditions_in_a_paragraph_and_around_paragraphs() -> None:
    inline = p("[[if:vip]]Dear [[name]][[else]]Hello[[end]], welcome[[if:late]] late[[end:late]].")
    assert filled({"vip": True, "name": "Ana"}, inline) == ["Dear Ana, welcome."]
    assert filled({"vip": False, "late": 1}, inline) == ["Hello, welcome late."]
    around = [p("start"), p("[[if:a]]"), p("one"), p("two"), p("[[else]]"), p("three"), p("[[end]]"), p("stop")]
    assert filled({"a": "yes"}, *around) == ["start", "one", "two", "stop"]
    assert filled({}, *around) == ["start", "three", "stop"]


@pytest.mark.parametrize("value", [False, None, "", " ", "false", [], {}])
def test_what_is_empty_or_false_does_not_hold(value: Any) -> None:
    assert filled({"v": value}, p("[[if:v]]yes[[else]]no[[end]]")) == ["no"]


@pytest.mark.parametrize("value", [True, 0, 1, "0", "no", [None], {"a": None}])
def test_what_is_there_holds(value: Any) -> None:
    assert filled({"v": value}, p("[[if:v]]yes[[else]]no[[end]]")) == ["yes"]


def test_a_block_that_begins_in_the_middle_of_a_paragraph_joins_what_is_left() -> None:
    body = [p("Dear [[if:a]]Sir"), p("or Madam[[end]], hello")]
    assert filled({"a": True}, *body) == ["Dear Sir", "or Madam, hello"]
    assert filled({"a": False}, *body) == ["Dear , hello"]
    heading = [p("Heading [[if:a]]"), p("text"), p("[[end]] Next")]
    assert filled({"a": True}, *heading) == ["Heading ", "text", " Next"]
    assert filled({"a": False}, *heading) == ["Heading ", " Next"]
    other = [p("[[if:a]]A[[else]]"), p("B[[end]]")]
    assert filled({"a": True}, *other) == ["A"]
    assert filled({"a": False}, *other) == ["B"]


def test_blocks_nest() -> None:
    body = [
        p("[[if:outer]][[if:inner]]"),
        p("both"),
        p("[[else]]"),
        p("outer only"),
        p("[[end]][[end]]"),
        p("end"),
    ]
    assert filled({"outer": 1, "inner": 1}, *body) == ["both", "end"]
    assert filled({"outer": 1}, *body) == ["outer only", "end"]
    assert filled({"inner": 1}, *body) == ["end"]


def test_loops_over_texts_and_objects_inside_each_other() -> None:
    body = [
        p("[[for:parties]]"),
        p("[[party.name]] of [[country]]:"),
        p("[[for:party.children]]- [[child]] ([[party.name]])[[if:party.old]]![[end]] [[end]]"),
        p("[[end:parties]]"),
    ]
    data = {
        "country": "Peru",
        "parties": [
            {"name": "Ana", "children": ["Bo", "Cy"], "old": True},
            {"name": "Dan", "children": []},
        ],
    }
    assert filled(data, *body) == ["Ana of Peru:", "- Bo (Ana)! - Cy (Ana)! ", "Dan of Peru:", ""]
    assert filled({"items": [1, 2]}, p("[[for:items]][[item]];[[end]]")) == ["1;2;"]
    assert filled({"cities": ["Rom", "Ulm"]}, p("[[for:cities]][[city]] [[cities]] [[item]], [[end]]")) == [
        "Rom Rom Rom, Ulm Ulm Ulm, "
    ]


@pytest.mark.parametrize("nothing", [{}, {"items": []}, {"items": None}, {"items": False}])
def test_a_list_that_is_empty_or_missing_removes_the_block(nothing: dict[str, Any]) -> None:
    assert filled(nothing, p("a"), p("[[for:items]]"), p("[[item.x]]"), p("[[end]]"), p("b")) == ["a", "b"]


def test_rows_of_a_table_are_repeated() -> None:
    rows = table(["Item", "Price", "Note"], ["[[for:lines]][[line.item]]", "[[line.price]]", "[[line.note]][[end]]"])
    data = {"lines": [{"item": "Pen", "price": 2, "note": "blue"}, {"item": "Ink", "price": 3.5, "note": None}]}
    assert filled(data, rows) == ["Item|Price|Note", "Pen|2|blue", "Ink|3.5|"]
    assert filled({"lines": []}, rows) == ["Item|Price|Note"]
    neighbours = table(["Item"], ["[[for:lines]]"], ["[[line.item]]"], ["[[end]]"], ["Sum"])
    assert filled(data, neighbours) == ["Item", "Pen", "Ink", "Sum"]
    conditional = table(["a[[if:x]]", "[[end]]"], ["b", "c"])
    assert filled({"x": 0}, conditional) == ["a|", "b|c"]
    assert filled({}, conditional) == ["b|c"]
    either = table(["[[if:x]]"], ["yes"], ["[[else]]"], ["no"], ["[[end]]"])
    assert filled({"x": 1}, either) == ["yes"]
    assert filled({}, either) == ["no"]


def test_a_table_without_rows_goes_and_a_cell_keeps_a_paragraph() -> None:
    assert filled({}, p("a"), table(["[[for:lines]][[line]]", "[[end]]"]), p("b")) == ["a", "b"]
    cell = f"{p('[[if:x]]')}{p('yes')}{p('[[end]]')}"
    assert filled({}, table([cell, "right"])) == ["|right"]


def test_headers_footers_footnotes_and_text_boxes() -> None:
    made = prepare(
        {"a": "A", "b": "B", "list": ["x", "y"]},
        paragraph("[[for:list]]", text_box(p("in [[item]]"), p("[[if:a]]box[[end]]")), "[[end]]"),
        header=p("head [[a]]"),
        footer=p("foot [[b]]"),
        footnotes={2: p("note [[a]]")},
    ).file
    assert lines(made, "word/header.xml") == ["head A"]
    assert lines(made, "word/footer.xml") == ["foot B"]
    assert lines(made, "word/footnotes.xml") == ["note A"]
    assert [line for line in lines(made) if line] == ["in x", "box", "in y", "box"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([p("[[if:a]]x")], "[[if:a]] in the DOCX is not closed"),
        ([p("x[[end]]")], "[[end]] in the DOCX closes nothing"),
        ([p("[[else]]")], "[[else]] in the DOCX belongs to no"),
        ([p("[[for:a]][[else]][[end]]")], "[[else]] in the DOCX belongs to no"),
        ([p("[[if:a]]x[[end:b]]")], "[[if:a]] in the DOCX is closed by [[end:b]]"),
        ([p("[[if:a]]"), table(["x[[end]]"])], "[[if:a]] in the DOCX is badly nested"),
        ([table(["[[if:a]]x", "[[else]]y", "z[[end]]"])], "badly nested"),
    ],
)
def test_bad_nesting_is_refused_by_name_also_before_there_is_data(body: list[str], words: str) -> None:
    assert words in refusal({}, *body)


def test_missing_variables_are_named_all_at_once_and_only_where_they_are_needed() -> None:
    body = [p("[[name]] [[Due Date]] [[customer.vat]]"), p("[[if:x]][[never]][[end]][[for:list]][[item.gone]][[end]]")]
    message = refusal({"customer": {}, "list": [{}]}, *body)
    assert message.startswith("variables lacks item.gone, name, Due Date, customer.vat, which the DOCX uses")
    assert filled({"name": None, "Due Date": "", "customer": {"vat": None}}, *body) == ["  ", ""]


def test_lists_objects_and_texts_are_not_taken_for_each_other() -> None:
    assert "[[a]] in the DOCX stands for a list" in refusal({"a": [1]}, p("[[a]]"))
    assert "[[a]] in the DOCX stands for an object" in refusal({"a": {"b": 1}}, p("[[a]]"))
    assert "[[for:a]] in the DOCX needs a list" in refusal({"a": "text"}, p("[[for:a]]x[[end]]"))


def test_a_loop_that_would_fill_the_memory_is_refused() -> None:
    many = {"a": [1] * 3_000}
    assert "too large" in refusal(many, p("[[for:a]]"), p("[[for:a2]][[end]]x"), *[p("x")] * 100, p("[[end]]"))


def test_without_data_placeholders_stay_and_are_told() -> None:
    body = [p("[[a.b]] [[if:ok]]x[[end]] [[for:rows]][[row.n]] [[row.tags]][[item]][[end]] [[see: 1]] [[12]]")]
    made = prepare(None, *body)
    assert lines(made.file) == [
        "[[a.b]] [[if:ok]]x[[end]] [[for:rows]][[row.n]] [[row.tags]][[item]][[end]] [[see: 1]] [[12]]"
    ]
    assert made.variables == {
        "a": {"type": "object", "properties": {"b": {"type": "string"}}},
        "ok": {"type": "boolean"},
        "rows": {
            "type": "array",
            "items": {"type": "object", "properties": {"n": {"type": "string"}, "tags": {"type": "string"}}},
        },
    }
    assert [(notice.code, notice.message[:14]) for notice in made.report] == [
        ("unknown_variable", "“[[12]]” is no"),
        ("unknown_variable", "“[[see: 1]]” i"),
    ]


def test_a_variable_in_a_tag_cannot_add_to_its_grammar() -> None:
    body = p("{{Name;type=text;title=[[title]]}} {{[[name]];type=date}}")
    data = {"title": "A}} {{B;type=signature;x=1", "name": "N;readonly=true"}
    assert filled(data, body) == ["{{Name;type=text;title=A B type signature x 1}} {{N readonly true;type=date}}"]


# --- HTML values ------------------------------------------------------------------------------------------------------------


def xml(html: str, body: str = "[[v]]") -> Any:
    return etree.fromstring(unzipped(prepare({"v": html}, paragraph(body)).file)["word/document.xml"])


def looks(root: Any, text: str) -> dict[str, str | None]:
    found = next(one for one in root.iter(f"{W}r") if "".join(t.text for t in one.iter(f"{W}t")) == text)
    return {child.tag.rpartition("}")[2]: child.get(f"{W}val") for child in found.find(f"{W}rPr")}


def test_html_inline_styles_and_nothing_else() -> None:
    root = xml(
        'a <b>bold <i>both</i></b> <u>under</u> <span style="color:#f00; font-size:99px; background:url(x)">red</span>'
        '<script>alert(1)</script><img src="http://127.0.0.1/x"> &lt;tag&gt;<br>next',
        "before [[v]] after",
    )
    assert "".join(root.itertext()) == "before a bold both under red <tag>next after"
    assert looks(root, "both") == {"b": None, "i": None}
    assert looks(root, "under") == {"u": "single"}
    assert looks(root, "red") == {"color": "FF0000"}
    assert len(list(root.iter(f"{W}p"))) == 1


def test_html_links_lead_to_the_web_only() -> None:
    root = xml(
        '<a href="https://example.org/?a=1&amp;b=2">one</a> <a href="javascript:alert(1)">two</a> <a href="file:///x">3</a>'
    )
    assert [field.get(f"{W}instr") for field in root.iter(f"{W}fldSimple")] == [
        'HYPERLINK "https://example.org/?a=1&b=2"'
    ]
    assert "".join(root.itertext()) == "one two 3"


def test_html_blocks_lists_and_tables_stand_between_the_text() -> None:
    html = (
        '<p style="text-align:center">One</p><ul><li>a</li><li><p>b</p><ol><li>c</li></ol></li></ul>'
        '<table style="border:1px solid #00f"><tr><th>H</th><td style="padding:4px;border:2px dashed red" colspan=2>D</td></tr>'
        "<tr><td>x</td></tr></table>"
    )
    made = prepare({"v": html}, paragraph("before [[v]] after")).file
    assert lines(made) == ["before ", "One", "•\ta", "•\tb", "1.\tc", "H|D", "x||", " after"]
    root = etree.fromstring(unzipped(made)["word/document.xml"])
    assert [one.get(f"{W}val") for one in root.iter(f"{W}jc")] == ["center"]
    assert next(root.iter(f"{W}tblBorders"))[0].attrib == {
        f"{W}val": "single", f"{W}sz": "6", f"{W}space": "0", f"{W}color": "0000FF",
    }  # fmt: skip
    assert next(root.iter(f"{W}tcBorders"))[0].get(f"{W}color") == "FF0000"
    assert next(root.iter(f"{W}tcMar"))[0].get(f"{W}w") == "60"
    assert lines(prepare({"v": "<p>a</p><p>b</p>"}, p("[[v]]")).file) == ["a", "b"]
    assert lines(prepare({"v": "<p>a</p><p>b</p>"}, table(["[[v]]"])).file) == ["a/b"]
    small = "<table><tr><td>a</td></tr></table>"
    assert lines(prepare({"v": small + small}, table(["before"]), p("[[v]]"), table(["after"])).file) == [
        *("before", "", "a", "", "a", "", "after")
    ], "tables that touch would become one"
    assert lines(prepare({"v": "<p>only</p>"}, p("x [[v]] y")).file) == ["x only y"]


def test_html_braces_are_data_too() -> None:
    made = prepare({"v": "<p>[[w]] {{S;type=signature}}</p>", "w": 1}, p("[[v]]")).file
    assert lines(made) == ["[[w]] {{S;type=signature}}"]


@pytest.mark.parametrize("html", ["<b>" * 200, "<p>x</p>" * 6_000])
def test_html_that_is_too_deep_or_long_is_refused(html: str) -> None:
    assert "HTML" in refusal({"v": html}, p("[[v]]"))


def test_a_file_that_was_written_is_one_that_can_be_read() -> None:
    made = prepare({"a": "<table><tr><td>x</td></tr></table>"}, p("[[a]]")).file
    again = prepare_docx(made, None, name="again", most_bytes=2**24)
    assert lines(again.file) == lines(made)
    assert io.BytesIO(made).read(2) == b"PK"


def test_a_value_loses_nothing_behind_a_tag_that_is_not_closed() -> None:
    variables = {"formula": "a = {b; c}"}
    assert filled(variables, paragraph("{{Price;role=A} is [[formula]] of it. End}}")) == [
        "{{Price;role=A} is a = {b; c} of it. End}}"
    ]
    assert filled(variables, paragraph("{{Price;title=[[formula]]}}")) == ["{{Price;title=a b c}}"]


def test_what_a_formula_names_in_a_tag_is_a_field_and_no_variable() -> None:
    """Beside it a variable is one as before, also in the same tag."""
    body = p(
        "{{[[Kind]] total;formula=[[Price]] * [[Rate]];title=[[Title]];required-if=[[Price]] > 1; CONDITION = [[A]]}} [[Price]]"
    )
    written = "{{Net total;formula=[[Price]] * [[Rate]];title=T;required-if=[[Price]] > 1; CONDITION = [[A]]}} 5"
    assert filled({"Kind": "Net", "Title": "T", "Price": 5}, body) == [written]
