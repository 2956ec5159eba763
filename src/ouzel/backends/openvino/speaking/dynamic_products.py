"""Turns products of dynamically quantised activations into products of real numbers.

ONNX Runtime's dynamic quantisation makes 8-bit integers of the activations before each product:
`DynamicQuantizeLinear`, `MatMulInteger` or `ConvInteger`, and a scale. OpenVINO has no kernels for
this form: it computes the product in real numbers, after it has rounded all activations. Without
the rounding a Kokoro model takes less time, and its sound is nearer to the unquantised model's.

OpenVINO reads the form as

    x -> Multiply(255) -> Divide(range) -> Round -> Add(zero) -> Clamp -> Convert(u8)
      -> Convert(i32) -> Subtract(zero) -> MatMul or Convolution [-> Add(bias)] -> Convert(f32)
      -> Multiply(scale of x * scale of the weights)

where the bias is Floor(bias / scales). Each part that has another form stays as it is.
"""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.library import ops, ov

_QUANTISED = ("Subtract", "Convert", "Convert", "Clamp", "Add", "Round", "Divide")
_PRODUCTS = ("MatMul", "Convolution")
_MAX_STEPS_TO_BIAS = 4  # Reshape, Convert, and Floor at last


@dataclass(frozen=True, slots=True)
class _Activations:
    value: Node  # the real numbers, an output
    range: Node  # the node with their largest value minus their smallest


@dataclass(frozen=True, slots=True)
class _Tail:
    """The nodes behind a product."""

    scaling: Node  # the Multiply whose result is a real number again
    weight_scale: Node
    bias: Node | None  # real numbers, an output


def restore_real_products(graph: ov.Model) -> int:
    """Changes the products of the graph; returns the number of changed products."""
    num_changed = 0
    for node in graph.get_ordered_ops():
        is_product = node.get_type_name() in _PRODUCTS
        if not is_product or node.output(0).get_element_type() != ov.Type.i32:
            continue
        activations = _find_activations(node.input_value(0).get_node())
        tail = None if activations is None else _find_tail(node, activations.range)
        if activations is None or tail is None:
            continue
        weights = ops.convert(node.input_value(1), ov.Type.f32)
        product = _make_product(node, activations.value, weights)
        result = ops.multiply(product, tail.weight_scale)
        if tail.bias is not None:
            shape = [1, -1] + [1] * (len(node.output(0).get_partial_shape()) - 2)
            result = ops.add(result, ops.reshape(tail.bias, ops.constant(shape), False))
        tail.scaling.output(0).replace(result.output(0))
        num_changed += 1
    if num_changed:
        graph.validate_nodes_and_infer_types()
    return num_changed


def _make_product(node: Node, value: Node, weights: Node) -> Node:
    attributes = node.get_attributes()
    if node.get_type_name() == "MatMul":
        return ops.matmul(value, weights, attributes["transpose_a"], attributes["transpose_b"])
    return ops.convolution(
        value,
        weights,
        attributes["strides"],
        attributes["pads_begin"],
        attributes["pads_end"],
        attributes["dilations"],
        attributes["auto_pad"],
    )


def _find_activations(node: Node) -> _Activations | None:
    """Returns the real numbers behind the integers that a product reads."""
    for name in _QUANTISED:
        if node.get_type_name() != name:
            return None
        range_node = node.input_value(1).get_node() if name == "Divide" else None
        node = node.input_value(0).get_node()
    if node.get_type_name() != "Multiply":
        return None
    return _Activations(node.input_value(0), range_node)


def _find_tail(product: Node, range_node: Node) -> _Tail | None:
    """Follows the only reader of each node to the scaling."""
    bias_node = None
    port = _find_reader(product)
    if port is not None and port.get_node().get_type_name() == "Add":
        bias_node = port.get_node().input_value(1 - port.get_index()).get_node()
        port = _find_reader(port.get_node())
    if port is None or port.get_node().get_type_name() != "Convert":
        return None
    port = _find_reader(port.get_node())
    if port is None or port.get_node().get_type_name() != "Multiply":
        return None
    scaling = port.get_node()
    scale = _find_weight_scale(scaling.input_value(1 - port.get_index()).get_node(), range_node)
    bias = None if bias_node is None else _find_bias(bias_node)
    if scale is None or (bias is None) != (bias_node is None):
        return None
    return _Tail(scaling, scale, bias)


def _find_reader(node: Node) -> Node | None:
    """Returns the only input that takes the node's result, None if there are several."""
    ports = list(node.output(0).get_target_inputs())
    return ports[0] if len(ports) == 1 else None


def _find_weight_scale(node: Node, range_node: Node) -> Node | None:
    """Returns the factor beside the scale of the activations, which is their range / 255."""
    if node.get_type_name() != "Multiply":
        return None
    for index in (0, 1):
        factor = node.input_value(index).get_node()
        is_division = factor.get_type_name() == "Divide"
        if is_division and factor.input_value(0).get_node().get_name() == range_node.get_name():
            return node.input_value(1 - index)
    return None


def _find_bias(node: Node) -> Node | None:
    """Returns the real bias in Reshape(Convert(Floor(bias / scales)))."""
    for _ in range(_MAX_STEPS_TO_BIAS):
        if node.get_type_name() == "Floor":
            division = node.input_value(0).get_node()
            return division.input_value(0) if division.get_type_name() == "Divide" else None
        if node.get_type_name() not in ("Reshape", "Convert"):
            return None
        node = node.input_value(0).get_node()
    return None
