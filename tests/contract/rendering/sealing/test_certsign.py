"""Seal jobs whose documents a provider signs, on SQLite and PostgreSQL, with real children, real files and a real key."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.envelope import Envelope
from contracts.events import (
    CERTSIGN_CHANGED,
    DOCUMENTS_FAILED,
    DOCUMENTS_SEALED,
    DocumentsSealed,
    Erased,
)
from contracts.providers import CertsignOrder
from contracts.runtime.clock import uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Outcome, Retry
from contracts.runtime.data.files.blobstore import BlobStore
from services.rendering import background, commands, queries
from services.rendering.models import CertsignJob, CertsignSigning, CertsignTrial, SealJob
from services.rendering.providers.failures import ProviderFailed
from services.rendering.rules import domain
from services.rendering.sealing.remote import certsign_work
from services.rendering.signatures.workshop import Workshop
from services.rendering.storage import certsigning
from tests.contract.conftest import on
from tests.support.files.pdf_files import document, line
from tests.support.material.stated import changed, confirmed
from tests.support.noting import noting
from tests.support.present import present
from tests.support.rendering.providers.certificates_at_providers import RemoteKey, identity, lost
from tests.support.rendering.providers.certificates_at_providers import order as ordered
from tests.support.rendering.providers.provider_suite import KILLED, Suite, asked, killed_when, retried, what_was_signed
from tests.support.rendering.seal_jobs import (
    blobs,
    count,
    database,
    keys,
    order,
    put_clock_back,
    settings,
    told,
    workshop,
)
from tests.support.rendering.sealing import assert_sealed, contract_pdf, pdf_text, pdfsig, seal_request

__all__ = ["blobs", "database", "keys", "workshop"]


@pytest.fixture
def key() -> RemoteKey:
    return RemoteKey()


@pytest.fixture
def suite(database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, key: RemoteKey) -> Suite:
    return Suite(database, blobs, workshop, settings(keys), key)


def prepared_files(tmp_path: Path) -> list[str]:
    folder = tmp_path / "blobs" / "submissions" / "7"
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("prepared-"))


@pytest.mark.parametrize("kind", ["ec-p256", "rsa-3072"])
def test_every_document_is_signed_by_the_provider_and_the_trail_by_us(suite: Suite, kind: Any, tmp_path: Path) -> None:
    suite.key.own = identity("Meier GmbH Seal", kind)
    asked(suite, contract_pdf(3), document(line("annex")))
    assert present(suite.database.read(queries.job, "seal-1")).state == domain.WAITING
    suite.run()
    sealed = suite.sealed()
    assert (sealed.pades_level, sealed.report) == ("B-B", [])
    for one in sealed.documents:
        data = suite.blobs.get(one.file)
        assert_sealed(data, tmp_path)
        assert "Signer Certificate Common Name: Meier GmbH Seal" in pdfsig(data, tmp_path)
        assert suite.database.read(queries.sealed_here, one.file.sha256)
    trail = suite.blobs.get(sealed.audit_trail)
    assert_sealed(trail, tmp_path)
    assert "Signer Certificate Common Name: Countersign Seal" in pdfsig(trail, tmp_path)
    said = pdf_text(trail, tmp_path)
    for one in sealed.documents:
        assert one.file.sha256 in said
    assert said.count("Signed with the certificate of Meier GmbH Seal, issued by Meier GmbH Root") == 2
    assert "by sign.example.com on" in said
    assert len(suite.key.signed) == len(set(suite.key.signed)) == 2
    assert suite.key.calls == {"credential": 1, "authorize": 1, "sign": 1}, "one authorisation for all of them"
    assert suite.key.labels == ["Consulting agreement 2026"]
    (state,) = suite.states()
    assert (state.status, state.provider, state.message) == ("signed", "sign.example.com", None)
    assert state.subject is not None
    assert "CN=Meier GmbH Seal" in state.subject
    assert state.valid_to is not None


def test_what_was_prepared_goes_once_it_is_sealed(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(suite, contract_pdf(1), contract_pdf(2))
    suite.run()
    assert len(prepared_files(tmp_path)) == 2
    monkeypatch.setattr(background, "LIMIT", timedelta(seconds=-1))
    background.sweep(suite.database, suite.blobs)
    assert prepared_files(tmp_path) == []
    assert count(suite.database, CertsignSigning) == 0
    row = suite.row()
    assert (row.prepared_for, row.order, row.settings_mark) == (None, None, None)
    assert suite.database.read(certsigning.last_signed_at, "sign.example.com") == row.finished_at
    for one in suite.sealed().documents:
        assert suite.blobs.get(one.file)


def test_most_at_once_cuts_the_authorisations(suite: Suite, tmp_path: Path) -> None:
    suite.key.most_at_once = 2
    asked(suite, *(contract_pdf(pages) for pages in range(1, 6)))
    suite.run()
    assert [len(hashes) for hashes in suite.key.permitted] == [2, 2, 1]
    assert len(set(suite.key.signed)) == 5
    for one in suite.sealed().documents:
        assert_sealed(suite.blobs.get(one.file), tmp_path)


def test_a_seal_by_a_provider_never_certifies(suite: Suite) -> None:
    request = seal_request(suite.blobs, certsign=ordered(suite.key.own))
    account = request.account.model_copy(update={"with_certification": True})
    order(suite.database, request.model_copy(update={"account": account}))
    suite.run()
    sealed = suite.sealed()
    assert b"/DocMDP" not in suite.blobs.get(sealed.documents[0].file)
    assert b"/DocMDP" in suite.blobs.get(sealed.audit_trail)


# --- the provider does not do it ---------------------------------------------------------------------------------------------


def refuse(code: str, message: str, **more: Any) -> Callable[[], None]:
    more.setdefault("retryable", False)

    def fault() -> None:
        raise ProviderFailed(code, message, **more)

    return fault


@pytest.mark.parametrize("step", ["credential", "authorize", "sign"])
def test_an_answer_that_is_lost_is_asked_for_again(suite: Suite, step: str, tmp_path: Path) -> None:
    suite.key.after[step] = [lost]
    asked(suite, contract_pdf(1), contract_pdf(2))
    suite.run()
    assert suite.kinds() == [CERTSIGN_CHANGED.type], "it waits"
    (waiting,) = suite.states()
    assert (waiting.status, waiting.message) == ("pending", "the provider did not answer")
    assert waiting.next_attempt_at is not None
    assert timedelta(seconds=3) < waiting.next_attempt_at - waiting.at < timedelta(seconds=7)
    suite.pass_time()
    suite.run()
    assert [state.status for state in suite.states()] == ["pending", "signed"]
    for one in suite.sealed().documents:
        data = suite.blobs.get(one.file)
        assert_sealed(data, tmp_path)
        assert set(what_was_signed(data)) <= set(suite.key.signed)
    assert len(suite.key.signed) == 2
    assert len(set(suite.key.permitted)) == 1


def test_a_provider_that_knows_no_repeats_is_asked_for_another_permission(suite: Suite, tmp_path: Path) -> None:
    """It signed, the answer was lost, and the permission is used up: the same files, a fresh authorisation."""
    suite.key.idempotent = False
    suite.key.after["sign"] = [lost]
    asked(suite)
    for _ in range(3):
        suite.run()
        suite.pass_time()
    (document,) = suite.sealed().documents
    data = suite.blobs.get(document.file)
    assert_sealed(data, tmp_path)
    assert suite.key.signed == what_was_signed(data) * 2, "the same hash; one of both signatures is in the file"
    assert [state.status for state in suite.states()] == ["pending", "pending", "signed"]


def grant_is_over(suite: Suite) -> None:
    """As if the provider had been away for an hour."""
    past = datetime.now(UTC) - timedelta(hours=1)
    suite.database.write(lambda session: session.execute(sa.update(CertsignJob).values(grant_until=past)))


@pytest.mark.parametrize("code", ["not_known", "grant_used", "grant_expired"])
def test_a_provider_that_keeps_keys_and_refuses_after_a_lost_answer_needs_a_person(suite: Suite, code: str) -> None:
    """Under another key it could sign a second time."""
    suite.key.after["sign"] = [lost]
    asked(suite)
    suite.run()
    suite.key.before["sign"] = [refuse(code, "nobody knows what came of it")]
    for _ in range(3):
        suite.pass_time()
        suite.run()
    assert [state.status for state in suite.states()] == ["pending", "failed"]
    said = suite.states()[-1].message
    assert said is not None
    assert said.startswith("nobody knows what came of it (it was asked before and may have signed")
    assert suite.key.calls == {"credential": 2, "authorize": 1, "sign": 2}
    assert len(suite.key.signed) == 1
    retried(suite, ordered(suite.key.own))
    suite.run()
    assert suite.sealed()
    assert suite.key.calls["authorize"] == 2, "the person has looked, and wants it signed"


def test_a_provider_that_keeps_keys_is_asked_again_under_the_same_one_however_late(suite: Suite) -> None:
    suite.key.after["sign"] = [lost]
    asked(suite)
    suite.run()
    grant_is_over(suite)
    suite.pass_time()
    suite.run()
    assert suite.sealed()
    assert suite.key.calls == {"credential": 2, "authorize": 1, "sign": 2}
    assert len(suite.key.signed) == 1


def test_a_provider_that_keeps_keys_says_that_nothing_was_signed(suite: Suite) -> None:
    """Then another permission does no harm, and nobody has to look."""
    away = refuse("unreachable", "the provider is away", retryable=True)
    suite.key.before["sign"] = [away, refuse("grant_expired", "it is over", retryable=True)]
    asked(suite)
    for _ in range(3):
        suite.run()
        grant_is_over(suite)
        suite.pass_time()
    assert suite.sealed()
    assert suite.key.calls["authorize"] == 2
    assert len(suite.key.signed) == 1


def test_signatures_that_take_too_long_are_for_a_person_where_keys_are_kept(suite: Suite) -> None:
    suite.key.polls = 100
    asked(suite)
    suite.run()
    past = datetime.now(UTC) - timedelta(minutes=1)
    suite.database.write(lambda session: session.execute(sa.update(CertsignJob).values(session_until=past)))
    suite.pass_time()
    suite.run()
    assert [state.status for state in suite.states()] == ["failed"]
    assert suite.key.calls["authorize"] == 1


def test_what_is_not_worth_another_try_waits_for_a_person(suite: Suite, tmp_path: Path) -> None:
    suite.key.before["authorize"] = [refuse("quota", "no signatures are left on the account")]
    asked(suite)
    for _ in range(3):
        suite.run()
        suite.pass_time()
    (state,) = suite.states()
    assert (state.status, state.message) == ("failed", "no signatures are left on the account")
    assert state.next_attempt_at is None
    assert suite.key.calls["authorize"] == 1
    job = suite.database.read(queries.job, "seal-1")
    assert job is not None
    assert job.request is not None, "it can still be sealed"
    assert prepared_files(tmp_path)
    assert suite.kinds() == [CERTSIGN_CHANGED.type]
    latest = put_clock_back(suite.database)
    retried(suite, ordered(suite.key.own), event_id="e9")
    retried(suite, ordered(suite.key.own), event_id="e9")
    suite.run()
    states = suite.states()
    assert [state.status for state in states] == ["failed", "pending", "signed"]
    assert latest < states[1].at < states[2].at
    assert_sealed(suite.blobs.get(suite.sealed().documents[0].file), tmp_path)


def test_a_refusal_that_the_provider_counts_is_had_once_by_all_submissions(suite: Suite) -> None:
    """A wrong PIN locks the credential after a few tries."""
    wrong = refuse("wrong_pin", "the provider does not accept the PIN", counts=True)
    suite.key.before["authorize"] = [wrong] * 5
    for number in range(4):
        asked(suite, seal_id=f"seal-{number + 1}")
    suite.run()
    assert suite.key.calls["authorize"] == 1
    assert [state.status for state in suite.states()] == ["failed"] * 4
    assert {state.message for state in suite.states()} == {"the provider does not accept the PIN"}
    suite.restart()
    suite.key.before["authorize"] = []
    retried(suite, ordered(suite.key.own))
    suite.run()
    assert suite.key.calls["authorize"] == 2, "a person has asked for it"
    assert suite.sealed().seal_id == "seal-1"


@KILLED
def test_a_refusal_that_counts_is_not_had_again_after_a_kill(suite: Suite) -> None:
    suite.key.before["authorize"] = [refuse("wrong_pin", "the provider does not accept the PIN", counts=True)]
    asked(suite)
    killed_when(suite, "after note_refusal")
    suite.restart()
    suite.run()
    assert suite.key.calls["authorize"] == 1
    assert [state.status for state in suite.states()] == ["failed"]


def with_pin(suite: Suite) -> CertsignOrder:
    """The order of an account whose settings have a PIN, at a provider without keys of requests, as CSC's are."""
    suite.key.idempotent = False
    return ordered(suite.key.own, authorization={"type": "none", "pin": "4711"})


