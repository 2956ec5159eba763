"""Adapts the vision encoder of LLaVA 1.5: one graph from the pixels of tiles to features.

The graph, `openvino_vision_embeddings_model.xml`, has the tower of CLIP or SigLIP and the
projector.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import integers
from ouzel.backends.openvino.graph.vit import few_tiles, square_side
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import Inputs, Passes
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.types.engine_request import ImageInput

FILES = ("openvino_vision_embeddings_model.xml",)
TOWERS = ("clip_vision_model", "siglip_vision_model")


def llava_encoder(config: HfConfig, graph: ov.Model) -> tuple[ov.Model, Passes]:
    vision = config.required_section("vision_config").with_defaults(model_type=TOWERS[0])
    if vision.model_type not in TOWERS:
        raise vision.refuse("model_type", ", ".join(TOWERS))
    tile_size = square_side(vision, "image_size", 224)
    features = graph.output(0).get_node().input(0)
    # rows of each tile, and their size
    num_rows, size = (features.get_partial_shape()[axis].get_length() for axis in (1, 2))
    rows = ops.reshape(features.get_source_output(), integers(-1, size), False)
    features.replace_source_output(rows.output(0))
    graph.validate_nodes_and_infer_types()

    def passes(image: ImageInput, pixels: NDArray[np.float32]) -> list[Inputs]:
        return [{"pixel_values": each} for each in few_tiles(pixels, tile_size, num_rows)]

    return graph, passes
