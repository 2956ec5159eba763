"""A draft model changes no output; if it agrees with the large model, there are fewer steps."""

from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import ForwardBatch
from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Proposals, Speculation
from ouzel.engine.speculation.rules.step_costs import StepCosts
from ouzel.types.engine_request import EngineRequest, SpeculationParams
from tests.engine.drafting import FEW_BLOCKS, FOR_NOTHING, FREE, PROMPT, check_counts
from tests.engine.requests import make_request, run, run_alone


class Imitator(FakeRunner):
    """A draft model: it agrees with the fake model except for some random rows.

    Like the fake model, it checks the cached tokens that it reads.
    """

    def __init__(self, share: float, **options: Any) -> None:
        super().__init__(**options)
        self._share = share
        self._random = Random(1)

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        logits = super().run(batch)
        for row in logits:
            if self._random.random() >= self._share:
                row[:] = np.roll(row, 1)
        return logits


def engine_with(
    share: float, *, lookup: bool = False, num_kept: int | None = None, **options: Any
) -> EngineCore:
    draft = Imitator(share, **options)
    speculation = Speculation(
        prompt_lookup=lookup, draft=draft, costs=FREE, draft_costs=FOR_NOTHING
    )
    return EngineCore(FakeRunner(num_kept_states=num_kept, **options), speculation=speculation)


def draft_runner(engine: EngineCore) -> FakeRunner:
    assert isinstance(engine._proposals, Proposals)
    assert engine._proposals._drafts is not None
    source = engine._proposals._drafts._source
    assert source is not None
    assert isinstance(source.runner, FakeRunner)
    return source.runner


def with_speculation(request: EngineRequest, **options: Any) -> EngineRequest:
    return msgspec.structs.replace(request, speculation=SpeculationParams(**options))


@pytest.mark.parametrize("num_kept", [None, 8])
@pytest.mark.parametrize(
    "params", [{}, {"temperature": 1.0, "seed": 3}, {"temperature": 0.8, "top_k": 9, "seed": 4}]
)
@pytest.mark.parametrize("share", [0.0, 0.7, 1.0])
def test_the_output_equals_the_large_models(
    share: float, params: dict[str, Any], num_kept: int | None
) -> None:
    plain = run_alone(EngineCore(FakeRunner()), make_request(PROMPT, max_tokens=60, **params))[0]
    result = run_alone(
        engine_with(share, num_kept=num_kept), make_request(PROMPT, max_tokens=60, **params)
    )[0]
    assert result.token_ids == plain.token_ids
    check_counts(result, share)


def test_the_draft_shares_blocks_as_the_large_model_does() -> None:
    """The second request finds the first one's blocks; neither model computes them again."""
    engine = engine_with(1.0)
    runner = draft_runner(engine)
    first = run_alone(engine, make_request(PROMPT, max_tokens=20))[0]
    runner.batches.clear()
    again = run_alone(engine, make_request(PROMPT, max_tokens=20))[0]
    assert again.token_ids == first.token_ids
    assert runner.batches[0].past_lens.tolist() == [36]
    assert again.final.num_accepted_tokens == first.final.num_accepted_tokens > 10


def test_blocks_that_change_hands_are_computed_again() -> None:
    """Few blocks, many requests: a draft model that read wrong keys would agree with nothing."""
    engine = engine_with(1.0, **FEW_BLOCKS)
    random = Random(0)
    for _ in range(20):
        common = PROMPT[: random.randrange(20)]
        requests = [
            make_request(
                [*common, random.randrange(90), random.randrange(90)],
                max_tokens=random.randrange(2, 40),
            )
            for _ in range(4)
        ]
        results = run(engine, requests)
        for request in requests:
            alone = run_alone(
                EngineCore(FakeRunner()), make_request(request.prompt_token_ids, max_tokens=40)
            )[0]
            result = results[request.request_id, 0]
            assert result.token_ids == alone.token_ids[: request.params.max_tokens]
            assert result.final.num_accepted_tokens == result.final.num_proposed_tokens


