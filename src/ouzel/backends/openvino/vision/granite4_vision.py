"""Granite 4 Vision is llava_next with projectors on windows, each for a layer of the language
model.

Reference: transformers, models/granite4_vision/modeling_granite4_vision.py.

Nothing stands in the embeddings of an image. Instead features of several layers of the tower, and
of the four corners of each square of its patches, enter before chosen layers of the language model.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.anyres import AnyRes
from ouzel.backends.openvino.graph.feature_layers import find_layer
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.llava import read_tower, skips_first
from ouzel.backends.openvino.graph.nodes import Node, part, real
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import collect_layers, embedded_tiles, tile_passes
from ouzel.backends.openvino.graph.window_qformer import WindowQFormer, project_windows
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.vision.llava_next import RESOLUTIONS
from ouzel.backends.openvino.vision_model import Join, VisionModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.model_files import brief
from ouzel.errors import ModelLoadError
from ouzel.types.engine_request import ImageInput

TEXT_TYPES = ("granite4_vision_text", "granite", "granitemoehybrid")
NUM_CORNERS = 4
TARGETS = [12, 15, 18, 21]  # the layers of the language model that the corners enter by default
MAX_PAIRS = 64
# Two layers of the tower take about as long as four projectors.
PROJECTORS_PER_PART = 4


@dataclass(frozen=True, kw_only=True)
class Projector:
    """One projector, with its place between the tower and the language model."""

    prefix: str  # the names of its tensors begin with it
    tower_layer: int  # number in config.json: -1 is the last layer
    text_layer: int  # the layer before which its features enter
    corner: int | None  # the patch of each square with which a query begins; None: the mean


def image_shape(config: HfConfig) -> ImageShape:
    text_type = config.text_model().model_type
    if text_type not in TEXT_TYPES:
        raise ModelLoadError(
            f"config.json: text_config: model_type must be one of {', '.join(TEXT_TYPES)}, found "
            f"{text_type}"
        )
    layers = [projector.text_layer for projector in read_projectors(config)]
    return ImageShape(
        deep_layers=tuple(layer - 1 for layer in layers if layer > 0), enters_unscaled=True
    )


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    # The reference of published checkpoints reads these; transformers has one value of each.
    config.require(use_spatial_sampling=True, spatial_stride=2, use_image_newline_parameter=True)
    config = config.with_defaults(vision_feature_select_strategy="default")
    projectors = read_projectors(config)
    vit = read_tower(config, "clip_vision_model")
    skips = skips_first(config)
    shape = WindowQFormer.read(config, vit.hidden_size, vit.side)
    any_res = AnyRes.read(config, vit, vit.num_rows - skips, RESOLUTIONS)
    any_res = replace(any_res, side=shape.projected_side)
    layers = [
        find_layer(config, layer_key(projector), projector.tower_layer, vit.num_layers)
        for projector in projectors
    ]
    collected = list(dict.fromkeys(layers))
    rows = collect_layers(b, embedded_tiles(b, vit), vit, collected)
    if skips:
        rows = part(rows, 1, vit.num_rows, 1)
    places = [collected.index(layer) for layer in layers]
    features = project(b, rows, projectors, places, shape)
    leave_out_corners(b, projectors)
    join = any_res.join(b.array("image_newline", shape.text_size))
    if projectors[0].text_layer > 0:
        join = clear_first_level(join)
    return b.vision_model(features, tile_passes(vit), join)


def project(
    b: VisionBuilder,
    rows: Node,
    projectors: list[Projector],
    places: list[int],
    shape: WindowQFormer,
) -> Node:
    """Adds the features for the deeper layers; returns the features for the first layer, or zeros.

    `rows` has the rows of several layers of the tower side by side, and `places` the place there
    of each projector's layer.
    """
    size = shape.hidden_size
    features = rows
    # The features for the first layer leave the encoder in its last part.
    order = sorted(range(len(projectors)), key=lambda number: projectors[number].text_layer == 0)
    for count, number in enumerate(order):
        if count % PROJECTORS_PER_PART == 0:
            rows = b.next_part(rows)
        projector, begin = projectors[number], places[number] * size
        own = part(rows, begin, begin + size, 2)
        features = project_windows(b, own, projector.prefix, shape, projector.corner)
        if projector.text_layer > 0:
            b.deep(features)
    if projectors[order[-1]].text_layer == 0:
        return features
    return ops.broadcast(real(0.0), ops.shape_of(features))


def clear_first_level(join: Join) -> Join:
    """Returns a function that joins features, and leaves the embeddings empty, also of newlines."""

    def joined(image: ImageInput, features: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        levels = join(image, features)
        levels[0] = 0
        return levels

    return joined


def read_projectors(config: HfConfig) -> list[Projector]:
    """Reads both kinds of projectors, in the order of their layers of the language model."""
    if not config.has("spatial_target_layers"):
        config = config.with_values(spatial_target_layers=TARGETS)
    targets = config.integers("spatial_target_layers")
    if len(targets) > NUM_CORNERS:
        raise config.refuse("spatial_target_layers", f"at most {NUM_CORNERS} layers")
    tower_layer = config.integer("spatial_vision_layer", -1)
    projectors = [
        Projector(
            prefix=f"layerwise_projectors.{number}.",
            tower_layer=from_layer,
            text_layer=to_layer,
            corner=None,
        )
        for number, (from_layer, to_layer) in enumerate(read_pairs(config))
    ]
    projectors += [
        Projector(
            prefix=f"spatial_projectors.{number}.",
            tower_layer=tower_layer,
            text_layer=target,
            corner=number,
        )
        for number, target in enumerate(targets)
    ]
    check_text_layers(config, [projector.text_layer for projector in projectors])
    return sorted(projectors, key=lambda projector: projector.text_layer)


def read_pairs(config: HfConfig) -> list[tuple[int, int]]:
    """Reads `deepstack_layer_map`: pairs of a tower's layer and a language model's layer."""
    key = "deepstack_layer_map"
    values = config.values.get(key)
    if not isinstance(values, list) or not 1 <= len(values) <= MAX_PAIRS:
        raise ModelLoadError(
            f"config.json: {key} must be a list of 1 to {MAX_PAIRS} pairs of layers, found "
            f"{brief(values)}"
        )
    pairs = []
    for value in values:
        from_layer, to_layer = config.with_values(**{key: value}).integers(key, 2)
        pairs.append((from_layer, to_layer))
    return pairs


def check_text_layers(config: HfConfig, layers: list[int]) -> None:
    """Raises ModelLoadError for a layer that the language model lacks, or that is named twice."""
    num_layers = config.text_model().size("num_hidden_layers", 32)
    keys = "deepstack_layer_map and spatial_target_layers"
    if any(not 0 <= layer < num_layers for layer in layers):
        raise ModelLoadError(
            f"config.json: {keys} must name layers of the language model from 0 to "
            f"{num_layers - 1}, found {sorted(layers)}"
        )
    if len(set(layers)) < len(layers):
        raise ModelLoadError(
            f"config.json: {keys} must name each layer of the language model once, found "
            f"{sorted(layers)}"
        )


def layer_key(projector: Projector) -> str:
    return "deepstack_layer_map" if projector.corner is None else "spatial_vision_layer"


def leave_out_corners(b: VisionBuilder, projectors: list[Projector]) -> None:
    """Leaves out the projectors of corners without a target: a checkpoint has all four."""
    used = {projector.corner for projector in projectors}
    b.leave_out(
        *(f"spatial_projectors.{corner}." for corner in range(NUM_CORNERS) if corner not in used)
    )
