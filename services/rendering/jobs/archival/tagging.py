"""What is drawn onto a tagged document is tagged, too (ISO 32000-2, 14.7 and 14.8): readers for the blind find it behind what
its page says. Documents that are not tagged stay so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import pikepdf
from pikepdf import Array, Dictionary, Name, String

from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.pdf.number_trees import entries
from services.rendering.jobs.pdf.values import is_true, items_of, whole_of

_DEEPEST = 64


class Mark(NamedTuple):
    """A marked part of a drawing: a paragraph, or with ``alternative`` a figure in ``box`` (default user space)."""

    title: str
    alternative: str
    box: Rectangle


def is_tagged(pdf: pikepdf.Pdf) -> bool:
    info = pdf.Root.get("/MarkInfo")
    return (
        isinstance(pdf.Root.get("/StructTreeRoot"), Dictionary)
        and isinstance(info, Dictionary)
        and is_true(info.get("/Marked"))
    )


class Tagging:
    """Adds elements to the structure tree; ``finish`` writes it."""

    def __init__(self, pdf: pikepdf.Pdf) -> None:
        if not pdf.Root.StructTreeRoot.is_indirect:  # elements lead back to it
            pdf.Root.StructTreeRoot = pdf.make_indirect(pdf.Root.StructTreeRoot)
        self._pdf, self._root = pdf, pdf.Root.StructTreeRoot
        self._numbers = {whole_of(number): value for number, value in entries(self._root.get("/ParentTree"), "/Nums")}
        self._next = max([whole_of(self._root.get("/ParentTreeNextKey")), *(number + 1 for number in self._numbers)])
        self._pages = {page.obj.objgen: number for number, page in enumerate(pdf.pages)}
        self._sections: dict[int, pikepdf.Object] = {}
        kids = _kids(self._root)
        alone = kids[0] if len(kids) == 1 else None
        self._top: Any = self._root
        if isinstance(alone, Dictionary) and alone.is_indirect and alone.get("/S") == Name.Document:
            self._top = alone
        self._kids = [(self._first_page(kid), kid) for kid in _kids(self._top)]

    def content(self, page: pikepdf.Page, form: pikepdf.Stream, marks: Sequence[Mark]) -> None:
        """Tag the marked parts of ``form``, which this page alone draws."""
        if not marks:
            return
        elements = []
        for number, mark in enumerate(marks):
            element = self._element(page, "P" if not mark.alternative else "Figure")
            element.K = Dictionary(Type=Name.MCR, Pg=page.obj, Stm=form, MCID=number)
            element.T = String(mark.title)
            if mark.alternative:
                element.Alt = String(mark.alternative)
                box = Array([round(value, 3) for value in mark.box])
                element.A = Dictionary(O=Name.Layout, BBox=box, Placement=Name.Block)
            elements.append(element)
        form.StructParents = self._number(self._pdf.make_indirect(Array(elements)))

    def annotation(self, page: pikepdf.Page, annotation: pikepdf.Object, role: str) -> None:
        """Tag an annotation of the page; ``role``: ``Link`` or ``Form``. Its ``/Contents`` or ``/TU`` says what it is."""
        element = self._element(page, role)
        element.K = Dictionary(Type=Name.OBJR, Pg=page.obj, Obj=annotation)
        annotation.StructParent = self._number(element)
        page.obj.Tabs = Name.S

    def finish(self) -> None:
        flat = [part for number in sorted(self._numbers) for part in (number, self._numbers[number])]
        self._root.ParentTree = self._pdf.make_indirect(Dictionary(Nums=Array(flat)))
        self._root.ParentTreeNextKey = self._next
        if self._sections:
            self._top.K = Array([kid for _, kid in self._kids])

    def _number(self, value: Any) -> int:
        self._numbers[self._next] = value
        self._next += 1
        return self._next - 1

    def _element(self, page: pikepdf.Page, role: str) -> pikepdf.Object:
        section = self._sections.get(_number_of(page)) or self._section(page)
        element = self._pdf.make_indirect(Dictionary(Type=Name.StructElem, S=Name(f"/{role}"), P=section, Pg=page.obj))
        section.K.append(element)
        return element

    def _section(self, page: pikepdf.Page) -> pikepdf.Object:
        """Return what is filled in on the page, behind the last element of the document that begins on it or before."""
        section = self._pdf.make_indirect(
            Dictionary(Type=Name.StructElem, S=Name.Sect, P=self._top, Pg=page.obj, K=Array([]))
        )
        number = _number_of(page)
        before = [place for place, (first, _) in enumerate(self._kids, 1) if first <= number]
        self._kids.insert(before[-1] if before else 0, (number, section))
        self._sections[number] = section
        return section

    def _first_page(self, element: Any) -> int:
        for _ in range(_DEEPEST):
            if not isinstance(element, Dictionary):
                break
            if isinstance(page := element.get("/Pg"), Dictionary):
                return self._pages.get(page.objgen, 0)
            kids = _kids(element)
            element = kids[0] if kids else None
        return 0


def _kids(element: pikepdf.Object) -> list[Any]:
    kids = element.get("/K")
    return items_of(kids) if isinstance(kids, Array) else [kids] if kids is not None else []


def _number_of(page: pikepdf.Page) -> int:
    """The page's number, from 0: pikepdf's own types take this property for a method."""
    return cast(int, page.index)