def test_a_request_says_how_many_tokens_are_drafted() -> None:
    engine = engine_with(1.0)
    results = {
        number: run_alone(
            engine,
            with_speculation(make_request(PROMPT, max_tokens=31), max_proposed_tokens=number),
        )[0]
        for number in (0, 1, 5, 29)
    }
    assert [result.final.num_accepted_tokens for result in results.values()] == [0, 15, 25, 29]


def test_a_draft_ends_where_the_model_is_not_sure() -> None:
    engine = engine_with(1.0)
    unsure = run_alone(
        engine, with_speculation(make_request(PROMPT, max_tokens=31), confidence_threshold=1.0)
    )[0]
    sure = run_alone(
        engine, with_speculation(make_request(PROMPT, max_tokens=31), confidence_threshold=0.0)
    )[0]
    assert unsure.final.num_proposed_tokens < sure.final.num_proposed_tokens
    assert unsure.token_ids == sure.token_ids


def test_the_draft_model_catches_up_with_a_long_prompt_in_parts() -> None:
    prompt = [(11 * i) % 97 for i in range(200)]
    options: dict[str, Any] = {
        "num_blocks": 100,
        "max_model_len": 300,
        "max_num_batched_tokens": 32,
    }
    engine = engine_with(1.0, **options)
    result = run_alone(engine, make_request(prompt, max_tokens=40))[0]
    runner = draft_runner(engine)
    assert max(batch.token_ids.size for batch in runner.batches) <= 32 + 1
    assert (
        result.token_ids
        == run_alone(EngineCore(FakeRunner(**options)), make_request(prompt, max_tokens=40))[
            0
        ].token_ids
    )
    assert result.final.num_accepted_tokens > 10


def test_a_draft_model_that_fails_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    engine = engine_with(1.0)
    runner = draft_runner(engine)
    runner._slots = runner._slots[:1]  # the device has lost its memory
    result = run_alone(engine, make_request(PROMPT, max_tokens=20))[0]
    assert (
        result.token_ids
        == run_alone(EngineCore(FakeRunner()), make_request(PROMPT, max_tokens=20))[0].token_ids
    )
    assert "the draft source failed and has been disabled" in caplog.text


@pytest.mark.parametrize(("draft_s", "is_tried"), [(1e-9, True), (1e3, False)])
def test_a_draft_that_does_not_pay_is_tried_only_if_trials_are_cheap(
    draft_s: float, is_tried: bool
) -> None:
    """A row costs as much as it gives, so no draft pays, and none is proposed."""
    draft = Imitator(0.5)
    linear = StepCosts((1, 2), (1.0, 2.0))
    draft_costs = StepCosts((1, 2), (draft_s, draft_s))
    speculation = Speculation(
        prompt_lookup=False, draft=draft, costs=linear, draft_costs=draft_costs
    )
    result = run_alone(
        EngineCore(FakeRunner(), speculation=speculation), make_request(PROMPT, max_tokens=60)
    )[0]
    assert (
        result.token_ids
        == run_alone(EngineCore(FakeRunner()), make_request(PROMPT, max_tokens=60))[0].token_ids
    )
    assert result.final.num_proposed_tokens == 0
    assert bool(draft.batches) is is_tried


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_drafts_worth_is_found_without_proposing_it(share: float) -> None:
    """The draft pays if it is nearly always right, and its rate is unknown at first."""
    steep, draft_costs = StepCosts((1, 2), (1.0, 1.7)), StepCosts((1, 2), (1e-9, 1e-9))
    speculation = Speculation(
        prompt_lookup=False, draft=Imitator(share), costs=steep, draft_costs=draft_costs
    )
    result = run_alone(
        EngineCore(FakeRunner(), speculation=speculation), make_request(PROMPT, max_tokens=80)
    )[0]
    assert (result.final.num_accepted_tokens > 20) is (share == 1.0)
    assert result.final.num_accepted_tokens == result.final.num_proposed_tokens
