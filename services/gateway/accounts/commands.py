"""Change users, their keys and the account settings. One function per use case, each in one transaction."""

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from contracts.errors import invalid, not_found
from contracts.events import ADMINS_CHANGED, Admins
from contracts.runtime.bus.outbox import emit
from contracts.runtime.data.database import for_update
from contracts.types import Account, Role
from services.gateway import rights
from services.gateway.accounts import domain, phone_otp, providers, queries
from services.gateway.accounts.api_keys import key_rows, keys
from services.gateway.accounts.api_keys.keys import KeyRing, SealedKey
from services.gateway.accounts.queries import public_user
from services.gateway.models import AccountRow, ApiKeyRow, User
from services.gateway.rights import WHOLE, CallersKey, Rights

_REVISIONS_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
MOST_KEYS = 100
"""Keys of a user beside the first one."""


@dataclass(frozen=True)
class NewUser:
    email: str
    first_name: str = ""
    last_name: str | None = None
    role: Role = Role.ADMIN


@dataclass(frozen=True)
class KeyChange:
    """What is to become of a key; None stays as it is."""

    name: str | None = None
    rights: Callable[[Rights], Rights] = lambda before: before


def create_user(
    session: Session, new: NewUser, password_hash: str, key: SealedKey, now: datetime, by: CallersKey | None = None
) -> dict[str, Any]:
    """Add a user, or restore the archived one of that address with these values and this key.

    The key is the user's first one, but when the key ``by`` that asks has less: then the user has no first key, and this one
    has as little.
    """
    rights_given = _rights_now(session, by, now)
    user = session.scalar(for_update(sa.select(User).where(User.email_key == domain.email_key(new.email))))
    if user is not None and user.archived_at is None:
        raise domain.email_taken()
    if user is None:
        user = User(email_key=domain.email_key(new.email), created_at=now)
    else:
        key_rows.remove_all(session, user)
    user.email, user.first_name, user.last_name, user.role = new.email, new.first_name, new.last_name, new.role.value
    user.password_hash, user.archived_at, user.updated_at = password_hash, None, now
    try:
        key_rows.give_first(session, user, key if rights_given == WHOLE else keys.no_key(), now)
    except IntegrityError:
        raise domain.email_taken() from None
    if rights_given != WHOLE:
        key_rows.add(session, user, key.hash, "Key of the account", rights_given, now)
    return public_user(user)


def locked_user(session: Session, user_id: int) -> dict[str, Any]:
    """Return the active user as the API shows them; nobody else changes them until the transaction ends."""
    return public_user(_locked(session, user_id)[0])


def lock_account(session: Session) -> None:
    """Have nobody else change the account settings until the transaction ends."""
    session.scalars(for_update(sa.select(AccountRow).where(AccountRow.id == 1))).one()


