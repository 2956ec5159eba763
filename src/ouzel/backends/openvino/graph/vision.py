"""Builds a vision encoder in parts of a few layers; a step of the language model can run between
two.

All parts may take the same inputs by name; besides, each takes the rows of the part before. The
last part gives the features, and any part may give further features, which enter deeper layers of
the language model.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.constants import Constants
from ouzel.backends.openvino.graph.nodes import Node, integers
from ouzel.backends.openvino.graph.norms import Norm, add_norm_offset, normalise
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import (
    HearingModel,
    Join,
    Passes,
    SoundPasses,
    VisionModel,
    join_passes,
)
from ouzel.backends.openvino.weights.source import MatrixSpec, Tensor, Weights
from ouzel.config.weights import WidthOption

LAYERS_PER_PART = 2  # two layers of CLIP ViT-L/14-336 take a tenth of a second on two cores
# names of a part's inputs and outputs
ROWS, NEXT_ROWS, FEATURES, DEEP = "rows", "next_rows", "features", "deep."


class VisionBuilder:
    """Builds the graphs of the parts. Names are tensor names without `.weight`."""

    def __init__(self, weights: Weights, width: WidthOption) -> None:
        self._weights = weights
        self._width = width
        self._constants = Constants()
        self._parts: list[ov.Model] = []
        self._inputs: dict[str, Node] = {}  # inputs of the part under construction
        self._outputs: dict[str, Node] = {}
        self._num_deep = 0
        self._left_out: list[str] = []

    def input(self, name: str, shape: list[int], dtype: ov.Type) -> Node:
        """Returns the input of this name; all uses in a part share it."""
        if name not in self._inputs:
            parameter = ops.parameter(shape, dtype)
            parameter.output(0).set_names({name})
            parameter.set_friendly_name(name)
            self._inputs[name] = parameter
        return self._inputs[name]

    def array(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Takes the whole name of a tensor, with its `.weight`."""
        return self._weights.array(name, shape)

    def constant(self, values: NDArray[np.float32]) -> Node:
        return self._constants.array(values)

    def linear(
        self, rows: Node, name: str, num_columns: int, num_rows: int, *, has_bias: bool = True
    ) -> Node:
        """Multiplies the rows by the transpose of [num_rows, num_columns], the shape in
        checkpoints.
        """
        shape = (num_rows, num_columns)
        spec = MatrixSpec((Tensor(name + ".weight", shape),), shape)
        bias = self.array(name + ".bias", num_rows) if has_bias else None
        return self._constants.product(rows, self._weights.matrix(spec, self._width), bias)

    def product(self, rows: Node, name: str, num_rows: int, num_columns: int) -> Node:
        """Multiplies the rows by [num_rows, num_columns], a shape that few checkpoints have.

        Takes the whole name of a tensor.
        """
        spec = MatrixSpec(
            (Tensor(name, (num_rows, num_columns), is_transposed=True),), (num_columns, num_rows)
        )
        return self._constants.product(rows, self._weights.matrix(spec, self._width))

    def square_linears(self, inputs: Sequence[Node], name: str, size: int) -> list[Node]:
        """Multiplies each of the inputs by the transpose of a matrix [size, size] of its own, and
        adds a bias.

        One tensor has the matrices below each other, in the order of the inputs. The tensors have
        names without dots: `in_proj_weight` and `in_proj_bias`.
        """
        shape = (len(inputs) * size, size)
        spec = MatrixSpec((Tensor(name + "_weight", shape),), shape)
        matrix = self._weights.matrix(spec, self._width)
        bias = self.array(name + "_bias", shape[0])
        return [
            self._constants.product(rows, matrix.rows(begin, begin + size), bias[begin:][:size])
            for rows, begin in zip(inputs, range(0, shape[0], size), strict=True)
        ]

    def patches(self, rows: Node, name: str, shape: tuple[int, ...], *, has_bias: bool) -> Node:
        """Multiplies flat patches by the kernel [num_rows, *...] of a convolution whose stride is
        its size.
        """
        columns = int(np.prod(shape[1:]))
        kernel = self.array(name + ".weight", *shape).reshape(shape[0], columns)
        product = ops.matmul(rows, self.constant(kernel), False, True)
        if not has_bias:
            return product
        return ops.add(product, self.constant(self.array(name + ".bias", shape[0])))

    def norm(self, rows: Node, name: str, size: int, norm: Norm) -> Node:
        weight = add_norm_offset(self.array(name + ".weight", size), norm)
        product = ops.multiply(normalise(rows, norm), self.constant(weight))
        if not norm.has_bias:
            return product
        return ops.add(product, self.constant(self.array(name + ".bias", size)))

    def at_layer(self, layer: int, rows: Node) -> Node:
        """Ends a part before every few layers; returns the rows as the next part has them."""
        return self.next_part(rows) if layer and layer % LAYERS_PER_PART == 0 else rows

    def next_part(self, rows: Node) -> Node:
        """Ends the part with these rows; returns the rows as the next part has them.

        A part that ends with the rows that it began with gives none: the next part has them, too.
        """
        shape = rows.output(0).get_partial_shape()
        self._finish_part({} if rows is self._inputs.get(ROWS) else {NEXT_ROWS: rows})
        return self.input(ROWS, shape, ov.Type.f32)

    def deep(self, rows: Node) -> None:
        """Adds features that enter the next of the language model's layers with features."""
        self._outputs[f"{DEEP}{self._num_deep}"] = rows
        self._num_deep += 1

    def leave_out(self, *prefixes: str) -> None:
        """Names tensors that the checkpoint may have although the encoder does not use them."""
        self._left_out += prefixes

    def vision_model(self, features: Node, passes: Passes, join: Join = join_passes) -> VisionModel:
        """Returns the finished encoder; `features` are [rows, hidden_size]."""
        self._finish_part({FEATURES: features})
        return VisionModel(
            parts=self._parts,
            arrays=self._constants.arrays,
            passes=passes,
            join=join,
            left_out=tuple(self._left_out),
        )

    def hearing_model(self, features: Node, passes: SoundPasses) -> HearingModel:
        """Returns the finished encoder of sounds; `features` are [rows, hidden_size]."""
        self._finish_part({FEATURES: features})
        return HearingModel(
            parts=self._parts,
            arrays=self._constants.arrays,
            passes=passes,
            left_out=tuple(self._left_out),
        )

    def _finish_part(self, outputs: dict[str, Node]) -> None:
        results = []
        for name, value in (outputs | self._outputs).items():
            result = ops.result(value)
            result.output(0).set_names({name})
            results.append(result)
        self._parts.append(
            ov.Model(results, list(self._inputs.values()), f"vision.{len(self._parts)}")
        )
        self._inputs, self._outputs = {}, {}


def attend(query: Node, key: Node, value: Node, *mask_and_scale: Node) -> Node:
    """Computes attention of [batch, heads, rows, head_dim].

    All rows attend to each other, except where a mask forbids it. The default of the scale is
    head_dim ** -0.5.
    """
    return ops.scaled_dot_product_attention(query, key, value, *mask_and_scale, causal=False)


def split_batch_heads(rows: Node, num_heads: int, head_dim: int) -> Node:
    """Turns [batch, rows, heads * head_dim] into [batch, heads, rows, head_dim]."""
    return ops.transpose(
        ops.reshape(rows, integers(0, 0, num_heads, head_dim), True), integers(0, 2, 1, 3)
    )


def merge_batch_heads(heads: Node) -> Node:
    """Turns [batch, heads, rows, head_dim] into [batch, rows, heads * head_dim]."""
    return ops.reshape(ops.transpose(heads, integers(0, 2, 1, 3)), integers(0, 0, -1), True)
