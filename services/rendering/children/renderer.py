"""The service's side of the children: one method per thing they can do, typed, with errors that a caller understands.

``for_caller`` turns what went wrong with a stranger's file into a refusal; seal jobs use the methods without it, because
there a failure means another attempt.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from typing import Any, TypeVar

from contracts.errors import ServiceError, invalid
from contracts.fields.boxes import FieldBox
from contracts.rpc.rendering import (
    CheckValues,
    DrawnArea,
    DrawValues,
    FillRequest,
    PageFooter,
    SealRequest,
    Verification,
    VerifiedSignature,
)
from contracts.runtime.bus import caller
from contracts.runtime.monitoring import observe
from contracts.types import Area, FieldDefinition, FieldType
from services.rendering.children.pool import (
    Busy,
    ChildPool,
    JobCrashed,
    JobFailed,
    JobNotPossible,
    JobRefused,
    JobTimedOut,
)
from services.rendering.jobs.sealing.certificates import SealIdentity
from services.rendering.protocol import messages
from services.rendering.protocol.messages import Limits, OneFile, Place, Prepared, Task, ValueDrawn
from services.rendering.rules import stamps
from services.rendering.rules.stamps import FileToStamp

Q = TypeVar("Q")
A = TypeVar("A")

log = observe.logger(__name__)

HOSTILE_SECONDS = 20.0
"""For files of strangers, while somebody waits."""
HOSTILE_WAIT = HOSTILE_SECONDS + 2.0
"""How long such a file waits for a free child; if there is only one, another caller's job has it until it is killed."""
PREVIEW_SECONDS, PREVIEW_WAIT = 5.0, 2.0
"""For what a page shows while somebody types: it asks again, so it is given up soon."""
SEAL_SECONDS = 120.0
"""For files that were accepted, while nobody waits."""
_SEAL_WAIT = 2 * SEAL_SECONDS
"""How long sealing waits for a free child; running jobs need one for read-back."""


