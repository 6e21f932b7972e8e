"""How far stamps came, and what is said of all of them."""

from datetime import UTC, datetime, timedelta

import pytest

from contracts.providers import DutystampStatus, StampState
from services.rendering.stamping import orders, stages
from services.rendering.stamping.stages import Progress, Stage, WrongStage

NOW = datetime(2026, 11, 23, tzinfo=UTC)
LATER = NOW + timedelta(minutes=2)


def stamp(stage: Stage, *, moving: bool = True, problem: str | None = None, at: datetime = LATER) -> Progress:
    shown = StampState(target="documents", state=stages.shown_as(stage, moving=moving), error=problem)
    return Progress(stage, moving, shown, problem, at)


def test_each_stage_can_be_reached_and_left_for_the_end() -> None:
    assert set(stages.AHEAD) == set(Stage)
    reached, ahead = {Stage.PLANNED}, {Stage.PLANNED}
    while ahead:
        ahead = {following for stage in ahead for following in stages.AHEAD[stage]} - reached
        reached |= ahead
    assert reached == set(Stage)
    assert [stage for stage in Stage if not stages.AHEAD[stage]] == [Stage.CONFIRMED]


@pytest.mark.parametrize("stage", [Stage.PLACING, Stage.PLACED, Stage.CONFIRMED])
def test_from_placing_on_there_is_no_way_to_another_serial(stage: Stage) -> None:
    seen, ahead = set(), {stage}
    while ahead:
        seen |= ahead
        ahead = {following for each in ahead for following in stages.AHEAD[each]} - seen
    assert not seen & stages.UNTOUCHED


def test_a_step_that_does_not_follow_is_a_fault_of_ours() -> None:
    stages.check(Stage.PLANNED, Stage.BUYING)
    with pytest.raises(WrongStage):
        stages.check(Stage.UNKNOWN, Stage.BUYING)
    with pytest.raises(WrongStage):
        stages.check(Stage.PLACED, Stage.PLACING)


@pytest.mark.parametrize(
    ("stamps", "status", "settled"),
    [
        ([stamp(Stage.PLACED), stamp(Stage.CONFIRMED)], DutystampStatus.STAMPED, True),
        ([stamp(Stage.PLACED), stamp(Stage.UNKNOWN)], DutystampStatus.PENDING, False),
        ([stamp(Stage.PLACED), stamp(Stage.PLACING, moving=False)], DutystampStatus.FAILED, True),
        ([stamp(Stage.PLANNED), stamp(Stage.PLACING, moving=False)], DutystampStatus.PENDING, False),
        ([stamp(Stage.PLACED, moving=False)], DutystampStatus.STAMPED, True),
    ],
)
def test_what_is_said_of_all_stamps(stamps: list[Progress], status: DutystampStatus, settled: bool) -> None:
    assert stages.summary(stamps, "issuer", NOW).status is status
    assert stages.is_settled(stamps) is settled


def test_what_failed_is_told_until_it_works() -> None:
    waiting = stamp(Stage.PLACING, problem="code 97")
    state = stages.summary([stamp(Stage.PLACED, problem="before"), waiting], "issuer", NOW)
    assert (state.message, state.next_attempt_at) == ("code 97", LATER)
    given_up = stages.summary([stamp(Stage.PLACING, moving=False, problem="code 83")], "issuer", NOW)
    assert (given_up.message, given_up.next_attempt_at) == ("code 83", None)
    assert [shown.state for shown in given_up.stamps] == ["failed"]
    assert stages.summary([stamp(Stage.BUYING)], "issuer", NOW).next_attempt_at is None


def test_the_next_attempt_is_the_first_of_those_that_failed_and_go_on() -> None:
    minutes = [NOW + timedelta(minutes=number) for number in range(5)]
    stamps = [
        stamp(Stage.PLACED, problem="before", at=minutes[0]),
        stamp(Stage.PLACING, moving=False, problem="given up", at=minutes[1]),
        stamp(Stage.PLANNED, at=minutes[2]),
        stamp(Stage.UNKNOWN, problem="lost", at=minutes[4]),
        stamp(Stage.PLACING, problem="late", at=minutes[3]),
    ]
    state = stages.summary(stamps, "issuer", NOW)
    assert (state.status, state.message, state.next_attempt_at) == (DutystampStatus.PENDING, "given up", minutes[3])


@pytest.mark.parametrize(
    ("stage", "moving", "word"),
    [
        (Stage.PLANNED, True, "planned"),
        (Stage.UNKNOWN, False, "failed"),
        (Stage.PLACING, False, "failed"),
        (Stage.PLACED, False, "placed"),
        (Stage.CONFIRMED, True, "confirmed"),
    ],
)
def test_the_word_for_people(stage: Stage, moving: bool, word: str) -> None:
    assert stages.shown_as(stage, moving=moving) == word


def test_half_the_time_of_a_loss_passes_before_the_next_look() -> None:
    assert stages.next_look(NOW, NOW) == timedelta(seconds=5)
    assert stages.next_look(NOW, NOW + timedelta(minutes=4)) == timedelta(minutes=2)
    assert stages.next_look(NOW, NOW + timedelta(minutes=12)) == timedelta(minutes=3)


def test_a_lost_purchase_is_looked_for_less_and_less_often_until_it_was_surely_none() -> None:
    moment, looks = NOW, []
    while moment < NOW + stages.SURELY_NOT:
        wait = stages.next_look(NOW, moment)
        looks.append(wait)
        moment += wait
    assert looks[0] == timedelta(seconds=5)
    assert len(looks) < 20
    assert moment < NOW + stages.SURELY_NOT + timedelta(seconds=6)


def test_each_purchase_of_a_stamp_has_a_name_of_its_own_at_the_provider() -> None:
    first = orders.new_key("abcdef", 7, "documents", 0, 0)
    second = orders.next_key(first)
    third = orders.next_key(second)
    assert [first, second, third] == [f"cs-abcdef-7-d0-0-{count}.pdf" for count in (1, 2, 3)]
    assert {orders.stem(key) for key in (first, second, third)} == {"cs-abcdef-7-d0-0"}
    others = [("documents", 0, 1), ("documents", 1, 0), ("combined", 0, 0)]
    names = {orders.stem(orders.new_key("abcdef", 7, *other)) for other in others}
    assert len({*names, orders.stem(first), orders.stem(orders.new_key("abcdef", 70, "documents", 0, 0))}) == 5
