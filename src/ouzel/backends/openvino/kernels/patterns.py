"""Finds parts of a graph that one operation of the kernels can compute: norms, turned heads, sums.

The functions look at the nodes that graph/norms.py and graph/rotation.py make.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.backends.openvino.graph.nodes import (
    Node,
    is_same,
    only_reader,
    read_number,
    reader_names,
    readers,
)
from ouzel.backends.openvino.kernels.products import RowNorm, TurnedHeads
from ouzel.backends.openvino.weights.cells import BLOCK_ROWS


@dataclass(frozen=True, slots=True)
class NormedRows:
    rows: Node
    norm: RowNorm
    nodes: frozenset[str]  # names of the operations of the norm


@dataclass(frozen=True, slots=True)
class Product:
    """A product by a matrix, with the norm that alone reads it, if there is one."""

    node: Node
    value: Node  # the product, or its norm
    norm: RowNorm | None


@dataclass(frozen=True, slots=True)
class TurnedRows:
    """Rows of heads that are turned; the whole rows or the heads may be normalised before."""

    result: Node  # the turned rows [T, heads * size]
    row_norm: RowNorm | None
    size: int
    cos: Node  # [T, size / 2]
    sin: Node
    head_norm: RowNorm | None


def find_norm(rows: Node) -> NormedRows | None:
    """Returns the RMS norm that makes the rows."""
    scaled = rows.get_node()
    if scaled.get_type_name() != "Multiply":
        return None
    normalised, weight = scaled.input_value(0).get_node(), scaled.input_value(1)
    chain = follow(
        normalised, ("Multiply", 1), ("Divide", 1), ("Sqrt", 0), ("Add", 0), ("ReduceMean", 0)
    )
    if chain is None or weight.get_node().get_type_name() != "Constant":
        return None
    *_, total, _mean, power = chain
    x, epsilon = normalised.input_value(0), read_number(total.input_value(1).get_node())
    if power.get_type_name() != "Power" or not is_same(power.input_value(0), x):
        return None
    columns = x.get_partial_shape()[-1]
    is_row_norm = columns.is_static and list(weight.get_shape()) == [columns.get_length()]
    if not is_row_norm or epsilon is None or read_number(power.input_value(1).get_node()) != 2:
        return None
    names = frozenset(node.get_name() for node in (scaled, *chain))
    return NormedRows(x, RowNorm(weight, epsilon), names)


def follow_norm(product: Node) -> Product:
    """Describes a product whose node has one output."""
    value, norm = _follow_norm(product.output(0))
    return Product(product, value, norm)


def find_turned(product: Node) -> TurnedRows | None:
    """Returns the turned heads if a product [T, heads * size] is only made into turned heads."""
    rows, row_norm = _follow_norm(product.output(0))
    in_heads = only_reader(rows)
    if in_heads is None or in_heads.get_type_name() != "Reshape":
        return None
    size = _head_size(in_heads.output(0))
    heads, head_norm = _follow_norm(in_heads.output(0))
    turned = _find_rotation(heads, size)
    merged = None if turned is None else only_reader(turned.output(0))
    if turned is None or merged is None or not _is_merged(merged, rows):
        return None
    if row_norm is not None and head_norm is not None:
        return None
    cos, sin = (
        _find_angles(turned.input_value(index).get_node().input_value(1)) for index in (0, 1)
    )
    if cos is None or sin is None:
        return None
    return TurnedRows(merged.output(0), row_norm, size, cos, sin, head_norm)


def _head_size(heads: Node) -> int:
    """Returns the size of heads [T, heads, size], 0 if the kernels cannot turn them."""
    shape = heads.get_partial_shape()
    if shape.rank.get_length() != 3 or not shape[2].is_static:
        return 0
    size: int = shape[2].get_length()
    return 0 if size % BLOCK_ROWS else size


def join_heads(turned: Sequence[TurnedRows]) -> TurnedHeads | None:
    """Returns the heads of several products; None if there are none."""
    if not turned:
        return None
    norms = tuple(each.head_norm for each in turned if each.head_norm is not None)
    first = turned[0]
    return TurnedHeads(first.size, first.cos, first.sin, norms, len(turned))


def have_equal_heads(turned: Sequence[TurnedRows]) -> bool:
    """Tells whether one operation can turn these heads."""
    return all(
        each.size == turned[0].size
        and is_same(each.cos, turned[0].cos)
        and is_same(each.sin, turned[0].sin)
        and _epsilon(each.head_norm) == _epsilon(turned[0].head_norm)
        and _epsilon(each.row_norm) == _epsilon(turned[0].row_norm)
        for each in turned
    )


def _epsilon(norm: RowNorm | None) -> float | None:
    return None if norm is None else norm.epsilon


def _follow_norm(rows: Node) -> tuple[Node, RowNorm | None]:
    """Returns the normalised rows and the norm if a norm alone reads the rows; else the rows."""
    for reader in readers(rows):
        scaled = only_reader(reader.output(0)) if reader.get_type_name() == "Multiply" else None
        if scaled is None:
            continue
        found = find_norm(scaled.output(0))
        if found is not None and is_same(found.rows, rows) and reader_names(rows) <= found.nodes:
            return scaled.output(0), found.norm
    return rows, None


def _find_rotation(heads: Node, size: int) -> Node | None:
    """Returns the sum heads * cos + concat(-second, first) * sin, if it alone reads the heads."""
    if not size:
        return None
    products = [node for node in readers(heads) if node.get_type_name() == "Multiply"]
    slices = [node for node in readers(heads) if node.get_type_name() == "Slice"]
    if len(products) != 1 or len(slices) != 2 or len(readers(heads)) != 3:
        return None
    total = only_reader(products[0].output(0))
    if total is None or total.get_type_name() != "Add":
        return None
    chain = follow(total, ("Add", 1), ("Multiply", 0), ("Concat", 0), ("Multiply", 0))
    if chain is None or not is_same(total.input_value(0), products[0].output(0)):
        return None
    _, _, both, negated, second = chain
    first = both.input_value(1).get_node()
    is_turned = (
        read_number(negated.input_value(1).get_node()) == -1
        and _slice_begin(second, heads) == size // 2
        and _slice_begin(first, heads) == 0
    )
    return total if is_turned else None


def _slice_begin(node: Node, heads: Node) -> float | None:
    """Returns the begin of a slice of the heads' last axis."""
    if node.get_type_name() != "Slice" or not is_same(node.input_value(0), heads):
        return None
    return read_number(node.input_value(1).get_node())


