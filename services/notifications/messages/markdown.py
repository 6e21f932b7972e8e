"""Light Markdown of a message to HTML and to plain text: bold, italic, ++underline++, lists, links. No HTML, no pictures.

A variable's value never takes part in the Markdown: it is put in after parsing, so a name such as ``[x](http://evil)``
stays a name. The result is cleaned once more with an allow list.
"""

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape, unescape
from urllib.parse import quote

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from services.notifications.messages.variables import IN_BRACES, Value, Variables

_PARSER = MarkdownIt("commonmark", {"html": False, "breaks": True}).disable(
    [
        "image",
        "html_block",
        "html_inline",
        "code",
        "fence",
        "backticks",
        "heading",
        "lheading",
        "hr",
        "reference",
        "entity",
    ]
)
_TAGS = {"p", "br", "strong", "em", "u", "a", "ul", "ol", "li", "blockquote"}
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_WEB = re.compile(r"(https?://|mailto:)", re.IGNORECASE)
_BARE_URL = re.compile(r"https?://[^\s<>\"]*[^\s<>\".,;:!?)\]}'*_]", re.IGNORECASE)
_UNDERLINED = re.compile(r"\+\+(?=\S)(.+?)(?<=\S)\+\+")


@dataclass(frozen=True)
class Rendered:
    """The same text twice, and the addresses in it."""

    text: str
    html: str
    links: list[str]


def render_body(body: str, variables: Variables) -> Rendered:
    """The message's body, variables replaced."""
    marks = _Marks(variables.without_gaps(_UNPRINTABLE.sub("", body)), variables)
    tokens = _PARSER.parse(marks.text)
    for token in tokens:
        if token.children is not None:
            token.children = _linked(token.children, marks)
    links = [
        str(child.attrs["href"]) for token in tokens for child in token.children or () if child.type == "link_open"
    ]
    text = marks.in_text(_plain_text(tokens))
    html = marks.in_html(_PARSER.renderer.render(tokens, _PARSER.options, {}))
    cleaned = nh3.clean(
        html,
        tags=_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )
    return Rendered(text, cleaned, list(dict.fromkeys([marks.in_address(link) for link in links] + marks.links())))


class _Marks:
    """Variables stand in the text as words that nobody can write beforehand and that Markdown leaves alone."""

    def __init__(self, body: str, variables: Variables) -> None:
        self._values: list[Value] = []
        self._word = "v" + secrets.token_hex(12)
        self._variables = variables
        self._pattern = re.compile(rf"{self._word}n(\d+)z")
        self.text = IN_BRACES.sub(self._mark, body)

    def in_text(self, text: str) -> str:
        return self._pattern.sub(lambda match: self._value(match).text, text)

    def in_address(self, address: str) -> str:
        """A link's own variable as it is; any other value as a part of an address."""

        def replaced(match: re.Match[str]) -> str:
            value = self._value(match)
            return value.text if value.link else quote(value.text, safe="")

        return self._pattern.sub(replaced, address)

    def in_html(self, html: str) -> str:
        html = re.sub(r'href="([^"]*)"', lambda match: f'href="{escape(self.in_address(unescape(match[1])))}"', html)

        def replaced(match: re.Match[str]) -> str:
            value = self._value(match)
            address = escape(value.text)
            return f'<a href="{address}">{address}</a>' if value.link and _WEB.match(value.text) else address

        inside_link = re.compile(r"<a [^>]*>.*?</a>", re.DOTALL)
        parts, end = [], 0
        for link in inside_link.finditer(html):
            parts += [self._pattern.sub(replaced, html[end : link.start()])]
            parts += [self._pattern.sub(lambda match: escape(self._value(match).text), link[0])]
            end = link.end()
        return "".join([*parts, self._pattern.sub(replaced, html[end:])])

    def links(self) -> list[str]:
        return [value.text for value in self._values if value.link and value.text]

    def _mark(self, match: re.Match[str]) -> str:
        # What is no variable stays as it is, and out of the Markdown's hands as well.
        self._values.append(self._variables.find(match[1]) or Value(match[0]))
        return f"{self._word}n{len(self._values) - 1}z"

    def _value(self, match: re.Match[str]) -> Value:
        return self._values[int(match[1])]


def _linked(children: list[Token], marks: "_Marks") -> list[Token]:
    """Bare addresses become links, ++words++ underlined; links to anywhere but the web become text."""
    result: list[Token] = []
    open_links: list[bool] = []
    for child in children:
        if child.type == "link_open":
            open_links.append(_WEB.match(marks.in_address(str(child.attrs.get("href", "")))) is not None)
            result += [child] if open_links[-1] else []
        elif child.type == "link_close":
            result += [child] if open_links.pop() else []
        elif child.type == "text" and not open_links:
            result += _split(child.content)
        else:
            result.append(child)
    return result


def _split(text: str) -> Iterator[Token]:
    end = 0
    for match in _BARE_URL.finditer(text):
        yield from _underlined(text[end : match.start()])
        yield Token("link_open", "a", 1, attrs={"href": match[0]})
        yield Token("text", "", 0, content=match[0])
        yield Token("link_close", "a", -1)
        end = match.end()
    yield from _underlined(text[end:])


def _underlined(text: str) -> Iterator[Token]:
    end = 0
    for match in _UNDERLINED.finditer(text):
        yield Token("text", "", 0, content=text[end : match.start()])
        yield Token("u_open", "u", 1)
        yield Token("text", "", 0, content=match[1])
        yield Token("u_close", "u", -1)
        end = match.end()
    yield Token("text", "", 0, content=text[end:])


def _plain_text(tokens: list[Token]) -> str:
    lines: list[str] = []
    lists: list[str | int] = []
    bullet = ""
    for token in tokens:
        if token.type == "bullet_list_open":
            lists.append("-")
        elif token.type == "ordered_list_open":
            lists.append(int(token.attrs.get("start", 1)))
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            lists.pop()
            if not lists:
                lines.append("")
        elif token.type == "list_item_open":
            kind = lists[-1]
            bullet = "  " * (len(lists) - 1) + (f"{kind}. " if isinstance(kind, int) else f"{kind} ")
            if isinstance(kind, int):
                lists[-1] = kind + 1
        elif token.type == "inline":
            lines.append(bullet + _inline_text(token.children or []))
            bullet = ""
            if not lists:
                lines.append("")
    return "\n".join(lines).strip()


def _inline_text(children: list[Token]) -> str:
    text: list[str] = []
    starts: list[tuple[int, str]] = []
    for child in children:
        if child.type == "link_open":
            starts.append((len(text), str(child.attrs.get("href", ""))))
        elif child.type == "link_close":
            start, address = starts.pop()
            if "".join(text[start:]) != address:
                text.append(f" ({address})")
        elif child.type in ("softbreak", "hardbreak"):
            text.append("\n")
        else:
            text.append(child.content)
    return "".join(text)
