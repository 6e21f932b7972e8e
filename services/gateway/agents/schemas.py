"""JSON Schemas of tools, cut from the schemas of ``contracts/openapi.yaml``: what a tool takes and gives is said once.

A ``Shape`` names the keys that are taken of an object, each with the shape of its value, or None for all of it; of an array
it is that of its items. Agents read every character that they are given, so they are given what is of use to them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.gateway.http.openapi import specification
from services.gateway.http.openapi.specification import OUR_FORMATS, Operation

Shape = Mapping[str, "Shape | None"]

_NOT_FOR_AGENTS = frozenset({"example", "examples", "nullable", "deprecated", "discriminator"})


def keys(words: str, **deeper: "Shape | None") -> dict[str, "Shape | None"]:
    """Return the shape with these keys, all of each, and those of ``deeper`` cut further."""
    return {**dict.fromkeys(words.split()), **deeper}


@dataclass(frozen=True)
class Interface:
    """The document of the interface, and its operations by their ids: read for the schemas, and let go of."""

    document: dict[str, Any]
    operations: Mapping[str, Operation]

    @classmethod
    def read(cls) -> "Interface":
        """Return the interface as it is."""
        document = specification.document()
        return cls(document, {operation.id: operation for operation in specification.operations(document)})

    def inputs(self, operation_id: str, shape: Shape, required: Sequence[str]) -> dict[str, Any]:
        """Return the schema of a tool's arguments: parameters of the operation, in its path or query, and keys of its body."""
        operation, document = self.operations[operation_id], self.document
        schema_by_name = {parameter["name"]: _parameter(parameter) for parameter in _parameters(operation, document)}
        body = operation.definition.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        if body is not None:
            schema_by_name |= _merged(body, document).get("properties", {})
        properties = {name: convert(schema_by_name[name], document, deeper) for name, deeper in shape.items()}
        return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}

    def outputs(self, operation_id: str, shape: Shape | None) -> dict[str, Any]:
        """Return the schema of what is shown of the operation's answer."""
        definition = self.operations[operation_id].definition
        answer = definition["responses"]["200"]["content"]["application/json"]["schema"]
        return convert(answer, self.document, shape, describe=False)


def convert(
    node: Any, document: dict[str, Any], shape: Shape | None = None, *, describe: bool = True
) -> dict[str, Any]:
    """Return a schema of OpenAPI 3.0 as one of JSON Schema 2020-12, cut to ``shape``, without references."""
    merged = _merged(node, document)
    left_out = _NOT_FOR_AGENTS | (frozenset() if describe else {"description", "title", "default"})
    schema = {key: value for key, value in merged.items() if key not in left_out and not key.startswith("x-")}
    if schema.get("format") in OUR_FORMATS:
        del schema["format"]
    if "properties" in schema:
        chosen = schema["properties"] if shape is None else {name: schema["properties"][name] for name in shape}
        schema["properties"] = {
            name: convert(value, document, None if shape is None else shape[name], describe=describe)
            for name, value in chosen.items()
        }
        if required := [name for name in schema.get("required", ()) if name in chosen]:
            schema["required"] = required
        else:
            schema.pop("required", None)
        if shape is not None and describe:
            schema["additionalProperties"] = False
    if "items" in schema:
        schema["items"] = convert(schema["items"], document, shape, describe=describe)
    if isinstance(schema.get("additionalProperties"), dict):
        schema["additionalProperties"] = convert(schema["additionalProperties"], document, describe=describe)
    for combination in ("anyOf", "oneOf", "allOf"):
        if combination in schema:
            schema[combination] = [
                convert(alternative, document, shape, describe=describe) for alternative in schema[combination]
            ]
    return _or_null(schema) if merged.get("nullable") is True else schema


def cut(value: Any, shape: Shape | None) -> Any:
    """Return what a shape takes of a value."""
    if shape is None:
        return value
    if isinstance(value, list):
        return [cut(item, shape) for item in value]
    if isinstance(value, dict):
        return {name: cut(value[name], deeper) for name, deeper in shape.items() if name in value}
    return value


def surplus(arguments: Any, shape: Shape | None, place: str = "") -> str | None:
    """Return where in a tool's arguments there is a key that the shape has not; None when there is none."""
    if shape is None:
        return None
    if isinstance(arguments, list):
        surplus_of_items = (surplus(item, shape, f"{place}[{number}]") for number, item in enumerate(arguments))
        return next((place_of_key for place_of_key in surplus_of_items if place_of_key is not None), None)
    if isinstance(arguments, dict):
        for name, value in arguments.items():
            path = f"{place}.{name}" if place else str(name)
            if name not in shape:
                return path
            if (deeper := surplus(value, shape[name], path)) is not None:
                return deeper
    return None


def _parameters(operation: Operation, document: dict[str, Any]) -> list[dict[str, Any]]:
    shared = document["paths"][operation.path].get("parameters", [])
    return [_merged(parameter, document) for parameter in [*shared, *operation.definition.get("parameters", [])]]


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    described = {"description": parameter["description"]} if "description" in parameter else {}
    return {**parameter["schema"], **described}


def _merged(node: Any, document: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in the place of a reference to it; what stands beside counts."""
    beside = {key: value for key, value in node.items() if key != "$ref"}
    if (reference := node.get("$ref")) is None:
        return beside
    target: Any = document
    for step in reference.removeprefix("#/").split("/"):
        target = target[step]
    return {**_merged(target, document), **beside}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the same or null, which OpenAPI 3.0 calls ``nullable``."""
    described: dict[str, Any] = {key: schema.pop(key) for key in ("description", "title") if key in schema}
    if isinstance(kind := schema.get("type"), str):
        schema = {**schema, "type": [kind, "null"]}
        if "enum" in schema and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
        return {**schema, **described}
    return {"anyOf": [schema, {"type": "null"}], **described} if schema else described
