"""A vision encoder is built part by part, of a few layers each: a step of the language model may go
between two.

All parts may take the same inputs by name; besides, each takes the rows of the one before. The last
gives the features, and any may give further ones, which enter deeper layers of the language model.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.constants import Constants
from ouzel.backends.openvino.graph.nodes import Node, integers
from ouzel.backends.openvino.graph.norms import Norm, normalised, weight_of
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import Join, Passes, VisionModel, one_after_the_other
from ouzel.backends.openvino.weights.source import MatrixSpec, Tensor, Weights
from ouzel.config.weights import WidthOption

LAYERS_PER_PART = 2  # of CLIP ViT-L/14-336, on two cores, they take a tenth of a second
ROWS, NEXT_ROWS, FEATURES, DEEP = (
    "rows",
    "next_rows",
    "features",
    "deep.",
)  # a name is of one port of a part


class VisionBuilder:
    """Names are those of tensors without their `.weight`."""

    def __init__(self, weights: Weights, width: WidthOption) -> None:
        self._weights = weights
        self._width = width
        self._constants = Constants()
        self._parts: list[ov.Model] = []
        self._inputs: dict[str, Node] = {}  # of the part under construction
        self._outputs: dict[str, Node] = {}
        self._num_deep = 0
        self._left_out: list[str] = []

    def input(self, name: str, shape: list[int], dtype: ov.Type) -> Node:
        """Returns the input of this name, which parts that ask for it have in common."""
        if name not in self._inputs:
            parameter = ops.parameter(shape, dtype)
            parameter.output(0).set_names({name})
            parameter.set_friendly_name(name)
            self._inputs[name] = parameter
        return self._inputs[name]

    def array(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Takes the whole name of a tensor."""
        return self._weights.array(name, shape)

    def constant(self, values: NDArray[np.float32]) -> Node:
        return self._constants.array(values)

    def linear(
        self, rows: Node, name: str, num_columns: int, num_rows: int, *, has_bias: bool = True
    ) -> Node:
        """Multiplies by the transpose of [num_rows, num_columns], as checkpoints store it."""
        product = ops.matmul(rows, self._matrix(name, (num_rows, num_columns)), False, True)
        return (
            ops.add(product, self.constant(self.array(name + ".bias", num_rows)))
            if has_bias
            else product
        )

    def product(self, rows: Node, name: str, num_rows: int, num_columns: int) -> Node:
        """Multiplies by [num_rows, num_columns], as few checkpoints store it. Takes the whole name
        of a tensor.
        """
        wanted = MatrixSpec(
            (Tensor(name, (num_rows, num_columns), is_transposed=True),), (num_columns, num_rows)
        )
        return ops.matmul(
            rows, self._constants.matrix(self._weights.matrix(wanted, self._width)), False, True
        )

    def patches(self, rows: Node, name: str, shape: tuple[int, ...], *, has_bias: bool) -> Node:
        """Multiplies flat patches by a convolution's kernel [num_rows, *...], whose stride is its
        size.
        """
        columns = int(np.prod(shape[1:]))
        kernel = self.array(name + ".weight", *shape).reshape(shape[0], columns)
        product = ops.matmul(rows, self.constant(kernel), False, True)
        return (
            ops.add(product, self.constant(self.array(name + ".bias", shape[0])))
            if has_bias
            else product
        )

    def norm(self, rows: Node, name: str, size: int, norm: Norm) -> Node:
        weight = weight_of(self.array(name + ".weight", size), norm)
        product = ops.multiply(normalised(rows, norm), self.constant(weight))
        return (
            ops.add(product, self.constant(self.array(name + ".bias", size)))
            if norm.has_bias
            else product
        )

    def at_layer(self, layer: int, rows: Node) -> Node:
        """Ends a part before every few layers; returns the rows as the next one has them."""
        return self.next_part(rows) if layer and layer % LAYERS_PER_PART == 0 else rows

    def next_part(self, rows: Node) -> Node:
        shape = rows.output(0).get_partial_shape()
        self._finish_part(NEXT_ROWS, rows)
        return self.input(ROWS, shape, ov.Type.f32)

    def deep(self, rows: Node) -> None:
        """Adds features that enter the next layer of the language model."""
        self._outputs[f"{DEEP}{self._num_deep}"] = rows
        self._num_deep += 1

    def leave_out(self, *prefixes: str) -> None:
        """Says that a checkpoint may have tensors with such names, which the encoder does without."""
        self._left_out += prefixes

    def vision_model(
        self, features: Node, passes: Passes, join: Join = one_after_the_other
    ) -> VisionModel:
        """Takes features [rows, hidden_size]."""
        self._finish_part(FEATURES, features)
        return VisionModel(
            parts=self._parts,
            arrays=self._constants.arrays,
            passes=passes,
            join=join,
            left_out=tuple(self._left_out),
        )

    def _finish_part(self, name: str, rows: Node) -> None:
        results = []
        for output_name, value in {name: rows, **self._outputs}.items():
            result = ops.result(value)
            result.output(0).set_names({output_name})
            results.append(result)
        self._parts.append(
            ov.Model(results, list(self._inputs.values()), f"vision.{len(self._parts)}")
        )
        self._inputs, self._outputs = {}, {}

    def _matrix(self, name: str, shape: tuple[int, int]) -> Node:
        wanted = MatrixSpec((Tensor(name + ".weight", shape),), shape)
        return self._constants.matrix(self._weights.matrix(wanted, self._width))


def attend(query: Node, key: Node, value: Node, *mask: Node) -> Node:
    """Takes [batch, heads, rows, head_dim]; all rows see each other, but for those that a mask
    takes out.

    The scale is head_dim ** -0.5.
    """
    return ops.scaled_dot_product_attention(query, key, value, *mask, causal=False)


def heads_of(rows: Node, num_heads: int, head_dim: int) -> Node:
    """Makes [batch, heads, rows, head_dim] of [batch, rows, heads * head_dim]."""
    return ops.transpose(
        ops.reshape(rows, integers(0, 0, num_heads, head_dim), True), integers(0, 2, 1, 3)
    )


def rows_of(heads: Node) -> Node:
    """Makes [batch, rows, heads * head_dim] of [batch, heads, rows, head_dim]."""
    return ops.reshape(ops.transpose(heads, integers(0, 2, 1, 3)), integers(0, 0, -1), True)
