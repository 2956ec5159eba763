"""Makes the constants for a graph's weights in a form that the CPU plugin keeps compressed.

Convert, Subtract and Multiply on constants become the weights of FullyConnected and Gather.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, gather, integers
from ouzel.backends.openvino.kernels.gates import Gate
from ouzel.backends.openvino.kernels.products import (
    ExpertArrays,
    PackedArrays,
    describe_arrays,
    make_embedding,
    make_linear,
    make_mixture,
)
from ouzel.backends.openvino.library import op, ops, ov
from ouzel.backends.openvino.weights.source import Matrix


@dataclass(frozen=True, slots=True)
class ExpertsMatrix:
    """The matrices of experts, and their biases."""

    matrix: Matrix  # [experts, rows, columns]
    bias: NDArray[np.float32] | None  # [experts, rows]


class Constants:
    """Makes constants, and holds the arrays that they point into."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[np.generic]] = []  # these must outlive the compiled model
        self._expressions: dict[Matrix, Node] = {}

    def constant(self, array: NDArray[np.generic], shape: tuple[int, ...], dtype: ov.Type) -> Node:
        """Returns a constant that points into the array without a copy."""
        self.arrays.append(array)
        return op.Constant(ov.Tensor(array, ov.Shape(shape), dtype), shared_memory=True)

    def array(self, values: NDArray[np.float32]) -> Node:
        values = np.ascontiguousarray(values)
        return self.constant(values, values.shape, ov.Type.f32)

    def product(self, rows: Node, matrix: Matrix, bias: NDArray[np.float32] | None = None) -> Node:
        """Multiplies the rows by the transpose of the matrix, and adds the bias."""
        addend = None if bias is None else self.array(bias)
        if matrix.encoding.is_packed:
            return make_linear(rows, [self._packed(matrix, addend)])
        product = ops.matmul(rows, self.matrix(matrix), False, True)
        return product if addend is None else ops.add(product, addend)

    def mixture(
        self, rows: Node, choice: tuple[Node, Node], gate: Gate, matrices: Sequence[ExpertsMatrix]
    ) -> Node:
        """Adds the results of the chosen experts, times their weights.

        The choice is the experts i32 and the weights f32, [T, experts of a row]. The packed
        matrices are gate and up of all experts, and down.
        """
        gate_up, down = (
            self._packed(
                each.matrix.stack_experts(),
                None if each.bias is None else self.array(each.bias.reshape(-1)),
            )
            for each in matrices
        )
        num_experts = matrices[0].matrix.shape[0]
        return make_mixture(rows, *choice, ExpertArrays(num_experts, gate_up, down, gate))

    def embed(self, matrix: Matrix, numbers: Node) -> Node:
        """Returns the rows of the matrix with these numbers."""
        if matrix.encoding.is_packed:
            return make_embedding(numbers, self._packed(matrix))
        return gather(self.matrix(matrix), numbers)

    def _packed(self, matrix: Matrix, bias: Node | None = None) -> PackedArrays:
        """Makes constants of the cells and the factors of a packed matrix."""
        values, factors = matrix.parts["values"], matrix.parts["factors"]
        num_rows, _ = matrix.shape
        return describe_arrays(
            matrix,
            self.constant(values, (values.size,), ov.Type.u8),
            self.constant(factors.reshape(-1)[:num_rows], (num_rows,), ov.Type.f32),
            bias,
        )

    def matrix(self, matrix: Matrix) -> Node:
        """Returns the matrix in f32, as an expression that the plugin keeps compressed.

        Each matrix has one expression.
        """
        if matrix not in self._expressions:
            self._expressions[matrix] = self._make_expression(matrix)
        return self._expressions[matrix]

    def _make_expression(self, matrix: Matrix) -> Node:
        encoding, shape, parts = matrix.encoding, matrix.shape, matrix.parts
        if encoding.scales is None:
            return self._floats(matrix)
        *outer, columns = shape
        groups = (*outer, encoding.num_groups(columns))
        is_grouped = bool(encoding.group_size)
        one = (*groups, 1) if is_grouped else groups
        values = self.constant(
            parts["values"],
            (*groups, encoding.group_size) if is_grouped else shape,
            getattr(ov.Type, encoding.values),
        )
        computed = "f16" if encoding.scales == "f16" else "f32"
        levels = ops.convert(values, computed)
        if encoding.zeros is not None:
            zeros = self.constant(parts["zeros"], one, getattr(ov.Type, encoding.zeros))
            levels = ops.subtract(
                levels, zeros if encoding.zeros == computed else ops.convert(zeros, computed)
            )
        scales = self.constant(parts["scales"], one, getattr(ov.Type, encoding.scales))
        weights = ops.multiply(
            levels, scales if encoding.scales == computed else ops.convert(scales, computed)
        )
        if is_grouped:
            weights = ops.reshape(weights, integers(*shape), False)
        return weights if computed == "f32" else ops.convert(weights, "f32")

    def _floats(self, matrix: Matrix) -> Node:
        values = self.constant(
            matrix.parts["values"], matrix.shape, getattr(ov.Type, matrix.encoding.values)
        )
        if matrix.encoding.values == "f32":
            return values
        widened = ops.convert(values, "f32")
        # Without this the plugin would fold the constant to f32 first, with three times the memory.
        widened.get_rt_info()["decompression_0"] = ""
        return widened
