"""The words of titles that are Markdown, as markdown-it reads them."""

import html

import nh3
import pytest
from markdown_it import MarkdownIt

from contracts.formats.markdown_text import plain_title


@pytest.mark.parametrize(
    "source",
    [
        "YOUR **FULL** NAME", "*Last* __name__", "***both*** and ~~gone~~", "a_b_c and _d_", "2 * 3 * 4", "5* rating*",
        "[our terms](https://example.com/a_b_) apply", "[**bold** link](https://example.com \"title\")", r"\*not bold\*",
        "`code **stays**` here", "**a *b* c**", "Name\nof the firm", "a ** b ** c", "snake_case_name", "", "**", "100 %", "a < b & c",
        "****all****", "*a*b*c*", r"`a\*b` \`c\`", "_a_b_", "**a** **b**", "`` a`b `` *c*", "a*b*c _d e_f", "** a**", "[a*](x)*",
        "[ ] agreed", "(1) **Rent** (2) _Deposit_", "**Größe** der _Wohnung_, 王**小**明",
    ],
)  # fmt: skip
def test_the_words_of_a_title_are_those_that_a_reader_of_markdown_sees(source: str) -> None:
    rendered = MarkdownIt("js-default").renderInline(source)
    expected = " ".join(html.unescape(nh3.clean(rendered, tags=set())).split())
    assert plain_title(source) == expected


@pytest.mark.parametrize(
    "begin", ["`", "`a", "``a`", "*", "*a ", "**a", "_a ", "~~", "a*", "[", "![", "[](", "[](a '", "[](  ", "\\\\`"]
)
def test_a_title_of_a_hostile_sender_keeps_nobody_busy(begin: str) -> None:
    """Ten thousand backticks took two minutes, in the process that answers everybody."""
    title = (begin * 10_000)[:10_000]
    for _ in range(20):
        assert len(plain_title(title)) <= len(title)
