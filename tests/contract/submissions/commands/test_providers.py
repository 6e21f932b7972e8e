"""What providers are asked for, how far they are and what people do about it, on SQLite and PostgreSQL (specification 4.7, 4.8)."""

import json
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from contracts.events import DocumentsStamped, SealedDocument
from contracts.providers import CertsignChanged, CertsignOrder, DutystampChanged, DutystampOrder
from contracts.rpc.submissions import api as rpc
from contracts.runtime.clock import uuid7
from contracts.types import CertsignState, DutystampState, StampState, Submission
from services.submissions.commands import followups, providers, submissions
from services.submissions.reconcile import sealed as sealed_here
from tests.support.material.submissions import (
    ADMIN,
    NOW,
    SITE,
    Desk,
    assert_chain_holds,
    assert_told_in_order,
    blob,
    create_command,
    field,
    refusal,
    sealed,
    template,
    two_signers,
)
from tests.support.present import present

SECRET = "sealed-text-of-the-settings"
ORDER = CertsignOrder(settings=SECRET, provider="signing.example")
WISH = rpc.CertsignWish(by_default=True, order=ORDER)
STAMPS = DutystampOrder(settings=SECRET, provider="stamps.example", code_document="4b")
PREFERENCE = "certsign_sign_enabled"


def certsign(
    desk: Desk, made: Submission, status: str, at: datetime, *, seal_id: str | None = None, **more: Any
) -> None:
    state = CertsignState(status=status, provider=ORDER.provider, at=at, **more)
    news = CertsignChanged(submission_id=made.id, seal_id=seal_id or desk.column(made.id, "seal_id"), state=state)
    desk.database.write(providers.accept_certsign, uuid7(), news, SITE, desk.now)


def dutystamp(desk: Desk, made: Submission, status: str, at: datetime, **more: Any) -> None:
    state = DutystampState(status=status, provider=STAMPS.provider, at=at, **more)
    news = DutystampChanged(submission_id=made.id, seal_id=desk.column(made.id, "seal_id"), state=state)
    desk.database.write(providers.accept_dutystamp, uuid7(), news, SITE, desk.now)


def stamped(desk: Desk, made: Submission, *, seal_id: str | None = None) -> DocumentsStamped:
    files = sealed(made.id, seal_id or desk.column(made.id, "seal_id"))
    documents = [SealedDocument(**{**one.model_dump(), "stamped_at": NOW}) for one in files.documents]
    data = DocumentsStamped(**{**files.model_dump(), "documents": documents, "combined": blob("rendering/")})
    desk.database.write(followups.accept_stamped, uuid7(), data, SITE, desk.now)
    return data


def retry_certsign(desk: Desk, made: Submission, order: CertsignOrder = ORDER, **more: Any) -> Submission:
    command = rpc.RetryCertsign(request_id=more.get("request_id", uuid7()), actor=ADMIN, id=made.id, order=order)
    return desk.database.write(providers.retry_certsign, command, SITE, desk.now)


def retry_dutystamp(desk: Desk, made: Submission, settings: str = "today", **more: Any) -> Submission:
    command = rpc.RetryDutystamp(
        request_id=more.get("request_id", uuid7()), actor=ADMIN, id=made.id, settings=settings, provider="new.example"
    )
    return desk.database.write(providers.retry_dutystamp, command, SITE, desk.now)


def waive(desk: Desk, made: Submission) -> Submission:
    command = rpc.RetrySeal(request_id=uuid7(), actor=ADMIN, id=made.id, waive_certsign=True)
    return desk.database.write(submissions.retry_seal, command, SITE, desk.now)


def lines(desk: Desk, made: Submission) -> list[str]:
    return [one for one in assert_chain_holds(desk, made.id) if "certsign" in one or "stamp" in one]


def statuses(made: Submission) -> tuple[Any, Any, Any, Any]:
    return made.status, made.sealing_status, made.certsign_sign_status, made.dutystamp_status


# What a submission is made with


