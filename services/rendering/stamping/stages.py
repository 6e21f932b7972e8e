"""How far a stamp came, and what follows from that. No database, no clock, no provider."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from contracts.providers import DutystampState, DutystampStatus, StampState


class Stage(StrEnum):
    """``planned`` -> ``buying`` -> ``reserved`` -> ``placing`` -> ``placed`` -> ``confirmed``; ``unknown`` after ``buying``
    when the answer was lost. Each is in the database before the step that it announces is taken."""

    PLANNED = "planned"
    BUYING = "buying"
    UNKNOWN = "unknown"
    RESERVED = "reserved"
    PLACING = "placing"
    PLACED = "placed"
    CONFIRMED = "confirmed"


FAILED = "failed"
"""What is said of a stamp that nobody tries any more by themselves, at whatever stage it is."""

AHEAD: dict[Stage, frozenset[Stage]] = {
    # A serial of the pool needs no purchase. After a restore it may have been bought before.
    Stage.PLANNED: frozenset({Stage.BUYING, Stage.RESERVED, Stage.UNKNOWN}),
    # Back when it is sure that nothing was bought.
    Stage.BUYING: frozenset({Stage.RESERVED, Stage.UNKNOWN, Stage.PLANNED}),
    Stage.UNKNOWN: frozenset({Stage.RESERVED, Stage.PLANNED}),
    # Back when a serial of the pool turns out to be none.
    Stage.RESERVED: frozenset({Stage.PLACING, Stage.PLANNED}),
    Stage.PLACING: frozenset({Stage.PLACED}),
    Stage.PLACED: frozenset({Stage.CONFIRMED}),
    Stage.CONFIRMED: frozenset(),
}
"""Which stages follow. From ``placing`` on there is no way to another serial."""

STAMPED = frozenset({Stage.PLACED, Stage.CONFIRMED})
MAY_BE_PAID = frozenset({Stage.BUYING, Stage.UNKNOWN})
"""A purchase was asked for, and its answer is not in the database."""

UNTOUCHED = frozenset({Stage.PLANNED, Stage.BUYING, Stage.UNKNOWN, Stage.RESERVED})
"""Nothing was put onto the file yet: it may still be another."""

SCHEDULE = tuple(timedelta(seconds=seconds) for seconds in (5, 30, 120, 600, 1800, *[3600] * 23))
"""Waits between the attempts of a stamp whose provider fails; it ends after about a day."""

SURELY_NOT = timedelta(minutes=15)
"""A purchase that the provider does not list for so long was not made."""

LONGEST_AWAY = timedelta(seconds=20)
"""Between the tries to reach a provider that is away: nothing was asked of it, so they are not counted, and a breaker
(``providers/breaker.py``) sees to it that few of them are made."""

AFTER_RESTORE = timedelta(days=30)
"""For so long each stamp is looked for before it is bought: the life of the database that was lost may have bought it."""

_FIRST_LOOK = timedelta(seconds=5)


class WrongStage(Exception):
    """A step that does not follow: a fault of ours."""


def check(stage: Stage, following: Stage) -> None:
    """Raise WrongStage unless ``following`` comes after ``stage``."""
    if following not in AHEAD[stage]:
        raise WrongStage(f"{following} does not follow {stage}")


def next_look(asked_at: datetime, moment: datetime) -> timedelta:
    """Return how long to wait before a lost purchase is looked for again: half of the time that it is lost already."""
    since = moment - asked_at
    return max(_FIRST_LOOK, min(since / 2, SURELY_NOT - since))


@dataclass(frozen=True)
class Progress:
    """What is to be known of a stamp to say how far all are. ``moving``: it is tried again by itself. ``problem``: what failed
    last, in words."""

    stage: Stage
    moving: bool
    shown: StampState
    problem: str | None
    next_attempt_at: datetime


def shown_as(stage: Stage, *, moving: bool) -> str:
    """The word for people: a stage, or ``failed``."""
    return stage if moving or stage in STAMPED else FAILED


def is_settled(stamps: Iterable[Progress]) -> bool:
    """True when nothing goes on by itself any more: each stamp is placed, given up, or waits behind one that was."""
    return not any(stamp.moving for stamp in _unfinished(stamps))


def summary(stamps: Sequence[Progress], provider: str, at: datetime) -> DutystampState:
    """The state of a submission's stamps."""
    unfinished = _unfinished(stamps)
    failing = [stamp for stamp in unfinished if stamp.problem]
    if not unfinished:
        status = DutystampStatus.STAMPED
    elif is_settled(unfinished):
        status = DutystampStatus.FAILED
    else:
        status = DutystampStatus.PENDING
    return DutystampState(
        status=status,
        provider=provider,
        stamps=[stamp.shown for stamp in stamps],
        message=failing[0].problem if failing else None,
        at=at,
        next_attempt_at=min((stamp.next_attempt_at for stamp in failing if stamp.moving), default=None),
    )


def _unfinished(stamps: Iterable[Progress]) -> list[Progress]:
    return [stamp for stamp in stamps if stamp.stage not in STAMPED]
