"""From the order of a signer's confirmation to their signatures: credential, files, the person, permission, signatures.

The person looks on. Each step is written down before the next one begins: files are prepared once, and what was authorised is
what is signed. What they have typed, or came back with, is tried once, whatever is killed; where nobody knows what came of it
they are asked again.
"""

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NoReturn
from uuid import uuid4

from prometheus_client import Counter

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.evidence.sealed_text import seal
from contracts.fields.paper import words_of
from contracts.providers import (
    CertsignSettings,
    ConfirmationProblem,
    ConfirmationQuestion,
    ConfirmationStep,
    ConfirmationView,
    SignerCertificate,
)
from contracts.rotation import each
from contracts.rpc import rendering as rpc
from contracts.rpc.rendering import ConfirmationOrder
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, Outcome, Park, Retry
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from contracts.types import Notice
from services.rendering.children.pool import Busy, JobFailed, JobNotPossible, JobRefused
from services.rendering.jobs.sealing import cms
from services.rendering.models import Confirmation, ConfirmationSigning
from services.rendering.protocol.messages import Reserved, Signatory
from services.rendering.providers.certificates.certsign import CertificateProvider, Credential, Grant, Pending
from services.rendering.providers.failures import ProviderFailed
from services.rendering.providers.opening import OpenForPerson, settings_of
from services.rendering.rules import confirming, domain
from services.rendering.rules.confirming import End, Stage
from services.rendering.sealing.pictures import drawn_pictures
from services.rendering.sealing.remote.credentials import (
    AUTHORIZE,
    CREDENTIAL,
    SIGN,
    AtWork,
    PermissionVoid,
    Preparation,
    Rows,
    Signatures,
    SigningBatch,
    is_prepared,
    keepable,
    kept_credential,
    mark_of,
    opened,
    roomy_assurance,
    stored,
)
from services.rendering.sealing.remote.provided import DRAWN
from services.rendering.settings import Settings
from services.rendering.signatures import signatories
from services.rendering.signatures.anchors import anchors_of
from services.rendering.signatures.sealer import ProviderSealer
from services.rendering.signatures.signatories import ProviderIdentity
from services.rendering.signatures.time_stamping import CertificateRevoked, TimeStampFailed
from services.rendering.signatures.workshop import Workshop
from services.rendering.storage import certsigning, confirmations
from services.rendering.storage.certsigning import TakenOver
from services.rendering.storage.confirmations import Asked, Base, changed_for

log = observe.logger(__name__)

SIGNED = Counter("rendering_confirmations_total", "Confirmations of signers at providers that ended", ["outcome"])

_ASKED, _ANSWERS, _LOGIN = "confirmation asked", "confirmation answers", "confirmation login"
"""Purposes of sealed texts."""

_SOON = timedelta(seconds=2)
_SHORTEST_POLL, _LONGEST_POLL = timedelta(seconds=1), timedelta(seconds=10)
_QUICK_POLL, _SLOW_POLL = 1.0, 2.0


class _AsksPerson(Exception):
    """The person has to do something before it goes on."""

    def __init__(self, ask: Asked) -> None:
        super().__init__("the person is asked")
        self.ask = ask


class _Later(Exception):
    """The provider wants to be asked again after that time; ``asked``: the person confirms it elsewhere meanwhile."""

    def __init__(self, session: str, step: str, until: datetime, after: timedelta, sealed_ask: str | None) -> None:
        super().__init__("the provider is at work")
        self.session, self.step, self.until, self.after, self.sealed_ask = session, step, until, after, sealed_ask


class _Failed(Exception):
    """The provider failed in a step; ``answered``: with what the person has given."""

    def __init__(self, failed: ProviderFailed, *, answered: bool, settings_mark: str | None = None) -> None:
        super().__init__(failed)
        self.failed, self.answered, self.settings_mark = failed, answered, settings_mark


@dataclass(frozen=True)
class _Turn:
    """Settings are used that are tried once: ``works`` where they are known to work."""

    works: bool


class _NotKnown(Exception):
    """What an earlier signer has signed is not known here: it was lost, and must not be replaced by anything else."""