@pytest.mark.parametrize(
    ("enabled", "preference", "of_template", "by_default", "signed"),
    [
        (None, None, None, True, True),
        (None, None, None, False, False),
        (False, None, None, True, False),
        (False, True, True, True, False),
        (True, False, False, False, True),
        (None, True, None, False, True),
        (None, False, None, True, False),
        (None, None, True, False, True),
        (None, None, False, True, False),
        (None, False, True, True, False),
    ],
)
def test_the_submission_s_word_counts_before_the_preference_and_that_before_the_account_s(
    desk: Desk,
    enabled: bool | None,
    preference: bool | None,
    of_template: bool | None,
    by_default: bool,
    signed: bool,
) -> None:
    found = template(field(), preferences={} if of_template is None else {PREFERENCE: of_template})
    given = {} if preference is None else {PREFERENCE: preference}
    wish = rpc.CertsignWish(enabled=enabled, by_default=by_default, order=ORDER)
    made = desk.signed(found, {}, certsign=wish, preferences=given)
    (order,) = desk.events("sealing.due")
    assert (order["data"]["certsign"] is not None) is signed
    assert desk.get(made.id).certsign_sign_status == ("pending" if signed else None)


@pytest.mark.parametrize(
    ("enabled", "preference", "of_template", "wrong"),
    [
        (True, None, None, "certsign.enabled"),
        (None, True, None, f"preferences.{PREFERENCE}"),
        (None, None, True, "template_id"),
        (None, False, True, None),
        (False, True, True, None),
        (None, None, None, None),
    ],
)
def test_what_nobody_can_sign_is_refused_where_it_is_asked_for(
    desk: Desk, enabled: bool | None, preference: bool | None, of_template: bool | None, wrong: str | None
) -> None:
    found = template(field(), preferences={} if of_template is None else {PREFERENCE: of_template})
    given = {} if preference is None else {PREFERENCE: preference}
    command = create_command(found, {}, certsign=rpc.CertsignWish(enabled=enabled), preferences=given)
    if wrong is None:
        assert desk.run_create(command, found).certsign_sign_status is None
        return
    refused = refusal(lambda: desk.run_create(command, found))
    assert [one["field"] for one in refused.details] == [wrong]
    assert "not configured" in refused.message


def test_orders_are_frozen_at_creation_and_seen_by_rendering_alone(desk: Desk) -> None:
    made = desk.create(two_signers(), {}, {}, certsign=WISH, dutystamp=STAMPS)
    assert statuses(made) == ("pending", None, None, None)
    for one in made.submitters:
        desk.complete(one.slug)
    (order,) = desk.events("sealing.due")
    assert order["data"]["certsign"] == ORDER.model_dump(mode="json")
    documents = [document["uuid"] for document in order["data"]["documents"]]
    assert order["data"]["dutystamp"] == STAMPS.model_dump(mode="json") | {"documents": documents}
    shown = desk.get(made.id)
    assert statuses(shown) == ("pending", "sealing", "pending", "pending")
    assert (present(shown.certsign).provider, present(shown.dutystamp).provider) == (
        "signing.example",
        "stamps.example",
    )
    assert lines(desk, made) == ["request_certsign", "request_dutystamp"]
    desk.seal(made.id)
    elsewhere = [one for one in desk.events() if one["type"] != "sealing.due"]
    assert SECRET not in json.dumps([shown.model_dump(mode="json"), elsewhere])
    assert desk.listed() == [made.id]


def test_who_asks_for_nothing_hears_nothing_of_providers(desk: Desk) -> None:
    made = desk.signed()
    desk.seal(made.id)
    shown = desk.get(made.id)
    assert statuses(shown) == ("completed", "sealed", None, None)
    assert (shown.certsign, shown.dutystamp) == (None, None)
    assert lines(desk, made) == []


# News of providers


def test_a_signature_completes_and_is_on_the_trail(desk: Desk) -> None:
    made = desk.signed(certsign=WISH)
    certsign(desk, made, "signed", NOW, subject="CN=Acme Seal", valid_to=NOW + timedelta(days=365))
    assert statuses(desk.get(made.id)) == ("pending", "sealing", "signed", None)
    desk.seal(made.id)
    done = desk.get(made.id)
    assert statuses(done) == ("completed", "sealed", "signed", None)
    assert present(done.certsign).subject == "CN=Acme Seal"
    assert lines(desk, made) == ["request_certsign", "complete_certsign"]
    assert assert_told_in_order(desk, made.id)[-1] == "submission.completed"


@pytest.mark.parametrize("late", [False, True])
def test_the_completion_says_signed_even_when_it_is_heard_before_the_signature(desk: Desk, late: bool) -> None:
    """Two queues: neither waits for the other. The signature's own news still bring the certificate."""
    made = desk.signed(certsign=WISH)
    desk.seal(made.id)
    (completed,) = desk.events("submission.completed")
    assert completed["data"]["data"]["certsign_sign_status"] == "signed"
    certsign(desk, made, "signed", NOW - timedelta(minutes=9 if late else 0), subject="CN=Acme Seal")
    assert present(desk.get(made.id).certsign).subject == "CN=Acme Seal"


