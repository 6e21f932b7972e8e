"""The rows of signers' confirmations at providers (``Confirmation``, ``ConfirmationSigning``): one function per step.

Each is a transaction. A step of an attempt is written only while that attempt is the one under way: what the person, an
operator or an erasure has changed meanwhile is not overwritten. Secrets are sealed by whoever calls.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.envelope import Envelope
from contracts.events import CONFIRMATION_CHANGED
from contracts.evidence import statements
from contracts.providers import (
    CertsignOrder,
    ConfirmationChanged,
    ConfirmationLeft,
    ConfirmationProblem,
    ConfirmationRetried,
    SignerCertificate,
)
from contracts.rpc.rendering import ConfirmationOrder, ToCheck
from contracts.runtime.bus.outbox import emit, first_time
from contracts.runtime.data.database import leave_work
from services.rendering.models import Confirmation, ConfirmationSigning, SealJob
from services.rendering.rules.confirming import ABANDONED, Stage, confirmed_key, may_become
from services.rendering.storage import news
from services.rendering.storage.certsigning import TakenOver

KINDS = ("prepared", "signed")


@dataclass(frozen=True)
class Base:
    """What a document is for the next signer: the ``file`` that was signed last, what was drawn into it so far (``drawn``, as
    rows keep it), and of which fields (uuids). Pictures were seen when it was signed, and are in its bytes, which stay: only
    those of the last drawing can be told from a file."""

    file: BlobRef
    pages: int
    level: str
    conformance: list[str] | None
    confirmation: str
    drawn: list[Any] = field(default_factory=list)
    fields: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Asked:
    """What the person is asked, sealed, until a moment; and what the provider wants to have with the answer, sealed."""

    sealed_ask: str
    until: datetime
    session: str
    step: str


# --- reading --------------------------------------------------------------------------------------------------------------


def find(session: Session, confirmation_id: str) -> Confirmation | None:
    """The confirmation with this id."""
    return session.get(Confirmation, confirmation_id)


def of_ids(session: Session, ids: Sequence[str]) -> list[Confirmation]:
    """Those of these ids that are known, in that order."""
    if not ids:
        return []
    row_by_id = {row.id: row for row in session.scalars(sa.select(Confirmation).where(Confirmation.id.in_(ids)))}
    return [row_by_id[confirmation_id] for confirmation_id in ids if confirmation_id in row_by_id]


def signed_of(session: Session, submission_id: int) -> list[Confirmation]:
    """Those by which signers of a submission have signed."""
    signed = (Confirmation.submission_id == submission_id, Confirmation.stage == Stage.SIGNED)
    return list(session.scalars(sa.select(Confirmation).where(*signed).order_by(Confirmation.created_at)))


def signings(session: Session, confirmation_id: str) -> list[ConfirmationSigning]:
    """The documents that were prepared, in order."""
    query = sa.select(ConfirmationSigning).where(ConfirmationSigning.confirmation_id == confirmation_id)
    return list(session.scalars(query.order_by(ConfirmationSigning.number)))


def signed_count(session: Session, confirmation_id: str) -> int:
    """Return how many documents have their signature."""
    of_it = (ConfirmationSigning.confirmation_id == confirmation_id, ConfirmationSigning.signature.is_not(None))
    return session.scalar(sa.select(sa.func.count()).select_from(ConfirmationSigning).where(*of_it)) or 0


def bases(session: Session, after: Sequence[str]) -> dict[str, Base]:
    """The documents that were signed in these confirmations, by uuid, as they are after the last of them. Raises LookupError
    when one of them is not known to be signed."""
    base_by_document: dict[str, Base] = {}
    for confirmation_id in after:
        row = session.get(Confirmation, confirmation_id)
        if row is None or row.stage != Stage.SIGNED:
            raise LookupError(confirmation_id)
        for signing in signings(session, confirmation_id):
            if signing.signed is None or signing.level is None:
                raise LookupError(confirmation_id)
            before = base_by_document.get(signing.document)
            base_by_document[signing.document] = Base(
                file=BlobRef.model_validate(signing.signed),
                pages=signing.pages,
                level=signing.level,
                conformance=signing.conformance if before is None else before.conformance,
                confirmation=confirmation_id,
                drawn=[*(before.drawn if before else ()), *({**mark, "picture": None} for mark in signing.drawn)],
                fields=(before.fields if before else frozenset()) | frozenset(signing.fields),
            )
    return base_by_document


def changed_for(documents: Sequence[Any], values: Sequence[Any], uuid: str, base: Base) -> dict[str, Any]:
    """Return what is another in a FillRequest when this document is the ``base``, which others have signed."""
    return {
        "documents": [
            document.model_copy(update={"file": base.file, "signed": True}) if document.uuid == uuid else document
            for document in documents
        ],
        "values": [value for value in values if value.field.uuid not in base.fields],
    }


def refusal_of(session: Session, settings_mark: str) -> str | None:
    """Return why the provider refused these very settings, where it counts refusals and nobody has changed them since."""
    query = sa.select(Confirmation.last_error).where(Confirmation.settings_mark == settings_mark, Confirmation.counted)
    return session.scalar(query.limit(1))


def abandoned(session: Session, now: datetime) -> list[str]:
    """Those that nobody has gone on with for long."""
    ended = sa.select(Confirmation.id).where(
        Confirmation.stage.in_([Stage.REFUSED, Stage.FAILED]), Confirmation.finished_at < now - ABANDONED
    )
    return list(session.scalars(ended.limit(100)))


def over(session: Session, before: datetime) -> list[Confirmation]:
    """Rows whose files nobody needs any more: those that were discarded, and those of submissions that were sealed, before that
    moment."""
    sealed = sa.select(SealJob.submission_id).where(SealJob.state == "done", SealJob.finished_at < before)
    gone = sa.or_(
        sa.and_(Confirmation.stage == Stage.DISCARDED, Confirmation.finished_at < before),
        Confirmation.submission_id.in_(sealed),
    )
    return list(session.scalars(sa.select(Confirmation).where(Confirmation.preparation > 0, gone).limit(100)))


def keys(row: Confirmation) -> list[str]:
    """Return where files of a confirmation may be."""
    return [
        confirmed_key(row.submission_id, row.id, preparation, number, kind)
        for preparation in range(1, row.preparation + 1)
        for number in range(row.documents)
        for kind in KINDS
    ]


def stated_of(to_check: ToCheck) -> dict[str, Any]:
    """Return what the signer's statement will confirm: digests of what was drawn for the signature."""
    (party,) = to_check.parties
    paper = statements.paper_parts(to_check.documents, to_check.fields, party.party_uuid)
    return {
        "values": statements.given_digest(party.values, party.reasons),
        "paper": statements.paper_digest(paper),
        "documents": {uuid: document["sha256"] for uuid, document in to_check.documents.items()},
    }


