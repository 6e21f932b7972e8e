"""The submissions service as it runs: its processes, a real broker, calls by RPC, events in and out."""

import json
import random
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pika
import pytest

from contracts.errors import ServiceError
from contracts.events import DOCUMENTS_FAILED, DOCUMENTS_SEALED, DocumentsFailed, DocumentsSealed
from contracts.rpc import Rpc, health
from contracts.rpc import submissions as rpc
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import Submission, SubmissionStatus
from deploy.rabbitmq import PrivateBroker
from tests.support.material.submissions import ADMIN, Desk, Slug, sealed, two_signers
from tests.support.services import processes
from tests.support.services.suite import wait_until


class Service:
    """``serve`` and ``background`` of the service, a client, and everything that the service tells the bus."""

    def __init__(self, amqp_url: str, folder: Path) -> None:
        self.folder = folder
        url = f"sqlite:///{folder}/submissions.sqlite"
        self.settings = processes.environment(
            "submissions",
            amqp_url,
            url,
            folder,
            EXPIRY_SWEEP_SECONDS="0.2",
            EVENT_RETRY_SECONDS="0.2",
            POLL_SECONDS="0.2",
        )
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.blobs = BlobStore.from_url(self.settings["BLOB_URL"])
        self.log = (folder / "processes.log").open("ab")
        self.desk = Desk(url)
        self.desk.now = now()
        self.client = RpcClient(amqp_url)
        self.connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
        self.channel = self.connection.channel()
        self.channel.exchange_declare("submissions.events", "topic", durable=True)
        self.queue = self.channel.queue_declare("", exclusive=True).method.queue
        self.channel.queue_bind(self.queue, "submissions.events", "#")
        self.told: list[dict[str, Any]] = []

    def begin(self) -> None:
        for name in ("serve", "background"):
            self.start(name)
        wait_until(self.ready, what="the service")

    def ready(self) -> bool:
        try:
            return self.client.call(health.PING["submissions"], health.Ping()).ready
        except ServiceError:
            return False

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait()

    def start(self, name: str) -> None:
        self.processes[name] = processes.start("submissions", name, self.settings, self.log)

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.client.close()
        self.connection.close()
        self.desk.database.dispose()
        self.log.close()

    def create(self, *submitters: dict[str, Any], **more: Any) -> Submission:
        """Through the use case; the relay does not know, so it finds the events by polling."""
        return self.desk.create(two_signers(), *submitters, **more)

    def get(self, submission_id: int) -> Submission:
        return self.client.call(rpc.api.GET, rpc.api.GetSubmission(actor=ADMIN, id=submission_id))

    def complete(self, slug: Slug, request_id: str | None = None) -> rpc.form.Done:
        form = self.client.call(rpc.form.OPEN_FORM, rpc.form.OpenForm(slug=slug))
        values = {one.uuid: "something" for one in form.fields if one.mine}
        command = rpc.form.CompleteForm(slug=slug, values=values, request_id=request_id or uuid7(), ip="192.0.2.1")
        return self.client.call(rpc.form.COMPLETE_FORM, command)

    def publish(self, event: Any, data: Any, event_id: str | None = None) -> None:
        """As the relay of the emitting service does."""
        body = {
            "id": event_id or uuid7(),
            "type": event.type,
            "source": event.source,
            "subject": "submission:0",
            "occurred_at": datetime.now(UTC).isoformat(),
            "data": data.model_dump(mode="json"),
        }
        self.channel.basic_publish(
            f"{event.source}.events", event.type, json.dumps(body).encode(), pika.BasicProperties(delivery_mode=2)
        )

    def heard(self, submission_id: int, *types: str) -> list[dict[str, Any]]:
        """The events of this submission that have reached the bus so far, in order of arrival."""
        while True:
            method, _, body = self.channel.basic_get(self.queue, auto_ack=True)
            if method is None:
                break
            self.told.append(json.loads(body))
        mine = [one for one in self.told if one["subject"] == f"submission:{submission_id}"]
        return [one for one in mine if one["type"] in types] if types else mine


