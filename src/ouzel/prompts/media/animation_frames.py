"""The frames of a picture that moves, in RGB, turned upright, on white where they are transparent."""

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
    """Returns the one array that `prepare` makes of each of these ascending frames. Raises InvalidRequest, without a
    field.

    A frame is made of those before it, so all up to the last one are decoded.
    """
    wanted, found = set(numbers), dict[int, NDArray[np.uint8]]()
    try:
        with open_animation(data) as file:
            first = int(
                getattr(file, "default_image", False)
            )  # what a PNG shows where nothing moves
            for number in range(max(wanted) + 1):
                file.seek(first + number)
                file.load()
                if number in wanted:
                    [found[number]] = prepare(turned(_shown(file), orientation))
    except (
        Exception
    ) as error:  # whatever Pillow's Python meets in a broken file, and its decoders say
        reason = (
            "takes too much memory" if isinstance(error, MemoryError) else "is cut off or broken"
        )
        raise InvalidRequest(f"must be a whole video, given a file that {reason}") from None
    return [found[number] for number in numbers]


def _shown(file: "ImageFile") -> "Image":
    return on_white(file.convert("RGBA")) if file.has_transparency_data else file.convert("RGB")
