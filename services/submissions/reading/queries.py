"""Reads, straight to contract models. Lists take a few queries whatever their length; ``lists`` says which rows."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import sqlalchemy as sa
from pydantic import BaseModel
from sqlalchemy.orm import Session

from contracts.errors import not_found
from contracts.rpc import Rpc
from contracts.rpc.submissions import api as rpc
from contracts.runtime.bus import outbox
from contracts.runtime.data.lists.listing import Listing
from contracts.runtime.data.lists.page import page
from contracts.runtime.data.stored import as_stored, readable, reading
from contracts.types import (
    Account,
    Actor,
    Attachment,
    FieldDefinition,
    Page,
    Pagination,
    Submission,
    SubmissionEvent,
    SubmissionStatus,
    Submitter,
)
from services.submissions.models import AttachmentRow, SnapshotRow, SubmissionRow, SubmitterRow, TemplateRow, TrailRow
from services.submissions.reading import lists, present
from services.submissions.site import FileLinks, Site
from services.submissions.storage import store, trail
from services.submissions.storage.access import may_act, visible_to
from services.submissions.storage.repeats import key_of

QUICK_PAGE = 20


def remembered(session: Session, call: Rpc[Any, Any], command: BaseModel) -> Any | None:
    """The stored answer to this request, so that what is slow need not be done again; None when there is none."""
    return outbox.answered(session, call, key_of(command))


def submission(session: Session, query: rpc.GetSubmission, site: Site, now: datetime) -> Submission:
    """One submission with everything; ``include=fields`` adds the field definitions."""
    row, template = visible_submission(session, query.actor, query.id)
    links = site.expiring(now)
    submitters = submitters_of(session, [row.id])
    stored = _stored_fields(session, [row.id])[row.id]
    attachments = {attachment.uuid: attachment for attachment in store.attachments_of(session, [row.id])}
    lines = trail.lines_of(session, [row.id])

    with reading(Submission, row.id):
        fields = _shown_fields(stored)
        combined = (row.results or {}).get("merged") or only_document(row.results)
        return present.submission(
            present.SubmissionView(
                row=row,
                template=template,
                submitters=submitters,
                status=status_now(row, now),
                links=links,
                values=present.ValuesView(fields, attachments, links, may_act(query.actor)),
                events=trail.for_api(lines),
                fields=fields if "fields" in query.include else None,
                combined=combined if "combined_document_url" in query.include else None,
                may_act=may_act(query.actor),
            )
        )


def submissions(session: Session, query: rpc.ListSubmissions, site: Site, now: datetime) -> Page[Submission]:
    """A page of submissions without values and events."""
    rows = page(session, query, lists.of_submissions(query, now), _LISTED)
    ids = [row.id for row in rows]
    by_submission: dict[int, list[Any]] = {submission_id: [] for submission_id in ids}
    for submitter_row in session.execute(_LISTED_SUBMITTERS.where(_SUBMITTER.submission_id.in_(ids))) if ids else ():
        by_submission[submitter_row.submission_id].append(submitter_row)
    fields = _stored_fields(session, ids) if "fields" in query.include else {}
    links = site.expiring(now)

    def presented(row: Any) -> Submission:
        return present.submission(
            present.SubmissionView(
                row=row,
                template=_template_in(row),
                submitters=by_submission[row.id],
                status=status_now(row, now),
                links=links,
                fields=_shown_fields(fields[row.id]) if row.id in fields else None,
                may_act=may_act(query.actor),
            )
        )

    return Page(data=readable(Submission, rows, presented), pagination=Pagination.of(ids))


def is_quick(query: rpc.ListSubmissions) -> bool:
    """A page that the index gives at once, however many submissions there are. What a role may see is a filter, too."""
    if not query.actor.sees_all:
        return False
    filters = (query.q, query.template_folder, query.archived, query.status, query.template_id)
    return query.limit <= QUICK_PAGE and all(value is None for value in filters)


def submitter(session: Session, query: rpc.GetSubmitter, site: Site, now: datetime) -> Submitter:
    """One submitter with values, documents, template and events."""
    query_ = _joined(sa.select(SubmitterRow.id)).where(SubmitterRow.id == query.id, visible_to(query.actor))
    if session.scalar(query_) is None:
        raise not_found("Submitter")
    with reading(Submitter, query.id):
        return _submitters(session, [query.id], query.actor, query.include, site, now)[0]


def submitters(session: Session, query: rpc.ListSubmitters, site: Site, now: datetime) -> Page[Submitter]:
    """Return a page of submitters, each as ``submitter`` gives them."""
    ids = page(session, query, [lists.of_submitters(query)])
    data = _submitters(session, ids, query.actor, query.include, site, now) if ids else []
    return Page(data=data, pagination=Pagination.of(ids))


def events(session: Session, query: rpc.ListEvents) -> Page[SubmissionEvent]:
    """A page of the audit trail of one submission."""
    visible_submission(session, query.actor, query.id)
    of_submission = Listing(_TRAIL, exact=[TrailRow.submission_id == query.id])
    rows = page(session, query, [of_submission], sa.select(TrailRow))
    lines = [line for (line,) in rows]
    return Page(data=trail.for_api(lines), pagination=Pagination.of([line.id for line in lines]))


def presented(
    session: Session, changed: store.LoadedSubmission, site: Site, now: datetime, *, unmasked: bool
) -> Submission:
    """The answer to a command: the submission as it is now, without events."""
    links = site.expiring(now)
    attachments = {attachment.uuid: attachment for attachment in changed.attachments}
    return present.submission(
        present.SubmissionView(
            row=changed.row,
            template=changed.template,
            submitters=changed.submitters,
            status=status_now(changed.row, now),
            links=links,
            values=present.ValuesView(changed.fields, attachments, links, unmasked),
        )
    )


def presented_submitter(
    session: Session, changed: store.LoadedSubmission, row: SubmitterRow, site: Site, now: datetime
) -> Submitter:
    """The answer to a change of a submitter (peer facts 1.2, SubmitterUpdate)."""
    return next(
        submitter
        for submitter in presented(session, changed, site, now, unmasked=True).submitters
        if submitter.id == row.id
    )


def own_fields(
    session: Session, actor: Actor, submitter_id: int
) -> tuple[list[FieldDefinition], list[FieldDefinition], set[str], str]:
    """Return for a change: the submitter's fields, all fields of the submission, uuids of their attachments and role."""
    row = session.execute(
        _joined(sa.select(SubmitterRow.submission_id, SubmitterRow.party_uuid)).where(
            SubmitterRow.id == submitter_id, visible_to(actor)
        )
    ).first()
    if row is None:
        raise not_found("Submitter")
    fields = fields_of(session, [row.submission_id])[row.submission_id]
    attached = {
        attachment.uuid
        for attachment in store.attachments_of(session, [row.submission_id])
        if attachment.submitter_id == submitter_id
    }
    return [field for field in fields if field.submitter_uuid == row.party_uuid], fields, attached, row.party_uuid


