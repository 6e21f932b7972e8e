"""Every PDF that comes in: made harmless and plain, or refused in one sentence, without expanding what is packed small."""

import io
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name, String
from PIL import Image

from services.rendering.jobs.intake.preparing import Limits
from services.rendering.jobs.intake.stream_limits import StreamLimits
from services.rendering.jobs.pdf.refused import Refused
from tests.support.files import pdf_files
from tests.support.rendering.drawing import picture_of
from tests.support.rendering.intake import RAW, changed, codes, opened, script, take, texts, unpacked

# What is accepted


def test_an_ordinary_document_keeps_its_pages_and_text() -> None:
    prepared = take(pdf_files.document(pdf_files.line("One"), pdf_files.line("Two"), media=pdf_files.A4))
    assert texts(prepared.file) == ["One", "Two"]
    assert [(page.width, page.height) for page in prepared.pages] == [(595, 842)] * 2
    assert (prepared.report, prepared.fields, prepared.signed) == ([], [], False)


def test_the_same_file_gives_the_same_bytes() -> None:
    data = pdf_files.document(pdf_files.line("One {{A;type=text}}"))
    assert take(data).file == take(data).file


def test_a_prepared_file_needs_nothing_more() -> None:
    once = take(pdf_files.document(pdf_files.line("One {{A;type=text}} x")))
    twice = take(once.file)
    assert (twice.report, twice.fields) == ([], [])
    assert texts(twice.file) == texts(once.file)


def test_encryption_that_asks_for_no_password_is_taken_off() -> None:
    prepared = take(pdf_files.encrypted(pdf_files.document(pdf_files.line("Secret"))))
    assert codes(prepared) == ["decrypted"]
    assert b"/Encrypt" not in prepared.file
    assert texts(prepared.file) == ["Secret"]


def test_broken_cross_references_are_repaired() -> None:
    prepared = take(pdf_files.broken_cross_references(pdf_files.document(pdf_files.line("Text"))))
    assert codes(prepared) == ["repaired"]
    assert texts(prepared.file) == ["Text"]
    with opened(prepared) as pdf:
        assert pdf.get_warnings() == []


def test_something_before_the_header_is_forgiven() -> None:
    assert texts(take(b"\r\n\r\nHTTP rest\n" + pdf_files.document(pdf_files.line("Text"))).file) == ["Text"]


def test_what_readers_would_guess_about_is_said_plainly() -> None:
    prepared = take(pdf_files.document(pdf_files.line("Text"), rotate=-90, crop=(9000, 9000, 9100, 9100)))
    with opened(prepared) as pdf:
        assert pdf.pages[0].obj.Rotate == 270
        assert list(pdf.pages[0].obj.CropBox) == [0, 0, 612, 792]
    assert [(page.width, page.height) for page in prepared.pages] == [(792, 612)]


@pytest.mark.parametrize("crop", [(300, 400, 1000, 1000), (300, -500, 500, 500), (-50, 300, 900, 700)])
def test_all_readers_show_the_same_part_of_a_page_whose_crop_box_reaches_beyond_it(
    crop: tuple[int, ...], tmp_path: Path
) -> None:
    """ISO 32000-2, 14.11.2.1: what the crop box and the media box have in common. Poppler shows more of a page that is smaller than its crop box, unless that is said."""
    name = tmp_path / "cropped"
    name.with_suffix(".pdf").write_bytes(take(pdf_files.document(b"0 0 612 792 re f", crop=crop)).file)
    subprocess.run(
        ["pdftoppm", "-r", "72", "-cropbox", "-singlefile", "-png", name.with_suffix(".pdf"), name], check=True
    )
    shown = picture_of(name.with_suffix(".pdf").read_bytes())
    with Image.open(name.with_suffix(".png")) as picture:
        assert (picture.size, picture.convert("L").getextrema()) == (shown.size, (0, 0))


# What is refused


