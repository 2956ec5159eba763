"""Fewer, wider rows for the language model: squares of a tile's patches become one row each.

Reference: transformers, models/idefics3/modeling_idefics3.py and
models/internvl/modeling_internvl.py.
"""

from ouzel.backends.openvino.graph.nodes import Node, integers
from ouzel.backends.openvino.library import ops
from ouzel.errors import ModelLoadError


def check_squares(side: int, factor: int, key: str) -> None:
    """Raises ModelLoadError where squares of `factor` patches, which `key` asks for, do not fill a
    tile of `side`.
    """
    if side % factor:
        raise ModelLoadError(
            f"config.json: {key} must make squares of a divisor of {side} patches, the side of a "
            "tile, "
            f"but it makes them of {factor}"
        )


def squares(rows: Node, side: int, factor: int, size: int) -> Node:
    """Makes [tiles * (side / factor)^2, factor^2 * size] of [tiles, side^2, size]; a square's
    patches go row by row.
    """
    num = side // factor
    cut = ops.reshape(rows, integers(-1, num, factor, num, factor, size), False)
    return ops.reshape(
        ops.transpose(cut, integers(0, 1, 3, 2, 4, 5)), integers(-1, factor**2 * size), False
    )
