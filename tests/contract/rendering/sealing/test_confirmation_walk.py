"""A walk at random: signers sign one after the other while processes are killed and answers are lost."""

import random
from pathlib import Path

import pytest

from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from deploy.providers.faults import Fault
from services.rendering.providers.opening import Providers
from services.rendering.signatures.workshop import Workshop
from tests.chaos import confirmations
from tests.chaos.lost_answers import LOST
from tests.support.rendering.providers.confirming import ConfirmSuite
from tests.support.rendering.providers.provider_suite import KILLED
from tests.support.rendering.seal_jobs import blobs, database, keys, settings, workshop
from tests.support.servers.providers import csc_provider
from tests.support.servers.providers.csc_provider import LOOPBACK

__all__ = ["blobs", "database", "keys", "workshop"]


@KILLED
@pytest.mark.parametrize("credential", ["person", "pin-code"])
def test_one_signature_of_each_signer_counts_whatever_is_killed_or_lost(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, tmp_path: Path, credential: str
) -> None:
    suite = ConfirmSuite(database, blobs, workshop, settings(keys), Providers(Outbound(LOOPBACK)).open)
    with csc_provider.running(tmp_path / "csc", Fault("lost", rate=LOST)) as provider:
        for number in range(2):
            order = confirmations.order_at(provider, credential)
            request, counting, _ = confirmations.walk(suite, provider, order, number, random.Random(number))
            assert confirmations.wrong(suite, provider, request, counting) == []
