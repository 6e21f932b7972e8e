"""Which rows a page of a list shows: answers that stay flat however many rows there are, whatever is asked for.

``ORDER BY id LIMIT 10`` leaves a database a choice that goes wrong in both directions: to walk along the ids until ten rows
fit, which is long when few do, or to collect all that fit and sort them, which is long when many do. It guesses from
statistics that know nothing of parts of texts, of joined tables, or of where along the ids the rows lie. So it is not asked:

1. The next WINDOW rows in order of the ids are looked at. What is common fills the page there. If a few fit, a second, wide
   window is likely to fill it and costs less than collecting.
2. Only for what is rare the other way is gone: all that fit, found by the search index or from what ``rare`` starts with,
   then sorted. A term that is rare here may be common farther on: the search index is asked for one part of the ids after
   the other, and a part that has many is walked along.

The ids alone are found here; the page's rows are read by them.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime import search

WINDOW, SCATTERED, WIDE = 1_000, 250, 20_000
"""The first window; the same along an index of another condition, where each row is on a page of its own; the second."""
FEW = 2
"""So many found in the first window make the second worth its while."""
COMMON = 0.008
"""A term that this share of a window's rows contain is not looked up in the search index: it would be found everywhere."""
MANY = 500
"""So many rows of some blocks are not collected and sorted."""
AT_ONCE = 8
"""So many blocks are asked for at once."""
LONG = 1 << search.BLOCK_BITS[2]
"""In so many ids a common term is not looked up in the widest blocks."""

Conditions = Sequence[sa.ColumnElement[bool]]


@dataclass(frozen=True)
class Span:
    """The ids in question, the order (``backward``: from the highest down), and how many are wanted."""

    wanted: int
    after: int | None = None
    before: int | None = None
    backward: bool = False

    def of(self, key: Any) -> list[sa.ColumnElement[bool]]:
        bounds = []
        if self.after is not None:
            bounds.append(key > self.after)
        if self.before is not None:
            bounds.append(key < self.before)
        return bounds

    def order(self, key: Any) -> Any:
        return key.desc() if self.backward else key.asc()

    def until(self, edge: int) -> "Span":
        return replace(self, after=edge - 1) if self.backward else replace(self, before=edge + 1)


@dataclass(frozen=True)
class Listing:
    """What is listed. ``exact`` speaks of the listed table alone and an index gives it in order of ``key``; ``filters`` are
    all the other conditions. ``term`` is searched for in ``text``.

    ``rare`` finds those that are rare among the exact ones, on PostgreSQL; it is given the conditions on the listed table.
    Without it they are collected as the database likes. ``small``: there are few, collect them at once.
    """

    table: sa.Table
    source: sa.FromClause
    exact: Conditions = ()
    filters: Conditions = ()
    text: Any = None
    term: str = ""
    rare: Callable[[Session, Conditions, Span], list[int]] | None = None
    small: bool = False

    @property
    def key(self) -> Any:
        return self.table.c.id

    @property
    def plain(self) -> bool:
        """Does an index give the list as it is?"""
        return not self.filters and not self.term and not self.small


def ids(session: Session, listing: Listing, span: Span) -> list[int]:
    """The first ``span.wanted`` ids in the span's order."""
    search_for = [search.contains_unindexed(listing.text, listing.term)] if listing.term else []
    if listing.small:
        return _collected(session, listing, span, search_for)
    if listing.plain:
        return _walked(session, listing, span, [])
    window = SCATTERED if listing.exact else WINDOW
    found, complete = _in_window(session, listing, span, search_for, window)
    matches = len(found)
    if not complete and matches >= FEW and not listing.exact:
        found, complete = _in_window(session, listing, span, search_for, WIDE)
    if complete:
        return found
    postgresql = session.get_bind().dialect.name == "postgresql"
    if listing.term and _is_rare(session, listing, span, window, matches):
        if postgresql:
            return _looked_up(session, listing, span)
        narrowed = search.matching_rows(listing.table, listing.text, listing.term)
        return _walked(session, listing, span, [narrowed, *search_for])
    if listing.filters and postgresql:
        if listing.rare is None:
            return _collected(session, listing, span, search_for)
        return listing.rare(session, [*listing.exact, *span.of(listing.key), *search_for], span)
    return _walked(session, listing, span, search_for)


def _in_window(session: Session, listing: Listing, span: Span, more: Conditions, window: int) -> tuple[list[int], bool]:
    """What fits among the next rows, and whether that is all that is wanted or all there is."""
    edge = session.scalar(_window(listing, span, listing.key).offset(window - 1).limit(1))
    found = _walked(session, listing, span if edge is None else span.until(edge), more)
    return found, edge is None or len(found) >= span.wanted


def _walked(session: Session, listing: Listing, span: Span, more: Conditions) -> list[int]:
    """Along the ids until there are enough."""
    return list(session.scalars(_all(listing, span, more).order_by(span.order(listing.key)).limit(span.wanted)))


