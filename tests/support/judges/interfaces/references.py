"""What a reader of Markdown finds in a page of the reference: headings by the anchors that GitHub gives them, and links."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARKDOWN = MarkdownIt("gfm-like", {"linkify": False})


def anchors(source: str) -> dict[str, str]:
    """Return the words of each heading by its anchor."""
    seen: Counter[str] = Counter()
    found = {}
    for heading, inline in itertools.pairwise(_MARKDOWN.parse(source)):
        if heading.type == "heading_open":
            words = "".join(child.content for child in inline.children or [])
            name = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            found[f"{name}-{seen[name]}" if seen[name] else name] = words
            seen[name] += 1
    return found


def links(source: str) -> Iterator[tuple[str, str]]:
    """All links: where to, and their words."""
    for token in _MARKDOWN.parse(source):
        children = token.children or []
        for place, child in enumerate(children):
            if child.type == "link_open":
                yield str(child.attrGet("href")), _words(children[place + 1 :])


def _words(tokens: list[Token]) -> str:
    return "".join(token.content for token in itertools.takewhile(lambda token: token.type != "link_close", tokens))


def samples(source: str, summary: str) -> dict[str, str]:
    """Return the samples of the call with this summary, by the names of their languages in Markdown."""
    told = source.partition(f"\n## {summary}\n")[2].partition("\n## ")[0]
    return {
        token.info: token.content for token in _MARKDOWN.parse(told) if token.type == "fence" and token.info in _SAMPLES
    }


_SAMPLES = ("sh", "python", "js", "php")