class _Rows(Rows[Confirmation]):
    """What the shared way to signatures writes down, and reads, of a Confirmation."""

    grants, sessions = "confirmation grant", "confirmation session"
    last_moment = timedelta(seconds=10)

    def __init__(self, database: Database) -> None:
        self._database = database

    def session_of(self, row: Confirmation, step: str) -> str | None:
        return row.session if row.session_step == step else None

    def key(self, row: Confirmation, step: str) -> str:
        return f"{row.id}-{row.authorization}-{step}"

    def begin_authorization(self, row: Confirmation, code: str) -> Confirmation:
        return self._database.write(confirmations.begin_authorization, row, confirming.void_problem(code))

    def keep_grant(self, row: Confirmation, sealed: str, until: datetime) -> Confirmation:
        return self._database.write(confirmations.keep_grant, row, sealed, until)


@dataclass(frozen=True)
class _Run:
    """An attempt, with what it knows: ``row`` as it is now; ``answers`` are tried once."""

    row: Confirmation
    order: ConfirmationOrder
    settings: CertsignSettings
    provider: CertificateProvider
    answers: dict[str, str] | None

    def at(self, row: Confirmation) -> "_Run":
        return replace(self, row=row)


class ConfirmWork:
    """What the background process does with a due Confirmation."""

    def __init__(
        self,
        settings: Settings,
        blobs: BlobStore,
        workshop: Workshop,
        database: Database,
        open_provider: OpenForPerson,
    ) -> None:
        self._settings, self._blobs, self._workshop = settings, blobs, workshop
        self._database, self._open_provider = database, open_provider
        self._secret = settings.link_secret.get_secret_value()
        self._rows = _Rows(database)
        self._signatures = Signatures(self._rows, workshop.renderer, self._secret)

    # --- an attempt

    def attempt(self, row: Confirmation) -> Outcome:
        """One attempt, from where the one before it ended."""
        try:
            if row.stage == Stage.ASKING and row.answers is None and row.session_until is None:
                return _unanswered(row)
            signer = self._sign_all(self._begin_run(row))
        except _AsksPerson as person:
            ask = person.ask
            return Retry(
                "the person is asked",
                after=_SOON,
                record=lambda session, due: confirmations.wait_for_person(session, due, ask, now()),
            )
        except _Later as later:
            return _retry_later(later)
        except PermissionVoid as void:
            return Retry(void.failed.message, after=timedelta(milliseconds=1), counts=False)
        except _Failed as failed:
            return _failed(failed)
        except Exception as error:  # `_failed_here` says what each of them means for the confirmation
            return _failed_here(error, row)
        SIGNED.labels("signed").inc()
        return Done(record=lambda session, due: confirmations.finish(session, due, signer, now()))

    def _begin_run(self, row: Confirmation) -> _Run:
        order = confirmations.order_of(row)
        try:
            settings = settings_of(order.certsign, self._secret)
            provider = self._open_provider(settings, order.return_url)
        except ProviderFailed as failed:
            raise _Failed(failed, answered=False) from failed
        answers: dict[str, str] | None = None
        if row.answers is not None:
            opened_answers = opened(self._secret, _ANSWERS, row.answers)
            row = self._database.write(confirmations.take_answers, row)
            answers = json.loads(opened_answers) if opened_answers is not None else None
        return _Run(row, order, settings, provider, answers)

    def _sign_all(self, run: _Run) -> SignerCertificate:
        run, credential, signatory = self._credential(run)
        signings = self._database.read(confirmations.signings, run.row.id)
        if not is_prepared(signings, run.row.documents, signatory):
            if any(signing.signature for signing in signings):
                message = "the signer's certificate was replaced when some of the documents were signed"
                raise _Failed(ProviderFailed("certificate_changed", message, retryable=False), answered=False)
            run = self._prepare(run, credential, signatory)
            signings = self._database.read(confirmations.signings, run.row.id)
        waiting = [signing for signing in signings if signing.signature is None]
        most = max(1, credential.most_at_once)
        for begin in range(0, len(waiting), most):
            run = self._sign(run, credential, signatory, waiting[begin : begin + most])
            run = replace(run, answers=None)
        return self._finish(run, signatory)

    # --- the certificate

    def _credential(self, run: _Run) -> tuple[_Run, Credential, Signatory]:
        """The signer's certificate: the one that the files were prepared for, as long as it is the one that the provider is at
        work with, or that the person has logged in for."""
        row, prepared_for = run.row, run.row.prepared_for
        login, step = opened(self._secret, _LOGIN, row.login), row.session_step
        if prepared_for is not None and (login is not None or step in (AUTHORIZE, SIGN) or row.grant is not None):
            return (
                run,
                replace(kept_credential(prepared_for), session=login),
                signatories.read(prepared_for["signatory"]),
            )
        if prepared_for is not None and all(
            signing.signature is not None for signing in self._database.read(confirmations.signings, row.id)
        ):
            return run, kept_credential(prepared_for), signatories.read(prepared_for["signatory"])
        session = self._signatures.session(row, CREDENTIAL)
        polled = session is not None and row.session_until is not None
        answered = session is not None and run.answers is not None
        try:
            answer = run.provider.credential(
                session if answered or polled else None, run.answers if answered else None, state=self.state_of(row)
            )
        except ProviderFailed as failed:
            raise _Failed(failed, answered=answered) from failed
        if isinstance(answer, Pending):
            self._pending(run, CREDENTIAL, answer)
        if answer.session is not None:
            run = run.at(
                self._database.write(confirmations.keep_login, row, seal(self._secret, _LOGIN, answer.session))
            )
        if answered:
            run = replace(run, answers=None)
        anchors = [*self._workshop.provider_anchors, *anchors_of(run.settings)]
        try:
            signatory = self._workshop.renderer.check_chain(answer.chain, answer.mechanisms, anchors, now())
            self._workshop.provider_sealer(ProviderIdentity(signatory)).refuse_revoked(now())
        except JobRefused as refused:
            unfit = ProviderFailed("certificate", refused.reason, retryable=False)
            raise _Failed(unfit, answered=False) from refused
        except CertificateRevoked as error:
            revoked = ProviderFailed("revoked", f"the signer's certificate was revoked: {error}", retryable=False)
            raise _Failed(revoked, answered=False) from error
        return run, answer, signatory

    # --- files

    def _prepare(self, run: _Run, credential: Credential, signatory: Signatory) -> _Run:
        """Make the files that will be signed: what the signer before has signed, with this signer's values and a hole for the
        signature."""
        order = run.order
        try:
            bases = self._database.read(confirmations.bases, order.after)
        except LookupError as error:
            raise _NotKnown(str(error)) from error
        sealer = self._workshop.provider_sealer(ProviderIdentity(signatory))
        assurance = roomy_assurance(sealer, run.row.faults, self._settings)
        run = run.at(self._database.write(confirmations.begin_preparation, run.row))
        place = sealer.place(assurance, now())
        place = replace(place, text=replace(place.text, reason=_reason(order)))
        preparation = Preparation(
            self._workshop.renderer, self._blobs, sealer, place, drawn_pictures(self._blobs, order)
        )
        signings = []
        for number, document in enumerate(order.documents):
            request, fields = upon(order, document.uuid, bases.get(document.uuid))
            file = next(original.file for original in request.documents if original.uuid == document.uuid)
            columns = preparation.prepared(request, document.uuid, file, self._key(run.row, number, "prepared"))
            signings.append(
                ConfirmationSigning(
                    confirmation_id=run.row.id, number=number, fields=fields, pages=len(document.pages), **columns
                )
            )
        notices = [notice.model_dump(mode="json") for notice in assurance.notices]
        room = {"has_room": sealer.stamps, "notices": notices}
        prepared_for = {"signatory": signatories.as_json(signatory), "credential": keepable(credential)}
        return run.at(self._database.write(confirmations.keep_prepared, run.row, signings, prepared_for, room))

    def _finish(self, run: _Run, signatory: Signatory) -> SignerCertificate:
        """Put the signatures into the files, read these back and keep them."""
        sealer = self._workshop.provider_sealer(ProviderIdentity(signatory))
        bases = self._database.read(confirmations.bases, run.order.after)
        fields = [value.field for value in run.order.values]
        signings = self._database.read(confirmations.signings, run.row.id)
        for signing in signings:
            if signing.signed is not None:
                continue
            assert signing.signature is not None, "all of them were signed"
            unsigned = Reserved(
                self._blobs.get(BlobRef.model_validate(signing.prepared)), signing.start, signing.size, b""
            )
            signed = cms.Signed(signing.attributes, signing.signature)
            data, notices = self._stamped(run.row, sealer, unsigned, signed)
            base = bases.get(signing.document)
            if base is not None and not data.startswith(self._blobs.get(base.file)):
                raise _NotKnown("the file does not begin with what the signer before has signed")
            drawn = DRAWN.validate_python([*(base.drawn if base else ()), *signing.drawn])
            level = sealer.check(data, pages=signing.pages, drawn=drawn, fields=fields)
            file = stored(self._blobs, data, self._key(run.row, signing.number, "signed"))
            write = self._database.write
            run = run.at(write(confirmations.keep_file, run.row, signing.number, file, level, notices))
        signed_at = max(signing.signed_at for signing in signings if signing.signed_at is not None)
        return _certificate(run.row.provider, signatory, signed_at)

    def _stamped(
        self, row: Confirmation, sealer: ProviderSealer, unsigned: Reserved, signed: cms.Signed
    ) -> tuple[bytes, list[dict[str, Any]]]:
        """The file with its signature, time-stamped unless no authority does; what is missing is a notice."""
        has_room = bool((row.assurance or {}).get("has_room"))
        try:
            return sealer.finish(unsigned, signed, stamped=has_room), []
        except TimeStampFailed as error:
            if not domain.goes_without_time_stamp(row.faults + 1, self._settings.tsa_attempts):
                raise
            message = f"No time-stamp could be obtained. The signature of a signer is PAdES B-B without one ({error})."
            missing = Notice(code="no_time_stamp", message=message)
            return sealer.finish(unsigned, signed, stamped=False), [missing.model_dump(mode="json")]

    # --- permission and signatures

    def _sign(
        self, run: _Run, credential: Credential, signatory: Signatory, signings: Sequence[ConfirmationSigning]
    ) -> _Run:
        """Have these documents signed, in one authorisation. What a person has permitted is written down before it is used."""
        batch = SigningBatch(run.row, run.provider, credential, signatory, signings)
        try:
            obtained = self._signatures.obtain(
                batch, lambda row: self._permitted(run.at(row), credential, signatory, batch.hashes)
            )
        except ProviderFailed as failed:
            raise _Failed(failed, answered=False) from failed
        if isinstance(obtained, AtWork):
            raise self._later(obtained, SIGN)
        row, by_number = obtained
        return run.at(self._database.write(confirmations.keep_signatures, row, by_number, now()))

    def _permitted(
        self, run: _Run, credential: Credential, signatory: Signatory, hashes: tuple[bytes, ...]
    ) -> tuple[Confirmation, Grant]:
        """Another permission to sign these hashes."""
        mark = mark_of(run.settings, self._secret)
        if run.row.settings_mark != mark:
            run = run.at(self._database.write(confirmations.note_settings, run.row, mark))
        has_secret = run.settings.authorization.pin is not None
        turn = self._turn(mark) if has_secret else None
        session, key = self._signatures.session(run.row, AUTHORIZE), self._rows.key(run.row, AUTHORIZE)
        polled = session is not None and run.row.session_until is not None
        answered = session is not None and run.answers is not None
        try:
            answer = run.provider.authorize(
                credential,
                hashes,
                signatory.mechanism,
                run.order.name[:200],
                session=session if answered or polled else None,
                answers=run.answers if answered else None,
                state=self.state_of(run.row),
                idempotency_key=f"{key}-{run.row.ask}" if answered else key,
            )
        except ProviderFailed as failed:
            if credential.session is not None and failed.code == "not_authorized":
                raise _Failed(_logged_out(failed), answered=answered) from failed
            if failed.counts and turn is not None and failed.code == "wrong_pin":
                self._database.write(confirmations.note_refusal, run.row, failed.message)
            if turn is not None:
                self._database.write(certsigning.end_turn, mark, now(), works=not failed.counts and turn.works)
            typed = answered and not (has_secret and failed.code == "wrong_pin")
            raise _Failed(failed, answered=typed, settings_mark=None if typed else mark) from failed
        if turn is not None and not turn.works:
            self._database.write(certsigning.end_turn, mark, now(), works=not isinstance(answer, Pending))
        if isinstance(answer, Pending):
            self._pending(run, AUTHORIZE, answer, signatory.name)
        return run.row, answer

    def _turn(self, mark: str) -> "_Turn":
        """The settings have a PIN, which the provider counts when it is wrong: one confirmation tries it, in whichever process,
        then as many as want to. Raises _Failed where it was refused, TakenOver while another one tries."""
        works = self._database.write(certsigning.take_turn, mark, str(uuid4()), now())
        if (refusal := self._database.read(confirmations.refusal_of, mark)) is not None:
            self._database.write(certsigning.end_turn, mark, now(), works=False)
            raise _Failed(ProviderFailed("refused_before", refusal, retryable=False), answered=False)
        if works is None:
            raise TakenOver("the account's settings are tried by another confirmation")
        return _Turn(works)

    # --- what the person does

    def _pending(self, run: _Run, step: str, pending: Pending, holder: str | None = None) -> NoReturn:
        """Have the person asked, or the provider asked again. Raises _AsksPerson, _Later, _Failed. ``holder``: whose the
        certificate is, where that is known."""
        session = self._signatures.sealed_session(step, pending.session)
        if pending.poll_after is not None:
            try:
                work = self._signatures.at_work(run.row, run.provider, step, pending)
            except ProviderFailed as failed:
                raise _Failed(failed, answered=False) from failed
            raise self._later(work, step, holder)
        if pending.action_url is not None:
            redirect: dict[str, Any] = {"action_url": pending.action_url, "state": self.state_of(run.row)}
            sealed_ask = self._sealed_ask(ConfirmationStep.REDIRECT, {**redirect, "holder": holder})
        else:
            questions = [
                {
                    "id": question.id,
                    "label": _one_line(question.label),
                    "hidden": question.hidden,
                    "numeric": question.numeric,
                }
                for question in pending.questions
            ]
            sealed_ask = self._sealed_ask(ConfirmationStep.QUESTION, {"questions": questions, "holder": holder})
        raise _AsksPerson(Asked(sealed_ask, pending.expires_at, session, step))

    def _later(self, work: AtWork[Confirmation], step: str, holder: str | None = None) -> "_Later":
        after = max(_SHORTEST_POLL, min(work.after, _LONGEST_POLL))
        sealed_ask = self._sealed_ask(ConfirmationStep.WAITING, {"holder": holder}) if step != SIGN else None
        return _Later(work.session, step, work.until, after, sealed_ask)

    def _sealed_ask(self, step: ConfirmationStep, content: dict[str, Any]) -> str:
        return seal(self._secret, _ASKED, json.dumps({"step": step.value, **content}))

    def state_of(self, row: Confirmation) -> str:
        """Return what comes back with the person from the provider's page, if they are asked now. Nobody guesses it, and each
        ask has another one."""
        return state_of(self._secret, row.id, row.ask + 1)

    def _key(self, row: Confirmation, number: int, kind: str) -> str:
        return confirming.confirmed_key(row.submission_id, row.id, row.preparation, number, kind)

    # --- beside the attempts

    def discard_abandoned(self) -> None:
        """Discard what nobody goes on with."""
        for confirmation_id in self._database.read(confirmations.abandoned, now()):
            self._database.write(confirmations.discard_abandoned, confirmation_id, now())


