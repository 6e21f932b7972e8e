"""A seal job from its row to its result: fill, seal, read back, store; the audit trail; then say so.

Children do what touches files, this process holds the key. Everything before the outcome can be done again: an attempt
writes to places of its own, and only the transaction that ends the job makes its files the result.
"""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import timedelta

from prometheus_client import Counter, Histogram
from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.events import DocumentsSealed, SealedDocument
from contracts.rpc.rendering import SealRequest
from contracts.runtime.clock import now
from contracts.runtime.data.background import Done, Outcome, Park, Retry
from contracts.runtime.data.blobstore import BlobStore
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from contracts.stored_documents import StoredDocument
from contracts.types import Notice
from services.rendering import commands, queries
from services.rendering.children.pool import Busy, JobFailed, JobNotPossible, JobRefused
from services.rendering.children.renderer import Renderer, seal_name
from services.rendering.models import SealJob
from services.rendering.protocol import Place, Reserved, SealedSummary
from services.rendering.rules import differences, domain
from services.rendering.sealing import statements
from services.rendering.sealing.sealer import Sealer
from services.rendering.sealing.time_stamping import Assurance, CertificateRevoked, TimeStampFailed
from services.rendering.settings import Settings

log = observe.logger(__name__)

SEAL_SECONDS = Histogram("rendering_seal_job_seconds", "An attempt of a seal job, whatever its outcome")

DIFFERING = Counter("rendering_seals_differing_total", "Sealings that were stopped: it was not what the parties signed")

PDF = "application/pdf"
_ORDER_WAIT = timedelta(minutes=1)
_INCOMPLETE = (
    "a process of an older version ordered it, without what is compared with the statements: it is ordered again"
)
_MOST_DIFFERENCES = 50
_CERTIFICATE_WAIT = timedelta(hours=1)
_AT_ONCE = 3
"""A document that is made while the trail is begun, and one that is read back and stored meanwhile."""


_SHORT = 50
"""Pages. While as many are sealed, a child may be kept for the audit trail; it would be idle for most of a longer time."""


@dataclass(frozen=True)
class _Sealed:
    """A sealed document whose reading back and storing may still be under way. ``level`` and ``stored`` wait for them."""

    source: StoredDocument
    sha256: str
    size: int
    conformance: list[str] | None
    _level: Future[str]
    _stored: Future[BlobRef]

    @property
    def level(self) -> str:
        """Its PAdES level. Raises JobRefused when it is not what it must be."""
        return self._level.result()

    @property
    def stored(self) -> BlobRef:
        return self._stored.result()

    def wait(self) -> None:
        """Until nothing of it is under way."""
        wait((self._level,))
        wait((self._stored,))

    def document(self) -> SealedDocument:
        return SealedDocument(
            uuid=self.source.uuid,
            name=self.source.name,
            file=self.stored,
            original_sha256=self.source.original.sha256,
            conformance=self.conformance,
        )

    def summary(self, level: str) -> SealedSummary:
        """What the audit trail says of it."""
        return SealedSummary(
            name=self.source.name,
            original_sha256=self.source.original.sha256,
            sealed_sha256=self.sha256,
            pages=len(self.source.pages),
            size=self.size,
            level=level,
        )


