"""An encoder's graph under construction: rows of all texts, one after the other, as in a language
model's.

Matrices are multiplied by the rows as they come. Attention has a batch axis: rows are gathered into
as many as the longest text has, and those of the texts are gathered back from what comes of it. So
padding costs attention only.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.encoder_model import EncoderModel, ScorePooling
from ouzel.backends.openvino.graph.constants import Constants
from ouzel.backends.openvino.graph.nodes import Node, gather, integers, output_of
from ouzel.backends.openvino.graph.norms import Norm, normalised, weight_of
from ouzel.backends.openvino.graph.rope import Rope
from ouzel.backends.openvino.graph.rotation import Angles
from ouzel.backends.openvino.graph.vision import attend, heads_of
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.source import MatrixSpec, Tensor, Weights
from ouzel.config.weights import WeightPlan, WidthOption


class EncoderBuilder:
    """Names are those of tensors without their `.weight`, behind `prefix`."""

    def __init__(self, weights: Weights, plan: WeightPlan, prefix: str = "") -> None:
        self._weights = weights
        self._plan = plan
        self._prefix = prefix
        self._constants = Constants()
        self._inputs: dict[str, Node] = {}
        self._ropes: dict[str, Rope] = {}
        self.token_ids = self.input("input_ids", [-1], ov.Type.i64)

    def input(self, name: str, shape: list[int], dtype: ov.Type) -> Node:
        if name not in self._inputs:
            parameter = ops.parameter(shape, dtype)
            parameter.output(0).set_names({name})
            parameter.set_friendly_name(name)
            self._inputs[name] = parameter
        return self._inputs[name]

    def has(self, name: str) -> bool:
        """Takes the whole name of a tensor, behind the prefix."""
        return self._weights.has(self._prefix + name)

    def beside(self) -> "EncoderBuilder":
        """Returns one for the same graph, whose names have no prefix: heads stand beside the
        encoder.
        """
        other = EncoderBuilder.__new__(EncoderBuilder)
        other.__dict__.update(self.__dict__)
        other._prefix = ""
        return other

    def array(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Takes the whole name of a tensor, behind the prefix."""
        return self._weights.array(self._prefix + name, shape)

    def linear(
        self, rows: Node, name: str, num_columns: int, num_rows: int, *, has_bias: bool = True
    ) -> Node:
        """Multiplies by the transpose of [num_rows, num_columns], as checkpoints store it."""
        product = ops.matmul(
            rows, self._matrix(name, num_rows, num_columns, self._plan.layers), False, True
        )
        return (
            ops.add(product, self._constants.array(self.array(name + ".bias", num_rows)))
            if has_bias
            else product
        )

    def norm(self, rows: Node, name: str, size: int, norm: Norm) -> Node:
        weight = weight_of(self.array(name + ".weight", size), norm)
        product = ops.multiply(normalised(rows, norm), self._constants.array(weight))
        return (
            ops.add(product, self._constants.array(self.array(name + ".bias", size)))
            if norm.has_bias
            else product
        )

    def embedded(self, name: str, num_rows: int, num_columns: int, ids: Node) -> Node:
        return gather(self._matrix(name, num_rows, num_columns, self._plan.embedding), ids)

    def angles(self, rope: Rope, name: str = "default") -> Angles:
        """Adds inputs for the angles, which the host computes by `rope`."""
        self._ropes[name] = rope
        num_dims = 2 * len(rope.inverse_frequencies)
        halves = [
            self.input(f"rope_{kind}.{name}", [-1, num_dims // 2], ov.Type.f32)
            for kind in ("cos", "sin")
        ]
        cos, sin = (ops.unsqueeze(ops.concat([half, half], -1), integers(1)) for half in halves)
        return Angles(cos, sin, num_dims)

    def attended(
        self, projections: Sequence[Node], num_heads: int, *, has_window: bool = False
    ) -> Node:
        """Takes queries, keys and values, and returns [T, heads * head_dim].

        The tokens of a text see each other, or those in the window.
        """
        places = self.input("padded_rows", [-1, -1], ov.Type.i32)
        mask = self.input("mask", [-1, 1, 1, -1], ov.Type.f32)
        if has_window:
            mask = ops.add(mask, self.input("window_mask", [1, 1, -1, -1], ov.Type.f32))
        size = output_of(projections[0]).get_partial_shape()[1].get_length()
        heads = [
            heads_of(gather(rows, places), num_heads, size // num_heads) for rows in projections
        ]
        answer = ops.transpose(attend(*heads, mask), integers(0, 2, 1, 3))
        return gather(
            ops.reshape(answer, integers(-1, size), False), self.input("rows", [-1], ov.Type.i32)
        )

    def pooled(self, rows: Node) -> Node:
        """Makes [B, columns] of [T, columns]: sums of rows by weights that the host gives."""
        return ops.matmul(self.input("pooling_weights", [-1, -1], ov.Type.f32), rows, False, False)

    def encoder_model(
        self,
        rows: Node,
        *,
        hidden_size: int,
        vocab_size: int,
        max_positions: int,
        num_labels: int = 0,
        score_pooling: ScorePooling = "cls",
        padding_id: int | None = None,
        window: int = 0,
        left_out: tuple[str, ...] = (),
    ) -> EncoderModel:
        """Takes the hidden rows, or where it scores the logits."""
        result = ops.result(rows)
        result.output(0).set_names({"scores" if num_labels else "hidden_rows"})
        return EncoderModel(
            graph=ov.Model([result], list(self._inputs.values()), "ouzel.encoder"),
            arrays=self._constants.arrays,
            ropes=self._ropes,
            hidden_size=hidden_size,
            vocab_size=vocab_size,
            max_positions=max_positions,
            num_labels=num_labels,
            score_pooling=score_pooling,
            padding_id=padding_id,
            window=window,
            left_out=left_out,
        )

    def _matrix(self, name: str, num_rows: int, num_columns: int, width: WidthOption) -> Node:
        shape = (num_rows, num_columns)
        wanted = MatrixSpec((Tensor(f"{self._prefix}{name}.weight", shape),), shape)
        return self._constants.matrix(self._weights.matrix(wanted, width))
