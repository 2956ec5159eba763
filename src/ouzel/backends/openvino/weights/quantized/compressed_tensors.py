"""Reads compressed-tensors, the format of llm-compressor (w4a16, w8a8, FP8-dynamic, NVFP4).

config.json has several config_groups, each with its targets: patterns after `re:`, names, and
classes of modules. A weight [rows, columns] in G groups of columns is stored as
(compressed_tensors, compressors/):

    pack-quantized
        weight_packed [rows, columns * bits / 32] int32, the lowest bits first, each value plus
        2**(bits - 1); optional weight_zero_point [rows * bits / 32, G] int32, packed along rows
    int-quantized
        weight [rows, columns] int8; optional weight_zero_point int8, shaped like the scales
    float-quantized
        weight [rows, columns] f8e4m3
    nvfp4-pack-quantized
        weight_packed [rows, columns / 2] f4e2m1, weight_scale [rows, G] f8e4m3,
        weight_global_scale [1], the divisor of the scales
    mxfp4-pack-quantized
        weight_packed as in nvfp4, weight_scale [rows, G] exponents with a bias of 127

`weight_scale` is [rows, G] for groups, [rows, 1] for channels, [1] for a tensor, [rows / R, columns
/ C] for blocks.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.decoding import decode_f8e4m3
from ouzel.backends.openvino.weights.encodings import Encoding, Parts, Values, unpack_nibbles
from ouzel.backends.openvino.weights.quantized.config_groups import (
    ConfigGroup,
    find_group,
    read_config_groups,
)
from ouzel.backends.openvino.weights.quantized.float8 import float8_matrix
from ouzel.backends.openvino.weights.quantized.stored import (
    Stored,
    find_group_order,
    make_packed,
    module_names,
    plain_name,
    read_scales,
    reorder_columns,
    scale_type,
    split_words,
)
from ouzel.backends.openvino.weights.safetensors import (
    PLAIN_TYPES,
    Checkpoint,
    chunk_rows,
    read_chunks,
)
from ouzel.backends.openvino.weights.source import Tensor
from ouzel.backends.openvino.weights.tensor_location import TensorLocation
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

COMPANIONS = (
    *(".weight_packed", ".weight_scale", ".weight_zero_point", ".weight_shape", ".weight_g_idx"),
    *(
        ".weight_global_scale",
        ".input_scale",
        ".input_zero_point",
        ".input_global_scale",
        ".output_scale",
    ),
)
_OF_THE_CACHE = (".k_scale", ".v_scale", ".k_zero_point", ".v_zero_point")


class CompressedTensors:
    """Reads compressed-tensors; implements `Format`."""

    def __init__(self, config: HfConfig, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self._groups = read_config_groups(config, module_names(checkpoint))
        kinds = ", ".join(dict.fromkeys(group.summary for group in self._groups))
        self.summary = f"compressed-tensors, {kinds}"
        if any(group.has_activations for group in self._groups):
            self.summary += "; activations are not quantised"
        if config.has("kv_cache_scheme"):
            self.summary += "; --kv-cache-dtype decides the type of cached keys and values"

    def names(self) -> Iterable[str]:
        """Leaves out the scales of a quantised KV cache: Ouzel's cache has its own."""
        for name in self.checkpoint.names():
            if not name.endswith(_OF_THE_CACHE):
                yield plain_name(name, COMPANIONS)

    def find(self, tensor: Tensor) -> Stored | None:
        base = tensor.name.removesuffix(".weight")
        location = self.checkpoint.find(base + ".weight_packed") or self.checkpoint.find(
            tensor.name
        )
        if location is None or location.dtype in PLAIN_TYPES or len(tensor.shape) != 2:
            return None
        is_packed = location.name.endswith("_packed")
        group = find_group(
            self._groups, base, location.name.removesuffix("_packed").removesuffix(".weight")
        )
        match (is_packed, location.dtype):
            case (True, "I32") | (False, "I8"):
                group.require("int", (4, 8) if is_packed else (8,), tensor.name)
                return Integers(self.checkpoint, base, tensor.shape, group, is_packed).stored()
            case (True, "U8"):
                group.require("float", (4,), tensor.name)
                return f4e2m1_matrix(self.checkpoint, base, tensor.shape, group)
            case (False, "F8_E4M3"):
                group.require("float", (8,), tensor.name)
                self.checkpoint.locate(tensor.name, tensor.shape, "F8_E4M3")
                scale = self.checkpoint.find(base + ".weight_scale")
                if scale is None:
                    raise ModelLoadError(
                        f"tensor {tensor.name} is stored as F8_E4M3, but {tensor.name}_scale is "
                        "missing"
                    )
                return float8_matrix(self.checkpoint, location, scale, group.block)
        return None


