"""Mamba-2 has no attention and no feed-forward layers, as Codestral Mamba.

Reference: transformers, models/mamba2/modeling_mamba2.py and configuration_mamba2.py.
"""

from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.mamba import MambaShape, mamba, smallest_step
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.state_model import build_state_model
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

DEFAULTS = {
    "vocab_size": 32_768,
    "hidden_size": 4096,
    "num_hidden_layers": 64,
    "num_heads": 128,
    "head_dim": 64,
    "state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "expand": 2,
    "layer_norm_epsilon": 1e-5,
    "use_conv_bias": True,
    "use_bias": False,
    "tie_word_embeddings": False,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    norm = Norm(config.number("layer_norm_epsilon"))
    shape = read_mamba(config, norm)
    return build_state_model(
        config,
        b,
        norm,
        lambda b, rows, layer: mamba(b, rows, f"model.layers.{layer}.mixer.", layer, shape),
    )


def read_mamba(config: HfConfig, norm: Norm) -> MambaShape:
    """Reads the layers.

    The norm always follows the gate: transformers ignores `norm_before_gate`, too.
    """
    inner_size = config.size("expand") * config.size("hidden_size")
    has_bias = config.flag("use_bias")
    shape = MambaShape(
        hidden_size=config.size("hidden_size"),
        num_heads=config.size("num_heads"),
        head_dim=config.size("head_dim"),
        state_size=config.size("state_size"),
        num_groups=config.size("n_groups"),
        kernel_size=config.size("conv_kernel"),
        conv_bias=config.flag("use_conv_bias"),
        input_bias=has_bias,
        output_bias=has_bias,
        activation=read_activation(config),
        norm=norm,
        smallest_step=smallest_step(config),
    )
    if shape.inner_size != inner_size:
        raise ModelLoadError(
            f"config.json: num_heads times head_dim must be {inner_size}, found "
            f"{shape.num_heads} times {shape.head_dim}"
        )
    return shape