def nobody_tries_any_more(suite: Suite) -> None:
    """As if whoever tried settings, and was killed, had begun long ago."""
    past = datetime.now(UTC) - timedelta(seconds=1)
    suite.database.write(lambda session: session.execute(sa.update(CertsignTrial).values(tried_until=past)))


@pytest.mark.parametrize(
    "fault",
    [
        lost,
        refuse("unavailable", "the provider answered 504", retryable=True),
        refuse("bad_answer", "the provider's answer is not JSON"),
        refuse("invalid_request", "the provider answered 400 (Die Geheimzahl stimmt nicht)"),
        refuse("not_authorized", "the provider does not let us (Zugriff verweigert)"),
    ],
    ids=["lost", "504", "no JSON", "other words", "other words, 401"],
)
def test_a_pin_that_may_have_been_refused_is_tried_once(suite: Suite, fault: Callable[[], None]) -> None:
    """The provider counts what it refuses, whether its answer comes through or not, and in whatever words."""
    suite.key.before["authorize"] = [fault] * 9
    certsign = with_pin(suite)
    for number in range(3):
        asked(suite, seal_id=f"seal-{number + 1}", certsign=certsign)
    for _ in range(3):
        suite.run()
        suite.restart()
        suite.pass_time()
    assert suite.key.calls["authorize"] == 1
    assert [state.status for state in suite.states()] == ["failed"] * 3
    assert all("tried once" in (state.message or "") for state in suite.states())
    suite.key.before["authorize"] = []
    retried(suite, certsign)
    suite.run()
    assert suite.sealed().seal_id == "seal-1"


