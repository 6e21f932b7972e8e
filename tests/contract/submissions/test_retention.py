"""What has been kept for as long as it should be is erased, once, and nothing else; on SQLite and PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.rpc.submissions import api as rpc
from contracts.types import Account, Actor, Role, Submission, SubmissionStatus
from services.submissions import background
from services.submissions.commands import followups
from tests.support.material.submissions import ADMIN, NOW, SITE, Desk, create_command, field, refusal, template
from tests.support.material.telling import tell_everything

EDITOR = Actor(user_id=2, role=Role.EDITOR, email="ed@example.com", name="Ed")
WEEK = {"preferences": {"keep_days": 7}}
"""Long over by the clock of the machine, which the background process asks: the desk's stands still at NOW."""


def alone(desk: Desk, **more: Any) -> Submission:
    return desk.create(template(field(name="Name"), **more.pop("found", {})), {}, **more)


def decline(desk: Desk, made: Submission) -> None:
    desk.decline(made.submitters[0].slug, "no")


def complete(desk: Desk, made: Submission) -> None:
    desk.complete(made.submitters[0].slug)
    assert desk.get(made.id).erase_at is None, "it is not completed before it is sealed"
    desk.now += timedelta(minutes=1)
    desk.seal(made.id)


def expire(desk: Desk, made: Submission) -> None:
    desk.update(made.id, expire_at=desk.now + timedelta(minutes=1))
    desk.now += timedelta(hours=1)
    assert desk.database.write(followups.expire, [made.id], SITE, desk.now) == 1


def archive(desk: Desk, made: Submission) -> None:
    desk.remove(made.id)


ENDS = {"declined": decline, "completed": complete, "expired": expire, "pending": archive}


@pytest.mark.parametrize("status", ENDS)
def test_it_is_kept_for_so_many_days_from_its_end_on(desk: Desk, status: str) -> None:
    made = alone(desk, preferences={"keep_days": 30})
    assert (made.erase_at, made.legal_hold) == (None, False)
    desk.now += timedelta(days=3)
    ENDS[status](desk, made)
    ended = desk.get(made.id)
    assert ended.status == SubmissionStatus(status)
    assert ended.erase_at == desk.now + timedelta(days=30)
    desk.now += timedelta(days=1)
    if status != "pending":
        desk.remove(made.id)
    assert desk.get(made.id).erase_at == ended.erase_at, "it had ended before it was archived"


def test_what_is_restored_has_not_ended(desk: Desk) -> None:
    made = alone(desk, **WEEK)
    archive(desk, made)
    assert desk.get(made.id).erase_at == NOW + timedelta(days=7)
    desk.update(made.id, archived=False)
    assert desk.get(made.id).erase_at is None
    assert swept(desk) == []


@pytest.mark.parametrize(
    ("submission", "of_template", "account", "days"),
    [
        (None, None, None, None),
        (None, None, 10, 10),
        (None, 20, 10, 20),
        (30, 20, 10, 30),
        (0, 20, 10, None),
        (None, 0, 10, None),
        (None, None, 0, None),
        (None, "odd", 10, 10),
    ],
)
def test_the_submission_comes_before_its_template_and_that_before_the_account(
    desk: Desk, submission: int | None, of_template: Any, account: int | None, days: int | None
) -> None:
    preferences = {} if submission is None else {"keep_days": submission}
    found = {} if of_template is None else {"preferences": {"keep_days": of_template}}
    made = alone(desk, found=found, preferences=preferences, account=Account(keep_days=account))
    decline(desk, made)
    assert desk.get(made.id).erase_at == (None if days is None else NOW + timedelta(days=days))


@pytest.mark.parametrize("odd", [6, -1, 36_501, True, "7", 7.5])
def test_days_that_cannot_be_are_named(desk: Desk, odd: Any) -> None:
    found = template(field(name="Name"))
    refused = refusal(lambda: desk.run_create(create_command(found, {}, preferences={"keep_days": odd}), found))
    assert [detail["field"] for detail in refused.details] == ["preferences.keep_days"]
    assert desk.listed() == []


def swept(desk: Desk) -> list[int]:
    """The submissions that the background process erases."""
    before = len(desk.events("submission.erased"))
    kept = background.Retention(desk.database, SITE)
    while kept.portion():
        pass
    return [one["data"]["submission_id"] for one in desk.events("submission.erased")[before:]]