@pytest.fixture(scope="module")
def service(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(broker.amqp_url, tmp_path_factory.mktemp("submissions"))
    try:
        service.begin()
        yield service
    finally:
        service.stop()


def test_a_submission_by_rpc_and_events(service: Service) -> None:
    made = service.create()
    assert service.client.call(rpc.form.OPEN_FORM, rpc.form.OpenForm(slug=made.submitters[1].slug)).state == "waiting"
    assert service.client.call(rpc.form.VIEW_FORM, rpc.visit.Visit(slug=made.submitters[0].slug)).state == "open"
    for one in made.submitters:
        assert service.complete(one.slug).state == "completed"
    (order,) = wait_until(lambda: service.heard(made.id, "sealing.due"), what="the order to seal")
    assert order["source"] == "submissions"
    service.publish(DOCUMENTS_SEALED, sealed(made.id, order["data"]["seal_id"]))
    wait_until(lambda: service.get(made.id).status is SubmissionStatus.COMPLETED, what="completed")
    wait_until(lambda: service.heard(made.id, "completion_mails.due"), what="the order to mail")
    public = [one for one in service.heard(made.id) if one["sequence"] is not None]
    assert [one["sequence"] for one in public] == list(range(1, 10))
    assert [one["type"] for one in public][-1] == "submission.completed"


def test_a_hundred_answers_in_any_order_complete_once(service: Service) -> None:
    """Duplicates with the same id and with others, failures and strangers in between, shuffled (F10, F11)."""
    made = service.create(order="random")
    for one in made.submitters:
        service.complete(one.slug)
    (order,) = wait_until(lambda: service.heard(made.id, "sealing.due"), what="the order to seal")
    seal_id = order["data"]["seal_id"]
    result = sealed(made.id, seal_id)
    messages: list[tuple[Any, DocumentsSealed | DocumentsFailed, str]] = []
    same = uuid7()
    for number in range(100):
        messages += [
            (DOCUMENTS_SEALED, result, same if number % 2 else uuid7()),
            (DOCUMENTS_SEALED, sealed(made.id, f"another {number}"), uuid7()),
            (
                DOCUMENTS_FAILED,
                DocumentsFailed(submission_id=made.id, seal_id=f"another {number}", reason="x"),
                uuid7(),
            ),
        ]
    random.Random(4).shuffle(messages)
    for event, data, event_id in messages:
        service.publish(event, data, event_id)
    wait_until(lambda: service.heard(made.id, "submission.completed"), what="completed")
    # What was published last has been handled too once this one is.
    other = service.create(order="random")
    for one in other.submitters:
        service.complete(one.slug)
    service.publish(DOCUMENTS_SEALED, sealed(other.id, service.desk.column(other.id, "seal_id")))
    wait_until(lambda: service.heard(other.id, "submission.completed"), what="the other one completed")
    handled = "SELECT count(*) AS n FROM inbox WHERE handler IN ('accept_sealed', 'accept_failure')"
    wait_until(lambda: service.desk.rows(handled)[0].n >= 251, what="all events handled")
    assert len(service.heard(made.id, "submission.completed")) == 1
    assert len(service.heard(made.id, "completion_mails.due")) == 1
    done = service.get(made.id)
    assert done.documents[0].sha256 == result.documents[0].file.sha256
    assert done.sealing_error is None


def test_only_what_is_set_changes(service: Service) -> None:
    made = service.create(name="Before", expire_at=now().replace(microsecond=0) + timedelta(days=1))

    def update(**changes: Any) -> Submission:
        command = rpc.api.UpdateSubmission(request_id=uuid7(), actor=ADMIN, id=made.id, **changes)
        return service.client.call(rpc.api.UPDATE, command)

    named = update(name="After")
    assert (named.name, named.expire_at) == ("After", made.expire_at)
    cleared = update(expire_at=None)
    assert (cleared.name, cleared.expire_at) == ("After", None)
    signer = made.submitters[0].id
    changed = service.client.call(
        rpc.api.UPDATE_SUBMITTER, rpc.api.UpdateSubmitter(request_id=uuid7(), actor=ADMIN, id=signer, name="Sam")
    )
    assert (changed.name, changed.email) == ("Sam", made.submitters[0].email)


def test_refusals_come_over_the_bus_with_their_details(service: Service) -> None:
    made = service.create()
    with pytest.raises(ServiceError) as refused:
        service.client.call(
            rpc.form.COMPLETE_FORM, rpc.form.CompleteForm(slug=made.submitters[1].slug, values={}, request_id=uuid7())
        )
    assert (refused.value.code, refused.value.details) == ("forbidden", [{"field": "state", "reason": "waiting"}])
    asked: tuple[tuple[Rpc[Any, Any], Any], ...] = (
        (rpc.api.GET, rpc.api.GetSubmission(actor=ADMIN, id=10**30)),
        (rpc.api.GET_SUBMITTER, rpc.api.GetSubmitter(actor=ADMIN, id=-1)),
        (rpc.form.OPEN_FORM, rpc.form.OpenForm(slug="nobody")),
    )
    for call, request in asked:
        with pytest.raises(ServiceError) as refused:
            service.client.call(call, request)
        assert refused.value.code == "not_found"


def test_the_background_expires_and_removes_files(service: Service) -> None:
    made = service.create(expire_at=now() + timedelta(seconds=1))
    wait_until(lambda: service.heard(made.id, "submission.expired"), what="expired")
    assert service.get(made.id).status is SubmissionStatus.EXPIRED

    finished = service.create(order="random")
    for one in finished.submitters:
        service.complete(one.slug)
    result = sealed(finished.id, service.desk.column(finished.id, "seal_id"))
    files = [service.blobs.put(b"x", "application/pdf", "rendering/") for _ in range(2)]
    result.documents[0].file, result.audit_trail = files
    service.publish(DOCUMENTS_SEALED, result)
    wait_until(lambda: service.get(finished.id).status is SubmissionStatus.COMPLETED, what="completed")
    removed = rpc.api.RemoveSubmission(request_id=uuid7(), actor=ADMIN, id=finished.id, permanently=True)
    assert service.client.call(rpc.api.REMOVE, removed).archived_at is None
    wait_until(lambda: not any(service.blobs.exists(one.key) for one in files), what="files removed")
    assert wait_until(lambda: service.heard(finished.id, "submission.erased"), what="told of the erasure")


@pytest.mark.parametrize("victim", ["serve", "background"])
def test_a_kill_in_the_middle_loses_and_doubles_nothing(service: Service, victim: str) -> None:
    made = [service.create(order="random") for _ in range(4)]
    requests = {one.slug: uuid7() for each in made for one in each.submitters}
    service.complete(made[0].submitters[0].slug, requests[made[0].submitters[0].slug])
    service.kill(victim)
    service.start(victim)

    def completed(slug: Slug) -> bool:
        try:
            return service.complete(slug, requests[slug]).state == "completed"
        except ServiceError as error:
            if error.code != "unavailable":
                raise
            return False

    for slug in requests:
        wait_until(lambda slug=slug: completed(slug), what="the completion to be accepted")
    for each in made:
        assert len(wait_until(lambda each=each: service.heard(each.id, "sealing.due"), what="the order to seal")) == 1
        told = [one for one in service.heard(each.id) if one["sequence"] is not None]
        by_id = {one["id"]: one for one in told}
        assert sorted(one["sequence"] for one in by_id.values()) == list(range(1, len(by_id) + 1))
        assert [one["type"] for one in by_id.values()].count("form.signed") == 2
