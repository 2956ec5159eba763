"""Idefics 3 has SigLIP's encoder for each tile; one matrix maps squares of patches to the text's
size.

Reference: transformers, models/idefics3/modeling_idefics3.py; Idefics 3 (Laurençon 2024).
"""

from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.pixel_shuffle import check_squares, squares
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import VitShape, siglip_rows, tile_passes
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    vision = config.required_section("vision_config").with_defaults(
        hidden_size=1152, num_attention_heads=16, patch_size=32
    )
    shape, factor = VitShape.read_siglip(vision), config.size("scale_factor", 2)
    check_squares(shape.side, factor, "scale_factor")
    rows = squares(siglip_rows(b, shape), shape.side, factor, shape.hidden_size)
    text_size = config.text_model().size("hidden_size")
    name = "multi_modal_projector.modality_projection.proj"
    features = b.linear(rows, name, factor**2 * shape.hidden_size, text_size, has_bias=False)
    return b.vision_model(features, tile_passes(shape))
