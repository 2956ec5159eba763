"""Mamba-2 has no attention and no feed-forward layers, as Codestral Mamba.

Reference: transformers, models/mamba2/modeling_mamba2.py and configuration_mamba2.py.
"""

from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.mamba import MambaShape, mamba, smallest_step
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops
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
    # States have no positions, and config.json no limit; llama.cpp takes the same one.
    "max_position_embeddings": 2**20,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    norm = Norm(config.number("layer_norm_epsilon"))
    shape = read_mamba(config, norm)
    num_layers, vocab_size = config.size("num_hidden_layers"), config.size("vocab_size")
    is_tied = config.flag("tie_word_embeddings")
    embedding = b.embedding("model.embeddings", vocab_size, shape.hidden_size, is_head=is_tied)
    x = b.embed(embedding)
    for layer in range(num_layers):
        prefix = f"model.layers.{layer}."
        rows = b.norm(x, prefix + "norm", shape.hidden_size, norm)
        mixed = mamba(b, rows, prefix + "mixer.", layer, shape)
        if layer == num_layers - 1:
            x, mixed = b.graph.sample_rows(x), b.graph.sample_rows(mixed)
        x = ops.add(x, mixed)
    x = b.norm(x, "model.norm_f", shape.hidden_size, norm)
    head = embedding if is_tied else b.head("lm_head", vocab_size, shape.hidden_size)
    return b.language_model(
        b.product(x, head),
        hidden_size=shape.hidden_size,
        vocab_size=vocab_size,
        max_positions=config.size("max_position_embeddings"),
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