def visible_submission(session: Session, actor: Actor, submission_id: int) -> tuple[SubmissionRow, TemplateRow | None]:
    """The submission that the actor may see, and its template."""
    statement = sa.select(SubmissionRow, TemplateRow).outerjoin(
        TemplateRow, TemplateRow.id == SubmissionRow.template_id
    )
    row = session.execute(statement.where(SubmissionRow.id == submission_id, visible_to(actor))).first()
    if row is None:
        raise not_found("Submission")
    return row[0], row[1]


def submitters_of(session: Session, submission_ids: Sequence[int]) -> list[SubmitterRow]:
    return list(session.scalars(_SUBMITTERS, {"keys": submission_ids}))


def fields_of(session: Session, submission_ids: Sequence[int]) -> dict[int, list[FieldDefinition]]:
    return {
        submission_id: [FieldDefinition.model_validate(field) for field in fields]
        for submission_id, fields in _stored_fields(session, submission_ids).items()
    }


def _stored_fields(session: Session, submission_ids: Sequence[int]) -> dict[int, Any]:
    return {row.submission_id: row.fields for row in session.execute(_FIELDS, {"keys": submission_ids})}


def _shown_fields(stored: Any) -> list[FieldDefinition]:
    """For answers alone: what is odd of a definition is in it as it is stored."""
    return [as_stored(FieldDefinition, **field) for field in stored]


# Compiled once: building a statement costs more than running it.
_KEYS: sa.BindParameter[Any] = sa.bindparam("keys", expanding=True)
_SUBMITTERS = (
    sa.select(SubmitterRow)
    .where(SubmitterRow.submission_id.in_(_KEYS))
    .order_by(SubmitterRow.submission_id, SubmitterRow.position)
)
_FIELDS = sa.select(SnapshotRow.submission_id, SnapshotRow.fields).where(SnapshotRow.submission_id.in_(_KEYS))


def account_of(snapshot: SnapshotRow) -> Account:
    return Account.model_validate(snapshot.account)


def attachment(row: AttachmentRow, links: FileLinks) -> Attachment:
    return Attachment(
        uuid=row.uuid,
        created_at=row.created_at,
        url=links.to(row.file, row.filename),
        filename=row.filename,
        content_type=row.file["media_type"],
    )


