"""The frames of a picture that moves, in RGB, turned upright, on white where they are transparent."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.pillow import open_animation
from ouzel.prompts.media.pixels import on_white, turned
from ouzel.prompts.media.video import Animation, Video

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

Frames = NDArray[np.uint8]  # [frames, height, width, 3]


def decode_animation(
    video: Video,
    content: Animation,
    numbers: Sequence[int],
    resized: "Callable[[Image], Image]",
    check_time: Callable[[], None],
) -> Frames:
    """Returns the frames with these ascending numbers. Raises InvalidRequest; `check_time` raises what it will.

    A frame is made of those before it, so all up to the last one are decoded.
    """
    wanted, found = set(numbers), dict[int, NDArray[np.uint8]]()
    try:
        with open_animation(content.data) as file:
            first = int(getattr(file, "default_image", False))  # what a PNG shows where nothing moves
            for number in range(max(wanted) + 1):
                check_time()
                file.seek(first + number)
                file.load()
                if number in wanted:
                    found[number] = np.asarray(resized(turned(_shown(file), content.orientation)))
    except InvalidRequest:
        raise
    except Exception as error:  # whatever Pillow's Python meets in a broken file, and its decoders say
        reason = "takes too much memory" if isinstance(error, MemoryError) else "is cut off or broken"
        raise InvalidRequest(f"must be a whole video, given a file that {reason}", field=video.path) from None
    return np.stack([found[number] for number in numbers])


def _shown(file: "ImageFile") -> "Image":
    return on_white(file.convert("RGBA")) if file.has_transparency_data else file.convert("RGB")
