"""Apertus is llama with RMS norms over each head of queries and keys, and feed-forward layers with
xIELU.

Reference: transformers, models/apertus/modeling_apertus.py and configuration_apertus.py.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, LayerNorms, build_decoder
from ouzel.backends.openvino.graph.nodes import Node, real, scaled
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

DEFAULTS = {"rms_norm_eps": 1e-5, "hidden_act": "xielu", "rope_theta": 12_000_000.0}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "original_max_position_embeddings": 8192,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}
NORMS = LayerNorms(before_mixer="attention_layernorm", before_mlp="feedforward_layernorm")


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    if not config.has("rope_scaling") and not config.has("rope_parameters"):
        config = HfConfig(config.values | {"rope_parameters": LLAMA3_ROPE})
    if (activation := config.text("hidden_act")) != "xielu":
        raise ModelLoadError(
            f"config.json: hidden_act of apertus must be xielu, found {activation}"
        )
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config).with_attention(
        qkv_bias=bias, output_bias=bias, qk_norm="head"
    )
    hidden_size, inner_size = shape.attention.hidden_size, config.size("intermediate_size")

    def feed_forward(b: Builder, rows: Node, layer: int) -> Node:
        prefix = f"model.layers.{layer}.mlp."
        up = b.linear(rows, prefix + "up_proj", hidden_size, inner_size)
        inner_rows = xielu(up, read_parameters(config, b, layer))
        return b.linear(inner_rows, prefix + "down_proj", inner_size, hidden_size)

    return build_decoder(b, replace(shape, layer_norms=NORMS), feed_forward)


@dataclass(frozen=True)
class Xielu:
    """The parameters of a layer's activation. The first two stand before a softplus."""

    alpha_p: float
    alpha_n: float
    beta: float
    eps: float


def read_parameters(config: HfConfig, b: Builder, layer: int) -> Xielu:
    """Reads tensors, or the lists of all layers that a GGUF file has."""
    prefix = f"model.layers.{layer}.mlp.act_fn."
    if (lists := config.section("xielu")) is not None:
        num_layers = config.size("num_hidden_layers")
        return Xielu(*(lists.numbers(each.name, num_layers)[layer] for each in fields(Xielu)))
    alphas = (float(b.array(prefix + name, 1)[0]) for name in ("alpha_p", "alpha_n"))
    return Xielu(*alphas, *(float(b.array(prefix + name)) for name in ("beta", "eps")))


def xielu(rows: Node, parameters: Xielu) -> Node:
    """Computes (a * x + beta) * x above zero, else n * (exp(min(x, eps)) - 1 - x) + beta * x (Huang
    2024).

    elu() is exp() - 1 without the loss of digits.
    """
    beta, epsilon = parameters.beta, parameters.eps
    above, below = (
        float(np.logaddexp(0.0, alpha)) for alpha in (parameters.alpha_p, parameters.alpha_n)
    )
    positive = ops.multiply(scaled(rows, above), rows)
    negative = scaled(
        ops.subtract(ops.elu(ops.minimum(rows, real(epsilon)), 1.0), rows), beta + below
    )
    return ops.add(ops.select(ops.greater(rows, real(0.0)), positive, negative), scaled(rows, beta))
