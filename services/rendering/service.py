"""Entrypoints: contract in, one call, contract out. Children work on the files, this process fetches and stores them."""

import hashlib
import json
import ssl
from collections.abc import Sequence
from datetime import date, timedelta
from functools import cached_property
from typing import Any

from cryptography.hazmat.primitives import hashes

from contracts.blobs import INCOMING, BlobRef
from contracts.envelope import Envelope
from contracts.errors import ServiceError, invalid, not_found
from contracts.events import (
    ARCHIVING_DUE,
    CERTSIGN_RETRIED,
    CONFIRMATION_DUE,
    CONFIRMATION_LEFT,
    CONFIRMATION_RETRIED,
    DUTYSTAMP_RETRIED,
    ERASURE_ASKED,
    ERASURE_RECEIPT_DUE,
    SEALING_DUE,
    STATEMENT_DUE,
    SUBMISSION_ERASED,
    ArchivingDue,
    Erased,
    ErasureReceiptDue,
    StatementDue,
)
from contracts.providers import (
    CertsignRetried,
    ConfirmationLeft,
    ConfirmationRetried,
    ConfirmationView,
    DutystampRetried,
    LedgerEntry,
)
from contracts.rpc import health
from contracts.rpc import rendering as rpc
from contracts.runtime.bus.told import tells_events
from contracts.runtime.clock import now
from contracts.runtime.http.outbound import OutboundFailed, OutboundRefused
from contracts.runtime.monitoring import observe
from contracts.runtime.operations.operating import operated
from contracts.runtime.worker import Context, handles, subscribes
from contracts.stored_documents import StoredDocument
from contracts.types import Notice, Page
from services.rendering import commands, queries, results
from services.rendering.children import confinement
from services.rendering.children.renderer import Renderer, for_caller
from services.rendering.protocol.messages import Combined, Prepared, TextRead
from services.rendering.providers.failures import ProviderFailed
from services.rendering.providers.opening import Providers as CertificateProviders
from services.rendering.results import FreshResult, Results
from services.rendering.rules import domain, stamps
from services.rendering.sealing.evidence import Evidence
from services.rendering.sealing.remote.certsign_check import CertsignChecks
from services.rendering.sealing.remote.confirm_work import Confirmations
from services.rendering.settings import Settings
from services.rendering.signatures.anchors import in_der
from services.rendering.signatures.time_stamping import Assurance, CertificateRevoked, TimeStampFailed
from services.rendering.signatures.workshop import Workshop
from services.rendering.stamping import accounts, serials
from services.rendering.stamping.providing import Providers
from services.rendering.storage import confirmations, erasures

log = observe.logger(__name__)

PDF, PNG, JPEG, WEBP = "application/pdf", "image/png", "image/jpeg", "image/webp"
JSON = "application/json"
PREFIX = "rendering/"
MOST_WIDTH = 4_000

_ASSET_BYTES, _ASSETS_AT_MOST = 10 * 2**20, 25 * 2**20
_ASSET_SECONDS = 5.0
_ROUNDS_OF_ASSETS = 3
PICTURES_AT_ONCE = 40 * 2**20
"""Bytes of the files that are drawn in one preview; what is more is asked for again."""
_RESULT_TIMES_UPLOAD = 8
"""A merged or sealed file may be larger than what may be uploaded, within reason."""


class RenderingContext(Context[Settings]):
    @cached_property
    def workshop(self) -> Workshop:
        return Workshop(self.settings)

    @cached_property
    def results(self) -> Results:
        return Results(self.database, self.blobs, timedelta(days=self.settings.rendering_results_kept_days))

    @cached_property
    def certsign_checks(self) -> CertsignChecks:
        providers = CertificateProviders(self.workshop.outbound)
        secret = self.settings.link_secret.get_secret_value()
        return CertsignChecks(self.database, self.workshop.open(), providers.open, secret)

    @cached_property
    def confirmations(self) -> Confirmations:
        return Confirmations(self.database, self.settings.link_secret.get_secret_value())

    def prepare(self) -> None:
        """Checking the key takes a tenth of a second, a child's imports a whole one."""
        self.workshop.open()

    @cached_property
    def stamp_providers(self) -> Providers:
        return Providers(self.settings, self.workshop.outbound)

    @property
    def renderer(self) -> Renderer:
        return self.workshop.open().renderer


