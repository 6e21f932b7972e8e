"""One-time codes on real databases: what is refused before, how often one may guess, whom a proof lets in, what is told."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.rotation import Secret
from contracts.rpc import submissions as rpc
from contracts.runtime.clock import uuid7
from contracts.runtime.data import tables
from services.submissions.storage.signers import one_time_codes
from services.submissions.views import forms
from tests.support.material import one_time_codes as material
from tests.support.material.one_time_codes import EMAIL, CodeDesk, one_signer, reason, wrong
from tests.support.material.submissions import (
    SITE,
    Slug,
    assert_chain_holds,
    at_once,
    blob,
    field,
    refusal,
    sealed,
    template,
)
from tests.support.present import present


@pytest.fixture
def desk(database_url: str) -> Iterator[CodeDesk]:
    desk = CodeDesk(database_url)
    yield desk
    desk.database.dispose()


def test_before_the_code_nothing_is_shown_and_nothing_is_taken(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    before = desk.opened(bo.slug)
    assert (before.state, before.account_name) == ("code", "Countersign")
    assert before.code == rpc.codes.CodeAsked(method="email", sent_to="si•••@example.com", sent=False, retry_after=0)
    told = before.model_dump_json()
    for secret in ("Agreement", "Bo Buyer", "signer1@", "Ada", "First Party"):
        assert secret not in told
    document = desk.rows("SELECT documents FROM snapshots")[0].documents
    uuid = (json.loads(document) if isinstance(document, str) else document)[0]["uuid"]
    everything: list[Callable[[], Any]] = [
        lambda: desk.view(bo.slug),
        lambda: desk.save(bo.slug, {}),
        lambda: desk.complete(bo.slug, {}),
        lambda: desk.decline(bo.slug),
        lambda: desk.attach(bo.slug),
        lambda: desk.database.read(forms.file_of, rpc.form.FormPage(slug=bo.slug, document_uuid=uuid), SITE, desk.now),
        lambda: desk.database.read(forms.labels, rpc.visit.Visit(slug=bo.slug), SITE, desk.now),
        lambda: desk.database.read(forms.check_upload, upload(bo.slug), SITE, desk.now),
    ]
    for call in everything:
        error = refusal(call)
        assert (error.code, error.details) == ("forbidden", [{"field": "state", "reason": "code"}])
    assert desk.lines(bo.submission_id) == ["create_submission", "invite_party"]
    proof = desk.passed(bo.slug)
    shown = desk.opened(bo.slug, proof)
    assert (shown.state, shown.submission_name, len(shown.documents)) == ("open", "Secret Agreement", 1)
    page = rpc.form.FormPage(slug=bo.slug, document_uuid=uuid, proofs=[proof])
    assert desk.database.read(forms.file_of, page, SITE, desk.now).file.key
    mine = {one.name: one.uuid for one in shown.fields}
    assert desk.complete(bo.slug, {mine["Name"]: "Bo"}, proofs=[proof]).state == "completed"
    assert desk.opened(bo.slug).state == "code"
    assert desk.opened(bo.slug, proof).state == "completed"


def upload(slug: Slug) -> rpc.form.AttachFile:
    return rpc.form.AttachFile(request_id=uuid7(), slug=slug, type="signature", filename="x.png", file=blob())


def test_the_code_is_mailed_and_both_steps_are_in_the_trail(desk: CodeDesk) -> None:
    made, bo = one_signer(desk)
    sent = desk.send(bo.slug, ip="192.0.2.1")
    assert (sent.sent_to, sent.retry_after) == ("si•••@example.com", 60)
    assert sent.expires_at == desk.now + timedelta(minutes=10)
    (event,) = desk.events("code.due")
    due = event["data"]
    assert event["sequence"] is None  # for our own services only
    assert (due["to"], due["to_name"], due["submission_name"]) == (
        "signer1@example.com",
        "Bo Buyer",
        "Secret Agreement",
    )
    asked = desk.opened(bo.slug).code
    assert asked is not None
    assert (asked.sent, asked.retry_after) == (True, 60)
    spaced = f" {desk.code()[:3]}-{desk.code()[3:]} "
    desk.check(bo.slug, spaced, ip="192.0.2.1", user_agent="Browser")
    lines = {one.event_type: one for one in desk.get(made.id).submission_events or []}
    told = lines["send_2fa_email"].data
    assert (told["email"], told["ip"]) == ("signer1@example.com", "192.0.2.1")
    assert lines["email_verified"].data["ip"] == "192.0.2.1"
    assert lines["email_verified"].submitter_id == bo.id
    assert_chain_holds(desk, made.id)


def test_the_code_is_nowhere_to_be_read(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    desk.send(bo.slug)
    code = desk.code()
    refusal(lambda: desk.check(bo.slug, wrong(code)))
    desk.check(bo.slug, code)
    for table in ("one_time_codes", "rates", "trail", "submitters"):
        for row in desk.rows(f"SELECT * FROM {table}"):
            texts = [str(value) for value in row._mapping.values() if not isinstance(value, int)]
            assert not any(text == code or f'"{code}"' in text for text in texts), table
    for row in desk.rows("SELECT * FROM one_time_codes"):
        assert "signer1" not in str(row)
    stored = desk.database.read(lambda session: list(session.execute(sa.select(tables.answers.c.answer)).scalars()))
    bodies = desk.database.read(lambda session: list(session.execute(sa.select(tables.outbox.c.body)).scalars()))
    assert not any(f'"{code}"' in str(one) for one in [*stored, *bodies])


def test_five_guesses_then_also_the_right_one_is_refused(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    assert reason(refusal(lambda: desk.check(bo.slug, "123456"))) == ("invalid", "none", 0)
    desk.send(bo.slug)
    code = desk.code()
    left = [reason(refusal(lambda: desk.check(bo.slug, wrong(code))))[2] for _ in range(5)]
    assert left == [4, 3, 2, 1, 0]
    assert reason(refusal(lambda: desk.check(bo.slug, code)))[1] == "too_many"
    asked = desk.opened(bo.slug).code
    assert asked is not None
    assert not asked.sent
    desk.later(seconds=61)
    desk.send(bo.slug)
    assert reason(refusal(lambda: desk.check(bo.slug, code)))[1] == "wrong"  # the old one is void
    assert desk.check(bo.slug, desk.code()).proof


@pytest.mark.parametrize("typed", ["", "12345", "1234567", "abcdef", "１２３４５６", "12 34\x00"])
def test_what_is_no_code_is_a_wrong_guess(desk: CodeDesk, typed: str) -> None:
    _, bo = one_signer(desk)
    desk.send(bo.slug)
    assert reason(refusal(lambda: desk.check(bo.slug, typed))) == ("invalid", "wrong", 4)


def test_codes_and_proofs_outlive_the_secret_that_they_were_made_with(
    desk: CodeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as it is accepted beside the next one."""
    _, bo = one_signer(desk)
    _, ann = one_signer(desk, email="ann@example.com")
    passed = desk.passed(ann.slug)
    desk.send(bo.slug)
    code = desk.code()
    site = replace(SITE, link_secret=Secret("another secret that is long enough for all", previous=SITE.link_secret))
    monkeypatch.setattr(material, "SITE", site)
    asked = desk.opened(bo.slug).code
    assert asked is not None
    assert asked.sent
    assert reason(refusal(lambda: desk.check(bo.slug, wrong(code)))) == ("invalid", "wrong", 4)
    assert desk.opened(bo.slug, present(desk.check(bo.slug, code).proof)).state == "open"
    assert desk.opened(ann.slug, passed).state == "open"
    monkeypatch.setattr(material, "SITE", replace(SITE, link_secret=str(site.link_secret)))
    assert desk.opened(ann.slug, passed).state == "code"


