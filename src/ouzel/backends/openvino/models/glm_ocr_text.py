"""The language model of GLM-OCR is glm4 with whole heads rotated, by three positions in an image.

Reference: transformers, models/glm_ocr/modeling_glm_ocr.py and configuration_glm_ocr.py; the layer
that predicts further tokens as in vLLM's glm_ocr_mtp.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.prediction import make_deepseek_names, make_predictor
from ouzel.backends.openvino.graph.rope_axes import with_axes
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models.glm import decoder_shape, mlp_shape
from ouzel.backends.openvino.models.glm4 import NORMS
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {"num_key_value_heads": 8, "rms_norm_eps": 1e-5}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    # The reference ignores attention_bias.
    config = config.with_defaults(**DEFAULTS).with_values(attention_bias=False)
    shape = replace(decoder_shape(config), layer_norms=NORMS)
    if b.takes_images:
        shape = replace(shape, rope=with_axes(shape.rope, config, (8, 12, 12)))
    feed_forward = make_feed_forward(mlp_shape(config))
    names = make_deepseek_names(shape.num_layers)
    predict = make_predictor(config, shape, feed_forward, names=names)
    return build_decoder(b, shape, feed_forward, predict=predict)