class Confirmations:
    """What the service answers about confirmations. Thread-safe; remembers nothing."""

    def __init__(self, database: Database, link_secret: str) -> None:
        self._database, self._secret = database, link_secret

    def view(self, query: rpc.FindConfirmation) -> ConfirmationView:
        """Return what the signing page shows."""
        row = self._database.read(confirmations.find, query.confirmation_id)
        if row is None or row.round < query.round:
            return ConfirmationView(step=ConfirmationStep.PREPARING, poll_after=_QUICK_POLL)
        return self._shown(row)

    def answer(self, command: rpc.AnswerConfirmation) -> ConfirmationView:
        """Take what the person has typed, or came back with. Raises ServiceError for a ``state`` that is not one of this
        confirmation."""
        row = self._database.read(confirmations.find, command.confirmation_id)
        if row is None:
            return ConfirmationView(step=ConfirmationStep.PREPARING, poll_after=_QUICK_POLL)
        ask = command.ask if command.state is None else self._ask_of(row, command.state)
        kind = self._ask(row).get("step")
        expected_step = ConfirmationStep.QUESTION if command.state is None else ConfirmationStep.REDIRECT
        if ask is not None and kind == expected_step:
            answers = {key[:100]: value[:4000] for key, value in list(command.answers.items())[:10]}
            sealed = seal(self._secret, _ANSWERS, json.dumps(answers))
            self._database.write(confirmations.answer, row.id, ask, sealed, now())
        return self._shown(self._database.read(confirmations.find, row.id) or row)

    def _ask_of(self, row: Confirmation, state: str) -> int:
        """The number of the ask whose ``state`` this is."""
        for ask in range(row.ask, 0, -1):
            if any(hmac.compare_digest(state_of(secret, row.id, ask), state) for secret in each(self._secret)):
                return ask
        raise ServiceError(
            "conflict",
            "This confirmation was not begun by this installation.",
            [{"field": "state", "reason": "is not known"}],
        )

    def _ask(self, row: Confirmation) -> dict[str, Any]:
        sealed = opened(self._secret, _ASKED, row.asked)
        content: dict[str, Any] = json.loads(sealed) if sealed is not None else {}
        return content

    def _shown(self, row: Confirmation) -> ConfirmationView:
        ask, answered = self._ask(row), row.answers is not None
        expired = row.asked_until is not None and row.asked_until <= now()
        step = confirming.step_of(Stage(row.stage), ask.get("step"), answered=answered, expired=expired)
        problem = ConfirmationProblem(row.problem) if row.problem else None
        if step is ConfirmationStep.REFUSED and problem is None:
            problem = ConfirmationProblem.EXPIRED
        is_asked = step.value == ask.get("step")
        return ConfirmationView(
            step=step,
            provider=row.provider,
            problem=problem,
            ask=row.ask,
            action_url=ask.get("action_url") if is_asked else None,
            state=ask.get("state") if is_asked else None,
            questions=[ConfirmationQuestion(**question) for question in ask.get("questions", ())] if is_asked else [],
            expires_at=row.asked_until if is_asked else None,
            poll_after=_SLOW_POLL if step in (ConfirmationStep.WAITING, ConfirmationStep.SIGNING) else _QUICK_POLL,
            signed=self._database.read(confirmations.signed_count, row.id),
            documents=row.documents,
            holder=ask.get("holder") if is_asked else None,
        )


