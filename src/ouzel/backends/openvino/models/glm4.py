"""GLM-4-0414 and GLM-Z1 are glm with further norms, after both halves of a layer.

Reference: transformers, models/glm4/modeling_glm4.py and configuration_glm4.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import LayerNorms, build_decoder, make_feed_forward
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models.glm import DEFAULTS, decoder_shape, mlp_shape
from ouzel.checkpoint.hf_config import HfConfig

NORMS = LayerNorms(after_mixer="post_self_attn_layernorm", after_mlp="post_mlp_layernorm")


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = replace(decoder_shape(config), layer_norms=NORMS)
    return build_decoder(b, shape, make_feed_forward(mlp_shape(config)))
