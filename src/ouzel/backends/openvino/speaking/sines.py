"""Computes sines by polynomials, which OpenVINO compiles into one loop.

OpenVINO's CPU plugin computes a Sin value by value, with the library's function. A Kokoro model has 62
of them over the whole sound (the activation "snake", x + sin(a x)^2 / a).

A value is reduced to [-pi, pi] by the nearest multiple of 2 pi, which is subtracted in two parts
(Cody and Waite), so that the rounding of 2 pi does not grow with the multiple. The polynomial is the
odd one of degree 11 with the least squares of the errors at Chebyshev nodes; its error is below 1e-7.
"""

import numpy as np

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.library import ops, ov

_COEFFICIENTS = (  # of x, x^3, ..., x^11
    0.9999995999216761,
    -0.1666655263546205,
    0.00833240298875411,
    -0.0001980863334149407,
    2.6997146366412136e-06,
    -2.036224489039651e-08,
)
_TURN = 2 * np.pi
_TURN_HIGH = 6.28125  # has few digits, so its product with a small integer is exact
_TURN_LOW = _TURN - _TURN_HIGH


def replace_sines(graph: ov.Model) -> int:
    """Replaces each Sin of f32 values in the graph; returns their number."""
    num_replaced = 0
    for node in graph.get_ordered_ops():
        if node.get_type_name() == "Sin" and node.output(0).get_element_type() == ov.Type.f32:
            value = make_sine(node.input_value(0))
            value.set_friendly_name(node.get_friendly_name())
            node.output(0).replace(value.output(0))
            num_replaced += 1
    return num_replaced


def make_sine(value: Node) -> Node:
    """Returns the node of the sine of f32 values, an output."""
    turns = ops.round(ops.multiply(value, _constant(1 / _TURN)))
    rest = ops.subtract(value, ops.multiply(turns, _constant(_TURN_HIGH)))
    rest = ops.subtract(rest, ops.multiply(turns, _constant(_TURN_LOW)))
    square = ops.multiply(rest, rest)
    *lower, total = map(_constant, _COEFFICIENTS)
    for coefficient in reversed(lower):
        total = ops.add(ops.multiply(total, square), coefficient)
    return ops.multiply(total, rest)


def _constant(value: float) -> Node:
    return ops.constant(np.float32(value))
