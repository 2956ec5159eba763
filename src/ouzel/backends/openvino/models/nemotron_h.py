"""Nemotron-H has one part in each layer: Mamba-2, attention without positions, a feed-forward
layer, or experts.

Reference: transformers, models/nemotron_h/modeling_nemotron_h.py and configuration_nemotron_h.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.activations import activate, read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import Part, make_feed_forward
from ouzel.backends.openvino.graph.deepseek import sigmoid_routing
from ouzel.backends.openvino.graph.experts import (
    ExpertsShape,
    ExpertTensors,
    make_experts,
    with_shared,
)
from ouzel.backends.openvino.graph.mamba import MambaShape, mamba
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.self_attention import AttentionShape, self_attention
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

_KINDS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_NEWER_NAMES = {"linear_attention": "mamba", "full_attention": "attention"}

# Keys of older checkpoints for the same settings.
_OLDER_KEYS = {
    "n_groups": "mamba_n_groups",
    "conv_kernel": "mamba_d_conv",
    "time_step_min": "mamba_dt_min",
    "use_conv_bias": "mamba_conv_bias",
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = with_defaults(config)
    norm = Norm(config.number("layer_norm_epsilon"))
    attention, mamba_shape = AttentionShape.read(config, norm), read_mamba(config, norm)
    hidden_size, vocab_size = attention.hidden_size, config.size("vocab_size")
    kinds, mlp = layer_kinds(config), read_mlp(config)
    experts = experts_layer(config, mlp) if "moe" in kinds else None
    dense = make_feed_forward(mlp, "mixer")
    x = b.embed(b.embedding("model.embeddings", vocab_size, hidden_size, is_head=False))
    mixers = [layer for layer, kind in enumerate(kinds) if kind in ("mamba", "attention")]
    last_mixer = max(mixers, default=len(kinds) - 1)
    for layer, kind in enumerate(kinds):
        prefix = f"model.layers.{layer}.mixer."
        rows = b.norm(x, f"model.layers.{layer}.norm", hidden_size, norm)
        match kind:
            case "mamba":
                mixed = mamba(b, rows, prefix, layer, mamba_shape)
            case "attention":
                mixed = self_attention(b, rows, prefix, layer, attention, angles=None)
            case "moe" if experts:
                mixed = experts(b, rows, layer)
            case _:
                mixed = dense(b, rows, layer)
        if layer == last_mixer:
            x, mixed = b.graph.sample_rows(x), b.graph.sample_rows(mixed)
        x = ops.add(x, mixed)
    x = b.norm(x, "model.norm_f", hidden_size, norm)
    logits = b.logits(x, b.head("lm_head", vocab_size, hidden_size))
    max_positions = config.size("max_position_embeddings")
    return b.language_model(
        logits, hidden_size=hidden_size, vocab_size=vocab_size, max_positions=max_positions
    )


def with_defaults(config: HfConfig) -> HfConfig:
    older = {key: config.values[name] for key, name in _OLDER_KEYS.items() if name in config.values}
    return HfConfig(config.values | older).with_defaults(
        layer_norm_epsilon=1e-5,
        intermediate_size=21504,
        head_dim=128,
        num_key_value_heads=8,
        max_position_embeddings=4096,
        mamba_num_heads=128,
        mamba_head_dim=64,
        ssm_state_size=128,
        n_groups=8,
        conv_kernel=4,
        time_step_min=0.001,
        use_conv_bias=True,
        use_bias=False,
        n_routed_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=7688,
        moe_shared_expert_intermediate_size=7688,
        n_group=1,
        topk_group=1,
        norm_topk_prob=True,
        routed_scaling_factor=1.0,
    )


def read_mlp(config: HfConfig) -> MlpShape:
    return MlpShape(
        hidden_size=config.size("hidden_size"),
        inner_size=config.size("intermediate_size"),
        activation=read_activation(config, "mlp_hidden_act", "relu2"),
        has_bias=config.flag("mlp_bias", False),
        is_gated=False,
    )


def experts_layer(config: HfConfig, mlp: MlpShape) -> Part:
    """Returns layers of experts without gates, beside an expert that computes every token."""
    if config.has("moe_latent_size"):
        raise config.refuse("moe_latent_size", "none: experts that take whole rows")
    routing = sigmoid_routing(config)
    experts = ExpertsShape(
        num_experts=routing.num_experts,
        hidden_size=mlp.hidden_size,
        inner_size=config.size("moe_intermediate_size"),
        unit=lambda up: activate(up, mlp.activation),
        tensors=ExpertTensors(gate="", all_gate_up="experts.up_proj"),
    )
    shared = replace(mlp, inner_size=config.size("moe_shared_expert_intermediate_size"))
    chosen = make_experts(
        routing, experts, place="mixer", correction="gate.e_score_correction_bias"
    )
    return with_shared(chosen, make_feed_forward(shared, "mixer.shared_experts"))


def read_mamba(config: HfConfig, norm: Norm) -> MambaShape:
    """Reads the Mamba layers.

    Steps are never below `time_step_min`; `time_step_limit` has no effect, as in transformers.
    """
    has_bias = config.flag("use_bias")
    return MambaShape(
        hidden_size=config.size("hidden_size"),
        num_heads=config.size("mamba_num_heads"),
        head_dim=config.size("mamba_head_dim"),
        state_size=config.size("ssm_state_size"),
        num_groups=config.size("n_groups"),
        kernel_size=config.size("conv_kernel"),
        conv_bias=config.flag("use_conv_bias"),
        input_bias=has_bias,
        output_bias=has_bias,
        activation=read_activation(config, "mamba_hidden_act"),
        norm=norm,
        smallest_step=config.number("time_step_min"),
    )


def layer_kinds(config: HfConfig) -> list[str]:
    """Reads `layers_block_type`, or `hybrid_override_pattern`, a letter for each layer."""
    listed = config.values.get("layers_block_type", config.values.get("layer_types"))
    if listed is None:
        kinds = [_KINDS.get(letter, letter) for letter in config.text("hybrid_override_pattern")]
    else:
        key = "layers_block_type" if "layers_block_type" in config.values else "layer_types"
        names = config.texts(key, len(listed) if isinstance(listed, list) else 0)
        kinds = [_NEWER_NAMES.get(name, name) for name in names]
    if unknown := set(kinds) - set(_KINDS.values()):
        raise ModelLoadError(
            "config.json: layers of nemotron_h must be mamba, attention, mlp or moe, found "
            + ", ".join(sorted(unknown))
        )
    return kinds
