"""How far a submission that was removed for good is gone, and its receipt, for who could see the submission."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import invalid, not_found
from contracts.evidence import erasure
from contracts.evidence.erasure import PARTS, ErasedPart, ErasureReceipt
from contracts.rpc.submissions import erasures as rpc
from contracts.types import Actor
from services.submissions.models import ErasureRow, TemplateRow
from services.submissions.site import Site
from services.submissions.storage.access import visible_to


def state(session: Session, query: rpc.GetErasure, site: Site, _now: datetime) -> rpc.ErasureState:
    """Return what is gone, what is waited for, and the receipt once it is signed."""
    row = _visible(session, query.actor, query.id)
    signed = row.receipt if row.signature is not None else None
    url = site.erasure_receipt(row.submission_id) if signed is not None else None
    return rpc.ErasureState(
        submission_id=row.submission_id,
        erased_at=row.erased_at,
        reason=row.why["reason"],
        status="pending" if signed is None else "complete",
        pending=[part for part in PARTS if part not in row.parts],
        parts={part: ErasedPart.model_validate(row.parts[part]) for part in PARTS if part in row.parts},
        receipt=None if signed is None else ErasureReceipt.model_validate_json(signed),
        sha256=None if signed is None else erasure.digest(signed),
        time_stamped=row.stamped,
        receipt_url=url,
        signature_url=None if url is None else f"{url}?format=p7s",
    )


def receipt(session: Session, query: rpc.GetErasure, _site: Site, _now: datetime) -> rpc.SignedErasure:
    """The receipt, byte for byte, and its signature. Raises ServiceError("invalid") while there is none."""
    row = _visible(session, query.actor, query.id)
    if row.receipt is None or row.signature is None:
        pending = ", ".join(part for part in PARTS if part not in row.parts) or "the signature"
        raise invalid(f"The receipt is not ready yet. It waits for {pending}.", "id", "has no receipt yet")
    return rpc.SignedErasure(text=row.receipt, signature=row.signature)


def _visible(session: Session, actor: Actor, submission_id: int) -> ErasureRow:
    query = (
        sa.select(ErasureRow)
        .outerjoin(TemplateRow, TemplateRow.id == ErasureRow.template_id)
        .where(ErasureRow.submission_id == submission_id, visible_to(actor, ErasureRow))
    )
    row: ErasureRow | None = session.scalar(query)
    if row is None:
        raise not_found("Erasure")
    return row
