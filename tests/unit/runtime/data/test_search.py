"""The blocks of ids that a search looks into, one after the other."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from contracts.runtime.data.lists.blocks import SAMPLES, Blocks
from contracts.runtime.data.search import BLOCK_BITS

SMALLEST, WIDE, WIDEST = (1 << bits for bits in BLOCK_BITS)
STRETCHES = st.builds(Blocks, st.integers(0, 2**11), st.integers(1, 2**11))


def assert_covers(parts: list[Blocks], whole: Blocks, *, backward: bool) -> None:
    ids = [one.ids for one in (parts[::-1] if backward else parts)]
    assert (ids[0].start, ids[-1].stop) == (whole.ids.start, whole.ids.stop)
    assert all(former.stop == latter.start for former, latter in pairwise(ids))
    assert all(ids)


@given(st.integers(0, 2**23), st.integers(1, 2**23))
def test_blocks_have_the_ids_that_are_wanted_and_few_around(start: int, count: int) -> None:
    ids = Blocks.of(start, start + count).ids
    assert start - SMALLEST < ids.start <= start
    assert start + count <= ids.stop < start + count + SMALLEST


@given(STRETCHES)
def test_a_key_names_each_id_once_and_few_blocks(blocks: Blocks) -> None:
    named = []
    keys = [int(one) for one in blocks.key[1:-1].split(",")]
    for key in keys:
        bits = BLOCK_BITS[key % 4]
        named.append(range(key // 4 << bits, (key // 4 + 1) << bits))
    assert (named[0].start, named[-1].stop) == (blocks.ids.start, blocks.ids.stop)
    assert all(former.stop == latter.start for former, latter in pairwise(named))
    assert len(keys) <= 4 * WIDE // SMALLEST + len(blocks.ids) // WIDEST


@given(STRETCHES, st.booleans())
def test_what_is_near_is_found_by_a_small_look(blocks: Blocks, backward: bool) -> None:
    parts = blocks.nearest(backward=backward)
    assert_covers(parts, blocks, backward=backward)
    assert len(parts) <= 3
    assert parts[0].length == 1
    assert sum(one.length for one in parts[:2]) <= 1 + WIDE // SMALLEST


@given(STRETCHES, st.booleans(), st.data())
def test_where_samples_have_a_term_is_told_apart(blocks: Blocks, backward: bool, data: st.DataObject) -> None:
    sampled = blocks.sampled
    assert 0 < len(sampled) <= SAMPLES
    assert all(one in blocks.ids for one in sampled)
    samples = data.draw(st.lists(st.sampled_from(sampled), unique=True, max_size=12))
    parts = blocks.around(samples, backward=backward)
    assert_covers(parts, blocks, backward=backward)
    common = [one for one in parts if one.common]
    assert all(one.length == 1 for one in common)
    step = (sampled[1] - sampled[0]) // SMALLEST if len(sampled) > 1 else blocks.length
    assert all(former.length <= step for former, latter in pairwise(parts) if latter.common)
    nearest = sorted(samples, reverse=backward)[:8]
    assert [one.ids.start for one in common] == [one >> BLOCK_BITS[0] << BLOCK_BITS[0] for one in nearest]


@given(STRETCHES, st.booleans(), st.data())
def test_divided_blocks_become_smaller_until_they_are_common(
    blocks: Blocks, backward: bool, data: st.DataObject
) -> None:
    ids = data.draw(st.lists(st.sampled_from(blocks.ids), min_size=1, max_size=50))
    parts = blocks.divided(ids, backward=backward)
    assert_covers(parts, blocks, backward=backward)
    assert parts == [blocks._replace(common=True)] if blocks.length == 1 else len(parts) > 1
