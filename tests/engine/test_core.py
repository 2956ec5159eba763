"""Tests the engine core beyond the contract: chunks, sharing, preemption, isolation."""

import re
from typing import Any  # sampling parameters are forwarded as they are

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import ForwardBatch
from ouzel.engine.core import EngineCore
from ouzel.types.step_output import FinishReason
from tests.engine.requests import make_request, run, run_alone

PROMPT = [(7 * i) % 89 for i in range(37)]


def generate_plainly(prompt: list[int], **params: Any) -> list[int]:
    """Computes the tokens of one request in one chunk, without a cache."""
    engine = EngineCore(FakeRunner(max_num_batched_tokens=1000), prefix_caching=False)
    return run_alone(engine, make_request(prompt, **params))[0].token_ids


@pytest.mark.parametrize("chunk", range(1, 40))
def test_chunked_prefill_gives_the_same_tokens(chunk: int) -> None:
    engine = EngineCore(FakeRunner(max_num_seqs=1, max_num_batched_tokens=chunk))

    assert run_alone(engine, make_request(PROMPT))[0].token_ids == generate_plainly(PROMPT)


def test_a_second_request_uses_the_first_ones_blocks() -> None:
    runner = FakeRunner()
    engine = EngineCore(runner)
    run_alone(engine, make_request(PROMPT))
    runner.batches.clear()

    result = run_alone(engine, make_request([*PROMPT[:30], 90, 91]))[0]

    assert result.token_ids == generate_plainly([*PROMPT[:30], 90, 91])
    assert result.final.num_cached_tokens == 28
    assert runner.batches[0].past_lens.tolist() == [28]


def test_generated_tokens_are_cached_too() -> None:
    engine = EngineCore(FakeRunner())
    answer = run_alone(engine, make_request(PROMPT[:10], max_tokens=12))[0].token_ids

    follow_up = run_alone(engine, make_request([*PROMPT[:10], *answer, 5]))[0]

    assert follow_up.final.num_cached_tokens == 20


def test_a_fully_cached_prompt_computes_its_last_block() -> None:
    engine = EngineCore(FakeRunner())
    run_alone(engine, make_request(PROMPT[:16]))

    assert run_alone(engine, make_request(PROMPT[:16]))[0].final.num_cached_tokens == 12


def test_another_salt_shares_nothing() -> None:
    engine = EngineCore(FakeRunner())
    run_alone(engine, make_request(PROMPT, cache_salt="a"))

    assert run_alone(engine, make_request(PROMPT, cache_salt="b"))[0].final.num_cached_tokens == 0


def test_simultaneous_equal_prompts_are_computed_once() -> None:
    runner = FakeRunner(max_num_batched_tokens=64)
    engine = EngineCore(runner)
    requests = [make_request(PROMPT, max_tokens=3) for _ in range(4)]

    results = run(engine, requests)

    assert [results[request.request_id, 0].token_ids for request in requests] == [
        generate_plainly(PROMPT, max_tokens=3)
    ] * 4
    assert [results[request.request_id, 0].final.num_cached_tokens for request in requests] == [
        0,
        36,
        36,
        36,
    ]


def test_choices_share_the_prompt() -> None:
    runner = FakeRunner(max_num_batched_tokens=64)
    engine = EngineCore(runner)

    results = run_alone(engine, make_request(PROMPT, n=4, temperature=1.0, seed=5))

    assert sum(batch.token_ids.size for batch in runner.batches) == len(PROMPT) + 4 * 7
    assert len({tuple(result.token_ids) for result in results}) == 4


def test_a_long_prompt_delays_others_by_one_chunk_at_most() -> None:
    runner = FakeRunner(max_num_batched_tokens=8, num_blocks=100)
    engine = EngineCore(runner)
    first = make_request([1, 2], max_tokens=30)
    engine.add(first)
    engine.step()
    engine.add(make_request(range(60), max_tokens=1))

    for _ in range(10):
        assert first.request_id in {output.request_id for output in engine.step()}
        assert runner.batches[-1].token_ids.size <= 8
    run(engine)


