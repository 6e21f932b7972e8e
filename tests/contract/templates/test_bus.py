"""The templates service as it runs: beside a real rendering service, over a real broker."""

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pika
import pytest
import sqlalchemy as sa

from contracts.blobs import BlobRef
from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.rpc import templates as rpc
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.bus.topology import event_exchange
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import Actor, Role, Template
from deploy.rabbitmq import PrivateBroker
from services.templates.models import TemplateRow
from tests.support.material.agreement import agreement_pdf
from tests.support.services import processes
from tests.support.services.suite import wait_until

ADMIN = Actor(user_id=1, role=Role.ADMIN, email="admin@example.com", name="Ana Ray")


class Running:
    """templates and rendering, each with its own database; what templates says on the bus ends in ``told``."""

    def __init__(self, stack: ExitStack, amqp_url: str, folder: Path) -> None:
        self.folder = folder
        self.blobs = BlobStore.from_url(f"file://{folder}/blobs")
        self.settings = {}
        self._stack = stack
        for name in ("templates", "rendering"):
            url = f"sqlite:///{folder}/{name}.sqlite"
            self.settings[name] = processes.environment(name, amqp_url, url, folder)
            processes.migrate(name, self.settings[name])
        connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
        stack.callback(connection.close)
        self.channel: Any = connection.channel()
        self.channel.exchange_declare(event_exchange("templates"), "topic", durable=True)
        self.queue = self.channel.queue_declare("", exclusive=True).method.queue
        self.channel.queue_bind(self.queue, event_exchange("templates"), "template.*")
        self.rendering = self.start("rendering", "serve")
        self.serve = self.start("templates", "serve")
        self.background = self.start("templates", "background")
        self.client = RpcClient(amqp_url)
        stack.callback(self.client.close)
        self.told: list[Envelope] = []
        wait_until(self.ready, what="templates and rendering answer")

    def start(self, name: str, command: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self.folder / f"{name}-{command}.log").open("ab"))
        process = processes.start(name, command, self.settings[name], log)
        self._stack.callback(_end, process)
        return process

    def ready(self) -> bool:
        try:
            self.create(documents=[self.document(agreement_pdf(["ready?"]))])
        except ServiceError as error:
            if error.status < 500:
                raise
            return False
        return True

    def document(self, pdf: bytes, name: str = "contract", **more: Any) -> dict[str, Any]:
        return {"name": name, "file": self.upload(pdf), **more}

    def upload(self, pdf: bytes) -> BlobRef:
        return self.blobs.put(pdf, "application/pdf", "incoming/")

    def create(self, **body: Any) -> Template:
        command = rpc.CreateTemplate.model_validate({"request_id": uuid7(), "actor": ADMIN, **body})
        return self.client.call(rpc.CREATE, command)

    def prepared(self) -> int:
        """Documents that rendering has prepared so far, as its log says."""
        return processes.log_of(self.folder / "rendering-serve.log").count("rendering.prepare_pdf")

    def count(self) -> int:
        database = Database(self.settings["templates"]["TEMPLATES_DATABASE_URL"])
        try:
            counted = sa.select(sa.func.count()).select_from(TemplateRow)
            return database.read(lambda session: session.scalar(counted)) or 0
        finally:
            database.dispose()

    def events(self, subject: str) -> list[tuple[str, int | None]]:
        while True:
            method, _properties, body = self.channel.basic_get(self.queue, auto_ack=True)
            if method is None:
                return [(one.type, one.sequence) for one in self.told if one.subject == subject]
            self.told.append(Envelope.model_validate_json(body))


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()


