"""With `--deterministic`, an answer and the bits of its logprobs depend on nothing else.

Where Ouzel's own kernels compute everything it is so without the option.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.checks.row_check import UnequalRows, check_rows
from ouzel.backends.openvino.kernels.library import Kernels, find_kernels, uses_kernels
from ouzel.config import EngineConfig, ModelConfig
from ouzel.demo import MODEL_DIRECTORY
from ouzel.engine.base import ForwardBatch, ModelRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Speculation
from ouzel.errors import ModelLoadError
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import EngineRequest, ReasoningBudget, SpeculationParams
from tests.backends.conftest import read_golden
from tests.engine.drafting import FREE
from tests.engine.requests import Result, make_request, run
from tests.release_only import release_only

needs_kernels = pytest.mark.skipif(
    not uses_kernels(EngineConfig()), reason="ouzel-kernels cannot run here"
)
# the lengths of prompts, around the ends of blocks
LENGTHS = (1, 31, 32, 33, 63, 65, 97, 130)
OWN_KERNELS = "own kernels"
FOUR_BITS = "own kernels, four bits"
KEEP_ROW_BITS = (OWN_KERNELS, FOUR_BITS)
PLUGIN = "plugin"  # the plugin multiplies, and computes attention
SERVED: dict[str, dict[str, str]] = {
    OWN_KERNELS: {"kv_cache_dtype": "f16"},
    PLUGIN: {"kv_cache_dtype": "u8"},
    FOUR_BITS: {"weights": "int4,head=int4,embedding=int4", "kv_cache_dtype": "f16"},
    "u8 cache": {"kv_cache_dtype": "u8"},
    "f32": {"precision": "f32"},
    "bf16 weights": {"weights": "bf16"},
}


@dataclass
class Narrow:
    """A runner that reports a smaller cache than it has."""

    runner: ModelRunner
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def info(self) -> EngineInfo:
        return msgspec.structs.replace(self.runner.info, **self.sizes)

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        return self.runner.run(batch)

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        self.runner.copy_blocks(sources, destinations)

    def close(self) -> None:
        """Leaves the runner to its owner."""


@pytest.fixture(
    scope="module",
    params=[
        PLUGIN,
        pytest.param(OWN_KERNELS, marks=needs_kernels),
        *release_only(
            "--deterministic in other precisions", *sorted({*SERVED} - {PLUGIN, OWN_KERNELS})
        ),
    ],
)
def runner(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ModelRunner]:
    """Serves the demo model, whose weights are trained, in one of the precisions."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == PLUGIN:
            patch.setattr("ouzel.backends.openvino.uses_kernels", lambda engine: False)
        try:
            made = make_runner(request.param, str(tmp_path_factory.mktemp("cache")))
        except UnequalRows as error:
            if request.param != PLUGIN:
                raise
            pytest.skip(str(error))  # the plugin's own products differ on some processors
    yield made
    made.close()


def make_runner(name: str, cache_dir: str) -> ModelRunner:
    options = SERVED[name]
    keeps_row_bits = name in KEEP_ROW_BITS
    model = ModelConfig(
        model=str(MODEL_DIRECTORY), cache_dir=cache_dir, weights=options.get("weights", "auto")
    )
    engine = EngineConfig(
        deterministic=not keeps_row_bits or has_wide_rows(),
        precision=options.get("precision", "auto"),  # type: ignore[arg-type]
        kv_cache_dtype=options.get("kv_cache_dtype", "auto"),  # type: ignore[arg-type]
        max_num_seqs=12,
        max_num_batched_tokens=100,
    )
    made = create_runner(model, engine, num_blocks=120)
    assert made.info.is_deterministic
    assert made.info.separates_rows != keeps_row_bits
    return made


def has_wide_rows() -> bool:
    kernels = find_kernels()
    return isinstance(kernels, Kernels) and kernels.has_wide_rows


def prompt(runner: ModelRunner, length: int) -> list[int]:
    tokens = np.random.default_rng(length % 5).integers(0, runner.info.vocab_size, 200)
    return [int(each) for each in tokens[:length]]


@dataclass(frozen=True)
class Reference:
    requests: list[EngineRequest]
    answers: list[tuple[object, ...]]  # the answer of each request, alone and with an empty cache


