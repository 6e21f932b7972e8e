"""What the page for operators says: of every kind of work, of times and sizes, and of what grows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.rpc.operating import GIVE_UP, RETRY, SEAL, Backlog, Standing, Stuck
from contracts.runtime.operations import retrying, stuck
from deploy.services import SERVICES
from services.gateway.pages.ops import looking, words
from services.gateway.pages.ops.looking import Lookout, shown
from services.gateway.pages.ops.page import age, size

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


def test_every_kind_of_work_state_and_action_is_explained() -> None:
    kinds = {row.__tablename__ for service in SERVICES for row in retrying.kinds(service)}
    own = {stuck.TOLD, stuck.TAKEN, stuck.SEALING, words.PARKED, "deletions by retention", "receipts of deletions"}
    assert set(words.EXPLAINED) == kinds | own
    assert set(words.STATES) == {stuck.FAILING, stuck.UNTOUCHED, stuck.UNDER_WAY, stuck.GIVEN_UP}
    assert set(words.ACTIONS) == set(words.CONSEQUENCES) == {RETRY, GIVE_UP, SEAL, words.REQUEUE, words.DROP}


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3599, "59 min 59 s"),
        (3600, "1 h"),
        (86399, "23 h 59 min"),
        (90000, "1 d 1 h"),
        (86460, "1 d"),
    ],
)
def test_ages(seconds: int, told: str) -> None:
    assert age(NOON - timedelta(seconds=seconds), NOON) == told


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1_540_000, "1.5 MB"),
        (25_000_000, "25 MB"),
        (999_600, "1.0 MB"),
        (10**12, "1.0 TB"),
        (5 * 10**15, "5000 TB"),
    ],
)
def test_sizes(count: int, told: str) -> None:
    assert size(count) == told


def test_reasons_are_shown_without_secrets_and_mailboxes() -> None:
    reason = "550 Bob.O'Hara+x@mail.example unknown; smtps://me:c4n4ry@mail.example/s/abcdefghijklmnop"
    told = shown(reason)
    assert "***@mail.example unknown" in told
    assert not [piece for piece in ("Bob", "Hara", "c4n4ry", "abcdefghijklmnop") if piece in told]
    assert shown("4 @ 5") == "4 @ 5"


class Answering:
    """A bus on which each service answers what it has."""

    def __init__(self) -> None:
        self.answers: dict[str, Standing | ServiceError] = {}

    def call(self, rpc: Any, _request: Any) -> Any:
        answer = self.answers.get(rpc.service, Standing())
        if isinstance(answer, ServiceError):
            raise answer
        return answer


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Answering:
    monkeypatch.setattr(looking, "now", lambda: NOON)
    return Answering()


def test_what_grows_is_told_by_an_earlier_look_of_a_minute_ago(bus: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    lookout = Lookout(bus, Standing)

    def change(minutes: float, due: int) -> int | None:
        monkeypatch.setattr(looking, "now", lambda: NOON + timedelta(minutes=minutes))
        bus.answers["notifications"] = Standing(backlog=[Backlog(work="mails", due=due)])
        (line,) = lookout.look().backlog
        return line.change

    assert [change(minutes, due) for minutes, due in ((0, 5), (0.5, 9), (1, 12), (1.5, 10), (3, 2))] == [
        None,
        None,
        7,
        5,
        -10,
    ]


def test_the_worst_stands_first_and_who_is_silent_is_named(bus: Answering) -> None:
    def one(state: str) -> Stuck:
        return Stuck("mails", state, 2, (), "")

    bus.answers = {
        "templates": Standing(stuck=[one(stuck.UNDER_WAY), one(stuck.FAILING)]),
        "webhooks": Standing(stuck=[one(stuck.GIVEN_UP)]),
        "rendering": ServiceError("unavailable", "The service rendering did not answer in time"),
    }
    view = Lookout(bus, Standing).look()
    assert [(work.service, work.stuck.state) for work in view.stuck] == [
        ("webhooks", stuck.GIVEN_UP),
        ("templates", stuck.FAILING),
        ("templates", stuck.UNDER_WAY),
    ]
    assert view.silent == {"rendering": "The service rendering did not answer in time"}
    assert "gateway" in view.standings
    assert (view.count(stuck.GIVEN_UP), view.count(stuck.UNTOUCHED), view.parked) == (2, 0, 0)
