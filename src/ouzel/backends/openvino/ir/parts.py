"""A vision encoder's graph is cut into parts of a few layers each, so that steps of the language
model may go between.

It may be cut at a value through which all goes that was computed before: between two such cuts lies
a part, which takes the rows of the one before. What comes behind no product is cheap: each part
makes it for itself.
"""

from collections.abc import Iterator

import numpy as np

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.vision import FEATURES, LAYERS_PER_PART, NEXT_ROWS, ROWS
from ouzel.backends.openvino.ir.graphs import put_in_place
from ouzel.backends.openvino.library import ops, ov

ATTENTION = "ScaledDotProductAttention"
PRODUCTS = {"Convolution", "MatMul", ATTENTION}


def cut(graph: ov.Model) -> list[ov.Model]:
    """Takes a graph whose only output is the features, and changes it. One that cannot be cut is
    one part.
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
        parts.append(part_of(end, NEXT_ROWS))
    return [*parts, part_of(graph.get_results()[0], FEATURES)]


def write_known_sizes(graph: ov.Model) -> None:
    """Puts sizes that are always the same into the graph as numbers: else layers take them from the
    first of them.
    """
    for node in graph.get_ordered_ops():
        if node.get_type_name() != "Gather":
            continue
        source, index = (node.input_value(number).get_node() for number in range(2))
        if (source.get_type_name(), index.get_type_name()) != ("ShapeOf", "Constant"):
            continue
        sizes = list(source.input_value(0).get_partial_shape())
        wanted = [sizes[number] for number in index.get_data().reshape(-1).tolist()]
        if all(size.is_static for size in wanted):
            numbers = np.array([size.get_length() for size in wanted]).reshape(
                index.get_data().shape
            )
            put_in_place(node.output(0), ops.constant(numbers, node.get_output_element_type(0)))


def borders(graph: ov.Model) -> list[Node]:
    """Returns the first value behind every few layers at which the graph may be cut."""
    num_layers = sum(node.get_type_name() == ATTENTION for node in graph.get_ops())
    found: dict[int, Node] = {}
    for num_before, value in narrow_places(graph):
        if 0 < num_before < num_layers and num_before % LAYERS_PER_PART == 0:
            found.setdefault(num_before, value)
    return list(found.values())


def narrow_places(graph: ov.Model) -> Iterator[tuple[int, Node]]:
    """Gives values that are all that later nodes take of what was computed, and how many layers are
    before them.
    """
    order = behind_products(graph)
    last_readers = {
        source: number
        for number, node in enumerate(order)
        for source in map(key_of, node.input_values())
    }
    waiting: dict[tuple[str, int], Node] = {}  # computed values with readers to come
    num_layers = 0
    for number, node in enumerate(order):
        waiting |= {key_of(value): value for value in node.outputs()}
        waiting = {
            key: value for key, value in waiting.items() if last_readers.get(key, -1) > number
        }
        num_layers += node.get_type_name() == ATTENTION
        if len(waiting) == 1:
            yield num_layers, *waiting.values()


def behind_products(graph: ov.Model) -> list[Node]:
    """Returns, in order, products of what comes from inputs, and all that is computed from them."""
    from_inputs, found = set[str](), dict[str, Node]()
    for node in graph.get_ordered_ops():
        sources = {value.get_node().get_name() for value in node.input_values()}
        if node.get_type_name() == "Parameter" or not sources.isdisjoint(from_inputs):
            from_inputs.add(node.get_name())
            if node.get_type_name() in PRODUCTS or not sources.isdisjoint(found):
                found[node.get_name()] = node
    return list(found.values())


def key_of(value: Node) -> tuple[str, int]:
    return value.get_node().get_name(), value.get_index()


def part_of(result: Node, name: str) -> ov.Model:
    """Returns a copy of what the result is computed from: parts have no nodes in common, but for
    constants' memory.
    """
    result.output(0).set_names({name})
    return ov.Model([result], parameters_of(result), "vision").clone()


def parameters_of(result: Node) -> list[Node]:
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
