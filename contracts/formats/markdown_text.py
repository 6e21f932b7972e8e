"""Titles of fields are Markdown (bold, italic, links); paper and messages have none of it.

A sender writes them, and they are read wherever a field is spoken of: in time that grows with their length, and not faster.
"""

import re
from collections import Counter

_LITERAL = re.compile(r"\\([!-/:-@\[-`{-~])|(?<!`)(`++)\s?(.+?)\s?(?<!`)\2(?!`)")
"""What is escaped, and code."""

_LINK = re.compile(r"!?\[([^\[\]]*+)\]\(\s*+[^\s()]*+(?:\s++(?:\"[^\"]*\"|'[^']*'))?\s*+\)")
_MARKS = re.compile(r"\*+|_+|~~")
_KEPT = "\ue000"
_DEEPEST = 4


def plain_title(source: str) -> str:
    """``YOUR **FULL** NAME`` as ``YOUR FULL NAME``, on one line. Raw HTML stays as it stands."""
    literals: list[str] = []

    def keep(match: re.Match[str]) -> str:
        literals.append(match[match.lastindex or 0])
        return f"{_KEPT}{len(literals) - 1}{_KEPT}"

    text = _LITERAL.sub(keep, source.replace(_KEPT, ""))
    for _ in range(_DEEPEST):
        text = _LINK.sub(lambda match: match[1], text)
    text = re.sub(f"{_KEPT}(\\d+){_KEPT}", lambda match: literals[int(match[1])], _without_marks(text))
    return " ".join(text.split())


def _without_marks(text: str) -> str:
    """``text`` without the marks of emphasis that belong together: the last one that can begin it, and one that can end it."""
    begun: list[re.Match[str]] = []
    waiting: Counter[str] = Counter()
    spans: list[tuple[int, int]] = []
    for mark in _MARKS.finditer(text):
        start, end = mark.span()
        before, after, in_words = text[max(start - 1, 0) : start], text[end : end + 1], mark[0][0] == "_"
        if before.strip() and waiting[mark[0]] and not (in_words and after.isalnum()):
            while begun:
                other = begun.pop()
                waiting[other[0]] -= 1
                if other[0] == mark[0]:
                    spans += [other.span(), mark.span()]
                    break
        elif after.strip() and not (in_words and before.isalnum()):
            begun.append(mark)
            waiting[mark[0]] += 1
    pieces, place = [], 0
    for start, end in sorted(spans):
        pieces.append(text[place:start])
        place = end
    return "".join(pieces) + text[place:]