def update_user(session: Session, user_id: int, changes: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Change what is in ``changes``: ``email``, ``first_name``, ``last_name``, ``role``, ``password_hash``."""
    user, state = _locked(session, user_id)
    if "role" in changes:
        domain.check_role_change(state, Role(changes["role"]))
    if "email" in changes:
        user.email_key = domain.email_key(changes["email"])
    for name, value in changes.items():
        setattr(user, name, value)
    user.updated_at = now
    _save(session, user)
    return public_user(user)


def archive_user(session: Session, user_id: int, caller_id: int, now: datetime) -> dict[str, Any]:
    """The user disappears and all their keys stop working; the row stays, for restoring and for what the user made."""
    user, state = _locked(session, user_id)
    domain.check_archiving(state, caller_id)
    user.archived_at = user.updated_at = now
    key_rows.remove_all(session, user)
    return public_user(user)


def rotate_api_key(
    session: Session, user_id: int, key: SealedKey, now: datetime, by: CallersKey | None = None
) -> dict[str, Any]:
    """Another first key; the old one finds nobody from the moment of the commit."""
    rights.check_giving(_rights_now(session, by, now), WHOLE)
    user, _ = _locked(session, user_id)
    user.updated_at = now
    key_rows.give_first(session, user, key, now)
    return public_user(user)


def create_key(
    session: Session,
    user_id: int,
    key_hash: str,
    name: str,
    rights_given: Rights,
    now: datetime,
    by: CallersKey | None = None,
) -> dict[str, Any]:
    """Give a user a key beside the first one, with no more rights than those of the key that asks."""
    rights.check_expiry(rights_given.expires_at, now)
    rights.check_scopes_of_folders(rights_given)
    rights.check_giving(_rights_now(session, by, now), rights_given)
    user, _ = _locked(session, user_id)
    if sum(not key_rows.is_first(row) for row in key_rows.of_user(session, user)) >= MOST_KEYS:
        raise invalid(f"This user has {MOST_KEYS} keys beside the first one. Delete a key that is not needed.")
    return key_rows.shown(key_rows.add(session, user, key_hash, name, rights_given, now))


def update_key(session: Session, user_id: int, key_id: str, change: KeyChange, now: datetime) -> dict[str, Any]:
    """Rename a key, or take rights away from it."""
    user, _ = _locked(session, user_id)
    row = key_rows.one_of_user(session, user, key_id)
    before = key_rows.rights(row)
    after = change.rights(before)
    if after.expires_at != before.expires_at:
        rights.check_expiry(after.expires_at, now)
    rights.check_limiting(before, after, first=key_rows.is_first(row))
    rights.check_scopes_of_folders(after)
    _check_one_is_left(session, row, after)
    row.name = change.name or row.name
    row.scopes, row.folders, row.expires_at = rights.stored(after), key_rows.stored_folders(after), after.expires_at
    session.add(row)
    session.flush()
    return key_rows.shown(row)


def locked_key(session: Session, user_id: int, key_id: str) -> dict[str, Any]:
    """Return a key as the API shows it; nobody else changes it until the transaction ends."""
    user, _ = _locked(session, user_id)
    return key_rows.shown(key_rows.one_of_user(session, user, key_id))


def remove_key(session: Session, user_id: int, key_id: str, now: datetime) -> dict[str, Any]:
    """The key finds nobody from the moment of the commit. The key as it was."""
    user, _ = _locked(session, user_id)
    row = key_rows.one_of_user(session, user, key_id)
    _check_one_is_left(session, row, None)
    shown = key_rows.shown(row)
    if key_rows.is_first(row):
        key_rows.give_first(session, user, keys.no_key(), now)
    else:
        session.delete(row)
        session.flush()
    return shown


def change_account(
    session: Session,
    defaults: Account,
    changes: dict[str, Any],
    now: datetime,
    *decided: tuple[str, Callable[[Any], Any]],
) -> Account:
    """Change the settings in ``changes``, which were checked; None takes one back to its default. The account after it.

    ``decided``: settings whose new value depends on the stored one, with the function that makes it.
    """
    account = session.scalars(for_update(sa.select(AccountRow).where(AccountRow.id == 1))).one()
    changes = {**changes, **{name: decide(account.changes.get(name)) for name, decide in decided}}
    settings = {name: value for name, value in {**account.changes, **changes}.items() if value is not None}
    if settings != account.changes:
        account.changes, account.updated_at = settings, now
    return queries.with_changes(defaults, settings)


def ensure_first_admin(
    session: Session,
    email: str,
    key: SealedKey,
    password_hash: Callable[[], str],
    now: datetime,
    *,
    other_hashes: Sequence[str] = (),
) -> bool:
    """Make the user of ADMIN_EMAIL an admin with ADMIN_API_KEY. True when something was changed. ``password_hash`` is called
    for a new user only: it takes 0.2 s of a processor.

    The same pair is applied once only: what was done to that user since (a new key, another role, archived) stays. The same
    pair is also one whose key has one of ``other_hashes``, of another KEY_ENCRYPTION_SECRET.
    """
    account = session.scalars(for_update(sa.select(AccountRow).where(AccountRow.id == 1))).one()
    fingerprint, *other_fingerprints = (_fingerprint(email, key_hash) for key_hash in (key.hash, *other_hashes))
    if account.first_admin in other_fingerprints:
        account.first_admin = fingerprint
    if account.first_admin == fingerprint:
        return False
    user = session.scalar(for_update(sa.select(User).where(User.email_key == domain.email_key(email))))
    if user is None:
        user = User(email=email, email_key=domain.email_key(email), first_name="", created_at=now)
        user.password_hash = password_hash()
    if user.archived_at is not None:
        key_rows.remove_all(session, user)
    user.role, user.archived_at, user.updated_at = Role.ADMIN.value, None, now
    account.first_admin, account.updated_at = fingerprint, now
    try:
        key_rows.give_first(session, user, key, now)
    except IntegrityError:
        raise invalid("ADMIN_API_KEY is already the key of another user") from None
    return True


def take_over(session: Session, ring: KeyRing) -> int:
    """Take over what is kept under the previous KEY_ENCRYPTION_SECRET and can be read again: first keys, and settings of the
    account. How many there were. Other keys are taken over when they are used."""
    count = 0
    for user in session.scalars(sa.select(User).order_by(User.id)).all():
        stored = SealedKey(user.api_key_hash, user.api_key_sealed)
        if keys.is_key(stored.hash) and (fresh := ring.taken_over(stored)) is not None:
            count += key_rows.take_over(session, stored.hash, fresh)
    account = session.scalars(for_update(sa.select(AccountRow).where(AccountRow.id == 1))).one()
    resealed = {}
    for name in (phone_otp.NAME, *providers.NAMES):
        sealed = account.changes.get(name)
        if sealed is not None and (opened := ring.answer_taken_over(base64.b64decode(sealed), name)) is not None:
            resealed[name] = base64.b64encode(opened).decode()
    if resealed:
        account.changes = {**account.changes, **resealed}
    return count + len(resealed)


def _fingerprint(email: str, key_hash: str) -> str:
    return hashlib.sha256(f"{domain.email_key(email)}:{key_hash}".encode()).hexdigest()


def tell_admins(session: Session, now: datetime) -> None:
    """Tell the other services who the admins are, when that has changed since they were told last."""
    account = session.scalars(for_update(sa.select(AccountRow).where(AccountRow.id == 1))).one()
    emails = queries.admins(session)
    if emails == account.admins_told:
        return
    account.admins_told = emails
    # By the clock as well: after a restore the next revision must be above those that were told before.
    account.admins_revision = max(account.admins_revision + 1, int((now - _REVISIONS_BEGAN).total_seconds()))
    _emit_admins(session, account)


def tell_admins_again(session: Session) -> None:
    """For services that missed it: the gateway serves no calls, so that nobody can ask it what it told."""
    account = session.scalars(sa.select(AccountRow).where(AccountRow.id == 1)).one()
    if account.admins_told is not None:
        _emit_admins(session, account)


def _emit_admins(session: Session, account: AccountRow) -> None:
    admins = Admins(emails=account.admins_told or [], revision=account.admins_revision)
    emit(session, ADMINS_CHANGED, admins, subject="account")


def _locked(session: Session, user_id: int) -> tuple[User, domain.UserState]:
    """The active user for a change. All admins are locked with it, so that two cannot demote each other at once."""
    chosen = sa.select(User).where(
        User.archived_at.is_(None), sa.or_(User.id == user_id, User.role == Role.ADMIN.value)
    )
    rows = {user.id: user for user in session.scalars(for_update(chosen.order_by(User.id)))}
    if (user := rows.get(user_id)) is None:
        raise not_found("User")
    admins = [other for other in rows.values() if other.role == Role.ADMIN.value]
    is_last = user in admins and not set(key_rows.managing(session, admins).values()) - {user.id}
    return user, domain.UserState(user.id, Role(user.role), last_admin=is_last)


def _rights_now(session: Session, by: CallersKey | None, now: datetime) -> Rights:
    """The rights of the key that asks, as they are in this transaction: it may have been deleted or limited since it was looked
    up, while the body of its request was still coming. Without a key it is the operator who asks."""
    if by is None:
        return WHOLE
    known_key = queries.known_key(session, by.hash)
    if known_key is None or known_key.rights.expired(now):
        raise domain.not_authenticated()
    return known_key.rights


def _check_one_is_left(session: Session, row: ApiKeyRow, after: Rights | None) -> None:
    admins = list(session.scalars(sa.select(User).where(User.archived_at.is_(None), User.role == Role.ADMIN.value)))
    managing = key_rows.managing(session, admins)
    if row.key_hash in managing:
        rights.check_one_is_left(key_rows.rights(row), after, other_keys=len(managing) - 1)


def _save(session: Session, user: User) -> None:
    session.add(user)
    try:
        session.flush()
    except IntegrityError:
        raise domain.email_taken() from None
