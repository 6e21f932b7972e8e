"""The gateway's tables: users, their keys, the account settings, requests that may come again, what agents have prepared, and
what operators did."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from contracts.runtime.data.database import BigId, Json, UtcDateTime, metadata


class Base(DeclarativeBase):
    metadata = metadata()


class User(Base):
    """A user with their first API key.

    ``email_key`` is the address as it is compared: an archived user keeps it, so that adding the address again restores
    the user. ``api_key_hash`` finds the user of the first key; ``api_key_sealed`` is the key itself, encrypted (see ``keys``).
    The first key has all scopes and does not expire, as every key did that an older version gave: such a version, which may
    run beside this one, knows no other. Where the first key was deleted, what ``keys.no_key`` makes stands there.
    """

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    email: Mapped[str] = mapped_column(sa.Text)
    email_key: Mapped[str] = mapped_column(sa.Text, unique=True)
    first_name: Mapped[str] = mapped_column(sa.Text)
    last_name: Mapped[str | None] = mapped_column(sa.Text)
    role: Mapped[str] = mapped_column(sa.Text)
    password_hash: Mapped[str] = mapped_column(sa.Text)
    api_key_hash: Mapped[str] = mapped_column(sa.Text, unique=True)
    api_key_sealed: Mapped[bytes] = mapped_column(sa.LargeBinary)
    archived_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (
        sa.CheckConstraint("role IN ('admin', 'editor', 'viewer')", name="role"),
        {"sqlite_autoincrement": True},
    )


class ApiKeyRow(Base):
    """An API key: what is known of it, without the key.

    It is good while ``first_hash`` is the ``api_key_hash`` of its user. A first key has its own hash there. Of the others it
    is what the user's first key was when this version last said that they stay: an older version that gives the user another
    first key, or restores the user, knows nothing of them, and so ends them. ``scopes`` are words with blanks between
    (``rights``); those of a first key are all, whatever stands there. ``folders``: those that it is limited to, null for none.
    ``operator``: it opens the page ``/ops`` (``operators``).
    """

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    key_hash: Mapped[str] = mapped_column(sa.Text, unique=True)
    user_id: Mapped[int] = mapped_column(BigId, sa.ForeignKey("users.id"), index=True)
    first_hash: Mapped[str] = mapped_column(sa.Text)
    name: Mapped[str] = mapped_column(sa.Text)
    scopes: Mapped[str] = mapped_column(sa.Text)
    folders: Mapped[list[str] | None] = mapped_column(Json)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    operator: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())


class AccountRow(Base):
    """One row, id 1: what was changed of the account settings; the rest comes from the environment.

    ``first_admin`` is the hash of the ADMIN_EMAIL and ADMIN_API_KEY that were applied last: a key that was rotated since
    must not come back at the next start. ``admins_told`` are the admins that the other services were told of last.
    ``providers_known`` is what was last found out about the providers (``provider_checks``).
    """

    __tablename__ = "account"

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    changes: Mapped[dict[str, Any]] = mapped_column(Json)
    first_admin: Mapped[str | None] = mapped_column(sa.Text)
    admins_told: Mapped[list[str] | None] = mapped_column(Json)
    admins_revision: Mapped[int] = mapped_column(sa.Integer, default=0, server_default="0")
    providers_known: Mapped[dict[str, Any] | None] = mapped_column(Json)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)


class RepeatRow(Base):
    """An Idempotency-Key (see ``repeats``): whose, what was asked under it, and the first answer, sealed.

    ``answer`` is null while the request is under way, or when its process died. ``ignored`` are the keys of the request that
    were ignored, sealed too; null where there were none.
    """

    __tablename__ = "repeats"

    caller: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    key_hash: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    fingerprint: Mapped[str] = mapped_column(sa.Text)
    request_id: Mapped[str] = mapped_column(sa.Text)
    answer: Mapped[bytes | None] = mapped_column(sa.LargeBinary)
    claimed_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    ignored: Mapped[bytes | None] = mapped_column(sa.LargeBinary)


class PreparedRow(Base):
    """A submission that an agent has prepared for a person to send (see ``prepared``).

    ``id`` is the SHA-256 of the token in its link, ``key_id`` and ``agent`` say who prepared it, ``content`` is the very
    request, sealed, and ``request_id`` what it is sent under, however often: so there is one effect. ``sender`` is the user
    in whose name it is sent, sealed, from ``confirmed_at`` on. ``ended`` says why it will not be sent.
    """

    __tablename__ = "prepared"

    id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    user_id: Mapped[int] = mapped_column(BigId, sa.ForeignKey("users.id"), index=True)
    key_id: Mapped[str] = mapped_column(sa.Text)
    agent: Mapped[dict[str, Any]] = mapped_column(Json)
    digest: Mapped[str] = mapped_column(sa.Text)
    request_id: Mapped[str] = mapped_column(sa.Text)
    content: Mapped[bytes] = mapped_column(sa.LargeBinary)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    confirmed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    sender: Mapped[bytes | None] = mapped_column(sa.LargeBinary)
    submission_id: Mapped[int | None] = mapped_column(BigId)
    ended: Mapped[str | None] = mapped_column(sa.Text)


class OperatorSessionRow(Base):
    """An operator's session at ``/ops``, by the SHA-256 of what their browser shows of it, and the key that it was begun
    with."""

    __tablename__ = "operator_sessions"

    token_hash: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    key_hash: Mapped[str] = mapped_column(sa.Text)
    begun_at: Mapped[datetime] = mapped_column(UtcDateTime)
    used_at: Mapped[datetime] = mapped_column(UtcDateTime)


class OperatorActRow(Base):
    """What an operator did at ``/ops``: with which key, from which address, to what. ``outcome`` is null until it is known, and
    stays so where the process died meanwhile."""

    __tablename__ = "operator_acts"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    key_id: Mapped[str] = mapped_column(sa.Text)
    key_name: Mapped[str] = mapped_column(sa.Text)
    user_id: Mapped[int] = mapped_column(BigId)
    address: Mapped[str | None] = mapped_column(sa.Text)
    action: Mapped[str] = mapped_column(sa.Text)
    subject: Mapped[str] = mapped_column(sa.Text)
    outcome: Mapped[str | None] = mapped_column(sa.Text)

    __table_args__ = ({"sqlite_autoincrement": True},)
