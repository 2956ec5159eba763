"""MiniCPM-V 2.6 to 4.5 have SigLIP's encoder; learned queries gather rows of features from it.

The queries of a tile attend once to all of its patches, whose keys have sines and cosines of the
patch's row and column. Reference: the checkpoints' own modeling_minicpmv.py and resampler.py; vLLM,
model_executor/models/minicpmv.py.
"""

from dataclasses import dataclass, replace

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
from ouzel.backends.openvino.graph.patches import count_patches, patch_grids
from ouzel.backends.openvino.graph.vision import (
    VisionBuilder,
    attend,
    merge_batch_heads,
    split_batch_heads,
)
from ouzel.backends.openvino.graph.vit import VitShape, build_layers, divide_tiles
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import Inputs, Passes, VisionModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError
from ouzel.types.engine_request import ImageInput

RESAMPLER = "resampler."
NORM = Norm(1e-6, is_centred=True, has_bias=True)
ANGLES = "waves"  # the input with the sines and cosines
HEAD_DIM = 128
_BASE = 10000.0  # base of the angles
_TOWERS = ("siglip", "siglip_vision_model")


@dataclass(frozen=True, slots=True)
class ResamplerShape:
    num_queries: int  # rows of features of each tile
    size: int  # numbers of a row of features

    @classmethod
    def read(cls, config: HfConfig) -> "ResamplerShape":
        shape = cls(config.size("query_num", 64), config.text_model().size("hidden_size"))
        if shape.size % HEAD_DIM:
            raise ModelLoadError(
                f"config.json: hidden_size must be a multiple of {HEAD_DIM}, found {shape.size}"
            )
        return shape


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    config.require(scale_emb=1)
    shape, resampler = read_shape(config), ResamplerShape.read(config)
    rows = build_layers(b, embed_patches(b, shape), shape)
    b.leave_out(RESAMPLER + "pos_embed")  # computed here and in the reference
    features = gathered(b, b.next_part(rows), shape.hidden_size, resampler)
    return b.vision_model(features, make_passes(shape, resampler.size))


def read_shape(config: HfConfig) -> VitShape:
    vision = config.required_section("vision_config")
    if vision.text("model_type", _TOWERS[0]) not in _TOWERS:
        raise vision.refuse("model_type", ", ".join(_TOWERS))
    shape = VitShape.read_siglip(vision)
    if not config.flag("drop_vision_last_layer", False):
        return shape
    return replace(shape, num_layers=shape.num_layers - 1)


def gathered(b: VisionBuilder, rows: Node, width: int, shape: ResamplerShape) -> Node:
    """Returns the features [rows of all tiles, size] of rows [tiles, patches, width]."""
    size, num_heads = shape.size, shape.size // HEAD_DIM
    if width != size:
        rows = b.linear(rows, RESAMPLER + "kv_proj", width, size, has_bias=False)
    values = b.norm(rows, RESAMPLER + "ln_kv", size, NORM)
    keys = ops.add(values, b.input(ANGLES, [-1, size], ov.Type.f32))
    queries = b.constant(b.array(RESAMPLER + "query", shape.num_queries, size))
    queries = ops.unsqueeze(b.norm(queries, RESAMPLER + "ln_q", size, NORM), integers(0))
    heads = (
        split_batch_heads(each, num_heads, HEAD_DIM)
        for each in b.square_linears((queries, keys, values), RESAMPLER + "attn.in_proj", size)
    )
    mixed = merge_batch_heads(attend(*heads))
    mixed = b.linear(mixed, RESAMPLER + "attn.out_proj", size, size)
    mixed = b.norm(mixed, RESAMPLER + "ln_post", size, NORM)
    features = b.product(mixed, RESAMPLER + "proj", size, size)
    return ops.reshape(features, integers(-1, size), False)


def make_passes(shape: VitShape, size: int) -> Passes:
    """Returns the function that makes the inputs of a piece: tiles of one size."""

    def passes(image: ImageInput, pixels: NDArray[np.float32]) -> list[Inputs]:
        rows, columns = count_patches(pixels, shape.patch_size, shape.patch_size)
        common: Inputs = {
            INPUT: nearest_places(rows, columns, shape.side).reshape(-1),
            ANGLES: waves(rows, columns, size),
        }
        patches = patch_grids(pixels, shape.patch_size).reshape(len(pixels), rows * columns, -1)
        return [{"patches": each, **common} for each in divide_tiles(patches, rows * columns)]

    return passes


def waves(rows: int, columns: int, size: int) -> NDArray[np.float32]:
    """Returns sines and cosines for each patch, [patches, size]: of the column, then of the row."""
    frequencies = _BASE ** -(np.arange(size // 4) / (size / 4))
    down, across = np.indices((rows, columns)).reshape(2, -1, 1) * frequencies
    parts = [np.sin(across), np.cos(across), np.sin(down), np.cos(down)]
    return np.concatenate(parts, axis=1).astype(np.float32)
