"""CSV as PostgreSQL writes and reads it: a judge of ours in both directions, with whatever it quotes, separates and ends."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from services.gateway.api.requests.batches.results import results_csv
from services.gateway.api.requests.batches.tables import read_table
from tests.support.servers.postgres import PrivatePostgres

HEADER = ["external_id", "Tenant.email", "values.Street, number", "values.Remark; long"]
ROWS = [
    ["4711", "bob@example.com", "Rue A; 7", 'one\ntwo\r\n\nthree "x"'],
    ["0012", "zoë@example.com", "Straße\t1, links", " blanks "],
    ["", "", "", ""],
    ["4713", "林@example.com", "\\N", '"'],
]


@pytest.fixture(scope="module")
def connection(postgres: PrivatePostgres) -> Iterator[psycopg.Connection]:
    url = sa.make_url(postgres.new_database()).set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(hide_password=False)) as made:
        columns = ", ".join(f'"{name}" text' for name in HEADER)
        made.execute(f"CREATE TABLE leases ({columns})")
        with made.cursor() as cursor:
            cursor.executemany("INSERT INTO leases VALUES (%s, %s, %s, %s)", ROWS)
        yield made


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("quoting", ["", ", FORCE_QUOTE *"])
def test_what_postgresql_writes_is_read_as_it_was(connection: psycopg.Connection, delimiter: str, quoting: str) -> None:
    options = f"FORMAT csv, HEADER, DELIMITER E'{delimiter}', ENCODING 'UTF8'{quoting}"
    with connection.cursor() as cursor, cursor.copy(f"COPY leases TO STDOUT WITH ({options})") as copy:
        data = b"".join(bytes(piece) for piece in copy)
    table = read_table(data, 100)
    assert table.header == HEADER
    assert table.rows == [(number, ROWS[number - 2]) for number in (2, 3, 5)]


def test_postgresql_reads_our_results_as_they_were_written(connection: psycopg.Connection) -> None:
    signer = {
        "role": 'Tenant "A", first',
        "email": "zoë@example.com",
        "status": "pending",
        "slug": "s",
        "embed_src": "https://x/s/s",
    }
    error = {"error": 'one\r\ntwo, "three"', "code": "invalid", "details": []}
    rows: list[dict[str, Any]] = [
        {
            "row": 2,
            "external_id": "=1+1",
            "status": "created",
            "submission_id": 31,
            "error": None,
            "submitters": [signer],
        },
        {"row": 3, "external_id": None, "status": "failed", "submission_id": None, "error": error, "submitters": []},
    ]
    columns = ", ".join(f"c{number} text" for number in range(9))
    connection.execute(f"CREATE TEMPORARY TABLE results ({columns})")
    data = results_csv(rows).decode("utf-8-sig").encode()
    with (
        connection.cursor() as cursor,
        cursor.copy("COPY results FROM STDIN WITH (FORMAT csv, NULL 'nothing')") as copy,
    ):
        copy.write(data)
    assert connection.execute("SELECT * FROM results").fetchall() == [
        (
            "row",
            "external_id",
            "status",
            "submission_id",
            *(f'Tenant "A", first.{what}' for what in ("email", "status", "slug", "link")),
            "error",
        ),
        ("2", "'=1+1", "created", "31", "zoë@example.com", "pending", "s", "https://x/s/s", ""),
        ("3", "", "failed", "", "", "", "", "", 'one\r\ntwo, "three"'),
    ]