# --- what submissions tells ---------------------------------------------------------------------------------------------------


def accept(session: Session, envelope: Envelope, order: ConfirmationOrder, now: datetime) -> None:
    """One row per confirmation, however often the event comes; none that was left or erased before it came."""
    if not first_time(session, "confirmation", envelope.id) or find(session, order.confirmation_id) is not None:
        return
    row = _new(order.confirmation_id, order.submission_id, now)
    row.submitter_id, row.request_id, row.provider = order.submitter_id, envelope.request_id, order.certsign.provider
    row.order, row.after, row.round = order.model_dump(mode="json"), order.after, order.round
    row.stated, row.documents = stated_of(order.to_check), len(order.documents)
    session.add(row)
    leave_work(session, Confirmation.__tablename__)


def ask_again(session: Session, envelope: Envelope, retried: ConfirmationRetried, now: datetime) -> None:
    """The person wants to be asked once more. What is prepared stays, and what was signed."""
    if not first_time(session, "confirmation again", envelope.id):
        return
    row = _locked(session, retried.confirmation_id)
    if row is None or row.order is None or retried.round <= row.round:
        return
    row.round = retried.round
    if not may_become(Stage(row.stage), Stage.PREPARING):
        return
    row.order = {**row.order, "certsign": retried.order.model_dump(mode="json")}
    row.provider = retried.order.provider
    counted = row.counted
    row.retry(now)
    row.counted = counted  # that the person tries again makes settings no better
    leave_work(session, Confirmation.__tablename__)