def test_priority_then_arrival() -> None:
    engine = EngineCore(FakeRunner(max_num_seqs=1))
    late, early, urgent = (
        make_request([i], max_tokens=1, priority=p) for i, p in ((1, 1), (2, 1), (3, 0))
    )

    order = list(run(engine, [early, late, urgent]))

    assert [request_id for request_id, _ in order] == [
        urgent.request_id,
        early.request_id,
        late.request_id,
    ]


def test_preempted_sequences_give_the_same_tokens() -> None:
    engine = EngineCore(FakeRunner(num_blocks=20, max_num_batched_tokens=64))
    requests = [
        make_request(
            [i, *PROMPT[:9]], max_tokens=30, temperature=1.0, seed=i, frequency_penalty=0.5
        )
        for i in range(5)
    ]
    alone = [
        generate_plainly(
            [i, *PROMPT[:9]], max_tokens=30, temperature=1.0, seed=i, frequency_penalty=0.5
        )
        for i in range(5)
    ]

    results = run(engine, requests)

    assert engine.stats().num_preemptions > 0
    assert [results[request.request_id, 0].token_ids for request in requests] == alone


def test_forks_without_room_wait_for_their_turn() -> None:
    engine = EngineCore(FakeRunner(max_num_seqs=2))

    results = run_alone(engine, make_request(PROMPT, n=5, temperature=1.0, seed=9))

    roomy = run_alone(EngineCore(FakeRunner()), make_request(PROMPT, n=5, temperature=1.0, seed=9))
    assert [result.token_ids for result in results] == [result.token_ids for result in roomy]


class Panic(BaseException):
    """An error of a native library: like pyo3's PanicException, it is no Exception."""


class FaultyRunner(FakeRunner):
    """A runner that fails, or returns NaN, for contexts that hold certain tokens."""

    FATAL, NOT_A_NUMBER = 95, 96
    fault: type[BaseException] = RuntimeError

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        if self.FATAL in batch.token_ids:
            raise self.fault("device fault")
        logits = super().run(batch)
        for row, place in enumerate(batch.sampled_rows.tolist()):
            if batch.token_ids[place] == self.NOT_A_NUMBER:
                logits[row] = np.nan
        return logits


class PanickingRunner(FaultyRunner):
    fault = Panic


@pytest.mark.parametrize("params", [{}, {"temperature": 1.0}, {"temperature": 1.0, "top_k": 5}])
def test_logits_that_are_not_numbers_end_that_request_only(params: dict[str, Any]) -> None:
    engine = EngineCore(FaultyRunner())
    good, bad = make_request([1, 2, 3]), make_request([1, 2, FaultyRunner.NOT_A_NUMBER], **params)

    results = run(engine, [good, bad])

    assert results[good.request_id, 0].token_ids == generate_plainly([1, 2, 3])
    assert results[bad.request_id, 0].finish_reason is FinishReason.ERROR
    assert "not numbers" in str(results[bad.request_id, 0].final.error)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"temperature": 1.0},
        {"temperature": 1.0, "top_k": 5},
        {"temperature": 1.0, "typical_p": 0.5},
    ],
)
@pytest.mark.parametrize(
    ("bans", "num_tokens", "named"),
    [
        (
            {"allowed_token_ids": (5, 6), "bad_words": ((5,), (6,))},
            0,
            "allowed_token_ids, bad_words",
        ),
        (
            {"allowed_token_ids": (5, 6), "no_repeat_ngram_size": 1},
            2,
            "allowed_token_ids, no_repeat_ngram_size",
        ),
        (
            {"allowed_token_ids": (7,), "min_tokens": 3, "stop_token_ids": (7,)},
            0,
            "allowed_token_ids, min_tokens",
        ),
    ],
)
def test_a_request_that_bans_every_token_ends_with_an_error_of_its_own(
    bans: dict[str, Any], num_tokens: int, named: str, params: dict[str, Any]
) -> None:
    engine = EngineCore(FakeRunner())
    good = make_request([1, 2, 3], temperature=1.0, seed=1)
    bad = make_request([1, 2, 4], num_logprobs=2, **params, **bans)

    results = run(engine, [good, bad])

    assert results[good.request_id, 0].token_ids == generate_plainly(
        [1, 2, 3], temperature=1.0, seed=1
    )
    ended = results[bad.request_id, 0]
    assert len(ended.token_ids) == num_tokens
    assert ended.finish_reason is FinishReason.REFUSED
    assert ended.final.error == f"no token is left to choose: {named} exclude every token"


