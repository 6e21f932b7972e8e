"""The way of a submission on real databases, SQLite and PostgreSQL: whole, late, twice, at once and out of order."""

import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.events import REGISTRY, MailOutcome
from contracts.rpc.submissions import api as rpc
from contracts.runtime import migrations
from contracts.runtime.clock import uuid7
from contracts.types import Actor, Order, Person, SealingStatus, SubmissionStatus, iso
from services.submissions import background
from services.submissions.commands import followups, submissions
from services.submissions.reading import queries
from tests.contract.conftest import ON_BOTH
from tests.support.material.submissions import (
    ADMIN,
    NOW,
    SITE,
    Desk,
    assert_chain_holds,
    assert_told_in_order,
    at_once,
    create_command,
    field,
    refusal,
    sealed,
    template,
    two_signers,
)
from tests.support.present import present

# ---------------------------------------------------------------- the way of a submission


@ON_BOTH
def test_the_schema_is_that_of_the_models(desk: Desk) -> None:
    assert migrations.differences("submissions", desk.url) == []
    migrations.downgrade("submissions", desk.url)
    migrations.upgrade("submissions", desk.url)
    assert migrations.differences("submissions", desk.url) == []


@ON_BOTH
def test_from_creation_to_completion(desk: Desk) -> None:
    made = desk.create(two_signers(), {"name": "Sam"}, {"name": "Bo"}, name="Deal")
    assert (made.status, made.sealing_status, made.order) == (SubmissionStatus.PENDING, None, Order.PRESERVED)
    first, second = made.submitters
    assert first.embed_src == f"https://sign.example.com/s/{first.slug}"
    assert [one["data"]["submitter_id"] for one in desk.events("invitation.due")] == [first.id]

    desk.view(first.slug, ip="192.0.2.1", user_agent="Browser")
    desk.now += timedelta(minutes=1)
    desk.save(first.slug, {desk.form(first.slug).fields[0].uuid: "Sam"})
    assert desk.complete(first.slug, {}, ip="192.0.2.1", time_zone="Europe/Vienna").state == "completed"
    assert [one["data"]["submitter_id"] for one in desk.events("invitation.due")] == [first.id, second.id]
    assert desk.get(made.id).sealing_status is None
    desk.complete(second.slug)

    waiting = desk.get(made.id)
    assert (waiting.status, waiting.sealing_status) == (SubmissionStatus.PENDING, SealingStatus.SEALING)
    assert (waiting.documents, waiting.audit_log_url, waiting.completed_at) == ([], None, None)
    (order,) = desk.events("sealing.due")
    desk.seal(made.id, seal_id=order["data"]["seal_id"])

    done = desk.get(made.id)
    assert (done.status, done.sealing_status, done.pades_level) == (
        SubmissionStatus.COMPLETED,
        SealingStatus.SEALED,
        "B-B",
    )
    assert [one.name for one in done.documents] == ["agreement 1"]
    assert done.documents == done.submitters[0].documents
    assert done.audit_log_url is not None
    assert "Audit%20Log%20-%20Deal.pdf" in done.audit_log_url
    (mails,) = desk.events("completion_mails.due")
    assert mails["data"]["audit_trail"]["name"] == "Audit trail - Deal"
    assert assert_told_in_order(desk, made.id) == [
        "submission.created",
        "form.viewed",
        "form.started",
        "form.signed",
        "form.completed",
        "form.started",
        "form.signed",
        "form.completed",
        "submission.completed",
    ]
    assert assert_chain_holds(desk, made.id) == [
        "create_submission",
        "invite_party",
        "view_form",
        "start_form",
        "complete_form",
        "invite_party",
        "start_form",
        "complete_form",
        "complete_submission",
    ]


