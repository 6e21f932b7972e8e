"""Conditions and formulas are decided together: by the server and by the page, in the same way."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from contracts.fields import conditions
from contracts.fields.formulas.references import EXPRESSIONS, expression
from contracts.types import Area, Condition, FieldDefinition
from tests.support.formulas import page
from tests.support.formulas.fields import field


def when(uuid: str, action: str = "not_empty", value: Any = None) -> Condition:
    return Condition(field_uuid=uuid, action=action, value=value)


def said(uuid: str, kind: str, conditions_: list[Condition] | None = None, **preferences: Any) -> FieldDefinition:
    return field(uuid, kind, preferences=preferences, conditions=conditions_ or [])


def on(uuid: str, paper: str, kind: str = "number", **preferences: str) -> FieldDefinition:
    return field(uuid, kind, preferences=preferences, areas=[Area(x=0, y=0, w=1, h=1, attachment_uuid=paper)])


FORMS: list[tuple[list[FieldDefinition], dict[str, list[Condition]]]] = [
    (  # a chain of formulas, in any order
        [said("t", "number", formula="[[s]] * 2"), said("s", "number", formula="[[a]] + [[b]]"), said("a", "number"), said("b", "number")],
        {},
    ),
    (  # what is hidden counts as empty, and is not computed
        [said("a", "number", [when("b", "greater_than", 1)]), said("b", "number"), said("t", "number", [when("a")], formula="[[a]] + 1")],
        {},
    ),
    (  # conditions on what is computed
        [said("t", "number", formula="[[a]] * [[b]]"), said("x", "text", [when("t", "greater_than", 3)]), said("a", "number"), said("b", "number")],
        {},
    ),
    (  # conditions that are expressions, beside others
        [said("x", "text", [when("a")], condition="[[b]] > [[a]]"), said("y", "text", condition="is_empty([[x]])"), said("a", "number"), said("b", "number")],
        {},
    ),
    (  # documents that a formula decides about, and a formula on such a document
        [on("t", "d", formula="[[a]] + [[b]]"), on("u", "e", formula="[[t]] * 2"), said("a", "number"), said("b", "number")],
        {"d": [when("a")], "e": [when("t", "greater_than", 2)]},
    ),
    ([said("t", "number", formula="[[t]] + 1"), said("x", "text", condition="[[t]] > 0")], {}),  # circles of older versions
    (  # what must be filled in sometimes; what cannot be computed
        [said("x", "text", required_if="[[a]] > [[b]]"), said("y", "text", required_if="1 / [[a]] > 0"), said("z", "text", condition="1 / [[a]] > 0"),
         said("a", "number"), said("b", "number")],
        {},
    ),
]  # fmt: skip
HELD = [
    dict(zip("abx", values, strict=True)) for values in itertools.product([None, 0, 2, 3], [None, 1, 3], [None, "x"])
]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[page.Ask]:
    with page.computing(tmp_path_factory.mktemp("page")) as asking:
        yield asking


def as_json(one: FieldDefinition) -> dict[str, Any]:
    trees = {key: tree for key in EXPRESSIONS if (tree := expression(one, key)) is not None}
    return {**one.model_dump(mode="json"), "expressions": trees}


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_the_page_decides_as_the_server(
    form: tuple[list[FieldDefinition], dict[str, list[Condition]]], ask: page.Ask
) -> None:
    fields, documents = form
    computing = conditions.computing(fields)
    papers = [{"uuid": uuid, "conditions": [one.model_dump() for one in of]} for uuid, of in documents.items()]
    for held in HELD:
        found = conditions.decided(fields, documents, held, computing)
        answer = ask({"fields": [as_json(one) for one in fields], "documents": papers, "values": held})
        assert answer["hidden"] == sorted(found.hidden), held
        assert answer["required"] == [one.uuid for one in fields if found.requires(one)], held
        there = {uuid: value for uuid, value in answer["computed"].items() if value is not None}
        assert there == {uuid: found.values[uuid] for uuid in computing if uuid in found.values}, held


def decided(form: int, **held: Any) -> conditions.Decided:
    fields, documents = FORMS[form]
    return conditions.decided(fields, documents, held, conditions.computing(fields))


def test_formulas_are_computed_in_the_order_in_which_they_need_each_other() -> None:
    assert decided(0, a=1, b=2).values == {"a": 1, "b": 2, "s": 3, "t": 6}


def test_what_is_given_for_a_computed_field_counts_for_nothing() -> None:
    assert decided(0, a=1, b=2, s=100, t=100).values == {"a": 1, "b": 2, "s": 3, "t": 6}
    fields, documents = FORMS[0]
    assert conditions.decided(fields, documents, {"a": 1, "t": 100}, {"s"}).values == {"a": 1, "t": 100, "s": 1}


def test_what_is_hidden_is_empty() -> None:
    found = decided(1, a=5, b=1, t=7)
    assert found.hidden == {"a", "t"}
    assert "t" not in found.values
    assert decided(1, a=5, b=2).values["t"] == 6


def test_a_condition_on_what_is_computed() -> None:
    assert decided(2, a=1, b=3).hidden == {"x"}
    assert decided(2, a=2, b=3).hidden == set()


def test_expressions_and_conditions_must_hold_both() -> None:
    assert decided(3, b=1).hidden == {"x"}
    assert decided(3, a=2, b=1).hidden == {"x"}
    assert decided(3, a=1, b=2, x="x").hidden == {"y"}


def test_documents() -> None:
    assert decided(4, b=5).hidden == {"d", "e", "t", "u"}
    assert decided(4, a=1, b=1).hidden == {"e", "u"}
    assert decided(4, a=1, b=2).values["u"] == 6


def test_a_circle_ends() -> None:
    assert decided(5).values == {"t": 1}


def test_what_cannot_be_computed_is_shown_and_asked_for() -> None:
    found = decided(6, b=1)
    assert found.hidden == set()
    assert [one.uuid for one in FORMS[6][0] if found.requires(one)] == ["y", "z", "a", "b"]


def test_what_is_undecided_follows_expressions() -> None:
    fields, documents = FORMS[3]
    assert conditions.undecided(fields, documents, ["b"]) == {"x", "y"}


def test_the_page_learns_no_more_of_others_than_it_needs() -> None:
    fields = [said("mine", "number"), said("theirs", "number"), said("name", "text")]
    kinds = {one.uuid: one.type for one in fields}

    def left(values: dict[str, Any], **preferences: Any) -> Any:
        settled = conditions.settled_expressions(said("t", "number", **preferences), kinds, {"mine", "t"}, values)
        return settled and settled.preferences

    known = {"theirs": 40, "name": "Ana"}
    assert left(known, formula="[[mine]] + [[theirs]] / 4 - 1") == {"formula": "(([[mine]] + 10) - 1)"}
    assert left(known, formula="if([[theirs]] > 10, 1, [[mine]])") == {"formula": "1"}
    assert left(known, required_if='[[name]] = "Ana"') == {"required_if": "true"}
    assert left(known, condition="[[theirs]] > 100") is None
    assert left({}, condition="[[theirs]] > 100 or [[mine]] > 1") == {"condition": "([[mine]] > 1)"}
    assert left({}, formula="concat([[name]], [[mine]])") == {"formula": "concat(empty, [[mine]])"}
    assert left({}) == {}
