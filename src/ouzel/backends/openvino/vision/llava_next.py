"""LLaVA-NeXT (LLaVA 1.6, Granite Vision) takes the whole image, and its tiles in the best
resolution.

Reference: transformers, models/llava_next/modeling_llava_next.py. It ignores the `logits_scaling`
of Granite Vision's language model, by which Ouzel divides the logits as models/granite.py does.
The order of tokens is the same.
"""

from ouzel.backends.openvino.graph.anyres import AnyRes
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.llava import tile_features, with_defaults
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import tile_passes
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig

RESOLUTIONS = [(336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008)]


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    config = with_defaults(config)
    features, shape = tile_features(b, config)
    any_res = AnyRes.read(config, shape.vit, shape.num_rows, RESOLUTIONS)
    newline = b.array("image_newline", config.text_model().size("hidden_size", 4096))
    return b.vision_model(features, tile_passes(shape.vit), any_res.join(newline))
