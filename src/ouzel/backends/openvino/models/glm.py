"""GLM-4-9B and GLM-Edge have half of each head rotated, with coordinates side by side, and fused
gate and up.

Reference: transformers, models/glm/modeling_glm.py and configuration_glm.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "num_key_value_heads": 2,
    "head_dim": 128,
    "rms_norm_eps": 1.5625e-07,
    "partial_rotary_factor": 0.5,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    return build_decoder(b, decoder_shape(config), make_feed_forward(mlp_shape(config)))


def decoder_shape(config: HfConfig) -> DecoderShape:
    shape = DecoderShape.read(config, rotates_partly=True)
    num_rotated = 2 * len(shape.rope.inverse_frequencies)
    return shape.with_attention(
        qkv_bias=config.flag("attention_bias", True), num_paired_dims=num_rotated
    )


def mlp_shape(config: HfConfig) -> MlpShape:
    return replace(MlpShape.read(config), fused_name="gate_up_proj")