def _collected(session: Session, listing: Listing, span: Span, more: Conditions) -> list[int]:
    """All that fit, sorted. Materialized, so that the order cannot lure the database along the ids."""
    few = _all(listing, span, more).cte("few").prefix_with("MATERIALIZED", dialect="postgresql")
    return list(session.scalars(sa.select(few.c.id).order_by(span.order(few.c.id)).limit(span.wanted)))


def _looked_up(session: Session, listing: Listing, span: Span) -> list[int]:
    """PostgreSQL: what the search index finds, in one part of the ids after the other, and more and more of them at once."""
    highest = session.scalar(sa.select(sa.func.max(listing.key))) or 0
    low = max(0, -1 if span.after is None else span.after + 1)
    high = highest if span.before is None else min(highest, span.before - 1)
    common = high - low > LONG and _estimated(session, listing) > COMMON * highest
    blocks = search.blocks(low, high, backward=span.backward, widest=1 if common else 2)
    known = _known(listing, span)
    found: list[int] = []
    for level, same in itertools.groupby(blocks, key=lambda block: block.level):
        at_once = 1 if common and level else AT_ONCE
        while len(found) < span.wanted and (together := list(itertools.islice(same, at_once))):
            found += _in_blocks(session, listing, replace(span, wanted=span.wanted - len(found)), known, together)
    return found


def _known(listing: Listing, span: Span) -> sa.Select[Any]:
    """MANY of the rows that the search index finds in some blocks, and whether they fit."""
    # The other conditions are only computed at first: as conditions, they would have their indexes read along with this one.
    # Materialized, so that the limit does not lure the database to read the table instead.
    fits = sa.and_(
        sa.true(),
        *listing.exact,
        *listing.filters,
        *span.of(listing.key),
        search.contains_unindexed(listing.text, listing.term),
    )
    found = sa.select(listing.key.label("id"), fits.label("fits")).select_from(listing.source)
    found = found.where(search.in_blocks(listing.table, listing.text, listing.term))
    few = found.cte("few").prefix_with("MATERIALIZED", dialect="postgresql")
    return sa.select(few.c.id, few.c.fits).limit(MANY)


def _in_blocks(
    session: Session, listing: Listing, span: Span, known: sa.Select[Any], blocks: list[search.Block]
) -> list[int]:
    """The first ones of these blocks. Few: all of them, sorted. Many: of one part after the other, and of the smallest parts
    along the ids, where they soon come."""
    rows = session.execute(known, search.keys(blocks)).all()
    if len(rows) < MANY:
        return sorted((row.id for row in rows if row.fits), reverse=span.backward)[: span.wanted]
    if len(blocks) == 1 and blocks[0].level == 0:
        ids = blocks[0].ids
        within = (listing.key >= ids.start, listing.key < ids.stop)
        return _walked(session, listing, span, [*within, search.contains_unindexed(listing.text, listing.term)])
    parts = blocks if len(blocks) > 1 else blocks[0].parts[:: -1 if span.backward else 1]
    found: list[int] = []
    for part in parts:
        if len(found) < span.wanted:
            found += _in_blocks(session, listing, replace(span, wanted=span.wanted - len(found)), known, [part])
    return found


def _estimated(session: Session, listing: Listing) -> int:
    """How many rows have the term, as PostgreSQL guesses from its sample: a common one is seen there, however new it is."""
    wanted = sa.select(listing.key).where(search.contains(listing.text, listing.term))
    compiled = wanted.compile(session.get_bind(), compile_kwargs={"render_postcompile": True})
    plan = session.connection().exec_driver_sql(f"EXPLAIN (FORMAT JSON) {compiled}", compiled.params)
    return int(plan.scalar_one()[0]["Plan"]["Plan Rows"])


def _all(listing: Listing, span: Span, more: Conditions) -> sa.Select[Any]:
    conditions = (*listing.exact, *listing.filters, *span.of(listing.key), *more)
    return sa.select(listing.key.label("id")).select_from(listing.source).where(*conditions)


def _window(listing: Listing, span: Span, *columns: Any) -> sa.Select[Any]:
    statement = sa.select(*columns).select_from(listing.table).where(*listing.exact, *span.of(listing.key))
    return statement.order_by(span.order(listing.key))


def _is_rare(session: Session, listing: Listing, span: Span, size: int, matches: int) -> bool:
    """Does the search index know the term, and is it in few of the window's rows?"""
    if not search.indexed(session.get_bind().dialect.name, listing.term):
        return False
    if listing.filters:
        window = _window(listing, span, listing.text.label("text")).limit(size).subquery()
        counted = sa.select(sa.func.count()).select_from(window)
        matches = session.scalar(counted.where(search.contains(window.c.text, listing.term))) or 0
    return matches < size * COMMON
