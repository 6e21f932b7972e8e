"""The Unicode bidirectional algorithm (UAX #9), as far as a signed document needs it.

Marks (LRM, RLM, ALM) and isolates are honoured. The older embeddings and overrides (LRE, RLE, LRO, RLO, PDF) are ignored on
purpose: they can show "pay 100" as "pay 001", and nobody needs them on a form.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from bidi.mirror import MIRRORED

_RIGHT = frozenset({"R", "AL"})
_STRONG = frozenset({"L", "R", "AL"})
_INITIATORS = frozenset({"LRI", "RLI", "FSI"})
_IGNORED = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "BN"})
_NEUTRAL = frozenset({"B", "S", "WS", "ON", "LRI", "RLI", "FSI", "PDI"})
_DEEPEST = 125
_MOST_OPEN_BRACKETS = 63
# Canonically equivalent brackets pair with each other (BD16).
_SAME_BRACKET = {"\u2329": "\u3008", "\u232a": "\u3009"}


def levels(text: str) -> tuple[int, list[int]]:
    """The paragraph's level (0 left to right, 1 right to left, from its first strong character) and one embedding level
    for each character. ``text`` is one paragraph."""
    types = [_type(character) for character in text]
    if not any(kind in _RIGHT or kind in {"AN", "RLI"} for kind in types):
        return 0, [0] * len(types)
    partners = _isolates(types)
    base = _first_strong(types, 0, len(types), partners)
    depths = _explicit(types, partners, base)
    resolved = list(types)
    for sequence in _sequences(types, depths, partners, base):
        _resolve(text, types, resolved, sequence)
    result = [_implicit(kind, depth) for kind, depth in zip(resolved, depths, strict=True)]
    _reset_blanks(types, result, base)
    return base, result


def visual_order(depths: Sequence[int]) -> list[int]:
    """Indexes from left to right for the levels of one line (rule L2)."""
    order = list(range(len(depths)))
    if not order or not any(depths):
        return order
    lowest_odd = min((depth for depth in depths if depth % 2), default=max(depths) + 1)
    for depth in range(max(depths), lowest_odd - 1, -1):
        start = 0
        while start < len(order):
            if depths[order[start]] < depth:
                start += 1
                continue
            end = start
            while end < len(order) and depths[order[end]] >= depth:
                end += 1
            order[start:end] = reversed(order[start:end])
            start = end
    return order


def logical_indexes(shown: str, *, right_to_left: bool) -> list[int]:
    """From a line as it is seen, left to right, to the order in which it is read and written: the inverse of the algorithm,
    as far as there is one. ``right_to_left``: of the paragraph."""
    text = shown[::-1] if right_to_left else shown
    order = visual_order(levels(("\u200f" if right_to_left else "\u200e") + text)[1][1:])
    return [len(shown) - 1 - index for index in reversed(order)] if right_to_left else order


def _type(character: str) -> str:
    return unicodedata.bidirectional(character) or "L"


def _isolates(types: list[str]) -> dict[int, int]:
    """From each isolate initiator to its PDI and back (BD9); an unclosed one leads to the end of the paragraph."""
    partners: dict[int, int] = {}
    open_: list[int] = []
    for index, kind in enumerate(types):
        if kind in _INITIATORS:
            open_.append(index)
        elif kind == "PDI" and open_:
            start = open_.pop()
            partners[start], partners[index] = index, start
    for start in open_:
        partners[start] = len(types)
    return partners


def _first_strong(types: list[str], start: int, end: int, partners: dict[int, int]) -> int:
    """Rules P2 and P3; what stands inside an isolate does not count."""
    index = start
    while index < end:
        kind = types[index]
        if kind in _STRONG:
            return 1 if kind in _RIGHT else 0
        index = partners[index] if kind in _INITIATORS else index + 1
    return 0


def _explicit(types: list[str], partners: dict[int, int], base: int) -> list[int]:
    """Levels from isolates (rules X5a to X6a)."""
    stack, overflow, result = [base], 0, []
    for index, kind in enumerate(types):
        if kind == "PDI" and index in partners:
            if overflow:
                overflow -= 1
            else:
                stack.pop()
        result.append(stack[-1])
        if kind in _INITIATORS:
            inner = "RLI" if kind == "FSI" and _first_strong(types, index + 1, partners[index], partners) else kind
            level = (stack[-1] + 1) | 1 if inner == "RLI" else (stack[-1] + 2) & ~1
            if level <= _DEEPEST and not overflow:
                stack.append(level)
            else:
                overflow += 1
    return result


@dataclass
class _Sequence:
    """An isolating run sequence (BD13): indexes in order, and the directions before and after it."""

    indexes: list[int]
    level: int
    before: str
    after: str

    @property
    def direction(self) -> str:
        return "R" if self.level % 2 else "L"


def _sequences(types: list[str], depths: list[int], partners: dict[int, int], base: int) -> list[_Sequence]:
    """Rule X10."""
    remaining = [index for index, kind in enumerate(types) if kind not in _IGNORED]
    runs: list[list[int]] = []
    for position, index in enumerate(remaining):
        if position and depths[remaining[position - 1]] == depths[index]:
            runs[-1].append(index)
        else:
            runs.append([index])
    starting_with = {run[0]: run for run in runs}
    result = []
    for run in runs:
        if types[run[0]] == "PDI" and run[0] in partners:
            continue
        indexes = list(run)
        while types[indexes[-1]] in _INITIATORS and partners[indexes[-1]] in starting_with:
            indexes += starting_with[partners[indexes[-1]]]
        level = depths[indexes[0]]
        place = {index: position for position, index in enumerate(remaining)}
        first, last = place[indexes[0]], place[indexes[-1]]
        previous = depths[remaining[first - 1]] if first else base
        ends_open = types[indexes[-1]] in _INITIATORS
        following = base if ends_open or last + 1 == len(remaining) else depths[remaining[last + 1]]
        result.append(_Sequence(indexes, level, _side(level, previous), _side(level, following)))
    return result


def _side(level: int, neighbour: int) -> str:
    return "R" if max(level, neighbour) % 2 else "L"


def _resolve(text: str, types: list[str], resolved: list[str], sequence: _Sequence) -> None:
    kinds = [types[index] for index in sequence.indexes]
    _weak(kinds, sequence)
    _brackets(text, types, kinds, sequence)
    _neutral(kinds, sequence)
    for index, kind in zip(sequence.indexes, kinds, strict=True):
        resolved[index] = kind


def _weak(kinds: list[str], sequence: _Sequence) -> None:
    """Rules W1 to W7."""
    previous, strong = sequence.before, sequence.before
    for position, kind in enumerate(kinds):
        if kind == "NSM":
            kind = "ON" if previous in _INITIATORS or previous == "PDI" else previous
        previous = kind
        if kind in _STRONG:
            strong = kind
        elif kind == "EN" and strong == "AL":
            kind = "AN"
        kinds[position] = kind
    kinds[:] = ["R" if kind == "AL" else kind for kind in kinds]
    for position in range(1, len(kinds) - 1):
        before, kind, after = kinds[position - 1 : position + 2]
        if before == after and ((kind == "ES" and before == "EN") or (kind == "CS" and before in {"EN", "AN"})):
            kinds[position] = before
    _terminators(kinds)
    strong = sequence.before
    for position, kind in enumerate(kinds):
        if kind in {"L", "R"}:
            strong = kind
        elif kind == "EN" and strong == "L":
            kinds[position] = "L"


def _terminators(kinds: list[str]) -> None:
    """Rules W5 and W6: signs beside a European number belong to it, other separators are neutral."""
    position = 0
    while position < len(kinds):
        end = position
        while end < len(kinds) and kinds[end] == "ET":
            end += 1
        if end > position:
            beside = (position > 0 and kinds[position - 1] == "EN") or (end < len(kinds) and kinds[end] == "EN")
            kinds[position:end] = ["EN" if beside else "ON"] * (end - position)
        position = max(end, position + 1)
    kinds[:] = ["ON" if kind in {"ES", "CS"} else kind for kind in kinds]


def _brackets(text: str, types: list[str], kinds: list[str], sequence: _Sequence) -> None:
    """Rule N0: a pair of brackets takes one direction."""
    inside = sequence.direction
    for opening, closing in _pairs(text, kinds, sequence.indexes):
        directions = {_number_is_right(kind) for kind in kinds[opening + 1 : closing]} & {"L", "R"}
        if inside in directions:
            direction = inside
        elif directions:
            other = directions.pop()
            context = next(
                (strong for kind in reversed(kinds[:opening]) if (strong := _number_is_right(kind)) in {"L", "R"}),
                sequence.before,
            )
            direction = other if context == other else inside
        else:
            continue
        for position in (opening, closing):
            kinds[position] = direction
            follower = position + 1
            while follower < len(kinds) and types[sequence.indexes[follower]] == "NSM":
                kinds[follower] = direction
                follower += 1


def _pairs(text: str, kinds: list[str], indexes: list[int]) -> list[tuple[int, int]]:
    """BD16: positions of opening and closing brackets, sorted by the opening one."""
    open_: list[tuple[str, int]] = []
    pairs: list[tuple[int, int]] = []
    for position, index in enumerate(indexes):
        character = _SAME_BRACKET.get(text[index], text[index])
        if kinds[position] != "ON" or character not in MIRRORED:
            continue
        category = unicodedata.category(character)
        if category == "Ps":
            if len(open_) == _MOST_OPEN_BRACKETS:
                break
            open_.append((_SAME_BRACKET.get(MIRRORED[character], MIRRORED[character]), position))
        elif category == "Pe":
            for depth in range(len(open_) - 1, -1, -1):
                if open_[depth][0] == character:
                    pairs.append((open_[depth][1], position))
                    del open_[depth:]
                    break
    return sorted(pairs)


def _number_is_right(kind: str) -> str:
    return "R" if kind in {"EN", "AN"} else kind


def _neutral(kinds: list[str], sequence: _Sequence) -> None:
    """Rules N1 and N2."""
    position = 0
    while position < len(kinds):
        end = position
        while end < len(kinds) and kinds[end] in _NEUTRAL:
            end += 1
        if end > position:
            before = _number_is_right(kinds[position - 1]) if position else sequence.before
            after = _number_is_right(kinds[end]) if end < len(kinds) else sequence.after
            kinds[position:end] = [before if before == after else sequence.direction] * (end - position)
        position = max(end, position + 1)


def _implicit(kind: str, level: int) -> int:
    """Rules I1 and I2."""
    if level % 2:
        return level + 1 if kind in {"L", "EN", "AN"} else level
    return level + {"R": 1, "EN": 2, "AN": 2}.get(kind, 0)


def _reset_blanks(types: list[str], result: list[int], base: int) -> None:
    """Rule L1 for separators and the end of the paragraph. Ends of lines are cut off by the line breaker, which drops the
    blanks there. Ignored characters take the level of what stands before them."""
    blank = True
    for index in range(len(types) - 1, -1, -1):
        kind = types[index]
        if kind in {"S", "B"}:
            blank = True
            result[index] = base
        elif kind in {"WS", "FSI", "LRI", "RLI", "PDI"} or kind in _IGNORED:
            if blank:
                result[index] = base
        else:
            blank = False
    for index, kind in enumerate(types):
        if kind in _IGNORED:
            result[index] = result[index - 1] if index else base
