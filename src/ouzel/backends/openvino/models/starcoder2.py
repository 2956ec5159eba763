"""StarCoder2 has layer norms, plain feed-forward layers, and biases everywhere.

Reference: transformers, models/starcoder2/modeling_starcoder2.py and configuration_starcoder2.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    build_decoder,
    equal_windows,
    make_feed_forward,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "num_key_value_heads": 2,
    "norm_epsilon": 1e-5,
    "hidden_act": "gelu_pytorch_tanh",
    "tie_word_embeddings": True,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    bias = config.flag("use_bias", True)
    shape = DecoderShape.read(config).with_attention(qkv_bias=bias, output_bias=bias)
    shape = replace(
        shape,
        norm=Norm(config.number("norm_epsilon"), is_centred=True, has_bias=True),
        sliding_windows=equal_windows(config),
    )
    mlp = replace(
        MlpShape.read(config), is_gated=False, names=("", "c_fc", "c_proj"), has_bias=bias
    )
    return build_decoder(b, shape, make_feed_forward(mlp))
