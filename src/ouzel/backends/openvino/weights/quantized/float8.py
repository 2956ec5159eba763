"""Weights in f8e4m3, one scale to a block of rows and columns, to a row, or to all.

The plugin would make bf16 of them with every step, so they become rows of float32, and are
compressed again. Two layouts (transformers, integrations/finegrained_fp8.py; vLLM's fp8
checkpoints): beside `weight` [rows, columns] lies `weight_scale_inv` or `weight_scale`; whatever
its name, the weight is the product of both.
"""

import math
from collections.abc import Iterable

import numpy as np

from ouzel.backends.openvino.weights.decoding import decode_f8e4m3, decode_f8e8m0
from ouzel.backends.openvino.weights.quantized.stored import Rows, Stored, plain_name, recompressed
from ouzel.backends.openvino.weights.safetensors import (
    PLAIN_TYPES,
    Checkpoint,
    TensorLocation,
    read_chunks,
    to_float32,
)
from ouzel.backends.openvino.weights.source import StoredForm, Tensor
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
    """Implements `Format`. What the activations were scaled by is not needed: ours are not
    quantised to eight bits.
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
        self.checkpoint.locate(
            tensor.name, tensor.shape, "F8_E4M3"
        )  # with a scale it must be of this type
        if scale is None:
            raise ModelLoadError(
                f"tensor {tensor.name} is stored as F8_E4M3, but {tensor.name}_scale_inv is missing"
            )
        return float8_matrix(self.checkpoint, location, scale, self._block)


def float8_matrix(
    checkpoint: Checkpoint, location: TensorLocation, scale: TensorLocation, block: tuple[int, int]
) -> Stored:
    """`block` says how many rows and columns share a scale; 0, 0: there is one to all, or to a row."""
    num_rows, columns = location.shape
    block_rows, block_columns = (
        block if block[0] else (1 if math.prod(scale.shape) > 1 else num_rows, columns)
    )
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

    return recompressed(StoredForm("f8e4m3", 8), rows)
