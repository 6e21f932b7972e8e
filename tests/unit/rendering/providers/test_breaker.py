"""A provider that does not answer is left alone, and noticed when it is back."""

import threading
from itertools import pairwise

import pytest

from services.rendering.providers.breaker import FAILURES, LONGEST_HOLD, LONGEST_PAUSE, Breaker, Open, breaker_of


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def is_open(breaker: Breaker) -> bool:
    try:
        breaker.admit()
    except Open:
        return True
    return False


def tripped(clock: Clock) -> Breaker:
    breaker = Breaker(clock)
    for _ in range(FAILURES):
        breaker.admit()
        breaker.failed()
    return breaker


def test_a_failure_now_and_then_is_nothing(clock: Clock) -> None:
    breaker = Breaker(clock)
    for _ in range(20):
        for _ in range(FAILURES - 1):
            breaker.admit()
            breaker.failed()
        breaker.admit()
        breaker.succeeded()
    breaker.admit()


def test_after_some_in_a_row_nobody_calls_for_a_while_then_one(clock: Clock) -> None:
    breaker = tripped(clock)
    with pytest.raises(Open) as caught:
        breaker.admit()
    assert 0 < caught.value.seconds <= LONGEST_PAUSE
    clock.now += caught.value.seconds
    breaker.admit()
    assert [is_open(breaker) for _ in range(10)] == [True] * 10, "one at a time"
    breaker.succeeded()
    assert [is_open(breaker) for _ in range(10)] == [False] * 10


def test_while_it_is_away_it_is_called_a_few_times_a_minute_and_found_within_one(clock: Clock) -> None:
    """An hour, with somebody who wants it each second."""
    breaker, calls = Breaker(clock), []
    for _ in range(3600):
        if not is_open(breaker):
            calls.append(clock.now)
            breaker.failed()
        clock.now += 1
    assert len(calls) <= FAILURES + 3600 / LONGEST_PAUSE + 5
    waits = [later - earlier for earlier, later in pairwise(calls)]
    assert max(waits) <= LONGEST_PAUSE + 1 < 60
    waited = 0
    while is_open(breaker):
        clock.now += 1
        waited += 1
    assert waited <= LONGEST_PAUSE
    breaker.succeeded()
    assert not is_open(breaker)


def test_one_who_tried_and_never_came_back_does_not_close_it_for_ever(clock: Clock) -> None:
    breaker = tripped(clock)
    clock.now += LONGEST_PAUSE
    breaker.admit()
    assert is_open(breaker)
    clock.now += 61
    assert not is_open(breaker)


def test_who_did_not_call_after_all_leaves_the_turn_to_the_next(clock: Clock) -> None:
    breaker = tripped(clock)
    clock.now += LONGEST_PAUSE
    breaker.admit()
    breaker.left()
    breaker.admit()
    assert is_open(breaker)


@pytest.mark.parametrize(("wanted", "held"), [(7.0, 7.0), (86_400.0, LONGEST_HOLD)])
def test_a_provider_that_wants_fewer_calls_gets_none_for_that_long(clock: Clock, wanted: float, held: float) -> None:
    breaker = Breaker(clock)
    breaker.admit()
    breaker.hold(wanted)
    with pytest.raises(Open) as caught:
        breaker.admit()
    assert caught.value.seconds == held
    clock.now += held
    breaker.admit()
    breaker.admit()


def test_of_many_at_once_one_tries(clock: Clock) -> None:
    breaker = tripped(clock)
    clock.now += LONGEST_PAUSE
    start, admitted = threading.Barrier(16), []

    def come() -> None:
        start.wait()
        if not is_open(breaker):
            admitted.append(1)

    threads = [threading.Thread(target=come) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == 1


def test_each_provider_has_its_own(clock: Clock) -> None:
    one = breaker_of("https://One.example/csc/v1")
    assert one is breaker_of("https://one.example/elsewhere?x=1")
    assert one is not breaker_of("https://one.example:8443/csc/v1")
    assert one is not breaker_of("https://two.example/csc/v1")
