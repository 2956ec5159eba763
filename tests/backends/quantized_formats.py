"""Describes the formats of quantised checkpoints, and makes a matrix in each of them."""

from pathlib import Path
from typing import Any

import numpy as np

from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.quantized.formats import read_format
from ouzel.backends.openvino.weights.quantized.stored import QuantizedCheckpoint
from ouzel.backends.openvino.weights.safetensors import Checkpoint
from ouzel.backends.openvino.weights.source import Tensor
from ouzel.checkpoint.hf_config import HfConfig
from tests.backends import quantize
from tests.backends.quantize import Quantize, Tensors, Weight

Settings = dict[str, Any]  # Any: JSON


def describe_gptq(**settings: object) -> Settings:
    return {
        "quant_method": "gptq",
        "bits": 4,
        "group_size": 32,
        "desc_act": False,
        "sym": False,
        **settings,
    }


def describe_compressed(packing: str, **weights: object) -> Settings:
    group = {
        "targets": ["Linear"],
        "weights": {"type": "int", "num_bits": 4, "symmetric": True, **weights},
    }
    return {
        "quant_method": "compressed-tensors",
        "format": packing,
        "config_groups": {"group_0": group},
        "ignore": [],
    }


FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}
BNB = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
ASYMMETRIC = {"strategy": "group", "group_size": 32, "symmetric": False}

# Each format: the function that quantises a weight, quantization_config in config.json, and the
# encoding that the server takes over unchanged (None: it compresses the values again).
FORMATS: dict[str, tuple[Quantize, Settings, Encoding | None]] = {
    "gptq": (quantize.gptq(), describe_gptq(), Encoding("u4", "f16", "u8", 32)),
    "gptq-8": (quantize.gptq(8), describe_gptq(bits=8), Encoding("u8", "f16", "u8", 32)),
    "gptq-sym": (
        quantize.gptq(symmetric=True),
        describe_gptq(sym=True),
        Encoding("u4", "f16", "u8", 32),
    ),
    "gptq-rows": (
        quantize.gptq(group_size=-1),
        describe_gptq(group_size=-1),
        Encoding("u4", "f16", "u8", 64),
    ),
    "gptq-v2": (
        quantize.gptq(is_v2=True),
        describe_gptq(checkpoint_format="gptq_v2"),
        Encoding("u4", "f16", "u8", 32),
    ),
    "gptq-act-order": (quantize.gptq(act_order=True), describe_gptq(desc_act=True), None),
    "gptq-8-act-order": (
        quantize.gptq(8, act_order=True),
        describe_gptq(bits=8, desc_act=True),
        None,
    ),
    "gptq-dynamic": (
        quantize.gptq(8, 16),
        describe_gptq(dynamic={"-:.*other": {}, r"+:.*\.matrix": {"bits": 8, "group_size": 16}}),
        Encoding("u8", "f16", "u8", 16),
    ),
    "awq": (
        quantize.awq(),
        {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True},
        Encoding("u4", "f16", "u8", 32),
    ),
    "pack": (
        quantize.pack_quantized(),
        describe_compressed("pack-quantized", strategy="group", group_size=32),
        Encoding("i4", "f16", None, 32),
    ),
    "pack-asym": (
        quantize.pack_quantized(symmetric=False),
        describe_compressed("pack-quantized", **ASYMMETRIC),
        Encoding("u4", "f16", "u8", 32),
    ),
    "pack-8": (
        quantize.pack_quantized(8),
        describe_compressed("pack-quantized", strategy="group", group_size=32, num_bits=8),
        Encoding("i8", "f16", None, 32),
    ),
    "pack-8-asym": (
        quantize.pack_quantized(8, symmetric=False),
        describe_compressed("pack-quantized", num_bits=8, **ASYMMETRIC),
        Encoding("u8", "f16", "u8", 32),
    ),
    "pack-channel": (
        quantize.pack_quantized(group_size=-1),
        describe_compressed("pack-quantized", strategy="channel"),
        Encoding("i4", "f16"),
    ),
    "pack-act-order": (
        quantize.pack_quantized(act_order=True),
        describe_compressed("pack-quantized", strategy="group", group_size=32, actorder="group"),
        None,
    ),
    "int": (
        quantize.int_quantized(),
        describe_compressed("int-quantized", strategy="channel", num_bits=8),
        Encoding("i8", "f32"),
    ),
    "int-asym": (
        quantize.int_quantized(symmetric=False),
        describe_compressed("int-quantized", strategy="channel", num_bits=8, symmetric=False),
        Encoding("u8", "f32", "u8"),
    ),
    "int-tensor": (
        quantize.int_quantized(per_tensor=True),
        describe_compressed("int-quantized", strategy="tensor", num_bits=8),
        Encoding("i8", "f32"),
    ),
    "float": (
        quantize.float8((1, 64), ".weight_scale"),
        describe_compressed("float-quantized", strategy="channel", type="float", num_bits=8),
        None,
    ),
    "float-block": (
        quantize.float8((16, 24), ".weight_scale"),
        describe_compressed(
            "float-quantized", strategy="block", block_structure=[16, 24], type="float", num_bits=8
        ),
        None,
    ),
    "nvfp4": (
        quantize.fp4(16),
        describe_compressed(
            "nvfp4-pack-quantized", strategy="tensor_group", group_size=16, type="float"
        ),
        Encoding("f4e2m1", "f32", None, 16),
    ),
    "mxfp4": (
        quantize.fp4(32),
        describe_compressed("mxfp4-pack-quantized", strategy="group", group_size=32, type="float"),
        Encoding("f4e2m1", "f8e8m0", None, 32),
    ),
    "fp8": (
        quantize.float8((16, 24), ".weight_scale_inv"),
        {**FP8, "weight_block_size": [16, 24]},
        None,
    ),
    "fp8-powers": (
        quantize.float8((16, 24), ".weight_scale_inv", has_powers=True),
        {**FP8, "weight_block_size": [16, 24], "scale_fmt": "ue8m0"},
        None,
    ),
    "fp8-tensor": (
        quantize.float8(None, ".weight_scale_inv"),
        {**FP8, "activation_scheme": "static"},
        None,
    ),
    "fp8-vllm": (quantize.float8(None, ".weight_scale"), FP8, None),
    "nf4": (quantize.nf4(), BNB, Encoding("nf4", "f32", None, 32)),
    "nf4-plain-scales": (quantize.nf4(nested=False), BNB, Encoding("nf4", "f32", None, 32)),
    "nf4-across-rows": (quantize.nf4(128), BNB, None),
    "int8": (
        quantize.int8_rows,
        {"quant_method": "bitsandbytes", "load_in_8bit": True},
        Encoding("i8", "f32"),
    ),
}
SHAPE = (40, 64)
MATRIX = Tensor("model.matrix.weight", SHAPE)


def random_weight(shape: tuple[int, ...] = SHAPE) -> Weight:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def open_checkpoint(directory: Path, settings: Settings) -> QuantizedCheckpoint:
    config = HfConfig(settings, "config.json: quantization_config")
    return QuantizedCheckpoint(read_format(config, Checkpoint(directory)))


def matrix_in(name: str) -> tuple[Tensors, Weight]:
    """Returns the tensors of the matrix in this format, and the values for which they stand."""
    tensors, weight = FORMATS[name][0](random_weight())
    return {"model.matrix" + end: tensor for end, tensor in tensors.items()}, weight
