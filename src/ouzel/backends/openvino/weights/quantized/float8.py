"""Reads weights in f8e4m3, with one scale for a block of rows and columns, for a row, or for all.

The plugin would convert them to bf16 in every step, so they become rows of float32 and are
compressed again. There are two layouts (transformers, integrations/finegrained_fp8.py; vLLM's fp8
checkpoints): beside `weight` [rows, columns] lies `weight_scale_inv` or `weight_scale`. With either
name the weight is the product of both.
"""

import math
from collections.abc import Iterable

import numpy as np

from ouzel.backends.openvino.weights.decoding import decode_f8e4m3, decode_f8e8m0
from ouzel.backends.openvino.weights.quantized.stored import (
    Rows,
    Stored,
    make_recompressed,
    plain_name,
)
from ouzel.backends.openvino.weights.safetensors import (
    PLAIN_TYPES,
    Checkpoint,
    read_chunks,
    to_float32,
)
from ouzel.backends.openvino.weights.source import StoredForm, Tensor
from ouzel.backends.openvino.weights.tensor_location import TensorLocation
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

COMPANIONS = (".weight_scale_inv", ".weight_scale", ".activation_scale", ".input_scale")

_KNOWN = {
    *(
        "quant_method",
        "activation_scheme",
        "weight_block_size",
        "fmt",
        "scale_fmt",
        "modules_to_not_convert",
    ),
    *("ignored_layers", "modules_to_convert", "dequantize", "expert_dtype"),
}


class Float8:
    """Reads f8e4m3; implements `Format`.

    The scales of the activations are not needed: Ouzel does not quantise activations to eight-bit
    floats.
    """

    def __init__(self, config: HfConfig, checkpoint: Checkpoint) -> None:
        config.refuse_others(_KNOWN)
        for key, supported in (("fmt", "e4m3"), ("expert_dtype", "fp8")):
            if config.text(key, supported) != supported:
                raise config.refuse(key, supported)
        self.checkpoint = checkpoint
        self._block = (0, 0)
        if config.has("weight_block_size"):
            block_rows, block_columns = config.integers("weight_block_size", 2)
            if min(block_rows, block_columns) < 1:
                raise config.refuse("weight_block_size", "two positive integers")
            self._block = (block_rows, block_columns)
        blocks = (
            f"blocks of {self._block[0]}x{self._block[1]}" if self._block[0] else "one scale each"
        )
        self.summary = f"fp8, {blocks}"

    def names(self) -> Iterable[str]:
        return (plain_name(name, COMPANIONS) for name in self.checkpoint.names())

    def find(self, tensor: Tensor) -> Stored | None:
        location = self.checkpoint.find(tensor.name)
        scale = self.checkpoint.find(tensor.name + "_scale_inv") or self.checkpoint.find(
            tensor.name + "_scale"
        )
        if (
            location is None
            or len(tensor.shape) != 2
            or (scale is None and location.dtype != "F8_E4M3")
        ):
            return None
        # A tensor with a scale must have this type.
        self.checkpoint.locate(tensor.name, tensor.shape, "F8_E4M3")
        if scale is None:
            raise ModelLoadError(
                f"tensor {tensor.name} is stored as F8_E4M3, but {tensor.name}_scale_inv is missing"
            )
        return float8_matrix(self.checkpoint, location, scale, self._block)


def float8_matrix(
    checkpoint: Checkpoint, location: TensorLocation, scale: TensorLocation, block: tuple[int, int]
) -> Stored:
    """Returns a matrix in f8e4m3.

    `block` has the rows and columns that share a scale; 0, 0: one scale for all, or one for a row.
    """
    num_rows, columns = location.shape
    block_rows, block_columns = block
    if not block_rows:
        block_rows, block_columns = 1 if math.prod(scale.shape) > 1 else num_rows, columns
    grid = (-(-num_rows // block_rows), -(-columns // block_columns))
    name = scale.name
    if scale.shape != grid and (math.prod(scale.shape) != math.prod(grid) or block[0]):
        raise ModelLoadError(
            f"{scale.path}: tensor {name} has the shape {list(scale.shape)}, but scales of "
            f"{list(location.shape)} in blocks of {block_rows}x{block_columns} need {list(grid)}"
        )
    if scale.dtype not in (*PLAIN_TYPES, "U8", "F8_E8M0"):
        raise ModelLoadError(
            f"{scale.path}: tensor {name} is stored as {scale.dtype}; supported are floats, F8_E8M0"
        )

    def rows() -> Rows:
        [stored] = read_chunks(scale, math.prod(grid), rows_per_chunk=1)
        scales = (
            decode_f8e8m0(stored) if stored.dtype == np.uint8 else to_float32(stored, scale.dtype)
        )
        scales = scales.reshape(grid)
        start = 0
        for chunk in read_chunks(location, columns):
            of_rows = scales[np.arange(start, start + len(chunk)) // block_rows]
            with np.errstate(all="ignore"):  # finite.py refuses scales that are NaN or infinite
                decoded = decode_f8e4m3(chunk) * of_rows[:, np.arange(columns) // block_columns]
            yield decoded
            start += len(chunk)

    return make_recompressed(StoredForm("f8e4m3", 8), rows)
