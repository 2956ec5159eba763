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
from ouzel.backends.openvino.kernels.products import RowNorm, TurnedHeads, Turning
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
    """Rows of heads that are turned or normalised; they have at most one of the two norms."""

    result: Node  # the turned rows [T, heads * size]
    size: int
    row_norm: RowNorm | None
    head_norm: RowNorm | None
    turning: Turning | None


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
    """Returns the heads if a product [T, heads * size] is only made into such heads."""
    rows, row_norm = _follow_norm(product.output(0))
    in_heads = only_reader(rows)
    if in_heads is None or in_heads.get_type_name() != "Reshape":
        return None
    size = _head_size(in_heads.output(0))
    heads, head_norm = _follow_norm(in_heads.output(0))
    turned, turning = _follow_rotation(heads)
    merged = only_reader(turned)
    if not size or merged is None or not _is_merged(merged, rows):
        return None
    if row_norm is not None and head_norm is not None:
        return None
    return TurnedRows(merged.output(0), size, row_norm, head_norm, turning)


def _head_size(heads: Node) -> int:
    """Returns the size of heads [T, heads, size], 0 if the kernels cannot turn them."""
    shape = heads.get_partial_shape()
    if shape.rank.get_length() != 3 or not shape[2].is_static:
        return 0
    size: int = shape[2].get_length()
    return 0 if size % BLOCK_ROWS else size


def join_heads(turned: Sequence[TurnedRows]) -> TurnedHeads | None:
    """Returns the heads of several products; None if they are neither turned nor normalised."""
    norms = tuple(each.head_norm for each in turned if each.head_norm is not None)
    if not norms and not any(each.turning for each in turned):
        return None
    return TurnedHeads(turned[0].size, turned[0].turning, norms, len(turned))


def have_equal_heads(turned: Sequence[TurnedRows]) -> bool:
    """Tells whether one operation can turn these heads."""
    return all(
        each.size == turned[0].size
        and _is_same_turning(each.turning, turned[0].turning)
        and _epsilon(each.head_norm) == _epsilon(turned[0].head_norm)
        and _epsilon(each.row_norm) == _epsilon(turned[0].row_norm)
        for each in turned
    )


def _is_same_turning(one: Turning | None, other: Turning | None) -> bool:
    if one is None or other is None:
        return one is other
    return is_same(one.cos, other.cos) and is_same(one.sin, other.sin)


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


def _follow_rotation(heads: Node) -> tuple[Node, Turning | None]:
    """Returns the turned heads if a rotation alone reads the heads; else the heads."""
    slices = _slices(heads)
    if len(slices) != 2 or len(readers(heads)) != 2:
        found = _find_rotation(heads)
        return (heads, None) if found is None else found
    first, rest = sorted(slices, key=_slice_begin)
    found = _find_rotation(first.output(0))
    if found is None or (_slice_begin(first), _slice_begin(rest)) != (0, found[1].num_dims):
        return heads, None
    turned, turning = found
    both = _find_joined(turned, rest.output(0))
    is_whole = both is not None and both.get_partial_shape() == heads.get_partial_shape()
    return (both, turning) if is_whole else (heads, None)


def _find_joined(first: Node, second: Node) -> Node | None:
    """Returns the result of a Concat of two values if it alone reads the first one."""
    both = only_reader(first)
    if both is None or both.get_type_name() != "Concat" or both.get_input_size() != 2:
        return None
    is_right = is_same(both.input_value(0), first) and is_same(both.input_value(1), second)
    return both.output(0) if is_right else None


def _find_rotation(heads: Node) -> tuple[Node, Turning] | None:
    """Returns the sum heads * cos + concat(-second, first) * sin if it alone reads the heads."""
    products = [node for node in readers(heads) if node.get_type_name() == "Multiply"]
    if len(products) != 1 or len(_slices(heads)) != 2 or len(readers(heads)) != 3:
        return None
    total = only_reader(products[0].output(0))
    if total is None or total.get_type_name() != "Add":
        return None
    chain = follow(total, ("Add", 1), ("Multiply", 0))
    if chain is None or not is_same(total.input_value(0), products[0].output(0)):
        return None
    _, turned, halves = chain
    turning = _read_turning(products[0].input_value(1), turned.input_value(1))
    if turning is None or heads.get_partial_shape()[-1] != turning.num_dims:
        return None
    return (total.output(0), turning) if _are_halves(halves, heads, turning.num_dims) else None


def _are_halves(both: Node, heads: Node, num_dims: int) -> bool:
    """Tells whether a node is concat(-second, first) of the halves of the heads."""
    chain = follow(both, ("Concat", 0), ("Multiply", 0))
    if chain is None:
        return False
    _, negated, second = chain
    first = both.input_value(1).get_node()
    return (
        {first.get_name(), second.get_name()} == {node.get_name() for node in _slices(heads)}
        and read_number(negated.input_value(1).get_node()) == -1
        and (_slice_begin(first), _slice_begin(second)) == (0, num_dims // 2)
    )


def _slices(heads: Node) -> list[Node]:
    return [node for node in readers(heads) if node.get_type_name() == "Slice"]


def _slice_begin(node: Node) -> float:
    """Returns the begin of a slice of the heads' last axis, -1 if it is no constant."""
    begin = read_number(node.input_value(1).get_node())
    return -1 if begin is None else begin


def _read_turning(doubled_cos: Node, doubled_sin: Node) -> Turning | None:
    """Returns the rotation by these angles, [T, 1, num_dims]."""
    cos, sin = (_find_angles(each) for each in (doubled_cos, doubled_sin))
    columns = doubled_cos.get_partial_shape()[-1]
    if cos is None or sin is None or not columns.is_static:
        return None
    return Turning(columns.get_length(), cos, sin)


def _find_angles(doubled: Node) -> Node | None:
    """Returns the angles [T, num_dims / 2] whose columns are doubled in [T, 1, num_dims]."""
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
