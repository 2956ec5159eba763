"""Mamba, the first one, has recurrent layers only, whose states decay by channel and value.

Reference: transformers, models/mamba/modeling_mamba.py and configuration_mamba.py.
"""

from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.channel_mamba import ChannelMambaShape, channel_mamba
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.state_model import build_state_model
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "vocab_size": 50_280,
    "hidden_size": 768,
    "num_hidden_layers": 32,
    "state_size": 16,
    "expand": 2,
    "conv_kernel": 4,
    "layer_norm_epsilon": 1e-5,
    "use_conv_bias": True,
    "use_bias": False,
    "tie_word_embeddings": True,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    return build_mamba(config, b, None)


def build_mamba(config: HfConfig, b: Builder, inner_norm: Norm | None) -> LanguageModel:
    """Builds the model; `inner_norm` normalises the steps and the maps of its layers."""
    config = config.with_defaults(**DEFAULTS)
    hidden_size = config.size("hidden_size")
    is_automatic = config.values.get("time_step_rank", "auto") == "auto"
    shape = ChannelMambaShape(
        hidden_size=hidden_size,
        num_channels=config.size("intermediate_size", config.size("expand") * hidden_size),
        state_size=config.size("state_size"),
        step_rank=-(-hidden_size // 16) if is_automatic else config.size("time_step_rank"),
        kernel_size=config.size("conv_kernel"),
        conv_bias=config.flag("use_conv_bias"),
        projection_bias=config.flag("use_bias"),
        activation=read_activation(config),
        norm=inner_norm,
    )
    return build_state_model(
        config,
        b,
        Norm(config.number("layer_norm_epsilon")),
        lambda b, rows, layer: channel_mamba(b, rows, f"model.layers.{layer}.mixer.", layer, shape),
    )
