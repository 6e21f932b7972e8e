"""From the order of a provider's signatures to the signatures: credential, files, permission, signatures.

Nobody is present. Each step is written down before the next one begins, and an attempt goes on where the one before it ended:
files are prepared once, and what was authorised is what is signed. The provider is waited for here and not in the seal job,
whose places and children are for work.
"""

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar
from uuid import uuid4

from prometheus_client import Counter, Gauge
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.evidence.sealed_text import NotOurs, seal, unseal
from contracts.providers import CertsignMode, CertsignOrder, CertsignSettings
from contracts.rpc.rendering import SealRequest
from contracts.runtime.clock import now
from contracts.runtime.data.background import Done, Outcome, Park, Retry
from contracts.runtime.data.blobstore import BlobStore
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from services.rendering import certsigning, commands
from services.rendering.certsigning import CERTIFICATE_CHANGED, Prepared, TakenOver
from services.rendering.children.pool import Busy, JobFailed, JobNotPossible, JobRefused
from services.rendering.models import CertsignJob, CertsignSigning
from services.rendering.protocol import Signatory
from services.rendering.providers.certsign import CertificateProvider, Credential, Grant, Pending
from services.rendering.providers.failures import ProviderFailed
from services.rendering.providers.opening import OpenProvider, settings_of
from services.rendering.rules import domain
from services.rendering.sealing import comparing
from services.rendering.sealing.credentials import keepable, kept_credential, mark_of
from services.rendering.sealing.pictures import drawn_pictures
from services.rendering.sealing.provided import DRAWN
from services.rendering.settings import Settings
from services.rendering.signatures import signatories
from services.rendering.signatures.anchors import anchors_of
from services.rendering.signatures.sealer import ProviderSealer
from services.rendering.signatures.signatories import ProviderIdentity
from services.rendering.signatures.time_stamping import Assurance, CertificateRevoked, TimeStampFailed
from services.rendering.signatures.workshop import Workshop

log = observe.logger(__name__)

A = TypeVar("A")

SIGNED = Counter("rendering_certsign_documents_total", "Documents that a provider has signed")
OLDEST = Gauge(
    "rendering_certsign_oldest_pending_seconds",
    "How long the submission that waits longest for its provider has waited",
)

PDF = "application/pdf"
_GRANT, _SESSION = "certsign grant", "certsign session"
"""Purposes of sealed texts."""

_SOON = timedelta(seconds=2)
_LAST_MOMENT = timedelta(seconds=30)
"""A permission that ends within that time is not used any more: the answer to its use might come too late."""

_SHORTEST_POLL, _LONGEST_POLL = timedelta(seconds=2), timedelta(seconds=30)
_POLLED_FOR = timedelta(minutes=15)
_ROOM_FOR_TIME_STAMP, _ROOM_TO_SPARE = 16 * 1024, 4 * 1024
"""Octets. A prepared file is not made again, so what comes later must fit, also that of another authority."""

_UNUSABLE_GRANT = {"grant_expired", "grant_used", "grant_refused"}
"""What an adapter calls it when the permission is worth nothing (any more) and another one can be had."""

_CREDENTIAL, _AUTHORIZE, _SIGN = "credential", "authorize", "sign"
_MAY_HAVE_SIGNED = "it was asked before and may have signed: look there before you have it tried again"
_PERSON_NEEDED = "the provider wants a person to confirm it, and a seal is made when nobody is there"


class _Later(Exception):
    """The provider wants to be asked again after that time; it has done nothing wrong."""

    def __init__(self, after: timedelta) -> None:
        super().__init__(after)
        self.after = after


class _Away(Exception):
    """The provider did not even tell its certificate: when it does again, whoever waits for it need not wait any longer."""

    def __init__(self, failed: ProviderFailed) -> None:
        super().__init__(failed)
        self.failed = failed


@dataclass(frozen=True)
class _Run:
    """An attempt, with what it knows: ``row`` as it is now."""

    row: CertsignJob
    request: SealRequest
    settings: CertsignSettings
    provider: CertificateProvider

    def at(self, row: CertsignJob) -> "_Run":
        return replace(self, row=row)


