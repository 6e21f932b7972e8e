"""``roles: [a, b]``: several roles of the template for one submitter."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.problems import Problems
from contracts.rpc.submissions.api import NewSubmitter
from contracts.types import Account, Area, Condition
from services.submissions.planning import creation
from services.submissions.planning.plan import Plan
from services.submissions.rules.parties import merging
from tests.support.material.submissions import NOW, Limits, create_command, field, template


def planned(found: Any, *submitters: dict[str, Any]) -> Plan:
    return creation.plan_submission(create_command(found, *submitters), found, Limits(), NOW)


def area(page: int) -> Area:
    return Area(x=0.1, y=0.1, w=0.2, h=0.1, page=page)


def three_roles() -> Any:
    name = field("A", "Name", areas=[area(1)], required=False)
    same = field("B", "name ", areas=[area(2)])
    other = field("B", "Name", "number")
    asks = field("C", "Why", conditions=[Condition(field_uuid=same.uuid, action="not_empty")])
    return template(name, same, other, asks, field("B", ""), field("A", ""))


def test_roles_become_one_with_the_fields_of_both() -> None:
    found = three_roles()
    made = planned(found, {"roles": ["a", "B"]}, {"role": "C"})
    one, other = made.submitters
    assert (one.party.name, other.party.name) == ("A / B", "C")
    mine = [each for each in made.fields if each.submitter_uuid == one.party.uuid]
    assert {each.role for each in mine} == {"A / B"}
    assert [(each.name, each.type.value, [part.page for part in each.areas], each.required) for each in mine] == [
        ("Name", "text", [1, 2], True),
        ("Name", "number", [], True),
        ("", "text", [], True),
        ("", "text", [], True),
    ]
    (asks,) = [each for each in made.fields if each.role == "C"]
    assert asks.conditions[0].field_uuid == mine[0].uuid
    again = planned(found, {"roles": ["B", "A"]}, {"role": "C"})
    assert again.submitters[0].party.uuid == one.party.uuid
    assert [each.submitter_uuid for each in found.fields if each.role == "A"] == ["uuid of A"] * 2, (
        "the template is as it was"
    )


def test_the_stricter_proof_of_identity_is_asked_for() -> None:
    account = Account(identity_checks_available=True, identity_checks_qes_available=True)
    for methods in (("aes", "qes"), ("qes", "aes"), ("qes", None)):
        fields = [
            field(role, "Identity", "verification", preferences={"method": method} if method else {})
            for role, method in zip("AB", methods, strict=True)
        ]
        found = template(*fields)
        made = creation.plan_submission(
            create_command(found, {"roles": ["A", "B"]}, account=account), found, Limits(), NOW
        )
        assert [one.preferences for one in made.fields] == [{"method": "qes"}]


@pytest.mark.parametrize(
    ("first", "second", "asks"),
    [
        (False, True, True),
        (False, None, True),
        (None, False, True),
        (None, True, True),
        (True, False, True),
        (False, False, False),
    ],
)
def test_a_number_that_one_of_the_roles_must_confirm_is_confirmed(
    first: bool | None, second: bool | None, asks: bool
) -> None:
    fields = [
        field(role, "Mobile", "phone", preferences={} if wanted is None else {"one_time_code": wanted})
        for role, wanted in zip("AB", (first, second), strict=True)
    ]
    found, account = template(*fields), Account(phone_codes_available=True)
    made = creation.plan_submission(create_command(found, {"roles": ["A", "B"]}, account=account), found, Limits(), NOW)
    assert [one.preferences for one in made.fields] == [{"one_time_code": asks}]


def test_the_new_role_may_be_named_and_filled() -> None:
    made = planned(three_roles(), {"role": "C"}, {"role": "Both", "roles": ["A", "B"], "values": {"Name": "7"}})
    assert [one.party.name for one in made.submitters] == ["C", "Both"]
    assert sorted(map(str, made.submitters[1].values.values())) == ["7", "7"]


def test_a_choice_offers_what_either_role_was_offered() -> None:
    found = template(
        field("A", "Colour", "radio", options=["red", "green"], areas=[area(1)]),
        field("B", "Colour", "radio", options=["green", "blue"], areas=[area(2)]),
    )
    made = planned(found, {"roles": ["A", "B"], "values": {"Colour": "blue"}})
    assert [(one.options, len(one.areas)) for one in made.fields] == [(["red", "green", "blue"], 2)]


@pytest.mark.parametrize("inviter", ["a", "B ", "A / B"])
def test_who_has_taken_a_role_invites_for_it(inviter: str) -> None:
    made = planned(three_roles(), {"roles": ["A", "B"]}, {"role": "C", "email": None, "invite_by": inviter})
    assert made.submitters[1].invited_by == made.submitters[0].party.uuid


def test_the_new_role_may_have_the_name_of_one_of_its_own_and_stands_where_the_first_was() -> None:
    made = planned(three_roles(), {"roles": ["A", "B"], "role": "A"})
    assert [one.party.name for one in made.submitters] == ["A"]
    found = merging.merged(three_roles(), [NewSubmitter(roles=["C", "B"])], Problems())[0]
    assert [party.name for party in found.parties] == ["A", "C / B"]


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), (False, False)])
def test_a_field_that_either_role_must_fill_in_must_be_filled_in(first: bool, second: bool) -> None:
    made = planned(template(field("A", required=first), field("B", required=second)), {"roles": ["A", "B"]})
    assert [one.required for one in made.fields] == [first or second]


def test_a_single_role_stays_the_one_of_the_template() -> None:
    given = [NewSubmitter(roles=["B", " ", "B "]), NewSubmitter(roles=["C"], role="A"), NewSubmitter(roles=[" "])]
    found, submitters = merging.merged(three_roles(), given, Problems())
    assert [party.uuid for party in found.parties] == ["uuid of A", "uuid of B", "uuid of C"]
    assert [(one.role, one.roles) for one in submitters] == [("B", []), ("A", []), (None, [])]


def test_one_role_is_as_role_and_the_position_counts_what_is_left() -> None:
    made = planned(three_roles(), {"roles": ["B"]}, {"role": "A"})
    assert [one.party.name for one in made.submitters] == ["B", "A"]
    made = planned(three_roles(), {"roles": ["A", "B"]}, {})
    assert [one.party.name for one in made.submitters] == ["A / B", "C"]


@pytest.mark.parametrize(
    ("submitters", "path", "message"),
    [
        ([{"roles": ["A", "X"]}], "submitters[0].roles", "X role doesn't exist"),
        ([{"roles": ["A", "B"]}, {"roles": ["B", "C"]}], "submitters[1].roles", "role must be unique"),
        ([{"roles": ["A", "B"], "role": "C"}], "submitters[0].role", "role must be unique"),
        ([{"roles": ["A", "B"]}, {"role": "A"}], "submitters[1].role", "Unknown submitter role: A"),
    ],
)
def test_what_cannot_be_merged_is_refused(submitters: list[dict[str, Any]], path: str, message: str) -> None:
    with pytest.raises(ServiceError, match=message) as caught:
        planned(three_roles(), *submitters)
    assert caught.value.details[0]["field"] == path
