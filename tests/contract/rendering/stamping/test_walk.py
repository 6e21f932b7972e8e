"""As many stamps are bought as are placed, however often answers are lost and processes die. ``python -m tests.chaos.stamps 200``
does the same at length."""

from pathlib import Path

from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from deploy.providers.stamp_issuer import StampIssuer
from tests.chaos import stamps
from tests.support.rendering.providers.stamp_orders import Office, issuer, settings, stamp_keys
from tests.support.rendering.seal_jobs import blobs, database

__all__ = ["blobs", "database", "issuer", "stamp_keys"]


def test_a_walk_with_lost_answers_and_deaths_ends_with_a_stamp_for_each_purchase(
    database: Database, blobs: BlobStore, tmp_path: Path, issuer: StampIssuer
) -> None:
    office = Office(database, blobs, settings(tmp_path), content=issuer.settings())
    found = stamps.walk(6, 1, office, issuer)
    assert found.wrong == []
    assert found.deaths > 0
    assert found.ordered == found.sold == found.placed >= 6


def test_a_process_that_is_killed_again_and_again_leaves_a_stamp_for_each_purchase(
    database: Database, blobs: BlobStore, tmp_path: Path, issuer: StampIssuer
) -> None:
    office = Office(database, blobs, settings(tmp_path), content=issuer.settings())
    found = stamps.kill(2, 7, office, issuer, tmp_path)
    assert found.wrong == []
    assert found.ordered == found.sold == found.placed == 12
