"""The published document as OpenAPI 3.1 has it, with what webhooks are sent; generators that know 3.0 only take the other one.

In 3.1 a schema is JSON Schema (2020-12): null is a type, an exclusive limit is a number, and what a string holds is told by
``contentMediaType``.
"""

from typing import Any

from contracts.events import REGISTRY
from services.gateway.http.openapi import specification
from services.gateway.settings import Settings

VERSION = "3.1.0"
_TAG = "Events to webhooks"
_SUMMARIES = {
    "form.viewed": "A form was opened",
    "form.started": "A form was begun to be filled in",
    "form.signed": "A form was completed, told at once",
    "form.completed": "A form was completed",
    "form.declined": "A form was declined",
    "form.sent": "An invitation was sent",
    "submission.created": "A submission was created",
    "submission.completed": "A submission is completed and sealed",
    "submission.declined": "A submission was declined",
    "submission.returned": "A submission was given back for correction",
    "submission.expired": "A submission has expired",
    "submission.archived": "A submission was archived",
    "submission.stamped": "A duty stamp was placed",
    "submission.certsign_failed": "A provider's signature failed",
    "submission.erased": "A submission was removed for good",
    "template.created": "A template was created",
    "template.updated": "A template was changed",
    "template.archived": "A template was archived, or is back",
}
_HEADERS = {
    "webhook-id": (
        "Id of the event: the same on each attempt, resend and replay, and as it is polled.",
        "0198c0de-aaaa-7bbb-8ccc-0123456789ab",
    ),
    "webhook-timestamp": ("When this attempt was made, in Unix seconds.", "1772600706"),
    "webhook-signature": (
        "One or more signatures, separated by blanks, each `v1,` and base64, as Standard Webhooks has it.",
        "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    ),
}
_WHOLE = {
    "form.completed": ("/events/form/{type}", ("data", 0, "data")),
    "submission.completed": ("/events/submission/{type}", ("data", 0, "data")),
    "template.created": ("/templates/{id}", ()),
}
"""Events of which an example is told whole, with the operation whose example has the record, and where in it."""
_DESCRIPTION = (
    "Sent to each webhook that names this kind, until it is answered with a status from 200 to 299. The bytes of the body are "
    "the same on each attempt. How to check the signature, and what is tried again when: `docs/receiving.md`."
)

_THIN = {
    "type": "object",
    "description": "Which record it is, for webhooks whose `payload` is `thin`.",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "description": "Of the submitter, the submission or the template."},
        "submission_id": {"type": "integer", "description": "Of a submitter: the submission."},
        "erased": {"const": True, "description": "Given when the submission was removed for good."},
    },
}


def published(settings: Settings | None = None) -> dict[str, Any]:
    """The document for readers and generators, as ``specification.published`` has it."""
    old = specification.published(settings)
    components = old["components"]
    return {
        **old,
        "openapi": VERSION,
        "tags": [
            *old["tags"],
            {"name": _TAG, "description": "Requests that your webhooks get from this installation."},
        ],
        "paths": _converted(old["paths"]),
        "components": {
            **{name: _converted(part) for name, part in components.items()},
            "schemas": {name: _schema(schema) for name, schema in components["schemas"].items()},
        },
        "webhooks": {
            event.type: {"post": _webhook(event.type, old["paths"])} for event in REGISTRY.values() if event.public
        },
    }


def _webhook(kind: str, paths: dict[str, Any]) -> dict[str, Any]:
    summary = _SUMMARIES[kind]
    headers = [
        {
            "name": name,
            "in": "header",
            "required": True,
            "description": text,
            "example": example,
            "schema": {"type": "string"},
        }
        for name, (text, example) in _HEADERS.items()
    ]
    return {
        "operationId": f"told.{kind}",
        "tags": [_TAG],
        "summary": summary,
        "description": _DESCRIPTION,
        "security": [],
        "parameters": headers,
        "requestBody": {
            "description": f"{summary}.",
            "required": True,
            "content": {"application/json": {"schema": _body(kind), "examples": _examples(kind, paths)}},
        },
        "responses": {
            "2XX": {"description": "Taken. The body of the answer is kept in the log of deliveries, shortened."},
            "4XX": {"description": "Not taken, as any other status: it is tried again."},
        },
    }


