"""From the order of a provider's signatures to the signatures: credential, files, permission, signatures.

Nobody is present. Each step is written down before the next one begins, and an attempt goes on where the one before it ended:
files are prepared once, and what was authorised is what is signed. The provider is waited for here and not in the seal job,
whose places and children are for work.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import uuid4

from prometheus_client import Counter, Gauge
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.providers import CertsignMode, CertsignOrder, CertsignSettings
from contracts.rpc.rendering import SealRequest
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, Outcome, Park, Retry
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from services.rendering import commands
from services.rendering.children.pool import Busy, JobFailed, JobNotPossible, JobRefused
from services.rendering.models import CertsignJob, CertsignSigning
from services.rendering.protocol.messages import Signatory
from services.rendering.providers.certificates.certsign import CertificateProvider, Credential, Grant, Pending
from services.rendering.providers.failures import ProviderFailed
from services.rendering.providers.opening import OpenProvider, settings_of
from services.rendering.rules import domain
from services.rendering.sealing import comparing
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
    counts_tries,
    is_prepared,
    keepable,
    kept_credential,
    mark_of,
    may_have_counted,
    roomy_assurance,
)
from services.rendering.settings import Settings
from services.rendering.signatures import signatories
from services.rendering.signatures.anchors import anchors_of
from services.rendering.signatures.signatories import ProviderIdentity
from services.rendering.signatures.time_stamping import CertificateRevoked, TimeStampFailed
from services.rendering.signatures.workshop import Workshop
from services.rendering.storage import certsigning
from services.rendering.storage.certsigning import CERTIFICATE_CHANGED, Begun, NotAgain, Prepared, TakenOver

log = observe.logger(__name__)

A = TypeVar("A")

SIGNED = Counter("rendering_certsign_documents_total", "Documents that a provider has signed")
OLDEST = Gauge(
    "rendering_certsign_oldest_pending_seconds",
    "How long the submission that waits longest for its provider has waited",
)

_SOON = timedelta(seconds=2)
_SHORTEST_POLL, _LONGEST_POLL = timedelta(seconds=2), timedelta(seconds=30)
_TRIED_ONCE = "a PIN that is not known to be right is tried once: look at the provider, then have it tried again"
_PERSON_NEEDED = "the provider asks a person to confirm the signature, and a seal is made without one"


class _Later(Exception):
    """The provider wants to be asked again after that time; it has done nothing wrong."""

    def __init__(self, after: timedelta) -> None:
        super().__init__(after)
        self.after = after


class _Away(Exception):
    """The provider did not even tell its certificate: when it does again, whoever waits for it need not wait any longer.
    ``unused``: the number of a preparation that was not begun."""

    def __init__(self, failed: ProviderFailed, unused: int | None) -> None:
        super().__init__(failed)
        self.failed, self.unused = failed, unused


class _Rows(Rows[CertsignJob]):
    """What the shared way to signatures writes down, and reads, of a CertsignJob."""

    grants, sessions = "certsign grant", "certsign session"
    last_moment = timedelta(seconds=30)

    def __init__(self, database: Database) -> None:
        self._database = database

    def session_of(self, row: CertsignJob, _step: str) -> str | None:
        return row.session

    def key(self, row: CertsignJob, step: str) -> str:
        return f"{row.seal_id}-{row.authorization}-{step}"

    def begin_authorization(self, row: CertsignJob, _code: str) -> CertsignJob:
        return self._database.write(certsigning.begin_authorization, row)

    def keep_grant(self, row: CertsignJob, sealed: str, until: datetime) -> CertsignJob:
        return self._database.write(certsigning.keep_grant, row, sealed, until)


@dataclass(frozen=True)
class _Run:
    """An attempt, with what it knows: ``row`` as it is now, ``signings`` as they were when it began. ``numbered``: files may be
    prepared under the row's ``preparation``. ``works``: the settings were known to work when ``row`` was written; else nobody
    knows. ``signed``: what the parties signed, where it was read already."""

    row: CertsignJob
    request: SealRequest
    settings: CertsignSettings
    provider: CertificateProvider
    signings: Sequence[CertsignSigning]
    numbered: bool = False
    works: bool = False
    signed: comparing.Signed | None = None

    def at(self, row: CertsignJob) -> "_Run":
        return self if row is self.row else replace(self, row=row, works=False)


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
        self._rows = _Rows(database)
        self._signatures = Signatures(self._rows, workshop.renderer, self._secret)
        self._preparing = threading.BoundedSemaphore(busy)
        self._trying, self._process = _Trying(), str(uuid4())
        self._claimed: dict[tuple[int, int], Begun] = {}
        self.schedule = domain.schedule_at_providers(timedelta(hours=settings.certsign_retry_hours))

    # --- an attempt

    def claimed(self, session: Session, rows: Sequence[CertsignJob]) -> None:
        """Runs in the transaction that claims rows, which must be on the disk before their attempts begin."""
        self._claimed |= certsigning.claimed(session, rows)

    def attempt(self, row: CertsignJob) -> Outcome:
        """One attempt, from where the one before it ended. The last signatures are written down with its outcome."""
        try:
            run, signatures = self._sign_all(self._begin_run(row))
        except _Later as later:
            return Retry("the provider is at work", after=later.after, counts=False)
        except _Away as away:
            return _failed_at_provider(away.failed, row, self.schedule, away=away)
        except PermissionVoid as void:
            again = ProviderFailed(void.failed.code, void.failed.message, retryable=True)
            return _failed_at_provider(again, row, self.schedule)
        except ProviderFailed as failed:
            return _failed_at_provider(failed, row, self.schedule)
        except CertificateRevoked as error:
            revoked = ProviderFailed("revoked", f"the provider's certificate was revoked: {error}", retryable=False)
            return _failed_at_provider(revoked, row, self.schedule)
        except Exception as error:  # `_failed_here` says what each of them means for the job
            return _failed_here(error, row)
        SIGNED.inc(len(signatures))
        return Done(record=lambda session, due: certsigning.finish(session, due, run.row, signatures, now()))

    def _begin_run(self, row: CertsignJob) -> _Run:
        begun = self._claimed.pop((row.id, row.attempts), None) or self._database.read(certsigning.begun, row)
        job = begun.job
        if job is None or job.request is None or row.order is None:
            raise TakenOver(f"job {row.id} is not waited for any more")
        order = CertsignOrder.model_validate(row.order)
        if order.mode is not CertsignMode.SEAL:
            raise ProviderFailed("mode", "only the organisation's own certificate can sign", retryable=False)
        settings = settings_of(order, self._secret)
        request = SealRequest.model_validate(job.request)
        return _Run(row, request, settings, self._open_provider(settings), begun.signings, begun.numbered)

    def _sign_all(self, run: _Run) -> tuple[_Run, dict[int, bytes]]:
        """Returns the signatures that are not written down yet, by the numbers of their documents."""
        credential, signatory = self._credential(run)
        if not is_prepared(run.signings, run.row.documents, signatory):
            if any(signing.signature for signing in run.signings):
                raise ProviderFailed(
                    CERTIFICATE_CHANGED,
                    "the provider's certificate was replaced when some of the documents were signed and others were not",
                    retryable=False,
                )
            run = self._prepare(run, credential, signatory)
        waiting = [signing for signing in run.signings if signing.signature is None]
        most = max(1, credential.most_at_once)
        signatures: dict[int, bytes] = {}
        for begin in range(0, len(waiting), most):
            if signatures:
                run = run.at(self._database.write(certsigning.keep_signatures, run.row, signatures, now()))
                SIGNED.inc(len(signatures))
            run, signatures = self._sign(run, credential, signatory, waiting[begin : begin + most])
        return run, signatures

    def _credential(self, run: _Run) -> tuple[Credential, Signatory]:
        """The certificate, asked for in each attempt, since another one makes other files. What the provider is at work on is
        of the one that is known."""
        prepared_for, session = run.row.prepared_for, self._signatures.session
        if prepared_for is not None and (session(run.row, AUTHORIZE) or session(run.row, SIGN)):
            return kept_credential(prepared_for), signatories.read(prepared_for["signatory"])
        try:
            answer = run.provider.credential(session(run.row, CREDENTIAL))
        except ProviderFailed as failed:
            raise _Away(failed, run.row.preparation if run.numbered else None) from failed
        credential = self._unless_pending(run, CREDENTIAL, answer)
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
        sealer = self._workshop.provider_sealer(ProviderIdentity(signatory))
        assurance = roomy_assurance(sealer, run.row.faults, self._settings)
        if not run.numbered:
            run = run.at(self._database.write(certsigning.begin_preparation, run.row))
        request, row, place = run.request, run.row, sealer.place(assurance, now())
        preparation = Preparation(
            self._workshop.renderer, self._blobs, sealer, place, drawn_pictures(self._blobs, request)
        )
        signings = []
        for number, document in enumerate(request.documents):
            with self._preparing:
                key = domain.prepared_key(row.submission_id, row.id, row.preparation, number)
                columns = preparation.prepared(request, document.uuid, document.file, key)
            signings.append(CertsignSigning(job_id=row.id, number=number, **columns))
        notices = [notice.model_dump(mode="json") for notice in assurance.notices]
        room = {"has_room": sealer.stamps, "notices": notices}
        prepared_for = {"signatory": signatories.as_json(signatory), "credential": keepable(credential)}
        mark = mark_of(run.settings, self._secret)
        prepared = Prepared(signings, prepared_for, room)

        def keep_prepared(session: Session) -> _Run:
            changed_row, works = certsigning.keep_prepared(session, row, prepared, mark)
            signed = comparing.signed(session, request)
            return replace(run, row=changed_row, signings=signings, numbered=False, works=works, signed=signed)

        return self._database.write(keep_prepared)

    # --- permission and signatures

    def _sign(
        self, run: _Run, credential: Credential, signatory: Signatory, signings: Sequence[CertsignSigning]
    ) -> tuple[_Run, dict[int, bytes]]:
        """Have these documents signed, in one authorisation."""
        # A permission of no key costs nothing to be asked for again, unless a code that is good once was given for it.
        keeps = run.provider.idempotent or run.settings.authorization.totp is not None
        batch = SigningBatch(run.row, run.provider, credential, signatory, signings, keeps)
        obtained = self._signatures.obtain(
            batch, lambda row: self._permitted(run.at(row), credential, signatory, batch.hashes)
        )
        if isinstance(obtained, AtWork):
            raise self._later(obtained)
        row, signatures = obtained
        return run.at(row), signatures

    def _permitted(
        self, run: _Run, credential: Credential, signatory: Signatory, hashes: tuple[bytes, ...]
    ) -> tuple[CertsignJob, Grant]:
        """Another permission to sign these hashes; none before the order was compared with what the parties signed."""
        signed = run.signed or self._database.read(comparing.signed, run.request)
        comparing.compare_with(signed, self._blobs, run.request, run.row.id)
        mark = mark_of(run.settings, self._secret)
        if run.row.settings_mark != mark:
            run = run.at(self._database.write(certsigning.note_settings, run.row, mark))
        answer = self._authorize(run, mark, credential, signatory, hashes)
        return run.row, self._unless_pending(run, AUTHORIZE, answer)

    def _authorize(
        self, run: _Run, mark: str, credential: Credential, signatory: Signatory, hashes: tuple[bytes, ...]
    ) -> Grant | Pending:
        """Ask for it; never with what the provider has refused and counted, or may have."""
        once = counts_tries(run.settings, run.provider)
        with self._trying.turn(mark) as known_to_work:
            works = known_to_work or self._take_turn(mark, once=once)
            if known_to_work and not (run.works or self._database.read(certsigning.is_known_to_work, mark)):
                self._trying.failed(mark)  # they were refused in another process since
                raise _Later(_SOON)
            try:
                answer = run.provider.authorize(
                    credential,
                    hashes,
                    signatory.mechanism,
                    _label(run.request),
                    session=self._signatures.session(run.row, AUTHORIZE),
                    idempotency_key=self._rows.key(run.row, AUTHORIZE),
                )
            except ProviderFailed as failed:
                if failed.counts:
                    self._trying.failed(mark)
                    self._database.write(certsigning.note_refusal, run.row, failed.message)
                if once and not works and may_have_counted(failed):
                    self._database.write(certsigning.end_turn, mark, now(), works=False, problem=failed.message)
                    raise failed if failed.counts else _unclear(failed) from failed
                if failed.counts or not works:
                    self._database.write(certsigning.end_turn, mark, now(), works=False)
                raise
            if not works:
                # In this order: who is let on by the first looks for the second.
                self._database.write(certsigning.end_turn, mark, now(), works=True)
            self._trying.succeeded(mark)
            return answer

    def _take_turn(self, mark: str, *, once: bool) -> bool:
        """Nobody in this process tries these settings; nor does another process, and nobody was refused. True where another
        process has shown that they work."""
        self._refuse_where_refused(mark)
        try:
            turn = self._database.write(certsigning.take_turn, mark, self._process, now(), once=once)
        except NotAgain as error:
            raise ProviderFailed("refused_before", f"{error} ({_TRIED_ONCE})", retryable=False) from error
        if turn is None:
            raise _Later(_SOON)
        self._refuse_where_refused(mark)
        return turn

    def _refuse_where_refused(self, mark: str) -> None:
        if (refusal := self._database.read(certsigning.refusal_of, mark)) is not None:
            raise ProviderFailed("refused_before", refusal, retryable=False)

    def _unless_pending(self, run: _Run, step: str, answer: A | Pending) -> A:
        """The answer, unless the provider needs time: then it is asked again later, with what it wants to have with that."""
        if not isinstance(answer, Pending):
            return answer
        if answer.poll_after is None:
            raise ProviderFailed("person_needed", _PERSON_NEEDED, retryable=False)
        raise self._later(self._signatures.at_work(run.row, run.provider, step, answer))

    def _later(self, work: AtWork[CertsignJob]) -> "_Later":
        self._database.write(certsigning.keep_session, work.row, work.session, work.until)
        return _Later(max(_SHORTEST_POLL, min(work.after, _LONGEST_POLL)))

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
            is_known_to_work = mark in self._known
            if not is_known_to_work:
                yield False
        if is_known_to_work:
            yield True

    def succeeded(self, mark: str) -> None:
        self._known.add(mark)

    def failed(self, mark: str) -> None:
        self._known.discard(mark)


def _unclear(failed: ProviderFailed) -> ProviderFailed:
    return ProviderFailed("unclear", f"{failed.message} ({_TRIED_ONCE})", retryable=False)


def _label(request: SealRequest) -> str:
    return request.name[:200]


def _failed_at_provider(
    failed: ProviderFailed, row: CertsignJob, schedule: Sequence[timedelta], *, away: _Away | None = None
) -> Outcome:
    """Wait for what can be had later; leave the rest to a person."""
    code = failed.code
    if not failed.retryable or failed.counts:
        return Park(failed.message, record=lambda session, due: certsigning.fail(session, due, code, now()))
    after = failed.retry_after
    if after is not None:
        after = max(after, schedule[min(row.attempts, len(schedule)) - 1])
    is_away, unused = away is not None and after is None, away.unused if away is not None else None
    return Retry(
        failed.message,
        after=after,
        record=lambda session, due: certsigning.wait(session, due, code, now(), away=is_away, unused=unused),
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
        differing = error.differences
        return Park(error.reason, record=lambda session, due: commands.stop_waiting(session, due, now(), differing))
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
