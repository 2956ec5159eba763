"""Gemma 2 has norms around both halves, and caps the scores of its attention and its logits.

Every second layer has a window. Reference: transformers, models/gemma2/modeling_gemma2.py and
configuration_gemma2.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    build_decoder,
    every_layer_but,
    make_feed_forward,
    sliding_windows,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.kernels.softcap import refuse_without_kernels
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models.gemma3_text import NORMS, refuse_bidirectional, root
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "vocab_size": 256_000,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
    "attn_logit_softcapping": 50.0,  # null: no cap
    "final_logit_softcapping": 30.0,
}


def check_machine(config: HfConfig) -> None:
    """Raises ModelLoadError if nothing here computes the soft cap of the attention."""
    config = config.with_defaults(**DEFAULTS)
    refuse_without_kernels(config.number("attn_logit_softcapping", 0.0))


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    refuse_bidirectional(config)
    activation = read_activation(config, "hidden_activation", "gelu_pytorch_tanh")
    mlp = replace(MlpShape.read(config), activation=activation)
    return build_decoder(b, decoder_shape(config), make_feed_forward(mlp))


def decoder_shape(config: HfConfig) -> DecoderShape:
    norm = Norm(config.number("rms_norm_eps", 1e-6), plus=1.0)
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config).with_attention(
        qkv_bias=bias,
        output_bias=bias,
        scale=config.size("query_pre_attn_scalar") ** -0.5,
        softcap=config.number("attn_logit_softcapping", 0.0),
    )
    return replace(
        shape,
        norm=norm,
        layer_norms=NORMS,
        sliding_windows=sliding_windows(config, every_layer_but(2)),
        embedding_factor=root(config.size("hidden_size"), config),
        logits_softcap=config.number("final_logit_softcapping", 0.0),
    )
