"""Roles and fields of whole templates: what belongs together, in which order, and how later changes apply."""

import json
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.errors import ServiceError
from contracts.rpc.rendering import TagField
from contracts.rpc.templates import AreaInput, FieldInput
from contracts.types import Area, Condition, FieldDefinition, PageSize, Party
from services.templates.rules.document_conditions import DocumentConditions
from services.templates.rules.domain import (
    Definition,
    DocumentFields,
    Limits,
    clone_name,
    cloned,
    define,
    extended,
    redefine,
    with_conditions,
    with_parties,
    with_role_names,
    with_roles_written,
)

LETTER = PageSize(width=612, height=792)
BOX = {"x": 0.1, "y": 0.1, "w": 0.2, "h": 0.05}


def document(
    number: int = 0, explicit: Sequence[FieldInput] = (), tag_fields: Sequence[TagField] = (), pages: int = 1
) -> DocumentFields:
    return DocumentFields(
        f"doc-{number}", f"doc {number}", f"documents[{number}]", "file", [LETTER] * pages, explicit, tag_fields
    )


def made(*documents: DocumentFields, previous: Definition | None = None) -> Definition:
    return define(documents, Limits(), previous)


def roles(definition: Definition) -> list[str]:
    return [party.name for party in definition.parties]


def named(definition: Definition) -> dict[str, FieldDefinition]:
    return {one.name: one for one in definition.fields}


def test_a_template_without_fields_has_one_role() -> None:
    assert roles(made(document())) == ["First Party"]


def test_roles_come_in_order_of_first_appearance_explicit_ones_first() -> None:
    definition = made(
        document(0, tag_fields=[TagField(name="t", role="Tagged")]),
        document(1, explicit=[FieldInput(name="e", role="Explicit"), FieldInput(name="f", role="tagged")]),
    )
    # The explicit spelling came first, and it is one role.
    assert roles(definition) == ["Explicit", "tagged"]
    assert named(definition)["t"].submitter_uuid == named(definition)["f"].submitter_uuid


def test_a_field_without_a_role_belongs_to_the_first_one() -> None:
    definition = made(document(0, explicit=[FieldInput(name="a"), FieldInput(name="b", role="Client")]))
    assert roles(definition) == ["Client"]
    assert [one.role for one in definition.fields] == ["Client", "Client"]


def test_fields_go_document_by_document_explicit_ones_first() -> None:
    definition = made(
        document(0, explicit=[FieldInput(name="a")], tag_fields=[TagField(name="b")]),
        document(1, explicit=[FieldInput(name="c")], tag_fields=[TagField(name="d")]),
    )
    assert [one.name for one in definition.fields] == ["a", "b", "c", "d"]


def test_a_tag_of_the_same_name_and_role_adds_its_area() -> None:
    tag = TagField(name="Name", areas=[Area(**BOX)])
    explicit = FieldInput(name="Name", type="text", title="Your name", areas=[AreaInput(**BOX)])
    definition = made(document(0, tag_fields=[tag]), document(1, explicit=[explicit]))
    assert len(definition.fields) == 1
    field = definition.fields[0]
    assert field.title == "Your name"
    assert [area.attachment_uuid for area in field.areas] == ["doc-1", "doc-0"]


def test_a_text_tag_joins_a_field_of_any_type() -> None:
    definition = made(document(0, [FieldInput(name="Day", type="date")], [TagField(name="Day", areas=[Area(**BOX)])]))
    assert [(one.type, len(one.areas)) for one in definition.fields] == [("date", 1)]


def test_the_same_name_of_two_roles_is_two_fields() -> None:
    definition = made(document(0, [FieldInput(name="Name", role="A"), FieldInput(name="Name", role="B")]))
    assert [one.role for one in definition.fields] == ["A", "B"]


def test_two_explicit_fields_of_one_name_and_different_types_are_refused() -> None:
    with pytest.raises(ServiceError) as caught:
        made(document(0, [FieldInput(name="X")]), document(1, [FieldInput(name="X", type="date")]))
    assert caught.value.details == [
        {"field": "documents[1].fields[0].type", "reason": "must be text, like the other field with this name and role"}
    ]


def test_found_fields_of_one_name_and_different_types_are_both_kept_and_reported() -> None:
    definition = made(document(0, tag_fields=[TagField(name="X", type="date"), TagField(name="X", type="signature")]))
    assert [one.type for one in definition.fields] == ["date", "signature"]
    assert [(notice.code, notice.document) for notice in definition.notices] == [("name_used_twice", "doc 0")]


