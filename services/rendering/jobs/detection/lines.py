"""Lines to write on: rules, underscores and dotted leaders. Pure.

What is no line to write on: what underlines text, what parts sections, what borders a table.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from services.rendering.jobs.detection.candidates import MOST_WORDS, UNIT, Candidate, with_label
from services.rendering.jobs.detection.labels.labels import meaning, name_of, normalised, party_of
from services.rendering.jobs.detection.page.marks import Rule, shared
from services.rendering.jobs.detection.page.phrases import Leader, Phrase
from services.rendering.jobs.detection.surroundings import Label, Surroundings
from services.rendering.jobs.pdf.geometry import Rectangle

SHORTEST = 18.0
_LOWEST, _LINE, _SIGNED = 10.0, 15.0, 26.0
"""Points: how high a field on a line is at least, as a rule, and for a signature."""
_WIDE = 0.8
"""Share of the text's width from which on a line without a label parts sections."""
_COVERED = 0.5
_OFF_LINE = 3.8
"""How far above a line the foot of the letters to its left may be."""
_STACK_LOW, _STACK_HIGH = 11.0, 36.0
_PAGE_NUMBER = re.compile(r"[$€£¥]?\s*\d|[ivxlc]{1,5}(?!\w)|▶|►|»|→", re.IGNORECASE)

_RULE = {"after": 0.84, "above": 0.76, "below": 0.66, "before": 0.5, "alone": 0.35}
_UNDERSCORES = {"after": 0.9, "above": 0.85, "below": 0.75, "before": 0.72, "alone": 0.6}
_DOTS = {"after": 0.86, "above": 0.84, "below": 0.66, "before": 0.5, "alone": 0.45}


def on_rules(
    rules: Iterable[tuple[Rule, float]], text_width: float, around: Surroundings, language: str
) -> list[Candidate]:
    """The fields on free-standing rules, each with the length of the rule that it is a part of; ``text_width`` is that of all
    text of the page."""
    fields = [
        field
        for rule, length in rules
        if rule.length >= SHORTEST
        and not around.has_corner(rule)
        and (field := _on_rule(rule, around, language, is_wide=length > _WIDE * text_width)) is not None
    ]
    return _stacked(fields)


def on_leaders(leaders: Iterable[Leader], around: Surroundings, language: str) -> list[Candidate]:
    """The fields on underscores and dots."""
    return _stacked([field for leader in leaders if (field := _on_leader(leader, around, language)) is not None])


def _on_rule(rule: Rule, around: Surroundings, language: str, *, is_wide: bool) -> Candidate | None:
    """``is_wide``: it goes, or is a part of a line that goes, from one side of the text to the other."""
    covering = around.on_line(*rule)
    label_on_line: Label | None = None
    start, end = rule.start, rule.end
    if covering:
        inside = sum(shared((phrase.box.left, phrase.box.right), (start, end)) for phrase in covering)
        if inside > _COVERED * rule.length:
            return None
        label_on_line, start, end = _beside_text(covering, start, end)
        if end - start < max(SHORTEST, 0.4 * rule.length):
            return None
    place = Rectangle(start, rule.at, end, rule.at + _LINE)
    label = label_on_line or around.left_of(place)
    below = around.below(start, end, rule.at)
    if label is None or (below is not None and _says_more(below, label, language)):
        label = below or label
    if is_wide and label is not None and not _is_plain(label, language):
        return None
    # A wide line without a label is a field only as a further line of another one.
    label = label or (None if is_wide else around.above(place))
    field = with_label(label, language, _RULE, what="line", box=place)
    if field is None:
        return None
    doubt = 0.0 if label is None else _doubt(label, rule, around.room_above(start, end, rule.at, _LINE), language)
    field = replace(field, confidence=field.confidence - doubt)
    return _as_signed(_of_height(field, label, around, language), label)


def _doubt(label: Label, rule: Rule, room: float, language: str) -> float:
    """Return how much less sure a line is: where the letters before it do not stand on it, where what they say tells
    nothing, where nobody could write above it."""
    if label.side != "after":
        return 0.25 if room < _LOWEST - 1 else 0.0
    if label.phrase.box.bottom - rule.at > _OFF_LINE:
        return 0.2
    return 0.0 if label.has_colon or meaning(label.text, language).is_known else 0.06


def _is_plain(label: Label, language: str) -> bool:
    """Return whether a label tells a line to write on from one that parts sections: on the line and with a colon, or a caption
    of known words."""
    if label.side == "after":
        return label.has_colon
    return meaning(label.text, language).is_known and len(normalised(label.text).split()) <= MOST_WORDS


