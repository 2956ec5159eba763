"""Chooses the length of the next chunk of a prompt.

Rules
1. A chunk other than a prompt's last one ends at the end of a block, so that the block can be
   shared at once. The oldest prompt may end elsewhere if the room is less than a block.
2. A chunk ends where a state is to be kept, and before the rows that exceed the scored rows of a
   step.
3. Tokens of an image are computed only after the features of the image.
4. Two-way tokens (`two_way_tokens`) are computed in one step: a chunk ends before their span, and
   the oldest prompt's chunk may exceed the room.
5. Where rows have kinds, the rows of a chunk are of one kind (`row_kinds`).
"""

from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.scheduling.image_encoder import NO_IMAGES, ImageEncoder, NoImages
from ouzel.engine.state.row_kinds import num_of_one_kind, shorten
from ouzel.engine.state.sequence import Sequence
from ouzel.engine.state.two_way_tokens import span_around


class Chunks:
    """Applies the limits on the chunks of prompts."""

    def __init__(self, blocks: BlockManager, images: ImageEncoder | NoImages = NO_IMAGES) -> None:
        self._blocks = blocks
        self._images = images

    def length(self, sequence: Sequence, num_tokens: int, num_rows: int, *, is_oldest: bool) -> int:
        """Returns the number of tokens to compute, at most `num_tokens`, with at most `num_rows`
        scored.
        """
        limit = min(
            num_tokens, sequence.scoring_limit(num_rows), self._blocks.chunk_limit(sequence)
        )
        num_ready = self._images.limit(sequence)
        limit = min(limit, num_ready)
        num_wanted = num_of_one_kind(sequence)
        if num_wanted <= limit:
            return num_wanted
        begin, block_size = sequence.num_computed_tokens, self._blocks.block_size
        length = max(0, (begin + limit) // block_size * block_size - begin) or (
            limit if is_oldest else 0
        )
        length = shorten(sequence, length) or (shorten(sequence, limit) if is_oldest else 0)
        length = _without_cut(sequence, length, is_oldest=is_oldest)
        return length if length <= num_ready else 0


def _without_cut(sequence: Sequence, length: int, *, is_oldest: bool) -> int:
    """Moves the end of a chunk out of a span of two-way tokens.

    The chunk ends before the span. The oldest prompt's chunk ends after the span if it begins with
    it; it may then reach tokens whose image has no features yet, which the caller checks.
    """
    begin = sequence.num_computed_tokens
    span = span_around(sequence.two_way_spans, begin + length)
    if span is None:
        return length
    first, end = span
    if first > begin:
        return first - begin
    return end - begin if is_oldest else 0
