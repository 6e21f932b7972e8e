"""Several templates as one, several documents as one, documents that come and go: what becomes of roles, fields, areas."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import ServiceError
from contracts.rpc.rendering import TagField
from contracts.rpc.templates import FieldInput
from contracts.types import Area, Box, Condition, FieldDefinition, PageSize, Party
from services.templates.rules.combining import Paper, combined, joined, placed, without
from services.templates.rules.domain import Definition, DocumentFields, Limits, extended

LETTER = PageSize(width=612, height=792)
LIMITS = Limits()


def area(document: str, page: int = 1) -> Area:
    return Area(x=0.1, y=0.1, w=0.2, h=0.05, page=page, attachment_uuid=document)


def one(name: str, role: str, *areas: Area, part: str = "a", **more: Any) -> FieldDefinition:
    values = {"uuid": f"{part}-{name}", "submitter_uuid": f"{part}-{role}", "role": role, "name": name, **more}
    return FieldDefinition(areas=list(areas), **values)


def part(name: str, *fields: FieldDefinition, roles: tuple[str, ...] = ()) -> Definition:
    names = list(dict.fromkeys([*(field.role for field in fields), *roles]))
    return Definition([Party(uuid=f"{name}-{role}", name=role) for role in names], list(fields))


def paper(name: str, pages: int = 1) -> Paper:
    return Paper(name, f"called {name}", [LETTER] * pages)


def test_roles_and_fields_of_the_same_name_become_one() -> None:
    first = part(
        "a", one("City", "Buyer", area("d1"), options=["x"]), one("Sign", "Buyer", area("d1"), type="signature")
    )
    second = part(
        "b",
        one("City", "buyer", area("d2"), part="b", required=False, options=["y"]),
        one("City", "Seller", area("d2"), part="b"),
        one("Sign", "buyer", area("d2"), part="b", type="text"),
        one("", "buyer", area("d2"), part="b", uuid="b-1"),
        one("", "buyer", area("d2"), part="b", uuid="b-2"),
    )
    whole = combined([first, second], LIMITS)
    assert [(party.uuid, party.name) for party in whole.parties] == [("a-Buyer", "Buyer"), ("b-Seller", "Seller")]
    assert [(field.name, field.role, field.type) for field in whole.fields] == [
        ("City", "Buyer", "text"),
        ("Sign", "Buyer", "signature"),
        ("City", "Seller", "text"),
        ("Sign", "Buyer", "text"),
        ("", "Buyer", "text"),
        ("", "Buyer", "text"),
    ]
    city = whole.fields[0]
    assert ([a.attachment_uuid for a in city.areas], city.required, city.options) == (["d1", "d2"], True, ["x", "y"])
    assert {field.submitter_uuid for field in whole.fields} == {"a-Buyer", "b-Seller"}
    assert [notice.code for notice in whole.notices] == ["name_used_twice"]
    assert first.fields[0].areas == [area("d1")], "the parts stay as they are"


def test_conditions_follow_a_field_that_became_another() -> None:
    first = part("a", one("Kind", "Buyer", area("d1")))
    shown = one("More", "Buyer", area("d2"), part="b", conditions=[Condition(field_uuid="b-Kind", action="not_empty")])
    second = part("b", one("Kind", "Buyer", area("d2"), part="b"), shown)
    whole = combined([first, second], LIMITS)
    assert [condition.field_uuid for condition in whole.fields[1].conditions] == ["a-Kind"]


def test_together_they_must_keep_the_limits() -> None:
    parts = [part(name, one(name, name, area("d"), part=name)) for name in "abc"]
    for limits in (Limits(fields=2), Limits(areas=2), Limits(roles=2)):
        with pytest.raises(ServiceError) as caught:
            combined(parts, limits)
        assert caught.value.details[0]["field"] == "template_ids"


def test_pages_go_on_counting_when_documents_become_one() -> None:
    fields = [one("A", "Buyer", area("d1", 2), area("d3", 1)), one("B", "Buyer", area("d2", 1)), one("C", "Buyer")]
    moved = joined(fields, [paper("d1", 2), paper("d2", 3), paper("d3")], "whole")
    assert [[(a.attachment_uuid, a.page) for a in field.areas] for field in moved] == [
        [("whole", 2), ("whole", 6)],
        [("whole", 3)],
        [],
    ]


def test_a_field_goes_with_its_last_area_and_conditions_with_the_field() -> None:
    fields = [
        one("Both", "Buyer", area("d1"), area("d2")),
        one("Gone", "Seller", area("d2")),
        one("Nowhere", "Buyer"),
        one(
            "Shown",
            "Buyer",
            area("d1"),
            conditions=[
                Condition(field_uuid="a-Gone", action="checked"),
                Condition(field_uuid="a-Both", action="checked"),
            ],
        ),
    ]
    left = without(part("a", *fields), {"d2": None})
    assert [(field.name, len(field.areas)) for field in left.fields] == [("Both", 1), ("Nowhere", 0), ("Shown", 1)]
    assert [condition.field_uuid for condition in left.fields[2].conditions] == ["a-Both"]
    assert [party.name for party in left.parties] == ["Buyer", "Seller"], "roles are never taken away"
    assert [notice.code for notice in left.notices] == ["condition_dropped"]


def test_a_successor_gets_the_areas_as_far_as_it_has_their_pages() -> None:
    fields = [
        one("First", "Buyer", area("d1", 1)),
        one("Third", "Buyer", area("d1", 3)),
        one("Else", "Buyer", area("d2")),
    ]
    left = without(part("a", *fields), {"d1": paper("new", 2)})
    assert [(field.name, field.areas[0].attachment_uuid) for field in left.fields] == [("First", "new"), ("Else", "d2")]
    assert [(notice.code, notice.page, notice.document) for notice in left.notices] == [
        ("area_off_page", 3, "called new")
    ]


def test_a_successor_gets_the_areas_that_are_form_fields_of_its_own() -> None:
    """When its signatures allow nothing else to be filled in."""
    page = PageSize(width=612, height=792, places=[Box(x=0.1, y=0.1, w=0.2, h=0.05)])
    elsewhere = area("d1").model_copy(update={"y": 0.5})
    fields = [one("There", "Buyer", area("d1")), one("Elsewhere", "Buyer", elsewhere)]
    left = without(part("a", *fields), {"d1": Paper("new", "called new", [page])})
    assert [field.name for field in left.fields] == ["There"]
    (notice,) = left.notices
    assert (notice.code, notice.page) == ("area_off_page", 1)
    assert "no form field" in notice.message


def test_of_a_successor_s_pages_the_one_of_the_same_number_decides() -> None:
    only_here = PageSize(width=612, height=792, places=[Box(x=0.1, y=0.1, w=0.2, h=0.05)])
    nothing = PageSize(width=612, height=792, places=[])
    for pages, kept in (([only_here, nothing], ["Field"]), ([nothing, only_here], [])):
        left = without(part("a", one("Field", "Buyer", area("d1"))), {"d1": Paper("new", "called new", pages)})
        assert [field.name for field in left.fields] == kept


def test_new_fields_come_where_their_document_does() -> None:
    """What is there keeps its order, even one that somebody chose."""
    present = part("a", one("Z", "Buyer", area("d2")), one("A", "Buyer", area("d1")))

    def document(name: str, *found: TagField, explicit: tuple[FieldInput, ...] = ()) -> DocumentFields:
        return DocumentFields(name, name, "documents[0]", "file", [LETTER], explicit, found)

    tag = TagField(name="New", areas=[area("x")])
    again = TagField(name="A", role="buyer", areas=[area("x")])
    for order, expected in (
        (["new", "d1", "d2"], ["New", "Z", "A"]),
        (["d1", "d2", "new"], ["Z", "A", "New"]),
        (["d1", "new", "d2"], ["New", "Z", "A"]),
    ):
        definition = extended(present, [document("new", tag, again)], order, LIMITS)
        assert [field.name for field in definition.fields] == expected
        grown = next(field for field in definition.fields if field.name == "A")
        assert (grown.uuid, [a.attachment_uuid for a in grown.areas]) == ("a-A", ["d1", "new"])
    assert [party.name for party in definition.parties] == ["Buyer"]
    assert len(present.fields[1].areas) == 1
    wrong = FieldInput(name="A", type="number")
    with pytest.raises(ServiceError) as caught:
        extended(present, [document("new", explicit=(wrong,))], ["d1", "d2", "new"], LIMITS)
    assert caught.value.details[0]["field"] == "documents[0].fields[0].type"
    tried = extended(present, [document("new", explicit=(wrong,))], ["d1", "d2", "new"], LIMITS, trial=True)
    assert tried.problems[0]["field"] == "documents[0].fields[0].type"


@given(
    st.lists(st.integers(), max_size=5),
    st.lists(st.tuples(st.integers(), st.none() | st.integers(0, 12)), max_size=6),
)
def test_positions(there: list[int], coming: list[tuple[int, int | None]]) -> None:
    result = placed(there, coming)
    assert sorted(result) == sorted([*there, *(value for value, _ in coming)])
    assert placed(there, [(value, None) for value, _ in coming]) == [*there, *(value for value, _ in coming)]
    if len(coming) == 1 and coming[0][1] is not None:
        assert result[min(coming[0][1], len(there))] == coming[0][0]
