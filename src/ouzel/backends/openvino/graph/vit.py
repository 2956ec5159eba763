"""Builds the vision encoders of CLIP and SigLIP: square tiles, cut into patches.

Reference: transformers, models/clip/modeling_clip.py and models/siglip/modeling_siglip.py; CLIP
(Radford 2021).

CLIP has one more row in front of a tile's patches, which stands for the whole tile. The names of
tensors begin with `vision_tower.`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.feature_layers import collect_layer_rows
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.patches import patch_grids
from ouzel.backends.openvino.graph.vision import (
    VisionBuilder,
    attend,
    merge_batch_heads,
    split_batch_heads,
)
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import Inputs, Passes
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import EngineFailed, ModelLoadError
from ouzel.types.engine_request import ImageInput

_ROWS_PER_PASS = 1024  # rows of several small tiles in one pass; a large tile has a pass to itself
TOWER = "vision_tower."
# Tensors of checkpoints that no language model uses: the norm and the head after the last layer,
# and constants.
AFTER_LAYERS = (f"{TOWER}post_layernorm.", f"{TOWER}head.", f"{TOWER}embeddings.position_ids")


@dataclass(frozen=True, kw_only=True)
class VitShape:
    """The sizes of one checkpoint's encoder."""

    hidden_size: int
    inner_size: int
    num_layers: int
    num_heads: int
    patch_size: int  # in pixels
    tile_size: int  # in pixels
    activation: Activation
    norm: Norm
    has_class: bool  # the row in front, as in CLIP

    @property
    def side(self) -> int:
        """Returns the patches along each side of a tile; pixels beyond the last whole patch are
        ignored.
        """
        return self.tile_size // self.patch_size

    @property
    def num_rows(self) -> int:
        """Returns the rows of a tile."""
        return self.side**2 + self.has_class

    @classmethod
    def read_clip(cls, vision: HfConfig) -> "VitShape":
        return cls._read(
            vision.with_defaults(hidden_act="quick_gelu", layer_norm_eps=1e-5, patch_size=32),
            has_class=True,
        )

    @classmethod
    def read_siglip(cls, vision: HfConfig) -> "VitShape":
        return cls._read(
            vision.with_defaults(
                hidden_act="gelu_pytorch_tanh", layer_norm_eps=1e-6, patch_size=16
            ),
            has_class=False,
        )

    @classmethod
    def _read(cls, vision: HfConfig, *, has_class: bool) -> "VitShape":
        if vision.size("num_channels", 3) != 3:
            raise vision.refuse("num_channels", "3")
        shape = cls(
            hidden_size=vision.size("hidden_size", 768),
            inner_size=vision.size("intermediate_size", 3072),
            num_layers=vision.size("num_hidden_layers", 12),
            num_heads=vision.size("num_attention_heads", 12),
            patch_size=square_side(vision, "patch_size"),
            tile_size=square_side(vision, "image_size", 224),
            activation=read_activation(vision),
            norm=Norm(vision.number("layer_norm_eps"), is_centred=True, has_bias=True),
            has_class=has_class,
        )
        if shape.hidden_size % shape.num_heads:
            raise ModelLoadError(
                f"config.json: vision_config: hidden_size {shape.hidden_size} is no multiple of "
                f"num_attention_heads {shape.num_heads}"
            )
        if shape.side < 1:
            raise ModelLoadError(
                f"config.json: vision_config: patch_size must be <= image_size {shape.tile_size}, "
                f"found {shape.patch_size}"
            )
        return shape


def square_side(config: HfConfig, key: str, default: int | None = None) -> int:
    """Reads the side of a square, which may be written as [side, side]."""
    if not isinstance(config.values.get(key), list):
        return config.size(key, default)
    height, width = config.integers(key, 2)
    if height != width:
        raise config.refuse(key, "squares")
    return config.with_values(**{key: height}).size(key)


def embedded_tiles(b: VisionBuilder, shape: VitShape) -> Node:
    """Returns [tiles, rows, hidden_size] of the input `patches`, which `tile_passes` makes."""
    prefix, size = f"{TOWER}embeddings.", shape.hidden_size
    kernel = (size, 3, shape.patch_size, shape.patch_size)
    pixels = b.input("patches", [-1, shape.num_rows, int(np.prod(kernel[1:]))], ov.Type.f32)
    rows = b.patches(pixels, prefix + "patch_embedding", kernel, has_bias=not shape.has_class)
    positions = b.array(prefix + "position_embedding.weight", shape.num_rows, size)
    if shape.has_class:  # the first row has a black patch, and so nothing from the pixels
        positions = positions.copy()
        positions[0] += b.array(prefix + "class_embedding", size)
    rows = ops.add(rows, b.constant(positions))
    return b.norm(rows, f"{TOWER}pre_layrnorm", size, shape.norm) if shape.has_class else rows


