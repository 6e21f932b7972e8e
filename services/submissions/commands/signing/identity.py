"""Use cases of a verification field: signers go to the identity provider, come back, have proved who they are or have not.

What the provider said was looked at by the gateway, which alone speaks with it; whose form it is for is decided here.
"""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.fields.rules import LONGEST_NAME
from contracts.rpc.submissions.signing import identity as rpc
from contracts.rpc.submissions.signing.identity import IdentityProblem, ProvedIdentity
from contracts.runtime.bus import outbox
from contracts.types import FieldDefinition, FieldType
from services.submissions.commands.signing.codes import lock_passed
from services.submissions.commands.signing.form import refused_for_page, seen
from services.submissions.models import IdentityCheckRow, SubmitterRow
from services.submissions.outgoing.announce import Announcement, announce
from services.submissions.rules import domain
from services.submissions.rules.domain import FormState, Refused
from services.submissions.rules.parties import addresses
from services.submissions.site import Site
from services.submissions.storage import store, trail
from services.submissions.storage.repeats import once
from services.submissions.storage.signers import identity_checks
from services.submissions.storage.signers.identity_checks import VERIFIED

ALREADY = "Your identity is verified already."


def start(session: Session, command: rpc.StartIdentityCheck, site: Site, now: datetime) -> rpc.IdentityCheckStarted:
    """The signer is about to leave for the provider."""

    def decide() -> rpc.IdentityCheckStarted:
        submission, submitter = lock_passed(session, command, site, now)
        at = store.moment(submission, now)
        try:
            state, happened = domain.save(submission.state, submitter.id, at)
        except Refused as refused:
            raise refused_for_page(refused) from None
        field = _field(submission, submitter, command.field)
        if identity_checks.verified(session, submitter).get(field.uuid) and submitter.values.get(field.uuid):
            raise ServiceError("conflict", ALREADY, [{"field": field.uuid, "reason": "is verified"}])
        before = identity_checks.last_problem(session, submitter, field.uuid)
        row = identity_checks.begin(submission, submitter, command, at)
        row.method = field.preferences.get("method")
        seen(submitter, command, at)
        store.save(submission, state, at)
        announce(Announcement(submission, site, at, submitter.visit), happened)
        data = {**_trail_data(row), "ip": submitter.visit.get("ip")}
        trail.append(submission, [trail.Line(trail.START_VERIFICATION, submitter.id, data)], at)
        anew = before == IdentityProblem.OTHER_PERSON
        return rpc.IdentityCheckStarted(method=row.method, anew=anew, expires_at=row.expires_at)

    return once(session, rpc.START_IDENTITY_CHECK, command, decide)


def claim(session: Session, command: rpc.ClaimIdentityCheck, now: datetime) -> rpc.IdentityCheckClaimed:
    """Somebody came back with this state, the first and only time."""

    def decide() -> rpc.IdentityCheckClaimed:
        submission, row = identity_checks.locked(session, command.state_digest)
        submitter = submission.submitter(row.submitter_id)
        first, row.claimed_at = row.claimed_at is None, row.claimed_at or now
        usable = first and now < row.expires_at
        if first and not usable:
            row.finished_at = now
            _failed(submission, submitter, row, IdentityProblem.EXPIRED, None, None, now)
        return rpc.IdentityCheckClaimed(
            slug=submitter.slug, field=row.field_uuid, issuer=row.issuer, method=row.method, usable=usable
        )

    key = f"{command.state_digest}/{command.request_id}"
    return outbox.once(session, rpc.CLAIM_IDENTITY_CHECK, key, decide)