def leave(session: Session, envelope: Envelope, left: ConfirmationLeft, now: datetime) -> None:
    """Nobody goes on with it. When the news comes before the order, that is not taken on."""
    if not first_time(session, "confirmation left", envelope.id):
        return
    row = _locked(session, left.confirmation_id)
    if row is None:
        row = _new(left.confirmation_id, left.submission_id, now)
        session.add(row)
    _discard(session, row, now)


def erase(session: Session, submission_id: int, now: datetime) -> list[str]:
    """Forget everything of a submission's confirmations. Returns blobs to remove."""
    removed: list[str] = []
    query = sa.select(Confirmation).where(Confirmation.submission_id == submission_id).with_for_update()
    for row in session.scalars(query):
        removed += keys(row)
        _discard(session, row, now)
        row.prepared_for = row.assurance = row.signer = None
        row.after, row.stated = [], {}
    return removed


# --- what the person does -------------------------------------------------------------------------------------------------


def answer(session: Session, confirmation_id: str, ask: int, sealed: str, now: datetime) -> bool:
    """Keep what the person has answered, to be tried once. False when something else is asked by now, or was answered."""
    row = _locked(session, confirmation_id)
    if row is None or row.state != "due" or row.stage != Stage.ASKING or row.ask != ask or row.answers is not None:
        return False
    if row.asked_until is None or row.asked_until <= now:
        return False
    row.answers, row.next_attempt_at = sealed, now
    leave_work(session, Confirmation.__tablename__)
    return True


# --- the way of an attempt ------------------------------------------------------------------------------------------------


def take_answers(session: Session, attempt: Confirmation) -> Confirmation:
    """The answers are about to be tried: whatever is killed, they are never tried again."""
    row = _locked_attempt(session, attempt)
    row.answers = row.asked = row.asked_until = None
    _become(row, Stage.PREPARING)
    return row


def begin_preparation(session: Session, attempt: Confirmation) -> Confirmation:
    """Note down that files are about to be prepared, so that they are found whatever is killed; those before are void."""
    row = _locked_attempt(session, attempt)
    row.preparation += 1
    row.prepared_for = row.assurance = None
    _forget_permission(row)
    _forget_signings(session, row)
    return row


def keep_prepared(
    session: Session,
    attempt: Confirmation,
    prepared: Sequence[ConfirmationSigning],
    prepared_for: Mapping[str, Any],
    assurance: Mapping[str, Any],
) -> Confirmation:
    """The files are what will be signed, from now on."""
    row = _locked_attempt(session, attempt)
    row.prepared_for, row.assurance = dict(prepared_for), dict(assurance)
    session.add_all(prepared)
    return row


def keep_login(session: Session, attempt: Confirmation, login: str) -> Confirmation:
    """The person has logged in at the provider; ``login`` is sealed."""
    row = _locked_attempt(session, attempt)
    row.login, row.session, row.session_step, row.session_until = login, None, None, None
    return row


def note_settings(session: Session, attempt: Confirmation, settings_mark: str) -> Confirmation:
    """Note down which settings are about to be tried."""
    row = _locked_attempt(session, attempt)
    if row.settings_mark != settings_mark:
        row.settings_mark, row.counted = settings_mark, False
    return row


def note_refusal(session: Session, attempt: Confirmation, reason: str) -> None:
    """The provider refused these settings and counts that: they are not tried again, by whoever."""
    row = _locked_attempt(session, attempt)
    row.counted, row.last_error = True, reason


def keep_grant(session: Session, attempt: Confirmation, grant: str, until: datetime) -> Confirmation:
    """The provider permits what was asked; ``grant`` is sealed."""
    row = _locked_attempt(session, attempt)
    row.grant, row.grant_until = grant, until
    row.session = row.session_step = row.session_until = None
    _become(row, Stage.AUTHORISED)
    return row


def begin_authorization(session: Session, attempt: Confirmation, problem: ConfirmationProblem | None) -> Confirmation:
    """The permission is worth nothing any more: the person is asked for another one, and told why."""
    row = _locked_attempt(session, attempt)
    _forget_permission(row)
    row.problem = problem.value if problem else None
    _become(row, Stage.PREPARING)
    return row


