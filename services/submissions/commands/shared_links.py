"""Shared links ``/d/<slug of a template>`` (specification 2.2, peer facts 6.4): visitors get submissions of their own.

A stranger must not come into somebody else's submission: neither the same network address nor the same e-mail address, typed
in, opens one that is there. Only the browser that began it, by its cookie (``resume``), or who has passed a one-time code for
its address, goes on with it.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.events import CODE_DUE, CodeDue
from contracts.formats.one_time_code import mac
from contracts.problems import Problems
from contracts.rotation import each
from contracts.rpc import submissions as rpc
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.bus.outbox import emit
from contracts.shared_link import LINK_FORM_FIELDS, required_contact
from contracts.types import Actor, Party, Role, SubmissionStatus
from services.submissions.commands import submissions
from services.submissions.models import SubmissionRow, SubmitterRow
from services.submissions.planning import creation
from services.submissions.planning.creation import LINK
from services.submissions.planning.plan import Plan
from services.submissions.planning.preparing import Prepared
from services.submissions.rules.domain import FormState
from services.submissions.rules.parties import addresses
from services.submissions.rules.values import variables
from services.submissions.settings import Settings
from services.submissions.site import Site
from services.submissions.storage import rates, store, trail
from services.submissions.storage.rates import Rate
from services.submissions.storage.repeats import once
from services.submissions.storage.signers import one_time_codes
from services.submissions.storage.signers.one_time_codes import EMAIL, Challenge, Judged

TOO_OFTEN = "Too many people have used this link just now. Please try again later."
_MAC_LENGTH = 32
_MOST_LOOKED_AT = 20


@dataclass(frozen=True)
class Contact:
    """Who the visitors say that they are, cleaned; what was not asked for is None."""

    email: str | None
    name: str | None
    phone: str | None


def party_of(template: TemplateSnapshot) -> Party:
    """The one role that a visitor can take. ServiceError when the link cannot be used: archived, nothing to fill in, several
    people are to sign and nobody says who the others are, or the documents have variables and nobody says what stands there."""
    signing = [
        party for party in template.parties if any(field.submitter_uuid == party.uuid for field in template.fields)
    ]
    if template.archived:
        raise _unusable("archived", "This document has been removed.")
    if not signing:
        raise _unusable("empty", "This document has no fields to fill in.")
    if len(signing) > 1:
        message = "Several people have to sign this document: its sender must invite each of them."
        raise _unusable("several", message)
    if variables.has_variables(template):
        message = "This document is made for each person separately: its sender must invite you."
        raise _unusable("variables", message)
    return signing[0]


def contact_of(visit: rpc.links.LinkVisit, template: TemplateSnapshot) -> Contact:
    """Return what the visitor gave, checked. Raises ServiceError naming each thing that is missing or wrong."""
    problems = Problems()
    required = required_contact(template.preferences)
    answers = {name: getattr(visit, name) if name in required else None for name in LINK_FORM_FIELDS}
    for name in required:
        if not (answers[name] or "").strip():
            problems.add(name, "is required", f"{name} is required")
    contact = Contact(*creation.checked_contact(answers["email"], answers["name"], answers["phone"], "", problems))
    problems.refuse()
    return contact


def link_challenge(template: TemplateSnapshot, contact: Contact) -> Challenge | None:
    """Return the code that the visitor must pass before getting a submission."""
    if not template.preferences.get("shared_link_2fa"):
        return None
    return Challenge(f"link:{template.id}:{addresses.mailbox(contact.email)}", EMAIL, contact.email)


def request_of_visitor(
    command: rpc.links.StartFromLink, template: TemplateSnapshot, party: Party, contact: Contact
) -> rpc.api.CreateSubmission:
    """The submission that the visitor gets. Its sender is the template's author."""
    sender = command.sender or Actor(user_id=0, role=Role.ADMIN, email="")
    person = rpc.api.NewSubmitter(
        uuid=party.uuid,
        email=contact.email,
        name=contact.name,
        phone=contact.phone,
        lang=command.lang,
        require_email_2fa=link_challenge(template, contact) is not None,
    )
    return rpc.api.CreateSubmission(
        request_id=f"link/{template.id}/{_request_of(command, contact)}",
        actor=sender.model_copy(update={"role": Role.ADMIN, "test": template.test}),
        account=command.account,
        certsign=command.certsign,
        template_id=template.id,
        submitters=[person],
        source=LINK,
    )


