"""Fields as older versions stored them, some of which would be refused now: their template can still be changed, copied, filled and
sent, and what was sent can still be signed. What nobody could sign is refused when it is sent, and an override mends it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.fields import checker
from contracts.problems import Problems
from contracts.rpc.rendering import TagField
from contracts.rpc.submissions.api import FieldOverride
from contracts.rpc.templates import FieldInput
from contracts.types import Area, FieldDefinition, PageSize, Party
from services.submissions.planning import creation, plan
from services.submissions.rules import overrides
from services.submissions.rules.values import filling
from services.templates.rules.domain import Definition, DocumentFields, Limits, extended, redefine
from tests.support.material.submissions import NOW, create_command, field, template
from tests.support.material.submissions import Limits as SubmissionLimits

LETTER = PageSize(width=612, height=792)
OPTIONAL = {"required": False}
OLDER: list[dict[str, Any]] = [
    {"type": "text", "validation": {"pattern": "^$"}, **OPTIONAL},
    {"type": "phone", "validation": {"pattern": "0[0-9]+"}, **OPTIONAL},
    {"type": "text", "validation": {"min": 1, "max": "2026-02-02"}},
    {"type": "number", "validation": {"min": 10}, "default_value": 3},
    {"type": "number", "validation": {"min": "9", "max": "10"}},
    {"type": "number", "validation": {"pattern": "(?=look)ahead"}},
    {"type": "date", "validation": {"min": "soon"}},
    {"type": "text", "validation": {"pattern": "[0-9]+"}, "default_value": "none"},
    {"type": "text", "preferences": {"mask": 5_000}},
    {"type": "phone", "default_value": "0664 123"},
    {"type": "select", "options": ["A ", "B"], "default_value": "A "},
    {"type": "signature", "preferences": {"method": "qes", "reasons": [""]}},
    {"type": "signature", "default_value": "{{name}}"},
    {"type": "payment", "preferences": {"price": 5, "payment_url": "https://a:b/"}, "default_value": "5"},
]
UNSATISFIABLE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "text", "validation": {"pattern": "^$"}}, {"validation": {"pattern": "[a-z]+"}}),
    ({"type": "phone", "validation": {"pattern": "0[0-9]+"}}, {"required": False}),
    ({"type": "number", "validation": {"min": 10, "max": 5}}, {"validation": {"max": 15}}),
    ({"type": "number", "validation": {"max": -(2**53), "step": 7}}, {"readonly": True}),
    ({"type": "date", "validation": {"min": "2026-02-03", "max": "2026-02-02"}}, {"validation": {"min": "2026-02-01"}}),
    ({"type": "text", "validation": {"pattern": "(?=a)"}, **OPTIONAL}, {"validation": {"pattern": "a.*"}}),
]
"""Such fields keep their signer from completing, or their pattern would judge nothing; with the override that mends them."""


def stored(**said: Any) -> FieldDefinition:
    return FieldDefinition(**{"uuid": "f-1", "submitter_uuid": "p-1", "role": "Signer", "name": "F", **said})


def put(before: FieldDefinition, **changes: Any) -> FieldDefinition:
    """As GET gave it, with changes, beside another field that is new."""
    given = [FieldInput.model_validate({**before.model_dump(mode="json"), **changes}), FieldInput(name="New")]
    made = redefine(given, [Party(uuid="p-1", name="Signer")], {"d": [LETTER]}, (), Limits(), [before])
    return made.fields[0]


def as_id(said: dict[str, Any]) -> str:
    return f"{said['type']} {said.get('validation', '')}{said.get('preferences', '')}{said.get('default_value', '')}"[
        :70
    ]


@pytest.mark.parametrize("said", [*OLDER, *(one for one, _ in UNSATISFIABLE)], ids=as_id)
def test_another_field_of_the_template_can_be_changed(said: dict[str, Any]) -> None:
    before = stored(uuid="0d5f9c0e-3a52-4a7b-9d2e-1f8a51c30a11", **said)
    assert put(before) == before
    assert put(before, title="Please").title == "Please"


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        ({"type": "number", "validation": {"min": 10, "max": 5}}, {"validation": {"min": 10, "max": 4}}),
        ({"type": "text", "preferences": {"mask": 5_000}}, {"preferences": {"mask": 5_000, "hidden": True}}),
        ({"type": "text", "validation": {"pattern": "^$"}}, {"type": "phone"}),
        ({"type": "select", "options": ["A"], "default_value": "A"}, {"options": ["B"]}),
        ({"type": "text", "preferences": {"mask": True}, "default_value": "x" * 10_001}, {"preferences": {"mask": 1}}),
    ],
)
def test_settings_that_change_are_judged(said: dict[str, Any], changes: dict[str, Any]) -> None:
    with pytest.raises(ServiceError) as refused:
        put(stored(uuid="0d5f9c0e-3a52-4a7b-9d2e-1f8a51c30a11", **said), **changes)
    assert refused.value.details[0]["field"].startswith("fields[0].")


def test_a_new_field_is_judged_even_when_it_says_what_a_stored_one_says() -> None:
    before = stored(type="number", validation={"min": 10, "max": 5})
    given = [FieldInput(name="F", type="number", validation={"min": 10, "max": 5})]
    with pytest.raises(ServiceError):
        redefine(given, [Party(uuid="p-1", name="Signer")], {"d": [LETTER]}, (), Limits(), [before])


def test_a_tag_of_a_field_that_is_there_does_not_say_again_what_it_is() -> None:
    """A document with variables is read anew for each submission, with its tags."""
    before = stored(type="text", validation={"pattern": "^$"}, required=False)
    tag = TagField(
        name="F", role="Signer", type="text", validation={"pattern": "^$"}, areas=[Area(x=0, y=0, w=1, h=0.1)]
    )
    document = DocumentFields("d", "lease", "variables", "lease", [LETTER], tag_fields=[tag])
    present = Definition([Party(uuid="p-1", name="Signer")], [before])
    (found,) = extended(present, [document], ["d"], Limits()).fields
    assert (found.validation, len(found.areas)) == (before.validation, 1)
    with pytest.raises(ServiceError):
        extended(Definition(present.parties, []), [document], ["d"], Limits())


def planned(definition: FieldDefinition, **override: Any) -> plan.Plan:
    found = template(definition)
    given = [{"name": definition.name, **override}] if override else []
    return creation.plan_submission(create_command(found, {"fields": given}), found, SubmissionLimits(), NOW)


@pytest.mark.parametrize("said", OLDER, ids=as_id)
def test_a_submission_can_be_made_of_it_and_completed(said: dict[str, Any]) -> None:
    definition = field(**said)
    (planned_field,) = planned(definition).fields
    assert planned_field.validation == definition.validation
    assert checker.unsatisfiable(planned_field) is None


@pytest.mark.parametrize(("said", "override"), UNSATISFIABLE, ids=str)
def test_what_nobody_could_sign_is_refused_unless_the_request_mends_it(
    said: dict[str, Any], override: dict[str, Any]
) -> None:
    with pytest.raises(ServiceError) as refused:
        planned(field(**said))
    assert refused.value.details[0]["field"] == "template_id"
    assert "has the field Name whose " in refused.value.details[0]["reason"]
    planned(field(**said), **override)


@pytest.mark.parametrize("kind", ["signature", "initials", "image", "stamp", "file"])
@pytest.mark.parametrize("default", ["{{name}}", "Sign: {name}"])
def test_a_picture_is_never_what_a_placeholder_stands_for(kind: str, default: str) -> None:
    """Older versions kept such a default in submissions; the name would be taken for an attachment, and sealing would fail."""
    signing = filling.Signing({"name": "Ann"}, datetime(2026, 1, 1, tzinfo=UTC), "UTC")
    assert filling.with_defaults([stored(type=kind, default_value=default)], {}, signing) == {}
    plan = planned(field(type=kind, default_value="{{name}}"))
    assert (plan.fields[0].default_value, plan.sources, plan.submitters[0].values) == (None, [], {})


@pytest.mark.parametrize("said", [*OLDER, *(one for one, _ in UNSATISFIABLE)], ids=as_id)
def test_an_override_of_something_else_is_taken(said: dict[str, Any]) -> None:
    before, problems = stored(**said), Problems()
    given = overrides.OverrideRequest({}, [FieldOverride(name="F", validation={"message": "x"}, title="T")], [], "")
    changed = overrides.plan_overrides(given, [before], {"f-1": "F"}, (), problems).apply(before)
    assert problems.entries == []
    assert changed.validation == {**before.validation, "message": "x"}
