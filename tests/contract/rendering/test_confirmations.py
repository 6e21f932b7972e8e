"""Signers who sign at the local provider with certificates of their own, by CSC over HTTP, on SQLite and PostgreSQL."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contracts.providers import CertsignOrder, ConfirmationProblem, ConfirmationStep, ConfirmationView
from contracts.runtime.data.blobstore import BlobStore
from contracts.runtime.data.database import Database
from contracts.runtime.outbound import Outbound
from deploy.providers.csc import Provider
from deploy.providers.faults import Fault
from services.rendering.providers.opening import Providers
from services.rendering.signatures.workshop import Workshop
from tests.chaos.lost_answers import by_csc
from tests.support.files.pdf_files import document, line
from tests.support.rendering.confirming import (
    ConfirmSuite,
    approve,
    code_sent,
    confirm,
    confirmation_order,
    signed_hashes,
    two_signers,
)
from tests.support.rendering.seal_jobs import blobs, database, keys, settings, workshop
from tests.support.rendering.sealing import contract_pdf, pdf_text, pdfsig
from tests.support.servers import csc_provider
from tests.support.servers.csc_provider import LOOPBACK

__all__ = ["blobs", "database", "keys", "workshop"]

Person = Callable[[ConfirmationView], None]


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    with csc_provider.running(tmp_path / "csc") as made:
        yield made


@pytest.fixture
def suite(database: Database, blobs: BlobStore, workshop: Workshop, keys: Path) -> ConfirmSuite:
    return ConfirmSuite(database, blobs, workshop, settings(keys), Providers(Outbound(LOOPBACK)).open)


def by_person(provider: Provider, credential: str = "person") -> CertsignOrder:
    return by_csc(provider, credential, authorization={"type": "authorization_code"})


def who(suite: ConfirmSuite, provider: Provider, confirmation: str) -> Person:
    """Approves on pages, and types what is asked: the code that was sent, the PIN."""

    def does(view: ConfirmationView) -> None:
        if view.step is ConfirmationStep.REDIRECT:
            suite.come_back(*approve(view), confirmation)
        else:
            known = {"PIN": provider.signing.account.pin}
            suite.type_in({one.id: known.get(one.id) or code_sent(provider) for one in view.questions}, confirmation)

    return does


@pytest.mark.parametrize("credential", ["person", "code", "pin-code", "pin"])
def test_two_signers_sign_one_after_the_other_and_the_seal_follows(
    suite: ConfirmSuite, provider: Provider, tmp_path: Path, credential: str
) -> None:
    request = two_signers(suite.blobs, contract_pdf(2), document(line("annex")))
    certsign = by_person(provider, credential)
    suite.ask(confirmation_order(request, certsign))
    confirm(suite, "c1", who(suite, provider, "c1"))
    suite.ask(confirmation_order(request, certsign, confirmation="c2", submitter=2, after=("c1",)))
    confirm(suite, "c2", who(suite, provider, "c2"))
    assert [one.status for one in suite.news()] == ["signed", "signed"]
    signer = suite.news("c1")[0].signer
    assert signer is not None
    assert (signer.provider, len(signer.sha256)) == ("127.0.0.1", 64)
    assert signer.subject
    assert signer.issuer
    sealed = suite.seal(request, "c1", "c2")
    made = provider.signing.record.counts()
    assert sum(made.values()) == 4, "one signature for each signer and document"
    for number, one in enumerate(sealed.documents):
        data = suite.blobs.get(one.file)
        assert data.startswith(suite.file(number, "c2"))
        assert suite.file(number, "c2").startswith(suite.file(number, "c1"))
        signatures = signed_hashes(data)
        assert len(signatures) == 3
        assert all(made[digest] == 1 for _, digest in signatures[:2])
        said = pdfsig(data, tmp_path)
        assert said.count("Signature is Valid") >= 3, said
        assert "Signature is Invalid" not in said
        verdict = suite.workshop.renderer.verify(
            data, [*suite.workshop.anchors, provider.authorities.root.encoded], sealed_now(), sealed_here=True
        )
        assert verdict.checksum_status == "valid", verdict
        assert not any(one.changed_after_signing for one in verdict.signatures)
    assert "Ana Kowalska" in pdf_text(suite.blobs.get(sealed.documents[0].file), tmp_path)


def sealed_now():  # type: ignore[no-untyped-def]
    from contracts.runtime.clock import now

    return now()


def test_whoever_refuses_is_asked_again_only_when_they_want(suite: ConfirmSuite, provider: Provider) -> None:
    request, certsign = two_signers(suite.blobs), by_person(provider)
    suite.ask(confirmation_order(request, certsign))
    suite.run()
    suite.come_back(*approve(suite.view(), "refuse"))
    suite.run()
    view = suite.view()
    assert (view.step, view.problem) == (ConfirmationStep.REFUSED, ConfirmationProblem.REFUSED)
    suite.pass_time()
    suite.run()
    assert suite.view().step is ConfirmationStep.REFUSED
    assert [one.status for one in suite.news()] == ["refused"]
    prepared = suite.row().preparation
    suite.again("c1", confirmation_order(request, certsign).certsign)
    confirm(suite, "c1", who(suite, provider, "c1"))
    assert suite.row().preparation == prepared, "the same files"


def test_a_wrong_code_is_tried_once(suite: ConfirmSuite, provider: Provider) -> None:
    request, certsign = two_signers(suite.blobs), by_csc(provider, "code")
    suite.ask(confirmation_order(request, certsign))
    suite.run()
    view = suite.view()
    assert view.step is ConfirmationStep.QUESTION
    suite.type_in({"OTP": "000000" if code_sent(provider) != "000000" else "1"})
    suite.run()
    suite.pass_time()
    suite.run()
    assert (suite.view().step, suite.view().problem) == (ConfirmationStep.REFUSED, ConfirmationProblem.WRONG_CODE)
    assert list(provider.calls).count("credentials/authorize") == 1


def test_nobody_answers(suite: ConfirmSuite, provider: Provider) -> None:
    suite.ask(confirmation_order(two_signers(suite.blobs), by_csc(provider, "code")))
    suite.run()
    suite.let_time_go_by()
    assert suite.view().step is ConfirmationStep.REFUSED
    suite.run()
    assert (suite.view().step, suite.view().problem) == (ConfirmationStep.REFUSED, ConfirmationProblem.EXPIRED)
    assert suite.row().state == "done"


@pytest.mark.parametrize("operation", ["credentials/authorize", "signatures/signHash"])
def test_the_person_is_asked_again_where_nobody_knows_what_came_of_it(
    suite: ConfirmSuite, provider: Provider, operation: str
) -> None:
    request = two_signers(suite.blobs, contract_pdf(1), document(line("annex")))
    suite.ask(confirmation_order(request, by_csc(provider, "code")))
    suite.run()
    provider.faults.set([Fault("lost", operation, times=1)])
    confirm(suite, "c1", who(suite, provider, "c1"))
    made = provider.signing.record.counts()
    for number in range(2):
        ((_, digest),) = signed_hashes(suite.file(number))
        assert made[digest] >= 1
    assert len(made) == 2, "the same hashes, whatever was lost"
