"""Find every sentence with which something is refused, in the code itself: ``python -m docs.wording.refusals`` prints them.

A refusal is written as text in one place and told in another: as an argument of an exception, as the ``reason`` of a detail,
as what a rule returns. This follows the syntax trees back from where refusals are told (``ServiceError``, ``Problems.add``,
every exception of ours, every ``{"field": ..., "reason": ...}``, every model with a ``reason`` or ``message``) to the literals
that get there: through parameters, variables, constants, tables, and what functions return. A literal that is told in no such
way is not found.
"""

import ast
import gc
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LEFT_OUT = ("/migrations/", "/worker/lock", "contracts/schemas_record")
_TEXTS = ("message", "reason", "text", "sentence", "problem", "refusal", "why")
"""What a parameter of an exception is called that is its sentence."""
_NO_EXCEPTIONS = frozenset({"NotYetComplete", "Refusal", "Closed", "Late", "TooLarge", "NoValue"})
"""Exceptions of ours whose argument is no sentence."""
_SERVICE_ERROR = "contracts.errors.ServiceError"
_NO_MODELS = frozenset({"SignatureText"})
_MODEL_TEXTS = ("reason", "message", "problem")
"""What a field of a model is called that is a sentence."""
_PROBLEMS = frozenset({"problems", "_problems", "faults"})
_DEEPEST = 12


@dataclass(frozen=True, order=True)
class Refusal:
    """A sentence as it is written in ``module``, with ``{name}`` for what is filled in. ``code`` is a key of ``errors.STATUS``,
    ``field`` the path in the request that it is about, both "" where that depends; ``told_by`` is what tells it."""

    text: str
    module: str
    code: str = ""
    field: str = ""
    told_by: str = ""
    line: int = 0


@dataclass(frozen=True)
class _Sink:
    """What happens with a parameter that is a sentence."""

    code: str = ""
    told_by: str = ""


@dataclass(frozen=True)
class _Path:
    """The way back from a refusal to its literals: what tells it, what it is about, where the way has come to."""

    sink: _Sink
    place: ast.expr | None
    module: "Module"
    within: "_Function | None"
    seen: frozenset[int] = frozenset()

    def to(self, module: "Module", within: "_Function | None" = None) -> "_Path":
        """Go on in another place."""
        return replace(self, module=module, within=within)


@dataclass
class _Function:
    name: str
    module: "Module"
    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: str | None = None
    sinks: dict[str, _Sink] = field(default_factory=dict)

    @cached_property
    def parameters(self) -> list[str]:
        every = self.node.args
        names = [argument.arg for argument in (*every.posonlyargs, *every.args)]
        return names[1:] if names[:1] in (["self"], ["cls"]) else names

    @cached_property
    def keywords(self) -> list[str]:
        return [argument.arg for argument in self.node.args.kwonlyargs]

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """Return what each local name may be: by assignment, by ``:=`` and by loops over tables."""
        values: dict[str, list[ast.expr]] = {}

        def note(target: ast.expr, value: ast.expr) -> None:
            if isinstance(target, ast.Name):
                values.setdefault(target.id, []).append(value)
            elif isinstance(target, ast.Subscript):
                note(target.value, value)
            elif isinstance(target, ast.Tuple):
                for at, part in enumerate(target.elts):
                    if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                        note(part, value.elts[at])
                    else:
                        note(part, ast.Subscript(value=value, slice=ast.Constant(value=at), ctx=ast.Load()))

        for node in ast.walk(self.node):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    note(target, node.value)
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                note(node.target, node.value)
            elif isinstance(node, ast.For | ast.comprehension):
                note(node.target, ast.Subscript(value=node.iter, slice=ast.Constant(value=None), ctx=ast.Load()))
        return values

    @cached_property
    def returned(self) -> list[ast.expr]:
        return [
            node.value
            for node in ast.walk(self.node)
            if isinstance(node, ast.Return | ast.Yield) and node.value is not None
        ]


@dataclass
class _Class:
    name: str
    module: "Module"
    node: ast.ClassDef

    @property
    def qualified(self) -> str:
        return f"{self.module.name}.{self.name}"

    @cached_property
    def fields(self) -> list[str]:
        return [
            statement.target.id
            for statement in self.node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        ]


