"""Who may confirm what an agent has prepared."""

import pytest

from contracts.errors import ServiceError
from contracts.languages.saying import language_for
from contracts.types import Actor, Role
from services.gateway.pages.answering import refusals
from services.gateway.prepared import rows
from services.gateway.prepared.rules import check_confirming, check_preparing, sends_itself
from services.gateway.rights import WHOLE, CallersKey, Rights, Scope

OWNER, OTHER = 7, 8
AGENTS = "agents key"


def key(*scopes: Scope, id_: str = "own key", first: bool = False) -> CallersKey:
    return CallersKey(id_, "hash", Rights(frozenset(scopes)), first)


def actor(user_id: int = OWNER, role: Role = Role.EDITOR) -> Actor:
    return Actor(user_id=user_id, role=role, email="x@example.com")


def test_only_a_key_that_was_made_for_it_sends_by_itself() -> None:
    assert sends_itself(key(Scope.READ, Scope.AGENT_SEND))
    assert not sends_itself(key(Scope.READ, Scope.SEND, Scope.ADMIN))
    assert not sends_itself(CallersKey("first", "hash", WHOLE, first=True))


@pytest.mark.parametrize(
    ("who", "shown"),
    [
        (actor(), key(Scope.SEND)),
        (actor(role=Role.ADMIN), key(Scope.SEND, Scope.READ)),
        (actor(OTHER, Role.ADMIN), key(Scope.SEND)),
        (actor(), CallersKey("first", "hash", WHOLE, first=True)),
    ],
)
def test_who_confirms(who: Actor, shown: CallersKey) -> None:
    check_confirming(who, shown, prepared_for=OWNER, prepared_with=AGENTS, in_test=False)


@pytest.mark.parametrize("in_test", [True, False])
def test_nothing_goes_from_one_mode_into_the_other(in_test: bool) -> None:
    def confirmed(test: bool) -> None:
        shown = CallersKey("3", "hash", Rights(frozenset({Scope.SEND}), test=test))
        check_confirming(actor(), shown, prepared_for=OWNER, prepared_with=AGENTS, in_test=in_test)

    confirmed(in_test)
    with pytest.raises(
        ServiceError, match=r"prepared (live: confirm with a live|in test mode: confirm with a test) key"
    ) as refused:
        confirmed(not in_test)
    assert in_german(refused.value)


@pytest.mark.parametrize(
    ("who", "shown", "code", "sentence"),
    [
        (actor(OTHER), key(Scope.SEND), "not_found", "Prepared submission not found"),
        (actor(OTHER, Role.VIEWER), key(Scope.SEND), "not_found", "Prepared submission not found"),
        (actor(), key(Scope.SEND, id_=AGENTS), "forbidden", "the key that the agent itself uses"),
        (actor(), CallersKey(AGENTS, "hash", WHOLE, first=True), "forbidden", "the key that the agent itself uses"),
        (actor(OTHER, Role.ADMIN), key(Scope.SEND, id_=AGENTS), "forbidden", "the key that the agent itself uses"),
        (actor(), key(Scope.SEND, Scope.AGENT_SEND), "forbidden", "made for agents"),
        (actor(role=Role.VIEWER), key(Scope.SEND), "forbidden", "Not authorized"),
        (actor(), key(Scope.READ, Scope.ADMIN), "forbidden", "does not have the scope send"),
    ],
)
def test_who_does_not(who: Actor, shown: CallersKey, code: str, sentence: str) -> None:
    with pytest.raises(ServiceError, match=sentence) as refused:
        check_confirming(who, shown, prepared_for=OWNER, prepared_with=AGENTS, in_test=False)
    assert refused.value.code == code
    assert code == "not_found" or in_german(refused.value), "a person reads it on the page"


@pytest.mark.parametrize("role", list(Role))
def test_whose_key_could_prepare(role: Role) -> None:
    every = key(*Scope).rights
    if role is not Role.VIEWER:
        check_preparing(role, every)
        check_preparing(role, key(Scope.READ).rights)
    for rights in [every] if role is Role.VIEWER else [key().rights, key(*(set(Scope) - {Scope.READ})).rights]:
        with pytest.raises(ServiceError, match="may not prepare it any more") as refused:
            check_preparing(role, rights)
        assert refused.value.code == "conflict"
        assert in_german(refused.value)


def in_german(error: ServiceError) -> bool:
    return refusals.in_language(error.message, language_for("de").section(refusals.SECTION)) is not None


@pytest.mark.parametrize("why", [rows.CHANGED, rows.WITHDRAWN])
def test_why_it_has_ended_is_said_in_each_language(why: str) -> None:
    assert in_german(rows.ended(why))
