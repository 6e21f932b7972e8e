"""A field is drawn as it is defined, with its placeholders filled in and nothing else changed."""

import pytest

from contracts.types import Area, FieldDefinition, FieldType
from services.rendering.differences import _is_defined


def heading(text: str) -> FieldDefinition:
    area = Area(x=0.1, y=0.1, w=0.2, h=0.05)
    return FieldDefinition(
        uuid="h", submitter_uuid="s", role="Seller", name="H", type=FieldType.HEADING, areas=[area], default_value=text
    )


@pytest.mark.parametrize(
    ("defined", "drawn", "same"),
    [
        ("Terms", "Terms", True),
        ("Terms", "Other terms", False),
        ("By {name}", "By Ann Ray", True),
        ("By {{ name }}, on {date}.", "By Ann, on 4 March.", True),
        ("By {name}", "By ", True),
        ("By {name}", "Ann owes everything", False),
        ("By {name} of {role}.", "By Ann of Seller. And more", False),
        ("{name} {name}", " ", True),
        ("{name}, {name}", ",", False),
        ("{{nothing}} of ours", "something else", False),
    ],
)
def test_a_heading(defined: str, drawn: str, same: bool) -> None:
    assert _is_defined(heading(drawn), heading(defined)) is same