class SealWork:
    """What the background process does with a due SealJob."""

    def __init__(
        self, settings: Settings, blobs: BlobStore, renderer: Renderer, sealer: Sealer, database: Database
    ) -> None:
        self._settings, self._blobs, self._renderer, self._sealer = settings, blobs, renderer, sealer
        self._database = database

    def attempt(self, job: SealJob) -> Outcome:
        """One attempt. Whatever fails leaves no file behind, unless the process is killed (see ``sweep``).

        The order is compared with the statements while the first page is drawn; nothing is signed before that is done."""
        if (problem := self._sealer.identity.problem(now())) is not None:
            return Retry(problem, after=_CERTIFICATE_WAIT)
        request = SealRequest.model_validate(job.request)
        with ThreadPoolExecutor(1) as beside:
            compared = beside.submit(self._compare, request, job.id)
            run = _Attempt(self._settings, self._blobs, self._renderer, self._sealer, job, request, compared)
            try:
                with SEAL_SECONDS.time():
                    sealed = run.seal()
            except Exception as error:  # `_outcome_of` says what each of them means for the job
                run.clean_up()
                return _outcome_of(compared.exception() or error, job)
        return Done(record=lambda session, row: _finish(session, row, sealed, job.attempts))

    def _compare(self, request: SealRequest, job_id: int) -> None:
        """Compare the order with the statements: nothing else is sealed than what the parties signed. Raises _NotToSeal."""
        confirmed = statements.known_statements(self._database, self._blobs, request.submission_id)
        if confirmed and request.to_check is None:
            raise _NotToSeal(Retry(_INCOMPLETE, after=_ORDER_WAIT, counts=False))
        differing = differences.unaccepted(request, confirmed, self._database.read(queries.statements_since))
        if not differing:
            return
        DIFFERING.inc()
        log.error("seal.differs", submission=request.submission_id, job=job_id, differences=differing)
        reason = f"What is to be sealed is not what was signed: {'; '.join(differing)}"
        reported = differing[:_MOST_DIFFERENCES]
        raise _NotToSeal(Park(reason, record=lambda session, row: commands.fail_job(session, row, reported)))


