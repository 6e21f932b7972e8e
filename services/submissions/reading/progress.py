"""What the page of a submission shows (``contracts.rpc.submissions.progress``): to strangers its state, to who has proved an
address what the owner of that mailbox may know."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.rpc.submissions import progress as rpc
from contracts.runtime.data.epoch import epoch_of
from contracts.types import Account, Actor, SealingStatus, SubmissionStatus
from services.submissions.models import SubmitterRow, TrailRow
from services.submissions.reading import present, queries
from services.submissions.rules import preferences, progress
from services.submissions.rules.parties import addresses
from services.submissions.rules.progress import PartyState
from services.submissions.site import Site
from services.submissions.storage import store, trail
from services.submissions.storage.access import may_act
from services.submissions.storage.signers import one_time_codes
from services.submissions.storage.signers.one_time_codes import EMAIL, Challenge
from services.submissions.storage.store import LoadedSubmission

SENDER, USER, PARTY, COPY = "sender", "user", "party", "copy"
"""As whom a mailbox reads: they handle the submission, see it as the account's user, take part, get copies."""

SESSION = timedelta(hours=1)
"""So long a browser that has passed a code reads the page."""

_LAST = {
    trail.INVITE_PARTY: progress.SENDING,
    trail.INVITE_PARTY_AGAIN: progress.SENDING,
    trail.SEND_EMAIL: progress.LEFT,
    trail.SEND_REMINDER_EMAIL: progress.LEFT,
    trail.SEND_SMS: progress.LEFT,
    trail.BOUNCE_EMAIL: progress.LOST,
    trail.BOUNCE_SMS: progress.LOST,
    trail.WRONG_RECIPIENT: progress.DISOWNED,
}


@dataclass(frozen=True)
class Rights:
    """What the owner of a mailbox may: read ``as_`` somebody, have the files ``as_sent``, the ``finished`` ones."""

    as_: str
    as_sent: bool
    finished: bool

    @property
    def of_account(self) -> bool:
        return self.as_ in (SENDER, USER)


def rights(session: Session, submission: LoadedSubmission, email: str | None, user: Actor | None) -> Rights | None:
    """Return what the owner of the mailbox ``email`` may do here, as things stand; ``user`` is the account's user with that
    address. None: nothing."""
    if (
        user is not None
        and addresses.mailbox(user.email) == addresses.mailbox(email)
        and _sees(session, submission, user)
    ):
        return Rights(SENDER if may_act(user) else USER, as_sent=True, finished=True)
    mailbox = addresses.mailbox(email)
    if not mailbox:
        return None
    lines = trail.lines_of(session, [submission.row.id])
    if any(_is_party(submitter, mailbox, lines) for submitter in submission.submitters):
        return Rights(PARTY, as_sent=False, finished=not submission.state.archived)
    return _of_copies(submission, mailbox)


def _sees(session: Session, submission: LoadedSubmission, user: Actor) -> bool:
    try:
        in_mode = user.model_copy(update={"test": submission.row.test})  # they have come without a key
        queries.visible_submission(session, in_mode, submission.row.id)
    except ServiceError:
        return False
    return True


def _is_party(submitter: SubmitterRow, mailbox: str, lines: Sequence[TrailRow]) -> bool:
    """A party that has been asked already, and is let in by its mailbox alone. Not one whose mailbox is somebody else's, as
    whoever reads it has said."""
    if mailbox not in _mailboxes(submitter.email) or submitter.preferences.get("require_phone_2fa"):
        return False
    last = last_of(submitter, lines)
    was_asked = submitter.invited_at is not None or submitter.completed_at is not None
    return was_asked and (last is None or last.kind != progress.DISOWNED)


def _of_copies(submission: LoadedSubmission, mailbox: str) -> Rights | None:
    row = submission.row
    chosen = preferences.mailing(
        Account.model_validate(submission.snapshot.account),
        row.preferences,
        send_email=bool(row.details.get("send_email", True)),
        sender=None,
        copied=[],
        bcc=row.details.get("bcc_completed"),
        cc=row.details.get("cc_completed"),
    )
    as_sent = mailbox in _mailboxes(row.details.get("cc_sent"))
    finished = mailbox in {addresses.mailbox(address) for address in (*chosen.cc, *chosen.bcc)}
    if not as_sent and not finished:
        return None
    lives = not submission.state.archived
    return Rights(COPY, as_sent=as_sent and lives, finished=finished and lives)


def _mailboxes(listed: str | None) -> set[str]:
    try:
        return {addresses.mailbox(address) for address in addresses.emails(listed)} if listed else set()
    except addresses.BadAddress:
        return set()


def subject_of(session: Session, submission: LoadedSubmission) -> str:
    """Return what codes and proofs of this page let in to. Those of another life of the database (before a restore) do not."""
    return f"progress:{submission.row.id}:{epoch_of(session)}"


def reader(
    session: Session, submission: LoadedSubmission, visit: rpc.ProgressVisit, site: Site, now: datetime
) -> Rights | None:
    """Return what the visitor may who has passed a code for the address that they name; None without proof of that."""
    challenge = Challenge(subject_of(session, submission), EMAIL, visit.email)
    if not visit.email or not one_time_codes.is_passed(challenge, visit.proofs, site.link_secret, now):
        return None
    return rights(session, submission, visit.email, visit.user)


