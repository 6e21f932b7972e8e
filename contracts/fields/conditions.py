"""Conditions of fields and documents (peer facts 4.3): they are there only when fields have certain values.

The list is an AND; an item with ``operation: or`` is OR-ed with the item before it: ``[A, B, C or]`` is A AND (B OR C). A
hidden field has no value, also for the conditions of others, and a field whose every place is on hidden documents is hidden.
The browser follows the same rules; the server decides.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.fields.rules import is_empty
from contracts.types import Condition, FieldDefinition

OfDocuments = Mapping[str, Sequence[Condition]]
"""The conditions of the documents that have any, by the document's uuid."""


def of_documents(documents: Iterable[Mapping[str, Any]]) -> dict[str, list[Condition]]:
    """``documents``: JSON of StoredDocuments, as a submission keeps it."""
    return {
        document["uuid"]: [Condition.model_validate(item) for item in document["conditions"]]
        for document in documents
        if document.get("conditions")
    }


@dataclass(frozen=True)
class _Rule:
    """When a field or document is there: every group holds, and if it has ``papers`` one of these documents is there."""

    groups: Sequence[Sequence[Condition]]
    papers: Sequence[str] = ()

    @property
    def needed(self) -> list[str]:
        return [*(item.field_uuid for group in self.groups for item in group), *self.papers]


def hidden(fields: Iterable[FieldDefinition], documents: OfDocuments, values: Mapping[str, Any]) -> set[str]:
    """The uuids of the fields and documents that are not there, given the ``values`` by field uuid of all parties.

    What is conditional is decided after that which it depends on, without recursion: a chain may be as long as the fields are
    many. In a circle, what is met again counts as visible.
    """
    rules = _rules(fields, documents)
    visible: dict[str, bool] = {}
    begun: set[str] = set()

    def value_of(uuid: str) -> Any:
        return values.get(uuid) if visible.get(uuid, True) else None

    for first in rules:
        waiting = [first]
        while waiting:
            uuid = waiting[-1]
            rule = rules[uuid]
            if uuid not in begun:
                begun.add(uuid)
                # The first one that is needed is decided first, as in the browser.
                waiting += [other for other in reversed(rule.needed) if other in rules and other not in begun]
                continue
            waiting.pop()
            if uuid not in visible:
                visible[uuid] = all(
                    any(holds(item, value_of(item.field_uuid)) for item in group) for group in rule.groups
                ) and (not rule.papers or any(visible.get(paper, True) for paper in rule.papers))
    return {uuid for uuid, is_visible in visible.items() if not is_visible}


def undecided(fields: Iterable[FieldDefinition], documents: OfDocuments, open_fields: Collection[str]) -> set[str]:
    """The uuids of the fields and documents that what goes into ``open_fields`` may yet show or hide, by whatever chain."""
    dependents: dict[str, list[str]] = {}
    for uuid, rule in _rules(fields, documents).items():
        for needed in rule.needed:
            dependents.setdefault(needed, []).append(uuid)
    uuids: set[str] = set()
    waiting = list(open_fields)
    while waiting:
        new = [uuid for uuid in dependents.get(waiting.pop(), ()) if uuid not in uuids]
        uuids.update(new)
        waiting += new
    return uuids


def on_shown_documents(field: FieldDefinition, hidden: Collection[str]) -> FieldDefinition:
    """The field without its places on hidden documents."""
    areas = [area for area in field.areas if area.attachment_uuid not in hidden]
    return field if len(areas) == len(field.areas) else field.model_copy(update={"areas": areas})


def _rules(fields: Iterable[FieldDefinition], documents: OfDocuments) -> dict[str, _Rule]:
    """By uuid, of what can be hidden at all."""
    rules = {uuid: _Rule(grouped(conditions)) for uuid, conditions in documents.items()}
    for field in fields:
        papers = list(dict.fromkeys(area.attachment_uuid for area in field.areas)) if documents else []
        if any(paper not in documents for paper in papers):
            papers = []
        if field.conditions or papers:
            rules[field.uuid] = _Rule(grouped(field.conditions), papers)
    return rules


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
    """Return what is left to decide in the browser: conditions on fields outside ``changing`` are decided here and dropped.

    None when the field or document can never be shown. So a signer's page needs no values of others.
    """
    remaining: list[Condition] = []
    for group in grouped(conditions):
        open_items = [item for item in group if item.field_uuid in changing]
        if any(holds(item, values.get(item.field_uuid)) for item in group if item.field_uuid not in changing):
            continue
        if not open_items:
            return None
        first, *others = open_items
        remaining += [first.model_copy(update={"operation": None})]
        remaining += [item.model_copy(update={"operation": "or"}) for item in others]
    return remaining


def holds(condition: Condition, value: Any) -> bool:
    """One item. An action that nobody knows holds: a field too many is seen, a field too few is not."""
    expected = condition.value
    match condition.action:
        case "empty" | "unchecked":
            return is_empty(value)
        case "not_empty" | "checked":
            return not is_empty(value)
        case "equal":
            return _equal(value, expected)
        case "not_equal":
            return not _equal(value, expected)
        case "contains":
            return _contains(value, expected)
        case "does_not_contain":
            return not _contains(value, expected)
        case "greater_than":
            return _compared(value, expected) > 0
        case "less_than":
            return _compared(value, expected) < 0
    return True


def _equal(value: Any, expected: Any) -> bool:
    if isinstance(value, list):
        return _word(expected) in [_word(item) for item in value]
    return _word(value) == _word(expected)


def _contains(value: Any, expected: Any) -> bool:
    if isinstance(value, list):
        return _equal(value, expected)
    return bool(_word(expected)) and _word(expected).lower() in _word(value).lower()


def _compared(value: Any, expected: Any) -> int:
    """-1, 0 or 1; 0 when the two cannot be compared. Dates are ISO texts and compare as such."""
    if is_empty(value) or isinstance(value, list | bool):
        return 0
    try:
        left, right = float(value), float(expected)
        return (left > right) - (left < right)
    except (TypeError, ValueError):
        text, other = _word(value), _word(expected)
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