def test_what_rendering_gets(desk: Desk) -> None:
    found = template(
        field("First Party", "Name"),
        field("First Party", "Agree", "checkbox", required=False),
        field("First Party", "Why", required=False, conditions=[{"field_uuid": "never", "action": "checked"}]),
        field("First Party", "Title", "heading", default_value="For {{name}}"),
        field("Second Party", "Amount", "number", preferences={"mask": True}),
        documents=2,
    )
    made = desk.signed_with(found, {"name": "Sam"}, {"name": "Bo"}, values={"Name": "Samuel", "Amount": 1234})
    (order,) = desk.events("sealing.due")
    data: Any = REGISTRY["sealing.due"].model.model_validate(order["data"])
    assert [(one.field.name, one.value) for one in data.values] == [
        ("Name", "Samuel"),
        ("Title", None),
        ("Amount", 1234),
    ]
    assert data.values[1].field.default_value == "For Sam"
    assert [one.submitter_id for one in data.values] == [made.submitters[0].id] * 2 + [made.submitters[1].id]
    assert [one.name for one in data.documents] == ["agreement 1", "agreement 2"]
    assert [one.status for one in data.parties] == ["completed", "completed"]
    assert [one.event_type for one in data.trail][-1] == "complete_form"
    assert data.trail[-1].hash == present(desk.get(made.id).submission_events)[-1].hash
    assert (data.submission_slug, data.base_url) == (made.slug, SITE.base_url)


def test_who_made_it_has_both_names_as_the_user_has_them(desk: Desk) -> None:
    """An older gateway sends the whole name alone, and older rows have nothing else: that is split as it used to be."""
    whole = {"user_id": 1, "role": "admin", "email": "mary@example.com", "name": "Mary Ann Lee"}
    cases: list[tuple[dict[str, Any], tuple[str | None, str | None]]] = [
        ({**whole, "first_name": "Mary Ann", "last_name": "Lee"}, ("Mary Ann", "Lee")),
        ({**whole, "first_name": "Mary Ann Lee", "last_name": None}, ("Mary Ann Lee", None)),
        ({**whole, "first_name": None, "last_name": "Mary Ann Lee"}, (None, "Mary Ann Lee")),
        (whole, ("Mary", "Ann Lee")),
        ({**whole, "name": ""}, (None, None)),
    ]
    for actor, names in cases:
        made = desk.create(actor=Actor.model_validate(actor))
        listed = desk.database.read(queries.submissions, rpc.ListSubmissions(actor=ADMIN), SITE, desk.now)
        (created,) = (one for one in desk.events("submission.created") if one["subject"] == f"submission:{made.id}")
        told = created["data"]["data"]["created_by_user"]
        for person in (made.created_by_user, listed.data[-1].created_by_user, Person.model_validate(told)):
            assert person is not None
            assert (person.first_name, person.last_name) == names
    mailed = [one["data"]["context"]["sender_first_name"] for one in desk.events("invitation.due")]
    assert mailed == ["Mary Ann", "Mary Ann Lee", None, None, None]


def test_completed_in_advance(desk: Desk) -> None:
    found = template(field("First Party", "Name"), field("Second Party", "Date", "date", default_value="{{date}}"))
    made = desk.create(found, {}, {"completed": True})
    assert [one.status for one in made.submitters] == ["pending", "completed"]
    assert made.submitters[1].values == {"Date": "2026-03-04"}
    desk.complete(made.submitters[0].slug)
    assert desk.get(made.id).sealing_status is SealingStatus.SEALING
    (line,) = [one for one in desk.get(made.id).submission_events or [] if one.event_type == "api_complete_form"]
    assert {key: line.data[key] for key in ("by", "by_name", "user_id")} == {
        "by": ADMIN.email,
        "by_name": ADMIN.name,
        "user_id": ADMIN.user_id,
    }
    (order,) = desk.events("sealing.due")
    assert [one["completed_by_api"] for one in order["data"]["parties"]] == [None, ADMIN.email]


@ON_BOTH
def test_everybody_completed_in_advance(desk: Desk) -> None:
    made = desk.create(two_signers(), {"completed": True}, {"completed": True})
    assert made.sealing_status is SealingStatus.SEALING
    assert desk.count("invitation.due") == 0
    assert desk.count("sealing.due") == 1


