"""Gives weights that are not read, to build a graph and see its parts and sizes."""

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.cells import empty_cells
from ouzel.backends.openvino.weights.compress import find_origin
from ouzel.backends.openvino.weights.encodings import Encoding, empty_parts
from ouzel.backends.openvino.weights.source import Matrix, MatrixSpec, Tensor, Tensors
from ouzel.backends.openvino.weights.width_report import HeldMatrix
from ouzel.config.weights import WidthOption


class MeasuredWeights:
    """Implements `Weights` with zeros of the right shape and type, which take no memory."""

    def __init__(self, tensors: Tensors, *, recompress: bool = False, packs: bool = False) -> None:
        self._tensors = tensors
        self._recompress = recompress
        self._packs = packs
        self.held: list[HeldMatrix] = []
        self.used: set[str] = set()  # names of tensors
        self.num_parameters = 0
        self.bytes_by_encoding: Counter[Encoding] = Counter()

    def matrix(self, spec: MatrixSpec, width: WidthOption) -> Matrix:
        origin = find_origin(
            spec, width, self._tensors, recompress=self._recompress, packs=self._packs
        )
        self.held.append(origin.held(spec.shape))
        encoding = origin.encoding
        make_empty = empty_cells if encoding.is_packed else empty_parts
        parts = make_empty(encoding, math.prod(spec.shape[:-1]), spec.shape[-1])
        self._count(origin.tensors, encoding, sum(part.nbytes for part in parts.values()))
        return Matrix(encoding, spec.shape, parts)

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        tensor = Tensor(name, shape)
        # Raises ModelLoadError if the tensor is missing or has another shape.
        self._tensors.stored_encoding(tensor)
        zeros = np.zeros(shape, np.float32)
        self._count((tensor,), Encoding("f32"), zeros.nbytes)
        return zeros

    def has(self, name: str) -> bool:
        return name in self._tensors.names()

    def _count(self, tensors: tuple[Tensor, ...], encoding: Encoding, num_bytes: int) -> None:
        self.used.update(tensor.name for tensor in tensors)
        self.num_parameters += sum(math.prod(tensor.shape) for tensor in tensors)
        self.bytes_by_encoding[encoding] += num_bytes
