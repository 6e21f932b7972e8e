"""Tables of the submissions service. The row of a submission is the lock for everything that belongs to it."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from contracts.runtime.data.database import BigId, Json, UtcDateTime, metadata
from contracts.runtime.data.due_work.background import DueRow, Traced
from contracts.runtime.data.files.stored_files import StorageReport
from contracts.runtime.data.search import search_index

COMPLETION_GROUP = 4_096
"""So many submitters' ids make one group in the index that finds times of completion. It is in the schema: do not change."""


class Base(DeclarativeBase):
    metadata = metadata()


class TemplateRow(Base):
    """What lists and access rules need of a template: follows ``template.updated``, newest ``updated_at`` wins. ``test``: it
    was made in test mode."""

    __tablename__ = "templates"

    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(sa.Text)
    external_id: Mapped[str | None] = mapped_column(sa.Text)
    folder_name: Mapped[str] = mapped_column(sa.Text, index=True)
    shared: Mapped[bool] = mapped_column(sa.Boolean)
    author_id: Mapped[int] = mapped_column(sa.BigInteger)
    test: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (sa.Index("ix_templates_author", "author_id", "id"),)


class SubmissionRow(Base):
    """One signing request. ``status`` is what was decided; a pending one whose ``expire_at`` is over counts as expired.

    ``unfinished`` is true until the last party has signed: only such ones expire. ``search`` is the lower-cased name and
    the searchable details of all submitters. ``trail_hash`` and ``trail_at`` are those of the last line of the trail.
    ``drafts`` caches the partly filled documents of ``values_version``. ``invitees`` are the parties that another one has yet
    to name (``invites``). ``sealing_differences``: what the last sealing found to differ from the statements. ``certsign`` and
    ``dutystamp`` are how far providers are (``rules.providers``), None before the sealing and where none is asked.
    ``returned`` (a ReturnedState) says who has sent it back for correction, None once it is sent again.
    ``erase_at``: when it is erased (``rules.retention``), unless there is a ``legal_hold``. ``test``: it was made in test mode;
    nothing ever changes that.
    ``untold_completion`` is the submitter whose ``form.completed`` is told with the sealed documents, None when none is.
    """

    __tablename__ = "submissions"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    slug: Mapped[str] = mapped_column(sa.Text, unique=True)
    name: Mapped[str | None] = mapped_column(sa.Text)
    source: Mapped[str] = mapped_column(sa.Text)
    template_id: Mapped[int | None] = mapped_column(sa.ForeignKey("templates.id"))
    created_by_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    created_by_email: Mapped[str | None] = mapped_column(sa.Text)
    created_by_name: Mapped[str | None] = mapped_column(sa.Text)
    created_by_first_name: Mapped[str | None] = mapped_column(sa.Text)
    created_by_last_name: Mapped[str | None] = mapped_column(sa.Text)
    order: Mapped[str] = mapped_column("signing_order", sa.Text)
    status: Mapped[str] = mapped_column(sa.Text)
    unfinished: Mapped[bool] = mapped_column(sa.Boolean)
    sealing_status: Mapped[str | None] = mapped_column(sa.Text)
    seal_id: Mapped[str | None] = mapped_column(sa.Text)
    sealing_error: Mapped[str | None] = mapped_column(sa.Text)
    sealing_differences: Mapped[list[str] | None] = mapped_column(Json)
    sealing_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    sealing_asked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    pades_level: Mapped[str | None] = mapped_column(sa.Text)
    expire_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    archived_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    erase_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    legal_hold: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())
    test: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())
    signed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    completed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    preferences: Mapped[dict[str, Any]] = mapped_column(Json)
    details: Mapped[dict[str, Any]] = mapped_column(Json)
    variables: Mapped[dict[str, Any]] = mapped_column(Json)
    certsign: Mapped[dict[str, Any] | None] = mapped_column(Json)
    dutystamp: Mapped[dict[str, Any] | None] = mapped_column(Json)
    returned: Mapped[dict[str, Any] | None] = mapped_column(Json)
    untold_completion: Mapped[int | None] = mapped_column(sa.BigInteger)
    results: Mapped[dict[str, Any] | None] = mapped_column(Json)
    drafts: Mapped[dict[str, Any] | None] = mapped_column(Json)
    invitees: Mapped[list[dict[str, Any]]] = mapped_column(Json, default=list, server_default=sa.text("'[]'"))
    values_version: Mapped[int] = mapped_column(sa.Integer)
    event_sequence: Mapped[int] = mapped_column(sa.Integer)
    trail_length: Mapped[int] = mapped_column(sa.Integer)
    trail_hash: Mapped[str] = mapped_column(sa.Text)
    trail_at: Mapped[datetime] = mapped_column(UtcDateTime)
    search: Mapped[str] = mapped_column(sa.Text)

    __table_args__ = (
        sa.CheckConstraint("status IN ('pending', 'completed', 'declined', 'expired')", name="status"),
        sa.CheckConstraint("signing_order IN ('preserved', 'random')", name="signing_order"),
        sa.CheckConstraint("sealing_status IN ('sealing', 'sealed', 'failed')", name="sealing_status"),
        sa.CheckConstraint("status <> 'completed' OR results IS NOT NULL", name="completed_has_results"),
        sa.Index("ix_submissions_status", "status", "id"),
        sa.Index("ix_submissions_template", "template_id", "id"),
        sa.Index("ix_submissions_template_status", "template_id", "status", "id"),
        sa.Index("ix_submissions_created_by", "created_by_id", "id"),
        sa.Index(
            "ix_submissions_erase_at",
            "erase_at",
            "id",
            postgresql_where=sa.text("erase_at IS NOT NULL"),
            sqlite_where=sa.text("erase_at IS NOT NULL"),
        ),
        sa.Index(
            "ix_submissions_held", "id", postgresql_where=sa.text("legal_hold"), sqlite_where=sa.text("legal_hold")
        ),
        sa.Index("ix_submissions_test", "id", postgresql_where=sa.text("test"), sqlite_where=sa.text("test")),
        search_index("submissions", "search"),
        sa.Index(
            "ix_submissions_active",
            "id",
            postgresql_where=sa.text("archived_at IS NULL"),
            sqlite_where=sa.text("archived_at IS NULL"),
        ),
        sa.Index(
            "ix_submissions_archived",
            "id",
            postgresql_where=sa.text("archived_at IS NOT NULL"),
            sqlite_where=sa.text("archived_at IS NOT NULL"),
        ),
        sa.Index(
            "ix_submissions_expiring",
            "expire_at",
            postgresql_where=sa.text("status = 'pending' AND expire_at IS NOT NULL"),
            sqlite_where=sa.text("status = 'pending' AND expire_at IS NOT NULL"),
        ),
        sa.Index(
            "ix_submissions_sealing",
            "sealing_asked_at",
            postgresql_where=sa.text("sealing_status = 'sealing'"),
            sqlite_where=sa.text("sealing_status = 'sealing'"),
        ),
        {"sqlite_autoincrement": True},
    )


