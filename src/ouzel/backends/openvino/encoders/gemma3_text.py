"""EmbeddingGemma is Gemma 3 with attention to both sides (`use_bidirectional_attention`).

Reference: transformers, models/gemma3/modeling_gemma3.py and configuration_gemma3.py. Layers with a
window attend to half of `sliding_window` tokens on either side.
"""

from dataclasses import dataclass

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.decoder import DecoderShape, add_angles
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import (
    Node,
    get_output,
    merge_heads,
    real,
    split_heads,
)
from ouzel.backends.openvino.graph.rotation import Angles, rotate
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.models.gemma3_text import DEFAULTS, NORMS, decoder_shape
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan
from ouzel.errors import ModelLoadError

_BOTH_SIDES = "use_bidirectional_attention"


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    if num_labels:
        raise ModelLoadError(
            f"config.json: a gemma3_text with {_BOTH_SIDES} supports task embed only, given score"
        )
    config = config.with_defaults(**DEFAULTS)
    decoder = decoder_shape(config.with_values(**{_BOTH_SIDES: False}))
    b = EncoderBuilder(weights, plan, "model." if weights.has("model.norm.weight") else "")
    find_angles = add_angles(b, decoder)
    layers = _Layers(
        decoder=decoder,
        inner_size=config.size("intermediate_size"),
        activation=read_activation(config, "hidden_activation", "gelu_pytorch_tanh"),
    )
    window = max(decoder.sliding_windows)
    if window == 1:
        raise config.refuse("sliding_window", ">= 2")
    size = decoder.attention.hidden_size
    rows = b.embed("embed_tokens", decoder.vocab_size, size, b.token_ids)
    rows = ops.multiply(rows, real(decoder.embedding_factor))
    for layer, tokens in enumerate(decoder.sliding_windows):
        angles = find_angles(layer)
        assert angles is not None, "every layer of Gemma 3 has rotary positions"
        rows = layers.build_layer(b, rows, layer, angles, has_window=tokens > 0)
    return b.encoder_model(
        b.norm(rows, "norm", size, decoder.norm),
        hidden_size=size,
        vocab_size=decoder.vocab_size,
        max_positions=decoder.rope.max_positions,
        window=window // 2,
        left_out=("lm_head.", "dense_2.", "dense_3."),  # pooling.py reads GGUF's dense layers
    )


@dataclass(frozen=True, kw_only=True)
class _Layers:
    decoder: DecoderShape
    inner_size: int
    activation: Activation

    def build_layer(
        self, b: EncoderBuilder, rows: Node, layer: int, angles: Angles, *, has_window: bool
    ) -> Node:
        size, norm = self.decoder.attention.hidden_size, self.decoder.norm
        prefix = f"layers.{layer}."
        before = b.norm(rows, prefix + NORMS.before_mixer, size, norm)
        mixed = self._attend(b, before, f"{prefix}self_attn.", angles, has_window=has_window)
        rows = ops.add(rows, b.norm(mixed, prefix + NORMS.after_mixer, size, norm))
        before = b.norm(rows, prefix + NORMS.before_mlp, size, norm)
        gate, up = (
            b.linear(before, f"{prefix}mlp.{name}", size, self.inner_size, has_bias=False)
            for name in ("gate_proj", "up_proj")
        )
        product = ops.multiply(activate(gate, self.activation), up)
        outer = b.linear(product, f"{prefix}mlp.down_proj", self.inner_size, size, has_bias=False)
        return ops.add(rows, b.norm(outer, prefix + NORMS.after_mlp, size, norm))

    def _attend(
        self, b: EncoderBuilder, rows: Node, prefix: str, angles: Angles, *, has_window: bool
    ) -> Node:
        shape = self.decoder.attention
        width, kv_width = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
        query, key, value = (
            b.linear(rows, prefix + name, shape.hidden_size, columns, has_bias=shape.qkv_bias)
            for name, columns in (("q_proj", width), ("k_proj", kv_width), ("v_proj", kv_width))
        )
        query = self._turn(b, query, f"{prefix}q_norm", angles)
        key = self._turn(b, key, f"{prefix}k_norm", angles)
        mixed = b.compute_attention(
            (query, key, value), shape.num_heads, has_window=has_window, scale=shape.scale
        )
        return b.linear(
            mixed, f"{prefix}o_proj", width, shape.hidden_size, has_bias=shape.output_bias
        )

    def _turn(self, b: EncoderBuilder, rows: Node, name: str, angles: Angles) -> Node:
        """Computes the norm of each head and rotates it."""
        head_dim = self.decoder.attention.head_dim
        num_heads = get_output(rows).get_partial_shape()[1].get_length() // head_dim
        heads = split_heads(rows, num_heads, head_dim)
        heads = b.norm(heads, name, head_dim, self.decoder.attention.norm)
        return merge_heads(rotate(heads, angles, head_dim))
