"""Renames tensors: a checkpoint may have other names than the graph asks for."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.source import Matrix, MatrixSpec, Tensor, Weights
from ouzel.config.weights import WidthOption


class RenamedWeights:
    """Implements `Weights`: a name with the prefix `asked` is read under the prefix `stored`."""

    def __init__(self, weights: Weights, asked: str, stored: str) -> None:
        self._weights = weights
        self._asked, self._stored = asked, stored

    def matrix(self, spec: MatrixSpec, width: WidthOption) -> Matrix:
        tensors = tuple(self._renamed(tensor) for tensor in spec.tensors)
        instead = None if spec.instead is None else self._renamed(spec.instead)
        return self._weights.matrix(replace(spec, tensors=tensors, instead=instead), width)

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        return self._weights.array(self._name(name), shape)

    def has(self, name: str) -> bool:
        return self._weights.has(self._name(name))

    def _renamed(self, tensor: Tensor) -> Tensor:
        return replace(tensor, name=self._name(tensor.name))

    def _name(self, name: str) -> str:
        return (
            self._stored + name.removeprefix(self._asked) if name.startswith(self._asked) else name
        )