def test_decline_ends_it_and_tells_the_sender(desk: Desk) -> None:
    made = desk.create(two_signers(), {"name": "Sam"}, {})
    assert desk.decline(made.submitters[0].slug, "Too dear").state == "declined"
    assert desk.get(made.id).status is SubmissionStatus.DECLINED
    (mail,) = desk.events("decline_mail.due")
    assert (mail["data"]["submitter_id"], mail["data"]["reason"]) == (made.submitters[0].id, "Too dear")
    assert assert_told_in_order(desk, made.id) == ["submission.created", "form.declined", "submission.declined"]
    other = desk.form(made.submitters[1].slug)
    assert (other.state, other.declined_by, other.decline_reason, other.fields) == ("declined", "Sam", "Too dear", [])
    assert refusal(lambda: desk.complete(made.submitters[1].slug, {})).details == [
        {"field": "state", "reason": "declined"}
    ]


def test_archive_and_back(desk: Desk) -> None:
    made = desk.create()
    archived = desk.remove(made.id)
    assert archived.archived_at == NOW
    assert desk.form(made.submitters[0].slug).state == "archived"
    assert desk.remove(made.id).archived_at == NOW
    assert desk.count("submission.archived") == 1
    assert not desk.update(made.id, archived=False).archived
    assert desk.form(made.submitters[0].slug).state == "open"
    assert desk.update(made.id, archived=True).archived


def test_a_failed_sealing_says_why_and_is_retried_under_a_new_id(desk: Desk) -> None:
    made = desk.signed()
    first = desk.column(made.id, "seal_id")
    desk.seal_fails(made.id, "field Name: no font")
    failed = desk.get(made.id)
    assert (failed.status, failed.sealing_status) == (SubmissionStatus.PENDING, SealingStatus.FAILED)
    assert failed.sealing_error == "field Name: no font"
    again = rpc.RetrySeal(request_id=uuid7(), actor=ADMIN, id=made.id)
    answer = desk.database.write(submissions.retry_seal, again, SITE, desk.now)
    assert (answer.sealing_status, answer.sealing_error) == (SealingStatus.SEALING, None)
    assert [one["data"]["seal_id"] for one in desk.events("sealing.due")] == [first, desk.column(made.id, "seal_id")]
    desk.seal(made.id, seal_id=first)
    assert desk.get(made.id).status is SubmissionStatus.PENDING
    desk.seal(made.id)
    assert desk.get(made.id).status is SubmissionStatus.COMPLETED
    assert assert_chain_holds(desk, made.id)[-3:] == ["fail_sealing", "retry_sealing", "complete_submission"]
    once_more = rpc.RetrySeal(request_id=uuid7(), actor=ADMIN, id=made.id)
    refused = refusal(lambda: desk.database.write(submissions.retry_seal, once_more, SITE, desk.now))
    assert (refused.code, refused.details[0]["field"]) == ("invalid", "sealing_status")


# ---------------------------------------------------------------- late, twice, at once, out of order


def test_the_same_request_creates_one_submission(desk: Desk) -> None:
    found = two_signers()
    command = create_command(found, {}, {})
    answers = at_once(*[lambda: desk.run_create(command, found)] * 8)
    assert len({one.model_dump_json() for one in answers}) == 1
    assert desk.rows("SELECT count(*) AS n FROM submissions")[0].n == 1
    assert desk.count("invitation.due") == 1


def test_fifty_parallel_completions_are_one(desk: Desk) -> None:
    made = desk.create(template(field()), {})
    slug = made.submitters[0].slug
    values = {desk.form(slug).fields[0].uuid: "Sam"}
    results = at_once(*[lambda: desk.complete(slug, values)] * 50)
    refused = [one for one in results if isinstance(one, ServiceError)]
    assert len(refused) == 49
    assert {(one.code, one.message) for one in refused} == {("invalid", "Form has been completed already.")}
    assert (desk.count("form.signed"), desk.count("sealing.due")) == (1, 1)
    assert_chain_holds(desk, made.id)


