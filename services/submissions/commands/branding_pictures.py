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
from services.submissions.storage.store import Loaded


def in_use(session: Session, keys: Sequence[str]) -> list[str]:
    """Those of the account's pictures that a submission was made with: it shows them for as long as it is there."""
    on_postgresql = session.get_bind().dialect.name == "postgresql"
    held = [
        sa.literal_column(f"(account #>> '{{{picture},key}}'::text[])", sa.Text)
        if on_postgresql
        else sa.literal_column(f"json_extract(account, '$.{picture}.key')", sa.Text)
        for picture in PICTURES.values()
    ]
    return [key for key in keys if any(_holds(session, column, key) for column in held)]


def _holds(session: Session, column: sa.ColumnElement[str], key: str) -> bool:
    return bool(session.scalar(sa.select(sa.exists(sa.select(SnapshotRow.submission_id).where(column == key)))))


def record(found: Loaded, prepared: Sequence[Prepared], now: datetime) -> None:
    """Keep the pictures that were made, and forget those that were cleared or replaced."""
    owners = {one.party_uuid: one for one in found.submitters}
    new: dict[str, dict[str, Any]] = {}
    for one in prepared:
        if one.source.branding:
            of_owner = new.setdefault(one.source.party_uuid, {})
            of_owner[one.source.branding] = one.file.model_dump(mode="json")
    before = {key for submitter in found.submitters for key in blobs_of(submitter)}
    for party_uuid, submitter in owners.items():
        named = {kind for key, kind in PICTURES.items() if submitter.preferences.get(key)}
        wanted = {**submitter.branding, **new.get(party_uuid, {})}
        wanted = {kind: file for kind, file in wanted.items() if kind in named}
        if wanted != submitter.branding:
            submitter.branding = wanted
            found.row.values_version += 1
    gone = before - {key for submitter in found.submitters for key in blobs_of(submitter)}
    if gone:
        erasing.remove_blobs(found.session, found.row.id, sorted(gone), now)
