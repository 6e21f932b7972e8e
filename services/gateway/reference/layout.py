"""HTML of the reference's Markdown: one plain page with a navigation, no script and no style within it."""

import html
import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from services.gateway.reference.calls import slug
from services.gateway.reference.guides import names
from services.gateway.reference.samples import LANGUAGES

_LANGUAGES = {language.fence: language.name for language in LANGUAGES}
"""The code blocks that are samples of one call, each of which the reader opens; the first is open."""


_GUIDES = '<a href="{root}guides">Guides</a>'


class Entry(NamedTuple):
    """A link of the navigation, with those of the page's calls where it is the page that is shown."""

    name: str
    address: str
    current: bool
    calls: Sequence[tuple[str, str]]


def page(source: str, *, title: str, root: str, markdown: str, entries: Sequence[Entry], guide: bool = False) -> str:
    """Return the page. ``root`` is the way from it to the gateway's own root, ``markdown`` the way to its Markdown.
    ``guide``: HTML within the source is kept, and blocks of code are no samples of one call."""
    reader = _WITH_HTML if guide else _MARKDOWN
    body = reader.render(source, {"seen": Counter(), "samples": None if guide else 0})
    lines = "".join(_entry(entry) for entry in entries)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><link rel="stylesheet" href="{root}reference/style.css">
<link rel="alternate" type="text/markdown" href="{markdown}"></head>
<body><a class="visually-hidden" href="#content">To the content</a>
<header><a class="name" href="{root}reference">Countersign API</a>
<nav aria-label="Other forms">{_GUIDES.format(root=root) if names() else ""}<a href="{markdown}">Markdown</a>
<a href="{root}docs">Try it</a>
<a href="{root}openapi.json">OpenAPI</a><a href="{root}llms.txt">llms.txt</a></nav></header>
<div class="columns"><nav class="contents" aria-label="Contents"><ul>{lines}</ul></nav>
<main id="content">{body}</main></div></body></html>
"""


def headings(source: str) -> list[tuple[str, str]]:
    """Return the headings of a page's sections with their anchors."""
    tokens = _MARKDOWN.parse(source)
    seen: Counter[str] = Counter()
    headings_found = []
    for opening, inline in itertools.pairwise(tokens):
        if opening.type == "heading_open":
            words, anchor = _words_and_anchor(inline, seen)
            if opening.tag == "h2":
                headings_found.append((words, anchor))
    return headings_found


def _words_and_anchor(inline: Token, seen: Counter[str]) -> tuple[str, str]:
    """Return the words of a heading, and the anchor that GitHub gives it after those that were ``seen``."""
    words = "".join(child.content for child in inline.children or [] if child.type in ("text", "code_inline"))
    name = slug(words)
    anchor = f"{name}-{seen[name]}" if seen[name] else name
    seen[name] += 1
    return words, anchor


def _entry(entry: Entry) -> str:
    here = ' aria-current="page"' if entry.current else ""
    below = "".join(f'<li><a href="#{anchor}">{html.escape(summary)}</a></li>' for summary, anchor in entry.calls)
    more = f"<ul>{below}</ul>" if below else ""
    return f'<li><a href="{entry.address}"{here}>{html.escape(entry.name)}</a>{more}</li>'


def _heading(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """A heading with the anchor that GitHub gives it."""
    _, anchor = _words_and_anchor(tokens[index + 1], env["seen"])
    tag = tokens[index].tag
    if tag == "h2" and env["samples"] is not None:
        env["samples"] += 1
    return f'<{tag} id="{anchor}">'


def _fence(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """A block of code. Whoever has no mouse scrolls it, too; of the samples of a call one is open at a time."""
    language = _LANGUAGES.get(tokens[index].info.strip())
    code = f'<pre tabindex="0"><code>{html.escape(tokens[index].content, quote=False)}</code></pre>\n'
    if language is None or env["samples"] is None:
        return code
    is_open = " open" if language == LANGUAGES[0].name else ""
    return f'<details name="samples-{env["samples"]}"{is_open}><summary>{language}</summary>{code}</details>\n'


def _table_open(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    return '<div class="wide" tabindex="0"><table>\n'


def _table_close(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    return "</table></div>\n"


def _link_open(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """A link. Those between the pages lead to their HTML."""
    address = str(tokens[index].attrGet("href"))
    path, sign, anchor = address.partition("#")
    return f'<a href="{html.escape(path.removesuffix(".md") + sign + anchor)}">'


def _reader(*, html: bool) -> MarkdownIt:
    reader = MarkdownIt("gfm-like", {"html": html, "linkify": False})
    for name, rule in (
        ("heading_open", _heading),
        ("fence", _fence),
        ("table_open", _table_open),
        ("table_close", _table_close),
        ("link_open", _link_open),
    ):
        reader.add_render_rule(name, rule)
    return reader


_MARKDOWN, _WITH_HTML = _reader(html=False), _reader(html=True)
