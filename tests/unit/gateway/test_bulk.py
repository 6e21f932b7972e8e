"""POST /submissions with several submissions in its body: who is meant, and what each of them takes from the whole."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from services.gateway.api.requests import bulk

PEOPLE = {"submitters": [{"email": "a@example.com"}]}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (PEOPLE, "submitters"),
        ({"submissions": [PEOPLE]}, "submissions"),
        ({"emails": "a@example.com"}, "emails"),
        ({"email": "a@example.com"}, "emails"),
        ({**PEOPLE, "emails": [], "email": ""}, "submitters"),
        ({"emails": []}, "emails"),
    ],
)
def test_who_is_to_sign(body: dict[str, Any], expected: str) -> None:
    assert bulk.mode_of(body) == expected


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({**PEOPLE, "emails": "a@example.com"}, "emails"),
        ({**PEOPLE, "email": "a@example.com"}, "emails"),
        ({**PEOPLE, "submissions": [PEOPLE]}, "submissions"),
        ({"submissions": [PEOPLE], "emails": ["a@example.com"]}, "emails"),
    ],
)
def test_said_in_two_ways_it_is_refused(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ServiceError) as caught:
        bulk.mode_of(body)
    assert caught.value.details[0]["field"] == field


def test_each_takes_what_it_leaves_out_from_the_whole() -> None:
    own = {**PEOPLE, "name": "Mine", "template_id": "7"}
    body = {"template_id": 7, "name": "All", "order": "random", "emails": [], "submissions": [PEOPLE, own]}
    bodies, keys = bulk.entries(body, 7)
    assert bodies[0] == {**PEOPLE, "name": "All", "order": "random"}
    assert (bodies[1]["name"], bodies[1]["order"]) == ("Mine", "random")
    assert keys == [["submitters"], ["submitters", "name", "template_id"]]
    with pytest.raises(ServiceError) as caught:
        bulk.entries({**body, "submissions": [PEOPLE, {**PEOPLE, "template_id": 8}]}, 7)
    assert caught.value.details[0]["field"] == "submissions[1].template_id"


def test_addresses_are_told_apart_in_whatever_way_they_are_written() -> None:
    text = "a@example.com, Bob <b@example.com>; A@example.com / c@example.com\nd@example.com e@example.com"
    assert [one[0] for one in bulk.addresses({"emails": text})] == list("abcde")
    for wrong in ("", [], "nobody", ["a@example.com", "x"], [f"{n}@example.com" for n in range(101)]):
        with pytest.raises(ServiceError):
            bulk.addresses({"emails": wrong})
    assert bulk.addresses({"email": "a@example.com", "emails": ""}) == ["a@example.com"]
    assert len(bulk.addresses({"emails": [f"{n}@example.com" for n in range(100)]})) == 100


@pytest.mark.parametrize("body", [{}, {"email": None}, {"emails": " ,; "}, {"emails": [""]}])
def test_no_address_is_not_enough(body: dict[str, Any]) -> None:
    with pytest.raises(ServiceError) as caught:
        bulk.addresses(body)
    assert caught.value.details == [{"field": "emails", "reason": "is required"}]


def test_each_address_that_is_none_is_named() -> None:
    for given, fields in (
        ("a@example.com, nobody; Bob <x>", ["emails", "emails"]),
        (["nobody", "a@example.com", "Bob <x>"], ["emails[0]", "emails[2]"]),
    ):
        with pytest.raises(ServiceError) as caught:
            bulk.addresses({"emails": given})
        assert caught.value.message == "emails are invalid"
        assert [detail["field"] for detail in caught.value.details] == fields
        assert [detail["reason"].rpartition(": ")[2] for detail in caught.value.details] == ["nobody", "x"]