@pytest.fixture(scope="module")
def service(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with ExitStack() as stack:
        yield Running(stack, broker.amqp_url, tmp_path_factory.mktemp("templates"))


def test_tags_and_explicit_fields_make_one_template(service: Running) -> None:
    pdf = agreement_pdf(["Name: {{Name;role=Tenant}}", "{{Sign;type=signature;role=Landlord}}", "{{Name;role=Tenant}}"])
    explicit = {"name": "Name", "type": "text", "role": "Tenant", "title": "Your name"}
    box = {"x": 59.5, "y": 421, "w": 119, "h": 20, "page": 1}
    made = service.create(name="Lease", documents=[service.document(pdf, fields=[explicit | {"areas": [box]}])])
    assert made.roles == ["Tenant", "Landlord"]
    name, signature = made.fields
    assert (name.name, name.title, len(name.areas)) == ("Name", "Your name", 3)
    assert (round(name.areas[0].x, 3), round(name.areas[0].y, 3)) == (0.1, 0.5)
    assert (signature.name, signature.type, len(signature.areas)) == ("Sign", "signature", 1)
    assert {area.attachment_uuid for one in made.fields for area in one.areas} == {made.documents[0].uuid}
    assert [(round(page.width), round(page.height)) for page in made.documents[0].pages] == [(595, 842)]
    snapshot = service.client.call(rpc.SNAPSHOT, rpc.GetTemplate(actor=ADMIN, id=made.id))
    assert service.blobs.get(snapshot.documents[0].original) == pdf
    assert service.blobs.get(snapshot.documents[0].file).startswith(b"%PDF")
    wait_until(lambda: service.events(f"template:{made.id}") == [("template.created", 1)], what="the event")


def test_html_with_field_tags(service: Running) -> None:
    html = (
        '<h1>Lease</h1><p>Name: <text-field name="Name" role="Tenant" style="width:200px;height:20px;display:inline-block">'
        "</text-field></p>"
        '<p><signature-field name="Sign" role="Tenant" style="width:200px;height:60px;display:inline-block">'
        "</signature-field></p>"
    )
    made = service.create(html_documents=[{"html": html, "name": "lease"}])
    assert [(one.name, one.type, one.role) for one in made.fields] == [
        ("Name", "text", "Tenant"),
        ("Sign", "signature", "Tenant"),
    ]
    assert [len(one.areas) for one in made.fields] == [1, 1]
    assert made.documents[0].name == "lease"
    assert len(made.name) == 36


def test_files_of_a_template_are_never_among_those_that_are_swept(service: Running) -> None:
    pdf = agreement_pdf(["{{Name}}"])
    html = '<p><text-field name="Name" role="Tenant" style="width:200px;height:20px;display:inline-block"></text-field></p>'
    made = [
        service.create(documents=[service.document(pdf), service.document(pdf)]),
        service.create(html_documents=[{"html": html, "name": "lease"}]),
    ]
    assert service.blobs.sweep(now() + timedelta(minutes=1)) > 0, "what they were made from"
    for one in made:
        snapshot = service.client.call(rpc.SNAPSHOT, rpc.GetTemplate(actor=ADMIN, id=one.id))
        for document in snapshot.documents:
            assert service.blobs.get(document.file).startswith(b"%PDF")
            assert service.blobs.get(document.original).startswith(b"%PDF")


def test_one_refused_document_leaves_nothing_behind(service: Running) -> None:
    before = service.count()
    good = service.document(agreement_pdf())
    for bad in (b"", b"%PDF-1.4 nothing follows", b"<html></html>", b"\x00" * 1000):
        with pytest.raises(ServiceError) as caught:
            service.create(documents=[good, service.document(bad), good], external_id="never", folder_name="Never")
        assert caught.value.status in (415, 422), caught.value.message
        assert [detail["field"] for detail in caught.value.details] == ["documents[1].file"]
        assert caught.value.details[0]["reason"]
    with pytest.raises(ServiceError) as caught:
        service.create(documents=[good, service.document(agreement_pdf(["{{Land;type=select}}"]))])
    assert caught.value.details[0]["field"] == "documents[1].file"
    area = {"x": 0.1, "y": 0.1, "w": 0.1, "h": 0.1, "page": 2}
    beyond = service.document(agreement_pdf(), fields=[{"name": "a"}, {"name": "b", "areas": [area]}])
    with pytest.raises(ServiceError) as caught:
        service.create(documents=[beyond])
    assert caught.value.details[0]["field"] == "documents[0].fields[1].areas[0].page"
    assert service.count() == before


def test_many_documents_come_back_in_order(service: Running) -> None:
    documents = [service.document(agreement_pdf([f"{{{{Field {n}}}}}"]), name=f"part {n}") for n in range(8)]
    made = service.create(documents=documents)
    assert [document.name for document in made.documents] == [f"part {n}" for n in range(8)]
    assert [one.name for one in made.fields] == [f"Field {n}" for n in range(8)]


def test_twenty_posts_at_once_make_one_template(service: Running) -> None:
    document = service.document(agreement_pdf())
    with ThreadPoolExecutor(20) as pool:
        made = list(pool.map(lambda _: service.create(documents=[document], external_id="same"), range(20)))
    assert len({one.id for one in made}) == 1
    subject = f"template:{made[0].id}"
    wait_until(lambda: len(service.events(subject)) == 20, what="twenty events")
    assert [number for _kind, number in service.events(subject)] == list(range(1, 21))


def test_the_same_request_twice_at_once_is_one_template(service: Running) -> None:
    before = service.count()
    command = rpc.CreateTemplate.model_validate(
        {"request_id": uuid7(), "actor": ADMIN, "documents": [service.document(agreement_pdf())]}
    )
    with ThreadPoolExecutor(5) as pool:
        made = list(pool.map(lambda _: service.client.call(rpc.CREATE, command), range(5)))
    assert {one.id for one in made} == {made[0].id}
    assert service.count() == before + 1


def test_killed_in_the_middle_the_same_request_makes_one_template(service: Running) -> None:
    before, so_far = service.count(), service.prepared()
    documents = [service.document(agreement_pdf(), name=f"{n}") for n in range(6)]
    command = rpc.CreateTemplate.model_validate({"request_id": uuid7(), "actor": ADMIN, "documents": documents})
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(service.client.call, rpc.CREATE, command)
        wait_until(lambda: service.prepared() > so_far, what="the first document is prepared")
        service.serve.kill()
        service.serve.wait()
        service.serve = service.start("templates", "serve")
        # The broker hands the unanswered request to the new process, whether or not its caller has been told to come again.
        with suppress(ServiceError):
            pending.result(90)
    first = patiently(service, command)
    assert service.client.call(rpc.CREATE, command).id == first.id
    assert service.count() == before + 1


def test_without_rendering_a_caller_is_told_so_and_the_same_request_succeeds_later(service: Running) -> None:
    before = service.count()
    service.rendering.kill()
    service.rendering.wait()
    command = rpc.CreateTemplate.model_validate(
        {"request_id": uuid7(), "actor": ADMIN, "documents": [service.document(agreement_pdf())]}
    )
    try:
        with pytest.raises(ServiceError) as refused:
            service.client.call(rpc.CREATE, command)
        assert refused.value.code == "unavailable"
        # What needs no rendering goes on.
        assert service.client.call(rpc.LIST, rpc.ListTemplates(actor=ADMIN)).pagination.count > 0
    finally:
        service.rendering = service.start("rendering", "serve")
    assert patiently(service, command).documents
    assert service.count() == before + 1


def patiently(service: Running, command: rpc.CreateTemplate) -> Template:
    """Ask again with the same request, as long as the answer is to do so."""

    def answer() -> Template | None:
        try:
            return service.client.call(rpc.CREATE, command)
        except ServiceError as error:
            if error.code != "unavailable":
                raise
            return None

    found = wait_until(answer, what="an answer")
    assert found is not None
    return found


def test_the_answer_is_plain_json(service: Running) -> None:
    made = service.create(documents=[service.document(agreement_pdf())])
    answer = service.client.call_json(rpc.GET, rpc.GetTemplate(actor=ADMIN, id=made.id))
    assert json.loads(json.dumps(answer)) == answer
    assert answer["schema"][0]["attachment_uuid"] == answer["documents"][0]["uuid"]
