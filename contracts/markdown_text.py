"""Titles of fields are Markdown (bold, italic, links); paper and messages have none of it."""

import re

_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\(\s*[^\s()]*(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)")
_CODE = re.compile(r"(`+)\s?(.+?)\s?\1(?!`)")
_MARKED = re.compile(
    r"(\*{1,3}|~~)(?=[^\s*])(.+?)(?<=[^\s*])\1(?!\*)|(?<![^\W_])(_{1,3})(?=[^\s_])(.+?)(?<=[^\s_])\3(?![^\W_])"
)
_KEPT = "\ue000"
_DEEPEST = 4


def plain_title(source: str) -> str:
    """``YOUR **FULL** NAME`` as ``YOUR FULL NAME``, on one line. Raw HTML stays as it stands."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[match.lastindex or 0])
        return f"{_KEPT}{len(kept) - 1}{_KEPT}"

    text = _CODE.sub(keep, _ESCAPED.sub(keep, source.replace(_KEPT, "")))
    for _ in range(_DEEPEST):
        text = _MARKED.sub(lambda match: match[2] or match[4], _LINK.sub(lambda match: match[1], text))
    text = re.sub(f"{_KEPT}(\\d+){_KEPT}", lambda match: kept[int(match[1])], text)
    return " ".join(text.split())
