"""Several prompts of one request run together and end together."""

import asyncio
from contextlib import aclosing

import msgspec
import pytest

from ouzel.engine_client import EngineClient, EngineState
from ouzel.errors import EngineFailed
from ouzel.generation import (
    Event,
    Generation,
    PromptScored,
    SeveralGenerations,
)
from ouzel.observability import Metrics
from ouzel.wire.fold import fold
from tests.generation.generations import (
    FATAL,
    Run,
    RunSeveral,
    collect,
    make_model,
    make_request,
    wait_until_idle,
)


async def test_each_of_several_scored_prompts_names_its_first_choice(engine: EngineClient) -> None:
    requests = [make_request(said, n=2, num_prompt_logprobs=0) for said in ("abc", "de")]

    events = await collect(
        SeveralGenerations(requests, make_model(engine), Metrics("parrot"), key_id=None), engine
    )

    scored = {
        event.index: len(event.logprobs) for event in events if isinstance(event, PromptScored)
    }
    assert scored == {0: 2, 2: 1}


@pytest.mark.parametrize("is_slow", [False, True])
async def test_several_prompts_give_the_same_as_each_alone(
    run: Run, run_several: RunSeveral, engine: EngineClient, is_slow: bool
) -> None:
    asked: list[dict[str, object]] = [{"max_tokens": 7}, {"max_tokens": 40}, {"stop": ("bca",)}]
    requests = [make_request("abc", n=2, **fields) for fields in asked]  # type: ignore[arg-type]
    together = run_several(*requests)
    choices = fold(await collect(together, engine, is_slow=is_slow))
    alone = [run("abc", n=2, **fields) for fields in asked]
    expected = [choice for each in alone for choice in fold(await collect(each, engine))]
    assert [choice.index for choice in choices] == [0, 1, 2, 3, 4, 5]
    assert [choice.content for choice in choices] == [choice.content for choice in expected]
    assert together.usage().completion_tokens == sum(
        each.usage().completion_tokens for each in alone
    )
    assert together.usage().prompt_tokens == 9
    assert together.finish_reasons == ["length", "length", "length", "length", "stop", "stop"]
    assert together.ttft_s is not None


async def test_a_slow_reader_of_several_prompts_gets_few_large_outputs(
    run_several: RunSeveral, engine: EngineClient
) -> None:
    events = await collect(
        run_several(*(make_request("abc", max_tokens=300) for _ in range(4))), engine, is_slow=True
    )
    assert len(events) < 40


async def test_a_failing_prompt_ends_all(run_several: RunSeveral, engine: EngineClient) -> None:
    failing = run_several(make_request("abc", max_tokens=4000), make_request("ab<|fail|>"))
    with pytest.raises(EngineFailed, match="scripted failure"):
        await collect(failing, engine)
    assert failing.finish_reasons == ["abort", "error"]
    await collect(run_several(make_request("abc"), make_request("abc")), engine)
    stats = engine.stats()
    assert stats is not None and stats.num_running == 0


async def test_outputs_that_came_with_the_failure_of_another_prompt_are_given_out(
    run_several: RunSeveral, engine: EngineClient
) -> None:
    failing = run_several(make_request("abc", max_tokens=50), make_request("ab<|fail|>"))
    events: list[Event] = []
    with pytest.raises(EngineFailed, match="scripted failure"):
        async for new in failing.events():
            events += new
            await wait_until_idle(engine)  # the rest and the failure then come as one

    assert [choice.content for choice in fold(events) if choice.index == 0] == [("abc" * 17)[:50]]
    assert failing.finish_reasons == ["length", "error"]


async def test_an_engine_that_dies_ends_all_prompts_and_comes_back(
    run_several: RunSeveral, engine: EngineClient
) -> None:
    dying = run_several(
        make_request("abc", max_tokens=4000, n=2), make_request(f"ab{chr(FATAL)}", n=2)
    )
    with pytest.raises(EngineFailed, match="scripted death"):
        await collect(dying, engine)
    assert sorted(dying.finish_reasons) in (["abort", "abort", "error", "error"], ["error"] * 4)

    while engine.state is not EngineState.READY:
        await asyncio.sleep(0.001)
    assert {
        choice.content
        for choice in fold(
            await collect(run_several(make_request("abc"), make_request("abc")), engine)
        )
    } == {"abcabcabcabcabcabcab"}


@pytest.mark.parametrize("num_logprobs", [None, 0])
async def test_the_best_show_logprobs_only_when_asked(
    engine: EngineClient, num_logprobs: int | None
) -> None:
    asked = make_request("abc", stop=("ca",))
    params = msgspec.structs.replace(asked.params, num_logprobs=num_logprobs)
    generation = Generation(
        msgspec.structs.replace(asked, best_of=3, params=params),
        make_model(engine),
        Metrics("parrot"),
        key_id=None,
    )

    [best] = fold(await collect(generation, engine))

    assert best.content == "ab"
    assert len(best.logprobs) == (0 if num_logprobs is None else 2)
    assert len(best.finished.hidden_logprobs) == (0 if num_logprobs is None else 2)
    assert generation.usage().completion_tokens == 12
    assert generation.finish_reasons == ["stop"] * 3


async def test_leaving_before_the_best_are_known_aborts_all_samples(engine: EngineClient) -> None:
    asked = msgspec.structs.replace(make_request("abc", max_tokens=4000), best_of=3)
    generation = Generation(asked, make_model(engine), Metrics("parrot"), key_id=None)
    reader = asyncio.create_task(collect(generation, engine))
    while generation.usage().completion_tokens < 30:
        await asyncio.sleep(0.001)

    reader.cancel()
    await asyncio.wait([reader])

    assert generation.finish_reasons == ["abort"] * 3
    await collect(
        Generation(make_request("abc"), make_model(engine), Metrics("parrot"), key_id=None), engine
    )
    stats = engine.stats()
    assert stats is not None and stats.num_running == 0


async def test_leaving_several_prompts_early_aborts_all(
    run_several: RunSeveral, engine: EngineClient
) -> None:
    leaving = run_several(*(make_request("abc", max_tokens=4000, n=2) for _ in range(3)))
    async with aclosing(leaving.events()) as events:
        await anext(events)
    assert leaving.finish_reasons == ["abort"] * 6
    await collect(run_several(make_request("abc"), make_request("abc")), engine)
    stats = engine.stats()
    assert stats is not None and stats.num_running == 0
