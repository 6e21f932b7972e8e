"""Nothing that acts comes in with a PDF; what is seen stays."""

import pikepdf
from pikepdf import Array, Dictionary, Name, String

from tests.support.files import pdf_files
from tests.support.rendering.intake import action, changed, codes, opened, script, take, texts, unpacked


def link(action: Dictionary) -> Dictionary:
    return Dictionary(Type=Name.Annot, Subtype=Name.Link, Rect=Array([0, 0, 50, 50]), A=action)


def full_of_actions() -> bytes:
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf, pdf_files.line("Text"))
    file = pdf.make_stream(b"MZpayload")
    file.Type = Name.EmbeddedFile
    attached = pdf.make_indirect(
        Dictionary(Type=Name.Filespec, F=String("a.exe"), UF=String("a.exe"), EF=Dictionary(F=file))
    )
    root = pdf.Root
    root.OpenAction = script()
    root.AA = Dictionary(WC=script(), DP=action("Launch", F=String("cmd.exe")))
    root.Names = Dictionary(
        JavaScript=Dictionary(Names=Array([String("a"), script()])),
        EmbeddedFiles=Dictionary(Names=Array([String("a.exe"), attached])),
        Dests=Dictionary(Names=Array([])),
    )
    root.AF = Array([attached])
    root.Collection = Dictionary(View=Name.D)
    root.Outlines = pdf.make_indirect(Dictionary(Type=Name.Outlines))
    item = pdf.make_indirect(Dictionary(Title=String("Chapter"), Parent=root.Outlines, A=pdf.make_indirect(script())))
    root.Outlines.First = root.Outlines.Last = item
    page.obj.AA = Dictionary(O=action("URI", URI=String("https://example.com")))
    chain = action("GoTo", D=String("x"), Next=Array([script(), action("ImportData", F=String("x.fdf"))]))
    appearance = pdf.make_stream(b"1 0 0 rg 0 0 50 50 re f")
    appearance.Subtype, appearance.BBox = Name.Form, Array([0, 0, 50, 50])
    annotations = [
        link(action("URI", URI=String("https://example.com/terms"))),
        link(action("URI", URI=String("java\nscript:alert(1)"))),
        link(action("URI", URI=String("file:///etc/passwd"))),
        link(action("Launch", F=String("cmd.exe"))),
        link(action("GoToR", F=String("other.pdf"), D=String("x"))),
        link(action("GoToE", D=String("x"))),
        link(action("SubmitForm", F=String("https://evil.example"))),
        link(action("Unheard", X=1)),
        link(chain),
        Dictionary(Type=Name.Annot, Subtype=Name.FileAttachment, Rect=Array([0, 0, 9, 9]), FS=attached),
        Dictionary(
            Type=Name.Annot, Subtype=Name.RichMedia, Rect=Array([100, 100, 150, 150]), AP=Dictionary(N=appearance),
            RichMediaContent=Dictionary(Assets=Dictionary(Names=Array([String("a.swf"), attached]))),
        ),
        Dictionary(
            Type=Name.Annot, Subtype=Name.Screen, Rect=Array([0, 0, 9, 9]), AA=Dictionary(PO=action("Rendition", OP=0)),
        ),
    ]  # fmt: skip
    page.obj.Annots = Array([pdf.make_indirect(annotation) for annotation in annotations])
    external = pdf.make_stream(b"")
    external.F = Dictionary(F=String("/etc/passwd"))
    page.obj.Resources.XObject = Dictionary(External=external)
    return pdf_files.saved(pdf)


ACTING = [
    b"/JavaScript", b"/JS", b"/AA", b"/OpenAction", b"/Launch", b"/GoToR", b"/GoToE", b"/SubmitForm", b"/ImportData",
    b"/RichMedia", b"/EmbeddedFile", b"/EF", b"/AF", b"/Collection", b"/Rendition", b"/Unheard", b"passwd", b"script:",
    b"cmd.exe", b"MZpayload",
]  # fmt: skip


def test_nothing_that_acts_is_left() -> None:
    data = full_of_actions()
    before = unpacked(data)
    prepared = take(data)
    after = unpacked(prepared.file)
    assert [word for word in ACTING if word not in before] == []
    assert [word for word in ACTING if word in after] == []
    assert set(codes(prepared)) == {
        "javascript_removed", "action_removed", "media_removed", "embedded_file_removed", "external_file_removed",
        "portfolio_removed",
    }  # fmt: skip


def test_links_bookmarks_and_what_is_seen_stay() -> None:
    with opened(take(full_of_actions())) as pdf:
        annotations = list(pdf.pages[0].obj.Annots)
        assert str(annotations[0].A.URI) == "https://example.com/terms"
        assert [str(one.A.S) for one in annotations if "/A" in one] == ["/URI", "/GoTo"]
        assert "/Next" not in annotations[8].A or len(annotations[8].A.Next) == 0
        stamps = [one for one in annotations if one.Subtype == "/Stamp"]
        assert len(stamps) == 1
        assert str(pdf.Root.Outlines.First.Title) == "Chapter"
        assert "/Dests" in pdf.Root.Names


def test_resources_that_are_called_like_actions_stay() -> None:
    pdf = pikepdf.new()
    font = pdf_files.standard_font(pdf, "Helvetica")
    form = pdf.make_stream(b"BT /AA 12 Tf 10 10 Td (inside) Tj ET")
    form.Type, form.Subtype, form.BBox = Name.XObject, Name.Form, Array([0, 0, 100, 100])
    form.Resources = Dictionary(Font=Dictionary(AA=font))
    pdf_files.add_page(
        pdf, "BT /AA 12 Tf 72 700 Td (text) Tj ET /JS Do /A gs", fonts={"/AA": font}, forms={"/JS": form}
    )
    pdf.pages[0].obj.Resources.ExtGState = Dictionary(A=Dictionary(ca=0.5), AA=Dictionary(D=Array([Array([3]), 0])))
    prepared = take(pdf_files.saved(pdf))
    assert codes(prepared) == []
    assert sorted(texts(prepared.file)[0].split()) == ["inside", "text"]
    with opened(prepared) as pdf:
        assert "/AA" in pdf.pages[0].obj.Resources.ExtGState


def test_what_is_seen_does_not_depend_on_the_medium() -> None:
    def layers(pdf: pikepdf.Pdf) -> None:
        pdf.Root.OCProperties = Dictionary(
            OCGs=Array([]), D=Dictionary(AS=Array([Dictionary(Event=Name.Print)])), Configs=Array([Dictionary()])
        )

    with opened(take(changed(pdf_files.document(), layers))) as pdf:
        assert "/AS" not in pdf.Root.OCProperties.D
        assert "/Configs" not in pdf.Root.OCProperties
