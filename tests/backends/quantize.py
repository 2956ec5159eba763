"""Writes quantised weights by the definition of each format, without Ouzel's readers.

Each quantising function takes a weight [rows, columns]. It returns the stored tensors, by the ends
of their names, and the values that the tensors stand for.
"""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.backends.number_codes import F4E2M1, F8E4M3, F8E4M3_STORED, NF4, nearest, pack_bytes

Weight = NDArray[np.float32]
# The name of each tensor, its type in the spelling of safetensors, and its elements.
Tensors = dict[str, tuple[str, NDArray[Any]]]
Quantized = tuple[Tensors, Weight]
Quantize = Callable[[Weight], Quantized]

DTYPES = {
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I32": "<i4",
    "I64": "<i8",
    "U8": "u1",
    "I8": "i1",
    "BOOL": "?",
}


def save(path: Path, tensors: Tensors) -> None:
    header, data = {}, b""
    for name, (dtype, values) in tensors.items():
        encoded = np.ascontiguousarray(values.astype(DTYPES.get(dtype, values.dtype))).tobytes()
        header[name] = {
            "dtype": dtype,
            "shape": values.shape,
            "data_offsets": (len(data), len(data) + len(encoded)),
        }
        data += encoded
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path: Path) -> Tensors:
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(content[start + begin : start + end], DTYPES[entry["dtype"]])
        tensors[name] = (entry["dtype"], values.reshape(entry["shape"]))
    return tensors


def integers(
    weight: Weight, bits: int, group_of: NDArray[np.int64], *, symmetric: bool
) -> tuple[Any, Any, Any]:
    """Rounds weights to levels >= 0.

    Returns the levels [rows, columns], and the scales and zero points [rows, groups].
    """
    levels = np.zeros(weight.shape, np.int64)
    scales = np.zeros((len(weight), group_of.max() + 1), np.float16)
    zeros = np.zeros(scales.shape, np.int64)
    top = 2**bits - 1
    for row in range(len(weight)):
        for group in range(scales.shape[1]):
            columns = np.flatnonzero(group_of == group)
            values = weight[row, columns].astype(np.float64)
            low, high = min(values.min(), 0.0), max(values.max(), 0.0)
            if symmetric:
                low, high = -np.abs(values).max(), np.abs(values).max()
            scale = np.float16((high - low) / top)
            zero = (top + 1) // 2 if symmetric else int(np.clip(round(-low / float(scale)), 1, top))
            levels[row, columns] = np.clip(np.round(values / float(scale)) + zero, 0, top)
            scales[row, group], zeros[row, group] = scale, zero
    return levels, scales, zeros


def worth(levels: Any, scales: Any, zeros: Any, group_of: NDArray[np.int64]) -> Weight:
    values: Weight = (
        (levels - zeros[:, group_of]) * scales.astype(np.float64)[:, group_of]
    ).astype(np.float32)
    return values


