"""Joins the operations of a graph that belong to a product by packed matrices.

The plugin runs each operation by itself, and waking the threads for it takes longer than the
arithmetic of a small operation. So these patterns become one operation:

- y = x + down(activation(gate(norm(x))) * up(norm(x))), also with x = residual + projection(rows)
- linears of the same rows, with the RMS norm of the rows: queries, keys and values; the head.
  Queries and keys are also normalised and turned, head by head
- residual + linear(rows), and residual + mixture of experts

The patterns decide, not the family of the model. A part that does not fit stays as it is.
"""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.nodes import (
    Node,
    is_same,
    only_reader,
    put_in_place,
    read_number,
    reader_names,
    readers,
)
from ouzel.backends.openvino.kernels.attention import replace_attention
from ouzel.backends.openvino.kernels.gates import GELU_TANH, SILU, Gate
from ouzel.backends.openvino.kernels.patterns import (
    NormedRows,
    TurnedRows,
    find_norm,
    find_turned,
    have_equal_heads,
    join_heads,
)
from ouzel.backends.openvino.kernels.products import (
    EXPERTS,
    LINEAR,
    add_residual,
    find_products,
    forbid_wide_rows,
    linear_arrays,
    make_feed_forward,
    make_linear,
)
from ouzel.backends.openvino.kernels.program import join_programs
from ouzel.backends.openvino.library import ov


def copy_fused(graph: ov.Model, *, cache_type: ov.Type | None, may_be_wide: bool) -> ov.Model:
    """Returns a copy with joined operations, and with the kernels' attention over this cache.

    Without `cache_type` attention stays with the runtime. Without `may_be_wide` no rows are
    multiplied in bf16. A graph with nothing for the kernels is returned as it is.
    """
    if cache_type is None and not find_products(graph):
        return graph
    fused = graph.clone()
    if cache_type is not None:
        replace_attention(fused, cache_type)
    fuse_products(fused)
    if not may_be_wide:
        forbid_wide_rows(fused)
    join_programs(fused)
    fused.validate_nodes_and_infer_types()
    return fused


def fuse_products(graph: ov.Model) -> None:
    """Changes the graph in place."""
    for fuse in (_fuse_feed_forward, _fuse_group, _fuse_residual):
        for node in graph.get_ordered_ops():
            if node.get_type_name() == LINEAR:
                fuse(node)
    for node in graph.get_ordered_ops():
        if node.get_type_name() == EXPERTS:
            _fuse_mixture(node)


def _fuse_feed_forward(down: Node) -> None:
    total = only_reader(down.output(0))
    gated = down.input_value(0).get_node()
    if total is None or total.get_type_name() != "Add" or gated.get_type_name() != "Multiply":
        return
    found = _find_gate(gated)
    if found is None or only_reader(gated.output(0)) is None:
        return
    gate, up, activation = found
    normed = find_norm(gate.input_value(0))
    if normed is None or reader_names(gate.input_value(0)) != {gate.get_name(), up.get_name()}:
        return
    x = _other_input(total, down)
    if x is None or not is_same(x, normed.rows):
        return
    rows, projections = [x], []
    if (linear := _find_projection(x, {*normed.nodes, total.get_name()})) is not None:
        rows = [linear.rows, linear.residual]
        projections = [linear_arrays(linear.node)]
    matrices = [*projections, *(linear_arrays(each) for each in (gate, up, down))]
    put_in_place(
        total.output(0), make_feed_forward(rows, normed.norm, matrices, activation).output(0)
    )


@dataclass(frozen=True, slots=True)
class _Projection:
    node: Node
    rows: Node
    residual: Node


def _find_projection(x: Node, allowed: set[str]) -> _Projection | None:
    """Returns the linear of x = residual + linear(rows) if only the nodes `allowed` read x."""
    total = x.get_node()
    if total.get_type_name() != "Add" or not reader_names(x) <= allowed:
        return None
    for index in (1, 0):
        linear, residual = total.input_value(index).get_node(), total.input_value(1 - index)
        if (
            linear.get_type_name() == LINEAR
            and only_reader(linear.output(0)) is not None
            and _is_residual(residual, linear)
        ):
            return _Projection(linear, linear.input_value(0), residual)
    return None


