"""Signers who complete by confirming at a provider (certsign, mode ``signer``), on SQLite and PostgreSQL."""

from datetime import timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.providers import CertsignMode, CertsignOrder, ConfirmationChanged, ConfirmationStep
from contracts.rpc.submissions import api as rpc
from contracts.rpc.submissions import visit
from contracts.rpc.submissions.signing import confirmation as confirming
from contracts.rpc.submissions.signing import form
from contracts.runtime.clock import uuid7
from contracts.types import Account, Reminders, SignerCertificate, Submission
from services.submissions.commands import followups, providers, submissions
from services.submissions.commands.signing import confirmation as commands
from services.submissions.models import ReminderRow, SubmitterRow
from services.submissions.outgoing import reminders
from services.submissions.views import form_news, forms
from tests.support.material.submissions import (
    ADMIN,
    NOW,
    SITE,
    Desk,
    Slug,
    assert_chain_holds,
    assert_told_in_order,
    field,
    refusal,
    template,
    two_signers,
)

ORDER = CertsignOrder(settings="sealed", provider="signing.example", mode=CertsignMode.SIGNER)
WISH = rpc.CertsignWish(by_default=True, order=ORDER)
SIGNER = SignerCertificate(
    provider="signing.example", subject="CN=Ann Ray", issuer="CN=Root", serial="1f", sha256="c" * 64, signed_at=NOW
)


def made(desk: Desk, **more: Any) -> Submission:
    return desk.create(two_signers(), {}, {}, certsign=more.pop("certsign", WISH), **more)


def start(desk: Desk, slug: Slug, value: str = "Ann", **more: Any) -> Any:
    shown = desk.form(slug)
    values = {one.uuid: value for one in shown.fields if one.mine and one.type == "text"}
    command = confirming.StartConfirmation(
        request_id=more.pop("request_id", uuid7()),
        slug=slug,
        proofs=list(desk.proofs),
        values=values,
        shown=shown.shown,
        ip="203.0.113.7",
        **more,
    )
    return desk.database.write(commands.start, command, desk.limits, SITE, desk.now)


def order_of(desk: Desk) -> dict[str, Any]:
    """The last confirmation that rendering was asked for."""
    data: dict[str, Any] = desk.events("confirmation.due")[-1]["data"]
    return data


def tell(desk: Desk, status: str, *, event_id: str = "", order: dict[str, Any] | None = None, **more: Any) -> None:
    order = order or order_of(desk)
    changed = ConfirmationChanged(
        submission_id=order["submission_id"],
        submitter_id=order["submitter_id"],
        confirmation_id=order["confirmation_id"],
        status=status,
        at=more.pop("at", desk.now),
        provider="signing.example",
        signer=SIGNER if status == "signed" else None,
        **more,
    )
    desk.database.write(commands.accept, event_id or uuid7(), changed, desk.limits, SITE, desk.now)


def step(desk: Desk, slug: Slug) -> tuple[Any, str]:
    kept, state = desk.database.read(forms.confirmation, visit.Visit(slug=slug), SITE, desk.now)
    return kept, str(state)


def leave(desk: Desk, slug: Slug) -> form.Done:
    command = confirming.LeaveConfirmation(request_id=uuid7(), slug=slug)
    return desk.database.write(commands.leave, command, SITE, desk.now)


def again(desk: Desk, slug: Slug) -> Any:
    command = confirming.LeaveConfirmation(request_id=uuid7(), slug=slug)
    return desk.database.write(commands.ask_again, command, SITE, desk.now)


def waive(desk: Desk, submission: Submission) -> Submission:
    command = rpc.RetrySeal(request_id=uuid7(), actor=ADMIN, id=submission.id, waive_certsign=True)
    return desk.database.write(submissions.retry_seal, command, SITE, desk.now)


def test_other_pages_with_the_form_are_told_when_the_signer_goes_to_the_provider_and_comes_back(desk: Desk) -> None:
    slug = made(desk).submitters[0].slug or ""
    versions: list[str] = []

    def told() -> str:
        query = form.WatchForm(slug=slug, known=versions[-1] if versions else None)
        news = desk.database.read(form_news.news, query, SITE, desk.now)
        assert news.version not in versions
        versions.append(news.version)
        return news.state

    assert told() == "open"
    start(desk, slug)
    assert told() == "confirming"
    leave(desk, slug)
    assert told() == "open"
    start(desk, slug)
    assert told() == "confirming"
    tell(desk, "signed")
    assert told() == "completed"


