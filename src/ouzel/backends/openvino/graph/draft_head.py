"""Builds an EAGLE-3 head: one layer that drafts tokens from rows of several layers of the model.

The rows of the model's layers at token t are joined, and projected in the model's graph. Entry t
takes the projected row of token t and the embedding of token t+1. The attention of its layer takes
both beside each other, each after a norm; the residual is the row. The head's own norm and matrix
make the logits of token t+2. If further entries follow without the model, the row of the layer,
before that norm, takes the place of the projected row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.draft_head_shape import DraftHeadShape
from ouzel.backends.openvino.graph.mlp import gated_mlp
from ouzel.backends.openvino.graph.nodes import Node, scaled
from ouzel.backends.openvino.graph.self_attention import self_attention
from ouzel.backends.openvino.language_model import PredictionGraphs
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.encodings import Encoding, Parts
from ouzel.backends.openvino.weights.source import Matrix, Weights
from ouzel.config.weights import WeightPlan

# A checkpoint has one of these before all names but the name of the matrix for logits.
PREFIXES = ("", "model.")
_LAYER_NAMES = ("midlayer.", "layers.0.")


@dataclass(frozen=True, kw_only=True)
class DraftHeadParts:
    """The shape and the weights of a head."""

    shape: DraftHeadShape
    weights: Weights
    plan: WeightPlan
    # The model's ids of the head's tokens; None: they are the same.
    token_ids: NDArray[np.int64] | None
    identity: str  # names the weights

    @property
    def layers(self) -> tuple[int, ...]:
        return self.shape.layers

    @property
    def reads_last_rows(self) -> bool:
        """Tells whether the head reads the rows after the last layer."""
        return self.shape.reads_last_rows

    def build(self, b: Builder, embedding: Matrix, rows: Sequence[Node]) -> PredictionGraphs:
        """Adds the projected rows to the model's graph and returns the graph of the head.

        `rows` are the inputs of `layers` in the graph of the builder; `embedding` is the model's.
        """
        b.graph.output("hidden_rows", self.project(b.with_weights(self.weights, self.plan), rows))
        layer = Builder(self.weights, self.plan)
        return PredictionGraphs(
            layer=self.build_entries(layer, embedding),
            ropes=layer.ropes,
            hidden_size=self.shape.hidden_size,
            arrays=layer.graph.arrays,
            token_ids=self.token_ids,
            identity=self.identity,
        )

    def use_all(self) -> None:
        """Asks for all weights, as `build` does."""
        size = self.shape.model_size
        b = Builder(self.weights, self.plan)
        rows = [ops.parameter([-1, size], ov.Type.f32) for _ in self.layers]
        values: Parts = {"values": np.zeros((1, self.shape.hidden_size), np.float32)}
        row = Matrix(Encoding("f32"), (1, self.shape.hidden_size), values)
        self.build(b, row, rows)

    def project(self, b: Builder, rows: Sequence[Node]) -> Node:
        """Returns the rows that entries take, [T, hidden size]."""
        shape, prefix = self.shape, self._prefix
        size = len(rows) * shape.model_size
        if shape.norms_rows_of_layers:
            rows = [
                b.norm(each, f"{prefix}fc_norm.{number}", shape.model_size, shape.norm)
                for number, each in enumerate(rows)
            ]
        joined = ops.concat(list(rows), -1)
        if shape.norms_joined_rows:
            joined = b.norm(joined, prefix + "input_norm", size, shape.norm)
        name = prefix + "fc"
        return b.linear(joined, name, size, shape.hidden_size, has_bias=b.has(name + ".bias"))

    def build_entries(self, b: Builder, embedding: Matrix) -> ov.Model:
        """Returns the graph of the layer: rows of the sampled entries, and their logits."""
        shape, prefix = self.shape, self._prefix
        name, size = self._layer_name, shape.hidden_size
        if b.has(prefix + "embed_tokens.weight"):
            embedding = b.embedding(prefix + "embed_tokens", shape.vocab_size, size, is_head=False)
        row = b.graph.input("hidden_rows", [-1, size], ov.Type.f32)
        normed = b.norm(row, name + "hidden_norm", size, shape.norm)
        embedded = b.norm(b.embed(embedding), name + "input_layernorm", size, shape.norm)
        attention = shape.attention
        if b.has(name + "self_attn.q_norm.weight"):
            attention = replace(attention, qk_norm="head")
        mixed = self_attention(
            b,
            ops.concat([embedded, normed], -1),
            name + "self_attn.",
            shape.num_layers,
            attention,
            angles=b.angles(shape.rope),
        )
        residual = normed if shape.norms_residual else row
        residual, mixed = (b.graph.sample_rows(each) for each in (residual, mixed))
        rows = ops.add(residual, mixed)
        inner = b.norm(rows, name + "post_attention_layernorm", size, shape.norm)
        rows = ops.add(rows, gated_mlp(b, inner, name + "mlp.", shape.mlp))
        final = b.norm(rows, prefix + "norm", size, shape.norm)
        logits = b.product(final, b.head("lm_head", shape.draft_vocab_size, size))
        b.graph.output("logits", scaled(logits, shape.logits_factor))
        return b.graph.finish(final if shape.chains_normed_rows else rows, "hidden_rows")

    @property
    def _prefix(self) -> str:
        return next((each for each in PREFIXES if self.weights.has(each + "fc.weight")), "")

    @property
    def _layer_name(self) -> str:
        names = (self._prefix + each for each in _LAYER_NAMES)
        norm = "hidden_norm.weight"
        return next((each for each in names if self.weights.has(each + norm)), _LAYER_NAMES[0])
