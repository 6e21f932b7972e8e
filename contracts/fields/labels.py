"""What fields are called in the API."""

from collections import Counter
from collections.abc import Iterable

from contracts.types import FieldDefinition, FieldType


def labels(fields: Iterable[FieldDefinition]) -> dict[str, str]:
    """The name of each field by uuid; an unnamed one is called ``Text Field 2``, counted per type (peer facts 1.2)."""
    counts: Counter[FieldType] = Counter()
    names = {}
    for field in fields:
        counts[field.type] += 1
        names[field.uuid] = field.name or f"{field.type.value.capitalize()} Field {counts[field.type]}"
    return names