def test_the_provider_has_signed_and_the_form_is_completed_once(desk: Desk) -> None:
    submission = made(desk)
    first, second = submission.submitters
    assert desk.form(first.slug or "").confirm_with == "signing.example"
    assert start(desk, first.slug or "").step is ConfirmationStep.PREPARING
    order = order_of(desk)
    assert [value["value"] for value in order["values"]] == ["Ann"]
    assert (order["submitter_id"], order["after"], order["return_url"]) == (
        first.id,
        [],
        "https://sign.example.com/identity/return",
    )
    seen = desk.get(submission.id)
    assert (seen.certsign_sign_status, seen.submitters[0].identity_status) == ("pending", "pending")
    assert (seen.submitters[0].status, desk.form(first.slug or "").state) == ("pending", "confirming")
    for _ in range(2):
        tell(desk, "signed", event_id="e1", order=order)
    tell(desk, "signed", order=order)
    assert desk.count("form.completed") == 1
    seen = desk.get(submission.id)
    ann, bob = seen.submitters
    assert (ann.status, ann.identity_status, ann.values) == ("completed", "verified", {"Name": "Ann"})
    assert ann.identity == SIGNER
    assert bob.identity_status is None
    start(desk, second.slug or "", "Bob")
    assert order_of(desk)["after"] == [order["confirmation_id"]]
    assert [value["value"] for value in order_of(desk)["values"]] == ["Ann", "Bob"]
    tell(desk, "signed")
    due = desk.events("sealing.due")
    assert len(due) == 1
    assert due[0]["data"]["confirmations"] == [order["confirmation_id"], order_of(desk)["confirmation_id"]]
    assert due[0]["data"]["certsign"] is None
    assert desk.get(submission.id).certsign_sign_status == "pending"
    desk.seal(submission.id)
    assert desk.get(submission.id).certsign_sign_status == "signed"
    lines = assert_chain_holds(desk, submission.id)
    assert lines.count("complete_confirmation") == lines.count("complete_form") == 2
    assert_told_in_order(desk, submission.id)
    said = [
        one.data for one in desk.get(submission.id).submission_events or [] if one.event_type == "complete_confirmation"
    ]
    assert said[0]["certificate"] == "CN=Ann Ray"
    assert said[0]["certificate_sha256"] == "c" * 64


def test_everything_is_locked_until_the_signer_goes_back(desk: Desk) -> None:
    first, _ = made(desk).submitters
    slug = first.slug or ""
    start(desk, slug)
    order = order_of(desk)
    for work in (lambda: desk.save(slug, {}), lambda: desk.complete(slug, {}), lambda: start(desk, slug)):
        assert refusal(work).details == [{"field": "state", "reason": "confirming"}]
    assert leave(desk, slug).state == "open"
    assert desk.events("confirmation.left")[0]["data"]["confirmation_id"] == order["confirmation_id"]
    assert [one.value for one in desk.form(slug).fields if one.mine] == ["Ann"], "what was filled in is there"
    tell(desk, "signed", order=order)
    assert desk.count("form.completed") == 0, "a signature that comes late counts for nothing"
    start(desk, slug, "Anna")
    assert order_of(desk)["confirmation_id"] != order["confirmation_id"]
    tell(desk, "signed")
    assert desk.form(slug).state == "completed"


def test_completing_is_refused_without_the_provider_and_what_is_missing_before_it(desk: Desk) -> None:
    first, _ = made(desk).submitters
    slug = first.slug or ""
    assert refusal(lambda: desk.complete(slug)).details == [{"field": "state", "reason": "confirm"}]
    missing = refusal(lambda: start(desk, slug, ""))
    assert missing.code == "invalid"
    assert desk.form(slug).state == "open"
    assert desk.events("confirmation.due") == desk.events("form.started") == []


def test_what_failed_is_told_and_asked_for_again(desk: Desk) -> None:
    submission = made(desk)
    slug = submission.submitters[0].slug or ""
    start(desk, slug)
    tell(desk, "refused", problem="refused", message="the signature was refused at the provider")
    assert desk.get(submission.id).submitters[0].identity_status == "failed"
    assert desk.count("provider_problem.due") == 0, "the person knows it themselves"
    assert desk.form(slug).state == "confirming"
    again(desk, slug)
    assert desk.get(submission.id).submitters[0].identity_status == "pending"
    retried = desk.events("confirmation.retried")[0]["data"]
    assert (retried["round"], retried["confirmation_id"]) == (2, order_of(desk)["confirmation_id"])
    desk.now += timedelta(seconds=5)
    tell(desk, "failed", problem="unusable", message="no signatures are left on the account")
    seen = desk.get(submission.id)
    assert seen.certsign_sign_status == "failed"
    assert seen.certsign is not None
    assert seen.certsign.message == "no signatures are left on the account"
    assert desk.count("provider_problem.due") == 1
    assert desk.count("submission.certsign_failed") == 1
    today = ORDER.model_copy(update={"settings": "of today"})
    command = rpc.RetryCertsign(request_id=uuid7(), actor=ADMIN, id=submission.id, order=today)
    desk.database.write(providers.retry_certsign, command, SITE, desk.now)
    assert desk.events("confirmation.retried")[-1]["data"]["order"]["settings"] == "of today"
    assert desk.get(submission.id).certsign_sign_status == "pending"
    desk.now += timedelta(seconds=5)
    tell(desk, "signed")
    assert desk.form(slug).state == "completed"


