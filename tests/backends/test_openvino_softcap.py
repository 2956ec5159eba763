"""Attention with a soft cap, which only Ouzel's own kernels compute: caches, options, refusals."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.backends.openvino.kernels.library import KernelsMissing, find_kernels
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.config import EngineConfig, KvCacheDtype, ModelConfig, Precision
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN
from tests.backends.checkpoint_edits import change_config
from tests.backends.conftest import Load, read_golden
from tests.backends.forward import Driver, relative_error

needs_kernels = pytest.mark.skipif(
    isinstance(find_kernels(), KernelsMissing), reason="ouzel-kernels cannot run here"
)


needs_bf16 = pytest.mark.skipif(
    "BF16" not in ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"),
    reason="this CPU computes no bf16",
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Returns a copy of a checkpoint whose attention has a soft cap."""
    return shutil.copytree(GOLDEN / "gemma2", tmp_path / "model")


def model_config(directory: Path) -> ModelConfig:
    return ModelConfig(
        model=str(directory), weights="f32", cache_dir=str(directory.parent / "cache")
    )


@needs_kernels
@pytest.mark.parametrize(
    ("precision", "kv_cache_dtype", "tolerance"),
    # Measured: 7.7e-4, 1.7e-2, and 2.1e-2 and 3.2e-2 in bf16.
    [
        ("f32", "f16", 2e-3),
        ("f32", "u8", 0.04),
        pytest.param("bf16", "f16", 0.05, marks=needs_bf16),
        pytest.param("bf16", "u8", 0.07, marks=needs_bf16),
    ],
)
def test_every_cache_and_precision_is_near_transformers(
    precision: Precision, kv_cache_dtype: KvCacheDtype, tolerance: float, load: Load
) -> None:
    golden = read_golden("gemma2")
    runner = load(golden.directory, "f32", precision, kv_cache_dtype)
    _, logits = Driver(runner).prefill(golden.prompt, 7)
    assert relative_error(logits, golden.logits) < tolerance
    assert (runner.info.precision, runner.info.kv_cache_dtype) == (precision, kv_cache_dtype)
    assert runner.info.kernels, "kernels compute the attention, though no matrix is packed"


@needs_kernels
def test_a_cap_above_all_scores_gives_the_results_of_the_runtime(
    directory: Path, load: Load
) -> None:
    """The runtime computes the model without a cap, and keeps its keys in another order."""
    found, keys = [], []
    for softcap, name in ((1e6, "high"), (None, "none")):
        own = shutil.copytree(directory, directory.parent / name)
        change_config(own, attn_logit_softcapping=softcap)
        runner = load(own)
        assert isinstance(runner, OpenVINORunner)
        _, logits = Driver(runner).prefill(read_golden("gemma2").prompt, 40)
        found.append(logits)
        keys.append(runner.read_keys(40))
    np.testing.assert_allclose(found[0], found[1], atol=1e-5 * np.abs(found[1]).max())
    for name, own_keys in keys[0].items():
        np.testing.assert_allclose(own_keys, keys[1][name], atol=1e-5 * np.abs(own_keys).max())


@needs_kernels
@pytest.mark.parametrize("kv_cache_dtype", ["auto", "f16", "f32"])
def test_inspect_tells_the_cache_of_a_load(kv_cache_dtype: KvCacheDtype, directory: Path) -> None:
    engine = EngineConfig(precision="f32", kv_cache_dtype=kv_cache_dtype, kv_cache_gib=0.02)
    found = inspect_model(model_config(directory), engine)
    info = create_runner(model_config(directory), engine).info
    assert found.kv_cache_dtype == info.kv_cache_dtype
    assert found.num_kv_tokens == info.num_blocks * info.block_size


@needs_kernels
def test_a_cache_in_bf16_is_refused(directory: Path) -> None:
    named = r"dtype must be auto, f16, u8, or f32 with precision f32, .* soft cap, given bf16"
    with pytest.raises(ModelLoadError, match=named):
        create_runner(model_config(directory), EngineConfig(kv_cache_dtype="bf16"))


@needs_kernels
def test_heads_that_the_kernels_lack_are_refused(directory: Path) -> None:
    change_config(directory, head_dim=16, num_attention_heads=4, num_key_value_heads=4)
    with pytest.raises(ModelLoadError, match="head_dim is a multiple of 32 and at most 512"):
        create_runner(model_config(directory), EngineConfig())


def test_without_the_kernels_the_model_is_refused_before_its_weights_are_compressed(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = KernelsMissing("the package ouzel-kernels is not installed")
    monkeypatch.setattr("ouzel.backends.openvino.kernels.softcap.find_kernels", lambda: missing)
    for start in (create_runner, inspect_model):
        with pytest.raises(
            ModelLoadError, match=r"attn_logit_softcapping is 1.5, .* is not installed"
        ):
            start(model_config(directory), EngineConfig())
    assert not (directory.parent / "cache").exists()