@operated
@tells_events
class RenderingService:
    name = "rendering"
    context = RenderingContext(Settings)

    # --- documents that come in

    @handles(rpc.PREPARE_PDF)
    def prepare_pdf(self, request: rpc.PreparePdf) -> rpc.PreparedDocument:
        data = self._fetch(request.file)
        prepared = self.context.renderer.prepare_pdf(
            data, request.name, remove_tags=request.remove_tags, flatten=request.flatten
        )
        return self._stored(prepared, request.file)

    @handles(rpc.PREPARE_DOCX)
    def prepare_docx(self, request: rpc.PrepareDocx) -> rpc.PreparedDocument:
        data = self._fetch(request.file)
        prepared = self.context.renderer.prepare_docx(
            data, request.name, request.variables, remove_tags=request.remove_tags
        )
        return self._stored(prepared, request.file)

    @handles(rpc.PREPARE_HTML)
    def prepare_html(self, request: rpc.PrepareHtml) -> rpc.PreparedDocument:
        """Lay out HTML. That is slow, so what needs nothing from outside is kept: each caller gets copies of its own."""
        texts = [text for text in (request.html, request.html_header, request.html_footer) if text]
        assets, missing = self._assets(texts)
        if assets or missing:
            prepared = self._laid_out(request, assets)
            original = self.context.blobs.put(prepared.converted or prepared.file, PDF, INCOMING)
            stored = self._stored(prepared, original)
            return stored.model_copy(update={"report": [*missing, *stored.report]})

        def make() -> FreshResult:
            prepared = self._laid_out(request, {})
            original = self.context.blobs.put(prepared.converted or prepared.file, PDF, PREFIX)
            stored = self._stored(prepared, original)
            files = (stored.file, stored.original)
            sources = [file.sha256 for file in files]
            return FreshResult(stored.model_dump(mode="json"), sorted({file.key for file in files}), sources)

        dated = any("date" in text for text in (request.html_header, request.html_footer) if text)
        digest = domain.digest_of(request.model_dump(mode="json"), *([_today().isoformat()] if dated else []))
        document = rpc.PreparedDocument.model_validate(self.context.results.get(queries.LAID_OUT, digest, make))
        return document.model_copy(
            update={"file": self._copy(document.file), "original": self._copy(document.original)}
        )

    @handles(rpc.DETECT_FIELDS)
    def detect_fields(self, request: rpc.DetectFields) -> rpc.DetectedFields:
        """Propose fields. The same file gives the same ones, so they can be kept: pictures of all pages ask for them."""

        def detected() -> rpc.DetectedFields:
            proposed = self.context.renderer.detect_fields(self._fetch(request.file), request.taken)
            return rpc.DetectedFields(fields=proposed.fields, report=proposed.report)

        if not request.keep:
            return detected()
        occupied = [area.model_dump(mode="json", exclude={"attachment_uuid", "option"}) for area in request.taken]
        digest = domain.digest_of({"file": request.file.sha256, "taken": occupied, "rules": domain.DETECTION_RULES})
        stored = self.context.results.get(
            "fields",
            digest,
            lambda: FreshResult(detected().model_dump(mode="json")),
            sources=[request.file.sha256],
        )
        return rpc.DetectedFields.model_validate(stored)

    # --- pictures and text

    @handles(rpc.DRAW_PAGE)
    def draw_page(self, request: rpc.DrawPage) -> BlobRef:
        width = max(1, min(request.width, MOST_WIDTH))
        boxes = [box for box in request.boxes if box.page == request.page]

        def drawn(prefix: str) -> BlobRef:
            picture = self.context.renderer.draw_page(
                self._fetch(request.file), request.page, width, boxes, request.footer, light=request.format == "light"
            )
            return self.context.blobs.put(picture, _picture_type(picture), prefix)

        if not request.keep:
            return drawn(INCOMING)
        digest = f"{request.file.sha256}:{request.page}:{width}"
        if boxes or request.footer:
            footer = {"footer": request.footer.model_dump()} if request.footer else {}
            digest = domain.digest_of({"page": digest, "boxes": [box.model_dump() for box in boxes], **footer})
        kind = "page" if request.format == "png" else "light_page"
        sources = [request.file.sha256]
        return BlobRef.model_validate(
            self.context.results.get(kind, digest, lambda: _one_file(drawn(PREFIX)), sources=sources)
        )

    @handles(rpc.DRAW_THUMBNAIL)
    def draw_thumbnail(self, request: rpc.DrawThumbnail) -> BlobRef:
        def drawn() -> FreshResult:
            picture = self.context.renderer.draw_thumbnail(self._fetch(request.file))
            return _one_file(self.context.blobs.put(picture, PNG, PREFIX))

        sha256 = request.file.sha256
        return BlobRef.model_validate(self.context.results.get("thumbnail", sha256, drawn, sources=[sha256]))

    @handles(rpc.READ_TEXT)
    def read_text(self, request: rpc.ReadText) -> BlobRef:
        def read() -> FreshResult:
            text = self.context.renderer.read_text(self._fetch(request.file), request.first)
            return _one_file(self.context.blobs.put(_text_json(text), JSON, PREFIX))

        digest = f"{request.file.sha256}:{request.first}"
        stored = self.context.results.get("text", digest, read, sources=[request.file.sha256])
        return BlobRef.model_validate(stored)

    @handles(rpc.DRAW_VALUES)
    def draw_values(self, request: rpc.DrawValues) -> rpc.DrawnValues:
        """Nothing of it is kept: it is what somebody is just typing."""
        sizes = {attachment.uuid: attachment.file.size for attachment in request.attachments}
        pictures = {
            value.field.uuid: {uuid: sizes[uuid] for uuid in domain.pictures_of(value) if uuid in sizes}
            for value in request.values
        }
        needed = [pictures.get(area.field_uuid, {}) for area in request.areas]
        areas = request.areas[: domain.affordable(needed, PICTURES_AT_ONCE)]
        fetched = {uuid for files in needed[: len(areas)] for uuid in files}
        files = [
            self._fetch(attachment.file) if attachment.uuid in fetched else b"" for attachment in request.attachments
        ]
        visible = request.model_copy(update={"areas": areas})
        return rpc.DrawnValues(areas=self.context.renderer.draw_values(visible, files))

    @handles(rpc.PREPARE_IMAGE)
    def prepare_image(self, request: rpc.PrepareImage) -> BlobRef:
        picture = self.context.renderer.prepare_image(self._fetch(request.file), request.type)
        return self.context.blobs.put(picture, _picture_type(picture), _beside(request.file))

    @handles(rpc.DRAW_SIGNATURE)
    def draw_signature(self, request: rpc.DrawSignature) -> BlobRef:
        picture = self.context.renderer.draw_signature(request.text, request.style)
        return self.context.blobs.put(picture, PNG, INCOMING)

    @handles(rpc.DRAW_SIGNATURE_STYLES)
    def draw_signature_styles(self, request: rpc.DrawSignatureStyles) -> rpc.SignatureStyles:
        return rpc.SignatureStyles(pictures=self.context.renderer.draw_signature_styles(request.text))

    @handles(rpc.CHECK_TEXT)
    def check_text(self, request: rpc.CheckText) -> rpc.UndrawableText:
        return rpc.UndrawableText(characters=self.context.renderer.check_text(request.texts))

    @handles(rpc.CHECK_VALUES)
    def check_values(self, request: rpc.CheckValues) -> rpc.CheckedValues:
        return rpc.CheckedValues(faults=self.context.renderer.check_values(request))

    @handles(rpc.CHECK_STAMP_POSITIONS)
    def check_stamp_positions(self, request: rpc.CheckStampPositions) -> rpc.CheckedStampPositions:
        size = (request.width, request.height)
        problems = stamps.problems(request.documents, request.fields, request.targets, request.positions, size)
        return rpc.CheckedStampPositions(problems=problems)

    @handles(rpc.DESCRIBE_DUTYSTAMP)
    def describe_dutystamp(self, request: rpc.DescribeDutystamp) -> rpc.DutystampDescription:
        return self.context.stamp_providers.description(request.settings, fresh=request.fresh)

    @handles(rpc.STAMP_LEDGER)
    def stamp_ledger(self, request: rpc.ListStamps) -> Page[LedgerEntry]:
        return self.context.database.read(serials.ledger, request)

    # --- drafts and tools

    @handles(rpc.FILL_DRAFTS)
    def fill_drafts(self, request: rpc.FillRequest) -> rpc.Drafts:
        attachments = self._drawn_attachments(request)
        return rpc.Drafts(documents=[self._draft(request, document, attachments) for document in request.documents])

    @handles(rpc.FILL_COPY)
    def fill_copy(self, request: rpc.FillCopy) -> BlobRef:
        """A document that came signed is given as it came: a mark on it would break what others have signed."""
        document = next((candidate for candidate in request.documents if candidate.uuid == request.document), None)
        if document is None:
            raise not_found("Document")
        data = self._fetch(document.file)
        if not document.signed:
            data = self.context.renderer.fill_draft(request, document.uuid, data, self._drawn_attachments(request))
        return self.context.blobs.put(data, PDF, INCOMING)

    @handles(rpc.COMBINE)
    def combine(self, request: rpc.Combine) -> rpc.Combined:
        if not request.files:
            raise invalid("files must not be empty", "files")
        files = [self._fetch(file) for file in request.files]
        if not request.seal:
            merged = self.context.renderer.combine(files, request.name)
            file = self.context.blobs.put(merged.data, PDF, _beside(request.files[0]))
            parts = {part.sha256 for part in request.files}
            if self.context.database.read(queries.laid_out, parts):
                self.context.database.write(commands.pass_on_sources, parts, file.sha256)
            return rpc.Combined(file=file, warnings=merged.warnings)
        merged = self._sealed_merge(files, request.name, test=request.test)
        file = self.context.blobs.put(merged.data, PDF, PREFIX)
        self.context.database.write(commands.remember_sealed, [file.sha256], None, now())
        return rpc.Combined(file=file, warnings=merged.warnings)

    @handles(rpc.SIGN_EVIDENCE)
    def sign_evidence(self, request: rpc.SignEvidence) -> rpc.SignedEvidence:
        context = self.context
        identity = context.workshop.open().identity
        return Evidence(context.database, context.blobs, context.renderer, identity).signed(request)

    @handles(rpc.VERIFY)
    def verify(self, request: rpc.Verify) -> rpc.Verification:
        return self._verified(request)

    @handles(rpc.RECOGNISE)
    def recognise(self, request: rpc.Verify) -> rpc.Recognised:
        verification = self._verified(request)
        leaf = self.context.workshop.open().identity.chain[0].fingerprint(hashes.SHA256()).hex()
        sealed_file = self.context.database.read(queries.sealed_file, request.file.sha256)
        return rpc.Recognised(
            verification=verification,
            own_seals=[
                signature.field for signature in verification.signatures if signature.certificate_sha256 == leaf
            ],
            sealed_at=sealed_file.created_at if sealed_file else None,
            submission_id=sealed_file.submission_id if sealed_file else None,
        )

    @handles(rpc.ROOT)
    def root(self, _request: rpc.GetRoot) -> rpc.Root:
        identity = self.context.workshop.open().identity
        root, encoded = identity.chain[-1], identity.encoded[-1]
        digest = hashlib.sha256(encoded).hexdigest()
        return rpc.Root(pem=ssl.DER_cert_to_PEM_cert(encoded), subject=root.subject.rfc4514_string(), sha256=digest)

    @handles(rpc.CHECK_CERTSIGN)
    def check_certsign(self, request: rpc.CheckCertsign) -> rpc.CertsignCheck:
        return self.context.certsign_checks.check(request)

    @handles(rpc.CONFIRMATION)
    def confirmation(self, request: rpc.FindConfirmation) -> ConfirmationView:
        return self.context.confirmations.view(request)

    @handles(rpc.ANSWER_CONFIRMATION)
    def answer_confirmation(self, request: rpc.AnswerConfirmation) -> ConfirmationView:
        return self.context.confirmations.answer(request)

    @handles(health.PING["rendering"])
    def ping(self, request: health.Ping) -> health.Pong:
        pong = self.context.pong()
        problem = self.context.workshop.open().identity.problem(now())
        problems = [*pong.problems, *([problem] if problem else [])]
        return health.Pong(ready=not problems, problems=problems, notes=confinement.lacking())

    # --- events

    @subscribes(SEALING_DUE)
    def on_sealing_due(self, envelope: Envelope, data: rpc.SealRequest) -> None:
        self.context.database.take_on(commands.accept_job, envelope, data, now())

    @subscribes(STATEMENT_DUE)
    def on_statement_due(self, envelope: Envelope, data: StatementDue) -> None:
        self.context.database.take_on(commands.accept_statement, envelope, data, now())

    @subscribes(CERTSIGN_RETRIED)
    def on_certsign_retried(self, envelope: Envelope, data: CertsignRetried) -> None:
        self.context.database.take_on(commands.retry_certsign, envelope, data, now())

    @subscribes(ARCHIVING_DUE)
    def on_archiving_due(self, envelope: Envelope, data: ArchivingDue) -> None:
        self.context.database.take_on(commands.accept_archiving, envelope, data, now())

    @subscribes(CONFIRMATION_DUE)
    def on_confirmation_due(self, envelope: Envelope, data: rpc.ConfirmationOrder) -> None:
        self.context.database.take_on(commands.accept_confirmation, envelope, data, now())

    @subscribes(CONFIRMATION_RETRIED)
    def on_confirmation_retried(self, envelope: Envelope, data: ConfirmationRetried) -> None:
        self.context.database.take_on(confirmations.ask_again, envelope, data, now())

    @subscribes(CONFIRMATION_LEFT)
    def on_confirmation_left(self, envelope: Envelope, data: ConfirmationLeft) -> None:
        self.context.database.take_on(confirmations.leave, envelope, data, now())

    @subscribes(DUTYSTAMP_RETRIED)
    def on_dutystamp_retried(self, envelope: Envelope, data: DutystampRetried) -> None:
        account = None
        try:
            account = accounts.opened(data.order.settings, self.context.settings.link_secret.get_secret_value())
        except ProviderFailed as failed:
            log.error("dutystamp.settings_unreadable", submission=data.submission_id, reason=failed.message)  # noqa: TRY400
        self.context.database.take_on(commands.retry_dutystamp, envelope, data, account, now())

    @subscribes(SUBMISSION_ERASED)
    def on_submission_erased(self, envelope: Envelope, data: Erased) -> None:
        self._erase(envelope, data)

    @subscribes(ERASURE_ASKED)
    def on_erasure_asked(self, envelope: Envelope, data: Erased) -> None:
        self._erase(envelope, data)

    def _erase(self, envelope: Envelope, data: Erased) -> None:
        self.context.database.write(commands.erase, envelope, data, now())
        results.clear(self.context.database, self.context.blobs)
        results.tell_erasures(self.context.database)

    @subscribes(ERASURE_RECEIPT_DUE)
    def on_erasure_receipt_due(self, envelope: Envelope, data: ErasureReceiptDue) -> None:
        self.context.database.take_on(erasures.accept_receipt, envelope, data, now())

    # --- files

    def _fetch(self, file: BlobRef) -> bytes:
        """The bytes, whose SHA-256 is that of ``file``: the store checks it."""
        most = self.context.settings.rendering_file_mb * _RESULT_TIMES_UPLOAD
        if file.size > most * 2**20:
            raise ServiceError("too_large", f"The file is larger than {most} MB.")
        return self.context.blobs.get(file)

    def _copy(self, file: BlobRef) -> BlobRef:
        return self.context.blobs.put(self.context.blobs.get(file), file.media_type, INCOMING)

    def _stored(self, prepared: Prepared, original: BlobRef) -> rpc.PreparedDocument:
        """The normalised file goes beside the original, unless it is the same."""
        file = original if prepared.signed else self.context.blobs.put(prepared.file, PDF, _beside(original))
        return rpc.PreparedDocument(
            file=file,
            original=original,
            pages=prepared.pages,
            fields=prepared.fields,
            signed=prepared.signed,
            report=prepared.report,
            variables=prepared.variables,
        )

    # --- parts of the calls

    def _verified(self, request: rpc.Verify) -> rpc.Verification:
        data = self._fetch(request.file)
        sealed_here = self.context.database.read(queries.sealed_here, request.file.sha256)
        return self.context.renderer.verify(data, self._trusted(request), now(), sealed_here=sealed_here)

    def _trusted(self, request: rpc.Verify) -> list[bytes]:
        """Return what signatures may end in: ours, and those that providers' may here and in the account."""
        workshop = self.context.workshop
        of_account: list[bytes] = []
        for text in request.trust_anchors:
            try:
                of_account += in_der([text])
            except ValueError as error:
                log.warning("verify.anchor_unusable", reason=str(error))
        return list(dict.fromkeys([*workshop.anchors, *workshop.provider_anchors, *of_account]))

    def _laid_out(self, request: rpc.PrepareHtml, assets: dict[str, bytes]) -> Prepared:
        return self.context.renderer.prepare_html(
            request.html, request.html_header, request.html_footer, request.size, request.name, assets, today=_today()
        )

    def _assets(self, texts: Sequence[str]) -> tuple[dict[str, bytes], list[Notice]]:
        """The files that HTML loads, fetched through the guarded way out; style sheets may ask for more. What cannot be
        had is left out, and a notice says so."""
        assets: dict[str, bytes] = {}
        failed: dict[str, str] = {}
        for _ in range(_ROUNDS_OF_ASSETS):
            urls = [url for url in self.context.renderer.external_urls(texts, assets) if url not in failed]
            for url in urls:
                room = min(_ASSET_BYTES, _ASSETS_AT_MOST - sum(map(len, assets.values())))
                try:
                    outbound = self.context.workshop.outbound
                    assets[url] = outbound.fetch(url, max_bytes=room, timeout=_ASSET_SECONDS).data
                except (OutboundRefused, OutboundFailed) as error:
                    failed[url] = error.reason
            if not urls:
                break
        notices = [
            Notice(code="resource_missing", message=f"{url[:200]} was not loaded: {reason}.")
            for url, reason in failed.items()
        ]
        return assets, notices

    def _drawn_attachments(self, request: rpc.FillRequest) -> list[bytes]:
        """The files that are drawn, in the request's order; those that are not are empty."""
        drawn = {uuid for value in request.values for uuid in domain.pictures_of(value)}
        return [self._fetch(attachment.file) if attachment.uuid in drawn else b"" for attachment in request.attachments]

    def _draft(
        self, request: rpc.FillRequest, document: StoredDocument, attachments: Sequence[bytes]
    ) -> rpc.DraftDocument:
        """A document that came signed may only be added to by a seal: until then it is shown as it is. Drafts are removed when
        they are out of date, so it is a copy."""
        data = self._fetch(document.file)
        if not document.signed:
            data = self.context.renderer.fill_draft(request, document.uuid, data, attachments)
        file = self.context.blobs.put(data, PDF, f"submissions/{request.submission_id}/")
        return rpc.DraftDocument(uuid=document.uuid, name=document.name, file=file)

    def _sealed_merge(self, files: Sequence[bytes], name: str, *, test: bool) -> Combined:
        """Somebody waits for it, so a failing authority is not waited for: then the seal is without time-stamp, and a
        warning says so. For a ``test`` none is bought."""
        sealer = self.context.workshop.open().sealer
        if (problem := sealer.identity.problem(now())) is not None:
            raise ServiceError("unavailable", f"Nothing can be sealed now: {problem}")
        try:
            return self._seal_merged(files, name, sealer.assurance(now(), with_time_stamp=not test))
        except TimeStampFailed as error:
            merged = self._seal_merged(files, name, sealer.assurance(now(), with_time_stamp=False))
            return Combined(merged.data, [*merged.warnings, f"No time-stamp could be obtained ({error})."])
        except CertificateRevoked as error:
            raise ServiceError("unavailable", f"Nothing can be sealed now: {error}") from error

    def _seal_merged(self, files: Sequence[bytes], name: str, assurance: Assurance) -> Combined:
        sealer = self.context.workshop.sealer
        merged = self.context.renderer.combine_and_reserve(files, name, sealer.place(assurance, now()))
        data = sealer.sign(merged.reserved, assurance)
        with for_caller("check_seal"):
            sealer.check(data, pages=merged.pages)
        return Combined(data, [*merged.warnings, *(notice.message for notice in assurance.notices)])


def _text_json(text: TextRead) -> bytes:
    """As ``rpc.ReadText`` describes it: short, because what is 0, false or empty is left out."""
    pages = [
        {
            **_present_attributes(page, "number", "kind", "words", "hidden", "recognised", "pictures"),
            "blocks": [
                {
                    **_present_attributes(block, "kind", "group", "row"),
                    "lines": [_present_attributes(line, "angle", "vertical", "wide", "words") for line in block.lines],
                }
                for block in page.blocks
            ],
        }
        for page in text.pages
    ]
    answer = {"language": text.language, "pages": pages}
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _present_attributes(entry: object, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(entry, name))}


def _one_file(file: BlobRef) -> FreshResult:
    return FreshResult(file.model_dump(), [file.key])


def _picture_type(data: bytes) -> str:
    if data.startswith(b"RIFF"):
        return WEBP
    return PNG if data.startswith(b"\x89PNG") else JPEG


def _beside(file: BlobRef) -> str:
    """The prefix of a file's key: what is made from it belongs to the same owner."""
    folder = file.key.rpartition("/")[0]
    return f"{folder}/" if folder else PREFIX


def _today() -> date:
    return now().date()
