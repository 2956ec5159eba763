"""Families with proposed tokens: what comes is what transformers gives, in fewer steps."""

from collections import defaultdict
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Speculation
from ouzel.engine.speculation.rules.step_costs import AttentionCosts, StepCosts
from ouzel.types.engine_request import EngineRequest, ReasoningBudget, SpeculationParams
from tests.backends import of_kinds
from tests.backends.conftest import Golden, Load
from tests.backends.test_openvino_scheduling import FewBlocks
from tests.engine.requests import Result, Results, collect, make_request, run

FREE_ROWS = StepCosts((1, 100), (1.0, 1.01))
# Three rows of a sequence go apart at most, more of them as a whole; both kinds meet in one step.
MIXED = AttentionCosts(first_s=1e-9, apart_s=1e-9, whole_s=3e-9)


@pytest.fixture(params=["apart", "mixed"])
def guessing(request: pytest.FixtureRequest) -> Speculation:
    """Lets rows of guesses be subsequences of their own, or of some sequences one each."""
    costs = (
        FREE_ROWS
        if request.param == "apart"
        else msgspec.structs.replace(FREE_ROWS, attention=MIXED)
    )
    return Speculation(costs=costs)


FEW_KINDS = [
    "llama-bias",
    "qwen3_5",
    "deepseek-v2",
]  # blocks alone, states beside them, compressed keys


def predicted(golden: Golden, output: list[int], share: float, **options: Any) -> EngineRequest:
    """Predicts so much of an output rightly."""
    random = Random(share)
    token_ids = [each if random.random() < share else random.randrange(200) for each in output]
    request = make_request(golden.prompt, max_tokens=len(output), **options)
    return msgspec.structs.replace(
        request, speculation=SpeculationParams(predicted_token_ids=token_ids)
    )


@pytest.mark.parametrize(
    "golden", of_kinds("speculation of other families", kinds=FEW_KINDS), indirect=True
)
def test_each_gets_its_continuation_whatever_was_guessed(
    golden: Golden, load: Load, guessing: Speculation
) -> None:
    engine = EngineCore(load(golden.directory), speculation=guessing)
    requests = [
        predicted(golden, golden.greedy, share, cache_salt=f"{share}")
        for share in (0.0, 0.5, 0.9, 1.0)
    ]
    results = run(engine, requests)
    for request in requests:
        assert results[request.request_id, 0].token_ids == golden.greedy
    assert results[requests[-1].request_id, 0].final.num_accepted_tokens > len(golden.greedy) * 0.8


@pytest.mark.release("speculation beside chunks, appended tokens and logprobs")
@pytest.mark.parametrize(
    "num_appended", [2, pytest.param(12, marks=pytest.mark.release("longer ends of reasoning"))]
)
@pytest.mark.parametrize(
    "golden", of_kinds("speculation of other families", kinds=FEW_KINDS), indirect=True
)
def test_guesses_behind_tokens_that_were_appended_change_nothing(
    golden: Golden, load: Load, guessing: Speculation, num_appended: int
) -> None:
    """Of several sequences at once. The tokens that end a reasoning are known before any of them is computed."""
    end = tuple(range(5, 5 + num_appended))
    budget = ReasoningBudget(
        max_tokens=8, end_token_ids=end, starts=(b"<",), ends=(b">",), pieces={}, is_open=True
    )
    outputs, requests = [], []
    for seed in range(90, 98):
        plain = make_request(golden.prompt, max_tokens=64, temperature=0.9, seed=seed)
        plain = msgspec.structs.replace(plain, reasoning_budget=budget)
        [output] = run(EngineCore(load(golden.directory)), [plain]).values()
        assert tuple(output.token_ids[8 : 8 + num_appended]) == end
        outputs.append(output.token_ids)
        guessed = SpeculationParams(
            predicted_token_ids=[each + (place % 7 == 4) for place, each in enumerate(outputs[-1])]
        )
        requests.append(msgspec.structs.replace(plain, speculation=guessed))
    results = run(EngineCore(load(golden.directory), speculation=guessing), requests)
    assert [results[request.request_id, 0].token_ids for request in requests] == outputs


@pytest.mark.release("speculation beside chunks, appended tokens and logprobs")
@pytest.mark.parametrize(
    "golden", of_kinds("speculation of other families", kinds=FEW_KINDS), indirect=True
)
def test_logprobs_and_samples_stay_what_they_are(
    golden: Golden, load: Load, guessing: Speculation
) -> None:
    asked: list[dict[str, Any]] = [
        {"num_logprobs": 2},
        {"temperature": 0.9, "seed": 5, "top_p": 0.9},
    ]
    alone = [make_request(golden.prompt, max_tokens=48, **options) for options in asked]
    plain = run(EngineCore(load(golden.directory)), alone)
    outputs = [plain[request.request_id, 0] for request in alone]
    requests = [
        predicted(golden, output.token_ids, 0.8, **options)
        for output, options in zip(outputs, asked, strict=True)
    ]
    results = run(EngineCore(load(golden.directory), speculation=guessing), requests)
    for request, output in zip(requests, outputs, strict=True):
        result = results[request.request_id, 0]
        assert result.token_ids == output.token_ids
        assert result.final.num_accepted_tokens > 0
        logprobs, expected = (
            [each.sampled.logprob for each in found.logprobs] for found in (result, output)
        )
        np.testing.assert_allclose(logprobs, expected, atol=1e-4)


@pytest.mark.release("speculation beside chunks, appended tokens and logprobs")
@pytest.mark.parametrize(
    "golden", of_kinds("speculation of other families", kinds=FEW_KINDS), indirect=True
)
def test_guesses_beside_chunks_of_prompts_change_nothing(
    golden: Golden, load: Load, guessing: Speculation
) -> None:
    """A new prompt comes every few steps, and is computed in chunks beside those that guess."""
    engine = EngineCore(FewBlocks(load(golden.directory), num_blocks=60), speculation=guessing)
    coming = [
        predicted(golden, golden.greedy, share, cache_salt=f"{share}")
        for share in (0.6, 0.7, 0.8, 0.9, 1.0)
    ]
    requests = list(coming)
    results: Results = defaultdict(Result)
    while coming or engine.has_unfinished():
        if coming:
            engine.add(coming.pop())
        for _ in range(2):
            collect(results, engine.step())
    for request in requests:
        assert results[request.request_id, 0].token_ids == golden.greedy
    assert engine.stats().num_accepted_tokens > len(golden.greedy)


@pytest.mark.release("speculation beside chunks, appended tokens and logprobs")
@pytest.mark.parametrize("golden", ["llama-bias", "qwen3_5"], indirect=True)
def test_costs_are_measured_on_blocks_and_slots_that_nobody_has(golden: Golden, load: Load) -> None:
    engine = EngineCore(load(golden.directory), speculation=Speculation())
    first = make_request(golden.prompt, max_tokens=len(golden.greedy))
    assert run(engine, [first])[first.request_id, 0].token_ids == golden.greedy
    while engine.use_idle_time():
        pass
    second = predicted(golden, golden.greedy, 1.0)
    assert run(engine, [second])[second.request_id, 0].token_ids == golden.greedy
    assert engine.stats().num_used_blocks == 0
