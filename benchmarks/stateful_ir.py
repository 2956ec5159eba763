"""Writes a checkpoint as a stateful OpenVINO IR, as optimum exports it, with Ouzel's own weights.

usage: uv run python -m benchmarks.stateful_ir CHECKPOINT_DIR OUT_DIR

The parts and the compressed constants are the same. But tokens come as [batch, tokens], attention
is ScaledDotProductAttention over ReadValue/Assign states, and the graph computes positions and
masks, as OpenVINO GenAI expects its models.
"""

import sys
from pathlib import Path

import numpy as np

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.constants import Constants
from ouzel.backends.openvino.graph.decoder import DecoderShape
from ouzel.backends.openvino.graph.mlp import MlpShape, gated_mlp
from ouzel.backends.openvino.graph.nodes import Node, integers, real
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.graph.self_attention import project
from ouzel.backends.openvino.library import op, ops, ov
from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.safetensors import Checkpoint
from ouzel.backends.openvino.weights.source import MemoryWriter
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.config.weights import WeightPlan, read_weights


class StatefulGraph(PagedGraph):
    """The parts that differ from a paged graph; activations are [batch, tokens, ...]."""

    def __init__(self, head_dim: int, theta: float) -> None:
        self.parameters = []
        self._constants = Constants()
        self.arrays = self._constants.arrays
        self._head_dim = head_dim
        self.token_ids = self.input("input_ids", [-1, -1], ov.Type.i64)
        self._mask = self.input("attention_mask", [-1, -1], ov.Type.i64)
        positions = self.input("position_ids", [-1, -1], ov.Type.i64)
        self._beam_idx = self.input("beam_idx", [-1], ov.Type.i32)
        frequencies = ops.constant(
            (theta ** -(np.arange(0, head_dim, 2) / head_dim)).astype(np.float32)[None, :, None]
        )
        # [batch, head_dim / 2, tokens]
        angles = ops.matmul(
            frequencies, ops.convert(ops.unsqueeze(positions, integers(1)), "f32"), False, False
        )
        half = ops.transpose(angles, integers(0, 2, 1))
        both = ops.concat([half, half], -1)
        self._cos, self._sin = (
            ops.unsqueeze(each, integers(1)) for each in (ops.cos(both), ops.sin(both))
        )
        self._assigns: list[Node] = []
        self._num_attentions = 0

    def heads(self, rows: Node, num_heads: int) -> Node:
        """Splits rows: [batch, tokens, heads * size] -> [batch, tokens, heads, size]."""
        return ops.reshape(rows, integers(0, 0, num_heads, self._head_dim), True)

    def rotate(self, heads: Node) -> Node:
        """Applies RoPE, and transposes to [batch, heads, tokens, size]."""
        heads = ops.transpose(heads, integers(0, 2, 1, 3))
        half, axis = self._head_dim // 2, integers(3)
        first = ops.slice(heads, integers(0), integers(half), integers(1), axis)
        second = ops.slice(heads, integers(half), integers(2**63 - 1), integers(1), axis)
        rotated = ops.concat([ops.multiply(second, real(-1.0)), first], -1)
        return ops.add(ops.multiply(heads, self._cos), ops.multiply(rotated, self._sin))

    def attention(self, query: Node, key: Node, value: Node, num_kv_heads: int) -> Node:
        layer = self._num_attentions
        self._num_attentions += 1
        value = ops.transpose(self.heads(value, num_kv_heads), integers(0, 2, 1, 3))
        key = self._add_cache(key, f"past_key_values.{layer}.keypresent.{layer}.key", num_kv_heads)
        value = self._add_cache(
            value, f"past_key_values.{layer}.valuepresent.{layer}.value", num_kv_heads
        )
        num_heads = query.output(0).get_partial_shape()[1].get_length()
        key, value = (
            self._repeat_heads(each, num_kv_heads, num_heads // num_kv_heads)
            for each in (key, value)
        )
        hidden = ops.convert(ops.subtract(ops.constant(np.int64(1)), self._mask), "f32")
        mask = ops.unsqueeze(
            ops.multiply(hidden, real(float(np.finfo(np.float32).min))), integers(1, 2)
        )
        attend = ops.scaled_dot_product_attention(
            query, key, value, mask, real(self._head_dim**-0.5), False
        )
        rows = ops.transpose(attend, integers(0, 2, 1, 3))
        return ops.reshape(rows, integers(0, 0, num_heads * self._head_dim), True)

    def _add_cache(self, new: Node, name: str, num_kv_heads: int) -> Node:
        info = op.util.VariableInfo()
        info.data_shape = ov.PartialShape([-1, num_kv_heads, -1, self._head_dim])
        info.data_type = ov.Type.f32
        info.variable_id = name
        variable = op.util.Variable(info)
        batch = ops.gather(ops.shape_of(self.token_ids), integers(0), ops.constant(np.int64(0)))
        shape = ops.concat(
            [batch, integers(num_kv_heads), integers(0), integers(self._head_dim)], 0
        )
        past = ops.read_value(ops.broadcast(real(0.0), shape), variable)
        past = ops.gather(past, self._beam_idx, ops.constant(np.int64(0)))
        whole = ops.concat([past, new], -2)
        self._assigns.append(ops.assign(whole, variable))
        return whole

    def _repeat_heads(self, heads: Node, num_kv_heads: int, repeats: int) -> Node:
        """Repeats each KV head `repeats` times, for grouped queries."""
        if repeats == 1:
            return heads
        expanded = ops.unsqueeze(heads, integers(2))
        shape = ops.shape_of(expanded)
        axes = [
            ops.gather(shape, integers(axis), ops.constant(np.int64(0))) for axis in (0, 1, 3, 4)
        ]
        target = ops.concat([*axes[:2], integers(repeats), *axes[2:]], 0)
        wide = ops.broadcast(expanded, target, "BIDIRECTIONAL")
        return ops.reshape(wide, integers(0, num_kv_heads * repeats, -1, self._head_dim), True)

    def finish(self, rows: Node, name: str = "logits") -> ov.Model:
        result = ops.result(rows)
        result.output(0).set_names({name})
        return ov.Model([result], self._assigns, self.parameters, "stateful")


class StatefulBuilder(Builder):
    graph: StatefulGraph

    def __init__(self, checkpoint: Path, plan: WeightPlan, graph: StatefulGraph) -> None:
        super().__init__(CompressedWeights(Checkpoint(checkpoint), MemoryWriter()), plan)
        self.graph = graph


def write_stateful_ir(checkpoint: Path, out: Path, weights: str = "int8") -> None:
    """Writes openvino_model.xml and .bin, for llama and qwen3 with plain RoPE."""
    config = read_hf_config(checkpoint)
    shape, mlp = DecoderShape.read(config), MlpShape.read(config)
    theta = config.number("rope_theta", 10_000.0)
    b = StatefulBuilder(
        checkpoint, read_weights(weights), StatefulGraph(shape.attention.head_dim, theta)
    )
    hidden_size = shape.attention.hidden_size
    embedding = b.embedding(
        "model.embed_tokens", shape.vocab_size, hidden_size, is_head=shape.tied_embeddings
    )
    x = b.embed(embedding)
    for layer in range(shape.num_layers):
        prefix = f"model.layers.{layer}."
        rows = b.norm(x, prefix + "input_layernorm", hidden_size, shape.norm)
        x = ops.add(
            x,
            attend(b, rows, prefix + "self_attn.", shape, has_norms=config.model_type == "qwen3"),
        )
        rows = b.norm(x, prefix + "post_attention_layernorm", hidden_size, shape.norm)
        x = ops.add(x, gated_mlp(b, rows, prefix + "mlp.", mlp))
    x = b.norm(x, "model.norm", hidden_size, shape.norm)
    head = embedding if shape.tied_embeddings else b.head("lm_head", shape.vocab_size, hidden_size)
    out.mkdir(parents=True, exist_ok=True)
    model = b.graph.finish(b.product(x, head))
    ov.save_model(model, out / "openvino_model.xml", compress_to_fp16=False)


def attend(
    b: StatefulBuilder, rows: Node, prefix: str, shape: DecoderShape, *, has_norms: bool
) -> Node:
    attention = shape.attention
    query, key, value = project(b, rows, prefix, attention)
    query = b.graph.heads(query, attention.num_heads)
    key = b.graph.heads(key, attention.num_kv_heads)
    if has_norms:
        query, key = (
            b.norm(heads, prefix + name, attention.head_dim, shape.norm)
            for heads, name in ((query, "q_norm"), (key, "k_norm"))
        )
    query, key = b.graph.rotate(query), b.graph.rotate(key)
    merged = b.graph.attention(query, key, value, attention.num_kv_heads)
    return b.linear(
        merged, prefix + "o_proj", attention.num_heads * attention.head_dim, attention.hidden_size
    )


if __name__ == "__main__":
    write_stateful_ir(Path(sys.argv[1]), Path(sys.argv[2]))
