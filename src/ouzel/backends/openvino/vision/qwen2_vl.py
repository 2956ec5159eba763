"""Qwen2-VL's encoder has layer norms and plain feed-forward layers.

Reference: transformers, models/qwen2_vl/modeling_qwen2_vl.py.
"""

from ouzel.backends.openvino.graph.activations import activate, read_activation
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.qwen_vision import (
    QwenVisionShape,
    attention,
    embedded_patches,
    make_passes,
    merged,
)
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig

NORM = Norm(1e-6, is_centred=True, has_bias=True)
MERGER = ("ln_q", "mlp.0", "mlp.2")


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    vision, shape = vision_section(config), vision_shape(config)
    activation = read_activation(vision)
    inner_size = int(shape.hidden_size * vision.number("mlp_ratio"))

    def block(rows: Node, prefix: str) -> Node:
        rows = ops.add(
            rows,
            attention(
                b, b.norm(rows, prefix + "norm1", shape.hidden_size, NORM), prefix + "attn.", shape
            ),
        )
        inner = b.norm(rows, prefix + "norm2", shape.hidden_size, NORM)
        inner = activate(
            b.linear(inner, prefix + "mlp.fc1", shape.hidden_size, inner_size), activation
        )
        return ops.add(rows, b.linear(inner, prefix + "mlp.fc2", inner_size, shape.hidden_size))

    rows = embedded_patches(b, shape, has_bias=False)
    for layer in range(vision.size("depth")):
        rows = block(b.at_layer(layer, rows), f"visual.blocks.{layer}.")
    features = merged(b, rows, "visual.merger.", shape, config.text_model().size("hidden_size"))
    return b.vision_model(features, make_passes(shape))


def vision_section(config: HfConfig) -> HfConfig:
    return config.required_section("vision_config").with_defaults(
        depth=32, embed_dim=1280, hidden_act="quick_gelu", mlp_ratio=4, num_heads=16, patch_size=14
    )


def vision_shape(config: HfConfig) -> QwenVisionShape:
    return QwenVisionShape.read(vision_section(config), NORM, MERGER, hidden_key="embed_dim")
