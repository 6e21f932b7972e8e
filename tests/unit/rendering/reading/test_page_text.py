"""The text of pages: the words that poppler finds, in their places, in the order in which they are seen; and nothing that the
picture does not show."""

import io
import subprocess
from pathlib import Path

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name
from PIL import Image
from weasyprint import HTML

from services.rendering.jobs.pdf.geometry import visible_page
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.reading import page_text
from services.rendering.jobs.reading.page_text import read_pages
from services.rendering.protocol.messages import ReadPage
from tests.support.files import pdf_files
from tests.support.files.pdf_files import filled_rectangle, line
from tests.support.judges.documents.poppler_text import FoundWord, words_of

NEAR = 2.0
TAGGED = """<html lang="de-AT"><body><h1>Rental agreement</h1><p>Between <b>Ann Ray</b> and the landlord, for ten years.</p>
<h2>Duties</h2><ul><li>To pay the rent</li><li>To keep the house</li></ul>
<table><tr><th>Month</th><th>Rent</th></tr><tr><td>May</td><td>700 euros</td></tr></table>
<img alt="A plan of the house" src="data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>">
</body></html>"""


def page_of(data: bytes) -> ReadPage:
    return read_pages(data, 1)[1][0]


def told(page: ReadPage) -> str:
    return " ".join(word[4] for block in page.blocks for entry in block.lines for word in entry.words)


def along(word: FoundWord, angle: int) -> tuple[float, float]:
    """Where the word begins and ends in the direction of its line."""
    return (word.top, word.bottom) if angle % 180 else (word.left, word.right)


def blocks(page: ReadPage) -> list[tuple[str, str]]:
    return [(block.kind, " ".join(w[4] for entry in block.lines for w in entry.words)) for block in page.blocks]


def columns() -> str:
    left = [line(f"left {number} of a column of text that is wide", 50, 600 - 14 * number) for number in range(9)]
    right = [line(f"right {number} of a column of text that is wide", 330, 600 - 14 * number) for number in range(9)]
    return "".join(left + right)


PAGES = {
    "upright": pdf_files.document(line("The quick brown fox") + line("jumps over 13 lazy dogs.", y=680)),
    "turned": pdf_files.document(line("The quick brown fox"), rotate=90),
    "cropped": pdf_files.document(line("inside") + line("outside", y=20), crop=(50, 300, 600, 780)),
    "moved": pdf_files.document(line("far away", x=1072, y=1700), media=(1000, 1000, 1612, 1792)),
    "columns": pdf_files.document(columns()),
}


@pytest.mark.parametrize("name", PAGES)
def test_words_stand_where_poppler_finds_them(name: str) -> None:
    data = PAGES[name]
    page = page_of(data)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        visible = visible_page(pdf.pages[0])
    found = [(word, entry.angle) for block in page.blocks for entry in block.lines for word in entry.words]
    expected = [word for word in words_of(data) if word.right > 0 and word.top < visible.height]
    assert sorted(word[4] for word, _ in found) == sorted(word.text for word in expected)
    for (left, top, width, height, text), angle in found:
        across = [left * visible.width / 10_000, (left + width) * visible.width / 10_000]
        down = [top * visible.height / 10_000, (top + height) * visible.height / 10_000]
        place = down if angle % 180 else across
        assert any(
            word.text == text
            and abs((word.left + word.right) / 2 - sum(across) / 2) < 2 * NEAR
            and abs((word.top + word.bottom) / 2 - sum(down) / 2) < 2 * NEAR
            and all(abs(a - b) < NEAR for a, b in zip(place, along(word, angle), strict=True))
            for word in expected
        ), text


