"""What an API user says about fields and gives as values: what becomes of it, and where it is refused."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.fields.labels import labels
from contracts.problems import Problems
from contracts.rpc.submissions.api import FieldOverride
from contracts.types import FieldDefinition
from services.submissions.rules import overrides
from tests.support.material.submissions import field as a_field

THERE = "0b3e7c1a-5d7e-4b58-9c7f-0f5c1e6a2d11"
ELSEWHERE = "1b3e7c1a-5d7e-4b58-9c7f-0f5c1e6a2d11"


def field(uuid: str, kind: str = "text", **more: Any) -> FieldDefinition:
    return a_field(uuid=uuid, name=uuid.capitalize(), type=kind, **more)


OWN = [
    field("text"),
    field("number", "number", validation={"min": 5}),
    field("sign", "signature"),
    field("papers", "file"),
    field("proof", "verification"),
    field("title", "heading", default_value="Terms"),
    field("line", "strikethrough"),
    field("duty", "dutystamp"),
    field("stamp", "stamp"),
    field("many", "multiple", options=["Łódź", "漢字"]),
]


def planned(
    values: dict[str, Any] | None = None,
    *fields: dict[str, Any],
    readonly: tuple[str, ...] = (),
    own: list[FieldDefinition] = OWN,
) -> tuple[overrides.Overrides, list[tuple[str, str]]]:
    problems = Problems()
    given = overrides.OverrideRequest(values or {}, [FieldOverride(**one) for one in fields], readonly, "s.")
    found = overrides.plan_overrides(given, own, labels(own), [THERE], problems)
    return found, [(one["field"], one["reason"]) for one in problems.entries]


def test_values_with_unknown_names_are_ignored_and_told() -> None:
    found, problems = planned({"Number": "7", "Nope": 1, "n" * 200: 2})
    assert (problems, found.values) == ([], {"number": 7})
    reason = "is not a field of this role"
    assert found.ignored == [
        {"field": "s.values.Nope", "reason": reason},
        {"field": f"s.values.{'n' * 100}", "reason": reason},
    ]
    assert planned({"Number": "7"})[0].ignored == []
    many, _ = planned({f"no {number}": 1 for number in range(101)})
    assert len(many.ignored) == 100


def test_a_value_of_a_field_that_is_named_once_more_is_told() -> None:
    found, problems = planned({" number ": "7", "Text": "A", "number": "8", "text": "B", "NUMBER": "9"})
    assert (problems, found.values) == ([], {"number": 9, "text": "B"})
    assert found.ignored == [
        {"field": "s.values. number ", "reason": "is the same field as number, whose value is taken"},
        {"field": "s.values.Text", "reason": "is the same field as text, whose value is taken"},
        {"field": "s.values.number", "reason": "is the same field as NUMBER, whose value is taken"},
    ]


def test_a_value_is_a_value_and_with_a_field_also_its_default() -> None:
    found, problems = planned(
        {"Number": "7"}, {"name": "Text", "value": "Ann"}, {"name": "Title", "default_value": "B"}
    )
    assert problems == []
    assert found.values == {"number": 7, "text": "Ann"}
    assert found.changes == {"text": {"default_value": "Ann"}, "title": {"default_value": "B"}, "number": {}}
    assert found.paths == {
        "text": "s.fields[0].value",
        "title": "s.fields[1].default_value",
        "number": "s.values.Number",
    }
    assert found.awaited == {"title"}
    assert found.values_over({"title": "old", "sign": "kept"}) == {"sign": "kept", "number": 7, "text": "Ann"}


def test_a_heading_may_be_blank() -> None:
    assert planned({"Title": ""})[0].changes == {"title": {"default_value": ""}}


def test_the_last_word_counts() -> None:
    found, _ = planned({"Text": "now"}, {"name": "Text", "value": "for {name}"})
    assert (found.values, found.awaited) == ({"text": "now"}, set())
    assert found.changes["text"] == {"default_value": "for {name}"}
    found, _ = planned({"Text": "for {name}"}, {"name": "Text", "value": "now"})
    assert (found.values, found.awaited) == ({}, {"text"})
    assert planned({"Text": ""}, {"name": "Text", "default_value": "a", "value": "b"})[0].values == {"text": None}


@pytest.mark.parametrize(
    ("values", "fields", "path", "reason"),
    [
        ({"Number": 1}, [], "s.values.Number", "must not be below 5"),
        ({"Number": 6}, [{"name": "Number", "validation": {"min": 7}}], "s.values.Number", "must not be below 7"),
        ({"Number": "x"}, [], "s.values.Number", "must be a number"),
        ({"Proof": "verified"}, [], "s.values.Proof", "is verified by its signer"),
        ({"Sign": ["a", "b"]}, [], "s.values.Sign", "must be one picture"),
        ({"Sign": 5}, [], "s.values.Sign", "must be a URL, base64 or text"),
        ({"Sign": "{{name}}"}, [], "s.values.Sign", "must be a picture or a file, not a placeholder"),
        ({"Papers": ["a", "{{name}}"]}, [], "s.values.Papers", "must be a picture or a file, not a placeholder"),
        ({"Sign": f" {ELSEWHERE.upper()}"}, [], "s.values.Sign", "must be the uuid of an attachment of this submitter"),
        ({}, [{"name": "Proof", "readonly": True}], "s.fields[0].readonly", "cannot be read-only"),
        ({}, [{"required": True}], "s.fields[0]", "must have a name"),
        ({}, [{"name": "Nobody"}], "s.fields[0].name", "is not a field of this role: Nobody"),
        ({}, [{"name": "x" * 101}], "s.fields[0].name", f"is not a field of this role: {'x' * 100}"),
        ({}, [{"name": "Text", "title": 10_001 * "x"}], "s.fields[0].title", "must not be longer than"),
        ({}, [{"name": "Text", "description": 10_001 * "x"}], "s.fields[0].description", "must not be longer than"),
        ({}, [{"uuid": "sign", "preferences": {"reasons": "x"}}], "s.fields[0].preferences.reasons", "must be a list"),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(
    values: dict[str, Any], fields: list[dict[str, Any]], path: str, reason: str
) -> None:
    _, ((where, why),) = planned(values, *fields)
    assert where == path
    assert why.startswith(reason)


def test_readonly_fields() -> None:
    found, problems = planned(readonly=("Text", "number"))
    assert problems == []
    assert found.changes == {"text": {"readonly": True}, "number": {"readonly": True}}
    _, problems = planned(readonly=("x" * 101, "Proof"))
    assert [where for where, _ in problems] == ["s.readonly_fields[0]", "s.readonly_fields[1]"]
    assert problems[0][1] == f"is not a field of this role: {'x' * 100}"


def test_what_is_said_of_a_field_is_checked_and_the_rest_stays() -> None:
    found, problems = planned(
        None,
        {"name": "Text", "required": False, "title": " Now ", "description": " "},
        {"name": "Stamp", "preferences": {"position": "foreground", "align": "right"}},
        {"name": "Number", "readonly": False, "validation": {"max": 9}},
    )
    assert problems == []
    assert found.changes == {
        "text": {"required": False, "title": " Now "},
        "stamp": {"preferences": {"align": "right"}},
        "number": {"readonly": False, "validation": {"max": 9}},
    }
    assert found.apply(OWN[1]).validation == {"min": 5, "max": 9}
    assert found.apply(OWN[0]).required is False
    assert found.apply(OWN[2]) is OWN[2]
    assert OWN[1].validation == {"min": 5}


@pytest.mark.parametrize("nothing", [None, "", []])
def test_what_takes_no_value_takes_none(nothing: Any) -> None:
    found, problems = planned({"Proof": nothing, "Line": "x"})
    assert (found.values, found.paths, problems) == ({}, {}, [])


def test_pictures_and_files_are_listed() -> None:
    found, problems = planned({"Sign": ["", "Ann"], "Papers": [THERE, None, "https://a.example/b"], "Stamp": ""})
    assert problems == []
    signature, paper = found.sources
    assert (signature.raw, signature.path, signature.type.value) == ("Ann", "s.values.Sign", "signature")
    assert (paper.raw, paper.party_uuid) == ("https://a.example/b", "uuid of First Party")
    assert found.values == {"sign": signature.uuid, "papers": [THERE, paper.uuid], "stamp": None}
    assert planned({"Sign": THERE})[0].values == {"sign": THERE}
    assert planned({"Papers": []})[0].values == {"papers": None}


def test_texts_that_a_font_may_lack_are_listed() -> None:
    found, _ = planned({"Many": ["漢字", "Łódź"], "Sign": "漢字"}, {"name": "Text", "value": "{name} 承"})
    assert found.texts == [("s.fields[0].value", "{name} 承"), ("s.values.Many", "漢字")]
    odd = [
        field("sign", "signature", preferences={"reasons": ["同意", 5]}),
        field("b", preferences={"reasons": "同意"}),
    ]
    found = overrides.Overrides()
    for one in odd:
        overrides.template_defaults(one, found)
    assert found.texts == [("fields.Sign.preferences.reasons", "同意")]


def defaults(definition: FieldDefinition, found: overrides.Overrides | None = None) -> overrides.Overrides:
    found = found or overrides.Overrides()
    overrides.template_defaults(definition, found)
    return found


def test_what_the_template_itself_names_by_url() -> None:
    picture = field("sign", "signature", default_value="https://a.example/b.png")
    found = defaults(picture)
    assert [one.raw for one in found.sources] == ["https://a.example/b.png"]
    assert found.values == {"sign": found.sources[0].uuid}
    assert found.changes == {"sign": {"default_value": found.sources[0].uuid}}
    assert defaults(field("sign", "signature")).values == {}
    given = overrides.Overrides(values={"sign": THERE})
    assert defaults(picture, given).sources == []
    changed = overrides.Overrides(changes={"sign": {"default_value": THERE}})
    assert defaults(picture, changed).sources == []
    with pytest.raises(ServiceError, match="must be the uuid of an attachment"):
        defaults(field("sign", "signature", default_value=ELSEWHERE))


def test_texts_of_the_template_that_a_font_may_lack() -> None:
    assert defaults(field("a", default_value="漢字")).texts == [("fields.A.default_value", "漢字")]
    assert defaults(field("a", default_value="Łódź")).texts == []
    assert defaults(field("a", "number", default_value=5)).texts == []
    signature = field("a", "signature", preferences={"reasons": ["同意"]})
    other = overrides.Overrides(changes={"a": {"preferences": {"reasons": ["Yes"]}}})
    assert defaults(signature, other).texts == []
    looks = overrides.Overrides(changes={"a": {"preferences": {"align": "left"}}})
    assert defaults(signature, looks).texts == [("fields.A.preferences.reasons", "同意")]