class Renderer:
    """Thread-safe. ``office``: children with LibreOffice in them, None where it is not installed."""

    def __init__(self, pool: ChildPool, office: ChildPool | None = None, *, most_bytes: int, most_pages: int) -> None:
        self._pool, self._office, self._previews = pool, office, Previews(pool.size)
        self._limits = Limits(most_bytes, most_pages)

    # --- documents that come in

    def prepare_pdf(self, data: bytes, name: str, *, remove_tags: bool, flatten: bool) -> Prepared:
        return self._hostile(messages.PREPARE_PDF, messages.PreparePdf(data, name, self._limits, remove_tags, flatten))

    def prepare_docx(self, data: bytes, name: str, variables: dict[str, Any] | None, *, remove_tags: bool) -> Prepared:
        """Three children in turn: one reads the DOCX, one with LibreOffice lays it out, one treats the PDF as any other."""
        if self._office is None:
            raise invalid("DOCX files cannot be converted: LibreOffice is not installed on this server", "file")
        ready = self._hostile(messages.PREPARE_DOCX, messages.PrepareDocx(data, name, self._limits, variables))
        with for_caller("convert"):
            converted = self._office.run(
                messages.CONVERT, OneFile(ready.file), seconds=HOSTILE_SECONDS, wait=30, caller=caller.current()
            )
        request = messages.PreparePdf(
            converted.data,
            name,
            self._limits,
            remove_tags,
            flatten=False,
            docx_tags=ready.tags,
            docx_fonts=ready.fonts,
        )
        prepared = self._hostile(messages.PREPARE_PDF, request)
        return replace(prepared, report=[*ready.report, *prepared.report], variables=ready.variables)

    def external_urls(self, texts: Sequence[str], assets: dict[str, bytes]) -> list[str]:
        """Return which files the HTML would load, besides those in ``assets``."""
        return self._hostile(messages.EXTERNAL_URLS, messages.ExternalUrls(texts, assets))

    def prepare_html(
        self,
        html: str,
        header: str | None,
        footer: str | None,
        size: str,
        name: str,
        assets: dict[str, bytes],
        *,
        today: date,
    ) -> Prepared:
        """``today`` is what header and footer say where they ask for it."""
        request = messages.PrepareHtml(html, header, footer, size, name, self._limits, assets, today)
        return self._hostile(messages.PREPARE_HTML, request)

    def detect_fields(self, data: bytes, occupied: Sequence[Area]) -> messages.Detected:
        """Return which fields a prepared PDF has places for that are not ``occupied``."""
        return self._hostile(messages.DETECT_FIELDS, messages.DetectFields(data, occupied))

    # --- sealing

    def fill_and_reserve(
        self, request: FillRequest, document: str, data: bytes, attachments: Sequence[bytes], place: Place
    ) -> messages.Filled:
        """Draw the values of the document with that uuid; ``attachments`` are in the request's order."""
        certify = stamps.may_certify(request)
        return self._sealing(
            messages.FILL_AND_RESERVE, messages.FillAndReserve(request, document, data, attachments, place, certify)
        )

    def audit_trail(
        self,
        request: SealRequest,
        attachments: Sequence[bytes],
        place: Place,
        issuer: str,
        documents: Callable[[], list[messages.SealedSummary]],
        waiver: messages.Waiver | None = None,
    ) -> messages.ReservedPages:
        """``documents`` waits for them to be sealed; what does not depend on them is drawn meanwhile, where there are children
        enough."""
        begun = messages.DrawTrail(request, attachments, place, issuer, waiver)
        return self._pool.run_ahead(messages.AUDIT_TRAIL, begun, documents, seconds=SEAL_SECONDS, wait=_SEAL_WAIT)

    def check_seal(
        self,
        data: bytes,
        certificate: bytes,
        *,
        pages: int,
        drawn: Sequence[ValueDrawn] = (),
        fields: Sequence[FieldDefinition] = (),
    ) -> str:
        """Read a sealed file back; the PAdES level. JobRefused says what is wrong."""
        uuids = {entry.field_uuid for entry in drawn}
        checked = [field for field in fields if field.uuid in uuids]
        return self._sealing(messages.CHECK_SEAL, messages.CheckSeal(data, certificate, pages, drawn, checked))

    def read_time_stamp(self, response: bytes, digest: bytes, nonce: int) -> messages.Token:
        """JobRefused when the answer is no time-stamp for what has this SHA-256."""
        return self._pool.run(messages.READ_TIME_STAMP, messages.ReadTimeStamp(response, digest, nonce))

    def revocation_questions(self, leaves: Sequence[bytes], certificates: Sequence[bytes]) -> list[messages.Question]:
        """Return whom to ask whether ``leaves``, or what is above them in their chains, were revoked."""
        return self._pool.run(messages.REVOCATION_QUESTIONS, messages.RevocationQuestions(leaves, certificates))

    def check_revocation(
        self, kind: str, answer: bytes, serial: str, certificates: Sequence[bytes], now: datetime
    ) -> messages.RevocationVerdict:
        """JobRefused when the answer proves nothing."""
        return self._pool.run(
            messages.CHECK_REVOCATION, messages.CheckRevocation(kind, answer, serial, certificates, now)
        )

    # --- duty stamps

    def place_stamps(self, data: bytes, file: FileToStamp, size: tuple[float, float]) -> list[messages.PlacedStamp]:
        """Return where the stamps of ``file`` (rules.stamps.files_to_stamp) go on it, in the order of its wishes; ``data`` is
        the sealed file, ``size`` width and height of a stamp in points. JobRefused when there is no room."""
        return self._sealing(messages.PLACE_STAMPS, messages.PlaceStamps(data, file, size))

    def check_stamp(
        self,
        sealed: bytes,
        stamped: bytes,
        serial: str,
        page: int,
        box: messages.Corners,
        anchors: Sequence[bytes],
        now: datetime,
    ) -> VerifiedSignature:
        """Read ``stamped``, which a provider made of ``sealed``, back; the signature of the stamp. JobRefused says what is
        wrong. ``box`` is in default user space, ``anchors`` are certificates in DER."""
        request = messages.CheckStamp(sealed, stamped, serial, page, box, anchors, now)
        return self._sealing(messages.CHECK_STAMP, request)

    def fill_and_combine(
        self, request: FillRequest, files: Sequence[bytes], attachments: Sequence[bytes], place: Place
    ) -> messages.FilledCombined:
        """One file of all documents with their values; ``files`` are those of the documents, in the request's order."""
        return self._sealing(messages.FILL_AND_COMBINE, messages.FillAndCombine(request, files, attachments, place))

    # --- what providers of remote certificates hand out

    def check_chain(
        self,
        certificates: Sequence[bytes],
        mechanisms: Sequence[messages.Mechanism],
        anchors: Sequence[bytes],
        now: datetime,
    ) -> messages.Signatory:
        """Return whom a provider's certificates (the signer's first) are of. JobRefused when nothing may be signed with
        them."""
        return self._pool.run(messages.CHECK_CHAIN, messages.CheckChain(certificates, mechanisms, anchors, now))

    def check_signatures(
        self,
        certificate: bytes,
        mechanism: messages.Mechanism,
        digests: Sequence[bytes],
        signatures: Sequence[bytes],
    ) -> list[bytes]:
        """The signatures as they go into a file. JobRefused when one is not what was asked for: then none may be used."""
        request = messages.CheckSignatures(certificate, mechanism, digests, signatures)
        return list(self._pool.run(messages.CHECK_SIGNATURES, request).signatures)

    # --- archive time-stamps

    def survey_archive(self, data: bytes, authority: Sequence[bytes]) -> messages.ArchiveSurvey:
        """Return which proofs a sealed file lacks. JobRefused when it is none."""
        return self._sealing(messages.SURVEY_ARCHIVE, messages.SurveyArchive(data, authority))

    def reserve_archive(self, data: bytes, material: messages.ValidationMaterial, size: int) -> messages.Reserved:
        """The file with these proofs, and a place for a time-stamp of ``size`` octets over all of it."""
        return self._sealing(messages.RESERVE_ARCHIVE, messages.ReserveArchive(data, material, size))

    def check_archive(self, data: bytes) -> messages.ArchiveFound:
        """Read an archived file back. JobRefused says what is wrong."""
        return self._sealing(messages.CHECK_ARCHIVE, OneFile(data))

    # --- tools

    def fill_draft(self, request: FillRequest, document: str, data: bytes, attachments: Sequence[bytes]) -> bytes:
        return self._hostile(messages.FILL_DRAFT, messages.FillDraft(request, document, data, attachments)).data

    def verify(self, data: bytes, anchors: Sequence[bytes], now: datetime, *, sealed_here: bool) -> Verification:
        """The verdict. A check that fails, or takes too long or too much, says nothing about the file: ``unknown``."""
        with for_caller("verify"):
            try:
                return self._pool.run(
                    messages.VERIFY,
                    messages.Verify(data, anchors, now, sealed_here),
                    seconds=HOSTILE_SECONDS,
                    wait=HOSTILE_WAIT,
                    caller=caller.current(),
                )
            except (JobRefused, JobNotPossible):
                raise
            except JobFailed as failed:
                log.error("verify.not_checked", reason=failed.reason, trace=failed.trace)  # noqa: TRY400 - the child's trace
                return Verification(checksum_status="unknown", sealed_here=sealed_here)

    def seal_material(self, data: bytes, signatures: Sequence[bytes]) -> messages.SealMaterial:
        """Return what the seal of ``data`` carries, and the roots of the chains in these ``signatures`` (CMS)."""
        return self._hostile(messages.SEAL_MATERIAL, messages.FindSealMaterial(data, signatures))

    def combine(self, files: Sequence[bytes], title: str) -> messages.Combined:
        """The merged file and warnings."""
        return self._hostile(messages.COMBINE, messages.Combine(files, title))

    def combine_and_reserve(self, files: Sequence[bytes], title: str, place: Place) -> messages.ReservedPages:
        """The same with a place for a seal."""
        return self._hostile(messages.COMBINE_AND_RESERVE, messages.CombineAndReserve(files, title, place))

    def draw_page(
        self,
        data: bytes,
        page: int,
        width: int,
        boxes: Sequence[FieldBox] = (),
        footer: PageFooter | None = None,
        *,
        light: bool = False,
    ) -> bytes:
        return self._hostile(messages.DRAW_PAGE, messages.DrawPage(data, page, width, boxes, footer, light)).data

    def draw_thumbnail(self, data: bytes) -> bytes:
        """The first page in small. Whoever asks goes on without it when it is late."""
        with self._previews.turn(), for_caller("draw_thumbnail"):
            return self._pool.run(
                messages.DRAW_THUMBNAIL, messages.OneFile(data), seconds=PREVIEW_SECONDS, wait=PREVIEW_WAIT
            ).data

    def read_text(self, data: bytes, first: int) -> messages.TextRead:
        """Return what the pages show as text, from the page ``first`` on, as many as are read quickly."""
        with self._previews.turn():
            return self._hostile(messages.READ_TEXT, messages.ReadText(data, first))

    def draw_values(self, request: DrawValues, attachments: Sequence[bytes]) -> list[DrawnArea]:
        """``attachments`` are in the request's order, empty where they are no pictures."""
        with self._previews.turn(), for_caller("draw_values"):
            return self._pool.run(
                messages.DRAW_VALUES,
                messages.DrawAreas(request, attachments),
                seconds=PREVIEW_SECONDS,
                wait=PREVIEW_WAIT,
            )

    def prepare_image(self, data: bytes, field_type: FieldType) -> bytes:
        return self._hostile(messages.PREPARE_IMAGE, messages.PrepareImage(data, field_type)).data

    def draw_signature(self, text: str, style: int = 1) -> bytes:
        return self._hostile(messages.DRAW_SIGNATURE, messages.TypedSignature(text, style)).data

    def draw_signature_styles(self, text: str) -> list[str]:
        """The typed signature in each style, small, in base64."""
        return self._hostile(messages.DRAW_SIGNATURE_STYLES, text)

    def check_text(self, texts: Sequence[str]) -> list[str]:
        """For each text the characters that no font has."""
        return self._hostile(messages.CHECK_TEXT, list(texts))

    def check_values(self, request: CheckValues) -> dict[str, str]:
        """Return why which value cannot be drawn, by field uuid."""
        return self._hostile(messages.CHECK_VALUES, request)

    def _sealing(self, task: Task[Q, A], request: Q) -> A:
        return self._pool.run(task, request, seconds=SEAL_SECONDS, wait=_SEAL_WAIT)

    def _hostile(self, task: Task[Q, A], request: Q) -> A:
        with for_caller(task.name):
            return self._pool.run(task, request, seconds=HOSTILE_SECONDS, wait=HOSTILE_WAIT, caller=caller.current())