HIDDEN = {
    "white": "1 1 1 rg " + line("not") + "0 g ",
    "nearly white": "0.95 g " + line("not") + "0 g ",
    "render mode 3": "3 Tr " + line("not") + "0 Tr ",
    "beyond the page": line("not", x=-400),
    "under a picture": line("not", y=500) + filled_rectangle(60, 480, 200, 40),
    "red on red": filled_rectangle(60, 480, 200, 40) + "1 0 0 rg " + line("not", y=500) + "0 g ",
    "clipped away": "q 0 0 5 5 re W n " + line("not") + " Q ",
    "clear as glass": "q /Clear gs " + line("not") + " Q ",
    "behind other words": "1 1 1 rg " + line("not", y=650) + "0 g ",
    "tiny": line("not", size=0.3),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_not_seen_is_not_read(name: str) -> None:
    """Every way to hide a word that we know: the eye reads "We shall pay", and so does the ear."""
    with pikepdf.open(io.BytesIO(pdf_files.document(HIDDEN[name] + line("We shall pay", y=650)))) as pdf:
        pdf.pages[0].obj.Resources.ExtGState = Dictionary(Clear=Dictionary(ca=0, CA=0))
        page = page_of(pdf_files.saved(pdf))
    assert told(page) == "We shall pay"
    assert page.hidden == 3


def test_a_part_of_a_word_that_is_covered_is_not_read() -> None:
    page = page_of(pdf_files.document(line("cannot") + "1 1 1 rg 92 690 40 30 re f 0 g"))
    assert told(page) == "can"


def test_other_words_behind_those_that_are_seen_are_not_read() -> None:
    """In the same place, and drawn before: only what is drawn over them is seen."""
    over = "1 1 1 rg 60 690 300 30 re f 0 g " + line("Pay 9000 euros")
    page = page_of(pdf_files.document(line("Pay 1000 euros") + over))
    assert "1000" not in told(page)
    assert "9" in told(page)


def test_what_replaces_text_is_not_read() -> None:
    """/ActualText may say anything."""
    content = "/Span <</ActualText (nothing at all)>> BDC " + line("9000 euros") + " EMC"
    assert told(page_of(pdf_files.document(content))) == "9000 euros"


def test_words_of_annotations_are_read_and_what_lies_under_them_is_not() -> None:
    with pikepdf.open(io.BytesIO(pdf_files.document(line("We shall not pay")))) as pdf:
        look = pdf.make_stream(b"1 g 0 0 200 30 re f 0 g BT /F1 12 Tf 2 10 Td (They shall pay) Tj ET")
        look.Type, look.Subtype, look.BBox = Name.XObject, Name.Form, Array([0, 0, 200, 30])
        look.Resources = Dictionary(Font=Dictionary(F1=pdf_files.standard_font(pdf, "Helvetica")))
        note = Dictionary(
            Type=Name.Annot, Subtype=Name.Stamp, Rect=Array([70, 690, 270, 720]), AP=Dictionary(N=look), F=4
        )
        pdf.pages[0].obj.Annots = Array([pdf.make_indirect(note)])
        page = page_of(pdf_files.saved(pdf))
    assert told(page) == "They shall pay"


def test_parts_of_a_tagged_file_as_poppler_tells_them(tmp_path: Path) -> None:
    data = HTML(string=TAGGED).write_pdf(pdf_variant="pdf/ua-1")
    language, (page,) = read_pages(data, 1)
    assert language == "de-AT"
    assert blocks(page) == [
        ("h1", "Rental agreement"),
        ("p", "Between Ann Ray and the landlord, for ten years."),
        ("h2", "Duties"),
        ("li", "• To pay the rent"),
        ("li", "• To keep the house"),
        ("th", "Month"),
        ("th", "Rent"),
        ("td", "May"),
        ("td", "700 euros"),
    ]
    cells = [(block.group, block.row) for block in page.blocks if block.kind in ("th", "td")]
    assert cells[0] == cells[1] != cells[2] == cells[3]
    assert len({group for group, _ in cells}) == 1
    assert page.pictures == ["A plan of the house"]
    (tmp_path / "tagged.pdf").write_bytes(data)
    command = ["pdfinfo", "-struct-text", str(tmp_path / "tagged.pdf")]
    judge = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.decode()
    assert [kind.upper() for kind in ("h1", "h2", "li", "li", "th", "th", "td", "td")] == [
        word for word in judge.replace(":", " ").split() if word in ("H1", "H2", "LI", "TH", "TD")
    ]
    spoken = " ".join(part for part in judge.split('"')[1::2])
    assert all(word in spoken for _, text in blocks(page) for word in text.split())


def test_words_on_a_slant() -> None:
    page = page_of(
        pdf_files.document("BT /F1 12 Tf 0.866 0.5 -0.5 0.866 200 300 Tm (Slanted words) Tj ET " + line("flat"))
    )
    assert [(entry.angle, [word[4] for word in entry.words]) for block in page.blocks for entry in block.lines] == [
        (-30, ["Slanted", "words"]),
        (0, ["flat"]),
    ]


def test_columns_are_read_one_after_the_other() -> None:
    words = told(page_of(PAGES["columns"]))
    assert words.index("left 8") < words.index("right 0")


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_sentences_in_any_order_are_read_from_top_to_bottom(order: tuple[int, ...]) -> None:
    """Programs draw the foot of a page first; a sender may want "not" to be read elsewhere."""
    lines = ["We shall", "not pay", "before May.", "Page 1"]
    drawn = "".join(line(lines[number], y=700 - 60 * number) for number in order)
    assert told(page_of(pdf_files.document(drawn))) == "We shall not pay before May. Page 1"


def test_what_is_left_out_of_the_tags_is_read_too() -> None:
    data = HTML(string=TAGGED).write_pdf(pdf_variant="pdf/ua-1")
    with pikepdf.open(io.BytesIO(data)) as pdf:
        page = pdf.pages[0]
        page.contents_add(pdf.make_stream(line("but only if it rains", x=300, y=20).encode()), prepend=True)
        page.obj.Resources.Font["/F1"] = pdf_files.standard_font(pdf, "Helvetica")
        assert told(page_of(pdf_files.saved(pdf))).endswith("but only if it rains")


def test_letters_from_right_to_left_and_from_top_to_bottom() -> None:
    html = "<p dir=rtl lang=ar>اتفاقية الإيجار</p><p style='font-family:\"Noto Sans CJK JP\"'>日本語</p>"
    assert told(page_of(HTML(string=html).write_pdf())) == "اتفاقية الإيجار 日本語"
    stacked = "".join(
        f"<p style='position:absolute;top:{number * 20}pt;margin:0;font:16pt/20pt \"Noto Sans CJK JP\"'>{letter}</p>"
        for number, letter in enumerate("縦書き")
    )
    page = page_of(HTML(string=stacked).write_pdf())
    (entry,) = page.blocks[0].lines
    assert (told(page), entry.vertical) == ("縦書き", True)


def scan(words: str = "") -> bytes:
    pdf = pikepdf.new()
    page = pdf_files.add_page(pdf, "q 612 0 0 792 0 0 cm /Scan Do Q 3 Tr " + (line(words) if words else ""))
    picture = pdf.make_stream(Image.linear_gradient("L").tobytes())
    picture.Type, picture.Subtype, picture.ColorSpace = Name.XObject, Name.Image, Name.DeviceGray
    picture.Width, picture.Height, picture.BitsPerComponent = 256, 256, 8
    page.obj.Resources.XObject = Dictionary(Scan=picture)
    return pdf_files.saved(pdf)


def test_a_scan_says_that_it_is_a_picture() -> None:
    page = page_of(scan())
    assert (page.kind, page.words, page.recognised) == ("picture", 0, "")


def test_recognised_words_of_a_scan_are_told_apart() -> None:
    page = page_of(scan("Words of a program"))
    assert (page.kind, told(page), page.recognised) == ("picture", "", "Words of a program")


def test_a_blank_page_and_one_with_letters_as_shapes() -> None:
    assert page_of(pdf_files.document("")).kind == "blank"
    assert page_of(pdf_files.document(filled_rectangle(100, 100, 300, 300))).kind == "picture"


def test_large_documents_are_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pdf_files.document(*[line(f"page {number}") for number in range(1, 501)])
    first, last = read_pages(data, 1)[1], read_pages(data, 495)[1]
    assert [page.number for page in first] == list(range(1, 11))
    assert [told(page) for page in last] == [f"page {number}" for number in range(495, 501)]
    seconds = iter(range(0, 1000, 4))
    assert [page.number for page in read_pages(data, 7, lambda: next(seconds))[1]] == [7, 8]
    monkeypatch.setattr(page_text, "_MOST_WORDS", 3)
    assert [page.number for page in read_pages(data, 3)[1]] == [3, 4]
    for missing in (0, 501):
        with pytest.raises(Refused, match="has no page"):
            read_pages(data, missing)


def test_pages_with_more_words_than_anybody_reads() -> None:
    lines = [line(" ".join(["word"] * 100), 20, 780 - 7 * row, size=2) for row in range(100)]
    full = pdf_files.document("".join(lines))
    assert page_of(full).words == 10_000
    too_many = pdf_files.document("".join(lines) * 3)
    assert page_of(too_many).kind in ("too_long", "text")
    endless = pdf_files.document("".join(line("a " * 400, 20, 780 - row, size=1) for row in range(700)))
    assert page_of(endless).kind == "too_long"
    assert page_of(endless).blocks == ()


def test_control_characters_and_those_that_turn_others_are_left_out() -> None:
    html = "<p>pay \u202e0009\u202c euros\u200b</p>"
    assert not set(told(page_of(HTML(string=html).write_pdf()))) & set("\u202e\u202c\u200b")