def finish(session: Session, command: rpc.FinishIdentityCheck, site: Site, now: datetime) -> rpc.IdentityCheckFinished:
    """Return what became of it. Only who claimed it gets here, once; on a form that is no longer open nothing happens."""

    def decide() -> rpc.IdentityCheckFinished:
        submission, row = identity_checks.locked(session, command.state_digest)
        submitter, at = submission.submitter(row.submitter_id), store.moment(submission, now)
        if submitter.slug != command.slug or row.claimed_at is None or row.finished_at is not None:
            raise ServiceError("conflict", "This attempt is over.", [{"field": "state", "reason": "used"}])
        form = submission.state.form_state(submitter.id, at)
        if form is not FormState.OPEN:
            raise refused_for_page(Refused(form, domain.REFUSALS[form]))
        row.finished_at = at
        seen(submitter, command, at)
        problem = command.problem or _mismatch(submitter, command)
        if problem is not None or command.identity is None:
            problem = problem or IdentityProblem.FAILED
            _failed(submission, submitter, row, problem, command.identity, command.ip, at)
            return rpc.IdentityCheckFinished(problem=problem)
        _field(submission, submitter, row.field_uuid)
        identity = _cleaned(command.identity)
        identity_checks.prove(row, identity)
        store.set_values(submission, submitter, {**submitter.values, row.field_uuid: VERIFIED})
        submission.row.updated_at = submitter.updated_at = at
        data = {**_trail_data(row), **_identified(identity), "ip": submitter.visit.get("ip")}
        trail.append(submission, [trail.Line(trail.COMPLETE_VERIFICATION, submitter.id, data)], at)
        return rpc.IdentityCheckFinished()

    return once(session, rpc.FINISH_IDENTITY_CHECK, command, decide)


def _field(submission: store.LoadedSubmission, submitter: SubmitterRow, uuid: str) -> FieldDefinition:
    """The verification field of this signer. Raises ServiceError when it is none."""
    for field in submission.fields_of(submitter):
        if field.uuid == uuid and field.type is FieldType.VERIFICATION and not field.readonly:
            return field
    raise invalid("Invalid field", "field", "is not a verification field of this signer")


def _mismatch(submitter: SubmitterRow, command: rpc.FinishIdentityCheck) -> IdentityProblem | None:
    """Report a signer who proved another address than the one that was invited: they are not the one who was asked."""
    proved = command.identity.email if command.identity else None
    if command.any_email or not proved or not submitter.email:
        return None
    same = addresses.mailbox(proved) == addresses.mailbox(submitter.email)
    return None if same else IdentityProblem.OTHER_PERSON


def _failed(
    submission: store.LoadedSubmission,
    submitter: SubmitterRow,
    row: IdentityCheckRow,
    problem: IdentityProblem,
    identity: ProvedIdentity | None,
    ip: str | None,
    now: datetime,
) -> None:
    """Kept with the attempt for the signer, and in the trail for the sender: of another person also who it was."""
    row.problem = problem.value
    data: dict[str, Any] = {**_trail_data(row), "reason": problem.value, "ip": ip}
    if identity is not None and problem is IdentityProblem.OTHER_PERSON:
        cleaned = _cleaned(identity)
        data |= {"identified_as": cleaned.name, "proved_email": cleaned.email}
    trail.append(submission, [trail.Line(trail.FAIL_VERIFICATION, submitter.id, data)], store.moment(submission, now))


def _trail_data(row: IdentityCheckRow) -> dict[str, Any]:
    return {"provider": row.provider, "issuer": row.issuer, "method": row.method}


def _identified(identity: ProvedIdentity) -> dict[str, Any]:
    """Return as little as says who it was: the name, and what the provider calls them by."""
    return {
        "identified_as": identity.name,
        "firstname": identity.first_name,
        "lastname": identity.last_name,
        "subject": identity.subject,
        "acr": identity.acr,
    }


def _cleaned(identity: ProvedIdentity) -> ProvedIdentity:
    """Names are another server's words: they are shown and printed."""
    claims = identity.model_dump(include={"name", "first_name", "last_name", "email", "acr"})
    cleaned = {key: addresses.name((value or "")[:LONGEST_NAME]) for key, value in claims.items()}
    return identity.model_copy(update=cleaned)