class SnapshotRow(Base):
    """What the submission was made from, copied: editing or deleting the template never touches signing.

    ``documents`` are StoredDocuments, ``fields`` FieldDefinitions with the overrides of this submission (those of the
    parties that take part), ``parties`` Parties, ``account`` the account's settings. ``certsign`` (a CertsignOrder) and
    ``dutystamp`` (a DutystampOrder) are what providers are asked for; the settings in them are sealed.
    """

    __tablename__ = "snapshots"

    submission_id: Mapped[int] = mapped_column(sa.ForeignKey("submissions.id", ondelete="CASCADE"), primary_key=True)
    template_name: Mapped[str | None] = mapped_column(sa.Text)
    documents: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    fields: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    parties: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    account: Mapped[dict[str, Any]] = mapped_column(Json)
    certsign: Mapped[dict[str, Any] | None] = mapped_column(Json)
    dutystamp: Mapped[dict[str, Any] | None] = mapped_column(Json)

    __table_args__ = tuple(
        sa.Index(
            f"ix_snapshots_account_{picture}",
            sa.text(f"(account #>> '{{{picture},key}}'::text[])"),
            postgresql_where=sa.text(f"(account #>> '{{{picture},key}}'::text[]) IS NOT NULL"),
            postgresql_using="btree",
        ).ddl_if(dialect="postgresql")
        for picture in ("logo", "stamp")
    )


class OwnDocumentRow(Base):
    """A document that came with this submission, or was filled for it, by the SHA-256 of its file or of its original: who
    erases a submission finds out whether another one brought the same along. Documents of templates are not among them."""

    __tablename__ = "own_documents"

    sha256: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    submission_id: Mapped[int] = mapped_column(
        sa.ForeignKey("submissions.id", ondelete="CASCADE"), primary_key=True, index=True, autoincrement=False
    )


