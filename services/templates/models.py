"""Tables of the templates service."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from contracts.runtime.data.database import BigId, Json, UtcDateTime, metadata
from contracts.runtime.data.files.stored_files import StorageReport
from contracts.runtime.data.search import search_index


class Base(DeclarativeBase):
    metadata = metadata()


_ARCHIVED = sa.text("archived_at IS NOT NULL")
_SHARED = sa.text("shared_link")
_TEST = sa.text("test")


class Folder(Base):
    """A folder by its whole name: ``A / B`` is a folder in a folder. It appears when something is put into it."""

    __tablename__ = "folders"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(sa.Text, unique=True)


class TemplateRow(Base):
    """A template. ``parties`` and ``fields`` are JSON of contracts.types.Party and FieldDefinition, in order.

    ``test``: it was made in test mode. ``name_lower`` is what searches compare. ``sequence`` is the number of the last public
    event about this template.
    """

    __tablename__ = "templates"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    slug: Mapped[str] = mapped_column(sa.Text, unique=True)
    name: Mapped[str] = mapped_column(sa.Text)
    name_lower: Mapped[str] = mapped_column(sa.Text)
    external_id: Mapped[str | None] = mapped_column(sa.Text, unique=True)
    folder_id: Mapped[int] = mapped_column(sa.ForeignKey("folders.id"), index=True)
    shared_link: Mapped[bool] = mapped_column(sa.Boolean)
    parties: Mapped[list[Any]] = mapped_column(Json)
    fields: Mapped[list[Any]] = mapped_column(Json)
    preferences: Mapped[dict[str, Any]] = mapped_column(Json)
    report: Mapped[list[Any]] = mapped_column(Json)
    author_id: Mapped[int] = mapped_column(sa.BigInteger, index=True)
    author: Mapped[dict[str, Any]] = mapped_column(Json)
    sequence: Mapped[int] = mapped_column(sa.Integer)
    test: Mapped[bool] = mapped_column(sa.Boolean, default=False, server_default=sa.false())
    archived_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)

    folder: Mapped[Folder] = relationship(lazy="joined", innerjoin=True)
    documents: Mapped[list["DocumentRow"]] = relationship(
        order_by="DocumentRow.position", cascade="all, delete-orphan", lazy="selectin", passive_deletes=True
    )

    @property
    def folder_name(self) -> str:
        return self.folder.name

    __table_args__ = (
        sa.Index("ix_templates_archived", "id", sqlite_where=_ARCHIVED, postgresql_where=_ARCHIVED),
        sa.Index("ix_templates_folder", "folder_id", "id"),
        sa.Index("ix_templates_author", "author_id", "id"),
        sa.Index("ix_templates_shared", "id", sqlite_where=_SHARED, postgresql_where=_SHARED),
        sa.Index("ix_templates_test", "id", sqlite_where=_TEST, postgresql_where=_TEST),
        search_index("templates", "name_lower"),
        {"sqlite_autoincrement": True},
    )


class DocumentRow(Base):
    """A document of a template. ``file`` (normalised) and ``original`` (as sent) are JSON of contracts.blobs.BlobRef,
    ``docx`` of contracts.stored_documents.DocxSource where the original has variables, ``conditions`` of
    contracts.types.Condition.

    The blobs are never deleted here: submissions made from the template go on using them. Those that came in test mode are,
    when that is wiped (``TestFileRow``).
    """

    __tablename__ = "documents"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    uuid: Mapped[str] = mapped_column(sa.String(36), unique=True)
    template_id: Mapped[int] = mapped_column(sa.ForeignKey("templates.id", ondelete="CASCADE"), index=True)
    position: Mapped[int] = mapped_column(sa.Integer)
    name: Mapped[str] = mapped_column(sa.Text)
    file: Mapped[dict[str, Any]] = mapped_column(Json)
    original: Mapped[dict[str, Any]] = mapped_column(Json)
    pages: Mapped[list[Any]] = mapped_column(Json)
    signed: Mapped[bool] = mapped_column(sa.Boolean)
    docx: Mapped[dict[str, Any] | None] = mapped_column(Json)
    conditions: Mapped[list[Any] | None] = mapped_column(Json)

    __table_args__ = ({"sqlite_autoincrement": True},)


class TestFileRow(Base):
    """A blob that came in test mode, so that nothing live can use it. ``wiped_at``: it is to be deleted."""

    __test__ = False
    __tablename__ = "test_files"

    key: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    wiped_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class StorageReportRow(StorageReport, Base):
    """How many files the templates name, as it was counted last (``stored_files``)."""
