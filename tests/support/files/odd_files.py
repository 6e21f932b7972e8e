"""PDFs as they come in, each odd in one way: turned, cropped, scaled, written by odd producers, damaged, tagged, scanned."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name, String

from tests.support.files import pdf_files
from tests.support.files.pdf_files import document, line, saved
from tests.support.files.picture_files import heic, marked, picture

_MARK = line("Before", 120, 560) + "q 0 0 1 rg 120 600 60 20 re f Q\n"


def page(**options: Any) -> bytes:
    """A page with a word and a blue rectangle, then a plain one."""
    pdf = pikepdf.new()
    pdf_files.add_page(pdf, _MARK, **options)
    pdf_files.add_page(pdf, _MARK)
    return saved(pdf)


def changed(change: Callable[[pikepdf.Pdf], Any], data: bytes | None = None) -> bytes:
    with pikepdf.open(io.BytesIO(data or page())) as pdf:
        change(pdf)
        return saved(pdf, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)


def rewritten(**options: Any) -> bytes:
    with pikepdf.open(io.BytesIO(page())) as pdf:
        return saved(pdf, **options)


def all_inherited() -> bytes:
    """Size, resources and turn are the page tree's."""

    def move(pdf: pikepdf.Pdf) -> None:
        tree, first = pdf.Root.Pages, pdf.pages[0].obj
        tree.MediaBox, tree.Resources, tree.Rotate = first.MediaBox, first.Resources, 270
        for one in pdf.pages:
            del one.obj.MediaBox, one.obj.Resources

    return changed(move)


def hybrid() -> bytes:
    """A table for old readers and, for new ones, a stream that has the font's object: ISO 32000-2, 7.5.8.4."""
    content = _MARK.encode()
    inside = b"6 0 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    head = inside.index(b"<<")
    bodies = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 6 0 R /F2 6 0 R >> >> >>",
        4: b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        5: b"<< /Type /ObjStm /N 1 /First %d /Length %d >>\nstream\n%s\nendstream" % (head, len(inside), inside),
    }
    out, places = b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n", {}
    for number, body in bodies.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    stream_at = len(out)
    entries = b"\x02\x00\x00\x05\x00"
    out += (
        b"7 0 obj\n<< /Type /XRef /Size 8 /Index [6 1] /W [1 3 1] /Length 5 >>\nstream\n%s\nendstream\nendobj\n"
        % entries
    )
    table_at = len(out)
    out += b"xref\n0 8\n0000000000 65535 f \n"
    for number in range(1, 8):
        out += b"%010d 00000 n \n" % places[number] if number in places else b"0000000000 00000 f \n"
    return out + b"trailer\n<< /Size 8 /Root 1 0 R /XRefStm %d >>\nstartxref\n%d\n%%%%EOF\n" % (stream_at, table_at)


def updated() -> bytes:
    """A later revision replaces the content of the first page."""
    before = document(line("Old words"))
    with pikepdf.open(io.BytesIO(before)) as pdf:
        number, size = pdf.pages[0].obj.Contents.objgen[0], int(pdf.trailer.Size)
        root = pdf.Root.objgen[0]
    content = _MARK.encode()
    at = len(before) + 1
    changed_ = b"\n%d 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (number, len(content), content)
    table_at = len(before) + len(changed_)
    previous = int(before[before.rindex(b"startxref") + 9 :].split()[0])
    table = b"xref\n%d 1\n%010d 00000 n \ntrailer\n<< /Size %d /Root %d 0 R /Prev %d >>\n" % (
        *(number, at, size, root, previous),
    )
    return before + changed_ + table + b"startxref\n%d\n%%%%EOF\n" % table_at


def wrong_length() -> bytes:
    data = document(_MARK)
    at = data.index(b"/Length ")
    end = data.index(b" ", at + 8)
    return data[:at] + b"/Length 7".ljust(end - at) + data[end:]


def tagged() -> bytes:
    def tag(pdf: pikepdf.Pdf) -> None:
        first = pdf.pages[0].obj
        first.Contents = pdf.make_stream(b"/P << /MCID 0 >> BDC\n" + _MARK.encode() + b"EMC\n")
        first.StructParents = 0
        root = pdf.make_indirect(Dictionary(Type=Name.StructTreeRoot))
        words = pdf.make_indirect(Dictionary(Type=Name.StructElem, S=Name.P, P=root, Pg=first, K=0))
        root.K, root.ParentTree = words, pdf.make_indirect(Dictionary(Nums=Array([0, Array([words])])))
        pdf.Root.StructTreeRoot, pdf.Root.MarkInfo, pdf.Root.Lang = root, Dictionary(Marked=True), String("en")

    return changed(tag)


def portfolio() -> bytes:
    def collect(pdf: pikepdf.Pdf) -> None:
        pdf.attachments["inside.pdf"] = document(line("Nobody sees this"))
        pdf.Root.Collection = Dictionary(Type=Name.Collection, View=Name.D)

    return changed(collect)