def test_unnamed_fields_stay_apart() -> None:
    definition = made(document(0, [FieldInput(), FieldInput()], [TagField(), TagField()]))
    assert len(definition.fields) == 4
    assert len({one.uuid for one in definition.fields}) == 4


def test_options_of_radio_tags_with_one_name_come_together() -> None:
    tags = [
        TagField(name="Color", type="radio", options=[option], areas=[Area(**BOX, option=option)])
        for option in ("Red", "Blue")
    ]
    assert made(document(0, tag_fields=tags)).fields[0].options == ["Red", "Blue"]


def test_a_mistake_in_a_tag_names_the_file_and_the_tag() -> None:
    with pytest.raises(ServiceError) as caught:
        made(document(0), document(1, tag_fields=[TagField(name="Country", type="select")]))
    assert caught.value.details[0]["field"] == "documents[1].file"
    assert "'Country'" in caught.value.details[0]["reason"]
    assert "options" in caught.value.details[0]["reason"]


def test_a_look_or_default_that_does_not_fit_does_not_keep_a_found_field_out() -> None:
    tag = TagField(name="Big", preferences={"font_size": 400, "align": "right"})
    definition = made(document(0, tag_fields=[tag]))
    assert definition.fields[0].preferences == {"align": "right"}
    assert [(notice.code, notice.document) for notice in definition.notices] == [("preference_left_out", "doc 0")]
    wrong = [
        TagField(name="Mail", default_value="nobody", validation={"pattern": r"[^@\s]+@[^@\s]+"}),
        TagField(name="Colour", type="select", options=["Red"], default_value="Blue"),
    ]
    definition = made(document(0, tag_fields=wrong))
    assert [field.default_value for field in definition.fields] == [None, None]
    assert [notice.code for notice in definition.notices] == ["default_left_out", "default_left_out"]
    # A rule that would silently not be kept is another matter.
    with pytest.raises(ServiceError, match=r"validation\.pattern"):
        made(document(0, tag_fields=[TagField(name="Code", validation={"pattern": "(?=x)"})]))


def test_found_areas_are_cut_to_the_page_and_reported_when_off_it() -> None:
    areas = [Area(x=0.9, y=0.9, w=0.3, h=0.3), Area(x=1.2, y=0, w=0.1, h=0.1), Area(x=0, y=0, w=0.1, h=0.1, page=7)]
    definition = made(document(0, tag_fields=[TagField(name="evil\u202ename", areas=areas)]))
    field = definition.fields[0]
    assert field.name == "evilname"
    assert [(area.x, round(area.w, 6)) for area in field.areas] == [(0.9, 0.1)]
    assert [(notice.code, notice.page) for notice in definition.notices] == [("area_off_page", 1), ("area_off_page", 7)]


@pytest.mark.parametrize(
    ("condition", "name", "action", "value"),
    [
        ("Married", "Married", "not_empty", None),
        ("Married:true", "Married", "equal", "true"),
        ("At: what time:10:30", "At: what time", "equal", "10:30"),
    ],
)
def test_conditions_of_tags_point_to_fields(condition: str, name: str, action: str, value: str | None) -> None:
    tags = [TagField(name="Spouse", condition=condition), TagField(name="Married"), TagField(name="At: what time")]
    fields = named(made(document(0, tag_fields=tags)))
    assert fields["Spouse"].conditions == [Condition(field_uuid=fields[name].uuid, action=action, value=value)]


def test_a_condition_names_no_field_without_a_name() -> None:
    tags = [TagField(name=""), TagField(name="a", condition=": yes")]
    with pytest.raises(ServiceError, match="names no other field"):
        made(document(0, tag_fields=tags))


def test_a_condition_on_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(ServiceError, match="names no other field"):
        made(document(0, tag_fields=[TagField(name="Spouse", condition="Spouse")]))
    stray = [Condition(field_uuid="nobody", action="equal", value="x")]
    with pytest.raises(ServiceError) as caught:
        made(document(0, [FieldInput(name="a", conditions=stray)]))
    assert caught.value.details[0]["field"] == "documents[0].fields[0].conditions[0].field_uuid"


def test_an_updated_template_keeps_the_uuids_of_what_stayed() -> None:
    before = made(document(0, [FieldInput(name="Name", role="A"), FieldInput(name="Date", type="date", role="B")]))
    after = made(document(5, [FieldInput(name="Date", role="b"), FieldInput(name="Name", role="A")]), previous=before)
    assert {party.name.casefold(): party.uuid for party in after.parties} == {
        party.name.casefold(): party.uuid for party in before.parties
    }
    assert named(after)["Name"].uuid == named(before)["Name"].uuid
    # It is of another type now: another field.
    assert named(after)["Date"].uuid != named(before)["Date"].uuid


