"""Moves factors of products with weights to the input of the product.

Granite and MiniCPM multiply the output of each half of a layer by a number, and Cohere2 and Gemma 4
their logits. OpenVINO's plugin would multiply the weights by the number when it compiles, and keep
them in bf16 or f32 instead of integers.
"""

from ouzel.backends.openvino.graph.nodes import find_constant, only_reader, put_in_place
from ouzel.backends.openvino.library import ops, ov


def move_factors(graph: ov.Model) -> None:
    """Changes the graph in place: (x W + b) f becomes (x f) W + b f, with or without a bias b."""
    for node in graph.get_ops():
        if node.get_type_name() != "Multiply":
            continue
        output, factor = (node.input_value(index).get_node() for index in (0, 1))
        if not _is_number(factor) or not _has_one_reader(output):
            continue
        product, bias_index = _product_and_bias(output)
        if not _is_product_with_weights(product):
            continue
        _scale_input(product, 0, factor)
        if bias_index is not None:
            _scale_input(output, bias_index, factor)
        put_in_place(node.output(0), output)


def _product_and_bias(output: ov.Node) -> tuple[ov.Node, int | None]:
    """Returns the node that a bias is added to, and the index of the bias.

    Without a bias it returns the node itself and None.
    """
    if output.get_type_name() == "Add":
        for index in (0, 1):
            other = output.input_value(1 - index).get_node()
            if find_constant(output.input_value(index).get_node()) is not None and _has_one_reader(
                other
            ):
                return other, index
    return output, None


def _scale_input(node: ov.Node, index: int, factor: ov.Node) -> None:
    scaled = ops.multiply(node.input_value(index), factor.output(0))
    node.input(index).replace_source_output(scaled.output(0))


def _is_number(node: ov.Node) -> bool:
    return node.get_type_name() == "Constant" and list(node.get_output_shape(0)) in ([], [1])


def _is_product_with_weights(node: ov.Node) -> bool:
    return (
        node.get_type_name() == "MatMul"
        and find_constant(node.input_value(1).get_node()) is not None
    )


def _has_one_reader(node: ov.Node) -> bool:
    return len(node.outputs()) == 1 and only_reader(node.output(0)) is not None
