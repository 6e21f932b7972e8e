"""One thread cuts off whatever takes too long, each at its own time."""

import threading
from contextlib import ExitStack

import pytest

from contracts.runtime.watchdog import Watchdog
from tests.support.services.suite import wait_until

LONG = 3600.0


def test_what_takes_too_long_is_cut_off_and_nothing_else() -> None:
    watchdog = Watchdog()
    cut: list[str] = []
    with watchdog.within(LONG, lambda: cut.append("patient")):
        with watchdog.within(0.0, lambda: cut.append("quick")):
            wait_until(lambda: cut == ["quick"], what="the quick one's end")
        with watchdog.within(LONG, lambda: cut.append("in time")):
            pass
    with watchdog.within(0.0, lambda: cut.append("next")):
        wait_until(lambda: cut == ["quick", "next"], what="the end of one that came after the thread had nothing to do")


def test_each_is_cut_off_in_its_own_time_whichever_came_first() -> None:
    watchdog = Watchdog()
    cut: list[float] = []
    with ExitStack() as under_way:
        for seconds in (LONG, 0.3, 0.1, 0.2, 2 * LONG, 0.0):
            under_way.enter_context(watchdog.within(seconds, lambda seconds=seconds: cut.append(seconds)))  # type: ignore[misc]
        wait_until(lambda: len(cut) == 4, what="those with little time")
    assert sorted(cut) == [0.0, 0.1, 0.2, 0.3]


def test_many_are_watched_by_one_thread() -> None:
    watchdog = Watchdog()
    ends = threading.Event()

    def call() -> None:
        with watchdog.within(LONG, lambda: None):
            ends.wait()

    calls = [threading.Thread(target=call) for _ in range(20)]
    before = threading.active_count()
    for each in calls:
        each.start()
    wait_until(lambda: len(watchdog._watched) == len(calls), what="all of them")
    assert threading.active_count() <= before + len(calls) + 1
    ends.set()
    for each in calls:
        each.join()


def test_one_that_cannot_be_cut_off_keeps_no_other_from_it() -> None:
    watchdog = Watchdog()
    cut = threading.Event()

    def broken() -> None:
        raise OSError

    with watchdog.within(0.0, broken), watchdog.within(0.0, cut.set):
        wait_until(cut.is_set, what="the other")


def test_nothing_is_kept_of_what_was_in_time() -> None:
    """Not its connections, which may be many, until the time would have been over."""
    watchdog = Watchdog()

    def cut() -> None:
        """Never."""

    with pytest.raises(RuntimeError), watchdog.within(LONG, cut):
        raise RuntimeError
    assert [todo for _, _, todo in watchdog._watched] == [[]]
