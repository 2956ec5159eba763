"""Applies the activation functions of Dense layers and of scores."""

import math
from typing import Literal, assert_never

import numpy as np
from numpy.typing import NDArray

Activation = Literal["identity", "tanh", "sigmoid", "relu", "gelu"]
Values = NDArray[np.float32]


def apply_activation(values: Values, activation: Activation) -> Values:
    match activation:
        case "identity":
            result = values
        case "tanh":
            result = np.tanh(values)
        case "sigmoid":
            result = np.where(values < 0, np.exp(np.minimum(values, 0)), 1) / (
                1 + np.exp(-np.abs(values))
            )
        case "relu":
            result = np.maximum(values, 0)
        case "gelu":
            erf = np.frompyfunc(math.erf, 1, 1)
            result = 0.5 * values * (1 + erf(values / math.sqrt(2)).astype(np.float32))
        case unreachable:
            assert_never(unreachable)
    return result.astype(np.float32)
