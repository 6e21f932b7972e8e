"""Where previews show the fields."""

from typing import Any

from contracts.fields.boxes import MOST_BOXES, FieldBox, field_boxes
from contracts.types import Area, FieldDefinition


def field(uuid: str, *areas: Area, party: str = "p", **more: Any) -> FieldDefinition:
    return FieldDefinition(uuid=uuid, submitter_uuid=party, role="r", areas=list(areas), **more)


def at(document: str, **more: Any) -> Area:
    return Area(x=0.1, y=0.2, w=0.3, h=0.4, **{"page": 2, "attachment_uuid": document, **more})


def labels(*fields: FieldDefinition, document: str = "d", **more: Any) -> list[str]:
    return [box.label for box in field_boxes(fields, ["p"], document, "first", **more)]


def test_a_box_says_where_it_is_whose_and_what_goes_there() -> None:
    fields = [field("a", at("d"), name="Name"), field("b", at("d", option="Yes"), party="q", name="Choice")]
    place = {"x": 0.1, "y": 0.2, "w": 0.3, "h": 0.4, "page": 2}
    assert field_boxes(fields, ["p", "q"], "d", "first") == [
        FieldBox(**place, label="Name", role=0),
        FieldBox(**place, label="Yes", role=1),
    ]
    assert field_boxes(fields, ["q"], "d", "first")[0].role == 0, "of a party that is not listed"


def test_a_field_is_called_by_its_name_else_its_title_else_its_type() -> None:
    fields = [
        field("a", at("d"), name="Name", title="Title"),
        field("b", at("d"), title="Title"),
        field("c", at("d"), type="date"),
        field("e", at("d"), name="x" * 101),
    ]
    assert labels(*fields) == ["Name", "Title", "date", "x" * 100]
    assert labels(*fields, filled=["b", "e"]) == ["Name", "", "date", ""], "what is filled shows its value"


def test_an_area_without_a_document_is_on_the_first_one() -> None:
    fields = [field("a", at(""), at("d"), name="A"), field("b", at("first"), name="B")]
    assert labels(*fields) == ["A"]
    assert labels(*fields, document="first") == ["A", "B"]


def test_a_preview_shows_so_many_and_no_more() -> None:
    many = field("a", *[at("d")] * (MOST_BOXES + 1), name="A")
    assert len(labels(many)) == MOST_BOXES
