"""Events that do not come, come twice, come late, or come of another life of their owner's database: the log waits for none of
them for ever, tells each once and in order, and nothing of a life that is gone."""

import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from contracts.envelope import Envelope
from contracts.errors import ServiceError
from contracts.rpc.events import SubjectEvents
from contracts.runtime.bus import outbox
from contracts.runtime.clock import now
from contracts.runtime.data import tables
from contracts.runtime.data.database import Database, insert_into
from services.webhooks import commands, gaps, queries
from services.webhooks.models import Arrival, LoggedEvent
from tests.contract.conftest import ON_BOTH
from tests.support.material.webhooks import NOW, database, deliveries, new_webhook, record
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import LINK_SECRET

__all__ = ["database"]

EPOCHS = [f"0000000{number}-0000-7000-8000-000000000000" for number in range(1, 10)]
SINCE = datetime(2020, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


def event(number: int, epoch: str | None = EPOCHS[0], *, subject: str = "submission:1", says: str = "") -> Envelope:
    return Envelope(
        id=f"{subject}-{number}-{epoch}-{says}",
        type="form.completed",
        source="submissions",
        subject=subject,
        sequence=number,
        epoch=epoch,
        occurred_at=NOW,
        data={"data": {"id": 1, "says": says}},
    )


def answer(*events: Envelope, epoch: str = EPOCHS[0], kept_since: datetime = SINCE) -> SubjectEvents:
    return SubjectEvents(epoch=epoch, kept_since=kept_since, events=list(events))


def only_gap(database: Database) -> queries.Gap:
    (gap,) = database.read(queries.gaps, LATER)
    return gap


def log_of(database: Database, subject: str = "submission:1") -> list[str]:
    ids = sa.select(LoggedEvent.event_id).where(LoggedEvent.subject == subject).order_by(LoggedEvent.position)
    return database.read(lambda session: list(session.scalars(ids)))


def waiting(database: Database) -> int:
    return database.read(lambda session: session.scalar(sa.select(sa.func.count()).select_from(Arrival))) or 0


def know_epoch(database: Database, epoch: str) -> None:
    """What the walk through the owner's events has seen."""

    def know(session: Any) -> None:
        values = {"owner": "submissions", "epoch": epoch, "position": 1, "event_id": "e", "kinds": ""}
        insert = insert_into(session, tables.event_cursors).values(values)
        session.execute(insert.on_conflict_do_update(index_elements=["owner"], set_=values))

    database.write(know)


def ids(*events: Envelope) -> list[str]:
    return [each.id for each in events]


def test_a_gap_is_filled_with_what_the_owner_has(database: Database) -> None:
    one, two, three, four = (event(number) for number in range(1, 5))
    hook = new_webhook(database)
    record(database, one, four, three)
    gap = only_gap(database)
    assert (gap.owner, gap.after, gap.arrivals) == ("submissions", 1, frozenset({three.id, four.id}))
    caught_up = database.write(commands.catch_up, gap, answer(two, three, four), LATER, LINK_SECRET)
    assert (caught_up.passed_over, caught_up.of_another_life) == (0, 0)
    assert log_of(database) == ids(one, two, three, four)
    assert waiting(database) == 0
    record(database, two)
    assert len(log_of(database)) == 4, "the lost message comes after all"
    assert [each.event_id for each in deliveries(database, hook.id)] == ids(one, two, three, four)


def test_a_gap_that_nobody_can_fill_is_passed_over(database: Database) -> None:
    one, three, four = event(1), event(3), event(4)
    record(database, one, four, three)
    caught_up = database.write(commands.catch_up, only_gap(database), answer(three, four), LATER, LINK_SECRET)
    assert caught_up.passed_over == 1
    assert log_of(database) == ids(one, three, four)
    late = event(2)
    record(database, late)
    database.write(commands.catch_up, only_gap(database), answer(three, four), LATER, LINK_SECRET)
    assert log_of(database) == ids(one, three, four, late), "better late than never"
    five = event(5)
    record(database, five)
    assert log_of(database)[-1] == five.id


def test_an_event_that_was_dropped_is_passed_over(database: Database) -> None:
    one, two, three = event(1), event(2), event(3)
    record(database, one, three)
    database.write(outbox.drop, two.id)
    database.write(commands.catch_up, only_gap(database), answer(two, three), LATER, LINK_SECRET)
    assert log_of(database) == ids(one, three)
    record(database, two)
    assert log_of(database) == ids(one, three)


def test_what_came_after_the_owner_was_asked_is_not_judged_by_its_answer(database: Database) -> None:
    one, two, three, four = (event(number) for number in range(1, 5))
    record(database, one, three)
    gap = only_gap(database)
    record(database, event(6))
    database.write(commands.catch_up, gap, answer(two, three, four), LATER, LINK_SECRET)
    assert log_of(database) == ids(one, two, three, four)
    assert waiting(database) == 1
    record(database, event(5))
    assert waiting(database) == 0


def test_an_answer_that_was_overtaken_is_not_used(database: Database) -> None:
    one, two, three = event(1), event(2), event(3)
    record(database, one, three)
    gap = only_gap(database)
    record(database, two)
    database.write(commands.catch_up, gap, answer(two, three), LATER, LINK_SECRET)
    assert log_of(database) == ids(one, two, three)
    record(database, event(4))
    assert waiting(database) == 0


def test_what_follows_on_the_owner_s_answer_goes_with_it(database: Database) -> None:
    events = [event(number) for number in range(1, 5)]
    record(database, events[0], events[2])
    gap = only_gap(database)
    record(database, events[3])
    database.write(commands.catch_up, gap, answer(*events[1:3]), LATER, LINK_SECRET)
    assert log_of(database) == ids(*events)
    assert waiting(database) == 0


def test_an_overtaken_answer_about_everything_takes_nothing_back(database: Database) -> None:
    one, two, three = event(1), event(2), event(3)
    record(database, one, event(9, EPOCHS[1]))
    gap = only_gap(database)
    assert gap.after == 0
    record(database, two)
    database.write(commands.catch_up, gap, answer(one), LATER, LINK_SECRET)
    record(database, three)
    assert log_of(database) == ids(one, two, three)


def test_a_restore_that_nobody_noticed_yet(database: Database) -> None:
    """The epoch is still the same; the numbers went back."""
    old = [event(number, says="old") for number in range(1, 6)]
    new = [event(number, says="new") for number in (3, 4)]
    record(database, *old, new[0])
    database.write(commands.catch_up, only_gap(database), answer(*old[:2], new[0]), LATER, LINK_SECRET)
    record(database, new[1])
    assert log_of(database) == ids(*old, *new), "the next one does not have to be asked for again"
    assert waiting(database) == 0


def test_in_doubt_nothing_is_appended_by_its_number(database: Database) -> None:
    """As above, and the new numbers have passed the old ones before the owner is asked."""
    old = [event(number, says="old") for number in (1, 2)]
    new = [event(number, says="new") for number in (1, 2, 3)]
    record(database, *old, *new)
    assert log_of(database) == ids(*old)
    database.write(commands.catch_up, only_gap(database), answer(*new), LATER, LINK_SECRET)
    assert log_of(database) == ids(*old, *new)


def test_another_life_under_the_same_numbers_is_told(database: Database) -> None:
    """Findings S1-2: a restored database gave its ids again, and the new agreement was dropped as old."""
    old = [event(number, says="old") for number in (1, 2, 3)]
    new = [event(number, EPOCHS[1], says="new") for number in (1, 2)]
    record(database, *old, *new)
    assert log_of(database) == ids(*old)
    gap = only_gap(database)
    assert gap.after == 0
    database.write(commands.catch_up, gap, answer(*new, epoch=EPOCHS[1]), LATER, LINK_SECRET)
    assert log_of(database) == ids(*old, *new)
    third = event(3, EPOCHS[1], says="new")
    record(database, third)
    assert log_of(database)[-1] == third.id


def test_a_life_that_is_gone_is_not_told_once_that_is_known(database: Database) -> None:
    one = event(1, says="kept")
    lost, second = event(2, says="lost"), event(2, EPOCHS[1], says="new")
    record(database, one)
    know_epoch(database, EPOCHS[1])
    record(database, lost)
    assert waiting(database) == 1
    caught_up = database.write(commands.catch_up, only_gap(database), answer(one, epoch=EPOCHS[1]), LATER, LINK_SECRET)
    assert caught_up.of_another_life == 1
    record(database, second)
    database.write(commands.catch_up, only_gap(database), answer(one, second, epoch=EPOCHS[1]), LATER, LINK_SECRET)
    assert log_of(database) == ids(one, second)


def test_what_is_older_than_the_owner_keeps_is_told(database: Database) -> None:
    one, two, four = event(1), event(2), event(4)
    know_epoch(database, EPOCHS[1])
    record(database, one, two, four)
    told = answer(epoch=EPOCHS[1], kept_since=NOW + timedelta(seconds=1))
    database.write(commands.catch_up, only_gap(database), told, LATER, LINK_SECRET)
    assert log_of(database) == ids(one, two, four)


def test_a_subject_from_before_there_were_epochs_goes_on(database: Database) -> None:
    record(database, event(1, None), event(2, None), event(3), event(4))
    assert len(log_of(database)) == 4
    assert waiting(database) == 0


class Owner:
    """Stands for the bus: answers as it was told to, or not at all."""

    def __init__(self, *events: Envelope) -> None:
        self.told = answer(*events)
        self.away = False
        self.asked = 0

    def call(self, _rpc: Any, request: Any) -> SubjectEvents:
        self.asked += 1
        if self.away:
            raise ServiceError("unavailable", "away")
        later = [each for each in self.told.events if (each.sequence or 0) > request.sequence]
        return self.told.model_copy(update={"events": later})


@ON_BOTH
def test_the_loop_asks_after_a_moment_and_again_when_the_owner_was_away(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = event(1), event(2), event(3)
    owner = Owner(one, two, three)
    loop = gaps.Gaps(database, owner, LINK_SECRET)  # type: ignore[arg-type]
    record(database, one, three, at=now())
    loop.turn()
    assert owner.asked == 0, "what overtook its predecessor a moment ago"
    assert gaps.WAITING._value.get() == 1
    monkeypatch.setattr(gaps, "PATIENCE", timedelta(0))
    owner.away = True
    for _ in range(3):
        loop.turn()
    assert owner.asked == 1, "later and later"
    owner.away = False
    loop._next.clear()
    loop.turn()
    assert log_of(database) == ids(one, two, three)
    assert gaps.WAITING._value.get() == 0


def test_what_waits_for_minutes_is_a_problem(database: Database) -> None:
    record(database, event(2), at=now() - timedelta(minutes=4))
    assert gaps.problems(database) == []
    record(database, event(2, subject="template:9"), at=now() - timedelta(minutes=6))
    (problem,) = gaps.problems(database)
    assert "template:9" in problem


# --- any order, any loss, any restore


@dataclass
class Life:
    """The owner's database: what it has stated, by subject."""

    epoch: int = 0
    events: dict[str, list[Envelope]] = field(default_factory=dict)

    def copy(self) -> "Life":
        return Life(self.epoch, {subject: list(events) for subject, events in self.events.items()})


SUBJECTS = ["submission:1", "submission:2"]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("state"), st.sampled_from(SUBJECTS)),
        st.tuples(st.just("state"), st.sampled_from(SUBJECTS)),
        st.tuples(st.just("deliver"), st.integers(0, 30)),
        st.tuples(st.just("deliver"), st.integers(0, 30)),
        st.tuples(st.just("lose"), st.integers(0, 30)),
        st.tuples(st.just("double"), st.integers(0, 30)),
        st.tuples(st.just("back up"), st.none()),
        st.tuples(st.just("restore"), st.none()),
        st.tuples(st.just("deliver all"), st.none()),
        st.tuples(st.just("ask"), st.none()),
        st.tuples(st.just("walk"), st.none()),
    ),
    max_size=45,
)
numbers = itertools.count()


