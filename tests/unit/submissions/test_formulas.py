"""Formulas of a submission: overrides, values that nobody may give, roles that are merged, and what parties leave."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.fields import conditions
from contracts.types import Condition
from services.submissions.planning import creation
from services.submissions.planning.plan import Plan
from services.submissions.rules.values import filling
from tests.support.material.submissions import NOW, Limits, create_command, field, template


def planned(snapshot: Any, *submitters: dict[str, Any], **more: Any) -> Plan:
    return creation.plan_submission(create_command(snapshot, *submitters, **more), snapshot, Limits(), NOW)


def refused(snapshot: Any, *submitters: dict[str, Any], **more: Any) -> list[dict[str, str]]:
    with pytest.raises(ServiceError) as caught:
        planned(snapshot, *submitters, **more)
    return list(caught.value.details)


PRICE = field("A", "Price", "number", uuid="p")
TOTAL = field("A", "Total", "number", uuid="t", readonly=True, preferences={"formula": "[[p]] * 2"})
THEIRS = field("B", "Theirs", "number", uuid="b")


def of(plan: Plan, uuid: str) -> Any:
    return next(one for one in plan.fields if one.uuid == uuid)


def test_an_override_may_bring_a_formula() -> None:
    given = {
        "fields": [{"name": "Price", "readonly": False, "preferences": {"formula": "[[Theirs]] + 1", "format": "usd"}}]
    }
    plan = planned(template(PRICE, THEIRS), given, {}, order="random")
    assert of(plan, "p").preferences == {"formula": "[[b]] + 1", "format": "usd"}
    assert of(plan, "p").readonly is True


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("[[Cost]]", "names [[Cost]], which is not a field"),
        ("[[Price]]", "depends on itself: Price → Price"),
        ("[[Total]] + 1", "depends on itself: Price → Total → Price"),
        ("concat(1)", "gives a text where a number is needed"),
        ("1 +", "ends too early"),
        ("[[Theirs]] * 2", "names fields of later parties only, and is computed before they fill them in"),
    ],
)
def test_an_override_with_a_wrong_formula_is_refused_where_it_is(formula: str, reason: str) -> None:
    given = {"fields": [{"name": "Price", "preferences": {"formula": formula}}]}
    assert refused(template(PRICE, TOTAL, THEIRS), given, {}) == [
        {"field": "submitters[0].fields[0].preferences.formula", "reason": reason}
    ]


def test_what_an_override_does_to_the_formulas_of_a_template() -> None:
    snapshot = template(field("A", "Sum", "number", uuid="s", preferences={"formula": "[[b]] + [[p]]"}), PRICE, THEIRS)
    masked = {"fields": [{"name": "Theirs", "preferences": {"mask": True}}]}
    assert refused(snapshot, {}, masked) == [
        {
            "field": "template_id",
            "reason": "has the field Sum whose preferences.formula names [[b]] of B, which is masked: whoever fills in the form could read it",
        }
    ]


def test_a_party_that_does_not_take_part_has_left_everything_empty() -> None:
    late = field(
        "A",
        "Sum",
        "number",
        uuid="s",
        readonly=True,
        preferences={"formula": "[[b]] + [[p]]", "condition": "[[b]] > 1"},
    )
    plan = planned(template(PRICE, late, THEIRS), {"role": "A"})
    assert of(plan, "s").preferences == {"formula": "empty + [[p]]", "condition": "empty > 1"}


def test_nobody_gives_the_value_of_a_formula() -> None:
    snapshot = template(PRICE, TOTAL)
    said = "is computed by a formula and takes no value"
    assert refused(snapshot, {"values": {"Total": 5}}) == [{"field": "submitters[0].values.Total", "reason": said}]
    assert refused(snapshot, {"fields": [{"name": "Total", "default_value": 5}]}) == [
        {"field": "submitters[0].fields[0].default_value", "reason": said}
    ]
    assert planned(snapshot, {"values": {"Total": ""}}).submitters[0].values == {}


def test_order_says_what_a_formula_can_find() -> None:
    snapshot = template(
        field("A", "Sum", "number", uuid="s", readonly=True, preferences={"formula": "[[b]] * 2"}), THEIRS
    )
    assert [one["field"] for one in refused(snapshot, {}, {})] == ["template_id"]
    for fitting in (
        planned(snapshot, {}, {}, order="random"),
        planned(snapshot, {"order": 1}, {"order": 0}),
        planned(snapshot, {"order": 0}, {"order": 0}),
        planned(snapshot, {}, {"completed": True, "values": {"Theirs": 4}}),
        planned(template(TOTAL, PRICE, THEIRS), {}, {}),
    ):
        assert fitting.fields


def test_roles_that_are_merged() -> None:
    other = field("B", "Price", "number", uuid="p2")
    sum_ = field("B", "Sum", "number", uuid="s", readonly=True, preferences={"formula": "[[p2]] * 3"})
    plan = planned(template(PRICE, TOTAL, other, sum_), {"roles": ["A", "B"]})
    assert [one.uuid for one in plan.fields] == ["p", "t", "s"]
    assert of(plan, "s").preferences["formula"] == "[[p]] * 3"


OWN = [
    PRICE,
    TOTAL,
    field("A", "Limit", "number", uuid="l", readonly=True, preferences={"formula": "[[t]]"}, validation={"max": 100, "message": "At most 100"}),
    field("A", "Why", uuid="w", required=False, preferences={"required_if": "[[t]] > 50"}),
    field("A", "More", uuid="m", conditions=[Condition(field_uuid="t", action="greater_than", value=10)]),
]  # fmt: skip


def finished(**values: Any) -> Any:
    kept, faults = filling.finished(OWN, [*OWN, THEIRS], {}, values, {"b": 1})
    return kept, [(one.uuid, reason) for one, reason in faults]


def test_what_a_party_leaves_has_what_was_computed() -> None:
    assert finished(p=2.5, t=1000, l=1000) == ({"p": 2.5, "t": 5, "l": 5}, [])
    assert finished(p=10)[1] == [("m", "is required")]
    assert finished(p=30, m="x", w=None) == ({"p": 30, "t": 60, "l": 60, "m": "x", "w": None}, [("w", "is required")])


def test_what_is_computed_may_break_a_rule_and_is_said_so() -> None:
    assert finished(p=60, m="x", w="y")[1] == [("l", "At most 100")]


def test_a_page_may_say_what_it_likes_of_a_computed_field() -> None:
    signing = filling.Signing({}, NOW, "UTC")
    assert filling.merged(OWN, {}, {"p": "4", "t": "a thousand", "l": 7}, {}, signing) == {"p": 4}
    assert filling.with_attempts(OWN, {}, {"p": 4, "t": 7}, {}) == {"p": 4}


def test_computed_values_are_put_in_place_of_others() -> None:
    assert filling.computed(OWN, OWN, {}, {"p": 4, "t": 7, "l": 9, "w": "x"}, {}) == {"p": 4, "w": "x", "t": 8, "l": 8}
    assert filling.computed([PRICE], OWN, {}, {"p": 4, "t": 7}, {}) == {"p": 4, "t": 7}
    assert conditions.computing(OWN) == {"t", "l"}