def _find_angles(doubled: Node) -> Node | None:
    """Returns the angles [T, size / 2] whose columns are doubled in [T, 1, size]."""
    chain = follow(doubled.get_node(), ("Unsqueeze", 0), ("Concat", 0))
    if chain is None:
        return None
    both = chain[1]
    halves = both.input_values()
    return halves[0] if len(halves) == 2 and is_same(*halves) else None


def _is_merged(merged: Node, rows: Node) -> bool:
    """Tells whether a node brings heads back to the shape of the rows."""
    has_shape = merged.output(0).get_partial_shape() == rows.get_partial_shape()
    return bool(merged.get_type_name() == "Reshape" and has_shape)


def follow(node: Node, *steps: tuple[str, int]) -> list[Node] | None:
    """Returns the nodes from `node` on along the inputs; None if a node has another type."""
    found = [node]
    for name, index in steps:
        if found[-1].get_type_name() != name:
            return None
        found.append(found[-1].input_value(index).get_node())
    return found


def other_input(node: Node, one: Node) -> Node | None:
    """Returns the input of a node of two inputs that `one` does not make."""
    others = [
        value for value in node.input_values() if value.get_node().get_name() != one.get_name()
    ]
    return others[0] if len(others) == 1 else None


def is_residual(residual: Node, linear: Node) -> bool:
    """Tells whether the residual is as large as the product: only the rows may be dynamic.

    Rows that are gathered from computed rows, like the products of adapters, may be one row for
    all, unless the rows of the linear are gathered by the same numbers. Products of adapters that
    have several parts end in a Reshape.
    """
    node = residual.get_node()
    if node.get_type_name() in ("Constant", "Reshape"):
        return False
    if node.get_type_name() == "Gather" and node.input_value(0).get_partial_shape().is_dynamic:
        rows = linear.input_value(0).get_node()
        if rows.get_type_name() != "Gather" or not is_same(
            rows.input_value(1), node.input_value(1)
        ):
            return False
    return bool(residual.get_partial_shape() == linear.output(0).get_partial_shape())
