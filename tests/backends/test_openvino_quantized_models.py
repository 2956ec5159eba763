"""Loads quantised checkpoints: stored encodings are taken over, or compressed again."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.checkpoint.weight_files import SINGLE_FILE
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ModelRunner
from tests.backends import GOLDEN, quantize
from tests.backends.conftest import read_golden
from tests.backends.forward import Driver, relative_error
from tests.backends.quantize import Quantize, Tensors, Weight
from tests.backends.quantized_formats import FORMATS, Settings, describe_gptq
from tests.release_only import release_only


def make_int8_weight(shape: tuple[int, ...]) -> Weight:
    """Makes a random matrix that int8 stores without an error."""
    levels = np.random.default_rng(8).integers(0, 256, shape)
    levels[:, 0], levels[:, 1] = 0, 255  # makes the scale of each row 1 / 64
    weight: Weight = ((levels - 128) / 64).astype(np.float32)
    return weight


def write_models(directory: Path, quantized: Quantize, settings: Settings) -> tuple[Path, Path]:
    """Writes a checkpoint of one layer with quantised matrices, and a plain one of equal values.

    The embedding is not quantised; int8 stores it without an error.
    """
    config = json.loads((GOLDEN / "llama" / "config.json").read_text()) | {"num_hidden_layers": 1}
    stored: Tensors = {}
    plain: Tensors = {}
    for name, (dtype, original) in quantize.load(GOLDEN / "llama" / "model.safetensors").items():
        if ".layers.1." in name:
            continue
        values = (
            make_int8_weight(original.shape) if name == "model.embed_tokens.weight" else original
        )
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


def load(directory: Path, weights: str = "auto") -> ModelRunner:
    model = ModelConfig(
        model=str(directory), weights=weights, cache_dir=str(directory.parent / "cache")
    )
    return create_runner(
        model, EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.01)
    )


def compute_logits(runner: ModelRunner, name: str = "llama") -> NDArray[np.float32]:
    golden = read_golden(name)
    return Driver(runner).prefill(golden.prompt, len(golden.prompt))[1]


# Formats of all kinds of encodings, and the name of the weights in EngineInfo.
LABELS = {
    "gptq-8": "gptq as u8",
    "awq": "awq as u4, u8",
    "pack": "compressed-tensors as i4, u8",
    "int": "compressed-tensors as i8, u8",
    "nvfp4": "compressed-tensors as f4e2m1, u8",
    "mxfp4": "compressed-tensors as f4e2m1, u8",
    "nf4": "bitsandbytes as nf4, u8",
}


@pytest.mark.parametrize(
    "name",
    [
        # Integers with zero points, floats with scales of powers of two, and a table of values.
        *("awq", "mxfp4", "nf4"),
        *release_only(
            "weights of quantized checkpoints, computed", "gptq-8", "pack", "int", "nvfp4"
        ),
    ],
)
def test_a_model_in_its_stored_encoding_computes_the_same_as_the_plain_model(
    name: str, tmp_path: Path
) -> None:
    quantised, plain = write_models(tmp_path, *FORMATS[name][:2])
    runner = load(quantised)
    assert runner.info.weights == LABELS[name]
    assert relative_error(compute_logits(runner), compute_logits(load(plain, "f32"))) < 1e-5
    assert load(quantised).info.weights == LABELS[name]  # the second load reads the cache


@pytest.mark.release("weights of quantized checkpoints, computed")
@pytest.mark.parametrize("name", ["gptq-act-order", "fp8"])
def test_a_model_without_a_kernel_for_its_encoding_is_compressed_like_a_plain_model(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    quantised, plain = write_models(tmp_path, *FORMATS[name][:2])
    with caplog.at_level(logging.INFO):
        runner = load(quantised)
    assert (
        "0 matrices keep their stored values, 9 others are compressed; all together are u8"
        in caplog.text
    )
    assert runner.info.weights == f"{name.partition('-')[0]} as u8"
    assert relative_error(compute_logits(runner), compute_logits(load(plain, "int8"))) < 1e-5


def to_float32(dtype: str, values: NDArray[Any]) -> Weight:
    if dtype == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32)


def quantize_mxfp4(name: str, experts: Weight) -> tuple[Tensors, Weight]:
    """Returns the tensors, and their values. Shapes are [experts, columns, rows]."""
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


def quantize_gptq(name: str, weight: Weight) -> tuple[Tensors, Weight]:
    tensors, weight = quantize.gptq()(weight)
    return {name.removesuffix(".weight") + end: tensor for end, tensor in tensors.items()}, weight


# Each case: the function that quantises experts, quantization_config, and the name of the weights.
QUANTIZED_EXPERTS: dict[
    str, tuple[Callable[[str, Weight], tuple[Tensors, Weight]], Settings, str]
] = {
    "gpt-oss": (quantize_mxfp4, {"quant_method": "mxfp4"}, "mxfp4 as u8, f4e2m1, f32"),
    "qwen3-moe": (quantize_gptq, describe_gptq(), "gptq as u4, u8, f32"),
}


@pytest.mark.release("weights of quantized checkpoints, computed")
@pytest.mark.parametrize("golden", QUANTIZED_EXPERTS)
def test_experts_keep_their_stored_encoding(golden: str, tmp_path: Path) -> None:
    quantize_experts, settings, label = QUANTIZED_EXPERTS[golden]
    stored: Tensors = {}
    plain: Tensors = {}
    for name, (dtype, values) in quantize.load(GOLDEN / golden / SINGLE_FILE).items():
        if ".experts." in name and not name.endswith("bias"):
            tensors, weight = quantize_experts(name, to_float32(dtype, values))
            stored |= tensors
            plain[name] = ("F32", weight)
        else:
            stored[name] = plain[name] = (dtype, values)
    config = json.loads((GOLDEN / golden / "config.json").read_text())
    write_model(tmp_path / "quantised", stored, config | {"quantization_config": settings})
    write_model(tmp_path / "plain", plain, config)

    runner = load(tmp_path / "quantised")

    assert runner.info.weights == label
    exact = load(tmp_path / "plain", "int8,experts=f32")
    assert relative_error(compute_logits(runner, golden), compute_logits(exact, golden)) < 1e-5


def test_an_explicit_width_compresses_a_quantised_model_again(tmp_path: Path) -> None:
    quantised, plain = write_models(tmp_path, *FORMATS["awq"][:2])
    runner = load(quantised, "f32")
    assert runner.info.weights == "f32"
    assert relative_error(compute_logits(runner), compute_logits(load(plain, "f32"))) < 1e-6


def test_parts_of_a_quantised_model_may_be_compressed_again(tmp_path: Path) -> None:
    quantised, plain = write_models(tmp_path, *FORMATS["awq"][:2])
    runner = load(quantised, "auto,head=f32,embedding=f32")
    assert runner.info.weights == "awq as f32, u4 (auto,embedding=f32,head=f32)"
    assert relative_error(compute_logits(runner), compute_logits(load(plain, "f32"))) < 1e-5


def test_the_log_counts_the_matrices_in_their_stored_encoding(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    quantised, _ = write_models(tmp_path, *FORMATS["gptq"][:2])
    with caplog.at_level(logging.INFO):
        load(quantised)
    assert (
        "is quantised (gptq, 4 bits in groups of 32): "
        "8 matrices keep their stored values, 1 others are compressed; all together are u4, u8"
    ) in caplog.text


def test_inspection_shows_the_stored_encoding(tmp_path: Path) -> None:
    quantised, _ = write_models(tmp_path, *FORMATS["pack"][:2])
    engine = EngineConfig(kv_cache_gib=0.01, precision="f32")  # has no packed matrices
    inspected = inspect_model(ModelConfig(model=str(quantised)), engine)
    assert [encoding for encoding, _ in inspected.weights if "scales" in encoding] == [
        "i4, f16 scales of 32",
        "u8, f32 scales, u8 zero points of a row",
    ]