def test_as_many_of_everything_as_the_limits_say() -> None:
    limits = Limits(documents=2, fields=2, roles=2)
    two = [document(number, [FieldInput(name="x", role=f"R{number}")]) for number in range(2)]
    present = define(two, limits)
    assert len(present.parties) == 2
    parties = with_role_names(present.parties, ["A", "B"], limits)
    for refused, what in (
        (lambda: with_role_names(parties, ["A", "B", "C"], limits), "roles must not have more than 2 entries"),
        (lambda: extended(present, [document(2)], ["doc-0", "doc-1", "doc-2"], limits), "documents must not have more"),
        (lambda: redefine([FieldInput(name=name) for name in "abc"], parties, {}, (), limits), "more than 2 fields"),
    ):
        with pytest.raises(ServiceError, match=what):
            refused()


def test_a_document_cannot_depend_on_what_is_not_there() -> None:
    asked = [DocumentConditions("doc-0", [Condition(field_uuid="gone", action="checked")], "schema[0]")]
    with pytest.raises(ServiceError):
        with_conditions(made(document(0, [FieldInput(name="x")])), asked)


def test_too_many_documents_and_none_at_all_are_refused() -> None:
    with pytest.raises(ServiceError, match="documents is required"):
        made()
    with pytest.raises(ServiceError, match="more than 30"):
        made(*(document(n) for n in range(31)))


def test_fields_that_are_put_back_as_they_came_stay_the_same() -> None:
    area = AreaInput(**BOX, option="Yes", page=2)
    definition = made(
        document(
            0, [FieldInput(name="a", role="A"), FieldInput(name="b", type="radio", areas=[area], role="B")], pages=2
        ),
        document(1, [FieldInput(name="", type="heading", default_value="Part 2", areas=[AreaInput(**BOX)])]),
    )
    back = [FieldInput.model_validate(one.model_dump(mode="json")) for one in definition.fields]
    again = redefine(back, definition.parties, {"doc-0": [LETTER] * 2, "doc-1": [LETTER]}, (), Limits())
    assert again.fields == definition.fields
    assert again.parties == definition.parties


def test_settings_that_come_back_in_another_order_are_the_same_and_not_judged_again() -> None:
    older = {"format": "an older one", "align": "center"}
    (stored,) = made(document(0, [FieldInput(name="a")])).fields
    stored.preferences = older
    back = FieldInput.model_validate(stored.model_dump(mode="json"))
    back.preferences = dict(reversed(older.items()))
    assert redefine([back], [], {"doc-0": [LETTER]}, (), Limits(), [stored]).fields[0].preferences == older
    with pytest.raises(ServiceError):
        redefine([back.model_copy(update={"type": "number"})], [], {"doc-0": [LETTER]}, (), Limits(), [stored])


def test_a_new_field_without_a_name_is_not_an_old_one() -> None:
    before = made(document(0, [FieldInput(name=""), FieldInput(name="a")]))
    after = made(document(0, [FieldInput(name=""), FieldInput(name="a")]), previous=before)
    assert [field.uuid in {old.uuid for old in before.fields} for field in after.fields] == [False, True]


def test_an_explicit_field_that_is_said_twice_is_one_in_two_places() -> None:
    twice = [FieldInput(name="a", areas=[AreaInput(**BOX)]), FieldInput(name="a", areas=[AreaInput(**BOX)])]
    (field,) = made(document(0, twice)).fields
    assert len(field.areas) == 2


def test_an_option_of_an_area_is_one_of_the_field_s_if_that_has_any() -> None:
    area = AreaInput(**BOX, option="Yes")
    assert made(document(0, [FieldInput(name="a", areas=[area])])).fields[0].areas[0].option == "Yes"
    with pytest.raises(ServiceError) as refusal:
        made(document(0, [FieldInput(name="a", type="radio", options=["No", "Maybe"], areas=[area])]))
    assert refusal.value.details[0]["field"] == "documents[0].fields[0].areas[0].option"


