"""Gemma 4 hears with a conformer: two convolutions over the spectrogram, then layers of a
feed-forward half, attention to the last rows, a convolution, and another feed-forward half.

Reference: transformers, models/gemma4/modeling_gemma4.py; Conformer (Gulati 2020, arXiv
2005.08100); Transformer-XL (Dai 2019, arXiv 1901.02860), appendix B.

No row sees a later one, except that the convolutions over the spectrogram reach one frame ahead. So
the silence behind a sound, which the reference adds and hides, is not computed here.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.clipped_linear import clipped_linear
from ouzel.backends.openvino.graph.nodes import Node, gather, integers, part, real, scaled
from ouzel.backends.openvino.graph.norms import Norm, normalise
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.whisper import MEL
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.models import gemma4_text
from ouzel.backends.openvino.vision_model import HearingModel, Inputs, SoundPasses
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import EngineFailed, ModelLoadError
from ouzel.types.engine_request import SoundInput

TOWER = "audio_tower."
# inputs: the rows of each chunk, the rows that a chunk attends to, and the forbidden pairs
QUERY_ROWS, KEY_ROWS, MASK = "query_rows", "key_rows", "mask"
_NORM = Norm(1e-6)  # norms that do not read rms_norm_eps
_LONGEST_WAVE = 10_000.0  # the longest sinusoid of the distances, over 2 pi
_HIDDEN = -1e9  # is added to the logits of forbidden pairs


@dataclass(frozen=True, kw_only=True)
class Gemma4HearingShape:
    """The sizes and switches of one checkpoint's encoder."""

    hidden_size: int
    num_layers: int
    num_heads: int
    channels: tuple[int, int]  # outputs of the two convolutions over the spectrogram
    kernel: int  # rows of the convolution in a layer
    chunk: int  # rows that are computed together; each attends to itself and chunk - 1 before it
    softcap: float
    residual_weight: float
    highest: float  # values are clipped to it before norms
    output_size: int
    activation: Activation
    norm: Norm
    is_clipped: bool  # the inputs and outputs of matrices are clipped

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads

    @property
    def num_bins(self) -> int:
        """Returns the number of mel bins: the reference takes it to be the number of channels."""
        return self.channels[0]

    @property
    def context(self) -> int:
        """Returns the number of rows that a chunk attends to: itself and as many before it."""
        return 2 * self.chunk

    @classmethod
    def read(cls, audio: HfConfig) -> "Gemma4HearingShape":
        audio = audio.with_defaults(subsampling_conv_channels=[128, 32])
        first, second = audio.integers("subsampling_conv_channels", 2)
        shape = cls(
            hidden_size=audio.size("hidden_size", 1024),
            num_layers=audio.size("num_hidden_layers", 12),
            num_heads=audio.size("num_attention_heads", 8),
            channels=(first, second),
            kernel=audio.size("conv_kernel_size", 5),
            chunk=audio.size("attention_chunk_size", 12),
            softcap=audio.number("attention_logit_cap", 50.0),
            residual_weight=audio.number("residual_weight", 0.5),
            highest=audio.number("gradient_clipping", 1e10),
            output_size=audio.size("output_proj_dims", 1536),
            activation=read_activation(audio, "hidden_act", "silu"),
            norm=Norm(audio.number("rms_norm_eps", 1e-6)),
            is_clipped=audio.flag("use_clipped_linears", True),
        )
        shape.check(audio)
        return shape

    def check(self, audio: HfConfig) -> None:
        """Raises ModelLoadError for sizes that the graph does not support."""
        left, right = (
            audio.integer(f"attention_context_{side}", default)
            for side, default in (("left", 13), ("right", 0))
        )
        if left != self.chunk + 1:
            raise audio.refuse(
                "attention_context_left", f"{self.chunk + 1}, attention_chunk_size + 1"
            )
        if right:
            raise audio.refuse("attention_context_right", "0")
        if self.hidden_size % (2 * self.num_heads) or self.hidden_size < 4:
            raise audio.refuse(
                "hidden_size", f"a multiple of {2 * self.num_heads}, 2 * num_attention_heads"
            )
        if self.num_bins < 4 or self.num_bins % 4 or self.channels[1] < 1:
            raise ModelLoadError(
                "config.json: audio_config: subsampling_conv_channels must be a multiple of 4, and "
                f"a number >= 1, found {list(self.channels)}"
            )
        if not self.softcap > 0:
            raise audio.refuse("attention_logit_cap", "a number > 0")