def page(session: Session, visit: rpc.ProgressVisit, site: Site, now: datetime) -> rpc.Progress:
    """Return what the page shows to this visitor."""
    submission = store.find_by_page(session, visit.slug)
    row, account = submission.row, Account.model_validate(submission.snapshot.account)
    rights_ = reader(session, submission, visit, site, now)
    state = _state(submission, now)
    acting_parties = [party for party in submission.state.submitters if not party.viewer]
    shown = rpc.Progress(
        state=state,
        name="" if state == "archived" and rights_ is None else row.name or submission.snapshot.template_name or "",
        account_name=account.company_name or account.name,
        time_zone=account.time_zone,
        done=sum(party.status.value == "completed" for party in acting_parties),
        count=len(acting_parties),
    )
    if rights_ is None:
        return shown
    lines = trail.lines_of(session, [row.id])
    return shown.model_copy(
        update={
            "reader": rights_.as_,
            "sender_name": row.created_by_name or (row.created_by_email if rights_.of_account else None),
            "created_at": row.created_at,
            "completed_at": row.completed_at,
            "expire_at": row.expire_at,
            "parties": _parties(submission, rights_, lines, now),
            "files": list(_files(submission, rights_)),
            "lines": [_line(line, submission) for line in lines] if rights_.of_account else [],
        }
    )


def _state(submission: LoadedSubmission, now: datetime) -> str:
    if submission.state.archived:
        return "archived"
    status = submission.state.status_at(now)
    if status is SubmissionStatus.PENDING and submission.state.sealing is not None:
        return "sealing_failed" if submission.state.sealing is SealingStatus.FAILED else "sealing"
    if status is SubmissionStatus.PENDING and submission.state.returned:
        return "returned"
    return status.value


def _parties(
    submission: LoadedSubmission, rights_: Rights, lines: Sequence[TrailRow], now: datetime
) -> list[rpc.PartyProgress]:
    names = {row.id: row.name or row.role for row in submission.submitters}
    now_asked = [names[id_] for id_ in progress.awaited(submission.state)]
    shown = []
    for row in submission.submitters:
        party = party_of(row, lines)
        standing = progress.state_of(party, submission.state, now)
        if standing.state is PartyState.FAILED and not rights_.of_account:
            standing = progress.Told(PartyState.ON_ITS_WAY)
        shown.append(
            rpc.PartyProgress(
                submitter_id=row.id,
                name=row.name,
                role=row.role,
                email=row.email if rights_.of_account else None,
                phone=row.phone if rights_.of_account else None,
                acts_as=party.acts_as.value,
                state=standing.state.value,
                at=standing.at,
                reason=(row.decline_reason or "") if standing.state is PartyState.DECLINED else standing.reason,
                waits_for=now_asked if standing.state is PartyState.WAITING else [],
                may_send_again=rights_.as_ == SENDER and may_be_sent_again(row, submission, now),
            )
        )
    return shown


def party_of(row: SubmitterRow, lines: Sequence[TrailRow]) -> progress.Party:
    """One party, for ``rules.progress``."""
    return progress.Party(
        id=row.id,
        acts_as=present.acts_as(row),
        is_notified=is_told(row),
        by_sender=row.completed_by_api is not None,
        sent_at=row.sent_at,
        opened_at=row.opened_at,
        started_at=row.started_at,
        completed_at=row.completed_at,
        declined_at=row.declined_at,
        last=last_of(row, lines),
    )


def last_of(row: SubmitterRow, lines: Iterable[TrailRow]) -> progress.Message | None:
    """Return what became of this party's invitation last. A code or copy that could not be delivered is another matter."""
    last = None
    for line in lines:
        kind = _LAST.get(line.event_type) if line.submitter_id == row.id else None
        if kind is None or (kind == progress.LOST and line.data.get("kind") not in ("invitation", "reminder")):
            continue
        last = progress.Message(kind, line.occurred_at, str(line.data.get("reason") or ""))
    return last


def is_told(row: SubmitterRow) -> bool:
    """Do this party's invitations go by mail or SMS?"""
    by_mail = bool(row.email and row.preferences.get("send_email"))
    return by_mail or bool(row.phone and row.preferences.get("send_sms"))


def may_be_sent_again(row: SubmitterRow, submission: LoadedSubmission, now: datetime) -> bool:
    """Return whether the invitation of this party can be sent once more."""
    state = submission.state
    party = state.submitter(row.id)
    lives = (
        not (state.archived or state.returned or state.all_signed) and state.status_at(now) is SubmissionStatus.PENDING
    )
    seen = party.viewer and row.opened_at is not None
    return lives and is_told(row) and party.status.value == "pending" and state.reached(party) and not seen


def _files(submission: LoadedSubmission, rights_: Rights) -> Iterable[rpc.ProgressFile]:
    results = submission.row.results
    if results and rights_.finished:
        yield from (_file("document", document["name"], document["file"]) for document in results["documents"])
        yield _file("audit_trail", _title(submission), results["audit_trail"])
    elif rights_.as_sent:
        yield from (_file("sent", stored["name"], stored["file"]) for stored in submission.snapshot.documents)


def _title(submission: LoadedSubmission) -> str:
    return present.title(submission.row, submission.template, submission.snapshot.account.get("locale"))


def _file(kind: str, name: str, file: Mapping[str, Any]) -> rpc.ProgressFile:
    return rpc.ProgressFile(kind=kind, name=name, file=BlobRef.model_validate(file))


def _line(line: TrailRow, submission: LoadedSubmission) -> rpc.ProgressLine:
    party = line.data.get("party") if isinstance(line.data.get("party"), dict) else None
    party_name = (party or {}).get("name") or (party or {}).get("email") or (party or {}).get("role") or ""
    by = line.data.get("by_name") or line.data.get("by") or ""
    if not party_name and line.submitter_id is None:
        party_name = line.data.get("email") or ""
    return rpc.ProgressLine(event_type=line.event_type, at=line.occurred_at, party=str(party_name), by=str(by))