def test_a_pin_that_is_known_to_be_right_is_sent_again_when_an_answer_is_lost(suite: Suite) -> None:
    certsign = with_pin(suite)
    asked(suite, certsign=certsign)
    suite.run()
    for number in (2, 3):
        suite.restart()
        suite.key.after["authorize"] = [lost]
        asked(suite, seal_id=f"seal-{number}", certsign=certsign)
        suite.run()
        suite.pass_time()
        suite.run()
    assert suite.kinds().count(DOCUMENTS_SEALED.type) == 3
    assert "failed" not in {state.status for state in suite.states()}


@pytest.mark.parametrize("code", ["unreachable", "not_called", "busy"])
def test_a_pin_that_nobody_has_looked_at_is_sent_later(suite: Suite, code: str) -> None:
    suite.key.before["authorize"] = [refuse(code, "the provider is away", retryable=True)] * 2
    asked(suite, certsign=with_pin(suite))
    for _ in range(3):
        suite.run()
        suite.restart()
        suite.pass_time()
    assert suite.sealed()
    assert suite.key.calls["authorize"] == 3


@KILLED
@pytest.mark.parametrize("moment", ["before note_refusal", "before end_turn"])
def test_a_pin_is_not_sent_again_when_the_process_was_killed_before_it_wrote_down_the_refusal(
    suite: Suite, moment: str
) -> None:
    suite.key.before["authorize"] = [refuse("wrong_pin", "the provider does not accept the PIN", counts=True)] * 2
    certsign = with_pin(suite)
    for number in range(2):
        asked(suite, seal_id=f"seal-{number + 1}", certsign=certsign)
    killed_when(suite, moment)
    suite.restart()
    suite.run()
    assert suite.key.calls["authorize"] == 1
    nobody_tries_any_more(suite)
    suite.pass_time()
    suite.run()
    assert suite.key.calls["authorize"] == 1
    assert [state.status for state in suite.states()] == ["failed"] * 2