def test_the_same_completion_twice_gets_the_same_answer(desk: Desk) -> None:
    made = desk.create(template(field()), {})
    slug, request_id = made.submitters[0].slug, uuid7()
    values = {desk.form(slug).fields[0].uuid: "Sam"}
    first = desk.complete(slug, values, request_id=request_id)
    assert desk.complete(slug, values, request_id=request_id) == first
    assert desk.count("form.signed") == 1


def test_somebody_else_s_request_id_is_another_request(desk: Desk) -> None:
    first, second = desk.create(order="random").submitters
    for one in (first, second):
        assert desk.complete(one.slug, request_id="the same").state == "completed"
    assert [one.status for one in desk.get(first.submission_id).submitters] == ["completed", "completed"]
    found = two_signers()
    commands_of_two = [
        create_command(found, {}, {}, request_id="key", actor=ADMIN.model_copy(update={"user_id": user}))
        for user in (1, 2)
    ]
    made = [desk.run_create(one, found) for one in commands_of_two]
    assert made[0].id != made[1].id
    renamed = [
        desk.database.write(
            submissions.update,
            rpc.UpdateSubmission(request_id="key", actor=ADMIN, id=one.id, name=f"Name {one.id}"),
            SITE,
            desk.now,
        )
        for one in made
    ]
    assert [one.name for one in renamed] == [f"Name {one.id}" for one in made]
    slugs = [one.slug for each in made for one in each.submitters]
    stored = str([tuple(one) for one in desk.rows("SELECT request_id FROM answers")])
    assert not [one for one in (*slugs, first.slug, second.slug) if present(one) in stored]


def test_two_last_signers_at_once_make_one_sealing(desk: Desk) -> None:
    for _ in range(5):
        made = desk.create(order="random")
        at_once(*[lambda slug=one.slug: desk.complete(slug) for one in made.submitters])
        mine = [one for one in desk.events("sealing.due") if one["data"]["submission_id"] == made.id]
        assert len(mine) == 1
        assert_chain_holds(desk, made.id)
        assert_told_in_order(desk, made.id)


def test_complete_and_expire_at_once_end_in_one_of_the_two(desk: Desk) -> None:
    later = NOW + timedelta(milliseconds=5)
    for _ in range(8):
        made = desk.create(template(field()), {}, expire_at=later)
        slug = made.submitters[0].slug
        values = {desk.form(slug).fields[0].uuid: "Sam"}
        done, expired = at_once(
            partial(desk.complete, slug, values), partial(desk.database.write, followups.expire, [made.id], SITE, later)
        )
        completed = not isinstance(done, ServiceError)
        assert completed is not bool(expired)
        kinds = assert_told_in_order(desk, made.id)
        assert ("form.signed" in kinds) is completed
        assert ("submission.expired" in kinds) is bool(expired)


def test_two_sweepers_tell_of_an_expiry_once(desk: Desk) -> None:
    made = [desk.create(expire_at=NOW + timedelta(hours=1)).id for _ in range(4)]
    later = NOW + timedelta(hours=2)

    def sweep() -> None:
        due = [submission_id for _at, submission_id in desk.database.read(followups.due_to_expire, later)]
        desk.database.write(followups.expire, due, SITE, later)

    at_once(sweep, sweep)
    assert desk.count("submission.expired") == len(made)
    desk.now = later
    assert desk.get(made[0]).status is SubmissionStatus.EXPIRED


@ON_BOTH
def test_expiry_wins_before_the_sweep(desk: Desk) -> None:
    made = desk.create(expire_at=NOW + timedelta(hours=1))
    slug = made.submitters[0].slug
    field_uuid = desk.form(slug).fields[0].uuid
    desk.now = NOW + timedelta(hours=1)
    assert desk.form(slug).state == "expired"
    assert desk.get(made.id).status is SubmissionStatus.EXPIRED
    assert refusal(lambda: desk.save(slug, {field_uuid: "x"})).message == "Form has been expired."
    assert desk.listed(status="expired") == [made.id]
    assert desk.listed(status="pending") == []


