"""From a text to clusters: what is drawn as one unit, with its font, its glyphs and its width.

Most text on forms is Latin, Greek or Cyrillic: there a character is a cluster, and its glyph and width are looked up
(no shaping, no kerning). Everything else goes through the bidirectional algorithm and HarfBuzz. All measures are in
thousandths of the font size, so a text is shaped once, whatever size it ends up with.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import uharfbuzz as hb
from fontTools import unicodedata as scripts

from services.rendering.jobs.text import bidi, fonts
from services.rendering.jobs.text.fonts import Face, Font

# Left to right, no combining marks, no context: Latin, Greek, Cyrillic, their punctuation, currency signs.
_SIMPLE = "\u0020-\u007e\u00a0-\u00ac\u00ae-\u02af\u0370-\u0377\u037a-\u0482\u048a-\u052f\u1e00-\u1fff"
_SIMPLE_SIGNS = "\u2010-\u2015\u2018-\u2022\u2026\u2030-\u203a\u20a0-\u20c0\u2116\u2122"
_IS_SIMPLE = re.compile(f"[{_SIMPLE}{_SIMPLE_SIGNS}]*").fullmatch
_WESTERN = re.compile(f"[{_SIMPLE}{_SIMPLE_SIGNS}\u0300-\u036f]")

_NEWLINE = re.compile("\r\n|[\n\r\u2028\u2029]")
_WORDS = re.compile(r"\s*\S+|\s+")
_TAB = " " * 4
# Embeddings and overrides (see bidi.py), soft hyphens, joiners of words: they say nothing to a reader.
_DROPPED = re.compile("[\u00ad\u2060-\u2064\u202a-\u202e\u206a-\u206f\ufeff]")
# Direction marks steer the layout; in the copied text they would only be in the way.
_SKIN_TONE = re.compile("(?<=.)[\U0001f3fb-\U0001f3ff]")
_DIRECTION_MARKS = re.compile("[\u061c\u200b\u200e\u200f\u2066-\u2069]")
_JOINER = "\u200d"
_LONGEST_CLUSTER = 32
_MOST_GLYPHS, _FARTHEST = 24, 16_000
"""Of one cluster, and their offsets in the font's units: an outline font has 16 bits for them. No script needs as much; what
does was written to break things."""
_DOTTED_CIRCLE = "\u25cc"
_MARKS = frozenset({"Mn", "Mc", "Me"})

# Kerning would give one letter many widths, and ligatures one glyph many letters. Scripts that need either (Arabic, the
# Indic ones) use other features, which stay on.
_FEATURES = {"kern": False, "liga": False, "clig": False}


class Undrawable(Exception):
    """``characters`` that no font has."""

    def __init__(self, characters: list[str]) -> None:
        super().__init__(", ".join(describe(character) for character in characters))
        self.characters = characters


class Cluster:
    """Characters that are drawn as one unit.

    ``glyphs`` are (number, x, y) with offsets in the font's own units; ``text`` is in reading order; ``above`` and
    ``below`` are how far the ink reaches from the baseline.
    """

    __slots__ = ("above", "advance", "below", "font", "glyphs", "key", "text")

    def __init__(self, font: Font, glyphs: tuple[tuple[int, int, int], ...], text: str, advance: int) -> None:
        self.font = font
        self.glyphs = glyphs
        self.text = text
        self.advance = advance
        self.key = (glyphs, text, advance)
        reach = [(font.extents(glyph), round(y * 1000 / font.units)) for glyph, _, y in glyphs]
        self.above = max((top + rise for (top, _), rise in reach), default=0)
        self.below = max((bottom - rise for (_, bottom), rise in reach), default=0)

    def __repr__(self) -> str:
        return f"Cluster({self.text!r}, {self.font.name}, {self.advance})"


@dataclass(frozen=True)
class Paragraph:
    """Clusters in reading order; ``levels`` is None when all of them run left to right."""

    clusters: list[Cluster]
    levels: list[int] | None
    right_to_left: bool


def paragraphs(text: str, face: Face) -> list[Paragraph]:
    """Shape ``text``; raises Undrawable naming every character that no font has."""
    if text.isascii() and text.isprintable():
        return [_paragraph(text, face, fonts.primary(face))]
    if bad := fonts.undrawable(text):
        raise Undrawable(bad)
    text = unicodedata.normalize("NFC", _DROPPED.sub("", text).replace("\t", _TAB))
    if face.is_handwritten:
        western = fonts.hand_for(text, face.family) or fonts.primary(face)
    else:
        western = fonts.western_font("".join(set(_WESTERN.findall(text))), face)
    return [_paragraph(line, face, western) for line in _NEWLINE.split(text)]


def describe(character: str) -> str:
    """Return how a refusal names a character: ``'€' (U+20AC EURO SIGN)``."""
    name = unicodedata.name(character, "")
    shown = f"'{character}' " if character.isprintable() else ""
    return f"{shown}(U+{ord(character):04X}{' ' + name if name else ''})"


def _paragraph(text: str, face: Face, western: Font) -> Paragraph:
    try:
        simple_clusters = western.simple_clusters
        return Paragraph([simple_clusters[character] for character in text], None, False)
    except KeyError:
        if _IS_SIMPLE(text) and western.has(text):
            return Paragraph([_simple(western, character) for character in text], None, False)
    base, levels = bidi.levels(text)
    clusters: list[Cluster] = []
    depths: list[int] = []
    for start, end, font in _runs(text, levels, face, western):
        shaped = _shape(text[start:end], font, levels[start] % 2 == 1, face.language)
        clusters += shaped
        depths += [levels[start]] * len(shaped)
    return Paragraph(clusters, depths if any(depths) else None, base == 1)


def _simple(font: Font, character: str) -> Cluster:
    cluster = font.simple_clusters.get(character)
    if cluster is None:
        glyph = font.glyph(character)
        cluster = font.simple_clusters[character] = Cluster(font, ((glyph, 0, 0),), character, font.advance(glyph))
    return cluster


def _runs(text: str, levels: list[int], face: Face, western: Font) -> Iterator[tuple[int, int, Font]]:
    """Stretches of one font, level and script: what HarfBuzz can shape at once."""
    run: tuple[int, Font, int, str] | None = None
    firsts = _of_words(text, face, western) if face.is_handwritten else [western] * len(text)
    for start, end in graphemes(text):
        cluster = text[start:end]
        font = _font(cluster, face, firsts[start], run[1] if run else None)
        if font is None:
            yield from _character_runs(text, start, end, face, run)
            run = None
            continue
        script = _script(cluster)
        if run is not None:
            fits_script = script == run[3] or not script or not run[3]
            if font is run[1] and levels[start] == run[2] and fits_script:
                run = (*run[:3], run[3] or script)
                continue
            yield run[0], start, run[1]
        run = (start, font, levels[start], script)
    if run is not None:
        yield run[0], len(text), run[1]


def _of_words(text: str, face: Face, whole: Font) -> list[Font]:
    """For each character of a typed signature the font that has all of its word: ``whole``, when that has all of the text."""
    if whole is fonts.hand_for(text, face.family):
        return [whole] * len(text)
    return [
        font
        for word in _WORDS.findall(text)
        for font in [fonts.hand_for(word, face.family) or fonts.font_for(word, face) or whole] * len(word)
    ]


def _character_runs(
    text: str, start: int, end: int, face: Face, run: tuple[int, Font, int, str] | None
) -> Iterator[tuple[int, int, Font]]:
    """A base with a mark of a foreign script: no font has both, so each is drawn with its own."""
    if run is not None:
        yield run[0], start, run[1]
    for index in range(start, end):
        font = fonts.font_for(text[index], face)
        if font is None:
            raise Undrawable([text[index]])
        yield index, index + 1, font


def _font(cluster: str, face: Face, western: Font, previous: Font | None) -> Font | None:
    """None when no font has all of the cluster. Blanks stay in the font of what stands before them, so that they do not
    cut words into runs; those of emoji would be as wide as an emoji."""
    if cluster.isspace() or all(map(fonts.is_invisible, cluster)):
        return western if previous is None or previous.has_pictures else previous
    if (face.is_handwritten or _WESTERN.match(cluster)) and western.has(cluster):
        return western
    return fonts.font_for(cluster, face)


def _script(cluster: str) -> str:
    """The script of the cluster's first character that has one, else an empty string."""
    for character in cluster:
        code = scripts.script(character)
        if code not in {"Zyyy", "Zinh", "Zzzz"}:
            return str(code)
    return ""


