"""The public interface: a valid document, a handler for each operation, errors that it promises, examples that hold."""

import copy
import importlib
import inspect
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from pydantic import BaseModel

from contracts.errors import STATUS
from contracts.events import REGISTRY
from contracts.rpc.submissions import api as rpc
from contracts.types import Role
from services.gateway import api
from services.gateway.http.answers.problem_documents import MEDIA_TYPE, problem_document
from services.gateway.http.openapi import schemas, specification
from services.gateway.rights import EVERY_SCOPE
from services.templates.rules.field_list import CONDITION_ACTIONS
from tests.support.services.secret_settings import KEY_ENCRYPTION_SECRET, LINK_SECRET

DOCUMENT = specification.document()
OPERATIONS = list(specification.operations(DOCUMENT))
BY_ID = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
FILES = {"application/zip", "text/csv", "application/pkcs7-signature"}
OWN = {"account", "keys", "users"}
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
    """As Connexion would find at each start of a gateway, which we do not let it do: the defaults fit their schemas, too."""
    importlib.import_module("services.gateway.http.connexion_import")  # it expects the warnings of the import
    from connexion.spec import create_spec_validator

    schema = json.loads(files("connexion").joinpath("resources/schemas/v3.0/schema.json").read_text())
    document = json.loads(json.dumps(DOCUMENT))
    create_spec_validator(document)(schema).validate(document)


def test_the_kinds_of_events_are_those_that_are_told() -> None:
    told = {event.type for event in REGISTRY.values() if event.public}
    schemas = DOCUMENT["components"]["schemas"]
    assert set(schemas["EventKind"]["enum"]) == told
    for name, subject in (("FormEventKind", "form"), ("SubmissionEventKind", "submission")):
        assert set(schemas[name]["enum"]) == {kind for kind in told if kind.startswith(f"{subject}.")}


@pytest.mark.parametrize(
    ("schema", "options", "handled"),
    [
        ("NewSubmitter", rpc.NewSubmitter, {"application_key"}),
        ("SubmitterChange", rpc.SubmitterChange, {"application_key"}),
        (
            "NewSubmissionOfTemplate",
            rpc.SubmissionOptions,
            {"submitters", "submissions", "emails", "email", "order", "submitters_order", "expire_at"}
            | {"dutystamp", "certsign"},
        ),
    ],
)
def test_what_is_handed_on_is_what_a_caller_may_say(schema: str, options: type[BaseModel], handled: set[str]) -> None:
    """Not who asks, nor for which account: nobody is to say that of themselves. And no key of the document is forgotten."""
    properties = set(resolved(DOCUMENT["components"]["schemas"][schema])["properties"])
    assert set(options.model_fields) == properties - handled
    assert not {"actor", "account", "request_id", "id", "source"} & set(options.model_fields)


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
    assert handler.__module__.startswith("services.gateway.api.")
    assert handler.__module__.rpartition(".")[2] == operation.id.partition(".")[0]


@BY_ID
def test_every_operation_promises_the_errors_it_can_give(operation: specification.Operation) -> None:
    responses = operation.definition["responses"]
    resource = operation.id.partition(".")[0]
    expected = {"422", "default"}
    if operation.roles:
        expected.add("401")
        if len(operation.roles) < len(Role) or operation.scopes < EVERY_SCOPE:
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
            problem = resolved(response)["content"][MEDIA_TYPE]["schema"]["properties"]
            assert set(problem) == {*content["schema"]["properties"], "type", "title", "detail", "instance"}


@BY_ID
def test_every_operation_that_changes_something_takes_an_idempotency_key(operation: specification.Operation) -> None:
    """The tools change nothing, nor does what is only tried out: what they answer is made anew."""
    names = [resolved(parameter)["name"] for parameter in operation.definition.get("parameters", [])]
    asks = operation.id.startswith("tools.") or operation.id == "templates.evaluate"
    changes = operation.method != "get" and not asks
    assert ("Idempotency-Key" in names) == changes
    assert ("409" in operation.definition["responses"]) == changes


@BY_ID
def test_what_takes_if_match_says_so(operation: specification.Operation) -> None:
    names = [resolved(parameter)["name"] for parameter in operation.definition.get("parameters", [])]
    taken = operation.id in api.IF_UNCHANGED
    assert ("If-Match" in names, "412" in operation.definition["responses"]) == (taken, taken)
    if taken:
        (reading,) = [other for other in OPERATIONS if other.id == api.IF_UNCHANGED[operation.id]]
        assert (reading.path, reading.method) == (operation.path, "get")


@BY_ID
def test_every_operation_has_one_success_and_is_described(operation: specification.Operation) -> None:
    successes = [status for status in operation.definition["responses"] if status.startswith("2")]
    created = ["200", "202"] if operation.id in api.ACCEPTED else ["201"] if operation.id in api.CREATED else ["200"]
    assert successes == created
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
        schemas.compile_schema(parameter["schema"], request=True).validate(parameter["example"])
    if not operation.takes_files:
        for content in operation.definition.get("requestBody", {}).get("content", {}).values():
            assert "example" in content
    for status, response in operation.definition["responses"].items():
        shown = resolved(response)
        assert shown["description"], status
        assert set(shown["content"]) & FILES or "example" in shown["content"]["application/json"], status
        if not status.startswith("2"):
            example = shown["content"]["application/json"]["example"]
            assert STATUS.get(example["code"]) == int(status) if status != "default" else 500
            assert status != "422" or example["details"]
            problem = dict(shown["content"][MEDIA_TYPE]["example"])
            asked = problem["request_id"]
            assert problem == problem_document(example, STATUS[example["code"]], asked, "https://sign.example.com")


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
        for content in resolved(response)["content"].values():
            look(content["schema"], status)
    assert open_parts == []


