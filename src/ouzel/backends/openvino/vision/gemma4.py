"""Gemma 4 cuts images of any size into patches, rotates them by column and row, and averages
squares.

If config.json says so, the tokens of an image attend to each other, in layers with a window only.

Reference: transformers, models/gemma4/modeling_gemma4.py.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.clipped_linear import clipped_linear
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.nodes import Node, gather, integers, scaled, split, split_heads
from ouzel.backends.openvino.graph.norms import Norm, normalise
from ouzel.backends.openvino.graph.patches import (
    all_see_all,
    colours_side_by_side,
    merged_order,
    patch_grids,
    turned,
)
from ouzel.backends.openvino.graph.pixtral import read_theta
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import TOWER
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.models import gemma4_text
from ouzel.backends.openvino.vision_model import Inputs, Passes, VisionModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import EngineFailed, ModelLoadError
from ouzel.types.engine_request import ImageInput


@dataclass(frozen=True, kw_only=True)
class Gemma4VisionShape:
    """The sizes and switches of one checkpoint's encoder."""

    hidden_size: int
    inner_size: int
    num_layers: int
    num_heads: int
    head_dim: int
    patch_size: int
    pooling: int  # patches along each side of a square that becomes one row of features
    num_positions: int  # positions of patches along each side
    norm: Norm
    activation: Activation
    theta: float  # base of the angles
    is_clipped: bool  # the inputs and outputs of matrices are clipped
    is_standardised: bool  # features are normalised by means and deviations from the checkpoint

    @classmethod
    def read(cls, vision: HfConfig) -> "Gemma4VisionShape":
        shape = cls(
            hidden_size=vision.size("hidden_size", 768),
            inner_size=vision.size("intermediate_size", 3072),
            num_layers=vision.size("num_hidden_layers", 16),
            num_heads=vision.size("num_attention_heads", 12),
            head_dim=vision.size("head_dim", 64),
            patch_size=vision.size("patch_size", 16),
            pooling=vision.size("pooling_kernel_size", 3),
            num_positions=vision.size("position_embedding_size", 10 * 1024),
            norm=Norm(vision.number("rms_norm_eps", 1e-6)),
            activation=read_activation(vision, "hidden_activation", "gelu_pytorch_tanh"),
            theta=read_theta(vision, 100.0),
            is_clipped=vision.flag("use_clipped_linears", False),
            is_standardised=vision.flag("standardize", False),
        )
        if vision.size("num_key_value_heads", 12) != shape.num_heads:
            raise vision.refuse("num_key_value_heads", f"{shape.num_heads}, as num_attention_heads")
        if shape.head_dim % 4:
            raise ModelLoadError(
                "config.json: vision_config: head_dim must be a multiple of 4, found "
                f"{shape.head_dim}"
            )
        return shape


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape(
        attends_to_whole_images=config.text_model().text("use_bidirectional_attention", "")
        == "vision"
    )


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    shape = Gemma4VisionShape.read(config.required_section("vision_config"))
    text = config.text_model().with_defaults(**gemma4_text.DEFAULTS)
    max_rows = text.size("sliding_window") if image_shape(config).attends_to_whole_images else None
    rows = embedded_patches(b, shape)
    for layer in range(shape.num_layers):
        rows = build_layer(b, b.at_layer(layer, rows), f"{TOWER}encoder.layers.{layer}.", shape)
    rows = normalise(pooled(b, rows, shape), shape.norm)
    name, text_size = "embed_vision.embedding_projection", text.size("hidden_size")
    features = b.linear(rows, name, shape.hidden_size, text_size, has_bias=False)
    return b.vision_model(features, make_passes(shape, max_rows))


def embedded_patches(b: VisionBuilder, shape: Gemma4VisionShape) -> Node:
    """Embeds the patches and adds the embeddings of their column and of their row."""
    prefix, size = f"{TOWER}patch_embedder.", shape.hidden_size
    num_columns = 3 * shape.patch_size**2
    patches = b.input("patches", [-1, num_columns], ov.Type.f32)
    rows = b.linear(patches, prefix + "input_proj", num_columns, size, has_bias=False)
    tables = b.array(prefix + "position_embedding_table", 2, shape.num_positions, size)
    for name, table in zip(("patch_columns", "patch_rows"), tables, strict=True):
        rows = ops.add(rows, gather(b.constant(table), b.input(name, [-1], ov.Type.i64)))
    return rows


def build_layer(b: VisionBuilder, rows: Node, prefix: str, shape: Gemma4VisionShape) -> Node:
    def norm(values: Node, name: str) -> Node:
        return b.norm(values, prefix + name, shape.hidden_size, shape.norm)

    mixed = attention(b, norm(rows, "input_layernorm"), prefix + "self_attn.", shape)
    rows = ops.add(rows, norm(mixed, "post_attention_layernorm"))
    inner = feed_forward(b, norm(rows, "pre_feedforward_layernorm"), prefix + "mlp.", shape)
    return ops.add(rows, norm(inner, "post_feedforward_layernorm"))


