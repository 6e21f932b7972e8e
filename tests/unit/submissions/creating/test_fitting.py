"""What is not asked of rendering must fit, whatever it is; what is asked is refused with the reason and the place."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.errors import ServiceError
from contracts.fields import values
from contracts.rpc import rendering
from contracts.types import Account, FieldDefinition
from services.rendering.jobs.drawing import fill
from services.rendering.jobs.text import fonts
from services.submissions.creating import fitting
from services.submissions.planning import creation
from services.submissions.rules.values.filling import Signing
from tests.support.material.submissions import Limits, create_command, template
from tests.support.material.submissions import field as form_field
from tests.support.rendering.drawing import area, field_value, party, request, stored

NOW = datetime(2026, 11, 21, tzinfo=UTC)


class Rendering:
    """Answers as the service does, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def call(self, rpc: Any, asked: Any) -> Any:
        assert rpc is rendering.CHECK_VALUES
        self.asked += [one.field.name for one in asked.values]
        whole = request(*asked.values, account=asked.account, documents=asked.documents, parties=asked.parties)
        return rendering.CheckedValues(faults=fill.faults(whole))


def question(*items: rendering.FieldValue, **person: Any) -> fitting.Question:
    entries = [
        fitting.Entry(one.field, one.value, f"values.{one.field.name}", one.field.name, one.submitter_id)
        for one in items
    ]
    return fitting.Question(Account(), [stored()], entries, [party(**person)])


# Everything that is taken for certain to be in a font.
LETTERS: st.SearchStrategy[str] = st.characters(min_codepoint=32, max_codepoint=0x2200).filter(
    lambda one: not values.needs_font_check(one)
)
TEXTS = st.text(st.one_of(LETTERS, st.sampled_from("WM Ԫ\u01c4 ab\n")), max_size=120)
SIZES = st.floats(0.005, 0.4)


@given(
    TEXTS,
    st.sampled_from(["text", "cells", "select", "heading"]),
    SIZES,
    st.floats(0.003, 0.1),
    st.sampled_from(["Times", "Helvetica", "Courier"]),
    st.sampled_from(["bold", "italic", "bold_italic", ""]),
    st.sampled_from([None, 4, 11, 60]),
    st.sampled_from([None, 0.01, 0.03]),
)
@settings(max_examples=150, deadline=None)
def test_what_is_not_asked_about_fits(
    text: str, kind: str, width: float, height: float, font: str, face: str, size: int | None, cell: float | None
) -> None:
    preferences = {"font": font, "font_type": face, "font_size": size}
    item = field_value(kind, text, area(0.1, 0.1, width, height, cell_w=cell), preferences=preferences)
    asked = Rendering()
    try:
        fitting.refuse(asked, question(item))
    except ServiceError:
        assert asked.asked
    if not asked.asked:
        assert fill.faults(request(item)) == {}


@given(st.text(LETTERS, max_size=60), SIZES, st.floats(0.005, 0.2))
@settings(max_examples=60, deadline=None)
def test_a_stamp_that_is_not_asked_about_fits(name: str, width: float, height: float) -> None:
    item = field_value("stamp", None, area(0.1, 0.1, width, height))
    asked = Rendering()
    try:
        fitting.refuse(asked, question(item, name=name))
    except ServiceError:
        assert asked.asked
    if not asked.asked:
        assert fill.faults(request(item, parties=[party(name=name), party(2)])) == {}


@pytest.mark.parametrize("family", fonts.FAMILIES)
@pytest.mark.parametrize("bold", [False, True])
@pytest.mark.parametrize("italic", [False, True])
def test_no_letter_is_wider_than_it_is_taken_for(family: str, bold: bool, italic: bool) -> None:
    font = fonts.primary(fonts.Face(family, bold, italic))
    letters = [one for one in map(chr, range(32, 0x2200)) if not values.needs_font_check(one) and font.has(one)]
    assert len(letters) > 500
    assert [one for one in letters if font.advance(font.glyph(one)) > 1000 * fitting._width(one)] == []