def test_a_provider_is_asked_again_for_a_day_then_a_person_has_to(suite: Suite) -> None:
    suite.key.before["credential"] = [lost] * 100
    asked(suite)
    for _ in range(40):
        suite.run()
        suite.pass_time()
    assert suite.key.calls["credential"] == 1 + len(suite.asking.schedule) == 29
    total = sum(suite.asking.schedule, timedelta())
    assert timedelta(hours=22) < total <= timedelta(hours=24)
    states = suite.states()
    assert [state.status for state in states] == ["pending"] * 28 + ["failed"]
    assert states[-1].message == "the provider did not answer"
    suite.key.before["credential"] = []
    retried(suite, ordered(suite.key.own))
    suite.run()
    assert suite.sealed()
    assert suite.row().preparation == 1, "attempts that prepare nothing have no files of their own"


def test_a_provider_that_says_when_is_not_asked_before(suite: Suite) -> None:
    busy = refuse("busy", "too many requests", retryable=True, retry_after=timedelta(minutes=7))
    suite.key.before["authorize"] = [busy]
    asked(suite)
    suite.run()
    (state,) = suite.states()
    assert state.next_attempt_at is not None
    assert timedelta(minutes=6, seconds=50) < state.next_attempt_at - state.at < timedelta(minutes=7, seconds=10)


