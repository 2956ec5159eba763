"""Builds the vision encoders of Qwen models: patches of images of any size, rotated by row and
column.

Squares of patches, usually four, are merged to one row. Reference: transformers,
models/qwen2_vl/modeling_qwen2_vl.py, qwen2_5_vl and qwen3_vl; Qwen2-VL (Wang 2024).

One pass is one image, or two frames of a video.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, integers, part
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.patches import all_see_all, merged_order, turned
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import Inputs, Passes
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError
from ouzel.types.engine_request import ImageInput

THETA = 10000.0

Block = Callable[[VisionBuilder, Node, str], Node]


@dataclass(frozen=True, kw_only=True)
class QwenVisionShape:
    """The sizes of one checkpoint's encoder."""

    hidden_size: int
    num_heads: int
    patch_size: int
    frames: int  # frames in one patch
    merge: int  # patches along each side of a square that becomes one row of features
    norm: Norm
    # names of the merger's norm and of its two layers; None: the family has another merger
    merger_names: tuple[str, str, str] | None = None
    head_norm: Norm | None = None  # norm of each head of queries and keys, before the rotation

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads

    @property
    def merged_size(self) -> int:
        return self.hidden_size * self.merge**2

    @classmethod
    def read(
        cls,
        vision: HfConfig,
        norm: Norm,
        merger_names: tuple[str, str, str] | None = None,
        *,
        hidden_key: str = "hidden_size",
        head_norm: Norm | None = None,
    ) -> "QwenVisionShape":
        if vision.size("in_channels", vision.size("in_chans", 3)) != 3:
            raise vision.refuse("in_channels", "3")
        shape = cls(
            hidden_size=vision.size(hidden_key),
            num_heads=vision.size("num_heads"),
            patch_size=vision.size("patch_size"),
            frames=vision.size("temporal_patch_size", 2),
            merge=vision.size("spatial_merge_size", 2),
            norm=norm,
            merger_names=merger_names,
            head_norm=head_norm,
        )
        if shape.hidden_size % (4 * shape.num_heads):
            raise ModelLoadError(
                f"config.json: {hidden_key} {shape.hidden_size} must be a multiple of four times "
                f"num_heads {shape.num_heads}"
            )
        return shape


def embedded_patches(b: VisionBuilder, shape: QwenVisionShape, *, has_bias: bool) -> Node:
    size = shape.patch_size
    kernel = (shape.hidden_size, 3, shape.frames, size, size)
    pixels = b.input("patches", [-1, int(np.prod(kernel[1:]))], ov.Type.f32)
    return b.patches(pixels, "visual.patch_embed.proj", kernel, has_bias=has_bias)


def attention(
    b: VisionBuilder, rows: Node, prefix: str, shape: QwenVisionShape, mixed: "Mixed | None" = None
) -> Node:
    """Computes attention; takes and returns [patches, hidden_size].

    `mixed` computes it from heads; without it all patches attend to each other.
    """
    num_heads, head_dim = shape.num_heads, shape.head_dim
    fused = b.linear(rows, prefix + "qkv", shape.hidden_size, 3 * shape.hidden_size)
    heads = ops.reshape(fused, integers(-1, 3, num_heads, head_dim), False)
    query, key, value = (
        ops.squeeze(part(heads, each, each + 1, 1), integers(1)) for each in range(3)
    )
    if shape.head_norm is not None:
        query = b.norm(query, prefix + "q_norm", head_dim, shape.head_norm)
        key = b.norm(key, prefix + "k_norm", head_dim, shape.head_norm)
    cos, sin = (
        ops.unsqueeze(b.input(name, [-1, head_dim], ov.Type.f32), integers(1))
        for name in ("cos", "sin")
    )
    query, key = (turned(each, cos, sin, head_dim) for each in (query, key))
    attended = all_see_all(query, key, value) if mixed is None else mixed(b, query, key, value)
    return b.linear(
        ops.reshape(attended, integers(-1, shape.hidden_size), False),
        prefix + "proj",
        *[shape.hidden_size] * 2,
    )


# takes queries, keys and values, each [patches, heads, head_dim]; gives the same shape
Mixed = Callable[[VisionBuilder, Node, Node, Node], Node]


def make_passes(shape: QwenVisionShape, *others: Callable[[int, int], Inputs]) -> Passes:
    """Returns the function that makes the inputs of an image.

    `others` give further inputs, from the rows and columns of patches.
    """

    def passes(image: ImageInput, pixels: NDArray[np.float32]) -> list[Inputs]:
        rows, columns = (side // shape.patch_size for side in image.shape[1:])
        common: Inputs = dict(zip(("cos", "sin"), cos_sin(rows, columns, shape), strict=True))
        for other in others:
            common |= other(rows, columns)
        frames = [
            pixels[first : first + shape.frames] for first in range(0, len(pixels), shape.frames)
        ]
        return [{"patches": patches(each, shape), **common} for each in frames]

    return passes


def patches(frames: NDArray[np.float32], shape: QwenVisionShape) -> NDArray[np.float32]:
    """Turns frames [frames, 3, height, width] into flat patches.

    If there are too few frames, the last one is repeated.
    """
    frames = frames[np.minimum(np.arange(shape.frames), len(frames) - 1)]
    size, merge = shape.patch_size, shape.merge
    rows, columns = (side // (size * merge) for side in frames.shape[2:])
    cut = frames.reshape(shape.frames, 3, rows, merge, size, columns, merge, size)
    by_patch = np.ascontiguousarray(cut.transpose(2, 5, 3, 6, 1, 0, 4, 7))
    return by_patch.reshape(rows * columns * merge**2, -1)


def cos_sin(
    rows: int, columns: int, shape: QwenVisionShape
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Returns the cosines and sines of each patch's angles, [patches, head_dim].

    In each half of a head, the first half of the dimensions is rotated by the row, the second by
    the column.
    """
    places = merged_order(np.moveaxis(np.indices((rows, columns)), 0, -1), shape.merge).astype(
        np.float64
    )
    half = shape.head_dim // 2
    frequencies = THETA ** -(np.arange(0, half, 2) / half)
    angles = (places[:, :, None] * frequencies).reshape(len(places), half)
    angles = np.concatenate([angles, angles], axis=1)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def merged(b: VisionBuilder, rows: Node, prefix: str, shape: QwenVisionShape, size: int) -> Node:
    """Merges each square of patches to one row of features with `size` numbers."""
    assert shape.merger_names is not None
    norm, first, second = (prefix + name for name in shape.merger_names)
    rows = b.norm(rows, norm, shape.hidden_size, shape.norm)
    rows = ops.reshape(rows, integers(-1, shape.merged_size), False)
    rows = ops.gelu(b.linear(rows, first, shape.merged_size, shape.merged_size), "erf")
    return b.linear(rows, second, shape.merged_size, size)
