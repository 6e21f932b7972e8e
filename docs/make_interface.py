"""Makes docs/interface.md: each row of the interface specification, the operation that serves it, a test that covers it.

.venv/bin/python -m docs.make_interface

The rows are docs/interface_rows.yaml, the operations are those of contracts/openapi.yaml, and the tests are found in their
source: one covers an operation when it (or a function of the tests that it calls) sends the method to the path, or calls the
published client's method for it, and a key when it also writes that key. Tests made for all operations alike do not count.
"""

import ast
import inspect
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import docuseal
import yaml

from services.gateway import specification

ROOT = Path(__file__).resolve().parent.parent
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
METHODS = {method.upper() for method in specification.METHODS}


@dataclass(frozen=True)
class Row:
    """``key`` is a parameter or the path of a key in the body; ``tests`` are those that the list names."""

    name: str
    operations: tuple[str, ...]
    key: str | None = None
    tests: tuple[str, ...] = ()


@dataclass
class Function:
    """What a function of the tests says: calls as (method, path), keys, and which functions it calls."""

    calls: set[tuple[str, str]] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)


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
    wanted = [_operations()[name] for name in row.operations if name in _operations()]
    leaf = re.split(r"[.\[]", row.key)[-1] if row.key else None
    about = row.operations[0].partition(".")[0].removesuffix("s")
    best: tuple[tuple[int, bool, int], str] | None = None
    for rank, (name, own, whole) in enumerate(_tests()):
        if not any(_calls(whole, operation) for operation in wanted) or (leaf and leaf not in whole.keys):
            continue
        said = (any(_calls(own, operation) for operation in wanted), leaf is None or leaf in own.keys)
        order = (2 - sum(said), about not in name.partition("::")[0], rank)
        if best is None or order < best[0]:
            best = (order, name)
    return (best[1],) if best else ()


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
    parameters = [
        *_DOCUMENT["paths"][operation.path].get("parameters", []),
        *operation.definition.get("parameters", []),
    ]
    if key in {_resolved(parameter)["name"] for parameter in parameters}:
        return True
    contents = operation.definition.get("requestBody", {}).get("content", {}).values()
    return any(_has(_resolved(content["schema"]), key.split(".")) for content in contents)


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


def _tests() -> list[tuple[str, Function, Function]]:
    """Name, what it says itself, and with all that it calls: of every test, in the order of folders and names."""
    if not _FOUND:
        shared = _functions(path for path in sorted((ROOT / "tests/support").glob("*.py")))
        for folder in FOLDERS:
            for path in sorted((ROOT / folder).glob("test_*.py")):
                if path.name not in GENERATED:
                    own = _functions([path])
                    known = {**shared, **own}
                    _FOUND.extend(
                        (f"{folder}/{path.name}::{name}", own[name], _whole(name, known))
                        for name in own
                        if name.startswith("test_")
                    )
    return _FOUND


def _whole(name: str, known: dict[str, Function]) -> Function:
    """A function with all those that it calls, directly or not."""
    whole, waiting, seen = Function(), [name], set()
    while waiting:
        current = waiting.pop()
        if current in seen or current not in known:
            continue
        seen.add(current)
        whole.calls |= known[current].calls
        whole.keys |= known[current].keys
        waiting.extend(known[current].uses)
    return whole


def _functions(paths: Any) -> dict[str, Function]:
    found: dict[str, Function] = {}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                found[node.name] = _read(node)
    return found


def _read(node: ast.FunctionDef) -> Function:
    said, named = Function(), _named_texts(node)
    for part in ast.walk(node):
        if isinstance(part, ast.Dict):
            said.keys |= {
                key.value for key in part.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
        if isinstance(part, ast.Call):
            said.keys |= {keyword.arg for keyword in part.keywords if keyword.arg}
            said.uses |= {part.func.id} if isinstance(part.func, ast.Name) else set()
            said.uses |= {part.func.attr} if isinstance(part.func, ast.Attribute) else set()
        elements = part.args if isinstance(part, ast.Call) else part.elts if isinstance(part, ast.Tuple) else []
        if elements and (called := _CLIENT.get(_text(elements[0], {}))):
            said.calls.add(called)
        for method, path in itertools.pairwise(elements):
            if isinstance(method, ast.Constant) and method.value in METHODS and (text := _text(path, named)):
                called, _, query = re.sub(r"^.*?/api(?=/)", "", text).partition("?")
                said.calls.add((method.value, called))
                said.keys |= set(re.findall(r"(\w+)=", query))
        if isinstance(part, ast.Constant | ast.JoinedStr) and (text := _text(part, named)).startswith("/"):
            said.calls.add(("GET", text))  # a path alone is read
    return said


def _named_texts(node: ast.FunctionDef) -> dict[str, str]:
    """Texts that a function gives a name: ``path = f"/templates/{id}"``."""
    named: dict[str, str] = {}
    for part in ast.walk(node):
        if (
            isinstance(part, ast.Assign)
            and isinstance(part.targets[0], ast.Name)
            and (text := _text(part.value, named))
        ):
            named[part.targets[0].id] = text
    return named


def _client_methods() -> dict[str, tuple[str, str]]:
    """What each method of the published client sends."""
    source = inspect.getsource(type(docuseal.docuseal))
    found = re.findall(r'def (\w+)\(.*?self\.http\.(\w+)\(f?"([^"]+)"', source, re.DOTALL)
    return {name: (method.upper(), re.sub(r"\{[^}]*\}", "*", path)) for name, method, path in found}


def _text(node: ast.expr, named: dict[str, str]) -> str:
    """A path as it is written; what is put in stands as one character, unless it is a text that has a name."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return named.get(node.id, "")
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, named) or "*"
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, named) for part in node.values)
    return ""


def missing() -> Iterator[str]:
    """The rows that the document does not have."""
    return (row.name for row in rows() if not is_there(row))


_DOCUMENT = specification.document()
_CLIENT = _client_methods()
_FOUND: list[tuple[str, Function, Function]] = []

if __name__ == "__main__":
    PAGE.write_text(page())