class CertsignWork:
    """What the background process does with a due CertsignJob. ``busy``: how many documents are prepared at once, so that
    children are left for seals that wait for nobody."""

    def __init__(
        self,
        settings: Settings,
        blobs: BlobStore,
        workshop: Workshop,
        database: Database,
        open_provider: OpenProvider,
        *,
        busy: int = 1,
    ) -> None:
        self._settings, self._blobs, self._workshop = settings, blobs, workshop
        self._database, self._open_provider = database, open_provider
        self._secret = settings.link_secret.get_secret_value()
        self._preparing = threading.BoundedSemaphore(busy)
        self._trying, self._process = _Trying(), str(uuid4())
        self.schedule = domain.schedule_at_providers(timedelta(hours=settings.certsign_retry_hours))

    # --- an attempt

    def attempt(self, row: CertsignJob) -> Outcome:
        """One attempt, from where the one before it ended."""
        try:
            self._sign_all(self._begun(row))
        except _Later as later:
            return Retry("the provider is at work", after=later.after, counts=False)
        except _Away as away:
            return _failed_at_provider(away.failed, row, self.schedule, away=True)
        except ProviderFailed as failed:
            return _failed_at_provider(failed, row, self.schedule)
        except CertificateRevoked as error:
            revoked = ProviderFailed("revoked", f"the provider's certificate was revoked: {error}", retryable=False)
            return _failed_at_provider(revoked, row, self.schedule)
        except Exception as error:  # `_failed_here` says what each of them means for the job
            return _failed_here(error, row)
        return Done(record=lambda session, due: certsigning.finish(session, due, now()))

    def _begun(self, row: CertsignJob) -> _Run:
        job = self._database.read(certsigning.seal_job, row.id)
        if job is None or job.request is None or row.order is None:
            raise TakenOver(f"job {row.id} is not waited for any more")
        order = CertsignOrder.model_validate(row.order)
        if order.mode is not CertsignMode.SEAL:
            raise ProviderFailed("mode", "only the organisation's own certificate can sign here", retryable=False)
        settings = settings_of(order, self._secret)
        return _Run(row, SealRequest.model_validate(job.request), settings, self._open_provider(settings))

    def _sign_all(self, run: _Run) -> None:
        credential, signatory = self._credential(run)
        signings = self._database.read(certsigning.signings, run.row.id)
        if not _prepared_for(signings, run.row, signatory):
            if any(signing.signature for signing in signings):
                raise ProviderFailed(
                    CERTIFICATE_CHANGED,
                    "the provider's certificate was replaced when some of the documents were signed and others were not",
                    retryable=False,
                )
            run = self._prepare(run, credential, signatory)
            signings = self._database.read(certsigning.signings, run.row.id)
        waiting = [signing for signing in signings if signing.signature is None]
        most = max(1, credential.most_at_once)
        for begin in range(0, len(waiting), most):
            run = self._sign(run, credential, signatory, waiting[begin : begin + most])

    def _credential(self, run: _Run) -> tuple[Credential, Signatory]:
        """The certificate, asked for in each attempt, since another one makes other files. What the provider is at work on is
        of the one that is known."""
        if run.row.prepared_for is not None and (self._session(run.row, _AUTHORIZE) or self._session(run.row, _SIGN)):
            return kept_credential(run.row.prepared_for), signatories.read(run.row.prepared_for["signatory"])
        try:
            answer = run.provider.credential(self._session(run.row, _CREDENTIAL))
        except ProviderFailed as failed:
            raise _Away(failed) from failed
        credential = self._unless_pending(run, _CREDENTIAL, answer)
        anchors = [*self._workshop.provider_anchors, *anchors_of(run.settings)]
        try:
            signatory = self._workshop.signatory(credential.chain, credential.mechanisms, anchors, now())
        except JobRefused as refused:
            raise ProviderFailed("certificate", refused.reason, retryable=False) from refused
        self._workshop.provider_sealer(ProviderIdentity(signatory)).refuse_revoked(now())
        return credential, signatory

    # --- files

    def _prepare(self, run: _Run, credential: Credential, signatory: Signatory) -> _Run:
        """Make the files that will be signed: filled, with a hole for the signature, and kept."""
        comparing.compare(self._database, self._blobs, run.request, run.row.id)
        sealer = self._workshop.provider_sealer(ProviderIdentity(signatory))
        assurance = self._assurance(sealer, run.row)
        run = run.at(self._database.write(certsigning.begin_preparation, run.row))
        request, place = run.request, sealer.place(assurance, now())
        attachments = drawn_pictures(self._blobs, request)
        signings = []
        for number, document in enumerate(request.documents):
            with self._preparing:
                data = self._blobs.get(document.file)
                filled = self._workshop.renderer.fill_and_reserve(request, document.uuid, data, attachments, place)
            attributes, digest = sealer.to_be_signed(filled.reserved)
            key = domain.prepared_key(run.row.submission_id, run.row.id, run.row.preparation, number)
            prefix, _, name = key.rpartition("/")
            stored = self._blobs.put(filled.reserved.data, PDF, f"{prefix}/", name=name)
            signings.append(
                CertsignSigning(
                    job_id=run.row.id,
                    number=number,
                    document=document.uuid,
                    prepared=stored.model_dump(mode="json"),
                    start=filled.reserved.start,
                    size=filled.reserved.size,
                    drawn=DRAWN.dump_python(list(filled.drawn), mode="json"),
                    conformance=filled.conformance,
                    mechanism=f"{signatory.mechanism.algorithm}-{signatory.mechanism.hash}",
                    certificate_sha256=sealer.identity.sha256,
                    attributes=attributes,
                    hash=digest,
                )
            )
        notices = [notice.model_dump(mode="json") for notice in assurance.notices]
        room = {"has_room": sealer.stamps, "notices": notices}
        known = {"signatory": signatories.kept(signatory), "credential": keepable(credential)}
        prepared = Prepared(signings, known, room)
        return run.at(self._database.write(certsigning.keep_prepared, run.row, prepared))

    def _assurance(self, sealer: ProviderSealer, row: CertsignJob) -> Assurance:
        """What goes into the files before they are signed; with room for whatever time-stamp will come."""
        try:
            known = sealer.assurance(now())
        except TimeStampFailed:
            if not domain.goes_without_time_stamp(row.faults + 1, self._settings.tsa_attempts):
                raise
            known = sealer.assurance(now(), with_time_stamp=False)
        if known.stamped:
            return replace(known, size=known.size + _ROOM_TO_SPARE)
        return replace(known, size=known.size + _ROOM_FOR_TIME_STAMP) if sealer.stamps else known

    # --- permission and signatures

    def _sign(
        self, run: _Run, credential: Credential, signatory: Signatory, signings: Sequence[CertsignSigning]
    ) -> _Run:
        """Have these documents signed, in one authorisation."""
        hashes = tuple(signing.hash for signing in signings)
        asked_before = run.row.grant is not None
        run, grant = self._permitted(run, credential, signatory, hashes)
        try:
            answer = run.provider.sign(
                credential,
                grant,
                hashes,
                signatory.mechanism,
                session=self._session(run.row, _SIGN),
                idempotency_key=_key(run.row, _SIGN),
            )
        except ProviderFailed as failed:
            if asked_before and not failed.retryable and run.provider.idempotent:
                # It knows what it did under this key. Under another one it might sign a second time.
                raise ProviderFailed(failed.code, f"{failed.message} ({_MAY_HAVE_SIGNED})", retryable=False) from failed
            if failed.code in _UNUSABLE_GRANT or (asked_before and not failed.retryable and not failed.counts):
                # The permission may have been used up by a request whose answer was lost: there is another one to be had.
                self._database.write(certsigning.begin_authorization, run.row)
                raise ProviderFailed(failed.code, failed.message, retryable=True) from failed
            raise
        signatures = self._unless_pending(run, _SIGN, answer)
        try:
            valid = self._workshop.renderer.check_signatures(
                signatory.chain[0], signatory.mechanism, hashes, signatures
            )
        except JobRefused as refused:
            raise ProviderFailed("bad_signature", refused.reason, retryable=False) from refused
        by_number = {signing.number: signature for signing, signature in zip(signings, valid, strict=True)}
        row = self._database.write(certsigning.keep_signatures, run.row, by_number, now())
        SIGNED.inc(len(by_number))
        return run.at(row)

    def _permitted(
        self, run: _Run, credential: Credential, signatory: Signatory, hashes: tuple[bytes, ...]
    ) -> tuple[_Run, Grant]:
        """The permission to sign these hashes: the one that was given before, if it is still good, else another one."""
        row = run.row
        if row.grant is not None and row.grant_until is not None:
            # A grant is kept just before it is used: whoever keeps keys is asked again under this one, however long ago it was.
            used = self._session(row, _SIGN) is not None or run.provider.idempotent
            if (used or now() < row.grant_until - _LAST_MOMENT) and (
                secret := self._opened(_GRANT, row.grant)
            ) is not None:
                return run, Grant(secret, row.grant_until)
            run = run.at(self._database.write(certsigning.begin_authorization, row))
        mark = mark_of(run.settings, self._secret)
        if run.row.settings_mark != mark:
            run = run.at(self._database.write(certsigning.note_settings, run.row, mark))
        answer = self._authorize(run, mark, credential, signatory, hashes)
        grant = self._unless_pending(run, _AUTHORIZE, answer)
        sealed = seal(self._secret, _GRANT, grant.secret)
        return run.at(self._database.write(certsigning.keep_grant, run.row, sealed, grant.until)), grant

    def _authorize(
        self, run: _Run, mark: str, credential: Credential, signatory: Signatory, hashes: tuple[bytes, ...]
    ) -> Grant | Pending:
        """Ask for it; never with what the provider has refused and counted."""
        with self._trying.turn(mark) as known_to_work:
            if not known_to_work:
                self._refuse_unless_tried_here(mark)
            elif not self._database.read(certsigning.is_known_to_work, mark):
                self._trying.failed(mark)  # they were refused in another process since
                raise _Later(_SOON)
            try:
                answer = run.provider.authorize(
                    credential,
                    hashes,
                    signatory.mechanism,
                    _label(run.request),
                    session=self._session(run.row, _AUTHORIZE),
                    idempotency_key=_key(run.row, _AUTHORIZE),
                )
            except ProviderFailed as failed:
                if failed.counts:
                    self._trying.failed(mark)
                    self._database.write(certsigning.note_refusal, run.row, failed.message)
                if failed.counts or not known_to_work:
                    self._database.write(certsigning.end_turn, mark, now(), works=False)
                raise
            if not known_to_work:
                # In this order: who is let on by the first looks for the second.
                self._database.write(certsigning.end_turn, mark, now(), works=True)
                self._trying.succeeded(mark)
            return answer

    def _refuse_unless_tried_here(self, mark: str) -> None:
        """Nobody in this process tries these settings; nor does another process, and nobody was refused."""
        self._refuse_where_refused(mark)
        if self._database.write(certsigning.take_turn, mark, self._process, now()) is None:
            raise _Later(_SOON)
        self._refuse_where_refused(mark)

    def _refuse_where_refused(self, mark: str) -> None:
        if (refusal := self._database.read(certsigning.refusal_of, mark)) is not None:
            raise ProviderFailed("refused_before", refusal, retryable=False)

    def _unless_pending(self, run: _Run, step: str, answer: A | Pending) -> A:
        """The answer, unless the provider needs time: then it is asked again later, with what it wants to have with that."""
        if not isinstance(answer, Pending):
            return answer
        if answer.poll_after is None:
            raise ProviderFailed("person_needed", _PERSON_NEEDED, retryable=False)
        known = run.row.session_until if self._session(run.row, step) is not None else None
        until = known or min(answer.expires_at, now() + _POLLED_FOR)
        if now() >= until:
            if step == _SIGN and run.provider.idempotent:
                message = f"the provider did not finish within its time ({_MAY_HAVE_SIGNED})"
                raise ProviderFailed("too_slow", message, retryable=False)
            self._database.write(certsigning.begin_authorization, run.row)
            raise ProviderFailed("too_slow", "the provider did not finish within its time", retryable=True)
        session = seal(self._secret, f"{_SESSION} {step}", answer.session)
        self._database.write(certsigning.keep_session, run.row, session, until)
        raise _Later(max(_SHORTEST_POLL, min(answer.poll_after, _LONGEST_POLL)))

    def _session(self, row: CertsignJob, step: str) -> str | None:
        """What the provider wants to have with the next request, if that is this step."""
        return self._opened(f"{_SESSION} {step}", row.session) if row.session is not None else None

    def _opened(self, purpose: str, sealed: str) -> str | None:
        """None when it is of another purpose, or LINK_SECRET was changed since."""
        try:
            return unseal(self._secret, purpose, sealed)
        except NotOurs:
            return None

    # --- beside the attempts

    def look_for_providers(self) -> None:
        """Ask each provider that failed, once, whether it is back: then whoever waits for it goes on at once."""
        oldest = self._database.read(certsigning.oldest_pending)
        OLDEST.set(max(0.0, (now() - oldest).total_seconds()) if oldest else 0.0)
        for row in self._database.read(certsigning.waiting, now()):
            try:
                order = CertsignOrder.model_validate(row.order)
                self._open_provider(settings_of(order, self._secret)).credential()
            except ProviderFailed as failed:
                log.info("certsign.still_away", provider=row.provider, code=failed.code)
                continue
            self._database.write(certsigning.hurry, row.provider, now())


