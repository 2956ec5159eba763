"""Joins the operations of a graph that belong to a product by packed matrices.

The plugin runs each operation by itself, and waking the threads for it takes longer than the
arithmetic of a small operation. So these patterns become one operation:

- the feed-forward half of a layer, with the projection and the norms around it (feed_forward.py)
- linears of the same rows, with the RMS norm of the rows: queries, keys and values; the head.
  Queries and keys are also normalised, and turned head by head
- residual + linear(rows), also with a norm of the product, and residual + mixture of experts
- a number that multiplies a product or an embedding: it becomes a part of the matrix

The patterns decide, not the family of the model. A part that does not fit stays as it is.
"""

import numpy as np

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
from ouzel.backends.openvino.kernels.feed_forward import fuse_feed_forward
from ouzel.backends.openvino.kernels.patterns import (
    NormedRows,
    Product,
    TurnedRows,
    find_norm,
    find_turned,
    follow_norm,
    have_equal_heads,
    is_residual,
    join_heads,
    other_input,
)
from ouzel.backends.openvino.kernels.products import (
    EMBEDDING,
    EXPERTS,
    LINEAR,
    add_residual,
    find_products,
    forbid_wide_rows,
    linear_arrays,
    make_linear,
    scale_product,
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
    for node in graph.get_ordered_ops():
        if node.get_type_name() in (LINEAR, EMBEDDING):
            _take_factor(node)
    for fuse in (fuse_feed_forward, _fuse_group, _fuse_residual):
        for node in graph.get_ordered_ops():
            if node.get_type_name() == LINEAR:
                fuse(node)
    for node in graph.get_ordered_ops():
        if node.get_type_name() == EXPERTS:
            _fuse_mixture(node)


def _take_factor(product: Node) -> None:
    scaled = only_reader(product.output(0))
    if scaled is None or scaled.get_type_name() != "Multiply":
        return
    other = other_input(scaled, product)
    factor = None if other is None else read_number(other.get_node())
    shapes = [node.output(0).get_partial_shape() for node in (scaled, product)]
    if factor is not None and shapes[0] == shapes[1]:
        scale_product(product, np.array(factor, np.float32))
        put_in_place(scaled.output(0), product.output(0))


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
    heads = [turned[node.get_name()] for node in group[: len(turned)]]
    joined = make_linear(
        rows if normed is None else normed.rows,
        [linear_arrays(node) for node in group],
        norm=None if normed is None else normed.norm,
        heads=join_heads(heads),
        result_norms=[each.row_norm for each in heads if each.row_norm is not None],
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
    found = {node.get_name(): find_turned(node) for node in group}
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
    if not _is_plain(linear):
        return
    product = follow_norm(linear)
    found = _find_residual(product)
    if found is None:
        return
    total, residual = found
    joined = make_linear(
        linear.input_value(0),
        [linear_arrays(linear)],
        residual=residual,
        result_norms=[] if product.norm is None else [product.norm],
    )
    put_in_place(total, joined.output(0))


def _fuse_mixture(experts: Node) -> None:
    found = _find_residual(Product(experts, experts.output(0), None))
    if found is not None:
        total, residual = found
        put_in_place(total, add_residual(experts, residual).output(0))


def _find_residual(product: Product) -> tuple[Node, Node] | None:
    """Returns the sum of the product, or of its norm, and a residual, and the residual."""
    total = only_reader(product.value)
    if total is None or total.get_type_name() != "Add":
        return None
    residual = other_input(total, product.value.get_node())
    if residual is None or not is_residual(residual, product.node):
        return None
    return total.output(0), residual


def _num_outputs(linear: Node) -> int:
    return linear_arrays(linear).attributes[0]


def _is_plain(linear: Node) -> bool:
    """Tells whether a linear has one matrix, no norms and no residual."""
    attributes = linear.get_attributes()
    return (
        len(attributes["outputs"]) == 1
        and attributes["epsilon"] < 0
        and not attributes["num_normed"]
        and not attributes["has_residual"]
    )
