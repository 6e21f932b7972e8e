"""Which fields a formula names, and what is wrong with the formulas of a whole definition."""

from typing import Any

import pytest

from contracts.fields.formulas import references
from contracts.fields.formulas.references import Fault
from contracts.types import Area, Condition, FieldDefinition
from tests.support.formulas.fields import field

UUID = "3b7f9a52-6f0e-4f6a-9a52-0d0c3f1f9e11"


def computed(name: str, formula: str, kind: str = "number", party: str = "buyer", **more: Any) -> FieldDefinition:
    return field(name, kind, party, preferences={"formula": formula}, **more)


def formula_of(target: FieldDefinition, *others: FieldDefinition) -> str:
    preferences, faults = references.checked([target, *others], {})
    assert faults == []
    return str(preferences[target.uuid]["formula"])


def fault_of(*fields: FieldDefinition, documents: Any = None) -> list[tuple[str, str, str]]:
    _, faults = references.checked(fields, documents or {})
    return [(fault.field_uuid, fault.key, fault.reason) for fault in faults]


def test_names_become_uuids() -> None:
    price = field("p", "number", name="Unit price")
    unnamed = field("n", "number", name="")
    total = computed("t", "[[Unit price]] * 2 + [[Number Field 3]]")
    assert formula_of(total, price, unnamed) == "[[p]] * 2 + [[n]]"


def test_a_name_of_the_same_role_goes_before_others() -> None:
    own, others = field("a", "number", name="Price"), field("b", "number", "seller", name="Price")
    assert formula_of(computed("t", "[[Price]]"), others, own) == "[[a]]"
    assert formula_of(computed("t", "[[Price]]"), others) == "[[b]]"
    assert formula_of(computed("t", "[[Seller: Price]] + [[seller:Price]]"), own, others) == "[[b]] + [[b]]"


def test_a_field_may_have_colons_in_its_name_and_is_found_by_its_uuid() -> None:
    odd = field("a", "number", "seller", name="Price: net")
    assert formula_of(computed("t", "[[Price: net]] + [[Seller: Price: net]]"), odd) == "[[a]] + [[a]]"
    by_uuid = field(UUID, "number", name="Price")
    assert formula_of(computed("t", f"{{{{{UUID}}}}} + [[{UUID}]]"), by_uuid) == f"[[{UUID}]] + [[{UUID}]]"


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("[[Cost]]", "names [[Cost]], which is not a field"),
        ("[[Buyer: Cost]]", "names [[Buyer: Cost]], which is not a field"),
        ("[[Price]]", "names [[Price]], which is more than one field: write [[Seller: Price]] or [[Bank: Price]]"),
        ("[[Twice]]", "names [[Twice]], which is more than one field: write its uuid"),
        ("[[Secret]] + 1", "names [[Secret]] of Seller, which is masked: whoever fills in the form could read it"),
        ("[[Text]] + 1", "has a text where a number is needed (+)"),
        ("1 +", "ends too early"),
    ],
)
def test_what_a_formula_cannot_name(formula: str, said: str) -> None:
    others = [
        field("p1", "number", "seller", name="Price"),
        field("p2", "number", "bank", name="Price"),
        field("t1", "number", name="Twice"),
        field("t2", "date", name="Twice"),
        field("s", "number", "seller", name="Secret", preferences={"mask": -2}),
        field("x", "text", name="Text"),
    ]
    assert fault_of(computed("t", formula), *others) == [("t", "formula", said)]


def test_a_masked_field_of_ones_own_may_be_named() -> None:
    own = field("s", "number", name="Secret", preferences={"mask": True})
    assert formula_of(computed("t", "[[Secret]]"), own) == "[[s]]"
    shown = field("s", "number", "seller", name="Secret", preferences={"mask": False})
    assert formula_of(computed("t", "[[Secret]]"), shown) == "[[s]]"


def test_conditions_must_be_yes_or_no() -> None:
    odd = field("c", "text", preferences={"condition": "1 + 1", "required_if": "concat(1)"})
    assert fault_of(odd) == [
        ("c", "condition", "gives a number where yes or no is needed"),
        ("c", "required_if", "gives a text where yes or no is needed"),
    ]


def test_formulas_that_depend_on_themselves() -> None:
    assert fault_of(computed("a", "[[a]]")) == [("a", "formula", "depends on itself: a → a")]
    circle = [computed("a", "[[b]]"), computed("b", "[[c]]"), computed("c", "[[a]] + [[d]]"), field("d", "number")]
    assert fault_of(*circle) == [("a", "formula", "depends on itself: a → b → c → a")]
    chain = [computed("a", "[[b]] + [[c]]"), computed("b", "[[c]]"), field("c", "number")]
    assert fault_of(*chain) == []


def test_a_circle_by_way_of_conditions_and_documents() -> None:
    shown_by = field("b", "number", conditions=[Condition(field_uuid="a", action="not_empty")])
    assert fault_of(computed("a", "[[b]]"), shown_by) == [("a", "formula", "depends on itself: a → b → a")]
    self_shown = field("a", "number", preferences={"condition": "[[a]] > 1"})
    assert fault_of(self_shown) == [("a", "condition", "depends on itself: a → a")]
    on_paper = field("b", "number", areas=[Area(x=0, y=0, w=1, h=1, attachment_uuid="paper")])
    documents = {"paper": [Condition(field_uuid="a", action="not_empty")]}
    assert fault_of(computed("a", "[[b]]"), on_paper, documents=documents) == [
        ("a", "formula", "depends on itself: a → b → a")
    ]
    # What is asked for does not change what is there.
    assert fault_of(field("a", "number", preferences={"required_if": "[[a]] > 1"})) == []


def test_conditions_in_a_circle_without_any_expression_are_as_before() -> None:
    either = [
        field("a", "text", conditions=[Condition(field_uuid="b", action="empty")]),
        field("b", "text", conditions=[Condition(field_uuid="a", action="empty")]),
    ]
    assert fault_of(*either, computed("t", "1")) == []


def test_what_is_computed_is_read_only_and_what_is_required_sometimes_is_not_required() -> None:
    assert references.consistent(computed("a", "1")).readonly is True
    assert references.consistent(field("a", "text", preferences={"required_if": "true"})).required is False
    plain = field("a", "text")
    assert references.consistent(plain) is plain


def test_formulas_follow_their_fields() -> None:
    one = field(
        "c", "number", preferences={"formula": "[[a]] + [[b]]", "condition": "[[a]] > 1", "required_if": "[[b]] > 1"}
    )
    assert references.renamed(one, {"a": "x"}).preferences == {
        "formula": "[[x]] + [[b]]", "condition": "[[x]] > 1", "required_if": "[[b]] > 1",
    }  # fmt: skip
    assert references.emptied(one, {"b"}).preferences["condition"] == "empty > 1"
    assert references.without(one, {"b"}).preferences == {"formula": "empty + [[b]]", "required_if": "[[b]] > 1"}
    assert references.without(one, {"a", "b"}) == one


def test_formulas_of_later_parties_only() -> None:
    fields = [
        computed("a", "[[late]] * 2"),
        computed("b", "[[late]] + [[own]]"),
        computed("c", "1 + 1"),
        field("own", "number"),
        field("late", "number", "seller"),
    ]
    said = "names fields of later parties only, and is computed before they fill them in"
    in_order = {"buyer": {"buyer"}, "seller": {"buyer", "seller"}}
    assert list(references.never_computed(fields, in_order)) == [Fault("a", "formula", said)]
    assert list(references.never_computed(fields, {"buyer": {"buyer", "seller"}})) == []
