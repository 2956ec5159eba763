"""Tests the invariants of architecture §3 on every engine."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any  # sampling parameters are forwarded as they are

import pytest

import ouzel.demo
from ouzel.backends.fake import FakeEngine
from ouzel.backends.fake_runner import FakeRunner
from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import Engine
from ouzel.engine.core import EngineCore
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason
from tests.engine.requests import Results, make_request, run, run_alone


def demo_engine(cache_dir: Path) -> Engine:
    """Makes an engine with the bundled model and few blocks.

    Its precision is f32, so that its choices do not depend on rounding.
    """
    model = ModelConfig(
        model=str(ouzel.demo.MODEL_DIRECTORY), max_model_len=256, cache_dir=str(cache_dir)
    )
    engine = EngineConfig(
        precision="f32",
        kv_cache_dtype="f32",
        kv_cache_gib=0.01,
        max_num_seqs=6,
        max_num_batched_tokens=24,
    )
    return EngineCore(create_runner(model, engine))


@pytest.fixture(
    scope="module",
    params=["fake", "core", "core without prefix cache", "core short of blocks", "demo"],
)
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    engines: dict[str, Callable[[], Engine]] = {
        "fake": FakeEngine,
        "core": lambda: EngineCore(FakeRunner()),
        "core without prefix cache": lambda: EngineCore(FakeRunner(), prefix_caching=False),
        "core short of blocks": lambda: EngineCore(FakeRunner(num_blocks=12)),
        "demo": lambda: demo_engine(tmp_path_factory.mktemp("cache")),
    }
    engine = engines[request.param]()
    yield engine
    engine.close()


@pytest.fixture(autouse=True)
def check_all_blocks_returned(engine: Engine) -> Iterator[None]:
    """Checks invariant 2 after each test: no request and no block is left."""
    yield
    assert not engine.has_unfinished()
    assert engine.stats().num_used_blocks == 0
    assert engine.stats().num_running == engine.stats().num_waiting == 0


def varied_requests(seed: int, num: int) -> list[EngineRequest]:
    """Makes requests of many kinds; some begin alike, so that they share blocks."""
    random = Random(seed)
    common = [random.randrange(90) for _ in range(12)]
    kinds: list[dict[str, Any]] = [
        {},
        {"temperature": 0.8, "top_k": 20, "top_p": 0.9},
        {"temperature": 1.3, "top_p": 0.8},
        {"temperature": 1.0, "min_p": 0.05, "frequency_penalty": 0.7},
        {"repetition_penalty": 1.3, "presence_penalty": 0.5, "logit_bias": ((3, 2.0), (7, -5.0))},
        {"temperature": 1.0, "num_logprobs": 3},
        {"temperature": 1.0, "num_prompt_logprobs": 2},
        {"min_tokens": 3, "stop_token_ids": tuple(range(40))},
        {
            "beam_search": BeamSearchParams(width=3),
            "stop_token_ids": tuple(range(20)),
            "num_logprobs": 2,
        },
        {
            "beam_search": BeamSearchParams(width=3, num_groups=3, diversity_penalty=0.5),
            "repetition_penalty": 1.2,
        },
    ]
    requests = []
    for _ in range(num):
        kind = random.choice(kinds)
        request = make_request(
            common[: random.randrange(13)]
            + [random.randrange(90) for _ in range(random.randrange(1, 9))],
            n=random.choice([1, 1, 2, 3]),
            # few blocks must hold all beams
            max_tokens=random.randrange(1, 5 if "beam_search" in kind else 16),
            priority=random.choice([0, 0, 1]),
            seed=random.randrange(1000),
            **kind,
        )
        requests.append(request)
    return requests


def test_every_choice_ends_exactly_once(engine: Engine) -> None:
    requests = varied_requests(1, 12)

    results = run(engine, requests)

    assert set(results) == {
        (request.request_id, index) for request in requests for index in range(request.n)
    }
    for result in results.values():
        assert result.final.finish_reason in (FinishReason.STOP, FinishReason.LENGTH)
        assert result.num_after_final == 0
        assert result.num_timings == 1


def test_tokens_do_not_depend_on_the_batch(engine: Engine) -> None:
    requests = varied_requests(2, 10)
    alone = {request.request_id: run_alone(engine, request) for request in requests}

    together = run(engine, requests)

    for request in requests:
        for index, result in enumerate(alone[request.request_id]):
            assert together[request.request_id, index].token_ids == result.token_ids
            assert together[request.request_id, index].finish_reason == result.finish_reason


def test_abort_ends_one_choice_or_all_and_leaves_the_others_alone(engine: Engine) -> None:
    stays = make_request([1, 2, 3], n=2, max_tokens=10)
    leaves = make_request([1, 2, 3], n=2, max_tokens=40)
    expected = run_alone(engine, stays)

    def abort(step: int) -> None:
        if step == 2:
            engine.abort(stays.request_id, 1)
        if step == 4:
            engine.abort(leaves.request_id)
            engine.abort("nobody")

    results = run(engine, [stays, leaves], abort)

    assert results[stays.request_id, 0].token_ids == expected[0].token_ids
    assert results[stays.request_id, 1].finish_reason is FinishReason.ABORT
    assert {results[leaves.request_id, index].finish_reason for index in (0, 1)} == {
        FinishReason.ABORT
    }


def test_abort_before_the_first_step_still_ends_every_choice(engine: Engine) -> None:
    request = make_request([5, 6, 7], n=3)
    engine.add(request)
    engine.abort(request.request_id, 0)
    engine.abort(request.request_id, 2)

    results = run(engine)

    reasons = [results[request.request_id, index].finish_reason for index in range(3)]
    assert reasons == [FinishReason.ABORT, FinishReason.LENGTH, FinishReason.ABORT]


def test_random_aborts_lose_nothing(engine: Engine) -> None:
    random = Random(3)
    requests = varied_requests(4, 16)

    def abort(step: int) -> None:
        if random.random() < 0.5:
            engine.abort(random.choice(requests).request_id, random.choice([None, 0, 1]))

    results: Results = run(engine, requests, abort)

    for request in requests:
        alone = run_alone(engine, request)
        for index in range(request.n):
            result = results[request.request_id, index]
            if result.finish_reason is FinishReason.ABORT:
                assert result.token_ids == alone[index].token_ids[: len(result.token_ids)]
            else:
                assert result.token_ids == alone[index].token_ids


@pytest.mark.parametrize(
    "seed",
    [
        0,
        1,
        2,
        *(
            pytest.param(seed, marks=pytest.mark.release("further arrivals"))
            for seed in range(3, 8)
        ),
    ],
)
def test_requests_that_come_and_go_at_any_moment(engine: Engine, seed: int) -> None:
    """Requests arrive between steps, with priorities against their order; some are aborted."""
    random = Random(seed)
    requests = varied_requests(seed + 100, 14)
    coming = list(requests)

    def come_and_go(step: int) -> None:
        while coming and random.random() < 0.4:
            engine.add(coming.pop())
        if random.random() < 0.1:
            engine.abort(random.choice(requests).request_id)

    engine.add(coming.pop())
    results = run(engine, after_step=come_and_go)
    results.update(run(engine, coming))

    for request in requests:
        for index, alone in enumerate(run_alone(engine, request)):
            tokens = results[request.request_id, index].token_ids
            assert tokens == alone.token_ids[: len(tokens)]


def test_stop_tokens_and_end_tokens(engine: Engine) -> None:
    plain = run_alone(engine, make_request([4, 8, 15], max_tokens=12))[0].token_ids
    stop = plain[3]
    first = plain.index(stop) + 1

    def generate(**params: Any) -> tuple[FinishReason | None, list[int], int | None]:
        result = run_alone(engine, make_request([4, 8, 15], max_tokens=12, **params))[0]
        return result.finish_reason, result.token_ids, result.final.stop_token_id

    assert generate(stop_token_ids=(stop,)) == (FinishReason.STOP, plain[:first], stop)
    assert generate(eos_token_ids=(stop,)) == (FinishReason.STOP, plain[:first], stop)
    assert generate(eos_token_ids=(stop,), ignore_eos=True) == (
        FinishReason.LENGTH,
        plain,
        None,
    )


def test_min_tokens_holds_the_end_back(engine: Engine) -> None:
    plain = run_alone(engine, make_request([4, 8, 15], max_tokens=12))[0].token_ids

    result = run_alone(
        engine, make_request([4, 8, 15], max_tokens=12, min_tokens=6, stop_token_ids=(plain[0],))
    )[0]

    assert len(result.token_ids) > 6


def test_logprobs_come_with_every_token(engine: Engine) -> None:
    result = run_alone(engine, make_request([1, 2, 3], max_tokens=5, num_logprobs=4))[0]

    assert [position.sampled.token_id for position in result.logprobs] == result.token_ids
    for position in result.logprobs:
        assert len(position.top) == 4
        assert position.top[0].token_id == position.sampled.token_id, "greedy takes the most likely"
        assert list(position.top) == sorted(position.top, key=lambda each: -each.logprob)


def test_prompt_logprobs_come_once_with_choice_0(engine: Engine) -> None:
    prompt = [1 + i % 50 for i in range(30)]

    results = run_alone(engine, make_request(prompt, n=2, num_prompt_logprobs=3))

    assert [position.sampled.token_id for position in results[0].prompt_logprobs] == prompt[1:]
    assert results[1].prompt_logprobs == []
    for position in results[0].prompt_logprobs:
        assert position.rank is not None
        assert position.rank > 3 or position.top[position.rank - 1] == position.sampled
        assert list(position.top) == sorted(position.top, key=lambda each: -each.logprob)


def test_an_answer_scored_as_a_prompt_has_the_logprobs_it_was_given_with(engine: Engine) -> None:
    """The answer spans several chunks and blocks. Prefill and decode round differently."""
    prompt = [4, 8, 15]
    answer = run_alone(
        engine, make_request(prompt, max_tokens=40, temperature=1.0, seed=6, num_logprobs=0)
    )[0]

    request = make_request([*prompt, *answer.token_ids], max_tokens=0, num_prompt_logprobs=0)
    scored = run_alone(engine, request)[0].prompt_logprobs[len(prompt) - 1 :]

    assert [position.sampled.token_id for position in scored] == answer.token_ids
    expected = [position.sampled.logprob for position in answer.logprobs]
    assert [position.sampled.logprob for position in scored] == pytest.approx(expected, abs=1e-4)


def test_scoring_without_generation_gives_no_token(engine: Engine) -> None:
    request = make_request([4, 8, 15], n=2, max_tokens=0, num_prompt_logprobs=0)

    results = run_alone(engine, request)

    assert [result.finish_reason for result in results] == [FinishReason.LENGTH] * 2
    assert [result.token_ids for result in results] == [[], []]
    assert len(results[0].prompt_logprobs) == 2
    assert results[0].num_timings == 1


def test_ends_at_max_model_len(engine: Engine) -> None:
    max_model_len = min(engine.info.max_model_len, 4096)
    prompt = [1 + i % 50 for i in range(max_model_len - 5)]

    result = run_alone(engine, make_request(prompt, max_tokens=100))[0]

    assert (result.finish_reason, len(result.token_ids)) == (FinishReason.LENGTH, 5)