def examples() -> Iterator[Any]:
    for operation in OPERATIONS:
        bodies = {"request": operation.definition.get("requestBody", {})}
        bodies |= {status: resolved(response) for status, response in operation.definition["responses"].items()}
        for name, body in bodies.items():
            for media_type, content in body.get("content", {}).items():
                if media_type in FILES:
                    continue  # there is no JSON to show
                yield pytest.param(name, content, id=f"{operation.id}-{name}")


@pytest.mark.parametrize(("name", "content"), list(examples()))
def test_every_example_holds(name: str, content: dict[str, Any]) -> None:
    schema = resolved(content["schema"])
    if "file" in schema.get("properties", {}) and "example" not in content:
        return  # a form with a file has no JSON to show
    example = content["example"]
    if name == "request":
        schemas.BodySchema(schema).accept(copy.deepcopy(example))
        return
    validator = schemas.compile_schema(schema, request=False)
    assert [f"{list(error.instance_path)}: {error.message}" for error in validator.iter_errors(example)] == []


def test_an_example_that_does_not_hold_would_be_found() -> None:
    user = resolved(DOCUMENT["components"]["schemas"]["User"])
    good = DOCUMENT["components"]["examples"]["User"]["value"]
    validator = schemas.compile_schema(user, request=False)
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
        link_secret=LINK_SECRET,
        database_url="sqlite://",
        key_encryption_secret=KEY_ENCRYPTION_SECRET,
        max_submitters=3,
        max_documents=2,
    )
    own = specification.document(given)["components"]["schemas"]
    assert own["NewSubmission"]["properties"]["submitters"]["maxItems"] == 3
    assert own["NewPdfTemplate"]["properties"]["documents"]["maxItems"] == 2
    assert DOCUMENT["components"]["schemas"]["NewSubmission"]["properties"]["submitters"]["maxItems"] == 50


def test_generated_clients_have_a_name_for_everything() -> None:
    """What has none gets one from the generator, such as ``order_type_2_type_1``, and another one with the next change."""
    published = specification.published()
    nameless = []

    def look(schema: dict[str, Any], where: str) -> None:
        for name, child in schema.get("properties", {}).items():
            look_below(child, f"{where}.{name}")
        for child in (schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", ())):
            if isinstance(child, dict):
                look_below(child, f"{where}[]")

    def look_below(schema: dict[str, Any], where: str) -> None:
        if (schema.get("type") == "object" or "enum" in schema) and schema.get("enum") not in ([True], [None]):
            nameless.append(where)
        look(schema, where)

    for name, schema in published["components"]["schemas"].items():
        look(schema, name)
    for operation in specification.operations(published):
        shared = published["paths"][operation.path].get("parameters", [])
        parameters = [*shared, *operation.definition.get("parameters", [])]
        bodies = [operation.definition.get("requestBody", {}), *operation.definition["responses"].values()]
        for part in [*parameters, *(content for one in bodies for content in one.get("content", {}).values())]:
            if "schema" in part:
                look_below(part["schema"], operation.id)
    for name, parameter in published["components"]["parameters"].items():
        look_below(parameter["schema"], name)
    assert nameless == []


def test_null_is_said_where_a_schema_is_used() -> None:
    """A component that may be null itself gets a second name; ``nullable`` beside an enum without null in it is refused, and
    without a type beside it means nothing."""
    named = specification.published()["components"]["schemas"]
    values = {"FieldValue", "FieldValueInput"}  # unions without a class of their own
    null = {"type": "string", "nullable": True, "enum": [None]}
    assert {
        name for name, schema in named.items() if schema.get("nullable") or null in schema.get("anyOf", ())
    } == values
    nullable = [node for node in _nodes(specification.published()) if node.get("nullable")]
    assert [node for node in nullable if None not in node.get("enum", [None]) or "type" not in node] == []
    assert named["NewSubmitter"]["properties"]["message"]["anyOf"] == [
        {"$ref": "#/components/schemas/Message"},
        null,
    ]


def test_what_is_sent_has_no_default() -> None:
    """Generators send the default of a key that the caller left out, or ask for the key: left out is not always the default."""
    with_default = [node for node in _nodes(specification.published()["components"]["schemas"]) if "default" in node]
    assert with_default == []


def test_every_key_that_is_required_is_described() -> None:
    """``template_id`` once was not: no generated client could send it."""
    for name, schema in specification.published()["components"]["schemas"].items():
        assert set(schema.get("required", ())) <= set(schema.get("properties", ())), name


def test_free_objects_are_free_on_purpose() -> None:
    """An object without a word about its keys is ``Record<string, never>`` in TypeScript: nothing can be put into it."""
    bare = [
        node
        for node in _nodes(specification.published())
        if node.get("type") == "object" and not {"properties", "additionalProperties"} & set(node)
    ]
    assert bare == []


def test_published_schemas_have_only_what_readers_know() -> None:
    """Formats that OpenAPI or JSON Schema know; none of our validators' words."""
    formats = {node["format"] for node in _nodes(specification.published()) if isinstance(node.get("format"), str)}
    assert formats == {"binary", "date-time", "email", "int64", "uri"}
    ours = {key for node in _nodes(specification.published()) for key in node if key.startswith("x-")}
    assert ours == {"x-roles", "x-scope", "x-mode", "x-folders", "x-wrapper"}


def test_the_actions_of_conditions_are_those_there_are() -> None:
    named = DOCUMENT["components"]["schemas"]
    assert sorted(named["ConditionAction"]["enum"]) == sorted(CONDITION_ACTIONS)


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