class Previews:
    """Previews leave a child to everything else, where there is more than one: documents that come in never wait for what is
    only looked at. (Seal jobs have children of their own, those of the background process.)"""

    def __init__(self, children: int) -> None:
        self._free = threading.BoundedSemaphore(max(1, children - 1))

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Raises ServiceError("unavailable") when none comes soon."""
        if not self._free.acquire(timeout=PREVIEW_WAIT):
            raise ServiceError("unavailable", "Too many values are being drawn. Try again.")
        try:
            yield
        finally:
            self._free.release()


@contextmanager
def for_caller(task: str) -> Iterator[None]:
    """Translate what went wrong in a child into an answer to the one who sent the file."""
    try:
        yield
    except JobRefused as refused:
        field = refused.field if refused.file is None else f"files[{refused.file - 1}]"
        raise invalid(refused.reason, field) from refused
    except JobTimedOut as late:
        log.warning("job.killed", task=task, reason=late.reason, starved=late.starved)
        if late.starved:
            raise ServiceError(
                "unavailable", "Documents take long to process at the moment. Try again later."
            ) from late
        raise invalid("The file takes too long to process.") from late
    except JobNotPossible as failed:
        log.error("job.not_possible", task=task, reason=failed.reason)  # noqa: TRY400 - the child's trace is no news
        raise ServiceError("unavailable", "Documents cannot be processed at the moment. Try again later.") from failed
    except JobCrashed as crashed:
        log.warning("job.killed", task=task, reason=crashed.reason, trace=crashed.trace)
        raise invalid("The file cannot be processed: it needs too much memory or is damaged.") from crashed
    except JobFailed as failed:
        log.error("job.failed", task=task, reason=failed.reason, trace=failed.trace)  # noqa: TRY400 - the child's trace
        raise invalid("The file cannot be processed.") from failed
    except Busy as busy:
        whose = "Too many of your documents" if busy.over_share else "Too many documents"
        raise ServiceError("unavailable", f"{whose} are being processed. Try again.") from busy


def seal_name(identity: SealIdentity) -> str:
    """The issuer of the sealing certificate, as the audit trail names it."""
    names = identity.chain[0].issuer.rdns
    values = {attribute.oid.dotted_string: str(attribute.value) for rdn in names for attribute in rdn}
    return values.get("2.5.4.3") or identity.chain[0].issuer.rfc4514_string()
