"""Compares rotary angles with transformers, and logits at far and at near positions."""

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
def test_frequencies_of_checkpoints_equal_transformers(name: str) -> None:
    golden = read_golden(name)
    assert golden.inverse_frequencies is not None
    rope = read_rope(read_hf_config(golden.directory), 2 * len(golden.inverse_frequencies))
    np.testing.assert_allclose(rope.inverse_frequencies, golden.inverse_frequencies, rtol=1e-6)
    assert rope.scale == pytest.approx(golden.attention_scaling)


@pytest.mark.parametrize(
    "case", ROPE_CASES, ids=lambda case: case["config"]["rope_parameters"]["rope_type"]
)
def test_frequencies_of_every_variant_equal_transformers(case: dict[str, Any]) -> None:
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


def test_older_and_newer_keys_give_the_same_frequencies() -> None:
    llama3 = {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    older = {"rope_theta": 5e5, "rope_scaling": {"type": "llama3", **llama3}}
    newer = {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, **llama3}}
    first, second = (
        read_rope(HfConfig({"max_position_embeddings": 131072, **keys}), 64)
        for keys in (older, newer)
    )
    np.testing.assert_array_equal(first.inverse_frequencies, second.inverse_frequencies)


def test_an_error_names_an_unknown_variant() -> None:
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


def test_longrope_may_have_a_scale_for_each_list_of_factors() -> None:
    scaling = {
        "type": "longrope",
        "short_factor": [1.0, 2.0],
        "long_factor": [4.0, 8.0],
        "short_mscale": 1.2,
        "long_mscale": 1.5,
        "original_max_position_embeddings": 64,
    }
    rope = read_rope(HfConfig({"max_position_embeddings": 128, "rope_scaling": scaling}), 4)
    short, long = rope.for_context(64), rope.for_context(65)
    assert (short.scale, long.scale) == (1.2, 1.5)
    np.testing.assert_allclose(
        short.inverse_frequencies / long.inverse_frequencies, [4.0, 4.0], rtol=1e-12
    )


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


def test_only_some_families_may_rotate_a_part_of_each_head() -> None:
    config = HfConfig({"max_position_embeddings": 64, "partial_rotary_factor": 0.5})
    assert read_rope(config, 64, rotates_partly=True).inverse_frequencies.shape == (16,)
    with pytest.raises(ModelLoadError, match=r"partial_rotary_factor 0\.5 is not supported"):
        read_rope(config, 64)


@pytest.mark.parametrize("share", [0.0, 0.05, 1.5, -0.5])
def test_the_rotated_part_of_a_head_has_an_even_number_of_dimensions(share: float) -> None:
    config = HfConfig(
        {"max_position_embeddings": 64, "rope_parameters": {"partial_rotary_factor": share}}
    )
    with pytest.raises(
        ModelLoadError,
        match=f"must leave an even number of the 64 dimensions of a head, found {share}",
    ):
        read_rope(config, 64, rotates_partly=True)


