"""The fields that formulas name: names become uuids when a definition is made, so that a field may be called otherwise later;
what is wrong with the formulas of a whole definition; and formulas of fields that are copied, merged or taken away.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.fields.formulas import evaluating, grammar
from contracts.fields.formulas.grammar import Tree
from contracts.fields.labels import labels
from contracts.fields.values import BadValue
from contracts.types import Condition, FieldDefinition

FORMULA, CONDITION, REQUIRED_IF = "formula", "condition", "required_if"
EXPRESSIONS = (FORMULA, CONDITION, REQUIRED_IF)
"""The preferences that are formulas: what a field holds, when it is there, when it must be filled in."""

OfDocuments = Mapping[str, Sequence[Condition]]


@dataclass(frozen=True)
class Fault:
    """What is wrong with one of a field's ``EXPRESSIONS``; ``reason`` continues the sentence that its key begins."""

    field_uuid: str
    key: str
    reason: str


def expression(field: Any, key: str) -> Tree | None:
    """Return the tree of a field's ``key``, None where it has none. ``field`` has ``preferences``."""
    text = field.preferences.get(key)
    return grammar.parsed_or_empty(text) if isinstance(text, str) and text else None


def is_computed(field: Any) -> bool:
    """Return whether a formula gives the field its value."""
    return expression(field, FORMULA) is not None


def consistent(field: FieldDefinition) -> FieldDefinition:
    """Return the field as its expressions have it: nobody fills in what is computed, and ``required_if`` says when it must be
    filled in, in place of ``required``."""
    changes: dict[str, Any] = {}
    if is_computed(field) and not field.readonly:
        changes["readonly"] = True
    if field.required and expression(field, REQUIRED_IF) is not None:
        changes["required"] = False
    return field.model_copy(update=changes) if changes else field


def needed(field: FieldDefinition, *keys: str) -> list[str]:
    """Return the uuids that these expressions of a field name, in order."""
    trees = [tree for key in keys if (tree := expression(field, key)) is not None]
    return list(dict.fromkeys(uuid for tree in trees for uuid in grammar.references(tree)))


def checked(fields: Sequence[FieldDefinition], documents: OfDocuments) -> tuple[dict[str, dict[str, Any]], list[Fault]]:
    """Return the preferences, by the field's uuid, of the fields that have expressions, with uuids in place of names, and what
    is wrong with them. ``documents``: the conditions of documents, by uuid."""
    if not any(field.preferences.get(key) for field in fields for key in EXPRESSIONS):
        return {}, []
    names, by_uuid = Names(fields), {field.uuid: field for field in fields}
    changed: dict[str, dict[str, Any]] = {}
    faults: list[Fault] = []
    for field in fields:
        for key in EXPRESSIONS:
            if not (text := field.preferences.get(key)):
                continue
            try:
                formula = _with_uuids(str(text), field, names, by_uuid)
                kind = evaluating.COMPUTED.get(field.type, "any") if key == FORMULA else "boolean"
                evaluating.check_result(grammar.parse(formula), by_uuid, kind)
                changed.setdefault(field.uuid, dict(field.preferences))[key] = formula
            except BadValue as bad:
                faults.append(Fault(field.uuid, key, bad.reason))
    if not faults:
        changed_fields = [
            field.model_copy(update={"preferences": changed.get(field.uuid, field.preferences)}) for field in fields
        ]
        faults += _circles(changed_fields, documents)
    return changed, faults


def renamed(field: FieldDefinition, uuids: Mapping[str, str]) -> FieldDefinition:
    """Return the field with its expressions about other fields: those that have another uuid now."""
    return _rewritten(field, lambda uuid: uuids.get(uuid, uuid))


def without(field: FieldDefinition, present: Collection[str]) -> FieldDefinition:
    """Return the field when only the fields ``present`` are left: a formula finds others empty, a condition that names one of
    them is gone."""
    dropped = [key for key in (CONDITION, REQUIRED_IF) if any(uuid not in present for uuid in needed(field, key))]
    preferences = {key: value for key, value in field.preferences.items() if key not in dropped}
    field = field.model_copy(update={"preferences": preferences}) if dropped else field
    return emptied(field, present)


def emptied(field: FieldDefinition, present: Collection[str]) -> FieldDefinition:
    """Return the field with ``empty`` in place of the fields that are not ``present``: nobody will fill them in."""
    return _rewritten(field, lambda uuid: uuid if uuid in present else None)


def never_computed(fields: Sequence[FieldDefinition], earlier: Mapping[str, Collection[str]]) -> Iterator[Fault]:
    """Yield the formulas that find all their fields empty, because these belong to parties that come later. ``earlier``: by
    the uuid of each party those whose values it may find, its own among them."""
    owners = {field.uuid: field.submitter_uuid for field in fields}
    for field in fields:
        named_uuids = needed(field, FORMULA)
        named_owners = [owners[uuid] for uuid in named_uuids if uuid in owners]
        if (
            named_uuids
            and len(named_owners) == len(named_uuids)
            and not set(named_owners) & set(earlier.get(field.submitter_uuid, ()))
        ):
            yield Fault(
                field.uuid, FORMULA, "names fields of later parties only, and is computed before they fill them in"
            )


