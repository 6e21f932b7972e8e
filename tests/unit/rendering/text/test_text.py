"""Text on paper: where it stands, that it stays in its box, and that it is read back in its own order."""

import io
import re
import unicodedata
from pathlib import Path

import pikepdf
import pypdfium2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pikepdf import Dictionary

from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.sealing.verifying.reading import is_found, text_in
from services.rendering.jobs.text.layout import (
    FontEmbedder,
    Layout,
    Style,
    Undrawable,
    draw,
    layout,
    legible,
    undrawable,
)
from tests.support.rendering.drawing import picture_of, poppler_text

BOX = Rectangle(50, 60, 350, 100)
PAGE = (400.0, 160.0)

SCRIPTS = {
    "Polish": "Zażółć gęślą jaźń, Łódź",
    "Greek": "Καλημέρα κόσμε, Ελλάδα",
    "Cyrillic": "Привет, мир! Ёлка їжак",
    "Vietnamese": "Nguyễn Thị Ánh Tuyết",
    "Arabic": "مرحبا بالعالم السلام",
    "Arabic with vowels": "مُحَمَّد بن لاَمِع",
    "Arabic with digits": "رقم ١٢٣ و 456",
    "Hebrew": "שלום עולם",
    "Hebrew with points": "בְּרֵאשִׁית בָּרָא",
    "Hebrew with digits": "050-1234567 טלפון",
    "Thai": "สวัสดีชาวโลก น้ำใจ ที่นี่",
    "Devanagari": "नमस्ते दुनिया क्षत्रिय हिन्दी",
    "Bengali": "আমার সোনার বাংলা",
    "Tamil": "தமிழ் மொழி",
    "Khmer": "ភាសាខ្មែរ",
    "Myanmar": "မြန်မာဘာသာ",
    "Tibetan": "བོད་ཡིག",
    "Georgian and Armenian": "ქართული Հայերեն",
    "Amharic": "አማርኛ",
    "Chinese": "你好，世界。王小明",
    "Japanese": "こんにちは世界、東京タワー",
    "Korean": "안녕하세요 세계 홍길동",
    "Symbols": "✓ ☎ → ∑ ♫ ★ ½ € £ ₹ ₽ № © ®",
    "Emoji": "😀 👍 🎉 ok",
    "Letters with marks": "q̌ x̱̄ Z̤",
    "Mathematical letters": "𝒜𝓑 𝔻",
}


def drawn(placed: Layout, box: Rectangle = BOX) -> bytes:
    pdf = pikepdf.new()
    page = pdf.add_blank_page(page_size=PAGE)
    embedder = FontEmbedder(pdf)
    page.obj.Contents = pdf.make_stream(draw(placed, box.left, box.bottom, embedder))
    page.obj.Resources = Dictionary(Font=embedder.resources)
    embedder.finish()
    out = io.BytesIO()
    pdf.save(out)
    return out.getvalue()


def read(data: bytes, box: Rectangle = BOX) -> str:
    document = pypdfium2.PdfDocument(data)
    try:
        return text_in(document[0].get_textpage(), box, 0)
    finally:
        document.close()


def squeezed(text: str) -> str:
    """Canonical, without blanks and direction marks."""
    normal = unicodedata.normalize("NFC", text)
    return "".join(c for c in normal if not c.isspace() and unicodedata.category(c) not in {"Cf", "Cc"})


def ink_of(data: bytes, scale: float = 4) -> Rectangle:
    """Around everything that is not white, in points, origin bottom left."""
    picture = picture_of(data, scale=scale).convert("L").point(lambda value: 255 if value < 200 else 0)
    box = picture.getbbox()
    assert box is not None, "nothing was drawn"
    return Rectangle(box[0] / scale, PAGE[1] - box[3] / scale, box[2] / scale, PAGE[1] - box[1] / scale)


@pytest.mark.parametrize("family", ["Helvetica", "Times"])
@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_text_is_read_back_in_reading_order(text: str, family: str, tmp_path: Path) -> None:
    data = drawn(layout(text, Style(family=family, size=16), BOX.width, BOX.height))
    assert squeezed(read(data)) == squeezed(text)
    assert squeezed(poppler_text(data, tmp_path)) == squeezed(text)


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS.keys())
@pytest.mark.parametrize("width", [300, 90])
def test_ink_stays_in_the_box(text: str, width: float) -> None:
    placed = layout(text, Style(size=24), width, BOX.height)
    assert placed.fits
    ink = ink_of(drawn(placed))
    # What italics and swashes of some scripts reach beyond their advance; fields keep a margin for it.
    assert ink.left >= BOX.left - 1.5
    assert ink.right <= BOX.left + width + 1.5
    assert ink.bottom >= BOX.bottom - 0.3
    assert ink.top <= BOX.top + 0.3


