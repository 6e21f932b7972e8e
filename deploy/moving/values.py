"""What the values of a table are, whichever database they are in: read as they are stored, checked, and written for a digest.

Nothing goes through the models. A database may hold what no model would have let in, of an older version or put right by hand,
and what is moved is what is there. SQLite keeps nearly anything in a column, PostgreSQL does not: a value that does not fit is
``Unfit``, in words, before anything is changed.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, NoReturn

import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.runtime.data.database import UtcDateTime, to_json

Kind = Literal["boolean", "integer", "text", "bytes", "moment", "json"]

_BITS = {False: 31, True: 63}


class Unfit(Exception):
    """A value that the column has no place for; the message says why, without the value."""


@dataclass(frozen=True)
class Column:
    """A column: ``limit`` is the largest integer, or how many characters a text may have; None: any."""

    name: str
    kind: Kind
    nullable: bool
    limit: int | None = None

    @classmethod
    def of(cls, column: "sa.Column[Any]") -> "Column":
        """Describe a column of a model. Raises TypeError for a type that nobody has taught this module yet."""
        kind, limit = _kind(column.type)
        return cls(column.name, kind, bool(column.nullable), limit)

    def normalised(self, stored: Any) -> Any:
        """Return what either database stores of a value as one: a bool, an int, a str, bytes, an aware datetime, or compact
        JSON. None is NULL. Raises Unfit."""
        if stored is None:
            if not self.nullable:
                raise Unfit("it is NULL, and must not be")
            return None
        return _NORMALISERS[self.kind](stored, self.limit)


class Digest:
    """SHA-256 over rows as lines of JSON, in order of the primary key: the same for the same rows in either database.

    Moments are ISO 8601 in UTC, bytes in hex. JSON is compared as what it says: PostgreSQL keeps neither the order of keys nor
    how a number was written.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._digest = hashlib.sha256()
        self.rows = 0

    def add(self, row: Sequence[Any]) -> None:
        """Add a row of what ``normalised`` returned."""
        line = b",".join(canonical(column.kind, value) for column, value in zip(self._columns, row, strict=True))
        self._digest.update(b"[%b]\n" % line)
        self.rows += 1

    def __str__(self) -> str:
        return self._digest.hexdigest()


def canonical(kind: Kind, value: Any) -> bytes:
    """Return the JSON of a value that ``normalised`` returned, in the one form that a digest is made of."""
    if value is None:
        return b"null"
    if kind == "json":
        return _dumped([_parsed(value)])  # in a list, so that NULL is not the null of JSON
    if kind == "bytes":
        return _dumped(value.hex())
    return _dumped(value.isoformat() if kind == "moment" else value)


def for_sqlite(kind: Kind, value: Any) -> Any:
    """Return what SQLite stores, in the forms in which SQLAlchemy writes them there."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return int(value) if kind == "boolean" and value is not None else value


def for_postgresql(value: Any) -> Any:
    """Return what ``COPY`` takes."""
    return value.isoformat() if isinstance(value, datetime) else value


def _kind(of: Any) -> tuple[Kind, int | None]:
    if isinstance(of, UtcDateTime):
        return "moment", None
    if isinstance(of, sa.Boolean):
        return "boolean", None
    if isinstance(of, sa.Integer):
        return "integer", 2 ** _BITS[isinstance(of, sa.BigInteger)] - 1
    if isinstance(of, sa.JSON):
        return "json", None
    if isinstance(of, sa.LargeBinary):
        return "bytes", None
    if isinstance(of, sa.String):
        return "text", of.length
    raise TypeError(f"values of the type {of!r} cannot be moved yet")


def _boolean(stored: Any, _limit: int | None) -> bool:
    if stored is True or stored is False or (isinstance(stored, int) and stored in (0, 1)):
        return bool(stored)
    raise Unfit("it is neither true nor false")


def _integer(stored: Any, limit: int | None) -> int:
    if not isinstance(stored, int):
        raise Unfit("it is not an integer")
    if limit is not None and not -limit - 1 <= stored <= limit:
        raise Unfit(f"it is beyond {limit}, which is as far as PostgreSQL counts in this column")
    return stored


def _text(stored: Any, limit: int | None) -> str:
    if not isinstance(stored, str):
        raise Unfit("it is not a text")
    _must_be_storable(stored)
    if limit is not None and len(stored) > limit:
        raise Unfit(f"it is longer than {limit} characters")
    return stored


def _bytes(stored: Any, _limit: int | None) -> bytes:
    if not isinstance(stored, bytes):
        raise Unfit("it is a text where bytes should be" if isinstance(stored, str) else "it is not bytes")
    return stored


def _moment(stored: Any, _limit: int | None) -> datetime:
    """Read a text: in SQLite without a zone, which means UTC."""
    try:
        read = datetime.fromisoformat(stored)
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise Unfit("it is not a moment of the years 1 to 9999") from None


def _json(stored: Any, _limit: int | None) -> str:
    text = _text(stored, None)
    try:
        _dumped(_parsed(text))
        if "\\u0000" in text:
            to_json(json.loads(text))  # which tells an escaped NUL from an escaped backslash before u0000
    except ServiceError as error:
        raise Unfit(f"it is JSON of which PostgreSQL keeps no part: {error.message}") from None
    except UnicodeEncodeError:
        raise Unfit("it is JSON with half a surrogate pair, which PostgreSQL refuses") from None
    except (ValueError, RecursionError, InvalidOperation):
        raise Unfit("it is not JSON") from None
    return _SPACE.sub(lambda match: match.group(1) or "", text)


_NORMALISERS = {
    "boolean": _boolean,
    "integer": _integer,
    "text": _text,
    "bytes": _bytes,
    "moment": _moment,
    "json": _json,
}

_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')
"""Strings, which stay, and what PostgreSQL writes between the parts of JSON."""


def _must_be_storable(text: str) -> None:
    if "\0" in text:
        raise Unfit("it is a text with a NUL character, which PostgreSQL refuses")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unfit("it is a text that is not in UTF-8") from None


def _parsed(text: str) -> Any:
    return json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_no_number)


def _number(written: str) -> str:
    """Return a number as it is compared: 100, 1e2 and 100.0 are one. It begins with NUL, as no text does."""
    if written.lstrip("-").isdigit():
        return "\0" + ("0" if written == "-0" else written)
    if abs(float(written)) == float("inf"):
        raise ValueError
    sign, digits, exponent = Decimal(written).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    significant = text.rstrip("0")
    exponent += len(text) - len(significant)
    if not significant:
        return "\0000"
    minus = "-" if sign else ""
    return f"\0{minus}{significant}{'0' * exponent}" if exponent >= 0 else f"\0{minus}{significant}e{exponent}"


def _no_number(_written: str) -> NoReturn:
    raise ValueError("NaN and Infinity are no JSON")


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
