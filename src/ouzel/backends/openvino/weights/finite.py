"""Refuses weights that are NaN or infinite: such a model answers nonsense, or fails with some
prompts.
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import Encoding, Parts
from ouzel.backends.openvino.weights.source import Tensor, Tensors
from ouzel.errors import ModelLoadError

_BF16_EXPONENT = np.uint16(0x7F80)  # all ones: NaN or infinite
_F8E8M0_NAN = np.uint8(255)


def are_finite(encoding: Encoding, parts: Parts) -> bool:
    """Tells whether a piece of a matrix has finite numbers only.

    It looks at scales and zero points, or at the values if there are no scales. The parts have the
    types of the checkpoint: they are packed later, also if the encoding is a packed one.
    """
    if "scales" in parts:
        scales = parts["scales"]
        if scales.dtype == np.uint8:  # f8e8m0
            return not bool((scales == _F8E8M0_NAN).any())
        numbers = (scales, parts["zeros"]) if "zeros" in parts else (scales,)
        return all(bool(np.isfinite(each).all()) for each in numbers)
    if encoding.values == "bf16":
        return not bool(
            ((parts["values"].view(np.uint16) & _BF16_EXPONENT) == _BF16_EXPONENT).any()
        )
    return bool(np.isfinite(parts["values"]).all()) if encoding.values == "f32" else True


def silence_warnings(
    encode: Callable[[NDArray[np.float32]], Parts],
) -> Callable[[NDArray[np.float32]], Parts]:
    """Returns a function that encodes without numpy's warnings about NaN.

    `are_finite` refuses the result.
    """

    def encode_quietly(rows: NDArray[np.float32]) -> Parts:
        with np.errstate(all="ignore"):
            return encode(rows)

    return encode_quietly


def make_not_finite_error(tensors: Tensors, candidates: Iterable[Tensor]) -> ModelLoadError:
    """Returns the error for a matrix that is not finite.

    It reads the tensors of the matrix again to name the bad ones.
    """
    with np.errstate(all="ignore"):
        names = [
            each.name
            for each in candidates
            if not all(np.isfinite(rows).all() for rows in tensors.rows(each))
        ]
    return ModelLoadError(
        f"tensor {' and '.join(names)} has weights or scales that are NaN or infinite; the file is "
        "damaged"
    )