def test_parallel_guesses_are_all_counted(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    desk.send(bo.slug)
    code = desk.code()
    guesses = [lambda: desk.check(bo.slug, wrong(code)) for _ in range(12)]
    results = [reason(one)[1] for one in at_once(*guesses)]
    assert (results.count("wrong"), results.count("too_many")) == (5, 7)
    assert desk.rows("SELECT tries FROM one_time_codes")[0].tries == 5


def test_a_code_is_used_once_and_the_same_request_again_is_no_second_use(desk: CodeDesk) -> None:
    made, bo = one_signer(desk)
    desk.send(bo.slug)
    code = desk.code()
    results = at_once(*[lambda: desk.check(bo.slug, code) for _ in range(6)])
    assert sum(isinstance(one, rpc.codes.PassedCode) for one in results) == 1
    assert {reason(one)[1] for one in results if isinstance(one, ServiceError)} == {"used"}
    desk.later(seconds=61)
    desk.send(bo.slug)
    first, again = (desk.check(bo.slug, desk.code(), request_id="the same") for _ in range(2))
    assert first.proof == again.proof
    assert reason(refusal(lambda: desk.check(bo.slug, desk.code(), request_id="another")))[1] == "used"
    assert desk.lines(made.id).count("email_verified") == 2


def test_ten_minutes(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    desk.send(bo.slug)
    desk.later(minutes=10)
    assert reason(refusal(lambda: desk.check(bo.slug, desk.code())))[1] == "expired"


def test_one_code_a_minute_to_an_address_whoever_asks(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    _, other = one_signer(desk, email="SIGNER1@example.com")
    results = at_once(*[lambda slug=slug: desk.send(slug) for slug in (bo.slug, other.slug) * 10])
    refused = [one for one in results if isinstance(one, ServiceError)]
    assert (len(results) - len(refused), desk.count("code.due")) == (1, 1)
    assert {one.code for one in refused} == {"rate_limited"}
    assert {one.details[0]["retry_after"] for one in refused} == {60}
    assert {(one.details[0]["quota"], one.details[0]["window"]) for one in refused} == {(1, 60)}
    desk.later(seconds=45)
    assert refusal(lambda: desk.send(bo.slug)).details[0]["retry_after"] == 15
    assert desk.count("code.due") == 1
    desk.later(seconds=15)
    desk.send(bo.slug)


def test_twenty_codes_and_twenty_wrong_guesses_a_day(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    for _ in range(4):
        desk.later(minutes=2)
        desk.send(bo.slug)
        for _ in range(5):
            refusal(lambda: desk.check(bo.slug, wrong(desk.code())))
    desk.later(minutes=2)
    desk.send(bo.slug)
    assert reason(refusal(lambda: desk.check(bo.slug, desk.code()))) == ("invalid", "too_many", 0)
    for _ in range(15):
        desk.later(minutes=2)
        desk.send(bo.slug)
    desk.later(minutes=2)
    late = refusal(lambda: desk.send(bo.slug)).details[0]
    assert late["retry_after"] > 3_600
    assert (late["quota"], late["window"]) == (20, 86_400)
    desk.later(days=1)
    desk.send(bo.slug)
    assert desk.check(bo.slug, desk.code()).proof
    desk.later(days=3)
    desk.database.write(one_time_codes.forget, desk.now)
    assert [row.passed_at is not None for row in desk.rows("SELECT * FROM one_time_codes")] == [True]
    assert desk.rows("SELECT * FROM rates") == []


def test_a_repeated_request_sends_one_code(desk: CodeDesk) -> None:
    made, bo = one_signer(desk)
    answers = at_once(*[lambda: desk.send(bo.slug, request_id="the same") for _ in range(4)])
    assert len({one.model_dump_json() for one in answers}) == 1
    assert desk.count("code.due") == 1
    assert desk.lines(made.id).count("send_2fa_email") == 1


def test_a_proof_is_for_one_submitter_one_address_and_twelve_hours(desk: CodeDesk) -> None:
    made, bo = one_signer(desk)
    _, other = one_signer(desk, email="other@example.com")
    proof = desk.passed(bo.slug)
    assert desk.opened(other.slug, proof).state == "code"
    for forged in ("", "x", proof[:-2], proof[::-1], "é", f"{proof}A" * 30):
        assert desk.opened(bo.slug, forged).state == "code"
    assert desk.opened(bo.slug, "rubbish", proof).state == "open"
    desk.update_submitter(bo.id, email="Signer1@Example.com")
    assert desk.opened(bo.slug, proof).state == "open"  # the same address
    bo = desk.update_submitter(bo.id, email="new@example.com")
    assert desk.opened(bo.slug, proof).state == "code"
    fresh = desk.passed(bo.slug)
    assert desk.events("code.due")[-1]["data"]["to"] == "new@example.com"
    assert desk.opened(bo.slug, fresh).state == "open"
    desk.later(hours=12)
    assert desk.opened(bo.slug, fresh).state == "code"
    desk.update_submitter(bo.id, require_email_2fa=False)
    assert desk.opened(bo.slug).state == "open"
    assert desk.get(made.id).submitters[0].preferences.get("require_email_2fa") is None
    error = refusal(lambda: desk.send(bo.slug))
    assert (error.code, error.details[0]["reason"]) == ("conflict", "passed")


def test_a_code_that_was_sent_to_another_address_before_is_void(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    desk.send(bo.slug)
    bo = desk.update_submitter(bo.id, email="new@example.com")
    assert reason(refusal(lambda: desk.check(bo.slug, desk.code())))[1] == "none"
    desk.send(bo.slug)  # another address: no need to wait
    assert desk.check(bo.slug, desk.code()).proof


def test_no_address_no_requirement(desk: CodeDesk) -> None:
    _, bo = one_signer(desk, phone="+14155550123")
    error = refusal(lambda: desk.update_submitter(bo.id, email=None))
    assert error.details[0]["field"] == "email"
    bo = desk.update_submitter(bo.id, email=None, require_email_2fa=False)
    error = refusal(lambda: desk.update_submitter(bo.id, require_email_2fa=True))
    assert (error.details[0]["field"], desk.opened(bo.slug).state) == ("email", "open")


def test_what_is_asked_of_every_signer_is_taken_back_from_none(desk: CodeDesk) -> None:
    made = desk.create(template(field("A", "Name")), {}, preferences=EMAIL)
    (bo,) = made.submitters
    desk.update_submitter(bo.id, require_email_2fa=False, name="Bo")
    assert desk.opened(bo.slug).state == "code"
    assert desk.get(made.id).submitters[0].preferences["require_email_2fa"] is True


def test_an_ended_submission_shows_its_end_and_nothing_else_and_sends_no_codes(desk: CodeDesk) -> None:
    made, bo = one_signer(desk)
    proof = desk.passed(bo.slug)
    desk.update(made.id, archived=True)
    ended = desk.opened(bo.slug)
    assert (ended.state, ended.submission_name, ended.sender_name, ended.code) == ("archived", "", None, None)
    error = refusal(lambda: desk.send(bo.slug))
    assert error.details[0] == {"field": "state", "reason": "archived"}
    assert desk.opened(bo.slug, proof).submission_name == "Secret Agreement"


def test_erasing_forgets_the_codes_and_sealing_is_not_hindered(desk: CodeDesk) -> None:
    made, bo = one_signer(desk)
    proof = desk.passed(bo.slug)
    name = next(one.uuid for one in desk.opened(bo.slug, proof).fields if one.name == "Name")
    desk.complete(bo.slug, {name: "Bo"}, proofs=[proof])
    desk.seal(made.id)
    results = desk.opened(bo.slug, proof).results
    assert len(results) == len(sealed(1, "x").documents)
    assert desk.opened(bo.slug).results == []
    desk.remove(made.id, permanently=True)
    assert desk.rows("SELECT * FROM one_time_codes") == []