def test_a_failure_holds_the_completion_and_is_told_to_whoever_can_help(desk: Desk) -> None:
    made = desk.signed(certsign=WISH)
    certsign(desk, made, "failed", NOW, message="The credential is suspended")
    held = desk.get(made.id)
    assert statuses(held) == ("pending", "sealing", "failed", None)
    assert present(held.certsign).message == "The credential is suspended"
    assert held.completed_at is None
    told = assert_told_in_order(desk, made.id)
    assert told[-1] == "submission.certsign_failed"
    assert "submission.completed" not in told
    (problem,) = desk.events("provider_problem.due")
    assert (problem["data"]["feature"], problem["data"]["message"]) == ("certsign", "The credential is suspended")
    assert problem["data"]["submission_link"].endswith(f"/e/{made.slug}")
    assert lines(desk, made) == ["request_certsign", "fail_certsign"]


def test_only_news_of_the_present_sealing_count_and_the_newest_wins(desk: Desk) -> None:
    made = desk.signed(certsign=WISH)
    certsign(desk, made, "failed", NOW, seal_id="another", message="of another sealing")
    certsign(desk, made, "pending", NOW + timedelta(seconds=5), message="second")
    certsign(desk, made, "failed", NOW, message="first")
    state = present(desk.get(made.id).certsign)
    assert (state.status, state.message) == ("pending", "second")
    news = CertsignChanged(
        submission_id=made.id,
        seal_id=desk.column(made.id, "seal_id"),
        state=CertsignState(status="failed", provider="x", at=NOW + timedelta(seconds=9), message="third"),
    )
    event_id = uuid7()
    for _ in range(2):
        desk.database.write(providers.accept_certsign, event_id, news, SITE, desk.now)
    assert desk.count("submission.certsign_failed") == desk.count("provider_problem.due") == 1


@pytest.mark.parametrize("drift", [timedelta(hours=-1), timedelta(hours=1)])
def test_rendering_s_clock_need_not_be_ours(desk: Desk, drift: timedelta) -> None:
    made = desk.signed(certsign=WISH)
    certsign(desk, made, "failed", NOW + drift, message="no")
    assert desk.get(made.id).certsign_sign_status == "failed"
    desk.now += timedelta(minutes=1)
    retry_certsign(desk, made)
    certsign(desk, made, "signed", NOW + drift + timedelta(seconds=1))
    assert desk.get(made.id).certsign_sign_status == "signed"


def test_news_of_what_was_erased_change_nothing(desk: Desk) -> None:
    made = desk.signed(certsign=WISH, dutystamp=STAMPS)
    seal_id = desk.column(made.id, "seal_id")
    desk.remove(made.id, permanently=True)
    certsign(desk, made, "failed", NOW, seal_id=seal_id)
    data = stamped(desk, made, seal_id=seal_id)
    (row,) = desk.rows("SELECT count(*) AS it FROM submissions")
    assert row.it == 0
    removed = {one.key for one in desk.rows("SELECT key FROM blob_removals")}
    assert {data.documents[0].file.key, data.audit_trail.key, present(data.combined).key} <= removed
    assert SECRET not in str(desk.rows("SELECT body FROM outbox"))


# Trying again, waiting no longer


def test_a_failed_signature_is_tried_again_with_the_settings_of_today(desk: Desk) -> None:
    made = desk.signed(certsign=WISH)
    certsign(desk, made, "failed", NOW, message="no")
    today = CertsignOrder(settings="today", provider="new.example")
    request_id = uuid7()
    for _ in range(2):
        again = retry_certsign(desk, made, today, request_id=request_id)
        assert (again.certsign_sign_status, present(again.certsign).provider) == ("pending", "new.example")
    (retried,) = desk.events("certsign.retried")
    assert (retried["data"]["order"]["settings"], retried["data"]["waived_by"]) == ("today", None)
    assert retried["data"]["seal_id"] == desk.column(made.id, "seal_id")
    assert lines(desk, made)[-1] == "retry_certsign"
    desk.now += timedelta(hours=1)
    desk.database.write(followups.remind, made.id, SITE, timedelta(minutes=1), desk.now)
    assert desk.events("sealing.due")[-1]["data"]["certsign"]["settings"] == "today"
    refused = refusal(lambda: retry_certsign(desk, made))
    assert (refused.code, refused.status) == ("conflict", 409)


