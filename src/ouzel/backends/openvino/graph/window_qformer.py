"""Projects the rows of a tile with a Q-Former on each window of patches.

Reference: transformers, models/granite4_vision/modeling_granite4_vision.py and
models/blip_2/modeling_blip_2.py; BLIP-2 (Li 2023).

The patches of a tile are cut into square windows. Each window has a smaller square of queries: the
learned queries plus patches of the window, either the mean of each square of 2x2 patches or one
patch of it. The queries attend to each other, then to the patches of their window.
"""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.activations import Activation, activate, read_activation
from ouzel.backends.openvino.graph.nodes import Node, integers, part
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.pixel_shuffle import squares
from ouzel.backends.openvino.graph.vision import (
    VisionBuilder,
    attend,
    merge_batch_heads,
    split_batch_heads,
)
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

HEAD_SIZE = 64  # the reference has as many heads as fit into the hidden size
STRIDE = 2  # patches along each side of the square that becomes one query
WINDOW_NORM = Norm(1e-6, is_centred=True, has_bias=True)
_TYPE = "blip_2_qformer"
# The values of a config.json without `qformer_config`.
_DEFAULTS = {
    "num_hidden_layers": 1,
    "intermediate_size": 3072,
    "cross_attention_frequency": 1,
}
MAX_LAYERS = 32


@dataclass(frozen=True, kw_only=True)
class WindowQFormer:
    """The sizes of the projectors of one checkpoint, which are all alike."""

    hidden_size: int
    inner_size: int
    num_layers: int
    cross_attention_frequency: int  # every layer of this interval attends to the patches
    has_text_layers: bool  # tensors for texts, which the projectors do not use
    activation: Activation
    norm: Norm
    side: int  # patches along each side of a tile
    window: int  # patches along each side of a window
    queries: int  # queries along each side of a window
    text_size: int

    @classmethod
    def read(cls, config: HfConfig, hidden_size: int, side: int) -> "WindowQFormer":
        """Reads the shape; tiles have `side` patches along each side, of `hidden_size`."""
        section = config.section("qformer_config") or HfConfig(_DEFAULTS)
        if section.text("model_type", _TYPE) != _TYPE:
            raise section.refuse("model_type", _TYPE)
        queries, window = read_rate(config, side)
        num_heads = hidden_size // HEAD_SIZE
        if num_heads == 0 or hidden_size % num_heads:
            raise ModelLoadError(
                f"config.json: vision_config: hidden_size {hidden_size} must be at least "
                f"{HEAD_SIZE}, and a multiple of {HEAD_SIZE} or of the {num_heads} heads that "
                f"hidden_size // {HEAD_SIZE} gives"
            )
        num_layers = section.size("num_hidden_layers", 12)
        if num_layers > MAX_LAYERS:
            raise section.refuse("num_hidden_layers", f"1 to {MAX_LAYERS}")
        return cls(
            hidden_size=hidden_size,
            inner_size=section.size("intermediate_size", 3072),
            num_layers=num_layers,
            cross_attention_frequency=section.size("cross_attention_frequency", 2),
            has_text_layers=section.flag("use_qformer_text_input", False),
            activation=read_activation(section, default="gelu"),
            norm=Norm(section.number("layer_norm_eps", 1e-12), is_centred=True, has_bias=True),
            side=side,
            window=window,
            queries=queries,
            text_size=config.text_model().size("hidden_size", 4096),
        )

    @property
    def num_heads(self) -> int:
        return self.hidden_size // HEAD_SIZE

    @property
    def num_windows(self) -> int:
        """Returns the windows along each side of a tile."""
        return self.side // self.window

    @property
    def projected_side(self) -> int:
        """Returns the rows of features along each side of a tile."""
        return self.num_windows * self.queries


def read_rate(config: HfConfig, side: int) -> tuple[int, int]:
    """Reads `downsample_rate`, such as "4/8": the queries and the patches along each side of a
    window.
    """
    queries, _, window = config.text("downsample_rate").partition("/")
    if not (queries.isdecimal() and window.isdecimal() and len(queries + window) <= 8):
        raise config.refuse("downsample_rate", 'two integers, such as "4/8"')
    numbers = int(queries), int(window)
    if numbers[0] < 1 or numbers[1] != STRIDE * numbers[0]:
        raise config.refuse("downsample_rate", 'halves, such as "4/8"')
    if side % numbers[1]:
        raise ModelLoadError(
            f"config.json: downsample_rate must have a divisor of the {side} patches along each "
            f"side of a tile behind the slash, found {queries}/{window}"
        )
    return numbers


