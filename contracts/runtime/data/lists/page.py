"""The page of a list: the one function that services call. How the rows are found is docs/lists.md."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.data.lists.finding import first_ids
from contracts.runtime.data.lists.listing import Listing, Span
from contracts.types import PageRequest

LARGEST_PAGE = 100
LARGEST_ID = 2**63 - 1


def page(
    session: Session, request: PageRequest, listings: Sequence[Listing], rows: sa.Select[Any] | None = None
) -> list[Any]:
    """Return the rows of the page, ids ascending (decisions, 'Order and cursors').

    ``rows`` selects what is shown of the listed table; without it, the ids alone are given. A list is all of ``listings``
    together: a row that passes from one to a later one meanwhile is in it once. At most LARGEST_PAGE rows, at least one.
    """
    limit = max(1, min(request.limit, LARGEST_PAGE))
    after = None if request.after is None else stored_id(request.after)
    before = None if request.before is None else max(0, stored_id(request.before))
    if before is not None and after is None:
        return _read(session, listings, rows, Span(limit, before=before, backward=True))[::-1]
    return _read(session, listings, rows, Span(limit, after=after, before=before))


def stored_id(number: int) -> int:
    """``number`` where a column can hold it, else the nearest that no row has."""
    return max(-1, min(number, LARGEST_ID))


def _read(session: Session, listings: Sequence[Listing], rows: sa.Select[Any] | None, span: Span) -> list[Any]:
    """In one go where an index gives the list as it is, else by the ids."""
    if rows is None:
        return _ids(session, listings, span)
    key = listings[0].key
    if len(listings) == 1 and listings[0].plain:
        rows = rows.where(*listings[0].of_table, *span.of(key)).limit(span.limit)
    elif found := _ids(session, listings, span):
        rows = rows.where(key.in_(found))
    else:
        return []
    return list(session.execute(rows.order_by(span.order(key))))


def _ids(session: Session, listings: Sequence[Listing], span: Span) -> list[int]:
    found = {each for listing in listings for each in first_ids(session, listing, span)}
    return sorted(found, reverse=span.backward)[: span.limit]
