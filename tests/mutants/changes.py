"""Small changes to a function, each of which breaks it: what a test that looks at its result should notice.

Annotations, docstrings, log lines and texts are left alone: no rule is in them.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

_OPPOSITE: dict[type[ast.AST], type[Any]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
}
_Functions = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Change:
    """``function`` is the qualified name within the module, ``before`` and ``after`` are source text."""

    module: str
    path: str
    function: str
    line: int
    before: str
    after: str
    _statement: ast.stmt
    """The function, or the class that it is a method of."""
    _old: ast.AST
    _new: ast.AST

    @property
    def code(self) -> CodeType:
        """The function's code with this change; with what is defined within it."""
        plain, before = self._compiled(_Swap), self._compiled(None)
        # A function cannot be given code that has other variables of the functions around it.
        return plain if _free(plain) == _free(before) else self._compiled(_Keep)

    def _compiled(self, swap: type["_Swap"] | None) -> CodeType:
        memo: dict[int, Any] = {}
        statement = copy.deepcopy(self._statement, memo)
        if swap is not None:
            statement = swap(memo[id(self._old)], copy.deepcopy(self._new)).visit(statement)
        alone = ast.fix_missing_locations(ast.Module(body=[statement], type_ignores=[]))
        return _find(compile(alone, self.path, "exec"), self.function)

    @property
    def name(self) -> str:
        """The same wherever the function stands in its file."""
        return _named(self)


def _free(code: CodeType) -> dict[str, tuple[str, ...]]:
    """The variables of functions around, of a function and those within it."""
    found = {code.co_qualname: code.co_freevars}
    for one in code.co_consts:
        if isinstance(one, CodeType):
            found |= _free(one)
    return found


@dataclass(frozen=True)
class RowChange:
    """A change to a row of the table ``function``, as ``Change``. Executed, ``code`` makes the table and what the module derives
    of it."""

    module: str
    path: str
    function: str
    line: int
    before: str
    after: str
    code: CodeType

    @property
    def name(self) -> str:
        """The same wherever the row stands in its file."""
        return _named(self)


def _named(change: Change | RowChange) -> str:
    return f"{change.module}:{change.function}: {change.before} -> {change.after}"


def row_changes(module: str, source: str, path: str) -> Iterator[RowChange]:
    """Every change to the tables of a module: dictionaries whose values are calls with what a row has as keywords."""
    tree = ast.parse(source)
    for number, table in enumerate(tree.body):
        if not isinstance(table, ast.AnnAssign) or not isinstance(table.value, ast.Dict):
            continue
        called = ast.unparse(table.target)
        derived = [
            later
            for later in tree.body[number + 1 :]
            if isinstance(later, ast.Assign | ast.AnnAssign)
            and any(isinstance(node, ast.Name) and node.id == called for node in ast.walk(later))
        ]
        for key, row in zip(table.value.keys, table.value.values, strict=True):
            if key is None or not isinstance(row, ast.Call):
                continue
            for keyword in row.keywords:
                for less in _less(keyword.value):
                    new = ast.keyword(arg=keyword.arg, value=less)
                    memo: dict[int, Any] = {}
                    copied = copy.deepcopy(table, memo)
                    swapped = _Swap(memo[id(keyword)], new).visit(copied)
                    made = ast.fix_missing_locations(ast.Module(body=[swapped, *derived], type_ignores=[]))
                    before = f"{ast.unparse(key)}: {ast.unparse(keyword)}"
                    code = compile(made, path, "exec")
                    yield RowChange(module, path, called, keyword.lineno, before, ast.unparse(new), code)


def _less(value: ast.expr) -> Iterator[ast.expr]:
    """What a row may have instead: nothing, or all but one."""
    match value:
        case ast.Constant(value=str()):
            yield ast.Constant("")
        case ast.Tuple(elts=several):
            for number in range(len(several)):
                yield ast.Tuple(elts=[*several[:number], *several[number + 1 :]], ctx=ast.Load())
        case ast.Name():
            yield ast.Tuple(elts=[], ctx=ast.Load())


