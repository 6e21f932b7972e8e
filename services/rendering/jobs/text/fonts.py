"""The fonts that text is drawn with, and which of them has which character.

Times, Helvetica and Courier are drawn with the Liberation fonts, whose glyphs have the same widths. What those lack
falls back to Noto (one font for each script), Noto CJK, and Symbola for symbols; emoji are Noto's coloured pictures, or
else Symbola's and Unifont's outlines, so that a text is never drawn with a blank in it: ``undrawable`` names the characters
that no font has. All of these are Debian packages (they stand in the Dockerfile); ``FONT_DIRS`` (folders, separated by ``:``)
replaces the places where they are looked for. The fonts of typed signatures and the coloured emoji are in
``services/rendering/fonts``: Debian has no such fonts for most scripts, and LibreOffice, which knows only what is installed,
must not take them for a document's letters.

A font is mapped into memory when it is first needed and stays open: one process serves many documents.
"""

import os
import unicodedata
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import uharfbuzz as hb
from fontTools import unicodedata as scripts

OWN_FOLDER = Path(__file__).resolve().parents[2] / "fonts"
DIRECTORIES = (
    "/usr/share/fonts/truetype/liberation",
    "/usr/share/fonts/truetype/noto",
    "/usr/share/fonts/opentype/noto",
    "/usr/share/fonts/truetype/ancient-scripts",
    "/usr/share/fonts/opentype/unifont",
)

FAMILIES = {"Times": "LiberationSerif", "Helvetica": "LiberationSans", "Courier": "LiberationMono"}
SCRIPT_FAMILY = "Dancing Script"
"""The family of typed signatures."""

HANDS = {
    "DancingScript-Regular": "Latin, with Vietnamese",
    "Caveat-Regular": "Cyrillic",
    "Mynerve-Regular": "Greek",
    "Kalam-Regular": "Devanagari",
    "Charm-Regular": "Thai",
    "ArefRuqaa-Regular": "Arabic, Persian, Urdu",
    "NotoNastaliqUrdu-Regular": "Pashto, Sindhi and other languages in Arabic letters",
    "GveretLevin-Regular": "Hebrew",
    "KleeOne-Regular": "Japanese, Chinese characters",
    "ZhiMangXing-Regular": "Chinese, simplified characters",
    "NanumPenScript-Regular": "Korean",
}
"""Fonts as from a hand, by name, and what each is there for: a typed signature, or else each of its words, is written in the
first that has all of its characters. Those after the first have Latin letters, too: of a name in two scripts nothing is in a
font of its own."""

OTHER_HANDS = {
    "MarckScript-Regular": "Latin, Cyrillic",
    "BadScript-Regular": "Latin, Cyrillic",
    "Sriracha-Regular": "Latin, Thai",
    "Dekko-Regular": "Devanagari",
    "Amita-Regular": "Devanagari",
    "Solitreo-Regular": "Hebrew",
    "MaShanZheng-Regular": "Chinese, simplified characters",
}
"""More fonts as from a hand, for signers who choose another style (``drawing/signature_styles.py``). The name of each, and of
those of ``HANDS``, is a family: what it lacks is drawn as in ``SCRIPT_FAMILY``."""

_HANDWRITTEN = {
    SCRIPT_FAMILY: tuple(HANDS),
    **{name: (name, *(other for other in HANDS if other != name)) for name in (*HANDS, *OTHER_HANDS)},
}
"""The fonts of each family of typed signatures, in order."""

_SYMBOLS = ("NotoSansSymbols-Regular", "NotoSansSymbols2-Regular", "NotoSansMath-Regular", "NotoMusic-Regular")
_LAST = ("Symbola_hint",)
_COLORED = "NotoColorEmoji"
_EMOJI_SIGNS = frozenset("\ufe0f\u20e3") | frozenset(map(chr, (*range(0x1F1E6, 0x1F200), *range(0x1F3FB, 0x1F400))))
"""With one of these a cluster is an emoji, also where its first character is not wide: the selector of the coloured form, the
frame of a key, the letters of flags, skin tones."""
_NEWEST_EMOJI = "unifont_upper"
"""Drawn in coarse squares, but there: for what came after the others."""
_CJK_SCRIPTS = frozenset({"Hani", "Hira", "Kana", "Hang", "Bopo", "Hrkt"})
# The faces of NotoSansCJK-*.ttc; the same character looks different in each country.
_CJK_FACES = {"ja": 0, "ko": 1, "zh-CN": 2, "zh-TW": 3, "zh-HK": 4}
_ARABIC_WITH_SERIFS = "NotoNaskhArabic"

