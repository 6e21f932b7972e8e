"""What an API user says about fields (specification 2.7, override definition) and gives as values, for one party.

Pure: what has to be fetched, drawn or asked for is listed (``sources``, ``texts``) and done before the transaction.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from contracts.fields import checker
from contracts.fields import values as rules
from contracts.fields.formulas import references
from contracts.fields.kinds import ATTACHED, WITHOUT_CONTENT
from contracts.problems import Problems
from contracts.rpc.submissions.api import FieldOverride
from contracts.types import FieldDefinition, FieldType
from services.submissions.rules.identity_requirements import READ_ONLY
from services.submissions.rules.values.naming import FieldIndex

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True)
class Source:
    """Something that becomes an attachment: a URL, base64, a data URI, or a name to be drawn as a signature.

    The attachment will have this ``uuid``, which is already the field's value. ``path`` is where the API user wrote it.
    ``branding`` is ``logo`` or ``stamp`` when it is no attachment but the party's own (``branding``).
    """

    uuid: str
    party_uuid: str
    type: FieldType
    raw: str
    path: str
    branding: str = ""


@dataclass
class Overrides:
    """Changes of field definitions and values, by field uuid."""

    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    ignored: list[dict[str, str]] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    """Where in the request which field got its value, by uuid."""
    expressions: dict[tuple[str, str], str] = field(default_factory=dict)
    """Where in the request an expression of which field was given, by uuid and key."""
    awaited: set[str] = field(default_factory=set)
    """Fields whose value follows from their default when the party completes, instead of what they hold."""

    def values_over(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the party after the change, by field uuid."""
        return {**{uuid: value for uuid, value in stored.items() if uuid not in self.awaited}, **self.values}

    def apply(self, definition: FieldDefinition) -> FieldDefinition:
        changes = self.changes.get(definition.uuid)
        if not changes:
            return definition
        merged = dict(changes)
        for key in ("validation", "preferences"):
            if key in changes:
                merged[key] = {**getattr(definition, key), **changes[key]}
        return references.consistent(definition.model_copy(update=merged))


MOST_IGNORED = 100


@dataclass(frozen=True)
class OverrideRequest:
    """The request's part for one party; ``path`` is its place in the body, empty or ending with a dot."""

    values: Mapping[str, Any]
    fields: Sequence[FieldOverride]
    readonly_fields: Sequence[str]
    path: str


def plan_overrides(
    request: OverrideRequest,
    own_fields: Sequence[FieldDefinition],
    names: Mapping[str, str],
    attached: Collection[str],
    problems: Problems,
) -> Overrides:
    """``own_fields`` are the party's fields, ``names`` what they are called, ``attached`` the uuids of attachments that exist.

    Unknown names are an error in ``fields`` and ``readonly_fields``. In ``values`` they are ignored (decisions), and told as
    ``ignored``, as is a value of a field that another key names once more: the first MOST_IGNORED.
    """
    overrides, by_key = Overrides(), FieldIndex(own_fields, names)
    for index, override in enumerate(request.fields):
        path = f"{request.path}fields[{index}]"
        for definition in _overridden(override, by_key, path, problems):
            _override(overrides, definition, override, path, attached, problems)
    for index, key in enumerate(request.readonly_fields):
        definitions = by_key.fields(key)
        if not definitions:
            problems.add(
                f"{request.path}readonly_fields[{index}]",
                f"is not a field of this role: {key[:100]}",
                f"Unknown field: {key[:100]}",
            )
        for definition in definitions:
            overrides.changes.setdefault(definition.uuid, {})["readonly"] = True
            if definition.type is FieldType.VERIFICATION:
                problems.add(f"{request.path}readonly_fields[{index}]", READ_ONLY)
    key_by_field: dict[str, str] = {}
    for key, raw in request.values.items():
        definitions = by_key.fields(key)
        if not definitions:
            _ignore(overrides, request, key, "is not a field of this role")
        for earlier in dict.fromkeys(
            key_by_field[definition.uuid] for definition in definitions if definition.uuid in key_by_field
        ):
            _ignore(overrides, request, earlier, f"is the same field as {key[:100]}, whose value is taken")
        key_by_field |= dict.fromkeys((definition.uuid for definition in definitions), key)
        for definition in definitions:
            _take(overrides, definition, raw, f"{request.path}values.{key[:100]}", attached, problems, preset=False)
    return overrides