def build(config: HfConfig, b: VisionBuilder) -> HearingModel:
    shape = Gemma4HearingShape.read(config.required_section("audio_config"))
    text = config.text_model().with_defaults(**gemma4_text.DEFAULTS)
    rows = embed_frames(b, shape)
    for layer in range(shape.num_layers):
        # 30 s are 750 rows, of which a layer takes as long as two layers of most vision encoders
        rows = b.next_part(rows) if layer else rows
        rows = build_layer(b, rows, f"{TOWER}layers.{layer}.", shape)
    rows = b.linear(rows, TOWER + "output_proj", shape.hidden_size, shape.output_size)
    name, text_size = "embed_audio.embedding_projection", text.size("hidden_size")
    features = b.linear(
        normalise(rows, shape.norm), name, shape.output_size, text_size, has_bias=False
    )
    return b.hearing_model(features, sound_passes(shape))


def embed_frames(b: VisionBuilder, shape: Gemma4HearingShape) -> Node:
    """Returns a row for four frames, [rows, hidden_size], of [1, 1, frames, bins]."""
    prefix, bins = TOWER + "subsample_conv_projection.", shape.num_bins
    planes = b.input(MEL, [1, 1, -1, bins], ov.Type.f32)
    num_inputs = 1
    for number, num_outputs in enumerate(shape.channels):
        name = f"{prefix}layer{number}."
        kernel = b.constant(b.array(name + "conv.weight", num_outputs, num_inputs, 3, 3))
        planes = ops.convolution(planes, kernel, [2, 2], [1, 1], [1, 1], [1, 1])
        # [1, frames, bins, channels], whose channels are normalised
        planes = ops.transpose(planes, integers(0, 2, 3, 1))
        norm = Norm(shape.norm.epsilon, is_centred=True)
        planes = ops.relu(b.norm(planes, name + "norm", num_outputs, norm))
        if number == 0:
            planes = ops.transpose(planes, integers(0, 3, 1, 2))
        num_inputs = num_outputs
    size = bins // 4 * shape.channels[1]
    rows = ops.reshape(planes, integers(-1, size), False)
    return b.linear(rows, prefix + "input_proj_linear", size, shape.hidden_size, has_bias=False)


def build_layer(b: VisionBuilder, rows: Node, prefix: str, shape: Gemma4HearingShape) -> Node:
    size = shape.hidden_size
    rows = feed_forward(b, rows, prefix + "feed_forward1.", shape)
    mixed = b.norm(bounded(rows, shape), prefix + "norm_pre_attn", size, _NORM)
    mixed = bounded(attention(b, mixed, prefix + "self_attn.", shape), shape)
    rows = ops.add(rows, b.norm(mixed, prefix + "norm_post_attn", size, _NORM))
    rows = ops.add(rows, convolve(b, rows, prefix + "lconv1d.", shape))
    rows = feed_forward(b, rows, prefix + "feed_forward2.", shape)
    return b.norm(bounded(rows, shape), prefix + "norm_out", size, _NORM)


def bounded(rows: Node, shape: Gemma4HearingShape) -> Node:
    return ops.clamp(rows, -shape.highest, shape.highest)


def linear(
    b: VisionBuilder, rows: Node, name: str, sizes: tuple[int, int], shape: Gemma4HearingShape
) -> Node:
    """Multiplies rows by a matrix; `sizes` are the widths of its inputs and outputs."""
    return clipped_linear(b, rows, name, *sizes, is_clipped=shape.is_clipped)


