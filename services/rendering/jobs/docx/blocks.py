"""Where the parts of a condition or a loop begin and end in the tree of a DOCX.

``[[for:x]]`` and its ``[[end]]`` may stand in one paragraph, in two paragraphs beside each other, in two cells of a row or
in two rows of a table. Anything else crosses the document's own nesting and is refused.

python-docx has no word for a piece of a paragraph or of a table: the elements that it gives are cut and joined here.
"""

import copy
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.rendering.jobs.docx.names import CELL, PARAGRAPH, PARAGRAPH_PROPERTIES, ROW, RUN, TABLE, TEXT_BOX, W
from services.rendering.jobs.docx.tokens import ELSE, END, FOR, IF, TOKEN, Placeholder, placeholder
from services.rendering.jobs.pdf.refused import Refused

_MARKS = "{urn:countersign:docx}"
_numbers = itertools.count()
_INLINE = (PARAGRAPH, f"{W}hyperlink", f"{W}smartTag", f"{W}fldSimple")
_STORIES = (TEXT_BOX, f"{W}hdr", f"{W}ftr", f"{W}footnote", f"{W}endnote")
_DRAWN = (f"{W}t", f"{W}drawing", f"{W}pict", f"{W}object", f"{W}tab", f"{W}br", f"{W}sym", TOKEN)
_DRAWN_TOO = (f"{W}footnoteReference", f"{W}endnoteReference", f"{W}fldChar")


@dataclass(frozen=True)
class Block:
    """A condition or a loop: its tokens."""

    start: Any
    otherwise: Any | None
    end: Any

    @property
    def meant(self) -> Placeholder:
        return placeholder(self.start)


@dataclass
class Sections:
    """``parts``: one or two lists of siblings (what is kept, else what) in ``container``; ``anchor`` stands before them.

    ``before`` and ``after``: the rest of the paragraphs in which the block begins and ends. ``mark`` is on the paragraphs that
    were one with them: ``Dear [[if:x]]Sir[[end]],`` may be broken over paragraphs, and is one again when the tokens are gone.
    """

    container: Any
    parts: list[list[Any]]
    anchor: Any
    before: Any | None = None
    after: Any | None = None
    mark: str = ""
    whole: bool = False

    def replace(self, result: Sequence[Any]) -> None:
        """Put ``result`` where the parts were."""
        for node in (node for part in self.parts for node in part):
            if node.getparent() is self.container:
                self.container.remove(node)
        for node in result:
            self.anchor.addprevious(node)
        self.container.remove(self.anchor)
        if not result:
            if self.before is not None and self.after is not None and self.whole:
                _append(self.before, self.after)
            return
        if self.after is not None and result[-1].get(f"{_MARKS}last-{self.mark}"):
            _append(result[-1], self.after)
        if self.before is not None and result[0].get(f"{_MARKS}first-{self.mark}"):
            _append(self.before, result[0])


def matched(tokens: Sequence[Any]) -> list[Block]:
    """The outermost blocks of these tokens, in order. Raises Refused for what is not closed or not opened."""
    blocks: list[Block] = []
    open_: list[tuple[Any, Any | None]] = []
    for token in tokens:
        parsed = placeholder(token)
        if parsed.kind in (IF, FOR):
            open_.append((token, None))
        elif parsed.kind == ELSE:
            if not open_ or placeholder(open_[-1][0]).kind != IF or open_[-1][1] is not None:
                raise Refused(f"{parsed.text} in the DOCX belongs to no [[if:...]]")
            open_[-1] = (open_[-1][0], token)
        elif parsed.kind == END:
            if not open_:
                raise Refused(f"{parsed.text} in the DOCX closes nothing")
            start, otherwise = open_.pop()
            opened = placeholder(start)
            if parsed.name and parsed.name != opened.name:
                raise Refused(f"{opened.text} in the DOCX is closed by {parsed.text}")
            if not open_:
                blocks.append(Block(start, otherwise, token))
    if open_:
        raise Refused(f"{placeholder(open_[0][0]).text} in the DOCX is not closed by [[end]]")
    return blocks


def sections(block: Block) -> Sections:
    """Take the block out of the text around it, without its tokens."""
    marks = [token for token in (block.start, block.otherwise, block.end) if token is not None]
    container, children = _common(marks)
    if container.tag == ROW:
        if block.otherwise is not None:
            raise _crossing(block, "an [[else]] cannot stand in a row of a table")
        children = [container, container]
        container = container.getparent()
        for token in marks:
            _drop(token)
        return _sections(container, [[children[0]]])
    if container.tag == TABLE:
        return _rows(block, container, children, marks)
    if container.tag in _INLINE or all(child.tag == RUN for child in children):
        return _runs(block, container, children)
    return _paragraphs(block, container, marks)


def _rows(block: Block, table: Any, children: list[Any], marks: list[Any]) -> Sections:
    """A row with nothing but the token goes; one with more in it belongs to the block."""
    for token in marks:
        _drop(token)
    rows = list(table)
    places = [rows.index(child) for child in children]
    bare = [is_bare(child) for child in children]
    first = places[0] + (1 if bare[0] else 0)
    last = places[-1] + (0 if bare[-1] else 1)
    if block.otherwise is not None and not bare[1]:
        raise _crossing(block, "[[else]] between rows must stand in a row of its own")
    middle = places[1] if block.otherwise is not None else None
    parts = [rows[first:last]] if middle is None else [rows[first:middle], rows[middle + 1 : last]]
    sections = _sections(table, parts, at=rows[places[0]])
    for child, goes in zip(children, bare, strict=True):
        if goes and child.getparent() is table:
            table.remove(child)
    return sections