class _Trying:
    """Settings are tried by one submission, then by as many as want to: a wrong PIN is counted by the provider, which locks
    the credential after a few."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}
        self._known: set[str] = set()

    @contextmanager
    def turn(self, mark: str) -> Iterator[bool]:
        """Wait until nobody else tries these settings; tells whether they are known to work, then nobody waits."""
        with self._lock:
            turn = self._turns.setdefault(mark, threading.Lock())
        if mark in self._known:
            yield True
            return
        with turn:
            known = mark in self._known
            if not known:
                yield False
        if known:
            yield True

    def succeeded(self, mark: str) -> None:
        self._known.add(mark)

    def failed(self, mark: str) -> None:
        self._known.discard(mark)


def _prepared_for(signings: Sequence[CertsignSigning], row: CertsignJob, signatory: Signatory) -> bool:
    """Whether the files are there, and made for this certificate."""
    sha256 = hashlib.sha256(signatory.chain[0]).hexdigest()
    mechanism = f"{signatory.mechanism.algorithm}-{signatory.mechanism.hash}"
    return len(signings) == row.documents and all(
        (signing.certificate_sha256, signing.mechanism) == (sha256, mechanism) for signing in signings
    )


def _key(row: CertsignJob, step: str) -> str:
    """Names a request for ever: whatever is killed, the same one is sent again under it, and no other one."""
    return f"{row.seal_id}-{row.authorization}-{step}"


def _label(request: SealRequest) -> str:
    return request.name[:200]


def _failed_at_provider(
    failed: ProviderFailed, row: CertsignJob, schedule: Sequence[timedelta], *, away: bool = False
) -> Outcome:
    """What can be had later is waited for; the rest is for a person to look at."""
    code = failed.code
    if not failed.retryable or failed.counts:
        return Park(failed.message, record=lambda session, due: certsigning.fail(session, due, code, now()))
    after = failed.retry_after
    if after is not None:
        after = max(after, schedule[min(row.attempts, len(schedule)) - 1])
    away = away and after is None
    return Retry(
        failed.message, after=after, record=lambda session, due: certsigning.wait(session, due, code, now(), away=away)
    )


def give_up(session: Session, row: CertsignJob) -> None:
    """The provider was waited for as long as it is."""
    certsigning.fail(session, row, row.failure or "given_up", now())


def _failed_here(error: Exception, row: CertsignJob) -> Outcome:
    """As for seals: a refusal ends the sealing, a fault is tried a few times, what is missing outside is waited for."""
    if isinstance(error, TakenOver):
        return Retry(str(error), after=_SOON, counts=False)
    if isinstance(error, comparing.NotYetComplete):
        return Retry(str(error), after=comparing.ORDER_WAIT, counts=False)
    if isinstance(error, comparing.Differs):
        found = error.differences
        return Park(error.reason, record=lambda session, due: commands.stop_waiting(session, due, now(), found))
    if isinstance(error, JobRefused):
        return _not_sealable(error.reason)
    if isinstance(error, TimeStampFailed):
        return _retry_here(f"no time-stamp: {error}", row)
    if isinstance(error, Busy | JobNotPossible):
        return _retry_here(str(error), row)
    if isinstance(error, ServiceError):
        return _retry_here(error.message, row)
    if isinstance(error, JobFailed):
        log.warning("certsign.failed", job=row.id, task=error.task, reason=error.reason, trace=error.trace)
        reason = f"{error.task} failed: {error.reason}"
    else:
        log.error("certsign.failed", job=row.id, exc_info=error)
        reason = f"{type(error).__name__}: {error}"
    return _not_sealable(reason) if domain.gives_up(row.faults + 1) else _retry_here(reason, row)


def _not_sealable(reason: str) -> Outcome:
    return Park(reason, record=lambda session, due: commands.stop_waiting(session, due, now()))


def _retry_here(reason: str, row: CertsignJob) -> Outcome:
    def record(session: Session, due: CertsignJob) -> None:
        due.faults += 1
        certsigning.wait(session, due, "here", now())

    return Retry(reason, after=domain.SCHEDULE[min(row.faults, len(domain.SCHEDULE) - 1)], record=record)