def feed_forward(b: VisionBuilder, rows: Node, prefix: str, shape: Gemma4HearingShape) -> Node:
    """Adds a share of the result to the rows."""
    size, inner_size = shape.hidden_size, 4 * shape.hidden_size
    inner = b.norm(bounded(rows, shape), prefix + "pre_layer_norm", size, _NORM)
    inner = linear(b, inner, prefix + "ffw_layer_1", (size, inner_size), shape)
    inner = activate(inner, shape.activation)
    inner = bounded(linear(b, inner, prefix + "ffw_layer_2", (inner_size, size), shape), shape)
    inner = b.norm(inner, prefix + "post_layer_norm", size, _NORM)
    return ops.add(rows, scaled(inner, shape.residual_weight))


def convolve(b: VisionBuilder, rows: Node, prefix: str, shape: Gemma4HearingShape) -> Node:
    """Gates the rows, and convolves each column with the rows before."""
    size, kernel = shape.hidden_size, shape.kernel
    inner = b.norm(rows, prefix + "pre_layer_norm", size, shape.norm)
    inner = linear(b, inner, prefix + "linear_start", (size, 2 * size), shape)
    gate = ops.sigmoid(part(inner, size, 2 * size, -1))
    inner = ops.multiply(part(inner, 0, size, -1), gate)
    columns = ops.unsqueeze(ops.transpose(inner, integers(1, 0)), integers(0))
    weights = b.array(prefix + "depthwise_conv1d.weight", size, 1, kernel)
    columns = ops.group_convolution(
        columns, b.constant(weights.reshape(size, 1, 1, kernel)), [1], [kernel - 1], [0], [1]
    )
    inner = ops.transpose(ops.squeeze(columns, integers(0)), integers(1, 0))
    inner = b.norm(bounded(inner, shape), prefix + "conv_norm", size, shape.norm)
    return linear(b, activate(inner, shape.activation), prefix + "linear_end", (size, size), shape)


def attention(b: VisionBuilder, rows: Node, prefix: str, shape: Gemma4HearingShape) -> Node:
    """Lets each row attend to itself and the rows before it, in chunks.

    A logit is the product of a query and the sum of a key and the key of the distance.
    """
    size, heads = shape.hidden_size, shape.num_heads
    query, key, value = (
        linear(b, rows, f"{prefix}{name}_proj", (size, size), shape) for name in "qkv"
    )
    query = ops.multiply(query, b.constant(query_factors(b, prefix, shape)))
    key = scaled(key, math.log2(1 + math.e))
    queries = chunked(b, query, QUERY_ROWS, shape.chunk, shape)
    keys, values = (chunked(b, each, KEY_ROWS, shape.context, shape) for each in (key, value))
    logits = ops.add(
        ops.matmul(queries, keys, False, True), distance_logits(b, queries, prefix, shape)
    )
    logits = scaled(ops.tanh(scaled(logits, 1 / shape.softcap)), shape.softcap)
    mask = b.input(MASK, [-1, 1, shape.chunk, shape.context], ov.Type.f32)
    weights = ops.softmax(ops.add(logits, mask), -1)
    # [chunks, heads, chunk, head_dim]
    attended = ops.transpose(ops.matmul(weights, values, False, False), integers(0, 2, 1, 3))
    attended = ops.reshape(attended, integers(-1, heads * shape.head_dim), False)
    # the last chunk has rows behind the sound
    num_rows = ops.gather(ops.shape_of(rows), integers(0), integers(0))
    attended = ops.slice(attended, integers(0), num_rows, integers(1), integers(0))
    return linear(b, attended, prefix + "post", (size, size), shape)


def query_factors(b: VisionBuilder, prefix: str, shape: Gemma4HearingShape) -> NDArray[np.float32]:
    """Returns the factor of each number of a query: the softplus of a weight, in bits."""
    weights = b.array(prefix + "per_dim_scale", shape.head_dim).astype(np.float64)
    factors = np.logaddexp(0, weights) * shape.head_dim**-0.5 / math.log(2)
    return np.tile(factors, shape.num_heads).astype(np.float32)


