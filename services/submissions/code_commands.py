"""Use cases of one-time codes on the signing page: the gate before everything of a form, sending a code, checking one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.events import CODE_DUE, CodeDue
from contracts.rpc import submissions as rpc
from contracts.runtime.outbox import emit
from contracts.types import Account
from services.submissions import domain, one_time_codes, store, trail
from services.submissions.domain import FormState, Refused
from services.submissions.models import SubmitterRow
from services.submissions.one_time_codes import EMAIL, Asked, Judged
from services.submissions.repeats import once
from services.submissions.site import Site

STATE = "code"
"""``SigningForm.state`` while a code is asked for."""

WORTH_A_CODE = frozenset({FormState.OPEN, FormState.WAITING, FormState.COMPLETED})
"""In the other states the page has nothing to show that a code could open."""

_SENT = {EMAIL: trail.SEND_CODE_BY_EMAIL}
_PASSED = {EMAIL: trail.EMAIL_VERIFIED}


class Visitor(Protocol):
    """Who calls with a slug: ``contracts.rpc.submissions.Visit`` and ``FormPage``."""

    slug: str
    proofs: list[str]


def require_passed(submitter: SubmitterRow, proofs: Sequence[str], site: Site, now: datetime) -> None:
    """Raises ServiceError("forbidden") while this browser has a code to pass. Before everything that a slug opens."""
    if one_time_codes.next_asked(submitter, proofs, site.link_secret, now) is not None:
        message = "Verification required, refresh the page and pass 2FA."
        raise ServiceError("forbidden", message, [{"field": "state", "reason": STATE}])


def lock_passed(session: Session, visitor: Visitor, site: Site, now: datetime) -> tuple[store.Loaded, SubmitterRow]:
    """The submission of this slug, locked, and its signer, who has passed the codes that are asked of him."""
    found, submitter = store.lock_by_slug(session, visitor.slug)
    require_passed(submitter, visitor.proofs, site, now)
    return found, submitter


def send(session: Session, command: rpc.SendCode, site: Site, now: datetime) -> rpc.CodeSent:
    """Send the code that this browser must pass next."""

    def decide() -> rpc.CodeSent:
        found, submitter = store.lock_by_slug(session, command.slug)
        asked = _asked(found, submitter, command, site, now)
        if asked.address is None:
            raise ServiceError("invalid", "There is no address that a code could be sent to.")
        issued = one_time_codes.issue(session, asked, found.row.id, site.link_secret, now)
        at = store.moment(found, now)
        said = {asked.method: asked.address, "ip": command.ip}
        trail.append(found, [trail.Line(_SENT[asked.method], submitter.id, said)], at)
        due = CodeDue(
            code_id=issued.code_id,
            seed=issued.seed,
            method=asked.method,
            to=asked.address,
            to_name=submitter.name,
            submission_id=found.row.id,
            submission_name=found.row.name or found.snapshot.template_name or f"Submission {found.row.id}",
            submitter_id=submitter.id,
            account_name=Account.model_validate(found.snapshot.account).name,
            minutes=int(one_time_codes.LIFETIME.total_seconds() // 60),
            expires_at=issued.expires_at,
        )
        emit(session, CODE_DUE, due, subject=f"submission:{found.row.id}")
        return rpc.CodeSent(
            sent_to=one_time_codes.masked(asked.method, asked.address),
            retry_after=int(one_time_codes.SENDS.pause.total_seconds()),
            expires_at=issued.expires_at,
        )

    return once(session, rpc.SEND_CODE, command, decide)


def check(session: Session, command: rpc.CheckCode, site: Site, now: datetime) -> tuple[Judged, rpc.PassedCode | None]:
    """Judge what was typed. Nothing is raised for a wrong code: the transaction has to commit the count of guesses."""
    found, submitter = store.lock_by_slug(session, command.slug)
    asked = _asked(found, submitter, command, site, now)
    judged = one_time_codes.judge(session, asked, command.code, command.request_id, site.link_secret, now)
    if judged.reason is not None:
        return judged, None
    if not judged.again:
        at = store.moment(found, now)
        said = {asked.method: asked.address, "ip": command.ip, "user_agent": (command.user_agent or "")[:250] or None}
        trail.append(found, [trail.Line(_PASSED[asked.method], submitter.id, said)], at)
    return judged, one_time_codes.proof_of(asked, site.link_secret, now)


def _asked(found: store.Loaded, submitter: SubmitterRow, visit: rpc.Visit, site: Site, now: datetime) -> Asked:
    """The code that is asked for next; ServiceError when there is none, or nothing that it could open."""
    asked = one_time_codes.next_asked(submitter, visit.proofs, site.link_secret, now)
    if asked is None:
        raise ServiceError("conflict", "No code is asked for.", [{"field": "state", "reason": "passed"}])
    state = found.state.form_state(submitter.id, now)
    if state not in WORTH_A_CODE:
        refused = Refused(state, domain.REFUSALS[state])
        raise ServiceError("invalid", refused.message, [{"field": "state", "reason": str(state)}])
    return asked
