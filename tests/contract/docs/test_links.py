"""Links between our pages, and their pictures, lead somewhere, also to the heading that they name."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from deploy.services import ROOT

_MARKDOWN = MarkdownIt("gfm-like", {"linkify": False})
_ID = re.compile(r"""<a (?:id|name)=["']([^"']+)""")


def test_every_link_of_a_page_leads_somewhere() -> None:
    pages = {page: _MARKDOWN.parse(page.read_text(encoding="utf-8")) for page in _pages()}
    anchors = {page: set(_anchors(tokens)) | set(_ID.findall(page.read_text())) for page, tokens in pages.items()}
    links = [(page, target) for page, tokens in pages.items() for target in _targets(tokens)]
    missing = [f"{page.relative_to(ROOT)}: {target}" for page, target in links if not _leads(page, target, anchors)]
    assert not missing, "\n".join(missing)
    assert sum("#" in target for _, target in links) > 20, "headings were looked for"


def _pages() -> list[Path]:
    folders = [ROOT / name for name in ("contracts", "deploy", "docs", "services", "tests")]
    return [*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]


def _targets(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        target = token.attrGet("href") if token.type == "link_open" else token.attrGet("src")
        if token.type in ("link_open", "image") and target:
            yield str(target)
        yield from _targets(token.children or [])


def _leads(page: Path, target: str, anchors: dict[Path, set[str]]) -> bool:
    """Whether a relative target is there; what has a scheme, or begins at the root of a running gateway, is not ours to judge."""
    parts = urlsplit(target)
    if parts.scheme or target.startswith("/"):
        return True
    file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    return file.exists() and (not parts.fragment or file not in anchors or unquote(parts.fragment) in anchors[file])


def _anchors(tokens: list[Token]) -> Iterator[str]:
    """The names that GitHub gives to headings."""
    seen: Counter[str] = Counter()
    for heading, inline in itertools.pairwise(tokens):
        if heading.type == "heading_open":
            words = "".join(child.content for child in inline.children or [] if child.type in ("text", "code_inline"))
            name = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            yield f"{name}-{seen[name]}" if seen[name] else name
            seen[name] += 1