def state_of(link_secret: str, confirmation_id: str, ask: int) -> str:
    """Return what comes back with the person who was sent away by this ask."""
    text = f"confirmation state {confirmation_id} {ask}".encode()
    return hmac.new(link_secret.encode(), text, "sha256").hexdigest()


def upon(order: ConfirmationOrder, uuid: str, base: Base | None) -> tuple[ConfirmationOrder, list[str]]:
    """The order for one document as the signer before has signed it: what was drawn then is not drawn again. Returns the uuids
    of the fields that are, too."""
    request = order if base is None else order.model_copy(update=changed_for(order.documents, order.values, uuid, base))
    first = order.documents[0].uuid
    fields = [
        value.field.uuid
        for value in request.values
        if any((area.attachment_uuid or first) == uuid for area in value.field.areas)
    ]
    return request, fields


def _certificate(provider: str, signatory: Signatory, signed_at: datetime) -> SignerCertificate:
    return SignerCertificate(
        provider=provider,
        subject=signatory.subject,
        issuer=signatory.issuer_name,
        serial=signatory.serial,
        sha256=hashlib.sha256(signatory.chain[0]).hexdigest(),
        valid_to=signatory.valid_to,
        signed_at=signed_at,
    )


def _reason(order: ConfirmationOrder) -> str:
    party = next((candidate for candidate in order.parties if candidate.id == order.submitter_id), None)
    name = (party.name or party.email or party.role) if party else ""
    return words_of(order.account)("signature.reason", name=name)