@pytest.mark.parametrize(
    ("kind", "fields", "notices"), [("text", 1, []), ("date", 1, []), ("number", 2, ["name_used_twice"])]
)
def test_what_a_field_is_that_is_there_already_no_tag_says(kind: str, fields: int, notices: list[str]) -> None:
    present = made(document(0, [FieldInput(name="a", type="date")]))
    tag = TagField(name="a", type=kind, areas=[Area(**BOX)])
    more = extended(present, [document(1, tag_fields=[tag])], ["doc-0", "doc-1"], Limits())
    assert (len(more.fields), [notice.code for notice in more.notices]) == (fields, notices)


def test_a_mistake_in_a_tag_is_told_unless_its_field_is_there_already() -> None:
    tag = TagField(name="a", preferences={"align": "sideways"})
    assert [one.code for one in made(document(0, [FieldInput(name="a")], [tag])).notices] == ["preference_left_out"]
    present = made(document(0, [FieldInput(name="a")]))
    assert extended(present, [document(1, tag_fields=[tag])], ["doc-0", "doc-1"], Limits()).notices == []


def test_a_new_field_may_depend_on_one_that_is_there() -> None:
    present = made(document(0, [FieldInput(name="a")]))
    condition = Condition(field_uuid=present.fields[0].uuid, action="not_empty", value=None)
    new = FieldInput(name="b", conditions=[condition])
    more = extended(present, [document(1, [new])], ["doc-0", "doc-1"], Limits())
    assert named(more)["b"].conditions == [condition]
    unknown = condition.model_copy(update={"action": "likes"})
    with pytest.raises(ServiceError) as refusal:
        extended(present, [document(1, [FieldInput(name="b", conditions=[unknown])])], ["doc-0", "doc-1"], Limits())
    assert refusal.value.details[0]["field"] == "documents[1].fields[0].conditions[0].action"


def put(*fields: dict[str, Any], documents: int = 1, parties: Sequence[Party] = ()) -> Definition:
    pages = {f"doc-{n}": [LETTER] for n in range(documents)}
    return redefine([FieldInput.model_validate(one) for one in fields], list(parties), pages, (), Limits())


def test_an_area_of_the_only_document_need_not_name_it() -> None:
    assert put({"name": "a", "areas": [BOX]}).fields[0].areas[0].attachment_uuid == "doc-0"


@pytest.mark.parametrize("named_document", [None, "doc-7"])
def test_an_area_on_no_document_is_refused(named_document: str | None) -> None:
    with pytest.raises(ServiceError) as caught:
        put({"name": "a", "areas": [{**BOX, "attachment_uuid": named_document}]}, documents=2)
    assert caught.value.details[0]["field"] == "fields[0].areas[0].attachment_uuid"


def test_a_role_that_a_field_names_for_the_first_time_is_appended() -> None:
    present = [Party(uuid="p-1", name="A")]
    definition = put(
        {"name": "x", "role": "Witness"}, {"name": "y", "submitter_uuid": "p-1", "role": "old name"}, parties=present
    )
    assert roles(definition) == ["A", "Witness"]
    assert [one.role for one in definition.fields] == ["Witness", "A"]


def test_a_uuid_may_be_chosen_but_not_twice() -> None:
    chosen = str(uuid.uuid4())
    assert put({"name": "a", "uuid": chosen}).fields[0].uuid == chosen
    with pytest.raises(ServiceError) as caught:
        put({"name": "a", "uuid": chosen}, {"name": "b", "uuid": chosen}, {"name": "c", "uuid": "mine"})
    assert [detail["field"] for detail in caught.value.details] == ["fields[1].uuid", "fields[2].uuid"]


def test_roles_are_renamed_by_position_and_appended() -> None:
    before = made(document(0, [FieldInput(name="a", role="A"), FieldInput(name="b", role="B")]))
    parties = with_role_names(before.parties, ["Tenant", "Landlord", "Witness"], Limits())
    assert [party.name for party in parties] == ["Tenant", "Landlord", "Witness"]
    assert [party.uuid for party in parties[:2]] == [party.uuid for party in before.parties]
    assert [one.role for one in with_roles_written(before.fields, parties)] == ["Tenant", "Landlord"]
    # Fewer names than roles: the others stay.
    assert [party.name for party in with_role_names(parties, ["Lessee"], Limits())] == ["Lessee", "Landlord", "Witness"]


@pytest.mark.parametrize(
    ("given_names", "field"), [(["A", " "], "roles[1]"), (["B"], "roles[1]"), (["x\u202ey"], "roles[0]")]
)
def test_role_names_must_be_told_apart(given_names: list[str], field: str) -> None:
    parties = [Party(uuid="1", name="A"), Party(uuid="2", name="b")]
    with pytest.raises(ServiceError) as caught:
        with_role_names(parties, given_names, Limits())
    assert caught.value.details[0]["field"] == field