def test_the_provider_is_given_up_for_those_who_have_not_signed_yet(desk: Desk) -> None:
    submission = made(desk)
    first, second = submission.submitters
    start(desk, first.slug or "")
    signed = order_of(desk)["confirmation_id"]
    tell(desk, "signed")
    start(desk, second.slug or "")
    waived = waive(desk, submission)
    assert waived.certsign is not None
    assert waived.certsign.waived_by == ADMIN.email
    assert desk.count("confirmation.left") == 1
    assert desk.form(second.slug or "").confirm_with is None
    desk.complete(second.slug or "")
    (due,) = desk.events("sealing.due")
    assert due["data"]["confirmations"] == [signed], "what was signed stays"
    assert "waive_certsign" in assert_chain_holds(desk, submission.id)
    assert refusal(lambda: waive(desk, submission)).code == "conflict"


@pytest.mark.parametrize(
    ("more", "submitters", "named"),
    [
        ({"order": "random"}, ({}, {}), "order"),
        ({}, ({"order": 1}, {"order": 1}), "submitters"),
    ],
)
def test_signers_sign_one_after_the_other(desk: Desk, more: Any, submitters: Any, named: str) -> None:
    refused = refusal(lambda: desk.create(two_signers(), *submitters, certsign=WISH, **more))
    assert [detail["field"] for detail in refused.details] == [named]
    desk.create(two_signers(), *submitters, **more)
    off = WISH.model_copy(update={"enabled": False})
    desk.create(two_signers(), *submitters, certsign=off, **more)


def test_somebody_alone_may_sign_in_any_order(desk: Desk) -> None:
    desk.create(template(field()), {}, certsign=WISH, order="random")
    desk.create(two_signers(), {"completed": True}, {"order": 0}, certsign=WISH, order="random")


def test_what_the_sender_changes_meanwhile_is_not_signed(desk: Desk) -> None:
    submission = made(desk)
    first = submission.submitters[0]
    start(desk, first.slug or "")
    order = order_of(desk)
    desk.update_submitter(first.id, values={"Name": "Mallory"})
    assert desk.count("confirmation.left") == 1
    tell(desk, "signed", order=order)
    assert desk.count("form.completed") == 0
    assert desk.form(first.slug or "").state == "open"


def test_whoever_declines_has_not_signed(desk: Desk) -> None:
    submission = made(desk)
    first = submission.submitters[0]
    start(desk, first.slug or "")
    assert desk.decline(first.slug or "", "no").state == "declined"
    assert desk.count("confirmation.left") == 1
    tell(desk, "signed")
    assert desk.get(submission.id).status == "declined"


def test_the_submission_has_expired_when_the_provider_has_signed(desk: Desk) -> None:
    submission = made(desk, expire_at=NOW + timedelta(hours=1))
    first = submission.submitters[0]
    start(desk, first.slug or "")
    desk.now += timedelta(hours=2)
    desk.database.write(followups.expire, [submission.id], SITE, desk.now)
    tell(desk, "signed")
    seen = desk.get(submission.id)
    assert (seen.status, seen.submitters[0].identity_status) == ("expired", "failed")
    assert desk.count("confirmation.left") == 1
    assert desk.count("form.completed") == 0
    assert_chain_holds(desk, submission.id)


def test_a_repeated_start_has_one_effect(desk: Desk) -> None:
    first = made(desk).submitters[0]
    for _ in range(2):
        start(desk, first.slug or "", request_id="r1")
    assert desk.count("confirmation.due") == 1
    assert step(desk, first.slug or "")[1] == "confirming"


def test_without_the_provider_nothing_is_confirmed(desk: Desk) -> None:
    submission = made(desk, certsign=WISH.model_copy(update={"enabled": False}))
    first = submission.submitters[0]
    assert desk.form(first.slug or "").confirm_with is None
    with pytest.raises(ServiceError) as refused:
        start(desk, first.slug or "")
    assert refused.value.details == [{"field": "state", "reason": "complete"}]
    desk.complete(first.slug or "")
    assert desk.get(submission.id).submitters[0].identity_status is None