def project_windows(
    b: VisionBuilder, rows: Node, prefix: str, shape: WindowQFormer, corner: int | None = None
) -> Node:
    """Projects the rows of tiles to fewer rows, of the hidden size of the text.

    The `rows` are [tiles, patches, hidden size], the result is [rows, hidden size of the text].
    With a `corner` from 0 to 3 a query begins with this patch of its square of 2x2 patches (top
    left, top right, bottom left, bottom right), otherwise with the mean of the square.
    """
    size = shape.hidden_size
    rows = b.norm(rows, prefix + "norm", size, WINDOW_NORM)
    patches = ops.add(
        cut_windows(rows, shape.side, shape.window, size),
        b.constant(b.array(prefix + "image_positions", 1, shape.window**2, size)),
    )
    queries = ops.add(
        cut_windows(thin_out(rows, shape, corner), shape.projected_side, shape.queries, size),
        b.constant(b.array(prefix + "query", 1, shape.queries**2, size)),
    )
    queries = b.norm(queries, prefix + "qformer.layernorm", size, shape.norm)
    for layer in range(shape.num_layers):
        name = f"{prefix}qformer.encoder.layer.{layer}."
        attends = layer % shape.cross_attention_frequency == 0
        queries = build_layer(b, queries, patches if attends else None, name, shape)
    joined = join_windows(queries, shape)
    return b.linear(
        ops.reshape(joined, integers(-1, size), False),
        prefix + "out_linear",
        size,
        shape.text_size,
    )


def thin_out(rows: Node, shape: WindowQFormer, corner: int | None) -> Node:
    """Returns one row for each square of 2x2 patches of a tile."""
    half = shape.side // STRIDE
    cut = ops.reshape(rows, integers(-1, half, STRIDE, half, STRIDE, shape.hidden_size), False)
    if corner is None:
        return ops.reduce_mean(cut, integers(2, 4), False)
    down, across = divmod(corner, STRIDE)
    return part(part(cut, down, down + 1, 2), across, across + 1, 4)


def cut_windows(rows: Node, side: int, window: int, size: int) -> Node:
    """Turns tiles of `side` by `side` rows into [tiles * windows, rows of a window, size]."""
    return ops.reshape(squares(rows, side, window, size), integers(-1, window**2, size), False)


def join_windows(rows: Node, shape: WindowQFormer) -> Node:
    """Turns [tiles * windows, queries of a window, size] into tiles of rows, line by line."""
    num, queries, size = shape.num_windows, shape.queries, shape.hidden_size
    cut = ops.reshape(rows, integers(-1, num, num, queries, queries, size), False)
    return ops.transpose(cut, integers(0, 1, 3, 2, 4, 5))


def build_layer(
    b: VisionBuilder, queries: Node, patches: Node | None, prefix: str, shape: WindowQFormer
) -> Node:
    """Builds attention among the queries, attention to the patches if there are any, and an MLP.

    A norm follows each part.
    """
    size = shape.hidden_size
    queries = attention(b, queries, queries, prefix + "attention.", shape)
    if patches is not None:
        queries = attention(b, queries, patches, prefix + "crossattention.", shape)
    if shape.has_text_layers:
        b.leave_out(prefix + "intermediate.", prefix + "output.")
    inner = b.linear(queries, prefix + "intermediate_query.dense", size, shape.inner_size)
    inner = activate(inner, shape.activation)
    outer = b.linear(inner, prefix + "output_query.dense", shape.inner_size, size)
    return b.norm(ops.add(outer, queries), prefix + "output_query.LayerNorm", size, shape.norm)


def attention(
    b: VisionBuilder, queries: Node, rows: Node, prefix: str, shape: WindowQFormer
) -> Node:
    """Lets the queries attend to the rows of their window; a norm follows."""
    size, num_heads = shape.hidden_size, shape.num_heads
    heads = (
        split_batch_heads(
            b.linear(source, f"{prefix}attention.{name}", size, size), num_heads, size // num_heads
        )
        for name, source in (("query", queries), ("key", rows), ("value", rows))
    )
    mixed = b.linear(merge_batch_heads(attend(*heads)), prefix + "output.dense", size, size)
    return b.norm(ops.add(mixed, queries), prefix + "output.LayerNorm", size, shape.norm)
