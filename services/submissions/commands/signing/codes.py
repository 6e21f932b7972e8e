"""Use cases of one-time codes on the signing page: the gate before everything of a form, sending a code, checking one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.events import CODE_DUE, CodeDue
from contracts.rpc import submissions as rpc
from contracts.runtime.bus.outbox import emit
from contracts.types import Account, FieldDefinition, FieldType
from services.submissions.models import SubmitterRow
from services.submissions.planning.creation import LINK
from services.submissions.reading import present
from services.submissions.rules import domain
from services.submissions.rules.domain import FormState, Refused
from services.submissions.rules.parties import addresses
from services.submissions.rules.values import filling
from services.submissions.settings import Settings
from services.submissions.site import Site
from services.submissions.storage import branding, rates, store, trail
from services.submissions.storage.repeats import once
from services.submissions.storage.signers import one_time_codes, phone_caps
from services.submissions.storage.signers.one_time_codes import EMAIL, PHONE, Challenge, Issued, Judged

STATE = "code"
"""``SigningForm.state`` while a code is asked for."""

WORTH_A_CODE = frozenset({FormState.OPEN, FormState.CONFIRMING, FormState.WAITING, FormState.COMPLETED})
"""In the other states the page has nothing to show that a code could open."""

NOT_CONFIRMED = "must be confirmed with the code that is sent to it"
_SENT = {EMAIL: trail.SEND_CODE_BY_EMAIL, PHONE: trail.SEND_CODE_BY_PHONE}
_PASSED = {EMAIL: trail.EMAIL_VERIFIED, PHONE: trail.PHONE_VERIFIED}


class Visitor(Protocol):
    """Who calls with a slug: ``contracts.rpc.submissions.visit.Visit`` and ``form.FormPage``."""

    slug: str
    proofs: list[str]


def require_passed(submitter: SubmitterRow, proofs: Sequence[str], site: Site, now: datetime) -> None:
    """Raises ServiceError("forbidden") while this browser has a code to pass. Before everything that a slug opens."""
    if one_time_codes.next_challenge(submitter, proofs, site.link_secret, now) is not None:
        message = "Verification required, refresh the page and pass 2FA."
        raise ServiceError("forbidden", message, [{"field": "state", "reason": STATE}])


def lock_passed(
    session: Session, visitor: Visitor, site: Site, now: datetime
) -> tuple[store.LoadedSubmission, SubmitterRow]:
    """Lock the submission of this slug and return it with its signer, who has passed the codes that are asked of them."""
    submission, submitter = store.lock_by_slug(session, visitor.slug, visitor.proofs, now)
    require_passed(submitter, visitor.proofs, site, now)
    return submission, submitter


def send(
    session: Session, command: rpc.codes.SendCode, settings: Settings, site: Site, now: datetime
) -> rpc.codes.CodeSent:
    """Send the code that this browser must pass next, or the one that confirms a number for a field."""

    def decide() -> rpc.codes.CodeSent:
        submission, submitter = store.lock_by_slug(session, command.slug, command.proofs, now)
        challenge = _challenge_of(submission, submitter, command, command.phone, site, now)
        if challenge.address is None:
            raise invalid("There is no address that a code could be sent to.")
        if challenge.method == PHONE and command.phone_otp_webhook is None:
            raise invalid("Phone verification not configured", "phone_otp_webhook", "is not configured")
        if submission.row.source == LINK:
            visitor = f"codes of link forms from {rates.network(command.ip)}"
            rates.count(
                session, visitor, one_time_codes.SENDS_OF_VISITOR, now, refusal=one_time_codes.TOO_MANY_FROM_HERE
            )
        issued = one_time_codes.issue(session, challenge, submission.row.id, site.link_secret, now)
        if challenge.method == PHONE:
            phone_caps.count(session, challenge.address, settings, now)
        data = {challenge.method: challenge.address, "ip": command.ip}
        trail.append(
            submission, [trail.Line(_SENT[challenge.method], submitter.id, data)], store.moment(submission, now)
        )
        due = _due(submission, submitter, challenge, issued, command.phone_otp_webhook)
        emit(session, CODE_DUE, due, subject=f"submission:{submission.row.id}")
        return rpc.codes.CodeSent(
            sent_to=one_time_codes.masked(challenge.method, challenge.address),
            retry_after=int(one_time_codes.SENDS.pause.total_seconds()),
            expires_at=issued.expires_at,
        )

    return once(session, rpc.codes.SEND_CODE, command, decide)


def check(
    session: Session, command: rpc.codes.CheckCode, site: Site, now: datetime
) -> tuple[Judged, rpc.codes.PassedCode | None]:
    """Judge what was typed. Nothing is raised for a wrong code: the transaction has to commit the count of guesses."""
    submission, submitter = store.lock_by_slug(session, command.slug, command.proofs, now)
    challenge = _challenge_of(submission, submitter, command, command.phone, site, now)
    judged = one_time_codes.judge(session, challenge, command.code, command.request_id, site.link_secret, now)
    if judged.reason is not None:
        return judged, None
    if not judged.again:
        data = {
            challenge.method: challenge.address,
            "ip": command.ip,
            "user_agent": (command.user_agent or "")[:250] or None,
        }
        trail.append(
            submission, [trail.Line(_PASSED[challenge.method], submitter.id, data)], store.moment(submission, now)
        )
    if challenge in one_time_codes.required(submitter):
        return judged, one_time_codes.proof_of(challenge, site.link_secret, now)
    return judged, rpc.codes.PassedCode(method=challenge.method)


def asks_for_code(field: FieldDefinition) -> bool:
    """A phone field whose number the signer must confirm with a code. What the sender fixed is the sender's to know."""
    return field.type is FieldType.PHONE and bool(field.preferences.get("one_time_code")) and not field.readonly


