"""Adds the LoRA adapters of a checkpoint that has one for each task, as jina-embeddings-v3 has.

Each text of a step has its own task, or none. The matrices of all tasks are stacked, and products
with the matrices of other tasks are multiplied by 0: the adapters are of low rank.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, gather
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.weights.source import Matrix, MatrixSpec, Weights
from ouzel.config.weights import WidthOption

_BASE = ".parametrizations.weight.original"
_ADAPTER = ".parametrizations.weight.0.lora_"


class BaseWeights:
    """Finds the weights that have adapters under their usual names; implements `Weights`."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    def matrix(self, spec: MatrixSpec, width: WidthOption) -> Matrix:
        tensors = tuple(
            replace(tensor, name=self._stored_name(tensor.name)) for tensor in spec.tensors
        )
        return self._weights.matrix(replace(spec, tensors=tensors), width)

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        return self._weights.array(self._stored_name(name), shape)

    def has(self, name: str) -> bool:
        return self._weights.has(self._stored_name(name))

    def _stored_name(self, name: str) -> str:
        stored = name.removesuffix(".weight") + _BASE
        return stored if name.endswith(".weight") and self._weights.has(stored) else name


@dataclass(frozen=True, kw_only=True)
class TaskAdapters:
    weights: Weights
    num_tasks: int
    rank: int
    scaling: float
    task_weights: Node  # [T, num_tasks * rank]: 1 for the columns of a token's task, else 0
    constant: Callable[[NDArray[np.float32]], Node]

    def add_to_product(
        self, product: Node, rows: Node, name: str, num_columns: int, num_rows: int
    ) -> Node:
        """Adds the adapters of the matrix [num_rows, num_columns] to a product with rows."""
        inner = self._array(name, "A", self.rank, num_columns)
        outer = self._array(name, "B", num_rows, self.rank)
        reduced = ops.matmul(rows, self.constant(inner.reshape(-1, num_columns)), False, True)
        return self._add(product, reduced, outer.transpose(0, 2, 1), num_rows)

    def add_to_rows(
        self, rows: Node, ids: Node, name: str, num_rows: int, num_columns: int
    ) -> Node:
        """Adds the adapters of an embedding [num_rows, num_columns] to its rows for `ids`."""
        inner = self._array(name, "A", num_rows, self.rank).transpose(1, 0, 2)
        outer = self._array(name, "B", self.rank, num_columns)
        reduced = gather(self.constant(inner.reshape(num_rows, -1)), ids)
        return self._add(rows, reduced, outer, num_columns)

    def _add(self, rows: Node, reduced: Node, outer: NDArray[np.float32], num_columns: int) -> Node:
        """Multiplies by the outer matrices [tasks, rank, columns], and adds the products."""
        stacked = self.constant(outer.reshape(-1, num_columns) * np.float32(self.scaling))
        return ops.add(
            rows, ops.matmul(ops.multiply(reduced, self.task_weights), stacked, False, False)
        )

    def _array(self, name: str, part: str, *shape: int) -> NDArray[np.float32]:
        return self.weights.array(name + _ADAPTER + part, (self.num_tasks, *shape))