def test_what_waits_for_its_next_attempt_may_be_hurried(desk: Desk) -> None:
    made = desk.signed(certsign=WISH, dutystamp=STAMPS)
    for work in (retry_certsign, retry_dutystamp):
        assert refusal(lambda work=work: work(desk, made)).status == 409
    later = NOW + timedelta(hours=1)
    certsign(desk, made, "pending", NOW, message="503", next_attempt_at=later)
    dutystamp(desk, made, "pending", NOW, message="503", next_attempt_at=later)
    assert present(retry_certsign(desk, made).certsign).next_attempt_at is None
    assert present(retry_dutystamp(desk, made).dutystamp).next_attempt_at is None


def test_nothing_is_tried_again_that_did_not_fail(desk: Desk) -> None:
    plain = desk.signed()
    made = desk.signed(certsign=WISH)
    certsign(desk, made, "signed", NOW)
    for one in (plain, made):
        for work in (retry_certsign, retry_dutystamp, waive):
            assert refusal(lambda work=work, one=one: work(desk, one)).status == 409
    assert desk.events("certsign.retried", "dutystamp.retried") == []


def test_a_signature_is_given_up_by_a_person_whom_the_trail_names(desk: Desk) -> None:
    made = desk.signed(certsign=WISH)
    certsign(desk, made, "failed", NOW, message="no")
    before = desk.column(made.id, "seal_id")
    given_up = waive(desk, made)
    assert statuses(given_up) == ("pending", "sealing", "failed", None)
    assert present(given_up.certsign).waived_by == ADMIN.email
    (retried,) = desk.events("certsign.retried")
    assert (retried["data"]["order"], retried["data"]["waived_by"]) == (None, ADMIN.email)
    assert retried["data"]["seal_id"] == before == desk.column(made.id, "seal_id")
    for number, status in enumerate(("failed", "pending"), start=1):
        certsign(desk, made, status, NOW + timedelta(hours=number), message="from an attempt that did not know yet")
    state = present(desk.get(made.id).certsign)
    assert (state.status, state.waived_by, state.message) == ("failed", ADMIN.email, "no")
    assert desk.count("submission.certsign_failed") == 1
    desk.now += timedelta(hours=1)
    desk.database.write(followups.remind, made.id, SITE, timedelta(minutes=1), desk.now)
    assert desk.events("sealing.due")[-1]["data"]["certsign"] is None
    retold = desk.events("certsign.retried")[1:]
    assert [one["data"] for one in retold] == [retried["data"]], "the first may have come before the order"
    assert refusal(lambda: waive(desk, made)).status == refusal(lambda: retry_certsign(desk, made)).status == 409
    desk.seal(made.id)
    assert statuses(desk.get(made.id)) == ("completed", "sealed", "failed", None)
    line = next(one for one in present(desk.get(made.id).submission_events) if one.event_type == "waive_certsign")
    assert (line.data["by"], line.data["provider"]) == (ADMIN.email, "signing.example")


def test_a_signature_that_came_all_the_same_counts(desk: Desk) -> None:
    made = desk.signed(certsign=WISH)
    waive(desk, made)
    certsign(desk, made, "signed", NOW)
    state = present(desk.get(made.id).certsign)
    assert (state.status, state.waived_by) == ("signed", None)


def test_a_failed_sealing_is_retried_without_the_provider(desk: Desk) -> None:
    made = desk.signed(certsign=WISH)
    desk.seal_fails(made.id)
    assert refusal(lambda: retry_certsign(desk, made)).status == 409
    again = waive(desk, made)
    assert (again.sealing_status, present(again.certsign).waived_by) == ("sealing", ADMIN.email)
    assert desk.events("certsign.retried") == []
    first, second = desk.events("sealing.due")
    assert first["data"]["seal_id"] != second["data"]["seal_id"]
    assert (first["data"]["certsign"] is None, second["data"]["certsign"]) == (False, None)
    trail = [one["event_type"] for one in second["data"]["trail"]]
    assert trail[-2:] == ["waive_certsign", "retry_sealing"]


def test_a_failed_sealing_is_retried_with_the_provider(desk: Desk) -> None:
    made = desk.signed(certsign=WISH, dutystamp=STAMPS)
    certsign(desk, made, "failed", NOW, message="no")
    desk.seal_fails(made.id)
    command = rpc.RetrySeal(request_id=uuid7(), actor=ADMIN, id=made.id)
    desk.database.write(submissions.retry_seal, command, SITE, desk.now)
    assert statuses(desk.get(made.id)) == ("pending", "sealing", "pending", "pending")
    assert desk.events("sealing.due")[-1]["data"]["certsign"]["settings"] == SECRET


