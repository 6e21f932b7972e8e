"""The blocks of ids that a search looks into, one after the other."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from contracts.runtime.search import BLOCK_BITS, WIDEST, Blocks, blocks

SMALLEST, LARGEST = (1 << BLOCK_BITS[level] for level in (0, WIDEST))


@given(st.integers(0, 2**23), st.integers(1, 2**23), st.booleans())
def test_blocks_cover_all_ids_once_in_order(start: int, count: int, backward: bool) -> None:
    found = blocks(start, start + count, backward=backward)
    ids = [one.ids for one in (found[::-1] if backward else found)]
    assert all(former.stop == latter.start for former, latter in pairwise(ids))
    assert start - SMALLEST < ids[0].start <= start
    assert start + count <= ids[-1].stop < start + count + SMALLEST
    # What is near is found by a small look, and few looks go far.
    assert len(found[0].ids) == SMALLEST
    assert max(len(one) for one in ids) <= LARGEST
    assert len(found) <= 4 + count // LARGEST
    assert len({one.key for one in found}) == len(found)


def test_the_parts_of_blocks_are_the_smallest_of_the_same_ids() -> None:
    for one in (Blocks(1, 5), Blocks(0, 3, 4)):
        assert all(part.level == 0 and part.length == 1 for part in one.parts)
        assert [id_ for part in one.parts for id_ in part.ids] == list(one.ids)
    assert Blocks(0, 5).parts == []
    assert Blocks(0, 3, 2).key == "{12,16}"
