"""Builds Whisper's encoder of sound: two convolutions over the log-mel spectrogram, then layers as
in a ViT. Models that hear have the same encoder.

Reference: transformers, models/whisper/modeling_whisper.py; Whisper (Radford 2022,
arXiv 2212.04356).
"""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.nodes import Node, integers
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.vision import (
    VisionBuilder,
    attend,
    merge_batch_heads,
    split_batch_heads,
)
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

MEL = "mel"  # the input of the first part: [1, mel bins, frames]
NORM = Norm(1e-5, is_centred=True, has_bias=True)
_KERNEL = 3  # frames of the kernels of the convolutions


@dataclass(frozen=True, kw_only=True)
class EncoderShape:
    """The sizes of one checkpoint's encoder."""

    hidden_size: int
    inner_size: int
    num_layers: int
    num_heads: int
    num_mel_bins: int
    num_rows: int  # rows of features
    activation: Activation
    has_key_bias: bool = False

    @classmethod
    def read(cls, config: HfConfig) -> "EncoderShape":
        shape = cls(
            hidden_size=config.size("d_model"),
            inner_size=config.size("encoder_ffn_dim"),
            num_layers=config.size("encoder_layers"),
            num_heads=config.size("encoder_attention_heads"),
            num_mel_bins=config.size("num_mel_bins", 80),
            num_rows=config.size("max_source_positions", 1500),
            activation=read_activation(config, "activation_function", "gelu"),
        )
        if shape.hidden_size % shape.num_heads:
            raise ModelLoadError(
                f"config.json: d_model {shape.hidden_size} is no multiple of "
                f"encoder_attention_heads {shape.num_heads}"
            )
        return shape


def convolve_sound(b: VisionBuilder, mel: Node, prefix: str, shape: EncoderShape) -> Node:
    """Returns a row for two frames, [1, rows, hidden_size], of mel values [1, bins, frames].

    The names of the encoder's tensors begin with `prefix`.
    """
    size = shape.hidden_size
    sound = convolve(b, mel, prefix + "conv1", shape.num_mel_bins, size, stride=1)
    sound = convolve(b, activate(sound, shape.activation), prefix + "conv2", size, size, stride=2)
    return ops.transpose(activate(sound, shape.activation), integers(0, 2, 1))


def build_layers(b: VisionBuilder, rows: Node, prefix: str, shape: EncoderShape) -> Node:
    for layer in range(shape.num_layers):
        rows = build_layer(b, b.at_layer(layer, rows), f"{prefix}layers.{layer}.", shape)
    return rows


def convolve(
    b: VisionBuilder, sound: Node, name: str, num_inputs: int, num_outputs: int, *, stride: int
) -> Node:
    """Convolves [1, inputs, frames] along the frames, with one frame of zeros at both ends."""
    kernel = b.constant(b.array(name + ".weight", num_outputs, num_inputs, _KERNEL))
    product = ops.convolution(sound, kernel, [stride], [1], [1], [1])
    bias = b.array(name + ".bias", num_outputs).reshape(1, num_outputs, 1)
    return ops.add(product, b.constant(bias))


def build_layer(b: VisionBuilder, rows: Node, prefix: str, shape: EncoderShape) -> Node:
    size, inner_size = shape.hidden_size, shape.inner_size
    mixed = b.norm(rows, prefix + "self_attn_layer_norm", size, NORM)
    rows = ops.add(rows, attention(b, mixed, prefix + "self_attn.", shape))
    inner = b.norm(rows, prefix + "final_layer_norm", size, NORM)
    inner = activate(b.linear(inner, prefix + "fc1", size, inner_size), shape.activation)
    return ops.add(rows, b.linear(inner, prefix + "fc2", inner_size, size))


def attention(b: VisionBuilder, rows: Node, prefix: str, shape: EncoderShape) -> Node:
    size, num_heads = shape.hidden_size, shape.num_heads
    heads = (
        split_batch_heads(
            b.linear(
                *(rows, f"{prefix}{each}_proj", size, size),
                has_bias=each != "k" or shape.has_key_bias,
            ),
            num_heads,
            size // num_heads,
        )
        for each in "qkv"
    )
    return b.linear(merge_batch_heads(attend(*heads)), prefix + "out_proj", size, size)
