"""Qwen2.5-VL's encoder has RMS norms, gated feed-forward layers, and mostly attention within
windows.

Only the queries, keys and values of a layer with windows are gathered into windows and back. A mask
over all patches instead would take memory that grows with the square of the patches. Reference:
transformers, models/qwen2_5_vl/modeling_qwen2_5_vl.py.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.activations import activate, read_activation
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.nodes import Node, gather, integers
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.qwen_vision import (
    QwenVisionShape,
    attention,
    embedded_patches,
    make_passes,
    merged,
)
from ouzel.backends.openvino.graph.vision import VisionBuilder, attend
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import Inputs, VisionModel
from ouzel.checkpoint.hf_config import HfConfig

NORM = Norm(1e-6)
MERGER = ("ln_q", "mlp.0", "mlp.2")
UNSEEN = np.float32(-1e30)
WINDOW_INPUTS = {
    "window_places": ([-1, -1], ov.Type.i64),  # [windows, patches of a window]
    "window_mask": ([-1, 1, 1, -1], ov.Type.f32),
    "window_back": ([-1], ov.Type.i64),  # the place of each patch among the patches of all windows
}


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    vision, shape = vision_section(config), vision_shape(config)
    activation, inner_size = read_activation(vision), vision.size("intermediate_size")
    whole_layers = vision.integers("fullatt_block_indexes")

    def block(rows: Node, layer: int) -> Node:
        prefix, size = f"visual.blocks.{layer}.", shape.hidden_size
        seen = None if layer in whole_layers else within_windows
        rows = ops.add(
            rows,
            attention(b, b.norm(rows, prefix + "norm1", size, NORM), prefix + "attn.", shape, seen),
        )
        inner = b.norm(rows, prefix + "norm2", size, NORM)
        gate = activate(b.linear(inner, prefix + "mlp.gate_proj", size, inner_size), activation)
        inner = ops.multiply(gate, b.linear(inner, prefix + "mlp.up_proj", size, inner_size))
        return ops.add(rows, b.linear(inner, prefix + "mlp.down_proj", inner_size, size))

    rows = embedded_patches(b, shape, has_bias=False)
    for layer in range(vision.size("depth")):
        rows = block(b.at_layer(layer, rows), layer)
    features = merged(b, rows, "visual.merger.", shape, config.text_model().size("hidden_size"))
    return b.vision_model(features, make_passes(shape, make_window_inputs(config, shape)))


def vision_section(config: HfConfig) -> HfConfig:
    return config.required_section("vision_config").with_defaults(
        depth=32,
        hidden_size=3584,
        hidden_act="silu",
        intermediate_size=3420,
        num_heads=16,
        patch_size=14,
        window_size=112,
        fullatt_block_indexes=[7, 15, 23, 31],
    )


def vision_shape(config: HfConfig) -> QwenVisionShape:
    return QwenVisionShape.read(vision_section(config), NORM, MERGER)


def within_windows(b: VisionBuilder, query: Node, key: Node, value: Node) -> Node:
    inputs = [b.input(name, shape, dtype) for name, (shape, dtype) in WINDOW_INPUTS.items()]
    return seen_in_windows(query, key, value, inputs)


def seen_in_windows(query: Node, key: Node, value: Node, inputs: list[Node]) -> Node:
    """Computes attention within windows, [patches, heads, head_dim]; `inputs` follow
    WINDOW_INPUTS.
    """
    places, mask, back = inputs
    heads = (
        ops.transpose(gather(each, places), integers(0, 2, 1, 3)) for each in (query, key, value)
    )
    attended = ops.transpose(attend(*heads, mask), integers(0, 2, 1, 3))
    flat = ops.reshape(attended, ops.concat([integers(-1), shape_of_heads(query)], 0), False)
    return gather(flat, back)


def shape_of_heads(heads: Node) -> Node:
    return ops.slice(ops.shape_of(heads), integers(1), integers(3), integers(1), integers(0))


def make_window_inputs(config: HfConfig, shape: QwenVisionShape) -> Callable[[int, int], Inputs]:
    # the side of a window in rows of features
    side = vision_section(config).size("window_size") // (shape.merge * shape.patch_size)
    return lambda rows, columns: windows(rows, columns, shape.merge, side)


def windows(rows: int, columns: int, merge: int, window: int) -> Inputs:
    """Returns the patches of each window, the mask, and the way back.

    Windows at the lower and right border are filled up, and the mask hides the filling.
    """
    squares = np.arange(rows * columns // merge**2).reshape(rows // merge, columns // merge)
    missing = [(0, -side % window) for side in squares.shape]
    padded = np.pad(squares, missing, constant_values=-1)
    num_rows, num_columns = (side // window for side in padded.shape)
    blocks = padded.reshape(num_rows, window, num_columns, window).swapaxes(1, 2)
    cut = blocks.reshape(-1, window**2, 1)
    in_squares = np.where(cut < 0, -1, cut * merge**2 + np.arange(merge**2))
    places: NDArray[np.int64] = in_squares.reshape(len(cut), -1)
    is_there = places.reshape(-1) >= 0
    back = np.empty(rows * columns, np.int64)
    back[places.reshape(-1)[is_there]] = np.flatnonzero(is_there)
    mask = np.where(places < 0, UNSEEN, np.float32(0))[:, None, None, :].astype(np.float32)
    return {"window_places": np.maximum(places, 0), "window_mask": mask, "window_back": back}