def _rewritten(field: FieldDefinition, name: Callable[[str], str | None]) -> FieldDefinition:
    changes = {
        key: grammar.renamed(text, name) for key in EXPRESSIONS if isinstance(text := field.preferences.get(key), str)
    }
    return field.model_copy(update={"preferences": {**field.preferences, **changes}}) if changes else field


def _with_uuids(text: str, field: FieldDefinition, names: "Names", by_uuid: Mapping[str, FieldDefinition]) -> str:
    def uuid_of_name(name: str) -> str:
        other = by_uuid[names.uuid_of(name, field.submitter_uuid)]
        if other.submitter_uuid != field.submitter_uuid and str(other.preferences.get("mask", "")).lower() not in (
            "",
            "false",
        ):
            raise BadValue(
                f"names [[{name}]] of {other.role}, which is masked: whoever fills in the form could read it"
            )
        return other.uuid

    grammar.parse(text)
    return grammar.plain_text(grammar.renamed(text, uuid_of_name))


class Names:
    """Finds fields by what a formula calls them: by uuid, by the name in the same role, by a name that only one field of the
    others has, by ``Role: Name``."""

    def __init__(self, fields: Iterable[FieldDefinition]) -> None:
        fields = list(fields)
        name_by_uuid = labels(fields)
        self._uuids = set(name_by_uuid)
        self._of_party: dict[tuple[str, str], list[FieldDefinition]] = defaultdict(list)
        self._of_all: dict[str, list[FieldDefinition]] = defaultdict(list)
        self._of_role: dict[tuple[str, str], list[FieldDefinition]] = defaultdict(list)
        for field in fields:
            name = name_by_uuid[field.uuid]
            self._of_party[field.submitter_uuid, name].append(field)
            self._of_all[name].append(field)
            self._of_role[field.role.strip().casefold(), name].append(field)

    def uuid_of(self, name: str, party: str = "") -> str:
        """Return the uuid of the field. Raises BadValue when there is none, or more than one."""
        if name in self._uuids:
            return name
        candidates = self._of_party.get((party, name)) or self._of_all.get(name) or self._by_role(name)
        if not candidates:
            raise BadValue(f"names [[{name}]], which is not a field")
        if len(candidates) > 1:
            roles = list(dict.fromkeys(field.role for field in candidates))
            how = f"write [[{roles[0]}: {name}]] or [[{roles[1]}: {name}]]" if len(roles) > 1 else "write its uuid"
            raise BadValue(f"names [[{name}]], which is more than one field: {how}")
        return candidates[0].uuid

    def _by_role(self, name: str) -> list[FieldDefinition]:
        """Roles and names may have colons in them."""
        words = name.split(":")
        for count in range(1, len(words)):
            key = (":".join(words[:count]).strip().casefold(), ":".join(words[count:]).strip())
            if key in self._of_role:
                return self._of_role[key]
        return []


def _circles(fields: Sequence[FieldDefinition], documents: OfDocuments) -> Iterator[Fault]:
    """Yield the formulas and conditions whose outcome would depend on itself, by whatever chain: one for each chain."""
    needs = {uuid: [item.field_uuid for item in conditions] for uuid, conditions in documents.items()}
    name_by_uuid = labels(fields)
    for field in fields:
        papers = [area.attachment_uuid for area in field.areas if area.attachment_uuid in documents]
        conditions_of_field = [item.field_uuid for item in field.conditions]
        needs[field.uuid] = [*conditions_of_field, *papers, *needed(field, FORMULA, CONDITION)]
    reported: set[str] = set()
    for field in fields:
        for key in (FORMULA, CONDITION):
            for uuid in needed(field, key):
                chain = None if uuid in reported else _chain(needs, uuid, field.uuid)
                if chain is not None:
                    reported.update(chain)
                    names = " → ".join(name_by_uuid[one] for one in (field.uuid, *chain) if one in name_by_uuid)
                    yield Fault(field.uuid, key, f"depends on itself: {names}")
                    break


def _chain(needs: Mapping[str, Sequence[str]], start: str, goal: str) -> list[str] | None:
    """Return the shortest way from ``start`` to ``goal``, with both."""
    came_from: dict[str, str | None] = {start: None}
    waiting = [start]
    for uuid in waiting:
        if uuid == goal:
            chain: list[str] = []
            step: str | None = uuid
            while step is not None:
                chain.append(step)
                step = came_from[step]
            return chain[::-1]
        for other in needs.get(uuid, ()):
            if other not in came_from:
                came_from[other] = uuid
                waiting.append(other)
    return None
