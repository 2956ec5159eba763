"""Granite MoE with a shared MLP is granitemoe with a feed-forward layer beside the experts.

Reference: transformers, models/granitemoeshared/modeling_granitemoeshared.py and
configuration_granitemoeshared.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import Part, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.experts import with_shared
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import granite, granitemoe
from ouzel.checkpoint.hf_config import HfConfig


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**granitemoe.DEFAULTS)
    return build_decoder(b, granite.decoder_shape(config), feed_forward(config))


def feed_forward(config: HfConfig) -> Part:
    chosen = granitemoe.feed_forward(config)
    if config.integer("shared_intermediate_size", 0) == 0:
        return chosen
    return with_shared(chosen, shared_mlp(config))


def shared_mlp(config: HfConfig) -> Part:
    shape = MlpShape.read(config, "shared_intermediate_size")
    return make_feed_forward(
        replace(shape, fused_name="input_linear", names=("", "", "output_linear")), "shared_mlp"
    )
