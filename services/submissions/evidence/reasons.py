"""Reasons for signing (specification 2.7, ``preferences.reasons``): who signs such a field chooses one of those that its
sender offers, and it is printed beside the signature (peer facts 4.2). Pure.

Chosen reasons are kept beside the values, by field uuid.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from contracts.errors import ServiceError
from contracts.types import FieldDefinition, FieldType
from services.submissions.rules.values.filling import Faults, refuse


def offered(field: FieldDefinition) -> list[str]:
    """Return what the signer of this field must choose from, each on one line; empty when nothing is asked for."""
    entries = field.preferences.get("reasons")
    if field.type is not FieldType.SIGNATURE or field.readonly or not isinstance(entries, list):
        return []
    lines = (" ".join(entry.split()) for entry in entries if isinstance(entry, str))
    return [line for line in dict.fromkeys(lines) if line]


def chosen(
    own_fields: Sequence[FieldDefinition], stored: Mapping[str, str], incoming: Mapping[str, Any]
) -> dict[str, str]:
    """``stored`` with what the signing page sent; None takes a choice back. Raises ServiceError naming the field by uuid."""
    by_uuid = {field.uuid: field for field in own_fields}
    choices = dict(stored)
    faults: Faults = []
    for uuid, reason in incoming.items():
        field = by_uuid.get(uuid)
        if field is None or not offered(field):
            raise ServiceError(
                "invalid", "Invalid field", [{"field": uuid[:64], "reason": "asks for no reason for signing"}]
            )
        if reason is None:
            choices.pop(uuid, None)
        elif reason in offered(field):
            choices[uuid] = reason
        else:
            faults.append((field, _ONE_OF + ", ".join(offered(field)[:20])))
    refuse(faults)
    return choices


def of_signed(
    own_fields: Sequence[FieldDefinition], values: Mapping[str, Any], stored: Mapping[str, str]
) -> tuple[dict[str, str], Faults]:
    """The reasons that count when the party completes with ``values``, and the signatures that still need one."""
    asking = [field for field in own_fields if values.get(field.uuid) and offered(field)]
    counted = {field.uuid: stored[field.uuid] for field in asking if stored.get(field.uuid) in offered(field)}
    return counted, [(field, _ONE_OF + ", ".join(offered(field)[:20])) for field in asking if field.uuid not in counted]


_ONE_OF = "must have a reason for signing, one of "
