"""Searches for a part of a text: an index of parts of a lower-cased column, in both databases.

PostgreSQL: a GIN index of the column's trigrams (extension pg_trgm, which the owner of a database may create since
PostgreSQL 13), of its single characters and pairs, and of the blocks of ids that the row is in, so that one look finds the
rows of a part of the table that have the term. SQLite: an FTS5 table with the trigram tokenizer that triggers keep, so that
whatever writes the column keeps the index, too; terms of one or two characters cannot use it.

The index only says where to look: what matches is decided by ``contains``, the substring comparison itself.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import FunctionElement

from contracts.errors import ServiceError

SHORTEST = 3
BLOCK_BITS = (13, 16, 19)
"""A block of level 0 has 2**13 ids, and so on; ``_MAKE_BLOCKS`` says the same."""
SAMPLES = 128
"""So many rows tell roughly where a term is common."""
_COMMON = 8
"""So many blocks where it is common are told apart: each is likely to fill a page."""

_MISSING = (
    "the PostgreSQL extension pg_trgm is missing in this database and cannot be created by this user: have its owner or a"
    " superuser run CREATE EXTENSION pg_trgm there (package postgresql-contrib where there is no such extension), then"
    " run migrate again"
)


class NoTrigrams(ServiceError):
    """pg_trgm is missing and may not be created."""


def contains(column: Any, term: str) -> sa.ColumnElement[bool]:
    """``term`` is somewhere in the column: %, _ and the escape sign are themselves."""
    condition: sa.ColumnElement[bool] = column.contains(term, autoescape=True)
    return condition


def contains_unindexed(column: Any, term: str) -> sa.ColumnElement[bool]:
    """The same, but no trigram index can be chosen for it, and other conditions are looked at before: for a few rows."""
    return _Place(column, sa.literal(term)) > 0


def is_one_of(session: Session, column: Any, few: sa.Select[Any]) -> sa.ColumnElement[bool]:
    """The column is one of the few: each is looked up, whatever else the database would rather do."""
    if session.get_bind().dialect.name == "postgresql":
        condition: sa.ColumnElement[bool] = column == sa.any_(sa.func.array(few.scalar_subquery()))
    else:
        condition = column.in_(few)
    return condition


def indexed(dialect: str, term: str) -> bool:
    """Can the index narrow this down?"""
    return len(term) >= (1 if dialect == "postgresql" else SHORTEST)


class Blocks(NamedTuple):
    """Neighbouring blocks of the lowest level, from number ``first`` on; the index of PostgreSQL finds them in one go.
    ``common``: a single one in which there is little to walk until the term has come often enough."""

    first: int
    length: int = 1
    common: bool = False

    @classmethod
    def of(cls, start: int, stop: int) -> "Blocks":
        """With all ids from ``start`` up to ``stop``, and some around."""
        first = start >> BLOCK_BITS[0]
        return cls(first, max(0, -(-stop >> BLOCK_BITS[0]) - first))

    @property
    def end(self) -> int:
        return self.first + self.length

    @property
    def ids(self) -> range:
        return range(self.first << BLOCK_BITS[0], self.end << BLOCK_BITS[0])

    @property
    def key(self) -> str:
        """The widest blocks that they are, as ``_MAKE_BLOCKS`` has them. A text: arrays in an array would have to be of one
        length."""
        keys, at = [], self.first
        while at < self.end:
            widths = [1 << bits - BLOCK_BITS[0] for bits in BLOCK_BITS]
            level, width = max(
                (level, width) for level, width in enumerate(widths) if at % width == 0 and at + width <= self.end
            )
            keys.append(str((at // width) * 4 + level))
            at += width
        return f"{{{','.join(keys)}}}"

    def cut(self, *numbers: int, backward: bool) -> list["Blocks"]:
        """In parts that begin at these numbers, the last one first if ``backward``."""
        edges = [self.first, *sorted({number for number in numbers if self.first < number < self.end}), self.end]
        parts = [Blocks(here, there - here) for here, there in pairwise(edges) if here < there]
        return parts[::-1] if backward else parts

    def nearest(self, *, backward: bool) -> list["Blocks"]:
        """The first block, which costs least; then all up to where a wide one begins, for a look into the index costs hardly
        more for several than for one; then the rest."""
        wide = 1 << BLOCK_BITS[1] - BLOCK_BITS[0]
        if backward:
            return self.cut(self.end - 1, (self.end - 2) // wide * wide, backward=True)
        return self.cut(self.first + 1, -(-(self.first + 2) // wide) * wide, backward=False)

    @property
    def sampled(self) -> range:
        """Ids spread evenly, at most SAMPLES: each in the middle of a block."""
        return self.ids[1 << BLOCK_BITS[0] - 1 :: self._step << BLOCK_BITS[0]]

    @property
    def _step(self) -> int:
        return -(-self.length // SAMPLES)

    def around(self, samples: Sequence[int], *, backward: bool) -> list["Blocks"]:
        """In parts by those of the ``sampled`` ids that have the term: the first blocks of these, where it is likely to be
        common; what lies between one of these and the sample before, where it may become so; all others together, where it is
        likely to be rare if it is there at all."""
        common = sorted((id_ >> BLOCK_BITS[0] for id_ in samples), reverse=backward)[:_COMMON]
        before = [number + 1 + self._step if backward else number - self._step for number in common]
        parts = self.cut(*before, *common, *(number + 1 for number in common), backward=backward)
        return [part._replace(common=part.first in common and part.length == 1) for part in parts]

    def divided(self, ids: Sequence[int], *, backward: bool) -> list["Blocks"]:
        """In parts by ``ids`` of the first rows in it, of which there are more: what is before them, most of them, the rest."""
        if self.length == 1:
            return [self._replace(common=True)]
        numbers = sorted((id_ >> BLOCK_BITS[0] for id_ in ids), reverse=backward)
        near, quantile = numbers[0], numbers[len(numbers) * 3 // 4]
        if backward:
            return self.cut(near + 1, min(near, quantile + 1), backward=True)
        return self.cut(near, max(near + 1, quantile), backward=False)


class _Place(FunctionElement[int]):
    """The position at which the second text begins in the first, from 1; 0 if nowhere."""

    type = sa.Integer()
    inherit_cache = True


@compiles(_Place, "postgresql")
def _strpos(element: _Place, compiler: Any, **options: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **options)})"


@compiles(_Place, "sqlite")
def _instr(element: _Place, compiler: Any, **options: Any) -> str:
    return f"instr({compiler.process(element.clauses, **options)})"


def in_blocks(table: sa.Table, column: Any, term: str, those: Any) -> sa.ColumnElement[bool]:
    """PostgreSQL: the rows of some blocks that the index finds for ``term``, and that have it."""
    here = sa.func.search_blocks(table.c.id, type_=_NUMBERS).overlap(sa.cast(those, _NUMBERS))
    if _TRIGRAM.search(term):
        return sa.and_(here, contains(column, term))
    size = min(len(term), 2)
    parts = {term[at : at + size] for at in range(len(term) - size + 1)}
    having = sa.func.search_parts(column, type_=_TEXTS).contains(sa.literal(sorted(parts), _TEXTS))
    return sa.and_(here, having, contains_unindexed(column, term))


# PostgreSQL makes trigrams of letters and digits, and of where words begin and end (https://www.postgresql.org/docs/15/pgtrgm.html);
# with the locale "C", of ASCII letters only.
_TRIGRAM = re.compile(r"[a-z0-9]{3}|[\W_][a-z0-9]{2}|[a-z0-9]{2}[\W_]", re.ASCII)
_TEXTS: Any = ARRAY(sa.Text)
_NUMBERS: Any = ARRAY(sa.BigInteger)

probed_blocks = (
    sa.func.unnest(sa.bindparam("keys", type_=_TEXTS))
    .table_valued("those", with_ordinality="place")
    .render_derived(name="block")
)
"""PostgreSQL: the blocks with the keys in the parameter ``keys``, each time ``those`` with their ``place`` from 1."""
spread_ids = (
    sa.func.generate_series(*(sa.bindparam(name, type_=sa.BigInteger) for name in ("start", "stop", "step")))
    .table_valued(sa.column("id", sa.BigInteger))
    .render_derived(name="spread")
)
"""PostgreSQL: each ``id`` from the parameter ``start`` to ``stop`` by ``step``."""


def matching_rows(table: sa.Table, column: Any, term: str) -> sa.ColumnElement[bool]:
    """SQLite: the rows of ``table`` that the FTS5 table finds for ``term``; asks for ``contains`` beside it."""
    name = _fts(table.name, column.name)
    hits: sa.Select[Any] = sa.select(sa.literal_column("rowid")).select_from(sa.table(name))
    phrase = '"' + term.replace('"', '""') + '"'
    return table.c.id.in_(hits.where(sa.literal_column(name).op("MATCH")(phrase)))


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
        drop_index(op, _trigrams(table, column))
        return
    fts = _fts(table, column)
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


def build_index(op: Any, name: str, table: str, definition: str) -> None:
    """PostgreSQL: without keeping writers out. What an interrupted build left behind (an invalid index) goes first."""
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        op.execute(f"CREATE INDEX CONCURRENTLY {name} ON {table} {definition}")


def drop_index(op: Any, name: str) -> None:
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


def _gin(table: str, column: str) -> str:
    return f"ix_{table}_{column}_parts"


def _trigrams(table: str, column: str) -> str:
    return f"ix_{table}_{column}_trigrams"


def _fts(table: str, column: str) -> str:
    return f"{table}_{column}_trigrams"
