"""Renames tensors: a checkpoint may have other names than the graph asks for."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.source import Matrix, MatrixSpec, Tensor, Weights
from ouzel.config.weights import WidthOption


class RenamedWeights:
    """Implements `Weights` under other names: `stored_prefix` replaces `graph_prefix`."""

    def __init__(self, weights: Weights, graph_prefix: str, stored_prefix: str) -> None:
        self._weights = weights
        self._graph_prefix, self._stored_prefix = graph_prefix, stored_prefix

    def matrix(self, spec: MatrixSpec, width: WidthOption) -> Matrix:
        tensors = tuple(self._renamed(tensor) for tensor in spec.tensors)
        instead = None if spec.instead is None else self._renamed(spec.instead)
        return self._weights.matrix(replace(spec, tensors=tensors, instead=instead), width)

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        return self._weights.array(self._name(name), shape)

    def has(self, name: str) -> bool:
        return self._weights.has(self._name(name))

    def _renamed(self, tensor: Tensor) -> Tensor:
        witness = None if tensor.witness is None else self._renamed(tensor.witness)
        return replace(tensor, name=self._name(tensor.name), witness=witness)

    def _name(self, name: str) -> str:
        if not name.startswith(self._graph_prefix):
            return name
        return self._stored_prefix + name.removeprefix(self._graph_prefix)
