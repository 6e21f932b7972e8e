"""The search index: parts of a lower-cased column, in both databases, so that any part of a text is found.

PostgreSQL: a GIN index of the column's trigrams (extension pg_trgm, which the owner of a database may create since
PostgreSQL 13), of its single characters and pairs, and of the blocks of ids that the row is in, so that one look finds the
rows of a part of the table that have the term. SQLite: an FTS5 table with the trigram tokenizer that triggers keep, so that
whatever writes the column keeps the index, too; terms of one or two characters cannot use it.
"""

from typing import Any

import sqlalchemy as sa

from contracts.errors import ServiceError

BLOCK_BITS = (13, 16, 19)
"""A block of level 0 has 2**13 ids, and so on; ``_MAKE_BLOCKS`` says the same."""

_MISSING = (
    "the PostgreSQL extension pg_trgm is missing in this database and cannot be created by this user: have its owner or a"
    " superuser run CREATE EXTENSION pg_trgm there (package postgresql-contrib where there is no such extension), then"
    " run migrate again"
)


class NoTrigrams(ServiceError):
    """pg_trgm is missing and may not be created."""


def search_index(table: str, column: str) -> sa.Index:
    """For the models: the index as PostgreSQL has it. On SQLite there is none of this name."""
    return sa.Index(
        _gin(table, column),
        column,
        *(sa.text(expression) for expression in _expressions(column)),
        postgresql_using="gin",
        postgresql_ops={column: "gin_trgm_ops"},
    ).ddl_if(dialect="postgresql")


def is_search_index(index: sa.Index) -> bool:
    return index.dialect_kwargs.get("postgresql_using") == "gin"


def is_for_postgresql(index: sa.Index) -> bool:
    """Models name the kind of index where SQLite has none of this name."""
    return bool(index.dialect_kwargs.get("postgresql_using"))


def upgrade(op: Any, table: str, column: str) -> None:
    """In a migration, last of its steps: on PostgreSQL the table stays open to writers while the index is built."""
    if op.get_context().dialect.name == "postgresql":
        require_trigrams(op.get_bind())
        build_index(op, _trigrams(table, column), table, f"USING gin ({column} gin_trgm_ops)")
        return
    fts = full_text_table(table, column)
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
        drop_index(op, _trigrams(table, column))
        return
    fts = full_text_table(table, column)
    for event in ("insert", "delete", "update"):
        op.execute(f"DROP TRIGGER IF EXISTS {fts}_{event}")
    op.execute(f"DROP TABLE IF EXISTS {fts}")


def upgrade_to_parts(op: Any, table: str, column: str) -> None:
    """In a later migration: on PostgreSQL the index of trigrams becomes one of pairs and blocks besides."""
    if op.get_context().dialect.name == "postgresql":
        op.execute(_MAKE_BLOCKS)
        op.execute(_MAKE_PARTS)
        columns = ", ".join([f"{column} gin_trgm_ops", *_expressions(column)])
        build_index(op, _gin(table, column), table, f"USING gin ({columns})")
        drop_index(op, _trigrams(table, column))


def downgrade_from_parts(op: Any, table: str, column: str) -> None:
    """The functions stay: the index of another table may need them."""
    if op.get_context().dialect.name == "postgresql":
        build_index(op, _trigrams(table, column), table, f"USING gin ({column} gin_trgm_ops)")
        drop_index(op, _gin(table, column))


# What these give for a row must never change without the indexes being made anew.
_MAKE_BLOCKS = """
CREATE OR REPLACE FUNCTION search_blocks(id bigint) RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ARRAY[(id >> 13) * 4, (id >> 16) * 4 + 1, (id >> 19) * 4 + 2]
$$"""
# The pairs that begin at odd and at even places, and single characters: several times as fast as taking them one by one.
_MAKE_PARTS = r"""
CREATE OR REPLACE FUNCTION search_parts(value text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT string_to_array(regexp_replace(value, '(..)', E'\\1\x01', 'g'), E'\x01')
        || string_to_array(regexp_replace(substr(value, 2), '(..)', E'\\1\x01', 'g'), E'\x01')
        || string_to_array(value, NULL)
$$"""


def _expressions(column: str) -> tuple[str, str]:
    return "search_blocks(id)", f"search_parts({column})"


def require_trigrams(connection: Any) -> None:
    """Create pg_trgm unless it is there (SQLite has its trigrams built in). Raises NoTrigrams, which says what to do."""
    if connection.dialect.name != "postgresql":
        return
    try:
        with connection.begin_nested():
            connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
    except sa.exc.DBAPIError as error:
        raise NoTrigrams("unavailable", f"{_MISSING} ({str(error.orig).partition(chr(10))[0]})") from error


def build_index(op: Any, name: str, table: str, definition: str, *, unique: bool = False) -> None:
    """PostgreSQL: without keeping writers out. What an interrupted build left behind (an invalid index) goes first."""
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        op.execute(f"CREATE {'UNIQUE ' if unique else ''}INDEX CONCURRENTLY {name} ON {table} {definition}")


def drop_index(op: Any, name: str) -> None:
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


def _gin(table: str, column: str) -> str:
    return f"ix_{table}_{column}_parts"


def _trigrams(table: str, column: str) -> str:
    return f"ix_{table}_{column}_trigrams"


def full_text_table(table: str, column: str) -> str:
    return f"{table}_{column}_trigrams"