def chunked(
    b: VisionBuilder, rows: Node, name: str, length: int, shape: Gemma4HearingShape
) -> Node:
    """Turns [rows, heads * head_dim] into [chunks, heads, length, head_dim]."""
    chunks = gather(rows, b.input(name, [-1, length], ov.Type.i64))
    chunks = ops.reshape(chunks, integers(0, 0, shape.num_heads, shape.head_dim), True)
    return ops.transpose(chunks, integers(0, 2, 1, 3))


def distance_logits(
    b: VisionBuilder, queries: Node, prefix: str, shape: Gemma4HearingShape
) -> Node:
    """Returns the products of queries and the keys of distances, [chunks, heads, chunk, context].

    Column c of row r stands for the distance r + chunk - c. Distances out of [0, chunk] have other
    logits, which the mask hides.
    """
    size, heads, context = shape.hidden_size, shape.num_heads, shape.context
    matrix = b.array(prefix + "relative_k_proj.weight", size, size)
    keys = sinusoids(shape.chunk, size) @ matrix.T
    keys = keys.reshape(-1, heads, shape.head_dim).transpose(1, 2, 0)
    products = ops.matmul(queries, b.constant(np.ascontiguousarray(keys)), False, False)
    # A row of context + 1 columns, read with one column less, moves row r by r to the right.
    missing = context + 1 - (shape.chunk + 1)
    longer = ops.pad(
        products, integers(0, 0, 0, 0), integers(0, 0, 0, missing), "constant", real(0)
    )
    flat = ops.reshape(longer, integers(0, 0, -1), True)
    flat = part(flat, 0, shape.chunk * context, -1)
    return ops.reshape(flat, integers(0, 0, shape.chunk, context), True)


def sinusoids(longest: int, size: int) -> NDArray[np.float32]:
    """Returns the sines and cosines of the distances `longest` to 0, [longest + 1, size]."""
    num_waves = size // 2
    step = math.log(_LONGEST_WAVE) / max(num_waves - 1, 1)
    frequencies = np.exp(-step * np.arange(num_waves))
    angles = np.arange(longest, -1, -1)[:, None] * frequencies
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def sound_passes(shape: Gemma4HearingShape) -> SoundPasses:
    """Returns the function that makes the inputs of a sound."""

    def passes(sound: SoundInput, mel: NDArray[np.float32]) -> list[Inputs]:
        num_bins, num_frames = mel.shape
        if num_bins != shape.num_bins or not 0 < sound.num_frames <= num_frames:
            raise EngineFailed(
                f"a sound must have {shape.num_bins} mel bins and {sound.num_frames} frames, the "
                f"processor made {num_bins} bins and {num_frames} frames"
            )
        frames = mel[:, : sound.num_frames].T
        return [{MEL: frames[None, None], **list_chunks(-(-sound.num_frames // 4), shape.chunk)}]

    return passes


def list_chunks(num_rows: int, chunk: int) -> Inputs:
    """Returns the rows of each chunk, the rows that it attends to, and the forbidden pairs.

    A row attends to itself and the chunk - 1 rows before it. Rows before the first and behind the
    last are forbidden, and other rows stand in their places.
    """
    begins = np.arange(0, num_rows, chunk)[:, None]
    queries = begins + np.arange(chunk)
    keys = begins + np.arange(-chunk, chunk)
    distances = queries[:, :, None] - keys[:, None, :]
    # A row behind the last attends to itself: its result is finite, and left out.
    is_seen = (distances >= 0) & (distances < chunk) & (keys[:, None, :] >= 0)
    mask = np.where(is_seen, 0, _HIDDEN).astype(np.float32)
    return {
        QUERY_ROWS: queries.clip(0, num_rows - 1),
        KEY_ROWS: keys.clip(0, num_rows - 1),
        MASK: mask[:, None],
    }
