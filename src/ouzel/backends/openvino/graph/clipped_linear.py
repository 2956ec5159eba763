"""Builds the matrices of Gemma 4's encoders, whose inputs and outputs are clipped.

Reference: transformers, models/gemma4/modeling_gemma4.py.
"""

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.library import ops


def clipped_linear(
    b: VisionBuilder, rows: Node, name: str, num_columns: int, num_rows: int, *, is_clipped: bool
) -> Node:
    """Multiplies the rows by the transpose of [num_rows, num_columns].

    The checkpoint has the lowest and the highest input and output, if `is_clipped`.
    """
    if is_clipped:
        rows = clip(b, rows, f"{name}.input")
    rows = b.linear(rows, f"{name}.linear", num_columns, num_rows, has_bias=False)
    return clip(b, rows, f"{name}.output") if is_clipped else rows


def clip(b: VisionBuilder, rows: Node, name: str) -> Node:
    lowest, highest = (b.constant(b.array(f"{name}_{end}")) for end in ("min", "max"))
    return ops.minimum(ops.maximum(rows, lowest), highest)