def _on_leader(leader: Leader, around: Surroundings, language: str) -> Candidate | None:
    if leader.is_dotted and _PAGE_NUMBER.match(leader.after):
        return None  # it leads to what is there already: tables of contents, lists of prices
    box = leader.box
    place = Rectangle(box.left, box.bottom, box.right, box.bottom + max(box.height, _LOWEST))
    label = around.left_of(place)
    below = around.below(box.left, box.right, box.bottom + 2)
    if label is None or (below is not None and _says_more(below, label, language)):
        label = below or label
    label = label or around.above(place) or around.right_of(place)
    base, what = (_DOTS, "dotted leader") if leader.is_dotted else (_UNDERSCORES, "underscores")
    field = with_label(label, language, base, what=what, box=place)
    if field is None:
        return None
    if leader.is_dotted and leader.is_last and leader.after and not UNIT.fullmatch(leader.after):
        field = replace(field, confidence=field.confidence - 0.2)
    if leader.is_mask:
        reason = f"date to fill in {label.side} “{name_of(field.label)}”" if label else "date to fill in"
        field = replace(field, kind="date", reason=reason, confidence=max(field.confidence, 0.92))
    return _as_signed(_of_height(field, label, around, language), label)


def _beside_text(covering: Sequence[Phrase], start: float, end: float) -> tuple[Label | None, float, float]:
    """A line that goes on under its label, or under a unit at its end: the label, and what is left of the line."""
    label: Label | None = None
    for phrase in covering:
        middle = (phrase.box.left + phrase.box.right) / 2
        if middle < (start + end) / 2:
            start = max(start, phrase.box.right + 2)
            if not UNIT.fullmatch(phrase.text) or phrase.text.endswith(":"):
                label = Label(phrase, "after", 2.0)
        else:
            end = min(end, phrase.box.left - 2)
    return label, start, end


def _says_more(below: Label, left: Label, language: str) -> bool:
    """Return whether the caption says what is filled in, and the text to the left does not: “Signed by ____ (Date)”."""
    if left.has_colon:
        return False
    caption, beside = meaning(below.text, language), meaning(left.text, language)
    short = len(normalised(below.text).split()) <= MOST_WORDS
    return short and (caption.is_known > beside.is_known or (caption.is_known and left.gap > 2 * max(below.gap, 4.0)))


def _of_height(field: Candidate, label: Label | None, around: Surroundings, language: str) -> Candidate:
    """As high as is usual for what goes there, and as the blank above the line is."""
    is_signed = field.meaning(language).kind in ("signature", "initials") or (
        label is not None and label.side == "above" and party_of(label.text) is not None
    )
    usual_height = _SIGNED if is_signed else _LINE
    left, bottom, right, _ = field.box
    height = max(min(around.room_above(left, right, bottom, usual_height), usual_height), _LOWEST)
    return replace(field, box=Rectangle(left, bottom, right, bottom + height))


def _as_signed(field: Candidate, label: Label | None) -> Candidate:
    """A line above the name of a party is where they sign."""
    if label is None or label.side != "above" or field.kind or len(normalised(label.text).split()) > MOST_WORDS:
        return field
    if party_of(label.text) is None or meaning(label.text).is_known:
        return field
    return replace(field, kind="signature", confidence=max(field.confidence, 0.84))


def _stacked(fields: Sequence[Candidate]) -> list[Candidate]:
    """Lines of one length below each other are one field with several lines, when the first alone has a label."""
    stacked: list[Candidate] = []
    for field in sorted(fields, key=lambda line: (-line.box.bottom, line.box.left)):
        above = next((earlier for earlier in reversed(stacked[-8:]) if _continues(earlier, field)), None)
        if above is None:
            stacked.append(field)
            continue
        place = stacked.index(above)
        box = Rectangle(above.box.left, field.box.bottom, above.box.right, above.box.top)
        stacked[place] = replace(
            above, box=box, lines=above.lines + 1, confidence=max(above.confidence, min(field.confidence, 0.6))
        )
    return stacked


def _continues(above: Candidate, field: Candidate) -> bool:
    distance = above.box.bottom - field.box.bottom
    is_below = (
        abs(above.box.right - field.box.right) < 4
        and above.box.left - 200 < field.box.left < above.box.left + 4
        and _STACK_LOW <= distance <= _STACK_HIGH
    )
    return is_below and not field.label and not field.kind and not above.kind
