"""Which rows a page of a list shows: answers that stay flat however many rows there are, whatever is asked for.

``ORDER BY id LIMIT 10`` leaves a database a choice that goes wrong in both directions: to walk along the ids until ten rows
fit, which is long when few do, or to collect all that fit and sort them, which is long when many do. It guesses from
statistics that know nothing of parts of texts, of joined tables, or of where along the ids the rows lie. So it is not asked:

1. The next WINDOW rows in order of the ids are looked at. What is common fills the page there. If a few fit, a second, wide
   window is likely to fill it and costs less than collecting. A term that even this one has seldom is rare, however often
   it is in the first.
2. Only for what is rare the other way is gone: all that fit, found by the search index or from what ``rare`` starts with,
   then sorted. A term that is rare here may be common farther on: the search index is asked for one part of the ids after
   the other, and a part that has many is walked along.

The ids alone are found here; the page's rows are read by them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.data import search

WINDOW, WIDE = 1_000, 20_000
"""The first window; and with the second, which begins where it ends."""
SCATTERED, SCATTERED_WIDE = 100, 500
"""The same along an index of another condition, where each row is on a page of its own."""
FEW = 2
"""So many found in the first window make the second worth its while."""
COMMON = 0.008
"""A term that this share of a window's rows contain is not looked up in the search index: it would be found everywhere."""
MANY, MOST = 250, 4_000
"""So many rows that the search index finds are looked at in one go at first; more each time, if few of them fit."""

Conditions = Sequence[sa.ColumnElement[bool]]


@dataclass(frozen=True)
class Span:
    """The ids in question, the order (``backward``: from the highest down), and how many are wanted."""

    limit: int
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

    def beyond(self, edge: int, count: int) -> "Span":
        """Return the span that is left when so many were found up to the edge."""
        rest = replace(self, limit=self.limit - count)
        return replace(rest, before=edge) if self.backward else replace(rest, after=edge)


@dataclass(frozen=True)
class Listing:
    """The query of a list. ``exact`` speaks of the listed table alone and an index gives it in order of ``key``; ``filters``
    are all the other conditions. ``term`` is searched for in ``text``.

    ``rare`` finds those that are rare among the exact ones, on PostgreSQL; it is given the conditions on the listed table.
    Without it, and on SQLite, they are collected as the database likes. ``small``: there are few, collect them at once.
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
    """The first ``span.limit`` ids in the span's order."""
    search_for = [search.contains_unindexed(listing.text, listing.term)] if listing.term else []
    if listing.small:
        return _collect(session, listing, span, search_for)
    if listing.plain:
        return _walk(session, listing, span, [])
    window = SCATTERED if listing.exact else WINDOW
    matches, edge = _search_window(session, listing, span, search_for, window)
    rare_term = edge is not None and _is_rare(session, listing, span, window, len(matches))
    if edge and not rare_term and len(matches) >= FEW and (listing.term or not listing.exact):
        wide = SCATTERED_WIDE if listing.exact else WIDE
        more, edge = _search_window(session, listing, span.beyond(edge.id, len(matches)), search_for, wide - window)
        matches += more
        rare_term = edge is not None and not listing.filters and _is_rare(session, listing, span, wide, len(matches))
    if edge is None:
        return matches
    postgresql = session.get_bind().dialect.name == "postgresql"
    if rare_term:
        if postgresql:
            return _look_up(session, listing, span, edge.highest)
        narrowed = search.matching_rows(listing.table, listing.text, listing.term)
        return _walk(session, listing, span, [narrowed, *search_for])
    if listing.filters:
        if listing.rare is None or not postgresql:
            return _collect(session, listing, span, search_for)
        return listing.rare(session, [*listing.exact, *span.of(listing.key), *search_for], span)
    return _walk(session, listing, span, search_for)


def _search_window(
    session: Session, listing: Listing, span: Span, more: Conditions, window: int
) -> tuple[list[int], Any]:
    """Return the matches among the next rows; and the ``id`` of the last of these with the ``highest`` of all, None when that
    is all that is wanted or all there is."""
    highest = sa.select(sa.func.max(listing.key)).scalar_subquery().label("highest")
    edge = session.execute(_window(listing, span, listing.key.label("id"), highest).offset(window - 1).limit(1)).first()
    if listing.exact and edge:  # by their ids: along all the ids up to the edge it is longer
        first = _window(listing, span, listing.key).limit(window).correlate(None)
        more = [*more, search.is_one_of(session, listing.key, first)]
    matches = _walk(session, listing, span if edge is None else span.until(edge.id), more)
    return matches, None if len(matches) >= span.limit else edge


def _walk(session: Session, listing: Listing, span: Span, more: Conditions) -> list[int]:
    """Along the ids until there are enough."""
    return list(session.scalars(_all(listing, span, more).order_by(span.order(listing.key)).limit(span.limit)))


