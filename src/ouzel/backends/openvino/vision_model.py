"""A family's vision encoder, ready to be compiled, and what running it takes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ov
from ouzel.types.engine_request import ImageInput

Inputs = dict[str, NDArray[np.generic]]
Passes = Callable[
    [ImageInput, NDArray[np.float32]], list[Inputs]
]  # an image, pixels [tiles, 3, height, width]
Join = Callable[[ImageInput, list[NDArray[np.float32]]], NDArray[np.float32]]


def one_after_the_other(
    image: ImageInput, features: list[NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Joins the features of several passes, where each is [levels, rows, hidden_size]."""
    return features[0] if len(features) == 1 else np.concatenate(features, axis=1)


@dataclass(frozen=True, kw_only=True)
class VisionModel:
    """Its graphs are run one after the other: each takes the rows of the one before, so that others
    can go between.
    """

    parts: list[ov.Model]
    arrays: list[
        NDArray[np.generic]
    ]  # the graphs' constants point into them: keep them as long as the compiled models
    passes: Passes  # -> the inputs of each pass through all parts, by name
    # the features of all passes, each [levels, rows, hidden_size] -> the image's
    join: Join = one_after_the_other
    left_out: tuple[
        str, ...
    ] = ()  # what names of tensors begin with that a checkpoint may have besides
