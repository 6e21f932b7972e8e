"""Stamps of an operator's own worker, which binds the hash of one file, on both databases."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.envelope import Envelope
from contracts.events import Erased
from contracts.providers import DutystampSettings, DutystampStatus
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from services.rendering import commands
from services.rendering.children.pool import JobRefused
from services.rendering.providers import breaker
from services.rendering.providers.duty_stamps.stamp_worker import StampWorker
from services.rendering.providers.failures import ProviderFailed
from services.rendering.stamping import orders
from services.rendering.stamping.stages import Stage
from tests.support.rendering.providers.stamp_orders import HERE, Office, settings
from tests.support.rendering.seal_jobs import blobs, database
from tests.support.servers.providers.stamp_worker import MARK, StampWorkerServer, stamp_worker

__all__ = ["blobs", "database"]


@pytest.fixture
def worker() -> Iterator[StampWorkerServer]:
    with stamp_worker() as server:
        breaker.breaker_of(server.url).succeeded()
        yield server


@pytest.fixture
def office(database: Database, blobs: BlobStore, tmp_path: Path, worker: StampWorkerServer) -> Office:
    def check(sealed: bytes, stamped: bytes, serial: str, *_: Any, **__: Any) -> None:
        """This worker's stamp is no signature."""
        if stamped != sealed + MARK + serial.encode():
            raise JobRefused("check_stamp", "no receipt")

    return Office(database, blobs, settings(tmp_path), content=worker.settings(), check=check)


def ordered(office: Office, submission: int = 7) -> None:
    source = office.file()
    office.order(office.planned(source), office.planned(source, 1), binds="hash", submission=submission)


def test_each_stamp_is_bought_for_the_very_file_that_it_is_put_onto(office: Office, worker: StampWorkerServer) -> None:
    ordered(office)
    office.run()
    first, second = office.rows()
    assert office.state().status is DutystampStatus.STAMPED
    assert [one["sha256"] for one in worker.sold.values()] == [(row.source or {})["sha256"] for row in (first, second)]
    assert second.source == first.result
    assert office.state().stamps[0].price is not None
    assert office.serials() == {"R1": "used", "R2": "used"}


def test_an_answer_that_cannot_be_read_is_looked_for(office: Office, worker: StampWorkerServer) -> None:
    worker.garble = {"reserve"}
    ordered(office)
    office.run()
    assert office.rows()[0].stage == Stage.UNKNOWN
    office.run(rounds=2)
    assert worker.asked.count("reserve") == 2
    worker.garble = {"place"}
    office.run(rounds=2)
    worker.garble = set()
    office.run(rounds=3)
    assert office.state().status is DutystampStatus.STAMPED
    assert len(worker.sold) == 2


def test_what_is_bound_to_a_file_that_is_gone_is_not_used_for_another(
    office: Office, worker: StampWorkerServer
) -> None:
    worker.refuse = {"place": {"error": "closed", "message": "closed today", "retryable": False}}
    office.order(office.planned(office.file()), binds="hash")
    office.buy_only()
    subject = "submission:7"
    erased = Envelope(
        id=uuid7(), type="submission.erased", source="submissions", subject=subject, occurred_at=now(), data={}
    )
    office.database.write(commands.erase, erased, Erased(submission_id=7), now())
    assert office.serials() == {"R1": "held"}
    worker.refuse = {}
    office.order(office.planned(office.file()), binds="hash", submission=8)
    office.run()
    assert office.database.read(orders.stamped_files, 8)[0].serials == ("R2",)


def test_its_refusal_is_told_in_its_words(office: Office, worker: StampWorkerServer) -> None:
    worker.refuse = {"place": {"error": "closed", "message": "closed today", "retryable": False}}
    ordered(office)
    office.run()
    state = office.state()
    assert (state.status, state.message) == (DutystampStatus.FAILED, "closed today")
    assert [stamp.serial for stamp in state.stamps] == ["R1", None]


def test_another_secret_is_refused(worker: StampWorkerServer) -> None:
    content = worker.settings(secret="whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
    provider = StampWorker(DutystampSettings.model_validate(content), HERE)
    with pytest.raises(ProviderFailed, match="answered 401: not signed by our secret") as failed:
        provider.describe()
    assert not failed.value.retryable
    with pytest.raises(ProviderFailed, match="must be base64"):
        StampWorker(DutystampSettings.model_validate(worker.settings(secret="whsec_a")), HERE).describe()


def test_it_says_what_it_sells(worker: StampWorkerServer) -> None:
    provider = StampWorker(DutystampSettings.model_validate(worker.settings()), HERE)
    offer = provider.describe()
    assert (offer.binds, offer.categories, offer.width) == ("hash", {"mbd": "Marca da bollo"}, 72)
    assert provider.balance() is None
    assert provider.listed() == []