@pytest.fixture(scope="module")
def reference(runner: ModelRunner) -> Reference:
    requests = make_requests(runner)
    return Reference(requests, alone(runner, requests))


def make_requests(runner: ModelRunner) -> list[EngineRequest]:
    """Makes requests, some of whose prompts share blocks."""
    greedy = [make_request(prompt(runner, each), max_tokens=12, num_logprobs=3) for each in LENGTHS]
    seeded = [
        make_request(
            prompt(runner, each), max_tokens=12, temperature=1.0, seed=each, num_logprobs=0
        )
        for each in LENGTHS[::3]
    ]
    scored = make_request(prompt(runner, 130), max_tokens=4, num_prompt_logprobs=1)
    forked = make_request(
        prompt(runner, 70), n=3, max_tokens=16, temperature=1.0, seed=7, num_logprobs=0
    )
    beams = make_request(
        prompt(runner, 70),
        n=2,
        max_tokens=10,
        beam_search=BeamSearchParams(width=3),
        num_logprobs=0,
    )
    return [*greedy, *seeded, scored, forked, beams]


def answers(engine: EngineCore, requests: list[EngineRequest]) -> list[tuple[object, ...]]:
    results = run(engine, requests)
    return [answer(results[each.request_id, index]) for each in requests for index in range(each.n)]


def answer(result: Result) -> tuple[object, ...]:
    return result.token_ids, result.logprobs, result.prompt_logprobs


def alone(runner: ModelRunner, requests: list[EngineRequest]) -> list[tuple[object, ...]]:
    """Answers each request alone and with an empty cache."""
    return [each for one in requests for each in answers(EngineCore(runner), [one])]


def test_an_answer_is_the_same_alone_beside_others_and_with_hits(
    runner: ModelRunner, reference: Reference
) -> None:
    engine = EngineCore(runner)
    backwards = answers(engine, reference.requests[::-1])  # fills the cache in another order
    assert len(backwards) == len(reference.answers)
    assert answers(engine, reference.requests) == reference.answers
    assert answers(EngineCore(runner), reference.requests) == reference.answers
    assert engine.stats().num_prefix_hit_tokens > 0


def test_an_answer_is_the_same_after_preemptions(runner: ModelRunner, reference: Reference) -> None:
    few = Narrow(runner, {"num_blocks": 16})
    engine = EngineCore(few)

    assert answers(engine, reference.requests) == reference.answers
    assert engine.stats().num_preemptions > 0


def test_an_answer_is_the_same_after_generated_turns(runner: ModelRunner) -> None:
    """The cache tells blocks of generated tokens from blocks of the same tokens in a prompt."""
    first = make_request(prompt(runner, 50), max_tokens=50)  # fills a block by itself
    engine = EngineCore(runner)
    [(token_ids, *_)] = answers(engine, [first])
    assert isinstance(token_ids, list)
    second = make_request(
        [*first.prompt_token_ids, *token_ids, 5, 6, 7], max_tokens=10, num_logprobs=2
    )

    assert answers(engine, [second]) == alone(runner, [second])


def predict_answer(request: EngineRequest, token_ids: object) -> EngineRequest:
    """Predicts most tokens of the answer rightly."""
    assert isinstance(token_ids, list)
    predicted = [token_id + (place % 7 == 4) for place, token_id in enumerate(token_ids)]
    return msgspec.structs.replace(
        request,
        request_id=f"predict_answer {request.request_id}",
        speculation=SpeculationParams(predicted_token_ids=predicted),
    )


@pytest.mark.release("deterministic answers: guesses, checks of rows")
def test_an_answer_is_the_same_with_proposals(runner: ModelRunner) -> None:
    requests = [
        make_request(
            prompt(runner, length), max_tokens=40, num_logprobs=1, temperature=temperature, seed=3
        )
        for length in LENGTHS
        for temperature in (0.0, 1.0)
    ]
    expected = alone(runner, requests)
    predicted = [
        predict_answer(request, one[0]) for request, one in zip(requests, expected, strict=True)
    ]
    engine = EngineCore(runner, speculation=Speculation(costs=FREE))

    assert answers(engine, predicted) == expected
    assert engine.stats().num_accepted_tokens > 100


