"""Proofs of identity, for fields of type ``verification``: an attempt is begun here, made at an identity provider, and kept.

An attempt is good for fifteen minutes, for one field of one signer, and for coming back once: whoever comes back claims it
first, and then says what became of it. Between the two anything may die; the signer then begins another attempt. Of the
``state`` that comes back with them only a digest is kept, so that a copy of the row lets nobody finish an attempt.

A field counts as verified only while there is a proof: its value alone, from wherever it came, is worth nothing.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import not_found
from contracts.rpc.submissions.signing.form import FormField
from contracts.rpc.submissions.signing.identity import ProvedIdentity, StartIdentityCheck
from contracts.types import FieldType
from services.submissions.models import IdentityCheckRow, SubmitterRow
from services.submissions.rules.values import filling
from services.submissions.storage import rates, store
from services.submissions.storage.rates import Rate

VERIFIED = "verified"
"""The value of a verification field whose signers have proved their identity."""

LIFETIME = timedelta(minutes=15)
KEPT = timedelta(days=2)
PROOFS_KEPT = timedelta(days=400)
"""The row is what shows the proof until the form is completed; afterwards the audit trail does."""

STARTS = Rate(most=30, within=timedelta(days=1))
TOO_MANY = "Your identity was checked too often today. Please try again tomorrow."
NOT_PROVED = "must be verified with the identity provider"


def begin(
    submission: store.LoadedSubmission, submitter: SubmitterRow, command: StartIdentityCheck, now: datetime
) -> IdentityCheckRow:
    """A new attempt. ServiceError ``rate_limited`` when there were too many."""
    session = submission.session
    rates.count(session, f"identity checks of submitter:{submitter.id}", STARTS, now, refusal=TOO_MANY)
    row = IdentityCheckRow(
        submission_id=submission.row.id,
        submitter_id=submitter.id,
        field_uuid=command.field,
        state_digest=command.state_digest,
        issuer=command.issuer,
        provider=command.provider,
        created_at=now,
        expires_at=now + LIFETIME,
    )
    session.add(row)
    session.flush()
    return row


def locked(session: Session, state_digest: str) -> tuple[store.LoadedSubmission, IdentityCheckRow]:
    """The attempt with this state, and its submission, locked. Raises ServiceError("not_found")."""
    query = sa.select(IdentityCheckRow).where(IdentityCheckRow.state_digest == state_digest)
    row = session.scalar(query)
    submission = store.lock(session, row.submission_id) if row is not None else None
    if submission is None:
        raise not_found("Identity check")
    again = session.scalar(query, execution_options={"populate_existing": True})
    if again is None:  # erased while one waited for the lock
        raise not_found("Identity check")
    return submission, again


def prove(row: IdentityCheckRow, identity: ProvedIdentity) -> None:
    row.proof = identity.model_dump(mode="json", exclude_none=True)


def verified(session: Session, submitter: SubmitterRow) -> dict[str, IdentityCheckRow]:
    """The attempts of this signer that succeeded, by field uuid."""
    return {uuid: row for uuid, row in _newest(session, submitter).items() if row.proof is not None}


def unproved(submission: store.LoadedSubmission, submitter: SubmitterRow) -> filling.Faults:
    """The fields of this signer that say that they are verified, and that nothing proves."""
    own_fields = submission.fields_of(submitter)
    saying = [
        field
        for field in own_fields
        if field.type is FieldType.VERIFICATION and submitter.values.get(field.uuid) is not None
    ]
    proved = verified(submission.session, submitter) if saying else {}
    return [(field, NOT_PROVED) for field in saying if field.uuid not in proved]


def show(session: Session, submitter: SubmitterRow, fields: Sequence[FormField]) -> None:
    """Say of each verification field of this signer whom the provider named, or why the last attempt came to nothing."""
    own_fields = [field for field in fields if field.mine and field.type is FieldType.VERIFICATION]
    newest = _newest(session, submitter) if own_fields else {}
    for field in own_fields:
        if (row := newest.get(field.uuid)) is None:
            continue
        if row.proof is not None and field.value is not None:
            field.verified_as = row.proof.get("name") or ""
        else:
            field.verification_problem = row.problem


def last_problem(session: Session, submitter: SubmitterRow, field_uuid: str) -> str | None:
    """Return why the last attempt for this field came to nothing."""
    row = _newest(session, submitter).get(field_uuid)
    return row.problem if row is not None else None


def void(submission: store.LoadedSubmission, submitter: SubmitterRow) -> None:
    """Void the proofs of a submitter who is somebody else now, at another address: what was proved was not their identity."""
    uuids = {field.uuid for field in submission.fields_of(submitter) if field.type is FieldType.VERIFICATION}
    if not uuids:
        return
    drop(submission.session, submitter)
    store.set_values(
        submission, submitter, {uuid: value for uuid, value in submitter.values.items() if uuid not in uuids}
    )


def drop(session: Session, submitter: SubmitterRow) -> None:
    """Drop the attempts of this signer, also those that are under way: who comes back from the provider finds nothing."""
    session.execute(sa.delete(IdentityCheckRow).where(IdentityCheckRow.submitter_id == submitter.id))


def forget(session: Session, now: datetime) -> None:
    """Drop attempts that were over long ago."""
    unproven = sa.and_(IdentityCheckRow.proof.is_(None), IdentityCheckRow.created_at < now - KEPT)
    old = sa.or_(unproven, IdentityCheckRow.created_at < now - PROOFS_KEPT)
    session.execute(sa.delete(IdentityCheckRow).where(old))


def _newest(session: Session, submitter: SubmitterRow) -> dict[str, IdentityCheckRow]:
    """The attempt that counts, by field uuid: the one that succeeded, else the last."""
    mine = sa.select(IdentityCheckRow).where(IdentityCheckRow.submitter_id == submitter.id)
    rows: Iterable[IdentityCheckRow] = session.scalars(mine.order_by(IdentityCheckRow.id))
    newest: dict[str, IdentityCheckRow] = {}
    for row in rows:
        before = newest.get(row.field_uuid)
        if before is None or before.proof is None:
            newest[row.field_uuid] = row
    return newest
