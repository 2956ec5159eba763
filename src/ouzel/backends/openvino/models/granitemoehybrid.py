"""Granite 4 H has Mamba-2 in most layers, attention in the others, and experts in some checkpoints.

The attention mostly has no positions. Reference: transformers,
models/granitemoehybrid/modeling_granitemoehybrid.py and configuration_granitemoehybrid.py.
"""

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    Part,
    build_decoder,
    choose_by_layer,
    make_attention,
)
from ouzel.backends.openvino.graph.experts import with_shared
from ouzel.backends.openvino.graph.mamba import MambaShape, make_mamba
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import granite, granitemoe, granitemoeshared
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

DEFAULTS = {
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "intermediate_size": 11008,
    "shared_intermediate_size": 1024,
}
_KINDS = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "attention": "attention",
    "full_attention": "attention",
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    shape = decoder_shape(config)
    return build_decoder(b, shape, feed_forward(config), make_mixer(config, b, shape))


def feed_forward(config: HfConfig) -> Part:
    """Returns the shared layer beside the experts, or alone if there are no experts."""
    shared = granitemoeshared.shared_mlp(config)
    if config.integer("num_local_experts") == 0:
        return shared
    return with_shared(granitemoe.feed_forward(config), shared)


def decoder_shape(config: HfConfig) -> DecoderShape:
    shape = granite.decoder_shape(config)
    if has_rotary_positions(config):
        return shape
    return shape.without_rope(range(shape.num_layers))


def has_rotary_positions(config: HfConfig) -> bool:
    return config.choice("position_embedding_type", "nope", "rope") == "rope"


def make_mixer(config: HfConfig, b: Builder, shape: DecoderShape) -> Part:
    attends = frozenset(
        layer for layer, kind in enumerate(layer_kinds(config)) if kind == "attention"
    )
    mamba_layer = make_mamba(MambaShape.read(config, shape.norm))
    return choose_by_layer(make_attention(b, shape), mamba_layer, attends)


def layer_kinds(config: HfConfig) -> list[str]:
    key = "layer_types" if config.has("layer_types") else "layers_block_type"
    kinds = config.texts(key, config.size("num_hidden_layers"))
    if unknown := set(kinds) - set(_KINDS):
        raise ModelLoadError(
            f"config.json: {key} must be mamba or attention, found {', '.join(sorted(unknown))}"
        )
    return [_KINDS[kind] for kind in kinds]
