"""Quantised checkpoints: what each format says, bit by bit; what is kept; and what is wrong with a file."""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends import name_patterns
from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.decoding import decode
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.quantized.formats import read_format
from ouzel.backends.openvino.weights.quantized.stored import QuantizedCheckpoint
from ouzel.backends.openvino.weights.safetensors import SINGLE_FILE, Checkpoint
from ouzel.backends.openvino.weights.source import MatrixSpec, MemoryWriter, Tensor
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ModelRunner
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN, quantize
from tests.backends.conftest import read_golden
from tests.backends.forward import Driver, relative_error
from tests.backends.quantize import Quantize, Tensors, Weight

Settings = dict[str, Any]  # Any: JSON


def gptq(**settings: object) -> Settings:
    return {
        "quant_method": "gptq",
        "bits": 4,
        "group_size": 32,
        "desc_act": False,
        "sym": False,
        **settings,
    }


def compressed(packing: str, **weights: object) -> Settings:
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

# How a weight is quantised, what config.json says of it, and what is kept of it.
FORMATS: dict[str, tuple[Quantize, Settings, Encoding | None]] = {
    "gptq": (quantize.gptq(), gptq(), Encoding("u4", "f16", "u8", 32)),
    "gptq-8": (quantize.gptq(8), gptq(bits=8), Encoding("u8", "f16", "u8", 32)),
    "gptq-sym": (quantize.gptq(symmetric=True), gptq(sym=True), Encoding("u4", "f16", "u8", 32)),
    "gptq-rows": (
        quantize.gptq(group_size=-1),
        gptq(group_size=-1),
        Encoding("u4", "f16", "u8", 64),
    ),
    "gptq-v2": (
        quantize.gptq(is_v2=True),
        gptq(checkpoint_format="gptq_v2"),
        Encoding("u4", "f16", "u8", 32),
    ),
    "gptq-act-order": (quantize.gptq(act_order=True), gptq(desc_act=True), None),
    "gptq-8-act-order": (quantize.gptq(8, act_order=True), gptq(bits=8, desc_act=True), None),
    "gptq-dynamic": (
        quantize.gptq(8, 16),
        gptq(dynamic={"-:.*other": {}, r"+:.*\.matrix": {"bits": 8, "group_size": 16}}),
        Encoding("u8", "f16", "u8", 16),
    ),
    "awq": (
        quantize.awq(),
        {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True},
        Encoding("u4", "f16", "u8", 32),
    ),
    "pack": (
        quantize.pack_quantized(),
        compressed("pack-quantized", strategy="group", group_size=32),
        Encoding("i4", "f16", None, 32),
    ),
    "pack-asym": (
        quantize.pack_quantized(symmetric=False),
        compressed("pack-quantized", **ASYMMETRIC),
        Encoding("u4", "f16", "u8", 32),
    ),
    "pack-8": (
        quantize.pack_quantized(8),
        compressed("pack-quantized", strategy="group", group_size=32, num_bits=8),
        Encoding("i8", "f16", None, 32),
    ),
    "pack-8-asym": (
        quantize.pack_quantized(8, symmetric=False),
        compressed("pack-quantized", num_bits=8, **ASYMMETRIC),
        Encoding("u8", "f16", "u8", 32),
    ),
    "pack-channel": (
        quantize.pack_quantized(group_size=-1),
        compressed("pack-quantized", strategy="channel"),
        Encoding("i4", "f16"),
    ),
    "pack-act-order": (
        quantize.pack_quantized(act_order=True),
        compressed("pack-quantized", strategy="group", group_size=32, actorder="group"),
        None,
    ),
    "int": (
        quantize.int_quantized(),
        compressed("int-quantized", strategy="channel", num_bits=8),
        Encoding("i8", "f32"),
    ),
    "int-asym": (
        quantize.int_quantized(symmetric=False),
        compressed("int-quantized", strategy="channel", num_bits=8, symmetric=False),
        Encoding("u8", "f32", "u8"),
    ),
    "int-tensor": (
        quantize.int_quantized(per_tensor=True),
        compressed("int-quantized", strategy="tensor", num_bits=8),
        Encoding("i8", "f32"),
    ),
    "float": (
        quantize.float8((1, 64), ".weight_scale"),
        compressed("float-quantized", strategy="channel", type="float", num_bits=8),
        None,
    ),
    "float-block": (
        quantize.float8((16, 24), ".weight_scale"),
        compressed(
            "float-quantized", strategy="block", block_structure=[16, 24], type="float", num_bits=8
        ),
        None,
    ),
    "nvfp4": (
        quantize.fp4(16),
        compressed("nvfp4-pack-quantized", strategy="tensor_group", group_size=16, type="float"),
        Encoding("f4e2m1", "f32", None, 16),
    ),
    "mxfp4": (
        quantize.fp4(32),
        compressed("mxfp4-pack-quantized", strategy="group", group_size=32, type="float"),
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
    tensors, weight = FORMATS[name][0](random_weight())
    return {"model.matrix" + end: tensor for end, tensor in tensors.items()}, weight


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("chunk_bytes", [1, 7 * 64 * 4, 2**20])
def test_a_matrix_is_what_its_format_says(
    name: str, chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ouzel.backends.openvino.weights.safetensors.CHUNK_BYTES", chunk_bytes)
    _, settings, encoding = FORMATS[name]
    tensors, weight = matrix_in(name)
    quantize.save(tmp_path / SINGLE_FILE, tensors)
    checkpoint = open_checkpoint(tmp_path, settings)

    assert set(checkpoint.names()) == {MATRIX.name}
    assert checkpoint.stored_encoding(MATRIX) == encoding
    np.testing.assert_allclose(
        np.concatenate(list(checkpoint.rows(MATRIX))), weight, rtol=1e-6, atol=1e-7
    )
    if encoding is not None:
        decoded = [decode(encoding, parts) for parts in checkpoint.parts(MATRIX)]
        np.testing.assert_allclose(np.concatenate(decoded), weight, rtol=1e-6, atol=1e-7)


# What the programs wrote that made the formats (training/golden/make_quantized.py).
WRITTEN = Path(__file__).parent / "quantized"


@pytest.mark.parametrize("name", sorted(path.name for path in WRITTEN.iterdir()))
def test_a_matrix_that_the_formats_own_program_wrote_is_what_that_makes_of_it(name: str) -> None:
    expected = np.load(WRITTEN / name / "expected.npy")
    settings = json.loads((WRITTEN / name / "config.json").read_text())["quantization_config"]
    tensor = Tensor("model.matrix.weight", expected.shape)
    if expected.ndim == 3:
        tensor, expected = (
            Tensor("model.experts", expected.shape, is_transposed=True),
            expected.transpose(0, 2, 1),
        )
    checkpoint = open_checkpoint(WRITTEN / name, settings)
    rows = np.concatenate(list(checkpoint.rows(tensor))).reshape(expected.shape)
    np.testing.assert_allclose(rows, expected, rtol=ROUNDING.get(name, 1e-6), atol=1e-7)


# These programs multiply in lower precision: bfloat16, and half.
ROUNDING = {"nvfp4": 2**-8, "int8": 2**-10}


EXPERTS = "model.layers.0.mlp.experts.gate_up_proj"


def test_experts_in_mxfp4_are_kept_in_the_order_that_was_asked_for(tmp_path: Path) -> None:
    columns, rows = 64, 6
    weights = random_weight((2 * rows, columns))
    tensors, weight = quantize.fp4(32)(weights)
    save = {
        EXPERTS + "_blocks": ("U8", tensors[".weight_packed"][1].reshape(2, rows, 2, 16)),
        EXPERTS + "_scales": ("U8", tensors[".weight_scale"][1].reshape(2, rows, 2)),
    }
    quantize.save(tmp_path / SINGLE_FILE, save)
    checkpoint = open_checkpoint(tmp_path, {"quant_method": "mxfp4"})
    order = (0, 2, 4, 1, 3, 5)
    wanted = MatrixSpec(
        (Tensor(EXPERTS, (2, columns, rows), is_transposed=True),), (2, rows, columns), order
    )

    matrix = CompressedWeights(checkpoint, MemoryWriter()).matrix(wanted, "auto")

    assert set(checkpoint.names()) == {EXPERTS}
    assert matrix.encoding == Encoding("f4e2m1", "f8e8m0", group_size=32)
    expected = weight.reshape(2, rows, columns)[:, list(order)]
    np.testing.assert_array_equal(
        decode(matrix.encoding, matrix.parts).reshape(expected.shape), expected
    )


# Whole models


def exact_in_int8(shape: tuple[int, ...]) -> Weight:
    levels = np.random.default_rng(8).integers(0, 256, shape)
    levels[:, 0], levels[:, 1] = 0, 255  # so that the scale of each row is 1 / 64
    weight: Weight = ((levels - 128) / 64).astype(np.float32)
    return weight


def write_models(directory: Path, quantized: Quantize, settings: Settings) -> tuple[Path, Path]:
    """Writes a checkpoint of one layer whose matrices are quantised, but for the embedding, and a plain one as good."""
    config = json.loads((GOLDEN / "llama" / "config.json").read_text()) | {"num_hidden_layers": 1}
    stored: Tensors = {}
    plain: Tensors = {}
    for name, (dtype, original) in quantize.load(GOLDEN / "llama" / "model.safetensors").items():
        if ".layers.1." in name:
            continue
        values = exact_in_int8(original.shape) if name == "model.embed_tokens.weight" else original
        if "proj" in name or "lm_head" in name:
            tensors, weight = quantized(values)
            base = name.removesuffix(".weight")
            stored |= {base + end: tensor for end, tensor in tensors.items()}
            plain[name] = ("F32", weight)
        else:
            stored[name] = plain[name] = (dtype, values)
    paths = directory / "quantised", directory / "plain"
    write_model(paths[0], stored, config | {"quantization_config": settings})
    write_model(paths[1], plain, config)
    return paths


def write_model(directory: Path, tensors: Tensors, config: Settings) -> None:
    directory.mkdir()
    quantize.save(directory / SINGLE_FILE, tensors)
    (directory / "config.json").write_text(json.dumps(config))


def create(directory: Path, weights: str = "auto") -> ModelRunner:
    model = ModelConfig(
        model=str(directory), weights=weights, cache_dir=str(directory.parent / "cache")
    )
    return create_runner(
        model, EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.01)
    )


def prompt_logits(runner: ModelRunner, name: str = "llama") -> NDArray[np.float32]:
    golden = read_golden(name)
    return Driver(runner).prefill(golden.prompt, len(golden.prompt))[1]


KEPT = {
    "gptq-8": "gptq as u8",
    "awq": "awq as u4, u8",
    "pack": "compressed-tensors as i4, u8",
    "int": "compressed-tensors as i8, u8",
    "nvfp4": "compressed-tensors as f4e2m1, u8",
    "mxfp4": "compressed-tensors as f4e2m1, u8",
    "nf4": "bitsandbytes as nf4, u8",
}


@pytest.mark.parametrize("name", KEPT)
def test_a_model_whose_encoding_is_kept_computes_what_its_weights_are_worth(
    name: str, tmp_path: Path
) -> None:
    quantised, plain = write_models(tmp_path, *FORMATS[name][:2])
    runner = create(quantised)
    assert runner.info.weights == KEPT[name]
    assert relative_error(prompt_logits(runner), prompt_logits(create(plain, "f32"))) < 1e-5
    assert create(quantised).info.weights == KEPT[name]  # from the cache


@pytest.mark.release("weights of quantized checkpoints, computed")
@pytest.mark.parametrize("name", ["gptq-act-order", "fp8"])
def test_a_model_whose_encoding_no_kernel_takes_is_compressed_like_a_plain_one(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    quantised, plain = write_models(tmp_path, *FORMATS[name][:2])
    with caplog.at_level(logging.INFO):
        runner = create(quantised)
    assert (
        "0 matrices keep their stored values, 9 others are compressed; all together are u8"
        in caplog.text
    )
    assert runner.info.weights == f"{name.partition('-')[0]} as u8"
    assert relative_error(prompt_logits(runner), prompt_logits(create(plain, "int8"))) < 1e-5


def floats(dtype: str, values: NDArray[Any]) -> Weight:
    return (
        (values.astype(np.uint32) << 16).view(np.float32)
        if dtype == "BF16"
        else values.astype(np.float32)
    )


def in_mxfp4(name: str, experts: Weight) -> tuple[Tensors, Weight]:
    """Takes and returns [experts, columns, rows]."""
    num_experts, columns, rows = experts.shape
    tensors, weight = quantize.fp4(32)(experts.transpose(0, 2, 1).reshape(-1, columns))
    stored: Tensors = {
        name + "_blocks": (
            "U8",
            tensors[".weight_packed"][1].reshape(num_experts, rows, columns // 32, 16),
        ),
        name + "_scales": (
            "U8",
            tensors[".weight_scale"][1].reshape(num_experts, rows, columns // 32),
        ),
    }
    return stored, weight.reshape(num_experts, rows, columns).transpose(0, 2, 1)


def in_gptq(name: str, weight: Weight) -> tuple[Tensors, Weight]:
    tensors, weight = quantize.gptq()(weight)
    return {name.removesuffix(".weight") + end: tensor for end, tensor in tensors.items()}, weight


EXPERTS_OF: dict[str, tuple[Callable[[str, Weight], tuple[Tensors, Weight]], Settings, str]] = {
    "gpt-oss": (in_mxfp4, {"quant_method": "mxfp4"}, "mxfp4 as u8, f4e2m1, f32"),
    "qwen3-moe": (in_gptq, gptq(), "gptq as u4, u8, f32"),
}


@pytest.mark.release("weights of quantized checkpoints, computed")
@pytest.mark.parametrize("golden", EXPERTS_OF)
def test_experts_are_kept_as_they_are_stored(golden: str, tmp_path: Path) -> None:
    quantised, settings, label = EXPERTS_OF[golden]
    stored: Tensors = {}
    plain: Tensors = {}
    for name, (dtype, values) in quantize.load(GOLDEN / golden / SINGLE_FILE).items():
        if ".experts." in name and not name.endswith("bias"):
            tensors, weight = quantised(name, floats(dtype, values))
            stored |= tensors
            plain[name] = ("F32", weight)
        else:
            stored[name] = plain[name] = (dtype, values)
    config = json.loads((GOLDEN / golden / "config.json").read_text())
    write_model(tmp_path / "quantised", stored, config | {"quantization_config": settings})
    write_model(tmp_path / "plain", plain, config)

    runner = create(tmp_path / "quantised")

    assert runner.info.weights == label
    exact = create(tmp_path / "plain", "int8,experts=f32")
    assert relative_error(prompt_logits(runner, golden), prompt_logits(exact, golden)) < 1e-5


def test_a_width_that_is_named_compresses_a_quantised_model_again(tmp_path: Path) -> None:
    quantised, plain = write_models(tmp_path, *FORMATS["awq"][:2])
    runner = create(quantised, "f32")
    assert runner.info.weights == "f32"
    assert relative_error(prompt_logits(runner), prompt_logits(create(plain, "f32"))) < 1e-6


def test_parts_of_a_quantised_model_may_be_compressed_again(tmp_path: Path) -> None:
    quantised, plain = write_models(tmp_path, *FORMATS["awq"][:2])
    runner = create(quantised, "auto,head=f32,embedding=f32")
    assert runner.info.weights == "awq as f32, u4 (auto,embedding=f32,head=f32)"
    assert relative_error(prompt_logits(runner), prompt_logits(create(plain, "f32"))) < 1e-5


def test_the_log_says_what_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    quantised, _ = write_models(tmp_path, *FORMATS["gptq"][:2])
    with caplog.at_level(logging.INFO):
        create(quantised)
    assert (
        "is quantised (gptq, 4 bits in groups of 32): "
        "8 matrices keep their stored values, 1 others are compressed; all together are u4, u8"
    ) in caplog.text


def test_inspection_shows_what_would_be_kept(tmp_path: Path) -> None:
    quantised, _ = write_models(tmp_path, *FORMATS["pack"][:2])
    found = inspect_model(ModelConfig(model=str(quantised)), EngineConfig(kv_cache_gib=0.01))
    assert [encoding for encoding, _ in found.weights if "scales" in encoding] == [
        "i4, f16 scales of 32",
        "u8, f32 scales, u8 zero points of a row",
    ]


# What is wrong


def dropped(name: str, end: str) -> Tensors:
    tensors, _ = matrix_in(name)
    del tensors["model.matrix" + end]
    return tensors


def changed(name: str, end: str, dtype: str, shape: tuple[int, ...], value: int = 0) -> Tensors:
    tensors, _ = matrix_in(name)
    return tensors | {"model.matrix" + end: (dtype, np.full(shape, value))}


# The tensors, what config.json says differently, and the error.
BROKEN: dict[str, tuple[Tensors, Settings, str]] = {
    "gptq, no scales": (dropped("gptq", ".scales"), {}, "tensor model.matrix.scales is missing"),
    "gptq, no zeros": (dropped("gptq", ".qzeros"), {}, "tensor model.matrix.qzeros is missing"),
    "gptq, no values": (dropped("gptq", ".qweight"), {}, "tensor model.matrix.weight is missing"),
    "gptq, values of another shape": (
        changed("gptq", ".qweight", "I32", (8, 20)),
        {},
        r"model.matrix.qweight has the shape \[8, 20\], but config.json requires \[8, 40\]",
    ),
    "gptq, another type": (
        changed("gptq", ".qweight", "I64", (8, 40)),
        {},
        "qweight is stored as I64",
    ),
    "gptq, scattered groups": (
        changed("gptq", ".g_idx", "I32", (64,), 1),
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
    "awq, no scales": (dropped("awq", ".scales"), {}, "tensor model.matrix.scales is missing"),
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
        dropped("pack", ".weight_scale"),
        {},
        "tensor model.matrix.weight_scale is missing",
    ),
    "pack, no zeros": (
        dropped("pack-asym", ".weight_zero_point"),
        ASYMMETRIC,
        "weight_zero_point is missing",
    ),
    "pack, another shape": (
        changed("pack", ".weight_shape", "I64", (2,), 64),
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
    "pack, said to be floats": (
        matrix_in("pack")[0],
        {"type": "float"},
        "its config_group says float4",
    ),
    "nvfp4, no scale for all": (
        dropped("nvfp4", ".weight_global_scale"),
        {},
        "weight_global_scale is missing",
    ),
    "nvfp4, a scale of zero": (
        changed("nvfp4", ".weight_global_scale", "F32", (1,)),
        {},
        r"model.matrix.weight_global_scale must be positive and finite, found 0.0",
    ),
    "float, no scale": (
        dropped("float", ".weight_scale"),
        {},
        "stored as F8_E4M3, but model.matrix.weight_scale is",
    ),
    "fp8, no scale": (
        dropped("fp8", ".weight_scale_inv"),
        {},
        "but model.matrix.weight_scale_inv is missing",
    ),
    "fp8, other blocks": (
        matrix_in("fp8")[0],
        {"weight_block_size": [16, 16]},
        r"weight_scale_inv has the shape \[3, 3\], but scales of \[40, 64\] in blocks of 16x16 need \[3, 4\]",
    ),
    "fp8, another float": (
        matrix_in("fp8")[0],
        {"fmt": "e5m2"},
        'fmt "e5m2" is not supported; supported: e4m3',
    ),
    "nf4, no state": (
        dropped("nf4", ".weight.quant_state.bitsandbytes__nf4"),
        {},
        "model.matrix.weight.quant_state.bitsandbytes__nf4 is missing",
    ),
    "nf4, no scales": (
        dropped("nf4", ".weight.absmax"),
        {},
        "tensor model.matrix.weight.absmax is missing",
    ),
    "nf4, no scales of scales": (
        dropped("nf4", ".weight.nested_absmax"),
        {},
        "nested_absmax is missing",
    ),
    "int8, no scales": (dropped("int8", ".SCB"), {}, "tensor model.matrix.SCB is missing"),
    "int8, another layout": (
        changed("int8", ".weight_format", "U8", (), 2),
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
def test_what_is_wrong_is_told_by_name(fault: str, tmp_path: Path) -> None:
    tensors, changes, message = BROKEN[fault]
    kind = fault.partition(",")[0].replace("an unknown method", "gptq")
    settings = json.loads(json.dumps(FORMATS[kind][1]))
    inner = (
        settings["config_groups"]["group_0"]["weights"] if "config_groups" in settings else settings
    )
    inner |= changes
    quantize.save(tmp_path / SINGLE_FILE, tensors)
    with pytest.raises(ModelLoadError, match=message):
        open_checkpoint(tmp_path, settings).stored_encoding(MATRIX)


def grouped(**groups: Settings) -> Settings:
    return compressed("mixed-precision") | {"config_groups": groups}


WEIGHTS_4 = {"num_bits": 4, "strategy": "group", "group_size": 32}
WEIGHTS_8 = {"num_bits": 8, "strategy": "group", "group_size": 32}


@pytest.mark.parametrize(
    "targets", [["model.matrix"], ["re:.*matrix"], ["re:nothing", "re:model[.]mat.*"]]
)
def test_a_matrix_is_in_the_group_that_names_it_best(targets: list[str], tmp_path: Path) -> None:
    settings = grouped(
        every={"targets": ["Linear"], "weights": WEIGHTS_8},
        some={"targets": targets, "weights": WEIGHTS_4},
    )
    quantize.save(tmp_path / SINGLE_FILE, matrix_in("pack")[0])
    encoding = open_checkpoint(tmp_path, settings).stored_encoding(MATRIX)
    assert encoding == Encoding("i4", "f16", group_size=32)


def test_a_matrix_that_may_be_in_several_groups_is_refused(tmp_path: Path) -> None:
    settings = grouped(
        one={"targets": ["re:.*matrix"], "weights": WEIGHTS_8},
        other={"targets": ["re:model.*"], "weights": WEIGHTS_4},
    )
    quantize.save(tmp_path / SINGLE_FILE, matrix_in("pack")[0])
    with pytest.raises(
        ModelLoadError, match=r"one of config\.json's config_groups must target it, found 2"
    ):
        open_checkpoint(tmp_path, settings).stored_encoding(MATRIX)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(.|.|.|.|.|.|.|.)*!", "targets: matching its patterns takes longer than 0.1 s"),
        ("(" * 3000 + ")" * 3000, "targets: .* is not a regular expression"),
    ],
)
def test_patterns_take_no_more_than_their_time(
    pattern: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_patterns, "LIMITS", replace(name_patterns.LIMITS, cpu_s=0.1))
    quantize.save(tmp_path / SINGLE_FILE, matrix_in("pack")[0])
    with pytest.raises(ModelLoadError, match=message):
        open_checkpoint(
            tmp_path, grouped(every={"targets": ["re:" + pattern], "weights": WEIGHTS_4})
        )


def test_blocks_of_scales_that_cannot_be_are_refused(tmp_path: Path) -> None:
    tensors, _ = matrix_in("nf4")
    name = "model.matrix.weight.quant_state.bitsandbytes__nf4"
    state = json.loads(np.asarray(tensors[name][1], np.uint8).tobytes()) | {
        "nested_blocksize": 2**63
    }
    content = np.frombuffer(json.dumps(state).encode(), np.uint8)
    quantize.save(tmp_path / SINGLE_FILE, tensors | {name: ("U8", content)})
    with pytest.raises(ModelLoadError, match="nested_blocksize cannot be 9223372036854775808"):
        open_checkpoint(tmp_path, FORMATS["nf4"][1]).stored_encoding(MATRIX)


def test_what_is_said_and_not_done_is_told(tmp_path: Path) -> None:
    settings = compressed("int-quantized", num_bits=8, strategy="channel") | {
        "kv_cache_scheme": {"num_bits": 8}
    }
    settings["config_groups"]["group_0"]["input_activations"] = {"num_bits": 8}
    quantize.save(tmp_path / SINGLE_FILE, matrix_in("int")[0])
    assert read_format(HfConfig(settings), Checkpoint(tmp_path)).summary == (
        "compressed-tensors, int8 in rows; activations are not quantised; "
        "--kv-cache-dtype decides the type of cached keys and values"
    )


def test_biases_of_zeros_beside_gptq_are_no_leftovers(tmp_path: Path) -> None:
    tensors, _ = matrix_in("gptq")
    biases: Tensors = {
        "model.matrix.bias": ("F16", np.zeros(40)),
        "model.plain.bias": ("F16", np.zeros(40)),
    }
    quantize.save(tmp_path / SINGLE_FILE, tensors | biases)
    assert set(open_checkpoint(tmp_path, gptq()).names()) == {MATRIX.name, "model.plain.bias"}
    biases["model.matrix.bias"] = ("F16", np.ones(40))
    quantize.save(tmp_path / SINGLE_FILE, tensors | biases)
    assert "model.matrix.bias" in set(open_checkpoint(tmp_path, gptq()).names())


# What the plugin makes of encodings

QUICK = {
    encoding
    for _, _, encoding in FORMATS.values()
    if encoding is not None and not encoding.is_slow_integer
}


@pytest.mark.parametrize("precision", ["f32", "default"])
@pytest.mark.parametrize("encoding", sorted(QUICK, key=str), ids=str)
def test_what_is_kept_stays_packed_while_it_runs(
    encoding: Encoding, precision: str, tmp_path: Path
) -> None:
    """One FullyConnected reads the constant as it is: nothing converts or scales it at each step."""
    name = next(name for name, (_, _, kept) in FORMATS.items() if kept == encoding)
    quantize.save(tmp_path / SINGLE_FILE, matrix_in(name)[0])
    weights = CompressedWeights(open_checkpoint(tmp_path, FORMATS[name][1]), MemoryWriter())
    matrix = weights.matrix(MatrixSpec((MATRIX,), SHAPE), "auto")
    graph = PagedGraph()
    rows = ops.parameter([-1, SHAPE[1]], ov.Type.f32)
    model = ov.Model([ops.result(ops.matmul(rows, graph.matrix(matrix), False, True))], [rows])
    properties = {"INFERENCE_PRECISION_HINT": ov.Type.f32, "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    compiled = ov.Core().compile_model(model, "CPU", properties if precision == "f32" else {})

    nodes = [node.get_rt_info() for node in compiled.get_runtime_model().get_ops()]
    kinds = {node["layerType"].astype(str) for node in nodes}
    assert "FullyConnected" in kinds
    assert kinds <= {"FullyConnected", "Const", "Input", "Output", "Reorder"}
    assert encoding.values in {node["outputPrecisions"].astype(str) for node in nodes}
    inputs = np.random.default_rng(9).standard_normal((5, SHAPE[1])).astype(np.float32)
    expected = inputs @ decode(encoding, matrix.parts).T
    # bf16 and int8 activations round by 3e-3, f32 by 1e-7
    assert relative_error(compiled([inputs])[0], expected) < (1e-6 if precision == "f32" else 0.01)
