"""MiniCPM-V 4.6 has SigLIP's encoder, which merges windows of patches after one of its layers.

The patches of a window attend to each other before they become one row. Reference: transformers,
models/minicpmv4_6/modeling_minicpmv4_6.py.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.nearest_positions import (
    INPUT,
    embed_patches,
    nearest_places,
)
from ouzel.backends.openvino.graph.nodes import Node, integers
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.patches import count_patches, merged_order, patch_grids
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import (
    TOWER,
    VitShape,
    attention,
    build_layer,
    divide_tiles,
)
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.vision_model import Inputs, Passes, VisionModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError
from ouzel.types.engine_request import ImageInput

WINDOW_MERGER, MERGER = f"{TOWER}vit_merger.", "merger.mlp.0."
MERGER_NORM = Norm(1e-6, is_centred=True, has_bias=True)
SIDE = 2  # patches or rows along each side of a square that becomes one row
AREA = SIDE**2


@dataclass(frozen=True, slots=True)
class Merging:
    """Describes how patches become rows of features."""

    window_layer: int | None  # windows are merged after this layer; None: never
    text_size: int

    @property
    def unit(self) -> int:
        """Returns the patches along each side of a square that becomes one row of features."""
        return SIDE if self.window_layer is None else AREA

    @classmethod
    def read(cls, config: HfConfig, num_layers: int) -> "Merging":
        refuse_other_kernels(config)
        layer = config.integer("insert_layer_id", 6)
        mode = config.text("downsample_mode", "16x")
        if mode not in ("4x", "16x"):
            raise config.refuse("downsample_mode", "4x, 16x")
        if mode == "16x" and not 0 <= layer < num_layers:
            raise ModelLoadError(
                f"config.json: insert_layer_id must be >= 0 and < num_hidden_layers {num_layers}, "
                f"found {layer}"
            )
        return cls(
            window_layer=layer if mode == "16x" else None,
            text_size=config.text_model().size("hidden_size"),
        )


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    shape = VitShape.read_siglip(config.required_section("vision_config"))
    merging = Merging.read(config, shape.num_layers)
    rows = embed_patches(b, shape)
    for layer in range(shape.num_layers):
        rows = build_layer(b, b.at_layer(layer, rows), f"{TOWER}encoder.layers.{layer}.", shape)
        if layer == merging.window_layer:
            rows = merged_windows(b, b.next_part(rows), shape)
    rows = b.norm(rows, f"{TOWER}post_layernorm", shape.hidden_size, shape.norm)
    if merging.window_layer is None:
        b.leave_out(WINDOW_MERGER)
    return b.vision_model(projected(b, rows, shape, merging), make_passes(shape, merging.unit))


def refuse_other_kernels(config: HfConfig) -> None:
    """Refuses settings that the reference reads, but whose rows its image processor miscounts."""
    vision = config.required_section("vision_config")
    for section, key in ((vision, "window_kernel_size"), (config, "merge_kernel_size")):
        if section.has(key) and section.integers(key, 2) != [SIDE, SIDE]:
            raise section.refuse(key, f"[{SIDE}, {SIDE}]")
    if config.integer("merger_times", 1) != 1:
        raise config.refuse("merger_times", "1")
    if config.flag("drop_vision_last_layer", False):
        raise config.refuse("drop_vision_last_layer", "false")


def merged_windows(b: VisionBuilder, rows: Node, shape: VitShape) -> Node:
    """Turns [tiles, patches, size] into [tiles, windows, size]; the patches of a window follow one
    another, and attend to each other only.
    """
    size, inner_size = shape.hidden_size, AREA * shape.inner_size
    normed = b.norm(rows, WINDOW_MERGER + "layer_norm1", size, shape.norm)
    windows = ops.reshape(normed, integers(-1, AREA, size), False)
    attended = attention(b, windows, WINDOW_MERGER, shape)
    rows = ops.add(rows, ops.reshape(attended, ops.shape_of(rows), False))
    mean = ops.reduce_mean(ops.reshape(rows, integers(0, -1, AREA, size), True), integers(2), False)
    flat = ops.reshape(rows, integers(0, -1, AREA * size), True)
    inner = b.norm(flat, WINDOW_MERGER + "pre_norm", AREA * size, shape.norm)
    inner = b.linear(inner, WINDOW_MERGER + "linear_1", AREA * size, inner_size)
    inner = b.linear(ops.gelu(inner, "tanh"), WINDOW_MERGER + "linear_2", inner_size, size)
    return ops.add(inner, mean)


def projected(b: VisionBuilder, rows: Node, shape: VitShape, merging: Merging) -> Node:
    """Merges squares of rows to rows of the text's size, [rows of all tiles, size]."""
    size = AREA * shape.hidden_size
    flat = ops.reshape(rows, integers(-1, size), False)
    normed = b.norm(flat, MERGER + "pre_norm", size, MERGER_NORM)
    inner = b.linear(normed, MERGER + "linear_1", size, size)
    return b.linear(ops.gelu(inner, "erf"), MERGER + "linear_2", size, merging.text_size)


def make_passes(shape: VitShape, unit: int) -> Passes:
    """Returns the function that makes the inputs of a piece: tiles of one size."""
    unit_side = shape.patch_size * unit

    def passes(image: ImageInput, pixels: NDArray[np.float32]) -> list[Inputs]:
        rows, columns = count_patches(pixels, shape.patch_size, unit_side)
        places = nested_order(nearest_places(rows, columns, shape.side), unit)
        grids = patch_grids(pixels, shape.patch_size)
        patches = np.stack([nested_order(grid, unit) for grid in grids])
        return [{"patches": each, INPUT: places} for each in divide_tiles(patches, rows * columns)]

    return passes


def nested_order(grid: NDArray[np.generic], unit: int) -> NDArray[np.generic]:
    """Brings [rows, columns, ...] into the order of patches: squares of a unit row by row.

    In a unit of 4 the squares of two patches follow one another, so that both mergers find theirs.
    """
    rows, columns = (side // SIDE for side in grid.shape[:2])
    if unit == SIDE:
        return merged_order(grid, SIDE)
    by_square = merged_order(grid, SIDE).reshape(rows, columns, AREA, *grid.shape[2:])
    return merged_order(by_square, SIDE).reshape(-1, *grid.shape[2:])