def _examples(kind: str, paths: dict[str, Any]) -> dict[str, Any]:
    """Return an event as a ``thin`` webhook is told it, and of some kinds one as it is told otherwise."""
    thin: dict[str, Any] = {"id": 501, "submission_id": 31} if kind.startswith("form.") else {"id": 31}
    example_by_name = {"thin": ("With payload thin", thin | ({"erased": True} if kind == "submission.erased" else {}))}
    if kind in _WHOLE:
        path, steps = _WHOLE[kind]
        whole = paths[path]["get"]["responses"]["200"]["content"]["application/json"]["example"]
        for step in steps:
            whole = whole[step]
        example_by_name = {"whole": ("With the record", whole), **example_by_name}
    return {
        name: {
            "summary": summary,
            "value": {"event_type": kind, "timestamp": "2026-03-04T05:06:07.089Z", "data": data},
        }
        for name, (summary, data) in example_by_name.items()
    }


def _body(kind: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": "The event.",
        "required": ["event_type", "timestamp", "data"],
        "properties": {
            "event_type": {"const": kind, "description": "The kind of event."},
            "timestamp": {"type": "string", "format": "date-time", "description": "When it happened, in UTC."},
            "data": {
                "anyOf": [_data(kind), _THIN],
                "description": "The whole record, or by `payload` of the webhook only which one.",
            },
        },
    }


def _data(kind: str) -> dict[str, Any]:
    source = kind.partition(".")[0]
    if kind == "submission.erased":
        return _reference_to("ErasedEventData")
    if kind == "template.archived":
        return {
            "type": "object",
            "description": "The template's id, and when it was archived; null when it is back.",
            "required": ["id", "archived_at"],
            "properties": {
                "id": {"type": "integer", "description": "Of the template."},
                "archived_at": {
                    "type": ["string", "null"],
                    "format": "date-time",
                    "description": "When it was archived.",
                },
            },
        }
    if kind == "template.updated":
        changes = {
            "type": "array",
            "description": "What the change means for values that programs send (`docs/values.md`).",
            "items": {"type": "object", "additionalProperties": True, "description": "One change."},
        }
        return {
            "description": "The template, and what changed.",
            "allOf": [_reference_to("Template"), {"type": "object", "properties": {"changes": changes}}],
        }
    return _reference_to(
        {"form": "FormEventData", "submission": "PolledSubmissionEventData", "template": "Template"}[source]
    )


def _reference_to(schema: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{schema}"}


def _converted(node: Any) -> Any:
    """Convert the schemas within something that is none itself; examples stay as they are."""
    if isinstance(node, list):
        return [_converted(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: value if key.startswith("example") else _schema(value) if key == "schema" else _converted(value)
        for key, value in node.items()
    }


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    new = {key: _below(key, value) for key, value in schema.items() if key != "nullable"}
    if schema.get("nullable"):
        only_null = schema.get("enum") == [None]
        new["type"] = "null" if only_null else [schema["type"], "null"]
        if only_null:
            del new["enum"]
    for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if new.get(exclusive) is True:
            new[exclusive] = new.pop(limit)
    if new.get("format") == "binary":
        del new["format"]
        new["contentMediaType"] = "application/octet-stream"
    return new


def _below(key: str, value: Any) -> Any:
    match key:
        case "properties":
            return {name: _schema(schema) for name, schema in value.items()}
        case "items" | "not":
            return _schema(value)
        case "anyOf" | "oneOf" | "allOf":
            return [_schema(schema) for schema in value]
        case "additionalProperties" if isinstance(value, dict):
            return _schema(value)
    return value
