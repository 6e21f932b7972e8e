"""The grammar of field tags, as a pure rule: what each attribute makes, and that nothing anybody writes makes an impossible field."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.fields import checker
from contracts.fields.formulas.grammar import LONGEST_FORMULA
from contracts.fields.formulas.references import EXPRESSIONS
from contracts.fields.rules import LONGEST_NAME, MOST_OPTIONS
from contracts.problems import Problems
from contracts.types import FieldContent, FieldType
from services.rendering.jobs.intake.preparing import prepare
from services.rendering.jobs.tags import grammar
from services.rendering.jobs.tags.grammar import NotATag, ParsedTag, parse_tag, tag_from_attributes
from services.rendering.jobs.tags.values import LONGEST_VALUE, clean
from tests.support.files import pdf_files
from tests.support.rendering.tags import take

# Every attribute of peer facts 3.1, with its values


@pytest.mark.parametrize(
    ("text", "attribute", "value"),
    [
        ("A;type=signature", "type", FieldType.SIGNATURE),
        *[(f"A;type={kind}", "type", kind) for kind in FieldType],
        ("A;role=The Buyer", "role", "The Buyer"),
        ("A;role=", "role", None),
        ("A;required=false", "required", False),
        ("A;required=TRUE", "required", True),
        ("A;readonly=true", "readonly", True),
        ("A;readonly", "readonly", False),
        ("A;title=Full name: first and last", "title", "Full name: first and last"),
        ("A;description=1=2", "description", "1=2"),
        ("A;default=x", "default_value", "x"),
        ("A;type=select;options=One, Two ,,Three,One", "options", ["One", "Two", "Three"]),
        ("A;condition=Box:true", "condition", "Box:true"),
        ("A;type=date;default=2026-03-04", "default_value", "2026-03-04"),
        ("A;type=date;default=03/04/2026", "default_value", "2026-03-04"),
        ("A;type=date;default=4.3.2026;format=D.M.YYYY", "default_value", "2026-03-04"),
        ("A;type=date;default={{date}}", "default_value", "{{date}}"),
        ("A;type=number;default={{day}}", "default_value", "{{day}}"),
        ("A;type=checkbox;default=yes", "default_value", True),
        ("A;type=multiple;default=x,y", "default_value", ["x", "y"]),
        ("A;type=number;min=1;max=2.5;step=0.5", "validation", {"min": 1, "max": 2.5, "step": 0.5}),
        ("A;type=date;min=2026-01-01;max=2026-12-31", "validation", {"min": "2026-01-01", "max": "2026-12-31"}),
        ("A;pattern=[A-Z]{2};message=Two capitals", "validation", {"pattern": "[A-Z]{2}", "message": "Two capitals"}),
        ("A;type=email", "validation", {"pattern": r"[^@\s]+@[^@\s]+\.[^@\s]+"}),
        ("A;font=courier;font_size=9.5;font_type=bold_italic", "preferences",
         {"font": "Courier", "font_size": 9.5, "font_type": "bold_italic"}),
        ("A;Font-Size=12px;FONT=Arial", "preferences", {"font_size": 12, "font": "Helvetica"}),
        ("A;color=RED;background=#Fff", "preferences", {"color": "red", "background": "#fff"}),
        ("A;align=center;valign=bottom", "preferences", {"align": "center", "valign": "bottom"}),
        ("A;hidden=true;mask=true", "preferences", {"hidden": True, "mask": True}),
        ("A;mask=-4", "preferences", {"mask": -4}),
        ("A;type=verification;method=QES", "preferences", {"method": "qes"}),
        ("A;type=stamp;position=foreground", "preferences", {"position": "foreground"}),
        ("A;type=payment;price=10.50;currency=chf", "preferences", {"price": 10.5, "currency": "CHF"}),
        ("A;type=signature;format=drawn;reasons=I agree, I was there", "preferences",
         {"format": "drawn", "reasons": ["I agree", "I was there"]}),
        ("A;type=phone;one_time_code=true", "preferences", {"one_time_code": True}),
        ("type=checkbox", "name", ""),
        ("type=text;name=Given", "name", "Given"),
        (" Full  Name ;type=text;", "name", "Full Name"),
    ],
)  # fmt: skip
def test_attributes(text: str, attribute: Any, value: Any) -> None:
    parsed = parse_tag(text)
    assert getattr(parsed.tag, attribute) == value
    assert parsed.remarks == (["“readonly” is not an attribute (name=value)"] if text == "A;readonly" else [])


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Price;role=A", True),
        ("Today;default_value={{date}}", True),
        ("Price;role=A} and interest", False),
        ("Price;role=A} and interest {of 5 percent", False),
        ("Price;role={A", False),
    ],
)
def test_what_ends_where_its_braces_do(text: str, whole: bool) -> None:
    assert grammar.is_whole(text) is whole


def test_the_date_of_completion() -> None:
    for text in ("type=datenow", "Today;type=datenow;default=2020-01-01;readonly=false"):
        tag = parse_tag(text).tag
        assert (tag.type, tag.readonly, tag.default_value) == (FieldType.DATE, True, "{{date}}")


def test_width_height_and_option_are_of_the_place() -> None:
    parsed = parse_tag("A;type=radio;option=Card, in 3 rates;width=120px;height=40.5")
    assert (parsed.option, parsed.width, parsed.height) == ("Card, in 3 rates", 120, 40.5)
    assert parsed.tag.options == ["Card, in 3 rates"]
    assert parse_tag("A;type=radio;options=a,b;option=a").tag.options == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("A;role=x;role=y", "“role” is given twice; the last one counts"),
        ("A;type=number;min=2026-01-01", "“min” must be a number"),
        ("A;type=date;max=5", "“max” must be a date as YYYY-MM-DD"),
        ("A;type=date;min=2026-02-30", "“min” must be a date as YYYY-MM-DD"),
        ("A;type=number;min=5;max=4", "“max” must not be below min"),
        ("A;min=1;max=2026-01-01", "“max” must not be below min"),
        ("A;type=date;default=30/30/2026", "the default “30/30/2026” must be a date"),
        ("A;type=date;default=tomorrow", "the default “tomorrow” must be a date"),
        ("A;step=0", "“step” must be above 0"),
        ("A;type=payment;price=-1", "“price” must not be below 0"),
        ("A;type=number;default=1e400", "the default “1e400” is out of range"),
        ("A;width=0", "“width” must be above 0 and up to 10,000 pixels"),
        ("A;height=50%", "“height” must be a number"),
        ("A;font=Comic Sans", "“font” must be one of Times, Helvetica, Courier"),
        ("A;font_size=145", "“font_size” must be between 4 and 144"),
        ("A;color=rainbow", "“color” must be black, white, blue, red or a hex colour"),
        ("A;align=middle", "“align” must be one of left, center, right"),
        ("A;type=verification;method=maybe", "“method” must be one of aes, qes"),
        (f"A;title={'x' * (LONGEST_VALUE + 1)}", "“title” must not be longer than 2,000 characters"),
        (f"A;options={'x' * 300},y", "“options” must not be longer than 255 characters"),
        (f"A;options={','.join(map(str, range(MOST_OPTIONS + 1)))}", "“options” must not have more than 500 entries"),
        (f"A;formula={'1+' * (LONGEST_FORMULA // 2)}1", "“formula” must not be longer than 5,000 characters"),
        (f"A;required_if={'x' * (LONGEST_FORMULA + 1)}", "“required_if” must not be longer than 5,000 characters"),
        ("x" * 300, "the name is cut to 255 characters"),
        ("x" * 255 + " y", "the name is cut to 255 characters"),
    ],
)
def test_what_cannot_be_is_left_out_and_said(text: str, remark: str) -> None:
    parsed = parse_tag(text)
    assert any(remark in one for one in parsed.remarks), parsed.remarks
    assert_possible(parsed)


ROLE = "its role is more than a line of 60 characters without braces"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        (" ; ;", "it is empty"),
        ("A;type=kba", "the type “kba” is not supported"),
        ("A;type=", "the type “” does not exist"),
        ("type=something", "the type “something” does not exist"),
        ("role=Buyer", "it has no name"),
        (";type=text", "it has no name"),
        ("name=;type=text", None),
        ("A;name= ;role=B", "it has no name"),
        (f"A;role={'x' * 60}", None),
        (f"A;role={'x' * 61}", ROLE),
        ("A;role=a\nb", ROLE),
        ("A;role=a{b", ROLE),
    ],
)
def test_what_is_no_tag(text: str, reason: str) -> None:
    if reason is None:
        assert parse_tag(text).remarks == []
        return
    with pytest.raises(NotATag) as caught:
        parse_tag(text)
    assert str(caught.value).startswith(reason)


def test_options_that_are_elements_of_their_own() -> None:
    def made(attributes: Any, *options: Any) -> Any:
        parsed = tag_from_attributes({"type": "select", **attributes}, name="A", options=options)
        return parsed.tag.options, parsed.remarks

    assert made({}, "x", " y ", "x", "") == (["x", "y"], [])
    assert made({"options": "a,b"}, "x") == (["a", "b"], [])
    assert made({}) == ([], [])
    assert made({}, *map(str, range(501))) == (
        [],
        ["the list of options must not have more than 500 entries and was left out"],
    )


def test_bounds_are_read_as_the_format_says_wherever_it_stands() -> None:
    attributes = {"min": "04/03/2026", "type": "date", "format": "DD/MM/YYYY", "max": "05/03/2026"}
    parsed = tag_from_attributes(attributes, name="A")
    assert (parsed.tag.validation, parsed.remarks) == ({"min": "2026-03-04", "max": "2026-03-05"}, [])


def test_the_longest_name() -> None:
    assert parse_tag("x" * 255).remarks == []
    cut = parse_tag("x" * 254 + " y")
    assert cut.tag.name == "x" * 254, "no blank is left at the end"
    assert len(cut.remarks) == 1


def test_a_tag_is_read_as_what_another_tag_of_its_field_says() -> None:
    parsed = parse_tag("A;option=a;min=2026-01-02;title=T")
    parsed.tag.preferences["font_size"] = 9
    known = grammar.as_type(parsed, "date")
    assert (known.tag.type, known.tag.title, known.tag.preferences) == (FieldType.DATE, "T", {"font_size": 9})
    assert known.tag.validation == {"min": "2026-01-02"}
    assert parse_tag("A;option=a").tag.options == ["a"]
    radio = grammar.as_type(parse_tag("A;option=a;options=b"), "radio")
    assert radio.tag.options == ["b", "a"]
    bigger = parse_tag("A;font_size=12")
    bigger.tag.preferences["font_size"] = 9
    assert grammar.as_type(bigger, "text").tag.preferences == {"font_size": 12}, "what the tag says comes first"


# Several tags of one field


@pytest.mark.parametrize(
    ("text", "expected", "codes"),
    [
        ("{{P;type=radio;option=a}} {{P;option=b}}", {"type": FieldType.RADIO, "options": ["a", "b"]}, []),
        ("{{P;option=a}} {{P;option=b}}", {"type": FieldType.RADIO, "options": ["a", "b"]}, []),
        ("{{P;option=a}} {{P;type=multiple;option=b;default=a}}",
         {"type": FieldType.MULTIPLE, "options": ["a", "b"], "default_value": ["a"]}, []),
        ("{{P}} {{P;type=date;default=01/02/2026}}", {"type": FieldType.DATE, "default_value": "2026-01-02"}, []),
        ("{{P;default=true}} {{P;type=checkbox;title=T}}", {"default_value": True, "title": "T"}, []),
        ("{{P;type=number}} {{P;min=1;font_size=9;required=false}}",
         {"validation": {"min": 1}, "preferences": {"font_size": 9}, "required": False}, []),
        ("{{P;condition=Box}} {{P;required=false}} {{P;condition=Box;required=false}}",
         {"condition": "Box", "required": False}, []),
        ("{{P;title=A}} {{P;title=B}}", {"title": "A"}, ["tag_differs"]),
        ("{{P;type=number}} {{P;min=2026-01-01}}", {"validation": {}}, ["tag_attribute"]),
        ("{{P;type=text}} {{P;option=x}}", {"options": []}, ["tag_attribute"]),
        ("{{P;type=number;min=9}} {{P;max=1}}", {"validation": {"min": 9}}, ["tag_attribute"]),
        ("{{P;method=qes}} {{P;type=verification}}", {"preferences": {"method": "qes"}}, []),
        ("{{P;one_time_code=true}} {{P;type=phone}}", {"preferences": {"one_time_code": True}}, []),
    ],
)  # fmt: skip
def test_what_one_tag_says_holds_for_its_field(text: str, expected: dict[str, Any], codes: Any) -> None:
    prepared = take(pdf_files.document(pdf_files.line(text, size=9)))
    [field] = prepared.fields
    for key, value in expected.items():
        assert getattr(field, key) == value
    assert [notice.code for notice in prepared.report] == codes
    assert len(field.areas) == text.count("{{")


# Whatever anybody writes


def assert_possible(parsed: ParsedTag) -> None:
    """What templates are told of a field, they take; patterns are looked at there (RE2), and formulas, which name fields."""
    tag, problems = parsed.tag, Problems()
    validation = {key: value for key, value in tag.validation.items() if key != "pattern" and value != ""}
    field = FieldContent(type=tag.type, preferences=tag.preferences)
    assert checker.validation(validation, field, "", problems) == validation
    unproved = {
        key: value
        for key, value in tag.preferences.items()
        if key not in EXPRESSIONS and ("type" in parsed.attributes or key not in checker.PROOFS)
    }
    assert checker.preferences(unproved, tag.type, "", problems) == unproved
    field.validation = validation
    assert checker.default_value(tag.default_value, field, "", problems) == tag.default_value
    if tag.options:
        checker.options(tag.options, [], tag.type, "", problems)
    assert problems.entries == []
    assert len(tag.name) <= LONGEST_NAME
    assert clean(tag.name) == tag.name
    assert len(tag.role or "") <= LONGEST_NAME
    assert all(0 < side <= 10_000 for side in (parsed.width, parsed.height) if side is not None)
    assert 4 <= tag.preferences.get("font_size", 4) <= 144


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Total;type=number;formula=[[Unit price]] * 2", {"formula": "[[Unit price]] * 2"}),
        ("Total;type=number;formula=if([[A]] >= 1, 2, 3)", {"formula": "if([[A]] >= 1, 2, 3)"}),
        ("Note;condition=[[Total]] > 100", {"condition": "[[Total]] > 100"}),
        ("Note;required_if=[[Pets]]", {"required_if": "[[Pets]]"}),
        ("Note;required-if=[[Pets]]", {"required_if": "[[Pets]]"}),
        ("Note;formula=", {}),
        ("Name;type=signature;formula=1 +", {"formula": "1 +"}),
    ],
)
def test_formulas_are_kept_as_they_are_written(text: str, kept: dict[str, str]) -> None:
    """Also those that are none: whoever makes the template refuses them, so that no field is filled in that was to be computed."""
    parsed = parse_tag(text)
    assert (parsed.tag.preferences, parsed.tag.condition, parsed.remarks) == (kept, None, [])


def test_a_condition_without_brackets_is_one_as_before() -> None:
    assert parse_tag("Kind;condition=Pets:true").tag.condition == "Pets:true"
    assert parse_tag("Total;type=number;formula=1;default=5").remarks == [
        "the default “5” must be left out: a formula computes the value and was left out"
    ]


_WORDS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            *map(str, FieldType),
            "datenow",
            "true",
            "false",
            "-4",
            "0",
            "1e999",
            "nan",
            "2026-01-02",
            "#fff",
            "{{date}}",
            "",
        ]
    ),
    st.integers(-(10**15), 10**15).map(str),
    st.floats().map(str),
    st.dates().map(str),
)
_KEYS = st.one_of(st.sampled_from([*grammar.ATTRIBUTES, "type", "name"]), st.text(max_size=12))


@settings(max_examples=200, deadline=None)
@given(
    text=st.one_of(
        st.text(), st.lists(st.tuples(_KEYS, _WORDS)).map(lambda found: ";".join(f"{k}={v}" for k, v in found))
    )
)
def test_any_text_is_a_possible_field_or_none(text: str) -> None:
    try:
        parsed = parse_tag(text)
    except NotATag:
        return
    assert_possible(parsed)


@settings(max_examples=200, deadline=None)
@given(attributes=st.dictionaries(_KEYS, _WORDS), options=st.lists(_WORDS, max_size=5))
def test_any_attributes_are_a_possible_field_or_none(attributes: Any, options: Any) -> None:
    """Of HTML elements."""
    try:
        parsed = tag_from_attributes(attributes, name="", options=options)
    except NotATag:
        return
    assert_possible(parsed)


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(
        st.lists(
            st.sampled_from(["{{", "}}", "{", "}", "A", "B c", ";", "type=date", "option=x", "-", " "]), max_size=9
        ),
        max_size=6,
    )
)
def test_any_braces_on_a_page_are_fields_on_the_page_or_stay(lines: Any) -> None:
    content = "".join(
        pdf_files.line("".join(line), x=40 + 90 * (row % 3), y=700 - 6 * row) for row, line in enumerate(lines)
    )
    prepared = prepare(pdf_files.document(content), name="x")
    for field in prepared.fields:
        for area in field.areas:
            assert area.page == 1
            assert 0 <= area.x < area.x + area.w <= 1.000001
            assert 0 <= area.y < area.y + area.h <= 1.000001
