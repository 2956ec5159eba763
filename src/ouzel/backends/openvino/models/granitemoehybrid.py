"""Granite 4 H has Mamba-2 in most layers, attention in the others, and experts in some checkpoints.

The attention mostly has no positions. Reference: transformers,
models/granitemoehybrid/modeling_granitemoehybrid.py and configuration_granitemoehybrid.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, Part, build_decoder, make_attention
from ouzel.backends.openvino.graph.experts import with_shared
from ouzel.backends.openvino.graph.mamba import MambaShape, mamba, smallest_step
from ouzel.backends.openvino.graph.nodes import Node
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
    return replace(shape, unrotated_layers=frozenset(range(shape.num_layers)))


def has_rotary_positions(config: HfConfig) -> bool:
    kind = config.text("position_embedding_type", "nope")
    if kind not in ("rope", "nope"):
        raise ModelLoadError(
            f"config.json: position_embedding_type must be rope or nope, found {kind}"
        )
    return kind == "rope"


def make_mixer(config: HfConfig, b: Builder, shape: DecoderShape) -> Part:
    kinds = layer_kinds(config)
    attention, mamba_shape = make_attention(b, shape), read_mamba(config, shape)

    def mixer(b: Builder, rows: Node, layer: int) -> Node:
        if kinds[layer] == "attention":
            return attention(b, rows, layer)
        return mamba(b, rows, f"model.layers.{layer}.mamba.", layer, mamba_shape)

    return mixer


def read_mamba(config: HfConfig, shape: DecoderShape) -> MambaShape:
    hidden_size, num_heads = shape.attention.hidden_size, config.size("mamba_n_heads", 128)
    inner_size = config.size("mamba_expand", 2) * hidden_size
    is_automatic = config.values.get("mamba_d_head", "auto") == "auto"
    head_dim = inner_size // num_heads if is_automatic else config.size("mamba_d_head")
    if num_heads * head_dim != inner_size:
        raise ModelLoadError(
            f"config.json: mamba_n_heads times mamba_d_head must be {inner_size}, found "
            f"{num_heads} times {head_dim}"
        )
    return MambaShape(
        hidden_size=hidden_size,
        num_heads=num_heads,
        head_dim=head_dim,
        state_size=config.size("mamba_d_state", 256),
        num_groups=config.size("mamba_n_groups", 1),
        kernel_size=config.size("mamba_d_conv", 4),
        conv_bias=config.flag("mamba_conv_bias", True),
        projection_bias=config.flag("mamba_proj_bias", False),
        activation=read_activation(config),
        norm=shape.norm,
        smallest_step=smallest_step(config),
    )


def layer_kinds(config: HfConfig) -> list[str]:
    key = "layer_types" if config.has("layer_types") else "layers_block_type"
    kinds = config.texts(key, config.size("num_hidden_layers"))
    if unknown := set(kinds) - set(_KINDS):
        raise ModelLoadError(
            f"config.json: {key} must be mamba or attention, found {', '.join(sorted(unknown))}"
        )
    return [_KINDS[kind] for kind in kinds]
