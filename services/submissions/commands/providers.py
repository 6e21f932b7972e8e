"""What providers do for a submission: their news, and what API users do about them (specification 4.7, 4.8)."""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.events import CERTSIGN_RETRIED, DUTYSTAMP_RETRIED, DocumentsSealed
from contracts.providers import (
    DUTYSTAMP,
    CertsignChanged,
    CertsignMode,
    CertsignOrder,
    CertsignRetried,
    DutystampChanged,
    DutystampOrder,
    DutystampRetried,
)
from contracts.rpc.submissions import api as rpc
from contracts.runtime.bus.outbox import emit, first_time
from contracts.types import (
    Actor,
    CertsignStatus,
    DutystampStatus,
    IdentityStatus,
    SealingStatus,
    Submission,
    SubmissionStatus,
)
from services.submissions.commands.signing.confirmation import asked_again, give_up
from services.submissions.outgoing import announce
from services.submissions.outgoing.announce import Announcement
from services.submissions.reading import queries
from services.submissions.rules import confirming, providers
from services.submissions.rules.providers import KeptCertsign, KeptDutystamp
from services.submissions.site import Site
from services.submissions.storage import confirmations, store, trail
from services.submissions.storage.repeats import once


def accept_certsign(session: Session, event_id: str, changed: CertsignChanged, site: Site, now: datetime) -> None:
    """The provider's signature came a step further, or not."""
    submission = _concerned(session, "accept_certsign", event_id, changed)
    if submission is None:
        return
    before = providers.certsign_of(submission.row.certsign)
    after = providers.certsign_after(before, changed.state)
    if after is None:
        return
    submission.row.certsign = after.model_dump(mode="json")
    announcement = Announcement(submission, site, store.moment(submission, now))
    if _is_news(announcement, before, after):
        if after.status is CertsignStatus.SIGNED:
            _write(announcement, trail.COMPLETE_CERTSIGN, _trail_data(after))
        elif after.status is CertsignStatus.FAILED and not after.waived_by:
            _write(announcement, trail.FAIL_CERTSIGN, _trail_data(after))
            announce.certsign_failed(announcement, after)


def accept_dutystamp(session: Session, event_id: str, changed: DutystampChanged, site: Site, now: datetime) -> None:
    """Duty stamps came a step further, or not."""
    submission = _concerned(session, "accept_dutystamp", event_id, changed)
    if submission is None:
        return
    before = providers.dutystamp_of(submission.row.dutystamp)
    after = providers.dutystamp_after(before, changed.state)
    if after is None:
        return
    submission.row.dutystamp = after.model_dump(mode="json")
    announcement = Announcement(submission, site, store.moment(submission, now))
    if _is_news(announcement, before, after):
        if after.status is DutystampStatus.STAMPED:
            _write(announcement, trail.COMPLETE_DUTYSTAMP, _stamped(after))
        elif after.status is DutystampStatus.FAILED:
            _write(announcement, trail.FAIL_DUTYSTAMP, _trail_data(after))
            announce.provider_problem(announcement, DUTYSTAMP, after)
    tell_once_stamped(announcement)


def _concerned(
    session: Session, consumer: str, event_id: str, changed: CertsignChanged | DutystampChanged
) -> store.LoadedSubmission | None:
    """The submission that an event is about, locked. None when it came before, or is not about the present sealing."""
    if not first_time(session, consumer, event_id):
        return None
    submission = store.lock(session, changed.submission_id)
    return submission if submission is not None and submission.row.seal_id == changed.seal_id else None


def _is_news(
    announcement: Announcement, before: KeptCertsign | KeptDutystamp | None, after: KeptCertsign | KeptDutystamp
) -> bool:
    """Return whether there is something to say of what was just kept."""
    announcement.submission.row.updated_at = announcement.now
    return before is None or before.status is not after.status or before.message != after.message


def results_of(sealed: DocumentsSealed) -> dict[str, Any]:
    """``SubmissionRow.results``. The one PDF of all that was stamped is the merged one."""
    results = {
        "documents": [document.model_dump(mode="json") for document in sealed.documents],
        "audit_trail": sealed.audit_trail.model_dump(mode="json"),
        "report": [notice.model_dump(mode="json") for notice in sealed.report],
    }
    return results if sealed.combined is None else {**results, "merged": sealed.combined.model_dump(mode="json")}