@pytest.mark.parametrize("change", ["extended", "cleared", "archived"])
def test_an_expiry_that_no_longer_holds_is_not_told(desk: Desk, change: str) -> None:
    """Acceptance cases 86 to 90 of the peer."""
    made = desk.create(expire_at=NOW + timedelta(hours=1))
    if change == "archived":
        desk.remove(made.id)
    else:
        desk.update(made.id, expire_at=NOW + timedelta(days=1) if change == "extended" else None)
    later = NOW + timedelta(hours=2)
    assert desk.database.read(followups.due_to_expire, later) == []
    assert not desk.database.write(followups.expire, [made.id], SITE, later)
    assert desk.count("submission.expired") == 0


def test_sealed_twice_and_a_stranger_s_sealing(desk: Desk) -> None:
    made = desk.signed()
    event_id = uuid7()
    accepted = desk.seal(made.id, event_id=event_id)
    desk.database.write(followups.accept_sealed, event_id, accepted, SITE, desk.now)
    desk.database.write(followups.accept_sealed, uuid7(), accepted, SITE, desk.now)
    assert desk.count("submission.completed") == 1
    assert desk.count("completion_mails.due") == 1
    assert desk.rows("SELECT key FROM blob_removals") == []
    late = sealed(made.id, "another sealing")
    desk.database.write(followups.accept_sealed, uuid7(), late, SITE, desk.now)
    removed = {one.key for one in desk.rows("SELECT key FROM blob_removals")}
    assert removed == {late.documents[0].file.key, late.audit_trail.key}
    assert desk.get(made.id).documents[0].sha256 == accepted.documents[0].file.sha256


def test_events_of_unknown_submissions_do_nothing(desk: Desk) -> None:
    """Not even to their files: the database may be an old one that was put back by mistake, and they are all that is left."""
    stray = sealed(4711, "x")
    desk.database.write(followups.accept_sealed, uuid7(), stray, SITE, desk.now)
    assert desk.rows("SELECT key FROM blob_removals") == []
    desk.seal_fails(4711, seal_id="x")
    outcome = MailOutcome(submission_id=4711, submitter_id=1, kind="invitation", to="a@b.co")
    desk.database.write(followups.accept_mail_sent, uuid7(), outcome, SITE, desk.now)
    desk.database.write(followups.accept_mail_failed, uuid7(), outcome, desk.now)
    assert desk.events() == []


def test_failure_after_success_and_success_after_failure(desk: Desk) -> None:
    made = desk.signed()
    seal_id = desk.column(made.id, "seal_id")
    desk.seal_fails(made.id, seal_id=seal_id)
    desk.seal(made.id, seal_id=seal_id)
    desk.seal_fails(made.id, seal_id=seal_id)
    done = desk.get(made.id)
    assert (done.status, done.sealing_error) == (SubmissionStatus.COMPLETED, None)


@ON_BOTH
def test_a_sealing_without_answer_is_ordered_again_later_and_later(desk: Desk) -> None:
    made = desk.signed()
    patience = timedelta(minutes=1)
    reminded = []
    for minute in range(1, 31):
        moment = NOW + timedelta(minutes=minute)
        for submission_id in desk.database.read(followups.waiting_for_seal, moment, patience):
            assert desk.database.write(followups.remind, submission_id, SITE, patience, moment)
            assert not desk.database.write(followups.remind, submission_id, SITE, patience, moment)
            reminded.append(minute)
    assert reminded == [1, 2, 4, 8, 16]
    orders = desk.events("sealing.due")
    assert {one["data"]["seal_id"] for one in orders} == {desk.column(made.id, "seal_id")}
    assert len({json.dumps(one["data"], sort_keys=True) for one in orders}) == 1
    desk.seal(made.id)
    assert desk.database.read(followups.waiting_for_seal, NOW + timedelta(days=1), patience) == []
    assert not desk.database.write(followups.remind, made.id, SITE, patience, NOW + timedelta(days=1))