@dataclass(frozen=True, slots=True)
class Integers:
    """Reads a matrix of integers of four or eight bits."""

    checkpoint: Checkpoint
    base: str
    shape: tuple[int, ...]
    group: ConfigGroup
    is_packed: bool

    def stored(self) -> Stored:
        """Returns the matrix. Raises ModelLoadError if one of its tensors is wrong."""
        (rows, columns), bits = self.shape, self.group.num_bits
        group_size = self.group.group_size or columns
        per_word = 32 // bits if self.is_packed else 1
        if self.group.block[0] or columns % group_size or columns % per_word:
            raise ModelLoadError(
                f"tensor {self.base}.weight: {columns} columns of integers do not go into "
                f"{self.group.summary}"
            )
        if self.is_packed:
            values = self.checkpoint.locate(
                f"{self.base}.weight_packed", (rows, columns // per_word), "I32"
            )
            shape = self.checkpoint.read(f"{self.base}.weight_shape", (2,), "I64", "I32").tolist()
            if shape != [rows, columns]:
                raise ModelLoadError(
                    f"tensor {self.base}.weight_shape must be {[rows, columns]}, found {shape}"
                )
        else:
            values = self.checkpoint.locate(f"{self.base}.weight", (rows, columns), "I8")
        zero_point = self.checkpoint.find(f"{self.base}.weight_zero_point")
        has_zeros = not self.group.is_symmetric or zero_point is not None
        values_type: Values = "i4" if bits == 4 else "i8"
        if has_zeros:
            values_type = "u4" if bits == 4 else "u8"
        encoding = Encoding(
            values_type,
            scale_type(self.scale),
            "u8" if has_zeros else None,
            self.group.group_size,
        )
        if has_zeros:
            self.zeros()  # raises ModelLoadError if they are wrong
        order = self.column_order(group_size)
        return make_packed(
            encoding, lambda: self.parts(values, has_zeros=has_zeros, order=order), order
        )

    def parts(
        self, location: TensorLocation, *, has_zeros: bool, order: NDArray[Any] | None
    ) -> Iterator[Parts]:
        columns, bits = self.shape[1], self.group.num_bits
        small: Parts = {"scales": self.scales()}
        if has_zeros:
            small["zeros"] = self.zeros()
        # Packed values are moved up by half their range, like Ouzel's values with zero points; int8
        # values are not.
        turned_bits = np.uint8(0 if self.is_packed == has_zeros else 0x88 if bits == 4 else 0x80)
        rows_per_chunk = chunk_rows(columns)
        start = 0
        for chunk in read_chunks(location, location.shape[1], rows_per_chunk):
            values = reorder_columns(split_words(chunk) ^ turned_bits, order, bits)
            some = slice(start, start + len(chunk))
            start += len(chunk)
            yield {"values": values if has_zeros or bits == 4 else values.view(np.int8)} | {
                name: part[some] for name, part in small.items()
            }

    @property
    def scale(self) -> TensorLocation:
        """Returns the place of the scales.

        Raises ModelLoadError if the tensor is missing or its shape does not suit the group.
        """
        name = f"{self.base}.weight_scale"
        location = self.checkpoint.find(name)
        shape: tuple[int, ...] = self.grid
        has_one = location is not None and location.shape in {(), (1,), (1, 1)}
        if location is not None and has_one and not self.group.group_size:
            shape = location.shape
        return self.checkpoint.locate(name, shape, *PLAIN_TYPES)

    @property
    def grid(self) -> tuple[int, int]:
        rows, columns = self.shape
        return rows, columns // self.group.group_size if self.group.group_size else 1

    def scales(self) -> NDArray[Any]:
        scale = self.scale
        scales = read_scales(self.checkpoint, f"{self.base}.weight_scale", scale.shape)
        return np.broadcast_to(scales.reshape(1, 1) if scales.size == 1 else scales, self.grid)

    def zeros(self) -> NDArray[np.uint8]:
        """Returns the zero points as levels from 0 on."""
        name, bits = f"{self.base}.weight_zero_point", self.group.num_bits
        location = self.checkpoint.find(name)
        if location is None or location.dtype == "I32":
            rows, num_groups = self.grid
            num_words = -(-rows * bits // 32)
            levels = split_words(self.checkpoint.read(name, (num_words, num_groups), "I32").T)
            return (unpack_nibbles(levels) if bits == 4 else levels)[:, :rows].T
        shape = self.scale.shape
        signed = self.checkpoint.read(name, shape, "I8")
        zeros = (signed.astype(np.int16) + (1 << (bits - 1))).astype(np.uint8)
        return np.broadcast_to(zeros.reshape(1, 1) if zeros.size == 1 else zeros, self.grid)

    def column_order(self, group_size: int) -> NDArray[Any] | None:
        name = f"{self.base}.weight_g_idx"
        if self.checkpoint.find(name) is None:
            if self.group.has_column_order and group_size < self.shape[1]:
                raise ModelLoadError(
                    f"tensor {name} is missing: with actorder it assigns the columns to groups"
                )
            return None
        indices = self.checkpoint.read(name, (self.shape[1],), "I32")
        return None if (indices == -1).all() else find_group_order(indices, group_size, name)


def f4e2m1_matrix(
    checkpoint: Checkpoint, base: str, shape: tuple[int, ...], group: ConfigGroup
) -> Stored:
    """Returns a matrix of nvfp4, which has a further scale for the whole, or of mxfp4."""
    rows, columns = shape
    if not group.group_size or columns % group.group_size or group.group_size % 2:
        raise ModelLoadError(
            f"tensor {base}.weight: {columns} columns do not go into {group.summary}"
        )
    grid = (rows, columns // group.group_size)
    values = checkpoint.locate(f"{base}.weight_packed", (rows, columns // 2), "U8")
    scale = checkpoint.locate(f"{base}.weight_scale", grid, "F8_E4M3", "U8", "F8_E8M0")
    is_nvfp4 = scale.dtype == "F8_E4M3"
    divisor = np.ones(1, np.float32)
    if is_nvfp4:
        divisor = checkpoint.floats(f"{base}.weight_global_scale", (1,))
    if not 0 < divisor[0] < np.inf:
        raise ModelLoadError(
            f"tensor {base}.weight_global_scale must be positive and finite, found {divisor[0]}"
        )

    def parts() -> Iterator[Parts]:
        rows_per_chunk = chunk_rows(columns)
        chunks = zip(
            read_chunks(values, columns // 2, rows_per_chunk),
            read_chunks(scale, grid[1], rows_per_chunk),
            strict=True,
        )
        for chunk, scales in chunks:
            yield {
                "values": chunk,
                "scales": decode_f8e4m3(scales) / divisor if is_nvfp4 else scales,
            }

    return make_packed(
        Encoding("f4e2m1", "f32" if is_nvfp4 else "f8e8m0", group_size=group.group_size), parts
    )