def test_usual_values_are_not_asked_about() -> None:
    asked = Rendering()
    usual = [
        field_value("text", "Ana Kowalska", area(0.1, 0.1, 0.3, 0.02)),
        field_value("text", "Zoë Łukasz Ångström", area(0.1, 0.1, 0.2, 0.016)),
        field_value("text", "12 Long Street, 10115 Berlin, Germany", area(0.1, 0.1, 0.4, 0.04)),
        field_value("date", "2026-03-04", area(0.1, 0.1, 0.15, 0.02), preferences={"format": "D MMMM YYYY"}),
        field_value("number", 1234.5, area(0.1, 0.1, 0.15, 0.02), preferences={"format": "usd"}),
        field_value("checkbox", True, area(0.1, 0.1, 0.02, 0.015)),
        field_value("stamp", None, area(0.1, 0.1, 0.4, 0.08)),
    ]
    fitting.refuse(asked, question(*usual))
    assert asked.asked == []


def test_each_fault_is_named_where_it_was_written() -> None:
    items = [
        field_value("text", "fits", area(0.1, 0.1, 0.3, 0.02), name="Good"),
        field_value("text", "word " * 900, area(0.1, 0.2, 0.3, 0.02), name="Remarks"),
        field_value("text", "\u0860", area(0.1, 0.3, 0.3, 0.02), name="Mood"),
    ]
    with pytest.raises(ServiceError) as refused:
        fitting.refuse(Rendering(), question(*items))
    assert refused.value.code == "invalid"
    assert [one["field"] for one in refused.value.details] == ["values.Remarks", "values.Mood"]
    assert refused.value.message.startswith("Remarks has 4500 characters, but in its area on page 1 there is room for")
    assert "U+0860 SYRIAC LETTER MALAYALAM NGA" in refused.value.details[1]["reason"]


def test_what_of_a_party_is_drawn() -> None:
    def field(type_: str, name: str, **more: Any) -> FieldDefinition:
        return field_value(type_, None, name=name, uuid=name, **more).field

    own = [
        field("text", "Given"),
        field("text", "Empty"),
        field("heading", "Title", default_value="For {{name}}"),
        field("stamp", "Stamp"),
        field("signature", "Sign"),
        field("file", "Scan"),
        field("strikethrough", "Struck"),
        field("dutystamp", "Meterai"),
        field("text", "Nowhere").model_copy(update={"areas": []}),
    ]
    values = {"Given": "x", "Sign": "uuid", "Scan": ["uuid"], "Nowhere": "y"}
    signing = Signing({"name": "Ana"}, NOW, "UTC")
    found = fitting.entries(own, values, signing, 3, {"Given": "submitters[0].values.Given"}, stamped=False)
    assert [(one.field.name, one.path, one.party) for one in found] == [
        ("Given", "submitters[0].values.Given", 3),
        ("Title", "fields.Title", 3),
        ("Stamp", "fields.Stamp", 3),
    ]
    assert found[1].field.default_value == "For Ana"
    assert len(fitting.entries(own, values, signing, 3, {}, stamped=True)) == 2


def test_a_proof_must_fit_before_anybody_has_proved_anything() -> None:
    account = Account(identity_checks_available=True)

    def asked(width: float, height: float) -> fitting.Question:
        where = area(0.1, 0.1, width, height)
        found = template(form_field(name="Identity", type="verification", required=False, areas=[where]))
        where.attachment_uuid = found.documents[0].uuid
        plan = creation.plan_submission(create_command(found, {}, account=account), found, Limits(), NOW)
        return fitting.of_plan(plan, found, account, NOW)

    fitting.refuse(Rendering(), asked(0.3, 0.03))
    with pytest.raises(ServiceError) as refused:
        fitting.refuse(Rendering(), asked(0.01, 0.005))
    assert refused.value.details[0]["field"] == "fields.Identity"
