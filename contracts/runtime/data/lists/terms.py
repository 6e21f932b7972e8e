"""Conditions on the text that a list is searched in. The search index only says where to look: what matches is decided by
``contains``, the substring comparison itself."""

import re
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import FunctionElement

from contracts.runtime.data import search

SHORTEST = 3

# PostgreSQL makes trigrams of letters and digits, and of where words begin and end (https://www.postgresql.org/docs/15/pgtrgm.html);
# with the locale "C", of ASCII letters only.
_TRIGRAM = re.compile(r"[a-z0-9]{3}|[\W_][a-z0-9]{2}|[a-z0-9]{2}[\W_]", re.ASCII)
TEXTS: Any = ARRAY(sa.Text)
NUMBERS: Any = ARRAY(sa.BigInteger)


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
    here = sa.func.search_blocks(table.c.id, type_=NUMBERS).overlap(sa.cast(those, NUMBERS))
    if _TRIGRAM.search(term):
        return sa.and_(here, contains(column, term))
    size = min(len(term), 2)
    parts = {term[at : at + size] for at in range(len(term) - size + 1)}
    having = sa.func.search_parts(column, type_=TEXTS).contains(sa.literal(sorted(parts), TEXTS))
    return sa.and_(here, having, contains_unindexed(column, term))


def matching_rows(table: sa.Table, column: Any, term: str) -> sa.ColumnElement[bool]:
    """SQLite: the rows of ``table`` that the FTS5 table finds for ``term``; asks for ``contains`` beside it."""
    name = search.full_text_table(table.name, column.name)
    hits: sa.Select[Any] = sa.select(sa.literal_column("rowid")).select_from(sa.table(name))
    phrase = '"' + term.replace('"', '""') + '"'
    return table.c.id.in_(hits.where(sa.literal_column(name).op("MATCH")(phrase)))
