"""Titles and descriptions: Markdown in, harmless HTML out."""

import re

import pytest

from services.gateway.pages.answering.markdown import block_html, inline_html, plain

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![x](https://evil.example/x.png)",
    "![x][y]\n\n[y]: https://evil.example/x.png",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "<javascript:alert(1)>",
    "[x](vbscript:x)",
    '[x](https://ok.example "t\' onclick=alert(1)")',
    "<iframe src=https://evil.example></iframe>",
    "<style>*{display:none}</style>",
    "<!-- --><svg onload=alert(1)>",
    "`<b onclick=alert(1)>`",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<a href=javascript:alert(1)>x</a>",
    "\x00<script>",
]
ALLOWED = re.compile(
    r'<(/?(strong|em|s|code|br|p|ul|ol|li|blockquote|pre|hr|table|thead|tbody|tr|th|td)|/a|a href="(https?|mailto|tel):[^"<>]*"'
    r'( title="[^"<>]*")?( target="_blank")?( rel="noopener noreferrer nofollow")?( target="_blank")?( title="[^"<>]*")?)>'
)


@pytest.mark.parametrize("source", HOSTILE)
def test_nothing_but_harmless_tags_is_left(source: str) -> None:
    for html in (inline_html(source), block_html(source), block_html(f"- {source}\n\n> {source}")):
        assert re.sub(ALLOWED, "", html).count("<") == 0, html
        assert "evil.example" not in re.sub(r"&lt;.*?&gt;", "", html) or "<img" not in html


def test_what_people_write_is_formatted() -> None:
    assert inline_html("Your **full** *name*") == "Your <strong>full</strong> <em>name</em>"
    assert block_html("One\n\n- two\n- three") == "<p>One</p>\n<ul>\n<li>two</li>\n<li>three</li>\n</ul>"
    assert block_html("# Title") == "<p>Title</p>"
    assert 'href="https://example.com/a?b=1&amp;c=2"' in block_html("[rules](https://example.com/a?b=1&c=2)")


def test_of_a_picture_only_the_words_are_left() -> None:
    assert inline_html("See ![the *plan* <b>](https://evil.example/x.png) now") == "See the plan &lt;b&gt; now"


def test_links_open_elsewhere_and_tell_nobody_where_from() -> None:
    html = inline_html("[x](https://example.com)")
    assert 'target="_blank"' in html
    assert 'rel="noopener noreferrer nofollow"' in html


@pytest.mark.parametrize(
    ("source", "text"),
    [("**Full** name", "Full name"), ("a < b & c", "a < b & c"), ("one  \ntwo", "one two"), ("<b>x</b>", "<b>x</b>")],
)
def test_the_plain_name_is_what_is_seen(source: str, text: str) -> None:
    assert plain(inline_html(source)) == text