# Blank by nature, though Unicode calls them letters: a name made of them would be drawn as nothing.
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
# Format characters that are drawn (Prepended_Concatenation_Mark of Unicode), and those that HarfBuzz does not leave out
# (annotations of text, joiners of hieroglyphs, shorthand): they need a font that has them.
_VISIBLE_FORMATS = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\ufff9\ufffa\ufffb"
) | frozenset(map(chr, (*range(0x13430, 0x13440), *range(0x1BCA0, 0x1BCA4))))
_INVISIBLE_MARKS = frozenset("\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f")
NEWLINES = "\n\r\u2028\u2029"


class FontsMissing(Exception):
    """A package of fonts is not installed."""


class Face(NamedTuple):
    """How text should look: ``family`` is a key of ``FAMILIES``, or one of typed signatures (which has one weight);
    ``language`` (BCP 47) decides only between the Chinese, Japanese and Korean shapes of a character."""

    family: str = "Helvetica"
    bold: bool = False
    italic: bool = False
    language: str = ""

    @property
    def is_handwritten(self) -> bool:
        return self.family in _HANDWRITTEN


class Font:
    """One face of a font file. Widths and extents are in thousandths of the font size, as PDF counts them."""

    def __init__(self, path: Path, index: int = 0) -> None:
        self.face = hb.Face(hb.Blob.from_file_path(str(path)), index)
        self.shaper = hb.Font(self.face)
        self.name = path.stem if index == 0 else f"{path.stem}-{index}"
        self.units = self.face.upem
        tables = self.face.table_tags
        self.is_cff = "CFF " in tables
        # NotoSansCJK has CIDs of its own; in other CFF fonts the number of a glyph is its CID.
        self.is_cid_keyed = self.is_cff and "CJK" in path.stem
        self.has_pictures = self.face.has_color_png
        """Of its glyphs, in the place of outlines."""
        metrics = self.shaper.get_font_extents("ltr")
        self.ascent = metrics.ascender * 1000 / self.units
        self.descent = -metrics.descender * 1000 / self.units
        self._glyphs: dict[str, int] = {}
        self._advances: dict[int, int] = {}
        self._extents: dict[int, tuple[int, int]] = {}
        self.simple_clusters: dict[str, Any] = {}
        """Kept by shaping.py: the cluster of each character that needs no shaping."""

    def __repr__(self) -> str:
        return f"Font({self.name})"

    def glyph(self, character: str) -> int:
        """The glyph's number, 0 when the font lacks it."""
        number = self._glyphs.get(character)
        if number is None:
            number = self._glyphs[character] = self.shaper.get_nominal_glyph(ord(character)) or 0
        return number

    @cached_property
    def subset_source(self) -> hb.Face:
        """The face with what making subsets of it needs to know; not of CFF fonts, whose size would make it take as long as
        a thousand subsets."""
        return self.face if self.is_cff else hb.subset_preprocess(self.face)

    def has(self, text: str) -> bool:
        return all(map(self.glyph, text))

    def advance(self, glyph: int) -> int:
        advance = self._advances.get(glyph)
        if advance is None:
            advance = self._advances[glyph] = round(self.shaper.get_glyph_h_advance(glyph) * 1000 / self.units)
        return advance

    def picture(self, glyph: int) -> tuple[bytes, tuple[float, float, float, float]]:
        """The PNG of a glyph (empty for a blank) with left, bottom, width and height from its origin, in thousandths of the
        font size."""
        ink = self.shaper.get_glyph_extents(glyph)
        file = self.shaper.get_glyph_color_png(glyph)
        if not ink or not file.data:
            return b"", (0.0, 0.0, 0.0, 0.0)
        scale = 1000 / self.units
        box = (ink.x_bearing, ink.y_bearing + ink.height, ink.width, -ink.height)
        return bytes(file.data), (box[0] * scale, box[1] * scale, box[2] * scale, box[3] * scale)

    def extents(self, glyph: int) -> tuple[int, int]:
        """Return how far the ink reaches above and below the baseline; both 0 for a blank."""
        reach = self._extents.get(glyph)
        if reach is None:
            ink = self.shaper.get_glyph_extents(glyph)
            top = ink.y_bearing if ink else 0
            bottom = -(ink.y_bearing + ink.height) if ink else 0
            reach = self._extents[glyph] = (round(top * 1000 / self.units), round(bottom * 1000 / self.units))
        return reach


