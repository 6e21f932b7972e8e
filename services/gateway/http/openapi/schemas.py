"""Compiled JSON Schemas of what comes in and goes out, and the sentences for what does not hold.

A body is brought into shape first (wrapper taken off, blanks that mean "not given" left out); then the compiled validator
decides. Only what it refuses is looked at again: strings that hold numbers or booleans are converted, and what is still wrong
is put into words.
"""

import itertools
import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import jsonschema_rs

from contracts.errors import ServiceError
from contracts.formats.email_address import is_email
from contracts.formats.model_faults import TYPES
from contracts.formats.web_url import is_web_url
from services.gateway import formats
from services.gateway.http.json_body import path
from services.gateway.http.openapi import ignored_keys

_KEPT = frozenset({
    "type", "properties", "required", "items", "additionalProperties", "enum", "format", "pattern", "minLength", "maxLength",
    "minimum", "maximum", "minItems", "maxItems", "minProperties", "maxProperties", "anyOf",
})  # fmt: skip
_REQUEST_FORMATS: dict[str, Callable[..., bool]] = {
    "email": is_email,
    "email-list": formats.is_email_list,
    "uri": lambda text: is_web_url(text.strip()),
    "date-time": formats.is_moment,
    "time-zone": formats.is_time_zone,
    "locale": formats.is_locale,
}
_MOST_ERRORS = 20
_LOOKED_AT = 50  # items of an array that are searched for errors: a hostile array would cost seconds
STANDING_IN = "8b1d7c1e-trial"
"""In the place of a name that is at fault: no role and no field is called so."""
_STANDING_FOR = {
    "email": "somebody@example.com",
    "phone": "+14155550123",
    "role": STANDING_IN,
    "uuid": STANDING_IN,
    "name": STANDING_IN,
}
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,19}\s*", re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?\s*", re.ASCII)
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def compile_schema(schema: dict[str, Any], *, request: bool) -> jsonschema_rs.Draft7Validator:
    """A validator for a schema of OpenAPI 3.0 without references. No key of an answer is required here, though the document
    promises it: a service that is a version older than the gateway may not know it yet, and the rest of its answer is good."""
    return jsonschema_rs.Draft7Validator(
        json_schema(schema) if request else _of_answers(json_schema(schema)),
        validate_formats=True,
        formats=_REQUEST_FORMATS if request else None,
        mask="the value",
        pattern_options=jsonschema_rs.RegexOptions(),
    )


