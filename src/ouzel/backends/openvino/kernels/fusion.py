"""Joins the operations of a graph that belong to a product by packed matrices.

The plugin runs each operation by itself, and waking the threads for it takes longer than the
arithmetic of a small operation. So these patterns become one operation:

- y = x + down(activation(gate(norm(x))) * up(norm(x))), also with x = residual + projection(rows)
- linears of the same rows, with the RMS norm of the rows: queries, keys and values; the head
- residual + linear(rows)

The patterns decide, not the family of the model. A part that does not fit stays as it is.
"""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.kernels.products import (
    LINEAR,
    RowNorm,
    linear_arrays,
    make_feed_forward,
    make_linear,
)
from ouzel.backends.openvino.library import ov

# a and b of the activation x * sigmoid(x * (a + b * x^2)); gelu with tanh is
# 0.5 x (1 + tanh(z)) = x sigmoid(2 z) with z = sqrt(2 / pi) (x + 0.044715 x^3)
_SILU = (1.0, 0.0)
_GELU_TANH = (1.5957691216057308, 0.0713548162726009)


@dataclass(frozen=True, slots=True)
class _NormedRows:
    rows: Node
    norm: RowNorm
    nodes: frozenset[str]  # names of the operations of the norm


def fuse_products(graph: ov.Model) -> None:
    """Changes the graph in place."""
    for fuse in (_fuse_feed_forward, _fuse_group, _fuse_residual):
        for node in graph.get_ordered_ops():
            if node.get_type_name() == LINEAR:
                fuse(node)


def _fuse_feed_forward(down: Node) -> None:
    total = _only_reader(down.output(0))
    gated = down.input_value(0).get_node()
    if total is None or total.get_type_name() != "Add" or gated.get_type_name() != "Multiply":
        return
    found = _find_gate(gated)
    if found is None or _only_reader(gated.output(0)) is None:
        return
    gate, up, activation = found
    normed = _find_norm(gate.input_value(0))
    if normed is None or _reader_names(gate.input_value(0)) != {gate.get_name(), up.get_name()}:
        return
    x = _other_input(total, down)
    if x is None or not _is_same(x, normed.rows):
        return
    rows, projections = [x], []
    if (linear := _find_projection(x, {*normed.nodes, total.get_name()})) is not None:
        rows = [linear.rows, linear.residual]
        projections = [linear_arrays(linear.node)]
    matrices = [*projections, *(linear_arrays(each) for each in (gate, up, down))]
    _replace(total.output(0), make_feed_forward(rows, normed.norm, matrices, activation).output(0))


@dataclass(frozen=True, slots=True)
class _Projection:
    node: Node
    rows: Node
    residual: Node


def _find_projection(x: Node, readers: set[str]) -> _Projection | None:
    """Returns the linear of x = residual + linear(rows) if only `readers` read x."""
    total = x.get_node()
    if total.get_type_name() != "Add" or not _reader_names(x) <= readers:
        return None
    for index in (1, 0):
        linear, residual = total.input_value(index).get_node(), total.input_value(1 - index)
        if (
            linear.get_type_name() == LINEAR
            and _only_reader(linear.output(0)) is not None
            and _has_shape(residual, linear.output(0))
        ):
            return _Projection(linear, linear.input_value(0), residual)
    return None


def _find_gate(gated: Node) -> tuple[Node, Node, tuple[float, float]] | None:
    """Returns the linears of activation(gate) * up, and the numbers of the activation."""
    for index in (0, 1):
        activation = gated.input_value(index).get_node()
        numbers = _read_activation(activation)
        if numbers is None:
            continue
        gate, up = activation.input_value(0).get_node(), gated.input_value(1 - index).get_node()
        if (
            gate.get_type_name() == up.get_type_name() == LINEAR
            and _is_same(gate.input_value(0), up.input_value(0))
            and linear_arrays(gate).scales == linear_arrays(up).scales
            and all(_only_reader(each.output(0)) is not None for each in (gate, activation, up))
        ):
            return gate, up, numbers
    return None


def _read_activation(node: Node) -> tuple[float, float] | None:
    match node.get_type_name():
        case "Swish" if node.get_input_size() == 1 or _number(node.input_value(1).get_node()) == 1:
            return _SILU
        case "Gelu" if str(node.get_attributes().get("approximation_mode")).upper() == "TANH":
            return _GELU_TANH
        case _:
            return None


