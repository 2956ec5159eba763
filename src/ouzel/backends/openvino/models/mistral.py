"""Mistral 7B and similar models are llama with an optional sliding window in every layer.

Reference: transformers, models/mistral/modeling_mistral.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

# Checkpoints with a vision encoder (Pixtral) leave out of `text_config` the values that are
# defaults in transformers.
DEFAULTS = {
    "vocab_size": 32_000,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131_072,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = DecoderShape.read(config)
    shape = replace(shape, sliding_windows=(sliding_window(config),) * shape.num_layers)
    return build_decoder(b, shape, make_feed_forward(MlpShape.read(config)))


def sliding_window(config: HfConfig) -> int:
    """Returns the tokens of the window; null in config.json means 0, no window.

    Without the key the default of transformers counts.
    """
    if "sliding_window" in config.values and not config.has("sliding_window"):
        return 0
    return config.size("sliding_window", 4096)
