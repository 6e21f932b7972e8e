"""Parts of the ids that PostgreSQL's search index is asked for, one after the other."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import sqlalchemy as sa

from contracts.runtime.data.lists.terms import TEXTS
from contracts.runtime.data.search import BLOCK_BITS

SAMPLES = 128
"""So many rows tell roughly where a term is common."""
_COMMON = 8
"""So many blocks where it is common are told apart: each is likely to fill a page."""


class Blocks(NamedTuple):
    """Neighbouring blocks of the lowest level, from number ``first`` on; the index of PostgreSQL finds them in one go.
    ``common``: a single one in which there is little to walk until the term has come often enough."""

    first: int
    length: int = 1
    common: bool = False

    @classmethod
    def of(cls, start: int, stop: int) -> "Blocks":
        """With all ids from ``start`` up to ``stop``, and some around."""
        first = start >> BLOCK_BITS[0]
        return cls(first, max(0, -(-stop >> BLOCK_BITS[0]) - first))

    @property
    def end(self) -> int:
        return self.first + self.length

    @property
    def ids(self) -> range:
        return range(self.first << BLOCK_BITS[0], self.end << BLOCK_BITS[0])

    @property
    def key(self) -> str:
        """The widest blocks that they are, as ``_MAKE_BLOCKS`` has them. A text: arrays in an array would have to be of one
        length."""
        keys, at = [], self.first
        while at < self.end:
            widths = [1 << bits - BLOCK_BITS[0] for bits in BLOCK_BITS]
            level, width = max(
                (level, width) for level, width in enumerate(widths) if at % width == 0 and at + width <= self.end
            )
            keys.append(str((at // width) * 4 + level))
            at += width
        return f"{{{','.join(keys)}}}"

    def cut(self, *numbers: int, backward: bool) -> list["Blocks"]:
        """In parts that begin at these numbers, the last one first if ``backward``."""
        edges = [self.first, *sorted({number for number in numbers if self.first < number < self.end}), self.end]
        parts = [Blocks(here, there - here) for here, there in pairwise(edges) if here < there]
        return parts[::-1] if backward else parts

    def nearest(self, *, backward: bool) -> list["Blocks"]:
        """The first block, which costs least; then all up to where a wide one begins, for a look into the index costs hardly
        more for several than for one; then the rest."""
        wide = 1 << BLOCK_BITS[1] - BLOCK_BITS[0]
        if backward:
            return self.cut(self.end - 1, (self.end - 2) // wide * wide, backward=True)
        return self.cut(self.first + 1, -(-(self.first + 2) // wide) * wide, backward=False)

    @property
    def sampled(self) -> range:
        """Ids spread evenly, at most SAMPLES: each in the middle of a block."""
        return self.ids[1 << BLOCK_BITS[0] - 1 :: self._step << BLOCK_BITS[0]]

    @property
    def _step(self) -> int:
        return -(-self.length // SAMPLES)

    def around(self, samples: Sequence[int], *, backward: bool) -> list["Blocks"]:
        """In parts by those of the ``sampled`` ids that have the term: the first blocks of these, where it is likely to be
        common; what lies between one of these and the sample before, where it may become so; all others together, where it is
        likely to be rare if it is there at all."""
        common = sorted((id_ >> BLOCK_BITS[0] for id_ in samples), reverse=backward)[:_COMMON]
        before = [number + 1 + self._step if backward else number - self._step for number in common]
        parts = self.cut(*before, *common, *(number + 1 for number in common), backward=backward)
        return [part._replace(common=part.first in common and part.length == 1) for part in parts]

    def divided(self, ids: Sequence[int], *, backward: bool) -> list["Blocks"]:
        """In parts by ``ids`` of the first rows in it, of which there are more: what is before them, most of them, the rest."""
        if self.length == 1:
            return [self._replace(common=True)]
        numbers = sorted((id_ >> BLOCK_BITS[0] for id_ in ids), reverse=backward)
        near, quantile = numbers[0], numbers[len(numbers) * 3 // 4]
        if backward:
            return self.cut(near + 1, min(near, quantile + 1), backward=True)
        return self.cut(near, max(near + 1, quantile), backward=False)


probed_blocks = (
    sa.func.unnest(sa.bindparam("keys", type_=TEXTS))
    .table_valued("those", with_ordinality="place")
    .render_derived(name="block")
)
"""PostgreSQL: the blocks with the keys in the parameter ``keys``, each time ``those`` with their ``place`` from 1."""
spread_ids = (
    sa.func.generate_series(*(sa.bindparam(name, type_=sa.BigInteger) for name in ("start", "stop", "step")))
    .table_valued(sa.column("id", sa.BigInteger))
    .render_derived(name="spread")
)
"""PostgreSQL: each ``id`` from the parameter ``start`` to ``stop`` by ``step``."""