def test_only_what_is_due_is_erased_and_nothing_of_its_people_is_left(desk: Desk) -> None:
    canary = "canary4711"
    due = desk.create(
        template(field(name="Name")),
        {"email": f"{canary}@example.com", "values": {"Name": canary}},
        name=canary,
        **WEEK,
    )
    pending, later, for_ever, held = (
        alone(desk, **WEEK),
        alone(desk, preferences={"keep_days": 36_500}),
        alone(desk),
        alone(desk, **WEEK),
    )
    for made in (due, later, for_ever, held):
        decline(desk, made)
    desk.update(held.id, legal_hold=True)
    hashes = [one.hash for one in desk.get(due.id).submission_events or []]
    assert swept(desk) == [due.id]
    assert swept(desk) == []
    (told,) = desk.events("submission.erased")
    assert told["data"]["public"]["data"]["reason"] == "retention"
    assert desk.rows("SELECT why FROM erasures")[0].why is not None
    assert sorted(desk.listed()) == [pending.id, later.id, for_ever.id, held.id]
    tell_everything(desk.database)
    for table in sa.inspect(desk.database.engine).get_table_names():
        for row in desk.rows(f"SELECT * FROM {table}"):
            assert canary not in str(tuple(row)), table
    kept = desk.rows(f"SELECT hash, event_type FROM trail WHERE submission_id = {due.id} ORDER BY position")
    assert [one.hash for one in kept][:-1] == hashes
    assert kept[-1].event_type == "erase_submission"
    assert background.RETENTION_HELD._value.get() == 1
    assert background.RETENTION_DUE._value.get() == 0


def test_several_processes_erase_each_once(desk: Desk) -> None:
    numbers = []
    for _ in range(12):
        made = alone(desk, **WEEK)
        decline(desk, made)
        numbers.append(made.id)

    def sweep(_number: int) -> None:
        kept = background.Retention(desk.database, SITE)
        while kept.portion():
            pass

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(sweep, range(3)))
    assert sorted(one["data"]["submission_id"] for one in desk.events("submission.erased")) == numbers
    assert desk.listed() == []


def test_one_that_cannot_be_erased_keeps_the_others_from_nothing(desk: Desk) -> None:
    first, broken, last = (alone(desk, **WEEK) for _ in range(3))
    for made in (first, broken, last):
        decline(desk, made)
    broke = sa.text(f"DELETE FROM snapshots WHERE submission_id = {broken.id}")
    desk.database.write(lambda session: session.execute(broke).close())
    assert swept(desk) == [first.id, last.id]
    assert background.RETENTION_DUE._value.get() == 1


def test_what_is_being_sealed_is_erased_afterwards(desk: Desk) -> None:
    made = alone(desk, **WEEK)
    desk.complete(made.submitters[0].slug)
    archive(desk, made)
    assert desk.get(made.id).sealing_status == "sealing"
    assert swept(desk) == []
    desk.seal(made.id)
    assert swept(desk) == [made.id]


def test_nobody_deletes_what_is_on_legal_hold_until_an_admin_ends_it(desk: Desk) -> None:
    made = desk.run_create(create_command(found := template(field(name="Name")), {}, actor=EDITOR, **WEEK), found)
    decline(desk, made)
    held = desk.update(made.id, EDITOR, legal_hold=True)
    assert held.legal_hold
    assert desk.update(made.id, legal_hold=True).updated_at == held.updated_at, "it is on hold already"
    for actor in (ADMIN, EDITOR):
        assert refusal(lambda actor=actor: desk.remove(made.id, actor, permanently=True)).code == "conflict"
    assert refusal(lambda: desk.update(made.id, EDITOR, legal_hold=False)).code == "forbidden"
    assert swept(desk) == []
    assert desk.get(made.id).legal_hold
    assert not desk.update(made.id, legal_hold=False).legal_hold
    lines = [one for one in desk.get(made.id).submission_events or [] if one.event_type == "update_submission"]
    assert [(one.data["changes"][0]["before"], one.data["changes"][0]["after"]) for one in lines] == [
        (False, True),
        (True, False),
    ]
    assert swept(desk) == [made.id]
    assert refusal(lambda: desk.get(made.id)).code == "not_found"


def test_a_clock_that_was_put_forward_erases_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    made = alone(desk, **WEEK)
    decline(desk, made)
    moments = iter([NOW + timedelta(days=6), NOW + timedelta(days=8)])
    asked: list[timedelta] = []

    def without_leaps(period: timedelta) -> datetime:
        asked.append(period)
        return next(moments)

    monkeypatch.setattr(background, "without_leaps", without_leaps)
    kept = background.Retention(desk.database, SITE)
    assert not kept.portion()
    assert desk.listed() == [made.id]
    assert kept.portion()
    assert desk.listed() == []
    assert asked == [background.DAYS_BELIEVED_AFTER] * 2


def test_an_old_request_says_nothing_of_a_hold(desk: Desk) -> None:
    """A gateway of the version before does not know the key."""
    made = alone(desk)
    desk.update(made.id, legal_hold=True)
    command = rpc.UpdateSubmission.model_validate(
        {"request_id": "old", "actor": ADMIN.model_dump(), "id": made.id, "name": "Otherwise"}
    )
    assert command.legal_hold is None
    assert desk.update(made.id, name="Otherwise").legal_hold
