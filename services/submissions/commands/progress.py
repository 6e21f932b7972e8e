"""Use cases of a submission's page ``/e/<slug>``: a one-time code for its readers, and the invitation that its sender has sent
again.

Nobody learns from the answers whose address is known here. For every address a code is made, counted and can be guessed at; it
is sent only to whoever may read. A code lets in the browser that asked for it, so that a stranger who asks in somebody's name
makes nothing of theirs void.
"""

from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid, not_found
from contracts.events import CODE_DUE, CodeDue
from contracts.rpc.submissions import progress as rpc
from contracts.rpc.submissions.signing.codes import PassedCode
from contracts.rpc.submissions.signing.form import Done
from contracts.runtime.bus.outbox import emit
from contracts.types import Account
from services.submissions.outgoing.announce import Announcement, announce
from services.submissions.reading import present, progress
from services.submissions.rules import domain
from services.submissions.rules.domain import Refused
from services.submissions.rules.parties import addresses
from services.submissions.site import Site
from services.submissions.storage import rates, store, trail
from services.submissions.storage.rates import Rate
from services.submissions.storage.repeats import once
from services.submissions.storage.signers import one_time_codes
from services.submissions.storage.signers.one_time_codes import (
    EMAIL,
    TOO_MANY_FROM_HERE,
    TOO_MANY_SENT,
    Challenge,
    Judged,
)

SENDS_OF_VISITOR = Rate(most=20, within=timedelta(hours=1))
"""Codes that one place asks for, for whatever addresses."""

SENDS_TO_ADDRESS = Rate(most=6, within=timedelta(days=1))
"""Codes that one place asks for in one name: who asks to annoy somebody leaves them some of the day's."""

AGAIN = Rate(most=5, within=timedelta(days=1), pause=timedelta(seconds=60))
"""Invitations of one party that the page sends again."""

TOO_SOON = "The invitation was sent a moment ago. Please wait before you send it again."
NOT_NOW = "This invitation cannot be sent again."
PROOF_NEEDED = "Verification required, refresh the page and pass 2FA."


def send_code(session: Session, command: rpc.SendProgressCode, site: Site, now: datetime) -> rpc.ProgressCodeAsked:
    """Make a code for the address that the visitor names; send it if its owner may read the page."""
    email = _checked(command.email)

    def decide() -> rpc.ProgressCodeAsked:
        submission = store.find_by_page(session, command.slug)
        rights = progress.rights(session, submission, email, command.user)
        challenge = _challenge(session, submission, email, command.browser, site)
        place, address = rates.network(command.ip), one_time_codes.address_digest(site.link_secret, challenge)
        rates.count(session, f"page codes from {place}", SENDS_OF_VISITOR, now, refusal=TOO_MANY_FROM_HERE)
        rates.count(session, f"page codes to {address} from {place}", SENDS_TO_ADDRESS, now, refusal=TOO_MANY_SENT)
        issued = one_time_codes.issue(session, challenge, submission.row.id, site.link_secret, now, counted="page code")
        if rights is not None:
            account = Account.model_validate(submission.snapshot.account)
            due = CodeDue(
                code_id=issued.code_id,
                seed=issued.seed,
                method=EMAIL,
                to=email,
                to_name=_name(submission, email, command),
                submission_id=submission.row.id,
                submission_name=present.called(submission.row, submission.snapshot),
                account_name=account.company_name or account.name,
                lang=command.lang or account.locale,
                minutes=int(one_time_codes.LIFETIME.total_seconds() // 60),
                expires_at=issued.expires_at,
                test=submission.row.test,
            )
            emit(session, CODE_DUE, due, subject=f"submission:{submission.row.id}")
        pause = int(one_time_codes.SENDS.pause.total_seconds())
        return rpc.ProgressCodeAsked(retry_after=pause, expires_at=issued.expires_at)

    return once(session, rpc.SEND_PROGRESS_CODE, command, decide)


def check_code(
    session: Session, command: rpc.CheckProgressCode, site: Site, now: datetime
) -> tuple[Judged, PassedCode | None]:
    """Judge what was typed; as ``code_commands.check``, nothing is raised for a wrong code. The proof is worth something only
    as long as the address has rights here."""
    submission = store.find_by_page(session, command.slug)
    email = _checked(command.email)
    challenge = _challenge(session, submission, email, command.browser, site)
    judged = one_time_codes.judge(session, challenge, command.code, command.request_id, site.link_secret, now)
    if judged.reason is not None:
        return judged, None
    read = Challenge(progress.subject_of(session, submission), EMAIL, email)
    return judged, one_time_codes.proof_of(read, site.link_secret, now, progress.SESSION)


def send_again(session: Session, command: rpc.SendAgain, site: Site, now: datetime) -> Done:
    """Send a party's invitation again, for a sender who has proved who they are."""

    def decide() -> Done:
        submission = store.lock_by_page(session, command.slug)
        reader = progress.reader(session, submission, command, site, now)
        if reader is None or reader.as_ != progress.SENDER or command.user is None:
            raise ServiceError("forbidden", PROOF_NEEDED, [{"field": "state", "reason": "code"}])
        submitter = next((row for row in submission.submitters if row.id == command.submitter_id), None)
        if submitter is None:
            raise not_found("Submitter")
        at = store.moment(submission, now)
        if not progress.may_be_sent_again(submitter, submission, at):
            raise ServiceError("conflict", NOT_NOW, [{"field": "submitter_id", "reason": "cannot be sent again"}])
        rates.count(session, f"invitation of {submitter.id} again", AGAIN, now, refusal=TOO_SOON)
        acting = command.user.model_copy(update={"ip": command.ip})
        announcement = Announcement(submission, site, at, trail.actor_data(acting))
        announcement.again_by = {"email": True, "sms": True}
        try:
            state, happened = domain.invite_again(submission.state, submitter.id, at)
        except Refused as refused:
            raise ServiceError("conflict", refused.message, [{"field": "state", "reason": refused.state}]) from None
        store.save(submission, state, at)
        announce(announcement, happened)
        return Done(state=submission.state.form_state(submitter.id, at).value)

    return once(session, rpc.SEND_AGAIN, command, decide)


def _name(submission: store.LoadedSubmission, email: str, command: rpc.SendProgressCode) -> str | None:
    """The reader's name, where it is known."""
    if command.user is not None:
        return command.user.name or None
    mailbox = addresses.mailbox(email)
    return next((row.name for row in submission.submitters if addresses.mailbox(row.email) == mailbox), None)


def _challenge(session: Session, submission: store.LoadedSubmission, email: str, browser: str, site: Site) -> Challenge:
    """The code for one address, in one browser."""
    whose = one_time_codes.address_digest(site.link_secret, Challenge("", EMAIL, email))
    return Challenge(f"{progress.subject_of(session, submission)}:{whose[:16]}:{browser}", EMAIL, email)


def _checked(email: str | None) -> str:
    try:
        return addresses.email(email or "")
    except addresses.BadAddress as bad:
        raise invalid(f"email {bad.reason}", "email", bad.reason) from None
