"""Decodes frames of an animated picture to RGB, upright, with white behind transparent pixels."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.pillow import open_animation
from ouzel.prompts.media.pixels import on_white, turned

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile


def decode_animation(
    data: bytes,
    orientation: int,
    numbers: Sequence[int],
    prepare: "Callable[[Image], Sequence[NDArray[np.uint8]]]",
) -> list[NDArray[np.uint8]]:
    """Decodes the frames with these ascending numbers. Returns the only array of `prepare` for
    each.

    A frame builds on the frames before it, so all frames up to the last one are decoded. Raises
    InvalidRequest without a field.
    """
    wanted, found = set(numbers), dict[int, NDArray[np.uint8]]()
    try:
        with open_animation(data) as file:
            # 1 if a PNG begins with a still picture for viewers without animation
            first = int(getattr(file, "default_image", False))
            for number in range(max(wanted) + 1):
                file.seek(first + number)
                file.load()
                if number in wanted:
                    [found[number]] = prepare(turned(_shown(file), orientation))
    except Exception as error:  # Pillow and its decoders raise any error for a broken file
        is_large = isinstance(error, MemoryError)
        reason = "takes too much memory" if is_large else "is cut off or broken"
        raise InvalidRequest(f"must be a whole video, given a file that {reason}") from None
    return [found[number] for number in numbers]


def _shown(file: "ImageFile") -> "Image":
    return on_white(file.convert("RGBA")) if file.has_transparency_data else file.convert("RGB")