def with_handler(standard: bytes, other: bytes) -> bytes:
    """Encrypted by something that is not in the standard."""
    return pdf_files.encrypted(pdf_files.document()).replace(standard, other)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "The file is empty."),
        (b"<html>%PDF is great</html>", "The file is not a PDF, nor a picture"),
        (b"x" * 2000 + pdf_files.document(), "The file is not a PDF, nor a picture"),
        (b"%PDF-1.7\nnothing else\n%%EOF", "The PDF is damaged and could not be repaired."),
        (pdf_files.encrypted(pdf_files.document(), user="secret"), "The PDF is password-protected"),
        (pdf_files.circular_page_tree(), "The PDF is damaged and could not be repaired."),
        (changed(pdf_files.document(), lambda pdf: pdf.pages.__delitem__(0)), "The PDF has no pages."),
        (pdf_files.document(media=(0, 0, 20_000, 300)), "Page 1 of the PDF is larger than 14,400 units."),
        (pdf_files.document(media=(0, 0, 2, 300)), "Page 1 of the PDF is smaller than 3 units."),
        (pdf_files.document(media=(0, 0, 0, 300)), "Page 1 of the PDF has a page size that makes no sense."),
        (pdf_files.document(media=(1e9, 0, 1e9 + 500, 300)), "Page 1 of the PDF is larger"),
        (
            pdf_files.document(media=(0, 0, 300, 300), user_unit=1e6),
            "a unit (UserUnit) that makes it 3e+08 points wide",
        ),
        (
            pdf_files.document(media=(0, 0, 300, 300), user_unit=0.001),
            "a unit (UserUnit) that makes it 0.3 points wide",
        ),
        (pdf_files.image_bomb(), "a picture of 50000 x 50000 pixels"),
        (
            with_handler(b"/Filter /Standard", b"/Filter /AdobeXYZ"),
            "encrypted for certificates or by a rights management",
        ),
        (with_handler(b"/V 5", b"/V 9"), "encrypted for certificates or by a rights management"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals_say_why(data: bytes, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        take(data)
    assert sentence in str(refused.value)


def test_limits_are_named() -> None:
    data = pdf_files.document("", "", "")
    with pytest.raises(Refused, match="3 pages; at most 2 are allowed"):
        take(data, limits=Limits(pages=2))
    with pytest.raises(Refused, match="larger than 0 MB"):
        take(data, limits=Limits(bytes=100))
    with pytest.raises(Refused, match="more than 5 objects"):
        take(data, limits=Limits(objects=5))


def test_a_size_that_is_no_number_is_not_replaced_by_a_guess() -> None:
    data = pdf_files.document(media=(0, 0, 612, 792)).replace(b"[ 0 0 612 792 ]", b"[0 0 1e9 1e9]  ")
    with pytest.raises(Refused, match="a size that makes no sense"):
        take(data)


def test_a_truncated_file_is_repaired_or_refused() -> None:
    data = pdf_files.document(*[pdf_files.line(f"Page {number}") for number in range(20)])
    for cut in range(100, len(data), 997):
        try:
            prepared = take(data[:cut])
        except Refused:
            continue
        assert "repaired" in codes(prepared)


def test_a_file_that_lost_what_it_refers_to_is_refused() -> None:
    data = pdf_files.document(pdf_files.line("First"), pdf_files.line("Second"))
    whole = data[: data.rindex(b"xref\n0")]
    assert texts(take(whole + b"trailer\n<< /Root 1 0 R").file) == ["First", "Second"]
    for cut in range(data.index(b"stream") + 10, len(whole) - 30, 7):
        with pytest.raises(Refused, match=r"parts of it are missing|could not be repaired|no pages"):
            take(data[:cut])


def test_a_download_that_was_interrupted_is_refused() -> None:
    """A linearized file has a trailer at its beginning: qpdf makes a document of any part of it, with fewer pages."""
    words = [pdf_files.line(f"Page {number}") for number in range(5)]
    with pikepdf.open(io.BytesIO(pdf_files.document(*words))) as pdf:
        data = pdf_files.saved(pdf, linearize=True, object_stream_mode=pikepdf.ObjectStreamMode.generate)
    for cut in range(500, len(data) - 100, 49):
        with pytest.raises(Refused, match=r"parts of it are missing|could not be repaired"):
            take(data[:cut])


def test_a_reference_to_nothing_is_no_damage() -> None:
    data = changed(
        pdf_files.document(pdf_files.line("Text")), lambda pdf: pdf.Root.__setitem__("/Extra", pdf.Root.Pages)
    )
    dangling = data.replace(b"/Extra 2 0 R", b"/Extra 9 0 R")
    assert dangling != data
    assert texts(take(dangling).file) == ["Text"]


# What is packed small


def bomb(size: int, names: list[str], *, where: str = "content") -> bytes:
    """``size`` bytes under these filters, as a page's content, a form, a picture or a font's program."""
    data = bytes(size)
    packing: dict[str, Callable[[bytes], bytes]] = {
        "FlateDecode": lambda data: zlib.compress(data, 9),
        "RunLengthDecode": lambda data: b"\x81\0" * (len(data) // 128) + b"\x80",
        "ASCIIHexDecode": lambda data: data.hex().encode() + b">",
        "LZWDecode": lambda _: lzw_of_zeros(size),
        "ASCII85Decode": lambda _: b"z" * (size // 4) + b"~>",
    }
    for name in reversed(names):
        data = packing[name](data)
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf)
    stream = pdf.make_stream(b"")
    stream.write(data, filter=Array([Name(f"/{name}") for name in names]))
    if where == "content":
        page.obj.Contents = stream
    else:
        stream.Type, stream.Subtype = Name.XObject, Name("/Image" if where == "picture" else "/Form")
        if where == "picture":
            stream.Width = stream.Height = 1
            stream.ColorSpace, stream.BitsPerComponent = Name.DeviceGray, 8
        page.obj.Resources.XObject = Dictionary(X=stream)
    return pdf_files.saved(pdf, **RAW)


def lzw_of_zeros(size: int) -> bytes:
    """Each code stands for one zero more than the one before."""
    bits, made, code, entries = "", 0, 0, 258
    bits += f"{256:09b}{0:09b}"
    made = 1
    while made < size:
        width = min(12, (entries + 1).bit_length())
        code = min(entries, 4095)
        bits += f"{code:0{width}b}"
        made += code - 256
        entries = min(entries + 1, 4096)
    bits += f"{257:012b}"
    return int(bits.ljust((len(bits) + 7) // 8 * 8, "0"), 2).to_bytes((len(bits) + 7) // 8, "big")


SMALL = Limits(streams=StreamLimits(single=1_000_000, all=3_000_000, picture=2_000_000))


@pytest.mark.parametrize(
    "filters",
    [
        ["FlateDecode"],
        ["FlateDecode", "FlateDecode"],
        ["RunLengthDecode"],
        ["FlateDecode", "RunLengthDecode"],
        ["ASCIIHexDecode", "FlateDecode"],
        ["LZWDecode"],
        ["ASCII85Decode"],
    ],
    ids="-".join,
)
@pytest.mark.parametrize("where", ["content", "form"])
def test_streams_that_expand_too_far_are_refused(filters: list[str], where: str) -> None:
    with pytest.raises(Refused, match="expands to more than"):
        take(bomb(4_000_000, filters, where=where), limits=SMALL)


def test_a_picture_is_measured_by_what_it_says_unless_it_is_packed_twice() -> None:
    assert take(bomb(4_000_000, ["FlateDecode"], where="picture"), limits=SMALL)
    with pytest.raises(Refused, match="expands to more than"):
        take(bomb(4_000_000, ["FlateDecode", "FlateDecode"], where="picture"), limits=SMALL)


def test_many_streams_count_together() -> None:
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf)
    page.obj.Contents = Array([])
    for _ in range(5):
        stream = pdf.make_stream(b"")
        stream.write(zlib.compress(bytes(900_000), 9), filter=Name.FlateDecode)
        page.obj.Contents.append(stream)
    with pytest.raises(Refused, match="The PDF expands to more than 2 MB"):
        take(pdf_files.saved(pdf, **RAW), limits=SMALL)


def test_an_object_stream_that_expands_too_far_is_refused() -> None:
    pdf = pikepdf.new()
    pdf_files.add_page(pdf, "")
    pdf.Root.Extra = pdf.make_indirect(String("x" * 3_000_000))
    data = pdf_files.saved(pdf, object_stream_mode=pikepdf.ObjectStreamMode.generate)
    assert len(data) < 10_000
    with pytest.raises(Refused):
        take(data, limits=SMALL)


def nested_forms(levels: int, times: int) -> bytes:
    pdf = pikepdf.new()
    inner = pdf.make_stream(b"0 0 1 1 re f")
    for level in range(levels):
        inner.Subtype, inner.BBox = Name.Form, Array([0, 0, 9, 9])
        outer = pdf.make_stream(b"/X Do " * times)
        outer.Resources = Dictionary(XObject=Dictionary(X=inner))
        inner = outer
        assert level < levels
    inner.Subtype, inner.BBox = Name.Form, Array([0, 0, 9, 9])
    pdf_files.add_page(pdf, "/X Do", forms={"/X": inner})
    return pdf_files.saved(pdf)


def test_forms_that_draw_each_other_are_counted() -> None:
    assert take(nested_forms(3, 10))
    with pytest.raises(Refused, match="Page 1 of the PDF draws more than 20,000 forms"):
        take(nested_forms(9, 10))


def test_a_form_that_draws_itself_is_refused() -> None:
    pdf = pikepdf.new()
    form = pdf.make_stream(b"/X Do")
    form.Subtype, form.BBox = Name.Form, Array([0, 0, 600, 800])
    form.Resources = Dictionary(XObject=Dictionary(X=form))
    pdf_files.add_page(pdf, "/X Do", forms={"/X": form})
    with pytest.raises(Refused, match="or one that draws itself"):
        take(pdf_files.saved(pdf))


def test_a_form_that_draws_itself_by_the_name_that_the_page_gave_it_is_refused() -> None:
    pdf = pikepdf.new()
    form = pdf.make_stream(b"/X Do /X Do")
    form.Subtype, form.BBox = Name.Form, Array([0, 0, 600, 800])
    pdf_files.add_page(pdf, "/X Do", forms={"/X": form})
    with pytest.raises(Refused, match="or one that draws itself"):
        take(pdf_files.saved(pdf))


def test_a_form_that_could_draw_itself_but_does_not_is_accepted() -> None:
    pdf = pikepdf.new()
    form = pdf.make_stream(b"0 0 9 9 re f")
    form.Subtype, form.BBox = Name.Form, Array([0, 0, 600, 800])
    form.Resources = Dictionary(XObject=Dictionary(X=form))
    pdf_files.add_page(pdf, "/X Do", forms={"/X": form})
    assert take(pdf_files.saved(pdf)).report == []


def test_filters_without_end_are_refused() -> None:
    with pytest.raises(Refused, match="more than 8 filters"):
        take(bomb(100, ["FlateDecode"] * 9))


# Signatures


@pytest.mark.parametrize("options", [{}, {"certified": 2}, {"certified": 3}, {"locks": "Include"}], ids=str)
def test_a_signed_file_is_left_byte_for_byte(options: dict[str, Any]) -> None:
    data = pdf_files.signed(pdf_files.document(pdf_files.line("Deal {{Name;type=text}}")), **options)
    prepared = take(data, flatten=True)
    assert prepared.signed
    assert prepared.file == data
    assert [field.name for field in prepared.fields] == ["Name"]
    assert {"signed", "tags_kept"} <= set(codes(prepared))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"certified": 1}, "its author allows no changes at all"),
        ({"locks": "All"}, "a signature locks its fields"),
        ({"locks": "Exclude"}, "a signature locks its fields"),
    ],
    ids=str,
)
def test_a_file_that_may_not_be_added_to_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        take(pdf_files.signed(pdf_files.document(), **options))


def test_a_signed_file_that_needs_repair_is_refused() -> None:
    data = pdf_files.signed(pdf_files.document(pdf_files.line("Deal")))
    for damaged in (data + b"trailing rubbish", pdf_files.broken_cross_references(data), data[:-200]):
        with pytest.raises(Refused, match=r"signed and damaged|lost a signature|could not be repaired"):
            take(damaged)


def test_scripts_of_a_signed_file_are_reported() -> None:
    data = pdf_files.signed(changed(pdf_files.document(), lambda pdf: pdf.Root.__setitem__("/OpenAction", script())))
    assert "active_content_kept" in codes(take(data))


def test_usage_rights_are_no_signature() -> None:
    def rights(pdf: pikepdf.Pdf) -> None:
        pdf.Root.Perms = Dictionary(UR3=Dictionary(Type=Name.Sig, ByteRange=Array([0, 1, 2, 3]), Contents=String("x")))

    prepared = take(changed(pdf_files.document(pdf_files.line("{{A;type=text}}")), rights))
    assert not prepared.signed
    assert codes(prepared) == ["usage_rights_removed"]
    assert b"/Perms" not in unpacked(prepared.file)
