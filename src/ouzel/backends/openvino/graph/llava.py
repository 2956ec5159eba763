"""Builds LLaVA's features: chosen layers of a tower, and a projector to the size of the text.

Reference: transformers, models/llava/modeling_llava.py, llava_next and llava_onevision.
"""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.activations import activate, read_activation
from ouzel.backends.openvino.graph.feature_layers import feature_layers
from ouzel.backends.openvino.graph.nodes import Node, integers, part
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import VitShape, collect_layers, embedded_tiles
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig

PROJECTOR = "multi_modal_projector."


@dataclass(frozen=True, kw_only=True)
class TileFeatures:
    """The rows of the vision tower's output that the projector takes."""

    vit: VitShape
    layers: tuple[int, ...]  # layers whose rows are taken, side by side
    skips_first: bool  # the first row of each tile is left out

    @property
    def num_rows(self) -> int:
        """Returns the rows of a tile."""
        return self.vit.num_rows - self.skips_first

    @classmethod
    def read(cls, config: HfConfig, tower: str) -> "TileFeatures":
        vit = read_tower(config, tower)
        return cls(
            vit=vit, layers=feature_layers(config, vit.num_layers), skips_first=skips_first(config)
        )


def read_tower(config: HfConfig, tower: str) -> VitShape:
    """Reads the shape of the tower; `tower` is its type if `vision_config` has none."""
    vision = config.required_section("vision_config").with_defaults(model_type=tower)
    match vision.model_type:
        case "clip_vision_model":
            return VitShape.read_clip(vision)
        case "siglip_vision_model":
            return VitShape.read_siglip(vision)
        case _:
            raise vision.refuse("model_type", "clip_vision_model, siglip_vision_model")


def with_defaults(config: HfConfig) -> HfConfig:
    """Adds the defaults of LLaVA and LLaVA-NeXT."""
    return config.with_defaults(vision_feature_layer=-2, vision_feature_select_strategy="default")


def skips_first(config: HfConfig) -> bool:
    strategy = config.text("vision_feature_select_strategy")
    if strategy not in ("default", "full"):
        raise config.refuse("vision_feature_select_strategy", "default, full")
    return strategy == "default"


def tile_features(
    b: VisionBuilder, config: HfConfig, tower: str = "clip_vision_model"
) -> tuple[Node, TileFeatures]:
    """Returns the features, [tiles * rows, hidden size of the text], and their shape.

    `tower` is the type of the tower if `vision_config` has none.
    """
    shape = TileFeatures.read(config, tower)
    rows = collect_layers(b, embedded_tiles(b, shape.vit), shape.vit, shape.layers)
    if shape.skips_first:
        rows = part(rows, 1, shape.vit.num_rows, 1)
    size = shape.vit.hidden_size * len(shape.layers)
    return projected(b, ops.reshape(rows, integers(-1, size), False), size, config), shape


def projected(b: VisionBuilder, rows: Node, size: int, config: HfConfig) -> Node:
    """Projects rows [rows, size] to the size of the text."""
    text_size = config.text_model().size("hidden_size", 4096)
    has_bias = config.flag("multimodal_projector_bias", True)
    activation = read_activation(config, "projector_hidden_act", "gelu")
    inner = activate(
        b.linear(rows, PROJECTOR + "linear_1", size, text_size, has_bias=has_bias), activation
    )
    return b.linear(inner, PROJECTOR + "linear_2", text_size, text_size, has_bias=has_bias)
