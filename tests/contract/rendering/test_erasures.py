"""Rendering confirms that a removed submission is gone, and signs the receipt; on SQLite and PostgreSQL, checked by openssl."""

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.envelope import Envelope
from contracts.events import Erased, ErasureReceiptDue
from contracts.evidence import canonical_json, erasure
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import DueWork
from contracts.runtime.data.files.blobstore import BlobStore
from services.rendering import commands, results
from services.rendering.models import ErasureReceipt, SealJob
from services.rendering.results import FreshResult, Results
from services.rendering.rules import domain
from services.rendering.sealing.receipts import ReceiptWork
from services.rendering.signatures.workshop import Workshop
from services.rendering.storage import erasures
from tests.support.judges.documents.openssl_cms import assert_cades
from tests.support.rendering.seal_jobs import blobs, database, keys, order, settings, told, workshop
from tests.support.rendering.sealing import seal_request
from tests.support.servers.providers.tsa import authority

__all__ = ["blobs", "database", "keys", "workshop"]

TEXT = canonical_json.encoded({"submission": 7, "type": "erasure"}).decode()


def envelope(kind: str = "submission.erased") -> Envelope:
    return Envelope(id=uuid7(), type=kind, source="submissions", subject="submission:7", occurred_at=now(), data={})


def confirmed(database: Database) -> list[dict[str, Any]]:
    return [one["data"] for one in told(database) if one["type"] == "renderings.erased"]


def erase(database: Database, event: Envelope | None = None, *documents: str) -> None:
    erased = Erased(submission_id=7, documents=list(documents))
    database.write(commands.erase, event or envelope(), erased, now())


def test_it_is_confirmed_once_its_files_are_gone(database: Database, blobs: BlobStore) -> None:
    made = blobs.put(b"made", "image/png", "rendering/")
    kept = Results(database, blobs, timedelta(hours=1))
    kept.get("page", "p", lambda: FreshResult({"n": 1}, [made.key]), sources=["0" * 64])
    event = envelope()
    erase(database, event, "0" * 64)
    results.tell_erasures(database)
    assert confirmed(database) == [], "the file is there"
    erase(database, event, "0" * 64)  # killed before it was taken: it comes again
    results.clear(database, blobs)
    results.tell_erasures(database)
    results.tell_erasures(database)
    (said,) = confirmed(database)
    assert (said["submission_id"], said["deleted"]) == (7, {"jobs": 0, "statements": 0, "files": 1})
    erase(database, event)
    results.tell_erasures(database)
    assert len(confirmed(database)) == 1
    erase(database, envelope("erasure.asked"))
    results.tell_erasures(database)
    assert confirmed(database)[1]["deleted"] == said["deleted"], "asked again it says what it deleted"


def test_an_attempt_that_is_under_way_is_waited_for(database: Database, blobs: BlobStore) -> None:
    order(database, seal_request(blobs))
    lease = now() + timedelta(minutes=5)
    claim = sa.update(SealJob).values(leased_by="somebody", leased_until=lease, attempts=1)
    database.write(lambda session: session.execute(claim).close())
    erase(database)
    results.tell_erasures(database)
    assert confirmed(database) == []
    assert database.read(erasures.to_tell, lease + erasures.SWEPT_AFTER) == [7]


def signed(database: Database, work: ReceiptWork) -> dict[str, Any]:
    """What is told of the receipt after the real loop has worked on it."""
    due = ErasureReceiptDue(submission_id=7, sha256=erasure.digest(TEXT), text=TEXT)
    database.write(erasures.accept_receipt, envelope("erasure_receipt.due"), due, now())
    loop = DueWork(
        "sign receipts", database, ErasureReceipt, work.attempt, schedule=domain.SCHEDULE, lease=timedelta(minutes=5)
    )
    while loop.turn() == 0.0:
        loop.finish()
    loop.finish()
    found: dict[str, Any] = [one["data"] for one in told(database) if one["type"] == "erasure_receipt.signed"][-1]
    return found


@pytest.mark.parametrize(
    ("database_url", "stamped"), [("sqlite", False), ("postgresql", True)], indirect=["database_url"]
)
def test_openssl_calls_the_receipt_valid_and_no_other(
    database: Database, keys: Path, tmp_path: Path, *, stamped: bool
) -> None:
    with authority() as tsa:
        own = settings(keys, **({"tsa_url": tsa.url} if stamped else {}))
        workshop = Workshop(own).open()
        try:
            said = signed(database, ReceiptWork(own, workshop.sealer))
            again = signed(database, ReceiptWork(own, workshop.sealer))
            root = workshop.identity.chain[-1]
        finally:
            workshop.close()
    assert again["sha256"] == said["sha256"], "who asks again gets another signature of the same"
    assert said["stamped"] is stamped
    assert_cades(base64.b64decode(said["signature"]), TEXT.encode(), root, tmp_path)
