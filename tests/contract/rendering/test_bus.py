"""The rendering service as it runs: over a real broker, with real children; killed in the middle of its work."""

import io
import itertools
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pika
import pikepdf
import pytest
import sqlalchemy as sa
from PIL import Image

from contracts.blobs import BlobRef
from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.events import (
    DOCUMENTS_FAILED,
    DOCUMENTS_SEALED,
    SEALING_DUE,
    SUBMISSION_ERASED,
    DocumentsSealed,
    Erased,
)
from contracts.fields.boxes import FieldBox
from contracts.providers import StampPosition
from contracts.rpc import health, rendering
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.bus.topology import event_exchange
from contracts.runtime.clock import uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.restored.high_water import MARKS
from contracts.types import Area, FieldType
from deploy.providers.faults import Fault
from deploy.rabbitmq import PrivateBroker
from services.rendering.models import CertsignJob, Result, SealJob
from tests.chaos.lost_answers import by_csc
from tests.contract.conftest import on
from tests.support.files.pdf_files import document, encrypted, flate_bomb, line, signed
from tests.support.files.plain_forms import WORDINGS, drawn_agreement, expected
from tests.support.rendering import drawing
from tests.support.rendering.providers.certificates_at_providers import root_of
from tests.support.rendering.providers.provider_suite import what_was_signed
from tests.support.rendering.providers.stamps import SERIAL, provider, stamped
from tests.support.rendering.sealing import assert_sealed, contract_pdf, pdf_text, seal_request
from tests.support.servers.postgres import PrivatePostgres
from tests.support.servers.providers import csc_provider
from tests.support.services import processes
from tests.support.services.suite import wait_until


