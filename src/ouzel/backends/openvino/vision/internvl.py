"""In InternVL (format of transformers) layers scale their outputs; a square of patches is one row.

Reference: transformers, models/internvl/modeling_internvl.py; InternVL 1.5 (Chen 2024).
"""

from dataclasses import dataclass

import numpy as np

from ouzel.backends.openvino.graph.activations import activate, read_activation
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.nodes import Node, part
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.pixel_shuffle import check_squares, squares
from ouzel.backends.openvino.graph.vision import (
    VisionBuilder,
    attend,
    merge_batch_heads,
    split_batch_heads,
)
from ouzel.backends.openvino.graph.vit import TOWER, VitShape, tile_passes
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig

PROJECTOR = "multi_modal_projector."
PROJECTOR_NORM = Norm(1e-5, is_centred=True, has_bias=True)
QK_NORM = Norm(1e-6)  # over all heads of a row


@dataclass(frozen=True, kw_only=True)
class InternVlShape:
    vit: VitShape
    layer_norm: Norm
    has_qkv_bias: bool
    has_qk_norm: bool
    has_positions: bool
    has_final_norm: bool

    @classmethod
    def read(cls, vision: HfConfig) -> "InternVlShape":
        vit = VitShape.read_clip(  # CLIP's tiles have a row in front, like InternVL's
            vision.with_defaults(
                hidden_size=1024,
                num_hidden_layers=24,
                num_attention_heads=16,
                intermediate_size=4096,
                hidden_act="gelu",
                layer_norm_eps=1e-6,
                image_size=448,
                patch_size=14,
            )
        )
        return cls(
            vit=vit,
            layer_norm=read_norm(vision, vit.norm),
            has_qkv_bias=vision.flag("attention_bias", False),
            has_qk_norm=vision.flag("use_qk_norm", False),
            has_positions=vision.flag("use_absolute_position_embeddings", True),
            has_final_norm=not vision.flag("use_mean_pooling", True),
        )


def read_norm(vision: HfConfig, layer_norm: Norm) -> Norm:
    match vision.text("norm_type", "layer_norm"):
        case "layer_norm":
            return layer_norm
        case "rms_norm":
            return Norm(layer_norm.epsilon)
        case _:
            raise vision.refuse("norm_type", "layer_norm, rms_norm")


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    shape = InternVlShape.read(config.required_section("vision_config"))
    factor = read_factor(config)
    refuse_other_features(config)
    check_squares(shape.vit.side, factor, "downsample_ratio")
    rows = embedded_tiles(b, shape)
    for layer in range(shape.vit.num_layers):
        rows = build_layer(b, b.at_layer(layer, rows), f"{TOWER}encoder.layer.{layer}.", shape)
    if shape.has_final_norm:
        rows = b.norm(rows, TOWER + "layernorm", shape.vit.hidden_size, shape.vit.norm)
    patches = part(rows, 1, shape.vit.num_rows, 1)
    size = factor**2 * shape.vit.hidden_size
    rows = squares(patches, shape.vit.side, factor, shape.vit.hidden_size)
    return b.vision_model(projected(b, rows, size, config), tile_passes(shape.vit))


def read_factor(config: HfConfig) -> int:
    """Returns the patches along each side of a square that becomes one row."""
    ratio = config.number("downsample_ratio", 0.5)
    factor = round(1 / ratio) if ratio > 0 else 0
    if abs(factor * ratio - 1) > 1e-6:
        raise config.refuse("downsample_ratio", "one over an integer")
    return factor


def refuse_other_features(config: HfConfig) -> None:
    if config.integer("vision_feature_layer", -1) != -1:
        raise config.refuse("vision_feature_layer", "-1")
    if config.text("vision_feature_select_strategy", "default") != "default":
        raise config.refuse("vision_feature_select_strategy", "default")


def embedded_tiles(b: VisionBuilder, shape: InternVlShape) -> Node:
    """Embeds the tiles; returns [tiles, rows, hidden_size]."""
    vit, prefix = shape.vit, f"{TOWER}embeddings."
    kernel = (vit.hidden_size, 3, vit.patch_size, vit.patch_size)
    pixels = b.input("patches", [-1, vit.num_rows, int(np.prod(kernel[1:]))], ov.Type.f32)
    rows = b.patches(pixels, prefix + "patch_embeddings.projection", kernel, has_bias=False)
    in_front = b.array(prefix + "cls_token", 1, 1, vit.hidden_size)
    bias = b.array(prefix + "patch_embeddings.projection.bias", vit.hidden_size)
    # The first row has a black patch, whose embedding is 0.
    first = ops.add(part(rows, 0, 1, 1), b.constant(in_front))
    others = ops.add(part(rows, 1, vit.num_rows, 1), b.constant(bias))
    rows = ops.concat([first, others], 1)
    b.leave_out(prefix + "mask_token")
    if not shape.has_positions:
        return rows
    return ops.add(
        rows, b.constant(b.array(prefix + "position_embeddings", 1, vit.num_rows, vit.hidden_size))
    )


def build_layer(b: VisionBuilder, rows: Node, prefix: str, shape: InternVlShape) -> Node:
    size, inner_size = shape.vit.hidden_size, shape.vit.inner_size

    def added(values: Node, name: str) -> Node:
        return ops.add(rows, ops.multiply(values, b.constant(b.array(prefix + name, size))))

    before = b.norm(rows, prefix + "layernorm_before", size, shape.layer_norm)
    rows = added(attention(b, before, prefix + "attention.", shape), "lambda_1")
    inner = b.norm(rows, prefix + "layernorm_after", size, shape.layer_norm)
    inner = activate(b.linear(inner, prefix + "mlp.fc1", size, inner_size), shape.vit.activation)
    return added(b.linear(inner, prefix + "mlp.fc2", inner_size, size), "lambda_2")


def attention(b: VisionBuilder, rows: Node, prefix: str, shape: InternVlShape) -> Node:
    size, num_heads = shape.vit.hidden_size, shape.vit.num_heads
    query, key, value = (
        b.linear(rows, f"{prefix}{each}_proj", size, size, has_bias=shape.has_qkv_bias)
        for each in "qkv"
    )
    if shape.has_qk_norm:
        query = b.norm(query, prefix + "q_norm", size, QK_NORM)
        key = b.norm(key, prefix + "k_norm", size, QK_NORM)
    attended = attend(
        *(split_batch_heads(each, num_heads, size // num_heads) for each in (query, key, value))
    )
    return b.linear(merge_batch_heads(attended), prefix + "projection_layer", size, size)


def projected(b: VisionBuilder, rows: Node, size: int, config: HfConfig) -> Node:
    text_size = config.text_model().size("hidden_size")
    activation = read_activation(config, "projector_hidden_act", "gelu")
    inner = b.linear(
        b.norm(rows, PROJECTOR + "layer_norm", size, PROJECTOR_NORM),
        PROJECTOR + "linear_1",
        size,
        text_size,
    )
    return b.linear(activate(inner, activation), PROJECTOR + "linear_2", text_size, text_size)
