"""A field is drawn as it is defined, with its placeholders filled in and nothing else changed."""

import pytest

from contracts.rpc.rendering import PartySummary
from contracts.types import Area, FieldDefinition, FieldType
from services.rendering.rules.differences import _is_defined

ANN = PartySummary(id=1, role="Seller", name="Ann Ray", status="completed")


def heading(text: str, *areas: Area) -> FieldDefinition:
    return FieldDefinition(
        uuid="h",
        submitter_uuid="s",
        role="Seller",
        name="H",
        type=FieldType.HEADING,
        areas=list(areas) or [area("d")],
        default_value=text,
    )


def area(document: str) -> Area:
    return Area(x=0.1, y=0.1, w=0.2, h=0.05, attachment_uuid=document)


@pytest.mark.parametrize(
    ("defined", "drawn", "same"),
    [
        ("Terms", "Terms", True),
        ("Terms", "Other terms", False),
        ("By {name}", "By Ann Ray", True),
        ("By {name}", "By Mallory", False),
        ("By {name}", "By ", False),
        ("By {{ name }}, on {date}.", "By Ann Ray, on 4 March.", True),
        ("By {name}", "Ann Ray owes everything", False),
        ("By {name} of {role}.", "By Ann Ray of Seller. And more", False),
        ("{name} {email}", "Ann Ray ", True),
        ("{name}, {name}", "Ann Ray, Ann Ray", True),
        ("{name}, {name}", ",", False),
        ("No. {id}", "No. 7", True),
        ("No. {id}", "No. 8", False),
        ("{date}{time}", "", True),
        ("{date}, {time}", "4 March", False),
        ("{{nothing}} of ours", "something else", False),
    ],
)
def test_a_heading(defined: str, drawn: str, same: bool) -> None:
    assert _is_defined(heading(drawn), heading(defined), ANN, 7) is same


@pytest.mark.parametrize(
    ("drawn", "hidden", "same"),
    [
        (["a", "b"], [], True),
        (["a"], ["b"], True),
        (["a"], [], False),
        (["a", "b"], ["b"], False),
        (["b", "a"], [], False),
    ],
)
def test_the_places_are_those_on_the_documents_that_are_sealed(drawn: list[str], hidden: list[str], same: bool) -> None:
    defined = heading("Terms", area("a"), area("b"))
    assert _is_defined(heading("Terms", *map(area, drawn)), defined, ANN, 7, hidden) is same