class Running:
    """rendering with its own database; what it says on the bus ends in ``told``."""

    def __init__(self, stack: ExitStack, amqp_url: str, database_url: str, folder: Path) -> None:
        self.folder, self.database_url = folder, database_url
        self.blobs = BlobStore.from_url(f"file://{folder}/blobs")
        self.settings = processes.environment(
            "rendering", amqp_url, database_url, folder, SIGNING_KEY_TYPE="ec-p256", POLL_SECONDS="0.2"
        )
        self._stack = stack
        processes.migrate("rendering", self.settings)
        self._connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
        stack.callback(self._connection.close)
        self.channel: Any = self._connection.channel()
        self.channel.exchange_declare(event_exchange("rendering"), "topic", durable=True)
        self.queue = self.channel.queue_declare("", exclusive=True).method.queue
        self.channel.queue_bind(self.queue, event_exchange("rendering"), "documents.*")
        self.serve = self.start("serve")
        self.background = self.start("background")
        self.client = RpcClient(amqp_url)
        stack.callback(self.client.close)
        self.told: list[Envelope] = []
        wait_until(self.ready, what="rendering answers")

    def start(self, command: str, **more: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self.folder / f"{command}.log").open("ab"))
        process = processes.start("rendering", command, {**self.settings, **more}, log)
        self._stack.callback(end, process)
        return process

    def ready(self) -> bool:
        try:
            return self.client.call(health.PING["rendering"], health.Ping()).ready
        except ServiceError:
            return False

    def upload(self, data: bytes, media_type: str = "application/pdf") -> BlobRef:
        return self.blobs.put(data, media_type, "incoming/")

    def prepare(self, data: bytes, **more: Any) -> rendering.PreparedDocument:
        request = rendering.PreparePdf(name="contract", file=self.upload(data), **more)
        return self.client.call(rendering.PREPARE_PDF, request)

    def order(self, request: rendering.SealRequest, times: int = 1) -> None:
        """As submissions' relay says it; ``times`` as one that died before it could note that it had."""
        envelope = Envelope(
            id=uuid7(),
            type=SEALING_DUE.type,
            source="submissions",
            subject=f"submission:{request.submission_id}",
            occurred_at=datetime.now(UTC),
            data=request.model_dump(mode="json"),
        )
        for _ in range(times):
            self.channel.basic_publish(
                event_exchange("submissions"), SEALING_DUE.type, envelope.model_dump_json().encode()
            )

    def erase(self, submission_id: int, *documents: str) -> None:
        """As submissions' relay says it."""
        envelope = Envelope(
            id=uuid7(),
            type=SUBMISSION_ERASED.type,
            source="submissions",
            subject=f"submission:{submission_id}",
            occurred_at=datetime.now(UTC),
            data=Erased(submission_id=submission_id, documents=list(documents)).model_dump(mode="json"),
        )
        body = envelope.model_dump_json().encode()
        self.channel.basic_publish(event_exchange("submissions"), SUBMISSION_ERASED.type, body)

    def heard(self) -> list[Envelope]:
        """What was told, each event once: a relay that dies before it could note that it told one tells it again."""
        while True:
            method, _properties, body = self.channel.basic_get(self.queue, auto_ack=True)
            if method is None:
                return self.told
            envelope = Envelope.model_validate_json(body)
            if envelope.id not in {one.id for one in self.told}:
                self.told.append(envelope)

    def about(self, seal_id: str) -> list[Envelope]:
        return [one for one in self.heard() if one.data["seal_id"] == seal_id]

    def sealed(self, seal_id: str) -> DocumentsSealed:
        wait_until(lambda: self.about(seal_id), what=f"the outcome of {seal_id}")
        (event,) = self.about(seal_id)
        assert event.type == DOCUMENTS_SEALED.type, event.data
        return DocumentsSealed.model_validate(event.data)

    def jobs(self) -> list[tuple[str, str]]:
        database = Database(self.database_url)
        try:
            rows = sa.select(SealJob.seal_id, SealJob.state).order_by(SealJob.id)
            return [(row[0], row[1]) for row in database.read(lambda session: session.execute(rows).all())]
        finally:
            database.dispose()

    def results(self) -> int:
        """How many answers are kept to be given again."""
        database = Database(self.database_url)
        try:
            return int(
                database.read(lambda session: session.scalar(sa.select(sa.func.count()).select_from(Result))) or 0
            )
        finally:
            database.dispose()

    def keys(self) -> set[str]:
        """All files that there are, without the store's marks: those are written at any time."""
        root = self.folder / "blobs"
        return {str(path) for path in root.rglob("*") if path.is_file() and not path.is_relative_to(root / MARKS)}

    def sealed_files(self, submission: int) -> list[str]:
        folder = self.folder / "blobs" / "submissions" / str(submission)
        return sorted(path.name for path in folder.iterdir() if path.name.startswith("seal-"))


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def service(
    request: pytest.FixtureRequest, broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("rendering")
    url = f"sqlite:///{folder}/rendering.sqlite"
    if request.param == "postgresql":
        cluster: PrivatePostgres = request.getfixturevalue("postgres")
        url = cluster.new_database()
    with ExitStack() as stack:
        yield Running(stack, broker.amqp_url, url, folder)


# --- calls ------------------------------------------------------------------------------------------------------------------


@on("sqlite", "service")
def test_a_document_is_made_ready(service: Running) -> None:
    prepared = service.prepare(document(line("Name: {{Name;role=Tenant}} please")))
    assert [(field.name, field.role) for field in prepared.fields] == [("Name", "Tenant")]
    assert prepared.file != prepared.original
    assert prepared.file.key.startswith("incoming/")
    assert len(prepared.pages) == 1


@on("sqlite", "service")
def test_a_signed_document_is_left_as_it_is(service: Running) -> None:
    prepared = service.prepare(signed(document(line("Theirs"))))
    assert prepared.signed
    assert prepared.file == prepared.original


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "The file is empty."),
        (b"<html>hello</html>", "The file is not a PDF"),
        (encrypted(document(line("x")), user="sesame"), "password-protected"),
        (signed(document(line("x")), certified=1), "its author allows no changes at all"),
        (flate_bomb(), "expands to more than"),
    ],
    ids=["empty", "html", "password", "certified", "bomb"],
)
@on("sqlite", "service")
def test_what_is_refused_is_refused_in_a_sentence(service: Running, data: bytes, why: str) -> None:
    with pytest.raises(ServiceError, match=why) as caught:
        service.prepare(data)
    assert caught.value.status == 422


