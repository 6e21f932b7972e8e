"""Test mode: its clock, and the removal of all that was made in it (docs/testing.md). Actors have a test key."""

from pydantic import Field

from contracts.rpc import Rpc
from contracts.types import Actor, Moment, Tolerant

LONGEST_ADVANCE = 3660 * 24 * 3600
"""Seconds by which the clock may be moved on at once: ten years."""


class AdvanceTestClock(Tolerant):
    """Let ``seconds`` go by for the submissions of test mode that there are, or the time ``until`` a moment that is to come;
    one of the two is given."""

    request_id: str
    actor: Actor
    seconds: int | None = Field(default=None, ge=1, le=LONGEST_ADVANCE)
    until: Moment | None = None


class DueInTestMode(Tolerant):
    """How many things of test mode are due and not done yet: submissions to ``expire``, ``reminders`` to be sent, submissions
    to ``erase``."""

    expire: int = 0
    reminders: int = 0
    erase: int = 0


class AdvancedTestClock(Tolerant):
    """``submissions`` were waiting for a time, which is nearer by ``seconds`` now; ``due`` is what became due by that."""

    seconds: int
    submissions: int
    due: DueInTestMode


class AskTestMode(Tolerant):
    actor: Actor


class InTestMode(Tolerant):
    """What there is of test mode: ``submissions`` and ``batches``, and ``removing``, submissions that were removed and are not
    gone in all services yet. ``due`` is what its clock has made due and what is not done yet."""

    submissions: int
    batches: int
    removing: int
    due: DueInTestMode


class WipeTestMode(Tolerant):
    """Remove whatever was made in test mode until now."""

    request_id: str
    actor: Actor


class WipedTestMode(Tolerant):
    """How many ``submissions`` and ``batches`` are being removed."""

    submissions: int
    batches: int


ADVANCE = Rpc("submissions", "advance_test_clock", AdvanceTestClock, AdvancedTestClock, timeout=60)
IN_TEST_MODE = Rpc("submissions", "in_test_mode", AskTestMode, InTestMode)
WIPE = Rpc("submissions", "wipe_test_mode", WipeTestMode, WipedTestMode, timeout=60)