def primary(face: Face) -> Font:
    """The font that text of this face is drawn with when it can be; raises FontsMissing."""
    return _primary(face.family, face.bold, face.italic)


def font_for(text: str, face: Face) -> Font | None:
    """The first font of the chain that has every visible character of ``text`` (a grapheme cluster, a word), or None."""
    visible = _visible(text)
    if not visible:
        return primary(face)
    if _is_emoji(text.strip()) and (
        colored := next((font for font in _font_of_name(_COLORED) if font.has(visible)), None)
    ):
        return colored
    return next((font for font in _chain(visible, face) if font.has(visible)), None)


def hand_for(text: str, family: str = SCRIPT_FAMILY) -> Font | None:
    """The first font of the family that has every visible character of a typed signature, or of one of its words, or None."""
    visible = _visible(text)
    return next((font for name in _HANDWRITTEN[family] for font in _font_of_name(name) if font.has(visible)), None)


def western_font(text: str, face: Face) -> Font:
    """One font for all the Latin, Greek and Cyrillic characters of ``text``: a name half in one font and half in another
    is ugly. The first font when none has all of them; what it lacks is then looked for character by character."""
    fonts = _western(face.family, face.bold, face.italic)
    return next((font for font in fonts if font.has(text)), fonts[0])


def undrawable(text: str) -> list[str]:
    """The characters of ``text`` that cannot be drawn, each once, in the order of appearance: what no font has, and
    control characters other than line breaks and tabs. Invisible format characters (joiners, direction marks) pass."""
    characters: dict[str, None] = {}
    for character in unicodedata.normalize("NFC", text):
        if character not in characters and not _can_draw(character):
            characters[character] = None
    return list(characters)


def is_invisible(character: str) -> bool:
    """True for what has no glyph of its own: format characters and variation selectors."""
    code = ord(character)
    if code < 0xAD:
        return False
    if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or character in _INVISIBLE_MARKS:
        return True
    return unicodedata.category(character) == "Cf" and character not in _VISIBLE_FORMATS


def reset() -> None:
    """Forget what was found, for a changed ``FONT_DIRS``."""
    for cached in (_files, _open, _primary, _western, _has_font, _other_fonts):
        cached.cache_clear()


def _visible(text: str) -> str:
    return "".join(character for character in text if not is_invisible(character) and not character.isspace())


def _is_emoji(cluster: str) -> bool:
    """As opposed to a sign of text: wide, or said to be one, and not said to be none. Unicode's emoji that are coloured without
    a selector are the wide ones; other wide characters are not in a font of emoji."""
    wide = unicodedata.east_asian_width(cluster[0]) == "W"
    return "\ufe0e" not in cluster and (wide or not _EMOJI_SIGNS.isdisjoint(cluster))


def _can_draw(character: str) -> bool:
    if character in NEWLINES or character == "\t" or is_invisible(character):
        return True
    if character in _BLANK_LETTERS:
        return False
    category = unicodedata.category(character)
    # Private characters look different in every font, so nobody can know what was meant.
    if category in {"Cc", "Cs", "Co"}:
        return False
    return category == "Zs" or _has_font(character)


@cache
def _has_font(character: str) -> bool:
    return font_for(character, Face()) is not None


