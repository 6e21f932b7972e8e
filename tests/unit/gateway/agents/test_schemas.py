"""Schemas of tools: those of the interface, cut."""

import json
from typing import Any

import jsonschema
import pytest

from services.gateway.agents import tools
from services.gateway.agents.schemas import Interface, convert, cut, keys, surplus

INTERFACE = Interface.read()
DOCUMENT = INTERFACE.document
EXAMPLES = DOCUMENT["components"]["examples"]
SHOWN = {
    "search_templates": {"data": [EXAMPLES["Template"]["value"]], "pagination": {"count": 1, "next": None, "prev": 7}},
    "search_submissions": {"data": [EXAMPLES["Submission"]["value"]], "pagination": {"count": 1, "next": 3, "prev": 7}},
    "read_submission": EXAMPLES["Submission"]["value"],
    "read_audit_trail": EXAMPLES["SubmissionEventPage"]["value"],
    "get_documents": EXAMPLES["SubmissionDocuments"]["value"],
    "remind_signer": EXAMPLES["Submitter"]["value"],
}


@pytest.mark.parametrize("tool", tools.TOOLS.values(), ids=lambda tool: tool.name)
def test_they_are_schemas_without_references(tool: tools.Tool) -> None:
    taken, shown = tool.input_schema(INTERFACE), tool.output_schema(INTERFACE)
    for schema in (taken, shown):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert "nullable" not in json.dumps(schema)
        assert "#/components" not in json.dumps(schema)
    assert taken["additionalProperties"] is False
    assert set(tool.required) <= set(taken["properties"])


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_of_the_documented_answer_fits(name: str) -> None:
    tool = tools.TOOLS[name]
    shown = cut(SHOWN[name], tool.shows)
    jsonschema.Draft202012Validator(tool.output_schema(INTERFACE)).validate(shown)
    assert shown, "something is left"


def test_no_tool_shows_what_signs_or_takes_what_signs() -> None:
    taken = json.dumps([tool.input_schema(INTERFACE) for tool in tools.TOOLS.values()])
    shown = json.dumps([tool.output_schema(INTERFACE) for tool in tools.TOOLS.values()])
    for word in ("embed_src", '"slug"', "api_key", "readonly_fields", "bcc", "redirect", "logo_url", "reply_to"):
        assert word not in taken, word
    for word in ("embed_src", '"slug"', "api_key"):
        assert word not in shown, word
    assert '"completed":' not in taken


def test_null_is_a_type() -> None:
    assert convert({"type": "string", "nullable": True}, DOCUMENT) == {"type": ["string", "null"]}
    assert convert({"type": "string", "enum": ["a"], "nullable": True}, DOCUMENT)["enum"] == ["a", None]
    kept = convert({"anyOf": [{"type": "string"}, {"type": "number"}], "nullable": True, "description": "x"}, DOCUMENT)
    assert kept == {
        "anyOf": [{"anyOf": [{"type": "string"}, {"type": "number"}]}, {"type": "null"}],
        "description": "x",
    }


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({}, None),
        ({"a": 1}, None),
        ({"a": {"whatever": 1}}, None),
        ({"b": [{"c": 1}, {"d": 1}]}, "b[1].d"),
        ({"x": 1}, "x"),
        ({"b": {"c": 1, "completed": True}}, "b.completed"),
        ({"b": "no object"}, None),
    ],
)
def test_what_a_tool_does_not_take_is_named(arguments: Any, place: str | None) -> None:
    assert surplus(arguments, keys("a", b=keys("c"))) == place
