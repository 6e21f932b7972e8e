"""``contracts/openapi.yaml``, with the limits of this installation in it."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from services.gateway.settings import Settings

FILE = Path(__file__).parents[2] / "contracts" / "openapi.yaml"
METHODS = ("get", "put", "post", "delete")


@dataclass(frozen=True)
class Operation:
    """One operation of the document."""

    id: str
    path: str
    method: str
    definition: dict[str, Any]

    @property
    def takes_files(self) -> bool:
        """Its body is a form with a file, not JSON."""
        return "multipart/form-data" in self.definition.get("requestBody", {}).get("content", {})


def document(settings: Settings | None = None) -> dict[str, Any]:
    """The document as it is served. With ``settings``, the numbers marked ``x-limit`` are those of the installation."""
    raw = _raw()
    whole: dict[str, Any] = _copied(raw, raw, settings, in_example=False)
    return whole


def published(settings: Settings | None = None) -> dict[str, Any]:
    """The document for readers and generators: "one of these keys is required" stands in the description, and what may be null
    beside a list of values has null among them.

    As ``anyOf`` of ``required`` we check the former, but generators make a union without types of it. Without the latter,
    generated clients refuse an answer in which it is null.
    """
    whole: dict[str, Any] = _for_generators(document(settings))
    return whole


def operations(whole: dict[str, Any]) -> Iterator[Operation]:
    """All operations of the document."""
    for path, methods in whole["paths"].items():
        for method in METHODS:
            if method in methods:
                yield Operation(methods[method]["operationId"], path, method, methods[method])


def methods_of(found: Iterable[Operation], prefix: str) -> Callable[[str], list[str]]:
    """A function that tells which methods there are for a path below ``prefix``; HEAD comes with GET, PATCH with PUT."""
    beside = {"get": ["GET", "HEAD"], "put": ["PUT", "PATCH"]}
    known = [
        (
            re.compile(prefix + re.sub(r"\\{[^}]*}", "[^/]+", re.escape(each.path))),
            beside.get(each.method, [each.method.upper()]),
        )
        for each in found
    ]

    def methods(path: str) -> list[str]:
        return sorted({name for pattern, names in known if pattern.fullmatch(path) for name in names})

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


def _for_generators(node: Any) -> Any:
    if isinstance(node, list):
        return [_for_generators(item) for item in node]
    if not isinstance(node, dict):
        return node
    copy = {key: _for_generators(value) for key, value in node.items()}
    choices = copy.get("anyOf")
    if isinstance(choices, list) and all(set(choice) == {"required"} for choice in choices):
        names = " or ".join(f"`{name}`" for choice in copy.pop("anyOf") for name in choice["required"])
        copy["description"] = f"{copy.get('description', '')} At least {names} is required.".lstrip()
    if copy.get("nullable") is True and isinstance(copy.get("enum"), list):
        copy["enum"] = [*copy["enum"], None]
    return copy


def _target(raw: dict[str, Any], reference: str) -> Any:
    node: Any = raw
    for step in reference.removeprefix("#/").split("/"):
        node = node[step]
    return node
