"""What is a formula, what is said of one that is none, and what one may cost."""

from typing import Any

import pytest

from contracts.fields.formulas import evaluating, grammar
from contracts.fields.formulas.functions import FUNCTIONS
from contracts.fields.values import BadValue
from tests.support.formulas.fields import FIELDS, field


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "ends too early"),
        ("1 +", "ends too early"),
        ("(1", "ends too early: ')' is missing"),
        ("1)", "has an unexpected ')' at character 2"),
        ("1 2", "has an unexpected '2' at character 3"),
        ("1..2", "has an unexpected '.' at character 2"),
        ("if(1, 2", "ends too early: ',' is missing"),
        ("sum(1 2)", "has an unexpected '2' at character 7: ',' is missing"),
        ("sum(,)", "has an unexpected ',' at character 5"),
        ("Price * 2", "has 'Price' at character 1: names of fields are written [[Price]]"),
        ("and", "has an unexpected 'and' at character 1"),
        ('"open', "has an unexpected '\"' at character 1"),
        ("[[a]", "has an unexpected '[' at character 1"),
        ("[[]]", "has an unexpected '[' at character 1"),
        ("1 ; 2", "has an unexpected ';' at character 3"),
        ("[[A]].name", "has an unexpected '.' at character 6"),
        ("1 < 2 < 3", "compares twice at character 7: write `and` between two comparisons"),
        ("123456789012345678901", "has a number of more than 20 digits at character 1"),
        ("1.123456789012345678901", "has a number of more than 20 digits at character 1"),
        ("(" * 40 + "1" + ")" * 40, "must not be nested deeper than 32 levels"),
        ("-" * 40 + "1", "must not be nested deeper than 32 levels"),
        ("+".join(["1"] * 200), "must not have more than 300 parts"),
        ("1" * 5_001, "must not be longer than 5,000 characters"),
        (5, "must be text"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_formula(text: Any, said: str) -> None:
    with pytest.raises(BadValue) as refused:
        grammar.checked_text(text)
    assert refused.value.reason == said


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("[[Name]] * 2", "number", "has a text where a number is needed (*)"),
        ("-[[Agreed]]", "number", "has yes or no where a number is needed (-)"),
        ("[[Start]] + 1", "number", "has a date where a number is needed (+)"),
        ("[[Name]] and true", "checkbox", "has a text where yes or no is needed (and)"),
        ("not 1", "checkbox", "has a number where yes or no is needed (not)"),
        ("[[Name]] < [[City]]", "checkbox", "compares a text by its size: only numbers and dates have one (<)"),
        ('[[Quantity]] = "2"', "checkbox", "has a text where a number is needed (=)"),
        ("[[Colours]] = [[Colours]]", "checkbox", "has several options where there must be one value: use contains() or is_empty() (=)"),
        ("if(1, 2, 3)", "number", "has a number where yes or no is needed (if())"),
        ('if(true, 2, "a")', "number", "has a text where a number is needed (if())"),
        ("if(true, 2)", "number", "has 2 arguments where there must be 3 (if())"),
        ("round()", "number", "has 0 arguments where there must be 1 or 2 (round())"),
        ("sum()", "number", "has 0 arguments where there must be 1 or more (sum())"),
        ("max([[Quantity]], [[Start]])", "number", "has a date where a number is needed (max())"),
        ("min([[Name]])", "text", "has a text where a number is needed (min())"),
        ("concat([[Agreed]])", "text", "has yes or no where a text is needed (concat())"),
        ("[[Signature]]", "text", "gives a picture, a file or a proof where a text is needed"),
        ("[[Agreed]]", "text", "gives yes or no where a text is needed"),
        ("[[Start]]", "number", "gives a date where a number is needed"),
        ("[[Name]]", "number", "gives a text where a number is needed"),
        ("eval([[Name]])", "text", "has an unknown function eval()"),
        ("today()", "date", "has an unknown function today()"),
        ('date("2026-02-30")', "date", "has a date '2026-02-30', which is not a day as YYYY-MM-DD"),
        ('date("2026-W05-6")', "date", "has a date '2026-W05-6', which is not a day as YYYY-MM-DD"),
        ("date([[Name]])", "date", 'must have a day in date(), such as date("2026-01-31")'),
        ('format([[Quantity]], "xyz")', "text", "must format numbers as one of usd, eur,"),
        ('format([[Start]], "D MMMM YYYY")', "text", "must format dates by YYYY, YY, MM, M, DD and D, such as DD/MM/YYYY"),
        ('format([[Start]], "HH:mm")', "text", "must format dates by"),
        ("format([[Start]], [[Name]])", "text", "must have the pattern of format() in quotes"),
        ('format([[Name]], "usd")', "text", "has a text where a number or a date is needed (format())"),
        ("[[Heading]]", "text", "names a heading field, which has no value"),
    ],
)  # fmt: skip
def test_wrong_kinds_are_found_before_anybody_fills_in_anything(text: str, kind: str, said: str) -> None:
    fields = {**FIELDS, "Heading": field("Heading", "heading")}
    with pytest.raises(BadValue) as refused:
        evaluating.check_result(grammar.parse(text), fields, evaluating.COMPUTED[field("R", kind).type])
    assert refused.value.reason.startswith(said)


def test_every_judge_is_heard() -> None:
    """No function takes a picture but the one that asks whether it is there."""
    for name in FUNCTIONS:
        if name in ("is_empty", "date"):
            continue
        for count in (1, 2, 3):
            with pytest.raises(BadValue):
                evaluating.kind_of(("call", name, (("field", "Signature"),) * count), FIELDS)


def test_names_are_replaced_and_the_rest_stays_as_it_is_written() -> None:
    text = 'IF( [[ Unit price ]]>1 ,"[[no name]]"  , {{3b7f9a52-6f0e-4f6a-9a52-0d0c3f1f9e11}})'
    assert grammar.renamed(text, lambda name: {"Unit price": "u"}.get(name)) == 'IF( [[u]]>1 ,"[[no name]]"  , empty)'


def test_what_was_stored_and_is_no_formula_is_empty() -> None:
    """An older or a newer version may have stored it: nobody is kept from signing."""
    assert grammar.parsed_or_empty("1 +") == ("empty",)
    assert evaluating.result(field("R", "number"), ("call", "newer", ()), lambda _: None) is None
    assert evaluating.holds(("call", "newer", ()), lambda _: None) is True
    assert evaluating.result(field("R", "number"), grammar.parse('upper("a")'), lambda _: None) is None


def test_the_longest_formula_is_computed_without_deep_recursion() -> None:
    chain = grammar.parse("+".join(["1"] * 150))
    assert evaluating.result(field("R", "number"), chain, lambda _: None) == 150
    assert grammar.parse(grammar.written(grammar.parse("+".join(["1"] * 15)))) == grammar.parse("+".join(["1"] * 15))
    assert evaluating.settled(chain, (), lambda _: None) == ("number", "150")


def test_texts_that_are_too_long_are_none() -> None:
    doubled = grammar.parse("concat([[Name]], [[Name]])")
    assert evaluating.result(field("R", "text"), doubled, lambda _: "x" * 5_000) == "x" * 10_000
    assert evaluating.result(field("R", "text"), doubled, lambda _: "x" * 5_001) is None
