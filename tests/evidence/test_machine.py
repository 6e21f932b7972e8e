"""Hypothesis drives two signers, a sender, another editor and a viewer (issue's "How good"): the short form of
``python -m tests.evidence``, the same calls at each run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.evidence.__main__ import chosen
from tests.evidence.machine import machine_of
from tests.evidence.world import World


@pytest.fixture
def world(workspace: Path) -> Iterator[World]:
    """On SQLite: one call follows the other, so that no database has anything to decide. ``python -m tests.evidence`` has both."""
    with World(workspace / "evidence") as made:
        yield made


def test_what_was_shown_is_sealed_and_who_was_written_to_is_named(world: World) -> None:
    machine = machine_of(world)
    run_state_machine_as_test(machine, settings=settings(chosen(10, 25), derandomize=True))
    assert machine.counts["sealed"] >= 5
    assert machine.counts["changed meanwhile"] >= 1
    assert machine.counts["refused changes"] >= 1
    assert machine.counts["dropped"] >= 1
    assert machine.counts["stopped"] >= 1
    assert machine.counts["attacked: name"] >= 1
    assert machine.counts["secrets changed"] >= 1
    assert machine.counts["masks seen"] >= 1
