"""Hypothesis drives two signers, a sender, another editor and a viewer (issue's "How good"): the short form of
``python -m tests.evidence``, the same calls at each run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.evidence.__main__ import chosen
from tests.evidence.machine import ENDS, machine_of
from tests.evidence.world import World


@pytest.fixture
def world(workspace: Path) -> Iterator[World]:
    """On SQLite: one call follows the other, so that no database has anything to decide. ``python -m tests.evidence`` has both."""
    with World(workspace / "evidence") as made:
        yield made


WANTED = {"begun": len(ENDS), "sealed": 5} | dict.fromkeys(
    ("changed meanwhile", "refused changes", "dropped", "stopped", "attacked: name", "secrets changed", "masks seen"), 1
)
SUBMISSIONS = 4
"""Of a walk: few, as it is over with the walk that has seen the last of what is wanted."""
MOST_WALKS = 15


def test_what_was_shown_is_sealed_and_who_was_written_to_is_named(world: World) -> None:
    """The same walks at each run, until each kind of thing has happened: what a walk meets depends on what it is answered."""
    machine = machine_of(world)
    for number in range(MOST_WALKS):
        run_state_machine_as_test(seed(number)(machine), settings=settings(chosen(SUBMISSIONS, 25)))
        missing = [what for what, least in WANTED.items() if machine.counts.get(what, 0) < least]
        if not missing:
            return
    raise AssertionError(f"never seen: {missing}")
