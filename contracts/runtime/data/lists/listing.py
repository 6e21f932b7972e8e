"""What a list is: which rows belong to it, and which part of them is wanted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

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
    are all the other conditions, and ``source`` joins the table with what they speak of. ``common`` speaks of the listed table
    alone, too, and holds for nearly all rows: no way of finding them is chosen by it. ``term`` is searched for in ``text``.

    ``rare`` finds those that are rare among the exact ones, on PostgreSQL; it is given the conditions on the listed table.
    Without it, and on SQLite, they are collected as the database likes. ``small``: there are few, collect them at once.
    """

    table: sa.Table
    source: sa.FromClause | None = None
    exact: Conditions = ()
    filters: Conditions = ()
    common: Conditions = ()
    text: Any = None
    term: str = ""
    rare: Callable[[Session, Conditions, Span], list[int]] | None = None
    small: bool = False

    @property
    def joined(self) -> sa.FromClause:
        return self.table if self.source is None else self.source

    @property
    def of_table(self) -> Conditions:
        """All conditions on the listed table alone."""
        return [*self.exact, *self.common]

    @property
    def key(self) -> Any:
        return self.table.c.id

    @property
    def plain(self) -> bool:
        """Does an index give the list as it is?"""
        return not self.filters and not self.term and not self.small
