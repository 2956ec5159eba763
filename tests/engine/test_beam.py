"""Tests beam search: neither the batch nor a lack of blocks changes its results."""

import re
from typing import Any  # sampling parameters are forwarded as they are

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import ForwardBatch
from ouzel.engine.core import EngineCore
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason
from tests.engine.beam_references import (
    all_outputs,
    assert_same,
    collect_outputs,
    reference_search,
    tiny_runner,
)
from tests.engine.requests import make_request, run, run_alone

PROMPT = [(7 * i) % 89 for i in range(10)]


@pytest.mark.parametrize("length_penalty", [-1.0, 0.0, 0.7, 1.0, 2.5])
@pytest.mark.parametrize("eos_token_ids", [(), (3,), (0, 2)])
@pytest.mark.parametrize(
    ("vocab_size", "max_tokens", "width"), [(4, 1, 4), (4, 3, 16), (4, 3, 40), (5, 3, 25)]
)
def test_a_search_wide_enough_finds_the_best_of_all_outputs(
    vocab_size: int,
    max_tokens: int,
    width: int,
    eos_token_ids: tuple[int, ...],
    length_penalty: float,
) -> None:
    """The search is exact because it drops no prefix and never stops early."""
    request = make_request(
        [1, 3, 2],
        n=4,
        max_tokens=max_tokens,
        eos_token_ids=eos_token_ids,
        beam_search=BeamSearchParams(
            width=width, length_penalty=length_penalty, early_stopping="never"
        ),
    )

    results = run_alone(EngineCore(tiny_runner(vocab_size)), request)

    assert_same(collect_outputs(results), all_outputs(request, vocab_size)[:4])


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.0])
@pytest.mark.parametrize(
    ("width", "num_groups", "diversity_penalty"),
    [(1, 1, 0.0), (3, 1, 0.0), (4, 2, 0.8), (6, 3, 2.5), (4, 4, 0.3)],
)
def test_narrow_searches_and_groups_find_the_references_outputs(
    width: int,
    num_groups: int,
    diversity_penalty: float,
    length_penalty: float,
    early_stopping: bool,
) -> None:
    for seed in range(3):
        params = BeamSearchParams(
            width=width,
            num_groups=num_groups,
            diversity_penalty=diversity_penalty,
            length_penalty=length_penalty,
            early_stopping=early_stopping,
        )
        request = make_request(
            [seed, 5, 6], n=width, max_tokens=7, eos_token_ids=(4, 9), beam_search=params
        )

        results = run_alone(EngineCore(tiny_runner(12)), request)

        assert_same(collect_outputs(results), reference_search(request, 12)[:width])


def test_a_search_with_one_beam_is_greedy() -> None:
    engine = EngineCore(FakeRunner())
    greedy = run_alone(engine, make_request(PROMPT))[0].token_ids

    assert (
        run_alone(engine, make_request(PROMPT, beam_search=BeamSearchParams(width=1)))[0].token_ids
        == greedy
    )


def search_requests() -> list[EngineRequest]:
    kinds: list[dict[str, Any]] = [
        {
            "beam_search": BeamSearchParams(width=4),
            "stop_token_ids": tuple(range(8)),
            "num_logprobs": 3,
        },
        {"beam_search": BeamSearchParams(width=3, length_penalty=2.0), "repetition_penalty": 1.3},
        {
            "beam_search": BeamSearchParams(width=4, num_groups=2, diversity_penalty=1.0),
            "frequency_penalty": 0.5,
        },
        {
            "beam_search": BeamSearchParams(width=2, early_stopping=True),
            "min_tokens": 4,
            "stop_token_ids": (1, 2, 3),
        },
        {"temperature": 1.0, "seed": 3},
    ]
    return [make_request([i, *PROMPT], n=2, max_tokens=14, **kind) for i, kind in enumerate(kinds)]


