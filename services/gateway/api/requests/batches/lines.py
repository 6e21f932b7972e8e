"""NDJSON: in each line the body of a ``POST /submissions``, without what all rows have in common."""

from typing import Any

from contracts.errors import ServiceError
from contracts.rpc.submissions.batches import RowProblem
from services.gateway.api.requests.batches.tables import text_of, too_many
from services.gateway.http import json_body


def read_lines(data: bytes, most_rows: int) -> tuple[list[tuple[int, dict[str, Any]]], list[RowProblem]]:
    """Return the objects with the numbers of their lines, and what is wrong with others. Blank lines are none.

    Raises ServiceError: ``bad_request`` for what is not UTF-8, ``invalid`` for too many lines, ``too_large`` for too many
    values.
    """
    rows: list[tuple[int, dict[str, Any]]] = []
    problems: list[RowProblem] = []
    json_body.refuse_too_many_values(data)
    text = text_of(data)
    if text[:1_000].lstrip().startswith("["):
        raise ServiceError("bad_request", "Malformed NDJSON: the file holds an array. Write one object in each line.")
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if len(rows) + len(problems) == most_rows:
            raise too_many(most_rows)
        try:
            value = json_body.loads(line.encode())
        except ServiceError as error:
            problems.append(RowProblem(row=number, reason=error.message))
            continue
        if isinstance(value, dict):
            rows.append((number, value))
        else:
            problems.append(RowProblem(row=number, reason="is not a JSON object"))
    return rows, problems