def collect_layers(b: VisionBuilder, rows: Node, shape: VitShape, layers: Sequence[int]) -> Node:
    """Returns the rows after each of these layers, side by side: [tiles, rows, layers *
    hidden_size].
    """
    b.leave_out(
        *AFTER_LAYERS,
        *(f"{TOWER}encoder.layers.{each}." for each in range(max(layers), shape.num_layers)),
    )

    def make_layer(entering: Node, number: int) -> Node:
        return build_layer(b, entering, f"{TOWER}encoder.layers.{number}.", shape)

    return collect_layer_rows(b, rows, layers, shape.hidden_size, make_layer)


def build_layer(b: VisionBuilder, rows: Node, prefix: str, shape: VitShape) -> Node:
    size, inner_size = shape.hidden_size, shape.inner_size
    rows = ops.add(
        rows, attention(b, b.norm(rows, prefix + "layer_norm1", size, shape.norm), prefix, shape)
    )
    inner = b.norm(rows, prefix + "layer_norm2", size, shape.norm)
    inner = activate(b.linear(inner, prefix + "mlp.fc1", size, inner_size), shape.activation)
    return ops.add(rows, b.linear(inner, prefix + "mlp.fc2", inner_size, size))


def attention(b: VisionBuilder, rows: Node, prefix: str, shape: VitShape) -> Node:
    size, num_heads = shape.hidden_size, shape.num_heads
    names = (f"{prefix}self_attn.{each}_proj" for each in "qkv")
    heads = (
        split_batch_heads(b.linear(rows, name, size, size), num_heads, size // num_heads)
        for name in names
    )
    return b.linear(merge_batch_heads(attend(*heads)), f"{prefix}self_attn.out_proj", size, size)


def siglip_rows(b: VisionBuilder, shape: VitShape) -> Node:
    """Returns SigLIP's output for tiles of the shape's size, [tiles, rows, hidden_size]."""
    return build_layers(b, embedded_tiles(b, shape), shape)


def build_layers(b: VisionBuilder, rows: Node, shape: VitShape) -> Node:
    """Returns the rows after all layers, normalised."""
    for layer in range(shape.num_layers):
        rows = build_layer(b, b.at_layer(layer, rows), f"{TOWER}encoder.layers.{layer}.", shape)
    b.leave_out(f"{TOWER}head.", f"{TOWER}embeddings.position_ids")
    return b.norm(rows, f"{TOWER}post_layernorm", shape.hidden_size, shape.norm)


def tile_passes(shape: VitShape) -> Passes:
    """Returns the function that makes the inputs of an image.

    A pass has few tiles, so that a step of the language model can run between two passes.
    """

    def passes(image: ImageInput, pixels: NDArray[np.float32]) -> list[Inputs]:
        tiles = few_tiles(pixels, shape.tile_size, shape.num_rows)
        return [{"patches": tile_patches(each, shape)} for each in tiles]

    return passes


def few_tiles(
    pixels: NDArray[np.float32], tile_size: int, num_rows: int
) -> list[NDArray[np.float32]]:
    """Divides tiles of pixels like `divide_tiles`.

    Raises EngineFailed if the tiles have another size than config.json says.
    """
    height, width = pixels.shape[2:]
    if (height, width) != (tile_size, tile_size):
        raise EngineFailed(
            f"tiles must have the image_size {tile_size} of config.json, the image processor made "
            f"{height}x{width}"
        )
    return divide_tiles(pixels, num_rows)


def divide_tiles(tiles: NDArray[np.float32], num_rows: int) -> list[NDArray[np.float32]]:
    """Divides tiles, each of `num_rows` rows, into passes of as many tiles as their rows allow."""
    num_tiles = max(1, _ROWS_PER_PASS // num_rows)
    return [tiles[first : first + num_tiles] for first in range(0, len(tiles), num_tiles)]


def tile_patches(pixels: NDArray[np.float32], shape: VitShape) -> NDArray[np.float32]:
    """Turns [tiles, 3, height, width] into [tiles, rows, numbers of a patch]."""
    grids = patch_grids(pixels, shape.patch_size)
    flat = grids.reshape(len(pixels), shape.side**2, -1)
    return np.pad(flat, ((0, 0), (int(shape.has_class), 0), (0, 0)))
