"""What a field inherits from the text that its tag stands in, in a PDF that was a DOCX (specification 2.7).

Font and size are those that the tag was laid out in, whichever run, style or default they came from; the alignment is that of
the tag's paragraph in the DOCX. What the tag itself says comes first.
"""

import re
from collections.abc import Sequence

from contracts.fields.rules import LARGEST_FONT, SMALLEST_FONT
from services.rendering.jobs.docx.formatting import tag_key
from services.rendering.jobs.docx.values import INERT_COLOR
from services.rendering.jobs.pdf.pdfium_text import PageText
from services.rendering.jobs.tags.finding import FoundTag
from services.rendering.jobs.tags.reading_order import ReadText
from services.rendering.protocol.messages import DocxTag

_SUBSET = re.compile(r"^[A-Z]{6}\+")
_FAMILIES = (
    ("timesnewroman", "Times"),
    ("liberationserif", "Times"),
    ("times", "Times"),
    ("arial", "Helvetica"),
    ("helvetica", "Helvetica"),
    ("liberationsans", "Helvetica"),
    ("couriernew", "Courier"),
    ("courier", "Courier"),
    ("liberationmono", "Courier"),
)
"""Names of fonts in a PDF, and those that LibreOffice takes where Word's are not installed."""


class DocxSurroundings:
    """``tags``: those of the DOCX, in the order of its text. ``mirrored``: some are in lines from right to left, where their
    braces are swapped."""

    def __init__(self, tags: Sequence[DocxTag]) -> None:
        self.mirrored = any(tag.mirrored for tag in tags)
        self._tags: dict[str, list[DocxTag]] = {}
        for tag in tags:
            self._tags.setdefault(tag_key(tag.text), []).append(tag)

    def original(self, shown: str) -> str | None:
        """A tag as it was typed, which lines and directions of writing may have broken up."""
        tags = self._tags.get(tag_key(shown))
        return tags[0].text if tags else None

    def is_inert(self, text: ReadText, start: int, end: int) -> bool:
        """A brace there came with a value of a variable."""
        return any(text.color(text.character_index(position)) == INERT_COLOR for position in range(start, end))

    def take_over(self, text: PageText, tag: FoundTag) -> None:
        name, size = text.font(tag.characters[0][0])
        preferences = tag.parsed.tag.preferences
        if (family := _family(name)) is not None:
            preferences.setdefault("font", family)
        rounded = round(size * 2) / 2
        if SMALLEST_FONT <= rounded <= LARGEST_FONT:
            preferences.setdefault("font_size", int(rounded) if rounded.is_integer() else rounded)

    def align(self, tags: Sequence[FoundTag]) -> None:
        """Tags of the same text are told apart by their order; where a header repeats them there is more than one way."""
        by_key: dict[str, list[FoundTag]] = {}
        for tag in tags:
            by_key.setdefault(tag_key(tag.text), []).append(tag)
        for key, same in by_key.items():
            alignments = [tag.align for tag in self._tags.get(key, ())]
            if not alignments:
                continue
            chosen = alignments if len(alignments) == len(same) else [max(alignments, key=alignments.count)] * len(same)
            for tag, align in zip(same, chosen, strict=True):
                if align != "left":
                    tag.parsed.tag.preferences.setdefault("align", align)


def _family(name: str) -> str | None:
    plain = re.sub(r"[^a-z]", "", _SUBSET.sub("", name).lower())
    return next((family for start, family in _FAMILIES if plain.startswith(start)), None)
