"""Rotary positions: the host's angles against transformers, and far positions in the serving precision."""

import dataclasses
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.checks.selfcheck import check_runner
from ouzel.backends.openvino.graph.rope import read_rope
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.checkpoint.hf_config import HfConfig, read_hf_config
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ForwardBatch, ModelRunner
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN, GOLDEN_NAMES, of_kinds
from tests.backends.conftest import Load, read_golden
from tests.backends.forward import Driver, Logits, median_error, relative_error

ROPE_CASES: list[dict[str, Any]] = json.loads((GOLDEN / "rope.json").read_text())  # Any: JSON


@pytest.mark.parametrize(
    "name", ["llama", "llama3", "llama-bias", "qwen2", "qwen3-yarn", "smollm3"]
)
def test_frequencies_of_the_checkpoints(name: str) -> None:
    golden = read_golden(name)
    assert golden.inverse_frequencies is not None
    rope = read_rope(read_hf_config(golden.directory), 2 * len(golden.inverse_frequencies))
    np.testing.assert_allclose(rope.inverse_frequencies, golden.inverse_frequencies, rtol=1e-6)
    assert rope.scale == pytest.approx(golden.attention_scaling)


@pytest.mark.parametrize(
    "case", ROPE_CASES, ids=lambda case: case["config"]["rope_parameters"]["rope_type"]
)
def test_frequencies_of_every_variant(case: dict[str, Any]) -> None:
    config = HfConfig(case["config"])
    rope = read_rope(config, config.size("head_dim"), rotates_partly=True)
    np.testing.assert_allclose(rope.inverse_frequencies, case["inverse_frequencies"], rtol=1e-6)
    assert rope.scale == pytest.approx(case["attention_scaling"])
    if "long_inverse_frequencies" in case:
        longest = rope.for_context(4097)
        np.testing.assert_allclose(
            longest.inverse_frequencies, case["long_inverse_frequencies"], rtol=1e-6
        )
        np.testing.assert_array_equal(
            rope.for_context(4096).inverse_frequencies, rope.inverse_frequencies
        )


def test_older_and_newer_keys_mean_the_same() -> None:
    llama3 = {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    older = {"rope_theta": 5e5, "rope_scaling": {"type": "llama3", **llama3}}
    newer = {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, **llama3}}
    one, other = (
        read_rope(HfConfig({"max_position_embeddings": 131072, **keys}), 64)
        for keys in (older, newer)
    )
    np.testing.assert_array_equal(one.inverse_frequencies, other.inverse_frequencies)


def test_an_unknown_variant_is_refused_by_name() -> None:
    config = HfConfig(
        {"max_position_embeddings": 64, "rope_scaling": {"rope_type": "axial", "factor": 2.0}}
    )
    with pytest.raises(ModelLoadError, match="axial"):
        read_rope(config, 64)


def test_a_negative_stretch_is_refused() -> None:
    config = HfConfig(
        {"max_position_embeddings": 64, "rope_scaling": {"type": "dynamic", "alpha": -1.0}}
    )
    with pytest.raises(
        ModelLoadError, match="alpha of the rotary positions must be >= 0, found -1"
    ):
        read_rope(config, 64)


def test_longrope_has_a_factor_for_each_frequency() -> None:
    factors = {"short_factor": [1.0] * 31, "long_factor": [2.0] * 32}
    config = HfConfig(
        {"max_position_embeddings": 64, "rope_scaling": {"type": "longrope", **factors}}
    )
    with pytest.raises(ModelLoadError, match="short_factor must be a list of 32 numbers"):
        read_rope(config, 64)


def test_longrope_with_one_list_of_factors_serves_the_whole_context() -> None:
    factors = {
        "short_factor": [2.0] * 32,
        "long_factor": [2.0] * 32,
        "original_max_position_embeddings": 16,
    }
    config = HfConfig(
        {"max_position_embeddings": 64, "rope_scaling": {"type": "longrope", **factors}}
    )
    assert read_rope(config, 64).default_positions == 64


def test_heads_turn_partly_only_in_families_that_know_that() -> None:
    config = HfConfig({"max_position_embeddings": 64, "partial_rotary_factor": 0.5})
    assert read_rope(config, 64, rotates_partly=True).inverse_frequencies.shape == (16,)
    with pytest.raises(ModelLoadError, match=r"partial_rotary_factor 0\.5 is not supported"):
        read_rope(config, 64)


@pytest.mark.parametrize("share", [0.0, 0.05, 1.5, -0.5])
def test_a_part_of_a_head_is_an_even_number_of_its_dimensions(share: float) -> None:
    config = HfConfig(
        {"max_position_embeddings": 64, "rope_parameters": {"partial_rotary_factor": share}}
    )
    with pytest.raises(
        ModelLoadError,
        match=f"must leave an even number of the 64 dimensions of a head, found {share}",
    ):
        read_rope(config, 64, rotates_partly=True)