def test_whoever_waits_goes_on_when_the_provider_is_back(suite: Suite) -> None:
    suite.key.before["credential"] = [lost] * 8
    for number in range(3):
        asked(suite, seal_id=f"seal-{number + 1}")
    for _ in range(2):
        suite.run()
        suite.pass_time()
    suite.run()
    calls = suite.key.calls["credential"]
    suite.key.before["credential"] = [lost]
    suite.asking.look_for_providers()
    suite.run()
    assert suite.key.calls["credential"] == calls + 1, "one of them asks for all"
    suite.asking.look_for_providers()
    suite.run()
    assert suite.kinds().count(DOCUMENTS_SEALED.type) == 3


def test_who_was_told_when_to_come_waits_also_when_the_provider_is_back(suite: Suite) -> None:
    """Of two submissions one could not reach the provider, the other was told to come later."""
    suite.key.before["credential"] = [lost]
    asked(suite)
    suite.run()
    busy = refuse("busy", "too many requests", retryable=True, retry_after=timedelta(minutes=7))
    suite.key.before["authorize"] = [busy]
    asked(suite, seal_id="seal-2")
    suite.run()
    assert suite.key.calls["authorize"] == 1
    suite.asking.look_for_providers()
    suite.run()
    assert suite.sealed().seal_id == "seal-1"
    assert suite.key.calls["authorize"] == 2
    assert suite.row(2).next_attempt_at > datetime.now(UTC) + timedelta(minutes=6)


def test_a_provider_that_only_tells_its_certificate_is_not_taken_for_one_that_is_back(suite: Suite) -> None:
    suite.key.before["authorize"] = [refuse("unavailable", "out of order", retryable=True)] * 5
    asked(suite)
    suite.run()
    for _ in range(3):
        suite.asking.look_for_providers()
        suite.run()
    assert suite.key.calls == {"credential": 1, "authorize": 1}


