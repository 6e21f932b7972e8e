"""Counts the files that a service's records name, by folder of templates and by the age of the record: what an operator sees at
``/ops`` and by ``countersign storage``.

Each record is counted by itself: a file that two of them share, as cloned templates do, counts with both. The background
process counts once a day, since it reads every record; ``countersign storage`` counts anew.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, Session, mapped_column

from contracts.rpc.operating import AGES, Storage, StoredFiles
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database, Json, UtcDateTime

LOOKED_EVERY = timedelta(hours=1)
COUNTED_EVERY = timedelta(hours=24)
AT_ONCE = 500
"""Records that are read in one transaction."""

_UNTIL = (timedelta(days=30), timedelta(days=365))

Record = tuple[str | None, datetime, Iterable[Any]]
"""A record: its folder, since when it is there, and JSON in which its files are named."""

Counter = Callable[[Database, datetime], list[StoredFiles]]


class StorageReport:
    """Columns of the table ``storage_reports``, which has one row, id 1; mix into a declarative class. ``files`` is JSON of
    StoredFiles as they were counted at ``at``."""

    __tablename__ = "storage_reports"

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    files: Mapped[list[dict[str, Any]]] = mapped_column(Json)


def columns() -> list[Any]:
    """The columns and constraints of the table, for a migration."""
    return [
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("files", Json, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_storage_reports"),
    ]


def counted(records: Iterable[Record], moment: datetime) -> list[StoredFiles]:
    """Count the files of these records, by folder and age."""
    found: dict[tuple[str | None, str], StoredFiles] = {}
    for folder, since, named in records:
        age = next((age for age, until in zip(AGES, _UNTIL, strict=False) if moment - since <= until), AGES[-1])
        files = dict(named_in(list(named)))
        if not files:
            continue
        part = found.setdefault((folder, age), StoredFiles(folder=folder, age=age, files=0, bytes=0))
        part.files += len(files)
        part.bytes += sum(files.values())
    return [found[key] for key in sorted(found, key=str)]


def named_in(value: Any) -> Iterator[tuple[str, int]]:
    """The key and the size of each BlobRef in plain JSON."""
    if isinstance(value, dict):
        if isinstance(value.get("key"), str) and isinstance(value.get("size"), int) and "sha256" in value:
            yield value["key"], value["size"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from named_in(item)


def kept_counted(database: Database, row: type[Any], count: Counter) -> Callable[[], None]:
    """For a loop: count what has not been counted for COUNTED_EVERY."""

    def look() -> None:
        moment = now()
        at = database.read(lambda session: session.scalar(sa.select(row.at)))
        if at is not None and moment - at < COUNTED_EVERY:
            return
        files = [part.model_dump() for part in count(database, moment)]
        database.write_unsynced(_keep, row, moment, files)

    return look


def report(session: Session, row: type[Any]) -> Storage:
    """What was counted last."""
    found = session.get(row, 1)
    if found is None:
        return Storage()
    return Storage(at=found.at, files=[StoredFiles.model_validate(part) for part in found.files])


def _keep(session: Session, row: type[Any], moment: datetime, files: list[dict[str, Any]]) -> None:
    session.merge(row(id=1, at=moment, files=files))
