"""``contracts/openapi.yaml``, with the limits of this installation in it."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from contracts.types import Role
from services.gateway.rights import EVERY_SCOPE, Mode, Scope
from services.gateway.settings import Settings

FILE = Path(__file__).parents[4] / "contracts" / "openapi.yaml"
METHODS = ("get", "put", "post", "delete")
ANY_SCOPE = "any"
"""What ``x-scope`` says of an operation that every key may call."""
_FOR_VALIDATORS = frozenset({"x-limit", "x-messages", "x-omit-blank", "x-blank-null", "x-lenient"})
_NULL = {"type": "string", "nullable": True, "enum": [None]}
"""The value null, as OpenAPI 3.0 can say it."""
OUR_FORMATS = frozenset({"email-list", "time-zone", "locale"})
"""Formats that our validators know, and no others."""


class Deprecation(NamedTuple):
    """The days of a deprecated call, in UTC: since when it is, and from when on it is gone; None where that is not decided."""

    since: date
    sunset: date | None


@dataclass(frozen=True)
class Operation:
    """One operation of the document."""

    id: str
    path: str
    method: str
    definition: dict[str, Any]

    @property
    def roles(self) -> frozenset[Role]:
        """Return the roles that may call it with a key: none where it needs no key, or the document says nothing."""
        return frozenset(map(Role, self.definition.get("x-roles", ())))

    @property
    def scopes(self) -> frozenset[Scope]:
        """Return the scopes of which a key needs one: none that would do where the document says nothing."""
        scope_name = self.definition.get("x-scope")
        return EVERY_SCOPE if scope_name == ANY_SCOPE else frozenset([Scope(scope_name)] if scope_name else [])

    @property
    def mode(self) -> Mode | None:
        """Return whether it is for live keys or for test keys alone; None: for both."""
        mode_name = self.definition.get("x-mode")
        return None if mode_name is None else Mode(mode_name)

    @property
    def deprecation(self) -> Deprecation | None:
        """Return the days of a call that is deprecated; None for all others."""
        if self.definition.get("deprecated") is not True:
            return None
        days = self.definition["x-deprecated"]
        since, sunset = days["since"], days.get("sunset")
        return Deprecation(date.fromisoformat(since), None if sunset is None else date.fromisoformat(sunset))

    @property
    def by_folder(self) -> bool:
        """Tell whether a key that is limited to folders may call it: what it reaches is in a folder, and the services look."""
        return self.definition.get("x-folders") is True

    @property
    def takes_files(self) -> bool:
        """Its body is a form with a file, not JSON."""
        return "multipart/form-data" in self.definition.get("requestBody", {}).get("content", {})


def document(settings: Settings | None = None) -> dict[str, Any]:
    """The document for validators. With ``settings``, the numbers marked ``x-limit`` are those of the installation.

    ``allOf`` of one reference is how the contract says more about a named schema where it is used, such as ``nullable``: here
    the two are one. Of what is ``x-lenient`` nothing is checked.
    """
    raw = _raw()
    joined: dict[str, Any] = _joined(_copied(raw, raw, settings, in_example=False), raw)
    return joined


def schema(name: str, settings: Settings | None = None) -> dict[str, Any]:
    """A named schema of ``document``, with those that it refers to in their places."""
    whole = document(settings)
    resolved: dict[str, Any] = _resolved(whole["components"]["schemas"][name], whole)
    return resolved


def version() -> str:
    """Return the version of the interface."""
    return str(_raw()["info"]["version"])


def tags() -> list[dict[str, Any]]:
    """Return the tags, under which the operations are told of: name and description."""
    listed: list[dict[str, Any]] = _raw()["tags"]
    return listed


def published(settings: Settings | None = None) -> dict[str, Any]:
    """The document for readers and generators, as it is served.

    "One of these keys is required" stands in the description: as ``anyOf`` of ``required`` we check it, but generators make a
    union without types of it. Formats that only we know, and what only our validators read, are left out, and so are the shared
    examples: they stand where they are used. ``nullable`` beside no ``type``, which means nothing in OpenAPI 3.0, is a choice
    of null.
    """
    raw = _raw()
    copy: dict[str, Any] = _for_generators(_copied(raw, raw, settings, in_example=False))
    del copy["components"]["examples"]
    return copy


def operations(specification: dict[str, Any]) -> Iterator[Operation]:
    """All operations of the document."""
    for path, methods in specification["paths"].items():
        for method in METHODS:
            if method in methods:
                yield Operation(methods[method]["operationId"], path, method, methods[method])


def methods_of(operations: Sequence[Operation], prefix: str) -> Callable[[str], list[str]]:
    """A function that tells which methods there are for a path below ``prefix``, none where there is no such path; HEAD comes
    with GET, PATCH with PUT, OPTIONS with all."""
    beside = {"get": ["GET", "HEAD"], "put": ["PUT", "PATCH"]}
    patterns = [
        (
            re.compile(prefix + re.sub(r"\\{[^}]*}", "[^/]+", re.escape(operation.path))),
            beside.get(operation.method, [operation.method.upper()]),
        )
        for operation in operations
    ]

    literal = {prefix + operation.path for operation in operations if "{" not in operation.path}

    def methods(path: str) -> list[str]:
        fitting = [(pattern, names) for pattern, names in patterns if pattern.fullmatch(path)]
        if path in literal:  # /submissions/batch is no /submissions/{id}
            fitting = [(pattern, names) for pattern, names in fitting if "[^/]+" not in pattern.pattern]
        names_of_methods = {name for _, names in fitting for name in names}
        return sorted({*names_of_methods, "OPTIONS"}) if names_of_methods else []

    return methods


@cache
def _raw() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load(FILE.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    return loaded


def _copied(node: Any, raw: dict[str, Any], settings: Settings | None, *, in_example: bool) -> Any:
    """A copy with the limits set. References within examples are resolved: tools take examples as they stand."""
    if isinstance(node, list):
        return [_copied(item, raw, settings, in_example=in_example) for item in node]
    if not isinstance(node, dict):
        return node
    if in_example and isinstance(node.get("$ref"), str):
        return _copied(_target(raw, node["$ref"]), raw, settings, in_example=True)
    copy = {
        key: _copied(value, raw, settings, in_example=in_example or key.startswith("example"))
        for key, value in node.items()
    }
    if settings is not None and isinstance(limits := copy.get("x-limit"), dict):
        copy.update({keyword: getattr(settings, name) for keyword, name in limits.items()})
    return copy


def _joined(node: Any, raw: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_joined(item, raw) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("x-lenient") is True:
        return {"description": node["description"]}
    copy = {key: _joined(value, raw) for key, value in node.items()}
    match copy.get("allOf"):
        case [{"$ref": str(reference)}]:
            del copy["allOf"]
            return {**_joined(_target(raw, reference), raw), **copy}
    return copy


def _resolved(node: Any, raw: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_resolved(item, raw) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(reference := node.get("$ref"), str):
        return _resolved(_target(raw, reference), raw)
    return {key: _resolved(value, raw) for key, value in node.items()}


def _for_generators(node: Any) -> Any:
    if isinstance(node, list):
        return [_for_generators(item) for item in node]
    if not isinstance(node, dict):
        return node
    copy = {key: _for_generators(value) for key, value in node.items() if key not in _FOR_VALIDATORS}
    if copy.get("nullable") is True and "type" not in copy:
        del copy["nullable"]
        alternatives = [{"allOf": copy.pop("allOf")}] if len(copy.get("allOf", ())) > 1 else copy.pop("allOf", [])
        if alternatives := [*alternatives, *copy.get("anyOf", ())]:
            copy["anyOf"] = [*alternatives, dict(_NULL)]
    if isinstance(copy.get("format"), str) and copy["format"] in OUR_FORMATS:
        del copy["format"]
    choices = copy.get("anyOf")
    if isinstance(choices, list) and all(set(choice) == {"required"} for choice in choices):
        names = " or ".join(f"`{name}`" for choice in copy.pop("anyOf") for name in choice["required"])
        copy["description"] = f"{copy.get('description', '')} At least {names} is required.".lstrip()
    return copy


def _target(raw: dict[str, Any], reference: str) -> Any:
    node: Any = raw
    for step in reference.removeprefix("#/").split("/"):
        node = node[step]
    return node
