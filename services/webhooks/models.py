"""Tables of the webhooks service: the event log, the webhooks, what was delivered and how."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, object_session

from contracts.events import SUBMISSION_ERASED
from contracts.runtime.data.database import BigId, Json, UtcDateTime, metadata
from contracts.runtime.data.due_work.background import DueRow, Traced


class Base(DeclarativeBase):
    metadata = metadata()


_DUE = sa.text("state = 'due'")
_LEASED = sa.text("leased_by IS NOT NULL")
_TEST = sa.text("test")


class Webhook(Base):
    """A receiver. ``failing_since`` is the first failure after the last success. ``owner_email`` made it and hears when
    it is disabled as long as the gateway has not said who the admins are. ``former_secrets`` (each a FormerSecret) sign beside
    ``signing_secret`` until their time is over. ``payload``: ``full`` or ``thin``. ``file_link_minutes``: for
    so long after an event was planned for it, the links in that are good without a key; None: never. ``test``: it hears of test
    mode alone, others of live mode alone."""

    __tablename__ = "webhooks"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    url: Mapped[str] = mapped_column(sa.Text)
    events: Mapped[list[str]] = mapped_column(Json)
    secret: Mapped[dict[str, str]] = mapped_column(Json)
    signing_secret: Mapped[str] = mapped_column(sa.Text)
    former_secrets: Mapped[list[dict[str, Any]]] = mapped_column(Json, default=list, server_default=sa.text("'[]'"))
    payload: Mapped[str] = mapped_column(sa.Text, default="full", server_default="full")
    file_link_minutes: Mapped[int | None] = mapped_column(sa.Integer)
    owner_email: Mapped[str] = mapped_column(sa.Text)
    failing_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    disabled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    disabled_reason: Mapped[str | None] = mapped_column(sa.Text)
    test: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)


class KnownAdmins(Base):
    """One row, id 1, once the gateway has said who they are: they hear when a webhook is disabled."""

    __tablename__ = "admins"

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    emails: Mapped[list[str]] = mapped_column(Json)
    revision: Mapped[int] = mapped_column(sa.Integer)


class LogHead(Base):
    """One row. Whoever appends to the log holds its lock: positions and times rise in the order of the commits."""

    __tablename__ = "log_head"

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True)
    last_recorded_at: Mapped[datetime] = mapped_column(UtcDateTime)


class SubjectHead(Base):
    """The last logged event of one submission or template: sequences have no gaps. ``epoch`` is that of the last
    one, "" where no event has said any."""

    __tablename__ = "subject_heads"

    subject: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    last_sequence: Mapped[int] = mapped_column(sa.Integer)
    epoch: Mapped[str] = mapped_column(sa.Text, default="", server_default="")
    erased: Mapped[bool] = mapped_column(sa.Boolean)


class Arrival(Base):
    """An event that is not the next one of its subject: it waits here until its predecessor is logged, or its owner has said
    what there is of the subject."""

    __tablename__ = "arrivals"

    event_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    subject: Mapped[str] = mapped_column(sa.Text, index=True)
    epoch: Mapped[str] = mapped_column(sa.Text, default="", server_default="")
    sequence: Mapped[int] = mapped_column(sa.Integer)
    envelope: Mapped[dict[str, Any]] = mapped_column(Json)
    arrived_at: Mapped[datetime] = mapped_column(UtcDateTime)


class KnownTemplate(Base):
    """A template's author and sharing, as its last event said: events of its submissions are seen accordingly."""

    __tablename__ = "templates"

    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    author_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    shared: Mapped[bool] = mapped_column(sa.Boolean)


class LoggedEvent(Base):
    """The event log. ``body`` is the JSON text that every attempt of every delivery sends, byte for byte. ``author_id`` and
    ``shared`` are those of the template at that moment. ``test``: it happened in test mode."""

    __tablename__ = "events"

    position: Mapped[int] = mapped_column(BigId, primary_key=True)
    event_id: Mapped[str] = mapped_column(sa.Text, unique=True)
    event_type: Mapped[str] = mapped_column(sa.Text)
    subject: Mapped[str] = mapped_column(sa.Text, index=True)
    sequence: Mapped[int] = mapped_column(sa.Integer)
    recorded_at: Mapped[datetime] = mapped_column(UtcDateTime)
    body: Mapped[str] = mapped_column(sa.Text)
    author_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    template_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    shared: Mapped[bool] = mapped_column(sa.Boolean)
    created_by_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    test: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())

    __table_args__ = (
        sa.Index("ix_events_test", "position", sqlite_where=_TEST, postgresql_where=_TEST),
        sa.Index("ix_events_type_time", "event_type", "recorded_at", "position"),
        sa.Index("ix_events_type", "event_type", "position"),
        {"sqlite_autoincrement": True},
    )