@pytest.mark.parametrize("max_model_len", [None, 32, 33])
def test_longrope_serves_the_original_context_unless_max_model_len_is_longer(
    max_model_len: int | None, cache_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The golden logits of phi3 belong to the long factors, `short_logits` to the short factors."""
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
    expected, other = short_logits, golden.logits[:32]
    if max_model_len == 33:
        expected, other = other, expected
    assert relative_error(logits, expected) < 1e-5
    assert relative_error(logits, other) > 0.1
    assert runner.info.max_model_len == (max_model_len or 32)
    assert inspect_model(model, engine).max_model_len == runner.info.max_model_len
    kind = "long" if max_model_len == 33 else "short"
    message = (
        f"max_model_len is {runner.info.max_model_len}, so all requests use the {kind} factors"
    )
    assert message in caplog.text
    runner.close()


def test_yarn_multiplies_the_context_by_its_factor() -> None:
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    config = HfConfig({"max_position_embeddings": 40960, "rope_scaling": scaling})
    assert read_rope(config, 64).max_positions == 131072


def test_angles_at_far_positions_are_exact() -> None:
    rope = read_rope(HfConfig({"max_position_embeddings": 1 << 20, "rope_theta": 1e6}), 8)
    cos, sin = rope.cos_sin(np.array([1_000_003], np.int64))
    expected = 1_000_003 * rope.inverse_frequencies
    np.testing.assert_allclose(cos[0], np.cos(expected), atol=1e-7)
    np.testing.assert_allclose(sin[0], np.sin(expected), atol=1e-7)


class CoarsePositions:
    """A runner that rounds positions to bf16, as graphs do that compute the angles themselves."""

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


# Shifts change the logits of these families: they have norms after the rotation, or queries that
# grow with their position.
NOT_RELATIVE = {"hunyuan-v1-moe", "hunyuan_v1_dense", "ministral3"}
# These families have a table of learned positions.
LEARNED = {"gpt2", "gpt2-untied", "opt", "opt-plain-norm", "opt-post-norm"}
# The attention of these counts the tokens between query and key, and takes no positions.
COUNTED = {"bloom", "mpt", "mpt-scale"}
# These have no attention, or one without rotation: the recurrent layers know the order of tokens.
WITHOUT_POSITIONS = [
    "falcon-mamba",
    "granitemoehybrid",
    "granitemoehybrid-experts",
    "mamba",
    "mamba2",
    "mamba2-bias",
    "nemotron-h-moe",
    "nemotron_h",
]
# Hybrids with few rotary layers: their logits change by at least 0.065 with coarse positions, and
# by at most 0.017 with rounding, in bf16 and with int8 activations.
FEW_ROTARY_LAYERS = {"lfm2", "lfm2-bias", "lfm2-moe", "lfm3-plain", "qwen3_5", "qwen3_5-moe"}
FAMILIES = of_kinds(
    "far positions of other families",
    [
        name
        for name in GOLDEN_NAMES
        if name not in {*NOT_RELATIVE, *LEARNED, *COUNTED, *WITHOUT_POSITIONS}
    ],
)
SHIFTS = [
    *(pytest.param(*family.values, 30_000, marks=family.marks) for family in FAMILIES),
    *(("qwen3", shift) for shift in (300, 1_000, 4_000)),
]


def choose_limit(name: str) -> float:
    """Returns a limit between the error from rounding and the error from coarse positions.

    Rounding gives at most 0.042 in bf16, and 0.034 without AMX, where activations are int8. Coarse
    positions give at least 0.2. The exception is qwen3-moe, whose rows change their experts. Its
    error is 0.071 to 0.077 at any shift from 100 to 40,000, so it comes from rounding alone. With
    coarse positions it is 0.81, so 0.1 is the right limit.
    """
    if name == "qwen3-moe":
        return 0.1
    return 0.035 if name in FEW_ROTARY_LAYERS else 0.07


@pytest.mark.parametrize(("name", "shift"), SHIFTS)
def test_a_shift_changes_logits_by_rounding_only(name: str, shift: int, load: Load) -> None:
    """Computes in the precision that `auto` serves: bf16 if the CPU has it, else f32.

    Coarse positions must exceed the limit; otherwise this test could not fail.
    """
    golden = read_golden(name)
    runner = load(golden.directory, "int8", "auto", "auto")
    driver = Driver(runner)
    _, unshifted = driver.prefill(golden.prompt, len(golden.prompt))
    _, shifted = driver.prefill(golden.prompt, len(golden.prompt), shift)
    _, coarse = Driver(CoarsePositions(runner)).prefill(golden.prompt, len(golden.prompt), shift)
    assert median_error(shifted, unshifted) < choose_limit(name)
    assert relative_error(shifted, unshifted) < 0.2
    assert median_error(coarse, unshifted) > choose_limit(name)


@pytest.mark.parametrize(
    "name", of_kinds("far positions of other families", WITHOUT_POSITIONS, ["granitemoehybrid"])
)
def test_a_shift_changes_nothing_without_positions(name: str, load: Load) -> None:
    golden = read_golden(name)
    driver = Driver(load(golden.directory, "int8", "auto", "auto"))
    _, unshifted = driver.prefill(golden.prompt, len(golden.prompt))
    _, shifted = driver.prefill(golden.prompt, len(golden.prompt), 30_000)
    np.testing.assert_array_equal(shifted, unshifted)


class ForgetfulCache(CoarsePositions):
    """A runner that ignores the cache."""

    def run(self, batch: ForwardBatch) -> Logits:
        nothing = np.zeros_like(batch.past_lens)
        return self._runner.run(
            dataclasses.replace(batch, past_lens=nothing, max_context_len=len(batch.token_ids))
        )


class AmplifiedRounding(CoarsePositions):
    """A runner of a model that amplifies the rounding of angles, equally at all positions."""

    def run(self, batch: ForwardBatch) -> Logits:
        logits = self._runner.run(batch)
        shift = int(batch.positions[0] - batch.past_lens[0])
        noise = np.random.default_rng(shift).standard_normal(logits.shape, np.float32)
        scale = np.float32(0.25 * logits.std() if shift else 0.0)
        noisy: Logits = logits + scale * noise
        return noisy


class OtherExperts(CoarsePositions):
    """A runner of a model that chooses other experts for the last chunk of the first prompt."""

    num_runs = 0

    def run(self, batch: ForwardBatch) -> Logits:
        self.num_runs += 1
        logits = self._runner.run(batch)
        return logits[:, ::-1].copy() if self.num_runs == 4 else logits


def test_the_self_check_tries_more_than_one_prompt(load: Load) -> None:
    runner = OtherExperts(load(read_golden("qwen3").directory, "int8", "auto", "auto"))
    check_runner(runner, 40960, is_rotary=True)
    assert runner.num_runs > 6  # the first prompt takes five: whole, three chunks, shifted


def test_the_self_check_accepts_a_model_that_amplifies_rounding(load: Load) -> None:
    runner = load(read_golden("qwen3").directory, "int8", "auto", "auto")
    check_runner(AmplifiedRounding(runner), 40960, is_rotary=True)


def test_the_self_check_finds_coarse_positions(load: Load) -> None:
    runner = load(read_golden("qwen3").directory, "int8", "auto", "auto")
    check_runner(runner, 40960, is_rotary=True)
    with pytest.raises(ModelLoadError, match="shifting all positions by 4000"):
        check_runner(CoarsePositions(runner), 40960, is_rotary=True)


def test_the_self_check_finds_an_ignored_cache(load: Load) -> None:
    runner = load(read_golden("qwen3").directory, "int8", "auto", "auto")
    with pytest.raises(ModelLoadError, match="several chunks"):
        check_runner(ForgetfulCache(runner), 40960, is_rotary=True)