def test_mixed_parameters_in_one_batch_give_the_same_tokens_as_alone() -> None:
    kinds: list[dict[str, Any]] = [
        {"temperature": 0.0, "no_repeat_ngram_size": 2},
        {"temperature": 1.0, "top_p": 0.9, "num_logprobs": 3},
        {"temperature": 0.8, "top_k": 40, "typical_p": 0.7, "frequency_penalty": 0.5},
        {"temperature": 1.3, "typical_p": 0.5, "top_p": 0.95},
        {
            "temperature": 1.0,
            "allowed_token_ids": (3, 9, 12, 40),
            "bad_words": ((3, 9), (12,)),
            "top_k": 40,
        },
        {"temperature": 1.0, "top_k": 5, "min_p": 0.1, "logit_bias": ((8, 5.0),), "n": 2},
    ]
    requests = [
        make_request([1, 2, i], max_tokens=20, seed=i, **params) for i, params in enumerate(kinds)
    ]
    alone = [run_alone(EngineCore(FakeRunner()), request) for request in requests]

    together = run(EngineCore(FakeRunner()), requests)

    for request, results in zip(requests, alone, strict=True):
        for index, result in enumerate(results):
            assert together[request.request_id, index].token_ids == result.token_ids
            assert together[request.request_id, index].logprobs == result.logprobs


@pytest.mark.parametrize("runner_type", [FaultyRunner, PanickingRunner])
def test_a_device_fault_ends_its_batch_and_the_engine_goes_on(
    runner_type: type[FakeRunner],
) -> None:
    engine = EngineCore(runner_type())
    bad = make_request([1, FaultyRunner.FATAL])

    failed = run(engine, [bad])

    assert failed[bad.request_id, 0].finish_reason is FinishReason.ERROR
    assert "device fault" in str(failed[bad.request_id, 0].final.error)
    assert run_alone(engine, make_request([1, 2, 3]))[0].token_ids == generate_plainly([1, 2, 3])
    assert engine.stats().num_used_blocks == 0


def test_a_request_that_waits_for_blocks_does_not_stop_one_that_prefills() -> None:
    engine = EngineCore(FakeRunner(num_blocks=32))
    long = make_request([(3 * i) % 89 for i in range(90)], priority=1)
    urgent = make_request([(5 * i) % 89 for i in range(60)], priority=0)
    engine.add(long)
    engine.step()

    results = run(engine, [urgent])

    assert {result.finish_reason for result in results.values()} == {FinishReason.LENGTH}


def test_choices_of_a_failing_prompt_fail_together_and_spare_later_batches() -> None:
    engine = EngineCore(FaultyRunner())
    bad = make_request([1, FaultyRunner.FATAL], n=6)
    engine.add(bad)
    failed = run(engine)

    assert [failed[bad.request_id, index].finish_reason for index in range(6)] == [
        FinishReason.ERROR
    ] * 6
    assert run_alone(engine, make_request([1, 2, 3]))[0].token_ids == generate_plainly([1, 2, 3])


def test_a_request_id_in_use_is_refused() -> None:
    engine = EngineCore(FakeRunner())
    request = make_request([1, 2, 3])
    engine.add(request)
    with pytest.raises(ValueError, match="in use"):
        engine.add(request)
    run(engine)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([], "empty"),
        ([97], r"\[0, 97\)"),
        ([-1], r"\[0, 97\)"),
        ([1] * 128, "128 tokens, max_model_len is 128"),
    ],
)
def test_requests_that_cannot_run_are_refused(prompt: list[int], message: str) -> None:
    engine = EngineCore(FakeRunner())

    result = run_alone(engine, make_request(prompt))[0]

    assert result.finish_reason is FinishReason.REFUSED
    assert re.search(message, str(result.final.error))


def test_prefill_chunks_end_with_blocks() -> None:
    runner = FakeRunner(block_size=4, max_num_seqs=1, max_num_batched_tokens=10)

    run_alone(EngineCore(runner), make_request(PROMPT, max_tokens=1))

    assert [batch.token_ids.size for batch in runner.batches] == [8, 8, 8, 8, 5]
