"""Read how far the numbers that a database gives out have come, table by table, and let them jump.

Every number: SQLite's AUTOINCREMENT and PostgreSQL's serial columns, found in the database itself, so that no table can be
forgotten. After a restore they go on where the backup was, and would name something new with a number that the outside world
knows as something else: ``jump`` leaves a gap instead.
"""

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

RESERVE = 10_000
"""So many numbers are skipped when nobody knows how many were given out after the backup."""

_OWNED_SEQUENCES = sa.text(
    "SELECT owner.relname AS table_name, seq.oid::regclass::text AS sequence,"
    " coalesce(pg_sequence_last_value(seq.oid), 0) AS given"
    " FROM pg_class seq"
    " JOIN pg_depend link ON link.classid = 'pg_class'::regclass AND link.objid = seq.oid"
    "  AND link.refclassid = 'pg_class'::regclass AND link.deptype IN ('a', 'i')"
    " JOIN pg_class owner ON owner.oid = link.refobjid"
    " WHERE seq.relkind = 'S' AND seq.relnamespace = current_schema()::regnamespace ORDER BY 1, 2"
)
_COUNTED = sa.text(
    "SELECT made.name, coalesce(counted.seq, 0) AS given FROM sqlite_master made"
    " LEFT JOIN sqlite_sequence counted ON counted.name = made.name"
    " WHERE made.type = 'table' AND made.sql LIKE '%AUTOINCREMENT%' ORDER BY 1"
)
_COUNT_ON = sa.text("UPDATE sqlite_sequence SET seq = :seq WHERE name = :name")
_COUNT_FROM = sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)")
_COUNTS_AT_ALL = sa.text("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'")


def highest_numbers(connection: Connection) -> dict[str, int]:
    """The highest number that each table has given out, 0 where there was none yet. On PostgreSQL also those of transactions
    that are still under way or were rolled back."""
    if connection.dialect.name == "postgresql":
        return {row.table_name: row.given for row in connection.execute(_OWNED_SEQUENCES)}
    if connection.scalar(_COUNTS_AT_ALL) is None:
        return {}
    return {row.name: row.given for row in connection.execute(_COUNTED)}


def jump(connection: Connection, floors: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Let each table's numbers go on RESERVE above where they are and above ``floors``; never back. In the caller's
    transaction: rolled back, nothing has changed. Returns from where to where, by table."""
    jumps = {
        table: (number, max(floors.get(table, 0), number) + RESERVE)
        for table, number in highest_numbers(connection).items()
    }
    go_on_above(connection, {table: number for table, (_, number) in jumps.items()})
    return jumps


def go_on_above(connection: Connection, numbers: Mapping[str, int]) -> None:
    """Let the numbers of these tables go on above these, as if the last one had been given out; 0: as if none had been. In the
    caller's transaction. A table that gives out no numbers is left as it is."""
    if connection.dialect.name == "postgresql":
        for row in connection.execute(_OWNED_SEQUENCES).all():
            if row.table_name not in numbers:
                continue
            number = numbers[row.table_name]
            # Unlike setval this belongs to the transaction. A sequence says how far it is once it has given a number.
            connection.execute(sa.text(f"ALTER SEQUENCE {row.sequence} RESTART {f'WITH {number}' if number else ''}"))
            if number:
                connection.execute(sa.text("SELECT nextval(:sequence)"), {"sequence": row.sequence})
        return
    for table in numbers.keys() & highest_numbers(connection).keys():
        values = {"name": table, "seq": numbers[table]}
        if connection.execute(_COUNT_ON, values).rowcount == 0:
            connection.execute(_COUNT_FROM, values)