def test_signatures_in_another_order_are_not_used(suite: Suite) -> None:
    suite.key.shuffled = True
    asked(suite, contract_pdf(1), contract_pdf(2))
    suite.run()
    (state,) = suite.states()
    assert state.status == "failed"
    assert state.message is not None
    assert "not in order" in state.message
    signings = suite.database.read(certsigning.signings, 1)
    assert [signing.signature for signing in signings] == [None, None], "nothing of it is stored"
    assert suite.kinds() == [CERTSIGN_CHANGED.type]


def test_signatures_that_take_a_while_are_polled_for(suite: Suite, tmp_path: Path) -> None:
    suite.key.polls = 3
    asked(suite)
    for _ in range(5):
        suite.run()
        suite.restart()
        suite.pass_time()
    assert_sealed(suite.blobs.get(suite.sealed().documents[0].file), tmp_path)
    assert suite.key.calls == {"credential": 1, "authorize": 1, "sign": 4}
    assert [state.status for state in suite.states()] == ["signed"]


def test_many_submissions_have_the_same_chain_checked_once_each_for_its_own_anchors(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    renderer, checked = suite.workshop.renderer, list[Any]()
    really = renderer.check_chain
    monkeypatch.setattr(renderer, "check_chain", noting(checked, really))
    for number in range(3):
        asked(suite, seal_id=f"seal-{number + 1}")
        suite.run()
    assert len(checked) == 1
    asked(suite, seal_id="seal-4", certsign=ordered(identity("Somebody Else")))
    suite.run()
    assert [state.status for state in suite.states()] == ["signed"] * 3 + ["failed"]
    assert suite.kinds().count(DOCUMENTS_SEALED.type) == 3


def test_a_certificate_that_nobody_trusts_signs_nothing(suite: Suite) -> None:
    asked(suite, certsign=ordered(identity("Somebody Else")))
    suite.run()
    (state,) = suite.states()
    assert state.status == "failed"
    assert state.message is not None
    assert "does not lead to a trusted root" in state.message
    assert suite.key.calls == {"credential": 1}


def test_another_certificate_makes_other_files_while_nothing_is_signed(suite: Suite, tmp_path: Path) -> None:
    suite.key.before["authorize"] = [lost]
    asked(suite)
    suite.run()
    before = suite.database.read(certsigning.signings, 1)[0].hash
    suite.key.own = identity("Meier GmbH Seal, renewed")
    retried(suite, ordered(suite.key.own))
    suite.pass_time()
    suite.run()
    data = suite.blobs.get(suite.sealed().documents[0].file)
    assert "Meier GmbH Seal, renewed" in pdfsig(data, tmp_path)
    assert suite.key.signed == what_was_signed(data)
    assert before not in suite.key.signed


def test_another_certificate_in_the_middle_needs_a_person(suite: Suite, tmp_path: Path) -> None:
    suite.key.most_at_once = 1
    suite.key.after["authorize"] = [lambda: None, lost]
    asked(suite, contract_pdf(1), contract_pdf(2))
    suite.run()
    suite.key.own = identity("Meier GmbH Seal, renewed")
    renewed = ordered(suite.key.own)
    retried(suite, renewed)
    suite.pass_time()
    suite.run()
    state = suite.states()[-1]
    assert state.status == "failed"
    assert state.message is not None
    assert "certificate was replaced" in state.message
    retried(suite, renewed)
    suite.run()
    for one in suite.sealed().documents:
        assert "Meier GmbH Seal, renewed" in pdfsig(suite.blobs.get(one.file), tmp_path)


def test_it_is_waived_and_the_trail_says_by_whom(suite: Suite, tmp_path: Path) -> None:
    suite.key.before["authorize"] = [refuse("quota", "no signatures are left")]
    asked(suite, contract_pdf(1), contract_pdf(2))
    suite.run()
    retried(suite, waived_by="paula@example.com")
    suite.run()
    sealed = suite.sealed()
    for one in sealed.documents:
        assert "Signer Certificate Common Name: Countersign Seal" in pdfsig(suite.blobs.get(one.file), tmp_path)
    said = " ".join(pdf_text(suite.blobs.get(sealed.audit_trail), tmp_path).split())
    assert "The signature of sign.example.com was waived by paula@example.com on" in said
    state = suite.states()[-1]
    assert (state.status, state.waived_by) == ("failed", "paula@example.com")
    assert suite.key.signed == []
    retried(suite, ordered(suite.key.own))
    suite.run()
    assert suite.kinds().count(DOCUMENTS_SEALED.type) == 1


def test_it_is_never_sealed_with_our_own_certificate_unasked(suite: Suite) -> None:
    """Not even where the seal job is made due by hand."""
    suite.key.before["authorize"] = [refuse("quota", "no signatures are left")]
    asked(suite)
    suite.run()

    def due(session: Any) -> None:
        session.execute(sa.update(SealJob).values(state="due", next_attempt_at=datetime.now(UTC)))

    suite.database.write(due)
    suite.run()
    assert suite.kinds() == [CERTSIGN_CHANGED.type]
    job = suite.database.read(queries.job, "seal-1")
    assert job is not None
    assert job.last_error == "the provider has not signed yet"


def test_what_cannot_be_sealed_at_all_is_told_as_ever(suite: Suite) -> None:
    from tests.support.rendering import drawing

    value = drawing.field_value(
        "text", "word " * 4000, drawing.area(0.1, 0.1, 0.1, 0.01, attachment_uuid="d0"), name="City"
    )
    asked(suite, values=[value])
    suite.run()
    assert suite.kinds() == [CERTSIGN_CHANGED.type, DOCUMENTS_FAILED.type]
    job = suite.database.read(queries.job, "seal-1")
    assert job is not None
    assert (job.state, job.request) == ("parked", None)
    assert "City" in (job.last_error or "")
    assert suite.key.signed == []


def test_an_erased_submission_leaves_nothing(suite: Suite, tmp_path: Path) -> None:
    suite.key.before["sign"] = [lost]
    asked(suite)
    suite.run()
    assert suite.row().grant is not None
    assert "grant 0" not in str(vars(suite.row())), "it is sealed"
    erased = Erased(submission_id=7)
    envelope = Envelope(
        id=uuid7(),
        type="submission.erased",
        source="submissions",
        subject="submission:7",
        occurred_at=datetime.now(UTC),
        data={},
    )
    removed = suite.database.write(commands.erase, envelope, erased, datetime.now(UTC))
    assert removed == ["submissions/7/prepared-1-1-0"]
    suite.pass_time()
    suite.run()
    row = suite.row()
    assert (row.state, row.order, row.prepared_for, row.grant) == ("done", None, None, None)
    assert count(suite.database, CertsignSigning) == 0
    assert suite.key.calls["sign"] == 1
    job = suite.database.read(queries.job, "seal-1")
    assert job is not None
    assert (job.state, job.request) == ("parked", None)


# --- killed ------------------------------------------------------------------------------------------------------------------


@on("postgresql")
@KILLED
@pytest.mark.parametrize("keeps_keys", [True, False], ids=["keeps keys", "keeps none"])
def test_killed_at_any_moment_each_document_is_signed_once_as_it_was_authorised(
    suite: Suite, keeps_keys: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that keeps no keys may have to sign again what nobody knows of; one of both signatures is in the file."""
    monkeypatch.setattr(suite.key, "most_at_once", 1)
    monkeypatch.setattr(suite.key, "idempotent", keeps_keys)
    files = [contract_pdf(1), document(line("annex"))]
    asked(suite, *files, seal_id="whole")
    moments = killed_when(suite, None)
    arrows = {"after _claim", "before keep_prepared", "after authorize", "after sign", "before keep_signatures"}
    assert arrows <= set(moments)
    for number, moment in enumerate(moments):
        if number and moment.startswith("before"):
            continue  # nothing was done since the moment before
        permitted, signed = len(suite.key.permitted), len(suite.key.signed)
        asked(suite, *files, seal_id=f"killed-{number}")
        killed_when(suite, number)
        suite.restart()
        for _ in range(3):
            suite.pass_time()
            suite.run()
        told_of = [event for event in told(suite.database) if event["data"].get("seal_id") == f"killed-{number}"]
        (event,) = [one for one in told_of if one["type"] == DOCUMENTS_SEALED.type]
        sealed = DocumentsSealed.model_validate(event["data"])
        in_files = [one for document in sealed.documents for one in what_was_signed(suite.blobs.get(document.file))]
        assert len(in_files) == 2, moment
        asked_for = {one for hashes in suite.key.permitted[permitted:] for one in hashes}
        assert asked_for == set(in_files) == set(suite.key.signed[signed:]), moment
        assert len(suite.key.signed) - signed <= (2 if keeps_keys else 3), f"{moment}: something was signed again"


def test_an_attempt_that_was_taken_over_writes_over_nothing(suite: Suite, tmp_path: Path) -> None:
    """It had stopped before it prepared its files, and goes on when those of another one were authorised."""
    asked(suite)
    stopped, outcomes = suite.claimed(), list[Outcome]()
    suite.dead()
    suite.key.after["authorize"] = [lambda: outcomes.append(suite.asking.attempt(stopped))]
    suite.run()
    (outcome,) = outcomes
    assert isinstance(outcome, Retry)
    assert not outcome.counts
    assert prepared_files(tmp_path) == ["prepared-1-1-0", "prepared-1-2-0"]
    (document,) = suite.sealed().documents
    data = suite.blobs.get(document.file)
    assert_sealed(data, tmp_path)
    assert suite.key.signed == what_was_signed(data)
    assert [set(hashes) for hashes in suite.key.permitted] == [set(suite.key.signed)]


@KILLED
def test_what_differs_is_not_authorised_however_late_it_is_noticed(suite: Suite) -> None:
    """The process is killed when the files were kept, and the order was not yet compared with the statements."""
    request = changed(confirmed(seal_request(suite.blobs, certsign=ordered(suite.key.own))))
    request.values[0].value = "Mallory"
    order(suite.database, request)
    killed_when(suite, "after keep_prepared")
    assert suite.database.read(certsigning.signings, 1)
    suite.restart()
    suite.run()
    assert suite.key.calls == {"credential": 2}
    assert suite.kinds() == [CERTSIGN_CHANGED.type, DOCUMENTS_FAILED.type]


def test_a_signature_takes_few_trips_to_the_database(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the settings are known to work: claimed, prepared, signed; then the seal job, which is claimed without a wait for the
    disk. Each of these must be on the disk before the next one begins."""
    suite.key.idempotent = False  # as CSC's are: a permission that is used at once is not kept
    asked(suite)
    suite.run()
    asked(suite, seal_id="seal-2")
    names = list[str]()
    for kind in ("write", "write_unsynced", "read"):
        really = getattr(suite.database, kind)

        def noted(use_case: Any, *arguments: Any, kind: str = kind, really: Any = really, **more: Any) -> Any:
            names.append(f"{kind} {getattr(use_case, '__name__', '')}")
            return really(use_case, *arguments, **more)

        monkeypatch.setattr(suite.database, kind, noted)
    suite._turn(suite._loops[0])
    own = [name for name in names if not name.endswith((" _survey", " _seconds_until_due"))]
    assert own == ["write _claim", "write keep_prepared", "write _write_outcomes"]
    names.clear()
    suite._turn(suite._loops[1])
    own = [name for name in names if not name.endswith((" _survey", " _seconds_until_due"))]
    assert own == ["write_unsynced _claim", "read <lambda>", "write _write_outcomes"]


def test_whoever_is_let_on_finds_in_the_database_that_the_settings_work(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else they would take it that another process was refused meanwhile, and come again later."""
    works: list[bool] = []
    real = certsign_work._Trying.succeeded

    def noted(trying: Any, mark: str) -> None:
        works.append(suite.database.read(certsigning.is_known_to_work, mark))
        real(trying, mark)

    monkeypatch.setattr(certsign_work._Trying, "succeeded", noted)
    asked(suite)
    suite.run()
    assert works == [True]