class SubmitterRow(Base):
    """One party. ``values`` by field uuid; a key with null was emptied by the signer, so that no default comes back.
    ``reasons`` for signing by field uuid.

    ``visit`` is what the audit trail says of their last visit (``ip``, ``user_agent``, ``time_zone``). ``consent`` is what they
    have agreed to (a Consent). ``branding``: ``logo`` and ``stamp``, the BlobRefs of their own pictures.
    ``confirmation`` (``rules.confirming``) is how far they are with their signature at a provider, None where there is none.
    ``seen`` is what they were shown last (``shown.remembered``). ``given`` are the values that the sender has put in, whatever
    the signer has typed since; None in a row of an older version. ``test`` is that of the submission, for lists.
    """

    __tablename__ = "submitters"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    submission_id: Mapped[int] = mapped_column(sa.ForeignKey("submissions.id", ondelete="CASCADE"))
    position: Mapped[int] = mapped_column(sa.Integer)
    party_uuid: Mapped[str] = mapped_column(sa.Text)
    role: Mapped[str] = mapped_column(sa.Text)
    email: Mapped[str | None] = mapped_column(sa.Text)
    name: Mapped[str | None] = mapped_column(sa.Text)
    phone: Mapped[str | None] = mapped_column(sa.Text)
    external_id: Mapped[str | None] = mapped_column(sa.Text)
    slug: Mapped[str] = mapped_column(sa.Text, unique=True)
    group: Mapped[int] = mapped_column("signing_group", sa.Integer)
    viewer: Mapped[bool] = mapped_column(sa.Boolean)
    test: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())
    status: Mapped[str] = mapped_column(sa.Text)
    values: Mapped[dict[str, Any]] = mapped_column("field_values", Json)
    given: Mapped[dict[str, Any] | None] = mapped_column(Json)
    reasons: Mapped[dict[str, str]] = mapped_column(Json, default=dict, server_default=sa.text("'{}'"))
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata", Json)
    preferences: Mapped[dict[str, Any]] = mapped_column(Json)
    message: Mapped[dict[str, Any] | None] = mapped_column(Json)
    visit: Mapped[dict[str, Any]] = mapped_column(Json)
    consent: Mapped[dict[str, Any] | None] = mapped_column(Json)
    confirmation: Mapped[dict[str, Any] | None] = mapped_column(Json)
    branding: Mapped[dict[str, Any]] = mapped_column(Json, default=dict, server_default=sa.text("'{}'"))
    seen: Mapped[dict[str, Any]] = mapped_column(Json, default=dict, server_default=sa.text("'{}'"))
    decline_reason: Mapped[str | None] = mapped_column(sa.Text)
    completed_by_api: Mapped[str | None] = mapped_column(sa.Text)
    invited_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    sent_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    opened_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    completed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    declined_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    search: Mapped[str] = mapped_column(sa.Text)

    __table_args__ = (
        sa.CheckConstraint("status IN ('pending', 'completed', 'declined')", name="status"),
        sa.UniqueConstraint("submission_id", "position"),
        sa.Index("ix_submitters_external_id", "external_id", "id"),
        sa.Index("ix_submitters_completed_at", "completed_at", "id"),
        sa.Index(
            "ix_submitters_completion_groups",
            sa.text(f"(id / {COMPLETION_GROUP})"),
            "completed_at",
            postgresql_using="btree",
        ).ddl_if(dialect="postgresql"),
        sa.Index("ix_submitters_test", "id", postgresql_where=sa.text("test"), sqlite_where=sa.text("test")),
        search_index("submitters", "search"),
        {"sqlite_autoincrement": True},
    )