def _of_answers(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_of_answers(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _of_answers(value) for key, value in schema.items() if not (key == "required" and isinstance(value, list))
    }


def json_schema(node: dict[str, Any]) -> dict[str, Any]:
    """The same as JSON Schema: ``nullable`` becomes a type, and what only describes is left out. Paths stay the same."""
    result = {key: value for key, value in node.items() if key in _KEPT}
    if "properties" in node:
        result["properties"] = {name: json_schema(child) for name, child in node["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(node.get(keyword), dict):
            result[keyword] = json_schema(node[keyword])
    if "anyOf" in node:
        result["anyOf"] = [json_schema(child) for child in node["anyOf"]]
    if node.get("nullable"):
        if "type" in node:
            result["type"] = [node["type"], "null"]
        if "enum" in node:
            result["enum"] = [*node["enum"], None]
        if "anyOf" in node:
            result["anyOf"].append({"type": "null"})
    return result


class BodySchema:
    """The body that one operation takes."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._validator = compile_schema(schema, request=True)
        self._wrapper: str | None = schema.get("x-wrapper")
        self._shape = _shape(schema)
        self._ignored = ignored_keys.finder_of(schema)

    def ignored(self, body: Any) -> list[str]:
        """Return the paths of keys that the operation does not have: nothing is made of them."""
        return self._ignored(self._unwrapped(body))

    def accept(self, body: Any) -> dict[str, Any]:
        """The body as the handlers get it. Raises ServiceError ``invalid`` that names every field at fault."""
        accepted, errors = self._checked_body(body)
        if errors:
            raise refusal(self._schema, errors)
        return accepted  # type: ignore[no-any-return]

    def accept_for_trial(self, body: Any) -> tuple[dict[str, Any], ServiceError | None]:
        """Return the body as ``accept`` does, or what is left of it without what is wrong, with what ``accept`` would raise:
        the caller looks for more. Raises that itself where too little is left."""
        accepted, errors = self._checked_body(body)
        if not errors:
            return accepted, None
        refused = refusal(self._schema, errors)
        remaining = convert(_without(accepted, errors), self._schema)
        if not self._validator.is_valid(remaining):
            raise refused
        return remaining, refused

    def _checked_body(self, body: Any) -> tuple[Any, list[Any]]:
        body = self._shape(self._unwrapped(body))
        if self._validator.is_valid(body):
            return body, []
        body = convert(body, self._schema)
        return body, [] if self._validator.is_valid(body) else _errors(self._validator, body)

    def _unwrapped(self, body: Any) -> Any:
        body = {} if body is None else body
        if self._wrapper is not None and isinstance(body, dict) and isinstance(inner := body.get(self._wrapper), dict):
            return {**{key: value for key, value in body.items() if key != self._wrapper}, **inner}
        return body


def _shape(schema: dict[str, Any]) -> Callable[[Any], Any]:
    """A function that leaves out the blanks of ``x-omit-blank`` and makes those of ``x-blank-null`` null, all the way down."""
    omit, null = frozenset(schema.get("x-omit-blank", ())), frozenset(schema.get("x-blank-null", ()))
    below = {
        name: shape for name, child in schema.get("properties", {}).items() if (shape := _shape(child)) is not _same
    }
    item = _shape(schema["items"]) if "items" in schema else _same

    def shaped(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: None if inner == "" and name in null else below.get(name, _same)(inner)
                for name, inner in value.items()
                if not (name in omit and (inner is None or inner == ""))
            }
        return [item(inner) for inner in value] if isinstance(value, list) else value

    return shaped if omit or null or below or item is not _same else _same


def _same(value: Any) -> Any:
    return value


def convert(value: Any, schema: dict[str, Any]) -> Any:
    """The value with strings converted to the numbers and booleans that the schema wants, where they hold such."""
    kind = schema.get("type")
    if isinstance(value, str):
        return _converted_text(value, kind)
    if isinstance(value, dict) and "properties" in schema:
        properties = schema["properties"]
        return {
            name: convert(inner, properties[name]) if name in properties else inner for name, inner in value.items()
        }
    if isinstance(value, list) and "items" in schema:
        return [convert(inner, schema["items"]) for inner in value]
    return value


def _converted_text(text: str, kind: str | None) -> Any:
    if kind == "boolean":
        return _BOOLEANS.get(text.strip().lower(), text)
    if kind in ("integer", "number") and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "number" and _NUMBER.fullmatch(text):
        return float(text)
    return text


def refusal(schema: dict[str, Any], errors: Iterable[Any], name: str | None = None) -> ServiceError:
    """``invalid`` with a sentence for each error; the first one is the message. ``name`` is what the whole value is called."""
    explained = [_explain(schema, error, name) for error in errors]
    details = [{"field": field, "reason": reason} for field, reason, _ in explained]
    return ServiceError("invalid", explained[0][2], details)


def _errors(validator: jsonschema_rs.Draft7Validator, value: Any) -> list[Any]:
    errors = list(itertools.islice(validator.iter_errors(_beginning(value)), _MOST_ERRORS))
    if errors:
        return errors
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return [error]
    raise AssertionError("refused without an error")


def _without(body: Any, errors: Iterable[Any]) -> Any:
    """Copy the body without the values that are at fault. Where their absence would be a fault too, something stands for them:
    what is said of it then is about a place that has been told of."""
    copy = deepcopy(body)
    for error in errors:
        place = [*error.instance_path, error.kind.value] if error.kind.name == "required" else [*error.instance_path]
        container = copy
        for step in place[:-1]:
            container = container[step] if _has(container, step) else None
        if not place or not isinstance(container, dict | list):
            continue
        last = place[-1]
        if isinstance(container, list):
            if _has(container, last):
                container[last] = STANDING_IN
        elif last in _STANDING_FOR:
            container[last] = _STANDING_FOR[last]
        else:
            container.pop(last, None)
    return copy


def _has(container: Any, step: str | int) -> bool:
    if isinstance(container, dict):
        return step in container
    return isinstance(container, list) and isinstance(step, int) and step < len(container)


def _beginning(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _beginning(inner) for name, inner in value.items()}
    return [_beginning(inner) for inner in value[:_LOOKED_AT]] if isinstance(value, list) else value


def _explain(schema: dict[str, Any], error: Any, name: str | None) -> tuple[str, str, str]:
    """Field, reason, and the sentence with the place, in the words of peer-facts 2.9. Where one of several keys is missing, and
    the words have ``{name}``, it is told of the first of them."""
    keyword, place = error.kind.name, list(error.instance_path)
    if keyword == "required":
        place.append(error.kind.value)
    node = _node(schema, error.schema_path[:-1])
    text = node.get("x-messages", {}).get(keyword)
    if keyword == "anyOf" and text and "{name}" in text and set(node["anyOf"][0]) == {"required"}:
        place.append(node["anyOf"][0]["required"][0])
    about = path(place) if place and isinstance(place[-1], int) else str(place[-1]) if place else name or "body"
    text = text or f"{{name}} {_reason(keyword, error.kind.value)}"
    message = text.replace("{name}", about)
    names_itself = "{name}" in text
    if place and isinstance(place[-1], int):
        container = "" if names_itself else path(place)
    else:
        container = path(place[:-1]) if names_itself else ""
    # Beside the field's path the reason continues the sentence, as the services' own reasons do.
    return (
        path(place) or name or "body",
        text.removeprefix("{name} "),
        f"{message} in `{container}`." if container else message,
    )


def _node(schema: dict[str, Any], steps: list[str | int]) -> dict[str, Any]:
    node: Any = schema
    for step in steps:
        node = node[step]
    return node if isinstance(node, dict) else {}


def _reason(keyword: str, value: Any) -> str:
    if keyword == "type":
        return TYPES[next(kind for kind in value if kind != "null")]
    if keyword == "enum":
        return f"must be one of {', '.join(str(option) for option in value if option is not None)}"
    return _REASONS.get(keyword, "is invalid").replace("{value}", str(value))


_REASONS = {
    "required": "is required",
    "minLength": "is too short (minimum is {value} characters)",
    "maxLength": "is too long (maximum is {value} characters)",
    "minimum": "must be at least {value}",
    "maximum": "must be at most {value}",
    "minItems": "must have at least {value} entries",
    "maxItems": "must have at most {value} entries",
    "maxProperties": "must have at most {value} keys",
}