def keep_signatures(
    session: Session, attempt: Confirmation, signatures: Mapping[int, bytes], now: datetime
) -> Confirmation:
    """These signatures, which were verified, by the numbers of their documents. None takes another's place."""
    row = _locked_attempt(session, attempt)
    _forget_permission(row)
    row.problem = None
    for number, signature in signatures.items():
        unsigned = (
            ConfirmationSigning.confirmation_id == row.id,
            ConfirmationSigning.number == number,
            ConfirmationSigning.signature.is_(None),
        )
        session.execute(sa.update(ConfirmationSigning).where(*unsigned).values(signature=signature, signed_at=now))
    if signed_count(session, row.id) < row.documents:
        _become(row, Stage.PREPARING)  # the provider permits fewer at once than there are: it is asked again
    return row


def keep_file(
    session: Session,
    attempt: Confirmation,
    number: int,
    file: BlobRef,
    level: str,
    notices: Sequence[Mapping[str, Any]],
) -> Confirmation:
    """A document with its signature is stored, and was read back."""
    row = _locked_attempt(session, attempt)
    of_document = (ConfirmationSigning.confirmation_id == row.id, ConfirmationSigning.number == number)
    signed = file.model_dump(mode="json")
    session.execute(sa.update(ConfirmationSigning).where(*of_document).values(signed=signed, level=level))
    assurance = dict(row.assurance or {})
    assurance["notices"] = [*assurance.get("notices", ()), *notices]
    row.assurance = assurance
    return row


# --- how an attempt ends (in the transaction that writes its outcome) ------------------------------------------------------


def wait_for_person(session: Session, row: Confirmation, ask: Asked, now: datetime) -> None:
    """The person is asked; the next attempt is when they have answered, or when the time for that is over."""
    _become(row, Stage.ASKING)
    row.ask += 1
    row.asked, row.asked_until, row.answers = ask.sealed_ask, ask.until, None
    row.session, row.session_step, row.session_until = ask.session, ask.step, None
    row.attempts, row.faults, row.next_attempt_at, row.last_error = 0, 0, max(ask.until, now), None


def wait_for_provider(
    row: Confirmation, session_text: str, step: str, until: datetime, at: datetime, sealed_ask: str | None
) -> None:
    """The provider, or the person at it, needs time: it is asked again ``at`` that moment, up to ``until``. With ``sealed_ask``
    the person is told so."""
    row.session, row.session_step, row.session_until = session_text, step, until
    row.attempts, row.next_attempt_at, row.last_error = 0, at, None
    if sealed_ask is not None:
        _become(row, Stage.ASKING)
        if row.asked is None:
            row.ask += 1
        row.asked, row.asked_until = sealed_ask, until


def ask_anew(row: Confirmation, problem: ConfirmationProblem) -> None:
    """Ask once more: what the person has given, or their login, is used up."""
    _forget_permission(row)
    row.login, row.problem = None, problem.value


def finish(session: Session, row: Confirmation, signer: SignerCertificate, now: datetime) -> None:
    """Every document is signed and stored: say so."""
    _become(row, Stage.SIGNED)
    _forget_secrets(row)
    row.order, row.problem, row.signer = None, None, signer.model_dump(mode="json")
    _tell(session, row, "signed", now, signer=signer)


def stumble(session: Session, row: Confirmation, problem: ConfirmationProblem, now: datetime) -> None:
    """It did not work and is tried again by itself."""
    row.problem = problem.value
    if row.state != "due":  # it was the last attempt
        fail(session, row, problem, now)


def refuse(session: Session, row: Confirmation, problem: ConfirmationProblem, message: str, now: datetime) -> None:
    """The person decides what comes next."""
    _become(row, Stage.REFUSED)
    row.problem = problem.value
    _forget_secrets(row)
    row.last_error = message
    _tell(session, row, "refused", now, message)


def fail(
    session: Session, row: Confirmation, problem: ConfirmationProblem, now: datetime, *, counted: bool = False
) -> None:
    """An admin has to look at it, ``row.last_error`` says why."""
    if row.stage == Stage.FAILED:
        return
    _become(row, Stage.FAILED)
    row.problem, row.counted = problem.value, counted or row.counted
    _forget_secrets(row)
    _tell(session, row, "failed", now, row.last_error)


