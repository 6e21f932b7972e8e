"""What ``glyphs`` reads of a content stream, for those who change it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pikepdf

from services.rendering.jobs.content.font_codes import FontCodes


@dataclass(slots=True, eq=False)
class Glyphs:
    """What one show operator draws: lists with an entry for each glyph, because a page has thousands.

    ``x`` and ``y``: origins in default user space; ``em``: the font size there, never negative. A glyph is drawn by the bytes
    ``start`` to ``end`` of the string ``element`` of the operator's operand (0 unless TJ); ``advance`` is how far it moves on,
    in multiples of the font size, spacing included. ``code`` is its code in ``font``. ``removed``: 1 for those that go.
    """

    font: FontCodes
    em: float
    x: list[float]
    y: list[float]
    element: list[int]
    start: list[int]
    end: list[int]
    advance: list[float]
    code: list[int]
    removed: bytearray

    def is_like(self, index: int, other: Glyphs, of_other: int) -> bool:
        """The same drawing in the same size."""
        same = self.code[index] == other.code[of_other] and self.font is other.font
        return same and abs(self.em - other.em) < 0.01


@dataclass
class Spoken:
    """Text that stands for the glyphs of the show operators ``shows`` (/ActualText of a marked-content sequence)."""

    text: str
    shows: list[int] = field(default_factory=list)


@dataclass
class Content:
    """A content stream that was read: ``glyphs`` by index of the instruction that shows them, ``forms`` by index of their
    ``Do``, ``spoken`` by index of the ``BDC`` that has the text. ``unreadable``: there is text whose glyphs cannot be told."""

    instructions: list[Any]
    resources: pikepdf.Dictionary
    stream: pikepdf.Object | None = None
    glyphs: dict[int, Glyphs] = field(default_factory=dict)
    forms: dict[int, Content] = field(default_factory=dict)
    spoken: dict[int, Spoken] = field(default_factory=dict)
    unreadable: bool = False

    def is_changed(self) -> bool:
        """Return whether glyphs are to be removed from it or from a form that it draws."""
        return any(1 in shown.removed for shown in self.glyphs.values()) or any(
            form.is_changed() for form in self.forms.values()
        )
