"""The pictures of a submitter's branding, kept and forgotten with the submitter."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from services.submissions.commands import erasing
from services.submissions.models import SnapshotRow
from services.submissions.planning.preparing import Prepared
from services.submissions.storage.branding import PICTURES, blobs_of
from services.submissions.storage.store import LoadedSubmission


def in_use(session: Session, keys: Sequence[str]) -> list[str]:
    """Those of the account's pictures that a submission was made with: it shows them for as long as it is there."""
    on_postgresql = session.get_bind().dialect.name == "postgresql"
    columns = [
        sa.literal_column(f"(account #>> '{{{picture},key}}'::text[])", sa.Text)
        if on_postgresql
        else sa.literal_column(f"json_extract(account, '$.{picture}.key')", sa.Text)
        for picture in PICTURES.values()
    ]
    return [key for key in keys if any(_holds(session, column, key) for column in columns)]


def _holds(session: Session, column: sa.ColumnElement[str], key: str) -> bool:
    return bool(session.scalar(sa.select(sa.exists(sa.select(SnapshotRow.submission_id).where(column == key)))))


def record(submission: LoadedSubmission, prepared: Sequence[Prepared], now: datetime) -> None:
    """Keep the pictures that were made, and forget those that were cleared or replaced."""
    owners = {submitter.party_uuid: submitter for submitter in submission.submitters}
    new: dict[str, dict[str, Any]] = {}
    for file in prepared:
        if file.source.branding:
            of_owner = new.setdefault(file.source.party_uuid, {})
            of_owner[file.source.branding] = file.file.model_dump(mode="json")
    before = {key for submitter in submission.submitters for key in blobs_of(submitter)}
    for party_uuid, submitter in owners.items():
        kinds_used = {kind for key, kind in PICTURES.items() if submitter.preferences.get(key)}
        pictures = {**submitter.branding, **new.get(party_uuid, {})}
        pictures = {kind: file for kind, file in pictures.items() if kind in kinds_used}
        if pictures != submitter.branding:
            submitter.branding = pictures
            submission.row.values_version += 1
    unused = before - {key for submitter in submission.submitters for key in blobs_of(submitter)}
    if unused:
        erasing.remove_blobs(submission.session, submission.row.id, sorted(unused), now)