def _collect(session: Session, listing: Listing, span: Span, more: Conditions) -> list[int]:
    """All that fit, sorted. Materialized, so that the order cannot lure the database along the ids."""
    few = _all(listing, span, more).cte("few").prefix_with("MATERIALIZED")
    return list(session.scalars(sa.select(few.c.id).order_by(span.order(few.c.id)).limit(span.limit)))


def _look_up(session: Session, listing: Listing, span: Span, highest: int) -> list[int]:
    """PostgreSQL: what the search index finds, in one part of the ids after the other. Near the beginning the parts are small;
    how large they may be farther on, samples tell. Those that turn out to have too many are divided."""
    start = 0 if span.after is None else max(0, span.after + 1)
    stop = highest + 1 if span.before is None else min(highest + 1, span.before)
    blocks = search.Blocks.of(start, stop).nearest(backward=span.backward)
    far = blocks.pop() if len(blocks) > 2 else None
    query = _hits_in_blocks(listing, span)
    matches: list[int] = []
    limit = MANY
    while blocks and len(matches) < span.limit:
        if blocks[0].common:
            matches += _walk_along(session, listing, replace(span, limit=span.limit - len(matches)), blocks.pop(0).ids)
            continue
        probed = list(takewhile(lambda block: not block.common, blocks))
        spread = far.sampled if far else range(0)
        values = {"keys": [block.key for block in probed], "many": limit}
        values |= {"start": spread.start, "stop": spread.stop - 1, "step": spread.step}
        answer = session.execute(query, values).all()
        rows = [row for row in answer if row.place]
        complete = len(probed) if len(rows) < limit else rows[-1].place - 1
        fitting = sorted((row.place, row.id if not span.backward else -row.id) for row in rows if row.fits)
        matches += [abs(id_) for place, id_ in fitting if place <= complete]
        blocks = blocks[complete:]
        if complete < len(probed):
            first = [row.id for row in rows if row.place > complete]
            blocks[:1] = blocks[0].divided(first, backward=span.backward)
            limit = min(limit * 4, MOST)
        if far:
            blocks += far.around([row.id for row in answer if not row.place], backward=span.backward)
            far = None
    return matches[: span.limit]


def _walk_along(session: Session, listing: Listing, span: Span, ids: range) -> list[int]:
    within = (listing.key >= ids.start, listing.key < ids.stop)
    return _walk(session, listing, span, [*within, search.contains_unindexed(listing.text, listing.term)])


def _hits_in_blocks(listing: Listing, span: Span) -> sa.CompoundSelect[Any]:
    """The first ``many`` rows that the search index finds in the blocks with these ``keys``, by the ``place`` of their blocks
    (from 1), and whether they fit. The blocks are read one after the other, and none behind the one that has the last row.
    Before them, with 0 for a place: which of the ids from ``start`` to ``stop`` by ``step`` have the term."""
    # The other conditions are only computed at first: as conditions, they would have their indexes read along with this one.
    matches = search.contains_unindexed(listing.text, listing.term)
    fits = sa.and_(sa.true(), *listing.exact, *listing.filters, *span.of(listing.key), matches)
    block, spread = search.probed_blocks, search.spread_ids
    hits = sa.select(listing.key.label("id"), fits.label("fits")).select_from(listing.source)
    hits = hits.where(search.in_blocks(listing.table, listing.text, listing.term, block.c.those))
    # A subquery with OFFSET is planned on its own: the limit cannot lure the database to read the table instead.
    fenced = hits.offset(sa.literal_column("0")).lateral("found")
    first = sa.select(block.c.place, fenced.c.id, fenced.c.fits).select_from(block.join(fenced, sa.true()))
    samples = sa.select(sa.literal_column("0").label("place"), spread.c.id, sa.true().label("fits"))
    samples = samples.select_from(spread.join(listing.table, listing.key == spread.c.id)).where(matches)
    return sa.union_all(samples, first.limit(sa.bindparam("many")))


def _all(listing: Listing, span: Span, more: Conditions) -> sa.Select[Any]:
    conditions = (*listing.exact, *listing.filters, *span.of(listing.key), *more)
    return sa.select(listing.key.label("id")).select_from(listing.source).where(*conditions)


def _window(listing: Listing, span: Span, *columns: Any) -> sa.Select[Any]:
    statement = sa.select(*columns).select_from(listing.table).where(*listing.exact, *span.of(listing.key))
    return statement.order_by(span.order(listing.key))


def _is_rare(session: Session, listing: Listing, span: Span, size: int, matches: int) -> bool:
    """Does the search index know the term, and is it in few of the window's rows?"""
    if not listing.term or not search.indexed(session.get_bind().dialect.name, listing.term):
        return False
    if listing.filters:
        window = _window(listing, span, listing.text.label("text")).limit(size).subquery()
        counted = sa.select(sa.func.count()).select_from(window)
        matches = session.scalar(counted.where(search.contains(window.c.text, listing.term))) or 0
    return matches < max(FEW, size * COMMON)
