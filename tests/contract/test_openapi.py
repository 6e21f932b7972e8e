"""The public document: valid, with examples that hold, complete, and true to the contracts that the services answer by."""

import copy
import importlib
import types
import typing
from enum import EnumType
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator
from pydantic import BaseModel

from contracts import types as resources
from contracts.rpc import notifications, rendering, submissions, templates, webhooks  # noqa: F401 - all calls register
from services.gateway import specification
from services.gateway.schemas import BodySchema, compiled

DOCUMENT = specification.document()
OPERATIONS = list(specification.operations(DOCUMENT))
SCHEMAS = DOCUMENT["components"]["schemas"]
BY_ID = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)


def resolved(node: Any) -> Any:
    if isinstance(node, dict):
        if "$ref" in node:
            target: Any = DOCUMENT
            for step in node["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            return resolved(target)
        return {key: resolved(value) for key, value in node.items()}
    return [resolved(item) for item in node] if isinstance(node, list) else node


def test_the_document_is_valid_openapi() -> None:
    OpenAPIV30SpecValidator(copy.deepcopy(DOCUMENT)).validate()


@BY_ID
def test_examples_of_bodies_are_accepted(operation: specification.Operation) -> None:
    content = resolved(operation.definition.get("requestBody", {}).get("content", {})).get("application/json")
    if content is None:
        assert operation.takes_files or "requestBody" not in operation.definition
        return
    BodySchema(content["schema"]).accept(content["example"])


@BY_ID
def test_examples_of_answers_hold(operation: specification.Operation) -> None:
    for status, response in resolved(operation.definition["responses"]).items():
        content = response["content"]["application/json"]
        validator = compiled(content["schema"], request=False)
        errors = [f"{error.instance_path}: {error.message}" for error in validator.iter_errors(content["example"])]
        assert errors == [], f"{status}"


@BY_ID
def test_every_operation_tells_its_errors(operation: specification.Operation) -> None:
    responses = operation.definition["responses"]
    expected = {"422", "default"}
    if operation.definition.get("security") != []:
        expected.add("401")
        if len(operation.definition["x-roles"]) < 3:
            expected.add("403")
    if "{id}" in operation.path:
        expected.add("404")
    if operation.definition.get("requestBody", {}).get("required"):
        expected.add("400")
    assert expected <= set(responses)
    assert len([status for status in responses if status.startswith("2")]) == 1
    for status, response in responses.items():
        if not status.startswith("2"):
            assert resolved(response)["content"]["application/json"]["schema"] == resolved(SCHEMAS["Error"])


@BY_ID
def test_every_operation_can_be_read_about(operation: specification.Operation) -> None:
    assert operation.definition["summary"]
    assert operation.definition["tags"][0] in {tag["name"] for tag in DOCUMENT["tags"]}


def test_every_schema_is_used() -> None:
    text = str(DOCUMENT)
    unused = {
        f"{kind}/{name}"
        for kind in ("schemas", "parameters", "responses")
        for name in DOCUMENT["components"][kind]
        if f"#/components/{kind}/{name}'" not in text
    }
    assert unused == set()


ANSWERS: dict[str, type[BaseModel]] = {
    "Template": resources.Template,
    "TemplateDocument": resources.TemplateDocument,
    "TemplateReference": resources.TemplateReference,
    "Field": resources.FieldDefinition,
    "Area": resources.Area,
    "Notice": resources.Notice,
    "Submission": resources.Submission,
    "SubmissionEvent": resources.SubmissionEvent,
    "Submitter": resources.Submitter,
    "SubmissionDocuments": resources.SubmissionDocuments,
    "DocumentLink": resources.DocumentLink,
    "Removed": resources.Removed,
    "Attachment": resources.Attachment,
    "Webhook": resources.Webhook,
    "EventRecord": resources.EventRecord,
    "Pagination": resources.Pagination,
    "Person": resources.Person,
    "Verification": rendering.Verification,
    "VerifiedSignature": rendering.VerifiedSignature,
    "Delivery": webhooks.Delivery,
    "DeliveryAttempt": webhooks.DeliveryAttempt,
    "Confirmation": webhooks.Confirmation,
    "EventPage": webhooks.EventPage,
}
"""Schemas whose objects come from a service as they are, and the model that it makes them with."""


@pytest.mark.parametrize("name", ANSWERS)
def test_the_document_tells_every_key_of_an_answer(name: str) -> None:
    model = ANSWERS[name]
    keys = {field.serialization_alias or field.alias or key for key, field in model.model_fields.items()}
    assert set(SCHEMAS[name]["properties"]) == keys
    assert set(SCHEMAS[name].get("required", ())) <= keys


@pytest.mark.parametrize("name", ANSWERS)
def test_what_may_be_null_is_nullable(name: str) -> None:
    """Else a good answer would be a 500. A property without a type takes anything."""
    for key, field in ANSWERS[name].model_fields.items():
        schema = resolved(SCHEMAS[name]["properties"][field.serialization_alias or field.alias or key])
        may_be_null = type(None) in typing.get_args(field.annotation)
        assert may_be_null <= bool(schema.get("nullable") or "type" not in schema), key


@pytest.mark.parametrize("name", ANSWERS)
def test_types_and_choices_are_those_of_the_contract(name: str) -> None:
    for key, field in ANSWERS[name].model_fields.items():
        schema = resolved(SCHEMAS[name]["properties"][field.serialization_alias or field.alias or key])
        for choice in _types(field.annotation):
            kind = _kind(choice)
            assert schema.get("type", kind) == kind, key
            if isinstance(choice, EnumType) and "enum" in schema:
                assert [str(option) for option in choice] == schema["enum"], key


def _types(annotation: Any) -> list[Any]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [choice for choice in typing.get_args(annotation) if choice is not type(None)]
    return [] if annotation is typing.Any else [annotation]


def _kind(annotation: Any) -> str:
    origin = typing.get_origin(annotation) or annotation
    if isinstance(origin, type):
        if issubclass(origin, bool):
            return "boolean"
        if issubclass(origin, int):
            return "integer"
        if issubclass(origin, float):
            return "number"
        if issubclass(origin, list):
            return "array"
        if issubclass(origin, dict | BaseModel):
            return "object"
    return "string"


REQUESTS: dict[str, type[BaseModel]] = {
    "NewSubmitter": submissions.NewSubmitter,
    "FieldOverride": submissions.FieldOverride,
    "SubmitterChange": submissions.UpdateSubmitter,
    "SubmissionChange": submissions.UpdateSubmission,
    "NewSubmission": submissions.CreateSubmission,
    "FieldInput": templates.FieldInput,
    "AreaInput": templates.AreaInput,
    "NewPdfTemplate": templates.CreateTemplate,
    "TemplateChange": templates.UpdateTemplate,
    "TemplateCopy": templates.CloneTemplate,
    "NewWebhook": webhooks.CreateWebhook,
    "WebhookChange": webhooks.UpdateWebhook,
}
"""Bodies, and the model that they become."""

OURS = {"request_id", "actor", "account", "id", "html_documents"}


@pytest.mark.parametrize("name", REQUESTS)
def test_whatever_a_service_takes_can_be_said(name: str) -> None:
    assert set(REQUESTS[name].model_fields) - OURS <= set(SCHEMAS[name]["properties"])


def test_every_module_of_handlers_is_there() -> None:
    for operation in OPERATIONS:
        module, _, function = operation.id.partition(".")
        assert hasattr(importlib.import_module(f"services.gateway.api.{module}"), function)
