"""Turns squares of a tile's patches into one row each: fewer, wider rows for the language model.

Reference: transformers, models/idefics3/modeling_idefics3.py and
models/internvl/modeling_internvl.py.
"""

from ouzel.backends.openvino.graph.nodes import Node, integers
from ouzel.backends.openvino.library import ops
from ouzel.errors import ModelLoadError


def check_squares(side: int, factor: int, key: str) -> None:
    """Raises ModelLoadError if squares of `factor` patches do not fill a tile of `side` patches.

    `key` is the key of config.json that sets the factor.
    """
    if side % factor:
        raise ModelLoadError(
            f"config.json: the side of the squares by {key} must be a divisor of {side} patches, "
            f"the side of a tile, found {factor}"
        )


def squares(rows: Node, side: int, factor: int, size: int) -> Node:
    """Turns [tiles, side^2, size] into [tiles * (side / factor)^2, factor^2 * size].

    The patches of a square come row by row.
    """
    num = side // factor
    cut = ops.reshape(rows, integers(-1, num, factor, num, factor, size), False)
    return ops.reshape(
        ops.transpose(cut, integers(0, 1, 3, 2, 4, 5)), integers(-1, factor**2 * size), False
    )