def _one_line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:100]


# --- how an attempt ends


def _unanswered(row: Confirmation) -> Outcome:
    if row.asked_until is not None and row.asked_until > now():
        return Retry("the person is asked", after=row.asked_until - now(), counts=False)
    SIGNED.labels("expired").inc()
    return Done(
        record=lambda session, due: confirmations.refuse(
            session, due, ConfirmationProblem.EXPIRED, "it was not confirmed in time", now()
        )
    )


def _retry_later(later: _Later) -> Outcome:
    return Retry(
        "the provider is at work",
        after=later.after,
        record=lambda _, due: confirmations.wait_for_provider(
            due, later.session, later.step, later.until, now() + later.after, later.sealed_ask
        ),
    )


def _failed(error: _Failed) -> Outcome:
    """Wait for what can be had later, refuse what the person decides, leave the rest to an admin."""
    failed = error.failed
    meaning = confirming.meaning_of(
        failed.code, retryable=failed.retryable, counts=failed.counts, answered=error.answered
    )
    problem, message = meaning.problem, failed.message
    log.info("confirmation.failed", code=failed.code, end=meaning.end)
    if meaning.end is End.REFUSED:
        SIGNED.labels("refused").inc()
        return Done(record=lambda session, due: confirmations.refuse(session, due, problem, message, now()))
    if meaning.end is End.FAILED:
        SIGNED.labels("failed").inc()
        counted = failed.counts and error.settings_mark is not None
        return Park(
            message, record=lambda session, due: confirmations.fail(session, due, problem, now(), counted=counted)
        )
    after = failed.retry_after
    if meaning.end is End.ASKED:
        # Whoever has answered is asked anew: what they gave is used up.
        return Retry(message, after=after or _SOON, record=lambda _, due: confirmations.ask_anew(due, problem))
    return Retry(message, after=after, record=lambda session, due: confirmations.stumble(session, due, problem, now()))


