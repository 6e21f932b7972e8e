"""Signers who sign at the local provider with certificates of their own, by CSC over HTTP, on SQLite and PostgreSQL."""

import json
import ssl
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from contracts.errors import ServiceError
from contracts.events import DOCUMENTS_FAILED, Erased, StatementDue
from contracts.evidence.sealed_text import seal
from contracts.evidence.statements import LineReference, Parts, Statement
from contracts.providers import (
    CERTSIGN,
    CertsignOrder,
    CertsignSettings,
    ConfirmationProblem,
    ConfirmationStep,
    ConfirmationView,
)
from contracts.rpc.rendering import CheckCertsign, ToCheck
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from deploy.providers.csc import Provider
from deploy.providers.faults import Fault
from deploy.providers.signing import CREDENTIALS
from services.rendering import background, commands, results
from services.rendering.providers.opening import Providers
from services.rendering.rules.differences import Known, SignedElsewhere, unaccepted
from services.rendering.sealing.remote.certsign_check import CertsignChecks
from services.rendering.signatures.workshop import Workshop
from services.rendering.storage import confirmations
from tests.chaos.lost_answers import by_csc
from tests.contract.conftest import on
from tests.support.files.pdf_files import document, line, signed
from tests.support.rendering.providers.certificates_at_providers import RemoteKey, root_of
from tests.support.rendering.providers.confirming import (
    RETURN_URL,
    ConfirmSuite,
    approve,
    code_sent,
    confirm,
    confirmation_order,
    envelope,
    signed_hashes,
    two_signers,
)
from tests.support.rendering.providers.provider_suite import KILLED, Killed
from tests.support.rendering.seal_jobs import blobs, database, keys, put_clock_back, settings, told, workshop
from tests.support.rendering.seal_jobs import order as seal_ordered
from tests.support.rendering.sealing import contract_pdf, pdf_text, pdfsig
from tests.support.servers.providers import csc_provider
from tests.support.servers.providers.csc_dummy import RSA, csc_dummy
from tests.support.servers.providers.csc_provider import LOOPBACK
from tests.support.servers.providers.tsa import authority
from tests.support.services.secret_settings import LINK_SECRET

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
    drawn = [suite.database.read(confirmations.signings, name)[0].fields for name in ("c1", "c2")]
    assert [len(fields) for fields in drawn] == [4, 2]
    assert not set(drawn[0]) & set(drawn[1]), "what was drawn once is not drawn again"
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
            data, [*suite.workshop.anchors, provider.authorities.root.encoded], now(), sealed_here=True
        )
        assert verdict.checksum_status == "valid", verdict
        assert not any(one.changed_after_signing for one in verdict.signatures)
    assert "Ana Kowalska" in pdf_text(suite.blobs.get(sealed.documents[0].file), tmp_path)


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
    prepared, latest = suite.row().preparation, put_clock_back(suite.database)
    suite.again("c1", confirmation_order(request, certsign).certsign)
    confirm(suite, "c1", who(suite, provider, "c1"))
    assert suite.row().preparation == prepared, "the same files"
    assert suite.news()[-1].status == "signed"
    assert suite.news()[-1].at > latest


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


# --- what is asked, and of whom ---------------------------------------------------------------------------------------------


def test_what_comes_back_counts_once_and_only_what_was_sent_away(suite: ConfirmSuite, provider: Provider) -> None:
    suite.ask(confirmation_order(two_signers(suite.blobs), by_person(provider)))
    suite.run()
    first = suite.view()
    assert first.state is not None
    with pytest.raises(ServiceError) as refused:
        suite.come_back("of somebody else", {"code": "x"})
    assert refused.value.code == "conflict"
    state, answers = approve(first)
    assert suite.come_back(state, answers).step is ConfirmationStep.PREPARING
    assert suite.come_back(state, {"code": "another"}).step is ConfirmationStep.PREPARING
    suite.run()
    assert suite.row().stage == "signed"
    assert suite.come_back(state, answers).step is ConfirmationStep.SIGNING
    assert list(provider.calls).count("oauth2/token") == 2, "the service's own token, and the person's"


