"""Sealed files that somebody has changed behind the signature."""

import io
import re
from collections.abc import Callable, Sequence

import pikepdf
from asn1crypto import parser
from pyhanko.pdf_utils import generic
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign.fields import SigFieldSpec, append_signature_field


def hole(data: bytes) -> tuple[int, int]:
    """Where the hexadecimal digits of the first signature, with their padding, begin and end."""
    found = re.search(rb"/Contents <([0-9a-f]+)>", data)
    assert found
    return found.start(1), found.end(1)


def padded(data: bytes, at: int, digits: bytes) -> bytes:
    """``digits`` (hexadecimal) at this place of the padding of the first signature; negative: from its end."""
    start, end = hole(data)
    begin = end + at if at < 0 else start + 2 * parser.peek(bytes.fromhex(data[start:end].decode())) + at
    assert not data[begin : begin + len(digits)].strip(b"0")
    return data[:begin] + digits + data[begin + len(digits) :]


def without_signature(data: bytes, how: str) -> bytes:
    """A well-formed update that drops the first signature and leaves all bytes before it as they are: ``how`` says what is
    taken away, the whole ``form``, the ``field`` or its ``value``."""
    writer = IncrementalPdfFileWriter(io.BytesIO(data))
    form = writer.root["/AcroForm"]
    field = form["/Fields"][0]
    if how == "form":
        del writer.root["/AcroForm"]
        writer.update_root()
    elif how == "field":
        del form["/Fields"][0]
        writer.update_container(form)
        writer.update_container(form["/Fields"])
        writer.update_root()
    else:
        del field["/V"]
        writer.update_container(field)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


# --- shadow documents: well-formed updates that leave the signed bytes as they are ----------------------------------------


def updated(data: bytes, change: Callable[[IncrementalPdfFileWriter], None]) -> bytes:
    writer, out = IncrementalPdfFileWriter(io.BytesIO(data)), io.BytesIO()
    change(writer)
    writer.write(out)
    return out.getvalue()


def freed(data: bytes) -> bytes:
    """Hiding: the page's content is said to be free, so that nothing is drawn any more."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        content = pdf.pages[0].obj.Contents
        drawn = content[0].objgen[0] if isinstance(content, pikepdf.Array) else content.objgen[0]
        root, size = pdf.Root.objgen[0], len(pdf.objects) + 1
    return _with_table(data, data, [b"%d 1" % drawn, b"0000000000 00001 f "], root, size)


def other_catalog(data: bytes) -> bytes:
    """Hiding and replacing: the trailer leads to another document in the same file."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        first, field = len(pdf.objects) + 1, pdf.Root.AcroForm.Fields[0].objgen[0]
    body = b"BT /F1 12 Tf 72 700 Td (Agreed: 9 EUR) Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages %d 0 R /AcroForm << /Fields [%d 0 R] /SigFlags 3 >> >>" % (first + 1, field),
        b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % (first + 2),
        b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 612 792] /Contents %d 0 R >>" % (first + 1, first + 3),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(body), body),
    ]
    out, rows = data, [b"%d %d" % (first, len(objects))]
    for number, content in enumerate(objects, first):
        rows.append(b"%010d 00000 n " % len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    return _with_table(data, out, rows, first, first + len(objects))


def other_letters(data: bytes) -> bytes:
    """Replacing: the digit 1 of a font becomes a 9."""

    def change(writer: IncrementalPdfFileWriter) -> None:
        font = writer.root["/Pages"]["/Kids"][0]["/Resources"]["/Font"]["/F1"]
        names = generic.ArrayObject([generic.NumberObject(49), generic.pdf_name("/nine")])
        font[generic.pdf_name("/Encoding")] = generic.DictionaryObject({generic.pdf_name("/Differences"): names})
        writer.update_container(font)

    return updated(data, change)


def covered(data: bytes) -> bytes:
    """A signature field that nobody has signed, whose look hides the page."""
    spec = SigFieldSpec("Cover", on_page=0, box=(0, 0, 612, 792))
    return updated(data, lambda writer: append_signature_field(writer, spec))


def layered(data: bytes) -> bytes:
    """With a layer that is off."""

    def change(writer: IncrementalPdfFileWriter) -> None:
        group = writer.add_object(generic.DictionaryObject({generic.pdf_name("/Type"): generic.pdf_name("/OCG")}))
        off = generic.DictionaryObject({generic.pdf_name("/OFF"): generic.ArrayObject([group])})
        writer.root[generic.pdf_name("/OCProperties")] = generic.DictionaryObject(
            {generic.pdf_name("/OCGs"): generic.ArrayObject([group]), generic.pdf_name("/D"): off}
        )
        writer.update_root()

    return updated(data, change)


def shown_elsewhere(data: bytes) -> bytes:
    """The signature of the first field as the value of another one, whose look hides the page."""

    def change(writer: IncrementalPdfFileWriter) -> None:
        append_signature_field(writer, SigFieldSpec("Cover", on_page=0, box=(0, 0, 612, 792)))
        first, cover = writer.root["/AcroForm"]["/Fields"][0], writer.root["/AcroForm"]["/Fields"][-1]
        cover[generic.pdf_name("/V")] = first.raw_get("/V")

    return updated(data, change)


SHADOWS: dict[str, Callable[[bytes], bytes]] = {
    "what is drawn said to be free": freed,
    "another catalog": other_catalog,
    "other letters in a font": other_letters,
    "a field that covers the page": covered,
    "a layer": layered,
    "the signature shown elsewhere": shown_elsewhere,
}


def _with_table(before: bytes, data: bytes, rows: Sequence[bytes], root: int, size: int) -> bytes:
    """``data``, which is ``before`` with objects behind it, and a cross-reference table of these rows."""
    previous = int(before[before.rindex(b"startxref") :].split()[1])
    trailer = b"trailer\n<< /Size %d /Root %d 0 R /Prev %d >>\n" % (size, root, previous)
    return b"%sxref\n%s\n%sstartxref\n%d\n%%%%EOF\n" % (data, b"\n".join(rows), trailer, len(data))
