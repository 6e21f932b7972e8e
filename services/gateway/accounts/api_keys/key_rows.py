"""The rows of API keys, within a transaction: which of a user are good, and what becomes of them when the first one changes.

A first key need not have a row: an older version that gives one writes none. What it would hold is known, and it is written
when there is something to note.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import not_found
from contracts.runtime.data.database import for_update, insert_into
from contracts.types import Role, iso
from services.gateway.accounts.api_keys import keys
from services.gateway.accounts.api_keys.keys import SealedKey
from services.gateway.models import ApiKeyRow, User
from services.gateway.rights import WHOLE, Rights, in_words, read_stored, stored

FIRST = "First key"


def rights(row: ApiKeyRow) -> Rights:
    """Return what the key of a row may do."""
    return WHOLE if is_first(row) else read_stored(row.scopes, row.expires_at, row.folders)


def stored_folders(rights_given: Rights) -> list[str] | None:
    """The folders of a key as they are stored."""
    return None if rights_given.folders is None else list(rights_given.folders)


def is_first(row: ApiKeyRow) -> bool:
    return row.key_hash == row.first_hash


def of_user(session: Session, user: User) -> list[ApiKeyRow]:
    """The good keys of a user, also expired ones: the first key, with or without a row in the database, then the others as they
    were made."""
    good = sa.select(ApiKeyRow).where(ApiKeyRow.user_id == user.id, ApiKeyRow.first_hash == user.api_key_hash)
    rows = list(session.scalars(good.order_by(ApiKeyRow.created_at, ApiKeyRow.id)))
    first = [row for row in rows if is_first(row)]
    if not first and keys.is_key(user.api_key_hash):
        first = [_first_row(user, created_at=None)]
    return [*first, *(row for row in rows if not is_first(row))]


def one_of_user(session: Session, user: User, key_id: str) -> ApiKeyRow:
    """Return a good key of a user. Raises ServiceError("not_found")."""
    for row in of_user(session, user):
        if row.id == key_id:
            return row
    raise not_found("Key")


def shown(row: ApiKeyRow) -> dict[str, Any]:
    """A key as the API shows it."""
    has = rights(row)
    return {
        "id": row.id,
        "name": row.name,
        "scopes": in_words(has.scopes),
        "folders": stored_folders(has),
        "expires_at": iso(has.expires_at) if has.expires_at else None,
        "last_used_at": iso(row.last_used_at) if row.last_used_at else None,
        "created_at": iso(row.created_at) if row.created_at else None,
        "first": is_first(row),
        "test": has.test,
    }


def give_first(session: Session, user: User, key: SealedKey, now: datetime) -> None:
    """Give a user, also one who is new, another first key: the one before is over, the user's other good keys stay."""
    before: str | None = user.api_key_hash
    user.api_key_hash, user.api_key_sealed = key.hash, key.sealed
    session.add(user)
    session.flush()
    mine = ApiKeyRow.user_id == user.id
    over = sa.or_(ApiKeyRow.key_hash.in_([before, key.hash]), ApiKeyRow.first_hash != before)
    session.execute(sa.delete(ApiKeyRow).where(mine, over))
    session.execute(sa.update(ApiKeyRow).where(mine).values(first_hash=key.hash))
    if keys.is_key(key.hash):
        session.add(_first_row(user, created_at=now))
        session.flush()


def add(session: Session, user: User, key_hash: str, name: str, rights_given: Rights, now: datetime) -> ApiKeyRow:
    """Give the user a key beside the first one."""
    row = ApiKeyRow(
        id=keys.id_of(key_hash),
        key_hash=key_hash,
        user_id=user.id,
        first_hash=user.api_key_hash,
        name=name,
        scopes=stored(rights_given),
        folders=stored_folders(rights_given),
        expires_at=rights_given.expires_at,
        created_at=now,
    )
    session.add(row)
    session.flush()
    return row


def remove_all(session: Session, user: User) -> None:
    """No key but the first is the user's any more, and none of an earlier life of the user comes back."""
    session.execute(sa.delete(ApiKeyRow).where(ApiKeyRow.user_id == user.id, ApiKeyRow.key_hash != user.api_key_hash))


def managing(session: Session, admins: Sequence[User]) -> dict[str, int]:
    """The keys of these admins that keys can be managed with, now and later: whose each is, by its hash."""
    owner_by_hash = {admin.api_key_hash: admin.id for admin in admins if keys.is_key(admin.api_key_hash)}
    more = (
        sa.select(ApiKeyRow)
        .join(User, User.id == ApiKeyRow.user_id)
        .where(
            User.role == Role.ADMIN.value,
            ApiKeyRow.first_hash == User.api_key_hash,
            ApiKeyRow.expires_at.is_(None),
            User.id.in_([admin.id for admin in admins]),
        )
    )
    return owner_by_hash | {row.key_hash: row.user_id for row in session.scalars(more) if rights(row).lasts_as_admin}


def note_use(session: Session, key_hash: str, now: datetime, before: datetime) -> None:
    """Note that a key is used at ``now``, unless that was noted after ``before``."""
    user = session.scalar(sa.select(User).where(User.api_key_hash == key_hash, User.archived_at.is_(None)))
    if user is not None:
        _have_first_row(session, user)
    due = sa.or_(ApiKeyRow.last_used_at.is_(None), ApiKeyRow.last_used_at <= before)
    session.execute(sa.update(ApiKeyRow).where(ApiKeyRow.key_hash == key_hash, due).values(last_used_at=now))


def take_over(session: Session, before: str, key: SealedKey) -> bool:
    """Store a key as it is under another KEY_ENCRYPTION_SECRET; it keeps its name, rights and times. False when nothing is
    stored under the hash ``before`` any more."""
    user = session.scalar(for_update(sa.select(User).where(User.api_key_hash == before)))
    if user is not None:
        _have_first_row(session, user)
        user.api_key_hash, user.api_key_sealed = key.hash, key.sealed
        session.flush()
        mine = (ApiKeyRow.user_id == user.id, ApiKeyRow.first_hash == before)
        session.execute(sa.update(ApiKeyRow).where(*mine).values(first_hash=key.hash))
    moved = session.execute(sa.update(ApiKeyRow).where(ApiKeyRow.key_hash == before).values(key_hash=key.hash))
    return bool(moved.rowcount)  # type: ignore[attr-defined]


def _have_first_row(session: Session, user: User) -> None:
    """Write the row of a first key that has none."""
    row = _first_row(user, created_at=None)
    values = {column.key: getattr(row, column.key) for column in ApiKeyRow.__table__.columns}
    session.execute(insert_into(session, ApiKeyRow).values(**values).on_conflict_do_nothing())


def _first_row(user: User, created_at: datetime | None) -> ApiKeyRow:
    return ApiKeyRow(
        id=keys.id_of(user.api_key_hash),
        key_hash=user.api_key_hash,
        user_id=user.id,
        first_hash=user.api_key_hash,
        name=FIRST,
        scopes=stored(WHOLE),
        created_at=created_at,
        operator=False,
    )
