"""Maps the images of a prompt to spans of its tokens. A sound counts as an image here.

Rules
1. An image's features belong to certain tokens, in order; the index of a token among them is its
   row. An image changes nothing else of a prompt, except the positions in families that give an
   image a grid of them. The tokens of a sound have the positions of text in all families.
2. The key of a cached block contains the images of its tokens: equal token ids do not mean equal
   images.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ouzel.types.engine_request import MediaInput


class PromptImages:
    """The images of one request and their tokens; all choices of the request share it."""

    def __init__(self, images: Sequence[MediaInput], num_prompt_tokens: int) -> None:
        tokens = [_list_tokens(image) for image in images]
        self.images = images
        # end of each image: the position after its last token
        self.ends = [int(each[-1]) + 1 for each in tokens]
        self._begins = [int(each[0]) for each in tokens]
        self._tokens = np.concatenate(tokens)
        self._owners = np.repeat(np.arange(len(images)), [len(each) for each in tokens])
        # row of each token in the features of its image
        self._rows = np.concatenate([np.arange(len(each)) for each in tokens])
        has_grids = any(image.position_grid is not None for image in images)
        self._positions = _positions(images, num_prompt_tokens) if has_grids else None

    @property
    def first_token(self) -> int:
        """Returns the position of the first token that stands for an image."""
        return self._begins[0]

    def rows_between(
        self, begin: int, end: int
    ) -> list[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        """Returns number, tokens and rows of each image with tokens among [begin, end)."""
        first, last = np.searchsorted(self._tokens, (begin, end)).tolist()
        owners = self._owners[first:last]
        found = []
        for number in dict.fromkeys(owners.tolist()):
            own = slice(*(np.searchsorted(owners, (number, number + 1)) + first).tolist())
            found.append((number, self._tokens[own], self._rows[own]))
        return found

    def content_between(self, begin: int, end: int) -> bytes:
        """Returns bytes that distinguish the images of the tokens [begin, end).

        Empty without images.
        """
        parts = (
            self.images[number].digest
            + np.array([tokens[0] - begin, rows[0], len(rows)], np.int64).tobytes()
            for number, tokens, rows in self.rows_between(begin, end)
        )
        return b"".join(parts)

    def first_missing(self, num_computed_tokens: int, is_missing: Sequence[bool]) -> int | None:
        """Returns the first token from `num_computed_tokens` on whose image has no features yet."""
        for number, end in enumerate(self.ends):
            if end > num_computed_tokens and is_missing[number]:
                return max(self._begins[number], num_computed_tokens)
        return None

    def positions(self, begin: int, end: int) -> NDArray[np.int64] | None:
        """Returns the positions [3, tokens] of the tokens [begin, end), in prompt and output.

        Returns None if no image has a grid of positions.
        """
        if self._positions is None:
            return None
        known = self._positions[:, begin:end]
        num_beyond = end - begin - known.shape[1]
        if not num_beyond:
            return known
        first = int(self._positions.max()) + 1 + max(begin - self._positions.shape[1], 0)
        beyond = np.broadcast_to(
            np.arange(first, first + num_beyond, dtype=np.int64), (3, num_beyond)
        )
        return np.concatenate([known, beyond], axis=1)


def _list_tokens(image: MediaInput) -> NDArray[np.int64]:
    return np.concatenate(
        [np.arange(begin, begin + num, dtype=np.int64) for begin, num in image.runs]
    )


def _positions(images: Sequence[MediaInput], num_tokens: int) -> NDArray[np.int64]:
    """Returns the positions [3, num_tokens]: consecutive in text and sounds, a grid in an image
    (M-RoPE).

    The text after an image continues after the largest row or column of its grid; so does the text
    after a video of any length. Sources: Qwen2-VL (Wang 2024), section 2.1; transformers,
    `get_rope_index` of qwen2_5_vl.
    """
    pieces, token, position, start = [], 0, 0, 0
    for image in images:
        if image.position_grid is None:  # a sound, whose tokens have the positions of text
            continue
        (begin, num_rows), *others = image.runs
        assert not others
        text = np.arange(position, position + begin - token)
        if image.time_shift is None:
            start = position + len(text)
        grid = np.indices(image.position_grid).reshape(3, num_rows) + start
        grid[0] += image.time_shift or 0
        pieces += [np.broadcast_to(text, (3, len(text))), grid]
        token, position = begin + num_rows, start + max(image.position_grid[1:])
    text = np.arange(position, position + num_tokens - token)
    return np.concatenate([*pieces, np.broadcast_to(text, (3, len(text)))], axis=1).astype(np.int64)
