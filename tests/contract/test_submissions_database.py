"""The submissions service's use cases on real databases: SQLite and PostgreSQL, with real threads where they race."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from contracts import links
from contracts.audit_chain import START, next_hash
from contracts.errors import ServiceError
from contracts.events import REGISTRY, MailOutcome
from contracts.rpc import submissions as rpc
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime import migrations
from contracts.runtime.clock import uuid7
from contracts.types import Account, Actor, Area, Condition, Order, Party, Role, SealingStatus, SubmissionStatus, iso
from services.submissions import commands, followups, forms, known_templates, queries
from tests.support.submissions import ADMIN, NOW, SITE, Desk, create_command, field, sealed, template, two_signers


@pytest.fixture
def desk(database_url: str) -> Iterator[Desk]:
    desk = Desk(database_url)
    yield desk
    desk.database.dispose()


def refusal(work: Callable[[], Any]) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        work()
    return caught.value


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """The results or refusals of all works, begun at the same moment in threads of their own."""
    results: list[Any] = [None] * len(works)
    barrier = threading.Barrier(len(works))

    def run(number: int) -> None:
        barrier.wait()
        try:
            results[number] = works[number]()
        except ServiceError as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def assert_told_in_order(desk: Desk, submission_id: int) -> list[str]:
    """The public events of a submission are numbered 1, 2, 3, ... without gaps; their types."""
    told = [
        one for one in desk.events() if one["subject"] == f"submission:{submission_id}" and one["sequence"] is not None
    ]
    assert [one["sequence"] for one in told] == list(range(1, len(told) + 1))
    return [one["type"] for one in told]


def assert_chain_holds(desk: Desk, submission_id: int) -> list[str]:
    """Anybody can recompute the hash chain from the API; times never decrease. The event types."""
    before, last = START, None
    events = desk.get(submission_id).submission_events or []
    for line in events:
        before = next_hash(
            before,
            submitter_id=line.submitter_id,
            event_type=line.event_type,
            occurred_at=line.event_timestamp,
            data=line.data,
        )
        assert line.hash == before
        assert last is None or line.event_timestamp >= last
        last = line.event_timestamp
    return [line.event_type for line in events]


# ---------------------------------------------------------------- the way of a submission


def test_the_schema_is_that_of_the_models(desk: Desk) -> None:
    assert migrations.differences("submissions", desk.url) == []
    migrations.downgrade("submissions", desk.url)
    migrations.upgrade("submissions", desk.url)
    assert migrations.differences("submissions", desk.url) == []


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
    assert assert_told_in_order(desk, made.id) == [
        "submission.created",
        "form.viewed",
        "form.started",
        "form.completed",
        "form.started",
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
    data = REGISTRY["sealing.due"].model.model_validate(order["data"])
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
    assert data.trail[-1].hash == desk.get(made.id).submission_events[-1].hash
    assert (data.submission_slug, data.base_url) == (made.slug, SITE.base_url)


def test_completed_in_advance(desk: Desk) -> None:
    found = template(field("First Party", "Name"), field("Second Party", "Date", "date", default_value="{{date}}"))
    made = desk.create(found, {}, {"completed": True})
    assert [one.status for one in made.submitters] == ["pending", "completed"]
    assert made.submitters[1].values == {"Date": "2026-03-04"}
    desk.complete(made.submitters[0].slug)
    assert desk.get(made.id).sealing_status is SealingStatus.SEALING
    (line,) = [one for one in desk.get(made.id).submission_events or [] if one.event_type == "api_complete_form"]
    assert line.data == {"by": ADMIN.email}
    (order,) = desk.events("sealing.due")
    assert [one["completed_by_api"] for one in order["data"]["parties"]] == [None, ADMIN.email]


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
    answer = desk.database.write(commands.retry_seal, again, SITE, desk.now)
    assert (answer.sealing_status, answer.sealing_error) == (SealingStatus.SEALING, None)
    assert [one["data"]["seal_id"] for one in desk.events("sealing.due")] == [first, desk.column(made.id, "seal_id")]
    desk.seal(made.id, seal_id=first)
    assert desk.get(made.id).status is SubmissionStatus.PENDING
    desk.seal(made.id)
    assert desk.get(made.id).status is SubmissionStatus.COMPLETED
    assert assert_chain_holds(desk, made.id)[-3:] == ["fail_sealing", "retry_sealing", "complete_submission"]
    once_more = rpc.RetrySeal(request_id=uuid7(), actor=ADMIN, id=made.id)
    refused = refusal(lambda: desk.database.write(commands.retry_seal, once_more, SITE, desk.now))
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
    assert (desk.count("form.completed"), desk.count("sealing.due")) == (1, 1)
    assert_chain_holds(desk, made.id)


def test_the_same_completion_twice_gets_the_same_answer(desk: Desk) -> None:
    made = desk.create(template(field()), {})
    slug, request_id = made.submitters[0].slug, uuid7()
    values = {desk.form(slug).fields[0].uuid: "Sam"}
    first = desk.complete(slug, values, request_id=request_id)
    assert desk.complete(slug, values, request_id=request_id) == first
    assert desk.count("form.completed") == 1


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
            commands.update,
            rpc.UpdateSubmission(request_id="key", actor=ADMIN, id=one.id, name=f"Name {one.id}"),
            SITE,
            desk.now,
        )
        for one in made
    ]
    assert [one.name for one in renamed] == [f"Name {one.id}" for one in made]
    slugs = [one.slug for each in made for one in each.submitters]
    stored = str([tuple(one) for one in desk.rows("SELECT request_id FROM answers")])
    assert not [one for one in (*slugs, first.slug, second.slug) if one in stored]


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
            partial(desk.complete, slug, values), partial(desk.database.write, followups.expire, made.id, SITE, later)
        )
        completed = not isinstance(done, ServiceError)
        assert completed is not expired
        kinds = assert_told_in_order(desk, made.id)
        assert ("form.completed" in kinds) is completed
        assert ("submission.expired" in kinds) is expired


def test_two_sweepers_tell_of_an_expiry_once(desk: Desk) -> None:
    made = [desk.create(expire_at=NOW + timedelta(hours=1)).id for _ in range(4)]
    later = NOW + timedelta(hours=2)

    def sweep() -> None:
        for submission_id in desk.database.read(followups.due_to_expire, later):
            desk.database.write(followups.expire, submission_id, SITE, later)

    at_once(sweep, sweep)
    assert desk.count("submission.expired") == len(made)
    desk.now = later
    assert desk.get(made[0]).status is SubmissionStatus.EXPIRED


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
    assert not desk.database.write(followups.expire, made.id, SITE, later)
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
    stray = sealed(4711, "x")
    desk.database.write(followups.accept_sealed, uuid7(), stray, SITE, desk.now)
    assert len(desk.rows("SELECT key FROM blob_removals")) == 2
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
    sent = MailOutcome(submission_id=made.id, submitter_id=made.submitters[0].id, kind="invitation", to="x@y.zz")
    event_id = uuid7()
    for _ in range(2):
        desk.database.write(followups.accept_mail_sent, event_id, sent, SITE, NOW + timedelta(seconds=9))
    failed = sent.model_copy(update={"submitter_id": made.submitters[1].id, "error": "550 no such user"})
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
    assert (found.submission_events or [])[-1].data == {"kind": "invitation", "reason": "550 no such user"}


def test_the_invitation_stands_before_what_it_led_to_however_late_the_news_of_its_mail(desk: Desk) -> None:
    made = desk.create()
    first = made.submitters[0]
    desk.now = NOW + timedelta(minutes=2)
    desk.view(first.slug)
    taken = NOW + timedelta(seconds=3)
    news = MailOutcome(submission_id=made.id, submitter_id=first.id, kind="invitation", to="x@y.zz", sent_at=taken)
    desk.database.write(followups.accept_mail_sent, uuid7(), news, SITE, NOW + timedelta(minutes=5))
    found = desk.get(made.id)
    assert (found.submitters[0].sent_at, found.submitters[0].opened_at) == (taken, desk.now)
    assert assert_chain_holds(desk, made.id) == ["create_submission", "invite_party", "view_form", "send_email"]
    lines = found.submission_events or []
    assert (lines[1].submitter_id, lines[1].event_timestamp, lines[1].data) == (first.id, NOW, {})
    assert (lines[3].event_timestamp, lines[3].data) == (NOW + timedelta(minutes=5), {"sent_at": iso(taken)})
    desk.complete(first.slug)
    desk.complete(made.submitters[1].slug)
    party = desk.events("sealing.due")[0]["data"]["parties"][0]
    assert (party["invited_at"], party["sent_at"], party["opened_at"]) == (iso(NOW), iso(taken), iso(desk.now))


@pytest.mark.parametrize(("said", "kept"), [(-3600, 0), (3600, 60)], ids=["clock behind", "clock ahead"])
def test_a_mail_is_sent_after_its_invitation_and_before_the_news_of_it(desk: Desk, said: int, kept: int) -> None:
    made = desk.create()
    first = made.submitters[0]
    at = NOW + timedelta(seconds=said)
    news = MailOutcome(submission_id=made.id, submitter_id=first.id, kind="invitation", to="x@y.zz", sent_at=at)
    desk.database.write(followups.accept_mail_sent, uuid7(), news, SITE, NOW + timedelta(seconds=60))
    assert desk.get(made.id).submitters[0].sent_at == NOW + timedelta(seconds=kept)


def test_times_never_go_back_when_the_clock_does(desk: Desk) -> None:
    made = desk.create()
    desk.now = NOW - timedelta(hours=1)
    desk.complete(made.submitters[0].slug)
    found = desk.get(made.id)
    assert found.submitters[0].completed_at == NOW
    assert_chain_holds(desk, made.id)


# ---------------------------------------------------------------- the signing page


def test_a_later_signer_waits_and_the_server_refuses_his_values(desk: Desk) -> None:
    made = desk.create()
    slug = made.submitters[1].slug
    waiting = desk.form(slug)
    assert (waiting.state, waiting.fields, waiting.documents) == ("waiting", [], [])
    (own,) = [one.uuid for one in desk.get(made.id, include="fields").fields or [] if one.role == "Second Party"]
    for attempt in (desk.save, desk.complete):
        refused = refusal(lambda attempt=attempt: attempt(slug, {own: "early"}))
        assert (refused.code, refused.details) == ("forbidden", [{"field": "state", "reason": "waiting"}])
    assert desk.get(made.id).submitters[1].values == {}
    assert desk.view(slug).state == "waiting"
    assert desk.count("form.viewed") == 0


def test_values_are_checked_as_in_the_browser(desk: Desk) -> None:
    found = template(
        field(name="Code", uuid="code", validation={"pattern": "[A-Z]{3}", "message": "Three capitals"}),
        field(name="Age", uuid="age", type="number", validation={"min": 18, "step": 1}),
        field(name="Colour", uuid="colour", type="select", options=["Red", "Green"]),
        field(name="Fixed", uuid="fixed", default_value="as it is", readonly=True),
        field(name="Sign", uuid="sign", type="signature"),
        field(name="Note", uuid="note", required=False),
        field("Second Party", uuid="foreign"),
    )
    made = desk.create(found, {}, {})
    slug = made.submitters[0].slug

    def reasons(values: dict[str, Any], *, complete: bool = False) -> dict[str, str]:
        refused = refusal(lambda: (desk.complete if complete else desk.save)(slug, values))
        assert refused.code == "invalid"
        return {one["field"]: one["reason"] for one in refused.details}

    assert reasons({"code": "abc"}) == {"code": "Three capitals"}
    assert reasons({"age": 17.5}) == {"age": "must not be below 18"}
    assert reasons({"age": "old"}) == {"age": "must be a number"}
    assert reasons({"colour": "Blue"}) == {"colour": "must be one of Red, Green"}
    assert reasons({"fixed": "changed"}) == {"fixed": "is read-only"}
    assert reasons({"sign": "no attachment of his"}) == {"sign": "must be a file that was uploaded for it"}
    assert reasons({"foreign": "x"}) == {"foreign": "is no field of this signer"}
    assert reasons({"nothing": "x"}) == {"nothing": "is no field of this signer"}
    assert desk.get(made.id).submitters[0].values == {}
    desk.save(slug, {"code": "ABC", "fixed": "as it is"})
    missing = reasons({"age": 20}, complete=True)
    assert missing == {"colour": "is required", "sign": "is required"}
    assert desk.get(made.id).submitters[0].values == {"Code": "ABC"}
    assert desk.count("form.completed") == 0


def test_a_signature_that_asks_for_a_reason(desk: Desk) -> None:
    """Chosen from the list, stored step by step, required on completion, and printed (specification 2.7)."""
    offered = {"reasons": ["I approve", "I  have\nreviewed", "I approve"]}
    found = template(
        field(name="Sign", uuid="sign", type="signature", preferences=offered),
        field(name="Again", uuid="again", type="signature", preferences=offered, required=False),
        field(name="Name", uuid="name", required=False),
    )
    made = desk.create(found, {})
    slug = made.submitters[0].slug
    assert desk.form(slug).fields[0].reasons == ["I approve", "I have reviewed"]
    assert (desk.form(slug).fields[0].reason, desk.form(slug).fields[2].reasons) == (None, [])
    signed = {"sign": desk.attach(slug)}

    def refused(**answers: Any) -> list[dict[str, str]]:
        return refusal(lambda: desk.save(slug, answers.pop("values", {}), **answers)).details

    needed = "must have a reason for signing, one of I approve, I have reviewed"
    assert refused(reasons={"sign": "Just so"}) == [{"field": "sign", "reason": needed}]
    for stranger in ("name", "nothing"):
        assert refused(reasons={stranger: "I approve"})[0]["reason"] == "asks for no reason for signing"
    missing = refusal(lambda: desk.complete(slug, signed))
    assert (missing.details, missing.message) == ([{"field": "sign", "reason": needed}], f"Sign {needed}")

    desk.save(slug, signed, reasons={"sign": "I approve", "again": "I approve"})
    assert desk.form(slug).fields[0].reason == "I approve"
    desk.save(slug, {}, reasons={"sign": None})
    assert refusal(lambda: desk.complete(slug, signed)).details[0]["field"] == "sign"
    desk.complete(slug, signed, reasons={"sign": "I have reviewed"})
    (order,) = desk.events("sealing.due")
    assert order["data"]["notes"] == [{"field_uuid": "sign", "reason": "I have reviewed"}]


def test_a_reason_that_is_no_longer_offered_does_not_count(desk: Desk) -> None:
    found = template(field(name="Sign", uuid="sign", type="signature", preferences={"reasons": ["I approve"]}))
    made = desk.create(found, {})
    slug = made.submitters[0].slug
    desk.save(slug, {"sign": desk.attach(slug)}, reasons={"sign": "I approve"})
    others = [rpc.FieldOverride(name="Sign", preferences={"reasons": ["I agree"]})]
    desk.update_submitter(made.submitters[0].id, fields=others)
    assert (desk.form(slug).fields[0].reasons, desk.form(slug).fields[0].reason) == (["I agree"], None)
    assert refusal(lambda: desk.complete(slug, {})).details[0]["field"] == "sign"
    desk.complete(slug, {}, reasons={"sign": "I agree"})
    assert desk.events("sealing.due")[0]["data"]["notes"][0]["reason"] == "I agree"


def test_who_is_completed_by_the_api_needs_no_reason(desk: Desk) -> None:
    found = template(field(name="Sign", uuid="sign", type="signature", preferences={"reasons": ["I approve"]}))
    made = desk.create(found, {})
    slug = made.submitters[0].slug
    desk.save(slug, {"sign": desk.attach(slug)})
    desk.update_submitter(made.submitters[0].id, completed=True)
    (order,) = desk.events("sealing.due")
    assert order["data"]["notes"] == []


def test_hidden_fields_lose_their_value_and_are_not_required(desk: Desk) -> None:
    shown_when = [{"field_uuid": "box", "action": "checked"}]
    found = template(
        field(name="Box", uuid="box", type="checkbox", required=False),
        field(name="Why", uuid="why", conditions=shown_when),
    )
    slug = desk.create(found, {}).submitters[0].slug
    assert refusal(lambda: desk.complete(slug, {"box": True})).details[0]["field"] == "why"
    desk.save(slug, {"box": True, "why": "because"})
    desk.complete(slug, {"box": False})
    assert desk.get(1).submitters[0].values == {"Box": False, "Why": None}


def test_an_emptied_field_does_not_get_its_default_back(desk: Desk) -> None:
    found = template(field(name="Note", uuid="note", default_value="by default", required=False), field(uuid="other"))
    first, second = (desk.create(found, {}).submitters[0] for _ in range(2))
    assert desk.form(first.slug).fields[0].value == "by default"
    desk.save(first.slug, {"note": ""})
    assert desk.form(first.slug).fields[0].value is None
    for one in (first, second):
        desk.complete(one.slug, {"other": "x"})
    assert desk.get(first.submission_id).submitters[0].values["Note"] is None
    assert desk.get(second.submission_id).submitters[0].values["Note"] == "by default"


def test_a_signer_sees_what_is_on_the_page_and_nothing_else(desk: Desk) -> None:
    found = template(
        field("First Party", "Name", uuid="name"),
        field("First Party", "Secret", uuid="secret", preferences={"mask": True}),
        field("First Party", "Passport", "file", uuid="passport", required=False),
        field("First Party", "Later", uuid="later", required=False),
        field("Second Party", "Answer", uuid="answer", conditions=[{"field_uuid": "secret", "action": "not_empty"}]),
    )
    made = desk.create(found, {"email": "sam-canary@example.com", "name": "Sam"}, {}, order="random")
    second = made.submitters[1].slug
    desk.save(made.submitters[0].slug, {"name": "half-typed"})
    assert [one.uuid for one in desk.form(second).fields] == []
    desk.complete(made.submitters[0].slug, {"name": "Samuel", "secret": "canary-4711"})
    shown = desk.form(second)
    assert {one.uuid: (one.value, one.display, one.mine) for one in shown.fields} == {
        "name": ("Samuel", "Samuel", False),
        "secret": (None, "XXXXXX-XXXX", False),
        "answer": (None, None, True),
    }
    assert shown.fields[-1].conditions == []
    text = shown.model_dump_json()
    assert "canary" not in text


def test_views_are_counted_once_for_one_look(desk: Desk) -> None:
    slug = desk.create().submitters[0].slug
    for seconds in (0, 1, 10):
        desk.now = NOW + timedelta(seconds=seconds)
        assert desk.view(slug, ip="192.0.2.1").state == "open"
    assert desk.count("form.viewed") == 2


def test_unknown_slugs(desk: Desk) -> None:
    for attempt in (
        desk.form,
        desk.view,
        desk.decline,
        lambda slug: desk.save(slug, {}),
        lambda slug: desk.complete(slug, {}),
    ):
        assert refusal(lambda attempt=attempt: attempt("nobody")).code == "not_found"


def test_what_the_finished_form_offers(desk: Desk) -> None:
    made = desk.create(template(field()), {"completed_redirect_url": "https://example.com/thanks"})
    slug = made.submitters[0].slug
    desk.complete(slug)
    waiting = desk.form(slug)
    assert (waiting.state, waiting.sealing_status, waiting.results) == ("completed", "sealing", [])
    assert waiting.completed_redirect_url == "https://example.com/thanks"
    desk.seal(made.id)
    done = desk.form(slug)
    assert [one.name for one in done.results] == ["agreement 1"]
    assert done.audit_log_url


# ---------------------------------------------------------------- changing submitters


def test_changing_a_submitter(desk: Desk) -> None:
    made = desk.create(two_signers(), {"name": "Sam", "metadata": {"a": 1}, "reply_to": "r@x.co"}, {})
    one = desk.update_submitter(
        made.submitters[0].id,
        name="Samuel",
        email="sam+tag@example.com",
        metadata={"b": 2},
        values={"Name": "S."},
        fields=[{"name": "Name", "title": "Your name", "required": False}],
        reply_to="",
        external_id="crm-7",
    )
    assert (one.name, one.email, one.metadata, one.values) == (
        "Samuel",
        "sam+tag@example.com",
        {"b": 2},
        {"Name": "S."},
    )
    assert (one.external_id, one.application_key, one.preferences) == (
        "crm-7",
        "crm-7",
        {"send_email": True, "send_sms": False},
    )
    field_now = desk.form(one.slug).fields[0]
    assert (field_now.title, field_now.required, field_now.value) == ("Your name", False, "S.")
    untouched = desk.update_submitter(one.id, phone="+14155550123")
    assert (untouched.email, untouched.phone, untouched.metadata) == ("sam+tag@example.com", "+14155550123", {"b": 2})
    assert desk.listed(q="SAM+TAG") == [made.id]
    refused = refusal(lambda: desk.update_submitter(made.submitters[1].id, email=""))
    assert refused.details[0]["field"] == "email"


def test_the_invitation_again_only_in_turn(desk: Desk) -> None:
    made = desk.create()
    desk.update_submitter(made.submitters[0].id, send_email=True)
    desk.update_submitter(made.submitters[1].id, send_email=True)
    mails = desk.events("invitation.due")
    assert [one["data"]["submitter_id"] for one in mails] == [made.submitters[0].id] * 2
    assert len({one["data"]["invitation_id"] for one in mails}) == 2


def test_completed_by_the_api(desk: Desk) -> None:
    made = desk.create()
    first, second = made.submitters
    done = desk.update_submitter(first.id, completed=True, values={"Name": "by the sender"})
    assert (done.status, done.values) == ("completed", {"Name": "by the sender"})
    assert [one["data"]["submitter_id"] for one in desk.events("invitation.due")] == [first.id, second.id]
    refused = refusal(lambda: desk.update_submitter(first.id, name="X"))
    assert (refused.code, refused.message) == ("invalid", "Submitter has already completed the submission.")
    desk.decline(second.slug)
    declined = refusal(lambda: desk.update_submitter(second.id, name="X"))
    assert declined.message == "Submitter has already declined the submission."


def test_an_expired_submission_is_not_completed_by_the_api_either(desk: Desk) -> None:
    made = desk.create(expire_at=NOW + timedelta(hours=1))
    desk.now = NOW + timedelta(hours=1)
    refused = refusal(lambda: desk.update_submitter(made.submitters[0].id, completed=True))
    assert refused.message == "Form has been expired."
    assert desk.update(made.id, expire_at=None).status is SubmissionStatus.PENDING
    assert desk.update_submitter(made.submitters[0].id, completed=True).status == "completed"


def test_a_change_keeps_to_the_limit_of_the_whole_submission(desk: Desk) -> None:
    many = template(*(field(name=f"F{n}", uuid=f"u{n}") for n in range(130)))
    made = desk.create(many, {"values": {f"F{n}": "x" * 9_000 for n in range(100)}})
    more = {f"F{n}": "x" * 9_000 for n in range(100, 125)}
    assert "1000000" in refusal(lambda: desk.update_submitter(made.submitters[0].id, values=more)).message
    uuids = {f"u{n}": "x" * 9_000 for n in range(100, 125)}
    assert "1000000" in refusal(lambda: desk.save(made.submitters[0].slug, uuids)).message


# ---------------------------------------------------------------- what others are told


def test_webhook_data_has_no_signer_s_secret(desk: Desk) -> None:
    made = desk.signed(two_signers(), {"metadata": {"crm": 7}}, {})
    desk.seal(made.id)
    public = [one for one in desk.events() if one["sequence"] is not None]
    assert len(public) == 6
    text = json.dumps([one["data"] for one in public])
    for submitter in made.submitters:
        assert submitter.slug not in text
    form = next(one for one in public if one["type"] == "form.completed")["data"]
    assert form["data"]["values"] == {"Name": "something"}
    assert form["data"]["metadata"] == {"crm": 7}
    assert form["data"]["submission"]["id"] == made.id
    assert form["data"]["submission_url"] == f"https://sign.example.com/e/{made.slug}"
    assert not {"slug", "uuid", "embed_src"} & set(form["data"])
    done = public[-1]["data"]["data"]
    assert done["documents"][0]["sha256"] == "a" * 64
    assert (form["author_id"], form["template_id"], form["shared"]) == (ADMIN.user_id, made.template.id, True)


def test_links_in_events_do_not_expire_and_those_in_answers_do(desk: Desk) -> None:
    from contracts import links

    made = desk.signed()
    desk.seal(made.id)
    (event,) = desk.events("submission.completed")

    def expiry(url: str) -> int | None:
        return links.read(SITE.link_secret, url.split("/file/")[1].split("/")[0]).expires_at

    assert expiry(event["data"]["data"]["documents"][0]["url"]) is None
    assert expiry(event["data"]["data"]["audit_log_url"]) is None
    assert expiry(desk.get(made.id).documents[0].url) == int(desk.now.timestamp()) + SITE.link_ttl
    (mails,) = desk.events("completion_mails.due")
    assert expiry(mails["data"]["documents"][0]["link"]["url"]) == int(desk.now.timestamp()) + SITE.mailed_link_ttl


def test_masked_values_are_crossed_out_in_everything_that_is_kept_or_sent(desk: Desk) -> None:
    found = template(field(name="Number", preferences={"mask": -2}))
    made = desk.create(found, {"values": {"Number": "canary-4711"}})
    desk.complete(made.submitters[0].slug)
    desk.seal(made.id)
    told = [one for one in desk.events() if one["type"] != "sealing.due"]
    assert "canary" not in json.dumps(told)
    assert "XXXXXX-XX11" in json.dumps(told)
    assert "canary" not in json.dumps([one.data for one in desk.get(made.id).submission_events or []])
    assert desk.get(made.id).submitters[0].values == {"Number": "canary-4711"}
    viewer = Actor(user_id=9, role=Role.VIEWER, email="v@x.co")
    assert desk.get(made.id, viewer).submitters[0].values == {"Number": "XXXXXX-XX11"}


def test_who_gets_the_completion_mails(desk: Desk) -> None:
    account = Account(documents_copy_email_attach_audit=False)
    made = desk.signed(
        two_signers(),
        {},
        {"send_email": False},
        account=account,
        bcc_completed="boss@x.co, signer1@example.com",
        preferences={"documents_copy_email_attach_audit": True, "completed_notification_email_attach_documents": False},
    )
    desk.seal(made.id)
    (mails,) = desk.events("completion_mails.due")
    data = mails["data"]
    assert (data["notify_sender"], data["bcc"], data["copy_signers"]) == (True, ["boss@x.co"], True)
    assert (data["copy_attach_audit"], data["sender_attach_documents"]) == (False, False)
    assert [one["send_email"] for one in data["context"]["parties"]] == [True, False]
    silent = desk.signed(two_signers(), {}, {}, send_email=False, bcc_completed="boss@x.co")
    desk.seal(silent.id)
    assert desk.count("completion_mails.due") == 1
    assert desk.get(silent.id).status is SubmissionStatus.COMPLETED


def test_invitations_say_what_was_asked_for(desk: Desk) -> None:
    found = template(field("First Party", "Sign", "signature"), field("Second Party"))
    own = {"message": {"subject": "Own", "body": "For you"}, "reply_to": "own@x.co"}
    desk.create(found, own, {}, message={"body": "For all"}, reply_to="all@x.co", order="random", name="Deal")
    first, second = (one["data"] for one in desk.events("invitation.due"))
    assert (first["message"]["body"], first["reply_to"], first["needs_signature"]) == ("For you", "own@x.co", True)
    assert (second["message"]["body"], second["reply_to"], second["needs_signature"]) == ("For all", None, False)
    assert (first["context"]["reply_to"], first["context"]["submission_name"]) == ("all@x.co", "Deal")
    assert first["context"]["parties"][0]["link"].startswith("https://sign.example.com/s/")


def test_only_who_has_an_address_and_wants_mail_is_invited(desk: Desk) -> None:
    desk.create(two_signers(), {"email": None, "phone": "+14155550123"}, {"send_email": False}, order="random")
    assert desk.count("invitation.due") == 0
    desk.create(send_email=False)
    assert desk.count("invitation.due") == 0


# ---------------------------------------------------------------- lists


def ids(page: Any) -> tuple[list[int], int | None, int | None, int]:
    return [one.id for one in page.data], page.pagination.prev, page.pagination.next, page.pagination.count


def test_pages(desk: Desk) -> None:
    made = [desk.create().id for _ in range(7)]

    def page(**more: Any) -> Any:
        return ids(desk.database.read(queries.submissions, rpc.ListSubmissions(actor=ADMIN, **more), SITE, desk.now))

    assert page(limit=3) == (made[:3], made[0], made[2], 3)
    assert page(limit=3, after=made[2]) == (made[3:6], made[3], made[5], 3)
    assert page(limit=3, after=made[5]) == (made[6:], made[6], None, 1)
    assert page(limit=7) == (made, made[0], None, 7)
    assert page(limit=3, before=made[5]) == (made[2:5], made[2], made[4], 3)
    assert page(limit=3, before=made[2]) == (made[:2], made[0], made[1], 2)
    assert page(limit=3, before=made[6] + 100) == (made[4:], made[4], None, 3)
    assert page(limit=3, after=made[0], before=made[3]) == (made[1:3], made[1], None, 2)
    assert page(after=made[6]) == ([], None, None, 0)
    assert page(limit=10_000)[3] == 7
    for absurd in ({"after": 10**30}, {"before": 10**30}, {"template_id": 10**30}):
        assert page(**absurd) == ([], None, None, 0)


def test_filters(desk: Desk) -> None:
    sales = template(field(), folder_name="Sales")
    deal = desk.create(sales, {"name": "Ödön Ünal", "email": "odon@example.com"}, name="100% Deal_A")
    other = desk.create(template(field(), folder_name="Sales"), {"phone": "+14155550123", "email": None})
    archived = desk.create()
    desk.remove(archived.id)
    done = desk.signed()
    desk.seal(done.id)
    declined = desk.create()
    desk.decline(declined.submitters[0].slug)
    everything = [deal.id, other.id, archived.id, done.id, declined.id]

    assert desk.listed() == everything
    assert desk.listed(archived=True) == [archived.id]
    assert desk.listed(archived=False) == [one for one in everything if one != archived.id]
    assert desk.listed(template_id=sales.id) == [deal.id]
    assert desk.listed(template_folder="Sales") == [deal.id, other.id]
    assert desk.listed(slug=other.slug) == [other.id]
    assert desk.listed(status="pending") == [deal.id, other.id, archived.id]
    assert desk.listed(status="completed") == [done.id]
    assert desk.listed(status="declined") == [declined.id]
    assert desk.listed(q="ÖDÖN ü") == [deal.id]
    assert desk.listed(q="415555") == [other.id]
    assert desk.listed(q="deal_a") == [deal.id]
    assert desk.listed(q="100%") == [deal.id]
    assert desk.listed(q="%") == [deal.id]
    assert desk.listed(q="_") == [deal.id]
    assert desk.listed(q="\\") == []
    assert desk.listed(q="x" * 10_000) == []
    assert desk.listed(q=" ") == everything
    assert desk.listed(q="signer", status="completed", archived=False) == [done.id]


def test_submitter_lists(desk: Desk) -> None:
    first = desk.create(two_signers(), {"external_id": "crm-1", "name": "Ann"}, {})
    desk.complete(first.submitters[0].slug)
    desk.now += timedelta(hours=1)
    second = desk.signed()

    def listed(**filters: Any) -> list[int]:
        query = rpc.ListSubmitters(actor=ADMIN, **filters)
        return [one.id for one in desk.database.read(queries.submitters, query, SITE, desk.now).data]

    every = [one.id for one in (*first.submitters, *second.submitters)]
    assert listed() == every
    assert listed(submission_id=second.id) == every[2:]
    assert listed(template_id=first.template.id) == every[:2]
    assert listed(external_id="crm-1") == every[:1]
    assert listed(slug=first.submitters[1].slug) == every[1:2]
    assert listed(q="ann") == every[:1]
    assert listed(q="%") == []
    assert listed(completed_before=NOW) == every[:1]
    assert listed(completed_after=NOW + timedelta(minutes=1)) == every[2:]
    assert listed(completed_after=NOW, completed_before=NOW + timedelta(hours=1)) == [every[0], *every[2:]]
    assert listed(completed_after=NOW.replace(tzinfo=None), limit=1) == every[:1]
    query = rpc.ListSubmitters(actor=ADMIN, external_id="crm-1", include="fields")
    (one,) = desk.database.read(queries.submitters, query, SITE, desk.now).data
    assert one.template.id == first.template.id
    assert one.values == {"Name": "something"}
    assert [line.event_type for line in one.submission_events] == [
        "create_submission",
        "invite_party",
        "start_form",
        "complete_form",
    ]
    assert [each.name for each in one.fields] == ["Name"]


def test_a_list_takes_two_queries_whatever_its_length(desk: Desk) -> None:
    for _ in range(30):
        desk.create()
    statements: list[str] = []
    sa.event.listen(
        desk.database.engine, "before_cursor_execute", lambda _c, _k, statement, *_: statements.append(statement)
    )
    query = rpc.ListSubmissions(actor=ADMIN, limit=30)
    assert len(desk.database.read(queries.submissions, query, SITE, desk.now).data) == 30
    assert len([one for one in statements if one.startswith("SELECT")]) == 2


# ---------------------------------------------------------------- who may do what


EDITOR = Actor(user_id=2, role=Role.EDITOR, email="ed@example.com")
VIEWER = Actor(user_id=3, role=Role.VIEWER, email="vi@example.com")


@pytest.mark.parametrize(
    ("actor", "sees", "changes"),
    [
        (ADMIN, {"own", "shared", "private", "one-off of his", "one-off"}, True),
        (EDITOR, {"own", "shared", "one-off of his"}, True),
        (VIEWER, {"shared"}, False),
    ],
)
def test_roles(desk: Desk, actor: Actor, sees: set[str], changes: bool) -> None:
    made = {
        "own": desk.create(two_signers(author_id=EDITOR.user_id, shared_link=False)),
        "shared": desk.create(two_signers(author_id=ADMIN.user_id, shared_link=True)),
        "private": desk.create(two_signers(author_id=ADMIN.user_id, shared_link=False)),
        "one-off of his": desk.create(),
        "one-off": desk.create(),
    }
    one_off = "UPDATE submissions SET template_id = NULL, created_by_id = {} WHERE id = {}"
    for name, creator in (("one-off of his", EDITOR.user_id), ("one-off", ADMIN.user_id)):
        statement = sa.text(one_off.format(creator, made[name].id))
        desk.database.write(lambda session, statement=statement: session.execute(statement))

    assert desk.listed(actor) == [one.id for name, one in made.items() if name in sees]
    for name, one in made.items():
        works: list[Callable[[], Any]] = [
            lambda one=one: desk.get(one.id, actor),
            lambda one=one: desk.database.read(
                queries.submitter, rpc.GetSubmitter(actor=actor, id=one.submitters[0].id), SITE, desk.now
            ),
            lambda one=one: desk.update(one.id, actor, name="changed"),
            lambda one=one: desk.update_submitter(one.submitters[0].id, actor, name="Changed"),
            lambda one=one: desk.remove(one.id, actor),
            lambda one=one: desk.remove(one.id, actor, permanently=True),
        ]
        for number, work in enumerate(works):
            if name not in sees:
                assert refusal(work).code == "not_found", (name, number)
            elif number >= 2 and not changes:
                assert refusal(work).code == "forbidden", (name, number)
            else:
                work()
    if not changes:
        assert desk.get(made["shared"].id).name is None


def test_submissions_follow_the_sharing_of_their_template(desk: Desk) -> None:
    made = desk.create(two_signers(shared_link=True))
    assert desk.listed(VIEWER) == [made.id]

    def template_says(shared: bool, hours: int) -> None:
        news = known_templates.TemplateNews(
            id=made.template.id,
            name="Renamed",
            folder_name="Moved",
            shared_link=shared,
            author_id=1,
            created_at=NOW,
            updated_at=NOW + timedelta(hours=hours),
        )
        desk.database.write(known_templates.accept, news)

    template_says(shared=False, hours=2)
    template_says(shared=True, hours=1)
    assert desk.listed(VIEWER) == []
    found = desk.get(made.id)
    assert (found.template.name, found.template.folder_name) == ("Renamed", "Moved")
    assert desk.listed(template_folder="Moved") == [made.id]
    stale = two_signers(id=made.template.id, shared_link=True)
    desk.create(stale)
    assert desk.listed(VIEWER) == []


# ---------------------------------------------------------------- erasure


def test_permanent_deletion_leaves_nothing_of_the_people(desk: Desk) -> None:
    canary = "canary4711"
    found = template(field(name="Name"))
    made = desk.create(
        found, {"email": f"{canary}@example.com", "name": canary, "values": {"Name": canary}}, name=canary
    )
    desk.view(made.submitters[0].slug, ip=canary, user_agent=canary)
    desk.update_submitter(made.submitters[0].id, name=f"{canary} again")
    desk.complete(made.submitters[0].slug)
    desk.seal(made.id)
    hashes = [one.hash for one in desk.get(made.id).submission_events or []]

    removed = desk.remove(made.id, permanently=True)
    assert (removed.id, removed.archived_at) == (made.id, None)
    (told,) = desk.events("submission.erased")
    assert told["data"] == {"submission_id": made.id}
    assert desk.count("submission.archived") == 0

    tables = [one for one in sa.inspect(desk.database.engine).get_table_names() if one != "outbox"]
    for table in tables:
        for row in desk.rows(f"SELECT * FROM {table}"):
            assert canary not in str(tuple(row)), table
    assert [one.hash for one in desk.rows("SELECT hash FROM trail ORDER BY position")][:-1] == hashes
    assert len(desk.rows("SELECT key FROM blob_removals")) == 2
    assert refusal(lambda: desk.get(made.id)).code == "not_found"
    assert refusal(lambda: desk.form(made.submitters[0].slug)).code == "not_found"
    assert desk.create().id > made.id


def test_after_erasure_the_request_that_created_it_creates_nothing(desk: Desk) -> None:
    found = two_signers()
    command = create_command(found, {"name": "canary"}, {})
    made = desk.run_create(command, found)
    desk.remove(made.id, permanently=True)
    again = desk.run_create(command, found)
    assert (again.id, again.submitters, again.archived) == (made.id, [], True)
    assert desk.rows("SELECT count(*) AS n FROM submissions")[0].n == 0


def test_files_sealed_after_erasure_are_removed(desk: Desk) -> None:
    made = desk.signed()
    late = sealed(made.id, desk.column(made.id, "seal_id"))
    desk.remove(made.id, permanently=True)
    desk.database.write(followups.accept_sealed, uuid7(), late, SITE, desk.now)
    removed = {one.key for one in desk.rows("SELECT key FROM blob_removals")}
    assert removed == {late.documents[0].file.key, late.audit_trail.key}
    assert desk.count("submission.completed") == 0


def conditional_annex() -> TemplateSnapshot:
    """A contract, and an annex for companies only; a field on both and one on the annex alone."""
    found = template(
        field(name="Kind", uuid="kind", required=False),
        field(name="Number", uuid="number"),
        field(name="Name", uuid="name"),
        documents=2,
    )
    contract, annex = found.documents
    place = {"x": 0.1, "y": 0.1, "w": 0.2, "h": 0.05}
    on = {one.name: Area(**place, attachment_uuid=one.uuid) for one in found.documents}
    of = {"kind": [contract], "number": [annex], "name": [contract, annex]}
    fields = [one.model_copy(update={"areas": [on[paper.name] for paper in of[one.uuid]]}) for one in found.fields]
    company = Condition(field_uuid="kind", action="equal", value="company")
    documents = [contract, annex.model_copy(update={"conditions": [company]})]
    return found.model_copy(update={"fields": fields, "documents": documents})


def test_a_document_that_its_conditions_hide_is_not_sealed_and_its_fields_are_not_asked_for(desk: Desk) -> None:
    found = conditional_annex()
    annex = found.documents[1].uuid
    made = desk.create(found, {})
    slug = made.submitters[0].slug
    shown = desk.form(slug)
    assert [[one.field_uuid for one in document.conditions] for document in shown.documents] == [[], ["kind"]]
    assert refusal(lambda: desk.complete(slug, {"kind": "company", "name": "Sam"})).details[0]["field"] == "number"
    desk.save(slug, {"kind": "company", "number": "FN 1"})
    desk.complete(slug, {"kind": "person", "name": "Sam"})
    assert desk.get(made.id).submitters[0].values == {"Kind": "person", "Number": None, "Name": "Sam"}
    (order,) = desk.events("sealing.due")
    data = REGISTRY["sealing.due"].model.model_validate(order["data"])
    assert [one.name for one in data.documents] == ["agreement 1"]
    places = {one.field.name: [area.attachment_uuid for area in one.field.areas] for one in data.values}
    assert places == {"Kind": [data.documents[0].uuid], "Name": [data.documents[0].uuid]}
    assert annex not in json.dumps([one.model_dump(mode="json") for one in data.values])
    gone = rpc.FormPage(slug=slug, document_uuid=annex)
    assert refusal(lambda: desk.database.read(forms.file_of, gone, SITE, desk.now)).code == "not_found"


def test_a_document_that_others_decided_about_is_not_shown_to_later_signers(desk: Desk) -> None:
    found = conditional_annex()
    later = field("Second Party", "Later", uuid="later").model_copy(update={"areas": found.fields[1].areas})
    own = field("Second Party", "Own", uuid="own")
    parties = [*found.parties, Party(uuid="uuid of Second Party", name="Second Party")]
    found = found.model_copy(update={"fields": [*found.fields, later, own], "parties": parties})
    for kind, documents, fields in (("person", 1, ["kind", "name", "own"]), ("company", 2, None)):
        made = desk.create(found, {}, {})
        first, second = (one.slug for one in made.submitters)
        desk.complete(first, {"kind": kind, "name": "Sam", "number": "FN 1"})
        shown = desk.form(second)
        assert len(shown.documents) == documents
        assert [one.conditions for one in shown.documents] == [[]] * documents, "it is decided"
        assert [one.uuid for one in shown.fields] == (fields or ["kind", "number", "name", "later", "own"])
        desk.complete(second, {"own": "x"} if fields else {"own": "x", "later": "y"})


def test_names_of_files_on_paper_lead_to_them_where_the_account_wants_that(desk: Desk) -> None:
    found = template(field(name="Papers", uuid="papers", type="file"))
    for wanted in (True, False):
        slug = desk.create(found, {}, account=Account(with_file_links=wanted)).submitters[0].slug
        desk.complete(slug, {"papers": [desk.attach(slug, "file")]})
    linked, plain = (one["data"]["attachments"][0] for one in desk.events("sealing.due"))
    assert plain["url"] == ""
    token = linked["url"].removeprefix(f"{SITE.base_url}/file/").split("/")[0]
    link = links.read(SITE.link_secret, token)
    assert (link.key, link.filename) == (linked["file"]["key"], "x.png")
    assert not link.expired(NOW + timedelta(days=36_500))
    assert link.expires_at is not None, "no API key is needed"
