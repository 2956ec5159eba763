"""Tests states of recurrent layers: their cache, and the places where sequences go on from it.

The fake runner raises an error if a batch reads the state of other tokens, or overwrites a state
that another sequence uses.
"""

from typing import Any

import numpy as np
import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import ForwardBatch
from ouzel.engine.core import EngineCore
from ouzel.types.engine_request import EngineRequest
from tests.engine.requests import make_request, run, run_alone

BLOCK = 4
PROMPT = [(7 * i) % 89 for i in range(37)]


def engine_with(num_kept: int = 8, **options: Any) -> EngineCore:  # options of FakeRunner
    return EngineCore(FakeRunner(num_kept_states=num_kept, **options))


def num_cached(engine: EngineCore, request: EngineRequest) -> int:
    return run_alone(engine, request)[0].final.num_cached_tokens


def test_an_equal_prompt_goes_on_from_its_last_full_block() -> None:
    engine = engine_with()
    assert [num_cached(engine, make_request(PROMPT)) for _ in range(2)] == [0, 36]


def test_a_conversation_goes_on_from_the_last_full_block_of_the_answer() -> None:
    engine = engine_with()
    answer = run_alone(engine, make_request(PROMPT[:10], max_tokens=12))[0].token_ids
    # the 22nd token was never computed
    assert num_cached(engine, make_request([*PROMPT[:10], *answer, 5, 6])) == 20


def test_the_third_branch_of_a_prompt_is_cached() -> None:
    engine = engine_with()
    branches = [
        make_request([*PROMPT[:17], number, number, number, number, number])
        for number in (80, 81, 82)
    ]
    assert [num_cached(engine, branch) for branch in branches] == [0, 0, 16]


def test_the_least_recently_used_state_goes_first() -> None:
    engine = engine_with(num_kept=2)
    first, second, third = ([number, *PROMPT[:5]] for number in (70, 71, 72))
    for prompt in (first, second, first, third):
        run_alone(engine, make_request(prompt, max_tokens=1))
    assert [
        num_cached(engine, make_request(prompt, max_tokens=1)) for prompt in (first, second)
    ] == [4, 0]


def test_a_state_goes_with_its_block() -> None:
    engine = engine_with(num_blocks=10, max_model_len=40)
    run_alone(engine, make_request(PROMPT[:9], max_tokens=1))
    run_alone(engine, make_request([*range(50, 88)], max_tokens=1))  # this request takes all blocks
    assert engine.stats().num_used_state_slots == 1
    assert num_cached(engine, make_request(PROMPT[:9], max_tokens=1)) == 0


def test_no_state_is_cached_without_room_or_without_a_prefix_cache() -> None:
    for engine in (engine_with(0), EngineCore(FakeRunner(num_kept_states=8), prefix_caching=False)):
        assert [num_cached(engine, make_request(PROMPT)) for _ in range(2)] == [0, 0]
        assert engine.stats().num_used_state_slots == 0


def test_equal_prompts_at_once_are_computed_once() -> None:
    engine = engine_with(max_num_batched_tokens=64)
    requests = [make_request(PROMPT, max_tokens=3) for _ in range(4)]
    results = run(engine, requests)
    assert [results[request.request_id, 0].final.num_cached_tokens for request in requests] == [
        0,
        36,
        36,
        36,
    ]


@pytest.mark.parametrize("num_tokens", [36, 37])
def test_choices_go_on_from_the_same_state_without_a_copy(num_tokens: int) -> None:
    """A prompt of 36 tokens ends with a block; a prompt of 37 does not."""
    engine = engine_with(max_num_seqs=4)
    plain = EngineCore(FakeRunner(max_num_seqs=4))
    requests = [
        make_request(PROMPT[:num_tokens], n=4, temperature=1.0, seed=7, max_tokens=20)
        for _ in range(2)
    ]
    texts = [
        [result.token_ids for result in run_alone(each, request)]
        for each, request in zip((engine, plain), requests, strict=True)
    ]
    assert texts[0] == texts[1]
    assert len({tuple(tokens) for tokens in texts[0]}) > 1


def test_preempted_sequences_go_on_from_their_newest_full_block() -> None:
    runner = FakeRunner(num_blocks=12, max_model_len=40, num_kept_states=8)
    engine = EngineCore(runner)
    requests = [make_request([number, *PROMPT[:3]], max_tokens=30) for number in (70, 71)]
    results = run(engine, requests)
    assert engine.stats().num_preemptions > 0
    for request in requests:
        alone = run_alone(
            EngineCore(FakeRunner()), make_request(request.prompt_token_ids, max_tokens=30)
        )
        assert results[request.request_id, 0].token_ids == alone[0].token_ids
    assert any(begins_again(batch) for batch in runner.batches)


def begins_again(batch: ForwardBatch) -> bool:
    """Tells whether a sequence computes several tokens behind others."""
    return bool(np.any((np.diff(batch.subsequence_begins) > 1) & (batch.past_lens > 0)))