def test_roles_can_be_renamed_by_uuid() -> None:
    parties = [Party(uuid="1", name="A"), Party(uuid="2", name="B")]
    new = str(uuid.uuid4())
    changed = with_parties(parties, [Party(uuid="2", name="Buyer"), Party(uuid=new, name="Notary")], Limits())
    assert changed == [Party(uuid="1", name="A"), Party(uuid="2", name="Buyer"), Party(uuid=new, name="Notary")]


def test_a_clone_shares_no_uuid_with_its_original() -> None:
    tags = [TagField(name="Spouse", condition="Married", areas=[Area(**BOX)]), TagField(name="Married", role="B")]
    original = made(document(0, tag_fields=tags))
    copy = cloned(original, {"doc-0": "doc-copy"})
    assert roles(copy) == roles(original)
    assert [one.name for one in copy.fields] == [one.name for one in original.fields]
    text = str(copy)
    assert not any(one.uuid in text for one in original.fields)
    assert not any(party.uuid in text for party in original.parties)
    assert "doc-0" not in text
    assert copy.fields[0].conditions[0].field_uuid == copy.fields[1].uuid
    assert {one.submitter_uuid for one in copy.fields} == {party.uuid for party in copy.parties}


def test_the_name_of_a_clone_still_fits() -> None:
    assert clone_name("Lease") == "Lease (Clone)"
    assert len(clone_name("x" * 255)) == 255


ANY_TEXT = st.text(max_size=12)
ANY_NUMBER = st.one_of(st.integers(-2, 3), st.floats(), st.none(), ANY_TEXT)
ANY_FIELD = st.fixed_dictionaries(
    {},
    optional={
        "name": ANY_TEXT,
        "role": ANY_TEXT,
        "type": st.sampled_from(["text", "radio", "date", "number", "cells", "heading"]),
        "options": st.lists(ANY_TEXT, max_size=3),
        "default_value": st.one_of(ANY_NUMBER, st.booleans(), st.lists(ANY_TEXT, max_size=2)),
        "validation": st.dictionaries(st.sampled_from(["pattern", "min", "max", "step", "message"]), ANY_NUMBER),
        "preferences": st.dictionaries(
            st.sampled_from(["font_size", "mask", "format", "color", "reasons", "price"]), ANY_NUMBER
        ),
        "areas": st.lists(
            st.fixed_dictionaries(
                {key: st.floats(-1, 700) for key in "xywh"}, optional={"option": ANY_TEXT, "page": st.integers()}
            ),
            max_size=2,
        ),
    },
)


@settings(max_examples=300, deadline=None)
@given(st.lists(ANY_FIELD, max_size=4))
def test_whatever_is_sent_is_either_refused_by_name_or_stored_sanely(fields: list[dict[str, Any]]) -> None:
    try:
        definition = made(document(0, [FieldInput.model_validate(one) for one in fields], pages=2))
    except ServiceError as refusal:
        named_paths = [detail["field"] for detail in refusal.details]
        if refusal.code != "invalid" or not all(path.startswith("documents[0].fields[") for path in named_paths):
            raise
        return
    assert {one.submitter_uuid for one in definition.fields} <= {party.uuid for party in definition.parties}
    for one in definition.fields:
        for area in one.areas:
            assert 0 <= area.x <= 1
            assert 0 <= area.y <= 1
            assert area.x + area.w <= 1 + 1e-5
            assert area.y + area.h <= 1 + 1e-5
            assert area.page in (1, 2)
        FieldDefinition.model_validate_json(one.model_dump_json())


def test_the_same_call_twice_differs_in_new_uuids_and_in_nothing_else() -> None:
    explicit = [FieldInput(name="a", role="A", areas=[AreaInput(**BOX)]), FieldInput(name="", role="B")]
    tags = [TagField(name="c", role="A", condition="a:x", areas=[Area(**BOX)])]

    def told(definition: Definition) -> str:
        text = json.dumps([entry.model_dump(mode="json") for entry in (*definition.parties, *definition.fields)])
        uuids = [party.uuid for party in definition.parties] + [field.uuid for field in definition.fields]
        for number, known in enumerate(uuids):
            text = text.replace(known, f"uuid {number}")
        return text

    first, second = (made(document(0, explicit, tags)) for _ in range(2))
    assert told(first) == told(second)
    assert {entry.uuid for entry in first.fields}.isdisjoint(entry.uuid for entry in second.fields)
