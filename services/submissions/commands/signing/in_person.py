"""Use cases of parties that sign in person on one device: who has completed hands it over, the next one takes it.

Nobody is proved to be who they are by having the device: what is asked of the next party (one-time codes, identity) is asked of
them on it, too, and the trail says whose hands it came from.
"""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError, not_found
from contracts.rpc.submissions.signing import handover as rpc
from contracts.runtime.bus import outbox
from contracts.types import Account
from services.submissions.commands.signing.codes import lock_passed
from services.submissions.commands.signing.form import refused_for_page
from services.submissions.commands.signing.ways import NOT_ALLOWED, TOO_MANY
from services.submissions.models import HandoverRow, SubmitterRow
from services.submissions.reading import present
from services.submissions.rules import domain, handing
from services.submissions.rules.domain import FormState, Refused
from services.submissions.rules.parties import addresses, offers
from services.submissions.site import Site
from services.submissions.storage import branding, handovers, rates, store, trail
from services.submissions.storage.rates import Rate
from services.submissions.storage.repeats import once

HANDOVERS = Rate(most=40, within=handovers.KEPT / 2)
"""Of one party."""

NOBODY = "Nobody can go on here just now."
OVER = "This link is no longer valid."


def hand(session: Session, command: rpc.HandDevice, site: Site, now: datetime) -> rpc.Handed:
    """A party that has completed wants to hand the device to the next."""

    def decide() -> rpc.Handed:
        submission, submitter = lock_passed(session, command, site, now)
        at = store.moment(submission, now)
        if not offers.in_person(submission.row.preferences):
            raise ServiceError("forbidden", NOT_ALLOWED, [{"field": "way", "reason": "is not allowed"}])
        try:
            next_id = domain.hand_device(submission.state, submitter.id, at)
        except Refused as refused:
            raise refused_for_page(refused) from None
        if next_id is None or submitter.completed_by_api:
            raise refused_for_page(Refused(FormState.COMPLETED, NOBODY))
        rates.count(session, f"handovers of submitter:{submitter.id}", HANDOVERS, now, refusal=TOO_MANY)
        handovers.end_offers(session, submitter, now)
        row = HandoverRow(
            submission_id=submission.row.id,
            from_id=submitter.id,
            to_id=next_id,
            token_digest=command.token_digest,
            device_digest=command.device_digest,
            slug_digest=handovers.digest(submission.submitter(next_id).slug),
            created_at=now,
            expires_at=now + handing.LIFETIME,
        )
        session.add(row)
        session.flush()
        return rpc.Handed(expires_at=row.expires_at)

    return once(session, rpc.HAND_DEVICE, command, decide)


def look(session: Session, query: rpc.FindHandover, now: datetime) -> rpc.Handover:
    """Return what the screen between two parties says. Only reads."""
    row = handovers.row_of_token(session, query.token_digest)
    return _screen(store.of_id(session, row.submission_id), row, query.device_digest, now)


def refuse(session: Session, command: rpc.RefuseDevice, now: datetime) -> rpc.Handover:
    """Whoever has the device is not the next party. Asked for twice it is the same."""
    submission, row = _locked(session, command.token_digest)
    if row.device_digest == command.device_digest and row.taken_at is None and row.ended_at is None:
        row.ended_at = now
    return _screen(submission, row, command.device_digest, now)


def take(session: Session, command: rpc.TakeDevice, now: datetime) -> rpc.Handover:
    """The next party has the device: once, and whoever handed it over sees nothing of theirs on it any more."""

    def decide() -> rpc.Handover:
        submission, row = _locked(session, command.token_digest)
        at = store.moment(submission, now)
        if not _is_open(submission, row, command.device_digest, now):
            raise ServiceError("conflict", OVER, [{"field": "state", "reason": "over"}])
        giver, taker = submission.submitter(row.from_id), submission.submitter(row.to_id)
        handovers.end_visits(session, giver, now)
        row.taken_at, row.link_digest = now, command.link_digest
        agent = addresses.name((command.user_agent or "")[:250])
        visit_data = {"ip": (command.ip or "")[:64] or None, "user_agent": agent}
        data: dict[str, Any] = {"named": trail.party(taker), **visit_data}
        trail.append(submission, [trail.Line(trail.HAND_DEVICE, giver.id, data)], at)
        return _open_handover(submission, taker).model_copy(update={"shown_until": handing.shown_until(now, None)})

    # The key has no secret in it; the same request of the same browser is the same answer.
    key = f"{command.token_digest}/{command.device_digest[:16]}/{command.request_id}"
    return outbox.once(session, rpc.TAKE_DEVICE, key, decide)


def _locked(session: Session, token_digest: str) -> tuple[store.LoadedSubmission, HandoverRow]:
    submission = store.lock(session, handovers.row_of_token(session, token_digest).submission_id)
    if submission is None:  # erased while one waited for the lock
        raise not_found("Link")
    return submission, handovers.row_of_token(session, token_digest)


def _is_open(submission: store.LoadedSubmission, row: HandoverRow, device: str | None, now: datetime) -> bool:
    """Return whether this browser may still give the device to the party that it was meant for."""
    if row.device_digest != device or row.taken_at is not None or row.ended_at is not None or now >= row.expires_at:
        return False
    if handovers.digest(submission.submitter(row.to_id).slug) != row.slug_digest:
        return False
    at, state = store.moment(submission, now), submission.state
    return (
        state.form_state(row.from_id, at) is FormState.COMPLETED and state.form_state(row.to_id, at) is FormState.OPEN
    )


def _screen(submission: store.LoadedSubmission, row: HandoverRow, device: str | None, now: datetime) -> rpc.Handover:
    if not _is_open(submission, row, device, now):
        return rpc.Handover(is_open=False)
    return _open_handover(submission, submission.submitter(row.to_id))


def _open_handover(submission: store.LoadedSubmission, taker: SubmitterRow) -> rpc.Handover:
    account = Account.model_validate(submission.snapshot.account)
    return rpc.Handover(
        is_open=True,
        name=taker.name or taker.role,
        account_name=branding.shown(taker, account).name,
        submission_name=present.called(submission.row, submission.snapshot),
        lang=taker.preferences.get("lang"),
    )
