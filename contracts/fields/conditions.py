"""Conditions of fields and documents (peer facts 4.3): they are there only when fields have certain values.

The list is an AND; an item with ``operation: or`` is OR-ed with the item before it: ``[A, B, C or]`` is A AND (B OR C). A
hidden field has no value, also for the conditions of others, and a field whose every place is on hidden documents is hidden.
A field may have a condition that is an expression, too, and a formula that computes its value (``contracts.fields.formulas``):
both are decided together, because each may depend on the other. The browser follows the same rules; the server decides.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.fields.formulas import evaluating
from contracts.fields.formulas.grammar import Tree, references, written
from contracts.fields.formulas.references import CONDITION, FORMULA, REQUIRED_IF, expression, is_computed
from contracts.fields.rules import is_empty
from contracts.types import Condition, FieldDefinition, FieldType

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
    """When a field or document is there: every group holds, the expression too, and if it has ``papers`` one of these documents
    is there. ``formula`` gives it its value."""

    groups: Sequence[Sequence[Condition]]
    papers: Sequence[str] = ()
    expression: Tree | None = None
    formula: Tree | None = None

    @property
    def needed(self) -> list[str]:
        trees = [tree for tree in (self.expression, self.formula) if tree is not None]
        of_trees = [uuid for tree in trees for uuid in references(tree)]
        return [*(item.field_uuid for group in self.groups for item in group), *self.papers, *of_trees]


@dataclass(frozen=True)
class Decided:
    """The uuids of the fields and documents that are ``hidden``, and all ``values`` by field uuid: given, or computed."""

    hidden: set[str]
    values: Mapping[str, Any]
    kinds: Mapping[str, FieldType]

    def requires(self, field: FieldDefinition) -> bool:
        """Return whether a field must be filled in where it is shown: as ``required_if`` says, else as it says itself."""
        tree = expression(field, REQUIRED_IF)
        return field.required if tree is None else evaluating.holds(tree, self._operand)

    def _operand(self, uuid: str) -> Any:
        return _operand(self.kinds, uuid, None if uuid in self.hidden else self.values.get(uuid))


def hidden(fields: Iterable[FieldDefinition], documents: OfDocuments, values: Mapping[str, Any]) -> set[str]:
    """The uuids of the fields and documents that are not there, given the ``values`` by field uuid of all parties, those of
    formulas among them."""
    return decided(fields, documents, values).hidden


def decided(
    fields: Iterable[FieldDefinition],
    documents: OfDocuments,
    values: Mapping[str, Any],
    computing: Collection[str] = (),
) -> Decided:
    """Decide which fields and documents are there, given the ``values`` by field uuid of all parties, and compute the fields
    ``computing`` (uuids) by their formulas, whatever ``values`` says of them.

    What is conditional is decided after that which it depends on, without recursion: a chain may be as long as the fields are
    many. In a circle, what is met again counts as visible, and as empty where a formula computes it.
    """
    fields = list(fields)
    by_uuid = {field.uuid: field for field in fields}
    rules = _rules(fields, documents, computing)
    kinds = {field.uuid: field.type for field in fields}
    values = {uuid: value for uuid, value in values.items() if uuid not in computing} if computing else values
    computed: dict[str, Any] = {}
    visible: dict[str, bool] = {}
    begun: set[str] = set()

    def value_of(uuid: str) -> Any:
        if not visible.get(uuid, True):
            return None
        return computed[uuid] if uuid in computed else values.get(uuid)

    def operand_of(uuid: str) -> Any:
        return _operand(kinds, uuid, value_of(uuid))

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
                visible[uuid] = (
                    all(any(holds(item, value_of(item.field_uuid)) for item in group) for group in rule.groups)
                    and (rule.expression is None or evaluating.holds(rule.expression, operand_of))
                    and (not rule.papers or any(visible.get(paper, True) for paper in rule.papers))
                )
                if rule.formula is not None and visible[uuid]:
                    computed[uuid] = evaluating.result(by_uuid[uuid], rule.formula, operand_of)
    all_values = (
        {**values, **{uuid: value for uuid, value in computed.items() if value is not None}} if computed else values
    )
    return Decided({uuid for uuid, is_visible in visible.items() if not is_visible}, all_values, kinds)


def computing(fields: Iterable[FieldDefinition]) -> set[str]:
    """Return the uuids of the fields that formulas compute."""
    return {field.uuid for field in fields if is_computed(field)}


def _operand(kinds: Mapping[str, FieldType], uuid: str, value: Any) -> Any:
    kind = kinds.get(uuid)
    return None if kind is None else evaluating.operand(kind, value)


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


def _rules(
    fields: Iterable[FieldDefinition], documents: OfDocuments, computing: Collection[str] = ()
) -> dict[str, _Rule]:
    """By uuid, of what can be hidden at all, or is computed."""
    rules = {uuid: _Rule(grouped(conditions)) for uuid, conditions in documents.items()}
    for field in fields:
        papers = list(dict.fromkeys(area.attachment_uuid for area in field.areas)) if documents else []
        if any(paper not in documents for paper in papers):
            papers = []
        condition = expression(field, CONDITION)
        formula = expression(field, FORMULA) if field.uuid in computing else None
        if field.conditions or papers or condition is not None or formula is not None:
            rules[field.uuid] = _Rule(grouped(field.conditions), papers, condition, formula)
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
        first, *later_items = open_items
        remaining += [first.model_copy(update={"operation": None})]
        remaining += [item.model_copy(update={"operation": "or"}) for item in later_items]
    return remaining


def settled_expressions(
    field: FieldDefinition, kinds: Mapping[str, FieldType], changing: Collection[str], values: Mapping[str, Any]
) -> FieldDefinition | None:
    """Return the field with its expressions as they are left when all but the fields ``changing`` are known, as ``settled``
    does with conditions; ``kinds`` are the types of all fields, by uuid. None when it can never be shown."""

    def operand_of(uuid: str) -> Any:
        return _operand(kinds, uuid, values.get(uuid))

    changes: dict[str, str | None] = {}
    for key in (FORMULA, CONDITION, REQUIRED_IF):
        tree = expression(field, key)
        if tree is None:
            continue
        left = evaluating.settled(tree, changing, operand_of)
        if key == CONDITION and left == ("boolean", False):
            return None
        changes[key] = written(left)
    if not changes:
        return field
    return field.model_copy(update={"preferences": {**field.preferences, **changes}})


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