def test_an_answer_is_the_same_if_tokens_are_appended_without_a_step(runner: ModelRunner) -> None:
    """Compares appended tokens with tokens of single steps, which `logprobs` requires."""
    budget = ReasoningBudget(
        max_tokens=8,
        end_token_ids=(5, 6, 7, 8),
        starts=(b"<",),
        ends=(b">",),
        pieces={},
        is_open=True,
    )
    appended, stepped = (
        msgspec.structs.replace(
            make_request(prompt(runner, 40), max_tokens=40, num_logprobs=num_logprobs),
            reasoning_budget=budget,
        )
        for num_logprobs in (None, 0)
    )
    [(with_steps, *_)] = alone(runner, [stepped])
    [(without, *_)] = answers(EngineCore(Narrow(runner, {"num_blocks": 30})), [appended])

    assert without == with_steps


class RoundingRunner:
    """A runner whose logits depend on the number of rows in a step, if contexts are long."""

    def __init__(self, info: EngineInfo, least: int, num_tokens: int) -> None:
        self.info = info
        self._least = least
        self._num_tokens = num_tokens

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        rows = np.ones((len(batch.sampled_rows), 4), np.float32)
        is_other = len(batch.token_ids) >= self._least and batch.max_context_len > self._num_tokens
        return rows * (1 + is_other)

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        """Has no blocks."""

    def close(self) -> None:
        """Has nothing."""


@pytest.mark.parametrize(("least", "num_tokens"), [(2, 0), (5, 0), (30, 0), (100, 0), (5, 64)])
def test_a_runner_whose_rows_depend_on_others_is_refused(
    runner: ModelRunner, least: int, num_tokens: int
) -> None:
    with pytest.raises(ModelLoadError, match=r"^deterministic: .*other bits"):
        check_rows(RoundingRunner(runner.info, least, num_tokens))


class CrowdedExpertsRunner:
    """A runner whose rows depend on the load of their expert in a step, except rows of token 0."""

    def __init__(self, info: EngineInfo) -> None:
        self.info = info

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        experts = batch.token_ids % 4
        is_crowded = np.bincount(experts, minlength=4) >= 12
        is_crowded[0] = False
        rows = np.ones((len(batch.sampled_rows), 4), np.float32)
        return rows * (1 + is_crowded[experts[batch.sampled_rows]])[:, None]

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        """Has no blocks."""

    def close(self) -> None:
        """Has nothing."""


def test_a_runner_whose_experts_round_by_the_number_of_rows_is_refused(runner: ModelRunner) -> None:
    with pytest.raises(ModelLoadError, match=r"^deterministic: .*other bits"):
        check_rows(CrowdedExpertsRunner(runner.info))


@pytest.mark.release("deterministic answers: guesses, checks of rows")
@pytest.mark.parametrize(
    ("change", "is_checked"),
    [
        ({}, False),
        ({"num_threads": 1}, True),
        ({"precision": "f32"}, True),
        ({"max_num_seqs": 3}, True),
        ({"max_num_batched_tokens": 60}, True),
    ],
)
def test_rows_are_checked_where_something_has_changed(
    change: dict[str, object], is_checked: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = ModelConfig(model=str(read_golden("llama").directory), cache_dir=str(tmp_path))
    engine = EngineConfig(deterministic=True, num_threads=2, precision="int8", max_num_seqs=2)
    create_runner(model, engine, num_blocks=8).close()
    changed = msgspec.structs.replace(engine, **change)
    for made in (is_checked, False):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, logger="ouzel.backends.openvino.checks.row_check"):
            create_runner(model, changed, num_blocks=8).close()
        assert ("row check:" in caplog.text) == made


def test_a_model_with_states_is_refused(tmp_path: Path) -> None:
    golden = read_golden("qwen3_5")
    model = ModelConfig(model=str(golden.directory), cache_dir=str(tmp_path))
    with pytest.raises(ModelLoadError, match="deterministic: the states of recurrent layers"):
        create_runner(model, EngineConfig(deterministic=True, max_num_seqs=2), num_blocks=8)
