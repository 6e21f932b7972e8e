"""What the fields of one party hold: defaults, what comes in, what is missing. Pure.

``stored`` is ``SubmitterRow.values``: by field uuid; a key with None was emptied by the signer, and its default is gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contracts.errors import ServiceError
from contracts.fields import conditions
from contracts.fields import values as rules
from contracts.fields.formulas.references import is_computed
from contracts.fields.kinds import ATTACHED
from contracts.formats.markdown_text import plain_title
from contracts.types import STATIC_TYPES, FieldDefinition, FieldType
from services.submissions.rules.values import placeholders

Faults = list[tuple[FieldDefinition, str]]


@dataclass(frozen=True)
class Signing:
    """Who fills in, when and where: what placeholders in default values are resolved with."""

    details: Mapping[str, Any]
    at: datetime
    time_zone: str


def person(submission: Any, submitter: Any) -> dict[str, Any]:
    """Return what placeholders say of a party (rows): ``Signing.details``."""
    details = {key: getattr(submitter, key) for key in ("role", "name", "email", "phone")}
    return {"id": submission.id, **details}


def with_defaults(own_fields: Sequence[FieldDefinition], stored: Mapping[str, Any], signing: Signing) -> dict[str, Any]:
    """``stored`` and the default values of the fields that nobody has touched."""
    filled = dict(stored)
    for field in own_fields:
        if field.uuid in filled or is_computed(field):
            continue
        if field.type in ATTACHED and placeholders.has_placeholder(field.default_value):
            continue  # of an older version: what it stands for is no attachment, and the documents could not be sealed
        try:
            value = rules.coerce(field, placeholders.resolve(field, signing.details, signing.at, signing.time_zone))
        except rules.BadValue:
            continue
        if value is not None:
            filled[field.uuid] = value
    return filled


def computed(
    own_fields: Sequence[FieldDefinition],
    everything: Sequence[FieldDefinition],
    documents: conditions.OfDocuments,
    values: Mapping[str, Any],
    of_others: Mapping[str, Any],
) -> dict[str, Any]:
    """``values`` with those that formulas compute, from what the party and the others (``of_others``) have; whatever ``values``
    says of them."""
    computing = conditions.computing(own_fields)
    if not computing:
        return dict(values)
    decided = conditions.decided(everything, documents, {**of_others, **values}, computing)
    filled_in = {uuid: value for uuid, value in values.items() if uuid not in computing}
    return filled_in | {uuid: decided.values[uuid] for uuid in computing if uuid in decided.values}


def merged(
    own_fields: Sequence[FieldDefinition],
    stored: Mapping[str, Any],
    incoming: Mapping[str, Any],
    attached: Mapping[str, FieldType],
    signing: Signing,
) -> dict[str, Any]:
    """``stored`` with what the signing page sent. Raises ServiceError whose details name the fields by uuid.

    ``attached`` are this party's attachments with the type of field they were uploaded for.
    """
    by_uuid = {field.uuid: field for field in own_fields}
    values = dict(stored)
    faults: Faults = []
    for uuid, raw in incoming.items():
        field = _fillable(by_uuid, uuid)
        if field.type is FieldType.VERIFICATION:
            _refuse_other_proof(field, raw, stored)
            continue
        if is_computed(field):  # whatever a page says: its formula is computed on completion
            continue
        try:
            value = _received(field, raw, attached)
        except rules.BadValue as bad:
            faults.append((field, bad.reason))
            continue
        if field.readonly:
            if not placeholders.has_placeholder(field.default_value) and value != _present(field, stored, signing):
                raise ServiceError("invalid", "Read-only field", [{"field": uuid, "reason": "is read-only"}])
            continue
        values[uuid] = value
    refuse(faults)
    return values


def with_attempts(
    own_fields: Sequence[FieldDefinition],
    stored: Mapping[str, Any],
    incoming: Mapping[str, Any],
    attached: Mapping[str, FieldType],
) -> dict[str, Any]:
    """``stored`` with what stands on the signing page at this moment, for showing it: half a date is none yet. Raises
    ServiceError for what is no field of this party."""
    by_uuid = {field.uuid: field for field in own_fields}
    values = dict(stored)
    for uuid, raw in incoming.items():
        field = _fillable(by_uuid, uuid)
        if field.readonly or is_computed(field) or field.type is FieldType.VERIFICATION:
            continue
        try:
            values[uuid] = _received(field, raw, attached)
        except rules.BadValue:
            values[uuid] = None
    return values


def finished(
    own_fields: Sequence[FieldDefinition],
    everything: Sequence[FieldDefinition],
    documents: conditions.OfDocuments,
    values: Mapping[str, Any],
    of_others: Mapping[str, Any],
) -> tuple[dict[str, Any], Faults]:
    """The values as they are when the party completes, and what speaks against it.

    Fields that conditions hide, their own or their documents', lose their value and are not required.
    """
    computing = conditions.computing(own_fields)
    decided = conditions.decided(everything, documents, {**of_others, **values}, computing)
    values = {uuid: decided.values[uuid] for uuid in (*values, *computing) if uuid in decided.values}
    visible = {uuid: value for uuid, value in values.items() if uuid not in decided.hidden}
    return visible, broken(own_fields, visible, decided.hidden) + [
        (field, field.validation.get("message") or "is required")
        for field in own_fields
        if field.uuid not in decided.hidden
        and rules.is_missing(field.model_copy(update={"required": decided.requires(field)}), visible.get(field.uuid))
    ]


def broken(own_fields: Sequence[FieldDefinition], values: Mapping[str, Any], hidden: set[str]) -> Faults:
    """The visible fields whose value breaks their own rules; read-only ones are not the signer's to mend, but what is computed
    follows from what they have given."""
    return [
        (field, reason)
        for field in own_fields
        if field.uuid not in hidden
        and (not field.readonly or is_computed(field))
        and (reason := rules.violation(field, values.get(field.uuid)))
    ]


def refuse(faults: Faults) -> None:
    """Raises ServiceError("invalid") when there is any fault. Details name the fields by uuid, first the first to mend."""
    if not faults:
        return
    field, reason = faults[0]
    details = [{"field": faulty.uuid, "reason": why} for faulty, why in faults[:50]]
    raise ServiceError("invalid", f"{label(field)} {reason}", details)


def label(field: FieldDefinition) -> str:
    """Return what the signer knows the field by; a sentence about it begins so."""
    return plain_title(field.title or "") or field.name or field.type.value


def _fillable(own_fields: Mapping[str, FieldDefinition], uuid: str) -> FieldDefinition:
    field = own_fields.get(uuid)
    if field is None or field.type in STATIC_TYPES:
        raise ServiceError(
            "invalid", "Invalid field", [{"field": uuid[:64], "reason": "is not a field of this signer"}]
        )
    return field


def _received(field: FieldDefinition, raw: Any, attached: Mapping[str, FieldType]) -> Any:
    value = rules.coerce(field, raw)
    for uuid in rules.attachments_in(field, value):
        uploaded_for = attached.get(uuid)
        if uploaded_for is None or (field.type is not FieldType.FILE and uploaded_for is FieldType.FILE):
            raise rules.BadValue("must be a file that was uploaded for it")
    return value


def _refuse_other_proof(field: FieldDefinition, raw: Any, stored: Mapping[str, Any]) -> None:
    """Refuse a value other than the stored proof: no page can give one. An older page may not know of it and sends none."""
    if raw is not None and raw != stored.get(field.uuid):
        reason = "must be verified with the identity provider"
        raise ServiceError("invalid", f"{label(field)} {reason}", [{"field": field.uuid, "reason": reason}])


def _present(field: FieldDefinition, stored: Mapping[str, Any], signing: Signing) -> Any:
    return with_defaults([field], stored, signing).get(field.uuid)
