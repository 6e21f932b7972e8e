"""Searches for a part of a text: a trigram index on a lower-cased column, in both databases.

PostgreSQL: a GIN index of the extension pg_trgm, which the owner of a database may create since PostgreSQL 13. SQLite: an
FTS5 table with the trigram tokenizer that triggers keep, so that whatever writes the column keeps the index, too.

The index only says where to look: what matches is decided by ``contains``, the substring comparison itself. A trigram is
three characters, so terms of fewer cannot use it; ``indexed`` says which can.
"""

import re
from typing import Any

import sqlalchemy as sa

from contracts.errors import ServiceError

SHORTEST = 3
_MISSING = (
    "the PostgreSQL extension pg_trgm is missing in this database and cannot be created by this user: have its owner or a"
    " superuser run CREATE EXTENSION pg_trgm there (package postgresql-contrib where there is no such extension), then"
    " run migrate again"
)


class NoTrigrams(ServiceError):
    """pg_trgm is missing and may not be created."""


def contains(column: Any, term: str) -> sa.ColumnElement[bool]:
    """``term`` is somewhere in the column: %, _ and the escape sign are themselves."""
    found: sa.ColumnElement[bool] = column.contains(term, autoescape=True)
    return found


def contains_unindexed(column: Any, term: str) -> sa.ColumnElement[bool]:
    """The same, but no trigram index can be chosen for it: for a few rows that another condition gives."""
    return contains(sa.func.coalesce(column, sa.literal_column("''"), type_=sa.Text), term)


def indexed(dialect: str, term: str) -> bool:
    """Can a trigram index narrow this down? PostgreSQL makes trigrams of letters and digits, and of where words begin and end
    (https://www.postgresql.org/docs/15/pgtrgm.html); with the locale "C", of ASCII letters only."""
    if dialect != "postgresql":
        return len(term) >= SHORTEST
    return _TRIGRAM.search(term) is not None


_TRIGRAM = re.compile(r"[^\W_]{3}|[\W_][^\W_]{2}|[^\W_]{2}[\W_]")


def matching_rows(table: sa.Table, column: Any, term: str) -> sa.ColumnElement[bool]:
    """SQLite: the rows of ``table`` that the FTS5 table finds for ``term``; asks for ``contains`` beside it."""
    name = _fts(table.name, column.name)
    found: sa.Select[Any] = sa.select(sa.literal_column("rowid")).select_from(sa.table(name))
    phrase = '"' + term.replace('"', '""') + '"'
    return table.c.id.in_(found.where(sa.literal_column(name).op("MATCH")(phrase)))


def trigram_index(table: str, column: str) -> sa.Index:
    """For the models: the index as PostgreSQL has it. On SQLite there is none of this name."""
    return sa.Index(
        _gin(table, column), column, postgresql_using="gin", postgresql_ops={column: "gin_trgm_ops"}
    ).ddl_if(dialect="postgresql")


def is_trigram_index(index: sa.Index) -> bool:
    return index.dialect_kwargs.get("postgresql_using") == "gin"


def is_for_postgresql(index: sa.Index) -> bool:
    """Models name the kind of index where SQLite has none of this name."""
    return bool(index.dialect_kwargs.get("postgresql_using"))


def upgrade(op: Any, table: str, column: str) -> None:
    """In a migration, last of its steps: on PostgreSQL the table stays open to writers while the index is built."""
    if op.get_context().dialect.name == "postgresql":
        require_trigrams(op.get_bind())
        build_index(op, _gin(table, column), table, f"USING gin ({column} gin_trgm_ops)")
        return
    fts = _fts(table, column)
    op.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {fts} USING fts5({column}, content='{table}', content_rowid='id',"
        " tokenize='trigram case_sensitive 1')"
    )
    forget = f"INSERT INTO {fts}({fts}, rowid, {column}) VALUES ('delete', old.id, old.{column});"  # noqa: S608 - names from migrations
    remember = f"INSERT INTO {fts}(rowid, {column}) VALUES (new.id, new.{column});"  # noqa: S608 - names from migrations
    for event, work in (
        ("INSERT", remember),
        ("DELETE", forget),
        (f"UPDATE OF {column}", f"{forget} {remember}"),
    ):
        name = f"{fts}_{event.partition(' ')[0].lower()}"
        op.execute(f"CREATE TRIGGER IF NOT EXISTS {name} AFTER {event} ON {table} BEGIN {work} END")
    op.execute(f"INSERT INTO {fts}({fts}) VALUES ('rebuild')")  # noqa: S608 - names from migrations


def downgrade(op: Any, table: str, column: str) -> None:
    """The extension stays: others may use it."""
    if op.get_context().dialect.name == "postgresql":
        drop_index(op, _gin(table, column))
        return
    fts = _fts(table, column)
    for event in ("insert", "delete", "update"):
        op.execute(f"DROP TRIGGER IF EXISTS {fts}_{event}")
    op.execute(f"DROP TABLE IF EXISTS {fts}")


def require_trigrams(connection: Any) -> None:
    """Create pg_trgm unless it is there (SQLite has its trigrams built in). Raises NoTrigrams, which says what to do."""
    if connection.dialect.name != "postgresql":
        return
    try:
        with connection.begin_nested():
            connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
    except sa.exc.DBAPIError as error:
        raise NoTrigrams("unavailable", f"{_MISSING} ({str(error.orig).partition(chr(10))[0]})") from error


def build_index(op: Any, name: str, table: str, definition: str) -> None:
    """PostgreSQL: without keeping writers out. What an interrupted build left behind (an invalid index) goes first."""
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        op.execute(f"CREATE INDEX CONCURRENTLY {name} ON {table} {definition}")


def drop_index(op: Any, name: str) -> None:
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


def _gin(table: str, column: str) -> str:
    return f"ix_{table}_{column}_trigrams"


def _fts(table: str, column: str) -> str:
    return f"{table}_{column}_trigrams"
