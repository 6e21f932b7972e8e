"""The blocks of ids that a search looks into, one after the other."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from contracts.runtime.search import BLOCK_BITS, WIDEST, Block, blocks, keys

SMALLEST = 1 << BLOCK_BITS[0]


@given(st.integers(0, 2**23), st.integers(0, 2**23), st.booleans())
def test_blocks_cover_all_ids_once_in_order(one: int, other: int, backward: bool) -> None:
    low, high = sorted((one, other))
    found = blocks(low, high, backward=backward)
    ids = [block.ids for block in (found[::-1] if backward else found)]
    assert all(former.stop == latter.start for former, latter in pairwise(ids))
    assert ids[0].start <= low
    assert high < ids[-1].stop
    # Small ones first: what is near is found by a small look, and few looks go far.
    assert found[0].level == 0
    assert max(block.level for block in found) <= WIDEST
    so_far = 0
    for block in found:
        assert block.level == 0 or len(block.ids) <= so_far
        so_far += len(block.ids)
    assert len(set(keys(found)["keys"])) == len(found) <= 3 * 8 * 2 + (high - low) // len(Block(WIDEST, 0).ids)


def test_the_parts_of_a_block_are_the_block() -> None:
    block = Block(2, 5)
    assert [part.level for part in block.parts] == [1] * 8
    assert block.parts[0].ids.start == block.ids.start
    assert block.parts[-1].ids.stop == block.ids.stop
    assert len(block.parts[0].parts[3].ids) == SMALLEST
    assert Block(0, 5).parts == []