@pytest.mark.parametrize("max_model_len", [None, 32, 33])
def test_longrope_serves_the_original_context_unless_a_longer_one_is_named(
    max_model_len: int | None, cache_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The golden logits of phi3 are of the long factors."""
    golden = read_golden("phi3")
    short_logits = np.load(golden.directory / "golden.npz")["short_logits"]
    model = ModelConfig(
        model=str(golden.directory),
        weights="f32",
        cache_dir=str(cache_dir),
        max_model_len=max_model_len,
    )
    engine = EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.02)
    with caplog.at_level(logging.INFO):
        runner = create_runner(model, engine)
    _, logits = Driver(runner).prefill(golden.prompt[:32], 20)
    expected, other = (short_logits, golden.logits[:32])[:: -1 if max_model_len == 33 else 1]
    assert relative_error(logits, expected) < 1e-5
    assert relative_error(logits, other) > 0.1
    assert runner.info.max_model_len == (max_model_len or 32)
    assert inspect_model(model, engine).max_model_len == runner.info.max_model_len
    kind = "long" if max_model_len == 33 else "short"
    assert (
        f"max_model_len is {runner.info.max_model_len}, so all requests use the {kind} factors"
        in caplog.text
    )
    runner.close()


def test_yarn_reaches_as_far_as_its_factor() -> None:
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    assert (
        read_rope(
            HfConfig({"max_position_embeddings": 40960, "rope_scaling": scaling}), 64
        ).max_positions
        == 131072
    )


def test_angles_at_far_positions_are_exact() -> None:
    rope = read_rope(HfConfig({"max_position_embeddings": 1 << 20, "rope_theta": 1e6}), 8)
    cos, sin = rope.cos_sin(np.array([1_000_003], np.int64))
    expected = 1_000_003 * rope.inverse_frequencies
    np.testing.assert_allclose(cos[0], np.cos(expected), atol=1e-7)
    np.testing.assert_allclose(sin[0], np.sin(expected), atol=1e-7)


# Norms after the rotation, and queries that grow with their position: a layer knows of more than distances.
NOT_RELATIVE = {"hunyuan_v1_dense", "ministral3"}
RELATIVE = [name for name in GOLDEN_NAMES if name not in NOT_RELATIVE]
FAMILIES = of_kinds("far positions of other families", RELATIVE)
SHIFTS = [
    *(pytest.param(*family.values, 30_000, marks=family.marks) for family in FAMILIES),
    *(("qwen3", shift) for shift in (300, 1_000, 4_000)),
]


@pytest.mark.parametrize(("name", "shift"), SHIFTS)
def test_shifted_positions_change_no_more_than_rounding(name: str, shift: int, load: Load) -> None:
    """In bf16 where the CPU has it, else in f32: what `auto` serves.

    Measured at any shift: 0.042 at most with AMX. On a CPU without AMX, where activations are int8:
    0.034 at most for the row in the middle, and 0.076 for qwen3-moe, whose experts change with
    rounding; 0.14 for all rows of qwen3-moe.
    With positions that went through bf16, the row in the middle of qwen3-moe has 0.8.
    """
    golden = read_golden(name)
    driver = Driver(load(golden.directory, "int8", "auto", "auto"))
    _, here = driver.prefill(golden.prompt, len(golden.prompt))
    _, shifted = driver.prefill(golden.prompt, len(golden.prompt), shift)
    assert median_error(shifted, here) < (0.1 if name == "qwen3-moe" else 0.07)
    assert relative_error(shifted, here) < 0.2


class CoarsePositions:
    """A runner whose positions went through bf16, as in graphs that compute the angles themselves."""

    def __init__(self, runner: ModelRunner) -> None:
        self._runner = runner
        self.info = runner.info

    def run(self, batch: ForwardBatch) -> Logits:
        bits = batch.positions.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        coarse = bits.view(np.float32).astype(np.int64)
        return self._runner.run(dataclasses.replace(batch, positions=coarse))

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        self._runner.copy_blocks(sources, destinations)

    def close(self) -> None:
        self._runner.close()


class ForgetfulCache(CoarsePositions):
    """A runner that reads nothing from the cache."""

    def run(self, batch: ForwardBatch) -> Logits:
        nothing = np.zeros_like(batch.past_lens)
        return self._runner.run(
            dataclasses.replace(batch, past_lens=nothing, max_context_len=len(batch.token_ids))
        )


class AmplifiedRounding(CoarsePositions):
    """A runner of a model that makes much of what its angles are rounded by, wherever they are."""

    def run(self, batch: ForwardBatch) -> Logits:
        logits = self._runner.run(batch)
        shift = int(batch.positions[0] - batch.past_lens[0])
        noise = np.random.default_rng(shift).standard_normal(logits.shape, np.float32)
        scale = np.float32(0.25 * logits.std() if shift else 0.0)
        noisy: Logits = logits + scale * noise
        return noisy


class OtherExperts(CoarsePositions):
    """A runner of a model that takes another way for the last chunk of the first prompt."""

    num_runs = 0

    def run(self, batch: ForwardBatch) -> Logits:
        self.num_runs += 1
        logits = self._runner.run(batch)
        return logits[:, ::-1].copy() if self.num_runs == 4 else logits


def test_the_self_check_asks_more_than_one_prompt(load: Load) -> None:
    runner = OtherExperts(load(read_golden("qwen3").directory, "int8", "auto", "auto"))
    check_runner(runner, 40960, is_rotary=True)
    assert runner.num_runs > 6  # of the first: whole, in three chunks, shifted


def test_the_self_check_takes_a_model_that_amplifies_rounding(load: Load) -> None:
    runner = load(read_golden("qwen3").directory, "int8", "auto", "auto")
    check_runner(AmplifiedRounding(runner), 40960, is_rotary=True)


def test_the_self_check_finds_positions_that_lost_bits(load: Load) -> None:
    runner = load(read_golden("qwen3").directory, "int8", "auto", "auto")
    check_runner(runner, 40960, is_rotary=True)
    with pytest.raises(ModelLoadError, match="shifting all positions by 4000"):
        check_runner(CoarsePositions(runner), 40960, is_rotary=True)


def test_the_self_check_finds_a_cache_that_is_not_read(load: Load) -> None:
    runner = load(read_golden("qwen3").directory, "int8", "auto", "auto")
    with pytest.raises(ModelLoadError, match="several chunks"):
        check_runner(ForgetfulCache(runner), 40960, is_rotary=True)
