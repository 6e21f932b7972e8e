"""The way of a signer's confirmation at a provider (docs/certsign-signer.md). No database, no clock, no files.

Files are made ready, the person is asked, the provider permits, signs. What fails is tried again by itself, or by the person,
or waits for an admin: ``meaning_of`` says which, and what the signing page calls it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from contracts.providers import ConfirmationProblem, ConfirmationStep


class Stage(StrEnum):
    """How far a confirmation is. ``preparing`` is also whatever is done here or asked of the provider without the person."""

    PREPARING = "preparing"
    ASKING = "asking"
    AUTHORISED = "authorised"
    SIGNED = "signed"
    REFUSED = "refused"
    FAILED = "failed"
    DISCARDED = "discarded"


_NEXT: Mapping[Stage, frozenset[Stage]] = {
    Stage.PREPARING: frozenset(
        {Stage.PREPARING, Stage.ASKING, Stage.AUTHORISED, Stage.SIGNED, Stage.REFUSED, Stage.FAILED, Stage.DISCARDED}
    ),
    Stage.ASKING: frozenset(
        {Stage.PREPARING, Stage.ASKING, Stage.AUTHORISED, Stage.REFUSED, Stage.FAILED, Stage.DISCARDED}
    ),
    Stage.AUTHORISED: frozenset(
        {Stage.PREPARING, Stage.AUTHORISED, Stage.SIGNED, Stage.REFUSED, Stage.FAILED, Stage.DISCARDED}
    ),
    Stage.REFUSED: frozenset({Stage.PREPARING, Stage.DISCARDED}),
    Stage.FAILED: frozenset({Stage.PREPARING, Stage.DISCARDED}),
    Stage.SIGNED: frozenset({Stage.DISCARDED}),
    Stage.DISCARDED: frozenset(),
}

WAITS_FOR_PERSON = frozenset({Stage.REFUSED, Stage.FAILED})
"""Nothing happens until somebody asks for it again."""

SCHEDULE = tuple(timedelta(seconds=seconds) for seconds in (2, 4, 8, 15, 30, 60, 120, 300))
"""Waits between the attempts at a provider that does not answer, while the person looks on; then an admin has to."""

ABANDONED = timedelta(days=1)
"""A confirmation that nobody has gone on with for so long is discarded: the form can be filled in again."""


def may_become(stage: Stage, after: Stage) -> bool:
    """Tell if ``after`` can follow ``stage``. What was signed or discarded is never asked for again."""
    return after in _NEXT[stage]


class End(StrEnum):
    """What comes of a failure: ``again`` by itself, ``asked`` (the person is asked once more, by itself), ``refused`` (the
    person decides), ``failed`` (an admin has to look)."""

    AGAIN = "again"
    ASKED = "asked"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True)
class Meaning:
    """What a failure at the provider means for a confirmation."""

    problem: ConfirmationProblem
    end: End


_AWAY = Meaning(ConfirmationProblem.UNAVAILABLE, End.AGAIN)
_VOID = Meaning(ConfirmationProblem.NO_ANSWER, End.ASKED)
_LOCKED = Meaning(ConfirmationProblem.LOCKED, End.FAILED)
_UNUSABLE = Meaning(ConfirmationProblem.UNUSABLE, End.FAILED)
_WRONG = Meaning(ConfirmationProblem.WRONG_CODE, End.REFUSED)
_MEANINGS = {
    "unreachable": _AWAY,
    "unavailable": _AWAY,
    "busy": _AWAY,
    "not_called": _AWAY,
    "no_answer": Meaning(ConfirmationProblem.NO_ANSWER, End.AGAIN),
    "grant_expired": Meaning(ConfirmationProblem.EXPIRED, End.ASKED),
    "grant_used": _VOID,
    "grant_refused": _VOID,
    "refused": Meaning(ConfirmationProblem.REFUSED, End.REFUSED),
    "too_slow": Meaning(ConfirmationProblem.EXPIRED, End.REFUSED),
    "credential_suspended": _LOCKED,
    "credential_locked": _LOCKED,
    "credential_revoked": _LOCKED,
    "credential_expired": _LOCKED,
    "revoked": _LOCKED,
}


def meaning_of(code: str, *, retryable: bool, counts: bool, answered: bool) -> Meaning:
    """Tell what a failure with this ``code`` means. ``counts``: the provider counts the try; ``answered``: what was tried is
    what the person has typed, or has come back with. That is never tried again by itself."""
    if counts:
        return _WRONG if answered else _UNUSABLE
    meaning = _MEANINGS.get(code)
    if meaning is None:
        meaning = _AWAY if retryable else _UNUSABLE
    if answered and meaning.end is End.AGAIN:
        return Meaning(meaning.problem, End.ASKED)
    if meaning.end is End.AGAIN and not retryable:
        return Meaning(meaning.problem, End.FAILED)
    return meaning


def void_problem(code: str) -> ConfirmationProblem:
    """Tell what the person is told who is asked for another permission, because of a failure with this ``code``."""
    meaning = _MEANINGS.get(code)
    if meaning is not None and (meaning.end is End.ASKED or code == "too_slow"):
        return meaning.problem
    return ConfirmationProblem.NO_ANSWER


def confirmed_key(submission_id: int, confirmation: str, preparation: int, number: int, kind: str) -> str:
    """Return where the ``number``-th document of a confirmation is kept: ``prepared`` for the signature, or ``signed``."""
    return f"submissions/{submission_id}/{kind}-{confirmation}-{preparation}-{number}"


def step_of(stage: Stage, asked_for: str | None, *, answered: bool, expired: bool) -> ConfirmationStep:
    """Tell what the signing page shows. ``asked_for``: ``redirect``, ``question`` or ``waiting``; ``answered``: the answer is
    on its way to the provider."""
    if stage is Stage.ASKING and not answered and asked_for is not None:
        return ConfirmationStep.REFUSED if expired else ConfirmationStep(asked_for)
    return _STEPS[stage]


_STEPS = {
    Stage.PREPARING: ConfirmationStep.PREPARING,
    Stage.ASKING: ConfirmationStep.PREPARING,
    Stage.AUTHORISED: ConfirmationStep.SIGNING,
    Stage.SIGNED: ConfirmationStep.SIGNING,
    Stage.REFUSED: ConfirmationStep.REFUSED,
    Stage.FAILED: ConfirmationStep.FAILED,
    Stage.DISCARDED: ConfirmationStep.NONE,
}
