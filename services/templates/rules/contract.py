"""What a change of a template means for programs that send values for it: names and values that were taken and are no more.

Judged by the schemas of the values (``contracts.fields.value_schema``), so that a new type of field or a new rule counts as
soon as it is in them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from contracts.errors import ServiceError
from contracts.fields.value_schema import Schema, template_schema
from contracts.types import ValueChange
from services.templates.rules.domain import Definition

MOST_TOLD = 200
"""Changes in one event: who exchanges a whole template need not be told of every field."""


def changes(before: Definition, after: Definition) -> list[ValueChange]:
    """Return what of roles and of fields that take values is gone, other or new. What is gone comes first, then what else is
    breaking. A field that was renamed, or given to another role, is gone under its former name."""
    if (before.parties, before.fields) == (after.parties, after.fields):
        return []
    was, is_now = (
        template_schema(definition.parties, definition.fields)["properties"] for definition in (before, after)
    )
    value_changes = list(_between(was, is_now))
    return sorted(value_changes, key=lambda change: (change.change != "removed", not change.breaking))[:MOST_TOLD]


def refuse_breaking(value_changes: Sequence[ValueChange]) -> None:
    """Raise ServiceError ``invalid`` that names each change after which values that were taken no longer are."""
    if details := problems(value_changes):
        first = details[0]
        raise ServiceError("invalid", f"{first['field']} {first['reason']} (refuse_breaking)", details)


def problems(value_changes: Sequence[ValueChange]) -> list[dict[str, str]]:
    """Return the breaking changes as the details of a refusal; ``field`` is the role and the field, with a dot between."""
    breaking = [change for change in value_changes if change.breaking]
    return [{"field": ".".join(filter(None, (c.role, c.field))), "reason": c.reason} for c in breaking]


def _between(was: Mapping[str, Schema], is_now: Mapping[str, Schema]) -> Iterator[ValueChange]:
    for role, schema in was.items():
        if role not in is_now:
            yield ValueChange(role=role, change="removed", breaking=True, reason="is no longer a role")
            continue
        fields, now_fields = schema["properties"], is_now[role]["properties"]
        for name, field in fields.items():
            if name not in now_fields:
                yield ValueChange(
                    role=role, field=name, change="removed", breaking=True, reason="is no longer a field of this role"
                )
            elif field != now_fields[name]:
                reasons = list(_narrowed(field, now_fields[name]))
                yield ValueChange(
                    role=role,
                    field=name,
                    change="changed",
                    breaking=bool(reasons),
                    reason="; ".join(reasons) or "takes the same values as before or more",
                )
        for name in now_fields.keys() - fields.keys():
            yield ValueChange(role=role, field=name, change="added", breaking=False, reason="is new")
    for role in is_now.keys() - was.keys():
        yield ValueChange(role=role, change="added", breaking=False, reason="is a new role")


def _narrowed(was: Schema, is_now: Schema) -> Iterator[str]:
    """Return why some value that ``was`` allowed is not allowed any more."""
    if was.get("type") != is_now.get("type"):
        yield f"takes another kind of value: {_kind(is_now)}"
        return
    options = [option for option in is_now.get("enum", ()) if option is not None]
    if options and "enum" not in was:
        yield f"takes only the options {', '.join(options[:20])}"
    if options and (gone := [option for option in was.get("enum", ()) if option not in (*options, None)]):
        yield f"no longer has the options {', '.join(gone[:20])}"
    for key, (is_narrower, words) in RULES.items():
        if key in is_now and (key not in was or is_narrower(was[key], is_now[key])):
            yield words.format(is_now[key])
    if "items" in is_now:
        yield from _narrowed(was["items"], is_now["items"])


def _kind(schema: Schema) -> str:
    kinds = schema.get("type", "several")
    return str(kinds[0] if isinstance(kinds, list) else kinds)


def _differs(was: Any, is_now: Any) -> bool:
    return bool(was != is_now)


RULES: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "maxLength": (lambda was, is_now: is_now < was, "must not be longer than {} characters"),
    "minimum": (lambda was, is_now: is_now > was, "must not be below {}"),
    "maximum": (lambda was, is_now: is_now < was, "must not be above {}"),
    "multipleOf": (lambda was, is_now: was % is_now != 0, "must be a multiple of {}"),
    "x-step": (_differs, "must be in steps of {}"),
    "pattern": (_differs, "must match {}"),
    "allOf": (_differs, "must follow other rules"),
    "format": (_differs, "must be written as {}"),
    "formatMinimum": (lambda was, is_now: is_now > was, "must not be before {}"),
    "formatMaximum": (lambda was, is_now: is_now < was, "must not be after {}"),
}
"""When a rule that is there now takes less than before, and what is said of it."""