def usage_rights() -> bytes:
    def extend(pdf: pikepdf.Pdf) -> None:
        pdf.Root.Perms = Dictionary(UR3=Dictionary(Type=Name.Sig, ByteRange=Array([0, 1, 2, 3]), Contents=String("x")))

    return changed(extend)


def static_xfa() -> bytes:
    data = pdf_files.with_form(pdf_files.field("Tx", "Name", (120, 640, 300, 660)))

    def describe(pdf: pikepdf.Pdf) -> None:
        pdf.Root.AcroForm.XFA = Array([String("template"), pdf.make_stream(b"<template/>")])

    return changed(describe, data)


def damaged_picture() -> bytes:
    pdf = pikepdf.new()
    broken = pdf.make_stream(b"")
    broken.write(b"www no picture", filter=Name.DCTDecode)
    broken.Type, broken.Subtype, broken.Width, broken.Height = Name.XObject, Name.Image, 8, 8
    broken.ColorSpace, broken.BitsPerComponent = Name.DeviceRGB, 8
    pdf_files.add_page(pdf, _MARK + "q 100 0 0 100 300 500 cm /Im Do Q", forms={"/Im": broken})
    return saved(pdf)


def missing_font() -> bytes:
    pdf = pikepdf.new()
    font = Dictionary(Type=Name.Font, Subtype=Name.TrueType, BaseFont=Name("/ABCDEF+House#20Style"), FirstChar=32)
    font.LastChar, font.Widths, font.Encoding = 126, Array([500] * 95), Name.WinAnsiEncoding
    font.FontDescriptor = Dictionary(Type=Name.FontDescriptor, FontName=font.BaseFont, Flags=32, ItalicAngle=0)
    font.FontDescriptor.FontBBox = Array([0, -200, 1000, 800])
    font.FontDescriptor.Ascent, font.FontDescriptor.Descent, font.FontDescriptor.CapHeight = 800, -200, 700
    font.FontDescriptor.StemV = 80
    pdf_files.add_page(pdf, _MARK + line("In house style", font="F9"), fonts={"/F9": pdf.make_indirect(font)})
    return saved(pdf)


def graphics() -> bytes:
    """Blend modes, a soft mask with a transfer function, overprint, and colours of special inks, the last left as they are."""

    def draw(pdf: pikepdf.Pdf) -> None:
        invert = Dictionary(FunctionType=4, Domain=Array([0, 1]), Range=Array([0, 1]))
        inverted = pdf.make_stream(b"{1 exch sub}", invert)
        mask = pdf.make_stream(b"0.3 g 0 0 612 792 re f")
        mask.stream_dict.update(Dictionary(Type=Name.XObject, Subtype=Name.Form, BBox=Array([0, 0, 612, 792])))
        mask.stream_dict.Group = Dictionary(S=Name.Transparency, CS=Name.DeviceGray)
        to_cmyk = Dictionary(FunctionType=4, Domain=Array([0, 1, 0, 1]), Range=Array([0, 1] * 4))
        inks = Array([Name.DeviceN, Array([Name.Gold, Name.Varnish]), Name.DeviceCMYK])
        inks.append(pdf.make_stream(b"{0 0}", to_cmyk))
        resources = pdf.pages[0].obj.Resources
        resources.ColorSpace = Dictionary(Inks=inks)
        resources.ExtGState = Dictionary(
            Blend=Dictionary(BM=Name.Multiply, ca=0.5, OP=True, op=True, OPM=1),
            Mask=Dictionary(SMask=Dictionary(S=Name.Luminosity, G=mask, TR=inverted)),
            Transfer=Dictionary(TR=inverted, BM=Name.Difference),
        )
        pdf.pages[0].contents_add(
            b"q /Mask gs 1 0 0 rg 60 60 90 90 re f Q q /Transfer gs 0.2 g 100 100 90 90 re f Q "
            b"/Blend gs /Inks cs 0.7 0.3 scn 200 60 120 120 re f 0 1 0 0 k 250 90 120 120 re f"
        )

    return changed(draw)


def drawn_type() -> bytes:
    """Letters that are drawings (a Type 3 font)."""

    def draw(pdf: pikepdf.Pdf) -> None:
        letter = pdf.make_stream(b"1000 0 d0 1 0 0 rg 0 0 750 750 re f")
        font = Dictionary(Type=Name.Font, Subtype=Name.Type3, FontBBox=Array([0, 0, 1000, 1000]))
        font.FontMatrix, font.Widths = Array([0.001, 0, 0, 0.001, 0, 0]), Array([1000])
        font.FirstChar = font.LastChar = 97
        font.Encoding, font.CharProcs = Dictionary(Differences=Array([97, Name.a])), Dictionary(a=letter)
        pdf.pages[0].obj.Resources.Font.T3 = font
        pdf.pages[0].contents_add(b"BT /T3 20 Tf 60 100 Td (aa) Tj ET")

    return changed(draw)


