"""Tables of the rendering service: seal jobs, what was sealed, duty stamps, answers that can be given again."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from contracts.runtime.data.database import BigId, Json, UtcDateTime, metadata
from contracts.runtime.data.due_work.background import DueRow, Traced


class Base(DeclarativeBase):
    metadata = metadata()


_DUE = sa.text("state = 'due'")
_LEASED = sa.text("leased_by IS NOT NULL")


class SealJob(DueRow, Traced, Base):
    """One attempt of a submission to get its documents sealed, named by ``seal_id``: one job, one result.

    ``request`` (a SealRequest) is there until the job has ended; it holds values and addresses of people. ``files`` is how
    many files an attempt writes. ``pades_level`` and ``sealed_attempt`` say what came out. ``swept``: nothing is left of
    attempts that were interrupted. In the state ``waiting`` nothing is due: the row of what it waits for (CertsignJob) makes
    it due.
    """

    __tablename__ = "seal_jobs"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    seal_id: Mapped[str] = mapped_column(sa.Text, unique=True)
    submission_id: Mapped[int] = mapped_column(sa.BigInteger, index=True)
    request_id: Mapped[str | None] = mapped_column(sa.Text)
    request: Mapped[dict[str, Any] | None] = mapped_column(Json)
    files: Mapped[int] = mapped_column(sa.Integer)
    sealed_attempt: Mapped[int | None] = mapped_column(sa.Integer)
    pades_level: Mapped[str | None] = mapped_column(sa.Text)
    swept: Mapped[bool] = mapped_column(sa.Boolean)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    @classmethod
    def may_be_retried(cls) -> sa.ColumnElement[bool]:
        """None: submissions was told, and ``POST /submissions/:id/seal`` asks anew, with a new ``seal_id``."""
        return sa.false()

    __table_args__ = (
        sa.Index("ix_seal_jobs_due", "state", "next_attempt_at"),
        sa.Index("ix_seal_jobs_swept", "swept", "finished_at"),
        {"sqlite_autoincrement": True},
    )


class CertsignJob(DueRow, Traced, Base):
    """The signatures that a provider is to make for a seal job, which has the same ``id`` and waits for them.

    ``order`` is the CertsignOrder that is followed now. ``prepared_for`` (the certificates and the mechanism) and ``assurance``
    (whether there is room for time-stamps, what is missing) are of the files that were prepared, for the ``preparation``-th
    time. ``authorization`` counts the permissions that were asked for; ``grant`` is the current one, and ``session`` what the
    provider wants to have with the next request, both sealed under LINK_SECRET. ``faults``: attempts that failed here, not at
    the provider. ``away``: the provider did not even tell its certificate. ``counted``: it refused the settings that
    ``settings_mark`` names, and counts that against the credential.

    Its contents go after the seal job has ended, the row with that one's.
    """

    __tablename__ = "certsign_jobs"

    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    seal_id: Mapped[str] = mapped_column(sa.Text)
    submission_id: Mapped[int] = mapped_column(sa.BigInteger, index=True)
    request_id: Mapped[str | None] = mapped_column(sa.Text)
    provider: Mapped[str] = mapped_column(sa.Text)
    order: Mapped[dict[str, Any] | None] = mapped_column(Json)
    prepared_for: Mapped[dict[str, Any] | None] = mapped_column(Json)
    assurance: Mapped[dict[str, Any] | None] = mapped_column(Json)
    preparation: Mapped[int] = mapped_column(sa.Integer)
    documents: Mapped[int] = mapped_column(sa.Integer)
    authorization: Mapped[int] = mapped_column(sa.Integer)
    grant: Mapped[str | None] = mapped_column(sa.Text)
    grant_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    session: Mapped[str | None] = mapped_column(sa.Text)
    session_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    faults: Mapped[int] = mapped_column(sa.Integer)
    failure: Mapped[str | None] = mapped_column(sa.Text)
    away: Mapped[bool] = mapped_column(sa.Boolean)
    counted: Mapped[bool] = mapped_column(sa.Boolean)
    settings_mark: Mapped[str | None] = mapped_column(sa.String(64))
    waived_by: Mapped[str | None] = mapped_column(sa.Text)
    waived_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    @classmethod
    def may_be_retried(cls) -> sa.ColumnElement[bool]:
        """Not those of which everything was removed."""
        return cls.order.is_not(None)

    def retry(self, at: datetime) -> None:
        """Forget what failed, too: settings that the provider refused are tried again."""
        self.failure, self.faults, self.away, self.counted = None, 0, False, False
        super().retry(at)

    __table_args__ = (sa.Index("ix_certsign_jobs_due", "state", "next_attempt_at"),)


class CertsignTrial(Base):
    """Settings that a permission was asked for with, named by ``settings_mark``: until one attempt has shown that they work
    (``works``) no other process tries them, since a provider counts what it refuses. ``tried_by`` does so until
    ``tried_until``. ``problem``: they were tried, and may have been refused and counted; nobody tries them again before a
    person wants that."""

    __tablename__ = "certsign_trials"

    settings_mark: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    works: Mapped[bool] = mapped_column(sa.Boolean)
    tried_by: Mapped[str | None] = mapped_column(sa.String(36))
    tried_until: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    problem: Mapped[str | None] = mapped_column(sa.Text)


class News(Base):
    """The moment of the latest news of a kind that was told of a submission (``storage.news``)."""

    __tablename__ = "news"

    submission_id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    event: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)


class CertsignSigning(Base):
    """A document as it was prepared for a provider's signature, which signs exactly that: it is never made again.

    ``prepared`` (a BlobRef) is the file with a hole of ``size`` digits at ``start``; ``drawn`` are the ValueDrawn that must be
    found in it again. ``attributes`` (DER) is what is signed, ``hash`` what the provider is asked for. ``signature`` was
    verified against the certificate whose SHA-256 is ``certificate_sha256``.
    """

    __tablename__ = "certsign_signings"

    job_id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    document: Mapped[str] = mapped_column(sa.Text)
    prepared: Mapped[dict[str, Any]] = mapped_column(Json)
    start: Mapped[int] = mapped_column(sa.Integer)
    size: Mapped[int] = mapped_column(sa.Integer)
    drawn: Mapped[list[Any]] = mapped_column(Json)
    conformance: Mapped[list[str] | None] = mapped_column(Json)
    mechanism: Mapped[str] = mapped_column(sa.Text)
    certificate_sha256: Mapped[str] = mapped_column(sa.String(64))
    attributes: Mapped[bytes] = mapped_column(sa.LargeBinary)
    hash: Mapped[bytes] = mapped_column(sa.LargeBinary)
    signature: Mapped[bytes | None] = mapped_column(sa.LargeBinary)
    signed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Confirmation(DueRow, Traced, Base):
    """A signer's confirmation at a provider, named by its ``id``: their own signature of each document
    (``services.rendering.rules.confirming``).

    ``order`` (a ConfirmationOrder) is there until it is signed or discarded; it holds values and addresses of people.
    ``after`` names the confirmations whose files are signed now. ``asked`` is what the person is asked, ``answers`` what they
    have answered and nobody has tried yet, ``session`` what the provider wants to have with the next request of
    ``session_step``, ``login`` what the person's login there gave, ``grant`` the permission: all of them sealed under
    LINK_SECRET. ``ask`` numbers what was asked, ``round`` how often the person wanted to be asked. ``stated`` are the digests
    of what the signer's statement will confirm. ``counted``: the provider refused the settings that ``settings_mark`` names,
    and counts that against the credential.
    """

    __tablename__ = "confirmations"

    id: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    submission_id: Mapped[int] = mapped_column(sa.BigInteger, index=True)
    submitter_id: Mapped[int] = mapped_column(sa.BigInteger)
    request_id: Mapped[str | None] = mapped_column(sa.Text)
    provider: Mapped[str] = mapped_column(sa.Text)
    order: Mapped[dict[str, Any] | None] = mapped_column(Json)
    after: Mapped[list[str]] = mapped_column(Json)
    stated: Mapped[dict[str, Any]] = mapped_column(Json)
    stage: Mapped[str] = mapped_column(sa.String(12))
    round: Mapped[int] = mapped_column(sa.Integer)
    ask: Mapped[int] = mapped_column(sa.Integer)
    asked: Mapped[str | None] = mapped_column(sa.Text)
    asked_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    answers: Mapped[str | None] = mapped_column(sa.Text)
    login: Mapped[str | None] = mapped_column(sa.Text)
    session: Mapped[str | None] = mapped_column(sa.Text)
    session_step: Mapped[str | None] = mapped_column(sa.String(12))
    session_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    prepared_for: Mapped[dict[str, Any] | None] = mapped_column(Json)
    assurance: Mapped[dict[str, Any] | None] = mapped_column(Json)
    preparation: Mapped[int] = mapped_column(sa.Integer)
    documents: Mapped[int] = mapped_column(sa.Integer)
    authorization: Mapped[int] = mapped_column(sa.Integer)
    grant: Mapped[str | None] = mapped_column(sa.Text)
    grant_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    faults: Mapped[int] = mapped_column(sa.Integer)
    problem: Mapped[str | None] = mapped_column(sa.String(20))
    counted: Mapped[bool] = mapped_column(sa.Boolean)
    settings_mark: Mapped[str | None] = mapped_column(sa.String(64))
    signer: Mapped[dict[str, Any] | None] = mapped_column(Json)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    @classmethod
    def may_be_retried(cls) -> sa.ColumnElement[bool]:
        """Not those of which everything was removed."""
        return cls.order.is_not(None)

    def retry(self, at: datetime) -> None:
        """Ask from the beginning; what was signed already stays."""
        self.stage, self.problem, self.faults, self.counted = "preparing", None, 0, False
        self.asked = self.asked_until = self.answers = self.grant = self.grant_until = None
        self.session = self.session_step = self.session_until = self.login = None
        self.authorization += 1
        super().retry(at)

    __table_args__ = (
        sa.Index("ix_confirmations_due", "state", "next_attempt_at"),
        sa.Index("ix_confirmations_stage", "stage", "finished_at"),
    )


class ConfirmationSigning(Base):
    """A document as it was prepared for a signer's signature at the provider, as CertsignSigning is. ``fields`` are the uuids
    of the fields that were drawn into this revision, ``pages`` the document's. ``signed`` (a BlobRef) is the file with the
    signature, of this PAdES ``level``."""

    __tablename__ = "confirmation_signings"

    confirmation_id: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    number: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    document: Mapped[str] = mapped_column(sa.Text)
    prepared: Mapped[dict[str, Any]] = mapped_column(Json)
    start: Mapped[int] = mapped_column(sa.Integer)
    size: Mapped[int] = mapped_column(sa.Integer)
    drawn: Mapped[list[Any]] = mapped_column(Json)
    fields: Mapped[list[str]] = mapped_column(Json)
    pages: Mapped[int] = mapped_column(sa.Integer)
    conformance: Mapped[list[str] | None] = mapped_column(Json)
    mechanism: Mapped[str] = mapped_column(sa.Text)
    certificate_sha256: Mapped[str] = mapped_column(sa.String(64))
    attributes: Mapped[bytes] = mapped_column(sa.LargeBinary)
    hash: Mapped[bytes] = mapped_column(sa.LargeBinary)
    signature: Mapped[bytes | None] = mapped_column(sa.LargeBinary)
    signed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    signed: Mapped[dict[str, Any] | None] = mapped_column(Json)
    level: Mapped[str | None] = mapped_column(sa.String(10))


class StampedSeal(DueRow, Traced, Base):
    """A seal job whose files get duty stamps, which has the same ``id``: due while its stamps are to be ordered.

    ``parts`` are the sealed files (sealing/parts.py), kept for the ``revision``-th time; None until they are there.
    ``wait_until`` is how long the documents wait for the stamps, where they do not wait for ever. ``told_at``: they were told
    as sealed before all stamps were there; ``stamped_attempt`` is the attempt of the seal job whose files were told as stamped
    later.
    """

    __tablename__ = "stamped_seals"

    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    seal_id: Mapped[str] = mapped_column(sa.Text)
    submission_id: Mapped[int] = mapped_column(sa.BigInteger, index=True)
    request_id: Mapped[str | None] = mapped_column(sa.Text)
    order: Mapped[dict[str, Any] | None] = mapped_column(Json)
    parts: Mapped[dict[str, Any] | None] = mapped_column(Json)
    files: Mapped[int] = mapped_column(sa.Integer)
    revision: Mapped[int] = mapped_column(sa.Integer)
    wait_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    told_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    stamped_attempt: Mapped[int | None] = mapped_column(sa.Integer)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    @classmethod
    def may_be_retried(cls) -> sa.ColumnElement[bool]:
        """Not those of which everything was removed."""
        return cls.order.is_not(None)

    __table_args__ = (sa.Index("ix_stamped_seals_due", "state", "next_attempt_at"),)


class SealedFile(Base):
    """SHA-256 of every file that was sealed here, so that it is recognised when somebody asks about it."""

    __tablename__ = "sealed_files"

    sha256: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    submission_id: Mapped[int | None] = mapped_column(sa.BigInteger, index=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class ArchivedFile(DueRow, Base):
    """A sealed file that is to stay PAdES B-LTA: due when its archive time-stamp is to be renewed, or is to be had at all.

    ``document`` is that of DocumentArchived. ``file`` (a BlobRef) is its present version, None once the submission
    was erased; ``until`` when its time-stamp runs out, None without one. ``candidates`` are the keys that attempts were
    about to write to and that are not the file; they are removed some time after ``sweep_at``.
    """

    __tablename__ = "archived_files"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    seal_id: Mapped[str] = mapped_column(sa.Text)
    document: Mapped[str] = mapped_column(sa.Text)
    submission_id: Mapped[int] = mapped_column(sa.BigInteger, index=True)
    file: Mapped[dict[str, Any] | None] = mapped_column(Json)
    version: Mapped[int] = mapped_column(sa.Integer)
    until: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    candidates: Mapped[list[str]] = mapped_column(Json)
    sweep_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    @classmethod
    def may_be_retried(cls) -> sa.ColumnElement[bool]:
        """Not those of erased submissions."""
        return cls.file.is_not(None)

    __table_args__ = (
        sa.Index("ix_archived_files_due", "state", "next_attempt_at"),
        sa.UniqueConstraint("seal_id", "document"),
        {"sqlite_autoincrement": True},
    )


class StatementRow(DueRow, Traced, Base):
    """A statement of a completion (contracts.evidence.statements), named by the SHA-256 of its bytes: to be signed, then kept.

    None is ever replaced: a second one of the same completion stands beside the first. ``parts`` are there until the submission
    is sealed. ``signed`` (a SignedStatement) says where it is kept. ``erased_at``: the submission was erased; what an attempt
    still writes is removed, then the row. ``test``: it gets no time-stamp.
    """

    __tablename__ = "statements"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    sha256: Mapped[str] = mapped_column(sa.String(64), unique=True)
    submission_id: Mapped[int] = mapped_column(sa.BigInteger, index=True)
    submitter_id: Mapped[int] = mapped_column(sa.BigInteger)
    request_id: Mapped[str | None] = mapped_column(sa.Text)
    statement: Mapped[dict[str, Any] | None] = mapped_column(Json)
    parts: Mapped[dict[str, Any] | None] = mapped_column(Json)
    signed: Mapped[dict[str, Any] | None] = mapped_column(Json)
    test: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())
    erased_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    @classmethod
    def may_be_retried(cls) -> sa.ColumnElement[bool]:
        """Not those of erased submissions."""
        return cls.erased_at.is_(None)

    __table_args__ = (sa.Index("ix_statements_due", "state", "next_attempt_at"), {"sqlite_autoincrement": True})


class ErasureRow(Base):
    """A submission that was removed for good: how much was ``deleted``, by what it was. ``removal`` is the note of the files
    that go with it (a Result). From ``ready_at`` on no attempt can have anything left of it; ``told_at``: submissions was
    told."""

    __tablename__ = "erasures"

    submission_id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    erased_at: Mapped[datetime] = mapped_column(UtcDateTime)
    deleted: Mapped[dict[str, int]] = mapped_column(Json)
    removal: Mapped[str | None] = mapped_column(sa.Text)
    ready_at: Mapped[datetime] = mapped_column(UtcDateTime)
    told_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (
        sa.Index(
            "ix_erasures_untold",
            "ready_at",
            sqlite_where=sa.text("told_at IS NULL"),
            postgresql_where=sa.text("told_at IS NULL"),
        ),
    )


class ErasureReceipt(DueRow, Base):
    """A receipt (contracts.evidence.erasure) that is to be signed, named by the SHA-256 of its bytes. ``test``: it gets no
    time-stamp."""

    __tablename__ = "erasure_receipts"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    sha256: Mapped[str] = mapped_column(sa.String(64), unique=True)
    submission_id: Mapped[int] = mapped_column(sa.BigInteger)
    text: Mapped[str] = mapped_column(sa.Text)
    test: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (sa.Index("ix_erasure_receipts_due", "state", "next_attempt_at"), {"sqlite_autoincrement": True})


class StatementsSince(Base):
    """The moment from which on completions are confirmed: when this table was made. One row."""

    __tablename__ = "statements_since"

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    at: Mapped[datetime] = mapped_column(UtcDateTime)


class DutyStamp(DueRow, Traced, Base):
    """One stamp that an order wishes: the ``number``-th (from 0) on one file of a submission. Of the target ``combined`` there
    is one file, with ``document_index`` 0.

    ``stage`` is how far it came (``services.rendering.stamping.stages``). ``state`` is ``waiting`` while a stamp before it on
    the same file is not placed: it is put onto what comes out of that. ``key`` is the name that it is bought under.
    ``account`` says whose serials it may take, ``lane`` whose turn it waits for. ``settings`` is a DutystampSettings, sealed.
    ``source`` is the file that it is put onto, the same at every attempt; ``result`` that file with the stamp. ``asked_at`` is
    when its purchase was asked for last, ``sent`` how often it was asked to be placed. ``problem`` is the code of what
    ``last_error`` says. ``swept``: nothing is left of interrupted attempts. ``erased``: the submission is gone, and what may
    have been bought is still looked for.
    """

    __tablename__ = "duty_stamps"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    submission_id: Mapped[int] = mapped_column(sa.BigInteger)
    seal_id: Mapped[str] = mapped_column(sa.Text)
    target: Mapped[str] = mapped_column(sa.String(10))
    document_index: Mapped[int] = mapped_column(sa.Integer)
    number: Mapped[int] = mapped_column(sa.Integer)
    request_id: Mapped[str | None] = mapped_column(sa.Text)
    key: Mapped[str] = mapped_column(sa.Text, unique=True)
    account: Mapped[str] = mapped_column(sa.String(32))
    lane: Mapped[str] = mapped_column(sa.Text)
    provider: Mapped[str] = mapped_column(sa.Text)
    settings: Mapped[str] = mapped_column(sa.Text)
    binds: Mapped[str] = mapped_column(sa.String(10))
    code_document: Mapped[str] = mapped_column(sa.Text)
    box: Mapped[dict[str, Any]] = mapped_column(Json)
    position: Mapped[dict[str, Any]] = mapped_column(Json)
    source: Mapped[dict[str, Any] | None] = mapped_column(Json)
    stage: Mapped[str] = mapped_column(sa.String(10))
    serial: Mapped[str | None] = mapped_column(sa.Text)
    price: Mapped[dict[str, Any] | None] = mapped_column(Json)
    asked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    sent: Mapped[int] = mapped_column(sa.Integer, default=0, server_default="0")
    result: Mapped[dict[str, Any] | None] = mapped_column(Json)
    stamped_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    problem: Mapped[str | None] = mapped_column(sa.Text)
    swept: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())
    erased: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (
        sa.UniqueConstraint("submission_id", "target", "document_index", "number", name="uq_duty_stamps_submission_id"),
        sa.Index("ix_duty_stamps_lane", "lane", "next_attempt_at", "id", sqlite_where=_DUE, postgresql_where=_DUE),
        sa.Index("ix_duty_stamps_leased", "lane", sqlite_where=_LEASED, postgresql_where=_LEASED),
        sa.Index("ix_duty_stamps_swept", "swept", "finished_at"),
        {"sqlite_autoincrement": True},
    )


class StampSerial(Base):
    """A stamp that was paid for, for as long as there are books: ``state`` is ``assigned`` (to the DutyStamp ``stamp_id``),
    ``free`` (in the account's pool), ``used`` or ``held`` (a person has to look at it: it may be on a file that is gone, or
    there is no knowing). ``picture`` is what is seen of it (PNG); forgotten once it is used."""

    __tablename__ = "stamp_serials"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    account: Mapped[str] = mapped_column(sa.String(32))
    number: Mapped[str] = mapped_column(sa.Text)
    key: Mapped[str] = mapped_column(sa.Text)
    code_document: Mapped[str] = mapped_column(sa.Text)
    binds: Mapped[str] = mapped_column(sa.String(10))
    price: Mapped[dict[str, Any] | None] = mapped_column(Json)
    picture: Mapped[bytes | None] = mapped_column(sa.LargeBinary)
    state: Mapped[str] = mapped_column(sa.String(10))
    stamp_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    submission_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    bought_at: Mapped[datetime] = mapped_column(UtcDateTime)
    used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (
        sa.UniqueConstraint("account", "number", name="uq_stamp_serials_account"),
        sa.Index("ix_stamp_serials_state", "account", "state"),
        {"sqlite_autoincrement": True},
    )


class StampAccount(Base):
    """An account at a provider of duty stamps that was ordered from: ``settings`` (sealed) are those of the last order. What
    was found when it was looked at last: ``balance``, ``strangers`` (serials that nobody knows here), ``problem``."""

    __tablename__ = "stamp_accounts"

    id: Mapped[str] = mapped_column(sa.String(32), primary_key=True)
    provider: Mapped[str] = mapped_column(sa.Text)
    settings: Mapped[str] = mapped_column(sa.Text)
    balance: Mapped[int | None] = mapped_column(sa.Integer)
    strangers: Mapped[list[str]] = mapped_column(Json)
    problem: Mapped[str | None] = mapped_column(sa.Text)
    checked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Result(Base):
    """An answer that costs work and is asked for again: a page's picture (``page``), a laid-out HTML text (``html``).

    ``digest`` says of what; ``answer`` is what the call answered; ``keys`` are the blobs in it, which are ours. A
    ``removal`` is none: its ``keys`` are the blobs of what was forgotten, until they are gone.
    """

    __tablename__ = "results"

    kind: Mapped[str] = mapped_column(sa.String(10), primary_key=True)
    digest: Mapped[str] = mapped_column(sa.String(100), primary_key=True)
    answer: Mapped[dict[str, Any]] = mapped_column(Json)
    keys: Mapped[list[str]] = mapped_column(Json)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)


class ResultSource(Base):
    """Which file a result was made from: when a submission is erased, what was made from its files goes too. Of laid-out HTML
    it is what came of it, and what that was merged into."""

    __tablename__ = "result_sources"

    sha256: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(sa.String(10), primary_key=True)
    digest: Mapped[str] = mapped_column(sa.String(100), primary_key=True)

    __table_args__ = (
        sa.ForeignKeyConstraint(
            ["kind", "digest"], ["results.kind", "results.digest"], name="fk_result_sources_result", ondelete="CASCADE"
        ),
        sa.Index("ix_result_sources_result", "kind", "digest"),
    )