class _NotToSeal(Exception):
    """The order is not, or not yet, to be sealed; ``outcome`` is what becomes of its job."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


def _finish(session: Session, row: SealJob, sealed: DocumentsSealed, attempt: int) -> None:
    commands.finish_job(session, row, sealed, attempt, now())


def _outcome_of(error: BaseException, job: SealJob) -> Outcome:
    """A refusal is final; a fault of the work is tried a few times; what is missing outside is waited for."""
    if isinstance(error, _NotToSeal):
        return error.outcome
    if isinstance(error, JobRefused):
        return Park(error.reason)
    if isinstance(error, CertificateRevoked):
        return Park(f"the certificate was revoked: {error}")
    if isinstance(error, TimeStampFailed):
        return Retry(f"no time-stamp: {error}")
    if isinstance(error, Busy | JobNotPossible):
        return Retry(str(error))
    if isinstance(error, ServiceError):
        return Retry(error.message)
    if isinstance(error, JobFailed):
        log.warning("seal.failed", job=job.id, task=error.task, reason=error.reason, trace=error.trace)
        reason = f"{error.task} failed: {error.reason}"
    else:
        log.error("seal.failed", job=job.id, exc_info=error)
        reason = f"{type(error).__name__}: {error}"
    return Park(reason) if domain.gives_up(job.attempts) else Retry(reason)


class _Attempt:
    """One run through a job. Nothing is signed before ``compared`` has ended; what it raises ends the attempt."""

    def __init__(
        self,
        settings: Settings,
        blobs: BlobStore,
        renderer: Renderer,
        sealer: Sealer,
        job: SealJob,
        request: SealRequest,
        compared: Future[None],
    ) -> None:
        self._settings, self._blobs, self._renderer, self._sealer, self._job = settings, blobs, renderer, sealer, job
        self._request, self._compared = request, compared
        self._fields = [value.field for value in self._request.values]
        self._written: list[str] = []

    def seal(self) -> DocumentsSealed:
        """A failing time-stamping authority is waited for a few attempts, then done without, and the report says so."""
        try:
            return self._seal(self._sealer.assurance(now()))
        except TimeStampFailed as error:
            if not domain.goes_without_time_stamp(self._job.attempts, self._settings.tsa_attempts):
                raise
            self.clean_up()
            message = f"No time-stamp could be had, the seal is PAdES B-B without one ({error})"
            missing = Notice(code="no_time_stamp", message=message)
            plain = self._sealer.assurance(now(), with_time_stamp=False)
            return self._seal(replace(plain, notices=(missing,)))

    def _seal(self, assurance: Assurance) -> DocumentsSealed:
        """A sealed file is read back and stored while the next one is made, the trail is begun beside short ones. It states
        each document's level: without a time-stamp that is known beforehand, else it is what was found in the file."""
        request = self._request
        drawn = {uuid for value in request.values for uuid in domain.pictures_of(value)}
        attachments = [
            self._blobs.get(attachment.file) if attachment.uuid in drawn else b"" for attachment in request.attachments
        ]
        place = self._sealer.place(assurance, now())
        with ThreadPoolExecutor(_AT_ONCE) as others:
            documents = others.submit(self._documents, attachments, assurance, place, others)
            if sum(len(document.pages) for document in request.documents) > _SHORT:
                wait((documents,))

            def summaries() -> list[SealedSummary]:
                return [
                    document.summary(document.level if assurance.stamped else domain.LEVELS[0])
                    for document in documents.result()
                ]

            trail, trail_level = self._audit_trail(summaries, attachments, assurance, place, others)
            sealed = documents.result()
            levels = [document.level for document in sealed]
            if not assurance.stamped and set(levels) - {domain.LEVELS[0]}:
                raise JobFailed("check_seal", f"a seal without time-stamp was read back as {levels}")
            return DocumentsSealed(
                submission_id=request.submission_id,
                seal_id=request.seal_id,
                documents=[document.document() for document in sealed],
                audit_trail=trail,
                pades_level=domain.lowest_level([trail_level, *levels]),
                report=list(assurance.notices),
            )

    def clean_up(self) -> None:
        """Remove what this attempt wrote."""
        for key in self._written:
            try:
                self._blobs.delete(key)
            except ServiceError as error:
                log.warning("seal.left_behind", key=key, reason=error.message)
        self._written = []

    def _documents(
        self, attachments: Sequence[bytes], assurance: Assurance, place: Place, others: Executor
    ) -> list[_Sealed]:
        sealed: list[_Sealed] = []
        for document in self._request.documents:
            if sealed:
                sealed[-1].wait()  # two files in memory are enough
            sealed.append(self._document(document, attachments, assurance, place, others))
        return sealed

    def _document(
        self,
        document: StoredDocument,
        attachments: Sequence[bytes],
        assurance: Assurance,
        place: Place,
        others: Executor,
    ) -> _Sealed:
        data = self._blobs.get(document.file)
        filled = self._renderer.fill_and_reserve(self._request, document.uuid, data, attachments, place)
        file = self._sign(filled.reserved, assurance)
        stored = others.submit(self._store, file, self._place_for_file())
        level = others.submit(
            self._sealer.check, file, pages=len(document.pages), drawn=filled.drawn, fields=self._fields
        )
        return _Sealed(document, hashlib.sha256(file).hexdigest(), len(file), filled.conformance, level, stored)

    def _audit_trail(
        self,
        summaries: Callable[[], list[SealedSummary]],
        attachments: Sequence[bytes],
        assurance: Assurance,
        place: Place,
        others: Executor,
    ) -> tuple[BlobRef, str]:
        issuer = seal_name(self._sealer.identity)
        drawn = self._renderer.audit_trail(self._request, attachments, place, issuer, summaries)
        file = self._sign(drawn.reserved, assurance)
        stored = others.submit(self._store, file, self._place_for_file())
        level = self._sealer.check(file, pages=drawn.pages)
        return stored.result(), level

    def _sign(self, unsigned: Reserved, assurance: Assurance) -> bytes:
        self._compared.result()
        return self._sealer.sign(unsigned, assurance)

    def _place_for_file(self) -> str:
        """A key of this attempt, noted down before anything is written there: what was written is nothing until the job
        ends well, else it is removed."""
        job = self._job
        key = domain.file_key(job.submission_id, job.id, job.attempts, len(self._written))
        self._written.append(key)
        return key

    def _store(self, data: bytes, key: str) -> BlobRef:
        prefix, _, name = key.rpartition("/")
        return self._blobs.put(data, PDF, f"{prefix}/", name=name)
