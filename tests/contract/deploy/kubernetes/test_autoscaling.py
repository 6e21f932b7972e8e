"""How many replicas the autoscalers of the manifests come to: by Kubernetes' algorithm, for readings of the metrics and for loads."""

import itertools
from typing import Any

import pytest

from tests.support.judges.operations.autoscaler import Controller, Readings, wanted
from tests.support.judges.operations.kubectl import COMPLETE, objects_of, of_kind

SPECS: dict[str, dict[str, Any]] = {
    name: one["spec"] for name, one in of_kind(objects_of(COMPLETE), "HorizontalPodAutoscaler").items()
}
BACKGROUND = sorted(name for name in SPECS if name.endswith("-background"))
SERVE = sorted(name for name in SPECS if name.endswith("-serve"))
NOBODY_WAITS = 0.0


def works(name: str) -> list[str]:
    """The work whose age is looked at."""
    return [one["external"]["metric"]["selector"]["matchLabels"]["work"] for one in SPECS[name]["metrics"]]


@pytest.mark.parametrize(
    ("current", "oldest", "replicas"),
    [
        (1, 0, 1),
        (1, 25, 1),
        (1, 32, 1),  # within the tolerance
        (1, 34, 2),
        (1, 90, 3),
        (2, 45, 3),
        (3, 30, 3),
        (3, 10, 1),
        (1, 3600, 6),
        (4, None, 4),  # no answer
    ],
)
def test_replicas_by_the_age_of_what_waits_longest(current: int, oldest: float | None, replicas: int) -> None:
    assert wanted(SPECS["rendering-background"], current, {"seal": oldest}) == replicas


def test_of_two_kinds_of_work_the_one_that_is_later_counts() -> None:
    spec = SPECS["notifications-background"]
    assert wanted(spec, 1, {"mails": 5, "phone-messages": 90}) == 3
    assert wanted(spec, 3, {"mails": 1, "phone-messages": None}) == 3, "what cannot be read is no reason for fewer"
    assert wanted(spec, 2, {"mails": 60, "phone-messages": None}) == 4


@pytest.mark.parametrize(
    ("name", "current", "processors", "replicas"),
    [
        ("gateway-serve", 2, 0.1, 2),
        ("gateway-serve", 2, 1.5, 2),
        ("gateway-serve", 2, 1.9, 3),  # as much as two processes ever use
        ("gateway-serve", 5, 5.0, 6),
        ("gateway-serve", 6, 1.4, 2),
        ("rendering-serve", 2, 2.9, 2),
        ("rendering-serve", 2, 4.0, 3),
    ],
)
def test_replicas_by_what_processes_use(name: str, current: int, processors: float, replicas: int) -> None:
    assert wanted(SPECS[name], current, {"cpu": processors}) == replicas


@pytest.mark.parametrize("name", SERVE)
def test_two_that_work_as_hard_as_they_can_get_a_third(name: str) -> None:
    """A process that is one interpreter uses 0.95 of a processor at most; rendering's has children beside it."""
    most = 1.9 if name == "rendering-serve" else 0.95
    assert wanted(SPECS[name], 2, {"cpu": 2 * most}) >= 3


def hours_of(name: str, load: list[float]) -> list[tuple[int, float]]:
    """Replicas and the age of the oldest row (seconds) at each step. ``load`` is how many replicas it takes, at each step."""
    controller, waiting, found = Controller(SPECS[name]), 0.0, []
    for needed in load:
        replicas = controller.replicas
        waiting = max(0.0, waiting + (needed - replicas) * controller.PERIOD)
        oldest = waiting / replicas
        readings: Readings = dict.fromkeys(works(name), NOBODY_WAITS)
        readings[works(name)[0]] = oldest
        found.append((controller.step(readings), oldest))
    return found


HOUR = 3600 // Controller.PERIOD


@pytest.mark.parametrize("name", BACKGROUND)
def test_what_one_can_do_is_done_by_one(name: str) -> None:
    assert {replicas for replicas, _ in hours_of(name, [0.9] * HOUR)} == {1}


@pytest.mark.parametrize("name", BACKGROUND)
@pytest.mark.parametrize("needed", [1.5, 2.5, 3.5])
def test_what_takes_several_gets_them_and_nobody_waits_for_long(name: str, needed: float) -> None:
    hours = hours_of(name, [needed] * 3 * HOUR)
    assert max(replicas for replicas, _ in hours) <= min(needed + 2.5, SPECS[name]["maxReplicas"])
    assert max(oldest for _, oldest in hours) < 300
    changes = sum(before != after for (before, _), (after, _) in itertools.pairwise(hours))
    assert changes <= 3 * 10, "it goes up and down all the time"


@pytest.mark.parametrize("name", BACKGROUND)
def test_after_a_rush_one_is_left(name: str) -> None:
    hours = hours_of(name, [SPECS[name]["maxReplicas"] + 1.0] * (HOUR // 2) + [0.1] * 2 * HOUR)
    assert max(replicas for replicas, _ in hours) == SPECS[name]["maxReplicas"]
    assert hours[-1] == (1, NOBODY_WAITS)


def test_one_more_a_minute_and_one_fewer_each_five() -> None:
    controller = Controller(SPECS["rendering-background"])
    up = [controller.step({"seal": 3600.0}) for _ in range(40)]
    assert [up.index(replicas) for replicas in range(2, 7)] == pytest.approx([3, 7, 11, 15, 19], abs=3)
    down = [controller.step({"seal": 0.0}) for _ in range(200)]
    first = down.index(5)
    assert first >= 600 // Controller.PERIOD - 1, "ten minutes of quiet come first"
    assert [down.index(replicas) - first for replicas in range(4, 0, -1)] == [20, 40, 60, 80]