def _ignore(overrides: Overrides, request: OverrideRequest, key: str, reason: str) -> None:
    if len(overrides.ignored) < MOST_IGNORED:
        overrides.ignored.append({"field": f"{request.path}values.{key[:100]}", "reason": reason})


def with_expressions(
    fields: Sequence[FieldDefinition],
    documents: references.OfDocuments,
    overrides_of_all: Sequence[Overrides],
    basis: str,
    problems: Problems,
) -> list[FieldDefinition]:
    """``fields``, to which the overrides were applied, with their expressions looked up, as the overrides have them then, too.
    What is wrong is noted where it was given, what follows from it elsewhere as a fault of the ``basis``. ``documents``:
    the conditions of documents, by uuid."""
    preferences, faults = references.checked(fields, documents)
    paths = {key: path for overrides in overrides_of_all for key, path in overrides.expressions.items()}
    note_faults(faults, fields, paths, basis, problems)
    for overrides in overrides_of_all:
        for uuid, key in overrides.expressions:
            if uuid in preferences:
                changed = overrides.changes[uuid]["preferences"]
                overrides.changes[uuid]["preferences"] = {**changed, key: preferences[uuid][key]}
    return [
        field.model_copy(update={"preferences": preferences.get(field.uuid, field.preferences)}) for field in fields
    ]


def note_faults(
    faults: Iterable[references.Fault],
    fields: Iterable[FieldDefinition],
    paths: Mapping[tuple[str, str], str],
    basis: str,
    problems: Problems,
) -> None:
    """Note what is wrong with expressions: where one was given (``paths``), else of the ``basis``."""
    names = {field.uuid: field.name or field.uuid for field in fields}
    for fault in faults:
        if (path := paths.get((fault.field_uuid, fault.key))) is not None:
            problems.add(path, fault.reason)
        else:
            problems.add(basis, f"has the field {names[fault.field_uuid]} whose preferences.{fault.key} {fault.reason}")


def template_defaults(definition: FieldDefinition, overrides: Overrides) -> None:
    """Pictures and files that the template itself names by URL, and texts that may have no font."""
    if "reasons" not in overrides.changes.get(definition.uuid, {}).get("preferences", {}):
        _check_reasons(overrides, definition.preferences, f"fields.{definition.name}.preferences.reasons")
    default = definition.default_value
    if (
        default is None
        or definition.uuid in overrides.values
        or "default_value" in overrides.changes.get(definition.uuid, {})
    ):
        return
    if definition.type in ATTACHED:
        if rules.awaits(definition, default):  # of an older version; a name is no picture
            overrides.changes.setdefault(definition.uuid, {})["default_value"] = None
            return
        problems = Problems()
        _take(overrides, definition, default, f"fields.{definition.name}.default_value", (), problems, preset=True)
        problems.refuse()
    elif isinstance(default, str) and rules.needs_font_check(default):
        overrides.texts.append((f"fields.{definition.name}.default_value", default))


def _overridden(override: FieldOverride, by_key: FieldIndex, path: str, problems: Problems) -> list[FieldDefinition]:
    key = override.uuid or override.name
    if not key:
        problems.add(path, "must have a name", f"name or uuid is required in `{path}`.")
        return []
    definitions = by_key.fields(key)
    if not definitions:
        problems.add(f"{path}.name", f"is not a field of this role: {key[:100]}", f"Unknown field: {key[:100]}")
    return definitions


def _override(
    overrides: Overrides,
    definition: FieldDefinition,
    override: FieldOverride,
    path: str,
    attached: Collection[str],
    problems: Problems,
) -> None:
    changes = overrides.changes.setdefault(definition.uuid, {})
    for key in ("readonly", "required"):
        if getattr(override, key) is not None:
            changes[key] = getattr(override, key)
    if override.readonly and definition.type is FieldType.VERIFICATION:
        problems.add(f"{path}.readonly", READ_ONLY)
    for key in ("title", "description"):
        if text := checker.shown_text(getattr(override, key), f"{path}.{key}", problems):
            changes[key] = text
    if override.preferences:
        # Where a stamp is, the template says.
        preferences = {key: value for key, value in override.preferences.items() if key != "position"}
        changes["preferences"] = checker.preferences(preferences, definition.type, path, problems)
        _check_reasons(overrides, changes["preferences"], f"{path}.preferences.reasons")
        expression_keys = (key for key in references.EXPRESSIONS if key in changes["preferences"])
        overrides.expressions |= {(definition.uuid, key): f"{path}.preferences.{key}" for key in expression_keys}
    if override.validation:
        changed = definition.model_copy(update=_merged_rules(definition, changes))
        changes["validation"] = checker.validation(override.validation, changed, path, problems)
    key = "default_value" if override.default_value is not None else "value"
    raw = getattr(override, key)
    if raw is not None:
        _take(overrides, definition, raw, f"{path}.{key}", attached, problems, preset=True)