def require_code(command: rpc.links.StartFromLink, challenge: Challenge | None, site: Site, now: datetime) -> None:
    """Raises ServiceError("forbidden") while the code that the link asks for is not passed."""
    if challenge is not None and not one_time_codes.is_passed(challenge, command.proofs, site.link_secret, now):
        message = "Verification required: ask for a code and pass it first."
        raise ServiceError("forbidden", message, [{"field": "state", "reason": "code"}])


def start(
    session: Session,
    command: rpc.links.StartFromLink,
    creating: rpc.api.CreateSubmission,
    template: TemplateSnapshot,
    plan: Plan,
    prepared: Sequence[Prepared],
    settings: Settings,
    site: Site,
    now: datetime,
) -> rpc.links.LinkStarted:
    """Return the visitor's submission: the one that they began, or a new one. A repeated request makes one."""
    contact = Contact(creating.submitters[0].email, creating.submitters[0].name, creating.submitters[0].phone)
    challenge = link_challenge(template, contact)

    def decide() -> rpc.links.LinkStarted:
        begun = _slug_begun(session, command, template, contact, challenge, site, now)
        if begun is None:
            _count(session, command, template, settings, now)
            source = {"source": LINK, "ip": command.ip, "user_agent": (command.user_agent or "")[:250] or None}
            submission = submissions.create(session, creating, template, plan, prepared, site, now, origin=source)
            begun = submission.submitters[0].slug
            assert begun is not None  # a link's submission is created with the rights of an admin
            if challenge is not None:
                _tell_of_code(session, begun, challenge, command, now)
        return rpc.links.LinkStarted(submitter_slug=begun)

    source = command.model_copy(update={"request_id": _request_of(command, contact)})
    started = once(session, rpc.links.START_FROM_LINK, source, decide)
    return _with_cookies(session, started, template, site, now)