def pack_along(
    axis: int, levels: Any, bits: int, order: tuple[int, ...] = tuple(range(32))
) -> NDArray[np.int32]:
    """Packs 32 / bits neighbours along an axis into each int32.

    `order` lists the neighbours from the lowest bits to the highest.
    """
    per_word = 32 // bits
    lines = np.moveaxis(levels, axis, 0)
    words = np.zeros((-(-len(lines) // per_word), *lines.shape[1:]), np.uint32)
    for index in range(len(lines)):
        place = order.index(index % per_word) * bits
        words[index // per_word] |= (lines[index] << place).astype(np.uint32)
    return np.moveaxis(words, 0, axis).astype(np.int32)


def groups(columns: int, group_size: int) -> NDArray[np.int64]:
    return np.arange(columns) // (columns if group_size == -1 else group_size)


def gptq(
    bits: int = 4,
    group_size: int = 32,
    *,
    symmetric: bool = False,
    is_v2: bool = False,
    act_order: bool = False,
) -> Quantize:
    def quantize(weight: Weight) -> Quantized:
        group_of = groups(weight.shape[1], group_size)
        if act_order:
            group_of = np.random.default_rng(3).permutation(group_of)
        levels, scales, zeros = integers(weight, bits, group_of, symmetric=symmetric)
        tensors: Tensors = {
            ".qweight": ("I32", pack_along(0, levels.T, bits)),
            ".qzeros": ("I32", pack_along(1, zeros.T - (0 if is_v2 else 1), bits)),
            ".scales": ("F16", scales.T),
            ".g_idx": ("I32", group_of),
        }
        return tensors, worth(levels, scales, zeros, group_of)

    return quantize


def awq(group_size: int = 32) -> Quantize:
    def quantize(weight: Weight) -> Quantized:
        group_of = groups(weight.shape[1], group_size)
        levels, scales, zeros = integers(weight, 4, group_of, symmetric=False)
        order = (0, 2, 4, 6, 1, 3, 5, 7)
        tensors: Tensors = {
            ".qweight": ("I32", pack_along(1, levels.T, 4, order)),
            ".qzeros": ("I32", pack_along(1, zeros.T, 4, order)),
            ".scales": ("F16", scales.T),
        }
        return tensors, worth(levels, scales, zeros, group_of)

    return quantize


def pack_quantized(
    bits: int = 4, group_size: int = 32, *, symmetric: bool = True, act_order: bool = False
) -> Quantize:
    def quantize(weight: Weight) -> Quantized:
        group_of = groups(weight.shape[1], group_size)
        if act_order:
            group_of = np.random.default_rng(4).permutation(group_of)
        levels, scales, zeros = integers(weight, bits, group_of, symmetric=symmetric)
        tensors: Tensors = {
            ".weight_packed": ("I32", pack_along(1, levels, bits)),
            ".weight_scale": ("F16", scales),
            ".weight_shape": ("I64", np.array(weight.shape)),
        }
        if not symmetric:
            tensors[".weight_zero_point"] = ("I32", pack_along(0, zeros, bits))
        if act_order:
            tensors[".weight_g_idx"] = ("I32", group_of)
        return tensors, worth(levels, scales, zeros, group_of)

    return quantize


def int_quantized(*, per_tensor: bool = False, symmetric: bool = True) -> Quantize:
    def quantize(weight: Weight) -> Quantized:
        group_of = groups(weight.shape[1], -1)
        rows = weight.reshape(1, -1) if per_tensor else weight
        scale_of = groups(rows.shape[1], -1)
        levels, scales, zeros = integers(rows, 8, scale_of, symmetric=symmetric)
        levels = levels.reshape(weight.shape)
        tensors: Tensors = {
            ".weight": ("I8", levels - 128),
            ".weight_scale": ("F32", scales.reshape(-1) if per_tensor else scales),
        }
        if not symmetric:
            tensors[".weight_zero_point"] = ("I8", zeros - 128)
        shape = (len(weight), 1)
        return tensors, worth(
            levels, np.broadcast_to(scales, shape), np.broadcast_to(zeros, shape), group_of
        )

    return quantize


def float8(block: tuple[int, int] | None, scale_name: str, *, has_powers: bool = False) -> Quantize:
    """Rounds to float8 with one scale for each block, or for the whole matrix without a block.

    With `has_powers` the scales are powers of two, which are stored as exponents.
    """

    def quantize(weight: Weight) -> Quantized:
        block_rows, block_columns = block or weight.shape
        row_of = np.arange(len(weight)) // block_rows
        column_of = np.arange(weight.shape[1]) // block_columns
        scales = np.zeros((row_of[-1] + 1, column_of[-1] + 1), np.float32)
        for row in range(len(scales)):
            for column in range(scales.shape[1]):
                scales[row, column] = (
                    np.abs(weight[row_of == row][:, column_of == column]).max() / 448
                )
        exponents = np.ceil(np.log2(scales))
        if has_powers:
            scales = np.exp2(exponents)
        spread = scales.astype(np.float64)[row_of][:, column_of]
        chosen = nearest(F8E4M3, weight / spread)
        tensors: Tensors = {
            ".weight": ("F8_E4M3", F8E4M3_STORED[chosen]),
            scale_name: ("F32", scales if block else scales.reshape(())),
        }
        if has_powers:
            tensors[scale_name] = ("F8_E8M0", (exponents + 127).astype(np.uint8))
        return tensors, (F8E4M3[chosen] * spread).astype(np.float32)

    return quantize


def fp4(group_size: int) -> Quantize:
    """Rounds to nvfp4 (groups of 16) or mxfp4 (groups of 32), as compressed-tensors stores them."""

    def quantize(weight: Weight) -> Quantized:
        grouped = weight.astype(np.float64).reshape(len(weight), -1, group_size)
        largest = np.abs(grouped).max(axis=2)
        tensors: Tensors
        if group_size == 16:
            whole = np.float32(448 * 6 / np.abs(weight).max())
            scale = nearest(F8E4M3, largest / 6 * whole)
            scales = F8E4M3[scale] / whole
            tensors = {
                ".weight_scale": ("F8_E4M3", F8E4M3_STORED[scale]),
                ".weight_global_scale": ("F32", np.array([whole])),
            }
        else:
            exponents = np.ceil(np.log2(largest / 6)).astype(int)
            scales = 2.0**exponents
            tensors = {".weight_scale": ("U8", exponents + 127)}
        levels = nearest(np.array(F4E2M1), grouped / scales[:, :, None])
        values = np.array(F4E2M1)[levels] * scales[:, :, None]
        tensors[".weight_packed"] = ("U8", pack_bytes(levels.reshape(weight.shape)))
        return tensors, values.reshape(weight.shape).astype(np.float32)

    return quantize


def nf4(block_size: int = 32, *, nested: bool = True) -> Quantize:
    def quantize(weight: Weight) -> Quantized:
        codebook = np.array([float(level) for level in NF4.split()], np.float32)
        blocks = weight.reshape(-1, block_size)
        scales = np.abs(blocks).max(axis=1)
        state: dict[str, Any] = {
            "quant_type": "nf4",
            "blocksize": block_size,
            "shape": weight.shape,
        }
        tensors: Tensors = {
            ".weight.quant_map": ("F32", codebook),
            ".weight.absmax": ("F32", scales),
        }
        if nested:
            outer_codebook = np.linspace(-1, 1, 256).astype(np.float32)
            offset = float(np.float32(scales.mean()))
            outer = np.array(
                [
                    np.abs(part - offset).max()
                    for part in np.split(scales, range(256, len(scales), 256))
                ]
            )
            spread = np.repeat(outer, 256)[: len(scales)].astype(np.float32)
            chosen = nearest(outer_codebook.astype(np.float64), (scales - offset) / spread)
            scales = outer_codebook[chosen] * spread + np.float32(offset)
            state |= {"nested_blocksize": 256, "nested_offset": offset, "nested_dtype": "float32"}
            tensors |= {
                ".weight.absmax": ("U8", chosen),
                ".weight.nested_quant_map": ("F32", outer_codebook),
                ".weight.nested_absmax": ("F32", outer),
            }
        levels = nearest(codebook.astype(np.float64), blocks / scales[:, None].astype(np.float64))
        text = np.frombuffer(json.dumps(state).encode(), np.uint8)
        tensors[".weight.quant_state.bitsandbytes__nf4"] = ("U8", text)
        tensors[".weight"] = (
            "U8",
            pack_bytes(levels.reshape(1, -1), even_is_high=True).reshape(-1, 1),
        )
        return tensors, (codebook[levels] * scales[:, None]).reshape(weight.shape).astype(
            np.float32
        )

    return quantize


def int8_rows(weight: Weight) -> Quantized:
    """Rounds each row to eight bits in the format of bitsandbytes."""
    largest = np.abs(weight).max(axis=1)
    levels = np.round(weight / largest[:, None] * 127)
    tensors: Tensors = {
        ".weight": ("I8", levels),
        ".SCB": ("F32", largest),
        ".weight_format": ("U8", np.zeros((), np.uint8)),
    }
    return tensors, (levels * (largest[:, None].astype(np.float64) / 127)).astype(np.float32)
