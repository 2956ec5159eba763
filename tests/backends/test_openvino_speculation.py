"""Compares speculation with transformers: proposed tokens change no answer and save steps."""

from collections import defaultdict
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Speculation
from ouzel.engine.speculation.rules.step_costs import AttentionCosts
from ouzel.types.engine_request import EngineRequest, ReasoningBudget, SpeculationParams
from tests.backends import of_kinds
from tests.backends.conftest import Golden, Load, read_golden
from tests.backends.test_openvino_scheduling import FewBlocks
from tests.engine.drafting import FREE
from tests.engine.requests import Result, Results, collect, make_request, run

# At most three rows of a sequence are separate subsequences. More rows are a single subsequence. A
# step may have both kinds.
MIXED = AttentionCosts(first_s=1e-9, apart_s=1e-9, whole_s=3e-9)


# Blocks only, blocks and states, and compressed keys.
FEW_KINDS = ["llama-bias", "qwen3_5", "deepseek-v2"]
OF_KINDS = pytest.mark.parametrize(
    "golden", of_kinds("speculation of other families", kinds=FEW_KINDS), indirect=True
)


@pytest.fixture(scope="module")
def golden(request: pytest.FixtureRequest) -> Golden:
    """Has the scope of the module, so that all tests of a checkpoint load it once."""
    return read_golden(request.param)


@pytest.fixture(params=["apart", "mixed"])
def speculation(request: pytest.FixtureRequest) -> Speculation:
    """Makes each proposed row a subsequence, or all rows of some sequences a single one."""
    if request.param == "apart":
        return Speculation(costs=FREE)
    return Speculation(costs=msgspec.structs.replace(FREE, attention=MIXED))


# Any: the fields of make_request
def predict(golden: Golden, output: list[int], share: float, **options: Any) -> EngineRequest:
    """Makes a request that predicts the given share of the output correctly."""
    random = Random(share)
    token_ids = [each if random.random() < share else random.randrange(200) for each in output]
    request = make_request(golden.prompt, max_tokens=len(output), **options)
    return msgspec.structs.replace(
        request, speculation=SpeculationParams(predicted_token_ids=token_ids)
    )


@OF_KINDS
def test_every_request_gets_its_continuation_with_any_proposals(
    golden: Golden, load: Load, speculation: Speculation
) -> None:
    engine = EngineCore(load(golden.directory), speculation=speculation)
    requests = [
        predict(golden, golden.greedy, share, cache_salt=f"{share}")
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
@OF_KINDS
def test_proposals_after_appended_tokens_change_nothing(
    golden: Golden, load: Load, speculation: Speculation, num_appended: int
) -> None:
    """The tokens that end the reasoning are known before the model computes any of them."""
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
        predictions = SpeculationParams(
            predicted_token_ids=[each + (place % 7 == 4) for place, each in enumerate(outputs[-1])]
        )
        requests.append(msgspec.structs.replace(plain, speculation=predictions))
    results = run(EngineCore(load(golden.directory), speculation=speculation), requests)
    assert [results[request.request_id, 0].token_ids for request in requests] == outputs


@pytest.mark.release("speculation beside chunks, appended tokens and logprobs")
@OF_KINDS
def test_logprobs_and_samples_do_not_change(
    golden: Golden, load: Load, speculation: Speculation
) -> None:
    variants: list[dict[str, Any]] = [
        {"num_logprobs": 2},
        {"temperature": 0.9, "seed": 5, "top_p": 0.9},
    ]
    alone = [make_request(golden.prompt, max_tokens=48, **options) for options in variants]
    plain = run(EngineCore(load(golden.directory)), alone)
    outputs = [plain[request.request_id, 0] for request in alone]
    requests = [
        predict(golden, output.token_ids, 0.8, **options)
        for output, options in zip(outputs, variants, strict=True)
    ]
    results = run(EngineCore(load(golden.directory), speculation=speculation), requests)
    for request, output in zip(requests, outputs, strict=True):
        result = results[request.request_id, 0]
        assert result.token_ids == output.token_ids
        assert result.final.num_accepted_tokens > 0
        logprobs, expected = (
            [each.sampled.logprob for each in choice.logprobs] for choice in (result, output)
        )
        np.testing.assert_allclose(logprobs, expected, atol=1e-4)


@pytest.mark.release("speculation beside chunks, appended tokens and logprobs")
@OF_KINDS
def test_proposals_beside_chunks_of_prompts_change_nothing(
    golden: Golden, load: Load, speculation: Speculation
) -> None:
    """A prompt arrives every few steps. Its chunks share steps with proposals of other requests."""
    engine = EngineCore(FewBlocks(load(golden.directory), num_blocks=60), speculation=speculation)
    waiting = [
        predict(golden, golden.greedy, share, cache_salt=f"{share}")
        for share in (0.6, 0.7, 0.8, 0.9, 1.0)
    ]
    requests = list(waiting)
    results: Results = defaultdict(Result)
    while waiting or engine.has_unfinished():
        if waiting:
            engine.add(waiting.pop())
        for _ in range(2):
            collect(results, engine.step())
    for request in requests:
        assert results[request.request_id, 0].token_ids == golden.greedy
    assert engine.stats().num_accepted_tokens > len(golden.greedy)


@pytest.mark.release("speculation beside chunks, appended tokens and logprobs")
@pytest.mark.parametrize("golden", ["llama-bias", "qwen3_5"], indirect=True)
def test_costs_are_measured_on_free_blocks_and_slots(golden: Golden, load: Load) -> None:
    engine = EngineCore(load(golden.directory), speculation=Speculation())
    first = make_request(golden.prompt, max_tokens=len(golden.greedy))
    assert run(engine, [first])[first.request_id, 0].token_ids == golden.greedy
    while engine.use_idle_time():
        pass
    second = predict(golden, golden.greedy, 1.0)
    assert run(engine, [second])[second.request_id, 0].token_ids == golden.greedy
    assert engine.stats().num_used_blocks == 0
