"""Rows for every table of a service, made from the models alone: each column gets values that one database or the other may spoil.

They mean nothing. Keys are unique and refer to each other as the models say, and checks hold.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import sqlalchemy as sa

from contracts.runtime.data.database import make_engine, normalised
from deploy.moving.values import Column

ROWS = 7
"""In each table, as many as there are awkward values of most types, at most."""

TEXTS = (
    "",
    " both ends ",
    "quote ' \" \\ \\N \\. \t\n\r",
    "Żółć 漢字 😀 ​﻿ e\u0301",
    "\x01\x1f\x7f\x85 \\x41 %s :name $1",
    "NULL",
    "long " * 100,
)
BEGINNINGS = ("b", "B", "é", "_", "😀", "a", "Z")
"""Of keys: in an order that languages have otherwise than bytes."""

# Only numbers that are the same as an integer and as a float: JSONB gives 1e22 back as an integer.
JSONS: tuple[Any, ...] = (
    {},
    [],
    {"b": 1, "a": [1.0, 1e22, -0.0, 5e-324, 0.1, 2**70], "é": {"": None}},
    {"text": 'a " : , b \\u0000 {}[] \\', "lines": "\u2028\n\t\x1f"},
    [[[[[["deep"]]]]], True, False, None, "😀"],
    {"key": "submissions/x", "sha256": "0" * 64, "size": 2.5e-300},
    {"A": 1, "a": 2, "aa": 3, "B": 4},
)
MOMENTS = (
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 120_000, tzinfo=UTC),
    datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta(hours=5, minutes=45))),
)
BYTES = (b"", b"\0", b"\\x00", bytes(range(256)), b"\xff\xfe text")


def fill(service: str, database_url: str, tables: list[sa.Table]) -> None:
    """Put rows into every table, after removing those that migrations have made."""
    engine = make_engine(normalised(database_url))
    try:
        with engine.execution_options(countersign_write=True).begin() as connection:
            for table in reversed(tables):
                connection.execute(table.delete())
            made: dict[str, list[dict[str, Any]]] = {}
            for table in tables:
                made[table.name] = [_row(table, number, made) for number in range(ROWS)]
                connection.execute(table.insert(), made[table.name])
    finally:
        engine.dispose()


def _row(table: sa.Table, number: int, made: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    row = {}
    for column in table.columns:
        if column.foreign_keys:
            (key,) = column.foreign_keys
            row[column.name] = made[key.column.table.name][number][key.column.name]
        elif _is_key(table, column):
            row[column.name] = _key(column, number)
        else:
            row[column.name] = _value(table, column, number)
    return row


def _is_key(table: sa.Table, column: "sa.Column[Any]") -> bool:
    unique = [
        one.columns for one in table.constraints if isinstance(one, sa.UniqueConstraint | sa.PrimaryKeyConstraint)
    ]
    return bool(column.unique) or any(column.name in columns for columns in unique)


def _key(column: "sa.Column[Any]", number: int) -> Any:
    described = Column.of(column)
    if described.kind == "integer":
        assert described.limit is not None
        return (1, 2, 30, 7, 4096, 5, min(described.limit, 2**40) - 1)[number]
    return f"{BEGINNINGS[number]}{number}"[: described.limit]


def _value(table: sa.Table, column: "sa.Column[Any]", number: int) -> Any:
    described = Column.of(column)
    if allowed := _allowed(table, column):
        return allowed[number % len(allowed)]
    if described.nullable and number == ROWS - 1 and not _must_be_there(table, column):
        return None
    limit = described.limit
    choices: dict[str, Callable[[], Any]] = {
        "boolean": lambda: number % 2 == 0,
        "integer": lambda: (0, -1, limit, -(limit or 0) - 1)[number % 4],
        "text": lambda: TEXTS[number][:limit],
        "bytes": lambda: BYTES[number % len(BYTES)],
        "moment": lambda: MOMENTS[number % len(MOMENTS)],
        "json": lambda: JSONS[number],
    }
    return choices[described.kind]()


def _checks(table: sa.Table) -> list[str]:
    return [str(one.sqltext) for one in table.constraints if isinstance(one, sa.CheckConstraint)]


def _allowed(table: sa.Table, column: "sa.Column[Any]") -> list[str]:
    """The words that a check allows."""
    for check in _checks(table):
        if found := re.fullmatch(rf"{column.name} IN \((.*)\)", check):
            return re.findall(r"'([^']*)'", found.group(1))
    return []


def _must_be_there(table: sa.Table, column: "sa.Column[Any]") -> bool:
    return any(f"{column.name} IS NOT NULL" in check for check in _checks(table))