@on("sqlite", "service")
def test_html_becomes_a_document(service: Running) -> None:
    html = '<h1>Lease</h1><text-field name="Name" role="Tenant" style="width:100px;height:20px"></text-field>'
    request = rendering.PrepareHtml(name="Lease", html=html, size="A4")
    one, again = (service.client.call(rendering.PREPARE_HTML, request) for _ in range(2))
    assert [field.name for field in one.fields] == ["Name"]
    assert one.file.sha256 == again.file.sha256, "laid out once"
    assert one.file.key != again.file.key, "each owner has their own copy"
    assert service.blobs.get(one.original).startswith(b"%PDF")


@on("sqlite", "service")
def test_fields_of_a_plain_document_are_detected_in_a_child(service: Running) -> None:
    prepared = service.prepare(drawn_agreement(WORDINGS["en"]))
    request = rendering.DetectFields(file=prepared.file)
    before = service.results()
    found = service.client.call(rendering.DETECT_FIELDS, request)
    assert (len(found.fields), found.report) == (len(expected(WORDINGS["en"])), [])
    assert service.results() == before, "what is only asked once is not kept"
    keeping = request.model_copy(update={"keep": True})
    kept = [service.client.call(rendering.DETECT_FIELDS, keeping) for _ in range(2)]
    assert kept == [found, found]
    assert service.results() == before + 1
    taken = [area for field in found.fields[1:] for area in field.areas]
    rest = service.client.call(rendering.DETECT_FIELDS, keeping.model_copy(update={"taken": taken}))
    assert rest.fields == found.fields[:1]


@on("sqlite", "service")
def test_pictures_in_html_come_through_the_guarded_way_out(service: Running) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 10, 10)).save(picture, "PNG")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/logo.png" else 404)
            self.end_headers()
            self.wfile.write(picture.getvalue() if self.path == "/logo.png" else b"")

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        base = f"http://127.0.0.1:{server.server_address[1]}"
        html = f'<img src="{base}/logo.png"><img src="{base}/gone.png"><img src="file:///etc/passwd">'
        prepared = service.client.call(rendering.PREPARE_HTML, rendering.PrepareHtml(name="x", html=html))
    finally:
        server.shutdown()
        server.server_close()
    with pikepdf.open(io.BytesIO(service.blobs.get(prepared.file))) as pdf:
        assert len(list(pdf.pages[0].get_images())) == 1
    assert any("gone.png was not loaded: answered 404" in notice.message for notice in prepared.report)


def test_a_page_is_drawn_once(service: Running) -> None:
    request = rendering.DrawPage(file=service.upload(contract_pdf(2)), page=2, width=300)
    one, again = (service.client.call(rendering.DRAW_PAGE, request) for _ in range(2))
    assert one == again
    with Image.open(io.BytesIO(service.blobs.get(one))) as picture:
        assert picture.width == 300
    with pytest.raises(ServiceError, match="has no page 3"):
        service.client.call(rendering.DRAW_PAGE, request.model_copy(update={"page": 3}))


def test_a_light_picture_is_kept_beside_the_png(service: Running) -> None:
    request = rendering.DrawPage(file=service.upload(contract_pdf(1)), page=1, width=300)
    png = service.client.call(rendering.DRAW_PAGE, request)
    light, again = (
        service.client.call(rendering.DRAW_PAGE, request.model_copy(update={"format": "light"})) for _ in range(2)
    )
    assert (png.media_type, light.media_type, light == again) == ("image/png", "image/webp", True)
    with Image.open(io.BytesIO(service.blobs.get(light))) as picture:
        assert (picture.format, picture.width) == ("WEBP", 300)


def test_a_first_page_in_small_is_drawn_once(service: Running) -> None:
    request = rendering.DrawThumbnail(file=service.upload(contract_pdf(2)))
    one, again = (service.client.call(rendering.DRAW_THUMBNAIL, request) for _ in range(2))
    assert one == again
    assert one.media_type == "image/png"
    with Image.open(io.BytesIO(service.blobs.get(one))) as picture:
        assert (picture.format, picture.mode, picture.width) == ("PNG", "P", 240)
    with pytest.raises(ServiceError) as refused:
        service.client.call(rendering.DRAW_THUMBNAIL, rendering.DrawThumbnail(file=service.upload(b"no PDF at all")))
    assert refused.value.status < 500