@dataclass
class Module:
    """A module of the suite as it is written, with the names in it."""

    name: str
    path: str
    tree: ast.Module
    functions: dict[str, _Function] = field(default_factory=dict)
    classes: dict[str, _Class] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[ast.Call, _Function | None]] = field(default_factory=list)
    details: list[tuple[ast.Dict, _Function | None]] = field(default_factory=list)


class Code:
    """The modules of the suite and what reaches whom."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self.modules = {module.name: module for module in modules}
        self.methods: dict[str, list[_Function]] = {}
        for module in self.modules.values():
            for function in module.functions.values():
                self.methods.setdefault(function.name.rpartition(".")[2], []).append(function)
        self._exceptions: dict[str, bool] = {}
        self._function_calls: list[tuple[ast.Call, list[_Function], Module, _Function | None]] = []
        self._seen: set[int] = set()

    def refusals(self) -> list[Refusal]:
        """Return every sentence, in the order of modules and lines."""
        literals: set[Refusal] = set()
        waiting = list(self._beginnings())
        while waiting:
            for node, path in waiting:
                literals.update(self._literals(node, path))
            waiting = list(self._through_parameters())
        return sorted(_distinct(literals), key=lambda refusal: (refusal.module, refusal.line, refusal.text))

    def _beginnings(self) -> Iterator[tuple[ast.expr, _Path]]:
        for module in self.modules.values():
            for call, within in module.calls:
                for node, sink, place in self._sentences_in_call(call, module, within):
                    yield node, _Path(sink, place, module, within)
            for detail, within in module.details:
                reason, place = _of_detail(detail)
                yield reason, _Path(_Sink(told_by="details"), place, module, within)

    def _through_parameters(self) -> Iterator[tuple[ast.expr, _Path]]:
        """Yield what calls give for parameters that have turned out to be sentences, each once."""
        for call, functions, module, within in self._function_calls:
            for function in functions:
                for name, sink in function.sinks.items():
                    handed = _argument(call, function, name)
                    if handed is not None and id(handed) not in self._seen:
                        self._seen.add(id(handed))
                        place = _argument(call, function, "field") or _argument(call, function, "path")
                        yield handed, _Path(sink, place, module, within)

    # -- what is told --

    def _sentences_in_call(
        self, call: ast.Call, module: Module, within: _Function | None
    ) -> Iterator[tuple[ast.expr, _Sink, ast.expr | None]]:
        """Yield the arguments of a call that are sentences, each with how it is told and the expression of its field."""
        target = self._target(call.func, module, within)
        if isinstance(call.func, ast.Name) and call.func.id == "ValueError" and call.args:
            yield call.args[0], _Sink("", "ValueError"), None
            return
        if within is not None and within.owner and _is_parents_init(call):
            yield from self._sentences_for_parent(call, module.classes.get(within.owner))
            return
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add" and len(call.args) >= 2:
            receiver = call.func.value
            name = receiver.attr if isinstance(receiver, ast.Attribute) else getattr(receiver, "id", "")
            if name in _PROBLEMS:
                for argument in [
                    *call.args[1:],
                    *(keyword.value for keyword in call.keywords if keyword.arg == "message"),
                ]:
                    yield argument, _Sink("invalid", "Problems"), call.args[0]
            return
        if isinstance(target, _Class):
            constructor = target.module.functions.get(f"{target.name}.__init__")
            if constructor is not None and self._is_a(target, _SERVICE_ERROR):
                self._function_calls.append((call, [constructor], module, within))
            else:
                yield from self._sentences_of_class(call, target)
            return
        if functions := [target] if isinstance(target, _Function) else self._by_name(call):
            self._function_calls.append((call, functions, module, within))

    def _sentences_of_class(self, call: ast.Call, target: _Class) -> Iterator[tuple[ast.expr, _Sink, ast.expr | None]]:
        constructor = target.module.functions.get(f"{target.name}.__init__")
        if target.qualified == _SERVICE_ERROR or self._is_a(target, _SERVICE_ERROR):
            yield from _sentence_of_service_error(call)
        elif self._is_exception(target):
            if target.name in _NO_EXCEPTIONS:
                return
            if constructor is None and not target.fields and call.args:
                yield call.args[0], _Sink("", target.name), None
            for name in constructor.parameters if constructor else ():
                assert constructor is not None
                if name in _TEXTS and (handed := _argument(call, constructor, name)) is not None:
                    yield handed, _Sink("", target.name), _argument(call, constructor, "field")
        if target.fields and constructor is None and target.name not in _NO_MODELS:
            arguments = dict([*zip(target.fields, call.args, strict=False), *_by_keyword(call)])
            for name, argument in arguments.items():
                if name in (_TEXTS if self._is_exception(target) else _MODEL_TEXTS):
                    yield argument, _Sink("", target.name), arguments.get("field")

    def _sentences_for_parent(
        self, call: ast.Call, raised: _Class | None
    ) -> Iterator[tuple[ast.expr, _Sink, ast.expr | None]]:
        """Yield what the ``__init__`` of an exception hands on to ``ServiceError``'s."""
        if raised is not None and self._is_a(raised, _SERVICE_ERROR):
            yield from _sentence_of_service_error(call)

    def _by_name(self, call: ast.Call) -> list[_Function]:
        """Return the functions that a method call may mean, where their name is that of few."""
        if isinstance(call.func, ast.Attribute):
            candidates = self.methods.get(call.func.attr, [])
            return candidates if len(candidates) <= 3 else []
        return []

    # -- where it comes from --

    def _literals(self, node: ast.expr, path: "_Path") -> Iterator[Refusal]:
        """Yield the literals that ``node`` may be. A parameter that it may be is noted: calls are looked at afterwards."""
        if len(path.seen) > _DEEPEST or id(node) in path.seen:
            return
        path = replace(path, seen=path.seen | {id(node)})
        match node:
            case ast.Constant(value=str(text)):
                if " " in text.strip() or (text and text[0].isupper()):
                    yield self._refusal(text, node, path)
            case ast.JoinedStr():
                yield from self._formatted(node, path)
            case ast.Name(id=name):
                yield from self._follow_name(name, path)
            case ast.Attribute():
                if isinstance(target := self._target(node, path.module, path.within), tuple):
                    yield from self._literals(target[1], path.to(target[0]))
            case ast.Subscript():
                yield from self._of_table(node, path)
            case ast.Call():
                yield from self._returned(node, path)
            case _:
                for part in _alternatives(node):
                    yield from self._literals(part, path)

    def _formatted(self, node: ast.JoinedStr, path: "_Path") -> Iterator[Refusal]:
        if _says_something(node):
            yield self._refusal(self._template(node, path.module), node, path)
        if isinstance(last := node.values[-1], ast.FormattedValue):  # it ends the sentence that the rest begins
            yield from self._literals(last.value, path)

    def _follow_name(self, name: str, path: "_Path") -> Iterator[Refusal]:
        """Follow a name: what is assigned to it, the parameter that it is, the constant, the import."""
        module, within = path.module, path.within
        if within is not None:
            for value in within.assigned.get(name, []):
                yield from self._literals(value, path)
            if name in within.parameters or name in within.keywords:
                within.sinks.setdefault(name, path.sink)
                return
            if name in within.assigned:
                return
        if name in module.constants:
            yield from self._literals(module.constants[name], path.to(module))
        elif name in module.imports and isinstance(target := self._qualified(module.imports[name]), tuple):
            yield from self._literals(target[1], path.to(target[0]))

    def _of_table(self, node: ast.Subscript, path: "_Path") -> Iterator[Refusal]:
        """Yield what an entry of a table, or a part of what a function returns, may be. ``[None]`` is what a loop goes over."""
        value, owner = self._value(node.value, path.module, path.within)
        at = node.slice.value if isinstance(node.slice, ast.Constant) else None
        path = replace(path, module=owner)
        match value:
            case ast.Subscript():
                yield from self._of_column(value, at, path)
            case ast.IfExp():
                for branch in _alternatives(value):
                    yield from self._literals(_part(branch, node.slice), path)
            case ast.Call() if isinstance(at, int):
                for function in self._functions_called(value, path):
                    for result in function.returned:
                        if isinstance(result, ast.Tuple | ast.Call | ast.IfExp):
                            yield from self._literals(_part(result, node.slice), path.to(function.module, function))
            case ast.Tuple() | ast.List() if isinstance(at, int):
                yield from self._literals(value.elts[at], path) if at < len(value.elts) else ()
            case ast.Dict() | ast.Tuple() | ast.List() | ast.Call():
                yield from self._literals(value, path)

    def _of_column(self, rows: ast.Subscript, at: object, path: "_Path") -> Iterator[Refusal]:
        """Yield a column of the rows that a loop goes over."""
        table, owner = self._value(rows.value, path.module, path.within)
        for row in _alternatives(table) if isinstance(table, ast.Tuple | ast.List | ast.Set) else ():
            if isinstance(row, ast.Tuple) and isinstance(at, int) and at < len(row.elts):
                yield from self._literals(row.elts[at], replace(path, module=owner))
        if isinstance(table, ast.ListComp):
            yield from self._literals(_part(table.elt, ast.Constant(value=at)), replace(path, module=owner))  # type: ignore[arg-type]
        if isinstance(table, ast.Dict | ast.Name) and at == 1:
            yield from self._literals(table, replace(path, module=owner))

    def _value(self, node: ast.expr, module: Module, within: _Function | None) -> tuple[ast.expr, Module]:
        """Follow a name to the expression that it stands for."""
        if isinstance(node, ast.Name):
            if within is not None and len(values := within.assigned.get(node.id, [])) == 1:
                return values[0], module
            if node.id in module.constants:
                return module.constants[node.id], module
            if isinstance(target := self._qualified(module.imports.get(node.id, "")), tuple):
                return target[1], target[0]
        if isinstance(node, ast.Attribute) and isinstance(target := self._target(node, module, within), tuple):
            return target[1], target[0]
        if isinstance(node, ast.Call) and _method(node) in ("items", "values"):
            assert isinstance(node.func, ast.Attribute)
            return self._value(node.func.value, module, within)
        return node, module

    def _returned(self, call: ast.Call, path: "_Path") -> Iterator[Refusal]:
        """Yield what a call may return: of a function of ours, of a look-up, of a text that is changed a little."""
        if _method(call) in ("get", "pop", "format", "replace", "strip", "removeprefix", "removesuffix"):
            assert isinstance(call.func, ast.Attribute)
            value, owner = self._value(call.func.value, path.module, path.within)
            yield from self._literals(value, replace(path, module=owner))
            for other in call.args[1:]:
                yield from self._literals(other, path)
        elif isinstance(call.func, ast.Name) and call.func.id in ("with_more", "without_more", "str", "next"):
            for argument in call.args[:1]:
                yield from self._literals(argument, path)
        else:
            for function in self._functions_called(call, path):
                for value in function.returned:
                    yield from self._literals(value, path.to(function.module, function))

    def _functions_called(self, call: ast.Call, path: "_Path") -> list[_Function]:
        target = self._target(call.func, path.module, path.within)
        return [target] if isinstance(target, _Function) else [] if target else self._by_name(call)

    # -- names --

    def _target(
        self, node: ast.expr, module: Module, within: _Function | None
    ) -> "_Function | _Class | tuple[Module, ast.expr] | None":
        """Find what a name means: a function, a class, or a constant with its module."""
        if isinstance(node, ast.Name):
            return self._local(module, node.id) or self._qualified(module.imports.get(node.id, ""))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "self" and within is not None and within.owner:
                return module.functions.get(f"{within.owner}.{node.attr}")
            base = module.imports.get(node.value.id, "")
            return self._qualified(f"{base}.{node.attr}") if base else None
        return None

    def _local(self, module: Module, name: str) -> "_Function | _Class | tuple[Module, ast.expr] | None":
        if name in module.functions:
            return module.functions[name]
        if name in module.classes:
            return module.classes[name]
        return (module, module.constants[name]) if name in module.constants else None

    def _qualified(self, name: str) -> "_Function | _Class | tuple[Module, ast.expr] | None":
        owner, _, last = name.rpartition(".")
        module = self.modules.get(owner) or self.modules.get(f"{owner}.__init__")
        if module is None:
            return None
        return self._local(module, last) or (
            self._qualified(module.imports[last]) if module.imports.get(last, name) != name else None
        )

    def _is_a(self, subclass: _Class, base: str) -> bool:
        for parent in subclass.node.bases:
            target = self._target(parent, subclass.module, None)
            if isinstance(target, _Class) and (target.qualified == base or self._is_a(target, base)):
                return True
        return False

    def _is_exception(self, tested_class: _Class) -> bool:
        if tested_class.qualified not in self._exceptions:
            self._exceptions[tested_class.qualified] = False
            for parent in tested_class.node.bases:
                target = self._target(parent, tested_class.module, None)
                name = parent.id if isinstance(parent, ast.Name) else ""
                if name.endswith(("Exception", "Error")) or (isinstance(target, _Class) and self._is_exception(target)):
                    self._exceptions[tested_class.qualified] = True
        return self._exceptions[tested_class.qualified]

    # -- words --

    def _refusal(self, text: str, node: ast.expr, path: "_Path") -> Refusal:
        about = self._path(path.place, path.module) if path.place is not None else ""
        return Refusal(text, path.module.path, path.sink.code, about, path.sink.told_by, node.lineno)

    def _path(self, node: ast.expr, module: Module) -> str:
        """Write down a path in the request; "" where it is not written in the code."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if not isinstance(node, ast.JoinedStr):
            return ""
        text = self._template(node, module)
        text = re.sub(r"\[\{\w*\}\]", "[]", text)
        return re.sub(r"\{(path|place|basis|begun)\}\.?", "", text)

    def _template(self, node: ast.JoinedStr, module: Module) -> str:
        pieces = []
        for piece in node.values:
            if isinstance(piece, ast.Constant):
                pieces.append(str(piece.value))
            elif isinstance(piece, ast.FormattedValue):
                pieces.append(self._placeholder(piece, module))
        return "".join(pieces)

    def _placeholder(self, piece: ast.FormattedValue, module: Module) -> str:
        number = self._number(piece.value, module)
        if number is not None:
            form = _text(piece.format_spec.values[0]) if isinstance(piece.format_spec, ast.JoinedStr) else ""
            return format(number, form if form in (",", "g", "d", ",d", ".4g") else "") if form else f"{number:g}"
        names = [
            part.attr if isinstance(part, ast.Attribute) else part.id
            for part in ast.walk(piece.value)
            if isinstance(part, ast.Attribute | ast.Name)
        ]
        names = [
            name for name in names if name not in ("join", "sorted", "str", "repr", "len", "name_of", "lower", "title")
        ]
        quoted = "'" if piece.conversion == ord("r") else ""
        return f"{quoted}{{{(names or ['value'])[0].strip('_').lower()}}}{quoted}"

    def _number(self, node: ast.expr, module: Module) -> float | int | None:
        """Compute a limit that is written in the code."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return node.value
        if isinstance(node, ast.BinOp):
            left, right = self._number(node.left, module), self._number(node.right, module)
            if left is None or right is None:
                return None
            match node.op:
                case ast.Add():
                    return left + right
                case ast.Sub():
                    return left - right
                case ast.Mult():
                    return left * right
                case ast.Pow():
                    return float(left**right)
                case ast.FloorDiv():
                    return left // right
                case ast.Div():
                    return left / right
            return None
        if isinstance(node, ast.Name | ast.Attribute):
            target = self._target(node, module, None)
            if isinstance(target, tuple):
                return self._number(target[1], target[0])
        return None


