"""CSV as spreadsheets write it: in UTF-8 or UTF-16, with commas, semicolons or tabs, with line breaks within quotes (RFC 4180).

Nothing is guessed that could be guessed wrongly: what is not Unicode is refused, and values stay the text that they are.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from contracts.errors import ServiceError, invalid

MOST_COLUMNS, MOST_CELLS = 1_000, 1_000_000
LARGEST_CELL = 131_072
"""Characters; it is what Python's reader takes. Larger files are sent as their URLs."""

_DELIMITERS = ",;\t"
_SEPARATOR_LINE = re.compile(r"\ufeff?sep=([,;\t|])\r?\n?", re.IGNORECASE)
_ARCHIVE, _COMPOUND = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"


@dataclass(frozen=True)
class Table:
    """``rows`` are those that are not blank, each with its number as a spreadsheet counts: the header is in row ``header_row``,
    which is 1 unless blank ones come before it. A row has a cell for each column at least."""

    header: list[str]
    header_row: int
    rows: list[tuple[int, list[str]]]


def read_table(data: bytes, most_rows: int) -> Table:
    """Read a CSV file. Raises ServiceError: ``bad_request`` for what is none, ``invalid`` for one without rows, or with more
    than ``most_rows``, ``too_large`` for one with more values than there is memory for."""
    text = _text(data)
    delimiter = None
    if match := _SEPARATOR_LINE.match(text[:10]):  # Excel writes and hides it
        delimiter, text = match[1], text[match.end() :]
    header: list[str] | None = None
    header_row = 0
    rows: list[tuple[int, list[str]]] = []
    values = 0
    for number, cells in _records(text, delimiter or _delimiter(text)):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) > MOST_COLUMNS:
            raise invalid(
                f"The file must not have more than {MOST_COLUMNS:,} columns.",
                "rows",
                f"must not have more than {MOST_COLUMNS:,} columns",
            )
        if header is None:
            header, header_row = [cell.strip() for cell in cells], number
            continue
        values += sum(map(bool, cells))
        if values > MOST_CELLS:
            raise ServiceError("too_large", f"The file must not hold more than {MOST_CELLS:,} values.")
        if len(rows) == most_rows:
            raise too_many(most_rows)
        rows.append((number, cells + [""] * (len(header) - len(cells))))
    if header is None or not rows:
        raise invalid("The file has no rows below its header.", "rows", "is empty")
    return Table(header, header_row, rows)


def too_many(most_rows: int) -> ServiceError:
    """The refusal of a file with too many rows."""
    reason = f"must not have more than {most_rows:,} rows"
    return invalid(f"The file {reason}.", "rows", reason)


def text_of(data: bytes) -> str:
    """Return the text of a file in UTF-8, with or without a byte-order mark. Raises ServiceError("bad_request")."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _malformed(f"line {line} is not UTF-8: save the file as “CSV UTF-8”") from None
    if "\x00" in text:
        raise _malformed("it contains NUL characters")
    return text


def _text(data: bytes) -> str:
    if data.startswith((_ARCHIVE, _COMPOUND)):
        raise _malformed("it is a spreadsheet: save it as CSV")
    if not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return text_of(data)
    try:
        return text_of(data.decode("utf-16").encode())
    except UnicodeError:
        raise _malformed("it begins with the mark of UTF-16 but is not UTF-16: save the file as “CSV UTF-8”") from None


def _records(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The records, numbered from 1. A blank line is one, as it is a row of a spreadsheet."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number = 0
    while True:
        number += 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise _malformed(f"row {number} (line {reader.line_num}): {_explained(str(error))}") from None
        yield number, cells


def _explained(error: str) -> str:
    if "unexpected end" in error:
        return "a quotation mark is not closed"
    if "expected after" in error:
        return "a quotation mark within a value must be doubled"
    if "field larger" in error:
        return f"a value is longer than {LARGEST_CELL:,} characters"
    return error


def _delimiter(text: str) -> str:
    """The one that separates the names of the columns: the most frequent outside of quotation marks in the first line."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    outside = re.sub(r'"[^"]*"', "", first)
    return max(_DELIMITERS, key=outside.count)


def _malformed(reason: str) -> ServiceError:
    return ServiceError("bad_request", f"Malformed CSV: {reason}.")
