"""Move one service's database into another, table by table, in portions, and compare what came out.

The source is held alone, in one transaction, and read twice: to find its digests and what a target would refuse, then to
copy. It is never changed. The target is read back and compared. What is half moved says so itself (``migrations.MOVING``): no
service starts on it, and the next try goes on behind its last portion.
"""

import contextlib
import hashlib
import importlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from contracts.runtime import migrations
from contracts.runtime.data.tables import event_stream, runtime_metadata
from contracts.runtime.restored import identities
from deploy.manifest import Unsuitable
from deploy.moving.databases import Opened, Table, Target, holding
from deploy.moving.values import Digest, Unfit

PORTION_ROWS = 1000
PORTION_BYTES = 8 * 1024 * 1024
"""A portion ends with the row that reaches either."""

MOST_FAULTS = 20
"""So many are named."""


class Different(Exception):
    """What came out is not what went in; the message names the tables. Nothing starts on the target."""


@dataclass(frozen=True)
class Counted:
    """What a table holds: how many rows, their digest, and the highest number that it has given out, if it gives out any."""

    rows: int
    sha256: str
    number: int = 0


@dataclass(frozen=True)
class Source:
    """A source that is held, and was found to be fit: ``state`` names what it holds, ``epoch`` which life it is in."""

    service: str
    opened: Opened
    revision: str
    epoch: str
    tables: tuple[Table, ...]
    counted: Mapping[str, Counted]

    @property
    def state(self) -> str:
        facts = [
            self.revision,
            *sorted((name, count.rows, count.sha256, count.number) for name, count in self.counted.items()),
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


@dataclass(frozen=True)
class Moved:
    """What a move came to. ``kinds`` are those of source and target; ``again``: everything was there already."""

    service: str
    kinds: tuple[str, str]
    counted: Mapping[str, Counted]
    again: bool


def tables_of_service(service: str) -> tuple[Table, ...]:
    """Return all tables of a service's database: those that others refer to come before these."""
    models = importlib.import_module(f"services.{service}.models")
    both = (*runtime_metadata.sorted_tables, *models.Base.metadata.sorted_tables)
    return tuple(map(Table.of, both))


@contextlib.contextmanager
def examined(service: str, url: str) -> Iterator[Source]:
    """Hold a source and look through all of it. Raises Unsuitable when somebody uses it, when it is not as this version has it,
    or naming what a target would refuse."""
    tables = tables_of_service(service)
    with holding(url, tables) as opened:
        latest = migrations.revisions(service)[-1]
        if (revision := opened.revision()) != latest:
            raise Unsuitable(
                f"its schema is at {revision}, this version's at {latest}: move with the countersign of the version that runs,"
                f" and run countersign migrate {service} first"
            )
        _must_be_known(opened, tables)
        highest_numbers = identities.highest_numbers(opened.connection)
        faults: list[str] = []
        counted = {table.name: _examine_table(opened, table, highest_numbers, faults) for table in tables}
        faults += opened.dangling()
        if faults:
            more = f"\n  and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
            raise Unsuitable("it holds what cannot be moved:\n  " + "\n  ".join(faults[:MOST_FAULTS]) + more)
        epoch = str(opened.connection.scalar(sa.select(event_stream.c.epoch)))
        yield Source(service, opened, latest, epoch, tables, counted)


def move(source: Source, target: Target, *, say: Callable[[str], None] = lambda _: None) -> Moved:
    """Move, or go on with a move that was interrupted. Raises Unsuitable or Different; may be called again then."""
    if not (again := is_moved(source, target)):
        _make_ready(source, target, say)
        for table in source.tables:
            _copy(source, table, target, say)
        target.go_on_above({name: count.number for name, count in source.counted.items()})
    _compare(source, target)
    if not again:
        target.end()
    return Moved(source.service, (source.opened.kind, target.opened.kind), source.counted, again)


def is_moved(source: Source, target: Target) -> bool:
    """Was this source moved into the target before, so that nothing is left but to compare? Raises Unsuitable when something
    else is in the target. Changes nothing."""
    if not target.is_there or not (existing_tables := target.tables()):
        return False
    facts = target.facts()
    if facts:
        if (facts["service"], facts["epoch"]) != (source.service, source.epoch):
            raise Unsuitable("the target holds a part of another database: give an empty one")
        return False
    with target.transaction() as connection:
        is_same = (
            event_stream.name in existing_tables and connection.scalar(sa.select(event_stream.c.epoch)) == source.epoch
        )
        is_same = is_same and migrations.revision_of(connection) == source.revision
    if not is_same:
        raise Unsuitable("the target is not empty: give an empty one")
    if _digests(source, target) != _digests_of(source):
        raise Unsuitable("the target is not empty: it was moved there before, and one of both has changed since")
    return True


def _must_be_known(opened: Opened, tables: Sequence[Table]) -> None:
    """Refuse what this version does not know: it would stay behind."""
    expected = {table.name: {column.name for column in table.columns} for table in tables}
    layout = opened.layout()
    if strange := sorted(layout.keys() - expected.keys()):
        raise Unsuitable(f"it has tables that this version does not know, and would stay behind: {', '.join(strange)}")
    for name, columns in expected.items():
        if layout.get(name) != columns:
            differing = sorted(columns ^ layout.get(name, set()))
            raise Unsuitable(f"its table {name} is not as this version has it: {', '.join(differing)}")


def _examine_table(opened: Opened, table: Table, highest_numbers: Mapping[str, int], faults: list[str]) -> Counted:
    digest, last = Digest(table.columns), None
    for stored in opened.stored(table):
        row = []
        for column, value in zip(table.columns, stored, strict=True):
            try:
                row.append(column.normalised(value))
            except Unfit as reason:
                faults.append(f"{table.place_of(stored)}, {column.name}: {reason}")
        if len(row) == len(stored):
            digest.add(row)
            last = table.key_of(row)
    highest = last[0] if last is not None and len(last) == 1 and isinstance(last[0], int) else 0
    return Counted(digest.rows, str(digest), max(highest, highest_numbers.get(table.name, 0)))


def _make_ready(source: Source, target: Target, say: Callable[[str], None]) -> None:
    """Give an empty target its schema, or find out whether what is half moved is of this source as it is now."""
    target.make_file()
    if not (facts := target.facts()):
        migrations.check_trigrams(source.service, target.text)
        target.begin(service=source.service, epoch=source.epoch)
    elif facts.get("state") == source.state:
        say("going on where it was interrupted")
        return
    elif "state" in facts:
        say("the source has changed since it was interrupted: beginning anew")
    target.let_go()
    migrations.upgrade(source.service, target.text, moving=True)
    target.begin_rows(source.tables, source.state)


def _copy(source: Source, table: Table, target: Target, say: Callable[[str], None]) -> None:
    after, rows, all_rows = target.progress(table), 0, source.counted[table.name].rows
    for portion in _portions(source.opened, table, after):
        after = target.add(table, portion, after)
        rows += len(portion)
        if rows < all_rows:
            say(f"{table.name}: {rows} rows more, of {all_rows} in all")


def _portions(opened: Opened, table: Table, after: Sequence[Any] | None) -> Iterator[list[list[Any]]]:
    portion: list[list[Any]] = []
    size = 0
    for stored in opened.stored(table, after):
        portion.append([column.normalised(value) for column, value in zip(table.columns, stored, strict=True)])
        size += sum(len(value) for value in stored if isinstance(value, str | bytes))
        if len(portion) >= PORTION_ROWS or size >= PORTION_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _compare(source: Source, target: Target) -> None:
    ours, theirs = _digests_of(source), _digests(source, target)
    if differing := [name for name in ours if ours[name] != theirs[name]]:
        counts = ", ".join(f"{name} ({ours[name][0]} rows, {theirs[name][0]} there)" for name in differing)
        raise Different(f"what is in the target is not what was moved: {counts}")
    with target.transaction() as connection:
        if faults := list(itertools.islice(target.opened.dangling(), MOST_FAULTS)):
            raise Different("the target does not hold together: " + "; ".join(faults))
        highest_numbers = identities.highest_numbers(connection)
    ahead = [name for name, number in highest_numbers.items() if number != source.counted[name].number]
    if ahead:
        raise Different(f"numbers would not go on where they were: {', '.join(ahead)}")


def _digests_of(source: Source) -> dict[str, tuple[int, str]]:
    return {name: (count.rows, count.sha256) for name, count in source.counted.items()}


def _digests(source: Source, target: Target) -> dict[str, tuple[int, str]]:
    """Read the target back."""
    digests: dict[str, tuple[int, str]] = {}
    with target.transaction():
        for table in source.tables:
            digest = Digest(table.columns)
            try:
                for stored in target.opened.stored(table):
                    digest.add([column.normalised(value) for column, value in zip(table.columns, stored, strict=True)])
            except Unfit:
                digests[table.name] = (digest.rows, "")
            else:
                digests[table.name] = (digest.rows, str(digest))
    return digests
