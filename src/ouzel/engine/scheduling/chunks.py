"""Chooses the length of the next chunk of a prompt.

Rules
1. A chunk other than a prompt's last one ends at the end of a block, so that the block can be
   shared at once. The oldest prompt may end elsewhere if the room is less than a block.
2. A chunk ends where a state is to be kept, and before the rows that exceed the scored rows of a
   step.
3. Tokens of an image are computed only after the features of the image. If the tokens of an image
   see each other, all must be in one step: a chunk then ends before the image, and the oldest
   prompt's chunk may exceed the room.
4. Where rows have kinds, the rows of a chunk are of one kind (`row_kinds`).
"""

from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.scheduling.image_encoder import NO_IMAGES, ImageEncoder, NoImages
from ouzel.engine.state.prompt_images import PromptImages
from ouzel.engine.state.row_kinds import num_of_one_kind, shorten
from ouzel.engine.state.sequence import Sequence


class Chunks:
    """Applies the limits on the chunks of prompts."""

    def __init__(
        self,
        blocks: BlockManager,
        images: ImageEncoder | NoImages = NO_IMAGES,
        *,
        cuts_images: bool = True,
    ) -> None:
        """Without `cuts_images`, all tokens of an image are computed in one step: they see each
        other.
        """
        self._blocks = blocks
        self._images = images
        self._cuts_images = cuts_images

    def length(self, sequence: Sequence, num_tokens: int, num_rows: int, *, is_oldest: bool) -> int:
        """Returns the number of tokens to compute, at most `num_tokens`, with at most `num_rows`
        scored.
        """
        limit = min(
            num_tokens, sequence.scoring_limit(num_rows), self._blocks.chunk_limit(sequence)
        )
        limit = min(limit, self._images.limit(sequence))
        num_wanted = num_of_one_kind(sequence)
        if num_wanted <= limit:
            return num_wanted
        begin, block_size = sequence.num_computed_tokens, self._blocks.block_size
        length = max(0, (begin + limit) // block_size * block_size - begin) or (
            limit if is_oldest else 0
        )
        length = shorten(sequence, length) or (shorten(sequence, limit) if is_oldest else 0)
        if self._cuts_images or sequence.images is None:
            return length
        return _without_cut(sequence.images, begin, length, is_oldest=is_oldest)


def _without_cut(images: PromptImages, begin: int, length: int, *, is_oldest: bool) -> int:
    """Moves the end of a chunk out of an image.

    The chunk ends before the image. The oldest prompt's chunk ends after the image if it begins
    with it.
    """
    run = images.run_around(begin + length)
    if run is None:
        return length
    first, end = run
    if first > begin:
        return first - begin
    return end - begin if is_oldest else 0
