"""Which ids a list shows. Why they are found like this, and where each number comes from, is in docs/lists.md."""

from dataclasses import replace
from itertools import takewhile
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.data.lists import terms
from contracts.runtime.data.lists.blocks import Blocks, probed_blocks, spread_ids
from contracts.runtime.data.lists.listing import Conditions, Listing, Span

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


def first_ids(session: Session, listing: Listing, span: Span) -> list[int]:
    """The first ``span.limit`` ids in the span's order."""
    search_for = [terms.contains_unindexed(listing.text, listing.term)] if listing.term else []
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
        narrowed = terms.matching_rows(listing.table, listing.text, listing.term)
        return _walk(session, listing, span, [narrowed, *search_for])
    if listing.filters:
        if listing.rare is None or not postgresql:
            return _collect(session, listing, span, search_for)
        return listing.rare(session, [*listing.of_table, *span.of(listing.key), *search_for], span)
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
        more = [*more, terms.is_one_of(session, listing.key, first)]
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
    blocks = Blocks.of(start, stop).nearest(backward=span.backward)
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
    return _walk(session, listing, span, [*within, terms.contains_unindexed(listing.text, listing.term)])


def _hits_in_blocks(listing: Listing, span: Span) -> sa.CompoundSelect[Any]:
    """The first ``many`` rows that the search index finds in the blocks with these ``keys``, by the ``place`` of their blocks
    (from 1), and whether they fit. The blocks are read one after the other, and none behind the one that has the last row.
    Before them, with 0 for a place: which of the ids from ``start`` to ``stop`` by ``step`` have the term."""
    # The other conditions are only computed at first: as conditions, they would have their indexes read along with this one.
    matches = terms.contains_unindexed(listing.text, listing.term)
    fits = sa.and_(sa.true(), *listing.of_table, *listing.filters, *span.of(listing.key), matches)
    block, spread = probed_blocks, spread_ids
    hits = sa.select(listing.key.label("id"), fits.label("fits")).select_from(listing.joined)
    hits = hits.where(terms.in_blocks(listing.table, listing.text, listing.term, block.c.those))
    # A subquery with OFFSET is planned on its own: the limit cannot lure the database to read the table instead.
    fenced = hits.offset(sa.literal_column("0")).lateral("found")
    first = sa.select(block.c.place, fenced.c.id, fenced.c.fits).select_from(block.join(fenced, sa.true()))
    samples = sa.select(sa.literal_column("0").label("place"), spread.c.id, sa.true().label("fits"))
    samples = samples.select_from(spread.join(listing.table, listing.key == spread.c.id)).where(matches)
    return sa.union_all(samples, first.limit(sa.bindparam("many")))


def _all(listing: Listing, span: Span, more: Conditions) -> sa.Select[Any]:
    conditions = (*listing.of_table, *listing.filters, *span.of(listing.key), *more)
    return sa.select(listing.key.label("id")).select_from(listing.joined).where(*conditions)


def _window(listing: Listing, span: Span, *columns: Any) -> sa.Select[Any]:
    statement = sa.select(*columns).select_from(listing.table).where(*listing.of_table, *span.of(listing.key))
    return statement.order_by(span.order(listing.key))


def _is_rare(session: Session, listing: Listing, span: Span, size: int, matches: int) -> bool:
    """Does the search index know the term, and is it in few of the window's rows?"""
    if not listing.term or not terms.indexed(session.get_bind().dialect.name, listing.term):
        return False
    if listing.filters:
        window = _window(listing, span, listing.text.label("text")).limit(size).subquery()
        counted = sa.select(sa.func.count()).select_from(window)
        matches = session.scalar(counted.where(terms.contains(window.c.text, listing.term))) or 0
    return matches < max(FEW, size * COMMON)
