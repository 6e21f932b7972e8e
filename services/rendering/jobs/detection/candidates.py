"""Places that could be filled in, one kind of evidence after the other, each with its label and how sure that is. Pure."""

import re
from dataclasses import dataclass

from services.rendering.jobs.detection.labels.labels import Meaning, meaning, name_of, normalised
from services.rendering.jobs.detection.surroundings import Label
from services.rendering.jobs.pdf.geometry import Rectangle

MOST_WORDS = 8
"""Of a label; what is longer is a sentence."""

UNIT = re.compile(
    r"[^\w]{1,3}|(?:eur|usd|gbp|chf|sek|dkk|nok|pln|czk|kč|zł|kg|km|cm|mm|m2|m²|h|hrs?)\.?", re.IGNORECASE
)
"""What may stand where somebody writes: a currency, a measure, plus or minus."""

_KNOWN, _COLON, _SHORT, _SENTENCE = 0.08, 0.05, 0.04, -0.25
_NUMBER = -0.3
"""What has no word is a number of a page or of a note more often than a label, but in tables."""
_FEW, _LETTERS = 4, 2


@dataclass(frozen=True)
class Candidate:
    """A place: ``reason`` is told to people, ``confidence`` from 0 to 1. ``is_tick``: a box to tick; ``cells``: of a comb, one
    for each letter; ``lines``: to be written on; ``kind``: what the place itself says that it is, such as a date."""

    box: Rectangle
    reason: str
    confidence: float
    label: str = ""
    is_tick: bool = False
    cells: int = 0
    lines: int = 1
    kind: str = ""

    def meaning(self, language: str) -> Meaning:
        """Return what it is for."""
        return Meaning(self.kind, is_known=True) if self.kind else meaning(self.label, language)


def with_label(
    label: Label | None, language: str, base: dict[str, float], *, what: str, box: Rectangle
) -> Candidate | None:
    """The place with its label. ``base`` has the confidence by the label's side (``Label.side``), ``alone`` without any; a
    side that is not there is no evidence."""
    side = label.side if label else "alone"
    if side not in base:
        return None
    if label is None:
        return Candidate(box, f"{what} without a label", base[side])
    text = label_text(label)
    confidence = base[side]
    names_a_kind = meaning(text, language).is_known
    words = len(normalised(text).split())
    if names_a_kind and words <= MOST_WORDS:
        confidence += _KNOWN
    if not names_a_kind and "alone" in base and sum(letter.isalpha() for letter in text) < _LETTERS:
        confidence += _NUMBER
    if label.has_colon:
        confidence += _COLON
    elif words > MOST_WORDS:
        confidence += _SENTENCE
    elif side == "above" and words <= _FEW and not names_a_kind:
        confidence += _SHORT
    return Candidate(box, f"{what} {side} “{name_of(text)}”", min(confidence, 0.98), text)


def label_text(label: Label) -> str:
    """Return the part of a phrase that is the label: of a sentence that goes on in the field its last words."""
    text = label.phrase.text
    if label.side != "after" or len(normalised(text).split()) <= MOST_WORDS:
        return text
    words = text.split()
    for place in range(len(words) - 2, max(len(words) - MOST_WORDS, 0), -1):
        if words[place].endswith((".", ",", ";", ":", ")", "!", "?")):
            return " ".join(words[place + 1 :])
    return " ".join(words[-3:])
