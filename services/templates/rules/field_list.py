"""The fields of a template while they are being read: explicit ones, tags, form fields, what they have in common."""

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from contracts.fields import checker
from contracts.fields.formulas import references
from contracts.problems import Problems
from contracts.rpc.rendering import TagField
from contracts.rpc.templates import AreaInput, FieldInput
from contracts.types import Area, Condition, FieldDefinition, FieldType, Notice, PageSize
from services.templates.rules import geometry, names
from services.templates.rules.roles import Roles, own_uuid

CONDITION_ACTIONS = (
    "empty",
    "unchecked",
    "not_empty",
    "checked",
    "equal",
    "not_equal",
    "contains",
    "does_not_contain",
    "greater_than",
    "less_than",
)


@dataclass(frozen=True)
class Place:
    """The document that an area is on."""

    document_uuid: str
    pages: list[PageSize]


PlaceOf = Callable[[AreaInput, str], Place | None]
"""Which document an area is on; None when that could not be said (the problem is noted)."""


@dataclass(frozen=True)
class Origin:
    """The document in which a tag was found; ``path`` is that of the file in the request body."""

    uuid: str
    name: str
    path: str
    pages: list[PageSize]


class FieldList:
    """Fields of the same name and role become one with several areas: the first explicit one says what it is.

    ``stored`` are the template's fields as they are: settings that come back unchanged are not judged again, because an older
    version may have taken what is refused now, and who sends all fields back wants to change another one.
    """

    def __init__(
        self,
        roles: Roles,
        problems: Problems,
        previous: Sequence[FieldDefinition],
        stored: Sequence[FieldDefinition] = (),
    ) -> None:
        self.notices: list[Notice] = []
        self._roles = roles
        self._problems = problems
        self._stored = {field.uuid: field for field in stored}
        self._previous = {_identity(field): field.uuid for field in previous if field.name}
        self._explicit: dict[str, list[FieldDefinition]] = {}
        self._found: dict[str, list[FieldDefinition]] = {}
        self._named: dict[tuple[str, str], FieldDefinition] = {}
        self._uuids: set[str] = set()
        self._references: list[tuple[str, str]] = []
        self._conditions: list[tuple[FieldDefinition, str, str]] = []
        self._told: dict[str, tuple[str, str]] = {}

    def add_present(self, field: FieldDefinition) -> None:
        """A field that is there already and stays: what comes later with its name and role adds areas to it."""
        self._uuids.add(field.uuid)
        self._stored[field.uuid] = field
        self._keep(field.model_copy(), self._explicit.setdefault("", []))

    def add_explicit(self, field_input: FieldInput, path: str, place_of: PlaceOf, document_uuid: str) -> None:
        """A field as the API user wrote it. ``document_uuid`` groups it with what is found in that document."""
        problems = self._problems
        areas = []
        for i, area in enumerate(field_input.areas):
            place = place_of(area, f"{path}.areas[{i}]")
            placed = place and geometry.placed(area, place.pages, place.document_uuid, f"{path}.areas[{i}]", problems)
            areas += [placed] if placed else []
        field = self._definition(
            field_input, names.key(field_input.name, f"{path}.name", problems), areas, path, problems
        )
        field.conditions = self._checked_conditions(field_input.conditions, path)
        for i, area in enumerate(field_input.areas):
            if area.option and field.options and area.option not in field.options:
                problems.add(f"{path}.areas[{i}].option", f"must be one of the options {', '.join(field.options[:20])}")
        same = self._named.get((field.submitter_uuid, field.name)) if field_input.uuid is None else None
        if same is None:
            field.uuid = self._uuid_of(field, field_input.uuid, path)
            self._told[field.uuid] = f"{path}.preferences", ""
            self._keep(field, self._explicit.setdefault(document_uuid, []))
        elif same.type != field.type:
            problems.add(f"{path}.type", f"must be {same.type}, like the other field with this name and role")
        else:
            add_areas(same, field)

    def add_found(self, tag: TagField, origin: Origin) -> None:
        """A tag or form field. Its name and geometry are repaired; a look that is not known and a default that does not fit are
        left out; each with a notice. What would keep the field from being filled in is refused."""
        name = names.cleaned(tag.name)
        areas, notices = geometry.place_found(tag.areas, origin.pages, origin.uuid, name)
        self.notices += [notice.model_copy(update={"document": origin.name}) for notice in notices]
        mistakes = Problems()
        field = self._definition(tag, name, areas, "", mistakes)
        same = self._named.get((field.submitter_uuid, field.name))
        if same is not None and same.uuid in self._stored and field.type in (same.type, FieldType.TEXT):
            add_areas(same, field)  # what the field is was said before
            return
        for mistake in mistakes.entries:
            reason = f"{mistake['field'].lstrip('.')} {mistake['reason']}"
            message = f"field {name!r}: {reason}, and was left out"
            if reason.startswith(_FORMULAS):
                self._problems.add(origin.path, f"has a field {name!r} whose {reason}")
            elif mistake["field"].startswith(".preferences"):
                self.notices.append(Notice(code="preference_left_out", message=message, document=origin.name))
            elif mistake["field"] == ".default_value":
                self.notices.append(Notice(code="default_left_out", message=message, document=origin.name))
            else:
                self._problems.add(origin.path, f"has a field {name!r} whose {reason}")
        if same is not None and field.type in (same.type, FieldType.TEXT):
            add_areas(same, field)
            return
        if same is not None:
            message = f"two fields are called {name!r}: one of type {same.type}, one of type {field.type}"
            self.notices.append(Notice(code="name_used_twice", message=message, document=origin.name))
        field.uuid = self._uuid_of(field, None, "")
        self._keep(field, self._found.setdefault(origin.uuid, []))
        self._told[field.uuid] = origin.path, f"has a field {name!r} whose "
        if tag.condition:
            self._conditions.append((field, tag.condition, origin.path))

    def in_order(self, documents: Sequence[str]) -> list[FieldDefinition]:
        """All fields, document by document, the explicit ones first; what is still wrong with any of them is noted."""
        fields = [field for key in documents for field in (*self._explicit.get(key, ()), *self._found.get(key, ()))]
        for field_uuid, path in self._references:
            if field_uuid not in self._uuids:
                self._problems.add(path, "must be the uuid of another field of the template")
        for field, condition, path in self._conditions:
            self._resolve(field, condition, path, fields)
        return fields

    def look_up(self, fields: Sequence[FieldDefinition], documents: references.OfDocuments) -> None:
        """Put uuids in place of the names in the fields' expressions, and note what is wrong with these; ``documents`` are the
        conditions of documents, by uuid."""
        preferences, faults = references.checked(fields, documents)
        for field in fields:
            field.preferences = preferences.get(field.uuid, field.preferences)
        names = {field.uuid: field.name or field.type.value for field in fields}
        for fault in faults:
            path, begun = self._told.get(
                fault.field_uuid, ("fields", f"leaves the field {names[fault.field_uuid]!r}, whose ")
            )
            if begun:
                self._problems.add(path, f"{begun}preferences.{fault.key} {fault.reason}")
            else:
                self._problems.add(f"{path}.{fault.key}", fault.reason)

    def _definition(
        self, source: FieldInput | TagField, name: str, areas: list[Area], path: str, problems: Problems
    ) -> FieldDefinition:
        return references.consistent(self._as_written(source, name, areas, path, problems))

    def _as_written(
        self, source: FieldInput | TagField, name: str, areas: list[Area], path: str, problems: Problems
    ) -> FieldDefinition:
        party = self._roles.of(source.role, getattr(source, "submitter_uuid", None))
        area_options = [area.option for area in source.areas if area.option]
        field = FieldDefinition(
            uuid="",
            submitter_uuid=party.uuid,
            role=party.name,
            name=name,
            type=source.type,
            required=source.required,
            readonly=source.readonly,
            title=checker.shown_text(source.title, f"{path}.title", problems),
            description=checker.shown_text(source.description, f"{path}.description", problems),
            areas=areas,
        )
        stored = self._stored.get(getattr(source, "uuid", None) or "")
        if stored is not None and _settings(stored) == _settings(source):
            return field.model_copy(update={key: getattr(stored, key) for key in _SETTINGS})
        field.options = checker.options(source.options, area_options, source.type, path, problems)
        field.preferences = checker.preferences(source.preferences, source.type, path, problems)
        field.validation = checker.validation(source.validation, field, path, problems)
        field.default_value = checker.default_value(source.default_value, field, path, problems)
        return field

    def _keep(self, field: FieldDefinition, among: list[FieldDefinition]) -> None:
        among.append(field)
        if field.name:
            self._named.setdefault((field.submitter_uuid, field.name), field)

    def _uuid_of(self, field: FieldDefinition, given_uuid: str | None, path: str) -> str:
        if given_uuid is not None:
            chosen = own_uuid(given_uuid, f"{path}.uuid", self._problems)
            if chosen in self._uuids:
                self._problems.add(f"{path}.uuid", "must not be that of another field")
        else:
            chosen = self._previous.pop(_identity(field), "") or str(uuid.uuid4())
        self._uuids.add(chosen)
        return chosen

    def _checked_conditions(self, conditions: Sequence[Condition], path: str) -> list[Condition]:
        for i, condition in enumerate(conditions):
            self._references.append((condition.field_uuid, f"{path}.conditions[{i}].field_uuid"))
        check_actions(conditions, path, self._problems)
        return list(conditions)

    def _resolve(self, field: FieldDefinition, condition: str, path: str, fields: list[FieldDefinition]) -> None:
        """``Field:value`` is shown when equal, ``Field`` when not empty. Names may have colons in them: the longest wins."""
        other_fields = {other.name: other.uuid for other in reversed(fields) if other.name and other is not field}
        words = condition.split(":")
        for length in range(len(words), 0, -1):
            uuid_of_other = other_fields.get(":".join(words[:length]).strip())
            if uuid_of_other is not None:
                value = ":".join(words[length:]) if length < len(words) else None
                action = "not_empty" if value is None else "equal"
                field.conditions = [Condition(field_uuid=uuid_of_other, action=action, value=value)]
                return
        self._problems.add(
            path, f"has a field {field.name!r} with the condition {condition!r}, which names no other field"
        )


def check_actions(conditions: Sequence[Condition], path: str, problems: Problems) -> None:
    """Notes those that nobody knows; ``path`` is that of the field or document in the request."""
    for i, condition in enumerate(conditions):
        if condition.action not in CONDITION_ACTIONS:
            problems.add(f"{path}.conditions[{i}].action", f"must be one of {', '.join(CONDITION_ACTIONS)}")


_FORMULAS = tuple(f"preferences.{key} " for key in references.EXPRESSIONS)
_SETTINGS = ("type", "options", "preferences", "validation", "default_value")


def _settings(field: FieldInput | TagField | FieldDefinition) -> str:
    """As text, in which 1 is not true."""
    return json.dumps({key: getattr(field, key) for key in _SETTINGS}, sort_keys=True)


def _identity(field: FieldDefinition) -> tuple[str, str, str]:
    return field.role.casefold(), field.name, field.type


def add_areas(field: FieldDefinition, other: FieldDefinition) -> None:
    """``other`` is the same field somewhere else."""
    field.areas = [*field.areas, *other.areas]
    field.options = list(dict.fromkeys([*field.options, *other.options]))
