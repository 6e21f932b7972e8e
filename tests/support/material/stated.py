"""Seal orders whose completions were confirmed: what submissions says to compare, and the statements it noted."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from contracts.evidence import statements
from contracts.evidence.statements import LineReference, Parts, Statement
from contracts.rpc.rendering import GivenByParty, SealRequest, ToCheck
from contracts.types import FieldDefinition, FieldType

CLIENT, WITNESS = 1, 2


def confirmed(
    request: SealRequest,
    more_documents: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    definitions: Sequence[FieldDefinition] = (),
) -> SealRequest:
    """The order as this version gives it: both parties' completions are confirmed by what is in it. ``more_documents`` are not
    sealed, as conditions hide them; ``definitions`` are those of all fields, where they are others than what is drawn."""
    documents = {one.uuid: {"name": one.name, "sha256": one.file.sha256, "conditions": []} for one in request.documents}
    documents |= more_documents
    fields = [one.model_dump(mode="json") for one in definitions or [one.field for one in request.values]]
    files = {one.uuid: one.file.sha256 for one in request.attachments}
    parties = []
    for submitter in (CLIENT, WITNESS):
        own = [one for one in request.values if one.submitter_id == submitter]
        uuid = own[0].field.submitter_uuid if own else f"party-{submitter}"
        values = {
            one.field.uuid: [files[file] for file in one.value]
            if one.field.type is FieldType.FILE
            else files.get(one.value, one.value)
            if isinstance(one.value, str)
            else one.value
            for one in own
            if one.value is not None
        }
        reasons = {one.field_uuid: one.reason for one in request.notes if one.reason and one.field_uuid in values}
        parts = Parts(
            paper=statements.paper_parts(documents, fields, uuid), values=statements.value_parts(values, reasons)
        )
        line = next(
            number
            for number, one in enumerate(request.trail, start=1)
            if one.submitter_id == submitter and one.event_type.endswith("complete_form")
        )
        reference = LineReference(number=line, hash=request.trail[line - 1].hash)
        stated = Statement(
            submission=request.submission_id,
            submitter=submitter,
            completed_at=request.trail[line - 1].occurred_at,
            line=reference,
            head=reference,
            values=statements.given_digest(values, reasons),
            documents={key: one["sha256"] for key, one in documents.items()},
            paper=statements.paper_digest(parts.paper),
        )
        given = {"values": values, "reasons": reasons, "statement": stated, "parts": parts}
        parties.append(GivenByParty(submitter_id=submitter, party_uuid=uuid, **given))
    return request.model_copy(update={"to_check": ToCheck(documents=documents, fields=fields, parties=parties)})


def of(request: SealRequest, submitter: int = CLIENT) -> GivenByParty:
    """What the order says of one party."""
    assert request.to_check is not None
    return next(one for one in request.to_check.parties if one.submitter_id == submitter)


def stated(request: SealRequest, submitter: int = CLIENT) -> Statement:
    found = of(request, submitter).statement
    assert found is not None
    return found


def changed(request: SealRequest, **changes: Any) -> SealRequest:
    """Another order of the same sealing, independent of the first."""
    return SealRequest.model_validate(request.model_dump(mode="json")).model_copy(update=changes)