@cache
def all_refusals() -> tuple[Refusal, ...]:
    """Return every sentence of ``contracts`` and ``services``; they are read once in a process."""
    gc.disable()  # trees of 700 modules hold no garbage, and looking through them takes as long as making them
    try:
        return tuple(code().refusals())
    finally:
        gc.enable()


def code() -> Code:
    """Read all modules of ``contracts`` and ``services``."""
    paths = [path for room in ("contracts", "services") for path in sorted((ROOT / room).rglob("*.py"))]
    read_paths = [path for path in paths if not any(part in path.as_posix() for part in _LEFT_OUT)]
    return Code(read(path.relative_to(ROOT).as_posix(), path.read_text()) for path in read_paths)


def read(path: str, text: str) -> Module:
    """Note the functions, classes, constants and imports of a module, and what it calls."""
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    module = Module(name, path, ast.parse(text))
    for node in module.tree.body:
        if isinstance(node, ast.Assign):
            module.constants |= {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            module.constants[node.target.id] = node.value
    _collect(module, module.tree, None, None)
    return module


def _collect(module: Module, node: ast.AST, within: _Function | None, owner: str | None) -> None:
    """Note functions, classes, calls and details, each with the function that it is in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{owner}.{child.name}" if owner else child.name
            function = _Function(name, module, child, owner)
            module.functions.setdefault(name, function)
            _collect(module, child, function, owner)
        elif isinstance(child, ast.ClassDef):
            module.classes.setdefault(child.name, _Class(child.name, module, child))
            _collect(module, child, within, child.name)
        else:
            if isinstance(child, ast.Call):
                module.calls.append((child, within))
            elif isinstance(child, ast.Dict) and {"field", "reason"} <= {_text(key) for key in child.keys}:
                module.details.append((child, within))
            elif isinstance(child, ast.ImportFrom) and child.module and not child.level:
                module.imports |= {alias.asname or alias.name: f"{child.module}.{alias.name}" for alias in child.names}
            elif isinstance(child, ast.Import):
                bound_aliases = [alias for alias in child.names if alias.asname or "." not in alias.name]
                module.imports |= {alias.asname or alias.name: alias.name for alias in bound_aliases}
            _collect(module, child, within, owner)


def _sentence_of_service_error(call: ast.Call) -> Iterator[tuple[ast.expr, _Sink, ast.expr | None]]:
    if len(call.args) >= 2:
        yield call.args[1], _Sink(_text(call.args[0]), "ServiceError"), None


def _of_detail(detail: ast.Dict) -> tuple[ast.expr, ast.expr | None]:
    entries = {_text(key): value for key, value in zip(detail.keys, detail.values, strict=True) if key is not None}
    return entries["reason"], entries.get("field")


def _argument(call: ast.Call, function: _Function, name: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if name in function.parameters and (at := function.parameters.index(name)) < len(call.args):
        argument = call.args[at]
        return None if any(isinstance(earlier, ast.Starred) for earlier in call.args[: at + 1]) else argument
    return None


def _by_keyword(call: ast.Call) -> list[tuple[str, ast.expr]]:
    return [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _says_something(node: ast.JoinedStr) -> bool:
    """Return whether there is a word in it besides what is filled in."""
    words = [re.sub(r"\{\w+\}", "", str(piece.value)) for piece in node.values if isinstance(piece, ast.Constant)]
    if isinstance(node.values[-1], ast.FormattedValue) and re.fullmatch(r"[\w.\[\]-]* ?", "".join(words)):
        return False  # the name of a field, and what is wrong with it
    return any(re.search(r"[A-Za-z]{2}", piece) and not re.fullmatch(r"[\w.\[\]]*", piece) for piece in words)


def _alternatives(node: ast.expr) -> Sequence[ast.expr]:
    """Return what an expression of several may be, such as both branches of a condition."""
    match node:
        case ast.IfExp():
            return (node.body, node.orelse)
        case ast.BoolOp() | ast.Dict():
            return node.values
        case ast.BinOp(op=ast.Add()):
            return (node.left,)
        case ast.NamedExpr():
            return (node.value,)
        case ast.Tuple() | ast.List() | ast.Set():
            return node.elts
    return ()


def _part(node: ast.expr, which: ast.expr) -> ast.Subscript:
    return ast.Subscript(value=node, slice=which, ctx=ast.Load())


def _is_parents_init(call: ast.Call) -> bool:
    """Tell whether a call is ``super().__init__(...)``."""
    return _method(call) == "__init__" and ast.unparse(call.func) == "super().__init__"


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _distinct(refusals: set[Refusal]) -> list[Refusal]:
    """Leave out those of which the same literal is known with more: its code, its field."""
    best: dict[tuple[str, str, int], Refusal] = {}
    for refusal in sorted(refusals, key=lambda refusal: (bool(refusal.code), bool(refusal.field), refusal)):
        best[refusal.module, refusal.text, refusal.line] = refusal
    return list(best.values())


if __name__ == "__main__":
    for refusal in all_refusals():
        print(f"{refusal.module}:{refusal.line}", refusal.code, refusal.told_by, refusal.field, refusal.text, sep="\t")  # noqa: T201