def _logged_out(failed: ProviderFailed) -> ProviderFailed:
    """The person's login at the provider has run out: they are asked for it again."""
    return ProviderFailed("grant_expired", failed.message, retryable=True)


def give_up(session: Any, row: Confirmation) -> None:
    """The provider was waited for as long as it is."""
    problem = ConfirmationProblem(row.problem) if row.problem else ConfirmationProblem.UNAVAILABLE
    confirmations.fail(session, row, problem, now())


def _failed_here(error: Exception, row: Confirmation) -> Outcome:
    """A refusal of ours ends it, a fault is tried a few times, what is missing outside is waited for."""
    if isinstance(error, TakenOver):
        return Retry(str(error), after=_SOON, counts=False)
    if isinstance(error, JobRefused):
        return _cannot_sign(error.reason)
    if isinstance(error, _NotKnown):
        return _cannot_sign(f"what an earlier signer has signed is not known here any more ({error})")
    if isinstance(error, TimeStampFailed):
        return _retry_here(f"no time-stamp: {error}")
    if isinstance(error, Busy | JobNotPossible):
        return _retry_here(str(error))
    if isinstance(error, ServiceError):
        return _retry_here(error.message)
    if isinstance(error, JobFailed):
        log.warning("confirmation.failed_here", row=row.id, task=error.task, reason=error.reason, trace=error.trace)
        reason = f"{error.task} failed: {error.reason}"
    else:
        log.error("confirmation.failed_here", row=row.id, exc_info=error)
        reason = f"{type(error).__name__}: {error}"
    return _cannot_sign(reason) if domain.gives_up(row.faults + 1) else _retry_here(reason)


def _cannot_sign(reason: str) -> Outcome:
    return Park(
        reason,
        record=lambda session, due: confirmations.fail(session, due, ConfirmationProblem.CANNOT_SIGN, now()),
    )


def _retry_here(reason: str) -> Outcome:
    def record(session: Any, due: Confirmation) -> None:
        due.faults += 1
        confirmations.stumble(session, due, ConfirmationProblem.CANNOT_SIGN, now())

    return Retry(reason, record=record)
