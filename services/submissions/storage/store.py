"""Rows to the state machine and back. Whoever changes a submission locks its row first: everything about it is in turn."""

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError, not_found
from contracts.fields import conditions
from contracts.fields.kinds import ATTACHED
from contracts.runtime.data.database import for_update
from contracts.types import Actor, FieldDefinition, FieldType, Order, SealingStatus, SubmissionStatus, SubmitterStatus
from services.submissions.models import (
    AttachmentRow,
    ReplacedLinkRow,
    SnapshotRow,
    SubmissionRow,
    SubmitterRow,
    TemplateRow,
)
from services.submissions.rules import confirming, domain, retention
from services.submissions.rules.parties import addresses
from services.submissions.storage import handovers
from services.submissions.storage.access import require_writer, visible_to

R = TypeVar("R", SubmitterRow, AttachmentRow)

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def new_slug() -> str:
    """22 characters of base 58: 128.9 bits from ``secrets``."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(22))


@dataclass
class LoadedSubmission:
    """A locked submission: its rows, and the same as the state machine sees it."""

    session: Session
    row: SubmissionRow
    submitters: list[SubmitterRow]
    state: domain.Submission
    template: TemplateRow | None = None
    _snapshot: SnapshotRow | None = field(default=None, repr=False)
    _fields: list[FieldDefinition] | None = field(default=None, repr=False)
    _attachments: list[AttachmentRow] | None = field(default=None, repr=False)

    def submitter(self, submitter_id: int) -> SubmitterRow:
        return next(row for row in self.submitters if row.id == submitter_id)

    @property
    def snapshot(self) -> SnapshotRow:
        if self._snapshot is None:
            self._snapshot = self.session.get_one(SnapshotRow, self.row.id)
        return self._snapshot

    @property
    def fields(self) -> list[FieldDefinition]:
        if self._fields is None:
            self._fields = [FieldDefinition.model_validate(field) for field in self.snapshot.fields]
        return self._fields

    @property
    def document_conditions(self) -> conditions.OfDocuments:
        return conditions.of_documents(self.snapshot.documents)

    def fields_of(self, submitter: SubmitterRow) -> list[FieldDefinition]:
        return [field for field in self.fields if field.submitter_uuid == submitter.party_uuid]

    def change_fields(self, changed: Sequence[FieldDefinition]) -> None:
        self._fields = list(changed)
        self.snapshot.fields = [field.model_dump(mode="json") for field in changed]

    @property
    def values(self) -> dict[str, Any]:
        """The stored values of all parties by field uuid."""
        return {uuid: value for row in self.submitters for uuid, value in row.values.items()}

    @property
    def attachments(self) -> list[AttachmentRow]:
        """The files of all parties; no query when no field takes a file."""
        if self._attachments is None:
            takes_files = any(field.type in ATTACHED for field in self.fields)
            with self.session.no_autoflush:  # new ones are told by ``attach``
                self._attachments = attachments_of(self.session, [self.row.id]) if takes_files else []
        return self._attachments

    def attach(self, rows: Sequence[AttachmentRow]) -> None:
        """Record new files."""
        before = self.attachments
        self.session.add_all(rows)
        self._attachments = [*before, *rows]

    def detach(self, rows: Sequence[AttachmentRow]) -> None:
        """Forget files; whoever calls has them removed."""
        self.session.flush()
        for row in rows:
            self.session.delete(row)
        self._attachments = [attachment for attachment in self.attachments if attachment not in rows]


def lock(session: Session, submission_id: int) -> LoadedSubmission | None:
    """The submission, locked until the transaction ends; None when there is none."""
    return _locked(session, _BY_ID, submission_id)


def lock_unread(session: Session, submission_id: int) -> bool:
    """Lock a submission of which nothing is to be read; False when there is none."""
    return session.scalar(_ID, {"key": submission_id}) is not None


def lock_once(session: Session, submission_id: int) -> LoadedSubmission | None:
    """As ``lock``, for what several use cases of one transaction do with a submission, all by this: it is read once. Its state
    stays as it was read: not for what changes that."""
    locked: dict[int, LoadedSubmission | None] = session.info.setdefault("submissions locked once", {})
    if submission_id not in locked:
        locked[submission_id] = lock(session, submission_id)
    return locked[submission_id]


def lock_all(session: Session, submission_ids: Sequence[int]) -> list[LoadedSubmission]:
    """Lock several submissions, those that there are, with everything that events say of them: in a handful of statements,
    however many they are."""
    keys = {"keys": submission_ids}
    rows = list(session.scalars(_BY_IDS, keys, execution_options=_ANEW))
    submitters = _by_submission(session.scalars(_SUBMITTERS_OF_ALL, keys, execution_options=_ANEW))
    attachments = _by_submission(attachments_of(session, submission_ids))
    snapshots = {found_row.submission_id: found_row for found_row in session.scalars(_SNAPSHOTS, keys)}
    used = {row.template_id for row in rows if row.template_id is not None}
    templates = {found_row.id: found_row for found_row in session.scalars(_TEMPLATES, {"keys": list(used)})}
    return [
        LoadedSubmission(
            session,
            row,
            submitters[row.id],
            state_of(row, submitters[row.id]),
            templates.get(row.template_id),
            _snapshot=snapshots[row.id],
            _attachments=attachments[row.id],
        )
        for row in rows
    ]


def _by_submission(rows: Iterable[R]) -> dict[int, list[R]]:
    grouped: dict[int, list[R]] = defaultdict(list)
    for row in rows:
        grouped[row.submission_id].append(row)
    return grouped


def lock_for(session: Session, actor: Actor, submission_id: int) -> LoadedSubmission:
    """As ``lock``, for an API user who wants to change it: 404 when they may not see it, 403 when they may only see it."""
    visible = session.scalar(
        sa.select(SubmissionRow.id)
        .outerjoin(TemplateRow, TemplateRow.id == SubmissionRow.template_id)
        .where(SubmissionRow.id == submission_id, visible_to(actor))
    )
    submission = lock(session, submission_id) if visible else None
    if submission is None:
        raise not_found("Submission")
    require_writer(actor)
    return submission


def lock_submitter_for(session: Session, actor: Actor, submitter_id: int) -> tuple[LoadedSubmission, SubmitterRow]:
    """Lock and return the submission of a submitter, for an API user who wants to change the submitter."""
    submission_id = session.scalar(sa.select(SubmitterRow.submission_id).where(SubmitterRow.id == submitter_id))
    if submission_id is None:
        raise not_found("Submitter")
    try:
        submission = lock_for(session, actor, submission_id)
    except ServiceError as error:
        raise not_found("Submitter") if error.code == "not_found" else error from None
    return submission, submission.submitter(submitter_id)


def lock_by_slug(
    session: Session, slug: str, proofs: Sequence[str] | None, now: datetime
) -> tuple[LoadedSubmission, SubmitterRow]:
    """Lock the submission that the signer with this slug takes part in; return it with the signer. The slug may be that of a
    device that was handed to them, which ``proofs`` show the browser to be (``handovers.opens``)."""
    own_slug = slug
    submission = _locked(session, _BY_SLUG, own_slug)
    if submission is None and (behind := handovers.opens(session, slug, proofs, now)) is not None:
        own_slug = behind
        submission = _locked(session, _BY_SLUG, own_slug)
        if handovers.opens(session, slug, proofs, now) != own_slug:
            submission = None
    # The link may have been replaced while one waited for the lock.
    submitter = (
        next((submitter for submitter in submission.submitters if submitter.slug == own_slug), None)
        if submission
        else None
    )
    if submission is None or submitter is None:
        raise no_such_link(session, slug)
    return submission, submitter


def lock_by_page(session: Session, slug: str) -> LoadedSubmission:
    """Lock the submission whose page has this slug."""
    submission = _locked(session, _BY_PAGE, slug)
    if submission is None:
        raise not_found("Submission")
    return submission


def find_by_page(session: Session, slug: str) -> LoadedSubmission:
    """The submission whose page has this slug, to be read only."""
    row = session.scalar(sa.select(SubmissionRow).where(SubmissionRow.slug == slug))
    if row is None:
        raise not_found("Submission")
    return loaded(session, row)


def no_such_link(session: Session, slug: str) -> ServiceError:
    """Build the answer to a slug that opens nothing. An old link is told apart from one that never was, by ``details`` with the
    reason (``signing_links.Why``, ``handovers.HANDED_ON``) as ``state``, and whom the form was handed over to (``to``); nothing
    else is told of it."""
    link = session.get(ReplacedLinkRow, slug)
    if link is not None:
        reason, handed_to = link.reason, {"to": link.handed_to} if link.handed_to else {}
    elif handovers.of_slug(session, slug) is not None:
        reason, handed_to = handovers.HANDED_ON, {}
    else:
        return not_found("Submitter")
    return ServiceError(
        "not_found", "This link is no longer valid.", [{"field": "state", "reason": reason, **handed_to}]
    )


def _locked(session: Session, statement: sa.Select[Any], key: Any) -> LoadedSubmission | None:
    """Take the lock first, then read: rows joined in the locking query are read before the lock is granted."""
    row = session.scalar(statement, {"key": key}, execution_options=_ANEW)
    return None if row is None else loaded(session, row)


def of_id(session: Session, submission_id: int) -> LoadedSubmission:
    """The submission, to be read only. Raises ServiceError("not_found")."""
    row = session.get(SubmissionRow, submission_id)
    if row is None:
        raise not_found("Submission")
    return loaded(session, row)


def loaded(session: Session, row: SubmissionRow) -> LoadedSubmission:
    submitters = list(session.scalars(_SUBMITTERS, {"key": row.id}, execution_options=_ANEW))
    snapshot, template = session.execute(_MADE_OF, {"key": row.id}).one()
    return LoadedSubmission(session, row, submitters, state_of(row, submitters), template, _snapshot=snapshot)


def attachments_of(session: Session, submission_ids: Sequence[int]) -> list[AttachmentRow]:
    return list(session.scalars(_ATTACHMENTS, {"keys": submission_ids}))


# The statements are compiled once: building one costs more than running it.

_KEY: sa.BindParameter[Any] = sa.bindparam("key")
_KEYS: sa.BindParameter[Any] = sa.bindparam("keys", expanding=True)
_ANEW = {"populate_existing": True}
_BY_ID = for_update(sa.select(SubmissionRow).where(SubmissionRow.id == _KEY))
_ID = for_update(sa.select(SubmissionRow.id).where(SubmissionRow.id == _KEY))
_BY_IDS = for_update(sa.select(SubmissionRow).where(SubmissionRow.id.in_(_KEYS)).order_by(SubmissionRow.id))
_MINE = sa.select(SubmitterRow.submission_id).where(SubmitterRow.slug == _KEY).scalar_subquery()
_BY_SLUG = for_update(sa.select(SubmissionRow).where(SubmissionRow.id == _MINE))
_BY_PAGE = for_update(sa.select(SubmissionRow).where(SubmissionRow.slug == _KEY))
_SUBMITTERS = sa.select(SubmitterRow).where(SubmitterRow.submission_id == _KEY).order_by(SubmitterRow.position)
_SUBMITTERS_OF_ALL = (
    sa.select(SubmitterRow)
    .where(SubmitterRow.submission_id.in_(_KEYS))
    .order_by(SubmitterRow.submission_id, SubmitterRow.position)
)
_MADE_OF = (
    sa.select(SnapshotRow, TemplateRow)
    .select_from(SubmissionRow)
    .outerjoin(SnapshotRow, SnapshotRow.submission_id == SubmissionRow.id)
    .outerjoin(TemplateRow, TemplateRow.id == SubmissionRow.template_id)
    .where(SubmissionRow.id == _KEY)
)
_SNAPSHOTS = sa.select(SnapshotRow).where(SnapshotRow.submission_id.in_(_KEYS))
_TEMPLATES = sa.select(TemplateRow).where(TemplateRow.id.in_(_KEYS))
_ATTACHMENTS = (
    sa.select(AttachmentRow)
    .where(AttachmentRow.submission_id.in_(_KEYS))
    .order_by(AttachmentRow.created_at, AttachmentRow.uuid)
)


def state_of(row: Any, submitters: Sequence[Any]) -> domain.Submission:
    """Return what the state machine needs to know."""
    return domain.Submission(
        order=Order(row.order),
        submitters=tuple(
            domain.Submitter(
                id=submitter.id,
                group=submitter.group,
                viewer=submitter.viewer,
                status=SubmitterStatus(submitter.status),
                invited=submitter.invited_at is not None,
                started=submitter.started_at is not None,
                confirming=confirming.is_asked(submitter.confirmation),
            )
            for submitter in submitters
        ),
        expire_at=row.expire_at,
        status=SubmissionStatus(row.status),
        archived=row.archived_at is not None,
        sealing=SealingStatus(row.sealing_status) if row.sealing_status else None,
        seal_id=row.seal_id,
        returned=bool(row.returned),
    )


def save(submission: LoadedSubmission, state: domain.Submission, now: datetime) -> None:
    """Write what the state machine decided into the rows."""
    row, before = submission.row, submission.state
    row.status = state.status.value
    row.unfinished = not state.all_signed
    row.expire_at = state.expire_at
    row.sealing_status = state.sealing.value if state.sealing else None
    if state.archived != before.archived:
        row.archived_at = now if state.archived else None
    if state.seal_id != before.seal_id:
        row.seal_id, row.sealing_since, row.sealing_asked_at, row.sealing_error = state.seal_id, now, now, None
        row.sealing_differences = None
        row.signed_at = row.signed_at or now
    if state.status is SubmissionStatus.COMPLETED and row.completed_at is None:
        row.completed_at = row.signed_at
    for submitter_state in state.submitters:
        _save_submitter(submission.submitter(submitter_state.id), submitter_state, now)
    if state != before:
        row.updated_at = now
    if retention.has_ended(state) != retention.has_ended(before):
        ended = retention.has_ended(state)
        row.erase_at = retention.erase_at(now, row.preferences, submission.snapshot.account) if ended else None
    submission.state = state


def _save_submitter(row: SubmitterRow, state: domain.Submitter, now: datetime) -> None:
    if row.status != state.status.value:
        row.status = state.status.value
        row.updated_at = now
        if state.status is SubmitterStatus.COMPLETED:
            row.completed_at = now
        elif state.status is SubmitterStatus.DECLINED:
            row.declined_at = now
        else:  # what they had completed counts no more
            row.completed_at = row.completed_by_api = None
    if state.invited and row.invited_at is None:
        row.invited_at = now
    if state.started and row.started_at is None:
        row.started_at = now


def moment(submission: LoadedSubmission, now: datetime) -> datetime:
    """``now``, but never before what was recorded last: times never decrease within a submission, whatever clocks do."""
    return max(now, submission.row.trail_at)


def aware(moment: datetime) -> datetime:
    """A time without a zone is UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def set_values(submission: LoadedSubmission, submitter: SubmitterRow, values: Mapping[str, Any]) -> None:
    """Store values; drafts of the old ones are out of date."""
    if dict(values) != submitter.values:
        submitter.values = dict(values)
        submission.row.values_version += 1


def set_reasons(submission: LoadedSubmission, submitter: SubmitterRow, reasons: Mapping[str, str]) -> None:
    """Store reasons for signing; they are on the paper as values are."""
    if dict(reasons) != submitter.reasons:
        submitter.reasons = dict(reasons)
        submission.row.values_version += 1


def index(submission: LoadedSubmission) -> None:
    """Renew what searches look through."""
    for submitter in submission.submitters:
        submitter.search = addresses.searchable(submitter.name, submitter.email, submitter.phone)
    submission.row.search = addresses.searchable(
        submission.row.name, *(submitter.search for submitter in submission.submitters)
    )


def attached_types(attachments: Sequence[AttachmentRow], submitter: SubmitterRow) -> dict[str, FieldType]:
    """Return the attachments that this submitter may name in their values, with the field type they were made for."""
    return {
        attachment.uuid: FieldType(attachment.type)
        for attachment in attachments
        if attachment.submitter_id == submitter.id
    }
