"""What has changed of an open signing page since it last asked: asked often, by every page that is open, and mostly nothing.

The first thing read is a handful of columns; a page that knows their version already is told so and nothing more is looked at.
"""

import hashlib
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.rpc.submissions.signing import form as rpc
from services.submissions.commands.signing import codes
from services.submissions.evidence import shown
from services.submissions.models import SnapshotRow, SubmissionRow, SubmitterRow
from services.submissions.reading import queries
from services.submissions.rules.domain import FormState
from services.submissions.site import Site
from services.submissions.storage import handovers, store
from services.submissions.storage.signers import one_time_codes

_HIDDEN = 16
"""Characters of the digest that names a version: how long the trail is, is nobody's business who signs."""


def news(session: Session, query: rpc.WatchForm, site: Site, now: datetime) -> rpc.FormNews:
    """Describe what this signer's page has to know to be up to date. Only reads."""
    match = session.execute(_BY_SLUG, {"slug": query.slug}).first()
    if match is None and (behind := handovers.opens(session, query.slug, query.proofs, now)) is not None:
        match = session.execute(_BY_SLUG, {"slug": behind}).first()
    if match is None:
        raise store.no_such_link(session, query.slug)
    row, submitter = match
    state, must_pass_code = _state(session, row, submitter, query, site, now)
    version = _version(row, submitter, state)
    if version == query.known or must_pass_code:
        return rpc.FormNews(version=version, state=state)
    form_news = rpc.FormNews(
        version=version,
        state=state,
        submission_name=row.name,
        expire_at=row.expire_at,
        sealing_status=row.sealing_status,
    )
    if state != FormState.OPEN:
        return form_news
    snapshot = session.get_one(SnapshotRow, row.id)
    submitters = queries.submitters_of(session, [row.id])
    own_row = next(other for other in submitters if other.id == submitter.id)
    form_news.submission_name = row.name or snapshot.template_name
    form_news.values, form_news.reasons = dict(own_row.values), dict(own_row.reasons)
    form_news.shown, form_news.changes = shown.compared(query.shown, own_row, row, snapshot, submitters)
    return form_news


def _state(
    session: Session, row: SubmissionRow, submitter: SubmitterRow, query: rpc.WatchForm, site: Site, now: datetime
) -> tuple[str, bool]:
    """Return what the page shows now, and whether a code has to be passed before anything else is told."""
    parties = session.execute(_PARTIES, {"key": row.id}).all()
    state = store.state_of(row, parties).form_state(submitter.id, now)
    if one_time_codes.next_challenge(submitter, query.proofs, site.link_secret, now) is None:
        return state.value, False
    return (codes.STATE if state in codes.WORTH_A_CODE else state.value), True


def _version(row: SubmissionRow, submitter: SubmitterRow, state: str) -> str:
    """Name what ``news`` would tell. Whatever changes what a party sees adds a line to the trail or a version of the values."""
    parts = (row.id, submitter.id, state, row.trail_length, row.values_version, row.name, row.expire_at)
    text = "\0".join(map(str, (*parts, row.sealing_status)))
    return hashlib.sha256(text.encode()).hexdigest()[:_HIDDEN]


# Compiled once: building a statement costs more than running it.
_BY_SLUG = (
    sa.select(SubmissionRow, SubmitterRow)
    .join(SubmitterRow, SubmitterRow.submission_id == SubmissionRow.id)
    .where(SubmitterRow.slug == sa.bindparam("slug"))
)
_PARTIES = sa.select(
    SubmitterRow.id,
    SubmitterRow.group.label("group"),
    SubmitterRow.viewer,
    SubmitterRow.status,
    SubmitterRow.invited_at,
    SubmitterRow.started_at,
    SubmitterRow.confirmation,
).where(SubmitterRow.submission_id == sa.bindparam("key"))