def attention(b: VisionBuilder, rows: Node, prefix: str, shape: Gemma4VisionShape) -> Node:
    """Computes attention; the products of queries and keys are not scaled.

    Trained weights normalise both already.
    """
    size, head_dim = shape.hidden_size, shape.head_dim
    inner_size = shape.num_heads * head_dim
    query, key, value = (
        split_heads(
            clipped_linear(
                b, rows, f"{prefix}{name}_proj", size, inner_size, is_clipped=shape.is_clipped
            ),
            shape.num_heads,
            head_dim,
        )
        for name in "qkv"
    )
    query = turned_by_place(b, b.norm(query, prefix + "q_norm", head_dim, shape.norm), head_dim)
    key = turned_by_place(b, b.norm(key, prefix + "k_norm", head_dim, shape.norm), head_dim)
    attended = all_see_all(scaled(query, head_dim**0.5), key, normalise(value, shape.norm))
    attended = ops.reshape(attended, integers(-1, inner_size), False)
    return clipped_linear(
        b, attended, prefix + "o_proj", inner_size, size, is_clipped=shape.is_clipped
    )


def turned_by_place(b: VisionBuilder, heads: Node, head_dim: int) -> Node:
    """Rotates the first half of each head by the patch's column, and the second half by its row."""
    half = head_dim // 2
    cos, sin = (
        ops.unsqueeze(b.input(name, [-1, head_dim], ov.Type.f32), integers(1))
        for name in ("cos", "sin")
    )
    parts = zip(*(split(each, half, half) for each in (heads, cos, sin)), strict=True)
    return ops.concat(
        [turned(part, part_cos, part_sin, half) for part, part_cos, part_sin in parts], -1
    )


def feed_forward(b: VisionBuilder, rows: Node, prefix: str, shape: Gemma4VisionShape) -> Node:
    size, inner_size = shape.hidden_size, shape.inner_size
    gate, up = (
        clipped_linear(
            b, rows, f"{prefix}{name}_proj", size, inner_size, is_clipped=shape.is_clipped
        )
        for name in ("gate", "up")
    )
    inner = ops.multiply(activate(gate, shape.activation), up)
    return clipped_linear(
        b, inner, prefix + "down_proj", inner_size, size, is_clipped=shape.is_clipped
    )


def pooled(b: VisionBuilder, rows: Node, shape: Gemma4VisionShape) -> Node:
    """Averages each square of patches to one row; the patches of a square follow one another."""
    squares = ops.reshape(rows, integers(-1, shape.pooling**2, shape.hidden_size), False)
    rows = scaled(ops.reduce_mean(squares, integers(1), False), shape.hidden_size**0.5)
    if not shape.is_standardised:
        return rows
    bias, scale = (
        b.constant(b.array(f"{TOWER}std_{name}", shape.hidden_size)) for name in ("bias", "scale")
    )
    return ops.multiply(ops.subtract(rows, bias), scale)


def make_passes(shape: Gemma4VisionShape, max_rows: int | None) -> Passes:
    """Returns the function that makes the inputs of an image.

    If the tokens of an image attend to each other, `max_rows` limits them: the runtime's attention
    would let them attend beyond a window, unlike the reference.
    """

    def passes(image: ImageInput, pixels: NDArray[np.float32]) -> list[Inputs]:
        height, width = pixels.shape[2:]
        rows, columns = height // shape.patch_size, width // shape.patch_size
        unit = shape.patch_size * shape.pooling
        if height % unit or width % unit or max(rows, columns) > shape.num_positions:
            raise EngineFailed(
                f"the sides of images must be multiples of {unit} and <= "
                f"{shape.num_positions * shape.patch_size}, found {height}x{width}"
            )
        num_rows = rows * columns // shape.pooling**2
        if max_rows is not None and num_rows > max_rows:
            raise EngineFailed(
                f"images must have <= {max_rows} tokens, the sliding_window, found {num_rows}"
            )
        common = places(rows, columns, shape)
        return [
            {"patches": patches(grid, shape), **common}
            for grid in patch_grids(pixels, shape.patch_size)
        ]

    return passes


def patches(grid: NDArray[np.float32], shape: Gemma4VisionShape) -> NDArray[np.generic]:
    """Scales patches of [rows, columns, numbers of a patch] to -1 to 1."""
    return merged_order(2 * (colours_side_by_side(grid) - np.float32(0.5)), shape.pooling)


def places(rows: int, columns: int, shape: Gemma4VisionShape) -> Inputs:
    """Returns the column and row of each patch, and the cosines and sines of its angles."""
    down, across = merged_order(np.moveaxis(np.indices((rows, columns)), 0, -1), shape.pooling).T
    half = shape.head_dim // 2
    frequencies = shape.theta ** -(np.arange(0, half, 2) / half)
    turns = [place[:, None] * frequencies for place in (across, across, down, down)]
    angles = np.concatenate(turns, axis=1)
    return {
        "patch_columns": across.astype(np.int64),
        "patch_rows": down.astype(np.int64),
        "cos": np.cos(angles).astype(np.float32),
        "sin": np.sin(angles).astype(np.float32),
    }
