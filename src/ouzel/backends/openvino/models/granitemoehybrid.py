"""Granite 4 H has Mamba-2 in most layers, and attention, mostly without positions, in the others.

Reference: transformers, models/granitemoehybrid/modeling_granitemoehybrid.py and configuration_granitemoehybrid.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, Part, attention_of, build_decoder, feed_forward_of
from ouzel.backends.openvino.graph.mamba import MambaShape, mamba, smallest_step
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.errors import ModelLoadError

_KINDS = {"mamba": "mamba", "linear_attention": "mamba", "attention": "attention", "full_attention": "attention"}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    if (num_experts := config.integer("num_local_experts", 8)) > 0:
        raise ModelLoadError(f"config.json: num_local_experts must be 0 for granitemoehybrid, found {num_experts}")
    shape = decoder_shape(config)
    mlp = MlpShape(
        hidden_size=shape.attention.hidden_size,
        inner_size=config.size("shared_intermediate_size", 1024),
        activation=read_activation(config),
        fused_name="input_linear",
        names=("", "", "output_linear"),
    )
    return build_decoder(b, shape, feed_forward_of(mlp, "shared_mlp"), mixer_of(config, b, shape))


def decoder_shape(config: HfConfig) -> DecoderShape:
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config)
    shape = shape.with_attention(qkv_bias=bias, output_bias=bias, scale=config.number("attention_multiplier", 1.0))
    return replace(
        shape,
        unrotated_layers=frozenset() if turns(config) else frozenset(range(shape.num_layers)),
        embedding_factor=config.number("embedding_multiplier", 1.0),
        residual_factor=config.number("residual_multiplier", 1.0),
        logits_factor=1 / config.number("logits_scaling", 1.0),
    )


def turns(config: HfConfig) -> bool:
    kind = config.text("position_embedding_type", "nope")
    if kind not in ("rope", "nope"):
        raise ModelLoadError(f"config.json: position_embedding_type must be rope or nope, found {kind}")
    return kind == "rope"


def mixer_of(config: HfConfig, b: Builder, shape: DecoderShape) -> Part:
    kinds = layer_kinds(config)
    attention, mamba_shape = attention_of(b, shape), read_mamba(config, shape)

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
            f"config.json: mamba_n_heads times mamba_d_head must be {inner_size}, found {num_heads} times {head_dim}"
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
        raise ModelLoadError(f"config.json: {key} must be mamba or attention, found {', '.join(sorted(unknown))}")
    return [_KINDS[kind] for kind in kinds]
