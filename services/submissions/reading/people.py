"""Everything that submissions hold about one person, found by their address wherever that stands (docs/privacy.md)."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.formats.mentions import LIKE_ESCAPE, like_pattern, mailbox, places
from contracts.rpc.submissions import people as rpc
from contracts.rpc.submissions.api import GetSubmitter
from contracts.types import Actor, Submitter
from services.submissions.models import SnapshotRow, SubmissionRow, SubmitterRow, TrailRow
from services.submissions.reading import queries
from services.submissions.site import Site
from services.submissions.storage import trail
from services.submissions.storage.access import of_mode, require_admin

_AT_ONCE = 100

_OF_SUBMISSION = ("created_by_email", "preferences", "details", "invitees", "returned")
_OF_SUBMITTER = ("email", "values", "preferences", "metadata_", "message")
"""The columns in which an address may stand. What a party was called before a change, the trail says."""


def find(session: Session, query: rpc.FindPerson) -> rpc.FoundPerson:
    """List submissions that name the address. Every one is looked at: nothing but the parties is indexed."""
    require_admin(query.actor)
    pattern, ids, after = like_pattern(query.email), list[int](), query.after
    while len(ids) < query.limit:
        candidates = list(session.scalars(_candidates(pattern, after, query.actor)))
        places_by_submission = _mentioned(session, candidates, query.email)
        ids += [number for number in candidates if places_by_submission.get(number)]
        if len(candidates) < _AT_ONCE:
            break
        after = candidates[-1]
    return rpc.FoundPerson(ids=ids[: query.limit])


def describe(session: Session, query: rpc.DescribePerson, site: Site, now: datetime) -> rpc.PersonInSubmissions:
    """Give what each of these submissions has about the person."""
    require_admin(query.actor)
    seen = list(
        session.scalars(sa.select(SubmissionRow.id).where(SubmissionRow.id.in_(query.ids), of_mode(query.actor)))
    )
    places_by_submission = _mentioned(session, seen, query.email)
    return rpc.PersonInSubmissions(
        data=[
            _described(session, row, places_by_submission[row.id], query, site, now)
            for row in session.scalars(_rows(seen))
        ]
    )


def _described(
    session: Session, row: SubmissionRow, mentioned: list[str], query: rpc.DescribePerson, site: Site, now: datetime
) -> rpc.PersonInSubmission:
    searched_mailbox = mailbox(query.email)
    own_parties = [party for party in _submitters(session, [row.id]) if mailbox(party.email) == searched_mailbox]
    numbers = {party.id for party in own_parties}
    lines = [
        line
        for line in trail.lines_of(session, [row.id])
        if line.submitter_id in numbers or next(places(line.data, query.email), None) is not None
    ]
    parties = [
        rpc.PersonAsParty(
            submitter=_without_lines(
                queries.submitter(session, GetSubmitter(actor=query.actor, id=party.id), site, now)
            ),
            visit=party.visit,
            message=party.message,
        )
        for party in own_parties
    ]
    template_name = session.scalar(sa.select(SnapshotRow.template_name).where(SnapshotRow.submission_id == row.id))
    return rpc.PersonInSubmission(
        id=row.id,
        name=row.name,
        template_name=template_name,
        status=queries.status_now(row, now),
        created_at=row.created_at,
        completed_at=row.completed_at,
        archived_at=row.archived_at,
        erase_at=row.erase_at,
        legal_hold=row.legal_hold,
        mentioned_in=mentioned,
        parties=parties,
        events=trail.for_api(lines),
    )


def _without_lines(submitter: Submitter) -> Submitter:
    """Leave out the whole audit trail: lines about others are theirs."""
    return submitter.model_copy(update={"submission_events": None})


def _mentioned(session: Session, submission_ids: Sequence[int], email: str) -> dict[int, list[str]]:
    """The places of each submission that name the address."""
    places_by_submission: dict[int, list[str]] = {number: [] for number in submission_ids}
    for row in session.scalars(_rows(submission_ids)):
        places_by_submission[row.id] += _places(row, _OF_SUBMISSION, email, "")
    for party in _submitters(session, submission_ids):
        places_by_submission[party.submission_id] += _places(
            party, _OF_SUBMITTER, email, f"submitters[{party.position}]."
        )
    for line in trail.lines_of(session, submission_ids):
        places_by_submission[line.submission_id] += places(
            line.data, email, f"submission_events[{line.position - 1}].data"
        )
    return places_by_submission


def _places(row: Any, columns: Sequence[str], email: str, prefix: str) -> Iterator[str]:
    for column in columns:
        yield from places(getattr(row, column), email, prefix + column.rstrip("_"))


def _candidates(pattern: str, after: int, actor: Actor) -> sa.Select[int]:
    """The next submissions that may name the address."""

    def may_name(row: type[Any], columns: Sequence[str]) -> sa.ColumnElement[bool]:
        texts = [sa.cast(getattr(row, column), sa.Text) for column in columns]
        return sa.or_(*(text.ilike(pattern, escape=LIKE_ESCAPE) for text in texts))

    of_it = sa.or_(
        may_name(SubmissionRow, _OF_SUBMISSION),
        sa.exists().where(SubmitterRow.submission_id == SubmissionRow.id, may_name(SubmitterRow, _OF_SUBMITTER)),
        sa.exists().where(TrailRow.submission_id == SubmissionRow.id, may_name(TrailRow, ("data",))),
    )
    which = (of_mode(actor), SubmissionRow.id > after, of_it)
    return sa.select(SubmissionRow.id).where(*which).order_by(SubmissionRow.id).limit(_AT_ONCE)


def _rows(submission_ids: Sequence[int]) -> sa.Select[SubmissionRow]:
    return sa.select(SubmissionRow).where(SubmissionRow.id.in_(submission_ids)).order_by(SubmissionRow.id)


def _submitters(session: Session, submission_ids: Sequence[int]) -> list[SubmitterRow]:
    of_them = sa.select(SubmitterRow).where(SubmitterRow.submission_id.in_(submission_ids))
    return list(session.scalars(of_them.order_by(SubmitterRow.submission_id, SubmitterRow.position)))
