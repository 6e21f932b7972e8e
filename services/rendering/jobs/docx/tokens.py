"""Placeholders ``[[...]]`` in the text of a DOCX, each put into a run of its own.

Word splits what one types over runs as it likes. ``isolate`` finds a placeholder in the text of a paragraph as a reader
sees it, and replaces it by a run that holds one ``token`` element and the formatting of the first character. From then on
placeholders are elements, not text: what is put in their place is never read again. python-docx does not split runs.
"""

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from contracts.fields.formulas.references import EXPRESSIONS
from services.rendering.jobs.docx.names import PARAGRAPH, RUN, RUN_PROPERTIES, SPACE, TEXT, TEXT_BOX, W
from services.rendering.jobs.tags.grammar import is_whole

TOKEN = "{urn:countersign:docx}token"  # noqa: S105 - an element, no secret
VARIABLE, IF, ELSE, FOR, END = "variable", "if", "else", "for", "end"

_PLACEHOLDER = re.compile(r"\[\[\s*([^\[\]\n\t]{1,250}?)\s*\]\]")
_CONTROL = re.compile(r"(if|for|else|end)\s*(?::\s*(.*))?", re.IGNORECASE | re.DOTALL)
_NAME = re.compile(r"[^\W\d][\w .\-'’/&()]*")
_BLANKS = re.compile(r"\s+")
_TAG_BRACES = re.compile(r"\{\{|\}\}")
_ATTRIBUTE = re.compile(rf";\s*({'|'.join(EXPRESSIONS).replace('_', '[_-]')})\s*=[^;]*\Z", re.IGNORECASE)
_BREAKS = {f"{W}tab": "\t", f"{W}br": "\n", f"{W}cr": "\n"}


@dataclass(frozen=True)
class Placeholder:
    """``text`` is as it stands in the document; ``name`` has single blanks; ``in_tag``: it is part of a ``{{...}}`` tag."""

    kind: str
    name: str
    text: str
    in_tag: bool = False


def isolate(root: Any) -> list[str]:
    """Changes the tree. Returns the texts in double brackets that are no placeholders and stay as text."""
    odd: list[str] = []
    for paragraph in list(root.iter(PARAGRAPH)):
        odd += _isolate_in(paragraph)
    return odd


def tokens_of(root: Any, name: str) -> list[Any]:
    """The elements of this name below ``root`` in the order of the text, without those in text boxes inside."""
    box = root if root.tag == TEXT_BOX else next(root.iterancestors(TEXT_BOX), None)
    return [
        element
        for element in root.iter(name)
        if element is not root and next(element.iterancestors(TEXT_BOX), None) is box
    ]


def placeholder(token: Any) -> Placeholder:
    return Placeholder(token.get("kind"), token.get("name"), token.get("text"), token.get("in-tag") == "1")


def read(inside: str, text: str) -> Placeholder | None:
    """Return what stands between the brackets, or None when that is no placeholder."""
    control = _CONTROL.fullmatch(inside)
    if control:
        kind, name = control[1].lower(), _BLANKS.sub(" ", (control[2] or "").strip())
        needs_name = kind in (IF, FOR)
        return Placeholder(kind, name, text) if _NAME.fullmatch(name) or (not name and not needs_name) else None
    name = _BLANKS.sub(" ", inside)
    return Placeholder(VARIABLE, name, text) if _NAME.fullmatch(name) else None


def own_texts(paragraph: Any) -> Iterator[tuple[Any, str]]:
    """``w:t`` elements (and what breaks a line, or a column) with their text, without those of text boxes inside."""
    for element in paragraph.iter(TEXT, *_BREAKS):
        if next(element.iterancestors(PARAGRAPH)) is not paragraph:
            continue
        if element.tag == TEXT:
            yield element, element.text or ""
        elif element.getparent().tag == RUN:
            yield element, _BREAKS[element.tag]


def _isolate_in(paragraph: Any) -> list[str]:
    pieces = list(own_texts(paragraph))
    text = "".join(piece for _, piece in pieces)
    if "[[" not in text:
        return []
    tags = _tag_spans(text)
    odd = []
    for match in reversed(list(_PLACEHOLDER.finditer(text))):
        parsed = read(match[1], match[0])
        if parsed is None:
            odd.append(match[0])
        else:
            in_tag = any(start < match.start() and match.end() < end for start, end in tags)
            if in_tag and _ATTRIBUTE.search(text, 0, match.start()):
                continue  # it names a field, no variable
            _replace(paragraph, match.start(), match.end(), parsed, in_tag=in_tag)
    return odd


def _tag_spans(text: str) -> list[tuple[int, int]]:
    spans, start = [], None
    for brace in _TAG_BRACES.finditer(text):
        if brace[0] == "{{":
            start = brace.start()
        elif start is not None:
            if is_whole(text[start + 2 : brace.start()]):
                spans.append((start, brace.end()))
            start = None
    return spans


def _replace(paragraph: Any, start: int, end: int, parsed: Placeholder, *, in_tag: bool) -> None:
    """Take the characters away and put the token before what follows them."""
    position, first = 0, None
    for element, piece in list(own_texts(paragraph)):
        left, right = max(start - position, 0), min(end - position, len(piece))
        position += len(piece)
        if left >= right or element.tag != TEXT:
            continue
        if first is None:
            first = split_run(element, left)
            run = new_run(first, parsed, in_tag=in_tag)
            first.addprevious(run)
            element = first.find(TEXT)
            right, left = right - left, 0
        set_text(element, (element.text or "")[right:])
    if first is not None:
        drop_if_empty(first)


def new_run(model: Any, parsed: Placeholder, *, in_tag: bool) -> Any:
    run = bare_run(model)
    token = run.makeelement(TOKEN, {"kind": parsed.kind, "name": parsed.name, "text": parsed.text})
    if in_tag:
        token.set("in-tag", "1")
    run.append(token)
    return run


def bare_run(model: Any) -> Any:
    """A run formatted as ``model``."""
    run = model.makeelement(RUN)
    properties = model.find(RUN_PROPERTIES)
    if properties is not None:
        run.append(copy.deepcopy(properties))
    return run


def split_run(text: Any, offset: int) -> Any:
    """Split the run of a ``w:t`` in two before the character at ``offset``; the second run, which begins with the rest."""
    run = text.getparent()
    second = bare_run(run)
    rest = text.makeelement(TEXT)
    set_text(rest, (text.text or "")[offset:])
    set_text(text, (text.text or "")[:offset])
    second.append(rest)
    for follower in list(text.itersiblings()):
        second.append(follower)
    run.addnext(second)
    drop_if_empty(run)
    return second


def set_text(element: Any, text: str) -> None:
    element.text = text
    element.set(SPACE, "preserve")


def drop_if_empty(run: Any) -> None:
    for text in run.findall(TEXT):
        if not text.text:
            run.remove(text)
    if all(child.tag == RUN_PROPERTIES for child in run) and run.getparent() is not None:
        run.getparent().remove(run)
