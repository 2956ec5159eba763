"""Collects the rows of a prompt that a later request can start on."""

from ouzel.engine.cache.block_content import block_content
from ouzel.engine.cache.prefix_cache import PrefixCache
from ouzel.engine.cache.prefix_store import StoredRow, block_name, state_name
from ouzel.engine.cache.state_slots import StateSlots
from ouzel.engine.state.sequence import Sequence


def stored_rows(
    sequence: Sequence,
    num_tokens: int,
    block_size: int,
    cache: PrefixCache,
    states: StateSlots | None,
) -> list[StoredRow]:
    """Returns the blocks of the first `num_tokens` tokens, and the state after them if the model
    has states.

    Returns no rows if that state is no longer kept.
    """
    rows = []
    key = b""
    for position in range(num_tokens // block_size):
        key, content = block_content(sequence, position, block_size)
        block = cache.find(key, content)
        if block is None:
            break
        rows.append(StoredRow(block_name(key), content, block))
    if states is None:
        return rows
    slot = states.kept_slot(key)
    return [*rows, StoredRow(state_name(key), b"", slot)] if slot else []
