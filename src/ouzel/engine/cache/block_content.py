"""Computes the keys and contents of full blocks: the key finds a block, the content is compared."""

from array import array

from ouzel.engine.cache.prefix_cache import chain_key, root_key
from ouzel.engine.state.sequence import Sequence
from ouzel.engine.state.two_way_tokens import span_around


def block_content(sequence: Sequence, position: int, block_size: int) -> tuple[bytes, bytes]:
    """Returns key and content of a full block of a sequence; each key is computed once."""
    keys = sequence.block_keys
    while len(keys) <= position:
        parent_key = keys[-1] if keys else _root_key(sequence)
        keys.append(chain_key(parent_key, _tokens(sequence, len(keys), block_size)))
    return keys[position], _tokens(sequence, position, block_size)


def _root_key(sequence: Sequence) -> bytes:
    """Returns the key before the first block.

    The first tokens of a two-way prompt depend on its later tokens, so the key contains them all.
    All tokens of a prompt to align must be computed, so its key is its own.
    """
    adapter, num_tokens = sequence.adapter, sequence.num_prompt_tokens
    key = root_key(sequence.request.cache_salt, b"" if adapter is None else adapter.digest)
    if sequence.request.num_aligned_frames:
        key = chain_key(key, sequence.request.request_id.encode())
    if not _is_two_way(sequence):
        return key
    return chain_key(key, _content(sequence, 0, num_tokens))


def _tokens(sequence: Sequence, position: int, block_size: int) -> bytes:
    """Returns the content of a block.

    Two-way tokens depend on all images of their span, so these belong to the content even behind
    the block's end.
    """
    begin, end = position * block_size, (position + 1) * block_size
    content = _content(sequence, begin, end)
    span = span_around(sequence.two_way_spans, end)
    if span is None or sequence.images is None or _is_two_way(sequence):
        return content
    return content + sequence.images.content_between(end, span[1])


def _is_two_way(sequence: Sequence) -> bool:
    """Tells whether the whole prompt is one span of two-way tokens."""
    return sequence.two_way_spans == ((0, sequence.num_prompt_tokens),)


def _content(sequence: Sequence, begin: int, end: int) -> bytes:
    """Returns the token ids, 8 bytes each, followed by the content of the images among them."""
    token_ids = array("q", sequence.token_ids[begin:end]).tobytes()
    if sequence.images is None:
        return token_ids
    return token_ids + sequence.images.content_between(begin, end)
