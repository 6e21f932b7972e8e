"""What fields are called in the API: ``values`` is keyed by name, and callers write names in several ways."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from contracts.fields.labels import labels
from contracts.types import FieldDefinition


def keeping_names(fields: Sequence[FieldDefinition], names: Mapping[str, str]) -> list[FieldDefinition]:
    """``fields`` are some of those that ``names`` were counted over: one that would be called otherwise now gets that name."""
    counted = labels(fields)
    return [
        field if counted[field.uuid] == names[field.uuid] else field.model_copy(update={"name": names[field.uuid]})
        for field in fields
    ]


class FieldIndex:
    """Finds fields by what a caller may call them: by uuid, by exact name, by name whatever its case, or in snake_case.

    Made once for many questions: a submission may have thousands of fields and as many values.
    """

    def __init__(self, fields: Iterable[FieldDefinition], names: Mapping[str, str]) -> None:
        self._by: list[dict[str, list[FieldDefinition]]] = [defaultdict(list) for _ in range(4)]
        for field in fields:
            name = names[field.uuid]
            for index, key in zip(self._by, (field.uuid, name, name.lower(), snake_case(name)), strict=True):
                index[key].append(field)

    def fields(self, key: str) -> list[FieldDefinition]:
        """Those that ``key`` means; several when they have the same name."""
        by_uuid, by_name, by_lower_case, by_snake_case = self._by
        for index, name in (
            (by_uuid, key),
            (by_name, key),
            (by_lower_case, key.strip().lower()),
            (by_snake_case, key),
        ):
            if name in index:
                return index[name]
        return []


def snake_case(name: str) -> str:
    """``Full Name`` is ``full_name``."""
    return re.sub(r"\W+", "_", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)).strip("_").lower()


def by_name(fields: Iterable[FieldDefinition], names: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` by field uuid as the API shows them. Of several fields with one name the first with a value counts."""
    value_by_name: dict[str, Any] = {}
    for field in fields:
        name = names[field.uuid]
        if field.uuid in values and value_by_name.get(name) is None:
            value_by_name[name] = values[field.uuid]
    return value_by_name
