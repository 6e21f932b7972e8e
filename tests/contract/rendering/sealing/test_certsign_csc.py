"""Seal jobs whose documents the local provider signs, by CSC over HTTP, with its faults, on SQLite and PostgreSQL."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from contracts.events import DOCUMENTS_SEALED
from contracts.evidence.sealed_text import seal
from contracts.providers import CERTSIGN
from contracts.rpc.rendering import CheckCertsign
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from deploy.providers.csc import Provider
from deploy.providers.faults import Fault
from deploy.providers.stamp_issuer import StampIssuer
from services.rendering.jobs.sealing.certificates import SealIdentity
from services.rendering.providers import breaker
from services.rendering.providers.opening import Providers
from services.rendering.sealing.remote.certsign_check import CertsignChecks
from services.rendering.signatures.workshop import Workshop
from tests.chaos import lost_answers
from tests.chaos.lost_answers import by_csc
from tests.contract.conftest import on
from tests.support.rendering import seal_jobs
from tests.support.rendering.providers import stamp_orders
from tests.support.rendering.providers.certificates_at_providers import RemoteKey
from tests.support.rendering.providers.certificates_at_providers import order as ordered
from tests.support.rendering.providers.provider_suite import KILLED, Suite, asked, what_was_signed
from tests.support.rendering.providers.stamp_orders import issuer, stamp_keys
from tests.support.rendering.seal_jobs import blobs, database, keys, settings, workshop
from tests.support.rendering.sealing import assert_sealed, contract_pdf, pdfsig, seal_request
from tests.support.servers import tls_front
from tests.support.servers.postgres import PrivatePostgres
from tests.support.servers.providers import csc_provider
from tests.support.servers.providers.csc_provider import LOOPBACK
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import LINK_SECRET
from tests.support.services.suite import wait_until

__all__ = ["blobs", "database", "issuer", "keys", "stamp_keys", "workshop"]


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    with csc_provider.running(tmp_path / "csc") as made:
        yield made


@pytest.fixture
def suite(database: Database, blobs: BlobStore, workshop: Workshop, keys: Path) -> Suite:
    opened = Providers(Outbound(LOOPBACK)).open
    return Suite(database, blobs, workshop, settings(keys), RemoteKey(), opened)


def as_authorised(suite: Suite, provider: Provider, tmp_path: Path) -> None:
    """Each document has one signature, over a hash that the provider was asked for."""
    made = provider.signing.record.counts()
    for one in suite.sealed().documents:
        data = suite.blobs.get(one.file)
        assert_sealed(data, tmp_path)
        (signed,) = what_was_signed(data)
        assert made[signed.hex()] >= 1


@pytest.mark.parametrize("credential", ["seal", "seal-ec", "seal-one"])
def test_the_documents_are_signed_there(suite: Suite, provider: Provider, tmp_path: Path, credential: str) -> None:
    asked(suite, contract_pdf(1), contract_pdf(2), certsign=by_csc(provider, credential))
    suite.run()
    as_authorised(suite, provider, tmp_path)
    assert sum(provider.signing.record.counts().values()) == 2
    (state,) = suite.states()
    assert state.status == "signed"


def test_a_longer_hash_where_the_curve_wants_it(suite: Suite, provider: Provider, tmp_path: Path) -> None:
    asked(suite, certsign=by_csc(provider, "seal-ec384"))
    suite.run()
    (one,) = suite.sealed().documents
    said = pdfsig(suite.blobs.get(one.file), tmp_path)
    assert "Signature is Valid" in said
    assert "SHA-384" in said


@pytest.mark.parametrize("operation", ["credentials/authorize", "signatures/signHash"])
def test_what_was_lost_is_had_again(suite: Suite, provider: Provider, tmp_path: Path, operation: str) -> None:
    provider.faults.set([Fault("lost", operation, times=1)])
    asked(suite, contract_pdf(1), contract_pdf(2), certsign=by_csc(provider))
    for _ in range(4):
        suite.run()
        suite.pass_time()
    as_authorised(suite, provider, tmp_path)
    assert len(provider.signing.record.counts()) == 2, "the same hashes, whatever was lost"


def test_it_was_away_and_all_go_on_when_it_is_back(suite: Suite, provider: Provider) -> None:
    provider.faults.set([Fault("down")])
    for number in range(3):
        asked(suite, seal_id=f"seal-{number + 1}", certsign=by_csc(provider))
    suite.run()
    suite.pass_time()
    suite.run()
    assert {state.status for state in suite.states()} == {"pending"}
    provider.faults.set([])
    breaker.breaker_of(provider.url).succeeded()  # as after its pause
    suite.asking.look_for_providers()
    suite.run()
    assert suite.kinds().count(DOCUMENTS_SEALED.type) == 3


"""What is tested there is when whom is called, of which databases know nothing."""


class Hour:
    """An hour in steps, as breakers and rows see it: nobody waits for it."""

    STEP = timedelta(seconds=20)

    def __init__(self, suite: Suite, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._suite, self._seconds = suite, 0.0
        monkeypatch.setattr(breaker, "_breakers", {})
        monkeypatch.setattr(breaker.breaker_of(url), "_clock", lambda: self._seconds)

    def pass_by(self, time: timedelta) -> None:
        for _ in range(time // self.STEP):
            self._seconds += self.STEP.total_seconds()
            self._suite.pass_by(self.STEP)
            self._suite.asking.look_for_providers()
            self._suite.run()


_MOST_CALLS_IN_AN_HOUR = 3600 / breaker.LONGEST_PAUSE + 10
"""One for each pause, and those before the pauses were that long."""


@on("sqlite")
def test_an_hour_without_a_provider_of_certificates_ends_within_a_minute_and_nobody_hammers_it(
    suite: Suite, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.faults.set([Fault("down")])
    submissions = 4
    for number in range(submissions):
        asked(suite, seal_id=f"seal-{number + 1}", certsign=by_csc(provider, "seal-ec"))
    hour = Hour(suite, provider.url, monkeypatch)
    hour.pass_by(timedelta(hours=1))
    assert 100 < len(provider.calls) <= _MOST_CALLS_IN_AN_HOUR
    assert DOCUMENTS_SEALED.type not in suite.kinds()
    provider.faults.set([])
    hour.pass_by(timedelta(minutes=1))
    assert suite.kinds().count(DOCUMENTS_SEALED.type) == submissions
    assert sum(provider.signing.record.counts().values()) == submissions


@on("sqlite")
def test_an_hour_without_a_provider_of_stamps_ends_within_a_minute_and_nobody_hammers_it(
    database: Database,
    blobs: BlobStore,
    workshop: Workshop,
    keys: Path,
    issuer: StampIssuer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = stamp_orders.settings(tmp_path, certificate_dir=keys)
    suite = Suite(database, blobs, workshop, own, RemoteKey())
    wish = stamp_orders.order(issuer.settings()).model_copy(update={"on_failure": "hold"})
    submissions = 2
    for number in range(submissions):
        order = seal_request(blobs, seal_id=f"seal-{number + 1}", submission_id=number + 1, dutystamp=wish)
        seal_jobs.order(database, order)
    suite.run_only("seal", "order stamps")
    issuer.fail("error_500", rate=1.0)
    issuer.calls.clear()
    hour = Hour(suite, issuer.url, monkeypatch)
    hour.pass_by(timedelta(hours=1))
    assert 100 < len(issuer.calls) <= _MOST_CALLS_IN_AN_HOUR
    assert issuer.books.sold == {}
    issuer.fail("error_500")
    hour.pass_by(timedelta(minutes=1))
    assert suite.kinds().count(DOCUMENTS_SEALED.type) == submissions == len(issuer.books.sold)


def test_a_wrong_pin_is_tried_once(suite: Suite, provider: Provider) -> None:
    wrong = by_csc(
        provider, "pin", authorization={"pin": "000000" if provider.signing.account.pin != "000000" else "1"}
    )
    for number in range(3):
        asked(suite, seal_id=f"seal-{number + 1}", certsign=wrong)
    for _ in range(3):
        suite.run()
        suite.restart()
        suite.pass_time()
    assert [state.status for state in suite.states()] == ["failed"] * 3
    right = by_csc(provider, "pin", authorization={"pin": provider.signing.account.pin})
    asked(suite, seal_id="seal-4", certsign=right)
    suite.run()
    assert suite.sealed().seal_id == "seal-4", "the credential is not locked"


def test_a_pin_that_an_admin_has_tried_is_known_to_be_wrong_or_right(
    database: Database, workshop: Workshop, suite: Suite, provider: Provider
) -> None:
    pin = provider.signing.account.pin
    wrong = by_csc(provider, "pin", authorization={"pin": "000000" if pin != "000000" else "1"})
    right = by_csc(provider, "pin", authorization={"pin": pin})
    checks = CertsignChecks(database, workshop, Providers(Outbound(LOOPBACK)).open, LINK_SECRET)
    problem = checks.check(CheckCertsign(settings=wrong.settings, sign=True)).problem
    assert problem is not None
    assert checks.check(CheckCertsign(settings=right.settings, sign=True)).problem is None
    asked(suite, seal_id="seal-1", certsign=wrong)
    suite.run()
    (state,) = suite.states()
    assert (state.status, provider.signing.wrong_pins("pin")) == ("failed", 0), "nobody has sent it since"
    assert problem in (state.message or "")
    provider.faults.set([Fault("lost", "credentials/authorize", times=1)])
    asked(suite, seal_id="seal-2", certsign=right)
    for _ in range(2):
        suite.run()
        suite.pass_time()
    assert suite.sealed().seal_id == "seal-2", "a lost answer is nothing where it is known to be right"


def test_a_wrong_pin_is_tried_once_by_all_processes_together_on_postgresql(
    postgres: PrivatePostgres, tmp_path: Path, keys: Path, workshop: Workshop
) -> None:
    """Two replicas get it at the same moment, while the provider takes its time to refuse."""
    url = postgres.new_database()
    migrated("rendering", url)
    database, blobs = Database(url), BlobStore.from_url(f"file://{tmp_path}/blobs")
    suite = Suite(database, blobs, workshop, settings(keys), RemoteKey(), Providers(Outbound(LOOPBACK)).open)
    with csc_provider.running(tmp_path / "csc", Fault("slow", "credentials/authorize", seconds=1.5)) as provider:
        pin = provider.signing.account.pin
        wrong = by_csc(provider, "pin", authorization={"pin": "0000" if pin != "0000" else "1111"})
        for number in range(6):
            asked(suite, seal_id=f"seal-{number + 1}", certsign=wrong)
        given = tmp_path / "given.json"
        given.write_text(json.dumps({"database": url, "blobs": f"{tmp_path}/blobs", "keys": str(keys)}))
        command = [sys.executable, "-m", "tests.support.rendering.providers.certsign_process", str(given)]
        processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]
        try:
            for process in processes:
                assert process.stdout is not None
                while process.stdout.readline() != "ready\n":
                    assert process.poll() is None
            for process in processes:
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
            wait_until(lambda: len(suite.states()) == 6, what="all of them have failed")
        finally:
            for process in processes:
                process.kill()
                process.communicate()
    assert [state.status for state in suite.states()] == ["failed"] * 6
    assert list(provider.calls).count("credentials/authorize") == 1
    database.dispose()


@pytest.mark.parametrize("shown", ["its certificate", "none", "a stranger's"])
def test_a_submission_is_signed_where_the_client_s_certificate_is_the_login(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    """As D-Trust does it: each connection shows the certificate, which is also the permission to sign."""
    with ExitStack() as stack:
        provider = stack.enter_context(csc_provider.running(tmp_path / "mtls", dialect="d-trust"))
        port, login_behind = urlsplit(provider.url).port or 0, f"X-API-Key: {provider.signing.account.api_key}"
        front = stack.enter_context(tls_front.before(port, tmp_path / "front", login_behind))
        other = stack.enter_context(tls_front.before(port, tmp_path / "other", login_behind))
        monkeypatch.setattr("requests.adapters.DEFAULT_CA_BUNDLE_PATH", str(front.ca))
        provider.url = front.url  # nothing that it tells leads around the front
        who = {"its certificate": front, "a stranger's": other}.get(shown)
        login: dict[str, Any] = {"type": "none"}
        if who is not None:
            login = {"type": "mtls", "certificate": who.certificate, "private_key": who.private_key}
        way = {**login, "client_id": "countersign", "client_secret": None}
        asked(
            suite,
            contract_pdf(1),
            contract_pdf(2),
            certsign=by_csc(provider, "seal-ec", authorization=way, profile="d-trust"),
        )
        for _ in range(4):
            suite.run()
            suite.pass_time()
        if who is not front:
            assert (front.seen, provider.signing.record.counts()) == ([], {})
            assert DOCUMENTS_SEALED.type not in suite.kinds()
            return
        as_authorised(suite, provider, tmp_path)
        assert set(front.seen) == {"Countersign"}
        assert other.seen == []
        assert sum(provider.signing.record.counts().values()) == 2
        told = "".join(str(vars(suite.row(number))) for number in (1,))
        assert "PRIVATE KEY" not in told


def test_signatures_come_later(suite: Suite, provider: Provider, tmp_path: Path) -> None:
    provider.faults.set([Fault("asynchronous", polls=2)])
    asked(suite, certsign=by_csc(provider))
    for _ in range(5):
        suite.run()
        suite.pass_time()
    as_authorised(suite, provider, tmp_path)


@pytest.mark.parametrize("kind", ["order", "other_key", "revoked", "suspended", "quota"])
def test_nothing_is_sealed_by_what_it_does_wrong(suite: Suite, provider: Provider, kind: str) -> None:
    provider.faults.set([Fault(kind)])
    asked(suite, contract_pdf(1), contract_pdf(2), certsign=by_csc(provider))
    for _ in range(2):
        suite.run()
        suite.pass_time()
    assert suite.states()[-1].status == "failed"
    assert DOCUMENTS_SEALED.type not in suite.kinds()


def test_a_certificate_that_was_revoked_signs_nothing_whatever_the_credential_says(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, provider: Provider
) -> None:
    """Without time-stamps, for which nobody would be asked otherwise; by who is named in the certificate."""
    authorities = provider.authorities
    signer = authorities.signers["seal-ec"]
    chain = (signer.certificate, authorities.issuer.certificate, authorities.root.certificate)
    key = RemoteKey(own=SealIdentity(signer.key, chain))
    suite = Suite(database, blobs, workshop, settings(keys), key)
    authorities.revoked = {"seal-ec"}
    asked(suite, certsign=ordered(key.own))
    suite.run()
    (state,) = suite.states()
    assert state.status == "failed"
    assert state.message is not None
    assert "certificate was revoked" in state.message
    assert key.calls == {"credential": 1}


def test_the_connection_is_tried_for_an_admin(
    database: Database, workshop: Workshop, provider: Provider, suite: Suite
) -> None:
    checks = CertsignChecks(database, workshop, Providers(Outbound(LOOPBACK)).open, LINK_SECRET)
    order = by_csc(provider)
    found = checks.check(CheckCertsign(settings=order.settings))
    assert (found.provider, found.problem, found.last_signed_at) == ("127.0.0.1", None, None)
    assert found.subject
    assert found.valid_to
    assert checks.check(CheckCertsign(settings=order.settings, sign=True)).problem is None
    assert sum(provider.signing.record.counts().values()) == 1
    asked(suite, certsign=order)
    suite.run()
    assert checks.check(CheckCertsign(settings=order.settings)).last_signed_at is not None
    provider.faults.set([Fault("quota")])
    assert checks.check(CheckCertsign(settings=order.settings, sign=True)).problem
    untrusted = csc_provider.settings(provider, "seal")
    sealed = seal(LINK_SECRET, CERTSIGN, untrusted.model_dump_json())
    problem = checks.check(CheckCertsign(settings=sealed)).problem
    assert problem is not None
    assert "does not lead to a trusted root" in problem
    elsewhere = checks.check(CheckCertsign(settings="nothing of ours"))
    assert elsewhere.problem is not None
    assert "cannot be read" in elsewhere.problem


@KILLED
def test_one_answer_in_ten_is_lost_and_processes_are_killed(
    database: Database, blobs: BlobStore, workshop: Workshop, tmp_path: Path, issuer: StampIssuer
) -> None:
    """``python -m tests.chaos.lost_answers 200`` does more of it."""
    runs = 4
    with csc_provider.running(tmp_path / "csc", Fault("lost", rate=lost_answers.LOST)) as provider:
        issuer.fail("lost_purchase", rate=lost_answers.LOST)
        issuer.fail("lost_stamp", rate=lost_answers.LOST)
        suite = lost_answers.suite_of(database, blobs, workshop, tmp_path)
        lost_answers.submit(suite, provider, issuer, range(runs))
        killed = lost_answers.settle(suite, runs, random.Random(1))
        assert lost_answers.wrong(suite, provider, issuer, runs) == []
        assert killed
