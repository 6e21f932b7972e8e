"""Variables of a DOCX: ``[[name]]``, conditions and loops (peer facts 3.3), filled with data.

Data are data: a value is put in as text (or as cleaned HTML) and never looked at again, whatever brackets or braces it has.
Braces of a value are marked by a colour that nobody sees, so that ``tags`` knows them from those of the author.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from services.rendering.jobs.docx.blocks import Block, matched, mend, sections
from services.rendering.jobs.docx.html import HtmlValue, is_html
from services.rendering.jobs.docx.names import TEXT, TEXT_BOX
from services.rendering.jobs.docx.scope import MISSING, Loops, Scope, Wanted, dotted, holds, loop_names
from services.rendering.jobs.docx.tokens import END, FOR, IF, TOKEN, VARIABLE, placeholder, set_text, tokens_of
from services.rendering.jobs.docx.values import as_text, text_runs
from services.rendering.jobs.pdf.refused import Refused

MOST_PLACEHOLDERS = 5_000
MOST_ELEMENTS = 300_000
"""Elements that filling may add: a loop in a loop in a loop."""

_TAG_SYNTAX = re.compile(r"[{};=\s]+")


def schema(stories: Sequence[Any]) -> dict[str, Any]:
    """Return what the document asks for, by name, in the words of JSON Schema. Raises Refused when blocks are badly nested."""
    variables = Wanted("object")
    count = 0
    for root in stories:
        for part in [root, *root.iter(TEXT_BOX)]:
            tokens = tokens_of(part, TOKEN)
            count += len(tokens)
            if count > MOST_PLACEHOLDERS:
                raise Refused(f"The DOCX has more than {MOST_PLACEHOLDERS:,} placeholders.")
            matched(tokens)
            _collect(tokens, variables)
    return {name: inner.schema() for name, inner in variables.inner.items()}


def _collect(tokens: Sequence[Any], variables: Wanted) -> None:
    loops = Loops()
    blocks: list[bool] = []
    for token in tokens:
        parsed = placeholder(token)
        if parsed.kind == VARIABLE:
            loops.want(variables, parsed.name, "string")
        elif parsed.kind == IF:
            loops.want(variables, parsed.name, "boolean")
            blocks.append(False)
        elif parsed.kind == FOR:
            inner = loops.want(variables, parsed.name, "array")
            loops.open.append((loop_names(parsed.name), inner or Wanted("array")))
            blocks.append(True)
        elif parsed.kind == END and blocks.pop():
            loops.open.pop()


def fill(stories: Sequence[Any], variables: Mapping[str, Any]) -> None:
    """Changes the trees. Raises Refused naming the variables that are missing or do not fit."""
    filling = _Filling()
    scope = Scope(variables)
    for root in stories:
        filling.expand(root, scope)
        mend(root)
    if filling.missing:
        are_several = len(filling.missing) > 1
        message = f"variables lacks {dotted(iter(filling.missing))}, which the DOCX uses"
        raise Refused(message + (" (null leaves a place empty)" if are_several else ""), field="variables")


def restore(stories: Sequence[Any]) -> None:
    """Placeholders become the text that they were."""
    for root in stories:
        for part in [root, *root.iter(TEXT_BOX)]:
            for token in tokens_of(part, TOKEN):
                run = token.getparent()
                text = run.makeelement(TEXT)
                set_text(text, placeholder(token).text)
                run.replace(token, text)


class _Filling:
    def __init__(self) -> None:
        self.missing: dict[str, None] = {}
        self._added = 0

    def expand(self, root: Any, scope: Scope) -> None:
        """Blocks from the outside in, then variables, then the text boxes inside."""
        while blocks := matched(tokens_of(root, TOKEN)):
            for block in blocks:
                self._resolve(block, scope)
        for token in tokens_of(root, TOKEN):
            self._put(token, scope)
        for box in tokens_of(root, TEXT_BOX):
            self.expand(box, scope)

    def _resolve(self, block: Block, scope: Scope) -> None:
        meant = block.meant
        value = scope.find(meant.name)
        sections_found = sections(block)
        if meant.kind == IF:
            chosen = (
                sections_found.parts[0]
                if holds(value)
                else sections_found.parts[1]
                if len(sections_found.parts) > 1
                else []
            )
            sections_found.replace(chosen)
            return
        result: list[Any] = []
        for item in _listed(value, meant.text):
            copies = sections_found.container.makeelement(sections_found.container.tag)
            copies.extend(copy.deepcopy(node) for node in sections_found.parts[0])
            self._count(sum(1 for _ in copies.iter()))
            self.expand(copies, scope.inside(meant.name, item))
            result += list(copies)
        sections_found.replace(result)

    def _put(self, token: Any, scope: Scope) -> None:
        parsed = placeholder(token)
        run = token.getparent()
        value = scope.find(parsed.name)
        if value is MISSING:
            self.missing[parsed.name] = None
            value = None
        if isinstance(value, list | Mapping):
            kind = "a list: use [[for:...]]" if isinstance(value, list) else "an object: name one of its properties"
            raise Refused(f"{parsed.text} in the DOCX stands for {kind}", field="variables")
        words = as_text(value)
        if parsed.in_tag:
            _put_text(run, _TAG_SYNTAX.sub(" ", words).strip())
        elif isinstance(value, str) and is_html(words):
            self._count(HtmlValue(words, run).insert())
        else:
            _put_text(run, words)

    def _count(self, added: int) -> None:
        self._added += added
        if self._added > MOST_ELEMENTS:
            raise Refused("The variables make the document too large to be processed.", field="variables")


def _put_text(run: Any, text: str) -> None:
    for new_run in text_runs(run, text):
        run.addprevious(new_run)
    run.getparent().remove(run)


def _listed(value: Any, text: str) -> list[Any]:
    if value is MISSING or value is None or value is False or value == "":
        return []
    if isinstance(value, list):
        return value
    raise Refused(f"{text} in the DOCX needs a list", field="variables")