def tell_once_stamped(announcement: Announcement) -> None:
    """Tell that the stamps are on the documents: once, when both their state and the files say so, whichever came first."""
    row = announcement.submission.row
    state, results = providers.dutystamp_of(row.dutystamp), row.results
    if state is None or results is None or state.status is not DutystampStatus.STAMPED or results.get("stamped_told"):
        return
    targets = {stamp.target for stamp in state.stamps}
    on_documents = any(document.get("stamped_at") for document in results["documents"])
    if on_documents or (targets == {"combined"} and results.get("merged")):
        row.results = {**results, "stamped_told": True}
        announce.stamped(announcement)


def retry_certsign(session: Session, command: rpc.RetryCertsign, site: Site, now: datetime) -> Submission:
    """Have a signature that failed asked for again, with the account's settings of today."""

    def decide() -> Submission:
        submission = store.lock_for(session, command.actor, command.id)
        certsign = providers.certsign_of(submission.row.certsign)
        if confirming.order_of(submission.snapshot.certsign, submission.row.certsign) is not None:
            _ask_signers_again(submission, command, certsign, now)
            return queries.presented(session, submission, site, now, unmasked=True)
        if certsign is None or not certsign.may_be_retried or not _is_sealing(submission):
            raise _nothing_failed("certsign_sign_status", certsign)
        submission.snapshot.certsign = command.order.model_dump(mode="json")
        pending = certsign.model_copy(
            update={"status": CertsignStatus.PENDING, "provider": command.order.provider, "next_attempt_at": None}
        )
        submission.row.certsign = pending.model_dump(mode="json")
        announcement = Announcement(submission, site, store.moment(submission, now))
        _record(announcement, trail.RETRY_CERTSIGN, trail.actor_data(command.actor))
        _tell_rendering(announcement, command.order, None)
        return queries.presented(session, submission, site, now, unmasked=True)

    return once(session, rpc.RETRY_CERTSIGN, command, decide)


def _ask_signers_again(
    submission: store.LoadedSubmission, command: rpc.RetryCertsign, certsign: KeptCertsign | None, now: datetime
) -> None:
    """Signers whose confirmation failed are asked again, with the account's settings of today, as all who come later."""
    failed = [
        (submitter, confirmation)
        for submitter in submission.submitters
        if (confirmation := confirming.of(submitter.confirmation)) is not None
        and confirmation.stage is confirming.Stage.ASKED
        and confirmation.status is IdentityStatus.FAILED
    ]
    if not failed or command.order.mode is not CertsignMode.SIGNER:
        raise _nothing_failed("certsign_sign_status", certsign)
    submission.snapshot.certsign = command.order.model_dump(mode="json")
    at = store.moment(submission, now)
    for submitter, confirmation in failed:
        asked_again(submission, submitter, confirmation, command.order, at)
    trail.append(submission, [trail.Line(trail.RETRY_CERTSIGN, None, trail.actor_data(command.actor))], at)


def waive_certsign(announcement: Announcement, actor: Actor) -> bool:
    """Give the provider's signature up: the local certificate is taken, and the trail names who decided that. True when the
    sealing that is under way goes on with it. Raises ServiceError unless there is something to give up."""
    submission = announcement.submission
    certsign = providers.certsign_of(submission.row.certsign)
    if (order := confirming.order_of(submission.snapshot.certsign, submission.row.certsign)) is not None:
        return _waive_signers(announcement, actor, order, certsign)
    if certsign is None or not certsign.may_be_waived or submission.row.sealing_status == SealingStatus.SEALED.value:
        raise _nothing_failed("certsign_sign_status", certsign)
    waived = certsign.model_copy(
        update={"status": CertsignStatus.FAILED, "waived_by": actor.email, "next_attempt_at": None}
    )
    submission.row.certsign = waived.model_dump(mode="json")
    _record(announcement, trail.WAIVE_CERTSIGN, trail.actor_data(actor) | {"provider": certsign.provider})
    if not _is_sealing(submission):
        return False
    _tell_rendering(announcement, None, actor.email)
    return True