def hidden_layers() -> bytes:
    """Everything is on layers that are off, but for one."""

    def hide(pdf: pikepdf.Pdf) -> None:
        off, on = (pdf.make_indirect(Dictionary(Type=Name.OCG, Name=String(name))) for name in ("Off", "On"))
        pdf.Root.OCProperties = Dictionary(OCGs=Array([off, on]), D=Dictionary(BaseState=Name.OFF, ON=Array([on])))
        pdf.pages[0].obj.Resources.Properties = Dictionary(Off=off, On=on)
        pdf.pages[0].contents_add(
            b"/OC /Off BDC 1 0 0 rg 60 60 200 200 re f EMC /OC /On BDC 0 1 0 rg 300 60 90 90 re f EMC"
        )

    return changed(hide)


ODD: dict[str, tuple[Callable[[], bytes], set[str]]] = {
    "plain": (page, set()),
    **{f"turned by {turn}": (partial(page, rotate=turn), {"pages_turned"}) for turn in (90, 180, 270, -90, 450)},
    "turned, cropped and scaled": (
        lambda: page(rotate=90, crop=(100, 80, 480, 700), user_unit=1.5),
        {"pages_turned", "pages_cropped", "pages_scaled"},
    ),
    "far from the origin": (lambda: page(media=(-300, 100, 312, 892)), set()),
    "as large as can be": (lambda: page(media=(0, 0, 14_400, 14_400)), set()),
    "a stamp": (lambda: page(media=(0, 0, 5, 4)), set()),
    "all inherited": (all_inherited, {"pages_turned"}),
    "no size": (lambda: changed(lambda pdf: pdf.pages[1].obj.__delitem__("/MediaBox")), {"repaired"}),
    "no content": (lambda: changed(lambda pdf: pdf.pages[1].obj.__delitem__("/Contents")), set()),
    "object streams": (lambda: rewritten(object_stream_mode=pikepdf.ObjectStreamMode.generate), set()),
    "linearized": (lambda: rewritten(linearize=True), set()),
    "hybrid": (hybrid, set()),
    "updated": (updated, set()),
    "broken cross-references": (lambda: pdf_files.broken_cross_references(page()), {"repaired"}),
    "cut off": (lambda: page()[: page().rindex(b"xref\n")], {"repaired"}),
    "a trailer without size": (lambda: page().replace(b"/Size ", b"/Sise "), {"repaired"}),
    "operators that are none": (lambda: document(_MARK + "\xd0\xff Q\x04 QQQQ\n", _MARK), set()),
    "an array without an end": (lambda: document(_MARK + "[ /open", _MARK), set()),
    "blend modes, transfer functions, inks": (graphics, set()),
    "letters that are drawings": (drawn_type, set()),
    "layers that are off": (hidden_layers, set()),
    "the second version of the standard": (
        lambda: rewritten(force_version="2.0", object_stream_mode=pikepdf.ObjectStreamMode.generate),
        set(),
    ),
    "a wrong length": (wrong_length, {"repaired"}),
    "encrypted with AES-256": (lambda: pdf_files.encrypted(page()), {"decrypted"}),
    "encrypted with AES-128": (lambda: pdf_files.encrypted(page(), revision=4), {"decrypted"}),
    "encrypted with RC4": (lambda: pdf_files.encrypted(page(), revision=3), {"decrypted"}),
    "tagged": (tagged, {"tagged"}),
    "portfolio": (portfolio, {"portfolio_removed", "embedded_file_removed"}),
    "usage rights": (usage_rights, {"usage_rights_removed"}),
    "static XFA": (static_xfa, {"xfa_removed", "form_fields_imported"}),
    "damaged picture": (damaged_picture, {"picture_damaged"}),
    "a font that is missing": (missing_font, {"fonts_missing"}),
    "signed": (lambda: pdf_files.signed(page()), {"signed"}),
    "signed, with object streams": (
        lambda: pdf_files.signed(rewritten(object_stream_mode=pikepdf.ObjectStreamMode.generate)),
        {"signed"},
    ),
    "signed after a later revision": (lambda: pdf_files.signed(updated()), {"signed"}),
    "certified, notes allowed": (
        lambda: pdf_files.signed(page(rotate=180), certified=3),
        {"signed", "pages_turned", "form_only"},
    ),
    "a photo": (lambda: picture("JPEG", 6), {"picture_converted", "no_text"}),
    "a photo of a telephone": (heic, {"picture_converted", "no_text"}),
    "a fax": (
        lambda: picture(
            "TIFF", image=marked((850, 1100)).convert("1"), compression="group4", save_all=True,
            append_images=[marked((850, 1100)).convert("1")],
        ),
        {"picture_converted", "no_text"},
    ),
}  # fmt: skip
"""By what is odd about them: how they are made, and which lines of the report they bring about."""