class ReplacedLinkRow(Base):
    """A signing link that is no longer valid (see ``signing_links``). ``reason`` is a ``signing_links.Why``; ``handed_to`` whom
    the form was handed over to, in the words that whoever has the old link may read. An older version tells no submitter."""

    __tablename__ = "replaced_links"

    slug: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    submission_id: Mapped[int] = mapped_column(sa.ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    submitter_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    reason: Mapped[str] = mapped_column(sa.Text)
    handed_to: Mapped[str | None] = mapped_column(sa.Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class AttachmentRow(Base):
    """A file that a party put into a field; its ``uuid`` is then the field's value. ``file`` is a BlobRef."""

    __tablename__ = "attachments"

    uuid: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    submission_id: Mapped[int] = mapped_column(sa.ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    submitter_id: Mapped[int] = mapped_column(sa.ForeignKey("submitters.id", ondelete="CASCADE"))
    type: Mapped[str] = mapped_column(sa.Text)
    filename: Mapped[str] = mapped_column(sa.Text)
    file: Mapped[dict[str, Any]] = mapped_column(Json)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class TrailRow(Base):
    """A line of the audit trail: appended under the submission's row lock, never changed.

    ``hash`` chains it to the line before (contracts.evidence.audit_chain). It outlives the submission: when that is erased,
    ``data`` is emptied and the hashes remain, which prove what the printed trail says.
    """

    __tablename__ = "trail"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    submission_id: Mapped[int] = mapped_column(sa.BigInteger)
    position: Mapped[int] = mapped_column(sa.Integer)
    submitter_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    event_type: Mapped[str] = mapped_column(sa.Text)
    occurred_at: Mapped[datetime] = mapped_column(UtcDateTime)
    data: Mapped[dict[str, Any]] = mapped_column(Json)
    hash: Mapped[str] = mapped_column(sa.Text)

    __table_args__ = (sa.UniqueConstraint("submission_id", "position"), {"sqlite_autoincrement": True})


class StatementRow(Base):
    """What was stated of a completion (contracts.evidence.statements), named by the SHA-256 of its bytes, with its ``receipt``.

    ``parts`` say what differs when something does. ``signed`` (a SignedStatement) says where it is kept, None until rendering
    has signed it. Rendering compares with what it has itself: this is a note.
    """

    __tablename__ = "statements"

    sha256: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    submission_id: Mapped[int] = mapped_column(sa.ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    submitter_id: Mapped[int] = mapped_column(sa.ForeignKey("submitters.id", ondelete="CASCADE"), index=True)
    receipt: Mapped[str] = mapped_column(sa.Text, index=True)
    statement: Mapped[dict[str, Any]] = mapped_column(Json)
    parts: Mapped[dict[str, Any]] = mapped_column(Json)
    signed: Mapped[dict[str, Any] | None] = mapped_column(Json)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class CodeRow(Base):
    """A one-time code that was sent (see ``one_time_codes``). Neither the code nor the address can be read in it.

    ``subject`` says what it lets in to, such as ``submitter:44``; only the newest of a subject counts. ``tries`` counts the
    guesses. ``passed_request`` is a digest of the request that passed it: the same request again is no second use.
    ``failed_at``: it could not be delivered.
    """

    __tablename__ = "one_time_codes"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    subject: Mapped[str] = mapped_column(sa.Text)
    submission_id: Mapped[int | None] = mapped_column(sa.ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    address_digest: Mapped[str] = mapped_column(sa.Text)
    code_digest: Mapped[str] = mapped_column(sa.Text)
    tries: Mapped[int] = mapped_column(sa.Integer, default=0, server_default="0")
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    passed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    passed_request: Mapped[str | None] = mapped_column(sa.Text)
    failed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (sa.Index("ix_one_time_codes_subject", "subject", "id"), {"sqlite_autoincrement": True})


class IdentityCheckRow(Base):
    """An attempt to prove one's identity for a verification field (see ``identity_checks``).

    ``state_digest`` is the SHA-256 of what comes back from the provider. ``claimed_at``: somebody came back with it;
    ``finished_at``: what became of it is known, ``problem`` (an IdentityProblem) or ``proof`` (a ProvedIdentity).
    """

    __tablename__ = "identity_checks"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    submission_id: Mapped[int] = mapped_column(sa.ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    submitter_id: Mapped[int] = mapped_column(sa.ForeignKey("submitters.id", ondelete="CASCADE"), index=True)
    field_uuid: Mapped[str] = mapped_column(sa.Text)
    method: Mapped[str | None] = mapped_column(sa.Text)
    issuer: Mapped[str] = mapped_column(sa.Text)
    provider: Mapped[str] = mapped_column(sa.Text)
    state_digest: Mapped[str] = mapped_column(sa.Text, unique=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    claimed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    problem: Mapped[str | None] = mapped_column(sa.Text)
    proof: Mapped[dict[str, Any] | None] = mapped_column(Json)

    __table_args__ = ({"sqlite_autoincrement": True},)


class PhoneDrawingRow(Base):
    """A link on which a telephone delivers one drawing (see ``phone_drawings``).

    ``token_digest`` is the SHA-256 of the link's token, ``device_digest`` that of what the browser that connected is known by.
    ``attachment_uuid`` is what it delivered.
    """

    __tablename__ = "phone_drawings"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    submission_id: Mapped[int] = mapped_column(sa.ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    submitter_id: Mapped[int] = mapped_column(sa.ForeignKey("submitters.id", ondelete="CASCADE"), index=True)
    field_uuid: Mapped[str] = mapped_column(sa.Text)
    token_digest: Mapped[str] = mapped_column(sa.Text, unique=True)
    device_digest: Mapped[str | None] = mapped_column(sa.Text)
    attachment_uuid: Mapped[str | None] = mapped_column(sa.Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    cancelled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = ({"sqlite_autoincrement": True},)


class HandoverRow(Base):
    """A device that is handed from one party to the next (see ``handovers``).

    ``from_id`` and ``to_id`` are submitters. ``token_digest`` is the SHA-256 of the token of the screen between,
    ``device_digest`` that of what the browser is known by. ``slug_digest`` is that of the link that the next party had when it
    began: with another one they are somebody else. ``taken_at``: the next party has the device, and the slug with
    ``link_digest`` opens their form. ``ended_at``: token and slug are good for nothing any more.
    """

    __tablename__ = "handovers"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    submission_id: Mapped[int] = mapped_column(sa.ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    from_id: Mapped[int] = mapped_column(sa.ForeignKey("submitters.id", ondelete="CASCADE"), index=True)
    to_id: Mapped[int] = mapped_column(sa.ForeignKey("submitters.id", ondelete="CASCADE"), index=True)
    token_digest: Mapped[str] = mapped_column(sa.Text, unique=True)
    device_digest: Mapped[str] = mapped_column(sa.Text)
    slug_digest: Mapped[str] = mapped_column(sa.Text)
    link_digest: Mapped[str | None] = mapped_column(sa.Text, unique=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    taken_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = ({"sqlite_autoincrement": True},)


class RateRow(Base):
    """How often something was done since ``began_at``, and when last (see ``rates``). ``key`` names no address."""

    __tablename__ = "rates"

    key: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    began_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    count: Mapped[int] = mapped_column(sa.Integer)


class ErasureRow(Base):
    """A submission that was removed for good, and what is known of that: it is kept, and holds nobody's data.

    ``why`` is an ErasureReason, ``documents`` are ErasedDocuments, ``made_from`` what rendering was told
    (``Erased.documents``), ``parts`` ErasedParts by the names of contracts.evidence.erasure.PARTS. ``receipt`` is the text that
    is signed, once all parts are gone, ``signature`` base64 of a CMS in DER. ``asked_at``: when those who have not confirmed
    were asked last. ``template_id`` and ``created_by_id`` say who may ask.
    """

    __tablename__ = "erasures"

    submission_id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    template_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    created_by_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    test: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())
    erased_at: Mapped[datetime] = mapped_column(UtcDateTime)
    why: Mapped[dict[str, Any]] = mapped_column(Json)
    trail_length: Mapped[int] = mapped_column(sa.Integer)
    trail_hash: Mapped[str] = mapped_column(sa.Text)
    documents: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    made_from: Mapped[list[str]] = mapped_column(Json)
    parts: Mapped[dict[str, Any]] = mapped_column(Json)
    files_gone_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    asked_at: Mapped[datetime] = mapped_column(UtcDateTime)
    receipt: Mapped[str | None] = mapped_column(sa.Text)
    signature: Mapped[str | None] = mapped_column(sa.Text)
    stamped: Mapped[bool | None] = mapped_column(sa.Boolean)

    __table_args__ = (
        sa.Index(
            "ix_erasures_open",
            "erased_at",
            postgresql_where=sa.text("signature IS NULL"),
            sqlite_where=sa.text("signature IS NULL"),
        ),
    )


class BlobRemovalRow(DueRow, Base):
    """A file that must go: written in the transaction that forgot it, so that no crash leaves it behind.

    What links still lead to goes later; when the submission is erased, all of it goes at once.
    """

    __tablename__ = "blob_removals"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    submission_id: Mapped[int] = mapped_column(sa.BigInteger, index=True)
    key: Mapped[str] = mapped_column(sa.Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (sa.Index("ix_blob_removals_due", "state", "next_attempt_at"), {"sqlite_autoincrement": True})


class ReminderRow(DueRow, Traced, Base):
    """A reminder to a party that was invited: ``number`` 1, 2 or 3. Whether it is still wanted is asked when it is due."""

    __tablename__ = "reminders"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    submission_id: Mapped[int] = mapped_column(sa.ForeignKey("submissions.id", ondelete="CASCADE"))
    submitter_id: Mapped[int] = mapped_column(sa.ForeignKey("submitters.id", ondelete="CASCADE"))
    number: Mapped[int] = mapped_column(sa.Integer)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (
        sa.UniqueConstraint("submitter_id", "number"),
        sa.Index("ix_reminders_submission", "submission_id"),
        sa.Index("ix_reminders_due", "state", "next_attempt_at"),
        {"sqlite_autoincrement": True},
    )


class BatchRow(DueRow, Traced, Base):
    """A file of rows, each of which becomes a submission (see ``batches``). It is due for as long as one is pending.

    ``request_id`` is that of the request that brought it; those of the rows' submissions begin with it. ``settings`` (a
    BatchSettings) and ``actor`` (an Actor) are what the rows have in common, None once no row can be made any more. ``rate`` is
    rows a minute. ``warnings`` (RowProblems) are what of the rows is ignored. ``progressed_at`` is when the last row was dealt
    with. ``ended_at``: since then none is pending; ``expires_at``: then the batch is forgotten.
    """

    __tablename__ = "batches"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    request_id: Mapped[str] = mapped_column(sa.Text)
    template_id: Mapped[int] = mapped_column(sa.BigInteger)
    created_by_id: Mapped[int | None] = mapped_column(sa.BigInteger)
    test: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())
    actor: Mapped[dict[str, Any] | None] = mapped_column(Json)
    settings: Mapped[dict[str, Any] | None] = mapped_column(Json)
    rate: Mapped[int] = mapped_column(sa.Integer)
    warnings: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    progressed_at: Mapped[datetime] = mapped_column(UtcDateTime)
    cancelled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)

    __table_args__ = (sa.Index("ix_batches_due", "state", "next_attempt_at"), {"sqlite_autoincrement": True})


class BatchLineRow(Base):
    """A row of a batch; ``number`` is that of its line in the file.

    ``input`` (the ``submission`` of a BatchRowDraft) is there while the row may be made, None once it was or can be no more.
    ``error`` (a RowError) says why it failed, or what kept it from being made so far; ``tries`` counts how often.
    """

    __tablename__ = "batch_lines"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    batch_id: Mapped[int] = mapped_column(sa.ForeignKey("batches.id", ondelete="CASCADE"))
    number: Mapped[int] = mapped_column(sa.Integer)
    status: Mapped[str] = mapped_column(sa.Text)
    external_id: Mapped[str | None] = mapped_column(sa.Text)
    input: Mapped[dict[str, Any] | None] = mapped_column(Json)
    submission_id: Mapped[int | None] = mapped_column(sa.BigInteger, index=True)
    error: Mapped[dict[str, Any] | None] = mapped_column(Json)
    tries: Mapped[int] = mapped_column(sa.Integer, default=0, server_default="0")
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (
        sa.CheckConstraint("status IN ('pending', 'created', 'failed', 'cancelled')", name="status"),
        sa.UniqueConstraint("batch_id", "number"),
        sa.Index("ix_batch_lines_status", "batch_id", "status", "id"),
        sa.Index("ix_batch_lines_next", "batch_id", "status", "tries", "id"),
        {"sqlite_autoincrement": True},
    )


class TestWipeRow(DueRow, Base):
    """A wiping of test mode (``commands.test_mode.wiping``), which goes on until nothing is left that was there when it was
    asked for: submissions and batches up to these ids."""

    __test__ = False
    __tablename__ = "test_wipes"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    last_submission_id: Mapped[int] = mapped_column(sa.BigInteger)
    last_batch_id: Mapped[int] = mapped_column(sa.BigInteger)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (sa.Index("ix_test_wipes_due", "state", "next_attempt_at"), {"sqlite_autoincrement": True})


class StorageReportRow(StorageReport, Base):
    """How many files the submissions name, as it was counted last (``reading.stored_files``)."""