@dataclass(frozen=True)
class Request:
    """The request of a delivery, with its receiver. ``secret`` is the caller's own header. ``former_secrets`` are all that
    there are: whoever signs leaves out those whose time is over."""

    webhook_id: int
    url: str
    secret: dict[str, str]
    signing_secret: str
    body: bytes
    former_secrets: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True)
class Follower:
    """A delivery that waits behind another one of its stream, with its request."""

    id: int
    message_id: str
    event_id: str
    event_type: str
    request: Request


class Delivery(DueRow, Traced, Base):
    """One event for one webhook. ``message_id`` is the ``webhook-id`` header of every attempt: the event's id, of a test one of
    its own. (What was planned by versions before has the event's id, a dot and the webhook's.)

    ``stream`` is webhook and subject: within it, deliveries are made in order. A row that must wait for an earlier one
    has the state ``waiting``. ``body`` is what is sent where that is not the event's. ``outcome`` is None while it is under
    way. ``request`` and ``followers``, which may be sent by the same attempt, are no columns: ``deliver.prepare`` sets them.
    ``broke_off``: a follower was not taken. No column either.
    """

    __tablename__ = "deliveries"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    webhook_id: Mapped[int] = mapped_column(sa.ForeignKey("webhooks.id", ondelete="CASCADE"))
    position: Mapped[int] = mapped_column(BigId)
    event_id: Mapped[str] = mapped_column(sa.Text)
    event_type: Mapped[str] = mapped_column(sa.Text)
    message_id: Mapped[str] = mapped_column(sa.Text)
    stream: Mapped[str] = mapped_column(sa.Text)
    body: Mapped[str | None] = mapped_column(sa.Text)
    test: Mapped[bool] = mapped_column(sa.Boolean)
    outcome: Mapped[str | None] = mapped_column(sa.Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __allow_unmapped__ = True
    request: Request | None = None
    followers: Sequence[Follower] = ()
    broke_off: bool = False

    @classmethod
    def may_be_retried(cls) -> sa.ColumnElement[bool]:
        """Those whose schedule came to its end. Cancelled ones were nobody's any more: their webhook's owner resends them."""
        return sa.and_(cls.outcome == "exhausted", cls.test.is_(False), sa.not_(cls.of_erased()))

    @classmethod
    def of_erased(cls) -> sa.ColumnElement[bool]:
        """Those of a submission that was removed for good, but for the one that says so: of their events nothing is left."""
        return sa.exists().where(
            LoggedEvent.position == cls.position,
            LoggedEvent.event_type != SUBMISSION_ERASED.type,
            SubjectHead.subject == LoggedEvent.subject,
            SubjectHead.erased,
        )

    def retry(self, at: datetime) -> None:
        """As a resend by the API: the same id and the same bytes. It waits for an earlier one of its stream that is open."""
        self.outcome = None
        self.make_due(at)
        earlier = sa.exists().where(
            Delivery.stream == self.stream, Delivery.outcome.is_(None), Delivery.position < self.position
        )
        session = object_session(self)
        if session is not None and session.scalar(sa.select(earlier)):
            self.state = "waiting"

    __table_args__ = (
        sa.CheckConstraint("outcome IN ('delivered', 'exhausted', 'cancelled')", name="outcome"),
        sa.Index("ix_deliveries_stream", "stream", "position"),
        sa.Index("ix_deliveries_webhook", "webhook_id", "id"),
        sa.Index("ix_deliveries_message", "webhook_id", "message_id", unique=True),
        sa.Index("ix_deliveries_due", "state", "next_attempt_at"),
        # For the choice of what comes next (contracts/runtime/data/due_work/lanes.py).
        sa.Index("ix_deliveries_lane", "webhook_id", "next_attempt_at", "id", sqlite_where=_DUE, postgresql_where=_DUE),
        sa.Index("ix_deliveries_leased", "webhook_id", sqlite_where=_LEASED, postgresql_where=_LEASED),
        {"sqlite_autoincrement": True},
    )


class Attempt(Base):
    """One try: ``status`` of the answer, or ``error`` when there was none. ``response`` is at most 1 KB of it."""

    __tablename__ = "attempts"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    delivery_id: Mapped[int] = mapped_column(sa.ForeignKey("deliveries.id", ondelete="CASCADE"), index=True)
    attempted_at: Mapped[datetime] = mapped_column(UtcDateTime)
    status: Mapped[int | None] = mapped_column(sa.Integer)
    error: Mapped[str | None] = mapped_column(sa.Text)
    response: Mapped[str | None] = mapped_column(sa.Text)
    duration_ms: Mapped[int] = mapped_column(sa.Integer)

    __table_args__ = ({"sqlite_autoincrement": True},)
