"""Requests, tokens and failures are counted in the metrics."""

from contextlib import aclosing

import msgspec
import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.errors import EngineFailed, EngineUnavailable, InvalidRequest
from ouzel.generation import (
    Finished,
    Generation,
    PromptScored,
)
from ouzel.observability import EngineReading, Metrics, exposition
from ouzel.sampling import SamplingParams
from ouzel.types.step_output import FinishReason
from ouzel.wire.fold import fold
from tests.api.requests import sum_metric
from tests.api.server_setup import FragileParser
from tests.generation.generations import Run, collect, make_model, make_request


async def test_leaving_early_aborts_and_counts(run: Run, engine: EngineClient) -> None:
    leaving = run("abc", max_tokens=4000, n=2)
    async with aclosing(leaving.events()) as events:
        await anext(events)
    assert leaving.finish_reasons == ["abort", "abort"]
    assert fold(await collect(run("abc", max_tokens=3), engine))[0].content == "abc"
    stats = engine.stats()
    assert stats is not None and stats.num_running == 0


async def test_a_failure_is_raised_and_counted(run: Run, engine: EngineClient) -> None:
    failing = run("ab<|fail|>")
    with pytest.raises(EngineFailed, match="scripted failure"):
        await collect(failing, engine)
    assert failing.finish_reasons == ["error"]


def create_random_model(options: dict[str, object]) -> EngineCore:
    return EngineCore(FakeRunner(vocab_size=260))


async def test_a_request_that_leaves_itself_no_token_is_refused() -> None:
    engine = EngineClient(
        EngineSpec(factory="tests.generation.test_counts:create_random_model", options={}),
        in_thread=True,
    )
    await engine.start()
    params = SamplingParams(max_tokens=20, allowed_token_ids=(5, 6), no_repeat_ngram_size=1)
    refused = Generation(
        msgspec.structs.replace(make_request("abc"), params=params),
        make_model(engine),
        Metrics("parrot"),
        key_id=None,
    )

    with pytest.raises(
        InvalidRequest, match="no token is left to choose: allowed_token_ids, no_repeat_ngram_size"
    ):
        await collect(refused, engine)

    assert refused.finish_reasons == ["refused"]
    await engine.close()


async def test_a_bug_of_ours_is_counted_as_an_error(run: Run, engine: EngineClient) -> None:
    broken = run("ab#", make_parser=FragileParser, n=2)
    with pytest.raises(RuntimeError):
        await collect(broken, engine)
    assert broken.finish_reasons == ["error", "error"]


def read_metrics(metrics: Metrics, *names: str) -> list[float]:
    reading = EngineReading(num_restarts=0, step_age_s=0, block_size=16, num_blocks=1)
    text = exposition([(metrics, [reading])])
    return [sum_metric(text, f"ouzel_{name}") for name in names]


async def test_tokens_are_counted_as_they_come(run: Run, engine: EngineClient) -> None:
    metrics = Metrics("parrot")
    generation = run("abc", max_tokens=4000, metrics=metrics)
    async with aclosing(generation.events()) as events:
        await anext(events)
        num_tokens = generation.usage().completion_tokens
        assert read_metrics(metrics, "prompt_tokens_total", "generation_tokens_total") == [
            3,
            num_tokens,
        ]
    assert read_metrics(metrics, "e2e_request_latency_seconds_count", "num_aborts_total") == [0, 1]


async def test_a_request_that_only_scores_is_counted_without_a_token(engine: EngineClient) -> None:
    metrics = Metrics("parrot")
    asked = make_request("abc", n=2, max_tokens=0, num_prompt_logprobs=0)
    scored, *ends = await collect(
        Generation(asked, make_model(engine), metrics, key_id=None), engine
    )

    assert isinstance(scored, PromptScored)
    assert ends == [Finished(index, FinishReason.LENGTH, None) for index in (0, 1)]
    assert read_metrics(metrics, "prompt_tokens_total", "generation_tokens_total") == [3, 0]
    assert read_metrics(
        metrics, "e2e_request_latency_seconds_count", "time_to_first_token_seconds_count"
    ) == [1, 0]


async def test_a_request_that_the_engine_refuses_counts_no_tokens(
    run: Run, engine: EngineClient
) -> None:
    metrics = Metrics("parrot")
    generation = run("abc", metrics=metrics)
    await engine.close()
    with pytest.raises(EngineUnavailable):
        await collect(generation, engine)
    assert read_metrics(
        metrics, "prompt_tokens_total", "request_prompt_tokens_count", "num_aborts_total"
    ) == [0, 0, 0]
    assert generation.finish_reasons == ["error"]
