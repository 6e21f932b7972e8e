"""Titles and descriptions of fields are Markdown, written by somebody else than the person who reads them.

Raw HTML is escaped, of pictures only the words are left (loading one would tell a stranger who reads when), and what comes
out is cleaned once more by an allow list.
"""

import html
from collections.abc import Sequence

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

_MARKDOWN = MarkdownIt("js-default", {"linkify": False, "breaks": True}).disable(["html_block", "html_inline"])
_INLINE_TAGS = {"strong", "em", "s", "code", "a", "br"}
_BLOCK_TAGS = _INLINE_TAGS | {
    "p",
    "ul",
    "ol",
    "li",
    "blockquote",
    "pre",
    "hr",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}
_HEADINGS = {f"h{level}": "p" for level in range(1, 7)}


def inline_html(source: str) -> str:
    """``source`` as one line of HTML, for a label."""
    return _clean(_MARKDOWN.renderInline(source), _INLINE_TAGS)


def block_html(source: str) -> str:
    """``source`` as paragraphs and lists. Headings become paragraphs: the page has its own outline."""
    rendered = _MARKDOWN.render(source)
    for tag, instead in _HEADINGS.items():
        rendered = rendered.replace(f"<{tag}>", f"<{instead}>").replace(f"</{tag}>", f"</{instead}>")
    return _clean(rendered, _BLOCK_TAGS)


def plain(cleaned: str) -> str:
    """The text of cleaned HTML, for a name that is read aloud."""
    return " ".join(html.unescape(nh3.clean(cleaned.replace("<br>", " "), tags=set())).split())


def _words_of_picture(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    return html.escape(renderer.renderInlineAsText(tokens[index].children, options, env))


_MARKDOWN.add_render_rule("image", _words_of_picture)


def _clean(rendered: str, tags: set[str]) -> str:
    return nh3.clean(
        rendered,
        tags=tags,
        attributes={"a": {"href", "title"}},
        url_schemes={"http", "https", "mailto", "tel"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    ).strip()
