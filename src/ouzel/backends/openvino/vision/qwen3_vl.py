"""Qwen3-VL's encoder has learned positions, stretched from a square to each image, and DeepStack.

Reference: transformers, models/qwen3_vl/modeling_qwen3_vl.py.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.activations import activate, read_activation
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.nodes import Node, gather, integers
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.patches import merged_order
from ouzel.backends.openvino.graph.qwen_vision import (
    QwenVisionShape,
    attention,
    embedded_patches,
    make_passes,
    merged,
)
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import Inputs, VisionModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

NORM = Norm(1e-6, is_centred=True, has_bias=True)
MERGER = ("norm", "linear_fc1", "linear_fc2")


def image_shape(config: HfConfig) -> ImageShape:
    num_deep = len(deep_layers(vision_section(config)))
    num_layers = config.text_model().size("num_hidden_layers")
    if num_deep >= num_layers:
        raise ModelLoadError(
            "config.json: vision_config: deepstack_visual_indexes must be fewer than the language "
            f"model's num_hidden_layers {num_layers}, found {num_deep}"
        )
    return ImageShape(deep_layers=tuple(range(num_deep)))


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    return build_encoder(config, b, MERGER, "visual.deepstack_merger_list.")


def build_encoder(
    config: HfConfig, b: VisionBuilder, merger_names: tuple[str, str, str], deep_prefix: str
) -> VisionModel:
    """Builds the encoder; `merger_names` are the names of a merger's norm and of its two layers.

    The names of the mergers of DeepStack begin with `deep_prefix` and their number.
    """
    vision = vision_section(config)
    shape = QwenVisionShape.read(vision, NORM, merger_names)
    activation, inner_size = read_activation(vision), vision.size("intermediate_size")
    text_size = config.text_model().size("hidden_size")
    deep = deep_layers(vision)

    def block(rows: Node, prefix: str) -> Node:
        size = shape.hidden_size
        rows = ops.add(
            rows, attention(b, b.norm(rows, prefix + "norm1", size, NORM), prefix + "attn.", shape)
        )
        inner = b.norm(rows, prefix + "norm2", size, NORM)
        inner = activate(b.linear(inner, prefix + "mlp.linear_fc1", size, inner_size), activation)
        return ops.add(rows, b.linear(inner, prefix + "mlp.linear_fc2", inner_size, size))

    side = math.isqrt(vision.size("num_position_embeddings"))
    rows = embedded_patches(b, shape, has_bias=True)
    rows = ops.add(rows, positions(b, side, shape.hidden_size))
    for layer in range(vision.size("depth")):
        rows = block(b.at_layer(layer, rows), f"visual.blocks.{layer}.")
        if layer in deep:
            prefix = f"{deep_prefix}{deep.index(layer)}."
            b.deep(deep_features(b, rows, prefix, shape, text_size))
    features = merged(b, rows, "visual.merger.", shape, text_size)
    return b.vision_model(
        features,
        make_passes(shape, lambda rows, columns: stretched(rows, columns, side, shape.merge)),
    )


def vision_section(config: HfConfig) -> HfConfig:
    return config.required_section("vision_config").with_defaults(
        depth=27,
        hidden_size=1152,
        hidden_act="gelu_pytorch_tanh",
        intermediate_size=4304,
        num_heads=16,
        patch_size=16,
        num_position_embeddings=2304,
        deepstack_visual_indexes=[8, 16, 24],
    )


def deep_layers(vision: HfConfig) -> list[int]:
    layers, depth = vision.integers("deepstack_visual_indexes"), vision.size("depth")
    if layers != sorted(set(layers)) or any(not 0 <= layer < depth for layer in layers):
        raise ModelLoadError(
            f"config.json: vision_config: deepstack_visual_indexes must ascend and be < {depth}, "
            f"found {layers}"
        )
    return layers


def deep_features(
    b: VisionBuilder, rows: Node, prefix: str, shape: QwenVisionShape, text_size: int
) -> Node:
    """Makes rows of features like `merged`, but with the norm over all patches of a square."""
    assert shape.merger_names is not None
    norm, first, second = (prefix + name for name in shape.merger_names)
    squares = ops.reshape(rows, integers(-1, shape.merged_size), False)
    rows = b.norm(squares, norm, shape.merged_size, NORM)
    rows = ops.gelu(b.linear(rows, first, shape.merged_size, shape.merged_size), "erf")
    return b.linear(rows, second, shape.merged_size, text_size)


def positions(b: VisionBuilder, side: int, size: int) -> Node:
    """Blends the learned positions of the four nearest places of the square."""
    table = b.constant(b.array("visual.pos_embed.weight", side**2, size))
    places = b.input("position_places", [4, -1], ov.Type.i64)
    shares = ops.unsqueeze(b.input("position_shares", [4, -1], ov.Type.f32), integers(2))
    return ops.reduce_sum(ops.multiply(gather(table, places), shares), integers(0), False)


def stretched(rows: int, columns: int, side: int, merge: int) -> Inputs:
    """Returns, for each patch, the four nearest places of a square and their shares.

    The square has `side` places along each side.
    """
    lows, highs, shares = zip(*(between(num, side) for num in (rows, columns)), strict=True)
    row_shares, column_shares = ((1 - share, share) for share in shares)
    row_places, column_places = zip(lows, highs, strict=True)
    places = [row[:, None] * side + column for row in row_places for column in column_places]
    weights = [row[:, None] * column for row in row_shares for column in column_shares]
    ordered_places = np.stack([merged_order(each, merge) for each in places])
    ordered_shares = np.stack([merged_order(each, merge) for each in weights])
    return {
        "position_places": ordered_places.astype(np.int64),
        "position_shares": ordered_shares.astype(np.float32),
    }


def between(
    num: int, side: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Spreads `num` points evenly from 0 to side - 1.

    Returns the place below and above each point, and the share of the upper place.
    """
    points = np.linspace(0, side - 1, num, dtype=np.float32)
    lower = points.astype(np.int64)
    return lower, np.minimum(lower + 1, side - 1), points - lower.astype(np.float32)
