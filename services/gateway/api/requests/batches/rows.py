"""The rows of a file, CSV or NDJSON, as bodies that the interface takes; and what is wrong with the others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any

import orjson

from contracts.errors import ServiceError, invalid
from contracts.problems import with_more
from contracts.rpc.submissions.batches import RowProblem
from services.gateway.api.requests.batches import columns, lines, tables
from services.gateway.api.requests.batches.columns import Roles, Schema
from services.gateway.http.openapi import ignored_keys
from services.gateway.http.openapi.schemas import BodySchema

MOST_ROWS = 10_000
MOST_TOLD = 100
_OF_THE_ROW = ("external_id", "template_id")
"""Keys of a row that are none of a submission."""
LARGEST_ROW = 1_000_000
"""Bytes of what one row says, as JSON."""


class Kind(StrEnum):
    """How the rows of a file are written."""

    CSV = "csv"
    NDJSON = "ndjson"


@dataclass(frozen=True)
class RowSchemas:
    """What a row may say: for the validator, and its schema and that of a submitter, from which columns get their meaning."""

    body: BodySchema
    of_row: Schema
    of_submitter: Schema


@dataclass
class Row:
    """A row that was read. ``places`` says what the columns of its submitters begin with, None where it came as JSON."""

    number: int
    body: dict[str, Any]
    external_id: str | None = None
    places: list[str] | None = None

    def problem(self, place: str, reason: str) -> RowProblem:
        """Return a problem with its place as the file has it."""
        field = place if self.places is None else columns.column_of(place, self.places)
        return RowProblem(row=self.number, field=field, reason=reason)


@dataclass
class Rows:
    """The rows of a file, what is wrong with them, and what of them is ignored."""

    read: list[Row]
    problems: list[RowProblem] = field(default_factory=list)
    warnings: list[RowProblem] = field(default_factory=list)

    def fault(self, row: Row, refused: ServiceError) -> None:
        """Note what a row is refused for."""
        details = refused.details or [{"field": "", "reason": refused.message}]
        self.problems += [row.problem(str(detail.get("field", "")), str(detail["reason"])) for detail in details]

    def first_problems(self) -> list[dict[str, Any]]:
        """List the first problems, in the order of the file."""
        self.problems.sort(key=lambda problem: problem.row)
        return [problem.model_dump() for problem in self.problems[:MOST_TOLD]]

    def refuse(self) -> None:
        """Raises ServiceError("invalid") that says the first of what is wrong, and names all."""
        if details := self.first_problems():
            first = self.problems[0]
            place = f"row {first.row}, {first.field}:" if first.field else f"row {first.row}"
            raise ServiceError("invalid", with_more(f"{place} {first.reason}", len(self.problems)), details)

    def fine(self) -> list[Row]:
        """Return the rows with which nothing is wrong."""
        at_fault = {problem.row for problem in self.problems}
        return [row for row in self.read if row.number not in at_fault]


def read_rows(data: bytes, kind: Kind, roles: Roles, template_id: int, schemas: RowSchemas) -> Rows:
    """Read a file for a template with these roles. Raises ServiceError for one that cannot be read at all, that has no rows, or
    more than ``MOST_ROWS``."""
    rows = _of_lines(data, template_id) if kind is Kind.NDJSON else _of_table(data, roles, schemas)
    rows.warnings += _repeated_keys(rows.read)
    for row in rows.read:
        if len(orjson.dumps(row.body)) > LARGEST_ROW:
            reason = f"must not have more than {LARGEST_ROW:,} bytes: give files as URLs"
            rows.problems.append(RowProblem(row=row.number, reason=reason))
            continue
        if row.places is None and len(rows.warnings) < MOST_TOLD:  # an unknown column is refused
            ignored = [place for place in schemas.body.ignored(row.body) if place not in _OF_THE_ROW]
            rows.warnings += [row.problem(place, ignored_keys.REASON) for place in ignored]
        try:
            row.body = schemas.body.accept(row.body)
        except ServiceError as refused:
            rows.fault(row, refused)
    return rows


def _of_lines(data: bytes, template_id: int) -> Rows:
    bodies, problems = lines.read_lines(data, MOST_ROWS)
    if not bodies and not problems:
        raise invalid("The file has no rows.", "rows", "is empty")
    rows = Rows([], problems)
    for number, body in bodies:
        if str(body.get("template_id") or template_id) != str(template_id):
            problems.append(RowProblem(row=number, field="template_id", reason="must be that of the whole batch"))
        external_id = body.get("external_id")
        row = Row(number, body, external_id if isinstance(external_id, str) and external_id else None)
        if row.external_id is not None and isinstance(body.get("submitters"), list):
            body["submitters"] = [_with_key(entry, row.external_id) for entry in body["submitters"]]
        rows.read.append(row)
    return rows


def _repeated_keys(rows: Sequence[Row]) -> Iterator[RowProblem]:
    """Yield a warning for each row, of the first, whose key an earlier row has: both are made, and a program that looks for
    the key finds two."""
    first: dict[str, int] = {}
    repeated = (row for row in rows if row.external_id and first.setdefault(row.external_id, row.number) != row.number)
    for row in islice(repeated, MOST_TOLD):
        reason = f"is that of row {first[row.external_id or '']}, too"
        yield RowProblem(row=row.number, field="external_id", reason=reason)


def _with_key(entry: Any, external_id: str) -> Any:
    """A signer without a key of their own has that of the row."""
    if not isinstance(entry, dict) or entry.get("external_id") or entry.get("application_key"):
        return entry
    return {**entry, "external_id": external_id}


def _of_table(data: bytes, roles: Roles, schemas: RowSchemas) -> Rows:
    table = tables.read_table(data, MOST_ROWS)
    understood, problems = columns.understood(
        table.header, table.header_row, roles, schemas.of_row, schemas.of_submitter
    )
    if problems:  # what is in them nobody knows
        return Rows([], problems)
    rows = Rows([])
    for number, cells in table.rows:
        read = understood.row(cells)
        key = {} if read.external_id is None else {"external_id": read.external_id}
        rows.read.append(Row(number, {**read.body, **key}, read.external_id, read.places))
        if understood.beyond(cells):
            rows.problems.append(RowProblem(row=number, reason="has a value in a column without a name"))
    return rows
