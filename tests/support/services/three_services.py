"""The submissions service with the real templates and rendering services, and what tests ask of them."""

import http.server
import io
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from PIL import Image, ImageDraw

from contracts import links
from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.rpc import health, templates
from contracts.rpc import submissions as rpc
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.clock import uuid7
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.restored.high_water import MARKS
from contracts.types import Account, Submission, SubmissionStatus
from deploy.rabbitmq import PrivateBroker
from tests.support.material.agreement import agreement_pdf
from tests.support.material.submissions import ADMIN
from tests.support.services import processes
from tests.support.services.secret_settings import LINK_SECRET
from tests.support.services.suite import wait_until

SERVICES = ("templates", "rendering", "submissions")


def picture(kind: str = "PNG", *, blank: bool = False) -> bytes:
    image = Image.new("RGB", (200, 80), "white")
    if not blank:
        ImageDraw.Draw(image).line([(10, 70), (60, 10), (110, 60), (190, 15)], fill="black", width=6)
    output = io.BytesIO()
    image.save(output, kind)
    return output.getvalue()


class Pictures(http.server.BaseHTTPRequestHandler):
    """Gives a picture under any address that ends in .png."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        found = self.path.endswith(".png")
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(picture() if found else b"nothing here")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet."""


class Suite:
    """The three services, and what the tests ask of them."""

    def __init__(self, amqp_url: str, folder: Path) -> None:
        self.folder = folder
        self.log = (folder / "processes.log").open("ab")
        settings: dict[str, str] = {}
        for name in SERVICES:
            settings |= processes.environment(name, amqp_url, f"sqlite:///{folder}/{name}.sqlite", folder)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.client = RpcClient(amqp_url)
        self.blobs = BlobStore.from_url(settings["BLOB_URL"])
        self.settings = settings

    def start(self) -> None:
        for name in SERVICES:
            processes.migrate(name, self.settings)
        for name in SERVICES:
            for command in ("serve", "background"):
                self.processes.append(processes.start(name, command, self.settings, self.log))
        wait_until(lambda: all(self.ready(name) for name in SERVICES), what="the services")
        tags = [
            "{{Full name;role=Buyer}}",
            "{{Papers;type=file;role=Buyer;required=false}}",
            "{{Sign;type=signature;role=Buyer}}",
        ]
        seller = ["{{Company;role=Seller}}", "{{Logo;type=image;role=Seller;required=false}}"]
        self.template = self.make_template([tags, seller])

    def ready(self, name: str) -> bool:
        try:
            return self.client.call(health.PING[name], health.Ping()).ready
        except ServiceError:
            return False

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.client.close()
        self.log.close()

    def restart(self, name: str) -> None:
        """As after a kill -9 of the process that serves."""
        number = 2 * SERVICES.index(name)
        self.processes[number].kill()
        self.processes[number].wait()
        self.processes[number] = processes.start(name, "serve", self.settings, self.log)
        wait_until(lambda: self.ready(name), what=f"{name} to be back")

    def ask(self, call: Any, command: Any) -> Any:
        """As a patient client: the same request again while the service cannot be had."""

        def asked() -> tuple[Any, ...]:
            try:
                return (self.client.call(call, command),)
            except ServiceError as error:
                if error.code != "unavailable":
                    raise
                return ()

        return wait_until(asked, what=f"an answer to {call.method}")[0]

    def logged(self, call: str) -> int:
        """How often a call has been answered so far, as the log says."""
        return processes.log_of(self.folder / "processes.log").count(call)

    def make_template(self, documents: list[list[str]]) -> Any:
        inputs = [
            templates.DocumentInput(name=f"part {n}", file=self.upload(agreement_pdf(lines), "application/pdf"))
            for n, lines in enumerate(documents, start=1)
        ]
        return self.client.call(
            templates.CREATE,
            templates.CreateTemplate(request_id=uuid7(), actor=ADMIN, name="Agreement", documents=inputs),
        )

    def upload(self, data: bytes, media_type: str = "image/png") -> BlobRef:
        return self.blobs.put(data, media_type, "incoming/")

    def create(
        self, buyer: dict[str, Any] | None = None, seller: dict[str, Any] | None = None, **more: Any
    ) -> Submission:
        submitters = [
            rpc.api.NewSubmitter(
                **{"role": "Buyer", "email": "buyer@example.com", "name": "Bo Buyer", **(buyer or {})}
            ),
            rpc.api.NewSubmitter(role="Seller", email="seller@example.com", **(seller or {})),
        ]
        values = {"request_id": uuid7(), "actor": ADMIN, "account": Account(), "template_id": self.template.id, **more}
        return self.client.call(rpc.api.CREATE, rpc.api.CreateSubmission(submitters=submitters, **values))

    def attach(self, slug: Any, kind: str, data: bytes, filename: str = "x.png") -> Any:
        command = rpc.form.AttachFile(
            slug=slug, request_id=uuid7(), type=kind, filename=filename, file=self.upload(data)
        )
        return self.client.call(rpc.form.ATTACH_FILE, command)

    def complete(self, slug: Any, values: dict[str, Any]) -> None:
        """``values`` by field name."""
        form = self.client.call(rpc.form.OPEN_FORM, rpc.form.OpenForm(slug=slug))
        by_uuid = {one.uuid: values[one.name] for one in form.fields if one.mine and one.name in values}
        self.client.call(rpc.form.COMPLETE_FORM, rpc.form.CompleteForm(slug=slug, request_id=uuid7(), values=by_uuid))

    def documents(self, submission_id: int, *, merge: bool = False) -> list[Any]:
        query = rpc.api.GetDocuments(actor=ADMIN, id=submission_id, merge=merge)
        return self.client.call(rpc.api.DOCUMENTS, query).documents

    def completed(self, submission_id: int) -> Submission:
        def look() -> Submission | None:
            found = self.client.call(rpc.api.GET, rpc.api.GetSubmission(actor=ADMIN, id=submission_id))
            assert found.sealing_status != "failed", found.sealing_error
            return found if found.status is SubmissionStatus.COMPLETED else None

        return wait_until(look, what="completed")

    def bytes_of(self, url: str) -> bytes:
        return self.blobs.get(links.read(LINK_SECRET, url.split("/file/")[1].split("/")[0]).key)

    def text_of(self, url: str) -> str:
        path = self.folder / "shown.pdf"
        path.write_bytes(self.bytes_of(url))
        return subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, text=True, check=True).stdout

    def files(self) -> set[str]:
        """What the store keeps, without the services' own marks: those are written at any time. What an earlier test has left may
        go at any time, too."""
        root = self.folder / "blobs"
        found = {str(Path(folder, name).relative_to(root)) for folder, _, names in os.walk(root) for name in names}
        return {name for name in found if not name.startswith(MARKS)}


@pytest.fixture(scope="module")
def suite(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    suite = Suite(broker.amqp_url, tmp_path_factory.mktemp("files"))
    try:
        suite.start()
        yield suite
    finally:
        suite.stop()


@pytest.fixture(scope="module")
def pictures() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pictures)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
