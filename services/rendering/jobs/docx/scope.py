"""What the variables of a DOCX stand for: names looked up in the data, and the schema that a document asks for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MISSING = object()


@dataclass(frozen=True)
class Scope:
    """``names`` are those of the innermost loop; what they do not have is looked for further out."""

    names: Mapping[str, Any]
    outer: "Scope | None" = None

    def find(self, name: str) -> Any:
        """The value of ``name``, of ``a.b`` by steps, or MISSING."""
        if name in self.names:
            return self.names[name]
        first, *rest = name.split(".")
        if rest and first in self.names:
            return _step(self.names[first], rest)
        return MISSING if self.outer is None else self.outer.find(name)

    def inside(self, list_name: str, item: Any) -> "Scope":
        """For one element of a loop: it goes by the list's name, and by the singular of that."""
        return Scope(dict.fromkeys(loop_names(list_name), item), self)


def _step(value: Any, path: Sequence[str]) -> Any:
    for position, key in enumerate(path):
        if not isinstance(value, Mapping):
            return MISSING
        whole = ".".join(path[position:])
        if whole in value:
            return value[whole]
        if key not in value:
            return MISSING
        value = value[key]
    return value


def loop_names(list_name: str) -> list[str]:
    """``items`` -> items, item; ``order.parties`` -> order.parties, order.party, parties, party."""
    last = list_name.rpartition(".")[2]
    names = [list_name, last]
    for ending, instead in (
        ("children", "child"),
        ("people", "person"),
        ("ies", "y"),
        ("ses", "s"),
        ("xes", "x"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("s", ""),
    ):
        if last.lower().endswith(ending) and last.lower() != "s":
            names += [singular for name in (list_name, last) if (singular := name[: -len(ending)] + instead)]
    return [*dict.fromkeys([*names, "item"])]


def holds(value: Any) -> bool:
    """Return whether a condition is met: true or not empty. The word ``false`` is false, as command lines send it; zero is a
    value."""
    if value is MISSING or value is None or value is False:
        return False
    if isinstance(value, str):
        return value.strip().lower() not in ("", "false")
    return not (isinstance(value, list | Mapping) and not value)


@dataclass
class Wanted:
    """What a document asks for, as it is collected: a tree of names."""

    kind: str = "string"
    inner: dict[str, "Wanted"] = field(default_factory=dict)

    def add(self, path: Sequence[str], kind: str) -> "Wanted":
        """``kind``: string, boolean (only asked whether it holds) or array."""
        step = self
        for key in path:
            if step.kind != "array":
                step.kind = "object"
            inner = step.inner.setdefault(key, Wanted("boolean"))
            step = inner
        if step.kind == "boolean" or (step.kind == "string" and kind == "array"):
            step.kind = kind
        return step

    def schema(self) -> dict[str, Any]:
        """In the words of JSON Schema."""
        properties = {name: variable.schema() for name, variable in self.inner.items()}
        if self.kind == "array":
            items = {"type": "object", "properties": properties} if properties else {"type": "string"}
            return {"type": "array", "items": items}
        return {"type": "object", "properties": properties} if properties else {"type": self.kind}


@dataclass
class Loops:
    """The loops around a place in a document: which names are elements of which list."""

    open: list[tuple[list[str], Wanted]] = field(default_factory=list)

    def want(self, root: Wanted, name: str, kind: str) -> Wanted | None:
        """Note that ``name`` is used; what is an element itself is None."""
        for names, variable in reversed(self.open):
            for own_name in sorted(names, key=len, reverse=True):
                if name == own_name:
                    return None
                if name.startswith(f"{own_name}."):
                    return variable.add(name[len(own_name) + 1 :].split("."), kind)
        return root.add(name.split("."), kind)


def dotted(names: Iterator[str]) -> str:
    """For a sentence, at most ten of them."""
    distinct = list(dict.fromkeys(names))
    return ", ".join(distinct[:10]) + (f" and {len(distinct) - 10} more" if len(distinct) > 10 else "")
