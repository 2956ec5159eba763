"""Builds an encoder's graph; the rows of all texts stand one after the other, as in a language
model.

Matrices are multiplied by these rows. Attention has a batch axis: rows are gathered into as many
places as the longest text has, and the results of the texts' own rows are gathered back. So padding
costs time in attention only.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.encoder_model import EncoderModel, ScorePooling
from ouzel.backends.openvino.graph.constants import Constants
from ouzel.backends.openvino.graph.nodes import Node, gather, get_output, int32, integers, real
from ouzel.backends.openvino.graph.norms import Norm, add_norm_offset, normalise
from ouzel.backends.openvino.graph.rope import Rope
from ouzel.backends.openvino.graph.rotation import Angles
from ouzel.backends.openvino.graph.task_adapters import BaseWeights, TaskAdapters
from ouzel.backends.openvino.graph.vision import attend, split_batch_heads
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.source import Matrix, MatrixSpec, Tensor, Weights
from ouzel.config.weights import WeightPlan, WidthOption


class EncoderBuilder:
    """Builds a graph. Names are tensor names without `.weight`, and get `prefix` in front."""

    def __init__(self, weights: Weights, plan: WeightPlan, prefix: str = "") -> None:
        self._weights = weights
        self._plan = plan
        self._prefix = prefix
        self._constants = Constants()
        # Layers that share tensors find them here.
        self._matrices: dict[str, Matrix] = {}
        self._arrays: dict[str, NDArray[np.float32]] = {}
        self._inputs: dict[str, Node] = {}
        self._ropes: dict[str, Rope] = {}
        self._adapters: TaskAdapters | None = None
        self.token_ids = self.input("input_ids", [-1], ov.Type.i64)

    def input(self, name: str, shape: list[int], dtype: ov.Type) -> Node:
        if name not in self._inputs:
            parameter = ops.parameter(shape, dtype)
            parameter.output(0).set_names({name})
            parameter.set_friendly_name(name)
            self._inputs[name] = parameter
        return self._inputs[name]

    def has(self, name: str) -> bool:
        """Tells whether the tensor exists; the builder puts its prefix before `name`."""
        return self._weights.has(self._prefix + name)

    def without_prefix(self) -> "EncoderBuilder":
        """Returns a builder for the same graph whose tensor names have no prefix, as in a head."""
        other = EncoderBuilder.__new__(EncoderBuilder)
        other.__dict__.update(self.__dict__)
        other._prefix = ""
        return other

    def array(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Returns the tensor; the builder puts its prefix before `name`."""
        name = self._prefix + name
        if name not in self._arrays:
            self._arrays[name] = self._weights.array(name, shape)
        return self._arrays[name]

    def constant(self, values: NDArray[np.float32]) -> Node:
        return self._constants.array(values)

    def linear(
        self, rows: Node, name: str, num_columns: int, num_rows: int, *, has_bias: bool = True
    ) -> Node:
        """Multiplies the rows by the transpose of [num_rows, num_columns], the shape in
        checkpoints.
        """
        matrix = self._matrix(name, num_rows, num_columns, self._plan.layers)
        bias = self.array(name + ".bias", num_rows) if has_bias else None
        product = self._constants.product(rows, matrix, bias)
        if self._adapters is None:
            return product
        return self._adapters.add_to_product(
            product, rows, self._prefix + name, num_columns, num_rows
        )

    def norm(self, rows: Node, name: str, size: int, norm: Norm) -> Node:
        weight = add_norm_offset(self.array(name + ".weight", size), norm)
        product = ops.multiply(normalise(rows, norm), self._constants.array(weight))
        if not norm.has_bias:
            return product
        return ops.add(product, self._constants.array(self.array(name + ".bias", size)))

    def embed(self, name: str, num_rows: int, num_columns: int, ids: Node) -> Node:
        matrix = self._matrix(name, num_rows, num_columns, self._plan.embedding)
        rows = self._constants.embed(matrix, ids)
        if self._adapters is None:
            return rows
        return self._adapters.add_to_rows(rows, ids, self._prefix + name, num_rows, num_columns)

    def add_tasks(self, num_tasks: int, rank: int, scaling: float) -> None:
        """Gives all linears and embeddings from here on an adapter for each task."""
        self._weights = BaseWeights(self._weights)
        self._adapters = TaskAdapters(
            weights=self._weights,
            num_tasks=num_tasks,
            rank=rank,
            scaling=scaling,
            task_weights=self.input("task_weights", [-1, num_tasks * rank], ov.Type.f32),
            constant=self.constant,
        )

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

    def compute_attention(
        self,
        projections: Sequence[Node],
        num_heads: int,
        *,
        has_window: bool = False,
        bias: Node | None = None,
        scale: float | None = None,
    ) -> Node:
        """Computes attention of queries, keys and values; returns [T, heads * head_dim].

        All tokens of a text attend to each other; with `has_window` only tokens near to each other
        do. Several heads of queries may share a head of keys and values. `scale` is the factor of
        the products of queries and keys, head_dim ** -0.5 by default; then the `bias`
        [1, heads, places, places] is added.
        """
        mask = self.mask()
        if has_window:
            mask = ops.add(mask, self.input("window_mask", [1, 1, -1, -1], ov.Type.f32))
        if bias is not None:
            mask = ops.add(mask, bias)
        return self.attend(self.padded_heads(projections, num_heads), mask, scale)

    def padded_heads(self, projections: Sequence[Node], num_heads: int) -> list[Node]:
        """Turns rows of queries, keys and values [T, heads * head_dim] into
        [texts, heads, places, head_dim].

        There are as many places as the longest text has tokens.
        """
        places = self.input("padded_rows", [-1, -1], ov.Type.i32)
        size = get_output(projections[0]).get_partial_shape()[1].get_length()
        return [
            _repeat_heads(gather(rows, places), num_heads, size // num_heads)
            for rows in projections
        ]

    def mask(self) -> Node:
        """Returns the mask of padding, [texts, 1, 1, places]: 0 for tokens, else -1e9."""
        return self.input("mask", [-1, 1, 1, -1], ov.Type.f32)

    def attend(self, heads: Sequence[Node], mask: Node, scale: float | None = None) -> Node:
        """Computes attention of padded heads; returns the rows without padding.

        The products of queries with keys are multiplied by `scale`, head_dim ** -0.5 by default;
        then the mask is added, [texts, heads, places, places].
        """
        factor = () if scale is None else (real(scale),)
        answer = ops.transpose(attend(*heads, mask, *factor), integers(0, 2, 1, 3))
        shape = get_output(answer).get_partial_shape()
        size = shape[2].get_length() * shape[3].get_length()
        return gather(
            ops.reshape(answer, integers(-1, size), False), self.input("rows", [-1], ov.Type.i32)
        )

    def bias_by_distance(self, values: NDArray[np.float32]) -> Node:
        """Returns a bias of attention, [1, heads, places, places].

        `values` [heads, 2 * max_positions - 1] has the bias of each distance: the column
        `max_positions - 1 + distance` is for a key `distance` places behind its query.
        """
        padded_rows = self.input("padded_rows", [-1, -1], ov.Type.i32)
        num_places = ops.gather(ops.shape_of(padded_rows, "i32"), int32(1), int32(0))
        places = ops.range(int32(0), num_places, int32(1), "i32")
        middle = int32(values.shape[1] // 2)
        distances = ops.subtract(
            ops.unsqueeze(places, integers(0)), ops.unsqueeze(places, integers(1))
        )
        columns = ops.add(distances, middle)
        return ops.unsqueeze(
            ops.gather(self._constants.array(values), columns, int32(1)), integers(0)
        )

    def pooled(self, rows: Node) -> Node:
        """Pools [T, columns] to [B, columns]: sums of rows with weights that the host gives."""
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
        """Returns the finished model; `rows` are the hidden rows, or for a model that scores the
        logits.
        """
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
            num_tasks=0 if self._adapters is None else self._adapters.num_tasks,
            task_rank=0 if self._adapters is None else self._adapters.rank,
            left_out=left_out,
        )

    def _matrix(self, name: str, num_rows: int, num_columns: int, width: WidthOption) -> Matrix:
        tensor = Tensor(f"{self._prefix}{name}.weight", (num_rows, num_columns))
        if tensor.name not in self._matrices:
            spec = MatrixSpec((tensor,), tensor.shape, has_groups=True)
            self._matrices[tensor.name] = self._weights.matrix(spec, width)
        return self._matrices[tensor.name]


def _repeat_heads(rows: Node, num_heads: int, head_dim: int) -> Node:
    """Turns [batch, rows, heads * head_dim] into [batch, num_heads, rows, head_dim].

    If there are fewer than `num_heads` heads, each stands for several neighbours.
    """
    num_stored = get_output(rows).get_partial_shape()[2].get_length() // head_dim
    heads = split_batch_heads(rows, num_stored, head_dim)
    if num_stored == num_heads:
        return heads
    stored = np.repeat(np.arange(num_stored), num_heads // num_stored)
    return ops.gather(heads, integers(*stored), int32(1))
