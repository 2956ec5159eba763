"""Builds norms in a form that the CPU plugin fuses."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, integers, real
from ouzel.backends.openvino.library import ops


@dataclass(frozen=True, slots=True)
class Norm:
    """The formula of a family's norms.

    RMS    x / sqrt(mean(x^2) + epsilon) * (weight + plus)
    layer  (x - mean(x)) / sqrt(variance(x) + epsilon) * (weight + plus) + bias
    """

    epsilon: float
    plus: float = 0.0  # Gemma and others store each weight minus one
    is_centred: bool = False  # True: a layer norm
    has_bias: bool = False
    has_weight: bool = True  # False: the weights are 1, and no tensor has them


def normalise(rows: Node, norm: Norm) -> Node:
    """Normalises the last axis, without weights and biases."""
    if norm.is_centred:
        rows = ops.subtract(rows, ops.reduce_mean(rows, integers(-1), True))
    mean_square = ops.reduce_mean(ops.power(rows, real(2.0)), integers(-1), True)
    return ops.multiply(
        rows, ops.divide(real(1.0), ops.sqrt(ops.add(mean_square, real(norm.epsilon))))
    )


def add_norm_offset(stored: NDArray[np.float32], norm: Norm) -> NDArray[np.float32]:
    """Returns the weights of a norm from the stored weights."""
    return stored if norm.plus == 0.0 else stored + np.float32(norm.plus)
