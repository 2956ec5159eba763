"""Scales the rows of a product by a compressed matrix, in the scales of the matrix and in the bias.

So a scale for each row takes no time. OpenVINO would move a `Multiply` after the product into the
matrix, and then decompress the matrix in every step.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.kernels.products import LINEAR, scale_product
from ouzel.backends.openvino.library import ops, ov


@dataclass(frozen=True)
class CompressedProduct:
    """The nodes of a product by a matrix with scales, and of its bias, if any."""

    product: Node
    biased: Node | None  # an Add, whose second input is the bias
    levels: Node  # the integers of the matrix as floats, with zero points subtracted
    scales: Node
    shape: Node | None  # the shape of the matrix, if its columns are in groups

    def scale_rows(self, factors: NDArray[np.float32]) -> None:
        """Changes the graph in place; `factors` has one factor for each row of the matrix."""
        levels = self.levels
        if levels.get_type_name() == "Subtract":
            values, zeros = (in_f32(levels.input_value(index).get_node()) for index in range(2))
            levels = ops.subtract(values, zeros)
        else:
            levels = in_f32(levels)
        scales = floats(self.scales)
        by_row = factors.reshape(-1, *[1] * (scales.ndim - 1))
        weights = ops.multiply(levels, ops.constant((scales * by_row).astype(np.float32)))
        if self.shape is not None:
            weights = ops.reshape(weights, self.shape, False)
        self.product.input(1).replace_source_output(weights.output(0))
        if self.biased is not None:
            bias = floats(self.biased.input_value(1).get_node())
            self.biased.input(1).replace_source_output(
                ops.constant((bias * factors).astype(np.float32)).output(0)
            )


@dataclass(frozen=True)
class PackedProduct:
    """A product by a packed matrix; its bias, if any, is an input of the same operation."""

    linear: Node

    def scale_rows(self, factors: NDArray[np.float32]) -> None:
        """Changes the graph in place; `factors` has one factor for each row of the matrix."""
        scale_product(self.linear, factors)


def find_product(rows: Node) -> CompressedProduct | PackedProduct | None:
    """Returns the product that makes the rows.

    Returns None for anything else, such as a sum with adapters or a product by a matrix of floats.
    """
    if rows.get_type_name() == LINEAR:
        return PackedProduct(rows)
    biased, product = None, rows
    if (
        rows.get_type_name() == "Add"
        and rows.input_value(1).get_node().get_type_name() == "Constant"
    ):
        biased, product = rows, rows.input_value(0).get_node()
    if product.get_type_name() != "MatMul":
        return None
    weights = product.input_value(1).get_node()
    if weights.get_type_name() == "Convert":
        weights = weights.input_value(0).get_node()
    shape = None
    if weights.get_type_name() == "Reshape":
        weights, shape = (weights.input_value(index).get_node() for index in range(2))
    if weights.get_type_name() != "Multiply":
        return None
    levels, scales = (weights.input_value(index).get_node() for index in range(2))
    return CompressedProduct(product, biased, levels, scales, shape)


def in_f32(levels: Node) -> Node:
    """Converts integers to f32; takes the integers, or a conversion of them to floats."""
    integers = levels.input_value(0) if levels.get_type_name() == "Convert" else levels.output(0)
    return ops.convert(integers, "f32")


def floats(constant: Node) -> NDArray[np.float32]:
    """Returns the values of a constant, or of a conversion of a constant."""
    if constant.get_type_name() == "Convert":
        constant = constant.input_value(0).get_node()
    values: NDArray[np.float32] = constant.get_data(dtype=ov.Type.f32.to_dtype())
    return values