def test_text_is_read_once(service: Running) -> None:
    request = rendering.ReadText(file=service.upload(contract_pdf(2)), first=2)
    one, again = (service.client.call(rendering.READ_TEXT, request) for _ in range(2))
    assert one == again
    text = json.loads(service.blobs.get(one))
    (page,) = text["pages"]
    assert (page["number"], page["kind"]) == (2, "text")
    assert all(len(word) == 5 for block in page["blocks"] for line in block["lines"] for word in line["words"])
    with pytest.raises(ServiceError, match="has no page 3"):
        service.client.call(rendering.READ_TEXT, request.model_copy(update={"first": 3}))


def test_nothing_is_kept_of_a_page_with_values_and_of_a_preview(service: Running) -> None:
    file = service.upload(contract_pdf(1))
    kept = service.client.call(rendering.DRAW_PAGE, rendering.DrawPage(file=file, page=1, width=200))
    assert kept.key.startswith("rendering/")
    results, blobs = service.results(), service.keys()
    box = FieldBox(x=0.1, y=0.1, w=0.5, h=0.1, page=1, label="Name")
    for boxes in ([], [box]):
        wanted = rendering.DrawPage(file=file, page=1, width=200, boxes=boxes, keep=False)
        drawn = service.client.call(rendering.DRAW_PAGE, wanted)
        assert drawn.key.startswith("incoming/")
        assert (drawn.sha256 == kept.sha256) == (not boxes)
        service.blobs.delete(drawn.key)
    items = [drawing.field_value("text", "Ana"), drawing.field_value("file", ["f"])]
    # The bytes of a file are not asked for: its name is drawn.
    filled = drawing.request(*items, attachments=[drawing.attachment("f", "Plan.pdf")])
    areas = [rendering.AreaToDraw(field_uuid=one.field.uuid, area=0) for one in items]
    answer = service.client.call(rendering.DRAW_VALUES, rendering.DrawValues(**dict(filled), areas=areas, width=800))
    assert [one.field_uuid for one in answer.areas if one.picture] == [one.field.uuid for one in items]
    assert (service.results(), service.keys()) == (results, blobs)


def test_what_was_made_from_documents_goes_when_it_is_told_that_these_are_erased(service: Running) -> None:
    call, results, blobs = service.client.call, service.results(), service.keys()
    file = service.upload(document(line("Erased")))
    call(rendering.DRAW_PAGE, rendering.DrawPage(file=file, page=1, width=200))
    call(rendering.DRAW_PAGE, rendering.DrawPage(file=file, page=1, width=200, format="light"))
    call(rendering.DRAW_THUMBNAIL, rendering.DrawThumbnail(file=file))
    call(rendering.READ_TEXT, rendering.ReadText(file=file))
    pages = [
        call(rendering.PREPARE_HTML, rendering.PrepareHtml(name=name, html=f"<h1>{name} is erased</h1>", size="A4"))
        for name in ("One", "Two", "Three")
    ]
    merged = call(rendering.COMBINE, rendering.Combine(files=[page.file for page in pages[:2]], name="Merged")).file
    assert service.results() == results + 7
    of_others = service.upload(document(line("Not erased")))
    kept = call(rendering.DRAW_PAGE, rendering.DrawPage(file=of_others, page=1, width=200))
    for sent in (file, of_others, merged, *(each for page in pages for each in {page.file, page.original})):
        service.blobs.delete(sent.key)
    service.erase(77, file.sha256, merged.sha256, pages[2].original.sha256)
    wait_until(lambda: service.results() == results + 1, what="that all of it is forgotten")
    wait_until(lambda: len(service.keys()) == len(blobs) + 1, what="that all files are gone")
    assert service.blobs.exists(kept.key)