def discard_abandoned(session: Session, confirmation_id: str, now: datetime) -> None:
    """Nobody has gone on with it for long: say so."""
    row = _locked(session, confirmation_id)
    if row is None or row.stage not in (Stage.REFUSED, Stage.FAILED) or not row.finished_at:
        return
    if row.finished_at >= now - ABANDONED:
        return
    _discard(session, row, now)
    _tell(session, row, "discarded", now, "nobody went on with it")


def forget(session: Session, confirmation_id: str) -> None:
    """Nothing is left of its files. Who signed with what stays known."""
    session.execute(sa.delete(ConfirmationSigning).where(ConfirmationSigning.confirmation_id == confirmation_id))
    session.execute(sa.update(Confirmation).where(Confirmation.id == confirmation_id).values(preparation=0))


# --- parts ----------------------------------------------------------------------------------------------------------------


def _new(confirmation_id: str, submission_id: int, now: datetime) -> Confirmation:
    return Confirmation(
        id=confirmation_id,
        submission_id=submission_id,
        submitter_id=0,
        provider="",
        after=[],
        stated={},
        stage=Stage.PREPARING.value,
        round=1,
        ask=0,
        preparation=0,
        documents=0,
        authorization=1,
        faults=0,
        counted=False,
        created_at=now,
        next_attempt_at=now,
        state="due",
        attempts=0,
    )


def _locked(session: Session, confirmation_id: str) -> Confirmation | None:
    return session.scalar(sa.select(Confirmation).where(Confirmation.id == confirmation_id).with_for_update())


def _locked_attempt(session: Session, attempt: Confirmation) -> Confirmation:
    """The row as it is, locked. Raises TakenOver when it is not this attempt's any more."""
    row = _locked(session, attempt.id)
    if (
        row is None
        or row.state != "due"
        or row.order is None
        or (row.attempts, row.preparation) != (attempt.attempts, attempt.preparation)
        or (row.authorization, row.round) != (attempt.authorization, attempt.round)
    ):
        raise TakenOver(f"confirmation {attempt.id}, attempt {attempt.attempts}")
    return row


def _become(row: Confirmation, stage: Stage) -> None:
    if not may_become(Stage(row.stage), stage):
        raise TakenOver(f"confirmation {row.id} is {row.stage}, it cannot become {stage}")
    row.stage = stage.value


def _discard(session: Session, row: Confirmation, now: datetime) -> None:
    row.stage = Stage.DISCARDED.value
    row.state, row.finished_at, row.leased_until, row.leased_by = "done", now, None, None
    row.order = None
    _forget_secrets(row)
    _forget_signings(session, row)


def _forget_permission(row: Confirmation) -> None:
    """The next request is another one."""
    row.authorization += 1
    row.grant = row.grant_until = row.session = row.session_step = row.session_until = None
    row.asked = row.asked_until = row.answers = None


def _forget_secrets(row: Confirmation) -> None:
    _forget_permission(row)
    row.login = None


def _forget_signings(session: Session, row: Confirmation) -> None:
    session.execute(sa.delete(ConfirmationSigning).where(ConfirmationSigning.confirmation_id == row.id))


def _tell(
    session: Session,
    row: Confirmation,
    status: Any,
    now: datetime,
    message: str | None = None,
    signer: SignerCertificate | None = None,
) -> None:
    changed = ConfirmationChanged(
        submission_id=row.submission_id,
        submitter_id=row.submitter_id,
        confirmation_id=row.id,
        status=status,
        at=news.moment(session, CONFIRMATION_CHANGED, row.submission_id, now),
        provider=row.provider,
        message=message,
        problem=ConfirmationProblem(row.problem) if row.problem else None,
        signer=signer,
    )
    emit(session, CONFIRMATION_CHANGED, changed, subject=f"submission:{row.submission_id}")


def order_of(row: Confirmation) -> ConfirmationOrder:
    """The order that a confirmation follows. Raises TakenOver when there is none any more."""
    if row.order is None:
        raise TakenOver(f"confirmation {row.id} is over")
    return ConfirmationOrder.model_validate(row.order)


def certsign_of(row: Confirmation) -> CertsignOrder:
    """The provider's part of it."""
    return order_of(row).certsign


def removed(rows: Iterable[Confirmation]) -> list[str]:
    """The keys of all these."""
    return [key for row in rows for key in keys(row)]
