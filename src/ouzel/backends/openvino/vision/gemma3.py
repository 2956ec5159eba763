"""Gemma 3 has SigLIP's encoder and averages squares of its patches; tokens of an image attend to
each other.

Reference: transformers, models/gemma3/modeling_gemma3.py; Gemma 3 (Gemma Team 2025).
"""

import math

from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.nodes import Node, integers
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import VitShape, siglip_rows, tile_passes
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.models import gemma3_text
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

PROJECTOR = "multi_modal_projector."


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape(attends_to_whole_images=True)


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    shape = VitShape.read_siglip(config.required_section("vision_config"))
    text, size = config.text_model().with_defaults(**gemma3_text.DEFAULTS), shape.hidden_size
    num_rows = rows_per_side(config, shape)
    check_windows(text, num_rows**2)
    rows = averages(siglip_rows(b, shape), shape.side, num_rows, size)
    rows = b.norm(rows, PROJECTOR + "mm_soft_emb_norm", size, Norm(shape.norm.epsilon, plus=1.0))
    text_size = text.size("hidden_size")
    return b.vision_model(
        b.product(rows, PROJECTOR + "mm_input_projection_weight", size, text_size),
        tile_passes(shape),
    )


def rows_per_side(config: HfConfig, shape: VitShape) -> int:
    """Returns the number of rows of features along each side of a tile."""
    num_rows = config.size("mm_tokens_per_image", 256)
    side = math.isqrt(num_rows)
    if side**2 != num_rows or shape.side % side:
        raise ModelLoadError(
            f"config.json: mm_tokens_per_image must be the square of a divisor of {shape.side} "
            f"patches, the side of a tile, found {num_rows}"
        )
    return side


def check_windows(text: HfConfig, num_rows: int) -> None:
    """Raises ModelLoadError if an image does not fit into a window.

    The runtime's attention would let the tokens attend to the whole image, beyond the window.
    """
    windows = [each for each in gemma3_text.decoder_shape(text).sliding_windows if each]
    window = min(windows, default=num_rows)
    if num_rows > window:
        raise ModelLoadError(
            f"config.json: mm_tokens_per_image must be <= sliding_window {window}, found {num_rows}"
        )


def averages(rows: Node, side: int, new_side: int, size: int) -> Node:
    """Averages squares: [tiles * side^2, size] becomes [tiles * new_side^2, size]."""
    factor = side // new_side
    cut = ops.reshape(rows, integers(-1, new_side, factor, new_side, factor, size), False)
    return ops.reshape(ops.reduce_mean(cut, integers(2, 4), False), integers(-1, size), False)
