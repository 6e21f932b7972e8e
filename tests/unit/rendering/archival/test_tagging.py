"""Whatever a structure tree is like: what is drawn gets into it, and what is there stays."""

from collections.abc import Callable
from typing import Any

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name

from services.rendering.jobs.archival.tagging import is_tagged
from services.rendering.jobs.drawing.fill import fill_into
from services.rendering.jobs.pdf.number_trees import entries
from services.rendering.jobs.sealing import reserving
from tests.support.rendering.drawing import blank_pdf, field_value, request, stored
from tests.support.rendering.seals import finish, identity, text


def tagged(change: Callable[[pikepdf.Pdf, pikepdf.Object], Any] = lambda _pdf, _root: None) -> pikepdf.Pdf:
    pdf = blank_pdf()
    pdf.Root.MarkInfo = Dictionary(Marked=True)
    root = pdf.Root.StructTreeRoot = pdf.make_indirect(Dictionary(Type=Name.StructTreeRoot))
    whole = pdf.make_indirect(Dictionary(Type=Name.StructElem, S=Name.Document, P=root))
    first = pdf.make_indirect(Dictionary(Type=Name.StructElem, S=Name.H1, P=whole, Pg=pdf.pages[0].obj, K=0))
    whole.K = first
    root.K, root.ParentTree, root.ParentTreeNextKey = whole, Dictionary(Nums=Array([0, Array([first])])), 1
    pdf.pages[0].obj.StructParents = 0
    change(pdf, root)
    return pdf


def direct(pdf: pikepdf.Pdf, root: pikepdf.Object) -> None:
    pdf.Root.StructTreeRoot = Dictionary(dict(root.items()))


TREES: dict[str, Callable[[pikepdf.Pdf, pikepdf.Object], Any]] = {
    "usual": lambda _pdf, _root: None,
    "written inside the catalogue": direct,
    "no elements": lambda _pdf, root: root.__delitem__("/K"),
    "a number for an element": lambda _pdf, root: root.K.__setitem__("/K", 7),
    "a page that is none": lambda _pdf, root: root.K.K.__setitem__("/Pg", 7),
    "a ring": lambda _pdf, root: root.K.__setitem__("/K", root.K),
    "no tree of parents": lambda _pdf, root: root.__delitem__("/ParentTree"),
    "a tree of parents that is none": lambda _pdf, root: root.__setitem__("/ParentTree", Name.Nothing),
    "a next number that is taken": lambda _pdf, root: root.__setitem__("/ParentTreeNextKey", 0),
    "a next number that is none": lambda _pdf, root: root.__setitem__("/ParentTreeNextKey", Name.X),
}


@pytest.mark.parametrize("name", TREES)
def test_what_is_drawn_gets_into_every_tree(name: str) -> None:
    with tagged(TREES[name]) as pdf:
        fill_into(pdf, stored(), request(field_value("text", "Ana", name="Name")), {})
        data = finish(reserving.reserve(pdf, text(), identity().signer.size))
        assert data
        numbers = dict(entries(pdf.Root.StructTreeRoot.ParentTree, "/Nums"))
        page = pdf.pages[0].obj
        (drawing,) = (one for one in page.Resources.XObject.values() if "/StructParents" in one)
        (paragraph,) = numbers[int(drawing.StructParents)]
        assert (paragraph.S, str(paragraph.T), paragraph.K.Stm.objgen) == (Name.P, "Name", drawing.objgen)
        assert Name.Form == numbers[int(page.Annots[0].StructParent)].S
        if "tree of parents" not in name:
            assert numbers[0][0].S == Name.H1, "what was there stays"
        if name == "usual":
            kids = pdf.Root.StructTreeRoot.K
            whole = kids[0] if isinstance(kids, Array) else kids
            assert [kid.S for kid in whole.K] == [Name.H1, Name.Sect, Name.Sect]


@pytest.mark.parametrize("marked", [None, False])
def test_a_document_that_is_not_tagged_stays_so(marked: bool | None) -> None:
    with tagged() as pdf:
        pdf.Root.MarkInfo = Dictionary() if marked is None else Dictionary(Marked=marked)
        fill_into(pdf, stored(), request(field_value("text", "Ana")), {})
        assert not is_tagged(pdf)
        (drawing,) = pdf.pages[0].obj.Resources.XObject.values()
        assert "/StructParents" not in drawing
        assert b"BDC" not in drawing.read_bytes()
