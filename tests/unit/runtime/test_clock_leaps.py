"""The wall clock is put forward and back: how old something is taken to be, and what counts as due."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from contracts.runtime import clock
from tests.support.services.circumstances.wall_clock import WallClock

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    return WallClock(monkeypatch, stopped=True)


def seconds(moment: datetime) -> float:
    return (moment - datetime.fromtimestamp(0, UTC)).total_seconds()


def test_nothing_is_older_than_the_time_that_passed(wall: WallClock) -> None:
    made = clock.now()
    wall.pass_by(100)
    wall.leap(DAY.total_seconds())
    assert clock.now() - made == DAY + timedelta(seconds=100)
    assert clock.without_leaps(HOUR) - made == timedelta(seconds=100)
    wall.leap(HOUR.total_seconds())
    wall.pass_by(0.5)
    assert clock.without_leaps(HOUR) - made == timedelta(seconds=100.5)
    # What was made after the leaps is at most as old as it looks, and who waited for the period has waited long enough.
    assert clock.now() - clock.without_leaps(HOUR) == DAY + HOUR
    wall.pass_by(3600)
    assert clock.without_leaps(HOUR) == clock.now()
    assert clock.without_leaps(DAY) - made == timedelta(seconds=3700.5)


def test_how_long_the_machine_has_been_up_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """In floating point a period of an hour was 3599.999999 seconds on some machines, from some moments on."""
    chance = random.Random(1)
    for days_up in (0.01, 1, 100, 10_000):
        for _ in range(100):
            moment = chance.randrange(1_600_000_000 * 10**9, 4_000_000_000 * 10**9)
            stopped_at = (moment, chance.randrange(int(days_up * 86400 * 10**9)))
            test_nothing_is_older_than_the_time_that_passed(WallClock(monkeypatch, stopped_at=stopped_at))
            test_what_was_due_before_the_clock_was_put_back_is_due(WallClock(monkeypatch, stopped_at=stopped_at))


def test_a_clock_that_is_kept_right_does_not_leap(wall: WallClock) -> None:
    for _ in range(20):
        wall.pass_by(60)
        wall.leap(0.04)
        assert clock.put_back() == timedelta(0)
        assert clock.now() - clock.without_leaps(DAY) == timedelta(0)


def test_what_was_due_before_the_clock_was_put_back_is_due(wall: WallClock) -> None:
    due = clock.now()
    wall.leap(-3600)
    assert clock.now() + clock.put_back() >= due
    assert clock.without_leaps(DAY) == clock.now()
    wall.pass_by(3599)
    assert clock.put_back() == HOUR
    wall.pass_by(2)
    assert clock.put_back() == timedelta(0)
    assert clock.now() > due


def test_wrong_for_a_minute(wall: WallClock) -> None:
    wall.leap(DAY.total_seconds())
    ahead = clock.now() + clock.put_back()
    wall.pass_by(60)
    assert clock.without_leaps(HOUR) < clock.now() - DAY + timedelta(minutes=2)
    wall.leap(-DAY.total_seconds())
    assert clock.now() + clock.put_back() > ahead
