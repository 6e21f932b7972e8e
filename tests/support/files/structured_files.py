"""Small PDFs with what leads through a document: bookmarks, a structure tree."""

import pikepdf
from pikepdf import Array, Dictionary, Name, String

from tests.support.files.pdf_files import add_page, line, saved


def pages(count: int, label: str) -> pikepdf.Pdf:
    pdf = pikepdf.new()
    for number in range(1, count + 1):
        add_page(pdf, line(f"{label}{number}"))
    return pdf


def with_bookmarks(label: str) -> bytes:
    """One to a page, one by name inside it, one to the web, one that runs a program."""
    pdf = pages(2, label)
    destinations = Array([String("end"), Dictionary(D=Array([pdf.pages[1].obj, Name.FitH, 700]))])
    pdf.Root.Names = Dictionary(Dests=Dictionary(Names=destinations))
    with pdf.open_outline() as outline:
        chapter = pikepdf.OutlineItem(f"{label} chapter", 0)
        inside = pikepdf.OutlineItem(f"{label} end", String("end"))
        chapter.children.append(inside)
        web = pikepdf.OutlineItem(f"{label} web", action=Dictionary(S=Name.URI, URI=String("https://example.com/")))
        launch = pikepdf.OutlineItem(f"{label} run", action=Dictionary(S=Name.Launch, F=String("calc.exe")))
        outline.root += [chapter, web, launch]
    return saved(pdf)


def tagged(label: str, role: str = "/P") -> bytes:
    pdf = pages(2, label)
    elements = []
    for page in pdf.pages:
        text = page.obj.Contents.read_bytes()
        page.obj.Contents = pdf.make_stream(b"/P <</MCID 0>> BDC " + text + b" EMC")
        elements.append(pdf.make_indirect(Dictionary(Type=Name.StructElem, S=Name("/Para"), K=0, Pg=page.obj)))
        page.obj.StructParents = len(elements) - 1
    root = pdf.make_indirect(
        Dictionary(Type=Name.StructTreeRoot, K=Array(elements), RoleMap=Dictionary(Para=Name(role)))
    )
    root.ParentTree = Dictionary(Nums=Array([0, Array([elements[0]]), 1, Array([elements[1]])]))
    for element in elements:
        element.P = root
    pdf.Root.StructTreeRoot, pdf.Root.MarkInfo, pdf.Root.Lang = root, Dictionary(Marked=True), String("en")
    return saved(pdf)
