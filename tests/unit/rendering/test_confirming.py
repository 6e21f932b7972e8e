"""The way of a signer's confirmation at a provider: what may follow what, and what a failure means."""

import pytest

from contracts.providers import ConfirmationProblem, ConfirmationStep
from services.rendering.rules.confirming import (
    End,
    Meaning,
    Stage,
    confirmed_key,
    may_become,
    meaning_of,
    step_of,
)

ENDS = {Stage.SIGNED, Stage.DISCARDED}


@pytest.mark.parametrize("stage", Stage)
def test_what_was_signed_or_discarded_is_never_asked_for_again(stage: Stage) -> None:
    assert not may_become(Stage.DISCARDED, stage)
    assert may_become(Stage.SIGNED, stage) is (stage is Stage.DISCARDED)
    assert may_become(stage, Stage.DISCARDED) is (stage is not Stage.DISCARDED)


def test_only_whoever_was_asked_or_needs_nobody_is_authorised_and_signs() -> None:
    assert {stage for stage in Stage if may_become(stage, Stage.AUTHORISED)} == {
        Stage.PREPARING,
        Stage.ASKING,
        Stage.AUTHORISED,
    }
    assert {stage for stage in Stage if may_become(stage, Stage.SIGNED)} == {Stage.PREPARING, Stage.AUTHORISED}
    assert {stage for stage in Stage if may_become(stage, Stage.ASKING)} == {Stage.PREPARING, Stage.ASKING}
    assert {stage for stage in Stage if may_become(stage, Stage.PREPARING)} == set(Stage) - ENDS
    for end in (Stage.REFUSED, Stage.FAILED):
        assert {stage for stage in Stage if may_become(stage, end)} == {
            Stage.PREPARING,
            Stage.ASKING,
            Stage.AUTHORISED,
        }


@pytest.mark.parametrize(
    ("code", "retryable", "counts", "answered", "problem", "end"),
    [
        ("unreachable", True, False, False, "unavailable", End.AGAIN),
        ("unavailable", True, False, False, "unavailable", End.AGAIN),
        ("busy", True, False, False, "unavailable", End.AGAIN),
        ("not_called", True, False, False, "unavailable", End.AGAIN),
        ("unavailable", True, False, True, "unavailable", End.ASKED),
        ("no_answer", True, False, False, "no_answer", End.AGAIN),
        ("no_answer", True, False, True, "no_answer", End.ASKED),
        ("no_answer", False, False, False, "no_answer", End.FAILED),
        ("grant_expired", True, False, False, "expired", End.ASKED),
        ("grant_used", True, False, False, "no_answer", End.ASKED),
        ("grant_refused", True, False, False, "no_answer", End.ASKED),
        ("refused", False, False, True, "refused", End.REFUSED),
        ("too_slow", False, False, False, "expired", End.REFUSED),
        ("wrong_code", False, True, True, "wrong_code", End.REFUSED),
        ("wrong_pin", False, True, True, "wrong_code", End.REFUSED),
        ("wrong_pin", False, True, False, "unusable", End.FAILED),
        ("credential_suspended", False, False, False, "locked", End.FAILED),
        ("credential_locked", False, False, True, "locked", End.FAILED),
        ("credential_revoked", False, False, False, "locked", End.FAILED),
        ("credential_expired", False, False, False, "locked", End.FAILED),
        ("revoked", False, False, False, "locked", End.FAILED),
        ("quota", False, False, False, "unusable", End.FAILED),
        ("something", True, False, False, "unavailable", End.AGAIN),
        ("something", False, False, True, "unusable", End.FAILED),
    ],
)
def test_what_a_failure_means(code: str, retryable: bool, counts: bool, answered: bool, problem: str, end: End) -> None:
    meaning = meaning_of(code, retryable=retryable, counts=counts, answered=answered)
    assert meaning == Meaning(ConfirmationProblem(problem), end)


@pytest.mark.parametrize(
    ("stage", "asked", "answered", "expired", "step"),
    [
        ("preparing", None, False, False, "preparing"),
        ("asking", "redirect", False, False, "redirect"),
        ("asking", "question", False, False, "question"),
        ("asking", "waiting", False, False, "waiting"),
        ("asking", "question", True, False, "preparing"),
        ("asking", "question", True, True, "preparing"),
        ("asking", "question", False, True, "refused"),
        ("asking", None, False, False, "preparing"),
        ("preparing", "question", False, True, "preparing"),
        ("authorised", None, False, False, "signing"),
        ("signed", None, False, False, "signing"),
        ("refused", None, False, True, "refused"),
        ("failed", None, False, False, "failed"),
        ("discarded", None, False, False, "none"),
    ],
)
def test_what_the_page_shows(stage: str, asked: str | None, answered: bool, expired: bool, step: str) -> None:
    assert step_of(Stage(stage), asked, answered=answered, expired=expired) is ConfirmationStep(step)


def test_every_file_has_a_place_of_its_own() -> None:
    places = {
        confirmed_key(submission, confirmation, preparation, number, kind)
        for submission in (1, 2)
        for confirmation in ("a", "b")
        for preparation in (1, 2)
        for number in (0, 1)
        for kind in ("prepared", "signed")
    }
    assert len(places) == 32
    assert confirmed_key(7, "c1", 2, 0, "signed") == "submissions/7/signed-c1-2-0"
