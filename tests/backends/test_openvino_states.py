"""Tests recurrent layers: operations, tables of states, and schedules that move states.

Hybrids are models with recurrent layers and attention.
"""

import dataclasses
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.checks.selfcheck import check_runner
from ouzel.backends.openvino.checks.state_check import REFERENCES, check_operation, check_operations
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.graph.states import causal_conv, operation
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.runners.state_tables import log_states, plan_states
from ouzel.backends.openvino.runners.tables import Table
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ForwardBatch, ModelRunner
from ouzel.engine.cache.state_slots import num_slots
from ouzel.engine.core import EngineCore
from ouzel.errors import ModelLoadError
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason
from tests.backends import GOLDEN, of_kinds
from tests.backends.conftest import Load, read_golden
from tests.backends.forward import Driver, Sequence, relative_error
from tests.engine.requests import make_request, run, run_alone

# States of linear attention and states of Mamba, each beside states of convolutions.
HYBRIDS = of_kinds(
    "states of further hybrids",
    ["lfm2", "qwen3_5", "granitemoehybrid", "nemotron_h", "falcon-h1", "mamba2"],
    ["qwen3_5", "granitemoehybrid"],
)
BLOCK = 32


def build_convolution() -> ov.Model:
    graph = PagedGraph()
    rows = graph.input("rows", [-1, 8], ov.Type.f32)
    return graph.finish(
        causal_conv(graph, rows, 0, np.ones((8, 1, 3), np.float32), np.ones(8, np.float32))
    )