@on("sqlite", "service")
def test_pictures_and_signatures(service: Running) -> None:
    drawn = service.client.call(rendering.DRAW_SIGNATURE, rendering.DrawSignature(text="Ana Łącka"))
    assert drawn.media_type == "image/png"
    again = service.client.call(rendering.PREPARE_IMAGE, rendering.PrepareImage(file=drawn, type=FieldType.SIGNATURE))
    assert (again.sha256, again.key == drawn.key) == (drawn.sha256, False), (
        "the same picture, and whoever asked keeps theirs"
    )
    assert service.blobs.get(again) == service.blobs.get(drawn)
    request = rendering.PrepareImage(
        file=service.upload(drawing.signature_png(), "image/png"), type=FieldType.SIGNATURE
    )
    ready = service.client.call(rendering.PREPARE_IMAGE, request)
    assert ready.key.startswith("incoming/")
    blank = io.BytesIO()
    Image.new("RGB", (100, 50), (255, 255, 255)).save(blank, "PNG")
    with pytest.raises(ServiceError, match="signature is empty"):
        service.client.call(
            rendering.PREPARE_IMAGE,
            rendering.PrepareImage(file=service.upload(blank.getvalue(), "image/png"), type=FieldType.SIGNATURE),
        )


@on("sqlite", "service")
def test_characters_without_a_font_are_named(service: Running) -> None:
    answer = service.client.call(rendering.CHECK_TEXT, rendering.CheckText(texts=["ok", "\ue000x"]))
    assert answer.characters == ["", "\ue000"]


@on("sqlite", "service")
def test_where_a_duty_stamp_has_no_room_is_said_before(service: Running) -> None:
    asked = rendering.CheckStampPositions(
        documents=[drawing.stored()],
        targets=["documents"],
        positions=[StampPosition(x=540, y=0), StampPosition(x=541, y=0), StampPosition(document_index=1)],
        width=72,
        height=72,
    )
    assert service.client.call(rendering.CHECK_STAMP_POSITIONS, asked).problems == {
        "positions[1].x": "must be between 0 and 540, so that a stamp of 72 x 72 points is on the page",
        "positions[2].document_index": "must be 0, as there is 1 document",
    }


@on("sqlite", "service")
def test_a_sealed_file_that_was_stamped_is_valid_with_both_signatures(service: Running) -> None:
    files = [service.upload(contract_pdf(2))]
    sealed = service.client.call(rendering.COMBINE, rendering.Combine(files=files, seal=True)).file
    file = service.upload(stamped(service.blobs.get(sealed), (400, 100, 472, 172), 2))
    known = service.client.call(rendering.RECOGNISE, rendering.Verify(file=file))
    assert known.verification == service.client.call(rendering.VERIFY, rendering.Verify(file=file))
    assert known.verification.checksum_status == "valid"
    seal, stamp = known.verification.signatures
    assert (seal.indication, seal.trust, seal.changed_after_signing) == ("TOTAL-PASSED", "trusted", False)
    assert (stamp.integrity, stamp.trust, stamp.covers_whole_document) == ("valid", "untrusted", True)
    anchors = ["no certificate", root_of(provider())]
    known = service.client.call(rendering.RECOGNISE, rendering.Verify(file=file, trust_anchors=anchors))
    assert [one.trust for one in known.verification.signatures] == ["trusted", "trusted"], "as the account says"
    assert stamp.signing_reason == f"[{SERIAL}] Contract"
    assert known.own_seals == [seal.field]


@on("sqlite", "service")
def test_drafts_show_what_is_there(service: Running, tmp_path: Path) -> None:
    request = rendering.FillRequest.model_validate(seal_request(service.blobs, submission_id=99).model_dump())
    one, again = (service.client.call(rendering.FILL_DRAFTS, request) for _ in range(2))
    assert one.documents[0].file.key != again.documents[0].file.key, "each caller's own, to be removed by that caller"
    assert one.documents[0].file.key.startswith("submissions/99/")
    draft = service.blobs.get(one.documents[0].file)
    assert "Ana Kowalska" in pdf_text(draft, tmp_path)
    verdict = service.client.call(rendering.VERIFY, rendering.Verify(file=one.documents[0].file))
    assert verdict.checksum_status == "unsigned"