def changes(module: str, source: str, path: str) -> Iterator[Change]:
    """Every change to every function and method of a module."""
    tree = ast.parse(source)
    for qualified, function, statement in _functions(tree):
        left_alone = _left_alone(function)
        for old in ast.walk(function):
            if id(old) in left_alone:
                continue
            for new in _instead_of(old):
                line = getattr(old, "lineno", function.lineno)
                yield Change(module, path, qualified, line, _text(old), _text(new), statement, old, new)


def _functions(tree: ast.Module) -> Iterator[tuple[str, _Functions, ast.stmt]]:
    for node in tree.body:
        if isinstance(node, _Functions):
            yield node.name, node, node
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, _Functions):
                    yield f"{node.name}.{method.name}", method, node


def _left_alone(function: _Functions) -> set[int]:
    """What is evaluated before the function is called, or shows in no result; and all that is in it."""
    outside: list[ast.AST | None] = [*function.decorator_list, function.args, function.returns]
    for node in ast.walk(function):
        if isinstance(node, ast.AnnAssign):
            outside.append(node.annotation)
        elif (
            isinstance(node, ast.Expr) and (isinstance(node.value, ast.Constant) or _is_log_line(node.value))
        ) or isinstance(node, ast.JoinedStr):
            outside.append(node)
    return {id(node) for root in outside if root is not None for node in ast.walk(root)}


def _is_log_line(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "log"


def _instead_of(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(ops=operators):
            for number, operator in enumerate(operators):
                if (opposite := _OPPOSITE.get(type(operator))) is not None:
                    compared = copy.copy(node)
                    compared.ops = [*operators[:number], opposite(), *operators[number + 1 :]]
                    yield compared
        case ast.BoolOp(op=operator, values=values):
            yield ast.BoolOp(op=_OPPOSITE[type(operator)](), values=values)
            for number in range(len(values)):
                rest = [*values[:number], *values[number + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(op=operator, values=rest)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(op=operator) if type(operator) in _OPPOSITE:
            yield ast.BinOp(left=node.left, op=_OPPOSITE[type(operator)](), right=node.right)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
        case ast.If(test=test) | ast.IfExp(test=test) if isinstance(test, ast.Name | ast.Attribute | ast.Call):
            branched = copy.copy(node)
            branched.test = ast.UnaryOp(op=ast.Not(), operand=test)
            yield branched
        case ast.comprehension(ifs=[_, *_] as conditions):
            for number in range(len(conditions)):
                kept = copy.copy(node)
                kept.ifs = [*conditions[:number], *conditions[number + 1 :]]
                yield kept
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return(value=ast.Constant(None))
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield ast.Pass()


class _Swap(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> Any:
        return ast.copy_location(self._new, node) if node is self._old else self.generic_visit(node)


class _Keep(_Swap):
    """As ``_Swap``, and what was there stays where it is never reached."""

    def visit(self, node: ast.AST) -> Any:
        if node is not self._old:
            return self.generic_visit(node)
        never, new = ast.Constant(False), ast.copy_location(self._new, node)
        if isinstance(node, ast.stmt):
            return [ast.copy_location(ast.If(test=never, body=[node], orelse=[]), node), new]
        if isinstance(node, ast.expr) and isinstance(new, ast.expr):
            return ast.copy_location(ast.IfExp(test=never, body=node, orelse=new), node)
        return new


def _find(code: CodeType, qualified: str) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_qualname == qualified:
                return constant
            if qualified.startswith(f"{constant.co_qualname}."):
                return _find(constant, qualified)
    raise LookupError(qualified)


def _text(node: ast.AST) -> str:
    """The first line of the node's source, as Python would write it."""
    if isinstance(node, ast.comprehension):
        return " ".join(["for", ast.unparse(node.target), "in", "…", *(f"if {ast.unparse(one)}" for one in node.ifs)])
    return ast.unparse(node).partition("\n")[0]
