"""Fixtures that read golden checkpoints (training/golden) and load them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.kernels.library import KernelsMissing, find_kernels
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.config import EngineConfig, KvCacheDtype, ModelConfig, Precision
from ouzel.engine.base import ModelRunner
from tests.backends import GOLDEN, GOLDEN_NAMES, NEED_KERNELS
from tests.cores import share_of_cores


@dataclass(frozen=True)
class Golden:
    directory: Path
    prompt: list[int]
    logits: NDArray[np.float32]  # [prompt, vocabulary]
    greedy: list[int]
    inverse_frequencies: NDArray[np.float32] | None  # None if layers differ
    attention_scaling: float


def read_golden(name: str) -> Golden:
    skip_without_kernels(name)
    with np.load(GOLDEN / name / "golden.npz") as arrays:
        return Golden(
            GOLDEN / name,
            arrays["prompt"].tolist(),
            arrays["logits"],
            arrays["greedy"].tolist(),
            arrays.get("inverse_frequencies"),
            float(arrays.get("attention_scaling", 1.0)),
        )


def skip_without_kernels(name: str) -> None:
    """Skips the test of a golden checkpoint that only the kernels compute, if they cannot run."""
    if name in NEED_KERNELS and isinstance(found := find_kernels(), KernelsMissing):
        pytest.skip(found.reason)


@pytest.fixture(params=GOLDEN_NAMES)
def golden(request: pytest.FixtureRequest) -> Golden:
    return read_golden(request.param)


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def long_context(directory: Path) -> int | None:
    """Returns the context length that selects LongRoPE's long factors, or None for other models.

    Golden logits of models with LongRoPE are computed with the long factors.
    """
    config = read_hf_config(directory).text_model()
    scaling = config.section("rope_scaling")
    if scaling is None or scaling.values.get("long_factor") == scaling.values.get("short_factor"):
        return None
    return config.size("max_position_embeddings")


Load = Callable[..., ModelRunner]


@pytest.fixture(scope="session")
def load(cache_dir: Path) -> Load:
    """Returns a function that loads a checkpoint, or returns the runner of an earlier call.

    Runners stay loaded until a test loads another checkpoint. The default options compute in f32.
    """
    made: dict[tuple[object, ...], ModelRunner] = {}

    def load_once(
        directory: Path,
        weights: str = "f32",
        precision: Precision = "f32",
        kv_cache_dtype: KvCacheDtype = "f32",
    ) -> ModelRunner:
        key = (directory, weights, precision, kv_cache_dtype)
        if any(other != directory for other, *_ in made):
            made.clear()
        if key not in made:
            made[key] = create_runner(
                ModelConfig(
                    model=str(directory),
                    weights=weights,
                    cache_dir=str(cache_dir),
                    max_model_len=long_context(directory),
                ),
                EngineConfig(
                    precision=precision,
                    kv_cache_dtype=kv_cache_dtype,
                    kv_cache_gib=0.02,
                    num_threads=share_of_cores(),
                ),
            )
        return made[key]

    return load_once