def _find_gate(gated: Node) -> tuple[Node, Node, Gate] | None:
    """Returns the linears of activation(gate) * up, and the gated unit."""
    for index in (0, 1):
        activation = gated.input_value(index).get_node()
        unit = _read_activation(activation)
        if unit is None:
            continue
        gate, up = activation.input_value(0).get_node(), gated.input_value(1 - index).get_node()
        if (
            gate.get_type_name() == up.get_type_name() == LINEAR
            and is_same(gate.input_value(0), up.input_value(0))
            and linear_arrays(gate).scales == linear_arrays(up).scales
            and all(only_reader(each.output(0)) is not None for each in (gate, activation, up))
        ):
            return gate, up, unit
    return None


def _read_activation(node: Node) -> Gate | None:
    match node.get_type_name():
        case "Swish" if (
            node.get_input_size() == 1 or read_number(node.input_value(1).get_node()) == 1
        ):
            return SILU
        case "Gelu" if str(node.get_attributes().get("approximation_mode")).upper() == "TANH":
            return GELU_TANH
        case _:
            return None


def _fuse_group(linear: Node) -> None:
    """Joins a linear with the other linears of the same rows.

    The first linear of the rows joins all; the others then have no readers, and are skipped.
    """
    if not _is_plain(linear) or not readers(linear.output(0)):
        return
    rows = linear.input_value(0)
    group = [node for node in readers(rows) if _can_join(node, linear)]
    turned = _turned_outputs(group)
    normed = _find_norm_for(rows, group)
    if len(group) < 2 and normed is None and not turned:
        return
    # A fixed order of the products: the turned ones first, then the large ones.
    group.sort(key=lambda node: (node.get_name() not in turned, -_num_outputs(node)))
    joined = make_linear(
        rows if normed is None else normed.rows,
        [linear_arrays(node) for node in group],
        norm=None if normed is None else normed.norm,
        heads=join_heads([turned[node.get_name()] for node in group[: len(turned)]]),
    )
    for index, node in enumerate(group):
        name = node.get_name()
        result = turned[name].result if name in turned else node.output(0)
        put_in_place(result, joined.output(index))


def _find_norm_for(rows: Node, group: list[Node]) -> NormedRows | None:
    """Returns the norm that makes the rows if nothing but the group reads them."""
    is_only_reader = reader_names(rows) == {node.get_name() for node in group}
    return find_norm(rows) if is_only_reader else None


def _turned_outputs(group: list[Node]) -> dict[str, TurnedRows]:
    """Returns the turned heads of the linears, by the names of the linears."""
    found = {node.get_name(): find_turned(node.output(0)) for node in group}
    turned = {name: heads for name, heads in found.items() if heads is not None}
    return turned if have_equal_heads(list(turned.values())) else {}


def _can_join(node: Node, linear: Node) -> bool:
    """Tells whether another reader of the same rows can be joined with the linear."""
    return (
        node.get_type_name() == LINEAR
        and bool(readers(node.output(0)))  # replaced nodes have no readers
        and _is_plain(node)
        and is_same(node.input_value(0), linear.input_value(0))
    )


def _fuse_residual(linear: Node) -> None:
    found = _find_residual(linear) if _is_plain(linear) else None
    if found is None:
        return
    total, residual = found
    joined = make_linear(linear.input_value(0), [linear_arrays(linear)], residual=residual)
    put_in_place(total, joined.output(0))


def _fuse_mixture(experts: Node) -> None:
    found = _find_residual(experts)
    if found is not None:
        total, residual = found
        put_in_place(total, add_residual(experts, residual).output(0))


def _find_residual(node: Node) -> tuple[Node, Node] | None:
    """Returns the sum of the node's result and a residual, and the residual."""
    total = only_reader(node.output(0))
    if total is None or total.get_type_name() != "Add":
        return None
    residual = _other_input(total, node)
    if residual is None or not _is_residual(residual, node):
        return None
    return total.output(0), residual


def _num_outputs(linear: Node) -> int:
    return linear_arrays(linear).attributes[0]


def _is_plain(linear: Node) -> bool:
    """Tells whether a linear has one matrix, no norm and no residual."""
    attributes = linear.get_attributes()
    return (
        len(attributes["outputs"]) == 1
        and attributes["epsilon"] < 0
        and not attributes["has_residual"]
    )


def _other_input(node: Node, one: Node) -> Node | None:
    """Returns the input of a node of two inputs that `one` does not make."""
    others = [
        value for value in node.input_values() if value.get_node().get_name() != one.get_name()
    ]
    return others[0] if len(others) == 1 else None


def _is_residual(residual: Node, linear: Node) -> bool:
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
