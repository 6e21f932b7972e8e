"""A seal job from its row to its result: fill, seal, read back, store; the audit trail; then say so.

Children do what touches files, this process holds the key. Everything before the outcome can be done again: an attempt
writes to places of its own, and only the transaction that ends the job makes its files the result.

Documents that a provider signs come here when that is done (``certsign_work``): then their signatures go into the files that
were prepared for them, and the rest is the same.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from prometheus_client import Histogram

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.events import COMBINED_FILE, DocumentsSealed, SealedDocument
from contracts.fields.paper import mark_of_test
from contracts.rpc.rendering import SealRequest
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, Outcome, Park, Retry
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from contracts.runtime.monitoring.threads import Threads
from contracts.stored_documents import StoredDocument
from contracts.types import Notice
from services.rendering import commands
from services.rendering.children.pool import Busy, JobFailed, JobNotPossible, JobRefused
from services.rendering.children.renderer import Renderer, seal_name
from services.rendering.jobs.sealing.certificates import KeyUnavailable
from services.rendering.models import Confirmation, SealJob, StampedSeal
from services.rendering.protocol.messages import DutyStamped, Place, ProviderSignature, Reserved, SealedSummary, Waiver
from services.rendering.rules import domain
from services.rendering.rules.stamps import files_to_stamp
from services.rendering.sealing import comparing
from services.rendering.sealing.archive_work import Archives, Lifted
from services.rendering.sealing.parts import Part
from services.rendering.sealing.parts import read as read_part
from services.rendering.sealing.pictures import drawn_pictures
from services.rendering.sealing.remote.provided import DRAWN, NotSigned, Provided, ProviderSealers, provided
from services.rendering.settings import Settings
from services.rendering.signatures.archiving import Archiver
from services.rendering.signatures.sealer import Finisher, Sealer
from services.rendering.signatures.time_stamping import Assurance, CertificateRevoked, TimeStampFailed
from services.rendering.stamping import orders, seals
from services.rendering.stamping.orders import StampedFile
from services.rendering.storage import certsigning, confirmations
from services.rendering.storage.confirmations import Base, changed_for

R = TypeVar("R")

log = observe.logger(__name__)

SEAL_SECONDS = Histogram("rendering_seal_job_seconds", "An attempt of a seal job, whatever its outcome")

PDF = "application/pdf"
_SOON = timedelta(seconds=2)
_CERTIFICATE_WAIT = timedelta(hours=1)
_AT_ONCE = 3
"""A document that is made while the trail is begun, and one that is read back and stored meanwhile."""


_SHORT = 50
"""Pages. While as many are sealed, a child may be kept for the audit trail; it would be idle for most of a longer time."""


@dataclass(frozen=True)
class _Sealed:
    """A sealed file whose reading back and storing may still be under way. ``level`` and ``stored`` wait for them.
    ``document`` is the one that it is, None for the combined file."""

    document: StoredDocument | None
    name: str
    pages: int
    sha256: str
    size: int
    conformance: list[str] | None
    signature: ProviderSignature | None
    _level: Future[str]
    _stored: Future[BlobRef]
    stamps: DutyStamped | None = None
    unstamped_sha256: str = ""

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

    def as_sealed_document(self, document: StoredDocument) -> SealedDocument:
        return SealedDocument(
            uuid=document.uuid,
            name=document.name,
            file=self.stored,
            original_sha256=document.original.sha256,
            conformance=self.conformance,
            stamped_at=self.stamps.stamped_at if self.stamps else None,
        )

    def part(self) -> Part:
        """Return what is kept of it until its stamps are there."""
        uuid = self.document.uuid if self.document else None
        return Part(uuid, self.stored, self.pages, self.level, self.conformance, self.signature)

    def summary(self, level: str) -> SealedSummary:
        """Return what the audit trail says of it."""
        return SealedSummary(
            name=self.name,
            original_sha256=self.document.original.sha256 if self.document else "",
            sealed_sha256=self.sha256,
            pages=self.pages,
            size=self.size,
            level=level,
            signature=self.signature,
            stamps=self.stamps,
            unstamped_sha256=self.unstamped_sha256,
        )


@dataclass(frozen=True)
class _Elsewhere:
    """What was signed elsewhere: what came of a provider's order, and the documents as signers have left them there.
    ``signed``: what the order is compared with, where that is known already."""

    by_provider: Provided | Waiver | None
    bases: Mapping[str, Base]
    signers: Sequence[Confirmation]
    signed: comparing.Signed | None = None


class SealWork:
    """What the background process does with a due SealJob."""

    def __init__(
        self,
        settings: Settings,
        blobs: BlobStore,
        renderer: Renderer,
        sealer: Sealer,
        database: Database,
        *,
        provider_sealer: ProviderSealers | None = None,
        archiver: Archiver | None = None,
    ) -> None:
        self._settings, self._blobs, self._renderer, self._sealer = settings, blobs, renderer, sealer
        self._database, self._provider_sealer, self._archiver = database, provider_sealer, archiver

    def attempt(self, job: SealJob) -> Outcome:
        """One attempt. Whatever fails leaves no file behind, unless the process is killed (see ``sweep``).

        The order is compared with the statements while the first page is drawn; nothing is signed before that is done."""
        if (problem := self._sealer.identity.problem(now())) is not None:
            return Retry(problem, after=_CERTIFICATE_WAIT)
        request = SealRequest.model_validate(job.request)
        try:
            by_provider, signed = self._by_provider(job, request)
        except (NotSigned, ServiceError) as error:
            return Retry(str(error))
        try:
            elsewhere = _Elsewhere(by_provider, *self._signers(request), signed)
        except LookupError as error:
            return Park(f"What a signer has signed at the provider is not known here (confirmation {error})")
        if request.dutystamp is not None:
            return self._with_stamps(job, request, elsewhere)
        outcome = self._run(job, request, elsewhere, lambda run: (run.seal(), run.archives.due))
        if not isinstance(outcome, tuple):
            return outcome
        sealed, archives = outcome
        return Done(
            record=lambda session, row: commands.finish_job(session, row, sealed, job.attempts, now(), archives)
        )

    def _run(
        self,
        job: SealJob,
        request: SealRequest,
        elsewhere: _Elsewhere,
        do: Callable[["_Attempt"], R],
        kept_seal: StampedSeal | None = None,
    ) -> R | Outcome:
        """Do something with an attempt, whose files go when it fails. Nothing is signed before the order was compared."""
        with Threads(1) as beside:
            if elsewhere.signed is None:
                compared = beside.submit(comparing.compare, self._database, self._blobs, request, job.id)
            else:
                compared = beside.submit(comparing.compare_with, elsewhere.signed, self._blobs, request, job.id)
            run = _Attempt(
                self._settings,
                self._blobs,
                self._renderer,
                self._sealer,
                job,
                request,
                compared,
                elsewhere,
                kept_seal,
                self._archiver,
            )
            try:
                with SEAL_SECONDS.time():
                    return do(run)
            except Exception as error:  # `_outcome_of` says what each of them means for the job
                run.clean_up()
                return _outcome_of(compared.exception() or error, job)

    def _with_stamps(self, job: SealJob, request: SealRequest, elsewhere: _Elsewhere) -> Outcome:
        """Seal the documents once and keep them, wait for their stamps, then the rest: the trail states the stamped files.
        Where the stamps may come later, what was sealed is told without them, and again when they are there."""
        row = self._database.read(seals.seal, job.id)
        try:
            if row is None or row.parts is None:
                begun_seal = row = self._database.write(seals.begin, job, request, now())
                parts = self._run(job, request, elsewhere, lambda run: run.keep(), begun_seal)
                if not isinstance(parts, dict):
                    return parts
                row = self._database.write(seals.keep, begun_seal, parts, now())
        except seals.TakenOver as error:
            return Retry(str(error), after=_SOON, counts=False)
        if not self._database.read(seals.is_ready, row, now()):
            return Done(record=lambda session, due: seals.wait(session, due, now()))
        stamped = self._database.read(orders.stamped_files, row.submission_id) if row.state == "done" else []
        assert row.parts is not None
        parts = row.parts
        outcome = self._run(job, request, elsewhere, lambda run: (run.finish(parts, stamped), run.archives.due), row)
        if not isinstance(outcome, tuple):
            return outcome
        sealed, archives = outcome
        digests = [part["file"]["sha256"] for part in parts["files"]]
        complete = row.state == "done" and all(file.stamped for file in stamped)
        return Done(
            record=lambda session, due: commands.finish_stamped(
                session, due, sealed, job.attempts, digests, now(), complete=complete, archives=archives
            )
        )

    def _signers(self, request: SealRequest) -> tuple[dict[str, Base], list[Confirmation]]:
        """Return what signers have signed at a provider, and their confirmations. Raises LookupError."""
        ids = request.confirmations
        if not ids:
            return {}, []
        return self._database.read(
            lambda session: (confirmations.bases(session, ids), confirmations.of_ids(session, ids))
        )

    def _by_provider(
        self, job: SealJob, request: SealRequest
    ) -> tuple[Provided | Waiver | None, comparing.Signed | None]:
        """Return what came of the order that a provider signs the documents, with what the parties signed, which is read in the
        same transaction; None where there was no such order."""
        if request.certsign is None:
            return None, None
        assert self._provider_sealer is not None
        (row, signings), signed = self._database.read(
            lambda session: (certsigning.with_signings(session, job.id), comparing.signed(session, request))
        )
        return provided(row, signings, self._blobs, self._provider_sealer), signed


def _outcome_of(error: BaseException, job: SealJob) -> Outcome:
    """A refusal is final; a fault of the work is tried a few times; what is missing outside is waited for."""
    if isinstance(error, comparing.NotYetComplete):
        return Retry(str(error), after=comparing.ORDER_WAIT, counts=False)
    if isinstance(error, comparing.Differs):
        differing = error.differences
        return Park(error.reason, record=lambda session, row: commands.fail_job(session, row, differing))
    if isinstance(error, JobRefused):
        return Park(error.reason)
    if isinstance(error, CertificateRevoked):
        return Park(f"the certificate was revoked: {error}")
    if isinstance(error, TimeStampFailed):
        return Retry(f"no time-stamp: {error}")
    if isinstance(error, Busy | JobNotPossible | KeyUnavailable):
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
        elsewhere: _Elsewhere,
        kept_seal: StampedSeal | None,
        archiver: Archiver | None,
    ) -> None:
        self._bases, self._signers = elsewhere.bases, elsewhere.signers
        self._settings, self._blobs, self._renderer, self._sealer, self._job = settings, blobs, renderer, sealer, job
        self._request, self._compared, self._kept_seal = request, compared, kept_seal
        self._provided = elsewhere.by_provider
        self._making = self._documents
        self._fields = [value.field for value in self._request.values]
        self._written: list[str] = []
        self.archives = Archives(settings, archiver)

    def seal(self) -> DocumentsSealed:
        """Seal the documents and the audit trail."""
        return self._with_time_stamps(self._seal)

    def keep(self) -> dict[str, Any]:
        """Seal the documents, and the combined file where one is stamped; what is to be kept of them until then."""
        return self._with_time_stamps(self._keep)

    def finish(self, parts: dict[str, Any], stamped: Sequence[StampedFile]) -> DocumentsSealed:
        """The rest, of documents that were kept and may be stamped now."""
        self._making = lambda _attachments, assurance, *_: [
            self._again(read_part(part), stamped, assurance) for part in parts["files"]
        ]
        sealed = self.seal()
        report = [*map(Notice.model_validate, parts["report"]), *sealed.report]
        once = list({notice.message: notice for notice in report}.values())
        return sealed.model_copy(update={"report": once})

    def _with_time_stamps(self, do: Callable[[Assurance], R]) -> R:
        """A failing time-stamping authority is waited for a few attempts, then done without, and the report says so. Nothing is
        bought for a test."""
        if self._request.test:
            return do(self._sealer.assurance(now(), with_time_stamp=False))
        try:
            return do(self._sealer.assurance(now()))
        except TimeStampFailed as error:
            if not domain.goes_without_time_stamp(self._job.attempts, self._settings.tsa_attempts):
                raise
            self.clean_up()
            message = f"No time-stamp could be obtained. The seal is PAdES B-B without one ({error})."
            missing = Notice(code="no_time_stamp", message=message)
            plain = self._sealer.assurance(now(), with_time_stamp=False)
            return do(replace(plain, notices=(missing,)))

    def _seal(self, assurance: Assurance) -> DocumentsSealed:
        """A sealed file is read back and stored while the next one is made, the trail is begun beside short ones. It states
        each document's level: without a time-stamp that is known beforehand, else it is what was found in the file."""
        request = self._request
        attachments = drawn_pictures(self._blobs, request)
        place = self._place(assurance)
        known_level = None if assurance.stamped or self._kept_seal is not None else domain.LEVELS[0]
        with Threads(_AT_ONCE) as threads:
            documents = threads.submit(self._making, attachments, assurance, place, threads)
            if sum(len(document.pages) for document in request.documents) > _SHORT:
                wait((documents,))

            def summaries() -> list[SealedSummary]:
                return [document.summary(known_level or document.level) for document in documents.result()]

            trail, trail_level = self._audit_trail(summaries, attachments, assurance, place, threads)
            sealed = documents.result()
            levels = [document.level for document in sealed]
            if known_level is not None and set(levels) - {known_level}:
                raise JobFailed("check_seal", f"a seal without time-stamp was read back as {levels}")
            return DocumentsSealed(
                submission_id=request.submission_id,
                seal_id=request.seal_id,
                documents=[
                    document.as_sealed_document(document.document)
                    for document in sealed
                    if document.document is not None
                ],
                combined=next((document.stored for document in sealed if document.document is None), None),
                audit_trail=trail,
                pades_level=domain.lowest_level(
                    [trail_level, *levels, *(base.level for base in self._bases.values() if base.level != "B-LTA")]
                ),
                report=[*self._report(assurance), *self.archives.notices],
                archive_until=self.archives.until,
            )

    def _place(self, assurance: Assurance) -> Place:
        """Return what the signatures will say, for which a place is kept: of a test, that it is one."""
        place = self._sealer.place(assurance, now())
        if not self._request.test:
            return place
        return replace(place, text=replace(place.text, reason=mark_of_test(self._request.account)))

    def _keep(self, assurance: Assurance) -> dict[str, Any]:
        request = self._request
        attachments = drawn_pictures(self._blobs, request)
        place = self._place(assurance)
        with Threads(_AT_ONCE) as threads:
            sealed = self._documents(attachments, assurance, place, threads)
            if any(file.target == "combined" for file in files_to_stamp(request)):
                sealed[-1].wait()
                sealed.append(self._combined(attachments, assurance, place, threads))
            files = [file.part().as_json() for file in sealed]
        return {"files": files, "report": [notice.model_dump(mode="json") for notice in self._report(assurance)]}

    def _again(self, part: Part, stamped: Sequence[StampedFile], assurance: Assurance) -> _Sealed:
        """A file that was kept, with its stamps if it has them all; it becomes one of this attempt's."""
        document = next((original for original in self._request.documents if original.uuid == part.document), None)
        stamped_file = next((file for file in stamped if file.stamped and self._is_of(file, part)), None)
        file = stamped_file.stamped if stamped_file is not None and stamped_file.stamped is not None else part.file
        lifted = self.archives.lift(self._blobs.get(file), stamped=assurance.stamped)
        stored: Future[BlobRef] = Future()
        stored.set_result(self._store(lifted, document.uuid if document else COMBINED_FILE, self._place_for_file()))
        level: Future[str] = Future()
        level.set_result(lifted.level(part.level))
        order = self._request.dutystamp
        stamps = None
        if stamped_file is not None and stamped_file.stamped_at is not None and order is not None:
            stamps = DutyStamped(order.provider, list(stamped_file.serials), stamped_file.stamped_at)
        return _Sealed(
            document,
            document.name if document else f"{self._request.name} (combined)",
            part.pages,
            hashlib.sha256(lifted.data).hexdigest(),
            len(lifted.data),
            part.conformance,
            part.signature,
            level,
            stored,
            stamps,
            stamped_file.source.sha256 if stamped_file is not None else "",
        )

    def _is_of(self, file: StampedFile, part: Part) -> bool:
        """Return whether these stamps are of that part, of which an earlier seal job may have made the very file that has
        them."""
        file_to_stamp = next(
            (planned for planned in files_to_stamp(self._request) if planned.document == part.document), None
        )
        return file_to_stamp is not None and (file_to_stamp.target, file_to_stamp.document_index) == (
            file.target,
            file.document_index,
        )

    def _combined(self, attachments: Sequence[bytes], assurance: Assurance, place: Place, threads: Executor) -> _Sealed:
        """One file of all documents, made of what was filled in, and sealed here."""
        request = self._request
        data = [self._blobs.get(document.file) for document in request.documents]
        filled = self._renderer.fill_and_combine(request, data, attachments, place)
        file = self._sign(filled.reserved, assurance)
        stored = threads.submit(self._store, Lifted(file), COMBINED_FILE, self._place_for_file())
        level = threads.submit(self._sealer.check, file, pages=filled.pages, drawn=filled.drawn, fields=self._fields)
        sha256, name = hashlib.sha256(file).hexdigest(), f"{request.name} (combined)"
        return _Sealed(None, name, filled.pages, sha256, len(file), None, None, level, stored)

    def _report(self, assurance: Assurance) -> list[Notice]:
        """Return what is missing of the trail's seal, and of the documents' where they have another."""
        more = self._provided.notices if isinstance(self._provided, Provided) and assurance.stamped else ()
        of_signers = [
            Notice.model_validate(notice)
            for row in self._signers
            for notice in (row.assurance or {}).get("notices", ())
        ]
        return list({notice.message: notice for notice in (*assurance.notices, *more, *of_signers)}.values())

    def clean_up(self) -> None:
        """Remove what this attempt wrote."""
        for key in self._written:
            try:
                self._blobs.delete(key)
            except ServiceError as error:
                log.warning("seal.left_behind", key=key, reason=error.message)
        self._written = []
        self.archives.forget()

    def _documents(
        self, attachments: Sequence[bytes], assurance: Assurance, place: Place, threads: Executor
    ) -> list[_Sealed]:
        sealed: list[_Sealed] = []
        for number in range(len(self._request.documents)):
            if sealed:
                sealed[-1].wait()  # two files in memory are enough
            sealed.append(self._document(number, attachments, assurance, place, threads))
        return sealed

    def _document(
        self,
        number: int,
        attachments: Sequence[bytes],
        assurance: Assurance,
        place: Place,
        threads: Executor,
    ) -> _Sealed:
        document, by_provider = self._request.documents[number], self._provided
        if isinstance(by_provider, Provided):
            self._compared.result()
            sealed = by_provider.file(number, stamped=assurance.stamped)
            drawn, conformance = by_provider.drawn(number), by_provider.conformance(number)
            sealer: Finisher = by_provider.sealer
            signature = by_provider.signature(number)
        else:
            base = self._bases.get(document.uuid)
            request = self._request if base is None else self._upon(document.uuid, base)
            data = self._blobs.get(document.file if base is None else base.file)
            filled = self._renderer.fill_and_reserve(request, document.uuid, data, attachments, place)
            sealed = self._sign(filled.reserved, assurance)
            if base is not None and not sealed.startswith(data):
                raise JobFailed("fill_and_reserve", "the sealed file does not begin with what signers have signed")
            before = DRAWN.validate_python(base.drawn) if base is not None else []
            drawn, conformance, sealer, signature = [*before, *filled.drawn], filled.conformance, self._sealer, None
        # What is kept for its stamps is archived after them.
        lifted = self.archives.lift(sealed, stamped=assurance.stamped and self._kept_seal is None)
        stored = threads.submit(self._store, lifted, document.uuid, self._place_for_file())
        pages = len(document.pages)
        level = threads.submit(_level, sealer, sealed, lifted, pages=pages, drawn=drawn, fields=self._fields)
        sha256, size = hashlib.sha256(lifted.data).hexdigest(), len(lifted.data)
        return _Sealed(document, document.name, pages, sha256, size, conformance, signature, level, stored)

    def _upon(self, uuid: str, base: Base) -> SealRequest:
        """The order for a document that signers have signed at a provider: the rest is drawn, and sealed."""
        return self._request.model_copy(update=changed_for(self._request.documents, self._request.values, uuid, base))

    def _audit_trail(
        self,
        summaries: Callable[[], list[SealedSummary]],
        attachments: Sequence[bytes],
        assurance: Assurance,
        place: Place,
        threads: Executor,
    ) -> tuple[BlobRef, str]:
        issuer = seal_name(self._sealer.identity)
        waiver = self._provided if isinstance(self._provided, Waiver) else None
        drawn = self._renderer.audit_trail(self._request, attachments, place, issuer, summaries, waiver)
        sealed = self._sign(drawn.reserved, assurance)
        lifted = self.archives.lift(sealed, stamped=assurance.stamped)
        stored = threads.submit(self._store, lifted, "", self._place_for_file())
        level = _level(self._sealer, sealed, lifted, pages=drawn.pages)
        return stored.result(), level

    def _sign(self, unsigned: Reserved, assurance: Assurance) -> bytes:
        self._compared.result()
        return self._sealer.sign(unsigned, assurance)

    def _place_for_file(self) -> str:
        """A key of this attempt, noted down before anything is written there: what was written is nothing until the job
        ends well, else it is removed."""
        job, kept_seal, number = self._job, self._kept_seal, len(self._written)
        if kept_seal is not None and kept_seal.parts is None:
            key = domain.kept_key(job.submission_id, job.id, kept_seal.revision, number)
        else:
            key = domain.file_key(job.submission_id, job.id, job.attempts, number)
        self._written.append(key)
        return key

    def _store(self, lifted: Lifted, document: str, key: str) -> BlobRef:
        """``document`` as in DocumentArchived."""
        prefix, _, name = key.rpartition("/")
        stored = self._blobs.put(lifted.data, PDF, f"{prefix}/", name=name)
        self.archives.keep(lifted, document, stored)
        return stored


def _level(sealer: Finisher, sealed: bytes, lifted: Lifted, **expected: Any) -> str:
    """The level of the file. What is after the seal was read back when it was made."""
    return lifted.level(sealer.check(sealed, **expected))
