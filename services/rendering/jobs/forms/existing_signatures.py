"""What signatures a PDF came with, and whether they leave us room: ISO 32000-2, 12.7.5.5 and 12.8.

A file that is signed must not be rewritten: every byte that a signature covers has to stay. It can only be added to, and
some signatures forbid that: those that certify the document against changes, and those that lock its fields. Others leave
its form alone to be filled in.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pikepdf

from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pdf.values import items_of, text_of, whole_of

_MOST_FIELDS = 20_000
_DEEPEST_FIELD = 64


@dataclass(frozen=True)
class ExistingSignatures:
    """``forbids`` says in words what the signatures do not allow, None when values and a seal may be added.
    ``form_only``: values may stand in the file's own form fields and nowhere else, but not in those that are ``locked`` by
    name, with what is below them. ``usage_rights``: only Adobe's licence for its free reader, which nobody signed the document
    with."""

    count: int
    forbids: str | None
    form_only: bool
    locked: frozenset[str]
    usage_rights: bool

    def locks(self, name: str) -> bool:
        return any(name == lock or name.startswith(f"{lock}.") for lock in self.locked)


def existing_signatures(pdf: pikepdf.Pdf) -> ExistingSignatures:
    """Raises Refused for a form whose fields contain themselves."""
    signed = [
        (field, value)
        for field in form_field_nodes(pdf)
        if isinstance(value := field.get("/V"), pikepdf.Dictionary) and ("/ByteRange" in value or "/Contents" in value)
    ]
    permissions = pdf.Root.get("/Perms")
    permissions = permissions if isinstance(permissions, pikepdf.Dictionary) else pikepdf.Dictionary()
    certified = permissions.get("/DocMDP")
    values = [value for _, value in signed]
    if isinstance(certified, pikepdf.Dictionary) and not any(certified.objgen == value.objgen for value in values):
        values.append(certified)
    rules = list(_rules([field for field, _ in signed], values))
    return ExistingSignatures(
        count=len(values),
        forbids=next((reason for rule in rules if (reason := rule.forbids)), None),
        form_only=any(rule.level is not None for rule in rules),
        locked=frozenset(name for rule in rules for name in rule.names),
        usage_rights=any(key in permissions for key in ("/UR", "/UR3")),
    )


def form_field_nodes(pdf: pikepdf.Pdf) -> Iterator[pikepdf.Dictionary]:
    """All nodes of the form's field tree, parents before children. Raises Refused when the tree is none."""
    form = pdf.Root.get("/AcroForm")
    fields = form.get("/Fields") if isinstance(form, pikepdf.Dictionary) else None
    seen: set[tuple[int, int]] = set()
    waiting: list[tuple[Any, tuple[Any, ...]]] = [(node, ()) for node in reversed(items_of(fields))]
    for _ in range(_MOST_FIELDS):
        if not waiting:
            return
        node, above = waiting.pop()
        if not isinstance(node, pikepdf.Dictionary):
            continue
        if node.objgen != (0, 0):
            if node.objgen in above:
                raise Refused("The PDF's form is damaged: a field contains itself.")
            if node.objgen in seen:
                continue
            seen.add(node.objgen)
        yield node
        if len(above) >= _DEEPEST_FIELD:
            raise Refused("The PDF's form is damaged: its fields are nested too deep.")
        waiting += [(kid, (*above, node.objgen)) for kid in reversed(items_of(node.get("/Kids")))]
    raise Refused(f"The PDF's form has more than {_MOST_FIELDS:,} fields.")


@dataclass(frozen=True)
class _Rule:
    """What one signature says about later changes: ``level`` as in DocMDP (1 nothing, 2 the form, 3 also annotations), or an
    ``action`` of FieldMDP on the fields called ``names``."""

    level: int | None = None
    action: Any = None
    names: tuple[str, ...] = ()

    @property
    def forbids(self) -> str | None:
        if self.level == 1:
            return "its author allows no changes at all, and a signature is one"
        if self.action in ("/All", "/Exclude"):
            return "a signature locks its fields"
        return None


def _rules(fields: list[pikepdf.Dictionary], values: list[pikepdf.Dictionary]) -> Iterator[_Rule]:
    for value in values:
        for method, parameters in _references(value):
            if method == "/DocMDP":
                yield _Rule(level=whole_of(parameters.get("/P"), 2))
            elif method == "/FieldMDP":
                yield _field_rule(parameters)
    for field in fields:
        lock = field.get("/Lock")
        if isinstance(lock, pikepdf.Dictionary):
            yield _field_rule(lock)
            if "/P" in lock:
                yield _Rule(level=whole_of(lock.get("/P"), 3))


def _field_rule(parameters: pikepdf.Dictionary) -> _Rule:
    names = tuple(text_of(name) for name in items_of(parameters.get("/Fields")) if isinstance(name, pikepdf.String))
    action = parameters.get("/Action")
    return _Rule(action=action, names=names if action == "/Include" else ())


def _references(signature: pikepdf.Dictionary) -> Iterator[tuple[Any, pikepdf.Dictionary]]:
    """Transform method and parameters of a signature's references (table 256)."""
    for reference in items_of(signature.get("/Reference")):
        if isinstance(reference, pikepdf.Dictionary):
            parameters = reference.get("/TransformParams")
            yield (
                reference.get("/TransformMethod"),
                parameters if isinstance(parameters, pikepdf.Dictionary) else pikepdf.Dictionary(),
            )