def test_mails(desk: Desk) -> None:
    made = desk.create()
    sent = MailOutcome(
        submission_id=made.id, submitter_id=made.submitters[0].id, kind="invitation", to="signer1@example.com"
    )
    event_id = uuid7()
    for _ in range(2):
        desk.database.write(followups.accept_mail_sent, event_id, sent, SITE, NOW + timedelta(seconds=9))
    failed = sent.model_copy(
        update={"submitter_id": made.submitters[1].id, "to": "signer2@example.com", "error": "550 no such user"}
    )
    desk.database.write(followups.accept_mail_failed, uuid7(), failed, desk.now)
    found = desk.get(made.id)
    assert [one.sent_at for one in found.submitters] == [NOW + timedelta(seconds=9), None]
    assert assert_told_in_order(desk, made.id) == ["submission.created", "form.sent"]
    assert assert_chain_holds(desk, made.id) == [
        "create_submission",
        "invite_party",
        "send_email",
        "bounce_email",
    ]
    bounced = (found.submission_events or [])[-1].data
    assert (bounced["kind"], bounced["reason"], bounced["email"]) == ("invitation", "550 no such user", failed.to)


def test_news_of_several_mails_in_one_transaction_are_noted_as_one_after_the_other(desk: Desk) -> None:
    """The submission is read once for them."""
    made = desk.create()
    other = desk.create()
    statements: list[str] = []
    sa.event.listen(desk.database.engine, "before_cursor_execute", lambda *all_: statements.append(all_[2]))

    def note(session: Session) -> None:
        for submission, number in ((made, 0), (other, 1), (made, 1), (other, 0)):
            to = f"signer{number + 1}@example.com"
            outcome = MailOutcome(
                submission_id=submission.id, submitter_id=submission.submitters[number].id, kind="invitation", to=to
            )
            followups.accept_mail_sent(session, uuid7(), outcome, SITE, NOW + timedelta(seconds=9))
            session.flush()
        copy = MailOutcome(submission_id=made.id, kind="completed", to="ada@example.com")
        followups.accept_mail_sent(session, uuid7(), copy, SITE, NOW + timedelta(seconds=9))

    desk.database.write(note)
    assert sum("FROM submissions" in each and "snapshots" not in each for each in statements) == 2
    for submission in (made, other):
        found = desk.get(submission.id)
        assert [one.sent_at for one in found.submitters] == [NOW + timedelta(seconds=9)] * 2
        assert assert_told_in_order(desk, submission.id) == ["submission.created", "form.sent", "form.sent"]
    noted = ["create_submission", "invite_party", "send_email", "send_email"]
    assert assert_chain_holds(desk, other.id) == noted
    assert assert_chain_holds(desk, made.id) == [*noted, "send_completion_email"]


def test_the_invitation_stands_before_what_it_led_to_however_late_the_news_of_its_mail(desk: Desk) -> None:
    made = desk.create()
    first = made.submitters[0]
    desk.now = NOW + timedelta(minutes=2)
    desk.view(first.slug)
    taken = NOW + timedelta(seconds=3)
    news = MailOutcome(
        submission_id=made.id, submitter_id=first.id, kind="invitation", to="signer1@example.com", sent_at=taken
    )
    desk.database.write(followups.accept_mail_sent, uuid7(), news, SITE, NOW + timedelta(minutes=5))
    found = desk.get(made.id)
    assert (found.submitters[0].sent_at, found.submitters[0].opened_at) == (taken, desk.now)
    assert assert_chain_holds(desk, made.id) == ["create_submission", "invite_party", "view_form", "send_email"]
    lines = found.submission_events or []
    assert (lines[1].submitter_id, lines[1].event_timestamp) == (first.id, NOW)
    assert (lines[3].event_timestamp, lines[3].data["sent_at"]) == (NOW + timedelta(minutes=5), iso(taken))
    desk.complete(first.slug)
    desk.complete(made.submitters[1].slug)
    party = desk.events("sealing.due")[0]["data"]["parties"][0]
    assert (party["invited_at"], party["sent_at"], party["opened_at"]) == (iso(NOW), iso(taken), iso(desk.now))


