"""Keys of a body that the operation does not have: they are ignored, and the caller is told which."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from services.gateway.http.json_body import path

HEADER = "X-Ignored-Keys"
REASON = "is not a key of this request"
MOST = 20
"""Keys that are told, of all that are ignored."""
_LOOKED_AT = 200
"""Entries of an array that are looked at."""
_LONGEST = 100

Place = tuple[str | int, ...]
Finder = Callable[[Any, Place], Iterator[Place]]


def finder_of(schema: Mapping[str, Any]) -> Callable[[Any], list[str]]:
    """Make a function that returns the paths of the first ``MOST`` keys of a body that the schema does not have, such as
    ``submitters[0].emial``. Where a schema allows any key, as ``metadata`` does, there are none."""
    find = _finder(schema)

    def ignored(body: Any) -> list[str]:
        places: list[str] = []
        for place in find(body, ()):
            places.append(path(list(place))[:_LONGEST])
            if len(places) == MOST:
                break
        return places

    return ignored


def header(ignored: Sequence[str]) -> dict[str, str]:
    """Return the header that names them, with ``?`` for what a header may not hold; none where none was ignored."""
    places = ", ".join(re.sub(r"[^\x21-\x2b\x2d-\x7e]", "?", place) for place in ignored)
    return {HEADER: places} if places else {}


def note(answer: Any, ignored: Sequence[str]) -> None:
    """Add them to ``warnings`` of the answer, where it has such: of a dry run, and of the submitters that a call has made or
    changed. A key of ``submitters[1]`` stands with the second submitter, all others with the first. Warnings of a batch have a
    ``row``, which is 0 for what holds for all rows."""
    row = {"row": 0} if isinstance(answer, dict) and "rows" in answer else {}
    for place in ignored:
        if (warnings := _warnings(answer, place)) is not None:
            warnings.append({**row, "field": place, "reason": REASON})


def _warnings(answer: Any, place: str) -> list[dict[str, Any]] | None:
    if (
        isinstance(answer, dict)
        and isinstance(submitters := answer.get("submitters"), list)
        and "warnings" not in answer
    ):
        answer = submitters
    if isinstance(answer, list):
        match = re.match(r"submitters\[(\d+)\]", place)
        number = int(match[1]) if match else 0
        answer = answer[number] if number < len(answer) else next(iter(answer), None)
    if not isinstance(answer, dict) or not {"problems", "embed_src"} & answer.keys():
        return None
    warnings = answer.get("warnings")
    return warnings if isinstance(warnings, list) else None


def _finder(schema: Mapping[str, Any]) -> Finder:
    branches = [schema, *schema.get("anyOf", ()), *schema.get("allOf", ()), *schema.get("oneOf", ())]
    is_open = any(branch.get("additionalProperties") not in (None, False) for branch in branches)
    properties: dict[str, Finder] = {}
    for branch in branches:
        properties |= {name: _finder(child) for name, child in branch.get("properties", {}).items()}
    items = next((_finder(branch["items"]) for branch in branches if isinstance(branch.get("items"), dict)), _nothing)

    def find(value: Any, place: Place) -> Iterator[Place]:
        if isinstance(value, dict) and properties:
            for name, inner in value.items():
                if (child := properties.get(name)) is not None:
                    yield from child(inner, (*place, name))
                elif not is_open:
                    yield (*place, name)
        elif isinstance(value, list):
            for number, inner in enumerate(value[:_LOOKED_AT]):
                yield from items(inner, (*place, number))

    return find


def _nothing(_value: Any, _place: Place) -> Iterator[Place]:
    return iter(())
