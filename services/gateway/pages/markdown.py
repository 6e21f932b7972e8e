"""Titles and descriptions of fields are Markdown, written by somebody else than the person who reads them.

Raw HTML is escaped, pictures are not loaded (they would tell a stranger who reads when), and what comes out is cleaned
once more by an allow list.
"""

import html

import nh3
from markdown_it import MarkdownIt

_MARKDOWN = MarkdownIt("js-default", {"linkify": False, "breaks": True}).disable(["image", "html_block", "html_inline"])
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


def _clean(rendered: str, tags: set[str]) -> str:
    return nh3.clean(
        rendered,
        tags=tags,
        attributes={"a": {"href", "title"}},
        url_schemes={"http", "https", "mailto", "tel"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    ).strip()