@pytest.mark.parametrize(("said", "kept"), [(-3600, 0), (3600, 60)], ids=["clock behind", "clock ahead"])
def test_a_mail_is_sent_after_its_invitation_and_before_the_news_of_it(desk: Desk, said: int, kept: int) -> None:
    made = desk.create()
    first = made.submitters[0]
    at = NOW + timedelta(seconds=said)
    news = MailOutcome(
        submission_id=made.id, submitter_id=first.id, kind="invitation", to="signer1@example.com", sent_at=at
    )
    desk.database.write(followups.accept_mail_sent, uuid7(), news, SITE, NOW + timedelta(seconds=60))
    assert desk.get(made.id).submitters[0].sent_at == NOW + timedelta(seconds=kept)


def test_times_never_go_back_when_the_clock_does(desk: Desk) -> None:
    made = desk.create()
    desk.now = NOW - timedelta(hours=1)
    desk.complete(made.submitters[0].slug)
    found = desk.get(made.id)
    assert found.submitters[0].completed_at == NOW
    assert_chain_holds(desk, made.id)


def test_those_that_expire_at_once_are_told_in_order_each_with_its_line(desk: Desk) -> None:
    """In one transaction; what is told of them is inserted together."""
    made = [desk.create(expire_at=NOW + timedelta(hours=1)).id for _ in range(5)]
    later = NOW + timedelta(hours=2)
    assert desk.database.write(followups.expire, made, SITE, later) == len(made)
    told = [event["subject"] for event in desk.events("submission.expired")]
    assert told == [f"submission:{one}" for one in made]
    for one in made:
        assert assert_chain_holds(desk, one)[-1] == "expire_submission"


def test_a_few_due_ones_are_looked_up_at_a_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that is no longer due when its turn comes is not told."""
    monkeypatch.setattr(background, "EXPIRED_AT_ONCE", 2)
    monkeypatch.setattr(background, "LOOKED_UP_AT_ONCE", 4)
    monkeypatch.setattr(background, "now", lambda: NOW + timedelta(hours=2))
    monkeypatch.setattr(background, "without_leaps", lambda _period: NOW + timedelta(hours=2))
    made = [desk.create(expire_at=NOW + timedelta(hours=1)).id for _ in range(7)]
    expiry = background.Expiry(desk.database, SITE)
    assert expiry.portion()
    desk.update(made[3], expire_at=NOW + timedelta(days=1))
    while expiry.portion():
        """Until nothing is left."""
    assert desk.count("submission.expired") == len(made) - 1


def test_expiry_goes_on_until_nothing_is_left_and_past_one_that_fails(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In portions; one that cannot be expired keeps the others from nothing, also in its own transaction."""
    monkeypatch.setattr(background, "EXPIRED_AT_ONCE", 3)
    made = [desk.create(expire_at=NOW + timedelta(hours=1)).id for _ in range(8)]
    bad = made[1]
    real = followups.expire

    def expire(session: Session, submission_ids: list[int], *more: Any) -> int:
        done = real(session, submission_ids, *more)
        if bad in submission_ids:
            raise RuntimeError("cannot be expired")
        return done

    monkeypatch.setattr(followups, "expire", expire)
    monkeypatch.setattr(background, "now", lambda: NOW + timedelta(hours=2))
    monkeypatch.setattr(background, "without_leaps", lambda _period: NOW + timedelta(hours=2))
    expiry = background.Expiry(desk.database, SITE)
    portions = 0
    while expiry.portion():
        portions += 1
    assert portions == 3
    assert desk.count("submission.expired") == 7
    monkeypatch.setattr(followups, "expire", real)
    while expiry.portion():
        """The next sweep."""
    assert desk.count("submission.expired") == 8