@given(steps)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_happens_the_log_has_what_the_owner_has_in_order_and_nothing_twice(
    tmp_path: Path, does: list[tuple[str, Any]]
) -> None:
    """Against a model of an owner whose database is restored now and then, and a bus that loses, repeats and mixes."""
    url = f"sqlite:///{tmp_path / f'{next(numbers)}.sqlite'}"
    migrated("webhooks", url)
    database = Database(url)
    life, copy = Life(), Life()
    on_the_way: list[Envelope] = []

    def ask() -> None:
        for gap in database.read(queries.gaps, LATER):
            told = [each for each in life.events.get(gap.subject, []) if (each.sequence or 0) > gap.after]
            database.write_unsynced(commands.catch_up, gap, answer(*told, epoch=EPOCHS[life.epoch]), LATER, LINK_SECRET)

    def walk() -> None:
        know_epoch(database, EPOCHS[life.epoch])
        for events in life.events.values():
            for each in events:
                taken = sa.select(tables.inbox.c.event_id).where(tables.inbox.c.event_id == each.id)
                if database.read(Session.scalar, taken) is None:
                    database.write_unsynced(commands.record_event, each, NOW, LINK_SECRET)

    for what, which in does:
        if what == "state":
            events = life.events.setdefault(which, [])
            made = event(len(events) + 1, EPOCHS[life.epoch], subject=which, says=str(next(numbers)))
            events.append(made)
            on_the_way.append(made)
        elif what in ("deliver", "lose", "double") and on_the_way:
            message = on_the_way[which % len(on_the_way)]
            if what != "double":
                on_the_way.remove(message)
            if what != "lose":
                database.write_unsynced(commands.record_event, message, NOW, LINK_SECRET)
        elif what == "deliver all" and on_the_way:
            database.write_unsynced(commands.record_events, on_the_way, NOW, LINK_SECRET)
            on_the_way.clear()
        elif what == "back up":
            copy = life.copy()
        elif what == "restore" and life.epoch < len(EPOCHS) - 1:
            present = life.epoch
            life = copy.copy()
            life.epoch = present + 1
        elif what == "ask":
            ask()
        elif what == "walk":
            walk()
    for message in on_the_way:
        database.write_unsynced(commands.record_event, message, NOW, LINK_SECRET)
    for _ in range(3):
        walk()
        ask()
    assert waiting(database) == 0
    for subject in SUBJECTS:
        logged = log_of(database, subject)
        assert len(set(logged)) == len(logged)
        stated = ids(*life.events.get(subject, []))
        assert [each for each in logged if each in set(stated)] == stated
    database.dispose()
