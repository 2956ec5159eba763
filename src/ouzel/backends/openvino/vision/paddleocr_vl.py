"""PaddleOCR-VL has SigLIP's layers with rotated patches, and learned positions resized to an image.

Reference: transformers, models/paddleocr_vl/modeling_paddleocr_vl.py; PaddleOCR-VL (Cui 2025,
arXiv 2510.14528).
"""

from ouzel.backends.openvino.graph.activations import activate
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.nodes import Node, integers, split_heads
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.patches import all_see_all, turned
from ouzel.backends.openvino.graph.pixtral import read_theta
from ouzel.backends.openvino.graph.qwen_vision import THETA, QwenVisionShape, make_passes
from ouzel.backends.openvino.graph.resized_positions import add_positions, position_inputs
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import TOWER, VitShape
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

PROJECTOR = "multi_modal_projector."
PROJECTOR_NORM = Norm(1e-5, is_centred=True, has_bias=True)
# Tensors of published checkpoints that the reference leaves out, too.
LEFT_OUT = (f"{TOWER}head.", f"{TOWER}embeddings.packing_position_embedding.")


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    vision = config.required_section("vision_config")
    shape = read_shape(vision)
    patches = QwenVisionShape(
        hidden_size=shape.hidden_size,
        num_heads=shape.num_heads,
        patch_size=shape.patch_size,
        frames=1,
        merge=vision.size("spatial_merge_size", 2),
        norm=shape.norm,
    )
    rows = embedded_patches(b, shape)
    for layer in range(shape.num_layers):
        rows = build_layer(b, b.at_layer(layer, rows), f"{TOWER}encoder.layers.{layer}.", shape)
    rows = b.norm(rows, f"{TOWER}post_layernorm", shape.hidden_size, shape.norm)
    b.leave_out(*LEFT_OUT)
    text_size = config.text_model().size("hidden_size", 1024)
    return b.vision_model(
        projected(b, rows, patches, text_size),
        make_passes(
            patches,
            lambda rows, columns: position_inputs(
                rows, columns, shape.side, patches.merge, is_antialiased=False
            ),
        ),
    )


def read_shape(vision: HfConfig) -> VitShape:
    """Reads the sizes; a tile of the shape is the square of learned positions."""
    if read_theta(vision) != THETA:
        raise vision.refuse("rope_parameters", f"rope_theta {THETA}")
    shape = VitShape.read_siglip(
        vision.with_defaults(
            hidden_size=1152,
            intermediate_size=4304,
            num_hidden_layers=27,
            num_attention_heads=16,
            image_size=384,
            patch_size=14,
        )
    )
    if shape.hidden_size % (4 * shape.num_heads):
        raise ModelLoadError(
            f"config.json: vision_config: hidden_size {shape.hidden_size} must be a multiple of "
            f"four times num_attention_heads {shape.num_heads}"
        )
    return shape


def embedded_patches(b: VisionBuilder, shape: VitShape) -> Node:
    prefix, size = f"{TOWER}embeddings.", shape.hidden_size
    kernel = (size, 3, shape.patch_size, shape.patch_size)
    pixels = b.input("patches", [-1, 3 * shape.patch_size**2], ov.Type.f32)
    rows = b.patches(pixels, prefix + "patch_embedding", kernel, has_bias=True)
    return add_positions(b, rows, prefix + "position_embedding.weight", shape.num_rows, size)


def build_layer(b: VisionBuilder, rows: Node, prefix: str, shape: VitShape) -> Node:
    size, inner_size = shape.hidden_size, shape.inner_size
    normed = b.norm(rows, prefix + "layer_norm1", size, shape.norm)
    rows = ops.add(rows, attention(b, normed, prefix + "self_attn.", shape))
    inner = b.norm(rows, prefix + "layer_norm2", size, shape.norm)
    inner = activate(b.linear(inner, prefix + "mlp.fc1", size, inner_size), shape.activation)
    return ops.add(rows, b.linear(inner, prefix + "mlp.fc2", inner_size, size))


def attention(b: VisionBuilder, rows: Node, prefix: str, shape: VitShape) -> Node:
    size, head_dim = shape.hidden_size, shape.hidden_size // shape.num_heads
    query, key, value = (
        split_heads(b.linear(rows, f"{prefix}{name}_proj", size, size), shape.num_heads, head_dim)
        for name in "qkv"
    )
    cos, sin = (
        ops.unsqueeze(b.input(name, [-1, head_dim], ov.Type.f32), integers(1))
        for name in ("cos", "sin")
    )
    query, key = (turned(each, cos, sin, head_dim) for each in (query, key))
    attended = ops.reshape(all_see_all(query, key, value), integers(-1, size), False)
    return b.linear(attended, prefix + "out_proj", size, size)


def projected(b: VisionBuilder, rows: Node, shape: QwenVisionShape, text_size: int) -> Node:
    """Merges squares of patches, which follow one another, to rows of the text's size."""
    rows = b.norm(rows, PROJECTOR + "pre_norm", shape.hidden_size, PROJECTOR_NORM)
    size = shape.merged_size
    squares = ops.reshape(rows, integers(-1, size), False)
    inner = ops.gelu(b.linear(squares, PROJECTOR + "linear_1", size, size), "erf")
    return b.linear(inner, PROJECTOR + "linear_2", size, text_size)