def send_code(
    session: Session, command: rpc.links.SendLinkCode, template: TemplateSnapshot, site: Site, now: datetime
) -> rpc.codes.CodeSent:
    """Send the code that the link asks for."""
    contact = contact_of(command, template)
    challenge = link_challenge(template, contact)

    def decide() -> rpc.codes.CodeSent:
        if challenge is None or challenge.address is None:
            raise ServiceError("conflict", "No code is needed.", [{"field": "state", "reason": "passed"}])
        visitor = f"link codes from {rates.network(command.ip)}"
        rates.count(session, visitor, one_time_codes.SENDS_OF_VISITOR, now, refusal=TOO_OFTEN)
        issued = one_time_codes.issue(session, challenge, None, site.link_secret, now)
        due = CodeDue(
            code_id=issued.code_id,
            seed=issued.seed,
            method=EMAIL,
            to=challenge.address,
            to_name=contact.name,
            submission_name=template.name,
            account_name=command.account.company_name or command.account.name,
            lang=command.lang or command.account.locale,
            minutes=int(one_time_codes.LIFETIME.total_seconds() // 60),
            expires_at=issued.expires_at,
            test=template.test,
        )
        emit(session, CODE_DUE, due, subject=f"template:{template.id}", keep=False)
        return rpc.codes.CodeSent(
            sent_to=one_time_codes.masked(EMAIL, challenge.address),
            retry_after=int(one_time_codes.SENDS.pause.total_seconds()),
            expires_at=issued.expires_at,
        )

    return once(session, rpc.links.SEND_LINK_CODE, command, decide)


def check_code(
    session: Session, command: rpc.links.CheckLinkCode, template: TemplateSnapshot, site: Site, now: datetime
) -> tuple[Judged, rpc.codes.PassedCode | None]:
    """As ``code_commands.check``."""
    challenge = link_challenge(template, contact_of(command, template))
    if challenge is None:
        raise ServiceError("conflict", "No code is needed.", [{"field": "state", "reason": "passed"}])
    judged = one_time_codes.judge(session, challenge, command.code, command.request_id, site.link_secret, now)
    return judged, one_time_codes.proof_of(challenge, site.link_secret, now) if judged.reason is None else None


def _slug_begun(
    session: Session,
    command: rpc.links.StartFromLink,
    template: TemplateSnapshot,
    contact: Contact,
    challenge: Challenge | None,
    site: Site,
    now: datetime,
) -> str | None:
    """The slug of the submission that this visitor began and has not finished."""
    slug = _resumed(command.resume, template, site)
    if slug is None and challenge is None:
        return None
    mine = sa.select(SubmitterRow).join(SubmissionRow, SubmissionRow.id == SubmitterRow.submission_id)
    mine = mine.where(
        SubmissionRow.template_id == template.id,
        SubmissionRow.source == LINK,
        SubmissionRow.status == SubmissionStatus.PENDING.value,
        SubmissionRow.archived_at.is_(None),
        SubmitterRow.external_id.is_(None),
        SubmitterRow.slug == slug
        if challenge is None
        else sa.func.lower(SubmitterRow.email) == (contact.email or "").lower(),
    )
    rows = session.scalars(mine.order_by(SubmitterRow.id.desc()).limit(_MOST_LOOKED_AT))
    # A database folds more letters than those that may be taken for each other.
    row = next((row for row in rows if challenge is None or _is_mailbox_of(row, contact)), None)
    if row is None:
        return None
    signer = (_same(row.email), _same(row.name), row.phone)
    if challenge is None and signer != (_same(contact.email), _same(contact.name), contact.phone):
        return None  # somebody else at the same browser
    submission = store.lock(session, row.submission_id)
    if submission is None or submission.state.form_state(row.id, now) not in (
        FormState.OPEN,
        FormState.CONFIRMING,
    ):
        return None
    return row.slug


def _request_of(command: rpc.links.StartFromLink, contact: Contact) -> str:
    """Name the request: a repeated request id with different contact details counts as a new visitor."""
    return f"{command.request_id}/{hashlib.sha256(repr(contact).encode()).hexdigest()[:_MAC_LENGTH]}"


def _count(
    session: Session, command: rpc.links.StartFromLink, template: TemplateSnapshot, settings: Settings, now: datetime
) -> None:
    hour = timedelta(hours=1)
    visitor = Rate(most=settings.shared_link_starts_per_visitor, within=hour)
    everybody = Rate(most=settings.shared_link_starts, within=hour)
    key = f"link {template.id} from {rates.network(command.ip)}"
    rates.count(session, key, visitor, now, refusal=TOO_OFTEN)
    rates.count(session, f"link {template.id}", everybody, now, refusal=TOO_OFTEN)


def _tell_of_code(
    session: Session, slug: str, challenge: Challenge, command: rpc.links.StartFromLink, now: datetime
) -> None:
    """The code was sent and passed before there was a submission; its trail says so all the same."""
    submission, submitter = store.lock_by_slug(session, slug, None, now)
    data: dict[str, Any] = {EMAIL: challenge.address, "ip": command.ip}
    lines = [trail.Line(kind, submitter.id, data) for kind in (trail.SEND_CODE_BY_EMAIL, trail.EMAIL_VERIFIED)]
    trail.append(submission, lines, store.moment(submission, now))


def _with_cookies(
    session: Session, started: rpc.links.LinkStarted, template: TemplateSnapshot, site: Site, now: datetime
) -> rpc.links.LinkStarted:
    """Return what the browser gets to keep. Secrets, so they are made each time, and not kept with the answer to the
    request."""
    slug = started.submitter_slug
    resume = f"{slug}.{_resume_mac(slug, template, site.link_secret)}"
    submitter = session.scalar(sa.select(SubmitterRow).where(SubmitterRow.slug == slug))
    codes = one_time_codes.required(submitter) if submitter is not None else []
    linked = template.preferences.get("shared_link_2fa")
    mailed = next((code for code in codes if code.method == EMAIL and linked), None)
    passed = one_time_codes.proof_of(mailed, site.link_secret, now) if mailed else None
    return started.model_copy(update={"resume": resume, "passed": passed})


def _resumed(token: str | None, template: TemplateSnapshot, site: Site) -> str | None:
    slug, _, mac = (token or "").partition(".")
    right = [_resume_mac(slug, template, secret) for secret in each(site.link_secret)]
    return slug if any(hmac.compare_digest(mac.encode(), accepted.encode()) for accepted in right) else None


def _resume_mac(slug: str, template: TemplateSnapshot, secret: str) -> str:
    return mac(secret, "link-resume", slug, str(template.id)).hex()[:_MAC_LENGTH]


def _is_mailbox_of(submitter: SubmitterRow, contact: Contact) -> bool:
    return addresses.mailbox(submitter.email) == addresses.mailbox(contact.email)


def _same(text: str | None) -> str:
    return (text or "").casefold()


def _unusable(reason: str, message: str) -> ServiceError:
    return ServiceError("invalid", message, [{"field": "link", "reason": reason}])
