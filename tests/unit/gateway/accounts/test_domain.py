"""Users are told apart by their addresses, and one of them is left who can manage the others."""

import pytest

from contracts.errors import ServiceError
from contracts.types import Role
from services.gateway.accounts import domain
from services.gateway.accounts.domain import UserState

ADMIN = UserState(id=7, role=Role.ADMIN, last_admin=False)
LAST_ADMIN = UserState(id=8, role=Role.ADMIN, last_admin=True)
EDITOR = UserState(id=9, role=Role.EDITOR, last_admin=False)


@pytest.mark.parametrize("spelling", ["Ana@Example.COM", " ana@example.com\t", "ANA@EXAMPLE.COM"])
def test_an_address_is_one_however_it_is_spelled(spelling: str) -> None:
    assert domain.email_key(spelling) == domain.email_key("ana@example.com") != domain.email_key("ann@example.com")


@pytest.mark.parametrize("user", [ADMIN, EDITOR])
def test_others_may_be_archived(user: UserState) -> None:
    domain.check_archiving(user, caller_id=1)


@pytest.mark.parametrize(
    ("user", "caller_id", "message"),
    [
        (ADMIN, ADMIN.id, "Cannot delete your own account"),
        (LAST_ADMIN, LAST_ADMIN.id, "Cannot delete your own account"),
        (LAST_ADMIN, 1, "The last admin cannot be removed."),
    ],
)
def test_nobody_removes_themselves_or_the_last_admin(user: UserState, caller_id: int, message: str) -> None:
    with pytest.raises(ServiceError) as refusal:
        domain.check_archiving(user, caller_id)
    assert (refusal.value.code, refusal.value.message) == ("invalid", message)


@pytest.mark.parametrize(
    ("user", "role"),
    [(ADMIN, Role.EDITOR), (ADMIN, Role.ADMIN), (LAST_ADMIN, Role.ADMIN), (EDITOR, Role.ADMIN), (EDITOR, Role.VIEWER)],
)
def test_a_role_may_change_while_an_admin_is_left(user: UserState, role: Role) -> None:
    domain.check_role_change(user, role)


@pytest.mark.parametrize("role", [Role.EDITOR, Role.VIEWER])
def test_the_last_admin_stays_one(role: Role) -> None:
    with pytest.raises(ServiceError) as refusal:
        domain.check_role_change(LAST_ADMIN, role)
    assert (refusal.value.code, refusal.value.details[0]["field"]) == ("invalid", "role")


def test_an_address_that_somebody_has_is_refused_by_its_field() -> None:
    refusal = domain.email_taken()
    assert (refusal.code, refusal.details) == ("invalid", [{"field": "email", "reason": "has already been taken"}])


def test_nobody_s_key_is_told_no_more_than_that() -> None:
    refusal = domain.not_authenticated()
    assert (refusal.code, refusal.message, refusal.details) == ("unauthenticated", "Not authenticated", [])
