"""The fields that the cases of formulas speak of (``cases.json``), each called by its uuid."""

import json
from pathlib import Path
from typing import Any

from contracts.types import FieldDefinition, FieldType

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "cases.json").read_text())
"""``formula``, the ``type`` of the field that it is for, the ``values`` of others by name, and what it ``gives``."""

TYPES = {
    "Unit price": FieldType.NUMBER,
    "Quantity": FieldType.NUMBER,
    "Discount": FieldType.NUMBER,
    "Name": FieldType.TEXT,
    "City": FieldType.SELECT,
    "Start": FieldType.DATE,
    "End": FieldType.DATE,
    "Agreed": FieldType.CHECKBOX,
    "Colours": FieldType.MULTIPLE,
    "Signature": FieldType.SIGNATURE,
}


def field(uuid: str, kind: str, party: str = "buyer", **more: Any) -> FieldDefinition:
    """A field that is called as its uuid, unless ``more`` says otherwise."""
    definition: dict[str, Any] = {
        "uuid": uuid,
        "name": uuid,
        "type": kind,
        "submitter_uuid": party,
        "role": party.title(),
    }
    return FieldDefinition(**{**definition, **more})


FIELDS = {name: field(name, kind) for name, kind in TYPES.items()}
