"""Builds Pixtral's encoder: RMS norms, no biases, and patches rotated by their row and column.

Reference: transformers, models/pixtral/modeling_pixtral.py; Pixtral 12B (Agrawal 2024, arXiv
2410.07073).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.feature_layers import collect_layer_rows
from ouzel.backends.openvino.graph.nodes import Node, integers, split_heads
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.patches import (
    all_see_all,
    count_patches,
    merged_order,
    patch_grids,
    turned,
)
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import TOWER, square_side
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import Inputs, Passes
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError
from ouzel.types.engine_request import ImageInput

NORM = Norm(1e-5)


@dataclass(frozen=True, kw_only=True)
class PixtralShape:
    """The sizes of one checkpoint's encoder."""

    hidden_size: int
    inner_size: int
    num_layers: int
    num_heads: int
    patch_size: int
    merge: int  # patches along each side of a square that becomes one row of features
    activation: Activation
    theta: float  # base of the angles

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads

    @classmethod
    def read(cls, vision: HfConfig, merge: int) -> "PixtralShape":
        if vision.size("num_channels", 3) != 3:
            raise vision.refuse("num_channels", "3")
        shape = cls(
            hidden_size=vision.size("hidden_size", 1024),
            inner_size=vision.size("intermediate_size", 4096),
            num_layers=vision.size("num_hidden_layers", 24),
            num_heads=vision.size("num_attention_heads", 16),
            patch_size=square_side(vision, "patch_size", 16),
            merge=merge,
            activation=read_activation(vision, default="gelu"),
            theta=read_theta(vision),
        )
        if shape.hidden_size % (4 * shape.num_heads):
            raise ModelLoadError(
                f"config.json: vision_config: hidden_size {shape.hidden_size} must be a multiple "
                f"of four times num_attention_heads {shape.num_heads}"
            )
        if vision.size("head_dim", shape.head_dim) != shape.head_dim:
            raise vision.refuse(
                "head_dim", f"{shape.head_dim}, hidden_size divided by num_attention_heads"
            )
        return shape


def read_theta(vision: HfConfig, default: float = 10000.0) -> float:
    """Reads `rope_theta` from `rope_parameters`, or beside the other keys, as in transformers 4."""
    parameters = vision.section("rope_parameters") or vision
    if parameters.text("rope_type", "axial") not in ("axial", "default"):
        raise parameters.refuse("rope_type", "axial")
    theta = parameters.number("rope_theta", default)
    if theta <= 0:
        raise parameters.refuse("rope_theta", "> 0")
    return theta


def pixtral_rows(b: VisionBuilder, shape: PixtralShape, layers: tuple[int, ...]) -> Node:
    """Returns the rows after each of these layers, side by side: [patches, layers *
    hidden_size].
    """
    kernel = (shape.hidden_size, 3, shape.patch_size, shape.patch_size)
    pixels = b.input("patches", [-1, int(np.prod(kernel[1:]))], ov.Type.f32)
    rows = b.patches(pixels, f"{TOWER}patch_conv", kernel, has_bias=False)
    rows = b.norm(rows, f"{TOWER}ln_pre", shape.hidden_size, NORM)
    # computed from config.json by transformers and by Ouzel
    b.leave_out(f"{TOWER}patch_positional_embedding.")
    b.leave_out(
        *(f"{TOWER}transformer.layers.{number}." for number in range(max(layers), shape.num_layers))
    )

    def make_layer(entering: Node, number: int) -> Node:
        return build_layer(b, entering, f"{TOWER}transformer.layers.{number}.", shape)

    return collect_layer_rows(b, rows, layers, shape.hidden_size, make_layer)


def build_layer(b: VisionBuilder, rows: Node, prefix: str, shape: PixtralShape) -> Node:
    size, inner_size = shape.hidden_size, shape.inner_size
    normed = b.norm(rows, prefix + "attention_norm", size, NORM)
    rows = ops.add(rows, attention(b, normed, prefix, shape))
    inner = b.norm(rows, prefix + "ffn_norm", size, NORM)
    gate, up = (
        b.linear(inner, f"{prefix}feed_forward.{name}_proj", size, inner_size, has_bias=False)
        for name in ("gate", "up")
    )
    inner = ops.multiply(activate(gate, shape.activation), up)
    down = b.linear(inner, f"{prefix}feed_forward.down_proj", inner_size, size, has_bias=False)
    return ops.add(rows, down)


def attention(b: VisionBuilder, rows: Node, prefix: str, shape: PixtralShape) -> Node:
    size, head_dim = shape.hidden_size, shape.head_dim
    query, key, value = (
        split_heads(
            b.linear(rows, f"{prefix}attention.{name}_proj", size, size, has_bias=False),
            shape.num_heads,
            head_dim,
        )
        for name in "qkv"
    )
    cos, sin = (
        ops.unsqueeze(b.input(name, [-1, head_dim], ov.Type.f32), integers(1))
        for name in ("cos", "sin")
    )
    query, key = (turned(each, cos, sin, head_dim) for each in (query, key))
    attended = ops.reshape(all_see_all(query, key, value), integers(-1, size), False)
    return b.linear(attended, f"{prefix}attention.o_proj", size, size, has_bias=False)


def pixtral_passes(shape: PixtralShape) -> Passes:
    unit = shape.patch_size * shape.merge

    def passes(image: ImageInput, pixels: NDArray[np.float32]) -> list[Inputs]:
        rows, columns = count_patches(pixels, shape.patch_size, unit)
        cos, sin = cos_sin(rows, columns, shape)
        grids = patch_grids(pixels, shape.patch_size)
        return [
            {"patches": merged_order(grid, shape.merge), "cos": cos, "sin": sin} for grid in grids
        ]

    return passes


def cos_sin(
    rows: int, columns: int, shape: PixtralShape
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Returns the cosines and sines of each patch's angles, [patches, head_dim].

    Even frequencies belong to the row, odd ones to the column.
    """
    places = merged_order(np.moveaxis(np.indices((rows, columns)), 0, -1), shape.merge).astype(
        np.float64
    )
    frequencies = shape.theta ** -(np.arange(0, shape.head_dim, 2) / shape.head_dim)
    angles = np.concatenate(
        [places[:, :1] * frequencies[::2], places[:, 1:] * frequencies[1::2]], axis=1
    )
    angles = np.concatenate([angles, angles], axis=1)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