def status_now(row: Any, now: datetime) -> SubmissionStatus:
    """Expired from the moment on that ``expire_at`` is over, before the sweep has seen it."""
    if row.status == SubmissionStatus.PENDING and row.unfinished and row.expire_at is not None and row.expire_at <= now:
        return SubmissionStatus.EXPIRED
    return SubmissionStatus(row.status)


def only_document(results: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The file of the document when there is just one: then nothing needs to be merged."""
    documents = (results or {}).get("documents", ())
    return documents[0]["file"] if len(documents) == 1 else None


# Lists read plain columns of the tables: what the ORM does for each row and statement costs more than the rows.
_TRAIL = cast("sa.Table", TrailRow.__table__)
_SUBMISSION, _SUBMITTER, _TEMPLATE = (model.__mapper__.columns for model in (SubmissionRow, SubmitterRow, TemplateRow))
_OF_TEMPLATE = ("name", "external_id", "folder_name", "created_at", "updated_at")
_OF_SUBMISSION = (
    *("id", "slug", "name", "source", "order", "status", "unfinished", "expire_at", "archived_at", "sealing_status"),
    *("erase_at", "legal_hold", "test"),
    *(
        "sealing_error",
        "pades_level",
        "returned",
        "certsign",
        "dutystamp",
        "results",
        "created_at",
        "updated_at",
        "completed_at",
        "variables",
        "preferences",
    ),
    *("template_id", "created_by_id", "created_by_email", "created_by_name"),
    *("created_by_first_name", "created_by_last_name"),
)
_OF_SUBMITTER = (
    *("id", "submission_id", "party_uuid", "role", "email", "name", "phone", "external_id", "slug", "status", "group"),
    *("metadata_", "preferences", "viewer", "decline_reason", "sent_at", "opened_at", "completed_at", "declined_at"),
    *("created_at", "updated_at", "consent", "confirmation"),
)
_LISTED = (
    sa.select(
        *(_SUBMISSION[name].label(name) for name in _OF_SUBMISSION),
        *(_TEMPLATE[name].label(f"template_{name}") for name in _OF_TEMPLATE),
    )
    .select_from(SubmissionRow.__table__)
    .outerjoin(TemplateRow.__table__, _TEMPLATE.id == _SUBMISSION.template_id)
)
_LISTED_SUBMITTERS = sa.select(*(_SUBMITTER[name].label(name) for name in _OF_SUBMITTER)).order_by(
    _SUBMITTER.submission_id, _SUBMITTER.position
)


def _joined(statement: Any) -> Any:
    """``statement`` about submitters, with their submission and its template."""
    return (
        statement.select_from(SubmitterRow)
        .join(SubmissionRow, SubmissionRow.id == SubmitterRow.submission_id)
        .outerjoin(TemplateRow, TemplateRow.id == SubmissionRow.template_id)
    )


def _submitters(
    session: Session, ids: Sequence[int], actor: Actor, include: str, site: Site, now: datetime
) -> list[Submitter]:
    """Submitters as they are read alone. Five queries for the whole page."""
    rows = session.execute(
        _joined(sa.select(SubmitterRow, SubmissionRow, TemplateRow))
        .where(SubmitterRow.id.in_(ids))
        .order_by(SubmitterRow.id)
    ).all()
    submission_ids = sorted({row[1].id for row in rows})
    stored = _stored_fields(session, submission_ids)
    attachments = {attachment.uuid: attachment for attachment in store.attachments_of(session, submission_ids)}
    events: dict[int, list[TrailRow]] = {id_: [] for id_ in submission_ids}
    for line in trail.lines_of(session, submission_ids):
        events[line.submission_id].append(line)
    links = site.expiring(now)

    def presented(joined: Any) -> Submitter:
        row, parent, template = joined
        fields = _shown_fields(stored[parent.id])
        shown = present.SubmissionView(
            row=parent,
            template=template,
            submitters=[row],
            status=status_now(parent, now),
            links=links,
            values=present.ValuesView(fields, attachments, links, may_act(actor)),
            events=trail.for_api([line for line in events[parent.id] if line.submitter_id in (row.id, None)]),
            fields=fields if "fields" in include else None,
            may_act=may_act(actor),
        )
        return present.submitter(row, shown, present.result_links(parent, links), alone=True)

    return readable(Submitter, rows, presented)


class _Template:
    """The template's columns of a list row, under their own names."""

    def __init__(self, row: Any) -> None:
        self.id = row.template_id
        for name in _OF_TEMPLATE:
            setattr(self, name, getattr(row, f"template_{name}"))


def _template_in(row: Any) -> Any:
    return None if row.template_id is None or row.template_name is None else _Template(row)