# Stamps

STAMP = StampState(target="documents", document_index=0, state="confirmed", serial="S1", stamped_at=NOW)


@pytest.mark.parametrize("news_first", [True, False])
def test_stamps_in_time_are_told_once_with_the_documents(desk: Desk, news_first: bool) -> None:
    made = desk.signed(dutystamp=STAMPS)
    data = sealed(made.id, desk.column(made.id, "seal_id"))
    data.documents[0].stamped_at = NOW
    tell = partial(dutystamp, desk, made, "stamped", NOW, stamps=[STAMP])
    if news_first:
        tell()
        assert desk.count("submission.stamped") == 0
    desk.database.write(followups.accept_sealed, uuid7(), data, SITE, desk.now)
    if not news_first:
        assert desk.count("submission.stamped") == 0
        tell()
    dutystamp(desk, made, "stamped", NOW + timedelta(seconds=1), stamps=[STAMP], message="told once more")
    done = desk.get(made.id)
    assert statuses(done) == ("completed", "sealed", None, "stamped")
    assert done.documents[0].stamped_at == NOW
    assert present(done.dutystamp).stamps == [STAMP]
    assert assert_told_in_order(desk, made.id)[-2:] == ["submission.completed", "submission.stamped"]
    line = next(one for one in present(done.submission_events) if one.event_type == "complete_dutystamp")
    assert line.data["serials"] == ["S1"]


def test_stamps_that_come_later_give_a_later_version_beside_the_earlier(desk: Desk) -> None:
    made = desk.signed(dutystamp=STAMPS)
    dutystamp(desk, made, "failed", NOW, message="The quota is used up")
    (problem,) = desk.events("provider_problem.due")
    assert problem["data"]["feature"] == "dutystamp"
    first = desk.seal(made.id)
    assert statuses(desk.get(made.id)) == ("completed", "sealed", None, "failed")
    again = retry_dutystamp(desk, made)
    assert (again.status, again.dutystamp_status) == ("completed", "pending")
    (retried,) = desk.events("dutystamp.retried")
    assert retried["data"]["order"] == STAMPS.model_dump(mode="json") | {"settings": "today", "provider": "new.example"}
    second = stamped(desk, made)
    assert desk.count("submission.stamped") == 0
    dutystamp(desk, made, "stamped", NOW + timedelta(minutes=1), stamps=[STAMP])
    told = assert_told_in_order(desk, made.id)
    assert (told.count("submission.stamped"), told.count("submission.completed")) == (1, 1)
    (event,) = desk.events("submission.stamped")
    assert event["data"]["data"]["documents"][0]["stamped_at"]
    results = desk.database.read(lambda session: dict(sealed_here(session)))[made.id]
    assert results == [second.documents[0].file.sha256, second.audit_trail.sha256]
    assert lines(desk, made) == ["request_dutystamp", "fail_dutystamp", "retry_dutystamp", "complete_dutystamp"]
    desk.remove(made.id, permanently=True)
    removed = {one.key for one in desk.rows("SELECT key FROM blob_removals")}
    every = [*first.documents, *second.documents]
    assert {one.file.key for one in every} | {first.audit_trail.key, second.audit_trail.key} <= removed
    assert present(second.combined).key in removed


def test_the_later_version_may_be_heard_of_first(desk: Desk) -> None:
    made = desk.signed(dutystamp=STAMPS)
    seal_id = desk.column(made.id, "seal_id")
    later = stamped(desk, made)
    assert desk.get(made.id).status == "completed"
    earlier = desk.seal(made.id, seal_id=seal_id)
    removed = {one.key for one in desk.rows("SELECT key FROM blob_removals")}
    assert earlier.documents[0].file.key in removed
    assert later.documents[0].file.key not in removed
    assert desk.count("submission.completed") == 1


def test_stamped_files_of_another_sealing_are_thrown_away(desk: Desk) -> None:
    made = desk.signed(dutystamp=STAMPS)
    desk.seal(made.id)
    stray = stamped(desk, made, seal_id="another")
    assert desk.get(made.id).documents[0].stamped_at is None
    removed = {one.key for one in desk.rows("SELECT key FROM blob_removals")}
    assert stray.documents[0].file.key in removed
