"""What the tests say, read from their source: which calls of the API each makes, with which keys, and through which functions.

A name means what it means in its own module: a function there, or what the module imports. A method is looked for in the
classes that the module has or imports, and in their bases, because the type of an object is not known. So what a test says
depends on nothing but what it reaches: other modules may use the same words for other things. The calls that a constant of
the module holds are made by whoever names it; its keys are handed on. An argument is the fixture of that name, when the module
has one.
"""

import ast
import inspect
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import docuseal

from services.gateway.http import specification

ROOT = Path(__file__).resolve().parent.parent
METHODS = {method.upper() for method in specification.METHODS}


@dataclass(eq=False)
class Function:
    """What one function says: calls as (method, path), keys, and the names of the functions and methods that it calls."""

    module: "Module"
    calls: set[tuple[str, str]] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Module:
    """A file of the tests: its functions, the methods and bases of its classes, and what it imports from other such files."""

    constants: dict[str, Function] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, tuple[dict[str, Function], list[str]]] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)


def reached(function: Function) -> list[Function]:
    """The function itself and all those that it calls, directly or not."""
    found: dict[Function, None] = {}
    waiting = [function]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found[current] = None
            for name in sorted(current.uses):
                waiting.extend(_meant(current.module, name))
    return list(found)


@cache
def module(path: Path) -> Module:
    """Reads a file once."""
    found = Module()
    for node in ast.walk(tree := ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests"):
            found.imported |= {one.asname or one.name: (str(node.module), one.name) for one in node.names}
    for node in tree.body:
        for target in _targets(node):
            found.constants[target] = _read(node, found)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.functions[node.name] = _read(node, found)
        if isinstance(node, ast.ClassDef):
            methods = {one.name: _read(one, found) for one in node.body if isinstance(one, ast.FunctionDef)}
            found.classes[node.name] = methods, [base.id for base in node.bases if isinstance(base, ast.Name)]
    return found


def _targets(node: ast.stmt) -> list[str]:
    """The names that an assignment gives."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _meant(where: Module, name: str) -> Iterator[Function]:
    """``name`` may be a function, a function of an imported module, or a method; ``.name`` only one of the latter two."""
    if not name.startswith("."):
        if name in where.constants:
            yield where.constants[name]
        elif name in where.functions:
            yield where.functions[name]
        elif name in where.imported and (there := _other(where, name)):
            yield from _meant(there, where.imported[name][1])
        return
    for one, (parent, last) in where.imported.items():
        if (path := _file(f"{parent}.{last}")) and name[1:] in module(path).functions:
            yield module(path).functions[name[1:]]
        yield from _methods(where, one, name[1:])
    for one in where.classes:
        yield from _methods(where, one, name[1:])


def _methods(where: Module, name: str, method: str) -> Iterator[Function]:
    """The method of the class that a module calls ``name``, or of a base of it."""
    if name in where.classes:
        methods, bases = where.classes[name]
        if method in methods:
            yield methods[method]
        else:
            for base in bases:
                yield from _methods(where, base, method)
    elif name in where.imported and (there := _other(where, name)):
        yield from _methods(there, where.imported[name][1], method)


def _other(where: Module, name: str) -> Module | None:
    path = _file(where.imported[name][0])
    return module(path) if path else None


@cache
def _file(dotted: str) -> Path | None:
    path = ROOT / f"{dotted.replace('.', '/')}.py"
    return path if path.is_file() else None


def _read(node: ast.stmt, where: Module) -> Function:
    said, named = Function(where), _named_texts(node)
    sent: set[ast.expr] = set()
    if isinstance(node, ast.FunctionDef):
        said.uses |= {argument.arg for argument in node.args.args}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in where.constants:
            said.calls |= where.constants[part.id].calls
            said.uses.add(part.id)
        if isinstance(part, ast.Dict):
            said.keys |= {
                key.value for key in part.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
        if isinstance(part, ast.Call):
            said.keys |= {keyword.arg for keyword in part.keywords if keyword.arg}
            said.uses |= {part.func.id} if isinstance(part.func, ast.Name) else set()
            said.uses |= {f".{part.func.attr}"} if isinstance(part.func, ast.Attribute) else set()
        elements = part.args if isinstance(part, ast.Call) else part.elts if isinstance(part, ast.Tuple) else []
        if elements and (called := _CLIENT.get(_text(elements[0], {}))):
            said.calls.add(called)
        for method, path in itertools.pairwise(elements):
            if isinstance(method, ast.Constant) and method.value in METHODS and (text := _text(path, named)):
                _say(said, str(method.value), text)
                sent.add(path)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and elements:
            method_name, text = part.func.attr.upper(), _text(elements[0], named)
            if method_name in METHODS and "/api/" in text:  # requests.post(f"{base_url}/api/...")
                _say(said, method_name, text)
                sent.add(elements[0])
        if (
            isinstance(part, ast.Constant | ast.JoinedStr)
            and part not in sent
            and (text := _text(part, named)).startswith("/")
        ):
            said.calls.add(("GET", text))  # a path alone is read
    return said


def _say(said: Function, method: str, text: str) -> None:
    called, _, query = re.sub(r"^.*?/api(?=/)", "", text).partition("?")
    said.calls.add((method, called))
    said.keys |= set(re.findall(r"(\w+)=", query))


def _named_texts(node: ast.stmt) -> dict[str, str]:
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


_CLIENT = _client_methods()