@on("sqlite", "service")
def test_the_draft_of_a_signed_document_is_a_copy(service: Running) -> None:
    """Drafts are removed when they are out of date; the template's file must not go with them."""
    request = rendering.FillRequest.model_validate(seal_request(service.blobs, submission_id=98).model_dump())
    came = service.prepare(signed(document(line("Theirs"))))
    theirs = request.documents[0].model_copy(update={"file": came.file, "original": came.file, "signed": True})
    request = request.model_copy(update={"documents": [theirs], "values": []})
    (draft,) = service.client.call(rendering.FILL_DRAFTS, request).documents
    assert draft.file.key.startswith("submissions/98/")
    assert service.blobs.get(draft.file) == service.blobs.get(came.file)


@on("sqlite", "service")
def test_merging_with_and_without_a_seal(service: Running, tmp_path: Path) -> None:
    files = [service.upload(contract_pdf(2)), service.upload(signed(document(line("signed"))))]
    plain = service.client.call(rendering.COMBINE, rendering.Combine(files=files))
    assert "1 signature removed" in plain.warnings[0]
    service.blobs.delete(plain.file.key)
    plain = service.client.call(rendering.COMBINE, rendering.Combine(files=files))
    assert service.blobs.exists(plain.file.key), "made anew"
    sealed = service.client.call(rendering.COMBINE, rendering.Combine(files=files, seal=True, name="All of it"))
    assert_sealed(service.blobs.get(sealed.file), tmp_path)
    verdict = service.client.call(rendering.VERIFY, rendering.Verify(file=sealed.file))
    assert (verdict.checksum_status, verdict.sealed_here) == ("valid", True)
    assert verdict.signatures[0].trust == "trusted"
    assert not service.client.call(rendering.VERIFY, rendering.Verify(file=plain.file)).sealed_here


@on("sqlite", "service")
def test_nothing_to_merge(service: Running) -> None:
    with pytest.raises(ServiceError, match="must not be empty"):
        service.client.call(rendering.COMBINE, rendering.Combine(files=[]))
    files = [service.upload(contract_pdf()), service.upload(b"garbage")]
    with pytest.raises(ServiceError, match=r"File 2: malformed PDF\.") as caught:
        service.client.call(rendering.COMBINE, rendering.Combine(files=files))
    assert caught.value.details == [{"field": "files[1]", "reason": "File 2: malformed PDF."}]


@pytest.mark.parametrize("data", [b"", b"no PDF", b"%PDF-1.7 broken"])
@on("sqlite", "service")
def test_no_pdf_to_verify(service: Running, data: bytes) -> None:
    with pytest.raises(ServiceError, match="Malformed PDF") as caught:
        service.client.call(rendering.VERIFY, rendering.Verify(file=service.upload(data)))
    assert caught.value.status == 422


@on("sqlite", "service")
def test_a_file_that_is_gone(service: Running) -> None:
    gone = BlobRef(key="incoming/gone", sha256="0" * 64, size=3, media_type="application/pdf")
    with pytest.raises(ServiceError) as caught:
        service.client.call(rendering.VERIFY, rendering.Verify(file=gone))
    assert caught.value.code == "not_found"


# --- sealing ----------------------------------------------------------------------------------------------------------------


def test_an_order_ends_in_one_result(service: Running, tmp_path: Path) -> None:
    request = seal_request(service.blobs, contract_pdf(2), document(line("annex")), submission_id=1, seal_id="once")
    service.order(request)
    sealed = service.sealed("once")
    assert sealed.pades_level == "B-B"
    for file in (*(one.file for one in sealed.documents), sealed.audit_trail):
        assert_sealed(service.blobs.get(file), tmp_path)
        verdict = service.client.call(rendering.VERIFY, rendering.Verify(file=file))
        assert (verdict.checksum_status, verdict.sealed_here) == ("valid", True)


