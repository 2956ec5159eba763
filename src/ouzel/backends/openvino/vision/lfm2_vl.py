"""LFM2-VL has SigLIP 2's encoder, whose learned positions are resized to each image.

Its projector turns each square of patches into one row of features. Reference: transformers,
models/lfm2_vl/modeling_lfm2_vl.py and models/siglip2/modeling_siglip2.py; SigLIP 2 (Tschannen
2025, arXiv 2502.14786).
"""

import math

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.activations import activate, read_activation
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.nodes import Node, integers
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.patches import (
    colours_side_by_side,
    count_patches,
    merged_order,
    patch_grids,
)
from ouzel.backends.openvino.graph.resized_positions import add_positions, position_inputs
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import (
    TOWER,
    VitShape,
    build_layers,
    divide_tiles,
    square_side,
)
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.models import lfm2, lfm2_moe
from ouzel.backends.openvino.vision_model import Inputs, Passes, VisionModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.types.engine_request import ImageInput

PROJECTOR = "multi_modal_projector."
PROJECTOR_NORM = Norm(1e-5, is_centred=True, has_bias=True)


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    shape, factor = read_shape(config.required_section("vision_config")), read_factor(config)
    rows = build_layers(b, embedded_patches(b, shape), shape)
    size = factor**2 * shape.hidden_size
    merged = ops.reshape(rows, integers(-1, size), False)
    return b.vision_model(projected(b, merged, size, config), make_passes(shape, factor))


def read_shape(vision: HfConfig) -> VitShape:
    """Reads the sizes of the encoder.

    The checkpoint has learned positions for a square of patches. The shape's `image_size` is the
    side of that square in pixels; images may have any multiple of a patch's side.
    """
    if vision.text("model_type", "siglip2_vision_model") != "siglip2_vision_model":
        raise vision.refuse("model_type", "siglip2_vision_model")
    num_places = vision.size("num_patches", 256)
    side = math.isqrt(num_places)
    if side**2 != num_places:
        raise vision.refuse("num_patches", "squares of integers")
    return VitShape.read_siglip(
        vision.with_values(image_size=side * square_side(vision, "patch_size", 16))
    )


def read_factor(config: HfConfig) -> int:
    """Returns the number of patches along a side of the square that becomes one row of features."""
    return config.size("downsample_factor", 2)


def embedded_patches(b: VisionBuilder, shape: VitShape) -> Node:
    """Embeds patches [tiles, patches, numbers of a patch], and adds positions for their places."""
    prefix, size, num_columns = f"{TOWER}embeddings.", shape.hidden_size, 3 * shape.patch_size**2
    pixels = b.input("patches", [-1, -1, num_columns], ov.Type.f32)
    rows = b.patches(pixels, prefix + "patch_embedding", (size, num_columns), has_bias=True)
    return add_positions(b, rows, prefix + "position_embedding.weight", shape.num_rows, size)


def projected(b: VisionBuilder, rows: Node, size: int, config: HfConfig) -> Node:
    inner_size = config.size("projector_hidden_size", 2560)
    has_bias = config.flag("projector_bias", True)
    if config.flag("projector_use_layernorm", True):
        rows = b.norm(rows, PROJECTOR + "layer_norm", size, PROJECTOR_NORM)
    inner = b.linear(rows, PROJECTOR + "linear_1", size, inner_size, has_bias=has_bias)
    inner = activate(inner, read_activation(config, "projector_hidden_act", "gelu"))
    text = config.text_model()
    is_sparse = text.text("model_type", "lfm2") == "lfm2_moe"
    text = text.with_defaults(**(lfm2_moe if is_sparse else lfm2).DEFAULTS)
    text_size = text.size("hidden_size")
    return b.linear(inner, PROJECTOR + "linear_2", inner_size, text_size, has_bias=has_bias)


def make_passes(shape: VitShape, factor: int) -> Passes:
    """Returns the function that makes the inputs of a piece: tiles of one size."""
    unit = shape.patch_size * factor

    def passes(image: ImageInput, pixels: NDArray[np.float32]) -> list[Inputs]:
        rows, columns = count_patches(pixels, shape.patch_size, unit)
        positions = position_inputs(rows, columns, shape.side, factor, is_antialiased=True)
        grids = colours_side_by_side(patch_grids(pixels, shape.patch_size))
        patches = np.stack([merged_order(grid, factor) for grid in grids])
        return [{"patches": each, **positions} for each in divide_tiles(patches, rows * columns)]

    return passes
