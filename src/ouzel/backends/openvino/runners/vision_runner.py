"""Runs an encoder of images or sounds part by part, on one image or sound at a time."""

from collections.abc import Callable, Generator
from itertools import chain
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.vision import DEEP, FEATURES, NEXT_ROWS, ROWS
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.vision_model import EncoderModel, Inputs, Media
from ouzel.errors import EngineFailed
from ouzel.types.engine_request import ImageInput, MediaInput, SoundInput

Array = NDArray[np.float32]


class VisionRunner(Generic[Media]):
    """Runs the compiled parts; it owns them and the arrays that they point into."""

    def __init__(
        self,
        compiled: list[ov.CompiledModel],
        model: EncoderModel[Media],
        read: Callable[[Media], Array],
    ) -> None:
        """`read` returns the numbers of an image or a sound: its pixels, or its spectrogram."""
        self._read = read
        self._model = model
        self._requests = [part.create_infer_request() for part in compiled]
        self._inputs = [[port.get_any_name() for port in part.inputs] for part in compiled]
        self._outputs = [[port.get_any_name() for port in part.outputs] for part in compiled]

    def encode(self, image: Media) -> Generator[None, None, Array]:
        """Returns the features of an image or a sound, [levels, rows, hidden_size].

        The generator yields between two parts, so that other steps can run.
        """
        passes = self._model.passes(image, self._read(image))
        features = []
        for number, inputs in enumerate(passes):
            if number:
                yield
            features.append((yield from self._run(inputs)))
        joined = self._model.join(image, features)
        if (num_tokens := sum(num for _, num in image.runs)) != joined.shape[1]:
            raise EngineFailed(
                f"{_describe(image)} has {joined.shape[1]} rows of features for {num_tokens} "
                "tokens: config.json and the processor's settings disagree"
            )
        return joined

    def _run(self, inputs: Inputs) -> Generator[None, None, Array]:
        """Runs all parts on the inputs of one pass."""
        deep = dict[str, Array]()
        parts = zip(self._requests, self._inputs, self._outputs, strict=True)
        for number, (request, names, outputs) in enumerate(parts):
            if number:
                yield
            tensors = {
                name: ov.Tensor(np.ascontiguousarray(inputs[name]), shared_memory=True)
                for name in names
            }
            for name, tensor in tensors.items():
                request.set_tensor(name, tensor)
            request.infer()  # releases the GIL
            # copies, because the next run writes over the tensors
            results = {name: np.array(request.get_tensor(name).data) for name in outputs}
            if NEXT_ROWS in results:
                inputs = inputs | {ROWS: results[NEXT_ROWS]}
            deep |= {name: array for name, array in results.items() if name.startswith(DEEP)}
        return np.stack(list(chain([results[FEATURES]], deep.values())))


def _describe(image: MediaInput) -> str:
    if isinstance(image, SoundInput):
        return f"a sound of {image.num_frames} frames"
    return f"an image of {image.shape[0]} tiles"


def read_spectrogram(sound: SoundInput) -> Array:
    """Returns the log-mel spectrogram, [bins, frames]."""
    values: Array = np.frombuffer(sound.features, np.float32).reshape(sound.shape)
    return values.copy()  # openvino takes writable arrays only


def normalise_pixels(image: ImageInput) -> Array:
    """Returns the normalised pixels, [tiles, 3, height, width], like the reference's image
    processors.
    """
    values = np.frombuffer(image.pixels, np.uint8).reshape(*image.shape, 3)
    mean, std = np.array(image.mean, np.float32), np.array(image.std, np.float32)
    scaled = (values.astype(np.float32) * np.float32(image.rescale) - mean) / std
    return np.ascontiguousarray(scaled.transpose(0, 3, 1, 2))
