"""GLM-OCR's encoder normalises queries and keys; a convolution merges squares of patches.

Reference: transformers, models/glm_ocr/modeling_glm_ocr.py.
"""

from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.nodes import Node, integers
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.pixtral import read_theta
from ouzel.backends.openvino.graph.qwen_vision import (
    THETA,
    QwenVisionShape,
    attention,
    embedded_patches,
    make_passes,
)
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig

MERGER = "visual.merger."
MERGER_NORM = Norm(1e-5, is_centred=True, has_bias=True)


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    vision = vision_section(config)
    shape = read_shape(vision)
    activation, inner_size = read_activation(vision), vision.size("intermediate_size")
    size = shape.hidden_size
    rows = embedded_patches(b, shape, has_bias=True)
    for layer in range(vision.size("depth")):
        prefix, rows = f"visual.blocks.{layer}.", b.at_layer(layer, rows)
        normed = b.norm(rows, prefix + "norm1", size, shape.norm)
        rows = ops.add(rows, attention(b, normed, prefix + "attn.", shape))
        normed = b.norm(rows, prefix + "norm2", size, shape.norm)
        inner = gated(b, normed, prefix + "mlp.", (size, inner_size), activation, has_bias=True)
        rows = ops.add(rows, inner)
    rows = merged(b, b.norm(rows, "visual.post_layernorm", size, shape.norm), shape, vision)
    return b.vision_model(projected(b, rows, vision, activation), make_passes(shape))


def vision_section(config: HfConfig) -> HfConfig:
    vision = config.required_section("vision_config").with_defaults(
        depth=24,
        hidden_size=1024,
        hidden_act="silu",
        num_heads=16,
        patch_size=14,
        out_hidden_size=1536,
        intermediate_size=4096,
    )
    if not vision.flag("attention_bias", True):
        raise vision.refuse("attention_bias", "true")
    if vision.size("out_hidden_size") != config.text_model().size("hidden_size", 1024):
        raise vision.refuse("out_hidden_size", "hidden_size of text_config")
    return vision


def read_shape(vision: HfConfig) -> QwenVisionShape:
    if read_theta(vision) != THETA:
        raise vision.refuse("rope_parameters", f"rope_theta {THETA}")
    # The image processor makes patches of two frames.
    vision.require(temporal_patch_size=2)
    norm = Norm(vision.number("rms_norm_eps", 1e-5))
    return QwenVisionShape.read(vision, norm, head_norm=norm)


def gated(
    b: VisionBuilder,
    rows: Node,
    prefix: str,
    sizes: tuple[int, int],
    activation: Activation,
    *,
    has_bias: bool,
) -> Node:
    """Computes a gated feed-forward layer; `sizes` are the widths of its rows and inner rows."""
    size, inner_size = sizes
    gate, up = (
        b.linear(rows, f"{prefix}{name}_proj", size, inner_size, has_bias=has_bias)
        for name in ("gate", "up")
    )
    inner = ops.multiply(activate(gate, activation), up)
    return b.linear(inner, prefix + "down_proj", inner_size, size, has_bias=has_bias)


def merged(b: VisionBuilder, rows: Node, shape: QwenVisionShape, vision: HfConfig) -> Node:
    """Merges each square of patches to one row; the kernel has the first dimension of all
    patches, then the second, and so on.
    """
    kernel = (vision.size("out_hidden_size"), shape.hidden_size, shape.merge, shape.merge)
    squares = ops.reshape(rows, integers(-1, shape.merge**2, shape.hidden_size), False)
    flat = ops.reshape(
        ops.transpose(squares, integers(0, 2, 1)), integers(-1, shape.merged_size), False
    )
    return b.patches(flat, "visual.downsample", kernel, has_bias=True)


def projected(b: VisionBuilder, rows: Node, vision: HfConfig, activation: Activation) -> Node:
    size = vision.size("out_hidden_size")
    rows = b.linear(rows, MERGER + "proj", size, size, has_bias=False)
    rows = ops.gelu(b.norm(rows, MERGER + "post_projection_norm", size, MERGER_NORM), "erf")
    return gated(b, rows, MERGER, (size, 3 * size), activation, has_bias=False)
