"""Scores of prompts are exact and bounded per step.

Chunks, the cache, preemption and neighbours do not change them.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import ForwardBatch
from ouzel.engine.core import EngineCore
from ouzel.engine.scheduling.room import MAX_SCORED_ROWS
from ouzel.types.step_output import FinishReason, PositionLogprobs
from tests.engine.requests import make_request, run, run_alone

PROMPT = [(7 * i) % 89 for i in range(37)]
LONG = [(11 * i) % 83 for i in range(150)]


def reference(prompt: list[int]) -> list[PositionLogprobs]:
    """Returns each prompt token's logprob from a request whose prompt ends before that token.

    The logprob is the first output position of that request.
    """
    positions = []
    for end in range(1, len(prompt)):
        engine = EngineCore(FakeRunner(num_blocks=100, max_model_len=400), prefix_caching=False)
        request = make_request(prompt[:end], max_tokens=1, num_logprobs=97)
        ranked = run_alone(engine, request)[0].logprobs[0].top
        rank = next(rank for rank, each in enumerate(ranked, 1) if each.token_id == prompt[end])
        positions.append(PositionLogprobs(ranked[rank - 1], ranked[:2], rank))
    return positions


PROMPT_REFERENCE = reference(PROMPT)


def score(engine: EngineCore, prompt: list[int]) -> list[PositionLogprobs]:
    return run_alone(engine, make_request(prompt, max_tokens=2, num_prompt_logprobs=2))[
        0
    ].prompt_logprobs


@pytest.mark.parametrize("chunk", range(1, 40))
def test_every_chunk_size_gives_the_same_logprobs(chunk: int) -> None:
    engine = EngineCore(FakeRunner(max_num_seqs=1, max_num_batched_tokens=chunk))

    assert score(engine, PROMPT) == PROMPT_REFERENCE


def test_a_prompt_of_one_token_has_none() -> None:
    assert score(EngineCore(FakeRunner()), [5]) == []


def test_the_tokens_generated_are_the_same_as_without() -> None:
    plain = run_alone(EngineCore(FakeRunner()), make_request(PROMPT, temperature=1.0, seed=3))[0]
    scored = run_alone(
        EngineCore(FakeRunner()),
        make_request(PROMPT, temperature=1.0, seed=3, num_prompt_logprobs=0),
    )

    assert scored[0].token_ids == plain.token_ids


def test_a_cached_prompt_is_computed_again_and_still_shared_afterwards() -> None:
    engine = EngineCore(FakeRunner())
    run_alone(engine, make_request(PROMPT[:20]))

    assert score(engine, PROMPT) == PROMPT_REFERENCE
    assert run_alone(engine, make_request(PROMPT))[0].final.num_cached_tokens == 36


def test_a_step_scores_a_bounded_number_of_rows_over_all_prompts() -> None:
    runner = FakeRunner(num_blocks=200, max_model_len=400, max_num_batched_tokens=400)
    engine = EngineCore(runner)
    requests = [make_request([i, *LONG], max_tokens=1, num_prompt_logprobs=0) for i in range(3)]

    results = run(engine, requests)

    assert max(batch.sampled_rows.size for batch in runner.batches) <= MAX_SCORED_ROWS + len(
        requests
    )
    assert [len(results[request.request_id, 0].prompt_logprobs) for request in requests] == [
        150
    ] * 3


def test_other_prompts_are_not_held_up_by_the_rest_of_a_scored_one() -> None:
    engine = EngineCore(FakeRunner(num_blocks=200, max_model_len=400, max_num_batched_tokens=400))
    scored = make_request(LONG, max_tokens=1, num_prompt_logprobs=0)
    other = make_request(PROMPT, max_tokens=1)
    engine.add(scored)
    engine.add(other)

    first_step = engine.step()

    assert [(output.request_id, len(output.token_ids)) for output in first_step] == [
        (scored.request_id, 0),
        (other.request_id, 1),
    ]
    run(engine)


def test_neighbours_and_scored_prompts_get_the_same_as_alone() -> None:
    neighbours = [
        make_request([i, *PROMPT], temperature=1.0, seed=i, num_logprobs=1) for i in range(3)
    ]
    alone = [run_alone(EngineCore(FakeRunner()), request)[0] for request in neighbours]
    scored = make_request(PROMPT, num_prompt_logprobs=2)

    results = run(EngineCore(FakeRunner()), [neighbours[0], scored, *neighbours[1:]])

    assert results[scored.request_id, 0].prompt_logprobs == PROMPT_REFERENCE
    for request, expected in zip(neighbours, alone, strict=True):
        assert results[request.request_id, 0].token_ids == expected.token_ids
        assert results[request.request_id, 0].logprobs == expected.logprobs


def test_choices_share_the_scored_prompt() -> None:
    runner = FakeRunner(max_num_batched_tokens=64)

    results = run_alone(EngineCore(runner), make_request(PROMPT, n=3, num_prompt_logprobs=2))

    assert results[0].prompt_logprobs == PROMPT_REFERENCE
    assert sum(batch.token_ids.size for batch in runner.batches) == len(PROMPT) + 3 * 7


@pytest.mark.parametrize("prefix_caching", [True, False])
def test_preemption_while_a_prompt_is_scored_repeats_no_logprob(prefix_caching: bool) -> None:
    """The growing answer of the urgent request takes blocks of the prompt being scored."""
    runner = FakeRunner(num_blocks=14, max_num_seqs=2, max_num_batched_tokens=2)
    engine = EngineCore(runner, prefix_caching=prefix_caching)
    urgent = make_request([90, 91, 92, 93], max_tokens=40, priority=0)
    scored = make_request(PROMPT, max_tokens=1, num_prompt_logprobs=2, priority=1)
    engine.add(urgent)
    engine.step()

    results = run(engine, [scored])

    assert engine.stats().num_preemptions > 0
    assert results[scored.request_id, 0].prompt_logprobs == PROMPT_REFERENCE
    num_rows = sum(batch.sampled_rows.size for batch in runner.batches)
    assert num_rows == len(PROMPT_REFERENCE) + len(results[scored.request_id, 0].token_ids) + 40


def test_an_abort_in_the_middle_frees_all_blocks() -> None:
    engine = EngineCore(FakeRunner(max_num_batched_tokens=8))
    request = make_request(PROMPT, n=2, num_prompt_logprobs=0)

    def abort(step: int) -> None:
        if step == 1:
            engine.abort(request.request_id)

    results = run(engine, [request], abort)

    assert 0 < len(results[request.request_id, 0].prompt_logprobs) < len(PROMPT) - 1
    assert {results[request.request_id, index].finish_reason for index in (0, 1)} == {
        FinishReason.ABORT
    }
    assert engine.stats().num_used_blocks == 0


class NotANumberRunner(FakeRunner):
    """A runner that returns NaN for the row of one token."""

    BAD = 96

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        logits = super().run(batch)
        logits[batch.token_ids[batch.sampled_rows] == self.BAD] = np.nan
        return logits


def test_scores_that_are_not_numbers_end_that_request_only() -> None:
    engine = EngineCore(NotANumberRunner(max_num_batched_tokens=64))
    bad = make_request([1, NotANumberRunner.BAD, 2, 3], n=3, num_prompt_logprobs=0)
    good = make_request(PROMPT, num_prompt_logprobs=2)

    results = run(engine, [bad, good])

    assert [results[bad.request_id, index].finish_reason for index in range(3)] == [
        FinishReason.ERROR
    ] * 3
    assert "not numbers" in str(results[bad.request_id, 0].final.error)
    assert results[good.request_id, 0].prompt_logprobs == PROMPT_REFERENCE
    assert engine.stats().num_used_blocks == 0