def test_an_order_that_comes_ten_times_ends_in_one_result(service: Running) -> None:
    request = seal_request(service.blobs, submission_id=2, seal_id="ten")
    service.order(request, times=5)
    for _ in range(5):
        service.order(request)
    service.sealed("ten")
    service.order(request)
    service.order(seal_request(service.blobs, submission_id=2, seal_id="after"))
    service.sealed("after")
    assert len(service.about("ten")) == 1
    assert [state for seal_id, state in service.jobs() if seal_id == "ten"] == ["done"]
    assert len(service.sealed_files(2)) == 4, "two of each"


def test_a_broken_order_is_answered_with_the_field(service: Running) -> None:
    value = drawing.field_value(
        "text", "word " * 4000, Area(x=0.1, y=0.1, w=0.1, h=0.01, attachment_uuid="d0"), name="City"
    )
    service.order(seal_request(service.blobs, values=[value], submission_id=3, seal_id="broken"))
    wait_until(lambda: service.about("broken"), what="the outcome")
    (event,) = service.about("broken")
    assert event.type == DOCUMENTS_FAILED.type
    assert "City" in event.data["reason"]


@on("sqlite", "service")
def test_killed_in_mid_job_there_is_one_result(service: Running, tmp_path: Path) -> None:
    """Again and again at other moments of the work: at the end there is one event, one job, one set of files."""
    seal_ids = []
    for number in range(4):  # nothing is written yet, or one, two or all three documents
        seal_ids.append(f"killed-{number}")
        big = contract_pdf(150)
        documents = [big] * 3
        request = seal_request(service.blobs, *documents, submission_id=40 + number, seal_id=seal_ids[-1])
        service.order(request)
        wait_until(lambda number=number: _has_begun(service, 40 + number, number), what="the job to begin")
        os.kill(service.background.pid, signal.SIGKILL)
        service.background.wait()
        service.background = service.start("background")
    for seal_id in seal_ids:
        sealed = service.sealed(seal_id)
        assert len(sealed.documents) == 3
        assert_sealed(service.blobs.get(sealed.audit_trail), tmp_path)
        keys = {one.file.key for one in sealed.documents} | {sealed.audit_trail.key}
        assert all(service.blobs.exists(key) for key in keys)
        assert len(service.about(seal_id)) == 1
    assert {state for seal_id, state in service.jobs() if seal_id in seal_ids} == {"done"}


def _stop_outside_a_transaction(service: Running) -> None:
    """SQLite has one write lock, which nobody can take from a process that stands still."""
    database = Database(service.database_url)
    try:
        while True:
            os.kill(service.background.pid, signal.SIGSTOP)
            try:
                database.write(lambda session: session.execute(sa.update(SealJob).values(swept=SealJob.swept)))
                return
            except ServiceError:
                os.kill(service.background.pid, signal.SIGCONT)
    finally:
        database.dispose()


def _superseded(service: Running) -> list[dict[str, Any]]:
    """Attempts whose outcome counted for nothing."""
    lines = [json.loads(text) for text in processes.log_of(service.folder / "background.log").splitlines()]
    return [one for one in lines if one.get("event") == "due_work.attempted" and one["outcome"] == "superseded"]


def _has_begun(service: Running, submission: int, files: int) -> bool:
    """The job is leased, or has written some of its files."""
    folder = service.folder / "blobs" / "submissions" / str(submission)
    written = [path for path in folder.iterdir() if path.name.startswith("seal-")] if folder.is_dir() else []
    if len(written) >= min(files, 3):
        database = Database(service.database_url)
        try:
            begun = sa.select(SealJob.leased_by, SealJob.state).where(SealJob.submission_id == submission)
            row = database.read(lambda session: session.execute(begun).first())
            return row is not None and (row[0] is not None or row[1] == "done")
        finally:
            database.dispose()
    return False


def test_a_serving_process_killed_in_mid_call_answers_again(service: Running) -> None:
    os.kill(service.serve.pid, signal.SIGKILL)
    service.serve.wait()
    service.serve = service.start("serve")
    wait_until(service.ready, what="rendering answers again")
    assert service.prepare(document(line("back"))).pages


def test_no_child_outlives_its_service(service: Running) -> None:
    """A child sees that the other end of its socket is gone, and ends."""
    children = _children_of(service.background.pid)
    assert children
    os.kill(service.background.pid, signal.SIGKILL)
    service.background.wait()
    wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in children), what="the children end")
    service.background = service.start("background")