def _waive_signers(
    announcement: Announcement, actor: Actor, order: CertsignOrder, certsign: KeptCertsign | None
) -> bool:
    """Signers who have not signed at the provider yet complete without it; what was signed there stays. Where the sealing has
    failed it is done without that, too: False, it is still to be begun anew."""
    submission, row = announcement.submission, announcement.submission.row
    failed = row.sealing_status == SealingStatus.FAILED.value
    open_still = row.sealing_status is None and submission.state.status is SubmissionStatus.PENDING
    if not failed and not open_still:
        raise _nothing_failed("certsign_sign_status", certsign)
    waived = KeptCertsign(
        status=CertsignStatus.FAILED, provider=order.provider, at=announcement.now, waived_by=actor.email
    )
    give_up(announcement, "the provider was given up by the sender")
    row.certsign = waived.model_dump(mode="json")
    _record(announcement, trail.WAIVE_CERTSIGN, trail.actor_data(actor) | {"provider": order.provider})
    if not failed:
        return True
    for submitter in submission.submitters:
        if (confirmation := confirming.of(submitter.confirmation)) is not None:
            confirmations.keep(submitter, confirmation.model_copy(update={"dropped": True}))
            confirmations.tell_left(submission, confirmation)
    return False


def tell_waived_again(announcement: Announcement) -> None:
    """Tell once more what was waived before rendering had the order: its queues do not wait for each other."""
    certsign = providers.certsign_of(announcement.submission.row.certsign)
    if certsign is not None and certsign.waived_by is not None:
        _tell_rendering(announcement, None, certsign.waived_by)


def retry_dutystamp(session: Session, command: rpc.RetryDutystamp, site: Site, now: datetime) -> Submission:
    """Have stamps that failed asked for again, with the account's settings of today; also after the completion."""

    def decide() -> Submission:
        submission = store.lock_for(session, command.actor, command.id)
        dutystamp = providers.dutystamp_of(submission.row.dutystamp)
        is_ordered = submission.row.sealing_status in (SealingStatus.SEALING.value, SealingStatus.SEALED.value)
        if dutystamp is None or not dutystamp.may_be_retried or not is_ordered or submission.row.seal_id is None:
            raise _nothing_failed("dutystamp_status", dutystamp)
        renewed = {"settings": command.settings, "provider": command.provider}
        order = DutystampOrder.model_validate(submission.snapshot.dutystamp).model_copy(update=renewed)
        submission.snapshot.dutystamp = order.model_dump(mode="json")
        pending = dutystamp.model_copy(
            update={"status": DutystampStatus.PENDING, "provider": command.provider, "next_attempt_at": None}
        )
        submission.row.dutystamp = pending.model_dump(mode="json")
        announcement = Announcement(submission, site, store.moment(submission, now))
        _record(announcement, trail.RETRY_DUTYSTAMP, trail.actor_data(command.actor))
        retried = DutystampRetried(submission_id=submission.row.id, seal_id=submission.row.seal_id, order=order)
        emit(session, DUTYSTAMP_RETRIED, retried, subject=announcement.subject)
        return queries.presented(session, submission, site, now, unmasked=True)

    return once(session, rpc.RETRY_DUTYSTAMP, command, decide)


def _write(announcement: Announcement, event_type: str, data: dict[str, Any]) -> None:
    """A line of the trail that is of no party."""
    trail.append(announcement.submission, [trail.Line(event_type, None, data)], announcement.now)


def _record(announcement: Announcement, event_type: str, data: dict[str, Any]) -> None:
    _write(announcement, event_type, data)
    announcement.submission.row.updated_at = announcement.now


def _tell_rendering(announcement: Announcement, order: CertsignOrder | None, waived_by: str | None) -> None:
    row = announcement.submission.row
    assert row.seal_id is not None
    retried = CertsignRetried(submission_id=row.id, seal_id=row.seal_id, order=order, waived_by=waived_by)
    emit(announcement.submission.session, CERTSIGN_RETRIED, retried, subject=announcement.subject)


def _is_sealing(submission: store.LoadedSubmission) -> bool:
    return submission.row.sealing_status == SealingStatus.SEALING.value


def _nothing_failed(field: str, provider_state: KeptCertsign | KeptDutystamp | None) -> ServiceError:
    state = provider_state.status.value if provider_state else "null"
    message = f"{field} is {state}: only what has failed can be tried again"
    return ServiceError("conflict", message, [{"field": field, "reason": f"is {state}"}])


def _trail_data(state: KeptCertsign | KeptDutystamp) -> dict[str, Any]:
    reason = (state.message or "")[: trail.LONGEST_SAID] or None
    subject = getattr(state, "subject", None)
    data = {"provider": state.provider, "certificate": subject, "reason": reason if state.status == "failed" else None}
    return {key: value for key, value in data.items() if value}


def _stamped(state: KeptDutystamp) -> dict[str, Any]:
    return {"provider": state.provider, "serials": [stamp.serial for stamp in state.stamps if stamp.serial]}
