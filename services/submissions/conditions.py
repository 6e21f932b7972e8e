"""Conditions of fields (peer facts 4.3): a field is there only when other fields have certain values.

The list is an AND; an item with ``operation: or`` is OR-ed with the item before it: ``[A, B, C or]`` is A AND (B OR C). A
hidden field has no value, also for the conditions of others. The browser follows the same rules; the server decides.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from contracts.types import Condition, FieldDefinition


def hidden(fields: Iterable[FieldDefinition], values: Mapping[str, Any]) -> set[str]:
    """The uuids of the fields that are not there, given the ``values`` by field uuid of all parties.

    Fields are decided after those that they depend on, without recursion: a chain may be as long as the fields are many. In
    a circle, the field that is met again counts as visible.
    """
    conditional = {field.uuid: grouped(field.conditions) for field in fields if field.conditions}
    visible: dict[str, bool] = {}
    begun: set[str] = set()

    def value_of(uuid: str) -> Any:
        return values.get(uuid) if visible.get(uuid, True) else None

    for first in conditional:
        waiting = [first]
        while waiting:
            uuid = waiting[-1]
            if uuid not in begun:
                begun.add(uuid)
                needed = {item.field_uuid for group in conditional[uuid] for item in group}
                waiting += [other for other in needed if other in conditional and other not in begun]
                continue
            waiting.pop()
            if uuid not in visible:
                visible[uuid] = all(
                    any(holds(item, value_of(item.field_uuid)) for item in group) for group in conditional[uuid]
                )
    return {uuid for uuid, shown in visible.items() if not shown}


def grouped(conditions: Sequence[Condition]) -> list[list[Condition]]:
    """All groups must hold; a group holds when one of its items does."""
    groups: list[list[Condition]] = []
    for condition in conditions:
        if condition.operation == "or" and groups:
            groups[-1].append(condition)
        else:
            groups.append([condition])
    return groups


def settled(
    conditions: Sequence[Condition], changing: Collection[str], values: Mapping[str, Any]
) -> list[Condition] | None:
    """What is left to decide in the browser: conditions on fields outside ``changing`` are decided here and dropped.

    None when the field can never be shown. So a signer's page needs no values of others.
    """
    left: list[Condition] = []
    for group in grouped(conditions):
        open_items = [item for item in group if item.field_uuid in changing]
        if any(holds(item, values.get(item.field_uuid)) for item in group if item.field_uuid not in changing):
            continue
        if not open_items:
            return None
        first, *others = open_items
        left += [first.model_copy(update={"operation": None})]
        left += [item.model_copy(update={"operation": "or"}) for item in others]
    return left


def holds(condition: Condition, value: Any) -> bool:
    """One item. An action that nobody knows holds: a field too many is seen, a field too few is not."""
    wanted = condition.value
    match condition.action:
        case "empty" | "unchecked":
            return _empty(value)
        case "not_empty" | "checked":
            return not _empty(value)
        case "equal":
            return _equal(value, wanted)
        case "not_equal":
            return not _equal(value, wanted)
        case "contains":
            return _contains(value, wanted)
        case "does_not_contain":
            return not _contains(value, wanted)
        case "greater_than":
            return _compared(value, wanted) > 0
        case "less_than":
            return _compared(value, wanted) < 0
    return True


def _empty(value: Any) -> bool:
    return value is None or value is False or value == "" or value == []


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, list):
        return _word(wanted) in [_word(item) for item in value]
    return _word(value) == _word(wanted)


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, list):
        return _equal(value, wanted)
    return bool(_word(wanted)) and _word(wanted).lower() in _word(value).lower()


def _compared(value: Any, wanted: Any) -> int:
    """-1, 0 or 1; 0 when the two cannot be compared. Dates are ISO texts and compare as such."""
    if _empty(value) or isinstance(value, list | bool):
        return 0
    try:
        left, right = float(value), float(wanted)
        return (left > right) - (left < right)
    except (TypeError, ValueError):
        text, other = _word(value), _word(wanted)
        return (text > other) - (text < other)


def _word(value: Any) -> str:
    """As the tag grammar writes values: ``Box:true``, ``Count:2``."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