def _check_reasons(overrides: Overrides, preferences: Mapping[str, Any], path: str) -> None:
    """Reasons for signing are printed: whoever offers them is told when no font can draw one, not whoever signs."""
    reasons = preferences.get("reasons")
    for reason in reasons if isinstance(reasons, list) else ():
        if isinstance(reason, str):
            _check_text(overrides, reason, path)


def _take(
    overrides: Overrides,
    definition: FieldDefinition,
    raw: Any,
    path: str,
    attached: Collection[str],
    problems: Problems,
    *,
    preset: bool,
) -> None:
    """One value. ``preset``: it is the field's default from now on too. A text with a placeholder is only that: it is
    resolved when the party completes."""
    changes = overrides.changes.setdefault(definition.uuid, {})
    if definition.type in WITHOUT_CONTENT:
        return
    if definition.type is FieldType.VERIFICATION:
        if raw not in (None, "", []):
            problems.add(path, "is verified by its signer at the identity provider and takes no value")
        return
    if references.is_computed(definition.model_copy(update=_merged_rules(definition, changes))):
        if raw not in (None, "", []):
            problems.add(path, "is computed by a formula and takes no value")
        return
    overrides.paths[definition.uuid] = path
    try:
        if definition.type is FieldType.HEADING or rules.awaits(definition, raw):
            text = checker.default(raw, definition) or ""
            changes["default_value"] = text
            overrides.values.pop(definition.uuid, None)
            overrides.awaited.add(definition.uuid)
            _check_text(overrides, text, path)
            return
        value = _attached(overrides, definition, raw, path, attached) if definition.type in ATTACHED else None
        value = (
            rules.coerce(definition.model_copy(update=_merged_rules(definition, changes)), raw)
            if value is None
            else value
        )
        if reason := rules.violation(definition.model_copy(update=_merged_rules(definition, changes)), value):
            raise rules.BadValue(reason)
    except rules.BadValue as bad:
        problems.add(path, bad.reason)
        return
    overrides.values[definition.uuid] = value
    overrides.awaited.discard(definition.uuid)
    if preset:
        changes["default_value"] = value
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str):
            _check_text(overrides, text, path)


def _attached(
    overrides: Overrides, definition: FieldDefinition, raw: Any, path: str, attached: Collection[str]
) -> str | list[str] | None:
    """The uuids that the given pictures or files will have as attachments. Blank is None."""
    items = [item for item in (raw if isinstance(raw, list) else [raw]) if item not in (None, "")]
    if len(items) > 1 and definition.type is not FieldType.FILE:
        raise rules.BadValue("must be one picture")
    uuids = []
    for item in items:
        if not isinstance(item, str):
            raise rules.BadValue("must be a URL, base64 or text shorter than 60 characters")
        checker.refuse_placeholder(definition, item)
        if item not in attached and _UUID.fullmatch(item.strip()):
            # Somebody else's, or nobody's: drawn as a typed name it would stand on paper as a signature.
            raise rules.BadValue("must be the uuid of an attachment of this submitter")
        if item not in attached:
            overrides.sources.append(Source(str(uuid4()), definition.submitter_uuid, definition.type, item, path))
        uuids.append(item if item in attached else overrides.sources[-1].uuid)
    if definition.type is FieldType.FILE:
        return uuids or None
    return uuids[0] if uuids else None


def _check_text(overrides: Overrides, text: str, path: str) -> None:
    if rules.needs_font_check(text):
        overrides.texts.append((path, text))


def _merged_rules(definition: FieldDefinition, changes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: {**getattr(definition, key), **changes[key]} for key in ("validation", "preferences") if changes.get(key)
    }