def _fuse_group(linear: Node) -> None:
    """Joins the linears of the same rows; the first of them, in the order of the graph, does."""
    rows = linear.input_value(0)
    group = [
        node
        for node in _readers(rows)
        if node.get_type_name() == LINEAR
        and _is_plain(node)
        and _is_same(node.input_value(0), rows)
    ]
    arrays = {node.get_name(): linear_arrays(node) for node in group}
    scales = arrays[linear.get_name()].scales if linear.get_name() in arrays else 0
    group = [node for node in group if arrays[node.get_name()].scales == scales]
    group.sort(key=lambda node: -arrays[node.get_name()].attributes[0])
    normed = _find_norm(rows)
    if normed is not None and _reader_names(rows) != {node.get_name() for node in group}:
        normed = None
    if len(group) < 2 and normed is None:
        return
    joined = make_linear(
        rows if normed is None else normed.rows,
        [arrays[node.get_name()] for node in group],
        norm=None if normed is None else normed.norm,
    )
    for index, node in enumerate(group):
        _replace(node.output(0), joined.output(index))


def _fuse_residual(linear: Node) -> None:
    if not _is_plain(linear):
        return
    total = _only_reader(linear.output(0))
    if total is None or total.get_type_name() != "Add":
        return
    residual = _other_input(total, linear)
    if residual is not None and _has_shape(residual, linear.output(0)):
        arrays = [linear_arrays(linear)]
        joined = make_linear(linear.input_value(0), arrays, residual=residual)
        _replace(total.output(0), joined.output(0))


def _is_plain(linear: Node) -> bool:
    """Tells whether a linear has one matrix, no norm and no residual."""
    attributes = linear.get_attributes()
    return (
        len(attributes["outputs"]) == 1
        and attributes["epsilon"] < 0
        and not attributes["has_residual"]
    )


def _find_norm(rows: Node) -> _NormedRows | None:
    """Returns the RMS norm that makes the rows, as graph/norms.py builds it."""
    scaled = rows.get_node()
    if scaled.get_type_name() != "Multiply":
        return None
    normalised, weight = scaled.input_value(0).get_node(), scaled.input_value(1)
    chain = _follow(
        normalised, ("Multiply", 1), ("Divide", 1), ("Sqrt", 0), ("Add", 0), ("ReduceMean", 0)
    )
    if chain is None or weight.get_node().get_type_name() != "Constant":
        return None
    *_, total, _mean, power = chain
    x, epsilon = normalised.input_value(0), total.input_value(1).get_node()
    exponent = power.input_value(1).get_node() if power.get_type_name() == "Power" else None
    if exponent is None or not _is_same(power.input_value(0), x):
        return None
    columns = x.get_partial_shape()[-1]
    is_row_norm = columns.is_static and list(weight.get_shape()) == [columns.get_length()]
    if not is_row_norm or _number(exponent) != 2 or _number(epsilon) is None:
        return None
    names = frozenset(node.get_name() for node in (scaled, *chain))
    return _NormedRows(x, RowNorm(weight, float(_number(epsilon) or 0)), names)


def _follow(node: Node, *steps: tuple[str, int]) -> list[Node] | None:
    """Returns the nodes from `node` on along the inputs; None if a node has another type."""
    found = [node]
    for name, index in steps:
        if found[-1].get_type_name() != name:
            return None
        found.append(found[-1].input_value(index).get_node())
    return found


def _number(node: Node) -> float | None:
    """Returns the only element of a constant."""
    if node.get_type_name() != "Constant" or node.get_output_size() != 1:
        return None
    values = node.get_data().reshape(-1)
    return float(values[0]) if values.size == 1 else None


def _readers(value: Node) -> list[Node]:
    return [each.get_node() for each in value.get_target_inputs()]


def _reader_names(value: Node) -> set[str]:
    return {node.get_name() for node in _readers(value)}


def _only_reader(value: Node) -> Node | None:
    readers = _readers(value)
    return readers[0] if len(readers) == 1 else None


def _other_input(node: Node, one: Node) -> Node | None:
    """Returns the input of a node of two inputs that `one` does not make."""
    others = [
        value for value in node.input_values() if value.get_node().get_name() != one.get_name()
    ]
    return others[0] if len(others) == 1 else None


def _is_same(one: Node, other: Node) -> bool:
    return (one.get_node().get_name(), one.get_index()) == (
        other.get_node().get_name(),
        other.get_index(),
    )


def _has_shape(residual: Node, product: Node) -> bool:
    """Tells whether the residual is as large as the product: only the rows may be dynamic."""
    shapes = [value.get_partial_shape() for value in (residual, product)]
    return residual.get_node().get_type_name() != "Constant" and shapes[0] == shapes[1]


def _replace(old: Node, new: Node) -> None:
    for reader in list(old.get_target_inputs()):
        reader.replace_source_output(new)


__all__ = ["fuse_products"]
