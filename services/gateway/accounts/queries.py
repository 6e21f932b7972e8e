"""Reads: users as the API shows them, their keys, the user of a key, the account settings."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel
from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.errors import ServiceError, not_found
from contracts.runtime.data.stored import reading
from contracts.types import Account, Actor, Reminders, Role, iso
from services.gateway.accounts import domain, phone_otp, providers
from services.gateway.accounts.api_keys import key_rows
from services.gateway.accounts.api_keys.keys import SealedKey, is_key
from services.gateway.models import AccountRow, ApiKeyRow, User
from services.gateway.rights import WHOLE, Rights, read_stored


def admins_untold(session: Session) -> bool:
    """Are the active admins others than those the other services were told of last?"""
    return admins(session) != session.scalar(sa.select(AccountRow.admins_told).where(AccountRow.id == 1))


def admin_with(session: Session, email: str) -> Actor:
    """Return the admin with this address. Raises ServiceError("not_found"), which names those that there are."""
    user = active_actor_with(session, email)
    if user is None or user.role is not Role.ADMIN:
        addresses = ", ".join(admins(session))
        raise ServiceError("not_found", f"no admin has the address {email}; there are: {addresses or 'none'}")
    return user


def admins(session: Session) -> list[str]:
    """The addresses of the active admins."""
    active = sa.select(User.email).where(User.role == Role.ADMIN.value, User.archived_at.is_(None))
    return list(session.scalars(active.order_by(User.id)))


def users(session: Session) -> list[dict[str, Any]]:
    """The active users, ascending by id."""
    chosen = sa.select(User).where(User.archived_at.is_(None)).order_by(User.id)
    return [public_user(user) for user in session.scalars(chosen)]


def user(session: Session, user_id: int) -> dict[str, Any]:
    """An active user; ServiceError when there is none."""
    return public_user(_active(session, user_id))


def sealed_key(session: Session, user_id: int) -> tuple[dict[str, Any], SealedKey]:
    """An active user with the first key as it is stored; ServiceError when the user has none."""
    user = _active(session, user_id)
    if not is_key(user.api_key_hash):
        raise not_found("API key")
    return public_user(user), SealedKey(user.api_key_hash, user.api_key_sealed)


def user_keys(session: Session, user_id: int) -> list[dict[str, Any]]:
    """The API keys of an active user; ServiceError when there is none."""
    return [key_rows.shown(row) for row in key_rows.of_user(session, _active(session, user_id))]


def user_key(session: Session, user_id: int, key_id: str) -> dict[str, Any]:
    """Return an API key of an active user; ServiceError when there is none."""
    return key_rows.shown(key_rows.one_of_user(session, _active(session, user_id), key_id))


@dataclass(frozen=True)
class KnownKey:
    """An API key that was found: whose it is, and what it may do. ``id`` is what its row is called by, None where it has none.
    ``first``: the user's first key."""

    id: str | None
    actor: Actor
    rights: Rights
    last_used_at: datetime | None
    first: bool


_HASH = sa.bindparam("key_hash", type_=sa.Text())
_ACTOR = (User.id, User.role, User.email, User.first_name, User.last_name)
KEY_BY_HASH = (
    sa.select(ApiKeyRow.id, *_ACTOR, ApiKeyRow.scopes, ApiKeyRow.folders, ApiKeyRow.expires_at, ApiKeyRow.last_used_at)
    .join(User, sa.and_(User.id == ApiKeyRow.user_id, User.api_key_hash == ApiKeyRow.first_hash))
    .where(ApiKeyRow.key_hash == _HASH, ApiKeyRow.key_hash != ApiKeyRow.first_hash, User.archived_at.is_(None))
).union_all(
    sa.select(ApiKeyRow.id, *_ACTOR, sa.null(), sa.null(), sa.null(), ApiKeyRow.last_used_at)
    .outerjoin(ApiKeyRow, ApiKeyRow.key_hash == User.api_key_hash)
    .where(User.api_key_hash == _HASH, User.archived_at.is_(None))
)
"""The columns of ``as_known``. First keys are found by their user: an older version that gives one writes no ``ApiKeyRow``."""


def known_key(session: Session, key_hash: str) -> KnownKey | None:
    """Return the key with its user, also when it has expired; None for nobody's and for an archived user's."""
    row = session.execute(KEY_BY_HASH, {"key_hash": key_hash}).first()
    return as_known(*row) if row else None


