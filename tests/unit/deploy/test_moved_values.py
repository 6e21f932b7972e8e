"""Values of a database as they are moved: what is the same in both kinds, and what does not fit is told."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from contracts.runtime.data.database import BigId, Json, UtcDateTime, to_json
from deploy.moving import values
from deploy.moving.move import tables_of_service
from deploy.moving.values import Column, Digest, Unfit, canonical, for_postgresql, for_sqlite
from deploy.services import SERVICES


def column(of: Any, *, nullable: bool = True) -> Column:
    return Column.of(sa.Column("x", of, nullable=nullable))


@pytest.mark.parametrize("service", SERVICES)
def test_every_column_of_every_service_can_be_moved(service: str) -> None:
    tables = tables_of_service(service)
    assert all(table.key for table in tables), "portions go by the primary key"
    assert {table.columns[place].kind for table in tables for place in table.key} <= {"integer", "text"}


def test_a_type_that_nobody_has_thought_of_is_no_text() -> None:
    with pytest.raises(TypeError, match="cannot be moved yet"):
        column(sa.Interval())


@pytest.mark.parametrize(
    ("of", "stored", "said"),
    [
        (sa.Boolean, 2, "neither true nor false"),
        (sa.Boolean, "true", "neither true nor false"),
        (sa.Integer, 2**31, "beyond 2147483647"),
        (sa.Integer, -(2**31) - 1, "beyond 2147483647"),
        (sa.BigInteger, 2**63, "beyond 9223372036854775807"),
        (BigId, 1.5, "not an integer"),
        (sa.Integer, "7", "not an integer"),
        (sa.Text, "a\0b", "NUL"),
        (sa.Text, b"\xff".decode("utf-8", "surrogateescape"), "not in UTF-8"),
        (sa.Text, b"bytes", "not a text"),
        (sa.String(3), "four", "longer than 3 characters"),
        (sa.LargeBinary, "text", "a text where bytes should be"),
        (sa.LargeBinary, 7, "not bytes"),
        (UtcDateTime, "yesterday", "not a moment"),
        (UtcDateTime, "infinity", "not a moment"),
        (UtcDateTime, "0044-03-15 12:00:00 BC", "not a moment"),
        (UtcDateTime, "0001-01-01 00:00:00+12:00", "not a moment"),
        (UtcDateTime, 1.0, "not a moment"),
        (Json, "{", "not JSON"),
        (Json, "", "not JSON"),
        (Json, "NaN", "not JSON"),
        (Json, "[1e999]", "not JSON"),
        (Json, "[" * 100_000, "not JSON"),
        (Json, '["\\u0000"]', "NUL"),
        (Json, '["\\ud83d"]', "surrogate"),
        (Json, 7, "not a text"),
    ],
)
def test_what_has_no_place_is_told_without_the_value(of: Any, stored: Any, said: str) -> None:
    with pytest.raises(Unfit, match=said):
        column(of).normalised(stored)


def test_null_is_null_where_it_may_be() -> None:
    assert column(Json).normalised(None) is None
    assert canonical("json", None) == b"null" != canonical("json", "null")
    with pytest.raises(Unfit, match="NULL"):
        column(Json, nullable=False).normalised(None)


@pytest.mark.parametrize(
    ("of", "in_sqlite", "in_postgresql"),
    [
        (sa.Boolean, 1, True),
        (sa.Boolean, 0, False),
        (BigId, -(2**63), -(2**63)),
        (sa.Text, "Żółć 😀 \\N \x01", "Żółć 😀 \\N \x01"),
        (sa.LargeBinary, b"\0\xff", b"\0\xff"),
        (UtcDateTime, "2024-02-29 12:00:00.000001", "2024-02-29 12:00:00.000001"),
        (UtcDateTime, "2024-02-29 12:00:00.120000", "2024-02-29 12:00:00.12"),
        (UtcDateTime, "9999-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"),
        (UtcDateTime, "0001-01-01 00:00:00.000000", "0001-01-01 00:00:00"),
        (Json, '{"b":1,"a":[1.0,1e2,-0.0,1e-7]}', '{"a": [1.0, 100, 0.0, 0.0000001], "b": 1}'),
        (Json, '"a\\\\u0000 \\" : , b"', '"a\\\\u0000 \\" : , b"'),
        (Json, "[1e23,12345678901234567890123]", "[100000000000000000000000, 12345678901234567890123]"),
    ],
)
def test_both_databases_store_the_same(of: Any, in_sqlite: Any, in_postgresql: Any) -> None:
    one = column(of)
    ours, theirs = one.normalised(in_sqlite), one.normalised(in_postgresql)
    assert canonical(one.kind, ours) == canonical(one.kind, theirs)
    assert for_sqlite(one.kind, ours) == in_sqlite
    assert type(for_sqlite(one.kind, ours)) is type(in_sqlite)


def test_a_moment_with_a_zone_is_the_same_moment() -> None:
    one = column(UtcDateTime)
    moment = one.normalised("2024-02-29T13:30:00+05:30")
    assert moment == datetime(2024, 2, 29, 8, 0, tzinfo=UTC)
    assert for_sqlite("moment", moment) == "2024-02-29 08:00:00.000000"
    assert for_postgresql(moment) == "2024-02-29T08:00:00+00:00"


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "2"), ("1", '"1"'), ("[]", "{}"), ("0.1", "0.10000000000000001"), ("1e22", "1e23"), ("null", "[null]")],
)
def test_what_differs_has_another_digest(one: str, other: str) -> None:
    assert canonical("json", one) != canonical("json", other)


def test_rows_do_not_run_into_each_other() -> None:
    def digest(*rows: list[str | None]) -> str:
        made = Digest([Column("a", "text", True), Column("b", "text", True)])
        for row in rows:
            made.add(row)
        return str(made)

    different: list[list[list[str | None]]] = [
        [["a", "b"]],
        [["ab", ""]],
        [["", "ab"]],
        [["a", None]],
        [["a", "null"]],
        [["a", "b"], ["a", "b"]],
        [],
    ]
    assert len({digest(*rows) for rows in different}) == len(different)


_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
)


@given(_JSON)
def test_json_stays_what_it_is_and_its_order_does_not_matter(value: Any) -> None:
    stored = column(Json).normalised(json.dumps(value, indent=2))
    assert json.loads(stored) == value
    compact = column(Json).normalised(to_json(value))
    assert compact == to_json(value)
    assert canonical("json", stored) == canonical("json", compact)
    assert b"\n" not in canonical("json", stored)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_same_however_it_is_written(number: float, other: float) -> None:
    as_postgresql_writes_it = format(Decimal(repr(number)), "f")
    assert values._number(repr(number)) == values._number(as_postgresql_writes_it)
    assert (values._number(repr(number)) == values._number(repr(other))) is (number == other)
