"""Use cases of a signer's last step at a provider: they begin it, go back, are asked again; rendering tells what came of it.

What completing would refuse is refused when it begins, because it is tried there and then; the form is completed in the
transaction that hears of the signature.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.events import CONFIRMATION_DUE, CONFIRMATION_RETRIED
from contracts.evidence import canonical_json
from contracts.providers import (
    CertsignOrder,
    ConfirmationChanged,
    ConfirmationProblem,
    ConfirmationRetried,
    ConfirmationStep,
    ConfirmationView,
)
from contracts.rpc import submissions as rpc
from contracts.rpc.rendering import ConfirmationOrder, ToCheck
from contracts.rpc.submissions.signing.confirmation import LeaveConfirmation, StartConfirmation
from contracts.runtime.bus.outbox import emit, first_time
from contracts.runtime.clock import uuid7
from contracts.types import ActsAs, CertsignStatus, IdentityStatus
from services.submissions.commands.signing import form, let_in
from services.submissions.commands.signing.codes import lock_passed
from services.submissions.evidence import reasons, sealing, statements
from services.submissions.models import SubmitterRow
from services.submissions.outgoing import announce
from services.submissions.outgoing.announce import Announcement
from services.submissions.planning.creation import Limits
from services.submissions.reading import present, queries
from services.submissions.rules import confirming, domain, providers
from services.submissions.rules.confirming import KeptConfirmation, Stage
from services.submissions.rules.domain import FormState, Refused
from services.submissions.rules.providers import KeptCertsign
from services.submissions.rules.values import filling
from services.submissions.site import Site
from services.submissions.storage import confirmations, store, trail
from services.submissions.storage.repeats import once

RETURN_PATH = "/identity/return"
"""Where the provider sends people back to: one address for all, because providers register addresses to the letter."""

_WENT_BACK = "went back"
_NOT_KEPT = {"slug", "proofs", "values", "reasons", "request_id"}


@dataclass(frozen=True)
class _Tried:
    """What completing now would give: the ``order`` for rendering, but who confirms it."""

    fill: dict[str, Any]
    to_check: ToCheck


def start(session: Session, command: StartConfirmation, limits: Limits, site: Site, now: datetime) -> ConfirmationView:
    """The signer has filled in everything: lock it, and have it confirmed."""

    def decide() -> ConfirmationView:
        submission, submitter = lock_passed(session, command, site, now)
        at = store.moment(submission, now)
        order = confirming.order_of(submission.snapshot.certsign, submission.row.certsign)
        if order is None or present.acts_as(submitter) is not ActsAs.SIGNER:
            message = "This form is completed without a provider."
            raise ServiceError("invalid", message, [{"field": "state", "reason": "complete"}])
        trial = _try(session, submission, submitter, command, limits, site, at)
        submission, submitter = lock_passed(session, command, site, now)
        try:
            state, happened = domain.confirm(submission.state, submitter.id, at)
        except Refused as refused:
            raise form.refused_for_page(refused) from None
        own_fields = submission.fields_of(submitter)
        values = form.received(submission, submitter, command.values, limits, at)
        store.set_values(submission, submitter, values)
        store.set_reasons(submission, submitter, reasons.chosen(own_fields, submitter.reasons, command.reasons))
        form.seen(submitter, command, at)
        account = queries.account_of(submission.snapshot)
        filled = filling.with_defaults(own_fields, values, sealing.signing(submission.row, submitter, at, account))
        confirmation = KeptConfirmation(
            id=uuid7(),
            stage=Stage.ASKED,
            provider=order.provider,
            command=command.model_dump(mode="json", exclude=_NOT_KEPT),
            values=dict(filled),
            digest=_digest(submitter),
            handed_by=let_in.handed_by(submission, submitter, command.slug),
            started_at=at,
        )
        confirmations.keep(submitter, confirmation)
        store.save(submission, state, at)
        announcement = Announcement(submission, site, at, submitter.visit)
        announce.announce(announcement, happened)
        data = {"provider": order.provider, "ip": submitter.visit.get("ip")}
        trail.append(submission, [trail.Line(trail.START_CONFIRMATION, submitter.id, data)], at)
        _pending(submission, order, at)
        confirmation_order = ConfirmationOrder(
            **trial.fill,
            confirmation_id=confirmation.id,
            submitter_id=submitter.id,
            certsign=order,
            after=sealing.confirmed(submission.submitters),
            return_url=f"{site.base_url}{RETURN_PATH}",
            to_check=trial.to_check,
        )
        emit(session, CONFIRMATION_DUE, confirmation_order, subject=announcement.subject)
        return ConfirmationView(step=ConfirmationStep.PREPARING, provider=order.provider)

    return once(session, rpc.confirmation.START_CONFIRMATION, command, decide)


def _try(
    session: Session,
    submission: store.LoadedSubmission,
    submitter: SubmitterRow,
    command: StartConfirmation,
    limits: Limits,
    site: Site,
    at: datetime,
) -> _Tried:
    """Complete, look what is on paper then, and undo all of it: ``submission`` is not to be used afterwards. Raises
    ServiceError as completing does."""
    attempt = session.begin_nested()
    try:
        form.completed(submission, submitter, command, limits, site, at)
        request = sealing.confirmation_request(
            submission.row, submission.snapshot, submission.submitters, submission.attachments, site
        )
        everything = statements.to_check(submission)
        mine = [party for party in everything.parties if party.submitter_id == submitter.id]
        to_check = everything.model_copy(
            update={"parties": [party.model_copy(update={"statement": None, "parts": None}) for party in mine]}
        )
        return _Tried({name: getattr(request, name) for name in type(request).model_fields}, to_check)
    finally:
        attempt.rollback()


def leave(session: Session, command: LeaveConfirmation, site: Site, now: datetime) -> rpc.form.Done:
    """Back to the form: what was prepared is discarded."""

    def decide() -> rpc.form.Done:
        submission, submitter = lock_passed(session, command, site, now)
        at = store.moment(submission, now)
        if submission.state.form_state(submitter.id, at) is FormState.CONFIRMING:
            confirmations.discard(submission, submitter, _WENT_BACK, at)
        return rpc.form.Done(state=submission.state.form_state(submitter.id, at))

    return once(session, rpc.confirmation.LEAVE_CONFIRMATION, command, decide)


def ask_again(session: Session, command: LeaveConfirmation, site: Site, now: datetime) -> ConfirmationView:
    """The signer wants to be asked once more, over the same files."""

    def decide() -> ConfirmationView:
        submission, submitter = lock_passed(session, command, site, now)
        at = store.moment(submission, now)
        state = submission.state.form_state(submitter.id, at)
        confirmation = confirming.of(submitter.confirmation)
        if state is not FormState.CONFIRMING or confirmation is None:
            return ConfirmationView(step=ended(state))
        order = CertsignOrder.model_validate(submission.snapshot.certsign)
        asked_again(submission, submitter, confirmation, order, at)
        return ConfirmationView(step=ConfirmationStep.PREPARING, provider=order.provider)

    return once(session, rpc.confirmation.TRY_CONFIRMATION_AGAIN, command, decide)


def asked_again(
    submission: store.LoadedSubmission,
    submitter: SubmitterRow,
    confirmation: KeptConfirmation,
    order: CertsignOrder,
    at: datetime,
) -> None:
    """Have the person asked once more, as ``order`` says."""
    again = confirming.asked_again(confirmation).model_copy(update={"provider": order.provider})
    confirmations.keep(submitter, again)
    submitter.updated_at = submission.row.updated_at = at
    _pending(submission, order, at)
    retried = ConfirmationRetried(
        submission_id=submission.row.id, confirmation_id=confirmation.id, round=again.round, order=order
    )
    emit(submission.session, CONFIRMATION_RETRIED, retried, subject=f"submission:{submission.row.id}")


def ended(state: FormState) -> ConfirmationStep:
    """Return what the page shows where no confirmation is under way."""
    return ConfirmationStep.COMPLETED if state is FormState.COMPLETED else ConfirmationStep.NONE


def accept(
    session: Session, event_id: str, changed: ConfirmationChanged, limits: Limits, site: Site, now: datetime
) -> None:
    """Rendering tells what came of a confirmation. Only what is new about the present one counts."""
    if not first_time(session, "accept_confirmation", event_id):
        return
    submission = store.lock(session, changed.submission_id)
    parties = submission.submitters if submission else []
    submitter = next((party for party in parties if party.id == changed.submitter_id), None)
    if submission is None or submitter is None:
        return
    confirmation, at = confirming.of(submitter.confirmation), store.moment(submission, now)
    after = confirming.after_news(confirmation, changed)
    if confirmation is None or after is None:
        return
    if after.stage is Stage.SIGNED:
        _complete(session, submission, submitter, confirmation, after, limits, site, at)
    elif after.stage is Stage.LEFT:
        confirmations.keep(
            submitter, confirmation.model_copy(update={"status": after.status, "told_at": after.told_at})
        )
        confirmations.discard(submission, submitter, changed.message or "nobody went on with it", at)
    else:
        confirmations.keep(submitter, after)
        submitter.updated_at = submission.row.updated_at = at
        if after.status is IdentityStatus.FAILED:
            _failed(Announcement(submission, site, at), submitter, after, for_admins=changed.status == "failed")


def _complete(
    session: Session,
    submission: store.LoadedSubmission,
    submitter: SubmitterRow,
    confirmation: KeptConfirmation,
    after: KeptConfirmation,
    limits: Limits,
    site: Site,
    at: datetime,
) -> None:
    """The provider has signed: complete the form with what was locked. Where that is not possible any more (the submission has
    expired meanwhile, say) the signature counts for nothing."""
    attempt = session.begin_nested()
    try:
        if _digest(submitter) != confirmation.digest:
            raise invalid("The values have changed since they were locked.", "values")
        confirmations.keep(submitter, after.model_copy(update={"command": None, "values": {}}))
        submission.state = domain.leave_confirmation(submission.state, submitter.id)
        command = StartConfirmation.model_validate(
            {**(confirmation.command or {}), "slug": submitter.slug, "request_id": confirmation.id, "values": {}}
        )
        line = trail.Line(trail.COMPLETE_CONFIRMATION, submitter.id, _signed(after))
        form.completed(
            submission,
            submitter,
            command,
            limits,
            site,
            at,
            lines_before=[line],
            locked=confirmation.values,
            handed_by=confirmation.handed_by,
        )
    except ServiceError as error:
        attempt.rollback()
        again = store.lock(session, submission.row.id)
        assert again is not None, "its row is locked"
        who = again.submitter(submitter.id)
        failed = {"status": IdentityStatus.FAILED, "problem": ConfirmationProblem.CANNOT_SIGN, "told_at": after.told_at}
        confirmations.keep(who, confirmation.model_copy(update=failed))
        confirmations.discard(again, who, error.message, store.moment(again, at))
    else:
        attempt.commit()


def _failed(
    announcement: Announcement, submitter: SubmitterRow, confirmation: KeptConfirmation, *, for_admins: bool
) -> None:
    """Record why; what only an admin can mend is told to them."""
    submission = announcement.submission
    reason = (confirmation.message or "")[: trail.LONGEST_SAID] or None
    data = {"provider": confirmation.provider, "reason": reason}
    trail.append(submission, [trail.Line(trail.FAIL_CONFIRMATION, submitter.id, data)], announcement.now)
    before = providers.certsign_of(submission.row.certsign)
    if not for_admins or (before is not None and before.waived_by):
        return
    state = KeptCertsign(
        status=CertsignStatus.FAILED, provider=confirmation.provider, message=confirmation.message, at=announcement.now
    )
    submission.row.certsign = state.model_dump(mode="json")
    announce.certsign_failed(announcement, state)


def _pending(submission: store.LoadedSubmission, order: CertsignOrder, at: datetime) -> None:
    """The provider is asked: so says the submission."""
    before = providers.certsign_of(submission.row.certsign)
    if before is None or before.status is not CertsignStatus.PENDING or before.provider != order.provider:
        state = KeptCertsign(status=CertsignStatus.PENDING, provider=order.provider, at=at)
        submission.row.certsign = state.model_dump(mode="json")


def _signed(confirmation: KeptConfirmation) -> dict[str, Any]:
    """Return what the trail says of the certificate."""
    signer = confirmation.signer
    if signer is None:
        return {"provider": confirmation.provider}
    return {
        "provider": signer.provider,
        "certificate": signer.subject,
        "certificate_issuer": signer.issuer,
        "certificate_serial": signer.serial,
        "certificate_sha256": signer.sha256,
    }


def _digest(submitter: SubmitterRow) -> str:
    """Of what the signer had filled in."""
    return canonical_json.digest({"values": dict(submitter.values), "reasons": dict(submitter.reasons)})


def give_up(announcement: Announcement, reason: str) -> None:
    """The provider is given up: whoever is asked just now goes back to the form, which is completed without it."""
    submission = announcement.submission
    asked_submitters: Sequence[SubmitterRow] = [
        submitter for submitter in submission.submitters if confirming.is_asked(submitter.confirmation)
    ]
    for submitter in asked_submitters:
        confirmations.discard(submission, submitter, reason, announcement.now)
