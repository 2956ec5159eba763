"""Mistral 3 has Pixtral's encoder, and merges squares of patches to one row.

Reference: transformers, models/mistral3/modeling_mistral3.py.
"""

from ouzel.backends.openvino.graph.feature_layers import feature_layers
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.llava import PROJECTOR, projected
from ouzel.backends.openvino.graph.nodes import Node, integers
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.pixtral import PixtralShape, pixtral_passes, pixtral_rows
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    config = config.with_defaults(vision_feature_layer=-1, multimodal_projector_bias=False)
    vision = config.required_section("vision_config").with_defaults(model_type="pixtral")
    if vision.model_type != "pixtral":
        raise vision.refuse("model_type", "pixtral")
    shape = PixtralShape.read(vision, config.size("spatial_merge_size", 2))
    layers = feature_layers(config, shape.num_layers)
    if len(layers) > 1:  # the reference cannot merge several layers
        raise config.refuse("vision_feature_layer", "one layer")
    text = config.text_model()
    epsilon = text.number("rms_norm_eps", 1e-5 if text.model_type == "ministral3" else 1e-6)
    rows = b.norm(
        pixtral_rows(b, shape, layers), f"{PROJECTOR}norm", shape.hidden_size, Norm(epsilon)
    )
    features = projected(b, merged(b, rows, shape), shape.hidden_size, config)
    return b.vision_model(features, pixtral_passes(shape))


def merged(b: VisionBuilder, rows: Node, shape: PixtralShape) -> Node:
    """Merges each square of patches to one row.

    The row has the values of the first dimension in all patches, then of the second dimension, and
    so on.
    """
    size, num_patches = shape.hidden_size, shape.merge**2
    squares = ops.transpose(
        ops.reshape(rows, integers(-1, num_patches, size), False), integers(0, 2, 1)
    )
    flat = ops.reshape(squares, integers(-1, num_patches * size), False)
    return b.linear(
        flat, f"{PROJECTOR}patch_merger.merging_layer", num_patches * size, size, has_bias=False
    )
