"""What fields are called in the API: ``values`` is keyed by name, and callers write names in several ways."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from contracts.types import FieldDefinition, FieldType


def labels(fields: Iterable[FieldDefinition]) -> dict[str, str]:
    """The name of each field by uuid; an unnamed one is called ``Text Field 2``, counted per type (peer facts 1.2)."""
    counts: Counter[FieldType] = Counter()
    found = {}
    for field in fields:
        counts[field.type] += 1
        found[field.uuid] = field.name or f"{field.type.value.capitalize()} Field {counts[field.type]}"
    return found


def fields_called(key: str, fields: Sequence[FieldDefinition], names: Mapping[str, str]) -> list[FieldDefinition]:
    """The fields that ``key`` means: by uuid, by exact name, by name whatever its case, or by the name in snake_case."""
    for matches in (
        lambda field: field.uuid == key,
        lambda field: names[field.uuid] == key,
        lambda field: names[field.uuid].lower() == key.strip().lower(),
        lambda field: snake_case(names[field.uuid]) == key,
    ):
        if found := [field for field in fields if matches(field)]:
            return found
    return []


def snake_case(name: str) -> str:
    """``Full Name`` is ``full_name``."""
    return re.sub(r"\W+", "_", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)).strip("_").lower()


def by_name(fields: Iterable[FieldDefinition], names: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` by field uuid as the API shows them. Of several fields with one name the first with a value counts."""
    found: dict[str, Any] = {}
    for field in fields:
        name = names[field.uuid]
        if field.uuid in values and found.get(name) is None:
            found[name] = values[field.uuid]
    return found
