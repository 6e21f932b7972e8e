"""Makes docs/interface.md: each row of the interface specification, the operations that serve it, the tests that prove it.

.venv/bin/python -m docs.programs.make_interface

The rows and their tests are docs/interface_rows.yaml, the operations are those of contracts/openapi.yaml. Which test proves a
row nobody can find by reading: it is named by hand. What a machine can tell is checked: that each test is there
(tests/contract/docs/interface/test_interface.py), and that for each operation of a row one of them really sent it, with the
row's key (tests/support/judges/interfaces/recording.py, at the end of a run). Tests made for all operations alike do not count.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from services.gateway.http.openapi import specification

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "docs" / "interface_rows.yaml"
PAGE = ROOT / "docs" / "interface.md"
GENERATED = {"test_generated_calls.py", "test_role_matrix.py", "test_hostile_json.py", "test_openapi.py"}
HEAD = """# The interface specification, row by row

Made by `python -m docs.programs.make_interface` from `docs/interface_rows.yaml`, which says how a row is added. A row's
tests fail when what it says is not so: when its key is ignored, or its default is another. Besides, every operation is
called by `tests/e2e/calls/test_generated_calls.py` (calls made from the document),
`tests/e2e/account/test_role_matrix.py` (every role; own, shared and foreign records) and
`tests/contract/gateway/http/test_hostile_json.py`.
"""
ALSO = {"HEAD": "GET", "PATCH": "PUT"}
TITLES = {"decisions": "Decisions on the interface", "beyond": "Beyond the specification"}


@dataclass(frozen=True)
class Row:
    """``key`` is a parameter or the path of a key in the body. Without ``operations`` a row is about none in particular."""

    name: str
    operations: tuple[str, ...] = ()
    key: str | None = None
    tests: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """``path`` with or without ``/api``; ``keys`` are parameters and paths of keys in the body."""

    method: str
    path: str
    keys: frozenset[str] = frozenset()


def rows() -> list[Row]:
    """The list, in its order."""
    listed = yaml.load(ROWS.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    return [
        Row(entry["row"], tuple(entry.get("operation", ())), entry.get("key"), tuple(entry["tests"]))
        for entry in listed
    ]


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    section = None
    for row in rows():
        number, _, text = row.name.partition(" ")
        if number != section:
            section = number
            title = TITLES.get(section, f"Section {section}")
            lines.append(f"\n## {title}\n\n| Row | Operation | Tests |\n|---|---|---|")
        tests = ", ".join(f"`{name}`" for name in row.tests)
        lines.append(f"| {text} | {', '.join(row.operations)} | {tests} |")
    return "\n".join(lines) + "\n"


def faults(row: Row) -> Iterator[str]:
    """Yield what is wrong with a row, in words."""
    known_operations = [name for name in row.operations if name in _operations()]
    yield from (f"the document has no operation {name}" for name in row.operations if name not in known_operations)
    yield from (
        f"{name} takes no {row.key}"
        for name in known_operations
        if row.key and not _takes(_operations()[name], row.key)
    )
    if not row.tests:
        yield "no test"
    yield from (f"{test} is not there" for test in row.tests if not _is_there(test))
    if row.operations and row.tests and all(map(_is_generated, row.tests)):
        yield "only tests made for all operations alike"


def without_row() -> set[str]:
    """Operations of the document that are in no row."""
    return set(_operations()) - {operation for row in rows() for operation in row.operations}


def not_sent(row: Row, sent: Mapping[str, Collection[Request]]) -> Iterator[str]:
    """Operations of a row that none of its tests sent with the row's key, in words. ``sent`` maps tests to their requests."""
    requests = [request for test in row.tests if not _is_generated(test) for request in sent.get(test, ())]
    for name in row.operations:
        calls = [request for request in requests if operation_of(request) == name]
        if not any(row.key is None or row.key in request.keys for request in calls):
            missing = f"{name} with {row.key}" if row.key else name
            yield f"{missing} was sent by none of {', '.join(row.tests)}"


def operation_of(request: Request) -> str | None:
    """The id of the operation that a request calls: of two that fit, the one whose path stands there as it is."""
    method, path = ALSO.get(request.method, request.method), re.sub("^/api(?=/)", "", request.path)
    return _by_path().get((method, path)) or next(
        (
            name
            for (method_of_path, pattern), name in _by_pattern().items()
            if method_of_path == method and pattern.fullmatch(path)
        ),
        None,
    )


@cache
def functions(path: Path) -> frozenset[str]:
    """The names of a file's functions."""
    tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def _is_there(test: str) -> bool:
    """Is there a test of this name, ``tests/e2e/test_x.py::test_y``?"""
    path, _, name = test.partition("::")
    return name.startswith("test_") and name in functions(ROOT / path)


def _is_generated(test: str) -> bool:
    return Path(test.partition("::")[0]).name in GENERATED


@cache
def _document() -> dict[str, Any]:
    return specification.document()


@cache
def _operations() -> dict[str, specification.Operation]:
    return {operation.id: operation for operation in specification.operations(_document())}


def _takes(operation: specification.Operation, key: str) -> bool:
    if key in {parameter["name"] for parameter in _parameters(operation)}:
        return True
    contents = operation.definition.get("requestBody", {}).get("content", {}).values()
    return any(_has(_resolved(content["schema"]), key.split(".")) for content in contents)


def _parameters(operation: specification.Operation) -> list[dict[str, Any]]:
    of_operation = operation.definition.get("parameters", [])
    return [
        _resolved(parameter)
        for parameter in [*_document()["paths"][operation.path].get("parameters", []), *of_operation]
    ]


def _has(schema: dict[str, Any], steps: list[str]) -> bool:
    name, rest = steps[0].removesuffix("[]"), steps[1:]
    if name not in schema.get("properties", {}):
        return False
    child = _resolved(schema["properties"][name])
    inner = _resolved(child.get("items", {})) if steps[0].endswith("[]") else child
    refused = str(child.get("description", "")).startswith("Not available yet")
    return not refused and (not rest or _has(inner, rest))


def _resolved(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        target: Any = _document()
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    return node


@cache
def _by_path() -> dict[tuple[str, str], str]:
    return {(operation.method.upper(), operation.path): operation.id for operation in _operations().values()}


@cache
def _by_pattern() -> dict[tuple[str, re.Pattern[str]], str]:
    """Operations with a place in their path, and what such a path looks like."""
    return {
        (method, re.compile(re.sub(r"\\{[^}]*}", "[^/]+", re.escape(path)))): name
        for (method, path), name in _by_path().items()
        if "{" in path
    }


if __name__ == "__main__":
    PAGE.write_text(page())
