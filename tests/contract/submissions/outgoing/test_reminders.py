"""Reminders on real databases: planned with the turn, sent while they are wanted, each once."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from contracts.events import MailOutcome
from contracts.runtime.clock import uuid7
from contracts.types import Account, Reminders
from services.submissions.commands import followups
from services.submissions.models import ReminderRow
from services.submissions.outgoing import reminders
from tests.support.material.submissions import NOW, SITE, Desk, field, template

ACCOUNT = Account(reminders=Reminders(first="one_hour", second="two_days", third="thirty_days"))


@pytest.fixture
def desk(database_url: str) -> Iterator[Desk]:
    desk = Desk(database_url)
    yield desk
    desk.database.dispose()


def planned(desk: Desk) -> list[tuple[int, int, str]]:
    statement = "SELECT submitter_id, number, next_attempt_at FROM reminders ORDER BY submitter_id, number"
    return [(one.submitter_id, one.number, str(one.next_attempt_at)[:16]) for one in desk.rows(statement)]


def remind(desk: Desk, submission_id: int, submitter_id: int, number: int) -> bool:
    rows = desk.rows(f"SELECT id FROM reminders WHERE submitter_id = {submitter_id} AND number = {number}")
    leased = ReminderRow(submission_id=submission_id, submitter_id=submitter_id, number=number)
    leased.id = rows[0].id if rows else 0
    return desk.database.write(reminders.remind, leased, SITE, desk.now)


def test_they_are_planned_when_the_turn_comes(desk: Desk) -> None:
    found = template(field("A"), field("B"), field("C"), roles=("A", "B", "C", "Reader"))
    quiet = {"send_email": False}
    made = desk.create(found, {}, {}, quiet, {}, account=ACCOUNT)
    first, second, _, reader = made.submitters
    assert planned(desk) == [
        (first.id, 1, "2026-03-04 13:00"),
        (first.id, 2, "2026-03-06 12:00"),
        (first.id, 3, "2026-04-03 12:00"),
    ]
    desk.now += timedelta(days=1)
    desk.complete(first.slug)
    assert [one for one in planned(desk) if one[0] != first.id] == [
        (second.id, 1, "2026-03-05 13:00"),
        (second.id, 2, "2026-03-07 12:00"),
        (second.id, 3, "2026-04-04 12:00"),
    ]
    desk.complete(second.slug)
    assert {one[0] for one in planned(desk)} == {first.id, second.id}, "nobody who gets no mail, and no reader"
    assert reader.status == "pending"
    desk.create()
    assert {one[0] for one in planned(desk)} == {first.id, second.id}, "an account without reminders"
    desk.remove(made.id, permanently=True)
    assert planned(desk) == []


def test_who_is_mailed_only_later_is_reminded_from_then_on(desk: Desk) -> None:
    made = desk.create(account=ACCOUNT, send_email=False)
    first, second = made.submitters
    assert planned(desk) == []
    desk.now += timedelta(days=1)
    for _ in range(2):
        desk.update_submitter(first.id, send_email=True)
        desk.update_submitter(second.id, send_email=True)  # their turn has not come
    assert planned(desk) == [
        (first.id, 1, "2026-03-05 13:00"),
        (first.id, 2, "2026-03-07 12:00"),
        (first.id, 3, "2026-04-04 12:00"),
    ]


def test_one_that_is_due_is_asked_for_as_one_mail(desk: Desk) -> None:
    made = desk.create(account=ACCOUNT)
    first = made.submitters[0]
    desk.now = NOW + timedelta(hours=1)
    assert remind(desk, made.id, first.id, 1)
    assert remind(desk, made.id, first.id, 1), "the process died before it could write that it was done"
    one, two = desk.events("reminder.due")
    assert one["data"]["reminder_id"] == two["data"]["reminder_id"]
    assert one["data"]["submitter_id"] == first.id
    outcome = MailOutcome(
        submission_id=made.id, submitter_id=first.id, kind="reminder", to=first.email, sent_at=desk.now
    )
    event_id = uuid7()
    for _ in range(2):
        desk.database.write(followups.accept_mail_sent, event_id, outcome, SITE, desk.now)
    shown = desk.get(made.id)
    lines = [line for line in shown.submission_events or [] if line.event_type == "send_reminder_email"]
    (line,) = lines
    assert (line.submitter_id, line.data["sent_at"]) == (first.id, "2026-03-04T13:00:00.000Z")
    assert (line.data["email"], line.data["party"]["email"]) == (first.email, first.email)
    assert shown.submitters[0].sent_at is None
    assert desk.count("form.sent") == 0


@pytest.mark.parametrize(
    "end",
    [
        lambda desk, made: [desk.complete(one.slug) for one in made.submitters],
        lambda desk, made: desk.decline(made.submitters[0].slug),
        lambda desk, made: desk.update(made.id, archived=True),
        lambda desk, made: desk.remove(made.id),
        lambda desk, made: desk.remove(made.id, permanently=True),
        lambda desk, made: desk.update_submitter(made.submitters[0].id, send_email=False),
        lambda desk, made: setattr(desk, "now", NOW + timedelta(hours=3)),
    ],
    ids=["completed", "declined", "archived", "removed", "erased", "no mail wanted", "expired"],
)
def test_nobody_is_reminded_of_what_is_over(desk: Desk, end: Callable[[Desk, Any], Any]) -> None:
    made = desk.create(account=ACCOUNT, expire_at=NOW + timedelta(hours=2))
    desk.now = NOW + timedelta(hours=1)
    end(desk, made)
    assert not remind(desk, made.id, made.submitters[0].id, 1)
    assert not remind(desk, made.id, made.submitters[1].id, 1), "not their turn, or over for them as well"
    assert desk.events("reminder.due") == []


def test_after_a_long_night_one_mail_is_enough(desk: Desk) -> None:
    made = desk.create(account=ACCOUNT)
    first = made.submitters[0]
    desk.now = NOW + timedelta(days=3)
    assert [remind(desk, made.id, first.id, number) for number in (1, 2)] == [False, True]
    desk.now = NOW + timedelta(days=31)
    assert [remind(desk, made.id, first.id, number) for number in (2, 3)] == [False, True]