@pytest.mark.parametrize(
    "text",
    [
        "שלום עולם (Acme Ltd. 12) סוף",
        "Acme Ltd. (שלום) end",
        "دفع 1,234.50 USD (ACME)",
        "שלום 😀 john@x.com",
        "“שלום” ⟨12⟩",
    ],
)
def test_nothing_is_lost_where_directions_meet(text: str, tmp_path: Path) -> None:
    data = drawn(layout(text, Style(size=12), BOX.width, BOX.height))
    assert is_found(text, read(data))
    assert is_found(text, poppler_text(data, tmp_path))


def test_the_latin_word_stands_left_of_the_hebrew_one_that_comes_first(tmp_path: Path) -> None:
    data = drawn(layout("שלום ACME 12", Style(size=12), BOX.width, BOX.height))
    words = _words(data, tmp_path)
    # This mode of pdftotext gives letters as they stand, from left to right.
    assert words["ACME"].right < words["12"].left < words["12"].right < words["שלום"[::-1]].left


def _words(data: bytes, tmp_path: Path) -> dict[str, Rectangle]:
    """Words with their boxes (origin bottom left), as pdftotext sees them."""
    html = poppler_text(data, tmp_path, "-bbox")
    found = re.findall(r'<word xMin="([\d.]+)" yMin="([\d.]+)" xMax="([\d.]+)" yMax="([\d.]+)">([^<]+)</word>', html)
    return {
        squeezed(word): Rectangle(float(left), PAGE[1] - float(bottom), float(right), PAGE[1] - float(top))
        for left, top, right, bottom, word in found
    }


@pytest.mark.parametrize(
    ("text", "align", "side"),
    [
        ("Ana", None, "left"),
        ("Ana", "right", "right"),
        ("Ana", "center", "middle"),
        ("שלום", None, "right"),
        ("سلام", None, "right"),
        ("שלום", "left", "left"),
        ("12 שלום", None, "right"),
        ("ACME שלום", None, "left"),
    ],
)
def test_alignment(text: str, align: str | None, side: str) -> None:
    ink = ink_of(drawn(layout(text, Style(size=12, align=align), BOX.width, BOX.height)))
    left, right = ink.left - BOX.left, BOX.right - ink.right
    match side:
        case "left":
            assert left < 2 < 200 < right
        case "right":
            assert right < 2 < 200 < left
        case _:
            assert abs(left - right) < 2


@pytest.mark.parametrize("valign", ["top", "center", "bottom"])
def test_vertical_alignment(valign: str) -> None:
    ink = ink_of(drawn(layout("Happy", Style(size=12, valign=valign), BOX.width, BOX.height)))
    above, below = BOX.top - ink.top, ink.bottom - BOX.bottom
    match valign:
        case "top":
            assert above < 4 < 20 < below
        case "bottom":
            assert below < 4 < 20 < above
        case _:
            assert abs(above - below) < 3


def test_baselines_are_the_same_whatever_the_letters() -> None:
    lines = [layout(text, Style(size=11), 200, 18).lines[0].baseline for text in ("ace", "Ágy", "HH", "...")]
    assert len(set(lines)) == 1


def test_a_little_too_long_shrinks_on_one_line() -> None:
    placed = layout("Maximiliane Mustermann", Style(size=12), 110, 40)
    assert len(placed.lines) == 1
    assert 9 < placed.size < 12


def test_much_too_long_is_wrapped_between_words() -> None:
    placed = layout("A rather long value that needs more than one line here", Style(size=11), 120, 60)
    assert placed.fits
    assert len(placed.lines) > 1
    texts = ["".join(cluster.text for cluster in line.clusters) for line in placed.lines]
    assert " ".join(texts) == "A rather long value that needs more than one line here"


def test_a_size_that_was_asked_for_is_kept_by_wrapping() -> None:
    placed = layout("Fourteen points were asked for", Style(size=14, exact_size=True), 120, 60)
    assert placed.size == 14
    assert len(placed.lines) == 2


def test_words_are_made_smaller_rather_than_cut() -> None:
    placed = layout("Unternehmensberatung GmbH", Style(size=14), 95, 40)
    assert ["".join(c.text for c in line.clusters) for line in placed.lines] == ["Unternehmensberatung", "GmbH"]


