"""A prompt's chunk is as long as a step has room for, and ends where it may end.

Rules
1. A chunk that is not a prompt's last ends with a block, to be shared at once; the oldest prompt's only if it can.
2. It ends where a state is kept, and before rows that would be scored beyond what a step scores.
3. The tokens of an image are computed once its features are there. Where they see each other, all in one step: then a
   chunk ends before an image, and the oldest prompt's may be longer than there is room.
4. Where rows have kinds, a chunk has rows of one kind (`row_kinds`).
"""

from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.scheduling.image_encoder import ImageEncoder
from ouzel.engine.state.prompt_images import PromptImages
from ouzel.engine.state.row_kinds import num_of_one_kind, shortened
from ouzel.engine.state.sequence import Sequence


class Chunks:
    def __init__(
        self, blocks: BlockManager, images: ImageEncoder | None = None, *, cuts_images: bool = True
    ) -> None:
        """Without `cuts_images` the tokens of an image see each other."""
        self._blocks = blocks
        self._images = images
        self._cuts_images = cuts_images

    def length(self, sequence: Sequence, num_tokens: int, num_rows: int, *, is_oldest: bool) -> int:
        """Returns how many of the sequence's tokens are computed out of so many, with so many scored rows."""
        limit = min(
            num_tokens, sequence.scoring_limit(num_rows), self._blocks.chunk_limit(sequence)
        )
        if self._images is not None:
            limit = min(limit, self._images.limit(sequence))
        num_wanted = num_of_one_kind(sequence)
        if num_wanted <= limit:
            return num_wanted
        begin, block_size = sequence.num_computed_tokens, self._blocks.block_size
        length = max(0, (begin + limit) // block_size * block_size - begin) or (
            limit if is_oldest else 0
        )
        length = shortened(sequence, length) or (shortened(sequence, limit) if is_oldest else 0)
        if self._cuts_images or sequence.images is None:
            return length
        return _without_cut(sequence.images, begin, length, is_oldest=is_oldest)


def _without_cut(images: PromptImages, begin: int, length: int, *, is_oldest: bool) -> int:
    """Moves a chunk's end out of an image: before it, or behind one with which the oldest prompt's chunk begins."""
    run = images.run_around(begin + length)
    if run is None:
        return length
    first, end = run
    if first > begin:
        return first - begin
    return end - begin if is_oldest else 0
