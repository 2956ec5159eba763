"""A draft model changes no output; where it agrees with the large one, there are fewer steps."""

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
from tests.engine.requests import make_request, run, run_alone

FREE = StepCosts((1, 100), (1.0, 1.01))
FOR_NOTHING = StepCosts((1, 100), (0.001, 0.00101))
PROMPT = [(7 * i) % 89 for i in range(37)]


class Imitator(FakeRunner):
    """Agrees with the fake model but for some rows, chosen by chance, and checks what it reads as that does."""

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


def asking(request: EngineRequest, **options: Any) -> EngineRequest:
    return msgspec.structs.replace(request, speculation=SpeculationParams(**options))


@pytest.mark.parametrize("num_kept", [None, 8])
@pytest.mark.parametrize(
    "params", [{}, {"temperature": 1.0, "seed": 3}, {"temperature": 0.8, "top_k": 9, "seed": 4}]
)
@pytest.mark.parametrize("share", [0.0, 0.7, 1.0])
def test_the_output_is_that_of_the_large_model(
    share: float, params: dict[str, Any], num_kept: int | None
) -> None:
    plain = run_alone(EngineCore(FakeRunner()), make_request(PROMPT, max_tokens=60, **params))[0]
    result = run_alone(
        engine_with(share, num_kept=num_kept), make_request(PROMPT, max_tokens=60, **params)
    )[0]
    assert result.token_ids == plain.token_ids
    num_proposed, num_accepted = result.final.num_proposed_tokens, result.final.num_accepted_tokens
    assert num_proposed > 0
    if share == 1.0:
        assert (
            num_accepted == num_proposed >= 45
        )  # of 60: each step has one of its own, and one is the prompt's
    elif share == 0.0:
        assert (
            num_accepted < 0.2 * num_proposed
        )  # unlike rows agree by chance, more often where one seed draws of both
    else:
        assert 0.3 * num_proposed < num_accepted < num_proposed


def test_the_draft_shares_blocks_as_the_large_model_does() -> None:
    """What one request had drafted, the next one finds, and neither computes it again."""
    engine = engine_with(1.0)
    runner = draft_runner(engine)
    first = run_alone(engine, make_request(PROMPT, max_tokens=20))[0]
    runner.batches.clear()
    again = run_alone(engine, make_request(PROMPT, max_tokens=20))[0]
    assert again.token_ids == first.token_ids
    assert runner.batches[0].past_lens.tolist() == [36]
    assert again.final.num_accepted_tokens == first.final.num_accepted_tokens > 10


def test_blocks_that_change_hands_are_computed_again() -> None:
    """Few blocks, many requests: a draft that read another's keys would agree with nothing."""
    options: dict[str, Any] = {"num_blocks": 24, "max_num_seqs": 4, "max_num_batched_tokens": 16}
    engine = engine_with(1.0, **options)
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
            engine, asking(make_request(PROMPT, max_tokens=31), max_proposed_tokens=number)
        )[0]
        for number in (0, 1, 5, 29)
    }
    assert [result.final.num_accepted_tokens for result in results.values()] == [0, 15, 25, 29]


def test_a_draft_ends_where_the_model_is_not_sure() -> None:
    engine = engine_with(1.0)
    unsure = run_alone(
        engine, asking(make_request(PROMPT, max_tokens=31), confidence_threshold=1.0)
    )[0]
    sure = run_alone(engine, asking(make_request(PROMPT, max_tokens=31), confidence_threshold=0.0))[
        0
    ]
    assert unsure.final.num_proposed_tokens < sure.final.num_proposed_tokens
    assert unsure.token_ids == sure.token_ids


def test_a_long_prompt_is_caught_up_with_in_parts() -> None:
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
    runner._slots = runner._slots[:1]  # a device that has lost its memory
    result = run_alone(engine, make_request(PROMPT, max_tokens=20))[0]
    assert (
        result.token_ids
        == run_alone(EngineCore(FakeRunner()), make_request(PROMPT, max_tokens=20))[0].token_ids
    )
    assert "the draft source failed and has been disabled" in caplog.text


@pytest.mark.parametrize(("draft_s", "is_tried"), [(1e-9, True), (1e3, False)])
def test_a_draft_that_does_not_pay_is_tried_where_that_costs_little_of_the_time(
    draft_s: float, is_tried: bool
) -> None:
    """Rows cost what they give: no draft pays, and none is proposed."""
    draft, linear, draft_costs = (
        Imitator(0.5),
        StepCosts((1, 2), (1.0, 2.0)),
        StepCosts((1, 2), (draft_s, draft_s)),
    )
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
def test_what_a_draft_is_worth_is_found_without_proposing_it(share: float) -> None:
    """It pays if it is right nearly always, which nobody knows at first."""
    steep, draft_costs = StepCosts((1, 2), (1.0, 1.7)), StepCosts((1, 2), (1e-9, 1e-9))
    speculation = Speculation(
        prompt_lookup=False, draft=Imitator(share), costs=steep, draft_costs=draft_costs
    )
    result = run_alone(
        EngineCore(FakeRunner(), speculation=speculation), make_request(PROMPT, max_tokens=80)
    )[0]
    assert (result.final.num_accepted_tokens > 20) is (share == 1.0)
    assert result.final.num_accepted_tokens == result.final.num_proposed_tokens