def test_a_word_too_long_for_any_line_is_cut() -> None:
    text = "x" * 200
    placed = layout(text, Style(size=11), 80, 80)
    assert placed.fits
    assert "".join(c.text for line in placed.lines for c in line.clusters) == text


def test_chinese_breaks_between_characters_but_never_before_a_full_stop() -> None:
    placed = layout("一二三四五六七八九。十", Style(size=10, exact_size=True), 90, 40)
    assert ["".join(c.text for c in line.clusters) for line in placed.lines] == ["一二三四五六七八", "九。十"]


@pytest.mark.parametrize("mark", ["\u3099", "゛", "ﾞ", "\u0302"])
@pytest.mark.parametrize("word", ["一二三四五六七八", "Donaudampf"])
def test_a_mark_never_begins_a_line(word: str, mark: str) -> None:
    for width in range(20, 120, 3):
        placed = layout(f"{word}{mark}九十" * 2, Style(size=10, exact_size=True), width)
        assert not [line for line in placed.lines if "".join(c.text for c in line.clusters).startswith(mark)]


def test_a_skin_tone_is_no_square_beside_its_hand() -> None:
    """Outlines have no colour for it."""
    [line] = layout("👍🏽\ufe0e👍🏿\ufe0e ok", Style(size=20)).lines
    assert [(cluster.text, len(cluster.glyphs)) for cluster in line.clusters[:2]] == [
        ("👍🏽\ufe0e", 1),
        ("👍🏿\ufe0e", 1),
    ]
    assert line.clusters[0].glyphs == line.clusters[1].glyphs


def test_line_breaks_are_kept() -> None:
    placed = layout("Street 12\r\n1010 Vienna\nAustria", Style(size=10), 200, 60)
    assert len(placed.lines) == 3
    assert placed.lines[0].baseline > placed.lines[1].baseline > placed.lines[2].baseline


def test_what_does_not_fit_says_so() -> None:
    placed = layout("word " * 400, Style(size=11), 60, 20)
    assert not placed.fits
    assert placed.size == pytest.approx(4)


def test_without_a_height_nothing_shrinks() -> None:
    placed = layout("A text that is much wider than the column it stands in", Style(size=11), 100)
    assert placed.size == 11
    assert placed.height == pytest.approx(len(placed.lines) * 11 * 1.2, rel=0.1)
    assert layout("Ana", Style(size=10)).width == pytest.approx(17.79, abs=0.01)


def test_undrawable_characters_are_named() -> None:
    with pytest.raises(Undrawable, match=r"\(U\+0007\), '\u0860' \(U\+0860 SYRIAC LETTER MALAYALAM NGA\)") as caught:
        layout("a\x07b\u0860", Style())
    assert caught.value.characters == ["\x07", "\u0860"]
    assert legible("a\x07b\u0860") == "a\ufffdb\ufffd"


def test_an_override_cannot_turn_a_sum_around(tmp_path: Path) -> None:
    data = drawn(layout("pay \u202e001\u202c EUR", Style(size=12), BOX.width, BOX.height))
    assert squeezed(poppler_text(data, tmp_path)) == "pay001EUR"


def test_a_font_is_embedded_once_and_only_what_is_used_of_it() -> None:
    pdf = pikepdf.new()
    embedder = FontEmbedder(pdf)
    for text in ("Ana", "Anna", "Bob"):
        draw(layout(text, Style()), 0, 0, embedder)
    embedder.finish()
    assert list(embedder.resources) == ["/F1"]
    descendant = embedder.resources["/F1"].DescendantFonts[0]
    assert len(descendant.W[1]) == len(set("AnaBob"))
    assert len(descendant.FontDescriptor.FontFile2.read_bytes()) < 3000
    assert re.fullmatch(r"/[A-Z]{6}\+LiberationSans-Regular", str(descendant.BaseFont))


def test_the_same_glyph_is_read_back_as_what_was_written(tmp_path: Path) -> None:
    # Both are the same glyph in Liberation; a code of its own keeps them apart.
    data = drawn(layout("Ω \u2126", Style(size=12), BOX.width, BOX.height))
    # The Ohm sign is canonically an Omega: normalised before it is drawn.
    assert squeezed(poppler_text(data, tmp_path)) == "ΩΩ"
    data = drawn(layout("10\u00a0000", Style(size=12), BOX.width, BOX.height))
    assert read(data) in {"10\u00a0000", "10 000"}


