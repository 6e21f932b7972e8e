"""What an API user says about fields (specification 2.7, override definition) and gives as values, for one party.

Pure: what has to be fetched, drawn or asked for is listed (``sources``, ``texts``) and done before the transaction.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from contracts.fields import checker
from contracts.fields import values as rules
from contracts.fields.kinds import ATTACHED
from contracts.problems import Problems
from contracts.rpc.submissions.api import FieldOverride
from contracts.types import FieldDefinition, FieldType
from services.submissions.rules.identity_requirements import READ_ONLY
from services.submissions.rules.naming import Called

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
    sources: list[Source] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    """Where in the request which field got its value, by uuid."""
    awaited: set[str] = field(default_factory=set)
    """Fields whose value follows from their default when the party completes, instead of what they hold."""

    def over(self, stored: Mapping[str, Any]) -> dict[str, Any]:
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
        return definition.model_copy(update=merged)


@dataclass(frozen=True)
class Given:
    """The request's part for one party; ``path`` is its place in the body, empty or ending with a dot."""

    values: Mapping[str, Any]
    fields: Sequence[FieldOverride]
    readonly_fields: Sequence[str]
    path: str


def planned(
    given: Given,
    own: Sequence[FieldDefinition],
    names: Mapping[str, str],
    attached: Collection[str],
    problems: Problems,
) -> Overrides:
    """``own`` are the party's fields, ``names`` what they are called, ``attached`` the uuids of attachments that exist.

    Unknown names are an error in ``fields`` and ``readonly_fields``, and ignored in ``values`` (decisions).
    """
    found, called = Overrides(), Called(own, names)
    for index, override in enumerate(given.fields):
        path = f"{given.path}fields[{index}]"
        for definition in _overridden(override, called, path, problems):
            _override(found, definition, override, path, attached, problems)
    for index, key in enumerate(given.readonly_fields):
        meant = called.fields(key)
        if not meant:
            problems.add(
                f"{given.path}readonly_fields[{index}]",
                f"is no field of this role: {key[:100]}",
                f"Unknown field: {key[:100]}",
            )
        for definition in meant:
            found.changes.setdefault(definition.uuid, {})["readonly"] = True
            if definition.type is FieldType.VERIFICATION:
                problems.add(f"{given.path}readonly_fields[{index}]", READ_ONLY)
    for key, raw in given.values.items():
        for definition in called.fields(key):
            _take(found, definition, raw, f"{given.path}values.{key[:100]}", attached, problems, preset=False)
    return found


def template_defaults(definition: FieldDefinition, found: Overrides) -> None:
    """Pictures and files that the template itself names by URL, and texts that may have no font."""
    if "reasons" not in found.changes.get(definition.uuid, {}).get("preferences", {}):
        _check_reasons(found, definition.preferences, f"fields.{definition.name}.preferences.reasons")
    default = definition.default_value
    if default is None or definition.uuid in found.values or "default_value" in found.changes.get(definition.uuid, {}):
        return
    if definition.type in ATTACHED:
        if rules.awaits(definition, default):  # of an older version; a name is no picture
            found.changes.setdefault(definition.uuid, {})["default_value"] = None
            return
        problems = Problems()
        _take(found, definition, default, f"fields.{definition.name}.default_value", (), problems, preset=True)
        problems.refuse()
    elif isinstance(default, str) and rules.needs_font_check(default):
        found.texts.append((f"fields.{definition.name}.default_value", default))


def _overridden(override: FieldOverride, called: Called, path: str, problems: Problems) -> list[FieldDefinition]:
    key = override.uuid or override.name
    if not key:
        problems.add(path, "must have a name", f"name or uuid is required in `{path}`.")
        return []
    found = called.fields(key)
    if not found:
        problems.add(f"{path}.name", f"is no field of this role: {key[:100]}", f"Unknown field: {key[:100]}")
    return found


def _override(
    found: Overrides,
    definition: FieldDefinition,
    override: FieldOverride,
    path: str,
    attached: Collection[str],
    problems: Problems,
) -> None:
    changes = found.changes.setdefault(definition.uuid, {})
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
        given = {key: value for key, value in override.preferences.items() if key != "position"}
        changes["preferences"] = checker.preferences(given, definition.type, path, problems)
        _check_reasons(found, changes["preferences"], f"{path}.preferences.reasons")
    if override.validation:
        changed = definition.model_copy(update=_merged_rules(definition, changes))
        changes["validation"] = checker.validation(override.validation, changed, path, problems)
    key = "default_value" if override.default_value is not None else "value"
    raw = getattr(override, key)
    if raw is not None:
        _take(found, definition, raw, f"{path}.{key}", attached, problems, preset=True)


def _check_reasons(found: Overrides, preferences: Mapping[str, Any], path: str) -> None:
    """Reasons for signing are printed: whoever offers them is told when no font can draw one, not whoever signs."""
    given = preferences.get("reasons")
    for reason in given if isinstance(given, list) else ():
        if isinstance(reason, str):
            _check_text(found, reason, path)


def _take(
    found: Overrides,
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
    changes = found.changes.setdefault(definition.uuid, {})
    if definition.type is FieldType.STRIKETHROUGH:
        return
    if definition.type is FieldType.VERIFICATION:
        if raw not in (None, "", []):
            problems.add(path, "is verified by its signer at the identity provider and takes no value")
        return
    found.paths[definition.uuid] = path
    try:
        if definition.type is FieldType.HEADING or rules.awaits(definition, raw):
            text = checker.default(raw, definition) or ""
            changes["default_value"] = text
            found.values.pop(definition.uuid, None)
            found.awaited.add(definition.uuid)
            _check_text(found, text, path)
            return
        value = _attached(found, definition, raw, path, attached) if definition.type in ATTACHED else None
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
    found.values[definition.uuid] = value
    found.awaited.discard(definition.uuid)
    if preset:
        changes["default_value"] = value
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str):
            _check_text(found, text, path)


def _attached(
    found: Overrides, definition: FieldDefinition, raw: Any, path: str, attached: Collection[str]
) -> str | list[str] | None:
    """The uuids that the given pictures or files will have as attachments. Blank is None."""
    given = [item for item in (raw if isinstance(raw, list) else [raw]) if item not in (None, "")]
    if len(given) > 1 and definition.type is not FieldType.FILE:
        raise rules.BadValue("must be one picture")
    uuids = []
    for item in given:
        if not isinstance(item, str):
            raise rules.BadValue("must be a URL, base64 or text shorter than 60 characters")
        checker.refuse_placeholder(definition, item)
        if item not in attached and _UUID.fullmatch(item.strip()):
            # Somebody else's, or nobody's: drawn as a typed name it would stand on paper as a signature.
            raise rules.BadValue("must be the uuid of an attachment of this submitter")
        if item not in attached:
            found.sources.append(Source(str(uuid4()), definition.submitter_uuid, definition.type, item, path))
        uuids.append(item if item in attached else found.sources[-1].uuid)
    if definition.type is FieldType.FILE:
        return uuids or None
    return uuids[0] if uuids else None


def _check_text(found: Overrides, text: str, path: str) -> None:
    if rules.needs_font_check(text):
        found.texts.append((path, text))


def _merged_rules(definition: FieldDefinition, changes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: {**getattr(definition, key), **changes[key]} for key in ("validation", "preferences") if changes.get(key)
    }
