"""What a template makes of values, and the table of cases that says what is expected."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.fields import trying
from contracts.types import Area, Condition, FieldDefinition, Party
from tests.support.formulas.fields import field

BUYER, SELLER = Party(uuid="buyer", name="Buyer"), Party(uuid="seller", name="Seller")


def definition(*fields: FieldDefinition, documents: dict[str, list[Condition]] | None = None) -> trying.Definition:
    return trying.Definition([BUYER, SELLER], fields, dict.fromkeys(documents or {}, "Annex"), documents or {})


ORDER = definition(
    field("Price", "number", "seller"),
    field("Quantity", "number"),
    field("Total", "number", "seller", readonly=True, preferences={"formula": "[[Price]] * [[Quantity]]"}),
    field("Early", "number", readonly=True, preferences={"formula": "[[Price]] * [[Quantity]]"}),
    field(
        "Reason",
        "text",
        required=False,
        preferences={"condition": "[[Quantity]] > 10", "required_if": "[[Quantity]] > 20"},
    ),
    field("Country", "select", options=["AT", "FR"], default_value="AT"),
    field("Today", "date", default_value="{{date}}"),
    field("Title", "heading", default_value="Order"),
    field("Annexed", "text", "seller", areas=[Area(x=0, y=0, w=1, h=1, attachment_uuid="annex")]),
    documents={"annex": [Condition(field_uuid="Total", action="greater_than", value=100)]},
)


def tried(**values: Any) -> dict[str, Any]:
    (found,) = trying.run_cases(ORDER, [{"values": values}], [""])
    return found


def column(found: dict[str, Any], key: str) -> dict[str, Any]:
    return {one["name"]: one[key] for one in found["fields"]}


def test_values_are_computed_as_each_party_completes() -> None:
    found = tried(Price=20, Quantity=3)
    values = column(found, "value")
    assert (values["Total"], values["Early"], values["Country"], values["Today"]) == (60, 0, "AT", None)
    assert [name for name, computed in column(found, "computed").items() if computed] == ["Total", "Early"]
    assert found["documents"] == [{"uuid": "annex", "name": "Annex", "shown": False}]
    assert tried(Price=20, Quantity=6)["documents"][0]["shown"] is True


def test_what_is_shown_and_what_is_required() -> None:
    for quantity, shown, required in [(10, False, False), (20, True, False), (21, True, True)]:
        found = tried(Quantity=quantity, Reason="many")
        assert (column(found, "shown")["Reason"], column(found, "required")["Reason"]) == (shown, required)
        assert column(found, "value")["Reason"] == ("many" if shown else None)
    found = tried(Price=60, Quantity=2)
    assert [name for name, required in column(found, "required").items() if required] == [
        "Price", "Quantity", "Country", "Today", "Annexed",
    ]  # fmt: skip


def test_a_default_is_emptied_by_null() -> None:
    assert column(tried(Country=None), "value")["Country"] is None


def test_a_table_of_cases() -> None:
    cases: list[dict[str, Any]] = [
        {"values": {"Price": "20", "Quantity": 3}, "expect": {"Total": {"value": 60}, "Reason": {"shown": False, "required": False}}},
        {"values": {"Price": 20}, "expect": {"Seller: Total": {"value": 60.5}, "Country": {"value": "FR", "required": False}}},
        {"values": {}},
    ]  # fmt: skip
    found = trying.run_cases(ORDER, cases, ["cases[0].", "cases[1].", "cases[2]."])
    assert [one["mismatches"] for one in found] == [
        [],
        [
            {"field": "Seller: Total", "what": "value", "expected": 60.5, "actual": 0},
            {"field": "Country", "what": "value", "expected": "FR", "actual": "AT"},
            {"field": "Country", "what": "required", "expected": False, "actual": True},
        ],
        [],
    ]


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"values": {"Cost": 1}}, "cases[0].values.Cost names [[Cost]], which is not a field"),
        ({"values": {"Quantity": "many"}}, "cases[0].values.Quantity must be a number"),
        ({"values": {"Total": 1}}, "cases[0].values.Total is computed by a formula and takes no value"),
        ({"values": {"Title": "x"}}, "cases[0].values.Title must be left out: a heading field takes no value"),
        ({"values": {}, "expect": {"Cost": {"value": 1}}}, "cases[0].expect.Cost names [[Cost]], which is not a field"),
        ({"values": {}, "expect": {"Total": {"value": "x"}}}, "cases[0].expect.Total must be a number"),
        (
            {"values": {}, "expect": {"Total": {"valu": 1}}},
            "cases[0].expect.Total.valu must be one of value, shown, required",
        ),
    ],
)
def test_what_is_refused(case: dict[str, Any], said: str) -> None:
    with pytest.raises(ServiceError) as refused:
        trying.run_cases(ORDER, [case], ["cases[0]."])
    assert (refused.value.code, refused.value.message) == ("invalid", said)


def test_as_many_cases_as_can_be_decided() -> None:
    large = definition(*(field(f"f{number}", "text") for number in range(2_000)))
    assert len(trying.run_cases(large, [{"values": {}}] * 2, [""] * 2)) == 2
    with pytest.raises(ServiceError, match="cases must not have more than 50 entries for this template"):
        trying.run_cases(large, [{"values": {}}] * 51, [""] * 51)
