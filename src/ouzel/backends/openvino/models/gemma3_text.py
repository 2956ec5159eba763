"""Gemma 3, also the language model of its checkpoints with images, has norms around both halves.

Five of six layers have windows, with rotary positions of their own. Each weight of a norm is stored
minus one, and the embedding is scaled. Reference: transformers, models/gemma3/modeling_gemma3.py
and configuration_gemma3.py.
"""

from dataclasses import replace

import numpy as np

from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    LayerNorms,
    build_decoder,
    every_layer_but,
    make_feed_forward,
    sliding_windows,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rope import read_ropes_by_kind
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.weights.encodings import encode_bf16
from ouzel.backends.openvino.weights.safetensors import to_float32
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

# Checkpoints with a vision encoder leave out of `text_config` the values that are defaults in
# transformers.
DEFAULTS = {
    "rope_theta": 1_000_000.0,
    "vocab_size": 262_208,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131_072,
    "tie_word_embeddings": True,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
    "sliding_window_pattern": 6,
}
NORMS = LayerNorms(
    before_mixer="input_layernorm",
    after_mixer="post_attention_layernorm",
    before_mlp="pre_feedforward_layernorm",
    after_mlp="post_feedforward_layernorm",
)


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    activation = read_activation(config, "hidden_activation", "gelu_pytorch_tanh")
    mlp = replace(MlpShape.read(config), activation=activation)
    return build_decoder(b, decoder_shape(config), make_feed_forward(mlp))


def decoder_shape(config: HfConfig) -> DecoderShape:
    refuse_other_attention(config)
    norm = Norm(config.number("rms_norm_eps", 1e-6), plus=1.0)
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config)
    rope, sliding_rope = read_ropes_by_kind(
        config,
        shape.attention.head_dim,
        sliding_theta=config.number("rope_local_base_freq", 10000.0),
    )
    shape = shape.with_attention(
        norm=norm,
        qk_norm="head",
        qkv_bias=bias,
        output_bias=bias,
        scale=config.size("query_pre_attn_scalar") ** -0.5,
    )
    windows = sliding_windows(config, every_layer_but(config.size("sliding_window_pattern")))
    return replace(
        shape,
        norm=norm,
        layer_norms=NORMS,
        rope=rope,
        layer_ropes=tuple(sliding_rope if window else rope for window in windows),
        sliding_windows=windows,
        embedding_factor=root(config.size("hidden_size"), config),
        logits_softcap=config.number("final_logit_softcapping", 0.0),
    )


def refuse_other_attention(config: HfConfig) -> None:
    if config.has("attn_logit_softcapping"):
        raise ModelLoadError(
            "config.json: attn_logit_softcapping must be null, because only Gemma 2 has it, found "
            f"{config.number('attn_logit_softcapping'):g}"
        )
    refuse_bidirectional(config)


def refuse_bidirectional(config: HfConfig) -> None:
    if config.flag("use_bidirectional_attention", False):
        raise ModelLoadError("config.json: use_bidirectional_attention must be false, found true")


def root(size: int, config: HfConfig) -> float:
    """Returns the square root, rounded to the type of the stored weights."""
    exact = np.array([[size**0.5]], np.float32)
    # All Gemmas were trained in bfloat16.
    match config.text("dtype", config.text("torch_dtype", "bfloat16")):
        case "bfloat16":
            return float(to_float32(encode_bf16(exact)["values"], "BF16")[0, 0])
        case "float16":
            return float(exact.astype(np.float16)[0, 0])
        case _:
            return float(exact[0, 0])