def test_people_log_in_at_the_provider_first_where_it_wants_that(
    suite: ConfirmSuite, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = provider.info
    monkeypatch.setattr(provider, "info", lambda version: {**really(version), "authType": ["oauth2code"]})
    suite.ask(confirmation_order(two_signers(suite.blobs), by_person(provider)))
    suite.run()
    login = suite.view()
    suite.come_back(*approve(login))
    suite.run()
    permission = suite.view()
    assert permission.step is ConfirmationStep.REDIRECT
    assert (permission.ask, permission.state != login.state) == (2, True)
    suite.come_back(*approve(permission))
    suite.run()
    assert suite.row().stage == "signed"
    assert suite.row().login is None


def test_one_hash_at_a_time(suite: ConfirmSuite, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider permits fewer hashes at once than there are documents: the person is asked for each lot of them."""
    monkeypatch.setitem(CREDENTIALS, "code", replace(CREDENTIALS["code"], multisign=1))
    request = two_signers(suite.blobs, contract_pdf(1), document(line("annex")))
    suite.ask(confirmation_order(request, by_csc(provider, "code")))
    suite.run()
    assert (suite.view().ask, suite.view().signed, suite.view().documents) == (1, 0, 2)
    suite.type_in({"OTP": code_sent(provider)})
    suite.run()
    assert (suite.view().step, suite.view().ask, suite.view().signed) == (ConfirmationStep.QUESTION, 2, 1)
    suite.type_in({"OTP": code_sent(provider)})
    suite.run()
    assert suite.row().stage == "signed"
    assert sorted(provider.signing.record.counts().values()) == [1, 1]


def test_an_answer_to_an_earlier_question_changes_nothing(suite: ConfirmSuite, provider: Provider) -> None:
    request = two_signers(suite.blobs)
    suite.ask(confirmation_order(request, by_csc(provider, "code")))
    suite.run()
    suite.type_in({"OTP": code_sent(provider)}, ask=7)
    suite.run()
    assert suite.view().step is ConfirmationStep.QUESTION
    suite.type_in({"OTP": code_sent(provider)})
    suite.run()
    assert suite.row().stage == "signed"


def test_a_wrong_pin_of_the_account_is_had_once_by_all_signers(suite: ConfirmSuite, provider: Provider) -> None:
    wrong = by_csc(provider, "pin", authorization={"pin": "1"})
    request = two_signers(suite.blobs)
    for number in range(3):
        suite.ask(confirmation_order(request, wrong, confirmation=f"c{number}"))
    for _ in range(3):
        suite.run()
        suite.pass_time()
    for number in range(3):
        assert suite.view(f"c{number}").step is ConfirmationStep.FAILED
        suite.again(f"c{number}", wrong)
    suite.run()
    assert provider.signing.wrong_pins("pin") == 1, "nor when the persons want it"
    assert {one.status for one in suite.news()} == {"failed"}
    right = confirmation_order(
        request, by_csc(provider, "pin", authorization={"pin": provider.signing.account.pin})
    ).certsign
    for number in range(3):
        suite.again(f"c{number}", right, 3)
    for _ in range(3):
        suite.run()
        suite.pass_time()
    assert {suite.row(f"c{number}").stage for number in range(3)} == {"signed"}


def test_nobody_signs_with_a_certificate_that_was_revoked(suite: ConfirmSuite, provider: Provider) -> None:
    provider.faults.set([Fault("revoked")])
    suite.ask(confirmation_order(two_signers(suite.blobs), by_person(provider)))
    suite.run()
    assert (suite.view().step, suite.view().problem) == (ConfirmationStep.FAILED, ConfirmationProblem.LOCKED)


def test_secrets_are_sealed_in_rows_and_in_no_log(
    suite: ConfirmSuite, provider: Provider, capfd: pytest.CaptureFixture[str]
) -> None:
    suite.ask(confirmation_order(two_signers(suite.blobs), by_csc(provider, "pin-code")))
    suite.run()
    code, pin = code_sent(provider), provider.signing.account.pin
    suite.type_in({"PIN": pin, "OTP": code})
    row = suite.row()
    said = " ".join(str(getattr(row, column.name)) for column in row.__table__.columns)
    assert row.answers
    suite.run()
    after = " ".join(
        str(getattr(suite.row(), column.name)) for column in row.__table__.columns if column.name != "order"
    )
    logged = capfd.readouterr()
    for secret in (code, pin):
        assert secret not in said
        assert secret not in after
        assert secret not in logged.out + logged.err
    done = suite.row()
    assert (done.answers, done.asked, done.grant, done.session, done.login, done.order) == (None,) * 6


@KILLED
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_answer_that_was_about_to_be_tried_when_the_process_was_killed(
    suite: ConfirmSuite, provider: Provider, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    suite.ask(confirmation_order(two_signers(suite.blobs), by_csc(provider, "code")))
    suite.run()
    suite.type_in({"OTP": code_sent(provider)})
    really = suite.work._begin_run

    def killed(row: Any) -> Any:
        if when == "after":
            really(row)
        raise Killed

    monkeypatch.setattr(suite.work, "_begin_run", killed)
    suite.run()
    suite.dead()
    suite.restart()
    suite.run()
    if when == "before":
        assert suite.row().stage == "signed", "it was not tried"
        return
    assert "credentials/authorize" not in provider.calls, "nobody knows whether it was tried"
    assert (suite.view().step, suite.view().ask) == (ConfirmationStep.QUESTION, 2)
    suite.type_in({"OTP": code_sent(provider)})
    suite.run()
    assert suite.row().stage == "signed"


# --- a worker of the operator's ---------------------------------------------------------------------------------------------


class PersonalWorker(BaseHTTPRequestHandler):
    """A worker that sends people away, and signs when they come back with the code that it gave them."""

    own = RemoteKey()
    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        content = json.dumps(getattr(self, body["operation"])(body)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def credential(self, _body: dict[str, Any]) -> dict[str, Any]:
        chain = [b64encode(one).decode() for one in self.own.own.encoded]
        known = {
            "id": "ann",
            "chain": chain,
            "mechanisms": [{"algorithm": "ecdsa", "hash": "sha256"}],
            "most_at_once": 9,
        }
        return {"status": "completed", "credential": known}

    def authorize(self, body: dict[str, Any]) -> dict[str, Any]:
        until = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
        if body["answers"].get("code") == "approved" and body["session"] == "s-1":
            return {"status": "completed", "grant": "g-1", "expires_at": until}
        url = f"https://worker.example.com/confirm?back={body['return_url']}&state={body['state']}"
        return {"status": "pending", "session": "s-1", "expires_at": until, "action_url": url}

    def sign(self, body: dict[str, Any]) -> dict[str, Any]:
        raw = [b64encode(self.own._raw(b64decode(one))).decode() for one in body["hashes"]]
        return {"status": "completed", "signatures": raw}

    def log_message(self, *_: Any) -> None:
        """Quiet."""


def test_a_worker_sends_people_away_and_back(suite: ConfirmSuite) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), PersonalWorker)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        known = CertsignSettings(
            provider="worker",
            url=f"http://127.0.0.1:{server.server_port}/certsign",
            secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            trust_anchors=[root_of(PersonalWorker.own.own)],
        )
        certsign = CertsignOrder(settings=seal(LINK_SECRET, CERTSIGN, known.model_dump_json()), provider="worker")
        suite.ask(confirmation_order(two_signers(suite.blobs), certsign))
        suite.run()
        view = suite.view()
        assert view.action_url == f"https://worker.example.com/confirm?back={RETURN_URL}&state={view.state}"
        suite.come_back(view.state or "", {"code": "approved"})
        suite.run()
        assert suite.row().stage == "signed"
        ((name, _),) = signed_hashes(suite.file())
        assert name == "Meier GmbH Seal"
    finally:
        server.shutdown()
        server.server_close()


# --- what is kept, and for how long -----------------------------------------------------------------------------------------


def files_there(tmp_path: Path) -> list[str]:
    folder = tmp_path / "blobs" / "submissions" / "7"
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(("prepared-c", "signed-c")))


def test_what_nobody_goes_on_with_is_discarded(
    suite: ConfirmSuite, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, certsign = two_signers(suite.blobs), by_person(provider)
    suite.leave("c0")
    suite.ask(confirmation_order(request, certsign, confirmation="c0"))
    suite.run()
    assert suite.row("c0").stage == "discarded", "the news of it came first"
    suite.ask(confirmation_order(request, certsign))
    suite.run()
    state, answers = approve(suite.view())
    suite.leave("c1")
    suite.come_back(state, answers)
    suite.run()
    assert (suite.row().stage, suite.view().step) == ("discarded", ConfirmationStep.NONE)
    assert not provider.signing.record.counts()
    assert len(files_there(tmp_path)) == 1
    monkeypatch.setattr(background, "LIMIT", timedelta(seconds=-1))
    background.sweep(suite.database, suite.blobs)
    assert files_there(tmp_path) == []


def test_what_was_refused_long_ago_is_discarded_and_said_so(
    suite: ConfirmSuite, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.ask(confirmation_order(two_signers(suite.blobs), by_person(provider)))
    suite.run()
    suite.come_back(*approve(suite.view(), "refuse"))
    suite.run()
    suite.work.discard_abandoned()
    assert suite.row().stage == "refused"
    monkeypatch.setattr(confirmations, "ABANDONED", timedelta(seconds=-5))
    suite.work.discard_abandoned()
    assert [one.status for one in suite.news()] == ["refused", "discarded"]
    assert suite.row().order is None


def test_an_erased_submission_leaves_nothing(suite: ConfirmSuite, provider: Provider, tmp_path: Path) -> None:
    request, certsign = two_signers(suite.blobs), by_person(provider)
    order = confirmation_order(request, certsign)
    suite.ask(order)
    confirm(suite, "c1", who(suite, provider, "c1"))
    assert len(files_there(tmp_path)) == 2
    before = envelope()
    keys = suite.database.write(commands.erase, envelope(), Erased(submission_id=7), datetime.now(UTC))
    results.remove(suite.blobs, keys)
    assert files_there(tmp_path) == []
    row = suite.row()
    assert (row.order, row.prepared_for, row.signer, row.stated) == (None, None, None, {})
    late = order.model_copy(update={"confirmation_id": "c9"})
    suite.database.write(commands.accept_confirmation, before, late, datetime.now(UTC))
    assert suite.database.read(confirmations.find, "c9") is None


# --- the sealing ------------------------------------------------------------------------------------------------------------


def test_nothing_takes_the_place_of_a_signature_that_is_lost(suite: ConfirmSuite, provider: Provider) -> None:
    request = two_signers(suite.blobs)
    seal_ordered(suite.database, request.model_copy(update={"confirmations": ["c1"]}))
    suite.run()
    (failed,) = [event["data"] for event in told(suite.database) if event["type"] == DOCUMENTS_FAILED.type]
    assert "What a signer has signed at the provider is not known here" in failed["reason"]


def test_what_was_signed_there_is_what_the_statement_confirms(suite: ConfirmSuite, provider: Provider) -> None:
    request = two_signers(suite.blobs)
    suite.ask(confirmation_order(request, by_person(provider)))
    confirm(suite, "c1", who(suite, provider, "c1"))
    row = suite.row()
    signed = SignedElsewhere(row.submitter_id, row.stated)

    def known(values: str) -> Known:
        reference = LineReference(number=1, hash="h")
        return Known(
            Statement(
                submission=7,
                submitter=1,
                completed_at=datetime.now(UTC),
                line=reference,
                head=reference,
                values=values,
                documents=row.stated["documents"],
                paper="p",
            )
        )

    def found(values: str) -> list[str]:
        order = request.model_copy(update={"confirmations": ["c1"]})
        sentences = unaccepted(order, [known(values)], datetime.now(UTC), [signed])
        return [one for one in sentences if "signed at the provider" in one]

    suite.database.write(
        commands.take_on_statement, StatementDue(statement=known("0" * 64).statement, parts=Parts()), now()
    )
    seal_ordered(suite.database, request.model_copy(update={"confirmations": ["c1"], "to_check": ToCheck()}))
    suite.run()
    (stopped,) = [event["data"] for event in told(suite.database) if event["type"] == DOCUMENTS_FAILED.type]
    assert any("signed at the provider" in one for one in stopped["differences"]), "nothing of it is sealed"
    assert found(row.stated["values"]) == []
    (sentence,) = found("0" * 64)
    assert sentence.startswith(
        "what Ana Kowalska (Client) has signed at the provider is not what their completion confirms"
    )


def test_a_document_that_came_signed_keeps_that_signature(
    suite: ConfirmSuite, provider: Provider, tmp_path: Path
) -> None:
    data = signed(document(line("agreement")))
    request = two_signers(suite.blobs, data)
    documents = [one.model_copy(update={"signed": True}) for one in request.documents]
    request = request.model_copy(update={"documents": documents})
    certsign = by_csc(provider, "code")
    suite.ask(confirmation_order(request, certsign))
    confirm(suite, "c1", who(suite, provider, "c1"))
    suite.ask(confirmation_order(request, certsign, confirmation="c2", submitter=2, after=("c1",)))
    confirm(suite, "c2", who(suite, provider, "c2"))
    sealed = suite.blobs.get(suite.seal(request, "c1", "c2").documents[0].file)
    assert sealed.startswith(data)
    assert len(signed_hashes(sealed)) == 4
    said = pdfsig(sealed, tmp_path)
    assert "Signature is Invalid" not in said
    verdict = suite.workshop.renderer.verify(sealed, suite.workshop.anchors, now(), sealed_here=True)
    assert {one.integrity for one in verdict.signatures} == {"valid"}
    assert not any(one.changed_after_signing for one in verdict.signatures)


@on("sqlite")
@pytest.mark.parametrize("level", ["B-LT", "B-LTA"])
def test_time_stamps_and_archives(
    database: Database, blobs: BlobStore, keys: Path, provider: Provider, tmp_path: Path, level: str
) -> None:
    with authority("crl") as tsa:
        own = settings(keys, tsa_url=tsa.url, tsa_timeout=60, tsa_attempts=2, pades_level=level)
        workshop = Workshop(own).open()
        suite = ConfirmSuite(database, blobs, workshop, own, Providers(Outbound(LOOPBACK)).open)
        request, certsign = two_signers(suite.blobs, contract_pdf(2)), by_person(provider)
        suite.ask(confirmation_order(request, certsign))
        confirm(suite, "c1", who(suite, provider, "c1"))
        suite.ask(confirmation_order(request, certsign, confirmation="c2", submitter=2, after=("c1",)))
        confirm(suite, "c2", who(suite, provider, "c2"))
        sealed = suite.seal(request, "c1", "c2")
        data = suite.blobs.get(sealed.documents[0].file)
        verdict = workshop.renderer.verify(
            data,
            [*workshop.anchors, provider.authorities.root.encoded, tsa.root],
            now(),
            sealed_here=True,
        )
        workshop.close()
    assert not any(one.changed_after_signing for one in verdict.signatures), verdict
    assert {one.integrity for one in verdict.signatures} == {"valid"}
    assert "Signature is Invalid" not in pdfsig(data, tmp_path)
    assert sealed.pades_level in ("B-T", "B-LT", "B-LTA")


def test_an_authority_that_fails_is_told_and_done_without(
    database: Database, blobs: BlobStore, keys: Path, provider: Provider
) -> None:
    with authority("crl") as tsa:
        own = settings(keys, tsa_url=tsa.url, tsa_timeout=60, tsa_attempts=1)
        workshop = Workshop(own).open()
        tsa.mode = "error"
        suite = ConfirmSuite(database, blobs, workshop, own, Providers(Outbound(LOOPBACK)).open)
        request = two_signers(suite.blobs)
        suite.ask(confirmation_order(request, by_person(provider)))
        confirm(suite, "c1", who(suite, provider, "c1"))
        seal_ordered(suite.database, request.model_copy(update={"confirmations": ["c1"]}))
        for _ in range(3):
            suite.run()
            suite.pass_time()
        sealed = suite.seal(request, "c1")
        workshop.close()
    assert any("The signature of a signer is PAdES B-B without one" in one.message for one in sealed.report), (
        sealed.report
    )
    assert sealed.pades_level == "B-B"


# --- other providers, and what an admin asks ---------------------------------------------------------------------------------


def test_a_service_of_version_1_that_somebody_else_wrote(suite: ConfirmSuite, tmp_path: Path) -> None:
    with csc_dummy(tmp_path / "dummy") as dummy:
        root = ssl.DER_cert_to_PEM_cert(dummy.root)
        known = CertsignSettings(url=dummy.url, credential_id=RSA, trust_anchors=[root])
        certsign = CertsignOrder(settings=seal(LINK_SECRET, CERTSIGN, known.model_dump_json()), provider="dummy")
        request = two_signers(suite.blobs)
        for number, after in ((1, ()), (2, ("c1",))):
            name = f"c{number}"
            suite.ask(confirmation_order(request, certsign, confirmation=name, submitter=number, after=after))
            suite.run()
            assert suite.row(name).stage == "signed", suite.row(name).last_error
        data = suite.blobs.get(suite.seal(request, "c1", "c2").documents[0].file)
    said = pdfsig(data, tmp_path)
    assert said.count("Signature is Valid") >= 3
    assert "Signature is Invalid" not in said


def test_an_account_whose_signers_log_in_there_is_not_called_faulty(
    suite: ConfirmSuite, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = provider.info
    monkeypatch.setattr(provider, "info", lambda version: {**really(version), "authType": ["oauth2code"]})
    checks = CertsignChecks(suite.database, suite.workshop, Providers(Outbound(LOOPBACK)).open, LINK_SECRET)
    for mode, problem in (("signer", None), ("seal", "a seal is made without one")):
        known = csc_provider.settings(provider, "person", mode=mode, authorization={"type": "authorization_code"})
        found = checks.check(CheckCertsign(settings=seal(LINK_SECRET, CERTSIGN, known.model_dump_json()), sign=True))
        assert (found.problem is None) if problem is None else (problem in (found.problem or ""))
