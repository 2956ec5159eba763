"""InternLM3 is llama with biases everywhere or nowhere.

Reference: transformers, models/internlm3/configuration_internlm3.py; the model is
models/llama/modeling_llama.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

DEFAULTS = {"num_key_value_heads": 2, "head_dim": 128, "rms_norm_eps": 1e-5}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    attention_bias = config.flag("attention_bias", config.flag("qkv_bias", False))
    bias = config.flag("mlp_bias", config.flag("bias", False))
    if attention_bias != bias:  # transformers refuses such a checkpoint, too
        raise ModelLoadError(
            f"config.json: qkv_bias and bias of internlm3 must agree, found {attention_bias}, "
            f"{bias}"
        )
    shape = DecoderShape.read(config).with_attention(qkv_bias=bias, output_bias=bias)
    return build_decoder(b, shape, make_feed_forward(replace(MlpShape.read(config), has_bias=bias)))