@pytest.mark.parametrize("part", ["rows", "states"])
def test_an_error_names_an_operation_that_the_runtime_computes_differently(part: str) -> None:
    core, model = ov.Core(), build_convolution()
    check_operations(core, model, "CPU")
    reference = REFERENCES["PagedCausalConv1D"]

    def compute_differently(
        *inputs: NDArray[np.float32],
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        rows, states = reference.compute(*inputs)
        return (rows * 1.1, states) if part == "rows" else (rows, states[:, ::-1])

    node = next(node for node in model.get_ops() if node.get_type_name() == "PagedCausalConv1D")
    with pytest.raises(
        ModelLoadError, match=f"PagedCausalConv1D of this runtime, .* gives {part} with an error"
    ):
        check_operation(
            core, node, dataclasses.replace(reference, compute=compute_differently), "CPU"
        )


def test_an_error_names_a_missing_operation_or_attribute() -> None:
    rows = ops.parameter([-1, 8], ov.Type.f32)
    with pytest.raises(ModelLoadError, match="operation PagedNothing"):
        operation("PagedNothing", [rows])
    graph = PagedGraph()
    inputs = [
        rows,
        ops.parameter([-1, 8, 3], ov.Type.f32),
        graph.array(np.ones((8, 1, 3), np.float32)),
    ]
    with pytest.raises(
        ModelLoadError, match=r"operation PagedCausalConv1D .* no attribute sharpness"
    ):
        operation(
            "PagedCausalConv1D",
            [*inputs, graph.array(np.ones(8, np.float32)), *graph.state_paging],
            sharpness=1,
        )


class ForgetfulRunner:
    """A runner that begins each chunk with a state of zeros."""

    def __init__(self, runner: ModelRunner) -> None:
        self._runner = runner
        self.info = runner.info

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        assert batch.state_slots is not None
        slots = batch.state_slots * np.array([0, 1], np.int32)
        return self._runner.run(dataclasses.replace(batch, state_slots=slots))

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        self._runner.copy_blocks(sources, destinations)

    def close(self) -> None:
        self._runner.close()


@pytest.mark.parametrize("name", HYBRIDS)
def test_the_self_check_finds_ignored_states(name: str, load: Load) -> None:
    runner = load(read_golden(name).directory, "int8", "auto", "auto")
    check_runner(runner, 40960, is_rotary=True)
    with pytest.raises(ModelLoadError, match="several chunks"):
        check_runner(ForgetfulRunner(runner), 40960, is_rotary=True)


@pytest.mark.parametrize("name", HYBRIDS)
def test_two_sequences_continue_from_one_state_in_one_step(name: str, load: Load) -> None:
    """The state does not change, so a fork and a prefix hit need no copy."""
    golden = read_golden(name)
    driver = Driver(load(golden.directory))
    first, rest = golden.prompt[:BLOCK], golden.prompt[BLOCK:]
    parent, _ = driver.prefill(first, BLOCK)

    def fork() -> tuple[Sequence, list[int]]:
        sequence = driver.sequence()
        sequence.blocks[0] = parent.blocks[0]
        sequence.slot = parent.slot
        sequence.num_cached = BLOCK
        return sequence, rest

    together = driver.step([fork(), fork()], rows="all").reshape(2, len(rest), -1)
    later = driver.step([fork()], rows="all")
    for logits in (*together, later):
        assert relative_error(logits, golden.logits[BLOCK:]) < 1e-5


@pytest.mark.release("states of linear attention: branches, limits")
def test_the_number_of_cached_states_has_a_limit(tmp_path: Path) -> None:
    """Two convolutions have states of 32 channels and 3 values: 768 bytes a slot in f32."""
    for options, num_cached in (
        ({"state_cache_gib": 7700 / 2**30}, 10),
        ({"state_cache_gib": 0.0}, 0),
        ({}, 8 * 4),
        ({"prefix_caching": False}, 0),
    ):
        engine = EngineConfig(precision="f32", kv_cache_gib=0.001, max_num_seqs=4, **options)
        model = ModelConfig(model=str(GOLDEN / "lfm2"), weights="f32", cache_dir=str(tmp_path))
        assert create_runner(model, engine).info.num_state_slots == num_slots(4, num_cached)


def test_memory_for_states_limits_the_number_of_sequences(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The slots have 1 GiB, and 40 % of the free memory hold five slots, or two."""
    tables = [Table("state.conv.0", ov.Type.f32, (2**28,))]
    engine = EngineConfig(max_num_seqs=4, state_cache_gib=3.5)
    plan = plan_states(tables, engine, int(13.75 * 2**30))
    assert (plan.max_num_seqs, plan.num_slots) == (2, num_slots(2, 3))
    assert plan.num_bytes == num_slots(2, 3) * 2**30
    log_states(plan, engine)
    assert "max_num_seqs is 2 instead of 4" in caplog.text
    with pytest.raises(ModelLoadError, match=r"the states of a sequence need 3\.00 GiB"):
        plan_states(tables, engine, int(6.25 * 2**30))


def test_a_scan_with_one_value_in_each_head_needs_memory_beside_the_states() -> None:
    """512 tokens need 3 GiB: an input, a step and a result in float32 for each head."""
    tables = [Table("state.ssm.0", ov.Type.f32, (2**19, 1, 1))]
    engine = EngineConfig(max_num_seqs=2**9, max_num_batched_tokens=512, prefix_caching=False)
    slots = plan_states(tables, engine, 4 * 2**30).max_num_seqs
    assert 0 < slots < plan_states(tables, engine, 5 * 2**30).max_num_seqs
    with pytest.raises(ModelLoadError, match="the states of a sequence need"):
        plan_states(tables, engine, 3 * 2**30)


def test_options_of_a_cache_are_named_if_the_model_has_none(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    model = ModelConfig(model=str(GOLDEN / "mamba2"), weights="f32", cache_dir=str(tmp_path))
    create_runner(model, EngineConfig(kv_cache_gib=0.5, kv_cache_dtype="f16", max_num_seqs=2))
    for option in ("kv_cache_gib 0.5", "kv_cache_dtype f16"):
        assert f"{option} has no effect: the model has no attention" in caplog.text


def test_blocks_of_a_model_without_attention_take_no_memory(load: Load) -> None:
    """The states of prompts are kept at the ends of blocks, as beside attention."""
    golden = read_golden("mamba2")
    runner = load(golden.directory)
    assert (runner.info.kv_cache_dtype, runner.info.block_size) == ("none", BLOCK)
    engine = EngineCore(runner)
    tokens = [run_alone(engine, make_request(golden.prompt, max_tokens=8)) for _ in range(2)]
    assert [each[0].token_ids for each in tokens] == [golden.greedy[:8]] * 2
    assert engine.stats().num_prefix_hit_tokens == BLOCK


def make_random_request(random: Random, common: list[int]) -> EngineRequest:
    """Makes a greedy request, choices or beams; all prompts share the first tokens of `common`."""
    prompt = common[: random.randrange(100)] + [
        random.randrange(160) for _ in range(random.randrange(1, 50))
    ]
    form = random.choice(["greedy", "greedy", "choices", "beams"])
    max_tokens = random.randrange(1, 40)
    if form == "beams":
        return make_request(
            prompt, max_tokens=max_tokens, n=2, beam_search=BeamSearchParams(width=3)
        )
    if form == "choices":
        return make_request(
            prompt, max_tokens=max_tokens, n=3, temperature=0.8, seed=random.randrange(1000)
        )
    return make_request(prompt, max_tokens=max_tokens)


@pytest.mark.release("states of linear attention: branches, limits")
@pytest.mark.parametrize(
    ("name", "block_bytes", "slot_bytes"),
    [("lfm2", 4096, 768), ("qwen3_5", 8192, 7168), ("falcon-h1", 16384, 11264)],
)
def test_many_requests_get_the_tokens_of_each_alone(
    name: str, block_bytes: int, slot_bytes: int, load: Load, tmp_path: Path
) -> None:
    """The 32 streams have hits, forks, beams, aborts and preemption.

    The requests alone have no prefix cache.
    """
    directory, random = read_golden(name).directory, Random(0)
    common = [random.randrange(160) for _ in range(100)]
    requests = [make_random_request(random, common) for _ in range(36)]
    aborted = {request.request_id: random.randrange(5, 60) for request in requests[::8]}
    settings = EngineConfig(
        precision="f32",
        kv_cache_dtype="f32",
        max_num_seqs=32,
        # So few blocks that sequences preempt each other.
        kv_cache_gib=70.5 * block_bytes / 2**30,
        state_cache_gib=12.5 * slot_bytes / 2**30,
    )
    model = ModelConfig(
        model=str(directory), weights="f32", cache_dir=str(tmp_path), max_model_len=256
    )
    engine = EngineCore(create_runner(model, settings))
    assert (engine.info.num_blocks, engine.info.num_state_slots) == (70, num_slots(32, 12))

    def abort(step: int) -> None:
        for request_id, at in aborted.items():
            if at == step:
                engine.abort(request_id)

    results = run(engine, requests, abort)

    stats = engine.stats()
    assert stats.num_preemptions > 0
    assert stats.num_prefix_hit_tokens > 0
    assert stats.num_used_blocks == 0
    assert 0 < stats.num_used_state_slots <= 12
    plain = EngineCore(load(directory), prefix_caching=False)
    for request in requests:
        for index, alone in enumerate(run_alone(plain, request)):
            result = results[request.request_id, index]
            assert result.finish_reason in (alone.finish_reason, FinishReason.ABORT)
            if result.finish_reason is FinishReason.ABORT:
                assert request.request_id in aborted
                assert result.token_ids == alone.token_ids[: len(result.token_ids)]
            else:
                assert result.token_ids == alone.token_ids
                score = alone.final.score
                assert result.final.score == (score and pytest.approx(score, rel=1e-5))
    assert plain.stats().num_used_state_slots == 0
