"""The guides for who writes programs: pages of ``docs/``, which go along with the gateway, as an installation serves them.

Which they are, in which order and what each is about is said in ``docs/README.md``. What such a page says of other files, which
a reader of an installation does not have, is text without a link there, and its pictures are left out.
"""

import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_INSTALLED, _SOURCES = Path(__file__).with_name("guides"), Path(__file__).parents[3] / "docs"
_LIST = "README.md"
_OF_OPERATORS = "## Who runs it"
"""The section of the list whose pages are not served."""
_ABOUT_US = frozenset({"interface", "lists", "reference"})
"""Pages about how this project is made, or about what is served beside them."""
_ROW = re.compile(r"^\| (\[.+?) \| (.+) \|$", re.MULTILINE)
_PAGE = re.compile(r"\[[\w-]+\.md\]\(([\w-]+)\.md\)")
_LINK = re.compile(r"(!?)\[((?:`[^`]*`|[^\]`])*)\]\(([^)\s]*)\)")
_COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
_MENTION = re.compile(r"`?docs/([\w-]+)\.md`?")
_FENCE = "```"


class Guide(NamedTuple):
    """``name`` is the last part of its address; ``source`` is Markdown, ``summary`` a line about it."""

    name: str
    title: str
    summary: str
    source: str


@cache
def names() -> dict[str, str]:
    """Return the names of the guides with what each is about; none where the pages are not there."""
    page = _folder() / _LIST
    return dict(_listed(page.read_text(encoding="utf-8"))) if page.exists() else {}


@cache
def guides() -> dict[str, Guide]:
    """Return the guides by their names, in the order of the list. It reads all of them: who starts asks for ``names``."""
    guide_by_name = {}
    for name, summary in names().items():
        text = (_folder() / f"{name}.md").read_text(encoding="utf-8")
        source = "".join(_outside_code(_COMMENT.sub("", text), lambda part: _LINK.sub(_served(names()), part)))
        guide_by_name[name] = Guide(name, text.partition("\n")[0].removeprefix("# "), summary, source)
    return guide_by_name


def linked(node: Any, base_url: str) -> Any:
    """Return a copy of an OpenAPI document, or of a part, whose descriptions have links to the guides that they name."""
    if isinstance(node, list):
        return [linked(item, base_url) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _mentions(value, base_url) if key == "description" and isinstance(value, str) else linked(value, base_url)
        for key, value in node.items()
    }


def index() -> str:
    """Return the page that lists the guides."""
    rows = "\n".join(f"- [{guide.title}](guides/{guide.name}.md): {guide.summary}." for guide in guides().values())
    return f"# Guides\n\nWhat holds for more than one call. [The reference](reference.md) has the calls.\n\n{rows}\n"


def _folder() -> Path:
    return _INSTALLED if _INSTALLED.is_dir() else _SOURCES


def _listed(page: str) -> Iterator[tuple[str, str]]:
    """Yield name and summary; pages of one row share theirs."""
    for pages, summary in _ROW.findall(page.partition(_OF_OPERATORS)[0]):
        for name in _PAGE.findall(pages):
            if name not in _ABOUT_US:
                yield name, _LINK.sub(lambda link: link[2], summary)


def _outside_code(text: str, change: Callable[[str], str]) -> Iterator[str]:
    """Yield the parts of a page, those that are no block of code changed."""
    for number, part in enumerate(re.split(rf"(?m)^({_FENCE}.*?^{_FENCE}$)", text, flags=re.DOTALL)):
        yield part if number % 2 else change(part)


def _served(served_names: Collection[str]) -> Callable[[re.Match[str]], str]:
    def link(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        path = target.partition("#")[0]
        elsewhere = target.startswith(("/", "http:", "https:", "#"))
        if not picture and (elsewhere or (path.endswith(".md") and path.removesuffix(".md") in served_names)):
            return match[0]
        return words

    return link


def _mentions(text: str, base_url: str) -> str:
    def link(match: re.Match[str]) -> str:
        return f"[{match[0].strip('`')}]({base_url}/guides/{match[1]})" if match[1] in names() else match[0]

    return _MENTION.sub(link, text)
