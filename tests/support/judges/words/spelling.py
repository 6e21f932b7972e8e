"""A judge of English that we did not write: Hunspell, with the British dictionary of LibreOffice (Debian's hunspell-en-gb).

``words.txt`` holds what it does not know and is right all the same: names, and terms of the trade.
"""

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from docs.wording import refusals
from services.gateway.http.openapi import specification

ROOT = Path(__file__).parents[4]
WORDS = Path(__file__).with_name("words.txt")
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "deploy",
    "docs",
    "contracts",
    "services",
    "tests",
)
_CODE = re.compile(
    r"^(```|~~~).*?^\1"  # a block
    r"|``[^\n]+?``|`[^`]*`"  # a span
    r"|\]\([^)]*\)"  # where a link leads to
    r"|\{\{.*?\}\}|\[\[.*?\]\]|‹[^›]*›"  # a tag, a placeholder
    r"|\{\w*\}"
    r"|https?://\S+|<!--.*?-->|<[a-z/][^>]*>"
    r"|“[^”]*”|\"[^\"\n]*\"|'[^'\s][^'\n]*[^'\s]'(?!\w)"  # what is quoted is as somebody else writes it
    r"|(?<![\w/])[\w.@*-]*[/@_=][\w/.@:*=-]*|\w+\(\)|--[\w-]+|\w+\.\w+[\w.]*"  # a path, an address, a setting, a name of code
    r"|[#$&:;.]\w+;?",
    re.DOTALL | re.MULTILINE,
)
_WORD = re.compile(r"(?<![\w’'-])[A-Za-z][A-Za-z’']*(?![\w])")


def texts() -> Iterator[tuple[str, str]]:
    """Yield everything in English that people read, each with where it stands."""
    for one in refusals.all_refusals():
        yield f"{one.module}:{one.line}", one.text
    yield from _of_document(specification.document(), "contracts/openapi.yaml")
    for page in PAGES:
        for path in sorted((ROOT / page).rglob("*.md")) if not page.endswith(".md") else [ROOT / page]:
            yield path.relative_to(ROOT).as_posix(), path.read_text()
    for path in sorted((ROOT / "contracts" / "languages" / "messages" / "en").glob("*.json")):
        yield path.relative_to(ROOT).as_posix(), "\n".join(_strings(json.loads(path.read_text())))


def plain(text: str) -> str:
    """Return a text without what is code, an address, or quoted."""
    return _CODE.sub(" · ", text)


def words(text: str) -> set[str]:
    """Return the words of a text that a dictionary can know: no code, no names with capitals within, no abbreviations."""
    raw = {word.strip("'’").replace("’", "'") for word in _WORD.findall(plain(text))}
    singular = {word.removesuffix("'s").removesuffix("s'") for word in raw}
    return {word for word in singular if len(word) > 2 and word[1:].islower()}


def unknown(read: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the words of the texts that the dictionary does not know, each with where it stands."""
    places: dict[str, list[str]] = {}
    for place, text in read:
        for word in words(text):
            places.setdefault(word, []).append(place)
    command = ["hunspell", "-d", "en_GB", "-i", "utf-8", "-l"]
    told = subprocess.run(command, input="\n".join(places), capture_output=True, text=True, check=True).stdout
    return {word: sorted(places[word]) for word in sorted(set(told.split()) & places.keys())}


def own_words() -> frozenset[str]:
    """Read the words of the project, in small letters."""
    lines = WORDS.read_text().splitlines()
    return frozenset(line.lower() for line in lines if line and not line.startswith("#"))


def _of_document(node: object, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, list):
        for item in node:
            yield from _of_document(item, place)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in ("description", "summary", "title") and isinstance(value, str):
                yield place, value
            elif key not in ("example", "examples", "enum", "default"):
                yield from _of_document(value, place)


def _strings(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _strings(value)
