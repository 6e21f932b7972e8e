"""Content streams without the glyphs that were marked as removed; everything else draws what it drew, where it drew it."""

import copy
import re
from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pikepdf

from services.rendering.jobs.content.model import Content, Glyphs
from services.rendering.jobs.pdf.values import text_of

_TAG = re.compile(r"\{\{[^{}]*\}\}")
_FORM_KEYS = (
    "/Type", "/Subtype", "/FormType", "/BBox", "/Matrix", "/Group", "/StructParent", "/StructParents", "/OC",
)  # fmt: skip
_WRITTEN_BRACES = (b"{{", b"\0{\0{", b"7b7b", b"007b007b", b"/ObjStm")
"""One of them is in every file that has a tag in a string: as it is, in UTF-16, in hexadecimal digits, or packed."""

_SPOKEN = ("/ActualText", "/Alt", "/E")


def rewritten(pdf: pikepdf.Pdf, content: Content) -> tuple[bytes, pikepdf.Dictionary]:
    """The stream without the removed glyphs. Form XObjects that change are copied, because other pages may draw them."""
    instructions: list[Any] = []
    resources = content.resources
    replaced: set[Any] = set()
    silent = {
        index for index, spoken in content.spoken.items() if any(_is_changed(content, show) for show in spoken.shows)
    }
    for index, instruction in enumerate(content.instructions):
        if _is_changed(content, index):
            instructions += _without_removed(instruction, content.glyphs[index])
        elif index in silent:
            instructions.append(_without_spoken_text(instruction, resources))
        elif index in content.forms and content.forms[index].is_changed():
            resources, name = _with_form(resources, _copied_form(pdf, content.forms[index]))
            replaced.add(instruction.operands[0])
            instructions.append(pikepdf.ContentStreamInstruction([name], pikepdf.Operator("Do")))
        else:
            instructions.append(instruction)
    return pikepdf.unparse_content_stream(instructions), _without_unused(resources, replaced, instructions)


def drop_spoken_text(pdf: pikepdf.Pdf, data: bytes, tags: Sequence[str]) -> bool:
    """Takes tags out of what readers say instead of the pages: alternative texts of the structure tree, bookmarks. True
    when there were any. ``data``: the document as it was saved."""
    if not any(braces in data for braces in _WRITTEN_BRACES):
        return False
    squeezed = {_squeezed(tag) for tag in tags}
    dropped = False
    for item in pdf.objects:
        if not isinstance(item, pikepdf.Dictionary):
            continue
        for key in (*_SPOKEN, "/T", "/Title"):
            words = text_of(item.get(key))
            if "{{" in words:
                remaining = _TAG.sub(lambda match: "" if _squeezed(match.group()) in squeezed else match.group(), words)
                if remaining != words:
                    item[key] = pikepdf.String(" ".join(remaining.split()))
                    dropped = True
    return dropped


def _without_unused(resources: pikepdf.Dictionary, forms: set[Any], instructions: Sequence[Any]) -> pikepdf.Dictionary:
    """Forms that gave way to copies and are drawn no more would keep the tags' text in the file. ``resources`` is a copy as
    soon as there is one."""
    drawn = {
        instruction.operands[0]
        for instruction in instructions
        if str(instruction.operator) == "Do" and len(instruction.operands)
    }
    for name in forms - drawn:
        del resources["/XObject"][name]
    return resources


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _is_changed(content: Content, index: int) -> bool:
    shown = content.glyphs.get(index)
    return shown is not None and 1 in shown.removed


def _without_removed(instruction: Any, glyphs: Glyphs) -> list[Any]:
    """The show operator as TJ; ``'`` and ``"`` are spelled out (ISO 32000-2, table 107)."""
    operands, operator = instruction.operands, str(instruction.operator)
    lead: list[Any] = []
    match operator:
        case "TJ":
            elements = list(operands[0])
        case "'":
            elements = [operands[0]]
            lead = [pikepdf.ContentStreamInstruction([], pikepdf.Operator("T*"))]
        case '"':
            elements = [operands[2]]
            lead = [
                pikepdf.ContentStreamInstruction([operands[0]], pikepdf.Operator("Tw")),
                pikepdf.ContentStreamInstruction([operands[1]], pikepdf.Operator("Tc")),
                pikepdf.ContentStreamInstruction([], pikepdf.Operator("T*")),
            ]
        case _:
            elements = [operands[0]]
    line = _Line()
    first = 0
    for number, element in enumerate(elements):
        if not isinstance(element, pikepdf.String):
            line.move(float(element))
            continue
        behind = bisect_right(glyphs.element, number, first)
        _write(line, bytes(element), glyphs, first, behind)
        first = behind
    return [*lead, pikepdf.ContentStreamInstruction([line.array()], pikepdf.Operator("TJ"))]


def _write(line: "_Line", text: bytes, glyphs: Glyphs, first: int, behind: int) -> None:
    """The string ``text``, whose glyphs are those from ``first`` to ``behind``: what stays is shown, what goes is a move."""
    while first < behind:
        is_removed = glyphs.removed[first]
        end = glyphs.removed.find(1 - is_removed, first, behind)
        end = behind if end < 0 else end
        if is_removed:
            line.move(-1000 * sum(glyphs.advance[first:end]))
        else:
            line.show(text[glyphs.start[first] : glyphs.end[end - 1]])
        first = end


class _Line:
    """Operand of a TJ operator in the making."""

    def __init__(self) -> None:
        self._parts: list[bytes | float] = []

    def show(self, text: bytes) -> None:
        if self._parts and isinstance(self._parts[-1], bytes):
            self._parts[-1] += text
        else:
            self._parts.append(text)

    def move(self, number: float) -> None:
        if self._parts and isinstance(self._parts[-1], float):
            self._parts[-1] += number
        else:
            self._parts.append(float(number))

    def array(self) -> pikepdf.Array:
        parts = [
            pikepdf.String(part) if isinstance(part, bytes) else Decimal(part).quantize(Decimal("0.0001"))
            for part in self._parts
        ]
        return pikepdf.Array(parts)


def _without_spoken_text(instruction: Any, resources: pikepdf.Dictionary) -> Any:
    """A marked-content operator without the text that readers give instead of the glyphs."""
    tag, properties = instruction.operands[0], instruction.operands[1]
    if isinstance(properties, pikepdf.Name):
        properties = resources["/Properties"][properties]
    reduced = copy.copy(properties)
    for key in _SPOKEN:
        if key in reduced:
            del reduced[key]
    return pikepdf.ContentStreamInstruction([tag, reduced], instruction.operator)


def _copied_form(pdf: pikepdf.Pdf, form: Content) -> pikepdf.Stream:
    data, resources = rewritten(pdf, form)
    changed = pdf.make_stream(data)
    assert form.stream is not None
    for key in _FORM_KEYS:
        if key in form.stream:
            changed[key] = form.stream[key]
    changed["/Resources"] = resources
    return changed


def _with_form(resources: pikepdf.Dictionary, form: pikepdf.Stream) -> tuple[pikepdf.Dictionary, pikepdf.Name]:
    """A copy of the resources that has the form, and its name there."""
    # Shallow copies, made by qpdf: names of resources need not be text.
    changed = copy.copy(resources)
    xobjects = resources.get("/XObject")
    forms = copy.copy(xobjects) if isinstance(xobjects, pikepdf.Dictionary) else pikepdf.Dictionary()
    name = next(f"/Untagged{number}" for number in range(len(forms) + 1) if f"/Untagged{number}" not in forms)
    forms[name] = form
    changed["/XObject"] = forms
    return changed, pikepdf.Name(name)
