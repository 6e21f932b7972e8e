"""Boxes to tick: small squares, circles, characters that are boxes, empty brackets. Pure."""

from collections.abc import Iterable, Sequence

from services.rendering.jobs.detection.candidates import Candidate, label_text
from services.rendering.jobs.detection.labels.labels import is_answer, name_of
from services.rendering.jobs.detection.surroundings import Label, Surroundings
from services.rendering.jobs.pdf.geometry import Rectangle

_REACH = 26.0
_BEFORE, _AFTER, _ALONE, _ANSWER = 0.86, 0.78, 0.45, 0.06
_LOGO = 0.3
"""Circles without a label are parts of drawings."""
_SIDE = 3.0
"""By how many points more the label may be away that follows the box: it is where labels are as a rule."""


def on_boxes(boxes: Iterable[tuple[Rectangle, str]], around: Surroundings) -> list[Candidate]:
    """The fields of boxes to tick; each comes with what it is called in the reason, such as “square”."""
    return [_tick(box, what, around) for box, what in boxes]


def _tick(box: Rectangle, what: str, around: Surroundings) -> Candidate:
    label = _label(box, around)
    if label is None:
        return Candidate(box, f"{what} without a label", _ALONE if what != "circle" else _LOGO, is_tick=True)
    text = label_text(label)
    confidence = (_BEFORE if label.side == "before" else _AFTER) + (_ANSWER if is_answer(text) else 0.0)
    return Candidate(box, f"{what} {label.side} “{name_of(text)}”", confidence, text, is_tick=True)


def _label(box: Rectangle, around: Surroundings) -> Label | None:
    right, left = around.right_of(box, _REACH), around.left_of(box)
    if left is not None and left.gap > _REACH:
        left = None
    if right is None or left is None:
        return right or left
    return right if right.gap <= left.gap + _SIDE else left


def without_grids(squares: Sequence[Rectangle]) -> list[Rectangle]:
    """Without the cells of squared paper and crosswords: more than two squares that touch, one beside and one below another."""
    edges = {(round(box.left), round(box.top)) for box in squares}

    def has(x: float, y: float) -> bool:
        return any((round(x) + i, round(y) + j) in edges for i in (-1, 0, 1) for j in (-1, 0, 1))

    return [box for box in squares if not (has(box.right, box.top) and has(box.left, box.bottom))]
