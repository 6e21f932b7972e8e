"""The calls of the OpenAPI document, as the reference tells of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Document = dict[str, Any]

JSON = "application/json"
FORM = "multipart/form-data"
_METHODS = ("get", "post", "put", "delete")
_FILE_NAME = "document.pdf"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a call. ``place`` is ``path``, ``query`` or ``header``."""

    name: str
    place: str
    required: bool
    description: str
    example: Any
    schema: Document


@dataclass(frozen=True)
class Body:
    """What a call takes. ``example`` is None where the document has none."""

    media_type: str
    required: bool
    schema: Document
    example: Any


@dataclass(frozen=True)
class Answer:
    """An answer of a call. ``media_type`` is "" for one without content, ``schema`` None where nothing is said of it."""

    status: str
    description: str
    media_type: str
    schema: Document | None
    example: Any

    @property
    def good(self) -> bool:
        """Tell whether the call did what it was asked to."""
        return self.status.startswith("2")


@dataclass(frozen=True)
class Call:
    """An operation of the document, with references to parameters and answers resolved."""

    id: str
    tag: str
    method: str
    path: str
    summary: str
    description: str
    needs_key: bool
    roles: tuple[str, ...]
    scope: str
    mode: str
    by_folder: bool
    deprecated: Document
    parameters: tuple[Parameter, ...]
    bodies: tuple[Body, ...]
    answers: tuple[Answer, ...]

    @property
    def answer(self) -> Answer:
        """Return the answer to the sample: the first good one, or the second of a call whose first is that of a dry run."""
        return [answer for answer in self.answers if answer.good][-1]

    @property
    def body(self) -> Body | None:
        """Return the body that the samples send. One that may be left out of a DELETE is left out: it says "for good"."""
        first = self.bodies[0] if self.bodies else None
        return None if first is None or (self.method == "DELETE" and not first.required) else first

    @property
    def example_path(self) -> str:
        """Return the path with examples in place of its parameters, and with the query parameters that are required."""
        path, query = self.path, []
        for parameter in self.parameters:
            value = quote(_as_text(parameter.example), safe="")
            if parameter.place == "path":
                path = path.replace("{" + parameter.name + "}", value)
            elif parameter.place == "query" and parameter.required:
                query.append(f"{parameter.name}={value}")
        return path + ("?" + "&".join(query) if query else "")

    @property
    def saved_as(self) -> str:
        """Return the name of the file in which the samples keep the answer: "" where it is text, which they print."""
        if self.answer.media_type == JSON or self.answer.media_type.startswith("text/"):
            return ""
        return f"{self.path.rsplit('/', 1)[-1]}.{self.answer.media_type.rsplit('/', 1)[-1]}"


def calls(document: Document) -> Iterator[Call]:
    """All calls of the document, in its order."""
    for path, methods in document["paths"].items():
        shared = methods.get("parameters", [])
        for method in _METHODS:
            if method in methods:
                yield _call(document, path, method, methods[method], shared)


def resolved(document: Document, node: Document) -> Document:
    """Return ``node``, or what it refers to."""
    while isinstance(reference := node.get("$ref"), str):
        target: Any = document
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]
        node = target
    return node


def parts(document: Document, body: Body) -> list[tuple[str, Any, str]]:
    """Return the parts of a form that must be sent or have an example: name, example, and the name of the file or ""."""
    schema = resolved(document, body.schema)
    example = body.example or {}
    parts_found = []
    for name, key in schema["properties"].items():
        is_file = key.get("format") == "binary"
        if name not in example and name not in schema.get("required", ()):
            continue
        if is_file:
            parts_found.append((name, example.get(name), f"{name}.csv" if name in example else _FILE_NAME))
        else:
            parts_found.append((name, example.get(name, key.get("example", name.upper())), ""))
    return parts_found


def slug(text: str) -> str:
    """Return the anchor of a heading, as GitHub makes it, or the last part of a page's path."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def _call(document: Document, path: str, method: str, definition: Document, shared: list[Document]) -> Call:
    return Call(
        id=definition["operationId"],
        tag=definition["tags"][0],
        method=method.upper(),
        path=path,
        summary=definition["summary"],
        description=definition.get("description", "").strip(),
        needs_key=bool(definition.get("security", document["security"])),
        roles=tuple(definition.get("x-roles", ())),
        scope=definition.get("x-scope", ""),
        mode=definition.get("x-mode", ""),
        by_folder=definition.get("x-folders", False),
        deprecated=definition.get("x-deprecated", {}) if definition.get("deprecated") else {},
        parameters=tuple(
            _parameter(resolved(document, parameter)) for parameter in [*shared, *definition.get("parameters", ())]
        ),
        bodies=tuple(_bodies(definition.get("requestBody", {}))),
        answers=tuple(
            _answer(status, resolved(document, answer)) for status, answer in definition["responses"].items()
        ),
    )


def _parameter(raw: Document) -> Parameter:
    return Parameter(
        name=raw["name"],
        place=raw["in"],
        required=raw.get("required", False),
        description=raw.get("description", "").strip(),
        example=raw.get("example"),
        schema=raw["schema"],
    )


def _bodies(raw: Document) -> Iterator[Body]:
    for media_type, content in raw.get("content", {}).items():
        yield Body(media_type, raw.get("required", False), content["schema"], content.get("example"))


def _answer(status: str, raw: Document) -> Answer:
    for media_type, content in raw.get("content", {}).items():
        return Answer(
            status, raw.get("description", "").strip(), media_type, content.get("schema"), content.get("example")
        )
    return Answer(status, raw.get("description", "").strip(), "", None, None)


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
