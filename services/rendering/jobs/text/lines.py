"""Where lines may break, and breaking them.

A simplification of UAX #14 for short texts on forms: after blanks and hyphens, between Chinese and Japanese characters
(closing punctuation and small kana never start a line), before the leading vowels of Thai and Lao, which are written
without blanks. A mark above or below a letter stays with it. A word that is too long for a whole line is broken between
clusters, after ``@ . - _ / &`` if it has one.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from fontTools import unicodedata as scripts

from services.rendering.jobs.text.shaping import Cluster

_HYPHENS = frozenset("-\u2010\u2012\u2013\u2014\u058a\u05be\u200b/\\")
_IDEOGRAPHIC = frozenset({"Hani", "Hira", "Kana", "Bopo", "Yiii", "Tang"})
_NEVER_FIRST = frozenset(
    "、。，．・：；？！）〕］｝〉》」』】〙〗〟’”｠»ゝゞヽヾ々ーぁぃぅぇぉっゃゅょゎゕゖァィゥェォッャュョヮヵヶ,.:;?!)]}%°′″"
    "゛゜ﾞﾟｧｨｩｪｫｬｭｮｯｰ｡､･｣"
)
_NEVER_LAST = frozenset("（〔［｛〈《「『【〘〖〝‘“｟«([{$£¥")
_LEADING_VOWELS = frozenset("เแโใไເແໂໃໄ")
_UNBREAKABLE = frozenset("\u00a0\u2007\u202f")
_SOFT = frozenset("@._-/&=?,;:+")
_SOFT_FROM = 0.5
"""A soft break is taken when it leaves at least this share of the line filled."""


@dataclass(frozen=True)
class Broken:
    """Lines as (start, end) of the clusters, blanks at their ends left out; ``in_words`` when a word had to be cut."""

    lines: list[tuple[int, int]]
    in_words: bool


def opportunities(clusters: Sequence[Cluster]) -> list[bool]:
    """For each cluster whether a line may end after it."""
    result = [False] * len(clusters)
    for index in range(len(clusters) - 1):
        result[index] = _may_break(clusters[index].text, clusters[index + 1].text)
    return result


def break_lines(clusters: Sequence[Cluster], allowed: Sequence[bool], width: float) -> Broken:
    """Greedy: as much on each line as goes into ``width`` (thousandths of the font size)."""
    lines: list[tuple[int, int]] = []
    in_words = False
    start, count = 0, len(clusters)
    while start < count:
        end, cut = _line_end(clusters, allowed, start, width)
        in_words = in_words or cut
        lines.append(_trimmed(clusters, start, end))
        start = end
        while start < count and _is_blank(clusters[start].text):
            start += 1
    return Broken(lines or [(0, 0)], in_words)


def width_of(clusters: Sequence[Cluster]) -> int:
    return sum(cluster.advance for cluster in clusters)


def _line_end(clusters: Sequence[Cluster], allowed: Sequence[bool], start: int, width: float) -> tuple[int, bool]:
    """The first cluster that is not on the line, and whether a word was cut. A line has at least one cluster."""
    used, last, soft = 0, -1, -1
    for index in range(start, len(clusters)):
        cluster = clusters[index]
        if used + cluster.advance > width and not _is_blank(cluster.text):
            if last >= 0:
                return last + 1, False
            if soft >= 0:
                return soft + 1, True
            while index > start + 1 and _is_mark(cluster.text[0]):
                index -= 1
                cluster = clusters[index]
            return max(index, start + 1), True
        used += cluster.advance
        if allowed[index]:
            last = index
        elif cluster.text in _SOFT and used >= width * _SOFT_FROM:
            soft = index
    return len(clusters), False


def _trimmed(clusters: Sequence[Cluster], start: int, end: int) -> tuple[int, int]:
    while end > start and _is_blank(clusters[end - 1].text):
        end -= 1
    return start, end


def _is_blank(text: str) -> bool:
    return text.isspace() and text not in _UNBREAKABLE


def _may_break(before: str, after: str) -> bool:
    last, first = before[-1:], after[:1]
    if _is_blank(last):
        return not _is_blank(first)
    if not first or not last or _is_blank(first) or _is_mark(first) or first in _NEVER_FIRST or last in _NEVER_LAST:
        return False
    if last in _HYPHENS:
        return not first.isdigit() and len(before) == 1
    if first in _LEADING_VOWELS:
        return True
    return _stands_alone(first) or _stands_alone(last)


def _is_mark(character: str) -> bool:
    """An accent or a voicing mark: it belongs to the letter before it, also where each comes from a font of its own."""
    return unicodedata.category(character).startswith("M") or character in "゛゜ﾞﾟ"


def _stands_alone(character: str) -> bool:
    if character < "\u2e80":
        return False
    return scripts.script(character) in _IDEOGRAPHIC or "\u3000" <= character <= "\u303f"