def test_children_are_there_before_the_first_call(service: Running) -> None:
    """Their start and the check of the key would keep the event loop, and the first caller, for a second."""
    text = processes.log_of(service.folder / "serve.log")
    assert text.index("certificate.ready") < text.index("worker.started")


def _children_of(process: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == process:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def test_the_log_holds_no_values(service: Running) -> None:
    text = "".join(processes.log_of(service.folder / f"{name}.log") for name in ("serve", "background"))
    assert "Ana Kowalska" not in text
    assert "ana@example.com" not in text
    for one in text.splitlines():
        if one.startswith("{"):
            assert json.loads(one)["event"]


# --- on one database, which is the second that the others are tried on: another order would start the service anew for these ----


@on("postgresql", "service")
def test_killed_while_a_provider_is_asked_each_document_has_one_signature(service: Running, tmp_path: Path) -> None:
    """The provider takes its time with each step, so that the kill comes while it is at it, or has just done it."""

    def reached(number: int, before: int) -> bool:
        database = Database(service.database_url)
        try:
            rows = database.read(lambda session: list(session.scalars(sa.select(CertsignJob))))
        finally:
            database.dispose()
        row = next((row for row in rows if row.submission_id == 60 + number), None)
        if row is None:
            return False
        return [row.attempts > 0, row.prepared_for is not None, provider.calls.count(signs) > before][number]

    signs = "signatures/signHash"
    with csc_provider.running(tmp_path / "csc", Fault("slow", seconds=0.4)) as provider:
        for number in range(3):
            documents = [contract_pdf(1), document(line(f"annex {number}"))]
            seal_id = f"asking-{number}"
            request = seal_request(
                service.blobs, *documents, submission_id=60 + number, seal_id=seal_id, certsign=by_csc(provider)
            )
            before = provider.calls.count(signs)
            service.order(request)
            wait_until(lambda number=number, before=before: reached(number, before), what="the provider to be asked")
            os.kill(service.background.pid, signal.SIGKILL)
            service.background.wait()
            service.background = service.start("background")
            signed = [
                one
                for document_ in service.sealed(seal_id).documents
                for one in what_was_signed(service.blobs.get(document_.file))
            ]
            assert len(signed) == 2
            made = provider.signing.record.counts()
            assert all(made[one.hex()] for one in signed)
            assert len(service.about(seal_id)) == 1
        assert len(made) == 6, "nothing else was signed than what is in the files"


@on("postgresql", "service")
def test_a_seal_of_a_process_that_stands_still_is_made_by_another(service: Running) -> None:
    """As a seal whose process was killed on another machine: all that is known of it is that its lease ended. Later it goes on,
    and what it makes counts for nothing."""
    os.kill(service.background.pid, signal.SIGKILL)
    service.background.wait()
    service.background = service.start("background", RENDERING_LEASE_SECONDS="3")
    for number in itertools.count(500):
        seal_id = f"stands still {number}"
        service.order(seal_request(service.blobs, *[contract_pdf(150)] * 3, submission_id=number, seal_id=seal_id))
        wait_until(lambda number=number: _has_begun(service, number, 1), what="the job to begin")
        _stop_outside_a_transaction(service)
        if (seal_id, "done") not in service.jobs():
            break
        os.kill(service.background.pid, signal.SIGCONT)  # it was quicker
    other = service.start("background", RENDERING_LEASE_SECONDS="3")
    wait_until(lambda: (seal_id, "done") in service.jobs(), what="the other process makes it")
    assert not _superseded(service)
    os.kill(service.background.pid, signal.SIGCONT)
    wait_until(lambda: _superseded(service), what="the first attempt to end")
    end(other)
    sealed = service.sealed(seal_id)
    assert len(service.about(seal_id)) == 1
    files = [*(one.file for one in sealed.documents), sealed.audit_trail]
    assert {file.key.split("-")[2] for file in files} == {"2"}, "all files are the second attempt's"
    assert all(service.blobs.get(file) for file in files)
