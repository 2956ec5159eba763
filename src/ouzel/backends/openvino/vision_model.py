"""Describes a loaded encoder of images or sounds for its runner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ov
from ouzel.types.engine_request import ImageInput, MediaInput, SoundInput

Inputs = dict[str, NDArray[np.generic]]
Media = TypeVar("Media", bound=MediaInput)
# takes an image and its pixels [tiles, 3, height, width]; gives the inputs of each pass by name
Passes = Callable[[ImageInput, NDArray[np.float32]], list[Inputs]]
# takes a sound and its log-mel spectrogram [bins, frames]
SoundPasses = Callable[[SoundInput, NDArray[np.float32]], list[Inputs]]
Join = Callable[[ImageInput, list[NDArray[np.float32]]], NDArray[np.float32]]


def join_passes(image: MediaInput, features: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Joins the features of several passes, each [levels, rows, hidden_size], along the rows."""
    return features[0] if len(features) == 1 else np.concatenate(features, axis=1)


@dataclass(frozen=True, kw_only=True)
class EncoderModel(Generic[Media]):
    """The graphs of an encoder of images or sounds, and the facts that its runner needs.

    The graphs run one after the other, each on the rows of the graph before it. Steps of the
    language model can run between two of them.
    """

    parts: list[ov.Model]
    # The graphs' constants point into these arrays: keep them as long as the compiled models.
    arrays: list[NDArray[np.generic]]
    # gives the inputs of each pass through all parts
    passes: Callable[[Media, NDArray[np.float32]], list[Inputs]]
    # joins the features of all passes, each [levels, rows, hidden_size], to the features of the
    # image
    join: Callable[[Media, list[NDArray[np.float32]]], NDArray[np.float32]] = join_passes
    # prefixes of tensors that the checkpoint may have although the encoder does not use them
    left_out: tuple[str, ...] = ()


VisionModel = EncoderModel[ImageInput]
HearingModel = EncoderModel[SoundInput]
