"""SmolLM3 is llama without rotary positions in every fourth layer, or by `no_rope_layers`.

Reference: transformers, models/smollm3/modeling_smollm3.py and configuration_smollm3.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    build_decoder,
    make_feed_forward,
    sliding_windows,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {"tie_word_embeddings": True, "rope_theta": 2_000_000.0}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    bias = config.flag("attention_bias", False)
    unrotated = unrotated_layers(config)
    shape = DecoderShape.read(config.with_defaults(**DEFAULTS))
    shape = shape.with_attention(qkv_bias=bias, output_bias=bias)
    shape = replace(shape, sliding_windows=windows(config, unrotated)).without_rope(unrotated)
    mlp = replace(MlpShape.read(config), has_bias=config.flag("mlp_bias", False))
    return build_decoder(b, shape, make_feed_forward(mlp))


def unrotated_layers(config: HfConfig) -> frozenset[int]:
    """Returns the layers without rotary positions.

    Despite the key's name, a 1 in `no_rope_layers` is a layer with rotary positions.
    """
    num_layers = config.size("num_hidden_layers")
    if config.has("no_rope_layers"):
        rotates = config.integers("no_rope_layers", num_layers)
        return frozenset(layer for layer in range(num_layers) if not rotates[layer])
    interval = config.size("no_rope_layer_interval", 4)
    return frozenset(range(interval - 1, num_layers, interval))


def windows(config: HfConfig, unrotated: frozenset[int]) -> tuple[int, ...]:
    if not config.flag("use_sliding_window", False) or not config.has("sliding_window"):
        return ()
    return sliding_windows(config, lambda layer: layer in unrotated)
