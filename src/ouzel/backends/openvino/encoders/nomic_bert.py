"""nomic-bert: BERT with rotary positions, gated feed-forward layers and no biases.

Reference: transformers, models/nomic_bert/modeling_nomic_bert.py. Older checkpoints
(nomic-embed-text v1 and v1.5) have other keys in config.json, other names of tensors, and one
matrix for queries, keys and values.
"""

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import Node, merge_heads, split, split_heads
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rope import read_rope
from ouzel.backends.openvino.graph.rotation import Angles, rotate
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan
from ouzel.errors import ModelLoadError

_OLDER_KEYS = {
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_layer": "num_hidden_layers",
    "n_inner": "intermediate_size",
    "n_positions": "max_position_embeddings",
    "layer_norm_epsilon": "layer_norm_eps",
    "rotary_emb_base": "rope_theta",
}
_OLDER_SUPPORTED = {
    "activation_function": "swiglu",
    "prenorm": False,
    "qkv_proj_bias": False,
    "mlp_fc1_bias": False,
    "mlp_fc2_bias": False,
    "rotary_emb_fraction": 1.0,
    "rotary_emb_interleaved": False,
    "rotary_emb_scale_base": None,
    "rotary_scaling_factor": None,
    "use_rms_norm": False,
}
_NAMES = (
    "self_attn.o_proj",
    "post_attention_layernorm",
    "post_mlp_layernorm",
    "gate_proj",
    "up_proj",
    "down_proj",
)
_OLDER_NAMES = ("attn.out_proj", "norm1", "norm2", "fc12", "fc11", "fc2")


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    if num_labels:
        raise ModelLoadError("config.json: nomic_bert supports task embed only, given score")
    config = _in_newer_words(config) if config.has("n_embd") else config
    config = config.with_defaults(
        rope_theta=1000.0, max_position_embeddings=2048, type_vocab_size=2
    )
    size, num_heads = config.size("hidden_size"), config.size("num_attention_heads")
    head_dim = config.size("head_dim", size // num_heads)
    norm = Norm(config.number("layer_norm_eps", 1e-12), is_centred=True, has_bias=True)
    rope = read_rope(config, head_dim)
    prefixes = ("", "nomic_bert.", "bert.")
    prefix = next(
        (each for each in prefixes if weights.has(f"{each}embeddings.word_embeddings.weight")), ""
    )
    b = EncoderBuilder(weights, plan, prefix)
    is_older = b.has("emb_ln.weight")  # transformers still saves this name
    rows = b.embed("embeddings.word_embeddings", config.size("vocab_size"), size, b.token_ids)
    types = b.input("token_types", [-1], ov.Type.i64)
    rows = ops.add(
        rows,
        b.embed("embeddings.token_type_embeddings", config.size("type_vocab_size"), size, types),
    )
    rows = b.norm(rows, "emb_ln" if is_older else "embeddings.LayerNorm", size, norm)
    layer_of = _Layer(config, num_heads, head_dim, norm, b.angles(rope), is_older=is_older)
    for layer in range(config.size("num_hidden_layers")):
        rows = layer_of.build_layer(b, rows, layer)
    left_out = ("cls.", "lm_head.", f"{prefix}pooler.", f"{prefix}embeddings.position_ids")
    return b.encoder_model(
        rows,
        hidden_size=size,
        vocab_size=config.size("vocab_size"),
        max_positions=rope.max_positions,
        left_out=left_out,
    )


def _in_newer_words(config: HfConfig) -> HfConfig:
    for key, supported in _OLDER_SUPPORTED.items():
        if config.values.get(key, supported) != supported:
            raise config.refuse(key, str(supported))
    values = {
        newer: config.values[older] for older, newer in _OLDER_KEYS.items() if config.has(older)
    }
    return config.with_values(**values, hidden_act="silu", rope_scaling=None)


class _Layer:
    def __init__(
        self,
        config: HfConfig,
        num_heads: int,
        head_dim: int,
        norm: Norm,
        angles: Angles,
        *,
        is_older: bool,
    ) -> None:
        self._size, self._inner_size = config.size("hidden_size"), config.size("intermediate_size")
        self._num_heads, self._head_dim = num_heads, head_dim
        self._norm, self._angles = norm, angles
        self._activation: Activation = read_activation(config)
        self._is_older = is_older

    def build_layer(self, b: EncoderBuilder, rows: Node, layer: int) -> Node:
        prefix = f"encoder.layers.{layer}." if self._is_older else f"layers.{layer}."
        output, mixer_norm, mlp_norm, gate, up, down = _OLDER_NAMES if self._is_older else _NAMES
        size, inner = self._size, self._inner_size
        mixed = b.compute_attention(self._projections(b, rows, prefix), self._num_heads)
        mixed = b.linear(
            mixed, prefix + output, self._num_heads * self._head_dim, size, has_bias=False
        )
        rows = b.norm(ops.add(rows, mixed), prefix + mixer_norm, size, self._norm)
        gated, plain = (
            b.linear(rows, f"{prefix}mlp.{name}", size, inner, has_bias=False)
            for name in (gate, up)
        )
        product = ops.multiply(activate(gated, self._activation), plain)
        outer = b.linear(product, f"{prefix}mlp.{down}", inner, size, has_bias=False)
        return b.norm(ops.add(rows, outer), prefix + mlp_norm, size, self._norm)

    def _projections(self, b: EncoderBuilder, rows: Node, prefix: str) -> list[Node]:
        size, width = self._size, self._num_heads * self._head_dim
        if self._is_older:
            query, key, value = split(
                b.linear(rows, f"{prefix}attn.Wqkv", size, 3 * width, has_bias=False),
                width,
                width,
                width,
            )
        else:
            names = ("q_proj", "k_proj", "v_proj")
            query, key, value = (
                b.linear(rows, f"{prefix}self_attn.{name}", size, width, has_bias=False)
                for name in names
            )
        return [
            *(turned(each, self._num_heads, self._head_dim, self._angles) for each in (query, key)),
            value,
        ]


def turned(rows: Node, num_heads: int, head_dim: int, angles: Angles) -> Node:
    """Rotates the heads of [T, heads * head_dim] by their positions."""
    return merge_heads(rotate(split_heads(rows, num_heads, head_dim), angles, head_dim))