def test_preempted_searches_find_the_same() -> None:
    roomy, short = EngineCore(FakeRunner(num_blocks=200)), EngineCore(FakeRunner(num_blocks=22))
    requests = search_requests()
    alone = [collect_outputs(run_alone(roomy, request)) for request in requests]

    results = run(short, requests)

    assert short.stats().num_preemptions > 0
    for request, expected in zip(requests, alone, strict=True):
        assert (
            collect_outputs([results[request.request_id, index] for index in range(2)]) == expected
        )
    assert short.stats().num_used_blocks == 0


def test_places_are_reserved_for_all_beams() -> None:
    runner = FakeRunner(max_num_seqs=6, num_blocks=200)
    engine = EngineCore(runner)
    requests = search_requests()
    alone = [collect_outputs(run_alone(engine, request)) for request in requests]
    runner.batches.clear()

    results = run(engine, requests)

    assert max(batch.past_lens.size for batch in runner.batches) <= 6
    for request, expected in zip(requests, alone, strict=True):
        assert (
            collect_outputs([results[request.request_id, index] for index in range(2)]) == expected
        )


def test_beams_share_the_blocks_of_their_prompt() -> None:
    engine = EngineCore(FakeRunner(num_blocks=100), prefix_caching=False)
    engine.add(make_request(range(60), max_tokens=4, beam_search=BeamSearchParams(width=5)))
    used = []
    while engine.has_unfinished():
        engine.step()
        used.append(engine.stats().num_used_blocks)

    assert max(used) == 15 + 5


def test_winners_come_with_their_logprobs_score_and_end() -> None:
    engine = EngineCore(FakeRunner())
    stops = tuple(range(30))
    params = BeamSearchParams(width=4, length_penalty=0.0)

    results = run_alone(
        engine,
        make_request(
            PROMPT, n=4, max_tokens=3, num_logprobs=2, stop_token_ids=stops, beam_search=params
        ),
    )

    assert {result.finish_reason for result in results} == {FinishReason.STOP, FinishReason.LENGTH}
    for result in results:
        assert [position.sampled.token_id for position in result.logprobs] == result.token_ids
        assert all(len(position.top) == 2 for position in result.logprobs)
        assert result.final.score == pytest.approx(
            sum(each.sampled.logprob for each in result.logprobs), abs=1e-5
        )
        is_stop = result.finish_reason is FinishReason.STOP
        assert result.final.stop_token_id == (result.token_ids[-1] if is_stop else None)
    scores = [result.final.score or 0.0 for result in results]
    assert scores == sorted(scores, reverse=True)


def test_adjustments_act_on_log_probabilities() -> None:
    engine = EngineCore(FakeRunner())
    bias: dict[str, Any] = {
        "logit_bias": ((5, 100.0), (6, 99.0)),
        "beam_search": BeamSearchParams(width=2, length_penalty=0.0),
    }

    results = run_alone(engine, make_request(PROMPT, n=2, max_tokens=1, num_logprobs=0, **bias))

    assert [result.token_ids for result in results] == [[5], [6]]
    for result, added in zip(results, (100.0, 99.0), strict=True):
        assert result.final.score == pytest.approx(
            result.logprobs[0].sampled.logprob + added, abs=1e-4
        )


def test_an_aborted_choice_leaves_the_others_their_ranks() -> None:
    engine = EngineCore(FakeRunner())
    request = make_request(PROMPT, n=3, beam_search=BeamSearchParams(width=4))
    expected = collect_outputs(run_alone(engine, request))

    def abort_the_best(step: int) -> None:
        if step == 2:
            engine.abort(request.request_id, 0)

    results = run(engine, [request], abort_the_best)

    assert results[request.request_id, 0].finish_reason is FinishReason.ABORT
    assert collect_outputs([results[request.request_id, index] for index in (1, 2)]) == expected[1:]


