"""Devices that are handed from one party to the next (``contracts.rpc.submissions.signing.handover``).

Of the token, the device and the slug only digests are kept, so that a copy of the row opens nothing. The slug of a device opens
what the party's own does, on this device and while they have it: not in another browser, not after they have handed it on, nor
when they are somebody else by now.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import not_found
from services.submissions.models import HandoverRow, SubmitterRow
from services.submissions.rules import handing

KEPT = timedelta(days=2)
HANDED_ON = "handed_on"
"""What is told of the slug of a device that opens nothing any more."""


def digest(secret: str) -> str:
    """The SHA-256, in hex, that a row keeps of a slug."""
    return hashlib.sha256(secret.encode()).hexdigest()


def row_of_token(session: Session, token_digest: str) -> HandoverRow:
    """The row of the screen with this token. Raises ServiceError("not_found")."""
    row = session.scalar(_BY_TOKEN, {"digest": token_digest}, execution_options={"populate_existing": True})
    if row is None:
        raise not_found("Link")
    return row


def opens(session: Session, slug: str, proofs: Sequence[str] | None, now: datetime) -> str | None:
    """The party's own slug behind that of a device; None when it is none, or opens nothing (any more). One of the ``proofs``
    that the browser has shows that it is the device; None asks for no proof."""
    row = of_slug(session, slug)
    if row is None or row.taken_at is None or row.ended_at is not None:
        return None
    if proofs is not None and not any(hmac.compare_digest(digest(proof), row.device_digest) for proof in proofs):
        return None
    party = session.get(SubmitterRow, row.to_id)
    if party is None or digest(party.slug) != row.slug_digest:
        return None
    return party.slug if now < handing.shown_until(row.taken_at, party.completed_at) else None


def of_slug(session: Session, slug: str) -> HandoverRow | None:
    """The row of a device's slug, also when it opens nothing any more."""
    return session.scalar(_BY_LINK, {"digest": digest(slug)}, execution_options={"populate_existing": True})


def handed_by(session: Session, slug: str, parties: Mapping[int, SubmitterRow]) -> str | None:
    """Name who handed over the device with this slug, by name, else by role; None of a party's own slug."""
    row = of_slug(session, slug)
    giver = parties.get(row.from_id) if row is not None else None
    return (giver.name or giver.role) if giver is not None else None


def end_offers(session: Session, party: SubmitterRow, now: datetime) -> None:
    """End what this party has offered and nobody has taken."""
    offered = sa.update(HandoverRow).where(HandoverRow.from_id == party.id, HandoverRow.taken_at.is_(None))
    session.execute(offered.where(HandoverRow.ended_at.is_(None)).values(ended_at=now))


def end_visits(session: Session, party: SubmitterRow, now: datetime) -> None:
    """No device shows the form of this party any more."""
    statement = sa.update(HandoverRow).where(HandoverRow.to_id == party.id, HandoverRow.taken_at.is_not(None))
    session.execute(statement.where(HandoverRow.ended_at.is_(None)).values(ended_at=now))


def forget(session: Session, now: datetime) -> None:
    """Drop what was over long ago."""
    session.execute(sa.delete(HandoverRow).where(HandoverRow.created_at < now - KEPT))


_BY_TOKEN = sa.select(HandoverRow).where(HandoverRow.token_digest == sa.bindparam("digest"))
_BY_LINK = sa.select(HandoverRow).where(HandoverRow.link_digest == sa.bindparam("digest"))
