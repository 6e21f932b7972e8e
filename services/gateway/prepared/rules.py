"""Who may send what an agent has prepared. Pure rules."""

from contracts.errors import ServiceError, not_found
from contracts.types import Actor, Role
from services.gateway import rights
from services.gateway.rights import CallersKey, Rights, Scope

NOUN = "Prepared submission"


def sends_itself(key: CallersKey) -> bool:
    """Tell whether an agent with this key sends without being confirmed. A first key has every scope without anybody having
    chosen so: whoever wants an agent to send makes a key for it."""
    return Scope.AGENT_SEND in key.rights.scopes and not key.first


def check_preparing(role: Role, rights: Rights) -> None:
    """Raises ServiceError("conflict") unless a key could prepare a submission now, as it could when it did."""
    if role is Role.VIEWER or Scope.READ not in rights.scopes:
        raise narrowed()


def narrowed() -> ServiceError:
    """Return the refusal of what was prepared with a key that has had its rights taken away since."""
    return ServiceError("conflict", "The key that this submission was prepared with may not prepare it any more.")


def check_confirming(actor: Actor, key: CallersKey, *, prepared_for: int, prepared_with: str, in_test: bool) -> None:
    """Raises ServiceError unless the user may confirm with this key what an agent has prepared for the user ``prepared_for``
    with the key ``prepared_with``, ``in_test`` mode or live: nothing goes from one mode into the other. To strangers it is not
    there."""
    if actor.user_id != prepared_for and actor.role is not Role.ADMIN:
        raise not_found(NOUN)
    if key.id == prepared_with:
        raise ServiceError(
            "forbidden",
            "This is the key that the agent itself uses: confirm with another one, which the agent does not have.",
        )
    if sends_itself(key):
        raise ServiceError("forbidden", "This key was made for agents (agent:send): confirm with one of your own.")
    if actor.role is Role.VIEWER:
        raise ServiceError("forbidden", "Not authorized")
    rights.check_scope(key.rights, frozenset({Scope.SEND}))
    if key.rights.test != in_test:
        mode, kind = ("in test mode", "test") if in_test else ("live", "live")
        raise ServiceError("forbidden", f"This submission was prepared {mode}: confirm with a {kind} key.")
