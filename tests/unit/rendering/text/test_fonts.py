"""Which font draws which character, and what no font can draw."""

import itertools
import unicodedata
from collections.abc import Iterator

import pytest

from services.rendering.jobs.text import fonts
from services.rendering.jobs.text.fonts import Face
from services.rendering.jobs.text.shaping import paragraphs


@pytest.fixture
def font_dirs(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The environment may be changed; what was found before and after is forgotten."""
    fonts.reset()
    yield monkeypatch
    monkeypatch.undo()
    fonts.reset()


@pytest.mark.parametrize(
    ("face", "name"),
    [
        (Face("Times"), "LiberationSerif-Regular"),
        (Face("Helvetica"), "LiberationSans-Regular"),
        (Face("Courier"), "LiberationMono-Regular"),
        (Face("Times", bold=True), "LiberationSerif-Bold"),
        (Face("Helvetica", italic=True), "LiberationSans-Italic"),
        (Face("Courier", bold=True, italic=True), "LiberationMono-BoldItalic"),
        (Face(fonts.SCRIPT_FAMILY), "DancingScript-Regular"),
    ],
)
def test_families_are_drawn_with_fonts_of_the_same_metrics(face: Face, name: str) -> None:
    assert fonts.primary(face).name == name


def test_widths_are_those_of_helvetica() -> None:
    font = fonts.primary(Face("Helvetica"))
    # Adobe's metrics of Helvetica: A 667, i 222, W 944, space 278.
    assert [font.advance(font.glyph(character)) for character in "AiW "] == [667, 222, 944, 278]


def test_every_emoji_can_be_drawn() -> None:
    blocks = [(0x2600, 0x27BF), (0x1F300, 0x1F64F), (0x1F680, 0x1F6FF), (0x1F7E0, 0x1F7EB), (0x1F900, 0x1FAFF)]
    emoji = "".join(chr(code) for first, last in blocks for code in range(first, last + 1))
    known = "".join(one for one in emoji if unicodedata.category(one) != "Cn")
    assert len(known) > 1_700
    assert fonts.undrawable(known) == []


@pytest.mark.parametrize(
    ("character", "face", "name"),
    [
        ("ł", Face(), "LiberationSans-Regular"),
        ("ấ", Face(), "NotoSans-Regular"),
        ("ấ", Face("Times", bold=True), "NotoSerif-Bold"),
        ("ש", Face(), "NotoSansHebrew-Regular"),
        ("ש", Face("Times"), "NotoSerifHebrew-Regular"),
        ("ش", Face(), "NotoSansArabic-Regular"),
        ("ش", Face("Times"), "NotoNaskhArabic-Regular"),
        ("ش", Face(bold=True), "NotoSansArabic-Bold"),
        ("ไ", Face(), "NotoSansThai-Regular"),
        ("हि", Face(), "NotoSansDevanagari-Regular"),
        ("བ", Face(), "NotoSerifTibetan-Regular"),
        ("☎", Face(), "NotoSansSymbols2-Regular"),
        ("😀", Face(), "NotoColorEmoji"),
        ("👍🏽", Face(), "NotoColorEmoji"),
        ("🇵🇱", Face(), "NotoColorEmoji"),
        ("1\ufe0f\u20e3", Face(), "NotoColorEmoji"),
        ("☎\ufe0f", Face(), "NotoColorEmoji"),
        ("😀\ufe0e", Face(), "Symbola_hint"),
        ("🫨", Face(), "unifont_upper"),
    ],
)
def test_each_script_has_its_font(character: str, face: Face, name: str) -> None:
    font = fonts.font_for(character, face)
    assert font is not None
    assert font.name == name
    assert font.has("".join(one for one in character if not fonts.is_invisible(one)))


@pytest.mark.parametrize(
    ("text", "language", "index"),
    [
        ("直", "ja-JP", 0),
        ("直", "ko", 1),
        ("直", "zh-CN", 2),
        ("直", "zh-TW", 3),
        ("直", "en-US", 2),
        ("ひ", "zh-CN", 0),
        ("한", "", 1),
    ],
)
def test_the_language_decides_between_the_shapes_of_a_han_character(text: str, language: str, index: int) -> None:
    font = fonts.font_for(text, Face(language=language))
    assert font is not None
    assert font.name == ("NotoSansCJK-Regular" if index == 0 else f"NotoSansCJK-Regular-{index}")


def test_a_name_is_drawn_in_one_font() -> None:
    # Liberation has all of it but one letter.
    assert fonts.western_font("Nguyễn", Face()).name == "NotoSans-Regular"
    assert fonts.western_font("Kowalska", Face()).name == "LiberationSans-Regular"


def test_undrawable_names_each_character_once_in_order() -> None:
    assert fonts.undrawable("a\x07b\ue000c\x07\u0860\U0010ffff") == ["\x07", "\ue000", "\u0860", "\U0010ffff"]


@pytest.mark.parametrize(
    "text", ["", "two\nlines\r\n\tand a tab", "a\u200db\u200e\u200f\u2066c\u2069\u00ad\ufeff\ufe0f", "\u2028", "\u2003"]
)
def test_line_breaks_tabs_and_format_characters_can_be_drawn(text: str) -> None:
    assert fonts.undrawable(text) == []


@pytest.mark.parametrize("blank", ["\u3164", "\uffa0", "\u115f", "\u2800"])
def test_letters_that_are_blank_are_refused(blank: str) -> None:
    assert fonts.undrawable(f"Ann {blank}") == [blank]


def test_lone_surrogates_are_refused() -> None:
    assert fonts.undrawable("\ud83d") == ["\ud83d"]


def test_missing_fonts_are_named(font_dirs: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    font_dirs.setenv("FONT_DIRS", str(tmp_path_factory.mktemp("no-fonts")))
    fonts.reset()
    with pytest.raises(fonts.FontsMissing, match="fonts-liberation"):
        fonts.primary(Face())


def test_font_dirs_replaces_the_usual_places(font_dirs: pytest.MonkeyPatch) -> None:
    font_dirs.setenv("FONT_DIRS", "/usr/share/fonts/truetype/liberation")
    fonts.reset()
    assert fonts.undrawable("Łódź 王") == ["王"]


def hands(name: str) -> list[str]:
    """The fonts of a typed signature, each time that another begins."""
    used = [one.font.name for line in paragraphs(name, Face(fonts.SCRIPT_FAMILY)) for one in line.clusters]
    return [font for font, _ in itertools.groupby(used)]


@pytest.mark.parametrize(
    ("name", "font"),
    [
        ("Łukasz Őry-Szőcs", "DancingScript-Regular"),
        ("Nguyễn Thị Phượng", "DancingScript-Regular"),
        ("Юлія Ђорђевић", "Caveat-Regular"),
        ("Αλεξάνδρα", "Mynerve-Regular"),
        ("प्रिया शर्मा", "Kalam-Regular"),
        ("ณัฐพงศ์ ใจดี", "Charm-Regular"),
        ("محمد علی\u200cرضا", "ArefRuqaa-Regular"),
        ("שרה הלוי", "GveretLevin-Regular"),
        ("田中さくら", "KleeOne-Regular"),
        ("张伟", "ZhiMangXing-Regular"),
        ("김민준", "NanumPenScript-Regular"),
        # Latin letters beside others are written in the font of the others.
        ("Łukasz Коваль", "Caveat-Regular"),
        ("Anna Παπάς", "Mynerve-Regular"),
        ("Priya शर्मा", "Kalam-Regular"),
        ("Kim 田中", "KleeOne-Regular"),
    ],
)
def test_a_typed_signature_is_written_in_one_hand_that_has_all_of_it(name: str, font: str) -> None:
    assert hands(name) == [font]


def test_a_word_of_a_typed_signature_is_in_one_font_when_no_hand_has_all_of_it() -> None:
    assert hands("Björn 김 Иванов") == ["DancingScript-Regular", "NanumPenScript-Regular", "Caveat-Regular"]
    assert hands("Ivánka 😀 Őry") == ["DancingScript-Regular", "NotoColorEmoji", "DancingScript-Regular"]
    assert hands("Ἀριστοτέλης") == ["NotoSerif-Italic"]


def test_hands_are_for_signatures_only() -> None:
    """What Noto lacks is not drawn as from a hand."""
    drawn = {
        one.font.name for text in ("Łódź 王 김 ש", "😀") for line in paragraphs(text, Face()) for one in line.clusters
    }
    assert not drawn & set(fonts.HANDS)
