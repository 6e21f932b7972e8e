"""Seals of every kind of key at every PAdES level, on short, long, turned and already signed documents, as others judge them:
poppler, pyHanko with nothing but what the file holds, and our own verify. What a seal job makes, at a provider by CSC or here."""

import io
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from asn1crypto import x509 as asn1_x509
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.ades.report import AdESPassed
from pyhanko.sign.validation import validate_pdf_signature
from pyhanko.sign.validation.dss import DocumentSecurityStore
from pyhanko.sign.validation.status import PdfSignatureStatus
from pyhanko_certvalidator import ValidationContext

from contracts.rpc.rendering import SealRequest
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from deploy.providers.csc import Provider
from services.rendering.jobs.sealing.verifying.verify import verify
from services.rendering.providers.opening import Providers
from services.rendering.settings import Settings
from services.rendering.signatures.workshop import Workshop
from tests.chaos.lost_answers import by_csc
from tests.support.files.pdf_files import A4, LETTER, document, line, signed
from tests.support.rendering.archives import judged
from tests.support.rendering.providers.certificates_at_providers import RemoteKey
from tests.support.rendering.providers.provider_suite import Suite
from tests.support.rendering.seal_jobs import blobs, order, settings
from tests.support.rendering.sealing import assert_clean, contract_pdf, pdfsig, seal_request
from tests.support.servers.providers import csc_provider
from tests.support.servers.providers.csc_provider import LOOPBACK
from tests.support.servers.providers.tsa import Authority, authority
from tests.support.services.migrated import migrated

__all__ = ["blobs"]

LEVELS = ("B-B", "B-T", "B-LT", "B-LTA")
KEYS = ("here rsa-3072", "here ec-p256", "there seal", "there seal-ec")
LONG, SIGNED = 0, -1
"""The places of the document of many pages, and of the one that came signed."""


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with csc_provider.running(tmp_path_factory.mktemp("provider") / "csc") as made:
        yield made


@pytest.fixture(scope="module")
def documents() -> list[bytes]:
    turned = document(line("turned"), line("too"), media=A4, rotate=90)
    theirs = signed(document(line("Theirs"), line("two"), media=LETTER))
    return [contract_pdf(500), contract_pdf(1), contract_pdf(10), turned, theirs]


@dataclass(frozen=True)
class Made:
    """A workshop at a level, and the authority of its time-stamps."""

    settings: Settings
    workshop: Workshop
    tsa: Authority | None


@pytest.fixture(scope="module")
def workshops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], Made]]:
    """By level and by kind of our own key, which seals the trail too; each is made when it is asked for."""
    with ExitStack() as stack:
        known: dict[tuple[str, str], Made] = {}

        class Workshops(dict[tuple[str, str], Made]):
            def __missing__(self, key: tuple[str, str]) -> Made:
                level, kind = key
                more: dict[str, Any] = {"signing_key_type": kind}
                tsa = None
                if level != "B-B":
                    tsa = stack.enter_context(authority(None if level == "B-T" else "crl"))
                    more |= {"tsa_url": tsa.url, "tsa_timeout": 10}
                if level == "B-LTA":
                    more["pades_level"] = level
                own = settings(tmp_path_factory.mktemp("keys"), **more)
                workshop = Workshop(own).open()
                stack.callback(workshop.close)
                self[key] = Made(own, workshop, tsa)
                return self[key]

        yield Workshops(known)


def ordered(blobs: BlobStore, files: list[bytes], **more: Any) -> SealRequest:
    request = seal_request(blobs, *files, **more)
    with_signature = request.documents[SIGNED].model_copy(update={"signed": True})
    return request.model_copy(update={"documents": [*request.documents[:SIGNED], with_signature]})


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("key", KEYS)
def test_it_is_valid_for_others(
    tmp_path: Path,
    blobs: BlobStore,
    provider: Provider,
    documents: list[bytes],
    workshops: dict[tuple[str, str], Made],
    key: str,
    level: str,
) -> None:
    """How long a document is has to do with neither: the long one is sealed with each key and at each level once."""
    where, _, name = key.partition(" ")
    if LEVELS.index(level) != KEYS.index(key):
        documents = documents[LONG + 1 :]
    made = workshops[level, name if where == "here" else "ec-p256"]
    migrated("rendering", f"sqlite:///{tmp_path}/rendering.sqlite")
    database = Database(f"sqlite:///{tmp_path}/rendering.sqlite")
    opened = Providers(Outbound(LOOPBACK)).open
    suite = Suite(database, blobs, made.workshop, made.settings, RemoteKey(), opened)
    order(database, ordered(blobs, documents, **({"certsign": by_csc(provider, name)} if where == "there" else {})))
    suite.run()
    sealed = suite.sealed()
    assert sealed.pades_level == level
    anchors = [*made.workshop.anchors, provider.authorities.root.encoded, *([made.tsa.root] if made.tsa else [])]
    for one in sealed.documents:
        data = blobs.get(one.file)
        others = int(one is sealed.documents[SIGNED])
        assert_clean(data, tmp_path)
        said = pdfsig(data, tmp_path)
        # What is shown on each page is told for each; archive time-stamps are told, and not judged.
        time_stamps = said.count("Signature Field Name: Archive ")
        assert said.count("Signature is Valid") == said.count("Signature Validation:") - time_stamps > 0
        assert time_stamps == (level == "B-LTA")
        assert data.startswith(documents[SIGNED]) is bool(others)
        as_others_see_it(data, anchors, level, others)
    database.dispose()


def as_others_see_it(data: bytes, anchors: list[bytes], level: str, others: int) -> None:
    verdict = verify(data, anchors, datetime.now(UTC))
    assert verdict.checksum_status == "valid"
    own = verdict.signatures[others]
    assert (own.indication, own.trust, own.level) == ("TOTAL-PASSED", "trusted", level)
    if level == "B-LTA":
        if not others:  # it judges the first signature, which is somebody else's there
            found = judged(data, anchors, datetime.now(UTC))
            assert found.ades_subindic == AdESPassed.OK
        return
    reader = PdfFileReader(io.BytesIO(data))
    roots = [asn1_x509.Certificate.load(anchor) for anchor in anchors]
    context = ValidationContext(trust_roots=roots)
    if level == "B-LT":  # with nothing but what the file holds, and proofs of all certificates required
        kept = {"trust_roots": roots, "allow_fetching": False, "revocation_mode": "hard-fail"}
        context = DocumentSecurityStore.read_dss(reader).as_validation_context(kept)
    status: PdfSignatureStatus = validate_pdf_signature(reader.embedded_regular_signatures[others], context)
    assert status.bottom_line, status.pretty_print_details()
    assert status.coverage.name == "ENTIRE_FILE"
    assert (status.timestamp_validity is not None) is (level != "B-B")
