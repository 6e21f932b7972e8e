"""Makes docs/interface.md: each row of the interface specification, the operation that serves it, a test that covers it.

.venv/bin/python -m docs.make_interface

The rows are docs/interface_rows.yaml, the operations are those of contracts/openapi.yaml, and the tests are found in their
source (docs/tests_said.py): one covers an operation when it (or a function of the tests that it calls) sends the method to the
path, or calls the published client's method for it, and a key when it also writes that key for this call. Tests made for all
operations alike do not count.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from docs.tests_said import ROOT, Function, module, reached
from services.gateway import specification

ROWS = ROOT / "docs" / "interface_rows.yaml"
PAGE = ROOT / "docs" / "interface.md"
FOLDERS = ("tests/e2e", "tests/browser", "tests/contract")
GENERATED = {"test_generated_calls.py", "test_role_matrix.py", "test_hostile_json.py", "test_openapi.py"}
HEAD = """# The interface specification, row by row

Made by `python -m docs.make_interface`; `docs/interface_rows.yaml` says how a row is added. Besides, every operation is called
by `tests/e2e/test_generated_calls.py` (calls made from the document), `tests/contract/test_role_matrix.py` (every role; own,
shared and foreign records) and `tests/contract/test_hostile_json.py`.
"""
NOT_THERE = "not there yet"


@dataclass(frozen=True)
class Row:
    """``key`` is a parameter or the path of a key in the body; ``tests`` are those that the list names."""

    name: str
    operations: tuple[str, ...]
    key: str | None = None
    tests: tuple[str, ...] = ()


def rows() -> list[Row]:
    """The list, and after it a row for each operation that the specification does not have."""
    listed = [
        Row(row["row"], tuple(row["operation"]), row.get("key"), tuple(row.get("tests", ())))
        for row in yaml.safe_load(ROWS.read_text())
    ]
    known = {operation for row in listed for operation in row.operations}
    beyond = [one for one in specification.operations(specification.document()) if one.id not in known]
    return [*listed, *(Row(f"beyond it {one.method.upper()} {one.path}", (one.id,)) for one in beyond)]


def is_there(row: Row) -> bool:
    """Does the document have the row's operations, and its key in each of them?"""
    operations = _operations()
    return all(name in operations and (row.key is None or _takes(operations[name], row.key)) for name in row.operations)


def covering(row: Row) -> tuple[str, ...]:
    """The tests that the list names, else the one that says most about the row."""
    if row.tests:
        return row.tests
    wanted, leaf = _wanted(row), _leaf(row)
    about = row.operations[0].partition(".")[0].removesuffix("s")
    best: tuple[tuple[int, bool, int], str] | None = None
    for rank, (name, functions) in enumerate(_tests()):
        if not says(functions, row):
            continue
        own = functions[0]
        said = (any(_calls(own, operation) for operation in wanted), leaf is None or leaf in own.keys)
        order = (2 - sum(said), about not in name.partition("::")[0], rank)
        if best is None or order < best[0]:
            best = (order, name)
    return (best[1],) if best else ()


def says(functions: list[Function], row: Row) -> bool:
    """Does a test, with the functions that it calls, call an operation of the row, and with its key?

    A key belongs to the calls of the function that writes it. Only where none of these takes it, it is meant for a call that
    is made elsewhere: the function hands it on, or gives it back.
    """
    leaf = _leaf(row)
    calling = [one for one in functions if any(_calls(one, operation) for operation in _wanted(row))]
    if not calling or leaf is None:
        return bool(calling)
    return any(leaf in one.keys and (one in calling or not _calls_with(one, leaf)) for one in functions)


def _wanted(row: Row) -> list[specification.Operation]:
    return [_operations()[name] for name in row.operations if name in _operations()]


def _leaf(row: Row) -> str | None:
    return re.split(r"[.\[]", row.key)[-1] if row.key else None


def _calls_with(function: Function, leaf: str) -> bool:
    """Does the function itself call an operation that takes this key?"""
    return any(leaf in _words(one.id) and _calls(function, one) for one in _operations().values())


@cache
def _words(name: str) -> set[str]:
    """All parameters of an operation and all keys of its body, however deep."""
    operation = _operations()[name]
    found = {parameter["name"] for parameter in _parameters(operation)}
    waiting = [content["schema"] for content in operation.definition.get("requestBody", {}).get("content", {}).values()]
    seen: set[int] = set()
    while waiting:
        schema = _resolved(waiting.pop())
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        found |= set(schema.get("properties", {}))
        waiting.extend(schema.get("properties", {}).values())
        waiting.extend(each for kind in ("allOf", "anyOf", "oneOf") for each in schema.get(kind, ()))
        waiting.extend(schema[kind] for kind in ("items", "additionalProperties") if isinstance(schema.get(kind), dict))
    return found


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    section = None
    for row in rows():
        number, _, text = row.name.partition(" ")
        if number != section:
            section = number
            title = "Beyond the specification" if section == "beyond" else f"Section {section}"
            lines.append(f"\n## {title}\n\n| Row | Operation | Test |\n|---|---|---|")
        tests = ", ".join(f"`{name}`" for name in covering(row)) if is_there(row) else NOT_THERE
        lines.append(f"| {text.removeprefix('it ')} | {', '.join(row.operations)} | {tests} |")
    return "\n".join(lines) + "\n"


@cache
def _operations() -> dict[str, specification.Operation]:
    return {one.id: one for one in specification.operations(_DOCUMENT)}


def _takes(operation: specification.Operation, key: str) -> bool:
    if key in {parameter["name"] for parameter in _parameters(operation)}:
        return True
    contents = operation.definition.get("requestBody", {}).get("content", {}).values()
    return any(_has(_resolved(content["schema"]), key.split(".")) for content in contents)


def _parameters(operation: specification.Operation) -> list[dict[str, Any]]:
    own = operation.definition.get("parameters", [])
    return [_resolved(parameter) for parameter in [*_DOCUMENT["paths"][operation.path].get("parameters", []), *own]]


def _has(schema: dict[str, Any], steps: list[str]) -> bool:
    name, rest = steps[0].removesuffix("[]"), steps[1:]
    child = _resolved(schema.get("properties", {}).get(name, {}))
    inner = _resolved(child.get("items", {})) if steps[0].endswith("[]") else child
    refused = str(child.get("description", "")).startswith("Not available yet")
    return bool(child) and not refused and (not rest or _has(inner, rest))


def _resolved(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        target: Any = _DOCUMENT
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    return node


def _calls(function: Function, operation: specification.Operation) -> bool:
    method = operation.method.upper()
    return any(called == method and _is_path_of(path, operation.path) for called, path in function.calls)


@cache
def _is_path_of(called: str, path: str) -> bool:
    """Is this the path of an operation, with something in its places? Another operation's own path is not."""
    if called != path and called in {one.path for one in _operations().values()}:
        return False
    return re.fullmatch(re.sub(r"\\{[^}]*}", "[^/]+", re.escape(path)), called) is not None


@cache
def _tests() -> list[tuple[str, list[Function]]]:
    """Every test in the order of folders and names: its name, and all that it says: itself first, then what it calls."""
    return [
        (f"{folder}/{path.name}::{name}", reached(function))
        for folder in FOLDERS
        for path in sorted((ROOT / folder).glob("test_*.py"))
        if path.name not in GENERATED
        for name, function in module(path).functions.items()
        if name.startswith("test_")
    ]


def missing() -> Iterator[str]:
    """The rows that the document does not have."""
    return (row.name for row in rows() if not is_there(row))


_DOCUMENT = specification.document()

if __name__ == "__main__":
    PAGE.write_text(page())