def active_actor(session: Session, user_id: int) -> Actor | None:
    """Return the active user with this id, or None."""
    user = session.get(User, user_id)
    if user is None or user.archived_at is not None:
        return None
    return as_actor(user.id, user.role, user.email, user.first_name, user.last_name)


def active_actor_with(session: Session, email: str) -> Actor | None:
    """Return the active user with this e-mail address, or None."""
    mine = sa.select(User.id).where(User.email_key == domain.email_key(email), User.archived_at.is_(None))
    user_id = session.scalar(mine)
    return None if user_id is None else active_actor(session, user_id)


def user_with(session: Session, email: str) -> dict[str, Any] | None:
    """The user with this address, archived or not; None when there is none."""
    user = session.scalar(sa.select(User).where(User.email_key == domain.email_key(email)).order_by(User.id).limit(1))
    return None if user is None else public_user(user)


def as_actor(user_id: int, role: str, email: str, first_name: str, last_name: str | None) -> Actor:
    """An actor of the columns of a user."""
    name = f"{first_name} {last_name or ''}".strip()
    return Actor(
        user_id=user_id, role=Role(role), email=email, name=name, first_name=first_name or None, last_name=last_name
    )


def as_known(*row: Any) -> KnownKey:
    """A key of the columns of ``KEY_BY_HASH``, also as SQLite itself gives them."""
    key_id, *of_user, scopes, folders, expires_at, last_used_at = row
    first = scopes is None
    return KnownKey(
        key_id,
        as_actor(*of_user),
        WHOLE if first else read_stored(scopes, _moment(expires_at), _names(folders)),
        _moment(last_used_at),
        first,
    )


def _names(stored: list[str] | str | None) -> list[str] | None:
    names: list[str] | None = json.loads(stored) if isinstance(stored, str) else stored
    return names


def _moment(stored: datetime | str | None) -> datetime | None:
    moment = datetime.fromisoformat(stored) if isinstance(stored, str) else stored
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


ACCOUNT_CHANGES = sa.select(AccountRow.changes).where(AccountRow.id == sa.literal_column("1"))


def account(session: Session, defaults: Account) -> Account:
    """The account settings: the environment's defaults with what was changed."""
    return with_changes(defaults, session.scalar(ACCOUNT_CHANGES) or {})


def with_changes(defaults: Account, changes: dict[str, Any]) -> Account:
    """``defaults`` with ``changes``, which were checked when they were stored. Raises ServiceError when they are odd."""
    with reading(Account, 1):
        settings = {name: value for name, value in changes.items() if name not in _SEALED}
        if changes.get(phone_otp.NAME):
            settings["phone_codes_available"] = True
        parsed = {name: model.model_validate(changes[name]) for name, model in _PARTS.items() if changes.get(name)}
        return defaults.model_copy(update={**settings, **parsed})


def stored_settings(session: Session) -> dict[str, Any]:
    """Return what was changed of the account settings, as it is stored. Raises ServiceError when the account's row is odd."""
    with reading(Account, 1):
        return dict(session.scalar(ACCOUNT_CHANGES) or {})


def stored_phone_otp_webhook(session: Session) -> str | None:
    """The account's phone OTP webhook as it is stored. Raises ServiceError when the account's row is odd."""
    webhook: str | None = stored_settings(session).get(phone_otp.NAME)
    return webhook


def providers_known(session: Session) -> dict[str, Any]:
    """Return what was last found out about the account's providers."""
    return session.scalar(sa.select(AccountRow.providers_known).where(AccountRow.id == 1)) or {}


_SEALED = (phone_otp.NAME, *providers.NAMES)
_PARTS: dict[str, type[BaseModel]] = {"logo": BlobRef, "stamp": BlobRef, "reminders": Reminders}


def has_admin(session: Session) -> bool:
    """Is there anybody who can manage users?"""
    chosen = sa.select(User.id).where(User.role == Role.ADMIN.value, User.archived_at.is_(None)).limit(1)
    return session.scalar(chosen) is not None


def public_user(user: User) -> dict[str, Any]:
    """A user as the API shows it (specification 2.1). A name that is not known is null, as where other records name them."""
    return {
        "id": user.id,
        "email": user.email,
        "first_name": user.first_name or None,
        "last_name": user.last_name,
        "role": user.role,
        "created_at": iso(user.created_at),
        "updated_at": iso(user.updated_at),
    }


def _active(session: Session, user_id: int) -> User:
    user = session.get(User, user_id)
    if user is None or user.archived_at is not None:
        raise not_found("User")
    return user