def _runs(block: Block, container: Any, children: list[Any]) -> Sections:
    if any(child.tag != RUN or child.find(TOKEN) is None for child in children):
        raise _crossing(block, "it begins or ends inside a link or another part of the paragraph")
    siblings = list(container)
    places = [siblings.index(child) for child in children]
    parts = [siblings[first + 1 : second] for first, second in itertools.pairwise(places)]
    sections = _sections(container, parts, at=children[0])
    for child in children:
        container.remove(child)
    return sections


def _paragraphs(block: Block, container: Any, marks: list[Any]) -> Sections:
    for token in marks:
        if token.getparent().getparent().tag != PARAGRAPH or token.getparent().getparent().getparent() is not container:
            raise _crossing(block, "it must begin and end in the same text, cell or row")
    before, rest = cut(marks[0].getparent())
    anchor = container.makeelement(f"{W}proofErr")
    before.addnext(anchor)
    sections = Sections(container, [], anchor, mark=str(next(_numbers)))
    open_ends = []
    for token in marks[1:]:
        ending, following = cut(token.getparent())
        siblings = list(container)
        between = siblings[siblings.index(rest) + 1 : siblings.index(ending)]
        nodes = [rest, *between] if ending is rest else [rest, *between, ending]
        for piece, side in ((rest, "first"), (ending, "last")):
            if not is_bare(piece):
                piece.set(f"{_MARKS}{side}-{sections.mark}", "1")
        open_ends += [not is_bare(rest), not is_bare(ending)]
        for piece in {rest, ending}:
            if is_bare(piece) and not _ends_section(piece):
                container.remove(piece)
                nodes.remove(piece)
        sections.parts.append(nodes)
        rest = following
    sections.before, sections.after, sections.whole = remaining(before), remaining(rest), all(open_ends)
    return sections


def cut(run: Any) -> tuple[Any, Any]:
    """Split the paragraph of ``run``, which goes; both pieces, the second one new. What ends a section of the document stays
    with the last piece."""
    paragraph = run.getparent()
    second = paragraph.makeelement(PARAGRAPH)
    if paragraph.pPr is not None:
        second.append(copy.deepcopy(paragraph.pPr))
        for section in paragraph.pPr.findall(f"{W}sectPr"):
            paragraph.pPr.remove(section)
    second.extend(list(run.itersiblings()))
    paragraph.remove(run)
    paragraph.addnext(second)
    return paragraph, second


def remaining(piece: Any) -> Any | None:
    """A piece of a paragraph that was cut, or None when nothing was in it: it goes."""
    if is_bare(piece) and not _ends_section(piece):
        piece.getparent().remove(piece)
        return None
    return piece


def _ends_section(paragraph: Any) -> bool:
    return paragraph.find(f"{PARAGRAPH_PROPERTIES}/{W}sectPr") is not None


def _append(target: Any, source: Any) -> None:
    """The content of one paragraph to the end of another, which it ends then."""
    for key, value in source.attrib.items():
        if key.startswith(_MARKS):
            target.set(key, value)
    for child in list(source):
        if child.tag != PARAGRAPH_PROPERTIES:
            target.append(child)
        elif (section := child.find(f"{W}sectPr")) is not None:
            target.get_or_add_pPr().append(section)
    if source.getparent() is not None:
        source.getparent().remove(source)


def _sections(container: Any, parts: list[list[Any]], at: Any | None = None) -> Sections:
    anchor = container.makeelement(f"{W}proofErr")
    (at if at is not None else parts[0][0]).addprevious(anchor)
    return Sections(container, parts, anchor)


def _common(marks: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The nearest element around all tokens, and its children that hold them."""
    paths = [[*reversed([token, *token.iterancestors()])] for token in marks]
    depth = 0
    while all(len(path) > depth + 1 for path in paths) and len({path[depth] for path in paths}) == 1:
        depth += 1
    return paths[0][depth - 1], [path[depth] for path in paths]


def _drop(token: Any) -> None:
    run = token.getparent()
    run.getparent().remove(run)


def is_bare(element: Any) -> bool:
    """Nothing that is drawn is in it."""
    if next(element.iter(*_DRAWN_TOO), None) is not None:
        return False
    return not any(drawn.tag != f"{W}t" or (drawn.text or "").strip() for drawn in element.iter(*_DRAWN))


def _crossing(block: Block, reason: str) -> Refused:
    return Refused(f"{block.meant.text} in the DOCX is badly nested: {reason}")


def mend(root: Any) -> None:
    """Give an empty paragraph to what must not be empty; remove tables without rows and our own marks."""
    for paragraph in root.iter(PARAGRAPH):
        for key in [key for key in paragraph.attrib if key.startswith(_MARKS)]:
            del paragraph.attrib[key]
    for table in list(root.iter(TABLE)):
        if next(table.iter(ROW), None) is None and table.getparent() is not None:
            table.getparent().remove(table)
    for cell in [*root.iter(CELL), *root.iter(*_STORIES)]:
        if next(cell.iter(PARAGRAPH), None) is None or (cell.tag == CELL and cell[-1].tag == TABLE):
            cell.append(cell.makeelement(PARAGRAPH))
