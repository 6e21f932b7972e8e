"""The grammar of formulas: text to tree and back (docs/formulas.md). There are no loops, no attributes and no patterns; what a
formula may cost is bounded by its length and its depth.

    if([[Quantity]] >= 10, [[Price]] * 0.9, [[Price]])

A tree is made of tuples, which JSON turns into lists: ``("number", "0.9")``, ``("text", "x")``, ``("date", "2026-01-31")``,
``("boolean", True)``, ``("empty",)``, ``("field", "<uuid>")`` (a name, before names were looked up), and
``("call", "if", (...))``; operators are calls of their sign, ``-x`` of ``negative``.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from contracts.fields.formulas.numbers import PLACES
from contracts.fields.values import BadValue

Tree = tuple[Any, ...]

LONGEST_FORMULA = 5_000
"""Characters, with uuids in place of names."""
DEEPEST = 32
MOST_PARTS = 300

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<field>\[\[[^\[\]\n]{1,400}\]\]|\{\{\s*[0-9a-fA-F-]{36}\s*\}\})
    | (?P<number>\d+(?:\.\d+)?)
    | (?P<text>"(?:[^"]|"")*"|'(?:[^']|'')*'|[“”„«»][^“”„«»]*[“”«»])
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<sign><=|>=|<>|!=|==|&&|\|\||[-+*/%()<>=,!×÷−])
    )""",
    re.VERBOSE | re.ASCII,
)
_SAME = {"<>": "!=", "==": "=", "&&": "and", "||": "or", "×": "*", "÷": "/", "−": "-"}
_BINDS = {
    "or": 1, "and": 2, "=": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}  # fmt: skip
"""How strongly an operator binds; those of comparing do not follow each other."""
_NOT, _COMPARING, _NEGATIVE = 3, 4, 7
_WORDS = {"true": ("boolean", True), "false": ("boolean", False), "empty": ("empty",)}
_OPERATOR_WORDS = ("and", "or", "not")


@dataclass(frozen=True)
class Token:
    """``kind`` is that of the pattern, ``word`` in its one spelling, ``at`` where it begins, from 1."""

    kind: str
    word: str
    at: int


def parse(text: str) -> Tree:
    """Return the tree of a formula. Raises BadValue, whose reason ends a sentence that begins with the formula's place."""
    return _Parser(text).parsed()


@lru_cache(maxsize=1024)
def parsed_or_empty(text: str) -> Tree:
    """Return the tree of a formula that was checked when it was stored; ``("empty",)`` when it is none."""
    try:
        return parse(text)
    except BadValue:
        return ("empty",)


def checked_text(value: Any) -> str:
    """Return a formula as it is stored before its names are looked up. Raises BadValue."""
    text = plain_text(value)
    parse(text)
    return text


def plain_text(value: Any) -> str:
    """Return what may be a formula: the grammar is judged by whoever makes the template. Raises BadValue."""
    if not isinstance(value, str):
        raise BadValue("must be text")
    if len(value) > LONGEST_FORMULA:
        raise BadValue(f"must not be longer than {LONGEST_FORMULA:,} characters")
    return value.strip()


def references(tree: Tree) -> list[str]:
    """Return what the tree names, in order, as often as it does."""
    names, waiting = [], [tree]
    while waiting:
        part = waiting.pop()
        if part[0] == "field":
            names.append(part[1])
        elif part[0] == "call":
            waiting += reversed(part[2])
    return names


def renamed(text: str, name: Callable[[str], str | None]) -> str:
    """Return the text with other names in its references; where ``name`` gives None it names ``empty``. The rest stays as it
    is written."""
    parts, end = [], 0
    for match in _TOKEN.finditer(text):
        if match["field"] is None:
            continue
        other = name(name_in_brackets(match["field"]))
        parts += [text[end : match.start("field")], "empty" if other is None else f"[[{other}]]"]
        end = match.end()
    return "".join([*parts, text[end:]])


def name_in_brackets(reference: str) -> str:
    """Return the name in ``[[name]]``, or the uuid in ``{{uuid}}``."""
    return reference[2:-2].strip()


def written(tree: Tree) -> str:
    """Write a tree as text that parses to it."""
    match tree[0]:
        case "number":
            return str(tree[1])
        case "text":
            return '"' + str(tree[1]).replace('"', '""') + '"'
        case "date":
            return f'date("{tree[1]}")'
        case "boolean":
            return "true" if tree[1] else "false"
        case "empty":
            return "empty"
        case "field":
            return f"[[{tree[1]}]]"
    name, parts = tree[1], [written(part) for part in tree[2]]
    if name in _BINDS:
        return f"({parts[0]} {name} {parts[1]})"
    if name in ("not", "negative"):
        return f"({'not ' if name == 'not' else '-'}{parts[0]})"
    return f"{name}({', '.join(parts)})"


