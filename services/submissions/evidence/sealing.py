"""What rendering gets: documents with the values that go onto them, and for sealing the audit trail as well."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contracts.blobs import BlobRef
from contracts.fields import conditions, paper
from contracts.fields import values as rules
from contracts.fields.kinds import UNTOUCHABLE
from contracts.fields.rules import is_empty
from contracts.providers import CertsignMode, CertsignOrder, DutystampOrder
from contracts.rpc.rendering import (
    FieldValue,
    FilledAttachment,
    FillRequest,
    PartySummary,
    SealRequest,
    SignatureNote,
)
from contracts.stored_documents import StoredDocument
from contracts.types import STATIC_TYPES, Account, FieldDefinition, FieldType
from services.submissions.evidence import told_parties
from services.submissions.models import AttachmentRow, SnapshotRow, SubmissionRow, SubmitterRow, TrailRow
from services.submissions.reading import present
from services.submissions.rules import confirming
from services.submissions.rules.values import filling, placeholders
from services.submissions.site import Site
from services.submissions.storage import branding, trail


def seal_request(
    row: SubmissionRow,
    snapshot: SnapshotRow,
    submitters: Sequence[SubmitterRow],
    attachments: Sequence[AttachmentRow],
    lines: Sequence[TrailRow],
    site: Site | None,
) -> SealRequest:
    """Everything for the sealing that the row's ``seal_id`` names. Asked for again it says the same. Whom it names, and when
    what happened, is as the lines tell it, not as the rows say today."""
    if row.seal_id is None or row.signed_at is None:
        raise ValueError(f"submission {row.id} is not signed")
    trail_says = told_parties.submission(row, lines)
    filled = fill_request(row, snapshot, told_parties.parties(submitters, lines), attachments, site)
    is_waived = bool((row.certsign or {}).get("waived_by"))
    by_signers = bool(snapshot.certsign) and CertsignOrder.model_validate(snapshot.certsign).mode is CertsignMode.SIGNER
    by_provider = snapshot.certsign if not is_waived and not by_signers else None
    return SealRequest(
        **dict(filled, name=_name(trail_says.name, row, snapshot)),
        seal_id=row.seal_id,
        trail=trail.for_seal(lines),
        created_at=trail_says.created_at,
        completed_at=trail_says.signed_at or row.signed_at,
        certsign=CertsignOrder.model_validate(by_provider) if by_provider else None,
        dutystamp=_dutystamp(snapshot),
        confirmations=confirmed(submitters),
    )


def confirmed(submitters: Iterable[SubmitterRow]) -> list[str]:
    """The confirmations of those who have signed at a provider, in their order."""
    signed = [
        (submitter.completed_at, confirmation_kept.id)
        for submitter in submitters
        if (confirmation_kept := confirming.of(submitter.confirmation)) is not None
        and confirmation_kept.stage is confirming.Stage.SIGNED
        and not confirmation_kept.dropped
        and submitter.completed_at is not None
    ]
    return [confirmation for _, confirmation in sorted(signed)]


def confirmation_request(
    row: SubmissionRow,
    snapshot: SnapshotRow,
    submitters: Sequence[SubmitterRow],
    attachments: Sequence[AttachmentRow],
    site: Site,
) -> FillRequest:
    """Return what is on paper of those who have completed: what the last of them signs at a provider. The rows say already that
    they have completed."""
    account = Account.model_validate(snapshot.account)
    fields = [FieldDefinition.model_validate(field) for field in snapshot.fields]
    done = [submitter for submitter in submitters if submitter.completed_at is not None]
    values = {uuid: value for submitter in done for uuid, value in submitter.values.items()}
    reasons = {uuid: reason for submitter in done for uuid, reason in submitter.reasons.items()}
    hidden = conditions.hidden(fields, conditions.of_documents(snapshot.documents), values)
    ids = {submitter.id for submitter in done}
    filled = [
        entry
        for entry in _on_paper(row, fields, values, submitters, account, row.updated_at, hidden)
        if entry.submitter_id in ids
    ]
    parties = [_party(submitter) for submitter in submitters]
    return without_documents(_request(row, snapshot, submitters, attachments, filled, reasons, parties, site), hidden)


def _dutystamp(snapshot: SnapshotRow) -> DutystampOrder | None:
    """The order for duty stamps with all documents that its positions count, also those that conditions leave out."""
    if not snapshot.dutystamp:
        return None
    order = DutystampOrder.model_validate(snapshot.dutystamp)
    return order.model_copy(update={"documents": [document["uuid"] for document in snapshot.documents]})


def fill_request(
    row: SubmissionRow,
    snapshot: SnapshotRow,
    submitters: Sequence[SubmitterRow],
    attachments: Sequence[AttachmentRow],
    site: Site | None,
) -> FillRequest:
    """Documents with what has been filled in so far; of parties that are not done also their defaults. Without a ``site``
    nothing is linked."""
    account = Account.model_validate(snapshot.account)
    fields = [FieldDefinition.model_validate(field) for field in snapshot.fields]
    documents = conditions.of_documents(snapshot.documents)
    pending = {submitter.party_uuid for submitter in submitters if submitter.completed_at is None}
    open_fields = [field for field in fields if field.submitter_uuid in pending]
    values = filling.computed(open_fields, fields, documents, _values_so_far(row, fields, submitters, account), {})
    hidden = conditions.hidden(fields, documents, values)
    filled = _on_paper(row, fields, values, submitters, account, row.updated_at, hidden)
    reasons = {uuid: reason for submitter in submitters for uuid, reason in submitter.reasons.items()}
    request = _request(
        row, snapshot, submitters, attachments, filled, reasons, [_party(submitter) for submitter in submitters], site
    )
    return without_documents(request, hidden)


def _name(name: str | None, row: SubmissionRow, snapshot: SnapshotRow) -> str:
    return name or snapshot.template_name or present.unnamed(row.id, snapshot.account.get("locale"))


def without_documents(request: FillRequest, hidden: Collection[str]) -> FillRequest:
    """Leave out what conditions hide: neither the documents nor the places of fields on them are in any file."""
    documents = [document for document in request.documents if document.uuid not in hidden]
    if len(documents) == len(request.documents):
        return request
    values = [
        value.model_copy(update={"field": conditions.on_shown_documents(value.field, hidden)})
        for value in request.values
    ]
    return request.model_copy(update={"documents": documents, "values": values})


@dataclass(frozen=True)
class Signer:
    """A signer as they would be after completing at the moment ``at`` with these ``values`` (those of all their fields, by
    uuid), for these ``reasons``, in this time zone."""

    row: SubmitterRow
    values: Mapping[str, Any]
    reasons: Mapping[str, str]
    at: datetime
    time_zone: str | None = None


def preview_request(
    row: SubmissionRow,
    snapshot: SnapshotRow,
    submitters: Sequence[SubmitterRow],
    attachments: Sequence[AttachmentRow],
    signer: Signer,
    uuids: Collection[str],
) -> FillRequest:
    """Return what would be on paper of the ``uuids`` fields (uuids) for the eyes of this signer: of other parties only what
    they have completed, and no files."""
    account = Account.model_validate(snapshot.account)
    fields = [FieldDefinition.model_validate(field) for field in snapshot.fields]
    done = [
        submitter for submitter in submitters if submitter.completed_at is not None and submitter.id != signer.row.id
    ]
    values = {uuid: value for submitter in done for uuid, value in submitter.values.items()} | dict(signer.values)
    reasons = {uuid: reason for submitter in done for uuid, reason in submitter.reasons.items()} | dict(signer.reasons)
    hidden = conditions.hidden(fields, conditions.of_documents(snapshot.documents), values)
    done_ids = {submitter.id for submitter in done}
    filled = [
        entry
        for entry in _on_paper(row, fields, values, submitters, account, signer.at, hidden)
        if entry.field.uuid in uuids and _may_see(entry, signer.row.id, done_ids)
    ]
    parties = [
        _party(submitter) if submitter.id != signer.row.id else _as_completed(signer) for submitter in submitters
    ]
    return _request(row, snapshot, submitters, attachments, filled, reasons, parties, None)


def _may_see(entry: FieldValue, signer_id: int, done: Collection[int]) -> bool:
    if entry.submitter_id == signer_id:
        return True
    if entry.field.type is FieldType.FILE:
        return False
    return entry.submitter_id in done or entry.field.type in UNTOUCHABLE


def _as_completed(signer: Signer) -> PartySummary:
    zone = {"time_zone": signer.time_zone} if signer.time_zone else {}
    return _party(signer.row).model_copy(update={"completed_at": signer.at, **zone})


def _request(
    row: SubmissionRow,
    snapshot: SnapshotRow,
    submitters: Sequence[SubmitterRow],
    attachments: Sequence[AttachmentRow],
    on_paper: Sequence[FieldValue],
    reasons: Mapping[str, str],
    parties: list[PartySummary],
    site: Site | None,
) -> FillRequest:
    account = Account.model_validate(snapshot.account)
    links = site.printed() if site and account.with_file_links else None
    filled, stamps = branding.stamped(on_paper, submitters, account)
    used = {uuid for entry in filled for uuid in rules.attachments_in(entry.field, entry.value)}
    return FillRequest(
        submission_id=row.id,
        submission_slug=row.slug,
        name=_name(row.name, row, snapshot),
        account=account,
        documents=[StoredDocument.model_validate(document) for document in snapshot.documents],
        values=filled,
        attachments=[
            FilledAttachment(
                uuid=attachment.uuid,
                filename=attachment.filename,
                file=BlobRef.model_validate(attachment.file),
                created_at=attachment.created_at,
                url=links.to(attachment.file, attachment.filename) if links else "",
            )
            for attachment in attachments
            if attachment.uuid in used
        ]
        + stamps,
        parties=parties,
        notes=_notes(filled, reasons, account),
        base_url=site.base_url if site else "",
        test=row.test,
        mark=paper.mark_of_test(account) if row.test else "",
    )


def signing(row: Any, submitter: Any, at: Any, account: Account) -> filling.Signing:
    """Return what default values of this party are resolved with."""
    return filling.Signing(filling.person(row, submitter), at, account.time_zone)


def _values_so_far(
    row: SubmissionRow, fields: Sequence[FieldDefinition], submitters: Sequence[SubmitterRow], account: Account
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for submitter in submitters:
        own_fields = [field for field in fields if field.submitter_uuid == submitter.party_uuid]
        if submitter.completed_at is None:
            values.update(
                filling.with_defaults(own_fields, submitter.values, signing(row, submitter, row.updated_at, account))
            )
        else:
            values.update(submitter.values)
    return values


def _on_paper(
    row: SubmissionRow,
    fields: Sequence[FieldDefinition],
    values: Mapping[str, Any],
    submitters: Sequence[SubmitterRow],
    account: Account,
    pending_at: datetime,
    hidden: Collection[str],
) -> list[FieldValue]:
    """The fields that are not ``hidden``, with what goes into them; ``pending_at`` is the moment for parties that are not
    done."""
    owners = {submitter.party_uuid: submitter for submitter in submitters}
    filled = []
    for field in fields:
        owner, value = owners.get(field.submitter_uuid), values.get(field.uuid)
        if owner is None:  # a party that is yet to be invited
            continue
        if field.uuid in hidden or (is_empty(value) and field.type not in STATIC_TYPES):
            continue
        at = owner.completed_at or pending_at
        if field.type is FieldType.HEADING:
            whose = signing(row, owner, at, account)
            text = placeholders.resolve(field, whose.details, at, account.time_zone)
            field = field.model_copy(update={"default_value": text})
        filled.append(FieldValue(field=field, value=value, submitter_id=owner.id))
    return filled


def _party(submitter: SubmitterRow) -> PartySummary:
    return PartySummary(
        id=submitter.id,
        role=submitter.role,
        name=submitter.name,
        email=submitter.email,
        phone=submitter.phone,
        status=submitter.status,
        ip=submitter.visit.get("ip"),
        user_agent=submitter.visit.get("user_agent"),
        time_zone=submitter.visit.get("time_zone"),
        invited_at=submitter.invited_at,
        sent_at=submitter.sent_at,
        opened_at=submitter.opened_at,
        completed_at=submitter.completed_at,
        completed_by_api=submitter.completed_by_api,
        acts_as=present.acts_as(submitter).value,
        decline_reason=submitter.decline_reason,
        consent=submitter.consent,
    )


def _notes(filled: Sequence[FieldValue], chosen: Mapping[str, str], account: Account) -> list[SignatureNote]:
    return [
        SignatureNote(field_uuid=field.uuid, reason=chosen.get(field.uuid))
        for field in (entry.field for entry in filled if entry.field.type is FieldType.SIGNATURE and entry.value)
        if field.uuid in chosen or account.with_signature_id or field.preferences.get("with_signature_id")
    ]