LETTERS = {
    "Latin": ("abcxyzABCÄÖÜßąćęłńóśźżçğışøåñőű", ""),
    "Greek": ("αβγδΩΨάέήίόύώ", ""),
    "Cyrillic": ("абвгдЖЩЪЫЭЮЯїєґў", ""),
    "Hebrew": ("אבגדהוזחטיכלמנסעפצקרשת", "\u05b0\u05b8\u05bc"),
    "Arabic": ("ابتثجحخدذرزسشصضطظعغفقكلمنهوي", "\u064e\u064f\u0651"),
    "Thai": ("กขคงจชซญดตถทนบปผพภมยรลวสหอ", "\u0e34\u0e35\u0e48\u0e49"),
    "Devanagari": ("कखगघचछजझटठडढणतथदधनपफबभमयरलवशषसह", "\u093e\u093f\u0940\u094d\u0902"),
    "Bengali": ("কখগঘচছজঝটঠডঢণতথদধনপফবভমযরল", "\u09be\u09bf\u09c0\u09cd"),
    "Chinese": ("一二三四五六七八九十王小明国際你好世界", ""),
    "Kana": ("あいうえおかきくけこアイウエオカキクケコ", ""),
    "Hangul": ("가나다라마바사아자차카타파하홍길동", ""),
    "Signs": ("0123456789.,;:!?-/&@#%()[]€$£+=*'\"", ""),
    "Emoji": ("😀👍🎉🚗🏠", ""),
}


@st.composite
def words(draw_: st.DrawFn) -> str:
    letters, marks = LETTERS[draw_(st.sampled_from(sorted(LETTERS)))]
    parts = draw_(st.lists(st.tuples(st.sampled_from(letters), st.sampled_from(["", *marks])), min_size=1, max_size=9))
    return "".join(letter + mark for letter, mark in parts)


@given(st.lists(words(), min_size=1, max_size=5).map(" ".join), st.sampled_from(["Helvetica", "Times", "Courier"]))
@settings(max_examples=150, deadline=None)
def test_whatever_can_be_drawn_is_found_again(text: str, family: str) -> None:
    assert undrawable(text) == []
    placed = layout(text, Style(family=family, size=12), BOX.width, BOX.height)
    assert placed.fits
    assert is_found(text, read(drawn(placed)))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
@settings(max_examples=200, deadline=None)
def test_any_text_is_drawn_or_its_characters_are_named(text: str) -> None:
    bad = undrawable(text)
    if bad:
        with pytest.raises(Undrawable) as caught:
            layout(text, Style(), 200, 40)
        assert caught.value.characters == bad
    else:
        drawn(layout(text, Style(), 200, 40))


def test_every_format_character_is_drawn_or_named() -> None:
    """Some are invisible to Unicode and not to HarfBuzz: what is said to be drawable must be."""
    for character in filter(lambda one: unicodedata.category(one) == "Cf", map(chr, range(0x110000))):
        if undrawable(character):
            with pytest.raises(Undrawable):
                layout(character, Style(), 200, 40)
        else:
            layout(character, Style(), 200, 40)


def test_a_blank_value_is_not_found() -> None:
    assert is_found("Ana", "Name: Ana ____")
    assert not is_found("Ana", "")
    assert not is_found("Anna", "Ana")
    assert not is_found("12", "1")
    assert is_found("“a”", "”a“")
    assert not is_found("✔", "")


def test_emoji_are_in_colour_and_read_as_they_were_written(tmp_path: Path) -> None:
    """Also those of several characters: a skin tone, a flag, a family, the frame of a key."""
    text = "Yes 😀 👍🏽 🇵🇱 👨‍👩‍👧 1️⃣ ok"
    data = drawn(layout(text, Style(size=14), BOX.width, BOX.height))
    [hue, strength, _] = picture_of(data, scale=4).convert("HSV").split()
    colors = hue.histogram(strength.point(lambda value: 255 * (value > 100)))
    assert sum(count > 20 for count in colors) > 20
    assert squeezed(read(data)) == squeezed(text)
    assert squeezed(poppler_text(data, tmp_path)) == squeezed(text)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        [kind] = [font.Subtype for font in pdf.pages[0].Resources.Font.values() if font.Subtype == "/Type3"]
        assert kind == "/Type3"


def test_a_text_with_more_emoji_than_a_font_of_pictures_has_codes(tmp_path: Path) -> None:
    emoji = [chr(code) for code in range(0x1F300, 0x1F52F) if unicodedata.east_asian_width(chr(code)) == "W"]
    assert len(emoji) > 300
    data = drawn(layout("".join(emoji) * 2, Style(size=6), BOX.width, BOX.height))
    assert squeezed(poppler_text(data, tmp_path)) == "".join(emoji) * 2
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert len(pdf.pages[0].Resources.Font) == 2, "each picture is in the file once"
