"""A judge of OpenAPI 3.1 documents and of what is said to follow them: jsonschema, by JSON Schema 2020-12."""

from collections.abc import Iterator
from typing import Any

import jsonschema
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

_BASE = "urn:document"


def faults(document: dict[str, Any], schema: dict[str, Any], value: Any) -> Iterator[str]:
    """Yield what does not hold of ``value``, by a schema that may refer to others of the document."""
    registry: Registry[Any] = Registry().with_resource(_BASE, Resource.from_contents(document, DRAFT202012))
    absolute = _absolute(schema)
    for error in jsonschema.Draft202012Validator(absolute, registry=registry).iter_errors(value):
        yield f"{error.json_path}: {error.message[:300]}"


def body_of(document: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the schema of what webhooks are sent of a kind of event."""
    schema: dict[str, Any] = document["webhooks"][kind]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return schema


def _absolute(node: Any) -> Any:
    """The schema apart from its document: what it refers to is found there."""
    if isinstance(node, list):
        return [_absolute(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: f"{_BASE}{value}" if key == "$ref" and isinstance(value, str) else _absolute(value)
        for key, value in node.items()
    }