def _chain(text: str, face: Face) -> Iterator[Font]:
    """The fonts to try for a cluster, lazily: most texts end at the first."""
    yield from _western(face.family, face.bold, face.italic)
    script = next((code for code in map(scripts.script, text) if code not in {"Zyyy", "Zinh", "Zzzz"}), None)
    serifs = face.family == "Times" or face.is_handwritten
    wide = unicodedata.east_asian_width(text[0]) in {"W", "F"}
    if script in _CJK_SCRIPTS or (script is None and wide):
        yield from _cjk(face, text, serifs)
    elif script is not None:
        yield from _by_script(script, face.bold, serifs)
    for name in (*_SYMBOLS, *_LAST):
        yield from _font_of_name(name)
    yield from _cjk(face, text, serifs)
    yield from _other_fonts()
    yield from _font_of_name(_NEWEST_EMOJI)


def _by_script(script: str, bold: bool, serifs: bool) -> Iterator[Font]:
    """Noto names its fonts after the scripts: ``NotoSansDevanagari-Bold``."""
    name = scripts.script_name(script).replace("_", "")
    families = [f"NotoSans{name}", f"NotoSerif{name}"]
    if serifs:
        families.reverse()
        if script == "Arab":
            families.insert(0, _ARABIC_WITH_SERIFS)
    for weight in ("Bold", "Regular") if bold else ("Regular",):
        for family in families:
            yield from _font_of_name(f"{family}-{weight}")


def _cjk(face: Face, text: str, serifs: bool) -> Iterator[Font]:
    kind = "Serif" if serifs else "Sans"
    weight = "Bold" if face.bold else "Regular"
    for name in (f"Noto{kind}CJK-{weight}", "NotoSansCJK-Regular"):
        yield from _font_of_name(name, _cjk_face(face.language, text))


def _cjk_face(language: str, text: str) -> int:
    """Kana are Japanese and Hangul Korean whatever the document's language; for the rest the language decides."""
    for character in text:
        script = scripts.script(character)
        if script in {"Hira", "Kana"}:
            return _CJK_FACES["ja"]
        if script == "Hang":
            return _CJK_FACES["ko"]
    return _CJK_FACES.get(language) or _CJK_FACES.get(language.partition("-")[0], _CJK_FACES["zh-CN"])


@cache
def _western(family: str, bold: bool, italic: bool) -> tuple[Font, ...]:
    """Fonts for Latin, Greek and Cyrillic, in order; those of ``HANDS`` have other scripts as well."""
    if family in _HANDWRITTEN:
        return tuple(font for name in (*_HANDWRITTEN[family], "NotoSerif-Italic") for font in _font_of_name(name))
    kind = "NotoSerif" if family == "Times" else "NotoSans"
    return (_primary(family, bold, italic), *_font_of_name(f"{kind}-{_style(bold, italic)}"))


@cache
def _primary(family: str, bold: bool, italic: bool) -> Font:
    if family in _HANDWRITTEN:
        return _western(family, bold, italic)[0]
    candidates = list(_font_of_name(f"{FAMILIES[family]}-{_style(bold, italic)}"))
    if not candidates:
        raise FontsMissing(f"the fonts for {family} are missing: install the package fonts-liberation or set FONT_DIRS")
    return candidates[0]


def _style(bold: bool, italic: bool) -> str:
    return {(True, True): "BoldItalic", (True, False): "Bold", (False, True): "Italic"}.get((bold, italic), "Regular")


def _font_of_name(name: str, index: int = 0) -> Iterator[Font]:
    if name.lower() in _files():
        yield _open(name.lower(), index)


@cache
def _open(name: str, index: int) -> Font:
    return Font(_files()[name], index)


@cache
def _other_fonts() -> tuple[Font, ...]:
    """Every other regular Noto font: reached only for the rarest characters, and opened then, all of them."""
    names = sorted(name for name in _files() if name.startswith("noto") and name.endswith("-regular"))
    return tuple(_open(name, 0) for name in names if "cjk" not in name)


@cache
def _files() -> dict[str, Path]:
    """Font files by lower-case name without suffix. A file in an earlier folder wins."""
    folders = [folder for folder in os.environ.get("FONT_DIRS", "").split(":") if folder] or DIRECTORIES
    files: dict[str, Path] = {}
    for folder in (OWN_FOLDER, *folders):
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix.lower() in {".ttf", ".otf", ".ttc"}:
                files.setdefault(path.stem.lower(), path)
    return files
