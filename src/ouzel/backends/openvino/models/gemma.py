"""Gemma, CodeGemma and the language model of PaliGemma are llama with wide heads and a scaled
embedding.

Each weight of a norm is stored minus one. Reference: transformers, models/gemma/modeling_gemma.py
and configuration_gemma.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.activations import Activation, read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models.gemma3_text import refuse_other_attention, root
from ouzel.checkpoint.hf_config import HfConfig

# Checkpoints with a vision encoder leave out of `text_config` the values that are defaults in
# transformers.
DEFAULTS = {
    "vocab_size": 256_000,
    "hidden_size": 3072,
    "intermediate_size": 24_576,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "head_dim": 256,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    mlp = replace(MlpShape.read(config), activation=read_gemma_activation(config))
    return build_decoder(b, decoder_shape(config), make_feed_forward(mlp))


def decoder_shape(config: HfConfig) -> DecoderShape:
    refuse_other_attention(config)
    bias = config.flag("attention_bias", False)
    return replace(
        DecoderShape.read(config).with_attention(qkv_bias=bias, output_bias=bias),
        norm=Norm(config.number("rms_norm_eps", 1e-6), plus=1.0),
        embedding_factor=root(config.size("hidden_size"), config),
    )


def read_gemma_activation(config: HfConfig) -> Activation:
    """Reads the activation, whose older key is `hidden_act`.

    The first checkpoints say gelu and mean its approximation by tanh.
    """
    key = "hidden_activation" if config.has("hidden_activation") else "hidden_act"
    activation = read_activation(config, key, "gelu_pytorch_tanh")
    return "gelu_tanh" if activation == "gelu" else activation
