"""Gives rows of a batch the features and the positions of images."""

from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.engine.scheduling.image_encoder import ImageEncoder, NoImages
from ouzel.engine.state.sequence import Sequence


class TokenRows(msgspec.Struct, frozen=True):
    """Successive rows of a batch, for the tokens [begin, end) of a sequence."""

    sequence: Sequence
    begin: int
    end: int
    first_row: int


def find_image_rows(
    ranges: Iterable[TokenRows], images: ImageEncoder | NoImages
) -> tuple[NDArray[np.int64] | None, NDArray[np.float32] | None]:
    """Returns the rows that stand for images or sounds, and their features [levels, rows, hidden
    size]; None without such rows.

    Features that have fewer levels than others get zeros: the features of a sound beside an image
    with further layers.
    """
    rows, features = list[NDArray[np.int64]](), list[NDArray[np.float32]]()
    for each in ranges:
        own = each.sequence.images
        if own is None:
            continue
        for number, tokens, rows_of_image in own.rows_between(each.begin, each.end):
            rows.append(tokens - each.begin + each.first_row)
            features.append(
                images.features(each.sequence, own.images[number]).take(rows_of_image, axis=1)
            )
    if not rows:
        return None, None
    num_levels = max(len(each) for each in features)
    levels = [_add_levels(each, num_levels) for each in features]
    return np.concatenate(rows), np.concatenate(levels, axis=1)


def _add_levels(features: NDArray[np.float32], num_levels: int) -> NDArray[np.float32]:
    missing = num_levels - len(features)
    return np.pad(features, ((0, missing), (0, 0), (0, 0))) if missing else features


def place_in_grids(ranges: Iterable[TokenRows], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Gives each row three positions if any image of the batch has a grid of positions."""
    grids = positions
    for each in ranges:
        images = each.sequence.images
        own = None if images is None else images.positions(each.begin, each.end)
        if own is not None:
            if grids is positions:
                grids = np.repeat(positions[None], 3, axis=0)
            grids[:, each.first_row : each.first_row + each.end - each.begin] = own
    return grids