def unconfirmed(submission: store.LoadedSubmission, submitter: SubmitterRow, site: Site) -> filling.Faults:
    """Return the fields of this signer whose numbers, as they stand, have not been confirmed."""
    fields = [
        field for field in submission.fields_of(submitter) if asks_for_code(field) and submitter.values.get(field.uuid)
    ]
    numbers = [str(submitter.values[field.uuid]) for field in fields]
    confirmed = one_time_codes.confirmed(submission.session, submitter, numbers, site.link_secret)
    return [(field, NOT_CONFIRMED) for field, number in zip(fields, numbers, strict=True) if number not in confirmed]


def show_confirmed(session: Session, submitter: SubmitterRow, fields: Sequence[rpc.form.FormField], site: Site) -> None:
    """Say of each number of a field that asks for a code whether it was confirmed."""
    asking = {field.uuid: str(field.value) for field in fields if field.mine and field.value and asks_for_code(field)}
    confirmed = one_time_codes.confirmed(session, submitter, list(asking.values()), site.link_secret)
    for field in fields:
        if asking.get(field.uuid) in confirmed:
            field.confirmed = asking[field.uuid]


def _challenge_of(
    submission: store.LoadedSubmission,
    submitter: SubmitterRow,
    visit: rpc.visit.Visit,
    phone: str | None,
    site: Site,
    now: datetime,
) -> Challenge:
    """The code that is to be sent or checked; ServiceError when none is asked for, or there is nothing that it could open."""
    state = submission.state.form_state(submitter.id, now)
    if state not in WORTH_A_CODE:
        refused = Refused(state, domain.REFUSALS[state])
        raise ServiceError("invalid", refused.message, [{"field": "state", "reason": str(state)}])
    number = _number(phone)
    challenge = one_time_codes.next_challenge(submitter, visit.proofs, site.link_secret, now)
    if challenge is not None:
        if number is not None and challenge.method == EMAIL:
            require_passed(submitter, visit.proofs, site, now)
        if number is not None and number != challenge.address:  # else anybody could prove a number of their own
            raise invalid("phone is not the number of this submitter", "phone", "is not the number of this submitter")
        return challenge
    if number is None:
        raise ServiceError("conflict", "No code is needed.", [{"field": "state", "reason": "passed"}])
    if state is not FormState.OPEN or not any(asks_for_code(field) for field in submission.fields_of(submitter)):
        reason = "is not needed: no field of this form asks for a code"
        raise invalid(f"phone {reason}", "phone", reason)
    return one_time_codes.of_number(submitter, number)


def _number(phone: str | None) -> str | None:
    if phone is None:
        return None
    try:
        return addresses.phone(phone)
    except addresses.BadAddress as bad:
        raise invalid(f"phone {bad.reason}", "phone", bad.reason) from None


def _due(
    submission: store.LoadedSubmission,
    submitter: SubmitterRow,
    challenge: Challenge,
    issued: Issued,
    phone_otp_webhook: str | None,
) -> CodeDue:
    account = Account.model_validate(submission.snapshot.account)
    return CodeDue(
        code_id=issued.code_id,
        seed=issued.seed,
        method=challenge.method,
        to=challenge.address or "",
        to_name=submitter.name,
        submission_id=submission.row.id,
        submission_name=present.called(submission.row, submission.snapshot),
        submitter_id=submitter.id,
        submitter_name=submitter.name,
        submitter_email=submitter.email,
        slug=submitter.slug,
        template_name=submission.snapshot.template_name,
        phone_otp_webhook=phone_otp_webhook if challenge.method == PHONE else None,
        account_name=branding.shown(submitter, account).name,
        lang=submitter.preferences.get("lang") or account.locale,
        minutes=int(one_time_codes.LIFETIME.total_seconds() // 60),
        expires_at=issued.expires_at,
        test=submission.row.test,
    )
