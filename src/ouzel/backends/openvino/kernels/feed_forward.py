"""Joins the operations of the feed-forward half of a layer into one.

y = x + norm(down(activation(gate(norm(x))) * up(norm(x)))), also with x = residual +
norm(projection(rows)). Each of the three norms may be absent: most families have only the one
before `gate` and `up`, OLMo 2 and EXAONE 4 only the others, Gemma 3 and GLM-4 all.
"""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.nodes import (
    Node,
    is_same,
    only_reader,
    put_in_place,
    read_number,
    reader_names,
)
from ouzel.backends.openvino.kernels.gates import GELU_TANH, SILU, Gate
from ouzel.backends.openvino.kernels.patterns import (
    Product,
    find_norm,
    follow_norm,
    is_residual,
    other_input,
)
from ouzel.backends.openvino.kernels.products import (
    LINEAR,
    HalfNorms,
    RowNorm,
    linear_arrays,
    make_feed_forward,
)


def fuse_feed_forward(down: Node) -> None:
    """Changes the graph in place if the linear is the last one of a feed-forward half."""
    result = follow_norm(down)
    total = only_reader(result.value)
    gated = down.input_value(0).get_node()
    if total is None or total.get_type_name() != "Add" or gated.get_type_name() != "Multiply":
        return
    unit = _find_unit(gated)
    x = other_input(total, result.value.get_node())
    if unit is None or x is None or only_reader(gated.output(0)) is None:
        return
    before = _find_norm_before(unit, x)
    if before is None:
        return
    rows, projected = [x], None
    linears = [unit.gate, unit.up, down]
    if (found := _find_projection(x, {*before.readers, total.get_name()})) is not None:
        projected = found.product
        rows = [projected.node.input_value(0), found.residual]
        linears.insert(0, projected.node)
    norms = HalfNorms(None if projected is None else projected.norm, before.norm, result.norm)
    arrays = [linear_arrays(each) for each in linears]
    put_in_place(total.output(0), make_feed_forward(rows, norms, arrays, unit.function).output(0))


@dataclass(frozen=True, slots=True)
class _Unit:
    gate: Node  # linears
    up: Node
    function: Gate


@dataclass(frozen=True, slots=True)
class _NormBefore:
    norm: RowNorm | None
    readers: frozenset[str]  # names of the nodes that read x for the gated unit


@dataclass(frozen=True, slots=True)
class _Projection:
    product: Product
    residual: Node


def _find_norm_before(unit: _Unit, x: Node) -> _NormBefore | None:
    """Returns the norm between x and the linears; None if they take other rows."""
    rows = unit.gate.input_value(0)
    linears = frozenset((unit.gate.get_name(), unit.up.get_name()))
    if is_same(rows, x):
        return _NormBefore(None, linears)
    normed = find_norm(rows)
    if normed is None or not is_same(normed.rows, x) or reader_names(rows) != linears:
        return None
    return _NormBefore(normed.norm, normed.nodes)


def _find_projection(x: Node, allowed: set[str]) -> _Projection | None:
    """Finds the linear of x = residual + norm(linear(rows)) if only the nodes `allowed` read x."""
    total = x.get_node()
    if total.get_type_name() != "Add" or not reader_names(x) <= allowed:
        return None
    for index in (1, 0):
        product, residual = _find_product(total.input_value(index)), total.input_value(1 - index)
        if (
            product is not None
            and only_reader(product.value) is not None
            and is_residual(residual, product.node)
        ):
            return _Projection(product, residual)
    return None


def _find_product(value: Node) -> Product | None:
    """Returns the linear that makes the value, perhaps with a norm after it."""
    if value.get_node().get_type_name() == LINEAR:
        return Product(value.get_node(), value, None)
    normed = find_norm(value)
    if normed is None or normed.rows.get_node().get_type_name() != LINEAR:
        return None
    found = follow_norm(normed.rows.get_node())
    return found if is_same(found.value, value) else None


def _find_unit(gated: Node) -> _Unit | None:
    """Returns the linears of activation(gate) * up, and the gated unit."""
    for index in (0, 1):
        activation = gated.input_value(index).get_node()
        function = _read_activation(activation)
        if function is None:
            continue
        gate, up = activation.input_value(0).get_node(), gated.input_value(1 - index).get_node()
        if (
            gate.get_type_name() == up.get_type_name() == LINEAR
            and is_same(gate.input_value(0), up.input_value(0))
            and linear_arrays(gate).scales == linear_arrays(up).scales
            and all(only_reader(each.output(0)) is not None for each in (gate, activation, up))
        ):
            return _Unit(gate, up, function)
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
