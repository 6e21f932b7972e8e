"""Formulas of a template: looked up, refused at every door with the field named, and kept right when fields move."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.rpc.rendering import TagField
from contracts.rpc.templates import FieldInput
from contracts.types import Area, Condition, PageSize
from services.templates.rules import combining
from services.templates.rules.document_conditions import DocumentConditions
from services.templates.rules.domain import (
    Definition,
    DocumentFields,
    Limits,
    cloned,
    define,
    redefine,
    with_conditions,
)

LETTER = PageSize(width=612, height=792)
BOX = {"x": 0.1, "y": 0.1, "w": 0.2, "h": 0.05}


def explicit(name: str, formula: str | None = None, kind: str = "number", **more: Any) -> FieldInput:
    return FieldInput(name=name, type=kind, preferences={"formula": formula} if formula else {}, **more)


def tag(name: str, kind: str = "number", **more: Any) -> TagField:
    return TagField(name=name, type=kind, areas=[Area(**BOX)], **more)


def made(*fields: FieldInput, found: tuple[TagField, ...] = ()) -> Definition:
    return define([DocumentFields("d", "lease", "documents[0]", "file", [LETTER], fields, found)], Limits())


def formula(definition: Definition, name: str, key: str = "formula") -> Any:
    """With names in place of uuids."""
    names = {one.uuid: one.name for one in definition.fields}
    text = next(one for one in definition.fields if one.name == name).preferences.get(key)
    for uuid, called in names.items():
        text = text and text.replace(uuid, called)
    return text


def refused(*fields: FieldInput, found: tuple[TagField, ...] = ()) -> list[dict[str, str]]:
    with pytest.raises(ServiceError) as caught:
        made(*fields, found=found)
    return list(caught.value.details)


def test_explicit_fields_and_tags_name_each_other() -> None:
    rate = tag("Rate", preferences={"formula": "[[Price]] / 100", "required_if": "[[Price]] > 5"})
    made_ = made(explicit("Price"), explicit("Total", "[[Price]] * [[Rate]]"), found=(rate,))
    assert formula(made_, "Total") == "[[Price]] * [[Rate]]"
    assert formula(made_, "Rate") == "[[Price]] / 100"
    total, rate_ = (next(one for one in made_.fields if one.name == name) for name in ("Total", "Rate"))
    assert (total.readonly, total.required, rate_.readonly, rate_.required) == (True, True, True, False)
    assert total.uuid not in str(total.preferences)
    assert "Price" not in str(total.preferences)


def test_what_is_wrong_is_said_of_the_field() -> None:
    assert refused(explicit("Total", "[[Cost]]"), explicit("Odd", "1", "signature")) == [
        {
            "field": "documents[0].fields[1].preferences.formula",
            "reason": "is for number, text, cells, date, checkbox fields only",
        },
        {"field": "documents[0].fields[0].preferences.formula", "reason": "names [[Cost]], which is not a field"},
    ]
    assert refused(explicit("A", "[[B]]"), explicit("B", "[[A]]")) == [
        {"field": "documents[0].fields[0].preferences.formula", "reason": "depends on itself: A → B → A"}
    ]
    assert refused(explicit("A", "1", default_value=5)) == [
        {"field": "documents[0].fields[0].default_value", "reason": "must be left out: a formula computes the value"}
    ]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"preferences": {"formula": "[[Cost]]"}}, "preferences.formula names [[Cost]], which is not a field"),
        ({"preferences": {"formula": "1 +"}}, "preferences.formula ends too early"),
        ({"preferences": {"condition": "[[A]]"}}, "preferences.condition gives a number where yes or no is needed"),
        (
            {"kind": "signature", "preferences": {"formula": "1"}},
            "preferences.formula is for number, text, cells, date,",
        ),
    ],
)
def test_a_tag_with_a_wrong_formula_is_refused_not_left_out(more: dict[str, Any], reason: str) -> None:
    """Else somebody would fill in what was to be computed."""
    (problem,) = refused(found=(tag("A", **more),))
    assert problem["field"] == "documents[0].file"
    assert problem["reason"].startswith(f"has a field 'A' whose {reason}")


def test_a_field_that_a_formula_names_cannot_go_from_the_list() -> None:
    before = made(explicit("Price", areas=[BOX]), explicit("Total", "[[Price]] * 2", areas=[BOX]))
    total = before.fields[1]
    as_sent = FieldInput(**{**total.model_dump(), "areas": [BOX], "conditions": []})
    with pytest.raises(ServiceError) as caught:
        redefine([as_sent], before.parties, {"d": [LETTER]}, [], Limits(), before.fields)
    assert caught.value.details == [
        {"field": "fields[0].preferences.formula", "reason": f"names [[{before.fields[0].uuid}]], which is not a field"}
    ]
    price = FieldInput(uuid=before.fields[0].uuid, name="Net price", type="number", areas=[BOX])
    after = redefine([as_sent, price], before.parties, {"d": [LETTER]}, [], Limits(), before.fields)
    assert formula(after, "Total") == "[[Net price]] * 2"
    assert after.fields[0].readonly is True


def test_a_copy_has_formulas_of_its_own() -> None:
    before = made(explicit("Price"), explicit("Total", "[[Price]] * 2"))
    copy = cloned(before, {"d": "e"})
    assert formula(copy, "Total") == "[[Price]] * 2"
    assert before.fields[0].uuid not in str(copy.fields[1].preferences)


def test_templates_that_become_one() -> None:
    first = made(explicit("Price"), explicit("Total", "[[Price]] * 2"))
    second = cloned(made(explicit("Price"), explicit("Tax", "[[Price]] * 0.2")), {"d": "e"})
    both = combining.combined([first, second], Limits())
    assert [one.name for one in both.fields] == ["Price", "Total", "Tax"]
    assert formula(both, "Tax") == "[[Price]] * 0.2"


def test_a_document_that_goes_takes_its_fields_out_of_formulas() -> None:
    price, total, note = explicit("Price"), explicit("Total", "[[Price]] * 2"), explicit("Note", kind="text")
    note.preferences = {"condition": "[[Price]] > 1", "required_if": "[[Total]] > 1"}
    before = made(price, total, note)
    for number, one in enumerate(before.fields):
        one.areas = [Area(**BOX, attachment_uuid="d" if number else "gone")]
    left = combining.without(before, {"gone": None})
    assert formula(left, "Total") == "empty * 2"
    assert (formula(left, "Note", "condition"), formula(left, "Note", "required_if")) == (None, "[[Total]] > 1")
    assert [notice.code for notice in left.notices] == ["condition_dropped", "condition_dropped"]


def test_a_document_is_not_shown_by_what_is_computed_from_it() -> None:
    before = made(explicit("Price"), explicit("Total", "[[Price]] * 2"), explicit("Other"))
    before.fields[0].areas = [Area(**BOX, attachment_uuid="d"), Area(**BOX, attachment_uuid="e")]
    conditions = [Condition(field_uuid=before.fields[1].uuid, action="not_empty")]
    with pytest.raises(ServiceError, match="depends on itself: Total → Price → Total"):
        with_conditions(before, [DocumentConditions("d", conditions, "schema[0]")])
    assert with_conditions(before, [DocumentConditions("x", conditions, "schema[0]")]).conditions
