"""Reads the tensors of Whisper models of CTranslate2 and whisper.cpp, a few rows at a time."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import Encoding, Parts
from ouzel.backends.openvino.weights.gguf import (
    PLAIN,
    READERS,
    expected_shape,
    read_blocks,
    read_bytes,
    read_floats,
    without_ones,
)
from ouzel.backends.openvino.weights.plain_names import plain_name
from ouzel.backends.openvino.weights.source import StoredForm, Tensor
from ouzel.errors import ModelLoadError
from ouzel.whisper_files.stored_tensor import StoredTensor

_INT8 = Encoding("i8", "f32")
_INTEGERS: dict[str, np.dtype[Any]] = {  # Any: one of two element types
    "I8": np.dtype("i1"),
    "I16": np.dtype("<i2"),
}


class WhisperCheckpoint:
    """Reads tensors by the names that they have in safetensors; implements `Tensors`."""

    def __init__(self, tensors: Mapping[str, StoredTensor]) -> None:
        self._tensors = {plain_name(name): stored for name, stored in tensors.items()}

    @property
    def block_types(self) -> list[str]:
        """Returns the names of all types of numbers in the file."""
        return sorted({stored.location.block_type.name for stored in self._tensors.values()})

    @property
    def has_blocks(self) -> bool:
        """Tells whether some matrices are stored as small integers with scales."""
        kinds = {stored.location.block_type.name for stored in self._tensors.values()}
        return "I8" in kinds or not kinds.isdisjoint(READERS)

    def names(self) -> Iterable[str]:
        return self._tensors

    def stored_encoding(self, tensor: Tensor) -> Encoding | None:
        stored = self._locate(tensor)
        kind = stored.location.block_type.name
        if len(without_ones(stored.shape)) != 2:
            return None  # the kernel of a convolution, or a vector
        if kind == "I8" and stored.scales is not None:
            return _INT8
        return READERS[kind].encoding if kind in READERS else None

    def stored_form(self, tensor: Tensor) -> StoredForm | None:
        kind = self._locate(tensor).location.block_type.name
        if kind in READERS:
            return StoredForm(kind, READERS[kind].bits)
        return StoredForm("int8", 8) if kind == "I8" else None

    def parts(self, tensor: Tensor) -> Iterator[Parts]:
        stored = self._locate(tensor)
        if stored.location.block_type.name in READERS:
            yield from read_blocks(stored.location)
            return
        for values, scales in _read_integers(stored):
            yield {"values": values, "scales": np.float32(1) / scales}

    def rows(self, tensor: Tensor) -> Iterator[NDArray[np.float32]]:
        stored = self._locate(tensor)
        if stored.location.block_type.name not in _INTEGERS:
            yield from read_floats(stored.location)
            return
        for values, scales in _read_integers(stored):
            yield values.astype(np.float32) / scales

    def _locate(self, tensor: Tensor) -> StoredTensor:
        """Returns the stored tensor after checks of its shape and type.

        Dimensions of 1 make no difference. Raises ModelLoadError.
        """
        stored = self._tensors.get(tensor.name)
        if stored is None:
            path = next((each.location.path for each in self._tensors.values()), None)
            raise ModelLoadError(
                f"{path or 'the file of weights'} has no tensor for {tensor.name} "
                "(its name in transformers)"
            )
        where = f"{stored.location.path}: tensor {stored.name}"
        if without_ones(stored.shape) != expected_shape(tensor):
            raise ModelLoadError(
                f"{where} has the shape {list(stored.shape)}, "
                f"but config.json requires {list(tensor.shape)}"
            )
        kind = stored.location.block_type.name
        is_scaled = kind in _INTEGERS and stored.scales is not None
        if not (is_scaled or kind in PLAIN or kind in READERS):
            known = ", ".join([*PLAIN, *_INTEGERS, *READERS])
            raise ModelLoadError(f"{where} is stored as {kind}; supported are {known}")
        return stored


def _read_integers(
    stored: StoredTensor,
) -> Iterator[tuple[NDArray[np.generic], NDArray[np.float32]]]:
    """Yields integers [some rows, columns] and their scales [rows, 1]."""
    assert stored.scales is not None
    location = stored.location
    scales = np.concatenate([each.reshape(-1) for each in read_floats(stored.scales)])
    num_rows = math.prod(location.shape[:-1])
    scales = np.repeat(scales, num_rows // len(scales))[:, None]
    dtype, begin = _INTEGERS[location.block_type.name], 0
    for raw in read_bytes(location):
        yield raw.reshape(-1).view(dtype).reshape(len(raw), -1), scales[begin : begin + len(raw)]
        begin += len(raw)
