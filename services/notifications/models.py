"""Tables of the notifications service."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from contracts.runtime.data.database import BigId, Json, UtcDateTime, metadata
from contracts.runtime.data.due_work.background import DueRow, Traced


class Base(DeclarativeBase):
    metadata = metadata()


_DUE = sa.text("state = 'due'")
_ERASED = sa.text("erased_at IS NOT NULL AND file_kept")
_TEST = sa.text("test")


class SubmissionRow(Base):
    """A submission that mails were asked for. Its row is locked while mails are added or erased, and it remembers the
    erasure: an event that comes after it makes no mail any more. ``erasure_untold``: submissions has yet to hear that all is
    gone."""

    __tablename__ = "submissions"

    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    erased_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    erasure_untold: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())


class KnownAdmins(Base):
    """One row, id 1, once the gateway has said who they are: they hear of providers that do not do what is needed."""

    __tablename__ = "admins"

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    emails: Mapped[list[str]] = mapped_column(Json)
    revision: Mapped[int] = mapped_column(sa.Integer)


class ReplacedLinkRow(Base):
    """A signing link that is no longer valid, by the digest of its slug: what comes late with it is not sent."""

    __tablename__ = "replaced_links"

    link_digest: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    submission_id: Mapped[int] = mapped_column(sa.ForeignKey("submissions.id"), index=True)


class OutgoingRow(DueRow, Traced):
    """A message to one recipient, sent and retried on its own. ``due`` is pending, ``done`` sent, ``parked`` failed.

    ``key`` says what it is, so that the same fact told twice makes one row. ``answer`` is the mail server's or the provider's
    last one. After ``expires_at`` it is not sent any more. ``link_digest`` is that of the signing link in it
    (``replaced_links``). ``test``: it is of test mode, and is kept for testers instead of being sent. ``erased_at``: address
    and content are gone.
    """

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    key: Mapped[str] = mapped_column(sa.Text, unique=True)
    kind: Mapped[str] = mapped_column(sa.Text)
    submission_id: Mapped[int | None] = mapped_column(sa.ForeignKey("submissions.id"))
    submitter_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    invitation_id: Mapped[str | None] = mapped_column(sa.Text)
    request_id: Mapped[str | None] = mapped_column(sa.Text)
    text: Mapped[str] = mapped_column(sa.Text)
    answer: Mapped[str | None] = mapped_column(sa.Text)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    link_digest: Mapped[str | None] = mapped_column(sa.Text)
    test: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    erased_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    @classmethod
    def may_be_retried(cls) -> sa.ColumnElement[bool]:
        """Of an erased one nothing is left to be sent, and one that has expired is of no use."""
        return sa.and_(cls.erased_at.is_(None), cls.expires_at.is_(None))


class MailRow(OutgoingRow, Base):
    """One mail to one recipient. ``files`` is JSON of MailedFile to attach; ``unattached`` holds the bodies with links
    instead, for a server that calls the mail too large. ``logo`` and ``first_page`` are the BlobRefs of the pictures that the
    HTML shows. ``file_kept`` until its file in the folder is gone, too.
    """

    __tablename__ = "mails"

    message_id: Mapped[str] = mapped_column(sa.Text)
    sender_name: Mapped[str] = mapped_column(sa.Text)
    to_name: Mapped[str] = mapped_column(sa.Text)
    to_address: Mapped[str] = mapped_column(sa.Text)
    reply_to: Mapped[list[str]] = mapped_column(Json)
    subject: Mapped[str] = mapped_column(sa.Text)
    html: Mapped[str] = mapped_column(sa.Text)
    links: Mapped[list[str]] = mapped_column(Json)
    files: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    unattached: Mapped[dict[str, str] | None] = mapped_column(Json)
    logo: Mapped[dict[str, Any] | None] = mapped_column(Json)
    first_page: Mapped[dict[str, Any] | None] = mapped_column(Json)
    file_kept: Mapped[bool] = mapped_column(sa.Boolean)

    __table_args__ = (
        sa.Index("ix_mails_due", "next_attempt_at", sqlite_where=_DUE, postgresql_where=_DUE),
        sa.Index("ix_mails_submission", "submission_id", "id"),
        sa.Index("ix_mails_test", "id", sqlite_where=_TEST, postgresql_where=_TEST),
        sa.Index("ix_mails_erased", "id", sqlite_where=_ERASED, postgresql_where=_ERASED),
        {"sqlite_autoincrement": True},
    )


class PhoneMessageRow(OutgoingRow, Base):
    """One message to one phone: an invitation by SMS, or a one-time code by the account's phone OTP webhook.

    ``text`` is what an SMS says; of a code there are only ``facts`` for the webhook and the seed. ``webhook`` is where it goes,
    sealed, until it is done.
    """

    __tablename__ = "phone_messages"

    to_phone: Mapped[str] = mapped_column(sa.Text)
    facts: Mapped[dict[str, Any]] = mapped_column(Json)
    webhook: Mapped[str | None] = mapped_column(sa.Text)

    __table_args__ = (
        sa.Index("ix_phone_messages_due", "next_attempt_at", sqlite_where=_DUE, postgresql_where=_DUE),
        sa.Index("ix_phone_messages_submission", "submission_id", "id"),
        sa.Index("ix_phone_messages_test", "id", sqlite_where=_TEST, postgresql_where=_TEST),
        {"sqlite_autoincrement": True},
    )
