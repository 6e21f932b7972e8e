"""The values of a party in a transaction: the files that they name, and what they are on completion."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from contracts.fields import values as rules
from services.submissions.commands import erasing
from services.submissions.evidence import reasons, shown
from services.submissions.evidence.sealing import signing
from services.submissions.models import AttachmentRow, SubmitterRow
from services.submissions.planning.preparing import Prepared
from services.submissions.reading import queries
from services.submissions.rules.values import filling
from services.submissions.storage import store


def attach(submission: store.LoadedSubmission, prepared: Sequence[Prepared], now: datetime) -> None:
    """Record the files that values name."""
    owners = {submitter.party_uuid: submitter.id for submitter in submission.submitters}
    submission.attach(
        [
            AttachmentRow(
                uuid=file.source.uuid,
                submission_id=submission.row.id,
                submitter_id=owners[file.source.party_uuid],
                type=file.source.type.value,
                filename=file.filename,
                file=file.file.model_dump(mode="json"),
                created_at=now,
            )
            for file in prepared
            if not file.source.branding
        ]
    )


def finish_values(
    submission: store.LoadedSubmission,
    submitter: SubmitterRow,
    values: dict[str, Any],
    now: datetime,
    covers: int | None = None,
) -> filling.Faults:
    """Store the values as they are on completion; returns what a signer would have to mend. Conditions go by what the parties
    gave that the signer's page ``covers``, or all that have completed: a field that was not on their page has no value."""
    own_fields = submission.fields_of(submitter)
    account = queries.account_of(submission.snapshot)
    filled = filling.with_defaults(own_fields, values, signing(submission.row, submitter, now, account))
    values_of_others = shown.of_others(submitter, submission.submitters, covers)
    remaining, faults = filling.finished(
        own_fields, submission.fields, submission.document_conditions, filled, values_of_others
    )
    _drop_unused(submission, submitter, remaining, now)
    submitter.values = remaining
    submitter.reasons, without_reason = reasons.of_signed(own_fields, remaining, submitter.reasons)
    submission.row.values_version += 1
    if not submitter.phone:
        phones = (remaining.get(field.uuid) for field in own_fields if field.type == "phone")
        submitter.phone = next((phone for phone in phones if phone), None)
        store.index(submission)
    return faults + without_reason


def _drop_unused(
    submission: store.LoadedSubmission, submitter: SubmitterRow, values: dict[str, Any], now: datetime
) -> None:
    """Pictures that the signer made and did not use are nobody's business."""
    used = {
        uuid
        for field in submission.fields_of(submitter)
        for uuid in rules.attachments_in(field, values.get(field.uuid))
    }
    unused = [
        attachment
        for attachment in submission.attachments
        if attachment.submitter_id == submitter.id and attachment.uuid not in used
    ]
    if unused:
        submission.detach(unused)
        erasing.remove_blobs(
            submission.session, submission.row.id, [attachment.file["key"] for attachment in unused], now
        )
