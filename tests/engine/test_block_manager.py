from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.state.sequence import Sequence
from tests.engine.requests import make_request


def manager(num_blocks: int = 4) -> BlockManager:
    return BlockManager(num_blocks=num_blocks, block_size=2, prefix_caching=True)


def compute(blocks: BlockManager, token_ids: list[int]) -> Sequence:
    """Makes a sequence and puts all its tokens into the cache."""
    sequence = Sequence(make_request(token_ids), 0, 0)
    assert blocks.share_prefix(sequence)
    assert blocks.allocate(sequence, sequence.num_tokens)
    blocks.mark_computed(sequence, sequence.num_uncomputed_tokens)
    return sequence


def num_cached_tokens(blocks: BlockManager, token_ids: list[int]) -> int:
    sequence = Sequence(make_request([*token_ids, 0]), 0, 0)
    assert blocks.share_prefix(sequence)
    found = sequence.num_computed_tokens
    blocks.release(sequence)
    return found


def test_allocation_is_all_or_nothing() -> None:
    blocks = manager()
    sequence = Sequence(make_request(range(9)), 0, 0)

    assert not blocks.allocate(sequence, 9)
    assert sequence.block_table == []
    assert blocks.allocate(sequence, 8)
    assert blocks.num_free_blocks == 0


def test_released_blocks_stay_findable_until_evicted_least_recently_used_first() -> None:
    blocks = manager(num_blocks=4)
    for token_ids in ([1, 2], [3, 4], [5, 6]):
        blocks.release(compute(blocks, token_ids))
    assert num_cached_tokens(blocks, [1, 2]) == 2  # used again: [3, 4] is now the oldest

    compute(blocks, [7, 8, 9])

    assert [num_cached_tokens(blocks, each) for each in ([1, 2], [3, 4], [5, 6])] == [2, 0, 2]


def test_of_one_chain_the_end_is_evicted_first() -> None:
    blocks = manager(num_blocks=3)
    blocks.release(compute(blocks, [1, 2, 3, 4, 5, 6]))

    compute(blocks, [9])

    assert num_cached_tokens(blocks, [1, 2, 3, 4, 5, 6]) == 4


def test_a_shared_block_is_free_when_its_last_user_goes() -> None:
    blocks = manager()
    first = compute(blocks, [1, 2, 3])
    second = compute(blocks, [1, 2, 4])
    assert first.block_table[0] == second.block_table[0]
    assert blocks.num_used_blocks == 3

    blocks.release(first)
    assert blocks.num_used_blocks == 2
    blocks.release(second)
    assert blocks.num_used_blocks == 0


def test_equal_blocks_under_different_parents_are_different() -> None:
    blocks = manager()
    blocks.release(compute(blocks, [1, 2, 5, 6]))

    assert num_cached_tokens(blocks, [5, 6]) == 0


def test_fork_shares_full_blocks_and_copies_the_partial_one() -> None:
    blocks = manager()
    parent = compute(blocks, [1, 2, 3])
    child = Sequence(parent.request, 1, 0)

    copy = blocks.fork(parent, child)

    assert copy == (parent.block_table[1], child.block_table[1])
    assert child.block_table[0] == parent.block_table[0]
    assert child.num_computed_tokens == 3
