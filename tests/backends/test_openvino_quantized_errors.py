"""Errors about quantised checkpoints name the wrong tensor, or the wrong key of config.json."""

import json
from pathlib import Path

import numpy as np
import pytest

from ouzel.checkpoint.weight_files import SINGLE_FILE
from ouzel.errors import ModelLoadError
from tests.backends import quantize
from tests.backends.quantize import Tensors
from tests.backends.quantized_formats import (
    ASYMMETRIC,
    FORMATS,
    MATRIX,
    Settings,
    matrix_in,
    open_checkpoint,
)


def drop(name: str, end: str) -> Tensors:
    tensors, _ = matrix_in(name)
    del tensors["model.matrix" + end]
    return tensors


def change(name: str, end: str, dtype: str, shape: tuple[int, ...], value: int = 0) -> Tensors:
    tensors, _ = matrix_in(name)
    return tensors | {"model.matrix" + end: (dtype, np.full(shape, value))}


# Each case: the tensors, the changed keys of quantization_config, and the error.
BROKEN: dict[str, tuple[Tensors, Settings, str]] = {
    "gptq, no scales": (drop("gptq", ".scales"), {}, "tensor model.matrix.scales is missing"),
    "gptq, no zeros": (drop("gptq", ".qzeros"), {}, "tensor model.matrix.qzeros is missing"),
    "gptq, no values": (drop("gptq", ".qweight"), {}, "tensor model.matrix.weight is missing"),
    "gptq, values of another shape": (
        change("gptq", ".qweight", "I32", (8, 20)),
        {},
        r"model.matrix.qweight has the shape \[8, 20\], but config.json requires \[8, 40\]",
    ),
    "gptq, another type": (
        change("gptq", ".qweight", "I64", (8, 40)),
        {},
        "qweight is stored as I64",
    ),
    "gptq, scattered groups": (
        change("gptq", ".g_idx", "I32", (64,), 1),
        {},
        "tensor model.matrix.g_idx must have 32 columns in each group",
    ),
    "gptq, three bits": (
        matrix_in("gptq")[0],
        {"bits": 3},
        "quantization_config: bits 3 is not supported",
    ),
    "gptq, another width": (
        matrix_in("gptq")[0],
        {"bits": 8},
        r"qweight has the shape \[8, 40\], but config.json requires \[16, 40\]",
    ),
    "gptq, other groups": (
        matrix_in("gptq")[0],
        {"group_size": 16},
        r"qzeros has the shape \[2, 5\], but config.json requires \[4, 5\]",
    ),
    "gptq, odd groups": (matrix_in("gptq")[0], {"group_size": 48}, "do not go into groups of 48"),
    "gptq, marlin": (
        matrix_in("gptq")[0],
        {"checkpoint_format": "marlin"},
        'checkpoint_format "marlin" is not supported; supported: gptq, gptq_v2',
    ),
    "gptq, an unknown key": (
        matrix_in("gptq")[0],
        {"rotation": "hadamard"},
        '"rotation" is not supported',
    ),
    "gptq, excluded but quantised": (
        matrix_in("gptq")[0],
        {"dynamic": {"-:.*matrix": {}}},
        "model.matrix.qweight is quantised, but dynamic -:.*matrix says that it is not",
    ),
    "gptq, no pattern": (
        matrix_in("gptq")[0],
        {"dynamic": {"+:(": {"bits": 8}}},
        r"dynamic: \( is not a regular expression",
    ),
    "awq, no scales": (drop("awq", ".scales"), {}, "tensor model.matrix.scales is missing"),
    "awq, gemv": (
        matrix_in("awq")[0],
        {"version": "gemv"},
        'version "gemv" is not supported; supported: gemm',
    ),
    "awq, other groups": (
        matrix_in("awq")[0],
        {"group_size": 64},
        r"qzeros has the shape \[2, 5\]",
    ),
    "awq, eight bits": (matrix_in("awq")[0], {"bits": 8}, "bits 8 is not supported; supported: 4"),
    "pack, no scales": (
        drop("pack", ".weight_scale"),
        {},
        "tensor model.matrix.weight_scale is missing",
    ),
    "pack, no zeros": (
        drop("pack-asym", ".weight_zero_point"),
        ASYMMETRIC,
        "weight_zero_point is missing",
    ),
    "pack, another shape": (
        change("pack", ".weight_shape", "I64", (2,), 64),
        {},
        r"weight_shape must be \[40, 64\], found \[64, 64\]",
    ),
    "pack, another width": (
        matrix_in("pack")[0],
        {"num_bits": 8},
        r"weight_packed has the shape \[40, 8\]",
    ),
    "pack, three bits": (
        matrix_in("pack")[0],
        {"num_bits": 3},
        "is stored as int4 or int8, .* says int3",
    ),
    "pack, other groups": (
        matrix_in("pack")[0],
        {"group_size": 16},
        r"weight_scale has the shape \[40, 2\]",
    ),
    "pack, floats": (
        matrix_in("pack")[0],
        {"type": "float"},
        "its config_group says float4",
    ),
    "nvfp4, no scale for all": (
        drop("nvfp4", ".weight_global_scale"),
        {},
        "weight_global_scale is missing",
    ),
    "nvfp4, a scale of zero": (
        change("nvfp4", ".weight_global_scale", "F32", (1,)),
        {},
        r"model.matrix.weight_global_scale must be positive and finite, found 0.0",
    ),
    "float, no scale": (
        drop("float", ".weight_scale"),
        {},
        "stored as F8_E4M3, but model.matrix.weight_scale is",
    ),
    "fp8, no scale": (
        drop("fp8", ".weight_scale_inv"),
        {},
        "but model.matrix.weight_scale_inv is missing",
    ),
    "fp8, other blocks": (
        matrix_in("fp8")[0],
        {"weight_block_size": [16, 16]},
        r"weight_scale_inv has the shape \[3, 3\], "
        r"but scales of \[40, 64\] in blocks of 16x16 need \[3, 4\]",
    ),
    "fp8, another float": (
        matrix_in("fp8")[0],
        {"fmt": "e5m2"},
        'fmt "e5m2" is not supported; supported: e4m3',
    ),
    "nf4, no state": (
        drop("nf4", ".weight.quant_state.bitsandbytes__nf4"),
        {},
        "model.matrix.weight.quant_state.bitsandbytes__nf4 is missing",
    ),
    "nf4, no scales": (
        drop("nf4", ".weight.absmax"),
        {},
        "tensor model.matrix.weight.absmax is missing",
    ),
    "nf4, no scales of scales": (
        drop("nf4", ".weight.nested_absmax"),
        {},
        "nested_absmax is missing",
    ),
    "int8, no scales": (drop("int8", ".SCB"), {}, "tensor model.matrix.SCB is missing"),
    "int8, another layout": (
        change("int8", ".weight_format", "U8", (), 2),
        {},
        "weight_format must be 0",
    ),
    "float-block, no rows": (
        matrix_in("float-block")[0],
        {"block_structure": [24, 0]},
        r"block_structure \[24, 0\] is not supported; supported: two positive integers",
    ),
    "an unknown method": (
        matrix_in("gptq")[0],
        {"quant_method": "quark"},
        'quant_method "quark" is not supported',
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_an_error_names_the_wrong_tensor_or_key(fault: str, tmp_path: Path) -> None:
    tensors, changes, message = BROKEN[fault]
    kind = fault.partition(",")[0].replace("an unknown method", "gptq")
    settings = json.loads(json.dumps(FORMATS[kind][1]))
    is_grouped = "config_groups" in settings
    changed = settings["config_groups"]["group_0"]["weights"] if is_grouped else settings
    changed |= changes
    quantize.save(tmp_path / SINGLE_FILE, tensors)
    with pytest.raises(ModelLoadError, match=message):
        open_checkpoint(tmp_path, settings).stored_encoding(MATRIX)


def test_an_impossible_size_of_blocks_of_scales_is_refused(tmp_path: Path) -> None:
    tensors, _ = matrix_in("nf4")
    name = "model.matrix.weight.quant_state.bitsandbytes__nf4"
    state = json.loads(np.asarray(tensors[name][1], np.uint8).tobytes()) | {
        "nested_blocksize": 2**63
    }
    content = np.frombuffer(json.dumps(state).encode(), np.uint8)
    quantize.save(tmp_path / SINGLE_FILE, tensors | {name: ("U8", content)})
    with pytest.raises(ModelLoadError, match="nested_blocksize cannot be 9223372036854775808"):
        open_checkpoint(tmp_path, FORMATS["nf4"][1]).stored_encoding(MATRIX)
