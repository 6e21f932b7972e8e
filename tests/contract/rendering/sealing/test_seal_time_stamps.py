"""Seal jobs with a time-stamp authority: the level that is reached, and authorities that fail."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, Park, Retry
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http import outbound
from services.rendering.sealing.seal_jobs import SealWork
from services.rendering.settings import Settings
from services.rendering.signatures.time_stamping import TimeStampFailed
from services.rendering.signatures.workshop import Workshop
from tests.support.rendering.seal_jobs import (
    attempt,
    blobs,
    claimed,
    database,
    files_of,
    keys,
    order,
    sealed_event,
    settings,
    work_on,
)
from tests.support.rendering.sealing import assert_sealed, pdf_text, seal_request
from tests.support.servers.providers.tsa import Authority, authority

__all__ = ["blobs", "database", "keys"]


@pytest.fixture
def stamped(keys: Path) -> Iterator[tuple[Authority, Workshop, Settings]]:
    with authority("crl") as tsa:
        own = settings(keys, tsa_url=tsa.url, tsa_timeout=60, tsa_attempts=2)
        made = Workshop(own).open()
        yield tsa, made, own
        made.close()


def test_with_an_authority_the_level_is_stated(
    database: Database, blobs: BlobStore, stamped: tuple[Authority, Workshop, Settings], tmp_path: Path
) -> None:
    _, made, own = stamped
    order(database, seal_request(blobs))
    work_on(database, SealWork(own, blobs, made.renderer, made.sealer, database))
    sealed = sealed_event(database)
    assert (sealed.pades_level, sealed.report) == ("B-LT", [])
    for file in (sealed.documents[0].file, sealed.audit_trail):
        assert_sealed(blobs.get(file), tmp_path)
    assert "PAdES B-LT" in pdf_text(blobs.get(sealed.audit_trail), tmp_path)


@pytest.mark.parametrize("when", ["from the start", "in the middle"])
def test_a_failing_authority_is_waited_for_then_reported(
    database: Database, blobs: BlobStore, stamped: tuple[Authority, Workshop, Settings], when: str, tmp_path: Path
) -> None:
    tsa, made, own = stamped
    if when == "in the middle":
        made.sealer.assurance(datetime.now(UTC))
    tsa.mode = "error"
    order(database, seal_request(blobs))
    work = SealWork(own, blobs, made.renderer, made.sealer, database)
    for number in (1, 2):
        waiting = attempt(database, work, number)
        assert isinstance(waiting, Retry)
        assert "no time-stamp: 127.0.0.1: answered 500" in waiting.error
        assert files_of(tmp_path) == []
    done = attempt(database, work, 3)
    assert isinstance(done, Done)
    job = claimed(database, attempts=3)
    assert done.record is not None
    database.write(done.record, job)
    sealed = sealed_event(database)
    assert sealed.pades_level == "B-B"
    (notice,) = sealed.report
    assert notice.code == "no_time_stamp"
    assert "answered 500" in notice.message
    assert_sealed(blobs.get(sealed.documents[0].file), tmp_path)


def test_an_authority_that_comes_back_is_used(
    database: Database, blobs: BlobStore, stamped: tuple[Authority, Workshop, Settings]
) -> None:
    tsa, made, own = stamped
    tsa.mode = "garbage"
    order(database, seal_request(blobs))
    work = SealWork(own, blobs, made.renderer, made.sealer, database)
    assert isinstance(attempt(database, work, 1), Retry)
    tsa.mode = "good"
    assert isinstance(attempt(database, work, 2), Done)


def test_a_revoked_certificate_of_the_authority_ends_the_job(database: Database, blobs: BlobStore, keys: Path) -> None:
    with authority("revoked") as tsa:
        own = settings(keys, tsa_url=tsa.url)
        made = Workshop(own).open()
        try:
            order(database, seal_request(blobs))
            outcome = attempt(database, SealWork(own, blobs, made.renderer, made.sealer, database))
            assert isinstance(outcome, Park)
            assert "revoked" in outcome.error
        finally:
            made.close()


METADATA = (
    "http://169.254.169.254/latest/meta-data/",
    "http://user:secret@168.63.129.16:32526/vmSettings",
    "http://[fd00:ec2::254]/latest/api/token",
    "http://[::ffff:169.254.169.254]/",
)


@pytest.mark.parametrize("url", METADATA)
def test_no_setting_by_mistake_sends_hashes_to_where_a_cloud_keeps_its_secrets(
    keys: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_only(guarded: Any) -> Any:
        """Nothing is connected to, also where the guard would let it pass."""
        guarded._checked_addresses()
        raise ConnectionRefusedError("it would have been called")

    monkeypatch.setattr(outbound._Guarded, "_new_conn", look_only)
    made = Workshop(settings(keys, tsa_url=url, tsa_timeout=60)).open()
    try:
        with pytest.raises(TimeStampFailed, match="must not lead to a private or reserved address") as failed:
            made.sealer.assurance(datetime.now(UTC))
        assert "secret" not in str(failed.value)
    finally:
        made.close()


def test_an_authority_of_the_operators_own_network_is_called_for_time_stamps_alone(keys: Path) -> None:
    """On whatever port, without ALLOWED_PRIVATE_NETWORKS; whom its certificate names is nobody's setting."""
    with authority("crl") as tsa:
        tsa.login = "us er:p@ss"
        made = Workshop(settings(keys, tsa_url=tsa.url, tsa_timeout=60, allowed_private_networks="")).open()
        try:
            assurance = made.sealer.assurance(datetime.now(UTC))
        finally:
            made.close()
    assert assurance.stamped
    (notice,) = assurance.notices
    assert "must not lead to a private or reserved address" in notice.message
    assert tsa.asked == []