class _Parser:
    """A parser by precedence (Pratt)."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._place = 0
        self._depth = 0

    def parsed(self) -> Tree:
        if len(self._tokens) > MOST_PARTS:
            raise BadValue(f"must not have more than {MOST_PARTS} parts")
        tree = self._expression(0)
        if self._peek().kind != "end":
            raise self._unexpected(self._peek())
        return tree

    def _peek(self) -> Token:
        return self._tokens[self._place]

    def _next(self) -> Token:
        token = self._tokens[self._place]
        self._place += token.kind != "end"
        return token

    def _expression(self, weakest: int) -> Tree:
        self._depth += 1
        if self._depth > DEEPEST:
            raise BadValue(f"must not be nested deeper than {DEEPEST} levels")
        tree = self._operand()
        while (strength := self._strength(self._peek())) > weakest:
            operator = self._next().word
            tree = ("call", operator, (tree, self._expression(strength)))
            if strength == _COMPARING and self._strength(self._peek()) == _COMPARING:
                raise BadValue(f"compares twice at character {self._peek().at}: write `and` between two comparisons")
        self._depth -= 1
        return tree

    def _strength(self, token: Token) -> int:
        return _BINDS.get(token.word, 0) if token.kind in ("sign", "operator") else 0

    def _operand(self) -> Tree:
        token = self._next()
        match token.kind, token.word:
            case "number", _:
                return "number", token.word
            case "text", _:
                return "text", token.word
            case "field", _:
                return "field", token.word
            case "constant", _:
                return _WORDS[token.word]
            case "operator", "not":
                return "call", "not", (self._expression(_NOT),)
            case "sign", "-":
                return "call", "negative", (self._expression(_NEGATIVE),)
            case "sign", "(":
                tree = self._expression(0)
                self._expect(")")
                return tree
            case "word", _:
                return self._call(token)
        raise self._unexpected(token)

    def _call(self, token: Token) -> Tree:
        if self._peek().word != "(" or self._peek().kind != "sign":
            raise BadValue(f"has {token.word!r} at character {token.at}: names of fields are written [[{token.word}]]")
        self._next()
        name = token.word.lower()
        arguments: list[Tree] = []
        while not (self._peek().kind == "sign" and self._peek().word == ")"):
            if arguments:
                self._expect(",")
            arguments.append(self._expression(0))
        self._next()
        if name == "date" and len(arguments) == 1 and arguments[0][0] == "text":
            return "date", arguments[0][1]
        return "call", name, tuple(arguments)

    def _expect(self, sign: str) -> None:
        token = self._next()
        if (token.kind, token.word) != ("sign", sign):
            raise self._unexpected(token, sign)

    def _unexpected(self, token: Token, missing: str = "") -> BadValue:
        what = "ends too early" if token.kind == "end" else f"has an unexpected {token.word!r} at character {token.at}"
        return BadValue(f"{what}{f': {missing!r} is missing' if missing else ''}")


def _tokens(text: str) -> Iterator[Token]:
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            at = len(text) - len(text[place:].lstrip())
            raise BadValue(f"has an unexpected {text[at]!r} at character {at + 1}")
        kind = match.lastgroup or ""
        word, at = match[kind], match.start(kind) + 1
        place = match.end()
        if kind == "text":
            word = _unquoted(word)
        elif kind == "field":
            word = name_in_brackets(word)
        elif kind == "number" and any(len(part) > PLACES for part in word.split(".")):
            raise BadValue(f"has a number of more than {PLACES} digits at character {at}")
        elif kind == "word" and word.lower() in (*_OPERATOR_WORDS, *_WORDS):
            word = word.lower()
            kind = "operator" if word in _OPERATOR_WORDS else "constant"
        else:
            word = _SAME.get(word, word)
            kind = "operator" if word in _OPERATOR_WORDS else kind
            if word == "!":
                kind, word = "operator", "not"
        yield Token(kind, word, at)
    yield Token("end", "", end + 1)


def _unquoted(word: str) -> str:
    quote = word[0]
    return word[1:-1].replace(quote * 2, quote) if quote in "\"'" else word[1:-1]
