"""GLM-4.5, 4.6 and 4.7 have half of each head rotated, and DeepSeek's experts behind the first
layers.

A layer for further tokens may follow the last one. Reference: transformers,
models/glm4_moe/modeling_glm4_moe.py and configuration_glm4_moe.py.
"""

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder
from ouzel.backends.openvino.graph.deepseek import feed_forward, first_layers, sigmoid_routing
from ouzel.backends.openvino.graph.prediction import make_deepseek_names, make_predictor
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-5,
    "partial_rotary_factor": 0.5,
    "max_position_embeddings": 131_072,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 1408,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "norm_topk_prob": True,
    "routed_scaling_factor": 1.0,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = decoder_shape(config)
    half = feed_forward(config, sigmoid_routing(config), first_layers(config))
    predict = make_predictor(config, shape, half, names=make_deepseek_names(shape.num_layers))
    return build_decoder(b, shape, half, predict=predict)


def decoder_shape(config: HfConfig) -> DecoderShape:
    return DecoderShape.read(config, rotates_partly=True).with_attention(
        qkv_bias=config.flag("attention_bias", False),
        qk_norm="head" if config.flag("use_qk_norm", False) else None,
    )