def test_the_prompt_is_scored_once_and_not_for_an_aborted_choice() -> None:
    engine = EngineCore(FakeRunner(num_blocks=24))
    scored = make_request(
        PROMPT, n=2, num_prompt_logprobs=0, max_tokens=12, beam_search=BeamSearchParams(width=4)
    )
    aborted = make_request(
        PROMPT, n=2, num_prompt_logprobs=0, beam_search=BeamSearchParams(width=4)
    )
    engine.add(aborted)
    engine.abort(aborted.request_id, 0)

    results = run(engine, [scored, *search_requests()])

    assert engine.stats().num_preemptions > 0
    assert [
        each.sampled.token_id for each in results[scored.request_id, 0].prompt_logprobs
    ] == PROMPT[1:]
    assert results[aborted.request_id, 0].num_after_final == 0
    assert results[aborted.request_id, 1].finish_reason is FinishReason.LENGTH


def test_a_search_for_no_tokens_ends_with_the_prompt() -> None:
    request = make_request(
        PROMPT, n=2, max_tokens=0, num_prompt_logprobs=0, beam_search=BeamSearchParams(width=2)
    )

    results = run_alone(EngineCore(FakeRunner()), request)

    assert [result.finish_reason for result in results] == [FinishReason.LENGTH] * 2
    assert len(results[0].prompt_logprobs) == len(PROMPT) - 1
    assert results[0].num_timings == 1


def test_choices_beyond_the_outputs_are_errors() -> None:
    request = make_request([1, 2], n=4, max_tokens=1, beam_search=BeamSearchParams(width=4))

    results = run_alone(EngineCore(tiny_runner(3)), request)

    assert [result.finish_reason for result in results] == [FinishReason.LENGTH] * 3 + [
        FinishReason.REFUSED
    ]
    assert "found 3 outputs only" in str(results[3].final.error)


class FaultyRunner(FakeRunner):
    """A runner whose device fails, or returns NaN, when a context ends with the token."""

    def __init__(self, token_id: int, *, is_fatal: bool) -> None:
        super().__init__()
        self._token_id = token_id
        self._is_fatal = is_fatal

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        logits = super().run(batch)
        at_fault = batch.token_ids[batch.sampled_rows] == self._token_id
        if self._is_fatal and at_fault.any():
            raise RuntimeError("device fault")
        logits[at_fault] = np.nan
        return logits


@pytest.mark.parametrize(("is_fatal", "message"), [(True, "device fault"), (False, "not numbers")])
def test_a_fault_ends_all_choices_of_the_search_and_gives_its_blocks_back(
    is_fatal: bool, message: str
) -> None:
    request = make_request(PROMPT, n=2, beam_search=BeamSearchParams(width=3))
    second_token = run_alone(EngineCore(FakeRunner()), request)[0].token_ids[1]
    engine = EngineCore(FaultyRunner(second_token, is_fatal=is_fatal))

    results = run_alone(engine, request)

    assert [result.finish_reason for result in results] == [FinishReason.ERROR] * 2
    assert message in str(results[0].final.error)
    assert engine.stats().num_used_blocks == engine.stats().num_running == 0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"width": 9}, r"from n \(2\) to max_num_seqs \(8\), given 9"),
        ({"width": 1}, r"from n \(2\) to max_num_seqs \(8\), given 1"),
        (
            {"width": 4, "num_groups": 3},
            r"must be a multiple of the number of groups \(3\), given 4",
        ),
        ({"width": 8}, "8 beams of 60 tokens need 106 KV blocks, the cache has 64"),
    ],
)
def test_searches_that_cannot_run_are_refused(params: dict[str, Any], message: str) -> None:
    request = make_request(PROMPT, n=2, max_tokens=50, beam_search=BeamSearchParams(**params))

    results = run_alone(EngineCore(FakeRunner()), request)

    assert [result.finish_reason for result in results] == [FinishReason.REFUSED] * 2
    assert re.search(message, str(results[0].final.error))
