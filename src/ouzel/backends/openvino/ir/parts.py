"""Cuts a vision encoder's graph into parts of a few layers, so that other steps can run in between.

A graph can be cut at a value through which everything passes that was computed before. A part lies
between two cuts and takes the rows of the part before it. Values that depend on no matrix product
are cheap: each part computes its own copy.
"""

from collections.abc import Iterator

import numpy as np

from ouzel.backends.openvino.graph.nodes import Node, put_in_place
from ouzel.backends.openvino.graph.vision import FEATURES, LAYERS_PER_PART, NEXT_ROWS, ROWS
from ouzel.backends.openvino.library import ops, ov

ATTENTION = "ScaledDotProductAttention"
PRODUCTS = {"Convolution", "MatMul", ATTENTION}


def cut(graph: ov.Model) -> list[ov.Model]:
    """Cuts a graph whose only output is the features; it changes the graph.

    Returns one part if the graph cannot be cut.
    """
    parts = []
    write_known_sizes(graph)
    for border in borders(graph):
        end = ops.result(border)
        entering = ops.parameter(border.get_partial_shape(), border.get_element_type(), name=ROWS)
        entering.output(0).set_names({ROWS})
        for reader in border.get_target_inputs():
            if reader.get_node().get_type_name() != "Result":
                reader.replace_source_output(entering.output(0))
        parts.append(copy_part(end, NEXT_ROWS))
    return [*parts, copy_part(graph.get_results()[0], FEATURES)]


def write_known_sizes(graph: ov.Model) -> None:
    """Writes sizes that never change into the graph as constants.

    Otherwise later layers would take these sizes from a tensor of an earlier part.
    """
    for node in graph.get_ordered_ops():
        if node.get_type_name() != "Gather":
            continue
        source, index = (node.input_value(number).get_node() for number in range(2))
        if (source.get_type_name(), index.get_type_name()) != ("ShapeOf", "Constant"):
            continue
        sizes = list(source.input_value(0).get_partial_shape())
        gathered = [sizes[number] for number in index.get_data().reshape(-1).tolist()]
        if all(size.is_static for size in gathered):
            lengths = np.array([size.get_length() for size in gathered])
            numbers = lengths.reshape(index.get_data().shape)
            put_in_place(node.output(0), ops.constant(numbers, node.get_output_element_type(0)))


def borders(graph: ov.Model) -> list[Node]:
    """Returns the values to cut at: the first possible one after every few layers."""
    num_layers = sum(node.get_type_name() == ATTENTION for node in graph.get_ops())
    found: dict[int, Node] = {}
    for num_before, value in narrow_places(graph):
        if 0 < num_before < num_layers and num_before % LAYERS_PER_PART == 0:
            found.setdefault(num_before, value)
    return list(found.values())


def narrow_places(graph: ov.Model) -> Iterator[tuple[int, Node]]:
    """Yields each value through which everything passes, with the number of layers before it.

    Later nodes take nothing else that was computed before.
    """
    order = find_after_products(graph)
    last_readers = {
        source: number
        for number, node in enumerate(order)
        for source in map(make_key, node.input_values())
    }
    waiting: dict[tuple[str, int], Node] = {}  # computed values with readers to come
    num_layers = 0
    for number, node in enumerate(order):
        waiting |= {make_key(value): value for value in node.outputs()}
        waiting = {
            key: value for key, value in waiting.items() if last_readers.get(key, -1) > number
        }
        num_layers += node.get_type_name() == ATTENTION
        if len(waiting) == 1:
            yield num_layers, *waiting.values()


def find_after_products(graph: ov.Model) -> list[Node]:
    """Returns, in order, the products of values that come from inputs, and all values computed from
    them.
    """
    from_inputs, found = set[str](), dict[str, Node]()
    for node in graph.get_ordered_ops():
        sources = {value.get_node().get_name() for value in node.input_values()}
        if node.get_type_name() == "Parameter" or not sources.isdisjoint(from_inputs):
            from_inputs.add(node.get_name())
            if node.get_type_name() in PRODUCTS or not sources.isdisjoint(found):
                found[node.get_name()] = node
    return list(found.values())


def make_key(value: Node) -> tuple[str, int]:
    """Returns the name of the value's node and its index, which identify the value."""
    return value.get_node().get_name(), value.get_index()


def copy_part(result: Node, name: str) -> ov.Model:
    """Returns a copy of the graph that computes the result.

    Parts share the memory of constants, and no nodes.
    """
    result.output(0).set_names({name})
    return ov.Model([result], find_parameters(result), "vision").clone()


def find_parameters(result: Node) -> list[Node]:
    """Returns the inputs on which the result depends."""
    found, seen, left = [], set[str](), [result]
    while left:
        node = left.pop()
        if node.get_name() in seen:
            continue
        seen.add(node.get_name())
        if node.get_type_name() == "Parameter":
            found.append(node)
        left += (value.get_node() for value in node.input_values())
    return found