def graphemes(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of what a reader takes for one character (UAX #29, extended grapheme clusters, simplified):
    a base with its marks, joined emoji, flags, syllables of Hangul letters."""
    start = 0
    for index in range(1, len(text)):
        if index - start >= _LONGEST_CLUSTER or not _continues(text, index, start):
            yield start, index
            start = index
    if text:
        yield start, len(text)


def _continues(text: str, index: int, start: int) -> bool:
    character, previous = text[index], text[index - 1]
    code = ord(character)
    if code < 0x300:
        return False
    if unicodedata.category(character) in _MARKS:
        return not previous.isspace()
    if character in {_JOINER, "\u200c"} or 0xFE00 <= code <= 0xFE0F or 0x1F3FB <= code <= 0x1F3FF:
        return True
    if 0xE0020 <= code <= 0xE01EF:
        return True
    if previous == _JOINER:
        return code >= 0x2190 and not character.isalpha()
    if 0x1F1E6 <= code <= 0x1F1FF:
        return 0x1F1E6 <= ord(previous) <= 0x1F1FF and (index - start) % 2 == 1
    # Hangul letters: leading, then vowels, then trailing ones.
    if 0x1160 <= code <= 0x11FF or 0xD7B0 <= code <= 0xD7FB:
        return 0x1100 <= ord(previous) <= 0x11FF or 0xAC00 <= ord(previous) <= 0xD7FB
    return 0x1100 <= code <= 0x115F and 0x1100 <= ord(previous) <= 0x115F


def _shape(text: str, font: Font, right_to_left: bool, language: str) -> list[Cluster]:
    """Clusters of one run in reading order. HarfBuzz gives glyphs from left to right, whatever the direction."""
    if not right_to_left and _IS_SIMPLE(text) and font.has(text):
        return [_simple(font, character) for character in text]
    # A mark without a letter is shown on a dotted circle: alone it would hang over its neighbour.
    carrier = _carrier(font) if unicodedata.category(text[0]) in _MARKS else ""
    buffer = hb.Buffer()
    buffer.add_str(carrier + _with_plain_blanks(text, font))
    buffer.guess_segment_properties()
    buffer.direction = "rtl" if right_to_left else "ltr"
    if language:
        buffer.language = language
    buffer.flags = hb.BufferFlags.REMOVE_DEFAULT_IGNORABLES
    hb.shape(font.shaper, buffer, _FEATURES)
    infos, positions = buffer.glyph_infos, buffer.glyph_positions
    groups: dict[int, list[int]] = {}
    for index, info in enumerate(infos):
        if info.codepoint == 0:
            raise Undrawable([text[max(info.cluster - len(carrier), 0)]])
        groups.setdefault(max(info.cluster - len(carrier), 0), []).append(index)
    starts = sorted(groups)
    ends = [*starts[1:], len(text)] if starts else []
    result = []
    for start, end in zip(starts, ends, strict=True):
        pen, glyphs = 0, []
        for index in groups[start]:
            place = positions[index]
            glyphs.append((infos[index].codepoint, pen + place.x_offset, place.y_offset))
            pen += place.x_advance
        if end - start > 1 and not _is_one_glyph(glyphs):
            middle = (start + end) // 2
            for piece in (text[start:middle], text[middle:end]):
                result += _shape(piece, font, right_to_left, language)
            continue
        shown = _DIRECTION_MARKS.sub("", text[start:end])
        result.append(Cluster(font, tuple(glyphs), shown, round(pen * 1000 / font.units)))
    return result


def _is_one_glyph(glyphs: list[tuple[int, int, int]]) -> bool:
    """Return whether a font can have them as one: HarfBuzz puts any number of marks, vowels or virama letters together."""
    return len(glyphs) <= _MOST_GLYPHS and all(max(abs(x), abs(y)) <= _FARTHEST for _, x, y in glyphs)


def _carrier(font: Font) -> str:
    return next((base for base in (_DOTTED_CIRCLE, " ") if font.glyph(base)), "")


def _with_plain_blanks(text: str, font: Font) -> str:
    """Typographic blanks that the font lacks are drawn as an ordinary one. Skin tones are not drawn by outlines, which have no
    colour: their sign for a tone is a grey square."""
    plain = "".join(" " if c.isspace() and not font.glyph(c) else c for c in text)
    return plain if font.has_pictures else _SKIN_TONE.sub("\ufe0f", plain)
