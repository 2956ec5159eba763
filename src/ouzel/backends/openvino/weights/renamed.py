"""Layers that follow the others may be called otherwise in a checkpoint than a graph asks for."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.source import Matrix, MatrixSpec, Tensor, Weights
from ouzel.config.weights import WidthOption


class RenamedWeights:
    """Implements `Weights`: names that begin with `asked` are those that begin with `stored`."""

    def __init__(self, weights: Weights, asked: str, stored: str) -> None:
        self._weights = weights
        self._asked, self._stored = asked, stored

    def matrix(self, wanted: MatrixSpec, width: WidthOption) -> Matrix:
        tensors = tuple(self._renamed(tensor) for tensor in wanted.tensors)
        instead = None if wanted.instead is None else self._renamed(wanted.instead)
        return self._weights.matrix(replace(wanted, tensors=tensors, instead=instead), width)

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
