"""What signatures a PDF came with, and whether they leave us room: ISO 32000-2, 12.7.5.5 and 12.8.

A file that is signed must not be rewritten: every byte that a signature covers has to stay. It can only be added to, and
some signatures forbid that: those that certify the document against changes, and those that lock its fields.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pikepdf

from services.rendering.jobs.pdf_values import items_of, whole_of
from services.rendering.jobs.refused import Refused

_MOST_FIELDS = 20_000
_DEEPEST_FIELD = 64


@dataclass(frozen=True)
class ExistingSignatures:
    """``forbids`` says in words what the signatures do not allow, None when values and a seal may be added.
    ``usage_rights``: only Adobe's licence for its free reader, which nobody signed the document with."""

    count: int
    forbids: str | None
    usage_rights: bool


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
    return ExistingSignatures(
        count=len(values),
        forbids=_forbids([field for field, _ in signed], values),
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


def _forbids(fields: list[pikepdf.Dictionary], values: list[pikepdf.Dictionary]) -> str | None:
    for value in values:
        for method, parameters in _references(value):
            if method == "/DocMDP" and whole_of(parameters.get("/P"), 2) == 1:
                return "its author certified it against all changes"
            if method == "/FieldMDP" and parameters.get("/Action") in ("/All", "/Exclude"):
                return "a signature locks its fields"
    for field in fields:
        lock = field.get("/Lock")
        if isinstance(lock, pikepdf.Dictionary):
            if whole_of(lock.get("/P"), 3) == 1:
                return "a signature forbids all changes"
            if lock.get("/Action") in ("/All", "/Exclude"):
                return "a signature locks its fields"
    return None


def _references(signature: pikepdf.Dictionary) -> Iterator[tuple[Any, pikepdf.Dictionary]]:
    """Transform method and parameters of a signature's references (table 256)."""
    for reference in items_of(signature.get("/Reference")):
        if isinstance(reference, pikepdf.Dictionary):
            parameters = reference.get("/TransformParams")
            yield (
                reference.get("/TransformMethod"),
                parameters if isinstance(parameters, pikepdf.Dictionary) else pikepdf.Dictionary(),
            )
