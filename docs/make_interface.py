"""Makes docs/interface.md: each row of the interface specification, the operations that serve it, the tests that prove it.

.venv/bin/python -m docs.make_interface

The rows and their tests are docs/interface_rows.yaml, the operations are those of contracts/openapi.yaml. Which test proves a
row nobody can find by reading: it is named by hand. What can be read (docs/tests_said.py) is checked: that each test is there,
and that for each operation of a row one of them sends the method to the path, or calls the published client's method for it,
itself or through a function that it calls, and writes the row's key for this call. Tests made for all operations alike do not
count.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from docs.tests_said import ROOT, Function, module, reached
from services.gateway.http import specification

ROWS = ROOT / "docs" / "interface_rows.yaml"
PAGE = ROOT / "docs" / "interface.md"
GENERATED = {"test_generated_calls.py", "test_role_matrix.py", "test_hostile_json.py", "test_openapi.py"}
HEAD = """# The interface specification, row by row

Made by `python -m docs.make_interface` from `docs/interface_rows.yaml`, which says how a row is added. A row's tests fail when
what it says is not so: when its key is ignored, or its default is another. Besides, every operation is called by
`tests/e2e/test_generated_calls.py` (calls made from the document), `tests/contract/test_role_matrix.py` (every role; own,
shared and foreign records) and `tests/contract/test_hostile_json.py`.
"""
TITLES = {"decisions": "Decisions on the interface", "beyond": "Beyond the specification"}


@dataclass(frozen=True)
class Row:
    """``key`` is a parameter or the path of a key in the body. Without ``operations`` a row is about none in particular."""

    name: str
    operations: tuple[str, ...] = ()
    key: str | None = None
    tests: tuple[str, ...] = ()


def rows() -> list[Row]:
    """The list, in its order."""
    listed = yaml.safe_load(ROWS.read_text())
    return [Row(one["row"], tuple(one.get("operation", ())), one.get("key"), tuple(one["tests"])) for one in listed]


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
    """What is wrong with a row, in words."""
    known = [name for name in row.operations if name in _operations()]
    yield from (f"the document has no operation {name}" for name in row.operations if name not in known)
    yield from (f"{name} takes no {row.key}" for name in known if row.key and not _takes(_operations()[name], row.key))
    if not row.tests:
        yield "no test"
    yield from (f"{test} is not there" for test in row.tests if _function(test) is None)
    found = [
        reached(function)
        for test in row.tests
        if test.partition("::")[0].rpartition("/")[2] not in GENERATED and (function := _function(test))
    ]
    for name in known:
        if not any(says(functions, _operations()[name], row.key) for functions in found):
            yield f"none of the tests calls {name}" + (f" with {row.key}" if row.key else "")


def without_row() -> set[str]:
    """Operations of the document that are in no row."""
    return set(_operations()) - {operation for row in rows() for operation in row.operations}


def operation(name: str) -> specification.Operation:
    """An operation of the document by its id."""
    return _operations()[name]


def says(functions: list[Function], wanted: specification.Operation, key: str | None) -> bool:
    """Does a test, with the functions that it calls, call the operation, and with this key?

    A key belongs to the calls of the function that writes it. Only where none of these takes it, it is meant for a call that
    is made elsewhere: the function hands it on, or gives it back.
    """
    leaf = re.split(r"[.\[]", key.removesuffix("[]"))[-1] if key else None
    calling = [one for one in functions if _calls(one, wanted)]
    if not calling or leaf is None:
        return bool(calling)
    return any(leaf in one.keys and (one in calling or not _calls_with(one, leaf)) for one in functions)


def _function(test: str) -> Function | None:
    """A test by its name, ``tests/e2e/test_x.py::test_y``."""
    path, _, name = test.partition("::")
    return module(ROOT / path).functions.get(name) if (ROOT / path).is_file() and name.startswith("test_") else None


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
    if name not in schema.get("properties", {}):
        return False
    child = _resolved(schema["properties"][name])
    inner = _resolved(child.get("items", {})) if steps[0].endswith("[]") else child
    refused = str(child.get("description", "")).startswith("Not available yet")
    return not refused and (not rest or _has(inner, rest))


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


_DOCUMENT = specification.document()

if __name__ == "__main__":
    PAGE.write_text(page())