def test_a_date_that_is_filled_in_by_itself_stays_what_was_signed(desk: Desk) -> None:
    found = template(
        field("First Party", "Signed on", "date", default_value="{{date}}", readonly=True), field("First Party", "Name")
    )
    submission = desk.create(found, {}, certsign=WISH)
    start(desk, submission.submitters[0].slug or "")
    drawn = {one["field"]["name"]: one["value"] for one in order_of(desk)["values"]}
    desk.now += timedelta(days=2)
    tell(desk, "signed")
    assert desk.form(submission.submitters[0].slug or "").state == "completed", desk.get(
        submission.id
    ).submission_events
    values = desk.get(submission.id).submitters[0].values
    assert values["Signed on"] == drawn["Signed on"]


def test_a_sealing_that_has_lost_a_signature_goes_on_without_it_when_an_admin_wants(desk: Desk) -> None:
    submission = desk.create(template(field()), {}, certsign=WISH)
    start(desk, submission.submitters[0].slug or "")
    signed = order_of(desk)["confirmation_id"]
    tell(desk, "signed")
    desk.seal_fails(submission.id, "What a signer has signed at the provider is not known here")
    assert waive(desk, submission).sealing_status == "sealing"
    first, again = desk.events("sealing.due")
    assert (first["data"]["confirmations"], again["data"]["confirmations"]) == ([signed], [])
    assert desk.events("confirmation.left")[-1]["data"]["confirmation_id"] == signed
    desk.seal(submission.id)
    seen = desk.get(submission.id)
    assert (seen.status, seen.certsign_sign_status) == ("completed", "failed")


def test_what_was_not_finished_in_a_day_is_open_again(desk: Desk) -> None:
    submission = made(desk)
    slug = submission.submitters[0].slug or ""
    start(desk, slug)
    tell(desk, "refused", problem="refused", message="no")
    desk.now += timedelta(days=1, seconds=1)
    tell(desk, "discarded", message="nobody went on with it")
    assert desk.form(slug).state == "open"
    assert desk.get(submission.id).submitters[0].identity_status == "failed"


def test_news_from_before_the_person_was_asked_again_change_nothing(desk: Desk) -> None:
    submission = made(desk)
    slug = submission.submitters[0].slug or ""
    start(desk, slug)
    told = desk.now + timedelta(seconds=1)
    tell(desk, "refused", at=told, problem="refused")
    again(desk, slug)
    tell(desk, "refused", at=told, problem="refused")
    assert desk.get(submission.id).submitters[0].identity_status == "pending"


def test_an_address_that_is_changed_ends_the_confirmation(desk: Desk) -> None:
    submission = made(desk)
    first = submission.submitters[0]
    start(desk, first.slug or "")
    order = order_of(desk)
    desk.update_submitter(first.id, email="bob@example.com")
    tell(desk, "signed", order=order)
    assert desk.count("form.completed") == 0
    seen = desk.get(submission.id).submitters[0]
    assert desk.form(seen.slug or "").state == "open"


def test_values_that_were_changed_in_the_database_are_not_what_was_locked(desk: Desk) -> None:
    submission = made(desk)
    first = submission.submitters[0]
    start(desk, first.slug or "")

    def change(session: Any) -> None:
        row = session.get(SubmitterRow, first.id)
        row.values = dict.fromkeys(row.values, "Mallory")

    desk.database.write(change)
    tell(desk, "signed")
    seen = desk.get(submission.id).submitters[0]
    assert (seen.status, seen.identity_status) == ("pending", "failed")
    assert desk.count("confirmation.left") == 1


def test_whoever_left_while_it_was_confirmed_is_reminded(desk: Desk) -> None:
    delays = Reminders(first="one_hour")
    submission = made(desk, account=Account(reminders=delays))
    first = submission.submitters[0]
    start(desk, first.slug or "")
    (row,) = desk.rows(f"SELECT id FROM reminders WHERE submitter_id = {first.id}")
    leased = ReminderRow(id=row.id, submission_id=submission.id, submitter_id=first.id, number=1)
    desk.now += timedelta(hours=1)
    assert desk.database.write(reminders.remind, leased, SITE, desk.now)


def test_whoever_approves_signs_nothing_at_the_provider(desk: Desk) -> None:
    submission = desk.create(two_signers(), {"acts_as": "approver", "order": 0}, {"order": 0}, certsign=WISH)
    approver, signer = submission.submitters
    assert desk.form(approver.slug or "").confirm_with is None
    assert desk.form(signer.slug or "").confirm_with == "signing.example"
    desk.complete(approver.slug or "")
    start(desk, signer.slug or "")
    tell(desk, "signed")
    assert [one.identity_status for one in desk.get(submission.id).submitters] == [None, "verified"]
