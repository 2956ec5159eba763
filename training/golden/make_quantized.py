"""Writes tests/backends/quantized/: matrices as the programs write them that made the formats. See README.md.

Each directory has `config.json`, `model.safetensors` with the tensors of `model.matrix` or `model.experts`, and
`expected.npy`, what the same program makes of them in float32.
"""

# ruff: noqa: PLC0415  each case imports its own program: no environment need have all of them

import json
import sys
import types
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

OUT = Path(__file__).parents[2] / "tests" / "backends" / "quantized"
ROWS, COLUMNS, GROUP = 32, 64, 32
Made = tuple[
    dict[str, torch.Tensor], torch.Tensor, dict[str, Any]
]  # tensors by end of name, expected, settings


def weight(rows: int = ROWS) -> torch.Tensor:
    return torch.randn(rows, COLUMNS, generator=torch.Generator().manual_seed(5))


def without_its_init(package: str) -> None:
    """Makes parts of a package importable whose own imports are of other days."""
    spec = find_spec(package)
    assert spec is not None
    module = types.ModuleType(package)
    module.__path__ = list(spec.submodule_search_locations or ())
    sys.modules[package] = module


def rounded(
    bits: int, group_of: torch.Tensor, *, symmetric: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales in half precision and zero points, [rows, groups]; no level is out of range."""
    grouped = torch.stack([weight()[:, group_of == group] for group in group_of.unique()], dim=1)
    low, high = grouped.amin(-1), grouped.amax(-1)
    top = 2**bits - 2
    if symmetric:
        return (2 * grouped.abs().amax(-1) / top).half().float(), torch.full_like(
            high, 2 ** (bits - 1)
        )
    scales = ((high - low) / top).half().float()
    return scales, torch.round(-low / scales).clamp(1, top)


def gptq(bits: int, *, symmetric: bool, act_order: bool) -> Made:
    for package in ("auto_gptq", "auto_gptq.nn_modules", "auto_gptq.nn_modules.qlinear"):
        without_its_init(package)
    from auto_gptq.nn_modules.qlinear.qlinear_cuda import QuantLinear

    linear = torch.nn.Linear(COLUMNS, ROWS, bias=False, dtype=torch.half)
    linear.weight.data = weight().half()
    group_of = torch.arange(COLUMNS) // GROUP
    if act_order:
        group_of = group_of[torch.randperm(COLUMNS, generator=torch.Generator().manual_seed(1))]
    scales, zeros = rounded(bits, group_of, symmetric=symmetric)
    module = QuantLinear(bits, GROUP, COLUMNS, ROWS, bias=False)
    module.pack(linear, scales, zeros.clone(), group_of.to(torch.int32))
    tensors = {f".{name}": tensor for name, tensor in module.state_dict().items()}
    module.scales = module.scales.float()
    expected = module(torch.eye(COLUMNS)).T
    settings = {
        "quant_method": "gptq",
        "bits": bits,
        "group_size": GROUP,
        "desc_act": act_order,
        "sym": symmetric,
    }
    return tensors, expected, settings


def awq() -> Made:
    for package in ("awq", "awq.modules", "awq.modules.linear"):
        without_its_init(package)
    from awq.modules.linear.gemm import WQLinear_GEMM
    from awq.utils.packing_utils import dequantize_gemm

    linear = torch.nn.Linear(COLUMNS, ROWS, bias=False)
    linear.weight.data = weight()
    scales, zeros = (
        part.T.contiguous() for part in rounded(4, torch.arange(COLUMNS) // GROUP, symmetric=False)
    )
    module = WQLinear_GEMM.from_linear(linear, 4, GROUP, scales=scales, zeros=zeros)
    tensors = {f".{name}": tensor for name, tensor in module.state_dict().items()}
    expected = dequantize_gemm(module.qweight, module.qzeros, module.scales.float(), 4, GROUP).T
    return (
        tensors,
        expected,
        {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm"},
    )


def compressed(packing: str, **weights: object) -> Made:
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    args = QuantizationArgs(**weights)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    compressor = BaseCompressor.get_value_from_registry(packing)
    state: dict[str, torch.Tensor] = {"weight": weight()}
    size = args.group_size or COLUMNS
    grouped = state["weight"].reshape(ROWS, -1, size)
    if args.type == "int":
        top = 2**args.num_bits - 1
        low, high = grouped.amin(-1), grouped.amax(-1)
        largest = grouped.abs().amax(-1)
        state["weight_scale"] = (
            (2 * largest / top if args.symmetric else (high - low) / top).half().float()
        )
        zeros = torch.round(-low / state["weight_scale"]) - 2 ** (args.num_bits - 1)
        state["weight_zero_point"] = (torch.zeros_like(zeros) if args.symmetric else zeros).to(
            torch.int8
        )
    elif args.num_bits == 8:
        state["weight_scale"] = grouped.abs().amax(-1) / 448
    elif size == 16:
        state["weight_global_scale"] = 448 * 6 / state["weight"].abs().amax().reshape(1)
        scale = grouped.abs().amax(-1) / 6 * state["weight_global_scale"]
        state["weight_scale"] = scale.to(torch.float8_e4m3fn).float()
    else:
        state["weight_scale"] = 2.0 ** torch.ceil(torch.log2(grouped.abs().amax(-1) / 6))
    packed = compressor.compress(state, scheme)
    expected = compressor.decompress(packed, scheme)["weight"]
    group = {"targets": ["Linear"], "weights": json.loads(args.model_dump_json())}
    settings = {
        "quant_method": "compressed-tensors",
        "format": packing,
        "config_groups": {"group_0": group},
    }
    return {f".{name}": tensor for name, tensor in packed.items()}, expected, settings


def bitsandbytes(kind: str, block_size: int) -> Made:
    from bitsandbytes import functional

    quantised, state = functional.quantize_4bit(
        weight(), blocksize=block_size, quant_type=kind, compress_statistics=True
    )
    tensors = {".weight": quantised} | {
        f".weight.{name}": part for name, part in state.as_dict(packed=True).items()
    }
    settings = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind}
    # As rows of whole blocks: on a CPU, version 0.50.2 gives blocks across rows wrong scales.
    state.shape = torch.Size([ROWS * COLUMNS // block_size, block_size])
    return tensors, functional.dequantize_4bit(quantised, state).reshape(ROWS, COLUMNS), settings


def bitsandbytes_int8() -> Made:
    from bitsandbytes import functional

    quantised, scales, _ = functional.int8_vectorwise_quant(weight().half())
    tensors = {".weight": quantised, ".SCB": scales}
    expected = functional.int8_vectorwise_dequant(quantised, scales)
    return tensors, expected, {"quant_method": "bitsandbytes", "load_in_8bit": True}


def fp8(block: tuple[int, int] | None) -> Made:
    from transformers import FineGrainedFP8Config
    from transformers.integrations.finegrained_fp8 import Fp8Quantize, _dequantize_fp8_weight

    quantizer = types.SimpleNamespace(
        quantization_config=FineGrainedFP8Config(weight_block_size=block)
    )
    made = Fp8Quantize(quantizer).convert({".weight": weight()})
    scale = made.pop("weight_scale_inv", None)
    scale = made.pop(".weight_scale_inv") if scale is None else scale
    expected = _dequantize_fp8_weight(
        made[".weight"], scale, list(block) if block else None, torch.float32
    )
    settings = {"quant_method": "fp8", "weight_block_size": block, "activation_scheme": "dynamic"}
    return made | {".weight_scale_inv": scale if block else scale.reshape(())}, expected, settings


def mxfp4() -> Made:
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    generator = torch.Generator().manual_seed(2)
    blocks = torch.randint(0, 256, (2, ROWS, COLUMNS // 32, 16), generator=generator).to(
        torch.uint8
    )
    scales = torch.randint(120, 126, (2, ROWS, COLUMNS // 32), generator=generator).to(torch.uint8)
    expected = convert_moe_packed_tensors(
        blocks, scales, dtype=torch.float32
    )  # [experts, columns, rows]
    return {"_blocks": blocks, "_scales": scales}, expected, {"quant_method": "mxfp4"}


FOUR_BITS = {"num_bits": 4, "strategy": "group", "group_size": GROUP}
CASES: dict[str, Callable[[], Made]] = {
    "gptq": lambda: gptq(4, symmetric=False, act_order=False),
    "gptq-8": lambda: gptq(8, symmetric=True, act_order=False),
    "gptq-act-order": lambda: gptq(4, symmetric=True, act_order=True),
    "awq": awq,
    "pack": lambda: compressed("pack-quantized", **FOUR_BITS),
    "pack-asym": lambda: compressed("pack-quantized", **FOUR_BITS, symmetric=False),
    "pack-8": lambda: compressed("pack-quantized", num_bits=8, strategy="channel"),
    "int": lambda: compressed("int-quantized", num_bits=8, strategy="channel"),
    "float": lambda: compressed("float-quantized", num_bits=8, type="float", strategy="channel"),
    "nvfp4": lambda: compressed(
        "nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16
    ),
    "mxfp4-pack": lambda: compressed(
        "mxfp4-pack-quantized", num_bits=4, type="float", strategy="group", group_size=32
    ),
    "nf4": lambda: bitsandbytes("nf4", 64),
    "nf4-across-rows": lambda: bitsandbytes("nf4", 128),
    "fp4": lambda: bitsandbytes("fp4", 64),
    "int8": bitsandbytes_int8,
    "fp8": lambda: fp8((16, 32)),
    "fp8-tensor": lambda: fp8(None),
    "mxfp4": mxfp4,
}


def main() -> None:
    for name in sys.argv[1:] or CASES:
        tensors, expected, settings = CASES[name]()
        directory = OUT / name
        directory.mkdir(parents=True, exist_ok=True)
        base = "model.experts" if name == "mxfp4" else "model.matrix"
        save_file(
            {base + end: part.contiguous() for end, part in tensors.items()},
            directory / "model.safetensors",
        )
        np.save(directory / "expected.npy", expected.detach().float().numpy())
        text = json.dumps({"quantization_config": settings}, indent=2)
        (directory / "config.json").write_text(text + "\n")
        error = (
            (expected.float() - weight()).norm() / weight().norm()
            if expected.dim() == 2
            else float("nan")
        )
        print(f"{name}: {', '.join(tensors)}; error {error:.3f}")


if __name__ == "__main__":
    main()
