"""What a published client's own type declarations promise of an answer, as JSON Schema.

Only what those declarations use: objects, arrays, unions, literals, maps and names of other types. Anything else is an error, so
that a new version is not half understood.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema

_PLAIN = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "null": {"type": "null"},
    "unknown": {},
}


class Declarations:
    """The types of some ``.d.ts`` files, the imported ones first, and the results of the methods.

    ``decided`` replaces text of theirs where we answer otherwise on purpose.
    """

    def __init__(self, *paths: Path, decided: Mapping[str, str]) -> None:
        self._types: dict[str, dict[str, Any]] = {}
        self.results: dict[str, str] = {}
        """The name of the type of each method's answer."""
        texts = [re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL) for path in paths]
        for theirs, ours in decided.items():
            assert any(theirs in text for text in texts), f"{theirs} is no longer in the declarations"
            texts = [text.replace(theirs, ours) for text in texts]
        for text in texts:
            self._read(text)

    def check(self, answer: Any, name: str) -> None:
        """AssertionError when ``answer`` is not of the type ``name``."""
        validator = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": self._types})
        wrong = [f"{error.json_path}: {error.message[:500]}" for error in validator.iter_errors(answer)]
        assert not wrong, f"not a {name}: {wrong}"

    def schema(self, name: str) -> dict[str, Any]:
        """The type ``name`` as JSON Schema."""
        return self._types[name]

    def keys(self, name: str) -> set[str]:
        """The keys of an object type."""
        return set(self._types[name]["properties"])

    def _read(self, text: str) -> None:
        for name, other in re.findall(r"\b(\w+) as (\w+)\b", text):
            self._types.setdefault(other, self._types[name])
        written = re.findall(r"^(?:export )?type (\w+) = (\{$.*?^\}|[^;\n]+);$", text, re.MULTILINE | re.DOTALL)
        self._types |= {name: _Reader(body).whole() for name, body in written}
        self.results |= dict(re.findall(r"^    (\w+)\([^)]*\): Promise<(\w+)>;", text, re.MULTILINE))


class _Reader:
    """Reads one type."""

    def __init__(self, text: str) -> None:
        self._tokens = re.findall(r'"[^"]*"|\w+|[^\s\w]', text)

    def whole(self) -> dict[str, Any]:
        schema = self._union()
        assert self._tokens == [], f"not understood: {self._tokens[:20]}"
        return schema

    def _union(self) -> dict[str, Any]:
        choices = [self._one()]
        while self._tokens[:1] == ["|"]:
            self._tokens.pop(0)
            choices.append(self._one())
        return choices[0] if len(choices) == 1 else {"anyOf": choices}

    def _one(self) -> dict[str, Any]:
        token = self._tokens.pop(0)
        if token == "{":
            return self._members()
        if token.startswith('"'):
            return {"const": token.strip('"')}
        if token == "Array":
            self._expect("<")
            items = self._union()
            self._expect(">")
            return {"type": "array", "items": items}
        assert token.isidentifier(), token
        return _PLAIN.get(token, {"$ref": f"#/$defs/{token}"})

    def _members(self) -> dict[str, Any]:
        properties, required = {}, []
        while self._tokens[0] != "}":
            if self._tokens[0] == "[":
                self._expect("[", "key", ":", "string", "]", ":")
                self._union()
                self._expect(";")
                continue
            name = self._tokens.pop(0)
            if self._tokens[0] == "?":
                self._tokens.pop(0)
            else:
                required.append(name)
            self._expect(":")
            properties[name] = self._union()
            self._expect(";")
        self._expect("}")
        return {"type": "object", "properties": properties, "required": required}

    def _expect(self, *tokens: str) -> None:
        for token in tokens:
            assert self._tokens.pop(0) == token
