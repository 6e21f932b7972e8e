"""The public interface: a valid document, a handler for each operation, errors that it promises, examples that hold."""

import copy
import inspect
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from contracts.errors import STATUS
from services.gateway import api, schemas, specification
from services.gateway.auth import ROLES

DOCUMENT = specification.document()
OPERATIONS = list(specification.operations(DOCUMENT))
BY_ID = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
OWN = {"account", "users"}
"""Resources that the gateway has itself: no service can be away."""


def resolved(node: Any) -> Any:
    """``node`` with every reference replaced by what it names."""
    if isinstance(node, list):
        return [resolved(item) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        target: Any = DOCUMENT
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        return resolved(target)
    return {key: resolved(value) for key, value in node.items()}


def test_the_document_is_valid_openapi() -> None:
    schema = json.loads(files("connexion").joinpath("resources/schemas/v3.0/schema.json").read_text())
    jsonschema.Draft4Validator(schema).validate(json.loads(json.dumps(DOCUMENT)))


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def test_every_reference_leads_somewhere_and_every_component_is_used() -> None:
    used = set(references(specification._raw()))
    for reference in used:
        assert resolved({"$ref": reference}) is not None
    named = {
        f"#/components/{kind}/{name}"
        for kind, parts in DOCUMENT["components"].items()
        if kind in ("schemas", "parameters", "responses")
        for name in parts
    }
    assert named - used == set()


def test_operation_ids_are_unique() -> None:
    assert len({operation.id for operation in OPERATIONS}) == len(OPERATIONS)


@BY_ID
def test_every_operation_has_a_handler(operation: specification.Operation) -> None:
    handler = api.handler(operation.id)
    assert inspect.iscoroutinefunction(handler)
    assert handler.__module__ == f"services.gateway.api.{operation.id.partition('.')[0]}"


@BY_ID
def test_every_operation_promises_the_errors_it_can_give(operation: specification.Operation) -> None:
    responses = operation.definition["responses"]
    resource = operation.id.partition(".")[0]
    expected = {"422", "default"}
    if operation.id in ROLES:
        expected.add("401")
        if len(ROLES[operation.id]) < 3:
            expected.add("403")
    if resource not in OWN:
        expected.add("503")
    if "{id}" in operation.path:
        expected.add("404")
    if "requestBody" in operation.definition and operation.method != "delete":
        expected.add("400")
    assert expected <= set(responses)
    for status, response in responses.items():
        if not status.startswith("2"):
            content = resolved(response)["content"]["application/json"]
            assert content["schema"] == resolved(DOCUMENT["components"]["schemas"]["Error"])


@BY_ID
def test_every_operation_that_changes_something_takes_an_idempotency_key(operation: specification.Operation) -> None:
    """The tools change nothing: what they answer is made anew."""
    names = [resolved(parameter)["name"] for parameter in operation.definition.get("parameters", [])]
    changes = operation.method != "get" and not operation.id.startswith("tools.")
    assert ("Idempotency-Key" in names) == changes
    assert ("409" in operation.definition["responses"]) == changes


@BY_ID
def test_every_operation_has_one_success_and_is_described(operation: specification.Operation) -> None:
    successes = [status for status in operation.definition["responses"] if status.startswith("2")]
    assert successes == (["201"] if operation.id in api.CREATED else ["200"])
    assert operation.definition["summary"]
    assert operation.definition["tags"][0] in {tag["name"] for tag in DOCUMENT["tags"]}


@BY_ID
def test_every_operation_is_explained_and_shown(operation: specification.Operation) -> None:
    """Whoever generates a client, or reads the page, finds what each part means and what it looks like."""
    assert operation.definition.get("description"), "what the summary does not say"
    path_item = DOCUMENT["paths"][operation.path]
    for parameter in map(resolved, [*path_item.get("parameters", []), *operation.definition.get("parameters", [])]):
        assert parameter.get("description"), parameter["name"]
        assert "example" in parameter, parameter["name"]
        schemas.compiled(parameter["schema"], request=True).validate(parameter["example"])
    if not operation.takes_files:
        for content in operation.definition.get("requestBody", {}).get("content", {}).values():
            assert "example" in content
    for status, response in operation.definition["responses"].items():
        shown = resolved(response)
        assert shown["description"], status
        assert "example" in shown["content"]["application/json"], status
        if not status.startswith("2"):
            example = shown["content"]["application/json"]["example"]
            assert STATUS.get(example["code"]) == int(status) if status != "default" else 500
            assert status != "422" or example["details"]


@BY_ID
def test_every_answer_is_typed(operation: specification.Operation) -> None:
    """A generated client knows the type of everything it gets: what may be anything says so with ``additionalProperties``."""
    open_parts = []

    def look(schema: dict[str, Any], where: str) -> None:
        if "anyOf" not in schema and "type" not in schema:
            open_parts.append(where)
        if schema.get("type") == "object" and not {"properties", "additionalProperties"} & set(schema):
            open_parts.append(where)
        for name, child in schema.get("properties", {}).items():
            look(child, f"{where}.{name}")
        for child in (schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", ())):
            if isinstance(child, dict):
                look(child, f"{where}[]")

    for status, response in operation.definition["responses"].items():
        look(resolved(response)["content"]["application/json"]["schema"], status)
    assert open_parts == []


def examples() -> Iterator[Any]:
    for operation in OPERATIONS:
        bodies = {"request": operation.definition.get("requestBody", {})}
        bodies |= {status: resolved(response) for status, response in operation.definition["responses"].items()}
        for name, body in bodies.items():
            for content in body.get("content", {}).values():
                yield pytest.param(name, content, id=f"{operation.id}-{name}")


@pytest.mark.parametrize(("name", "content"), list(examples()))
def test_every_example_holds(name: str, content: dict[str, Any]) -> None:
    if "file" in content["schema"].get("properties", {}) and "example" not in content:
        return  # a form with a file has no JSON to show
    schema, example = resolved(content["schema"]), content["example"]
    if name == "request":
        schemas.BodySchema(schema).accept(copy.deepcopy(example))
        return
    validator = schemas.compiled(schema, request=False)
    assert [f"{list(error.instance_path)}: {error.message}" for error in validator.iter_errors(example)] == []


def test_an_example_that_does_not_hold_would_be_found() -> None:
    user = resolved(DOCUMENT["components"]["schemas"]["User"])
    good = DOCUMENT["components"]["examples"]["User"]["value"]
    validator = schemas.compiled(user, request=False)
    assert validator.is_valid(good)
    for key, wrong in {"id": "2", "role": "boss", "created_at": "yesterday", "last_name": 5}.items():
        assert not validator.is_valid({**good, key: wrong}), key


def test_examples_show_every_key_that_is_required() -> None:
    """A reader copies the example: what an answer always has must be in it."""
    for name, kind in {"Template": "Template", "Submission": "Submission", "Submitter": "Submitter"}.items():
        schema = DOCUMENT["components"]["schemas"][kind]
        assert set(schema["properties"]) - set(DOCUMENT["components"]["examples"][name]["value"]) == set(), name


def test_limits_are_those_of_the_installation() -> None:
    from services.gateway.settings import Settings

    given = Settings(
        amqp_url="amqp://unused",
        blob_url="file:///nowhere",
        base_url="http://localhost",
        link_secret="for tests",
        database_url="sqlite://",
        key_encryption_secret="a secret of the tests",
        max_submitters=3,
        max_documents=2,
    )
    own = specification.document(given)["components"]["schemas"]
    assert own["NewSubmission"]["properties"]["submitters"]["maxItems"] == 3
    assert own["NewPdfTemplate"]["properties"]["documents"]["maxItems"] == 2
    assert DOCUMENT["components"]["schemas"]["NewSubmission"]["properties"]["submitters"]["maxItems"] == 50


def test_clients_that_are_generated_know_that_null_may_be_among_the_values() -> None:
    """OpenAPI 3.0.3: ``nullable`` adds no null to ``enum``. Without it no client could read an unsealed submission."""
    nullable = [node for node in _nodes(specification.published()) if node.get("nullable") and "enum" in node]
    assert len(nullable) > 5
    assert all(node["enum"][-1] is None and None not in node["enum"][:-1] for node in nullable)


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _nodes(child)


def test_unbounded_input_is_bounded() -> None:
    """Every array that a caller sends has a largest size, and every text that is kept a longest one (T26)."""
    unbounded = []

    def look(schema: dict[str, Any], where: str) -> None:
        if schema.get("type") == "array" and "maxItems" not in schema:
            unbounded.append(where)
        is_file = where.endswith((".file", ".files[]"))
        if schema.get("type") == "string" and not (is_file or "enum" in schema or "maxLength" in schema):
            unbounded.append(where)
        for name, child in schema.get("properties", {}).items():
            if schema.get("properties", {}).get(name) and "date-time" not in str(child.get("format")):
                look(child, f"{where}.{name}")
        if isinstance(schema.get("items"), dict):
            look(schema["items"], f"{where}[]")

    for operation in OPERATIONS:
        for content in operation.definition.get("requestBody", {}).get("content", {}).values():
            if not operation.takes_files:
                look(resolved(content["schema"]), operation.id)
    assert unbounded == []
