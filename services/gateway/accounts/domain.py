"""Rules about users: who may be archived or demoted, what an address is compared by."""

from dataclasses import dataclass

from contracts.errors import ServiceError, invalid
from contracts.types import Role


@dataclass(frozen=True)
class UserState:
    """The state of a user that the rules need. ``last_admin``: no other active user is an admin with a key to manage users."""

    id: int
    role: Role
    last_admin: bool


def email_key(email: str) -> str:
    """Return the key that all spellings of an address share: mail providers do not tell upper from lower case."""
    return email.strip().casefold()


def check_archiving(user: UserState, caller_id: int) -> None:
    """Raises ServiceError unless the caller may archive the user."""
    if user.id == caller_id:
        raise ServiceError("invalid", "Cannot delete your own account")
    if user.last_admin:
        raise ServiceError("invalid", "The last admin cannot be removed.")


def check_role_change(user: UserState, role: Role) -> None:
    """Raises ServiceError when nobody could manage users any more."""
    if user.last_admin and role is not Role.ADMIN:
        raise invalid("The role of the last admin cannot be changed.", "role")


def not_authenticated() -> ServiceError:
    """Nobody's key, or none."""
    return ServiceError("unauthenticated", "Not authenticated")


def email_taken() -> ServiceError:
    """Two users cannot have one address."""
    return invalid("email has already been taken", "email", "has already been taken")
